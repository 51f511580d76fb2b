//! Measurement of the schema of a large package.

use anyhow::ensure;
use provisioner::registry::recipes;
use provisioner::schema::{Package, files};
use serde_json::{Map, Value, json};

use crate::compare_in_turns;

pub(crate) fn compare(types: usize, rounds: usize) -> anyhow::Result<()> {
    let text = package(types).to_string();
    let ours = || {
        let schemas = schemas::convert_package(&text)?;
        let files =
            files(&recipes::built_in_types(), Some(vec![Package { name: "big".into(), schemas: Some(schemas) }]));
        ensure!(files.len() > types);
        Ok(())
    };
    let parse = || {
        let value: Value = serde_json::from_str(&text)?;
        ensure!(value.is_object());
        Ok(())
    };
    let megabytes = text.len() / 1_000_000;
    compare_in_turns(&format!("schemas of {types} types ({megabytes} MB of package schema)"), 2.0, rounds, ours, parse)
}

/// Returns a package schema like those of large packages: most of it is documentation, and outputs repeat inputs.
fn package(types: usize) -> Value {
    let description = "Lorem ipsum dolor sit amet, consectetur adipiscing elit. ".repeat(4);
    let example = "## Example Usage\n\n```typescript\nconst a = new Thing();\n```\n".repeat(60);
    let properties = |prefix: usize| -> Map<String, Value> {
        let property = |at: usize| {
            let kind = match at % 4 {
                0 => json!({ "type": "string" }),
                1 => json!({ "type": "integer", "default": at }),
                2 => {
                    json!({ "type": "array", "items": { "$ref": format!("#/types/big:m{}%2Fn{prefix}:N{prefix}", prefix % 90) } })
                }
                _ => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            };
            let mut property = kind;
            property["description"] = description.as_str().into();
            (format!("property{at}"), property)
        };
        (0..20).map(property).collect()
    };
    let resource = |at: usize| {
        let properties = properties(at);
        let body = json!({
            "description": format!("{description}\n\n{example}"),
            "properties": properties, "required": ["property0"],
            "inputProperties": properties, "requiredInputs": ["property0"],
            "stateInputs": { "properties": properties },
        });
        (format!("big:m{}/t{at}:T{at}", at % 90), body)
    };
    let nested = |at: usize| {
        let fields: Map<String, Value> = (0..8)
            .map(|field| (format!("field{field}"), json!({ "type": "string", "description": description })))
            .collect();
        (format!("big:m{}/n{at}:N{at}", at % 90), json!({ "type": "object", "properties": fields }))
    };
    json!({
        "name": "big", "version": "1.0.0",
        "resources": (0..types).map(resource).collect::<Map<_, _>>(),
        "types": (0..types).map(nested).collect::<Map<_, _>>(),
    })
}
