//! `perflens otlp`: the receiver alone, for a terminal.
//!
//! What comes is told on standard output, a line at a time; with `-o` the window is written as a
//! profile at the end.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use profiler_core::encode::Target;
use profiler_core::view::data;

use super::{Failure, convert, signals};
use crate::handlers::received::{from, losses, records};
use crate::otlp::{Counts, Receiver, Settings};
use crate::shell;

/// Between two lines.
const EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether it is time to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  perflens otlp
      tells what comes, until Ctrl-C
  perflens otlp --for 30s -o now.pb.gz
      what comes in half a minute, as a profile
  perflens otlp --grpc-port 14317 --http-port 14318
      beside a collector that has the usual ports

Senders on this machine are pointed at 127.0.0.1:4317 (gRPC) or http://127.0.0.1:4318 (HTTP), without TLS.")]
pub(super) struct Arguments {
    /// The port for gRPC; 0 is one that is free
    #[arg(long, value_name = "PORT", default_value_t = 4317)]
    grpc_port: u16,

    /// The port for HTTP, with protobuf or JSON; 0 is one that is free
    #[arg(long, value_name = "PORT", default_value_t = 4318)]
    http_port: u16,

    /// How long what came is kept, as 90s, 15m or 1h
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = duration)]
    window: Duration,

    /// How much memory that may take, in MiB; the oldest goes first
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(16..=4096))]
    memory: u32,

    /// How long to receive [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,

    /// Write what is in the window as a profile at the end; the name's ending says the format
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Reads `90s`, `15m`, `1h`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "give a number with s, m or h, like 15m, up to a day".to_owned();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds = match unit {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds)).ok_or_else(wrong)?;
    if (1..=86_400).contains(&seconds) { Ok(Duration::from_secs(seconds)) } else { Err(wrong()) }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let target =
        arguments.output.as_ref().map(|path| Target::of_name(&path.to_string_lossy()).unwrap_or(Target::Pprof));
    arguments.output.as_deref().map_or(Ok(()), convert::check_target)?;
    // Elsewhere than on Unix `--for` is the way to an orderly end.
    let stop = signals::stop()?;
    let settings = Settings {
        grpc_port: arguments.grpc_port,
        http_port: arguments.http_port,
        window: arguments.window,
        bytes: (arguments.memory as usize) << 20,
    };
    let receiver = Receiver::start(settings).map_err(|error| {
        Failure::Input(error.to_string().replace("otlp.grpcPort and otlp.httpPort", "--grpc-port and --http-port"))
    })?;
    writeln!(
        anstream::stderr(),
        "receiving OTLP profiles on 127.0.0.1:{} (gRPC) and http://127.0.0.1:{} (HTTP)",
        receiver.grpc_port,
        receiver.http_port
    )?;
    let start = Instant::now();
    let mut told = Counts::default();
    let mut last = start;
    loop {
        let is_over = stop.load(Ordering::Relaxed) || arguments.time.is_some_and(|time| start.elapsed() >= time);
        if is_over || last.elapsed() >= EVERY {
            last = Instant::now();
            let counts = receiver.window.counts();
            tell(&told, &counts)?;
            told = counts;
        }
        if is_over {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let now = Instant::now();
    let extent = receiver.window.extent(now);
    for words in losses(&told, extent) {
        writeln!(anstream::stderr(), "{words}")?;
    }
    let Some((path, target)) = arguments.output.as_ref().zip(target) else { return Ok(()) };
    let name = path.display();
    let snapshot = receiver.window.snapshot(now);
    drop(receiver);
    let snapshot = snapshot.ok_or_else(|| Failure::Input(format!("{name}: nothing came, so it was not written")))?;
    let profile = snapshot.plain().map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    convert::write(path, |out| target.write(&profile, profile.meta().default_value_type, out))?;
    if path.as_os_str() != "-" {
        let word = shell::word(&path.to_string_lossy());
        writeln!(anstream::stderr(), "written to {name}; look at it with: perflens report {word} --workspace .")?;
    }
    Ok(())
}

/// A line about what came since the last one.
fn tell(before: &Counts, now: &Counts) -> Result<(), Failure> {
    let refused = |counts: &Counts| counts.refused.values().sum::<u64>();
    let (requests, samples) = (now.requests - before.requests, now.samples - before.samples);
    if requests == 0 && refused(now) == refused(before) {
        return Ok(());
    }
    let mut line = format!("{requests} requests, {}{}", records(samples), from(now));
    if refused(now) > refused(before) {
        let _ = std::fmt::Write::write_fmt(&mut line, format_args!("; {} refused", refused(now) - refused(before)));
    }
    let mut out = anstream::stdout();
    writeln!(out, "{}", data::shown_within(&line, 500))?;
    Ok(out.flush()?)
}
