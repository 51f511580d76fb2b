//! Encoding of the provider configuration for the deprecated `variables` of Configure
//! (docs/spec/provider-protocol.md#4).

use std::collections::BTreeMap;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ReferenceId;
use serde_json::{Map, Number, Value};

/// Key of the version, which is for the engine and is not sent to the provider.
const VERSION: &str = "version";

/// Returns the configuration with keys `PACKAGE:config:KEY`: strings unchanged, other values as JSON, secrets in plain
/// text.
pub(super) fn variables(package: &str, inputs: &PropertyMap) -> BTreeMap<String, String> {
    let inputs = inputs.iter().filter(|(key, _)| *key != VERSION);
    inputs.map(|(key, value)| (format!("{package}:config:{key}"), text(value))).collect()
}

fn text(value: &PropertyValue) -> String {
    match value {
        PropertyValue::String(text) => text.clone(),
        PropertyValue::Secret(secret) => text(secret.expose()),
        other => json(other).to_string(),
    }
}

fn json(value: &PropertyValue) -> Value {
    match value {
        // The encoding of `args` has rejected unknowns and output values already.
        PropertyValue::Null | PropertyValue::Unknown(_) | PropertyValue::Output(_) => Value::Null,
        PropertyValue::Bool(value) => Value::Bool(*value),
        PropertyValue::Number(number) => json_number(*number),
        PropertyValue::String(text) => Value::String(text.clone()),
        PropertyValue::Bytes(bytes) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
        PropertyValue::List(items) => Value::Array(items.iter().map(json).collect()),
        PropertyValue::Map(map) => json_map(map),
        PropertyValue::Secret(secret) => json(secret.expose()),
        PropertyValue::Asset(asset) => Value::String(asset.hash.clone().unwrap_or_default()),
        PropertyValue::Archive(archive) => Value::String(archive.hash.clone().unwrap_or_default()),
        PropertyValue::Resource(reference) => Value::String(match &reference.id {
            Some(ReferenceId::Known(id)) => id.to_string(),
            Some(ReferenceId::Unknown) | None => reference.urn.to_string(),
        }),
    }
}

fn json_map(map: &PropertyMap) -> Value {
    Value::Object(map.iter().map(|(key, value)| (key.clone(), json(value))).collect::<Map<_, _>>())
}

/// Returns a number as JSON, integers without a fraction: `42`, not `42.0`.
fn json_number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        Value::Number((number as i64).into())
    } else {
        Number::from_f64(number).map_or(Value::Null, Value::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_unchanged_and_other_values_are_json() {
        let inputs: PropertyMap = [
            ("s", "plain".into()),
            ("n", 42.0.into()),
            ("f", 0.5.into()),
            ("b", true.into()),
            ("secret", PropertyValue::secret("hush".into())),
            (
                "m",
                PropertyMap::from([
                    ("c".into(), PropertyValue::secret("x".into())),
                    ("l".into(), vec![1.0.into()].into()),
                ])
                .into(),
            ),
            ("null", PropertyValue::Null),
            ("version", "1.2.3".into()),
        ]
        .into_iter()
        .map(|(key, value): (&str, PropertyValue)| (key.to_owned(), value))
        .collect();
        let variables = variables("aws", &inputs);
        let variables: Vec<_> = variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(
            variables,
            [
                ("aws:config:b", "true"),
                ("aws:config:f", "0.5"),
                ("aws:config:m", r#"{"c":"x","l":[1]}"#),
                ("aws:config:n", "42"),
                ("aws:config:null", "null"),
                ("aws:config:s", "plain"),
                ("aws:config:secret", "hush"),
            ]
        );
    }
}
