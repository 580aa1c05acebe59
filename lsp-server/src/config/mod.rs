//! The configuration: one struct, read from several layers.
//!
//! [`Config`] is the only list of settings. Its fields are what the program works with, their
//! doc comments are the users' documentation, their types carry the ranges; schema and
//! `docs/configuration.md` are derived from it. A new setting is a field, and a place that
//! obeys it: settings that nothing reads do not exist.
//!
//! ```text
//! built in < user's file < perflens.toml < initializationOptions < editor < this session
//!                          (as far as trusted)                        └─▶ Config + issues
//! ```
//!
//! [`layers`] lays them over each other, [`trust`] decides what a file that came with a
//! repository may set. Nothing here knows the editor protocol: values come in as plain JSON.

pub mod docs;
pub mod layers;
pub mod places;
pub mod schema;
pub mod toml_file;
pub mod trust;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use profiler_core::attribute::Filter;
use profiler_core::paths::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use layers::{ConfigIssue, Layer, Layers, Resolved, Withheld};
pub use toml_file::{TomlFile, WorkspaceFile};
use values::non_empty;

use crate::otlp;
pub use values::{Interval, Matcher, Percent, Whole};

/// Settings of perflens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Config {
    /// Where the profile comes from.
    pub source: Source,
    /// What of the profile is counted, and what it is compared with.
    pub query: Query,
    /// The costs at the end of lines.
    pub hints: Hints,
    /// The costs above functions.
    pub lens: Lens,
    /// The details of a line under the pointer.
    pub hover: Hover,
    /// Hot functions as information diagnostics, for editors that show neither hints nor lenses.
    pub diagnostics: Diagnostics,
    /// How paths of the profile become files of the workspace.
    pub paths: Paths,
    /// Where lines come from for profiles that have only addresses.
    pub symbols: Symbols,
    /// What may be used up.
    pub limits: Limits,
    /// When what is shown is brought up to date.
    pub refresh: Refresh,
    /// Profiles that OpenTelemetry's profilers and collectors on this machine send.
    pub otlp: Otlp,
    /// Parts of a monorepo that have costs of their own, each as `[[service]]`. A file in the
    /// folder of a service shows that service's costs; a file outside of all of them, such as a
    /// shared library, shows the sum, and its hover says whose it is. Where the paths of a profile
    /// could be files of several services, those of the service are meant.
    pub service: Vec<Service>,
    /// Questions under a name, each as `[presets.NAME]`, for the command `perflens.selectPreset`.
    /// Those in `perflens.toml` are added to yours, and to those that are built in; the same name
    /// replaces.
    pub presets: BTreeMap<String, Preset>,
    /// Commands that are profiled, each as `[tasks.NAME]`, for what can't be guessed: tests in C and
    /// C++, and tests that need more than their language's own runner. Each gets a lens, and takes
    /// the place of the guess for its function.
    pub tasks: BTreeMap<String, Task>,
}

/// See [`Config::tasks`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Task {
    /// The source file that shows its lens, relative to the workspace folder.
    pub file: PathBuf,
    /// The function in it that is measured: only what it and what it calls cost counts, and the lens
    /// is above it. Empty: everything counts, and the lens is at the top of the file.
    #[serde(deserialize_with = "non_empty")]
    pub function: Option<String>,
    /// What builds it, as a list of words; it is not recorded. Empty: nothing does.
    pub build: Vec<String>,
    /// What is recorded, as a list of words: the program itself, not a script or tool that builds it.
    pub run: Vec<String>,
    /// Where both are run, relative to the workspace folder. Empty: there.
    #[serde(deserialize_with = "non_empty")]
    pub folder: Option<PathBuf>,
}

/// See [`Config::service`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Service {
    /// Its folder, relative to the workspace folder.
    pub folder: PathBuf,
    /// What it is called. Empty: the name of its folder.
    #[serde(default, deserialize_with = "non_empty")]
    pub name: Option<String>,
    /// Which samples are its own, by labels, as `LABEL OP VALUE`: `service=checkout`. All must hold.
    #[serde(default)]
    pub matchers: Vec<Matcher>,
    /// A profile of its own, absolute or relative to the workspace folder. Empty: that of the
    /// workspace, as far as the matchers go.
    #[serde(default, deserialize_with = "non_empty")]
    pub profile: Option<PathBuf>,
}

/// See [`Config::presets`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Preset {
    /// What it is called in lists. Empty: its name.
    #[serde(deserialize_with = "non_empty")]
    pub title: Option<String>,
    /// The value type to count, as `TYPE` or `TYPE/UNIT`. Empty: the profile's own choice. The
    /// preset is offered only where the profile has it.
    #[serde(rename = "type", deserialize_with = "non_empty")]
    pub value_type: Option<String>,
    /// Keep only what matches, as in `query.filters`.
    #[serde(with = "values::filters")]
    #[schemars(with = "Vec<String>")]
    pub filters: Vec<Filter>,
    /// A profile to open, absolute or relative to the workspace folder. Empty: the one that is open.
    #[serde(deserialize_with = "non_empty")]
    pub profile: Option<PathBuf>,
    /// A profile to compare with, likewise. Empty: none.
    #[serde(deserialize_with = "non_empty")]
    pub base: Option<PathBuf>,
}

/// See [`Config::source`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Source {
    /// A profile to open at start, absolute or relative to the workspace folder. Empty: none.
    #[serde(deserialize_with = "non_empty")]
    pub file: Option<PathBuf>,
    /// The address of a profiling server, such as `http://localhost:7070`. Empty: none, or for
    /// Polar Signals Cloud its own.
    #[serde(deserialize_with = "non_empty")]
    pub address: Option<String>,
    /// What kind of server it is.
    pub kind: ServerKind,
    /// How a server of Parca's kind is spoken to.
    pub transport: Transport,
    /// Fetch at start what was last fetched in this workspace, or else what `query` says. Without,
    /// it is fetched when `perflens.refresh` is run.
    pub at_start: bool,
    /// Fetch what is shown again every so many seconds, while a file that shows it is open and nobody
    /// types. The least is 30; 0: only when `perflens.refresh` is run.
    pub refresh_seconds: Interval<30, 86_400>,
    /// Keep the last answer of the server on disk, for you alone, and show it at start, with its age and
    /// without a request. It is removed when you sign out, and when this is off.
    pub keep_answer: bool,
    /// A project of Polar Signals Cloud.
    #[serde(deserialize_with = "non_empty")]
    pub project: Option<String>,
    /// A tenant of Pyroscope.
    #[serde(deserialize_with = "non_empty")]
    pub tenant: Option<String>,
    /// The user of basic authentication; its password is the secret of `perflens login --token`.
    /// Empty: the secret is sent as a bearer token.
    #[serde(deserialize_with = "non_empty")]
    pub user: Option<String>,
    /// Headers to send with every request, as `NAME: VALUE`.
    #[serde(with = "values::headers")]
    #[schemars(with = "Vec<String>")]
    pub headers: Vec<(String, String)>,
    /// A file with certificates of authorities to believe, besides the system's.
    #[serde(deserialize_with = "non_empty")]
    pub ca_file: Option<PathBuf>,
    /// A file with a certificate to present to the server; needs `keyFile`.
    #[serde(deserialize_with = "non_empty")]
    pub certificate_file: Option<PathBuf>,
    /// The file with the key of `certificateFile`.
    #[serde(deserialize_with = "non_empty")]
    pub key_file: Option<PathBuf>,
    /// Check the server's certificate. Without, anybody on the way can read and change everything.
    pub verify_tls: bool,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            file: None,
            address: None,
            kind: ServerKind::default(),
            transport: Transport::default(),
            at_start: false,
            refresh_seconds: Interval::NEVER,
            keep_answer: false,
            project: None,
            tenant: None,
            user: None,
            headers: Vec::new(),
            ca_file: None,
            certificate_file: None,
            key_file: None,
            verify_tls: true,
        }
    }
}

/// Kinds of profiling servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServerKind {
    /// Parca.
    #[default]
    Parca,
    /// Polar Signals Cloud.
    PolarSignals,
    /// Pyroscope.
    Pyroscope,
}

/// Ways to speak to Parca.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Transport {
    /// gRPC-web: passes proxies, and may be below a path.
    #[default]
    GrpcWeb,
    /// gRPC itself, directly to the server.
    Grpc,
}

/// See [`Config::query`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Query {
    /// The value type to count, as `TYPE` or `TYPE/UNIT`: `cpu`, `inuse_space`, `samples/count`.
    /// Empty: the profile's own choice.
    #[serde(rename = "type", deserialize_with = "non_empty")]
    pub value_type: Option<String>,
    /// Keep only what matches, as `FIELD OP VALUE`: `fn~parse`, `label.route=/search`. The same
    /// grammar as `perflens report --filter`; all of them must hold.
    #[serde(with = "values::filters")]
    #[schemars(with = "Vec<String>")]
    pub filters: Vec<Filter>,
    /// What to ask the server of `source.address` for: a profile type, and labels in braces.
    /// `process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job="api"}`. Empty: nothing.
    #[serde(deserialize_with = "non_empty")]
    pub selector: Option<String>,
    /// Of which time: `15m`, `24h`, `7d`, two times with a slash between them, or `1h@24h` for an
    /// hour that ended a day ago.
    pub range: String,
    /// A profile to compare with, absolute or relative to the workspace folder. Empty: none.
    #[serde(deserialize_with = "non_empty")]
    pub base: Option<PathBuf>,
    /// Bring the values to the base's sum before comparing.
    pub normalize: bool,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            value_type: None,
            filters: Vec::new(),
            selector: None,
            range: "15m".to_owned(),
            base: None,
            normalize: false,
        }
    }
}

/// See [`Config::hints`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Hints {
    /// Which lines show their cost.
    pub mode: HintMode,
    /// The least that a line must cost to show it, in percent of the value placed in the
    /// workspace.
    pub min_share: Percent,
    /// The most hints in one file; the costliest lines are kept.
    pub per_file: Whole<1, 100_000>,
    /// The characters of labels.
    pub glyphs: Glyphs,
    /// Start labels with a no-break space, for editors that draw them too close to the code.
    pub lead: bool,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            mode: HintMode::default(),
            min_share: Percent::literal(0.1),
            per_file: Whole::literal(200),
            glyphs: Glyphs::default(),
            lead: false,
        }
    }
}

/// Which lines show their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HintMode {
    /// Every line that costs enough.
    #[default]
    All,
    /// Only lines with at least 3 % of the value placed in the workspace; in a comparison, those
    /// that changed by more than 3 percentage points and more than chance.
    Hot,
    /// None.
    Off,
}

/// The characters that labels are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Glyphs {
    /// Blocks of heat, triangles and arrows: `▂▄▆█ ▲▼≈ →`.
    #[default]
    Unicode,
    /// For fonts that lack them: no blocks, `+ - =` and `->`.
    Ascii,
}

/// See [`Config::lens`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Lens {
    /// Show the cost of functions.
    pub enabled: bool,
    /// Offer to profile tests, benchmarks and programs.
    pub profile_this: bool,
    /// The least that a function must cost to show it, in percent of the value placed in the
    /// workspace.
    pub min_share: Percent,
}

impl Default for Lens {
    fn default() -> Self {
        Self { enabled: true, profile_this: true, min_share: Percent::literal(0.1) }
    }
}

/// See [`Config::hover`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Hover {
    /// Show value types, callers and callees of the line under the pointer.
    pub enabled: bool,
}

impl Default for Hover {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// See [`Config::diagnostics`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Diagnostics {
    /// Publish one diagnostic for each hot function.
    pub enabled: bool,
}

/// See [`Config::paths`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Paths {
    /// Which folder a prefix of the profile's paths stands for, as `{ from = "/build", to = "." }`.
    /// `to` is absolute or relative to the workspace folder. The longest prefix wins. From
    /// `perflens.toml` of a workspace that is not trusted, only rules into that workspace apply.
    pub rules: Vec<PathRule>,
    /// More folders whose files count as the workspace's, absolute or relative to the workspace
    /// folder.
    pub roots: Vec<PathBuf>,
    /// The commit, tag or branch that profiles were measured at, for finding their lines in files
    /// that have changed since. Without it, labels of the profile and its time tell.
    pub commit: Option<String>,
    /// Labels of profiles that name the commit or tag they were measured at, besides
    /// `service_git_ref`, `version` and the like.
    pub commit_labels: Vec<String>,
}

impl Paths {
    /// What is said about commits.
    pub fn commits(&self) -> crate::anchor::commit::Rule {
        // Editors fill in what nobody has set.
        let commit = self.commit.clone().filter(|commit| !commit.is_empty());
        crate::anchor::commit::Rule { commit, labels: self.commit_labels.clone() }
    }
}

/// A prefix of paths in profiles, and the folder that it stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PathRule {
    /// The prefix, or a whole path.
    pub from: String,
    /// The folder, or a file when `from` is a whole path.
    pub to: String,
}

impl From<&PathRule> for Rule {
    fn from(rule: &PathRule) -> Self {
        Self { from: rule.from.clone(), to: rule.to.clone() }
    }
}

/// See [`Config::symbols`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Symbols {
    /// More folders with binaries and debug info, absolute or relative to the workspace folder:
    /// by build id (`.build-id/xx/yyyy.debug`) or by file name. Only files of the build that ran
    /// are used. The paths in the profile, the workspace's build folders, `/usr/lib/debug` and the
    /// cache of debuginfod are looked at in any case.
    pub debug_dirs: Vec<PathBuf>,
}

/// See [`Config::limits`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Limits {
    /// The largest profile to open, in MiB after decompression.
    pub profile_mebibytes: Whole<1, 65_536>,
    /// The most files of a workspace to list. Beyond it, a path that an unlisted file could also
    /// match is not matched.
    pub workspace_files: Whole<1, 10_000_000>,
    /// The longest text to copy for an assistant, in KiB. What matters least is left out first, and
    /// the text says what.
    pub copy_kibibytes: Whole<1, 1024>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            profile_mebibytes: Whole::literal(2048),
            workspace_files: Whole::literal(200_000),
            copy_kibibytes: Whole::literal(16),
        }
    }
}

/// See [`Config::refresh`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Refresh {
    /// Open a profile again when its file is written again.
    pub watch: bool,
    /// Open a recording of this workspace that is made while the server runs, as by `perflens
    /// record` in a terminal.
    pub auto_load: bool,
}

impl Default for Refresh {
    fn default() -> Self {
        Self { watch: true, auto_load: true }
    }
}

/// See [`Config::otlp`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Otlp {
    /// Receive profiles, and show them as they come in workspaces where nothing else is open. Only
    /// programs of this machine can send any.
    pub enabled: bool,
    /// The port for gRPC. 0: one that is free, which the status names.
    pub grpc_port: Whole<0, 65_535>,
    /// The port for HTTP, with protobuf or JSON. 0: one that is free, which the status names.
    pub http_port: Whole<0, 65_535>,
    /// How many minutes what came is kept and counted.
    pub window_minutes: Whole<1, 1_440>,
    /// How much memory that may take, in MiB; the oldest goes first.
    pub memory_mebibytes: Whole<16, 4_096>,
}

impl Default for Otlp {
    fn default() -> Self {
        Self {
            enabled: false,
            grpc_port: Whole::literal(4317),
            http_port: Whole::literal(4318),
            window_minutes: Whole::literal(15),
            memory_mebibytes: Whole::literal(256),
        }
    }
}

impl Otlp {
    /// What a receiver is started with; `None` when there is to be none.
    pub fn receiver(&self) -> Option<otlp::Settings> {
        let port = |port: Whole<0, 65_535>| u16::try_from(port.get()).unwrap_or(0);
        self.enabled.then(|| otlp::Settings {
            grpc_port: port(self.grpc_port),
            http_port: port(self.http_port),
            window: Duration::from_mins(self.window_minutes.get().into()),
            bytes: (self.memory_mebibytes.get() as usize) << 20,
        })
    }
}

impl Config {
    /// The profile to open at start, for a workspace folder.
    pub fn source_file(&self, folder: &Path) -> Option<PathBuf> {
        self.source.file.as_ref().map(|file| folder.join(file))
    }

    /// The profile to compare with, for a workspace folder.
    pub fn base_file(&self, folder: &Path) -> Option<PathBuf> {
        self.query.base.as_ref().map(|file| folder.join(file))
    }

    /// The folders whose files count, for a workspace folder: itself first.
    pub fn roots(&self, folder: &Path) -> Vec<PathBuf> {
        let more = self.paths.roots.iter().map(|root| folder.join(root));
        std::iter::once(folder.to_owned()).chain(more).collect()
    }

    /// The services of a workspace folder, by their folders. One that is not below it, or is
    /// there twice, is left out.
    pub fn services(&self, folder: &Path) -> Vec<ServiceScope> {
        let mut scopes: Vec<ServiceScope> = Vec::new();
        for service in &self.service {
            let Some(own) = below(folder, &service.folder) else { continue };
            if scopes.iter().any(|other| other.folder == own) {
                continue;
            }
            let name = || own.file_name().unwrap_or_default().to_string_lossy().into_owned();
            scopes.push(ServiceScope {
                name: service.name.clone().unwrap_or_else(name),
                matchers: service.matchers.iter().map(|matcher| matcher.filter().clone()).collect(),
                profile: service.profile.as_ref().map(|profile| folder.join(profile)),
                folder: own,
            });
        }
        scopes
    }

    /// The path rules as path resolution takes them.
    pub fn path_rules(&self) -> Vec<Rule> {
        self.paths.rules.iter().map(Rule::from).collect()
    }
}

/// A service as it applies to a workspace folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceScope {
    /// What it is called.
    pub name: String,
    /// Its folder, absolute.
    pub folder: PathBuf,
    /// Which samples are its own; all must hold. Each is about a label, so that a source can ask
    /// a server for no others.
    pub matchers: Vec<Filter>,
    /// Its own profile.
    pub profile: Option<PathBuf>,
}

/// A path below a folder, without `.` and `..`; `None` for the folder itself and what is outside.
fn below(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    let relative = path.strip_prefix(folder).unwrap_or(path);
    for part in relative.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => inside.push(name),
            Component::ParentDir if inside.pop() => {}
            _ => return None,
        }
    }
    (!inside.as_os_str().is_empty()).then(|| folder.join(inside))
}
