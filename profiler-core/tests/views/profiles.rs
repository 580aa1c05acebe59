//! Small profiles, written as stacks.

use profiler_core::attribute::analysis::{Analysis, Compare, ComparedTo};
use profiler_core::attribute::{FileGroups, Place, Placement};
use profiler_core::cancel::CancelFlag;
use profiler_core::profile::{FileId, Line, LineNo, MapId, Profile, ProfileBuilder, ValueType};
use profiler_core::view::hotspots::{By, Options};

/// A profile of `samples` and `cpu`, 10 ms per sample. A stack is `FUNCTION FILE:LINE` per
/// frame, the leaf first, parted by `<`; line 0 is unknown. Functions start at line 1.
pub(crate) fn profile(stacks: &[(&str, i64)]) -> Profile {
    let types = vec![ValueType::new("samples", "count"), ValueType::new("cpu", "nanoseconds")];
    let mut builder = ProfileBuilder::new("test", types);
    for &(stack, samples) in stacks {
        let frames: Vec<_> = stack
            .split(" < ")
            .map(|frame| {
                let (function, place) = frame.rsplit_once(' ').unwrap();
                let (file, line) = place.rsplit_once(':').unwrap();
                let function = builder.function(function, "", file, LineNo(1)).unwrap();
                let line = Line { function, line: LineNo(line.parse().unwrap()), column: 0 };
                builder.location(MapId::NONE, 0, &[line]).unwrap()
            })
            .collect();
        builder.push_sample(&frames, &[samples, samples * 10_000_000], &[]).unwrap();
    }
    builder.meta().duration_ns = Some(4_000_000_000);
    builder.finish().unwrap()
}

/// `src/…` is the workspace, `dep/…` a dependency, `std/…` the toolchain.
pub(crate) fn placed(profile: &Profile) -> FileGroups {
    FileGroups::placed(profile, |file: FileId| {
        let path = profile.path(file);
        let (place, package) = match path.split('/').next() {
            Some("src") => (Place::Workspace, None),
            Some("dep") => (Place::Dependency, Some("fastjson 1.2.0".to_owned())),
            Some("std") => (Place::Toolchain, Some("std 1.95".to_owned())),
            Some("gen") => (Place::Generated, Some("generated code".to_owned())),
            Some("twice") => (Place::Ambiguous, None),
            _ => (Place::NoMatch, None),
        };
        Some(Placement {
            place,
            workspace_file: (place == Place::Workspace).then(|| path.to_owned()),
            path: (place == Place::Workspace).then(|| path.into()),
            evidence: if place == Place::Workspace { "exact path" } else { "elsewhere" }.to_owned(),
            package,
        })
    })
}

pub(crate) fn analyze(profile: &Profile, groups: FileGroups, filters: &[&str]) -> Analysis {
    let filters: Vec<_> = filters.iter().map(|filter| filter.parse().unwrap()).collect();
    let value_type = profile.meta().default_value_type;
    Analysis::new(std::sync::Arc::new(profile.clone()), groups, value_type, &filters, &CancelFlag::new()).unwrap()
}

pub(crate) fn compare(new: &Profile, base: &Profile, normalize: bool) -> (Analysis, ComparedTo) {
    let mut analysis = analyze(new, FileGroups::by_path(new), &[]);
    let groups = FileGroups::by_path(base);
    let how = if normalize { Compare::Normalized } else { Compare::AsRecorded };
    let compared = analysis.compare_to(std::sync::Arc::new(base.clone()), groups, how, &CancelFlag::new()).unwrap();
    (analysis, compared)
}

pub(crate) fn options(by: By, top: usize) -> Options<'static> {
    Options { origin: "cpu.pb.gz", by, top, explain: Some("perflens explain cpu.pb.gz") }
}
