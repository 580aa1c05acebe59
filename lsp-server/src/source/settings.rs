//! The connection and the query that settings describe.

use std::path::Path;

use super::connection::{Connection, Kind, Tls, Transport, parse_address};
use super::query::{ProfileQuery, TimeRange};
use super::{Request, SourceError};
use crate::config::{self, Config, ServerKind};

/// Where Polar Signals Cloud answers.
const POLAR_SIGNALS: &str = "https://api.polarsignals.com/api";

/// The server of the settings; `None` when there is none.
pub fn connection(source: &config::Source, folder: &Path) -> Result<Option<Connection>, SourceError> {
    let (kind, usual) = match source.kind {
        ServerKind::Parca => (Kind::Parca, None),
        ServerKind::PolarSignals => (Kind::PolarSignals, Some(POLAR_SIGNALS)),
        ServerKind::Pyroscope => (Kind::Pyroscope, None),
    };
    let Some(address) = source.address.as_deref().or(usual) else { return Ok(None) };
    Ok(Some(Connection {
        transport: match source.transport {
            config::Transport::GrpcWeb => Transport::GrpcWeb,
            config::Transport::Grpc => Transport::Grpc,
        },
        tls: Tls {
            ca_file: source.ca_file.as_ref().map(|path| folder.join(path)),
            certificate_file: source.certificate_file.as_ref().map(|path| folder.join(path)),
            key_file: source.key_file.as_ref().map(|path| folder.join(path)),
            is_verified: source.verify_tls,
        },
        headers: source.headers.clone(),
        user: source.user.clone(),
        project: source.project.clone(),
        tenant: source.tenant.clone(),
        ..Connection::new(kind, parse_address(address)?)
    }))
}

/// The server of the settings, or how to set one.
pub fn required_connection(source: &config::Source, folder: &Path) -> Result<Connection, SourceError> {
    connection(source, folder)?.ok_or_else(|| {
        SourceError::input("no profiling server is set; set source.address in perflens.toml or your config.toml")
    })
}

/// What the settings ask the server for; `None` when they name no server or no query.
pub fn request(config: &Config, folder: &Path) -> Result<Option<Request>, SourceError> {
    let (Some(connection), Some(selector)) = (connection(&config.source, folder)?, &config.query.selector) else {
        return Ok(None);
    };
    let query = query(selector, &config.query.range)?;
    Ok(Some(Request { connection, query: Some(query) }))
}

/// A query from its two texts.
pub fn query(selector: &str, range: &str) -> Result<ProfileQuery, SourceError> {
    let wrong = |error: super::query::QueryError| SourceError::input(error.to_string());
    let range: TimeRange = range.parse().map_err(wrong)?;
    Ok(ProfileQuery { selector: selector.parse().map_err(wrong)?, range })
}
