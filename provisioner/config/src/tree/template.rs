//! A string that is not known yet, or not to be shown.

use std::fmt;

use crate::diagnostics::Span;

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
