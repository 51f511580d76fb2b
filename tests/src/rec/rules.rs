//! Rules of the scripted provider: pure functions from requests and scripts to replies.

use std::collections::BTreeSet;

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use pulumi_proto::property::{SECRET_SIGNATURE, SIGNATURE_KEY, UNKNOWN_STRING};
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::{DiffResponse, PropertyDiff, property_diff};

use super::script::{Behaviour, ScriptedDiff};

/// Inputs of a resource whose change replaces it.
pub(super) const RESOURCE_REPLACES: &[&str] = &["k"];
/// Configuration properties whose change replaces every resource.
pub(super) const CONFIG_REPLACES: &[&str] = &["region"];
/// Input whose change is no difference.
const IGNORED: &str = "note";

/// Converts a value from JSON.
pub(super) fn value_from_json(json: &serde_json::Value) -> Value {
    let kind = match json {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(value) => Kind::BoolValue(*value),
        serde_json::Value::Number(value) => Kind::NumberValue(value.as_f64().unwrap_or(f64::NAN)),
        serde_json::Value::String(value) => Kind::StringValue(value.clone()),
        serde_json::Value::Array(items) => {
            Kind::ListValue(ListValue { values: items.iter().map(value_from_json).collect() })
        }
        serde_json::Value::Object(map) => Kind::StructValue(Struct {
            fields: map.iter().map(|(key, value)| (key.clone(), value_from_json(value))).collect(),
        }),
    };
    Value { kind: Some(kind) }
}

/// Returns a string value.
pub(super) fn text(text: impl Into<String>) -> Value {
    Value { kind: Some(Kind::StringValue(text.into())) }
}

/// Returns the reply to a Diff: that of the script, else that of a comparison.
pub(super) fn resource_diff(
    old: Option<&Struct>,
    new: Option<&Struct>,
    ignore: &[String],
    behaviour: &Behaviour,
) -> DiffResponse {
    let v = || vec!["v".to_owned()];
    let response = |changes: DiffChanges| DiffResponse { changes: changes.into(), ..DiffResponse::default() };
    match behaviour.diff {
        // The caller returns the error.
        None | Some(ScriptedDiff::Error) => {}
        Some(ScriptedDiff::Unknown) => return response(DiffChanges::DiffUnknown),
        Some(ScriptedDiff::None) => return response(DiffChanges::DiffNone),
        Some(ScriptedDiff::Some) => return response(DiffChanges::DiffSome),
        Some(ScriptedDiff::NoneReplaces) => {
            return DiffResponse { replaces: v(), diffs: v(), ..response(DiffChanges::DiffNone) };
        }
        Some(ScriptedDiff::UnknownReplaces) => {
            return DiffResponse { replaces: v(), ..response(DiffChanges::DiffUnknown) };
        }
        Some(ScriptedDiff::Replace) => {
            return DiffResponse {
                replaces: v(),
                diffs: v(),
                delete_before_replace: behaviour.delete_before_replace,
                ..response(DiffChanges::DiffSome)
            };
        }
    }
    let mut response = compare(&visible(old, ignore), &visible(new, ignore), RESOURCE_REPLACES, behaviour);
    for (path, kind) in &behaviour.detail {
        response.has_detailed_diff = true;
        let kind = property_diff::Kind::from_str_name(kind).unwrap_or_default();
        response.detailed_diff.insert(path.clone(), PropertyDiff { kind: kind.into(), input_diff: true });
    }
    response
}

/// Removes the properties that `ignoreChanges` names.
fn visible(properties: Option<&Struct>, ignore: &[String]) -> Struct {
    let mut properties = properties.cloned().unwrap_or_default();
    properties.fields.retain(|name, _| !ignore.contains(name));
    properties
}

/// Compares two maps of inputs by top-level name.
pub(super) fn compare(old: &Struct, new: &Struct, replace_on: &[&str], behaviour: &Behaviour) -> DiffResponse {
    let mut response = DiffResponse {
        stables: vec!["cid".to_owned()],
        delete_before_replace: behaviour.delete_before_replace,
        ..DiffResponse::default()
    };
    let names: BTreeSet<&String> = old.fields.keys().chain(new.fields.keys()).collect();
    for name in names {
        let (before, after) = (old.fields.get(name), new.fields.get(name));
        if name == IGNORED || before == after {
            continue;
        }
        let replaces = replace_on.contains(&name.as_str());
        response.diffs.push(name.clone());
        if replaces {
            response.replaces.push(name.clone());
        }
        if behaviour.detailed {
            use property_diff::Kind;
            let kind = match (before, after, replaces) {
                (None, _, true) => Kind::AddReplace,
                (None, _, false) => Kind::Add,
                (_, None, true) => Kind::DeleteReplace,
                (_, None, false) => Kind::Delete,
                (_, _, true) => Kind::UpdateReplace,
                (_, _, false) => Kind::Update,
            };
            response.has_detailed_diff = true;
            response.detailed_diff.insert(name.clone(), PropertyDiff { kind: kind.into(), input_diff: true });
        }
    }
    let changes = if response.diffs.is_empty() { DiffChanges::DiffNone } else { DiffChanges::DiffSome };
    response.changes = changes.into();
    response
}

/// Returns the outputs: the inputs, `cid` made of the id, and `out` made of `v`.
///
/// In a preview `out` is unknown, and so is `cid` if there is no id.
pub(super) fn outputs(id: &str, inputs: Option<&Struct>, preview: bool) -> Struct {
    let mut result = inputs.cloned().unwrap_or_default();
    let cid = if preview && id.is_empty() { UNKNOWN_STRING.to_owned() } else { format!("c:{id}") };
    let out = if preview { text(UNKNOWN_STRING) } else { out_of(result.fields.get("v")) };
    result.fields.insert("cid".to_owned(), text(cid));
    result.fields.insert("out".to_owned(), out);
    result
}

fn out_of(v: Option<&Value>) -> Value {
    let (inside, is_secret) = unwrap(v);
    let mut json = String::from("o:");
    write_json(inside, &mut json);
    if !is_secret {
        return text(json);
    }
    let fields = [(SIGNATURE_KEY.to_owned(), text(SECRET_SIGNATURE)), ("value".to_owned(), text(json))].into();
    Value { kind: Some(Kind::StructValue(Struct { fields })) }
}

/// Returns the value without its secret envelope, and whether it had one.
fn unwrap(value: Option<&Value>) -> (Option<&Value>, bool) {
    if let Some(Kind::StructValue(map)) = value.and_then(|value| value.kind.as_ref())
        && map.fields.get(SIGNATURE_KEY) == Some(&text(SECRET_SIGNATURE))
    {
        return (map.fields.get("value"), true);
    }
    (value, false)
}

/// Writes a value in the format of Go's `encoding/json`: sorted keys, no spaces, safe inside HTML.
fn write_json(value: Option<&Value>, out: &mut String) {
    match value.and_then(|value| value.kind.as_ref()) {
        None | Some(Kind::NullValue(_)) => out.push_str("null"),
        Some(Kind::BoolValue(value)) => out.push_str(if *value { "true" } else { "false" }),
        Some(Kind::NumberValue(number)) => out.push_str(&go_number(*number)),
        Some(Kind::StringValue(text)) => write_string(text, out),
        Some(Kind::ListValue(list)) => {
            out.push('[');
            for (index, item) in list.values.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_json(Some(item), out);
            }
            out.push(']');
        }
        Some(Kind::StructValue(map)) => {
            out.push('{');
            for (index, (key, value)) in map.fields.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_string(key, out);
                out.push(':');
                write_json(Some(value), out);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Formats a number like Go's `encoding/json`: plain if it is short, else with a signed exponent.
fn go_number(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    format!("{number}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bag(json: serde_json::Value) -> Struct {
        match value_from_json(&json).kind {
            Some(Kind::StructValue(bag)) => bag,
            _ => panic!("not an object"),
        }
    }

    fn out(v: serde_json::Value) -> String {
        match outputs("x-1", Some(&bag(json!({ "v": v }))), false).fields["out"].kind.clone() {
            Some(Kind::StringValue(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn out_has_the_format_of_go_json() {
        assert_eq!(
            out(json!([0, -1, 1.5, 1e21, 1e-7, 1e20, true, "", [], {}])),
            "o:[0,-1,1.5,1e+21,1e-7,100000000000000000000,true,\"\",[],{}]"
        );
        assert_eq!(
            out(json!({"b": "<&>\u{1}\n\u{2028}ключ\"\\", "a": null})),
            "o:{\"a\":null,\"b\":\"\\u003c\\u0026\\u003e\\u0001\\n\\u2028ключ\\\"\\\\\"}"
        );
    }

    #[test]
    fn out_is_secret_only_if_v_itself_is_secret() {
        let secret = json!({ SIGNATURE_KEY: SECRET_SIGNATURE, "value": 1 });
        let result = outputs("x-1", Some(&bag(json!({ "v": secret }))), false);
        assert_eq!(unwrap(result.fields.get("out")), (Some(&text("o:1")), true));
        assert!(out(json!([secret])).starts_with("o:[{\"4dabf"));
    }

    #[test]
    fn preview_has_unknown_out_and_cid_only_with_an_id() {
        let cid = |id, preview| outputs(id, None, preview).fields["cid"].clone();
        assert_eq!(cid("", true), text(UNKNOWN_STRING));
        assert_eq!(cid("a-1", true), text("c:a-1"));
        assert_eq!(outputs("a-1", None, true).fields["out"], text(UNKNOWN_STRING));
        assert_eq!(outputs("a-1", None, false).fields["out"], text("o:null"));
    }

    #[test]
    fn comparison_reports_differences_except_the_note() {
        let behaviour = Behaviour { detailed: true, ..Behaviour::default() };
        let (old, new) = (bag(json!({"v": 1, "k": 1, "note": 1})), bag(json!({"w": 1, "k": 2, "note": 2})));
        let response = compare(&old, &new, RESOURCE_REPLACES, &behaviour);
        assert_eq!(
            (response.diffs.clone(), response.replaces.clone()),
            (vec!["k".into(), "v".into(), "w".into()], vec!["k".to_owned()])
        );
        assert_eq!(response.changes(), DiffChanges::DiffSome);
        let kinds: Vec<_> = ["k", "v", "w"].map(|name| response.detailed_diff[name].kind()).into();
        assert_eq!(kinds, [property_diff::Kind::UpdateReplace, property_diff::Kind::Delete, property_diff::Kind::Add]);
    }
}
