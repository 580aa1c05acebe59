//! What a text of the user leads to: a file, a profile at an address, a query to a server.

use url::Url;

use super::connection::{Connection, Kind, parse_address};
use super::{Request, SourceError};

/// Whether a text is an address and not a path.
pub fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Reads an address that leads to one profile.
pub fn request(text: &str) -> Result<Request, SourceError> {
    let address = parse_address(text)?;
    if address.path() == "/" && address.query().is_none() {
        return Err(SourceError::input(format!(
            "{text} names a server but no profile; for a program with net/http/pprof write {address}debug/pprof/profile?seconds=10"
        )));
    }
    Ok(at(address))
}

fn at(address: Url) -> Request {
    Request { connection: Connection::new(Kind::Http, address), query: None }
}
