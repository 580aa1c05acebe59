//! Small profiles, written as stacks.

use std::sync::Arc;

use profiler_core::attribute::analysis::{Analysis, Compare, ComparedTo};
use profiler_core::attribute::{FileGroups, GroupId, Place, Placement};
use profiler_core::cancel::CancelFlag;
use profiler_core::profile::{FileId, Line, LineNo, MapId, Profile, ProfileBuilder, ValueType};
use profiler_core::view::by_file::{ChangeIndex, FileChanges, FileCosts, FileIndex};

/// Value types of every profile here.
pub(crate) const SAMPLES: usize = 0;
pub(crate) const CPU: usize = 1;
pub(crate) const ALLOC: usize = 3;

/// A profile of `samples`, `cpu`, `wall` and `alloc`. One stack per line, the leaf first:
/// `FUNCTION@START FILE:LINE < … = CPU WALL ALLOC`, in milliseconds and KiB; what is left out
/// is 0. There is a sample every 10 ms of cpu. Line 0 is unknown.
pub(crate) fn profile(stacks: &str) -> Arc<Profile> {
    sampled(10, stacks)
}

/// The same with a sample every so many ms.
pub(crate) fn sampled(period_ms: i64, stacks: &str) -> Arc<Profile> {
    let types = vec![
        ValueType::new("samples", "count"),
        ValueType::new("cpu", "nanoseconds"),
        ValueType::new("wall", "nanoseconds"),
        ValueType::new("alloc", "bytes"),
    ];
    let mut builder = ProfileBuilder::new("test", types);
    for stack in stacks.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (frames, values) = stack.rsplit_once(" = ").unwrap();
        let frames: Vec<_> = frames
            .split(" < ")
            .map(|frame| {
                let (function, place) = frame.rsplit_once(' ').unwrap();
                let (function, start) = function.rsplit_once('@').unwrap();
                let (file, line) = place.rsplit_once(':').unwrap();
                let function = builder.function(function, "", file, LineNo(start.parse().unwrap())).unwrap();
                let line = Line { function, line: LineNo(line.parse().unwrap()), column: 0 };
                builder.location(MapId::NONE, 0, &[line]).unwrap()
            })
            .collect();
        let mut values = values.split(' ').map(|value| value.parse::<i64>().unwrap());
        let mut next = || values.next().unwrap_or(0);
        let (cpu, wall, alloc) = (next(), next(), next());
        let samples = (cpu + period_ms / 2) / period_ms;
        builder.push_sample(&frames, &[samples, cpu * 1_000_000, wall * 1_000_000, alloc << 10], &[]).unwrap();
    }
    builder.meta().duration_ns = Some(4_000_000_000);
    Arc::new(builder.finish().unwrap())
}

/// The program that most tests look at.
pub(crate) fn log_stats() -> Arc<Profile> {
    profile(LOG_STATS)
}

pub(crate) const LOG_STATS: &str = "
    core::num::from_str@70 src/num.rs:80 < parse_line@13 src/log_stats.rs:17 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 489 890 50278
    str::trim_end_matches@3 src/text.rs:4 < parse_line@13 src/log_stats.rs:17 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 215
    str::trim_start_matches@8 src/text.rs:9 < parse_line@13 src/log_stats.rs:17 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 91
    parse_line@13 src/log_stats.rs:17 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 324 304
    parse_line@13 src/log_stats.rs:17 < Stats::retry@38 src/log_stats.rs:40 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 32
    memchr@5 dep/memchr.rs:9 < parse_line@13 src/log_stats.rs:17 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 46 116
    splitn@12 src/text.rs:13 < parse_line@13 src/log_stats.rs:14 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 70
    next@2 dep/str.rs:7 < parse_line@13 src/log_stats.rs:15 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 31
    strip_prefix@16 src/text.rs:17 < parse_line@13 src/log_stats.rs:16 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 79
    parse_line@13 src/log_stats.rs:16 < Stats::add@27 src/log_stats.rs:29 < main@50 src/main.rs:52 = 70
    str::replace@20 src/text.rs:24 < Stats::add@27 src/log_stats.rs:31 < main@50 src/main.rs:52 = 724
    Stats::slowest@41 src/log_stats.rs:42 < main@50 src/main.rs:53 = 324
    Stats::tiny@60 src/log_stats.rs:61 < main@50 src/main.rs:54 = 80
    left@1 src/rest.rs:2 < main@50 src/main.rs:55 = 360
    right@11 src/rest.rs:12 < main@50 src/main.rs:56 = 360
    collect@2 dep/gc.rs:4 < worker@60 dep/gc.rs:70 = 200 13090 368538
    park@5 std/park.rs:8 = 25
";

/// `src/…` is the workspace, `dep/…` a dependency, `std/…` the toolchain, `gen/…` generated.
pub(crate) fn placed(profile: &Profile) -> FileGroups {
    FileGroups::placed(profile, |file: FileId| {
        let path = profile.path(file);
        let (place, package) = match path.split('/').next() {
            Some("src") => (Place::Workspace, None),
            Some("dep") => (Place::Dependency, Some("fastjson 1.2.0".to_owned())),
            Some("std") => (Place::Toolchain, Some("std 1.95".to_owned())),
            Some("gen") => (Place::Generated, Some("generated code".to_owned())),
            _ => (Place::NoMatch, None),
        };
        let is_here = place == Place::Workspace;
        Some(Placement {
            place,
            workspace_file: is_here.then(|| path.to_owned()),
            path: is_here.then(|| format!("/home/dev/ws/{path}").into()),
            evidence: if is_here { "by suffix" } else { package.as_deref().unwrap_or("elsewhere") }.to_owned(),
            package,
        })
    })
}

/// An analysis with its index.
pub(crate) struct Loaded {
    pub(crate) analysis: Analysis,
    pub(crate) index: FileIndex,
}

impl Loaded {
    /// With the workspace of [`placed`].
    pub(crate) fn new(profile: &Arc<Profile>, value_type: usize) -> Self {
        Self::with_groups(profile, placed(profile), value_type)
    }

    pub(crate) fn with_groups(profile: &Arc<Profile>, groups: FileGroups, value_type: usize) -> Self {
        let cancel = CancelFlag::new();
        let analysis = Analysis::new(profile.clone(), groups, value_type, &[], &cancel).unwrap();
        let counts = analysis.costs_of(SAMPLES, &cancel).unwrap();
        let index = FileIndex::new(&analysis, Some(&counts));
        Self { analysis, index }
    }

    pub(crate) fn named(&self, name: &str) -> GroupId {
        self.index.named(&self.analysis, name).unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> FileCosts<'_> {
        FileCosts { analysis: &self.analysis, index: &self.index, file: self.named(name) }
    }
}

/// A comparison with its indexes.
pub(crate) struct Changed {
    pub(crate) new: Loaded,
    pub(crate) compared: ComparedTo,
    pub(crate) index: ChangeIndex,
}

impl Changed {
    pub(crate) fn new(new: &Arc<Profile>, base: &Arc<Profile>) -> Self {
        Self::compared(Loaded::new(new, CPU), base)
    }

    /// Of profiles that don't count samples.
    pub(crate) fn of_type(new: &Arc<Profile>, base: &Arc<Profile>, value_type: usize) -> Self {
        let analysis = Analysis::new(new.clone(), placed(new), value_type, &[], &CancelFlag::new()).unwrap();
        let index = FileIndex::new(&analysis, None);
        Self::compared(Loaded { analysis, index }, base)
    }

    fn compared(mut new: Loaded, base: &Arc<Profile>) -> Self {
        let cancel = CancelFlag::new();
        let compared = new.analysis.compare_to(base.clone(), placed(base), Compare::AsRecorded, &cancel).unwrap();
        let index = ChangeIndex::new(&new.analysis, &compared);
        Self { new, compared, index }
    }

    pub(crate) fn file<'a>(&'a self, name: &'a str) -> FileChanges<'a> {
        FileChanges { analysis: &self.new.analysis, compared: &self.compared, index: &self.index, name }
    }
}
