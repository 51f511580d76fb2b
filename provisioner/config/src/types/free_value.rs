//! Value of a `config` whose structure a type does not determine, such as the values of a Helm chart.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, MapAccess, SeqAccess, Visitor};

use super::decode::FREE_VALUE;
use super::text_handle::TextHandle;

/// Value of any structure. Its texts may hold secrets and references.
#[derive(Clone, Debug, PartialEq)]
pub enum FreeValue {
    /// `null`, or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Number.
    Number(f64),
    /// Text.
    Text(TextHandle),
    /// List. Nulls in it are kept.
    List(Vec<FreeValue>),
    /// Mapping.
    Map(BTreeMap<String, FreeValue>),
}

impl<'de> Deserialize<'de> for FreeValue {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(FREE_VALUE, FreeValueVisitor)
    }
}

struct FreeValueVisitor;

impl<'de> Visitor<'de> for FreeValueVisitor {
    type Value = FreeValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<FreeValue, E> {
        Ok(FreeValue::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<FreeValue, E> {
        Ok(FreeValue::Bool(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<FreeValue, E> {
        Ok(FreeValue::Number(value))
    }

    /// Receives the index of a text.
    fn visit_u64<E: de::Error>(self, index: u64) -> Result<FreeValue, E> {
        TextHandle::new(index).map(FreeValue::Text).ok_or_else(|| E::custom("too many texts"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<FreeValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(FreeValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<FreeValue, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry()? {
            map.insert(key, value);
        }
        Ok(FreeValue::Map(map))
    }
}

/// Schema of any value.
impl JsonSchema for FreeValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}
