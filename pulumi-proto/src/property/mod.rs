//! Property values: the inputs and outputs of resources.
//!
//! Input: values in code, decoded from `Struct` ([`wire`]) or from a state file. Output: the same. Excluded: I/O,
//! encryption, decisions about changes.

pub mod hash;
pub mod path;
pub mod secretness;
pub(crate) mod unknown;
pub mod wire;

use std::collections::BTreeMap;
use std::fmt;

use crate::resource_id::ReferenceId;
use crate::urn::Urn;

pub use unknown::{UNKNOWN_STRING, UnknownKind};

/// Key that marks an object as a tagged object instead of a map (docs/spec/provider-protocol.md#5.2).
pub const SIGNATURE_KEY: &str = "4dabf18193072939515e22adb298388d";
/// Signature of a secret.
pub const SECRET_SIGNATURE: &str = "1b47061264138c4ac30d75fd1eb44270";
/// Signature of an asset.
pub const ASSET_SIGNATURE: &str = "c44067f5952c0a294b673a41bacd8c17";
/// Signature of an archive.
pub const ARCHIVE_SIGNATURE: &str = "0def7320c3a5731c473e5ecbe6d01bc7";
/// Signature of a resource reference.
pub const RESOURCE_SIGNATURE: &str = "5cf8f73096256a8f31e491e813e4eb8e";
/// Signature of an output value. Sent only to components and method calls.
pub const OUTPUT_SIGNATURE: &str = "d0e6a833031e9bbcd3f4e8bde6ca49a4";
/// Signature of a string that is not UTF-8.
pub const BYTES_SIGNATURE: &str = "803fd3297a5875dc03ca845dda5d2a98";
/// Signature of a number that JSON cannot represent (state files only).
pub const NUMBER_SIGNATURE: &str = "8ad145fe-0d11-4827-bfd7-1abcbf086f5c";

/// Properties of a resource by name, sorted by the bytes of the name.
pub type PropertyMap = BTreeMap<String, PropertyValue>;

/// Property value.
///
/// `==` compares the structure including secrets and outputs. [`PropertyValue::same_as`] is the comparison of the
/// engine.
#[derive(Clone, Debug, PartialEq)]
pub enum PropertyValue {
    /// Explicit null.
    Null,
    /// Bool.
    Bool(bool),
    /// Number. All numbers are doubles, so integers beyond 2^53 lose precision.
    Number(f64),
    /// String.
    String(String),
    /// String that is not UTF-8.
    Bytes(Vec<u8>),
    /// List.
    List(Vec<PropertyValue>),
    /// Map.
    Map(PropertyMap),
    /// Asset: a blob that the provider reads.
    Asset(Asset),
    /// Archive: a set of blobs that the provider reads.
    Archive(Archive),
    /// Reference to another resource.
    Resource(ResourceReference),
    /// Secret: redacted in logs and encrypted at rest.
    Secret(Secret),
    /// Output value with its dependencies. Sent only to components and method calls.
    Output(Box<OutputValue>),
    /// Unknown value, not computed yet.
    Unknown(UnknownKind),
}

/// Secret value. `Debug` shows `[secret]`. [`Secret::expose`] and [`Secret::into_exposed`] return the value.
#[derive(Clone, PartialEq)]
pub struct Secret(Box<PropertyValue>);

impl Secret {
    /// Returns a reference to the plain value.
    pub fn expose(&self) -> &PropertyValue {
        &self.0
    }

    /// Returns the plain value.
    pub fn into_exposed(self) -> PropertyValue {
        *self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Blob. Two assets are equal if their hashes are equal.
#[derive(Clone, Debug)]
pub struct Asset {
    /// SHA-256 of the content in lower-case hexadecimal, never empty. `None` if it was not computed.
    pub hash: Option<String>,
    /// Content, or its location.
    pub content: AssetContent,
}

/// Content of an asset, or its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssetContent {
    /// Neither content nor location, only the hash. An asset with the hash of empty content counts as an empty text.
    Elided,
    /// Text that is the content.
    Text(String),
    /// Path of a file, relative to the provider's working directory.
    Path(String),
    /// URL with the scheme `http`, `https` or `file`.
    Uri(String),
}

/// Set of blobs. Two archives are equal if their hashes are equal.
#[derive(Clone, Debug)]
pub struct Archive {
    /// SHA-256 in lower-case hexadecimal, never empty. `None` if it was not computed.
    pub hash: Option<String>,
    /// Content, or its location.
    pub content: ArchiveContent,
}

/// Content of an archive, or its location.
#[derive(Clone, Debug, PartialEq)]
pub enum ArchiveContent {
    /// Neither content nor location, only the hash.
    Elided,
    /// Members by name, each a [`PropertyValue::Asset`] or [`PropertyValue::Archive`].
    Assets(PropertyMap),
    /// Path of an archive file or a folder.
    Path(String),
    /// URL of an archive file.
    Uri(String),
}

impl PartialEq for Asset {
    fn eq(&self, other: &Self) -> bool {
        if self.hash.is_none() && other.hash.is_none() {
            self.content == other.content
        } else {
            self.hash == other.hash
        }
    }
}

impl PartialEq for Archive {
    fn eq(&self, other: &Self) -> bool {
        if self.hash.is_none() && other.hash.is_none() {
            self.content == other.content
        } else {
            self.hash == other.hash
        }
    }
}

/// Reference to a resource as a value.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceReference {
    /// URN of the resource.
    pub urn: Urn,
    /// Id of the resource. `None` for a component.
    pub id: Option<ReferenceId>,
    /// Version of the package that defines the resource's type, never empty.
    pub package_version: Option<String>,
}

/// Value with its secretness and its dependencies.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputValue {
    /// Value. `None` is unknown.
    pub value: Option<PropertyValue>,
    /// True if the value is secret.
    pub secret: bool,
    /// URNs of the resources that the value depends on.
    pub dependencies: Vec<Urn>,
}

impl PropertyValue {
    /// Unknown of the kind that every SDK supports.
    pub const UNKNOWN: Self = Self::Unknown(UnknownKind::String);

    /// Wraps a value in a secret. Returns a secret unchanged.
    pub fn secret(value: PropertyValue) -> Self {
        match value {
            Self::Secret(_) => value,
            value => Self::Secret(Secret(Box::new(value))),
        }
    }

    /// Wraps a value in a secret, even if it is a secret already, as found on the wire or in a state.
    pub fn secret_verbatim(value: PropertyValue) -> Self {
        Self::Secret(Secret(Box::new(value)))
    }

    /// Returns the text of a plain string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the members of a plain map.
    pub fn as_map(&self) -> Option<&PropertyMap> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns true if the value itself is a secret or a secret output value.
    pub fn is_secret(&self) -> bool {
        match self {
            Self::Secret(_) => true,
            Self::Output(output) => output.secret,
            _ => false,
        }
    }

    /// Returns true if the value is a secret or contains one at any depth.
    pub fn contains_secrets(&self) -> bool {
        self.is_secret() || self.any_child(Self::contains_secrets)
    }

    /// Returns true if the value is unknown or contains an unknown at any depth.
    pub fn contains_unknowns(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Output(output) if output.value.is_none() => true,
            other => other.any_child(Self::contains_unknowns),
        }
    }

    /// Returns true if the predicate is true for a direct child of this value.
    #[inline]
    fn any_child(&self, predicate: impl Fn(&Self) -> bool) -> bool {
        match self {
            Self::List(items) => items.iter().any(predicate),
            Self::Map(map) => map.values().any(predicate),
            Self::Archive(Archive { content: ArchiveContent::Assets(assets), .. }) => assets.values().any(predicate),
            Self::Secret(secret) => predicate(secret.expose()),
            Self::Output(output) => output.value.as_ref().is_some_and(predicate),
            _ => false,
        }
    }

    /// Returns the value without secrets and output values at any depth. Unknown output values become unknowns.
    #[must_use]
    pub fn without_wrappers(&self) -> Self {
        match self {
            Self::Secret(secret) => secret.expose().without_wrappers(),
            Self::Output(output) => output.value.as_ref().map_or(Self::UNKNOWN, Self::without_wrappers),
            Self::List(items) => Self::List(items.iter().map(Self::without_wrappers).collect()),
            Self::Map(map) => {
                Self::Map(map.iter().map(|(key, value)| (key.clone(), value.without_wrappers())).collect())
            }
            other => other.clone(),
        }
    }

    /// Returns the value without output values at any depth. Secret output values become secrets, unknown ones
    /// unknowns.
    #[must_use]
    pub fn without_outputs(self) -> Self {
        match self {
            Self::Output(output) => match (output.value, output.secret) {
                (None, false) => Self::UNKNOWN,
                (None, true) => Self::secret(Self::UNKNOWN),
                (Some(value), false) => value.without_outputs(),
                (Some(value), true) => Self::secret(value.without_outputs()),
            },
            Self::Secret(secret) => Self::secret(secret.into_exposed().without_outputs()),
            Self::List(items) => Self::List(items.into_iter().map(Self::without_outputs).collect()),
            Self::Map(map) => Self::Map(map.into_iter().map(|(key, value)| (key, value.without_outputs())).collect()),
            other => other,
        }
    }

    /// Appends the dependencies of output values at any depth to `found`.
    pub fn collect_dependencies(&self, found: &mut Vec<Urn>) {
        match self {
            Self::Output(output) => {
                found.extend(output.dependencies.iter().cloned());
                output.value.iter().for_each(|value| value.collect_dependencies(found));
            }
            Self::Secret(secret) => secret.expose().collect_dependencies(found),
            Self::List(items) => items.iter().for_each(|item| item.collect_dependencies(found)),
            Self::Map(map) => map.values().for_each(|value| value.collect_dependencies(found)),
            _ => {}
        }
    }

    /// Returns true if the engine considers the values equal. Unlike `==`, a null member of a map equals an absent one,
    /// and references are equal if URN and id are. Secrets and output values differ from their plain values: see
    /// [`PropertyValue::without_wrappers`].
    pub fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_as(b)),
            (Self::Map(a), Self::Map(b)) => same_maps(a, b),
            (Self::Secret(a), Self::Secret(b)) => a.expose().same_as(b.expose()),
            (Self::Resource(a), Self::Resource(b)) => a.urn == b.urn && a.id == b.id,
            (a, b) => a == b,
        }
    }
}

/// Compares property maps like [`PropertyValue::same_as`].
pub fn same_maps(a: &PropertyMap, b: &PropertyMap) -> bool {
    let null = PropertyValue::Null;
    a.iter().all(|(key, value)| value.same_as(b.get(key).unwrap_or(&null)))
        && b.iter().all(|(key, value)| a.contains_key(key) || *value == null)
}

impl From<bool> for PropertyValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for PropertyValue {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for PropertyValue {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for PropertyValue {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<Vec<PropertyValue>> for PropertyValue {
    fn from(value: Vec<PropertyValue>) -> Self {
        Self::List(value)
    }
}

impl From<PropertyMap> for PropertyValue {
    fn from(value: PropertyMap) -> Self {
        Self::Map(value)
    }
}
