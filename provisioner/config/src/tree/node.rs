//! A tree of scalars, lists and mappings.

use std::fmt;

use super::template::Template;
use crate::diagnostics::Span;

/// A value and where it was written. What came through an alias or a merge key points at its definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it was written. For blocks: from their first key or dash.
    pub span: Span,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A scalar as it was written.
    Scalar(Scalar),
    /// A string whose placeholders are resolved; the parser never makes one.
    Template(Template),
    /// A list.
    Sequence(Vec<Node>),
    /// A mapping in the order of the file; keys are unique.
    Mapping(Mapping),
}

/// A scalar as it was written, not yet read as anything.
#[derive(Clone, PartialEq)]
pub struct Scalar {
    /// The text, with quotes and escapes taken off.
    pub text: String,
    /// Whether it stands there bare, so that it may be read as a number, a truth value or nothing.
    pub plain: bool,
}

/// Configuration files may hold passwords in any scalar: none is shown.
impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.plain { "Scalar(plain)" } else { "Scalar(quoted)" })
    }
}

/// A mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping(pub Vec<Entry>);

/// One key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key's text: keys of any scalar type count by their source text.
    pub key: String,
    /// Where the key was written.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// A scalar that nobody wrote bare.
    pub fn text(text: impl Into<String>, span: Span) -> Self {
        Self { value: Value::Scalar(Scalar { text: text.into(), plain: false }), span }
    }

    /// The scalar, if it is one.
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The mapping, if it is one.
    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.value {
            Value::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// Whether nothing is there: an empty value, `~` or `null`.
    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(Scalar::is_null)
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar(scalar) if scalar.is_null() => "nothing",
            Value::Scalar(_) | Value::Template(_) => "a single value",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }

    /// The node that a path of keys and list indices leads to.
    pub fn at<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Option<&Node> {
        path.into_iter().try_fold(self, |node, step| match &node.value {
            Value::Mapping(mapping) => mapping.get(step),
            Value::Sequence(items) => items.get(step.parse::<usize>().ok()?),
            Value::Scalar(_) | Value::Template(_) => None,
        })
    }
}

impl Scalar {
    /// Whether nothing is there.
    pub fn is_null(&self) -> bool {
        self.plain && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Mapping {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The value of a key, unless nothing is there.
    pub fn get_some(&self, key: &str) -> Option<&Node> {
        self.get(key).filter(|node| !node.is_null())
    }

    /// A key with its place and value.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// The keys in order.
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
