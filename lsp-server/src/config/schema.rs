//! What can be set, as data: for checks, for editors, for `docs/configuration.md`.
//!
//! Everything here is derived from [`Config`], its doc comments and its defaults.

use std::fmt::Write as _;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::Config;
use super::trust::{self, Allowance};
use crate::nearest::one_of;

/// What a setting takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takes {
    /// As part of a sentence: "a whole number from 1 to 10".
    pub words: String,
    /// The values, where there are only some.
    pub choices: Vec<String>,
}

/// The JSON schema of `perflens.toml`, of the user's file, and of what editors send.
///
/// Draft 7 and without references, as every editor's checker understands that.
pub fn json() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
        settings.into_generator().into_root_schema_for::<Config>().to_value()
    });
    &SCHEMA
}

/// All settings with their defaults, in their groups.
pub(super) fn defaults() -> &'static Map<String, Value> {
    static DEFAULTS: LazyLock<Map<String, Value>> = LazyLock::new(|| match serde_json::to_value(Config::default()) {
        Ok(Value::Object(defaults)) => defaults,
        other => unreachable!("the defaults are a JSON object, not {other:?}"),
    });
    &DEFAULTS
}

/// The default of the setting of this name.
pub(super) fn default_of(pointer: &str) -> Value {
    let value = match pointer.split_once('.') {
        Some((section, name)) => defaults().get(section).and_then(|section| section.get(name)),
        None => defaults().get(pointer),
    };
    value.cloned().unwrap_or_default()
}

/// A group of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its key.
    pub name: String,
    /// What its settings are about.
    pub doc: String,
    /// In alphabetical order.
    pub settings: Vec<Setting>,
}

/// A setting as people are told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name, `hints.minShare`.
    pub pointer: String,
    /// What it means.
    pub doc: String,
    /// What it takes.
    pub takes: Takes,
    /// What it is when it is not set.
    pub default: Value,
    /// How far `perflens.toml` of an untrusted workspace may set it.
    pub allowance: Allowance,
}

/// All settings, in alphabetical order.
pub fn groups() -> Vec<Group> {
    let setting = |group: &str, allowance: Allowance, name: &str, schema: &Value| {
        let pointer = format!("{group}.{name}");
        Setting { doc: doc_of(schema), takes: takes_of(schema), default: default_of(&pointer), allowance, pointer }
    };
    sorted(json())
        .map(|(group, schema)| {
            // A list of tables, tables under names of the user's, or one table.
            let items = if schema["items"].is_object() {
                &schema["items"]
            } else if is_named(schema) {
                &schema["additionalProperties"]
            } else {
                schema
            };
            let settings = sorted(items).map(|(name, field)| {
                let pointer = if items == schema { format!("{group}.{name}") } else { group.clone() };
                setting(group, trust::allowance(&pointer), name, field)
            });
            Group { name: group.clone(), doc: doc_of(schema), settings: settings.collect() }
        })
        .collect()
}

/// The doc comment, and after it those of an enum's values.
fn doc_of(schema: &Value) -> String {
    let text = |schema: &Value| schema["description"].as_str().unwrap_or_default().to_owned();
    let mut doc = text(schema);
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        // Writing to a string can't fail.
        let _ = write!(doc, " `{}`: {}", choice["const"].as_str().unwrap_or_default(), text(choice));
    }
    doc
}

/// The names of all settings, `hints.minShare`, in alphabetical order.
pub(super) fn pointers() -> impl Iterator<Item = String> {
    let names = |(group, schema)| sorted(schema).map(move |(name, _)| format!("{group}.{name}"));
    sorted(json()).flat_map(names)
}

/// What the setting of this name takes.
pub(super) fn takes(pointer: &str) -> Takes {
    takes_of(pointer.split('.').fold(json(), |schema, key| {
        if is_named(schema) { &schema["additionalProperties"] } else { &schema["properties"][key] }
    }))
}

/// Whether the settings of a group are under names of the user's.
fn is_named(schema: &Value) -> bool {
    schema["additionalProperties"].is_object()
}

/// Whether the settings of the group of this name are under names of the user's.
pub(super) fn has_names(group: &str) -> bool {
    is_named(&json()["properties"][group])
}

/// The properties of an object's schema, in an order that does not depend on how maps are built.
fn sorted(schema: &Value) -> impl Iterator<Item = (&String, &Value)> + use<'_> {
    let mut properties: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
    properties.sort_by_key(|(name, _)| *name);
    properties.into_iter()
}

fn takes_of(schema: &Value) -> Takes {
    let choices: Vec<String> = choices(schema).map(str::to_owned).collect();
    let kind = |name: &str| schema["type"] == name || schema["type"][0] == name;
    let range = || format!("from {} to {}", schema["minimum"], schema["maximum"]);
    let words = if !choices.is_empty() {
        one_of(&choices)
    } else if kind("boolean") {
        "`true` or `false`".to_owned()
    } else if let Some(least) = schema["not"]["exclusiveMaximum"].as_u64() {
        format!("0, or a whole number from {least} to {}", schema["maximum"])
    } else if kind("integer") {
        format!("a whole number {}", range())
    } else if kind("number") {
        format!("a number {}", range())
    } else if kind("array") {
        let fields: Vec<&str> = sorted(&schema["items"]).map(|(name, _)| name.as_str()).collect();
        if fields.is_empty() {
            "a list of texts".to_owned()
        } else {
            format!("a list of `{{ {} }}`", fields.join(", "))
        }
    } else if kind("object") {
        let fields: Vec<&str> = sorted(schema).map(|(name, _)| name.as_str()).collect();
        format!("a group of `{}`", fields.join("`, `"))
    } else {
        "a text".to_owned()
    };
    Takes { words, choices }
}

/// The values of an enum; each has its own schema when it has its own documentation.
fn choices(schema: &Value) -> impl Iterator<Item = &str> {
    let documented = schema["oneOf"].as_array().into_iter().flatten().filter_map(|choice| choice["const"].as_str());
    let plain = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    documented.chain(plain)
}
