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

pub(super) fn to_json_text(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("a value is JSON") + "\n"
}
