//! Normal form of outcomes.

use std::collections::BTreeSet;

use pulumi_proto::property::{SECRET_SIGNATURE, SIGNATURE_KEY, UNKNOWN_STRING};
use serde_json::{Map, Value};

use crate::export::UUID_MARK;
use crate::rec::Call;
use crate::scenario::{Deployment, Outcome};

/// Returns an outcome with UUIDs replaced by a mark, numbers as doubles, and lists of dependencies sorted.
pub(super) fn outcome(outcome: &Outcome) -> Outcome {
    let call = |call: &Call| Call { request: request(call), ..call.clone() };
    Outcome { calls: outcome.calls.iter().map(call).collect(), state: deployment(&outcome.state), ..outcome.clone() }
}

/// Returns the request of a call. A Read of an import has no inputs, and in Pulumi no properties. Our engine sends
/// empty properties, as providers written for Node fail without; the normal form leaves them out.
fn request(call: &Call) -> Value {
    let mut request = value(&call.request);
    if let Value::Object(members) = &mut request
        && call.rpc == "Read"
        && !members.contains_key("inputs")
        && members.get("properties").and_then(Value::as_object).is_some_and(Map::is_empty)
    {
        members.shift_remove("properties");
    }
    request
}

/// Returns the normal form of a state.
pub(super) fn deployment(state: &Deployment) -> Deployment {
    let pending = |operation: &Value| {
        let mut operation = value(operation);
        if let Some(resource) = operation.get_mut("resource") {
            sort_dependencies(resource);
        }
        operation
    };
    let resource = |resource: &Value| {
        let mut resource = value(resource);
        sort_dependencies(&mut resource);
        resource
    };
    Deployment {
        resources: state.resources.iter().map(resource).collect(),
        pending_operations: state.pending_operations.iter().map(pending).collect(),
    }
}

fn sort_dependencies(resource: &mut Value) {
    let sort = |list: &mut Value| {
        let urns: BTreeSet<String> =
            list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        *list = urns.into_iter().collect::<Vec<_>>().into();
    };
    if let Some(list) = resource.get_mut("dependencies") {
        sort(list);
    }
    if let Some(Value::Object(lists)) = resource.get_mut("propertyDependencies") {
        lists.values_mut().for_each(sort);
    }
}

fn value(json: &Value) -> Value {
    match json {
        Value::Null | Value::Bool(_) => json.clone(),
        Value::Number(number) => number.as_f64().map_or_else(|| json.clone(), Value::from),
        Value::String(text) => without_uuids(text).into(),
        Value::Array(items) => items.iter().map(value).collect::<Vec<_>>().into(),
        Value::Object(members) => {
            let is_secret = members.get(SIGNATURE_KEY).and_then(Value::as_str) == Some(SECRET_SIGNATURE);
            let member = |(key, member): (&String, &Value)| {
                let parsed = member
                    .as_str()
                    .filter(|_| is_secret && key == "plaintext")
                    .and_then(|text| serde_json::from_str(text).ok());
                (key.clone(), value(parsed.as_ref().unwrap_or(member)))
            };
            members.iter().map(member).collect::<Map<_, _>>().into()
        }
    }
}

/// Replaces every UUID in a text by a mark, except the one that means "unknown".
pub(super) fn without_uuids(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    // The first hyphen of a UUID follows eight digits.
    let mut from = 0;
    while let Some(hyphen) = rest[from..].find('-').map(|hyphen| from + hyphen) {
        let start = hyphen.checked_sub(8);
        let candidate = start.and_then(|start| rest.get(start..start + UNKNOWN_STRING.len()));
        match (start, candidate.filter(|candidate| *candidate != UNKNOWN_STRING && is_uuid(candidate))) {
            (Some(start), Some(uuid)) => {
                result.push_str(&rest[..start]);
                result.push_str(UUID_MARK);
                rest = &rest[start + uuid.len()..];
                from = 0;
            }
            _ => from = hyphen + 1,
        }
    }
    result + rest
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    })
}

/// Returns the paths at which two values differ, with the expected and the observed value.
pub(super) fn list_differences(expected: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(expected, got, &mut String::new(), &mut found);
    found
}

fn collect(expected: &Value, got: &Value, path: &mut String, found: &mut Vec<String>) {
    let display = |value: Option<&Value>| value.map_or("no value".to_owned(), Value::to_string);
    if let (Value::Object(a), Value::Object(b)) = (expected, got) {
        let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for key in keys {
            let length = path.len();
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(key);
            match (a.get(key), b.get(key)) {
                (Some(a), Some(b)) => collect(a, b, path, found),
                (a, b) => found.push(format!("{path}: expected {}, got {}", display(a), display(b))),
            }
            path.truncate(length);
        }
    } else if expected != got {
        found.push(format!("{path}: expected {expected}, got {got}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn uuids_are_replaced_except_the_unknown_sentinel() {
        let uuid = "0b5d0a5e-1111-4222-8333-444455556666";
        assert_eq!(without_uuids(&format!("ü{uuid}::{uuid}x")), "ü<uuid>::<uuid>x");
        assert_eq!(without_uuids(UNKNOWN_STRING), UNKNOWN_STRING);
    }

    #[test]
    fn numbers_secrets_and_dependencies_are_normalized() {
        let secret = |text: &str| json!({ SIGNATURE_KEY: SECRET_SIGNATURE, "plaintext": text });
        let one = json!({"v": 1, "s": secret(r#"{"a":1,"b":2}"#), "dependencies": ["x", "y"]});
        let other = json!({"v": 1.0, "s": secret(r#"{"b": 2.0, "a": 1}"#), "dependencies": ["y", "x"]});
        let state = |resource| deployment(&Deployment { resources: vec![resource], pending_operations: Vec::new() });
        assert_eq!(state(one), state(other));
    }
}
