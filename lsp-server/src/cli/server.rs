//! Which server a command is about: options, over the settings of the user and, when it is
//! trusted, of the folder it runs in.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Failure;
use crate::config::places::Places;
use crate::config::toml_file::{TomlFile, WorkspaceFile};
use crate::config::trust::{Trust, TrustStore};
use crate::config::{self, Config, Layers, ServerKind};
use crate::source::{Connection, settings};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Server {
    /// The server's address [default: source.address of your settings]
    #[arg(long = "server", value_name = "ADDRESS")]
    address: Option<String>,

    /// What kind of server it is [default: source.kind of your settings]
    #[arg(long, value_enum)]
    kind: Option<Kind>,

    /// Speak gRPC instead of gRPC-web, to Parca and Polar Signals Cloud
    #[arg(long)]
    grpc: bool,

    /// A project of Polar Signals Cloud
    #[arg(long, value_name = "ID")]
    project: Option<String>,

    /// A tenant of Pyroscope
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,

    /// The user of basic authentication
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Certificates of authorities to believe, besides the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Parca,
    PolarSignals,
    Pyroscope,
}

impl Server {
    /// The connection that options and settings describe.
    pub(super) fn connection(&self) -> Result<Connection, Failure> {
        Ok(settings::required_connection(&self.source(), &folder())?)
    }

    /// The same, or none when nothing names a server.
    pub(super) fn connection_if_any(&self) -> Result<Option<Connection>, Failure> {
        Ok(settings::connection(&self.source(), &folder())?)
    }

    /// Whether gRPC was asked for.
    pub(super) fn is_grpc(&self) -> bool {
        self.grpc
    }

    fn source(&self) -> config::Source {
        let mut source = config().source;
        if let Some(address) = &self.address {
            // What is set for another server is not meant for this one.
            if source.address.as_ref() != Some(address) {
                source = config::Source::default();
            }
            source.address = Some(address.clone());
        }
        if let Some(kind) = self.kind {
            source.kind = match kind {
                Kind::Parca => ServerKind::Parca,
                Kind::PolarSignals => ServerKind::PolarSignals,
                Kind::Pyroscope => ServerKind::Pyroscope,
            };
        }
        if self.grpc {
            source.transport = config::Transport::Grpc;
        }
        let set = |to: &mut Option<String>, from: &Option<String>| {
            if from.is_some() {
                to.clone_from(from);
            }
        };
        set(&mut source.project, &self.project);
        set(&mut source.tenant, &self.tenant);
        set(&mut source.user, &self.user);
        if self.ca_file.is_some() {
            source.ca_file.clone_from(&self.ca_file);
        }
        source
    }
}

/// The folder that relative names are of.
fn folder() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// Where debug info is looked for: the folders of the command line, then those of the settings.
pub(super) fn debug_dirs(named: &[PathBuf]) -> Vec<PathBuf> {
    let folder = folder();
    let configured = config().symbols.debug_dirs.into_iter().map(|dir| folder.join(dir));
    named.iter().cloned().chain(configured).collect()
}

/// The settings of the user, and of the folder if it is trusted.
pub(super) fn config() -> Config {
    let places = Places::of_this_process();
    let workspace_file = WorkspaceFile::read(&folder());
    let trust = Trust::of(workspace_file.as_ref(), false, &TrustStore::new(places.trust));
    let user_file = places.config.as_deref().and_then(|path: &Path| TomlFile::read(path));
    Layers { user_file, workspace_file, ..Layers::default() }.resolve(trust).config
}
