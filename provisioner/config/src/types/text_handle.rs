//! Text of a typed `config` whose value exists only when its resource is registered.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

/// Name of the newtype that a [`TextHandle`] is decoded as.
pub(super) const TEXT_HANDLE: &str = "$sc::TextHandle";

/// A text of a typed `config` that may hold secrets and references. Its value exists only when the resource is
/// registered. The handle is an index into the texts of the decoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextHandle(usize);

impl TextHandle {
    pub(super) fn new(index: u64) -> Option<Self> {
        usize::try_from(index).ok().map(Self)
    }

    /// Returns the index in `Decoded::texts`.
    pub fn index(self) -> usize {
        self.0
    }

    /// Returns the handle that serialized to this object; `None` for any other JSON.
    pub fn from_json(value: &serde_json::Value) -> Option<Self> {
        let index = value.as_object().filter(|members| members.len() == 1)?.get(TEXT_HANDLE)?.as_u64()?;
        Self::new(index)
    }
}

/// Serializes to an object that [`TextHandle::from_json`] reads. No text is in it.
impl Serialize for TextHandle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(TEXT_HANDLE, &self.0)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for TextHandle {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Handle;
        impl Visitor<'_> for Handle {
            type Value = TextHandle;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_u64<E: de::Error>(self, index: u64) -> Result<TextHandle, E> {
                usize::try_from(index).map(TextHandle).map_err(E::custom)
            }
        }
        deserializer.deserialize_newtype_struct(TEXT_HANDLE, Handle)
    }
}

/// Schema of the value in the file: a scalar.
impl JsonSchema for TextHandle {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}
