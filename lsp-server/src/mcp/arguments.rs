//! Arguments of tools: their schema, made from the types that they are read into, and what is wrong with
//! those that don't fit it, in one sentence that names what would.

use profiler_core::view::data::shown;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Refusal;
use crate::nearest::{nearest, one_of};

/// A JSON object.
pub(super) type Object = Map<String, Value>;

/// Which profile, and what of it is counted: arguments of every tool that reads one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub(super) struct Question {
    /// What to look at. Leave it out for what the user's editor shows. Else a profile file (a path relative
    /// to the workspace), `recording:latest`, `recording:NAME` or a `profile_id` of an earlier answer; say it
    /// with every call.
    pub(super) profile: Option<String>,
    /// Value type to count, such as `cpu`, `alloc_space` or `samples/count`; `overview` lists them. Leave it
    /// out for the usual one.
    #[serde(rename = "type")]
    pub(super) value_type: Option<String>,
    /// Keep only samples that match all of these, each `FIELD OP VALUE`: `fn~parse`, `label.route=/search`,
    /// `thread=worker`. FIELD is fn, file, bin, line, thread or label.KEY; OP is = (equals), ~ (contains),
    /// ^ (starts with), or != !~ !^.
    pub(super) filters: Vec<String>,
    /// `next_cursor` of the answer before, with all other arguments unchanged.
    pub(super) cursor: Option<String>,
}

/// The schema of a tool's arguments: strict, and without what some clients don't understand.
pub(super) fn schema<T: JsonSchema>() -> Object {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
        root.remove("description");
        root.remove("$schema");
        root.insert("additionalProperties".to_owned(), Value::Bool(false));
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        for property in root.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
        {
            plain(property);
        }
    }
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Takes out that it may be null (leaving it out says the same), and defaults, which say that.
fn plain(property: &mut Value) {
    let Some(object) = property.as_object_mut() else { return };
    if let Some(any) = object.remove("anyOf").as_ref().and_then(Value::as_array) {
        for (key, value) in
            any.iter().filter_map(Value::as_object).filter(|it| it.get("type") != Some(&"null".into())).flatten()
        {
            object.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    object.remove("default");
    if let Some(Value::String(description)) = object.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    object.remove("format");
    if let Some(types) = object.get("type").and_then(Value::as_array) {
        let first = types.iter().find(|name| *name != "null").cloned();
        object.insert("type".to_owned(), first.unwrap_or_default());
    }
    if let Some(choices) = object.get_mut("enum").and_then(Value::as_array_mut) {
        choices.retain(|choice| !choice.is_null());
    }
    // Choices with a sentence each.
    if let Some(each) = object.remove("oneOf").as_ref().and_then(Value::as_array) {
        let choices: Vec<Value> = each
            .iter()
            .flat_map(|one| one.get("const").into_iter().chain(one["enum"].as_array().into_iter().flatten()))
            .cloned()
            .collect();
        object.insert("type".to_owned(), "string".into());
        object.insert("enum".to_owned(), choices.into());
    }
}

/// Reads arguments, after checking them against the schema.
pub(super) fn read<T: DeserializeOwned>(tool: &str, schema: &Object, arguments: &Object) -> Result<T, Refusal> {
    let wrong = |sentence: String| Refusal::Arguments(format!("{tool}: {sentence}"));
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    for (name, value) in arguments {
        let Some(property) = properties.get(name) else {
            let names: Vec<&String> = properties.keys().collect();
            let meant = nearest(name, properties.keys().map(String::as_str));
            let meant = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`"));
            return Err(wrong(format!("there is no argument `{}`{meant}; it takes {}", shown(name), one_of(&names))));
        };
        if !value.is_null() && !fits(property, value) {
            return Err(wrong(format!("`{name}` takes {}, not {}", takes(property), shown(&value.to_string()))));
        }
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if arguments.get(name).is_none_or(Value::is_null) {
            return Err(wrong(format!("`{name}` is missing; it takes {}", takes(&properties[name]))));
        }
    }
    let given: Object =
        arguments.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
    T::deserialize(Value::Object(given)).map_err(|error| wrong(shown(&error.to_string()).into_owned()))
}

fn fits(property: &Value, value: &Value) -> bool {
    if let Some(choices) = property["enum"].as_array() {
        return choices.contains(value);
    }
    match property["type"].as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => {
            let least = property["minimum"].as_f64().unwrap_or(f64::MIN);
            let most = property["maximum"].as_f64().unwrap_or(f64::from(u32::MAX));
            value.as_i64().is_some_and(|value| value as f64 >= least && value as f64 <= most)
        }
        Some("array") => value.as_array().is_some_and(|items| items.iter().all(|item| fits(&property["items"], item))),
        _ => true,
    }
}

/// What an argument takes, as part of a sentence.
fn takes(property: &Value) -> String {
    if let Some(choices) = property["enum"].as_array() {
        let names: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        return one_of(&names);
    }
    match property["type"].as_str() {
        Some("string") => "a string".to_owned(),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => match property["minimum"].as_i64() {
            Some(least) => format!("a whole number from {least}"),
            None => "a whole number".to_owned(),
        },
        Some("array") => format!("a list, each {}", takes(&property["items"])),
        _ => "something else".to_owned(),
    }
}
