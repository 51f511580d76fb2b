//! The JSON of a state to property values (spec of the state, section 4.4).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pulumi_proto::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    NUMBER_SIGNATURE, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ResourceReference, SECRET_SIGNATURE,
    SIGNATURE_KEY, UNKNOWN_STRING,
};
use pulumi_proto::resource_id::ReferenceId;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::secrets::{CiphertextReuse, Crypter, SecretsError};

/// How the secrets of a text are opened.
pub(crate) enum Opening<'a> {
    /// There is no key yet: a secret is an error.
    Impossible,
    /// They stay sealed, and read as null.
    Sealed,
    /// They are in clear, for the text itself was sealed.
    Clear,
    /// With the key; what each held is remembered.
    With(&'a dyn Crypter, &'a mut CiphertextReuse),
}

impl Opening<'_> {
    /// What makes others of the kind, unless it remembers what it opened.
    pub(super) fn alike(&self) -> Option<fn() -> Opening<'static>> {
        match self {
            Self::Impossible => Some(|| Opening::Impossible),
            Self::Sealed => Some(|| Opening::Sealed),
            Self::Clear => Some(|| Opening::Clear),
            Self::With(..) => None,
        }
    }
}

/// Why a value could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// The text is no JSON, or a tagged object in it is not what its tag says.
    #[error("a property value is malformed")]
    Malformed(#[source] serde_json::Error),
    /// A secret could not be opened.
    #[error(transparent)]
    Secret(SecretsError),
}

/// Reads values.
pub(super) struct ValueReader<'a> {
    opening: Opening<'a>,
    /// Why reading was broken off, where the reason is a secret.
    failure: Option<SecretsError>,
}

impl<'a> ValueReader<'a> {
    pub(super) fn new(opening: Opening<'a>) -> Self {
        Self { opening, failure: None }
    }

    /// Reads one value.
    ///
    /// # Errors
    /// [`ValueError`] if the text is no value, or a secret in it cannot be opened.
    pub(super) fn value(&mut self, text: &str) -> Result<PropertyValue, ValueError> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = Seed(self).deserialize(&mut deserializer).and_then(|value| {
            deserializer.end()?;
            Ok(value)
        });
        value.map_err(|error| self.failure.take().map_or(ValueError::Malformed(error), ValueError::Secret))
    }

    /// Reads a property map.
    ///
    /// # Errors
    /// [`ValueError`] if the text is no object, or a secret in it cannot be opened.
    pub(super) fn map(&mut self, text: &str) -> Result<PropertyMap, ValueError> {
        match self.value(text)? {
            PropertyValue::Map(map) => Ok(map),
            _ => Err(ValueError::Malformed(serde_json::Error::custom("expected an object"))),
        }
    }

    fn open(&mut self, ciphertext: &str) -> Result<PropertyValue, ValueError> {
        let plaintext = match &mut self.opening {
            Opening::Impossible => return Err(ValueError::Secret(SecretsError::KeyNeeded)),
            Opening::Sealed => return Ok(PropertyValue::Null),
            Opening::Clear => ciphertext.to_owned(),
            Opening::With(crypter, reuse) => {
                let plaintext = crypter.decrypt(ciphertext).map_err(ValueError::Secret)?;
                reuse.remember(&plaintext, ciphertext);
                plaintext
            }
        };
        read_clear(&plaintext)
    }
}

/// Reads a text that was sealed as a whole. What is wrong with it is not told, for the message might quote it.
fn read_clear(plaintext: &str) -> Result<PropertyValue, ValueError> {
    let hide = |error| match error {
        ValueError::Malformed(_) => {
            ValueError::Malformed(serde_json::Error::custom("what a secret holds is not a property value"))
        }
        ValueError::Secret(error) => ValueError::Secret(error),
    };
    ValueReader::new(Opening::Clear).value(plaintext).map_err(hide)
}

struct Seed<'r, 'a>(&'r mut ValueReader<'a>);

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = PropertyValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PropertyValue, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = PropertyValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property value")
    }

    fn visit_unit<E>(self) -> Result<PropertyValue, E> {
        Ok(PropertyValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<PropertyValue, E> {
        Ok(PropertyValue::Bool(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "all numbers are doubles, as in Go")]
    fn visit_i64<E>(self, value: i64) -> Result<PropertyValue, E> {
        Ok(PropertyValue::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "all numbers are doubles, as in Go")]
    fn visit_u64<E>(self, value: u64) -> Result<PropertyValue, E> {
        Ok(PropertyValue::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<PropertyValue, E> {
        Ok(PropertyValue::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<PropertyValue, E> {
        Ok(if value == UNKNOWN_STRING { PropertyValue::UNKNOWN } else { PropertyValue::String(value.to_owned()) })
    }

    fn visit_string<E>(self, value: String) -> Result<PropertyValue, E> {
        Ok(if value == UNKNOWN_STRING { PropertyValue::UNKNOWN } else { PropertyValue::String(value) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<PropertyValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Seed(&mut *self.0))? {
            list.push(item);
        }
        Ok(PropertyValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<PropertyValue, A::Error> {
        let mut map = PropertyMap::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Seed(&mut *self.0))?;
            map.insert(name, value);
        }
        match map.get(SIGNATURE_KEY) {
            None => Ok(PropertyValue::Map(map)),
            Some(PropertyValue::String(signature)) => {
                let signature = signature.clone();
                Tagged { map, reader: self.0 }.read(&signature)
            }
            Some(_) => Err(A::Error::custom("the tag of an object is not a text")),
        }
    }
}

/// An object that stands for something other than a map.
struct Tagged<'r, 'a> {
    map: PropertyMap,
    reader: &'r mut ValueReader<'a>,
}

impl Tagged<'_, '_> {
    fn read<E: serde::de::Error>(mut self, signature: &str) -> Result<PropertyValue, E> {
        match signature {
            SECRET_SIGNATURE => self.secret(),
            ASSET_SIGNATURE => self.asset(),
            ARCHIVE_SIGNATURE => self.archive(),
            RESOURCE_SIGNATURE => self.reference(),
            NUMBER_SIGNATURE => {
                let value = self.text("value")?.unwrap_or_default();
                let bits = u64::from_str_radix(&value, 16).ok().filter(|_| value.len() == 16);
                bits.map(|bits| PropertyValue::Number(f64::from_bits(bits)))
                    .ok_or_else(|| E::custom("a tagged number has not 16 hexadecimal digits"))
            }
            BYTES_SIGNATURE => {
                let value = self.text("value")?.unwrap_or_default();
                let bytes = BASE64.decode(value).map_err(|_| E::custom("a tagged string is not base64"))?;
                Ok(String::from_utf8(bytes)
                    .map_or_else(|error| PropertyValue::Bytes(error.into_bytes()), PropertyValue::String))
            }
            other => Err(E::custom(format_args!("unknown tag {other:?}"))),
        }
    }

    fn secret<E: serde::de::Error>(&mut self) -> Result<PropertyValue, E> {
        let read = match (self.text("ciphertext")?, self.text("plaintext")?) {
            (Some(ciphertext), None) => self.reader.open(&ciphertext),
            (None, Some(plaintext)) => read_clear(&plaintext),
            (None, None) => return Err(E::custom("a secret has neither ciphertext nor plaintext")),
            (Some(_), Some(_)) => return Err(E::custom("a secret has both ciphertext and plaintext")),
        };
        match read {
            Ok(value) => Ok(PropertyValue::secret_verbatim(value)),
            Err(ValueError::Malformed(error)) => Err(E::custom(error)),
            Err(ValueError::Secret(failure)) => {
                let error = E::custom(&failure);
                self.reader.failure = Some(failure);
                Err(error)
            }
        }
    }

    fn asset<E: serde::de::Error>(&mut self) -> Result<PropertyValue, E> {
        let hash = self.filled("hash")?;
        let content = if let Some(text) = self.filled("text")? {
            AssetContent::Text(text)
        } else if let Some(path) = self.filled("path")? {
            AssetContent::Path(path)
        } else if let Some(uri) = self.filled("uri")? {
            AssetContent::Uri(uri)
        } else {
            AssetContent::Elided
        };
        Ok(PropertyValue::Asset(Asset { hash, content }))
    }

    fn archive<E: serde::de::Error>(&mut self) -> Result<PropertyValue, E> {
        let hash = self.filled("hash")?;
        let content = if let Some(path) = self.filled("path")? {
            ArchiveContent::Path(path)
        } else if let Some(uri) = self.filled("uri")? {
            ArchiveContent::Uri(uri)
        } else {
            match self.map.remove("assets") {
                None | Some(PropertyValue::Null) => ArchiveContent::Elided,
                Some(PropertyValue::Map(assets)) if assets.values().all(is_asset_or_archive) => {
                    ArchiveContent::Assets(assets)
                }
                Some(_) => return Err(E::custom("an archive holds something other than assets and archives")),
            }
        };
        Ok(PropertyValue::Archive(Archive { hash, content }))
    }

    fn reference<E: serde::de::Error>(&mut self) -> Result<PropertyValue, E> {
        let urn = self.text("urn")?.unwrap_or_default().parse().map_err(E::custom)?;
        let id = match self.map.remove("id") {
            // An old bug wrote the wrapper of the id.
            Some(PropertyValue::Map(mut wrapper)) => match wrapper.remove("V") {
                Some(PropertyValue::Null) => None,
                Some(PropertyValue::String(id)) => Some(ReferenceId::from(id.as_str())),
                _ => Some(ReferenceId::Unknown),
            },
            Some(PropertyValue::String(id)) => Some(ReferenceId::from(id.as_str())),
            Some(PropertyValue::Unknown(_)) => Some(ReferenceId::Unknown),
            None | Some(PropertyValue::Null) => None,
            Some(_) => return Err(E::custom("the id in a resource reference is not a text")),
        };
        let package_version = self.filled("packageVersion")?;
        Ok(PropertyValue::Resource(ResourceReference { urn, id, package_version }))
    }

    /// A member that is a text; what looks like an unknown elsewhere is one here.
    fn text<E: serde::de::Error>(&mut self, name: &str) -> Result<Option<String>, E> {
        match self.map.remove(name) {
            None => Ok(None),
            Some(PropertyValue::String(text)) => Ok(Some(text)),
            Some(PropertyValue::Unknown(_)) => Ok(Some(UNKNOWN_STRING.to_owned())),
            Some(_) => Err(E::custom(format_args!("member {name:?} of a tagged object is not a text"))),
        }
    }

    fn filled<E: serde::de::Error>(&mut self, name: &str) -> Result<Option<String>, E> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }
}

fn is_asset_or_archive(value: &PropertyValue) -> bool {
    matches!(value, PropertyValue::Asset(_) | PropertyValue::Archive(_))
}
