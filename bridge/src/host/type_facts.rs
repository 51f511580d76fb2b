//! What the schema of a package (GetSchema) says of its types that whoever registers them has to know. Programs have it
//! from generated SDKs, or from the host of their language.
//!
//! A schema may have tens of megabytes, so what one says is remembered for the digest that pins its package.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::fs::{Access, create_folders, read_if_there, write_atomically};
use crate::plugin::Sha256Digest;

/// Types by their tokens; `pulumi:providers:PACKAGE` is the provider itself. Of a type that is not named here there is
/// nothing to know.
pub type PackageTypes = BTreeMap<String, TypeFacts>;

/// What is to be known of a type to register a resource of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TypeFacts {
    /// Its plugin makes it, children and all (Construct).
    pub is_component: bool,
    /// Inputs that are secret whatever they come from.
    pub secret_inputs: Vec<String>,
    /// Outputs that are secret.
    pub secret_outputs: Vec<String>,
    /// Inputs that have but one value: booleans, numbers and texts.
    pub constants: BTreeMap<String, serde_json::Value>,
    /// Property paths a change of which replaces.
    pub replace_on_changes: Vec<String>,
    /// Types under which resources of it may be recorded.
    pub former_types: Vec<String>,
}

/// The part of a package schema that says so. What is not named here is skipped unread.
#[derive(Deserialize)]
struct Package<'a> {
    #[serde(borrow, default)]
    resources: BTreeMap<Cow<'a, str>, Resource<'a>>,
    #[serde(borrow, default)]
    provider: Resource<'a>,
    #[serde(borrow, default)]
    types: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    #[serde(default)]
    is_component: bool,
    #[serde(borrow, default)]
    input_properties: Properties<'a>,
    #[serde(borrow, default)]
    properties: Properties<'a>,
    #[serde(borrow, default)]
    aliases: Vec<FormerType<'a>>,
}

type Properties<'a> = BTreeMap<Cow<'a, str>, Property<'a>>;

#[derive(Deserialize)]
struct FormerType<'a> {
    #[serde(borrow, rename = "type", default)]
    token: Option<Cow<'a, str>>,
}

/// A property, or what a list or a map is of.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Property<'a> {
    #[serde(default)]
    secret: bool,
    #[serde(rename = "const", default)]
    constant: Option<serde_json::Value>,
    #[serde(default)]
    replace_on_changes: bool,
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "$ref", default)]
    reference: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    items: Option<Box<Property<'a>>>,
    #[serde(borrow, default)]
    additional_properties: Option<Box<Property<'a>>>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow, default)]
    properties: Properties<'a>,
}

/// The facts in the text of a package's schema. Of a text that is no schema there are none: a plugin need not have one.
pub(super) fn read(package: &str, schema: &str) -> PackageTypes {
    let Ok(read) = serde_json::from_str::<Package<'_>>(schema) else { return PackageTypes::new() };
    // The objects within are many; they matter to very few schemas.
    let deep = schema.contains("\"replaceOnChanges\"");
    let objects = read.types.filter(|_| deep).and_then(|types| serde_json::from_str(types.get()).ok());
    let objects: BTreeMap<Cow<'_, str>, Object<'_>> = objects.unwrap_or_default();
    let provider = [(Cow::from(format!("pulumi:providers:{package}")), read.provider)];
    let types = read.resources.into_iter().chain(provider);
    let facts = types.map(|(token, resource)| (token.into_owned(), facts(resource, &objects)));
    facts.filter(|(_, facts)| *facts != TypeFacts::default()).collect()
}

fn facts(resource: Resource<'_>, objects: &BTreeMap<Cow<'_, str>, Object<'_>>) -> TypeFacts {
    let secrets = |properties: &Properties<'_>| {
        properties.iter().filter(|(_, property)| property.secret).map(|(name, _)| name.to_string()).collect()
    };
    TypeFacts {
        is_component: resource.is_component,
        secret_inputs: secrets(&resource.input_properties),
        secret_outputs: secrets(&resource.properties),
        replace_on_changes: replacing(&resource.properties, objects, &mut Vec::new()),
        former_types: resource.aliases.into_iter().filter_map(|alias| Some(alias.token?.into_owned())).collect(),
        constants: resource
            .properties
            .into_iter()
            .filter_map(|(name, property)| Some((name.into_owned(), property.constant?)))
            .collect(),
    }
}

/// The paths of properties marked with `replaceOnChanges`; `within` are the objects that they are in, for an object may
/// hold its like.
fn replacing<'a>(
    properties: &'a Properties<'a>,
    objects: &'a BTreeMap<Cow<'a, str>, Object<'a>>,
    within: &mut Vec<&'a str>,
) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, property) in properties {
        let place = match (property.kind.as_deref(), &property.reference) {
            (Some("array"), None) => format!("{name}[*]"),
            (Some("object"), None) => format!("{name}.*"),
            _ => name.to_string(),
        };
        if property.replace_on_changes {
            paths.push(place);
        } else if let Some((token, object)) = property.object(objects)
            && !within.contains(&token)
        {
            within.push(token);
            paths.extend(replacing(&object.properties, objects, within).iter().map(|path| format!("{place}.{path}")));
            within.pop();
        }
    }
    paths
}

impl<'a> Property<'a> {
    /// The object that it is, or is a list or a map of.
    fn object(&'a self, objects: &'a BTreeMap<Cow<'a, str>, Object<'a>>) -> Option<(&'a str, &'a Object<'a>)> {
        if let Some(reference) = &self.reference {
            let token = reference.strip_prefix("#/types/")?.replace("%2F", "/");
            return objects.get_key_value(token.as_str()).map(|(token, object)| (&**token, object));
        }
        self.items.as_ref().or(self.additional_properties.as_ref())?.object(objects)
    }
}

/// Where what is known of one package is remembered: [`PackageTypes`] as JSON.
#[derive(Clone, Debug)]
pub(super) struct Memory(PathBuf);

impl Memory {
    pub(super) fn new(folder: &Path, package: Sha256Digest) -> Self {
        Self(folder.join(format!("{}.json", package.to_hex())))
    }

    /// What is remembered. What cannot be read is not.
    pub(super) async fn recall(self) -> Option<PackageTypes> {
        let read = move || serde_json::from_slice(&read_if_there(&self.0).ok()??).ok();
        tokio::task::spawn_blocking(read).await.ok()?
    }

    /// Remembers it, if it can: whoever forgets asks again.
    pub(super) async fn remember(self, types: PackageTypes) {
        let write = move || {
            let text = serde_json::to_vec(&types).ok()?;
            create_folders(self.0.parent()?).ok()?;
            write_atomically(&self.0, &text, Access::Private).ok()
        };
        drop(tokio::task::spawn_blocking(write).await);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is read of a schema with this type alone, and these objects.
    fn of_type(resource: serde_json::Value, objects: serde_json::Value) -> TypeFacts {
        let schema = json!({"name": "p", "resources": {"p:index:A": resource}, "types": objects});
        read("p", &schema.to_string()).remove("p:index:A").unwrap_or_default()
    }

    #[test]
    fn components_are_what_the_schema_calls_so() {
        let schema = r#"{"name": "p", "resources": {
            "p:index:A": {"isComponent": true, "inputProperties": {"x": {"type": "string"}}},
            "p:index:B": {"isComponent": false}, "p:index:C": {}}}"#;
        let component = TypeFacts { is_component: true, ..TypeFacts::default() };
        assert_eq!(read("p", schema), PackageTypes::from([("p:index:A".to_owned(), component)]));
        for other in ["", "{}", "[]", r#"{"resources": null}"#] {
            assert!(read("p", other).is_empty(), "{other}");
        }
    }

    #[test]
    fn secrets_constants_and_former_types_are_those_of_the_properties() {
        let facts = of_type(
            json!({
                "inputProperties": {"a": {"type": "string", "secret": true}, "b": {"type": "string"}},
                "properties": {"kind": {"type": "string", "const": "Pod"}, "z": {"secret": true}, "a": {"secret": true}},
                "aliases": [{"type": "p:index:Old"}, {"name": "other"}],
            }),
            json!({}),
        );
        let expected = TypeFacts {
            secret_inputs: vec!["a".to_owned()],
            secret_outputs: vec!["a".to_owned(), "z".to_owned()],
            constants: [("kind".to_owned(), json!("Pod"))].into(),
            former_types: vec!["p:index:Old".to_owned()],
            ..TypeFacts::default()
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn the_provider_is_a_type_like_others() {
        let schema = json!({"name": "p", "provider": {"inputProperties": {"token": {"secret": true}}}});
        let facts = read("p", &schema.to_string());
        assert_eq!(facts["pulumi:providers:p"].secret_inputs, ["token"]);
    }

    #[test]
    fn paths_that_replace_lead_through_lists_maps_and_objects() {
        let replaces = json!({"type": "string", "replaceOnChanges": true});
        let objects = json!({
            "p:index/node:Node": {"properties": {"size": replaces, "next": {"$ref": "#/types/p:index%2Fnode:Node"}}},
        });
        let node = json!({"$ref": "#/types/p:index%2Fnode:Node"});
        let facts = of_type(
            json!({"properties": {
                "name": replaces,
                "tags": {"type": "object", "additionalProperties": {"type": "string"}, "replaceOnChanges": true},
                "one": node,
                "many": {"type": "array", "items": node},
                "named": {"type": "object", "additionalProperties": node},
                "plain": {"type": "array", "items": {"type": "string"}},
            }}),
            objects,
        );
        assert_eq!(facts.replace_on_changes, ["many[*].size", "name", "named.*.size", "one.size", "tags.*"]);
    }
}
