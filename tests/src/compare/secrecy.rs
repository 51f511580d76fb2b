//! Values that are secret in our outcome, and plain in the recorded one: on purpose, a value stays secret that Pulumi records
//! or sends as the provider has returned it (`docs/engine.md`).

use std::collections::BTreeMap;

use pulumi_proto::property::{SECRET_SIGNATURE, SIGNATURE_KEY};
use serde_json::Value;

use super::text;
use crate::rec::Call;
use crate::scenario::Outcome;

/// Returns an outcome of our engine without the secrets whose values are plain in the recorded one. A secret of Pulumi stays
/// one.
pub(super) fn without_more_secrets(expected: &Outcome, observed: &Outcome) -> Outcome {
    let mut revealed = observed.clone();
    let key = |entry: &Value| format!("{} {}", text(entry, "urn"), text(entry, "id"));
    for entry in &mut revealed.state.resources {
        let recorded = expected.state.resources.iter().find(|recorded| key(recorded) == key(entry));
        recorded.into_iter().for_each(|recorded| reveal_where_plain(entry, recorded));
    }
    let pending = revealed.state.pending_operations.iter_mut();
    pending.zip(&expected.state.pending_operations).for_each(|(own, recorded)| reveal_where_plain(own, recorded));
    let subject = |call: &Call| format!("{} {}", text(&call.request, "urn"), text(&call.request, "tok"));
    let mut recorded = BTreeMap::<String, Vec<&Call>>::new();
    for call in &expected.calls {
        recorded.entry(subject(call)).or_default().push(call);
    }
    let mut counts = BTreeMap::<String, usize>::new();
    for call in &mut revealed.calls {
        let subject = subject(call);
        let next = counts.entry(subject.clone()).or_default();
        let recorded = recorded.get(&subject).and_then(|calls| calls.get(*next));
        recorded.into_iter().for_each(|recorded| reveal_where_plain(&mut call.request, &recorded.request));
        *next += 1;
    }
    revealed
}

/// Reveals the secrets in a value of ours, a request or a part of a state, that are plain in Pulumi's.
pub fn reveal_where_plain(own: &mut Value, recorded: &Value) {
    if let (Some(content), None) = (secret_content(own), secret_content(recorded)) {
        *own = content;
    }
    match (own, recorded) {
        (Value::Object(members), Value::Object(others)) => {
            for (key, value) in members {
                others.get(key).into_iter().for_each(|other| reveal_where_plain(value, other));
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            items.iter_mut().zip(others).for_each(|(item, other)| reveal_where_plain(item, other));
        }
        _ => {}
    }
}

/// Returns the value within a secret of a request (`value`) or of a state (`plaintext`, as text). `None` for other values.
fn secret_content(value: &Value) -> Option<Value> {
    let members = value.as_object()?;
    if members.get(SIGNATURE_KEY)?.as_str()? != SECRET_SIGNATURE {
        return None;
    }
    match members.get("plaintext") {
        Some(plaintext) => serde_json::from_str(plaintext.as_str()?).ok(),
        None => members.get("value").cloned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_revealed_only_where_the_recorded_value_is_plain() {
        let secret = |text: &str| json!({ SIGNATURE_KEY: SECRET_SIGNATURE, "plaintext": text });
        let sent = |value: Value| json!({ SIGNATURE_KEY: SECRET_SIGNATURE, "value": value });
        let table = [
            (secret("1"), json!(1), json!(1)),
            (sent(json!("x")), json!("x"), json!("x")),
            (secret("1"), secret("1"), secret("1")),
            (json!(1), secret("1"), json!(1)),
            (secret(r#"{"a":1}"#), json!({ "a": secret("1") }), json!({ "a": 1 })),
            (json!({ "a": [sent(json!(1)), 2] }), json!({ "a": [1, sent(json!(2))] }), json!({ "a": [1, 2] })),
        ];
        for (mut own, recorded, expected) in table {
            reveal_where_plain(&mut own, &recorded);
            assert_eq!(own, expected);
        }
    }
}
