//! Placeholders `${namespace:path:default}` in strings (simple-container §3).
//!
//! Enters: a tree as written and what the namespaces know. Leaves: the tree with every placeholder of the first pass
//! filled in; what refers to another resource stays as a typed [`Reference`] inside a [`Template`]. Never here: the
//! value of a reference, which exists only once the resource is registered.

mod namespaces;
mod resolve;
mod syntax;

pub use namespaces::{Found, Namespaces, Used};
pub use resolve::{References, Resolver};
pub use syntax::{Piece, Placeholder, pieces};

use std::fmt;

use super::diagnostics::Span;

/// A string that is not plain text: it holds references, or secrets, or both.
#[derive(Clone, PartialEq)]
pub struct Template {
    /// What it is joined from. A template of one reference alone takes the type of its value.
    pub parts: Vec<Part>,
    /// Whether a secret went into it.
    pub secret: bool,
}

/// A part of a [`Template`].
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text that is known.
    Text(String),
    /// An output of another resource.
    Reference(Reference),
}

/// `${resource:KEY.PATH}`, or in `outputs` `${resource:ENV/KEY.PATH}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The environment; `None`: that of the resource it is written in, or the only one that has the key.
    pub environment: Option<String>,
    /// The key of the resource.
    pub resource: String,
    /// Names and list indices down into its outputs; at least one.
    pub path: Vec<String>,
    /// Where it was written.
    pub span: Span,
}

impl Template {
    /// The references in it, in order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            Part::Reference(reference) => Some(reference),
            Part::Text(_) => None,
        })
    }

    /// The text, if it has no references.
    pub fn known(&self) -> Option<String> {
        self.parts.iter().try_fold(String::new(), |text, part| match part {
            Part::Text(part) => Some(text + part),
            Part::Reference(_) => None,
        })
    }
}

/// Shows the references only.
impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("secret", &self.secret)
            .field("references", &self.references().map(ToString::to_string).collect::<Vec<_>>())
            .finish()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("${resource:")?;
        if let Some(environment) = &self.environment {
            write!(f, "{environment}/")?;
        }
        write!(f, "{}.{}}}", self.resource, self.path.join("."))
    }
}
