//! `perflens check`: what a change did, for a pull request.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use profiler_core::view::check::{self, Check, Options, Pair};

use super::load::Input;
use super::{Baseline, Failure, Selection, output};

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  perflens check base.pb.gz new.pb.gz --workspace .
      a report in markdown: every function improved, unchanged, regressed or inconclusive
  perflens check base1.pb.gz new1.pb.gz base2.pb.gz new2.pb.gz --same-work
      of two pairs of runs; runs in turns (base, new, base, new) tell a change from a moody machine
  perflens check base.pb.gz new.pb.gz --fail-above 2
      exit code 3 when a function costs two points of the base's total more, beyond chance and in
      every pair")]
pub(super) struct Arguments {
    /// Base and new version, alternating: one pair of profiles or more
    #[arg(value_names = ["BASE", "NEW"], num_args = 2.., required = true)]
    profiles: Vec<PathBuf>,

    #[command(flatten)]
    selection: Selection,

    /// Bring the values of each new profile to its base's sum first
    #[arg(long)]
    normalize: bool,

    /// All did the same work, as runs of one test do: compare values, however much the sums differ
    #[arg(long, conflicts_with = "normalize")]
    same_work: bool,

    /// How wide the interval of chance may be, in points of the base's total, for what lies in it to be
    /// called unchanged; beyond, it is inconclusive: record longer, or more pairs
    #[arg(long, value_name = "POINTS", default_value_t = 10.0, value_parser = points)]
    matters: f64,

    /// Exit with 3 when a function has become dearer by so many points of the base's total
    #[arg(long, value_name = "POINTS", value_parser = points)]
    fail_above: Option<f64>,

    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,

    /// Rows of the table; 0 means all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For a pull request
    Markdown,
    /// For a terminal
    Text,
    /// Numbers for programs
    Json,
}

/// Percentage points.
fn points(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|points| (0.0..=100.0).contains(points)).ok_or_else(|| "give 0 to 100".to_owned())
}

/// Names in a sentence about failures.
const NAMED: usize = 3;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.profiles.len().is_multiple_of(2) {
        return Err(Failure::Usage(format!(
            "{} profiles are no pairs; give base and new version in turns: BASE NEW BASE NEW",
            arguments.profiles.len()
        )));
    }
    let mut pairs: Vec<Pair> = Vec::new();
    for paths in arguments.profiles.chunks_exact(2) {
        let [base, new] = paths else { continue };
        pairs.push(compared(arguments, base, new)?);
    }
    let options = Options { matters: arguments.matters / 100.0, top: arguments.top };
    let check = check::check(&pairs, &options).map_err(|error| Failure::Input(error.to_string()))?;
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let (new, base) = (name(&arguments.profiles[1]), name(&arguments.profiles[0]));
    match arguments.format {
        Format::Json => output::json(&check.report(&options))?,
        Format::Markdown => output::markdown(&check.document((&new, &base), &options))?,
        Format::Text => output::text(&check.document((&new, &base), &options))?,
    }
    arguments.fail_above.map_or(Ok(()), |limit| judge(&check, limit))
}

fn compared(arguments: &Arguments, base: &Path, new: &Path) -> Result<Pair, Failure> {
    let baseline =
        Baseline { base: Some(base.to_owned()), normalize: arguments.normalize, same_work: arguments.same_work };
    let input = Input::load(new, &baseline)?;
    let (analysis, compared) = input.analyze(&arguments.selection, &baseline)?;
    // A base was given, so there is a comparison.
    compared.map(|compared| (analysis, compared)).ok_or_else(|| Failure::Input("there is no base".to_owned()))
}

fn judge(check: &Check<'_>, limit: f64) -> Result<(), Failure> {
    let names: Vec<&str> = check.regressions(limit / 100.0).map(|row| row.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = names[..names.len().min(NAMED)].join(", ");
    Err(Failure::Check(format!("dearer by {limit} points or more: {named}{more}")))
}
