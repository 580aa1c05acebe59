//! Questions under a name: built in, and those of the settings over them. Only those are offered
//! that what is open can answer.
//!
//! What is not here: time ranges, which a file can't be asked for.

use std::path::{Path, PathBuf};

use profiler_core::attribute::Filter;
use profiler_core::profile::Profile;

use crate::config::Config;
use crate::loader;

/// A preset that every installation has.
struct BuiltIn {
    name: &'static str,
    title: &'static str,
    /// What producers call the value type; the first that a profile has counts.
    kinds: &'static [&'static str],
}

const BUILT_IN: &[BuiltIn] = &[
    BuiltIn { name: "cpu", title: "On-CPU", kinds: &["cpu"] },
    BuiltIn { name: "offCpu", title: "Off-CPU", kinds: &["off_cpu", "offcpu", "off-cpu"] },
    BuiltIn { name: "wall", title: "Wall clock", kinds: &["wall"] },
    BuiltIn { name: "allocatedBytes", title: "Allocations, bytes", kinds: &["alloc_space"] },
    BuiltIn { name: "allocatedObjects", title: "Allocations, objects", kinds: &["alloc_objects"] },
    BuiltIn { name: "heap", title: "Heap in use", kinds: &["inuse_space"] },
    BuiltIn { name: "goroutines", title: "Goroutines", kinds: &["goroutine", "goroutines"] },
    BuiltIn { name: "wait", title: "Mutex and block wait", kinds: &["delay", "contentions"] },
    BuiltIn { name: "gpu", title: "GPU time", kinds: &["gpu_time", "gpu", "cuda"] },
];

/// A preset that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// For lists.
    pub title: String,
    /// The value type.
    pub value_type: Option<String>,
    /// What is kept.
    pub filters: Vec<Filter>,
    /// The profile, where it is another one than what is open.
    pub profile: Option<PathBuf>,
    /// What it is compared with.
    pub base: Option<PathBuf>,
}

/// The presets that can be answered in a folder, with the profile that is open there: the
/// user's and the workspace's first, by name, then those that are built in.
pub fn offered(config: &Config, folder: &Path, profile: Option<&Profile>) -> Vec<Offer> {
    let has = |value_type: &str| profile.is_some_and(|profile| profile.find_value_type(value_type).is_ok());
    let own = config.presets.iter().filter_map(|(name, preset)| {
        let other = preset.profile.as_ref().map(|path| folder.join(path));
        let base = preset.base.as_ref().map(|path| folder.join(path));
        let can_be = match &other {
            Some(path) => path.is_file(),
            None => profile.is_some() && preset.value_type.as_deref().is_none_or(has),
        };
        (can_be && base.as_ref().is_none_or(|path| path.is_file())).then(|| Offer {
            name: name.clone(),
            title: preset.title.clone().unwrap_or_else(|| name.clone()),
            value_type: preset.value_type.clone(),
            filters: preset.filters.clone(),
            profile: other,
            base,
        })
    });
    let built_in = BUILT_IN.iter().filter(|preset| !config.presets.contains_key(preset.name)).filter_map(|preset| {
        let kind = preset.kinds.iter().find(|kind| has(kind))?;
        Some(Offer {
            name: preset.name.to_owned(),
            title: preset.title.to_owned(),
            value_type: Some((*kind).to_owned()),
            filters: Vec::new(),
            profile: None,
            base: None,
        })
    });
    own.chain(built_in).collect()
}

/// The name of the preset for what was recorded here last.
pub const LAST_RECORDING: &str = "lastRecording";

/// The preset for a recording.
pub fn last_recording(profile: PathBuf) -> Offer {
    Offer {
        name: LAST_RECORDING.to_owned(),
        title: "Last local recording".to_owned(),
        value_type: None,
        filters: Vec::new(),
        profile: Some(profile),
        base: None,
    }
}

/// The name of the preset for what comes by OTLP.
pub const RECEIVED: &str = "otlp";

/// The preset for what comes by OTLP.
pub fn received() -> Offer {
    Offer {
        name: RECEIVED.to_owned(),
        title: "Live, by OTLP".to_owned(),
        value_type: None,
        filters: Vec::new(),
        profile: Some(PathBuf::from(loader::RECEIVED)),
        base: None,
    }
}

/// All names that there are, answerable or not.
pub fn names(config: &Config) -> impl Iterator<Item = &str> {
    let built_in = BUILT_IN.iter().map(|preset| preset.name).chain([LAST_RECORDING, RECEIVED]);
    config.presets.keys().map(String::as_str).chain(built_in)
}
