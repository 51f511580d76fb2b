//! Tests that the schema for editors has the same keys as the reader of server.yaml, in sections in which unknown keys
//! are errors.

use std::collections::BTreeSet;

use bridge::plugin::SourceKind;
use provisioner::registry::recipes;
use provisioner::schema::{self, Package};
use serde_json::{Value, json};

use crate::sections;

fn server_schema() -> Value {
    let files = schema::files(&recipes::built_in_types(), None);
    serde_json::from_str(&files["server.schema.json"]).unwrap()
}

/// Returns the names of the properties at a pointer into the schema.
fn schema_keys(pointer: &str) -> BTreeSet<String> {
    let schema = server_schema();
    let section = schema.pointer(pointer).unwrap();
    assert_eq!(section["additionalProperties"], false, "{pointer} accepts no other key");
    section["properties"].as_object().unwrap().keys().cloned().collect()
}

/// Returns the keys that the reader suggests for a section with the unknown key `zzz`.
fn accepted_keys(text: &str) -> BTreeSet<String> {
    let messages = sections(text).messages();
    let keys = messages.lines().find_map(|line| line.trim().strip_prefix("= hint: the keys are "));
    let keys = keys.unwrap_or_else(|| panic!("{messages}"));
    keys.split(", ").map(str::to_owned).collect()
}

/// Shows: server-yaml.md#in-an-editor "Below `plugins` and `options`, both accept the same keys."
#[test]
fn closed_sections_have_same_keys_in_schema_and_reader() {
    let plugin = |entry: &str| format!("plugins: [{{ name: acme, {entry} }}]\n");
    let resource = |options: &str| {
        plugin("source: { type: local, path: p }")
            + "resources: { resources: { prod: { resources: { r: { type: 'acme:a:B', options: { "
            + options
            + " } } } } } }\n"
    };
    let function = |keys: &str| {
        plugin("source: { type: local, path: p }")
            + &format!("resources: {{ functions: {{ f: {{ function: 'acme:f', {keys} }} }} }}\n")
    };
    let table = [
        ("/$defs/function", function("zzz: 1")),
        ("/$defs/function/properties/options", function("options: { zzz: 1 }")),
        ("/$defs/plugin", plugin("source: { type: local, path: p }, zzz: 1")),
        ("/$defs/plugin/properties/goPlugin", plugin("source: { type: local, path: p }, goPlugin: { zzz: 1 }")),
        ("/$defs/options", resource("zzz: 1")),
        ("/$defs/customTimeouts", resource("customTimeouts: { zzz: 1 }")),
        ("/$defs/options/properties/aliases/items/anyOf/1", resource("aliases: [{ zzz: 1 }]")),
    ];
    for (pointer, sections) in table {
        assert_eq!(schema_keys(pointer), accepted_keys(&sections), "{pointer}");
    }
}

#[test]
fn each_type_of_source_has_same_keys_in_schema_and_reader() {
    let types: Vec<&str> = SourceKind::all().map(SourceKind::as_str).collect();
    let source = &server_schema()["$defs"]["plugin"]["properties"]["source"];
    assert_eq!(source["properties"]["type"]["enum"], json!(types));
    let conditions = source["allOf"].as_array().unwrap();
    let condition_of = |name| conditions.iter().find(|of_type| of_type["if"]["properties"]["type"]["const"] == name);
    for name in types {
        let condition = condition_of(name).unwrap_or_else(|| panic!("the schema has no keys for {name}"));
        let pointer = condition["then"]["$ref"].as_str().unwrap().trim_start_matches('#');
        let accepted = accepted_keys(&format!("plugins: [{{ name: acme, source: {{ type: {name}, zzz: 1 }} }}]\n"));
        assert_eq!(schema_keys(pointer), accepted, "{name}");
    }
}

#[test]
fn schemas_stay_in_their_folder_for_any_type_token() {
    let tokens = [
        "p:x:../../../../out",
        "p:../..:A",
        "p:/etc:A",
        "p:m:/etc/out",
        "p:..",
        "p:m:a\\..\\b\0c",
        "p:s3/bucket:Bucket",
        "p:m:Ä-b_c.d",
    ];
    let resources: serde_json::Map<String, Value> =
        tokens.iter().map(|token| ((*token).to_owned(), Value::Object(Default::default()))).collect();
    let text = serde_json::json!({ "name": "p", "resources": resources }).to_string();
    let package = Package { name: "p".to_owned(), schemas: Some(schemas::convert_package(&text).unwrap()) };
    let files = schema::files(&recipes::built_in_types(), Some(vec![package]));
    let names: Vec<&str> = files.keys().filter_map(|path| path.strip_prefix("p/")).collect();
    assert_eq!(
        names,
        [
            "-a.json",
            "..-.json",
            "..-a.json",
            "index.json",
            "m-_etc_out.json",
            "m-a_.._b_c.json",
            "m-ä-b_c.d.json",
            "s3-bucket.json",
            "x-.._.._.._.._out.json"
        ]
    );
}
