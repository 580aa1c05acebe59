//! `perflens push`: a profile of this machine to a server, or to a receiver of OTLP.
//!
//! What leaves is a copy without home folders, names of user and machine, and labels but a few;
//! what is left in it is listed.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use profiler_core::encode::otlp as request;
use profiler_core::encode::share::Remains;
use profiler_core::profile::{LabelValue, Profile};
use profiler_core::view::data;

use super::load::load;
use super::server::Server;
use super::{Failure, convert, remote};
use crate::push::{self, NAME, is_name};
use crate::source::Kind;
use crate::source::connection::{Connection, parse_address};
use crate::source::otlp::{self, Protocol};

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  perflens push cpu.pb.gz --server http://localhost:7070 --name local --label version=2
      stored as local:cpu:nanoseconds:cpu:nanoseconds:delta{version=\"2\"}
  perflens push cpu.pb.gz --otlp http://localhost:4318 --name checkout
      to an OpenTelemetry collector, as profiles of the service checkout")]
pub(super) struct Arguments {
    /// The profile
    #[arg(value_name = "FILE")]
    profile: PathBuf,

    /// Send it to a receiver of OTLP instead: by HTTP with protobuf; by gRPC to port 4317 or with
    /// --grpc
    #[arg(long, value_name = "URL", conflicts_with_all = ["address", "kind", "labels"])]
    otlp: Option<String>,

    /// What the server calls who measured: the first part of the profile type; for OTLP, the service
    /// [default: perflens; for OTLP, the service that the profile names]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// A label of the stored profile; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,

    /// A label of samples to keep, besides thread, service and version; may be given several times
    #[arg(long = "keep-label", value_name = "LABEL")]
    keep: Vec<String>,

    #[command(flatten)]
    server: Server,
}

/// The service that all samples of a profile are of, where they say so.
fn service_of(profile: &Profile) -> Option<String> {
    const KEYS: [&str; 3] = ["service.name", "service_name", "service"];
    let samples = profile.samples();
    let of = |row: usize| {
        samples.labels(row).iter().find_map(|label| match label.value {
            LabelValue::Text(text) if KEYS.contains(&profile.text(label.key)) => Some(profile.text(text)),
            _ => None,
        })
    };
    let first = (!samples.is_empty()).then(|| of(0))??;
    (0..samples.len()).all(|row| of(row) == Some(first)).then(|| first.to_owned())
}

/// The usual port of OTLP over gRPC.
const GRPC_PORT: u16 = 4317;

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if is_name(key) && !key.starts_with("__") => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is written KEY=VALUE, its key of letters, digits and _".to_owned()),
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(address) = &arguments.otlp {
        return export(arguments, address);
    }
    let name = arguments.name.as_deref().unwrap_or(NAME);
    if !is_name(name) {
        return Err(Failure::Usage(format!("--name {name}: a name is of letters, digits and _")));
    }
    let connection = arguments.server.connection()?;
    let loaded = load(&arguments.profile)?;
    let private = convert::private(arguments.keep.clone());
    let parcel = push::parcel(&loaded.profile, connection.kind, name, &arguments.labels, &private)
        .map_err(|why| Failure::Input(format!("{}: {why}", loaded.origin)))?;
    remote::ask(&connection, async |source| source.push(parcel.push).await)?;

    tell(&parcel.remains)?;
    let types = data::shown_within(&parcel.types.join(", "), 1000).into_owned();
    writeln!(anstream::stderr(), "sent to {} as {types}", connection.server())?;
    Ok(())
}

/// Lists what is left in what was sent.
fn tell(remains: &Remains) -> Result<(), Failure> {
    let mut out = anstream::stderr();
    for line in convert::in_words("What was sent of a kind to know about:", remains) {
        writeln!(out, "{}", data::shown_within(&line, 1000))?;
    }
    Ok(())
}

/// Sends it to a receiver of OTLP.
fn export(arguments: &Arguments, address: &str) -> Result<(), Failure> {
    let connection = Connection::new(Kind::Http, parse_address(address)?);
    let is_grpc = arguments.server.is_grpc() || connection.address.port() == Some(GRPC_PORT);
    let protocol = if is_grpc { Protocol::Grpc } else { Protocol::Http };
    let loaded = load(&arguments.profile)?;
    let own = arguments.name.clone().or_else(|| service_of(&loaded.profile));
    let name = own.as_deref().unwrap_or(NAME);
    let (shared, remains) = push::shared(&loaded.profile, &convert::private(arguments.keep.clone()))
        .map_err(|error| Failure::Input(format!("{}: {error}", loaded.origin)))?;
    let lost = (!shared.calls().is_empty()).then_some("what calls cost is not in it: OTLP has stacks only");
    let request = request::request(&shared, name)
        .map_err(|error| Failure::Input(format!("{}: {error}", arguments.profile.display())))?;
    let said = remote::wait(otlp::export(&connection, protocol, request))??;
    tell(&remains)?;
    let mut out = anstream::stderr();
    for line in lost.map(str::to_owned).into_iter().chain(said.map(|said| format!("the receiver says: {said}"))) {
        writeln!(out, "{}", data::shown_within(&line, 1000))?;
    }
    let service = data::shown_within(name, 200);
    writeln!(out, "sent to {} as profiles of {service}", connection.server())?;
    Ok(())
}
