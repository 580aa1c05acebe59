//! A program in Go and a real profile of it, both built in: works at once and everywhere.

use std::sync::Arc;

use profiler_core::attribute::analysis::Analysis;
use profiler_core::attribute::{FileGroups, Place, Placement};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{Limits, decode};
use profiler_core::profile::{FileId, Profile};
use profiler_core::view::document::Sentence;
use profiler_core::view::source::Source;
use profiler_core::view::summary;

use super::{Demo, Failure};

const PROFILE: &[u8] = include_bytes!("../../../demo/profile.pb.gz");
const SOURCE: &str = include_str!("../../../demo/logstats.go");
const SOURCE_NAME: &str = "logstats.go";
/// What paths of the program start with in the profile.
const MODULE: &str = "example.com/logstats/";

/// What is shown where nothing can be recorded, and why it can't.
pub(super) fn demo(why_not: &str) -> Result<Demo, Failure> {
    let analysis = analyze(profile()?)?;
    let origin = vec![
        Sentence::new(format!(
            "Both are bundled; the profile was recorded with Go's own profiler: {}.",
            summary::amount(&analysis)
        )),
        Sentence::new("Nothing was recorded here: ").data(why_not).text("."),
    ];
    let next =
        Sentence::new("  ").command("go test -bench . -cpuprofile cpu.pb.gz").faint("  or any other way to a profile");
    Ok(Demo { analysis, source: Source::new(SOURCE.as_bytes()), source_name: SOURCE_NAME, origin, next })
}

/// Decodes the bundled profile, which says whether decoding works at all.
pub(in crate::cli) fn profile() -> Result<Profile, Failure> {
    decode(PROFILE, &Limits::default(), &CancelFlag::new()).map_err(|error| broken(&error))
}

fn analyze(profile: Profile) -> Result<Analysis, Failure> {
    let groups = FileGroups::placed(&profile, |file| Some(placement(&profile, file)));
    let value_type = profile.meta().default_value_type;
    Analysis::new(Arc::new(profile), groups, value_type, &[], &CancelFlag::new()).map_err(|error| broken(&error))
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::Input(format!("the bundled profile: {error}"))
}

/// The program is the workspace; everything else in the profile came with Go.
fn placement(profile: &Profile, file: FileId) -> Placement {
    let path = profile.path(file);
    let own = path.strip_prefix(MODULE).map(str::to_owned);
    Placement {
        place: if own.is_some() { Place::Workspace } else { Place::Toolchain },
        evidence: String::new(),
        package: own.is_none().then(|| "Go's library and runtime".to_owned()),
        path: None,
        workspace_file: own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::demo::hottest_function;

    #[test]
    fn the_profile_is_of_the_bundled_source() {
        let demo = demo("this is a test").unwrap();
        let lines: Vec<&str> = SOURCE.lines().collect();
        for row in &demo.analysis.costs.functions {
            let name = row.name.strip_prefix("example.com/logstats.").unwrap_or_default();
            if demo.analysis.groups.workspace_file(row.file) == Some(SOURCE_NAME) && !name.contains('.') {
                let declaration = lines[row.start_line.0 as usize - 1];
                assert!(declaration.starts_with(&format!("func {name}(")), "{name}: {declaration}");
            }
        }
        assert!(hottest_function(&demo).is_some());
    }
}
