//! What a text of the user leads to: a file, a profile at an address, a query to a server.

use super::connection::{Connection, Kind, parse_address};
use super::links::{self, Link};
use super::{Request, SourceError};

/// Whether a text is an address and not a path.
pub fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Reads an address: of a page that shows a profile, or of a profile itself.
pub fn link(text: &str, configured: Option<&Connection>) -> Result<Link, SourceError> {
    let address = parse_address(text)?;
    if let Some(link) = links::parse(&address, configured)? {
        return Ok(link);
    }
    if address.path() == "/" && address.query().is_none() {
        return Err(SourceError::input(format!(
            "{text} names a server but no profile; for a program with net/http/pprof write {address}debug/pprof/profile?seconds=10"
        )));
    }
    let request = Request { connection: Connection::new(Kind::Http, address), query: None };
    Ok(Link { request, filters: Vec::new(), source: None })
}
