//! A tree of scalars, lists and mappings.

use std::fmt;

use super::interpolated_string::{InterpolatedString, Part, Reference};
use crate::diagnostics::Span;

/// A value with its position. A value from a YAML alias or merge key has the position of its definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Position. A block starts at its first key or dash.
    pub span: Span,
}

/// Value of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A scalar, not typed yet.
    Scalar(Scalar),
    /// A string with resolved placeholders that holds references, secrets or unknown values. The parser never returns one.
    Interpolated(InterpolatedString),
    /// A list.
    Sequence(Vec<Node>),
    /// A mapping in the order of the file; keys are unique.
    Mapping(Mapping),
}

/// A scalar, not typed yet.
#[derive(Clone, PartialEq)]
pub struct Scalar {
    /// Text without quotes and escapes.
    pub text: String,
    /// The scalar is plain (not quoted): its text may be a number, boolean or null.
    pub plain: bool,
}

/// Hides the text, because any scalar of a configuration file may hold a password.
impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.plain { "Scalar(plain)" } else { "Scalar(quoted)" })
    }
}

/// A mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping(pub Vec<Entry>);

/// Key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Source text of the key, for keys of any scalar type.
    pub key: String,
    /// Position of the key.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Returns a quoted scalar.
    pub fn text(text: impl Into<String>, span: Span) -> Self {
        Self { value: Value::Scalar(Scalar { text: text.into(), plain: false }), span }
    }

    /// Returns the scalar; `None` for other kinds.
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// Returns the items; `None` for other kinds.
    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the mapping; `None` for other kinds.
    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.value {
            Value::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// Returns true for an empty value, `~` or `null`.
    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(Scalar::is_null)
    }

    /// Returns true for a text with a value that is not known in this process.
    pub fn is_unknown(&self) -> bool {
        matches!(&self.value, Value::Interpolated(string) if string.is_unknown())
    }

    /// Returns the kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar(scalar) if scalar.is_null() => "nothing",
            Value::Scalar(scalar) => scalar.kind(),
            Value::Interpolated(_) => "a text",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }

    /// Calls a function for each reference in the tree, in order.
    pub(crate) fn each_reference(&mut self, found: &mut dyn FnMut(&mut Reference)) {
        match &mut self.value {
            Value::Scalar(_) => {}
            Value::Interpolated(string) => {
                for part in &mut string.parts {
                    if let Part::Reference(reference) = part {
                        found(reference);
                    }
                }
            }
            Value::Sequence(items) => items.iter_mut().for_each(|item| item.each_reference(found)),
            Value::Mapping(mapping) => mapping.0.iter_mut().for_each(|entry| entry.value.each_reference(found)),
        }
    }

    /// Returns the node at a path of keys and list indices.
    pub fn get_path<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Option<&Node> {
        path.into_iter().try_fold(self, |node, step| match &node.value {
            Value::Mapping(mapping) => mapping.get(step),
            Value::Sequence(items) => items.get(step.parse::<usize>().ok()?),
            Value::Scalar(_) | Value::Interpolated(_) => None,
        })
    }
}

impl Scalar {
    /// Returns true for a plain scalar that is empty, `~` or `null`.
    pub fn is_null(&self) -> bool {
        self.plain && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }

    /// Returns the kind of value, for messages.
    fn kind(&self) -> &'static str {
        match self.text.as_str() {
            _ if !self.plain => "a text",
            "true" | "false" => "a boolean",
            text if text.contains(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok() => "a number",
            _ => "a text",
        }
    }
}

impl Mapping {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the value of a key; `None` if it is missing or null.
    pub fn get_non_null(&self, key: &str) -> Option<&Node> {
        self.get(key).filter(|node| !node.is_null())
    }

    /// The entry of a key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.key.as_str())
    }
}

impl<'m> IntoIterator for &'m Mapping {
    type Item = &'m Entry;
    type IntoIter = std::slice::Iter<'m, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
