//! Compares the reader of server.yaml with the generated schema (`schemas/server.schema.json`): editors must refuse and
//! accept the files that the program refuses and accepts. The suites of the reader and of the program compare each
//! file that they read.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

/// Codes of the errors that the schema must report, too: keys and kinds of values. The schema cannot report the others,
/// which concern references, several places of the file, or other files.
pub(crate) const CODES_OF_THE_SCHEMA: [&str; 4] = ["unknown-key", "missing-level", "wrong-kind", "schema-version"];

/// Diagnostics of a server.yaml.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported {
    /// True if there is any diagnostic.
    pub(crate) any: bool,
    /// True if there is an error with one of the codes of the schema.
    pub(crate) of_schema: bool,
}

/// Schema of server.yaml, without the types of resources, templates and plugins, which differ between the suites.
static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let folders = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let file = folders.map(|folder| folder.join("schemas/server.schema.json")).find(|file| file.exists()).unwrap();
    let mut schema: Json = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let definitions = &mut schema["$defs"];
    definitions["resource"]["allOf"] = json!([true]);
    definitions["resource"]["properties"]["type"] = json!({ "type": "string" });
    definitions["plugin"]["allOf"] = json!([true]);
    definitions["template"]["else"] = json!(true);
    jsonschema::validator_for(&schema).unwrap()
});

/// Returns a difference between the reader and the schema. Files that are no YAML are skipped, and files with anchors:
/// a key at the top is accepted if an alias refers to its value, which a schema cannot express.
pub(crate) fn disagreement(text: &str, reported: Reported) -> Option<String> {
    let mut document = serde_yaml::Deserializer::from_str(text).next();
    let document = document.take().map(<serde_yaml::Value as serde::Deserialize>::deserialize)?.ok()?;
    if text.contains('&') && text.contains('*') {
        return None;
    }
    let errors: Vec<String> =
        SCHEMA.iter_errors(&to_json(document)).map(|error| format!("{}: {error}", error.instance_path())).collect();
    match (errors.is_empty(), reported) {
        (false, Reported { any: false, .. }) => Some(format!("only the schema refuses: {}\n{text}", errors.join("; "))),
        (true, Reported { of_schema: true, .. }) => Some(format!("only the reader refuses:\n{text}")),
        _ => None,
    }
}

/// Converts a document as editors do: keys are texts, and unknown tags have no effect.
fn to_json(value: serde_yaml::Value) -> Json {
    match value {
        serde_yaml::Value::Mapping(mapping) => {
            let key = |key: serde_yaml::Value| match to_json(key) {
                Json::String(text) => text,
                other => other.to_string(),
            };
            Json::Object(mapping.into_iter().map(|(name, value)| (key(name), to_json(value))).collect())
        }
        serde_yaml::Value::Sequence(items) => items.into_iter().map(to_json).collect(),
        serde_yaml::Value::Tagged(tagged) => to_json(tagged.value),
        scalar => serde_json::to_value(scalar).unwrap_or_default(),
    }
}
