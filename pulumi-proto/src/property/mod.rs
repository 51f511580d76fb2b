//! Property values: what the inputs and outputs of resources are made of.
//!
//! Enters: values built by hand, decoded from `Struct` ([`wire`]) or from a state file. Leaves: the same. Never here:
//! I/O, encryption, decisions about what changed.

pub mod hash;
pub mod path;
mod unknown;
pub mod wire;

use std::collections::BTreeMap;
use std::fmt;

use crate::resource_id::ReferenceId;
use crate::urn::Urn;

pub use unknown::{UNKNOWN_STRING, UnknownKind};

/// The key that marks an object as something other than a map (provider protocol, tagged objects).
pub const SIGNATURE_KEY: &str = "4dabf18193072939515e22adb298388d";
/// Signature of a secret.
pub const SECRET_SIGNATURE: &str = "1b47061264138c4ac30d75fd1eb44270";
/// Signature of an asset.
pub const ASSET_SIGNATURE: &str = "c44067f5952c0a294b673a41bacd8c17";
/// Signature of an archive.
pub const ARCHIVE_SIGNATURE: &str = "0def7320c3a5731c473e5ecbe6d01bc7";
/// Signature of a resource reference.
pub const RESOURCE_SIGNATURE: &str = "5cf8f73096256a8f31e491e813e4eb8e";
/// Signature of an output value; travels only to components and method calls.
pub const OUTPUT_SIGNATURE: &str = "d0e6a833031e9bbcd3f4e8bde6ca49a4";
/// Signature of a string that is not UTF-8.
pub const BYTES_SIGNATURE: &str = "803fd3297a5875dc03ca845dda5d2a98";
/// Signature of a number that JSON cannot hold (state files only).
pub const NUMBER_SIGNATURE: &str = "8ad145fe-0d11-4827-bfd7-1abcbf086f5c";

/// The properties of a resource by name, sorted by the bytes of the name.
pub type PropertyMap = BTreeMap<String, PropertyValue>;

/// One property value.
///
/// `==` compares structure, wrappers included; [`PropertyValue::same_as`] is the engine's own notion of "no change".
#[derive(Clone, Debug, PartialEq)]
pub enum PropertyValue {
    /// Nothing, but said explicitly.
    Null,
    /// True or false.
    Bool(bool),
    /// All numbers are doubles; integers beyond 2^53 lose precision.
    Number(f64),
    /// A text.
    String(String),
    /// A string that is not UTF-8.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<PropertyValue>),
    /// A map.
    Map(PropertyMap),
    /// A blob that the provider will read.
    Asset(Asset),
    /// A set of blobs that the provider will read.
    Archive(Archive),
    /// A reference to another resource.
    Resource(ResourceReference),
    /// A value to be kept from logs and encrypted at rest.
    Secret(Secret),
    /// A value with the resources it came from; travels only to components and method calls.
    Output(Box<OutputValue>),
    /// Not computed yet.
    Unknown(UnknownKind),
}

/// A secret value. Shows itself as `[secret]`; only [`Secret::expose`] gives it away.
#[derive(Clone, PartialEq)]
pub struct Secret(Box<PropertyValue>);

impl Secret {
    /// The value inside.
    pub fn expose(&self) -> &PropertyValue {
        &self.0
    }

    /// The value inside, taken out.
    pub fn into_exposed(self) -> PropertyValue {
        *self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A blob. Equal to another when the hashes are equal.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Lower-case hexadecimal SHA-256 of the content; never empty. `None` where nobody computed it.
    pub hash: Option<String>,
    /// Where the content is.
    pub content: AssetContent,
}

/// Where the content of an asset is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssetContent {
    /// Not available: only the hash is known (or, where the hash is that of nothing, an empty text).
    Elided,
    /// The content itself.
    Text(String),
    /// A file, relative to the provider's working directory.
    Path(String),
    /// A URL: `http`, `https` or `file`.
    Uri(String),
}

/// A set of blobs. Equal to another when the hashes are equal.
#[derive(Clone, Debug)]
pub struct Archive {
    /// Lower-case hexadecimal SHA-256; never empty. `None` where nobody computed it.
    pub hash: Option<String>,
    /// Where the content is.
    pub content: ArchiveContent,
}

/// Where the content of an archive is.
#[derive(Clone, Debug, PartialEq)]
pub enum ArchiveContent {
    /// Not available: only the hash is known.
    Elided,
    /// Members by name, each a [`PropertyValue::Asset`] or [`PropertyValue::Archive`].
    Assets(PropertyMap),
    /// An archive file or a folder.
    Path(String),
    /// The URL of an archive file.
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

/// A reference to a resource as a value.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceReference {
    /// The resource's URN.
    pub urn: Urn,
    /// Its id; components have none.
    pub id: Option<ReferenceId>,
    /// The version of the package that defines the resource's type; never empty.
    pub package_version: Option<String>,
}

/// A value together with what is known about where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputValue {
    /// The value; `None` is unknown.
    pub value: Option<PropertyValue>,
    /// Whether the value is secret.
    pub secret: bool,
    /// The resources the value depends on.
    pub dependencies: Vec<Urn>,
}

impl PropertyValue {
    /// An unknown of the kind that every SDK understands.
    pub const UNKNOWN: Self = Self::Unknown(UnknownKind::String);

    /// Wraps a value as a secret. A secret is not wrapped twice.
    pub fn secret(value: PropertyValue) -> Self {
        match value {
            Self::Secret(_) => value,
            value => Self::Secret(Secret(Box::new(value))),
        }
    }

    /// Wraps a value as a secret, even where it is one already (as found on the wire or in a state).
    pub fn secret_verbatim(value: PropertyValue) -> Self {
        Self::Secret(Secret(Box::new(value)))
    }

    /// The text, if this is a plain string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The map, if this is a plain map.
    pub fn as_map(&self) -> Option<&PropertyMap> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Whether the value itself is a secret (an output value marked secret counts).
    pub fn is_secret(&self) -> bool {
        match self {
            Self::Secret(_) => true,
            Self::Output(output) => output.secret,
            _ => false,
        }
    }

    /// Whether the value is a secret or holds one anywhere.
    pub fn contains_secrets(&self) -> bool {
        self.is_secret() || self.any_child(Self::contains_secrets)
    }

    /// Whether the value is unknown or holds an unknown anywhere.
    pub fn contains_unknowns(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Output(output) if output.value.is_none() => true,
            other => other.any_child(Self::contains_unknowns),
        }
    }

    /// Whether the predicate holds for a value directly inside this one.
    fn any_child(&self, predicate: fn(&Self) -> bool) -> bool {
        match self {
            Self::List(items) => items.iter().any(predicate),
            Self::Map(map) => map.values().any(predicate),
            Self::Archive(Archive { content: ArchiveContent::Assets(assets), .. }) => assets.values().any(predicate),
            Self::Secret(secret) => predicate(secret.expose()),
            Self::Output(output) => output.value.as_ref().is_some_and(predicate),
            _ => false,
        }
    }

    /// The value with every secret and output wrapper taken off, at every depth. Unknown outputs become unknowns.
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

    /// The value with every output wrapper taken off, at every depth: secret where the output was, unknown where it was.
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

    /// Adds the resources that output values depend on, at every depth.
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

    /// Whether going from this value to the other is no change: as `==`, but a null member of a map equals an absent
    /// one, and references are equal when URN and id are. Wrappers count: see [`PropertyValue::without_wrappers`].
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

/// [`PropertyValue::same_as`] for whole property maps.
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
