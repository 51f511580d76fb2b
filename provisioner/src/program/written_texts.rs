//! Texts of properties that the schema of a type says are texts: a plain scalar that is read as a number keeps the text that it has
//! in the file, such as `1.30`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bridge::host::{InputInfo, NestedObjects, ValueKind};
use config::tree::{Entry, Mapping, Node, Scalar, Value};
use config::values::SurprisingReading;

use super::types::ResolvedType;

/// Returns a `config` in which numbers are texts where the schema of the type says so and the number would have another text.
/// All other values stay as they are: a number that keeps its text, such as 80, is sent as a number, as in Pulumi's YAML.
pub(super) fn keep<'n>(config: &'n Node, resolved: &ResolvedType) -> Cow<'n, Node> {
    match &resolved.info {
        Some(info) if has_other_text(config) => Cow::Owned(Texts { resolved }.properties(config, &info.inputs)),
        _ => Cow::Borrowed(config),
    }
}

/// Returns whether a tree has a number that would not keep its text.
fn has_other_text(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(scalar) => loses_text(scalar),
        Value::Interpolated(_) => false,
        Value::Sequence(items) => items.iter().any(has_other_text),
        Value::Mapping(mapping) => mapping.into_iter().any(|entry| has_other_text(&entry.value)),
    }
}

fn loses_text(scalar: &Scalar) -> bool {
    matches!(SurprisingReading::of(scalar), Some(SurprisingReading::OtherText(_) | SurprisingReading::Rounded))
}

struct Texts<'t> {
    resolved: &'t ResolvedType,
}

impl Texts<'_> {
    fn properties(&self, node: &Node, known: &BTreeMap<String, InputInfo>) -> Node {
        let Some(mapping) = node.as_mapping() else { return node.clone() };
        entries(mapping, node, |entry| match known.get(&entry.key) {
            Some(info) => self.value(&entry.value, info.kind.as_ref(), info.nested.as_ref()),
            None => entry.value.clone(),
        })
    }

    fn value(&self, node: &Node, kind: Option<&ValueKind>, nested: Option<&NestedObjects>) -> Node {
        match &node.value {
            Value::Scalar(scalar) if kind == Some(&ValueKind::Text) && loses_text(scalar) => {
                Node::text(scalar.text.clone(), node.span)
            }
            Value::Sequence(items) => {
                let kind = if let Some(ValueKind::List(kind)) = kind { Some(&**kind) } else { None };
                let nested = if let Some(NestedObjects::List(nested)) = nested { Some(&**nested) } else { None };
                let items = items.iter().map(|item| self.value(item, kind, nested));
                Node { value: Value::Sequence(items.collect()), span: node.span }
            }
            Value::Mapping(mapping) => {
                if let Some(NestedObjects::Object(token)) = nested {
                    let object = self.resolved.object(token);
                    return object.map_or_else(|| node.clone(), |object| self.properties(node, &object.properties));
                }
                let kind = if let Some(ValueKind::Map(kind)) = kind { Some(&**kind) } else { None };
                let nested = if let Some(NestedObjects::Map(nested)) = nested { Some(&**nested) } else { None };
                entries(mapping, node, |entry| self.value(&entry.value, kind, nested))
            }
            Value::Scalar(_) | Value::Interpolated(_) => node.clone(),
        }
    }
}

/// Returns a mapping with other values.
fn entries(mapping: &Mapping, node: &Node, value: impl Fn(&Entry) -> Node) -> Node {
    let entries = mapping.into_iter().map(|entry| Entry { value: value(entry), ..entry.clone() });
    Node { value: Value::Mapping(Mapping(entries.collect())), span: node.span }
}
