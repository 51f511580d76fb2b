//! Checks numbers of a `config` against the limits in its JSON Schema, so that reader and editor have the same ones.

use bridge::message_text::MessageText;
use serde_json::Value as Json;

use crate::diagnostics::{Code, Diagnostic};
use crate::tree::{Node, Value};

/// Reports each number below a `minimum` or above a `maximum` of the schema.
pub(super) fn check(schema: &Json, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
    let mut walk = Walk { root: schema, diagnostics };
    walk.value(schema, "", node);
}

struct Walk<'w> {
    /// Schema with the definitions that others refer to.
    root: &'w Json,
    diagnostics: &'w mut Vec<Diagnostic>,
}

impl Walk<'_> {
    fn value(&mut self, schema: &Json, path: &str, node: &Node) {
        if node.is_null() {
            return;
        }
        if let Some(definition) = schema["$ref"].as_str().and_then(|pointer| self.root.pointer(pointer.get(1..)?)) {
            self.value(definition, path, node);
        }
        for alternative in schema["anyOf"].as_array().into_iter().flatten() {
            self.value(alternative, path, node);
        }
        match &node.value {
            Value::Scalar(_) => self.number(schema, path, node),
            Value::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&schema["items"], &format!("{path}[{index}]"), item);
                }
            }
            Value::Mapping(mapping) => {
                for entry in mapping {
                    let property = schema["properties"].get(&entry.key).unwrap_or(&schema["additionalProperties"]);
                    let separator = if path.is_empty() { "" } else { "." };
                    self.value(property, &format!("{path}{separator}{}", entry.key), &entry.value);
                }
            }
            Value::Interpolated(_) => {}
        }
    }

    fn number(&mut self, schema: &Json, path: &str, node: &Node) {
        let (minimum, maximum) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
        let number = node.as_scalar().filter(|scalar| scalar.plain).and_then(|scalar| scalar.text.parse::<f64>().ok());
        let is_outside =
            |number: f64| minimum.is_some_and(|least| number < least) || maximum.is_some_and(|most| number > most);
        if !number.is_some_and(is_outside) {
            return;
        }
        let limits = match (minimum, maximum) {
            (Some(least), Some(most)) => format!("from {least} to {most}"),
            (Some(least), None) => format!("of at least {least}"),
            (None, most) => format!("of at most {}", most.unwrap_or_default()),
        };
        let summary = MessageText::new(format_args!("`{path}` must be a number {limits}"));
        self.diagnostics.push(Diagnostic::error(Code("unknown-value"), node.span, summary));
    }
}
