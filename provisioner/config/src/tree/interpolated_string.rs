//! A string that holds references, secrets or unknown values.

use std::fmt;

use crate::diagnostics::Span;

/// A string that holds references, secrets or unknown values.
#[derive(Clone, PartialEq)]
pub struct InterpolatedString {
    /// Parts to join. A string of a single reference and no text has the type of the referenced value.
    pub parts: Vec<Part>,
    /// A part of the text is secret.
    pub secret: bool,
}

/// A part of an [`InterpolatedString`].
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Literal text.
    Text(String),
    /// An output of another resource.
    Reference(Reference),
    /// A placeholder whose value is not known in this process. A check counts it as met.
    Unknown {
        /// Text of the placeholder, from `${` to `}`.
        placeholder: String,
    },
}

/// `${resource:KEY.PATH}`, or in `outputs` `${resource:ENV/KEY.PATH}`. A default may follow: `${resource:KEY.PATH:DEFAULT}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The environment. `None`: the environment of the resource that holds the reference, or the only one with the key.
    pub environment: Option<String>,
    /// Key of the resource.
    pub resource: String,
    /// Entries of its `forEach` that are meant.
    pub instances: ReferencedInstances,
    /// Path of names and list indices in the outputs; not empty.
    pub path: Vec<String>,
    /// Text that takes the place of an output that is missing or null.
    pub default: Option<String>,
    /// Position in the file.
    pub span: Span,
}

/// Entries of a `forEach` that a reference means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReferencedInstances {
    /// The resource is a single one.
    #[default]
    None,
    /// `[ENTRY]`, until the stack is read.
    One(String),
    /// `[*]`: all, in the order of the collection. The keys of their resources.
    All(Vec<String>),
}

impl Reference {
    /// Returns the keys of the resources that it refers to.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        let (all, one) = match &self.instances {
            ReferencedInstances::All(keys) => (keys.as_slice(), None),
            ReferencedInstances::None | ReferencedInstances::One(_) => (&[][..], Some(self.resource.as_str())),
        };
        all.iter().map(String::as_str).chain(one)
    }
}

impl InterpolatedString {
    /// Adds text at the end.
    pub(crate) fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }

    /// Returns the references in order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            Part::Reference(reference) => Some(reference),
            Part::Text(_) | Part::Unknown { .. } => None,
        })
    }

    /// Returns the text; `None` if it has references or unknown values.
    pub fn known(&self) -> Option<String> {
        self.parts.iter().try_fold(String::new(), |text, part| match part {
            Part::Text(part) => Some(text + part),
            Part::Reference(_) | Part::Unknown { .. } => None,
        })
    }

    /// Returns whether a value in the text is not known in this process.
    pub fn is_unknown(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Unknown { .. }))
    }

    /// Returns the text with the placeholders of its unknown values in their places; `None` if it has references.
    pub(crate) fn with_placeholders(&self) -> Option<String> {
        self.parts.iter().try_fold(String::new(), |text, part| match part {
            Part::Text(part) | Part::Unknown { placeholder: part } => Some(text + part),
            Part::Reference(_) => None,
        })
    }
}

/// Shows only the references, because the text may be secret.
impl fmt::Debug for InterpolatedString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterpolatedString")
            .field("secret", &self.secret)
            .field("references", &self.references().map(ToString::to_string).collect::<Vec<_>>())
            .finish()
    }
}

/// Shows the reference without its default.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("${resource:")?;
        if let Some(environment) = &self.environment {
            write!(f, "{environment}/")?;
        }
        write!(f, "{}.{}}}", self.resource, self.path.join("."))
    }
}
