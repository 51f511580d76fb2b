//! Pulumi package schema of the plugin, for code generators and editors.

use serde_json::{Map, Value, json};

use crate::functions::FUNCTIONS;
use crate::property::{Default, Kind, Property};
use crate::resources::RESOURCES;
use crate::{PACKAGE, VERSION, config};

/// Returns the package schema.
pub(crate) fn schema() -> Value {
    let resources = RESOURCES.iter().map(|resource| {
        let (inputs, outputs) = (resource.inputs(), resource.outputs());
        let spec = json!({
            "description": resource.description(),
            "inputProperties": properties(inputs, Side::Input),
            "requiredInputs": names(inputs, |input| input.required),
            // All inputs are outputs too, and always present, because Check adds the defaults.
            "properties": properties(inputs.iter().chain(outputs), Side::Output),
            "required": names(inputs.iter().chain(outputs), |property| property.required || property.default.is_some()),
        });
        (resource.token().to_owned(), spec)
    });
    let functions = FUNCTIONS.iter().map(|function| {
        let spec = json!({
            "description": function.description(),
            "inputs": object(function.arguments(), Side::Input),
            "outputs": object(function.results(), Side::Output),
        });
        (function.token().to_owned(), spec)
    });
    json!({
        "name": PACKAGE,
        "displayName": "Files",
        "version": VERSION,
        "description": "Folders and files below one root, and random passwords.",
        "keywords": ["category/utility", "kind/native"],
        "license": "Apache-2.0",
        "config": { "variables": properties(&config::PROPERTIES, Side::Input) },
        "provider": {
            "description": "Root folder of the files.",
            "inputProperties": properties(&config::PROPERTIES, Side::Input),
            "properties": properties(&config::PROPERTIES, Side::Output),
        },
        "resources": resources.collect::<Map<_, _>>(),
        "functions": functions.collect::<Map<_, _>>(),
    })
}

/// Role of a property. Defaults and replacements are described for inputs only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

fn object(properties_table: &[Property], side: Side) -> Value {
    json!({
        "type": "object",
        "properties": properties(properties_table, side),
        "required": names(properties_table, |property| property.required),
    })
}

fn properties<'a>(properties_table: impl IntoIterator<Item = &'a Property>, side: Side) -> Value {
    properties_table
        .into_iter()
        .map(|property| (property.name.to_owned(), spec(property, side)))
        .collect::<Map<_, _>>()
        .into()
}

fn spec(property: &Property, side: Side) -> Value {
    let kind = match property.kind {
        Kind::String => "string",
        Kind::Integer => "integer",
        Kind::Boolean => "boolean",
    };
    let mut spec = json!({ "type": kind, "description": property.description });
    if property.secret {
        spec["secret"] = true.into();
    }
    if side == Side::Input {
        if property.replaces {
            spec["willReplaceOnChanges"] = true.into();
        }
        match property.default {
            Some(Default::String(text)) => spec["default"] = text.into(),
            Some(Default::Boolean(value)) => spec["default"] = value.into(),
            None => (),
        }
    }
    spec
}

fn names<'a>(
    properties_table: impl IntoIterator<Item = &'a Property>,
    predicate: fn(&Property) -> bool,
) -> Vec<&'static str> {
    properties_table.into_iter().filter(|property| predicate(property)).map(|property| property.name).collect()
}
