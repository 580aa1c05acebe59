//! `perflens convert`: another format, or a copy that may leave the machine.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeErrorKind, Limits, decode};
use profiler_core::encode::Target;
use profiler_core::encode::share::{Private, Remains, share};
use profiler_core::profile::Profile;
use profiler_core::view::data;

use super::Failure;
use super::load::load;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  perflens convert perf.folded cpu.pb.gz
      folded stacks as pprof
  perflens convert cpu.pb.gz cpu.speedscope.json --type cpu
      for the viewer at speedscope.app
  perflens convert cpu.pb.gz for-a-ticket.pb.gz --share
      without home folders, names of user and machine, and labels; lists what is left")]
pub(super) struct Arguments {
    /// The profile: a file, or - for standard input
    #[arg(value_name = "IN")]
    from: PathBuf,

    /// Where to write it: a file, whose ending says the format, or - for standard output
    #[arg(value_name = "OUT")]
    to: PathBuf,

    /// The format, where the ending does not say it
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Value type to keep where there can be only one, as TYPE or TYPE/UNIT [default: the profile's
    /// own choice]
    #[arg(long = "type", value_name = "TYPE[/UNIT]")]
    value_type: Option<String>,

    /// Leave out home folders, names of user and machine, comments, and labels but a few; list what
    /// is left
    #[arg(long)]
    share: bool,

    /// A label to keep with --share, besides thread, service and version; may be given several times
    #[arg(long = "keep-label", value_name = "LABEL", requires = "share")]
    labels: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// pprof's protocol buffer in gzip
    Pprof,
    /// Folded stacks, one line each
    Folded,
    /// speedscope's JSON
    Speedscope,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let target = match arguments.format {
        Some(Format::Pprof) => Target::Pprof,
        Some(Format::Folded) => Target::Folded,
        Some(Format::Speedscope) => Target::Speedscope,
        None => Target::of_name(&arguments.to.to_string_lossy()).ok_or_else(|| {
            Failure::Usage(format!(
                "{}: which format is that? End its name with .pb.gz, .folded or .speedscope.json, or say --format",
                arguments.to.display()
            ))
        })?,
    };
    check_target(&arguments.to)?;
    let real = |path: &Path| path.canonicalize().ok();
    if real(&arguments.from).is_some_and(|from| real(&arguments.to) == Some(from)) {
        let name = arguments.to.display();
        return Err(Failure::Input(format!("{name}: it would be replaced by its own copy; name another file")));
    }
    let loaded = load(&arguments.from)?;
    let value_type = match &arguments.value_type {
        None => loaded.profile.meta().default_value_type,
        Some(name) => loaded
            .profile
            .find_value_type(name)
            .map_err(|error| Failure::Usage(format!("{}: {error}", loaded.origin)))?,
    };
    if !arguments.share {
        write(&arguments.to, |out| target.write(&loaded.profile, value_type, out))?;
        return tell_lost(target, &loaded.profile, value_type);
    }
    let private = private(arguments.labels.clone());
    let (shared, remains) =
        share(&loaded.profile, &private).map_err(|error| Failure::Input(format!("{}: {error}", loaded.origin)))?;
    write(&arguments.to, |out| target.write(&shared, value_type, out))?;
    tell_lost(target, &shared, value_type)?;
    // Standard output may be the profile.
    let mut out = anstream::stderr();
    for line in in_words("What is still in it; look through it before you share it:", &remains) {
        writeln!(out, "{}", data::shown_within(&line, 1000))?;
    }
    Ok(())
}

/// Says what the format has no place for.
fn tell_lost(target: Target, profile: &Profile, value_type: usize) -> Result<(), Failure> {
    let kept = &profile.value_types()[value_type];
    let is_count = kept.is_sample_count();
    let mut lost = Vec::new();
    if target == Target::Folded && !is_count {
        lost.push(format!("that its numbers are {} in {}, so viewers show them as samples", kept.kind, kept.unit));
    }
    let others = profile.value_types().len() - 1;
    if target != Target::Pprof && others > 0 {
        lost.push(format!("{others} other value type{}", if others == 1 { "" } else { "s" }));
    }
    if target == Target::Folded && (0..profile.samples().len()).any(|row| !profile.samples().labels(row).is_empty()) {
        lost.push("labels, such as threads".to_owned());
    }
    if !lost.is_empty() {
        let line = format!("Not in it, as the format has no place for it: {}", lost.join("; "));
        writeln!(anstream::stderr(), "{}", data::shown_within(&line, 500))?;
    }
    Ok(())
}

/// What names this user and this machine.
pub(crate) fn private(labels: Vec<String>) -> Private {
    let variable = |names: &[&str]| names.iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default();
    Private {
        home: std::env::home_dir().unwrap_or_default().to_string_lossy().into_owned(),
        user: variable(&["USER", "LOGNAME", "USERNAME"]),
        host: host(),
        labels,
    }
}

#[cfg(unix)]
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // The rest of a full name is the network's.
    name.split('.').next().unwrap_or_default().to_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// What a profile that leaves still says, under a heading.
pub(super) fn in_words(heading: &str, remains: &Remains) -> Vec<String> {
    const MOST: usize = 12;
    let list = |items: Vec<String>| -> String {
        let more = items.len().saturating_sub(MOST);
        let shown = items.into_iter().take(MOST).collect::<Vec<_>>().join(", ");
        match (shown.is_empty(), more) {
            (true, _) => "none".to_owned(),
            (false, 0) => shown,
            (false, more) => format!("{shown} and {more} more"),
        }
    };
    let counted =
        |items: &[(String, usize)]| list(items.iter().map(|(name, count)| format!("{name} ({count})")).collect());
    vec![
        heading.to_owned(),
        format!("  functions: {} names", remains.functions),
        format!("  folders of source files: {}", counted(&remains.folders)),
        format!("  binaries, with their build ids: {}", list(remains.binaries.clone())),
        format!("  labels: {}", counted(&remains.labels)),
        format!("Left out: addresses, comments, labels {}", list(remains.left_out.clone())),
    ]
}

/// Whether a file can be written there, for commands that take long before they write.
pub(super) fn check_target(path: &Path) -> Result<(), Failure> {
    let fail = |path: &Path, what: &str| Err(Failure::Input(format!("{}: {what}", path.display())));
    if path.as_os_str() == "-" {
        return Ok(());
    }
    if path.is_dir() {
        return fail(path, "it is a folder; name a file in it");
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => return fail(folder, "there is no such folder"),
        _ => {}
    }
    if holds_something_else(path) {
        return fail(path, "it is there already and is no profile; name another file, or remove it first");
    }
    Ok(())
}

/// Whether a file holds what is no profile: a slip of the hand must not cost anybody a source file.
fn holds_something_else(path: &Path) -> bool {
    let Ok(file) = fs::File::open(path) else { return false };
    let is_something = file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    is_something
        && decode(file, &Limits::default(), &CancelFlag::new())
            .is_err_and(|error| error.kind() == DecodeErrorKind::NotAProfile)
}

/// Writes a file as a whole or not at all.
pub(super) fn write(path: &Path, encode: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        let mut out = BufWriter::new(io::stdout().lock());
        encode(&mut out)?;
        return Ok(out.flush()?);
    }
    let fail = |error: io::Error| Failure::Input(format!("{}: it can't be written: {error}", path.display()));
    // Devices and pipes can't be replaced, and should not be.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path).map_err(fail)?);
        encode(&mut out).map_err(fail)?;
        return out.flush().map_err(fail);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".perflens-").tempfile_in(folder).map_err(fail)?;
    {
        let mut out = BufWriter::new(file.as_file_mut());
        encode(&mut out).map_err(fail)?;
        out.flush().map_err(fail)?;
    }
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}
