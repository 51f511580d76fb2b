//! Helpers for all generated schemas.

use schemars::Schema;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Dialect of all schemas.
pub(super) const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the schema of a `config` without additional properties, so that misspelled keys are errors.
pub(super) fn closed_schema(schema: Schema) -> Map<String, Value> {
    let Value::Object(mut schema) = schema.to_value() else { return Map::new() };
    for key in ["$schema", "title"] {
        schema.remove(key);
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    let mut schema = Value::Object(schema);
    drop_empty_defaults(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Removes empty defaults: null, empty texts, empty lists, and objects that hold only nulls and empty lists.
fn drop_empty_defaults(schema: &mut Value) {
    let is_empty_default = |default: &Value| match default {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(|value| value.is_null() || *value == json!([])),
        Value::Bool(_) | Value::Number(_) => false,
    };
    match schema {
        Value::Object(members) => {
            if members.get("default").is_some_and(is_empty_default) {
                members.remove("default");
            }
            members.values_mut().for_each(drop_empty_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty_defaults),
        _ => {}
    }
}

/// Changes a schema to what the reader of server.yaml accepts: any scalar for a text without a format, the booleans of YAML 1.1, and
/// null for each value that is not required. A required value is neither null nor empty.
pub(super) fn as_read(schema: Map<String, Value>) -> Map<String, Value> {
    let mut schema = Value::Object(schema);
    accept_as_reader(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn accept_as_reader(schema: &mut Value) {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => return items.iter_mut().for_each(accept_as_reader),
        _ => return,
    };
    for (name, value) in members.iter_mut() {
        match (name.as_str(), value) {
            // Members by name, whose names may be those of keywords.
            ("properties" | "$defs", Value::Object(named)) => named.values_mut().for_each(accept_as_reader),
            ("enum" | "const" | "default" | "examples" | "required" | "not", _) => {}
            (_, value) => accept_as_reader(value),
        }
    }
    // A null in a list is left out.
    if let Some(items) = members.get_mut("items").filter(|items| items.get("$ref").is_some()) {
        *items = json!({ "anyOf": [items.take(), { "type": "null" }] });
    }
    let required: Vec<String> = match members.get("required").and_then(Value::as_array) {
        Some(keys) => keys.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => Vec::new(),
    };
    accept_kinds(members, !required.is_empty());
    if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
        for key in &required {
            if let Some(property) = properties.get_mut(key).and_then(Value::as_object_mut) {
                property.insert("not".to_owned(), json!({ "enum": ["", null] }));
            }
        }
    }
}

/// Replaces the types of a schema by those that the reader accepts.
fn accept_kinds(members: &mut Map<String, Value>, has_required: bool) {
    let kinds: Vec<&str> = match members.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    let accepted = if kinds.contains(&"string") {
        // A text with a format or with known values may also have a placeholder.
        if let Some(values) = members.remove("enum") {
            let values: Value = values.as_array().into_iter().flatten().cloned().chain([Value::Null]).collect();
            members.insert("anyOf".to_owned(), json!([{ "enum": values }, { "$ref": "#/$defs/placeholder" }]));
        }
        match members.get_mut("pattern") {
            Some(Value::String(pattern)) => {
                *pattern = format!(r"(?:{pattern})|\$\{{[^}}]*\}}");
                json!(["string", "null"])
            }
            _ => json!(["string", "number", "boolean", "null"]),
        }
    } else if kinds.contains(&"boolean") {
        members.remove("type");
        members.insert("$ref".to_owned(), "#/$defs/flag".into());
        return;
    } else if kinds.contains(&"null") || has_required {
        return;
    } else {
        kinds.iter().copied().chain(["null"]).collect()
    };
    members.insert("type".to_owned(), accepted);
}

/// Pattern of a text with a placeholder.
const PLACEHOLDER: &str = r"\$\{[^}]*\}";
/// Member with which editors replace their message about a pattern, which nobody can read.
const PATTERN_MESSAGE: &str = "patternErrorMessage";

/// Adds the messages of patterns that also accept placeholders: a value of a wrong kind is one of these to an editor.
pub(super) fn with_pattern_messages(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(with_pattern_messages);
            let message = members.get("pattern").and_then(Value::as_str).and_then(|pattern| {
                let kinds = members.get("type").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                pattern_message(pattern, kinds)
            });
            if let Some(message) = message {
                members.insert(PATTERN_MESSAGE.to_owned(), message.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(with_pattern_messages),
        _ => {}
    }
}

/// Returns the message of a pattern for a value of these kinds; `None` if it accepts no placeholders.
fn pattern_message(pattern: &str, kinds: &[Value]) -> Option<String> {
    if !pattern.ends_with(PLACEHOLDER) {
        return None;
    }
    let is = |kind: &str| kinds.iter().any(|known| known == kind);
    let expected = match pattern == PLACEHOLDER {
        true if is("integer") => "Expected an integer",
        true if is("number") => "Expected a number",
        true if is("boolean") => "Expected true or false",
        true => "Expected a value of another kind",
        false => "Expected a text of another form",
    };
    Some(format!("{expected}, or a placeholder such as ${{env:NAME}}."))
}

/// Adds what the reader checks in accounts on AWS: the credentials are JSON, and an access key has two parts.
pub(super) fn with_aws_accounts(schema: &mut Map<String, Value>) {
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        definitions.values_mut().filter_map(Value::as_object_mut).for_each(with_aws_accounts);
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    if ["accessKey", "secretAccessKey", "credentials"].iter().any(|key| !properties.contains_key(*key)) {
        return;
    }
    if let Some(credentials) = properties.get_mut("credentials").and_then(Value::as_object_mut) {
        credentials.remove("type");
        credentials.insert("$ref".to_owned(), "#/$defs/awsCredentials".into());
    }
    schema.insert("allOf".to_owned(), json!([{ "$ref": "#/$defs/awsKeys" }]));
}

pub(super) fn to_json_text(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("a value is JSON") + "\n"
}
