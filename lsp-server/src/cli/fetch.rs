//! `perflens fetch`: a profile from a server into a file, and what can be asked for.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use profiler_core::cancel::CancelFlag;
use profiler_core::encode::Target;
use profiler_core::profile::Profile;
use profiler_core::view::data;

use super::Failure;
use super::remote;
use super::server::{self, Server};
use crate::shell;
use crate::source::query::TimeRange;
use crate::source::{ProfileQuery, Request, address, presets, settings};
use crate::symbols::Places;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  perflens fetch --server http://localhost:7070 --list
      what the server has: presets and profile types
  perflens fetch 'on-CPU 15m' -o cpu.pb.gz
      a preset, from the server of your settings
  perflens fetch 'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job=\"api\"}' --range 1h -o cpu.pb.gz
      a query as servers write them
  perflens fetch 'http://localhost:6060/debug/pprof/heap' -o heap.pb.gz
      what an address gives")]
pub(super) struct Arguments {
    /// A preset, a query, or an address; without, the query of your settings
    #[arg(value_name = "QUERY")]
    query: Option<String>,

    /// Of which time: 15m, 24h, 7d, 1h@24h for an hour that ended a day ago, or two times with a slash
    /// between them
    #[arg(long, value_name = "RANGE")]
    range: Option<String>,

    /// Where to write the profile; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "profile.pb.gz")]
    output: PathBuf,

    /// List what the server has instead: presets and profile types; with a query its labels
    #[arg(long)]
    list: bool,

    /// List the values of a label of the query instead
    #[arg(long, value_name = "LABEL", requires = "query")]
    values: Option<String>,

    #[command(flatten)]
    server: Server,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(label) = &arguments.values {
        return values(arguments, label);
    }
    if arguments.list {
        return list(arguments);
    }
    let request = request(arguments)?;
    let fetched = remote::fetch(&request)?;
    let loaded = remote::decoded(&fetched)?;
    let profile = looked_up_here(Arc::clone(&loaded.profile))?;
    for note in profile.notes() {
        writeln!(anstream::stderr(), "{}", data::shown_within(note, 1000))?;
    }
    let value_type = profile.meta().default_value_type;
    if arguments.output.as_os_str() == "-" {
        return Ok(Target::Pprof.write(&profile, value_type, io::stdout().lock())?);
    }
    let name = arguments.output.display();
    let fail = |error: io::Error| Failure::Input(format!("{name}: {error}"));
    let mut file = BufWriter::new(File::create(&arguments.output).map_err(fail)?);
    Target::Pprof.write(&profile, value_type, &mut file).map_err(fail)?;
    file.flush().map_err(fail)?;
    let word = shell::word(&arguments.output.to_string_lossy());
    writeln!(anstream::stderr(), "written to {name}; look at it with: perflens report {word} --workspace .")?;
    Ok(())
}

/// With lines of this machine's binaries, where the server knows only where functions start: nobody
/// who reads the file can tell any more.
fn looked_up_here(profile: Arc<Profile>) -> Result<Arc<Profile>, Failure> {
    if !profile.meta().has_looked_up_lines {
        return Ok(profile);
    }
    let folder = std::env::current_dir().unwrap_or_default();
    let debug_dirs = server::config().symbols.debug_dirs.iter().map(|dir| folder.join(dir)).collect();
    let places = Places { debug_dirs, roots: vec![folder] };
    places.symbolised(profile, None, &CancelFlag::new()).map_err(|error| Failure::Input(error.to_string()))
}

/// What the arguments ask for.
fn request(arguments: &Arguments) -> Result<Request, Failure> {
    if let Some(text) = arguments.query.as_deref().filter(|text| address::is_address(text)) {
        let configured = arguments.server.connection_if_any().ok().flatten();
        return Ok(address::link(text, configured.as_ref())?.request);
    }
    let connection = arguments.server.connection()?;
    let query = query(arguments)?;
    Ok(Request { connection, query: Some(query) })
}

/// The query of the arguments. A preset needs to know what the server has.
fn query(arguments: &Arguments) -> Result<ProfileQuery, Failure> {
    let config = server::config();
    let range = arguments.range.as_deref().unwrap_or(&config.query.range);
    let text = match (&arguments.query, config.query.selector) {
        (Some(text), _) => text.clone(),
        (None, Some(selector)) => selector,
        (None, None) => {
            return Err(Failure::Usage("say what to fetch; perflens fetch --list shows what there is".to_owned()));
        }
    };
    if text.contains(':') && !text.starts_with("compare ") {
        return Ok(settings::query(&text, range)?);
    }
    let range = arguments.range.as_deref().map(str::parse::<TimeRange>).transpose();
    let range = range.map_err(|error| Failure::Usage(error.to_string()))?;
    let offered = offered(arguments)?;
    let titles: Vec<&str> = offered.iter().map(|preset| preset.title.as_str()).collect();
    let chosen = offered.iter().find(|preset| preset.title.eq_ignore_ascii_case(&text)).ok_or_else(|| {
        Failure::Input(format!("{text}: the server has no such preset; it has {}", titles.join(", ")))
    })?;
    Ok(ProfileQuery { range: range.unwrap_or(chosen.query.range), ..chosen.query.clone() })
}

fn offered(arguments: &Arguments) -> Result<Vec<presets::Preset>, Failure> {
    let connection = arguments.server.connection()?;
    let types = remote::profile_types(&connection)?;
    Ok(presets::offered(connection.kind, &types, &[]))
}

fn list(arguments: &Arguments) -> Result<(), Failure> {
    let connection = arguments.server.connection()?;
    let mut out = io::stdout().lock();
    if arguments.query.is_some() {
        let query = query(arguments)?;
        let labels = remote::ask(&connection, async |source| source.labels(&query).await)?;
        for label in labels {
            writeln!(out, "{}", data::escaped(&label))?;
        }
        return Ok(());
    }
    let types = remote::profile_types(&connection)?;
    for preset in presets::offered(connection.kind, &types, &[]).iter().filter(|preset| preset.base.is_none()) {
        writeln!(out, "{}", preset.title)?;
    }
    for profile_type in types {
        writeln!(out, "{}", data::escaped(&profile_type.to_string()))?;
    }
    Ok(())
}

fn values(arguments: &Arguments, label: &str) -> Result<(), Failure> {
    let connection = arguments.server.connection()?;
    let query = query(arguments)?;
    let values = remote::ask(&connection, async |source| source.values(label, &query).await)?;
    let mut out = io::stdout().lock();
    for value in values {
        writeln!(out, "{}", data::escaped(&value))?;
    }
    Ok(())
}
