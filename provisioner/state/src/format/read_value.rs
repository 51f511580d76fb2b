//! Reads property values from the JSON of a state (docs/spec/state-and-secrets.md#4.4).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pulumi_proto::property::wire::MAX_DEPTH;
use pulumi_proto::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    NUMBER_SIGNATURE, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ResourceReference, SECRET_SIGNATURE,
    SIGNATURE_KEY, UNKNOWN_STRING,
};
use pulumi_proto::resource_id::ReferenceId;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::secrets::{CiphertextReuse, Crypter, SecretsError};

/// Maximum nesting of lists and objects in the JSON of a value: an archive in an archive is two objects.
pub(super) const MAX_NESTING: usize = 2 * MAX_DEPTH + 2;

/// Treatment of the secrets of a text while it is read.
pub(crate) enum SecretDecryption<'a> {
    /// No key is available: a secret is an error.
    NoKey,
    /// Secrets are not decrypted, and read as null.
    KeepEncrypted,
    /// Plaintext in place of a ciphertext, for secrets nested in a secret: the outer one is encrypted as a whole.
    Nested,
    /// Secrets are decrypted with the key; their ciphertexts are recorded for reuse.
    WithKey(&'a dyn Crypter, &'a mut CiphertextReuse),
}

impl SecretDecryption<'_> {
    /// Returns a constructor of equal values for other threads; `None` if ciphertexts are recorded.
    pub(super) fn for_other_threads(&self) -> Option<fn() -> SecretDecryption<'static>> {
        match self {
            Self::NoKey => Some(|| SecretDecryption::NoKey),
            Self::KeepEncrypted => Some(|| SecretDecryption::KeepEncrypted),
            Self::Nested => Some(|| SecretDecryption::Nested),
            Self::WithKey(..) => None,
        }
    }
}

/// Reason why a value could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// The text is not JSON, or a tagged object in it is malformed.
    #[error("a property value is malformed")]
    Malformed(#[source] serde_json::Error),
    /// A secret could not be decrypted.
    #[error(transparent)]
    Secret(SecretsError),
}

/// Reader of property values.
pub(super) struct ValueReader<'a> {
    decryption: SecretDecryption<'a>,
    /// Number of lists and objects around the value that is read.
    depth: usize,
    /// Error of a secret, which is kept here because a serde error can only carry its text.
    failure: Option<SecretsError>,
}

impl<'a> ValueReader<'a> {
    pub(super) fn new(decryption: SecretDecryption<'a>) -> Self {
        Self { decryption, depth: 0, failure: None }
    }

    /// Reads one value.
    ///
    /// # Errors
    /// [`ValueError`] if the text is not a value, or a secret in it cannot be decrypted.
    pub(super) fn read_value(&mut self, text: &str) -> Result<PropertyValue, ValueError> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        // The limit of the parser is lower than that of values.
        deserializer.disable_recursion_limit();
        let value = Seed(self).deserialize(&mut deserializer).and_then(|value| {
            deserializer.end()?;
            Ok(value)
        });
        value.map_err(|error| self.failure.take().map_or(ValueError::Malformed(error), ValueError::Secret))
    }

    /// Reads a property map.
    ///
    /// # Errors
    /// [`ValueError`] if the text is not an object, or a secret in it cannot be decrypted.
    pub(super) fn read_map(&mut self, text: &str) -> Result<PropertyMap, ValueError> {
        match self.read_value(text)? {
            PropertyValue::Map(map) => Ok(map),
            _ => Err(ValueError::Malformed(serde_json::Error::custom("expected an object"))),
        }
    }

    fn decrypt(&mut self, ciphertext: &str) -> Result<PropertyValue, ValueError> {
        let plaintext = match &mut self.decryption {
            SecretDecryption::NoKey => return Err(ValueError::Secret(SecretsError::KeyNeeded)),
            SecretDecryption::KeepEncrypted => return Ok(PropertyValue::Null),
            SecretDecryption::Nested => ciphertext.to_owned(),
            SecretDecryption::WithKey(crypter, reuse) => {
                let plaintext = crypter.decrypt(ciphertext).map_err(ValueError::Secret)?;
                reuse.record(&plaintext, ciphertext);
                plaintext
            }
        };
        read_plaintext(&plaintext, self.depth)
    }

    /// Reads the content of a list or an object.
    fn descend<T, E: serde::de::Error>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        if self.depth == MAX_NESTING {
            return Err(E::custom(format_args!("values nest deeper than {MAX_NESTING} levels")));
        }
        self.depth += 1;
        let content = read(self);
        self.depth -= 1;
        content
    }
}

/// Reads the plaintext of a secret inside `depth` lists and objects. The parse error is not reported, because its message
/// might quote the secret.
fn read_plaintext(plaintext: &str, depth: usize) -> Result<PropertyValue, ValueError> {
    let hide = |error| match error {
        ValueError::Malformed(_) => {
            ValueError::Malformed(serde_json::Error::custom("the content of a secret is not a property value"))
        }
        ValueError::Secret(error) => ValueError::Secret(error),
    };
    let mut reader = ValueReader { depth, ..ValueReader::new(SecretDecryption::Nested) };
    reader.read_value(plaintext).map_err(hide)
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
        self.0.descend(|reader| {
            let mut list = Vec::new();
            while let Some(item) = items.next_element_seed(Seed(&mut *reader))? {
                list.push(item);
            }
            Ok(PropertyValue::List(list))
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<PropertyValue, A::Error> {
        let map = self.0.descend(|reader| {
            let mut map = PropertyMap::new();
            while let Some(name) = members.next_key::<String>()? {
                let value = members.next_value_seed(Seed(&mut *reader))?;
                map.insert(name, value);
            }
            Ok(map)
        })?;
        match map.get(SIGNATURE_KEY) {
            None => Ok(PropertyValue::Map(map)),
            Some(PropertyValue::String(signature)) => {
                let signature = signature.clone();
                Tagged { map, reader: self.0 }.read(&signature)
            }
            Some(_) => Err(A::Error::custom("the tag of an object is not a string")),
        }
    }
}

/// Object with a signature, which represents a value other than a map.
struct Tagged<'r, 'a> {
    map: PropertyMap,
    reader: &'r mut ValueReader<'a>,
}

impl Tagged<'_, '_> {
    fn read<E: serde::de::Error>(mut self, signature: &str) -> Result<PropertyValue, E> {
        match signature {
            SECRET_SIGNATURE => self.read_secret(),
            ASSET_SIGNATURE => self.read_asset(),
            ARCHIVE_SIGNATURE => self.read_archive(),
            RESOURCE_SIGNATURE => self.read_reference(),
            NUMBER_SIGNATURE => {
                let value = self.take_text("value")?.unwrap_or_default();
                let bits = u64::from_str_radix(&value, 16).ok().filter(|_| value.len() == 16);
                bits.map(|bits| PropertyValue::Number(f64::from_bits(bits)))
                    .ok_or_else(|| E::custom("a tagged number does not have 16 hexadecimal digits"))
            }
            BYTES_SIGNATURE => {
                let value = self.take_text("value")?.unwrap_or_default();
                let bytes = BASE64.decode(value).map_err(|_| E::custom("a tagged string is not base64"))?;
                Ok(String::from_utf8(bytes)
                    .map_or_else(|error| PropertyValue::Bytes(error.into_bytes()), PropertyValue::String))
            }
            other => Err(E::custom(format_args!("unknown tag {other:?}"))),
        }
    }

    fn read_secret<E: serde::de::Error>(&mut self) -> Result<PropertyValue, E> {
        let read = match (self.take_text("ciphertext")?, self.take_text("plaintext")?) {
            (Some(ciphertext), None) => self.reader.decrypt(&ciphertext),
            (None, Some(plaintext)) => read_plaintext(&plaintext, self.reader.depth),
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

    fn read_asset<E: serde::de::Error>(&mut self) -> Result<PropertyValue, E> {
        let hash = self.take_non_empty("hash")?;
        let content = if let Some(text) = self.take_non_empty("text")? {
            AssetContent::Text(text)
        } else if let Some(path) = self.take_non_empty("path")? {
            AssetContent::Path(path)
        } else if let Some(uri) = self.take_non_empty("uri")? {
            AssetContent::Uri(uri)
        } else {
            AssetContent::Elided
        };
        Ok(PropertyValue::Asset(Asset { hash, content }))
    }

    fn read_archive<E: serde::de::Error>(&mut self) -> Result<PropertyValue, E> {
        let hash = self.take_non_empty("hash")?;
        let content = if let Some(path) = self.take_non_empty("path")? {
            ArchiveContent::Path(path)
        } else if let Some(uri) = self.take_non_empty("uri")? {
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

    fn read_reference<E: serde::de::Error>(&mut self) -> Result<PropertyValue, E> {
        let urn = self.take_text("urn")?.unwrap_or_default().parse().map_err(E::custom)?;
        let id = match self.map.remove("id") {
            // Old versions of Pulumi wrote a wrapper of the id.
            Some(PropertyValue::Map(mut wrapper)) => match wrapper.remove("V") {
                Some(PropertyValue::Null) => None,
                Some(PropertyValue::String(id)) => Some(ReferenceId::from(id.as_str())),
                _ => Some(ReferenceId::Unknown),
            },
            Some(PropertyValue::String(id)) => Some(ReferenceId::from(id.as_str())),
            Some(PropertyValue::Unknown(_)) => Some(ReferenceId::Unknown),
            None | Some(PropertyValue::Null) => None,
            Some(_) => return Err(E::custom("the id in a resource reference is not a string")),
        };
        let package_version = self.take_non_empty("packageVersion")?;
        Ok(PropertyValue::Resource(ResourceReference { urn, id, package_version }))
    }

    /// Removes and returns a string member. The string that means unknown elsewhere is an ordinary string here.
    fn take_text<E: serde::de::Error>(&mut self, name: &str) -> Result<Option<String>, E> {
        match self.map.remove(name) {
            None => Ok(None),
            Some(PropertyValue::String(text)) => Ok(Some(text)),
            Some(PropertyValue::Unknown(_)) => Ok(Some(UNKNOWN_STRING.to_owned())),
            Some(_) => Err(E::custom(format_args!("member {name:?} of a tagged object is not a string"))),
        }
    }

    fn take_non_empty<E: serde::de::Error>(&mut self, name: &str) -> Result<Option<String>, E> {
        Ok(self.take_text(name)?.filter(|text| !text.is_empty()))
    }
}

fn is_asset_or_archive(value: &PropertyValue) -> bool {
    matches!(value, PropertyValue::Asset(_) | PropertyValue::Archive(_))
}

/// Nesting around a property value: file, checkpoint, latest, list of pending operations, operation, resource.
const OUTER_NESTING: usize = 6;
/// Maximum nesting of a state with values that can be read.
pub(super) const MAX_TEXT_NESTING: usize = MAX_NESTING + OUTER_NESTING;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeply_nested_value_is_an_error_instead_of_a_stack_overflow() {
        let nested = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let read = |text: &str| ValueReader::new(SecretDecryption::Nested).read_value(text);
        read(&nested(MAX_NESTING)).unwrap();
        let error = bridge::error::chain(&read(&nested(100_000)).unwrap_err());
        assert!(error.contains("values nest deeper than 502 levels"), "{error}");
        // The levels outside of a secret count, too.
        let secret = |depth| {
            let (tag, content) = (SECRET_SIGNATURE, nested(depth));
            format!("{{\"{SIGNATURE_KEY}\":\"{tag}\",\"plaintext\":\"{content}\"}}")
        };
        read(&secret(MAX_NESTING)).unwrap();
        read(&format!("[{}]", secret(MAX_NESTING))).unwrap_err();
    }
}
