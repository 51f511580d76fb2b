//! Format of the part of a Pulumi package schema that describes inputs, without other fields, and the schemas that are made of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(crate) struct Package<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) version: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) provider: Resource<'a>,
    #[serde(borrow, default)]
    pub(crate) resources: BTreeMap<Cow<'a, str>, Resource<'a>>,
    #[serde(borrow, default)]
    pub(crate) types: BTreeMap<Cow<'a, str>, ComplexType<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Resource<'a> {
    #[serde(borrow)]
    pub(crate) description: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) deprecation_message: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) input_properties: BTreeMap<Cow<'a, str>, Property<'a>>,
    #[serde(borrow)]
    pub(crate) required_inputs: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) aliases: Vec<Alias<'a>>,
}

/// Former type of a resource, or another kind of alias.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Alias<'a> {
    Token(#[serde(borrow)] Cow<'a, str>),
    Object {
        #[serde(borrow, rename = "type", default)]
        token: Option<Cow<'a, str>>,
    },
}

/// Object type, or enumeration of scalars.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ComplexType<'a> {
    #[serde(borrow)]
    pub(crate) description: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) properties: BTreeMap<Cow<'a, str>, Property<'a>>,
    #[serde(borrow)]
    pub(crate) required: Vec<Cow<'a, str>>,
    #[serde(rename = "enum")]
    pub(crate) values: Vec<EnumValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct EnumValue {
    #[serde(default)]
    pub(crate) value: Value,
}

/// Property, or type of the items of a list or a map. One type for both, because the fields of the type are inlined in
/// the property, and a separate type would need a slower `flatten`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Property<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow, rename = "$ref")]
    pub(crate) reference: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) items: Option<Box<Property<'a>>>,
    #[serde(borrow)]
    pub(crate) additional_properties: Option<Box<Property<'a>>>,
    #[serde(borrow)]
    pub(crate) one_of: Vec<Property<'a>>,
    #[serde(borrow)]
    pub(crate) description: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) deprecation_message: Cow<'a, str>,
    pub(crate) default: Option<Value>,
    #[serde(rename = "const")]
    pub(crate) constant: Option<Value>,
    pub(crate) secret: bool,
    pub(crate) will_replace_on_changes: bool,
}

/// Keyword of the shared types of a schema: `#/$defs/<key>`.
pub const DEFINITIONS: &str = "$defs";

/// Schemas of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageSchemas {
    /// Name of the package.
    pub name: String,
    /// Version of the package. Empty if the package schema has none.
    pub version: String,
    /// Schema of the inputs of each resource type, by type token. References point into
    /// [`PackageSchemas::definitions`].
    pub resources: BTreeMap<String, Value>,
    /// Former types (aliases) of each resource type that has some, by type token.
    pub former_types: BTreeMap<String, Vec<String>>,
    /// Schema of the provider's configuration.
    pub configuration: Value,
    /// Types to which the schemas refer, by the part of the reference after `#/$defs/`, without JSON pointer escapes.
    pub definitions: BTreeMap<String, Value>,
}
