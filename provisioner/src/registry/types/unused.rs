//! Warnings of keys of a `config` that have a value and no effect.
//!
//! Length: the types call it with their keys.

use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic};
use config::tree::{Node, Value};

/// Returns a warning for each of the keys that is set. A key is a path with dots. `reason` follows "has no effect".
pub(super) fn unused<'n>(
    node: &'n Node,
    keys: &'n [&'n str],
    reason: &'n str,
) -> impl Iterator<Item = Diagnostic> + 'n {
    keys.iter().filter_map(move |key| {
        let value = node.get_path(key.split('.')).filter(|value| is_set(value))?;
        let summary = MessageText::new(format_args!("`{key}` has no effect{reason}"));
        Some(Diagnostic::warning(Code("unused"), value.span, summary))
    })
}

/// Returns false for nothing, an empty text, `false`, and an empty list or mapping, which ask for nothing.
fn is_set(value: &Node) -> bool {
    match &value.value {
        Value::Scalar(scalar) => !scalar.is_null() && !["", "false", "no", "off"].contains(&scalar.text.as_str()),
        Value::Interpolated(text) => text.known().as_deref() != Some(""),
        Value::Sequence(items) => !items.is_empty(),
        Value::Mapping(mapping) => !mapping.0.is_empty(),
    }
}
