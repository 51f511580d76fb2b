//! Stored form of property values (docs/spec/state-and-secrets.md#4.4).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pulumi_proto::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    NUMBER_SIGNATURE, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ResourceReference, SECRET_SIGNATURE,
    SIGNATURE_KEY, UNKNOWN_STRING,
};
use pulumi_proto::resource_id::ReferenceId;
use serde::ser::{Error as _, Serialize, SerializeMap as _, Serializer};

use super::encryption::Encryption;
use super::go_json::{self, Escaping};

/// Property value to be written.
#[derive(Clone, Copy)]
pub(super) struct ValueDto<'v, 'e> {
    value: &'v PropertyValue,
    encryption: &'v Encryption<'e>,
}

/// Property map to be written.
#[derive(Clone, Copy)]
pub(super) struct PropertiesDto<'v, 'e> {
    map: &'v PropertyMap,
    encryption: &'v Encryption<'e>,
}

impl<'v, 'e> ValueDto<'v, 'e> {
    pub(super) fn new(value: &'v PropertyValue, encryption: &'v Encryption<'e>) -> Self {
        Self { value, encryption }
    }

    /// Writes a secret. The encrypted text is the value as JSON, escaped for HTML, with nested secrets in plaintext.
    fn serialize_secret<S: Serializer>(self, serializer: S, value: &PropertyValue) -> Result<S::Ok, S::Error> {
        let encryption = self.encryption.for_nested();
        let plaintext = go_json::to_string(&ValueDto::new(value, &encryption), Escaping::Html);
        let stored = self.encryption.encrypt(plaintext.map_err(S::Error::custom)?)?;
        serialize_tagged(serializer, SECRET_SIGNATURE, [stored.member()])
    }

    fn serialize_archive<S: Serializer>(self, serializer: S, archive: &Archive) -> Result<S::Ok, S::Error> {
        let content = match &archive.content {
            ArchiveContent::Elided => None,
            ArchiveContent::Path(path) => Some(("path", path.as_str())),
            ArchiveContent::Uri(uri) => Some(("uri", uri.as_str())),
            ArchiveContent::Assets(assets) => {
                let mut members = serializer.serialize_map(None)?;
                members.serialize_entry(SIGNATURE_KEY, ARCHIVE_SIGNATURE)?;
                members.serialize_entry("assets", &PropertiesDto::new(assets, self.encryption))?;
                if let Some(hash) = &archive.hash {
                    members.serialize_entry("hash", hash)?;
                }
                return members.end();
            }
        };
        serialize_tagged_content(serializer, ARCHIVE_SIGNATURE, archive.hash.as_deref(), content)
    }
}

impl Serialize for ValueDto<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            PropertyValue::Null => serializer.serialize_unit(),
            PropertyValue::Bool(value) => serializer.serialize_bool(*value),
            PropertyValue::Number(number) if number.is_finite() => serializer.serialize_f64(*number),
            PropertyValue::Number(number) => {
                let bits = format!("{:016x}", number.to_bits());
                serialize_tagged(serializer, NUMBER_SIGNATURE, [("value", bits.as_str())])
            }
            PropertyValue::String(text) => serializer.serialize_str(text),
            PropertyValue::Bytes(bytes) => {
                serialize_tagged(serializer, BYTES_SIGNATURE, [("value", BASE64.encode(bytes).as_str())])
            }
            PropertyValue::List(items) => {
                serializer.collect_seq(items.iter().map(|item| Self::new(item, self.encryption)))
            }
            PropertyValue::Map(map) => PropertiesDto::new(map, self.encryption).serialize(serializer),
            PropertyValue::Asset(value) => serialize_asset(serializer, value),
            PropertyValue::Archive(archive) => self.serialize_archive(serializer, archive),
            PropertyValue::Resource(value) => serialize_reference(serializer, value),
            PropertyValue::Secret(secret) => self.serialize_secret(serializer, secret.expose()),
            PropertyValue::Output(output) => {
                let value = output.value.as_ref().unwrap_or(&PropertyValue::UNKNOWN);
                if output.secret {
                    self.serialize_secret(serializer, value)
                } else {
                    Self::new(value, self.encryption).serialize(serializer)
                }
            }
            PropertyValue::Unknown(_) => serializer.serialize_str(UNKNOWN_STRING),
        }
    }
}

impl<'v, 'e> PropertiesDto<'v, 'e> {
    pub(super) fn new(map: &'v PropertyMap, encryption: &'v Encryption<'e>) -> Self {
        Self { map, encryption }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

impl Serialize for PropertiesDto<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.map.iter().map(|(name, value)| (name, ValueDto::new(value, self.encryption))))
    }
}

fn serialize_asset<S: Serializer>(serializer: S, asset: &Asset) -> Result<S::Ok, S::Error> {
    let content = match &asset.content {
        AssetContent::Elided => None,
        AssetContent::Text(text) => Some(("text", text.as_str())),
        AssetContent::Path(path) => Some(("path", path.as_str())),
        AssetContent::Uri(uri) => Some(("uri", uri.as_str())),
    };
    serialize_tagged_content(serializer, ASSET_SIGNATURE, asset.hash.as_deref(), content)
}

fn serialize_reference<S: Serializer>(serializer: S, reference: &ResourceReference) -> Result<S::Ok, S::Error> {
    let id = match &reference.id {
        Some(ReferenceId::Known(id)) => Some(id.as_str()),
        Some(ReferenceId::Unknown) => Some(""),
        None => None,
    };
    // Pulumi writes this member even if there is no version.
    let package_version = reference.package_version.as_deref().unwrap_or_default();
    let others = [("packageVersion", package_version), ("urn", reference.urn.as_str())];
    serialize_tagged(serializer, RESOURCE_SIGNATURE, id.map(|id| ("id", id)).into_iter().chain(others))
}

/// Writes a tagged object whose other members are strings, sorted by name.
fn serialize_tagged<'m, S: Serializer>(
    serializer: S,
    signature: &'m str,
    members: impl IntoIterator<Item = (&'m str, &'m str)>,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map([(SIGNATURE_KEY, signature)].into_iter().chain(members))
}

/// Writes an asset or an archive. Pulumi omits empty members.
fn serialize_tagged_content<S: Serializer>(
    serializer: S,
    signature: &str,
    hash: Option<&str>,
    content: Option<(&str, &str)>,
) -> Result<S::Ok, S::Error> {
    let content = content.filter(|(_, text)| !text.is_empty());
    serialize_tagged(serializer, signature, hash.map(|hash| ("hash", hash)).into_iter().chain(content))
}
