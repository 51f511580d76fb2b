//! Tests that the schema for editors has the same keys as the reader of server.yaml, in sections in which unknown keys
//! are errors.

use std::collections::BTreeSet;

use provisioner::registry::types;
use provisioner::schema;
use serde_json::Value;

use crate::sections;

/// Returns the names of the properties at a pointer into the schema.
fn schema_keys(pointer: &str) -> BTreeSet<String> {
    let files = schema::files(&types::built_in_types(), None);
    let schema: Value = serde_json::from_str(&files["server.schema.json"]).unwrap();
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

#[test]
fn closed_sections_have_same_keys_in_schema_and_reader() {
    let plugin = |entry: &str| format!("plugins: [{{ name: acme, {entry} }}]\n");
    let resource = |options: &str| {
        plugin("source: { type: local, path: p }")
            + "resources: { resources: { prod: { resources: { r: { type: 'acme:a:B', options: { "
            + options
            + " } } } } } }\n"
    };
    let table = [
        ("/$defs/plugin", plugin("source: { type: local, path: p }, zzz: 1")),
        ("/$defs/plugin/properties/source", plugin("source: { type: local, path: p, zzz: 1 }")),
        ("/$defs/options", resource("zzz: 1")),
        ("/$defs/options/properties/customTimeouts", resource("customTimeouts: { zzz: 1 }")),
        ("/$defs/options/properties/aliases/items/anyOf/1", resource("aliases: [{ zzz: 1 }]")),
    ];
    for (pointer, sections) in table {
        assert_eq!(schema_keys(pointer), accepted_keys(&sections), "{pointer}");
    }
}
