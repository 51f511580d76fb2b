//! Ids of resources, assigned by providers.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::property::unknown::UNKNOWN_STRING;

/// Id of a resource, assigned by its provider. Never empty: a resource without an id has no `ResourceId`.
///
/// Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(Arc<str>);

impl ResourceId {
    /// Creates an id from a text of a message or state. Returns `None` for the empty text, which means no id there.
    pub fn new(text: impl AsRef<str> + Into<Arc<str>>) -> Option<Self> {
        (!text.as_ref().is_empty()).then(|| Self(text.into()))
    }

    /// Returns the text of an id for messages and states, empty for `None`.
    pub fn text(id: Option<&Self>) -> &str {
        id.map_or("", Self::as_str)
    }

    /// Returns the id as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for ResourceId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Id in a reference to a custom resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceId {
    /// Id of an existing resource.
    Known(ResourceId),
    /// Id of a resource that a preview would create.
    Unknown,
}

impl ReferenceId {
    /// Returns the id as a text, [`UNKNOWN_STRING`] for an unknown id.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(id) => id,
            Self::Unknown => UNKNOWN_STRING,
        }
    }

    /// Returns the id of an existing resource.
    pub fn known(&self) -> Option<&ResourceId> {
        match self {
            Self::Known(id) => Some(id),
            Self::Unknown => None,
        }
    }
}

/// Converts the id text of a reference. [`UNKNOWN_STRING`] and the empty text mean an unknown id.
impl From<&str> for ReferenceId {
    fn from(text: &str) -> Self {
        match ResourceId::new(text) {
            Some(id) if text != UNKNOWN_STRING => Self::Known(id),
            _ => Self::Unknown,
        }
    }
}

/// Converts the id of a resource. `None` and [`UNKNOWN_STRING`] become an unknown id.
impl From<Option<&ResourceId>> for ReferenceId {
    fn from(id: Option<&ResourceId>) -> Self {
        match id {
            Some(id) if id.as_str() != UNKNOWN_STRING => Self::Known(id.clone()),
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_text_is_not_an_id() {
        assert_eq!(ResourceId::new(""), None);
        let id = ResourceId::new("i-1");
        assert_eq!((ResourceId::text(id.as_ref()), ResourceId::text(None)), ("i-1", ""));
    }

    #[test]
    fn unknown_id_of_a_reference_is_the_sentinel() {
        for text in ["", UNKNOWN_STRING] {
            assert_eq!(ReferenceId::from(text), ReferenceId::Unknown);
            assert_eq!(ReferenceId::from(ResourceId::new(text).as_ref()), ReferenceId::Unknown);
        }
        assert_eq!(ReferenceId::Unknown.as_str(), UNKNOWN_STRING);
        assert_eq!(ReferenceId::from("i-1").as_str(), "i-1");
    }
}
