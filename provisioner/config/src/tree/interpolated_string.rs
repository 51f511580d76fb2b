//! A string that holds references, secrets or unknown values.

use std::fmt;

use pulumi_proto::property::PropertyValue;

use crate::diagnostics::Span;

/// A string that holds references, secrets or unknown values.
#[derive(Clone, PartialEq)]
pub struct InterpolatedString {
    /// Parts to join. A string of a single reference or value and no text has the type of that value.
    pub parts: Vec<Part>,
    /// A part of the text is secret.
    pub secret: bool,
}

/// A part of an [`InterpolatedString`].
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Literal text.
    Text(String),
    /// An output of another resource, or the result of a function.
    Reference(Reference),
    /// Value that is no text, which stands alone: a secret list, say.
    Value(PropertyValue),
    /// A placeholder whose value is not known in this process. A check counts it as met.
    Unknown {
        /// Text of the placeholder, from `${` to `}`.
        placeholder: String,
    },
}

/// `${resource:KEY.PATH}` or `${resource:ENV/KEY.PATH}`, or `${function:…}` likewise. A default may follow:
/// `${resource:KEY.PATH:DEFAULT}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Kind of what it refers to.
    pub kind: ReferenceKind,
    /// The environment. `None`: of a resource, the environment of what holds the reference, or the only one with the key; of a
    /// function, once the stack is read, all environments.
    pub environment: Option<String>,
    /// Key of the resource, or name of the function.
    pub resource: String,
    /// Entries of its `forEach` that are meant.
    pub instances: ReferencedInstances,
    /// Path of names and list indices in the outputs. That of a function may be empty: its whole result.
    pub path: Vec<String>,
    /// Text that takes the place of an output that is missing or null.
    pub default: Option<String>,
    /// Position in the file.
    pub span: Span,
}

/// Kind of what a reference refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferenceKind {
    /// A resource: its outputs.
    #[default]
    Resource,
    /// A function: its result.
    Function,
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
    /// Not known yet: the collection, or whether the resource is switched on, is decided later. The value is unknown.
    Undecided,
}

impl Reference {
    /// Returns the text of its path, in which a step with a dot or a bracket stands in brackets.
    pub fn path_text(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step.contains(['.', '[']) {
                true => text.extend(["[", step, "]"]),
                false if text.is_empty() => text.push_str(step),
                false => text.extend([".", step]),
            }
        }
        text
    }

    /// Returns the keys of the resources that it refers to, or the name of the function.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        let (all, one) = match &self.instances {
            ReferencedInstances::All(keys) => (keys.as_slice(), None),
            ReferencedInstances::Undecided => (&[][..], None),
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
            Part::Text(_) | Part::Value(_) | Part::Unknown { .. } => None,
        })
    }

    /// Returns the text; `None` if it has references or unknown values.
    pub fn known(&self) -> Option<String> {
        self.parts.iter().try_fold(String::new(), |text, part| match part {
            Part::Text(part) => Some(text + part),
            Part::Reference(_) | Part::Value(_) | Part::Unknown { .. } => None,
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
            Part::Reference(_) | Part::Value(_) => None,
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
        f.write_str(match self.kind {
            ReferenceKind::Resource => "${resource:",
            ReferenceKind::Function => "${function:",
        })?;
        if let Some(environment) = &self.environment {
            write!(f, "{environment}/")?;
        }
        let path = self.path_text();
        let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        write!(f, "{}{dot}{path}}}", self.resource)
    }
}
