//! Values of `${each:…}`: the current entry of a `forEach`.

use bridge::message_text::MessageText;

use super::paths::path_steps;
use super::syntax::{EACH, Piece, Placeholder, pieces};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::tree::{InterpolatedString, Node, Value};

const KEY: &str = "key";
const VALUE: &str = "value";

/// Entry of a `forEach`.
#[derive(Clone, Debug)]
pub(crate) struct Each {
    /// Key of the entry; of a list, the text itself.
    pub(crate) key: String,
    /// Value of the entry, in which placeholders are resolved.
    pub(crate) value: Node,
}

impl Each {
    /// Returns the value of a text that is one placeholder of the value of the entry: it keeps its type.
    pub(super) fn whole_value(&self, text: &str) -> Option<Value> {
        let [Piece::Placeholder(placeholder)] = pieces(text)[..] else { return None };
        let is_value = placeholder.namespace == EACH && placeholder.path != Some(KEY);
        is_value.then(|| self.find(placeholder.path?)).flatten().map(|node| node.value.clone())
    }

    /// Inserts the value of a placeholder into a text.
    pub(super) fn insert(
        &self,
        placeholder: &Placeholder<'_>,
        at: Span,
        into: &mut InterpolatedString,
    ) -> Result<(), Box<Diagnostic>> {
        let path = placeholder.path.unwrap_or_default();
        if path == KEY {
            into.push_text(&self.key);
            return Ok(());
        }
        let refused = |reason: &str| {
            let summary = MessageText::new(format_args!("`{}` {reason}", placeholder.raw));
            let help = "an entry has `${each:key}` and `${each:value}`, and parts of its value: `${each:value.size}`";
            Box::new(Diagnostic::error(Code("for-each"), at, summary).help(help))
        };
        match self.find(path).map(|node| &node.value) {
            Some(Value::Scalar(scalar)) => into.push_text(&scalar.text),
            Some(Value::Interpolated(string)) => {
                into.parts.extend(string.parts.iter().cloned());
                into.secret |= string.secret;
            }
            Some(Value::Sequence(_) | Value::Mapping(_)) => {
                return Err(refused("is a list or a mapping, which cannot stand within a text"));
            }
            None => return Err(refused("does not exist for this entry")),
        }
        Ok(())
    }

    /// Returns the part of the value at a path: `value`, `value.name[0]`.
    fn find(&self, path: &str) -> Option<&Node> {
        let steps = path_steps(path)?;
        let (first, rest) = steps.split_first()?;
        if first != VALUE {
            return None;
        }
        rest.iter().try_fold(&self.value, |node, step| match &node.value {
            Value::Mapping(mapping) => mapping.entry(step).map(|entry| &entry.value),
            Value::Sequence(items) => items.get(step.parse::<usize>().ok()?),
            Value::Scalar(_) | Value::Interpolated(_) => None,
        })
    }
}
