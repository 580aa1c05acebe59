//! Lays settings from several places over each other.
//!
//! Each setting is taken or refused by itself: it is laid over what is there, and if that can
//! be read as a [`Config`], it stays. So one mistake costs one setting, a value that was refused
//! leaves the one of the layer below, and every refusal is told as a [`ConfigIssue`]. Only what
//! decides which files are opened falls back to *none* instead of to a lower layer.
//!
//! Lists are replaced as a whole. JSON's `null` is "not set here".

use std::fmt;

use profiler_core::view::data::{escaped, shown_within};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::toml_file::{TomlFile, WorkspaceFile};
use super::trust::{self, Trust};
use super::{Config, schema};
use crate::nearest::nearest;

/// Where a setting was written. Later layers win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `config.toml` in the user's configuration folder.
    UserFile,
    /// `perflens.toml` in the workspace folder.
    WorkspaceFile,
    /// What the editor sent with `initialize`.
    InitializationOptions,
    /// The section `perflens` of the editor's settings.
    Editor,
    /// Commands that were run since the server started.
    Session,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserFile => "your config.toml",
            Self::WorkspaceFile => "perflens.toml",
            Self::InitializationOptions => "initializationOptions",
            Self::Editor => "the editor's settings",
            Self::Session => "this session",
        })
    }
}

/// A setting that was not taken. The rest applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigIssue {
    /// Where it was written.
    pub layer: Layer,
    /// Its name as in the documentation, `hints.minShare`; empty when the whole layer is at fault.
    pub pointer: String,
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for ConfigIssue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names and values are foreign text.
        write!(f, "{}: {}", self.layer, escaped(&self.message))?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; did you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

/// A setting of an untrusted `perflens.toml` that it may not make.
#[derive(Clone, Debug, PartialEq)]
pub struct Withheld {
    /// Its name as in the documentation; a path rule is `paths.rules`.
    pub pointer: String,
    /// What it would have been.
    pub value: Value,
}

/// As it could stand in the file, in full: nothing may hide from whoever is asked to trust it.
impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.pointer, escaped(&self.value.to_string()))
    }
}

/// The settings in force, and what became of the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// What applies.
    pub config: Config,
    /// What was wrong, in the order of the layers.
    pub issues: Vec<ConfigIssue>,
    /// What was right and is ignored until the workspace is trusted.
    pub withheld: Vec<Withheld>,
}

/// What each layer says, for one workspace folder.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The user's file, if there is one.
    pub user_file: Option<TomlFile>,
    /// The workspace folder's file, if there is one.
    pub workspace_file: Option<WorkspaceFile>,
    /// `initializationOptions` as they were sent.
    pub initialization_options: Value,
    /// The editor's settings as they were sent: the section `perflens`, or an object that has it.
    pub editor: Value,
    /// What commands have set since the server started, in the same form.
    pub session: Value,
}

impl Layers {
    /// Sets a setting for this session, or takes that back with `null`.
    ///
    /// The name is one of the documentation, `hints.mode`; other names have no effect but an
    /// issue of [`resolve`](Self::resolve).
    pub fn set_for_session(&mut self, pointer: &str, value: Value) {
        let mut place = &mut self.session;
        for key in pointer.split('.') {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[key];
        }
        *place = value;
    }

    /// What a setting was set to in this session, if it was.
    pub fn session_value(&self, pointer: &str) -> Option<&Value> {
        let value = pointer.split('.').try_fold(&self.session, |value, key| value.get(key))?;
        (!value.is_null()).then_some(value)
    }

    /// Everything that was set in this session, to be put back when it did not work.
    pub fn session(&self) -> &Value {
        &self.session
    }

    /// Puts back what [`session`](Self::session) was.
    pub fn restore_session(&mut self, session: Value) {
        self.session = session;
    }

    /// Whether `initializationOptions` say that the workspace is trusted. Anything but `true`
    /// is no.
    pub fn is_trusted_by_editor(&self) -> bool {
        self.initialization_options.get(trust::OPTION) == Some(&Value::Bool(true))
    }

    /// The settings in force.
    pub fn resolve(&self, trust: Trust) -> Resolved {
        let mut merge = Merge::new();
        if let Some(file) = &self.user_file {
            merge.file(Layer::UserFile, file);
        }
        if let Some(workspace) = &self.workspace_file {
            if trust == Trust::Untrusted {
                merge.untrusted = Some(workspace);
            }
            merge.file(Layer::WorkspaceFile, &workspace.file);
        }
        let options = self.settings_of_initialization_options(&mut merge.issues);
        merge.value(Layer::InitializationOptions, &options);
        merge.value(Layer::Editor, section(&self.editor));
        merge.value(Layer::Session, &self.session);
        Resolved { config: merge.config, issues: merge.issues, withheld: merge.withheld }
    }

    /// `initializationOptions` without what is no setting.
    fn settings_of_initialization_options(&self, issues: &mut Vec<ConfigIssue>) -> Value {
        let mut options = self.initialization_options.clone();
        if let Some(trusted) = options.as_object_mut().and_then(|options| options.remove(trust::OPTION))
            && !(trusted.is_boolean() || trusted.is_null())
        {
            issues.push(ConfigIssue {
                layer: Layer::InitializationOptions,
                pointer: trust::OPTION.to_owned(),
                message: format!("`{}` takes `true` or `false`, not {trusted}: not trusted", trust::OPTION),
                suggestion: None,
            });
        }
        section(&options).clone()
    }
}

/// The settings in what an editor sent: some send the section, some all that they have.
fn section(settings: &Value) -> &Value {
    settings.get("perflens").unwrap_or(settings)
}

/// Settings on their way into one.
struct Merge<'a> {
    /// All settings as JSON; reads as `config`.
    merged: Value,
    config: Config,
    /// The workspace file, when it may only set what is harmless.
    untrusted: Option<&'a WorkspaceFile>,
    issues: Vec<ConfigIssue>,
    withheld: Vec<Withheld>,
}

impl Merge<'_> {
    fn new() -> Self {
        Self {
            merged: Value::Object(schema::defaults().clone()),
            config: Config::default(),
            untrusted: None,
            issues: Vec::new(),
            withheld: Vec::new(),
        }
    }

    fn issue(&mut self, layer: Layer, pointer: &str, message: String, suggestion: Option<String>) {
        self.issues.push(ConfigIssue { layer, pointer: pointer.to_owned(), message, suggestion });
    }

    fn file(&mut self, layer: Layer, file: &TomlFile) {
        if let Some(problem) = &file.problem {
            self.issue(layer, "", format!("{} is ignored: {problem}", file.path.display()), None);
        }
        self.section(layer, "", &file.settings, schema::defaults());
    }

    fn value(&mut self, layer: Layer, value: &Value) {
        match value {
            Value::Null => {}
            Value::Object(settings) => self.section(layer, "", settings, schema::defaults()),
            // What an empty table of Lua may become.
            Value::Array(items) if items.is_empty() => {}
            other => self.issue(layer, "", format!("settings are an object, not {}", short(other)), None),
        }
    }

    /// Takes the settings of one group; `known` is what there is to set in it.
    fn section(&mut self, layer: Layer, prefix: &str, settings: &Map<String, Value>, known: &Map<String, Value>) {
        for (key, value) in settings {
            let pointer = format!("{prefix}{key}");
            match (known.get(key), value) {
                (None, _) => self.unknown(layer, prefix, key, known),
                (Some(_), Value::Null) => {}
                (Some(Value::Object(_)), Value::Object(settings)) if prefix.is_empty() && schema::has_names(key) => {
                    for (name, value) in settings.iter().filter(|(_, value)| !value.is_null()) {
                        self.setting(layer, &format!("{key}.{name}"), value);
                    }
                }
                (Some(Value::Object(known)), Value::Object(settings)) => {
                    self.section(layer, &format!("{pointer}."), settings, known);
                }
                (Some(Value::Object(_)), Value::Array(items)) if items.is_empty() => {}
                (Some(Value::Object(_)), other) => {
                    self.issue(
                        layer,
                        &pointer,
                        format!("`{pointer}` is a group of settings, not {}", short(other)),
                        None,
                    );
                }
                (Some(_), value) => self.setting(layer, &pointer, value),
            }
        }
    }

    fn unknown(&mut self, layer: Layer, prefix: &str, key: &str, known: &Map<String, Value>) {
        let pointer = format!("{prefix}{key}");
        if key == trust::OPTION {
            let message = format!(
                "`{key}` counts only at the top of initializationOptions; otherwise run `perflens trust` in the workspace"
            );
            return self.issue(layer, &pointer, message, None);
        }
        let sibling = nearest(key, known.keys().map(String::as_str)).map(|key| format!("{prefix}{key}"));
        let suggestion = sibling
            .or_else(|| schema::pointers().find(|pointer| pointer.rsplit('.').next() == Some(key) || pointer == key));
        self.issue(layer, &pointer, format!("there is no setting `{pointer}`"), suggestion);
    }

    fn setting(&mut self, layer: Layer, pointer: &str, value: &Value) {
        if layer == Layer::WorkspaceFile
            && let Some(workspace) = self.untrusted
        {
            let (allowed, withheld) = trust::allowed(workspace, pointer, value);
            self.withheld.extend(withheld.into_iter().map(|value| Withheld { pointer: pointer.to_owned(), value }));
            if let Some(value) = allowed {
                self.trusted_setting(layer, pointer, &value);
            }
            return;
        }
        self.trusted_setting(layer, pointer, value);
    }

    fn trusted_setting(&mut self, layer: Layer, pointer: &str, value: &Value) {
        let Err(error) = self.lay(pointer, value) else { return };
        let takes = schema::takes(pointer);
        let message = match value {
            // What is wrong inside of a list, the reader of the list knows best.
            Value::Array(_) => format!("`{pointer}`: {error}"),
            value => format!("`{pointer}` takes {}, not {}", takes.words, short(value)),
        };
        let suggestion = value.as_str().and_then(|text| nearest(text, takes.choices.iter().map(String::as_str)));
        self.issue(layer, pointer, message, suggestion.map(str::to_owned));
        if trust::fails_closed(pointer) {
            // Defaults can be read.
            let _ = self.lay(pointer, &schema::default_of(pointer));
        }
    }

    /// Lays one value over what there is, if the whole can be read then.
    fn lay(&mut self, pointer: &str, value: &Value) -> Result<(), serde_json::Error> {
        let mut merged = self.merged.clone();
        // Names of groups and settings have no dots; the user's may.
        let place = match pointer.split_once('.') {
            Some((group, name)) => &mut merged[group][name],
            None => &mut merged[pointer],
        };
        *place = value.clone();
        self.config = Config::deserialize(&merged)?;
        self.merged = merged;
        Ok(())
    }
}

/// A value as part of a sentence.
fn short(value: &Value) -> String {
    const MAX_CHARS: usize = 60;
    match value {
        Value::Object(_) => "a group".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        value => format!("`{}`", shown_within(&value.to_string(), MAX_CHARS)),
    }
}
