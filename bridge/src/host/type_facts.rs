//! What the schema of a package (GetSchema) says of its types that whoever registers them has to know. Programs have it
//! from generated SDKs, or from the host of their language.
//!
//! A schema may have tens of megabytes, so what one says is remembered as long as the same thing pins its plugin.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::fs::{Access, create_folders, read_if_there, write_atomically};
use crate::install::VerifiedPackage;
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
    #[serde(borrow, default, deserialize_with = "or_none")]
    resources: BTreeMap<Cow<'a, str>, Resource<'a>>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    provider: Resource<'a>,
    #[serde(borrow, default)]
    types: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    #[serde(default, deserialize_with = "or_none")]
    is_component: bool,
    #[serde(borrow, default, deserialize_with = "or_none")]
    input_properties: Properties<'a>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    properties: Properties<'a>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    required: Vec<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    aliases: Vec<FormerType<'a>>,
}

type Properties<'a> = BTreeMap<Cow<'a, str>, Property<'a>>;

/// A type, or an object that may name one.
#[derive(Deserialize)]
#[serde(untagged)]
enum FormerType<'a> {
    Token(#[serde(borrow)] Cow<'a, str>),
    Alias {
        #[serde(borrow, rename = "type", default)]
        token: Option<Cow<'a, str>>,
    },
}

impl FormerType<'_> {
    fn into_token(self) -> Option<String> {
        match self {
            Self::Token(token) | Self::Alias { token: Some(token) } => Some(token.into_owned()),
            Self::Alias { token: None } => None,
        }
    }
}

/// A property, or what a list or a map is of.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Property<'a> {
    #[serde(default, deserialize_with = "or_none")]
    secret: bool,
    #[serde(rename = "const", default)]
    constant: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "or_none")]
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
    #[serde(borrow, default, deserialize_with = "or_none")]
    properties: Properties<'a>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    required: Vec<Cow<'a, str>>,
}

/// What is `null` is as if it were not there.
fn or_none<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The facts in the text of a package's schema.
///
/// # Errors
/// A text that is no schema, with the place where it is not.
pub(super) fn read(package: &str, schema: &str) -> Result<PackageTypes, serde_json::Error> {
    let read: Package<'_> = serde_json::from_str(schema)?;
    // The objects within are many; they matter to very few schemas.
    let objects = read.types.filter(|_| schema.contains("\"replaceOnChanges\""));
    let objects = objects.map(|types| serde_json::from_str::<BTreeMap<Cow<'_, str>, Object<'_>>>(types.get()));
    let mut objects = objects.transpose()?.unwrap_or_default();
    keep_replacing(&mut objects);
    let provider = [(Cow::from(format!("pulumi:providers:{package}")), read.provider)];
    let types = read.resources.into_iter().chain(provider);
    let facts = types.map(|(token, resource)| (token.into_owned(), facts(resource, &objects)));
    Ok(facts.filter(|(_, facts)| *facts != TypeFacts::default()).collect())
}

fn facts(resource: Resource<'_>, objects: &BTreeMap<Cow<'_, str>, Object<'_>>) -> TypeFacts {
    let secrets = |properties: &Properties<'_>| {
        properties.iter().filter(|(_, property)| property.secret).map(|(name, _)| name.to_string()).collect()
    };
    TypeFacts {
        is_component: resource.is_component,
        secret_inputs: secrets(&resource.input_properties),
        secret_outputs: secrets(&resource.properties),
        replace_on_changes: replacing(&resource.properties, &resource.required, objects, &mut Vec::new()),
        former_types: resource.aliases.into_iter().filter_map(FormerType::into_token).collect(),
        constants: resource
            .properties
            .into_iter()
            .filter_map(|(name, property)| Some((name.into_owned(), property.constant?)))
            .collect(),
    }
}

/// Leaves those objects from which a property that is marked with `replaceOnChanges` can be reached. Objects that hold each
/// other make for very many paths, and next to none of them leads anywhere.
fn keep_replacing(objects: &mut BTreeMap<Cow<'_, str>, Object<'_>>) {
    let mut holders: HashMap<String, Vec<&str>> = HashMap::new();
    let mut open: Vec<&str> = Vec::new();
    for (token, object) in &*objects {
        for property in object.properties.values() {
            if property.replace_on_changes {
                open.push(token);
            } else if let Some(held) = property.token() {
                holders.entry(held).or_default().push(token);
            }
        }
    }
    let mut found = HashSet::new();
    while let Some(token) = open.pop() {
        if found.insert(token.to_owned()) {
            open.extend(holders.get(token).into_iter().flatten());
        }
    }
    objects.retain(|token, _| found.contains(&**token));
}

/// The paths of properties marked with `replaceOnChanges`; `within` are the types that they are in, for an object may hold
/// its like. As Pulumi's tools have it, one that may be missing is another type than one that is required.
fn replacing<'a>(
    properties: &'a Properties<'a>,
    required: &[Cow<'a, str>],
    objects: &'a BTreeMap<Cow<'a, str>, Object<'a>>,
    within: &mut Vec<String>,
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
        } else if let Some((kind, object)) = property.object(objects) {
            let kind = if required.contains(name) { kind } else { format!("{kind}?") };
            if !within.contains(&kind) {
                within.push(kind);
                let inner = replacing(&object.properties, &object.required, objects, within);
                paths.extend(inner.iter().map(|path| format!("{place}.{path}")));
                within.pop();
            }
        }
    }
    paths
}

impl<'a> Property<'a> {
    /// What a list or a map is of.
    fn element(&self) -> Option<&Self> {
        self.items.as_deref().or(self.additional_properties.as_deref())
    }

    /// The name of the object that it is, or is a list or a map of.
    fn token(&self) -> Option<String> {
        match &self.reference {
            Some(reference) => Some(reference.strip_prefix("#/types/")?.replace("%2F", "/")),
            None => self.element()?.token(),
        }
    }

    /// That object, and the type of the property.
    fn object(&'a self, objects: &'a BTreeMap<Cow<'a, str>, Object<'a>>) -> Option<(String, &'a Object<'a>)> {
        if self.reference.is_some() {
            let token = self.token()?;
            return objects.get(token.as_str()).map(|object| (token, object));
        }
        let (kind, object) = self.element()?.object(objects)?;
        Some((format!("{}<{kind}>", if self.items.is_some() { "list" } else { "map" }), object))
    }
}

/// Which facts are remembered: another one where others are read, or read otherwise.
const FORMAT: &[u8] = b"2";

/// Whether another program runs it. What cannot be read may be one.
fn is_script(program: &Path) -> bool {
    let mut start = [0; 2];
    let read = std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut start));
    read.is_err() || start == *b"#!"
}

/// Where what is known of one package is remembered: [`PackageTypes`] as JSON.
#[derive(Clone, Debug)]
pub(super) struct Memory(PathBuf);

impl Memory {
    /// `name` is that of the package, by which the types are called. `None` where nothing pins all that makes up the plugin.
    /// What was downloaded may hold several, so what pins it is not enough to tell them apart.
    pub(super) fn new(folder: &Path, name: &str, package: &VerifiedPackage) -> Option<Self> {
        let digest = package.digest()?;
        // What a script of the user's says hangs on files beside it, which its digest does not cover.
        if package.revision().is_none() && is_script(package.program()) {
            return None;
        }
        let program = package.program().file_name().unwrap_or_default();
        let digest = digest.to_hex();
        let origin = package.origin().as_os_str();
        let key = [FORMAT, name.as_bytes(), digest.as_bytes(), origin.as_encoded_bytes(), program.as_encoded_bytes()];
        let key = Sha256Digest::of(key.join(&0));
        Some(Self(folder.join(format!("{}.json", key.to_hex()))))
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
        read("p", &schema.to_string()).unwrap().remove("p:index:A").unwrap_or_default()
    }

    #[test]
    fn components_are_what_the_schema_calls_so() {
        let schema = r#"{"name": "p", "resources": {
            "p:index:A": {"isComponent": true, "inputProperties": {"x": {"type": "string"}}},
            "p:index:B": {"isComponent": false}, "p:index:C": {}}}"#;
        let component = TypeFacts { is_component: true, ..TypeFacts::default() };
        assert_eq!(read("p", schema).unwrap(), PackageTypes::from([("p:index:A".to_owned(), component)]));
        for none in ["{}", r#"{"resources": null, "provider": null, "types": null}"#] {
            assert!(read("p", none).unwrap().is_empty(), "{none}");
        }
        for other in ["", "1", r#"{"resources": 1}"#] {
            assert!(read("p", other).is_err(), "{other}");
        }
    }

    #[test]
    fn secrets_constants_and_former_types_are_those_of_the_properties() {
        let facts = of_type(
            json!({
                "inputProperties": {"a": {"type": "string", "secret": true}, "b": {"type": "string"}},
                "properties": {"kind": {"type": "string", "const": "Pod"}, "z": {"secret": true}, "a": {"secret": true}},
                "aliases": [{"type": "p:index:Old"}, {"name": "other"}, "p:index:Older", {"type": null}],
            }),
            json!({}),
        );
        let expected = TypeFacts {
            secret_inputs: vec!["a".to_owned()],
            secret_outputs: vec!["a".to_owned(), "z".to_owned()],
            constants: [("kind".to_owned(), json!("Pod"))].into(),
            former_types: vec!["p:index:Old".to_owned(), "p:index:Older".to_owned()],
            ..TypeFacts::default()
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn the_provider_is_a_type_like_others() {
        let schema = json!({"name": "p", "provider": {"inputProperties": {"token": {"secret": true}}}});
        let facts = read("p", &schema.to_string()).unwrap();
        assert_eq!(facts["pulumi:providers:p"].secret_inputs, ["token"]);
    }

    #[test]
    fn objects_that_hold_each_other_are_looked_into_only_where_something_replaces() {
        let held = |number: u32| json!({"$ref": format!("#/types/p:index:T{number}")});
        let all: serde_json::Map<_, _> = (0..40).map(|number| (format!("t{number}"), held(number))).collect();
        let object = json!({ "properties": all });
        let mut objects: serde_json::Map<_, _> =
            (0..40).map(|number| (format!("p:index:T{number}"), object.clone())).collect();
        let marked = json!({"properties": {"x": {"type": "string", "replaceOnChanges": true}}});
        objects.insert("p:index:Marked".to_owned(), marked);
        let facts = of_type(
            json!({"properties": {"deep": held(0), "one": {"$ref": "#/types/p:index:Marked"}}}),
            objects.into(),
        );
        assert_eq!(facts.replace_on_changes, ["one.x"]);
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
        // A list of nodes is another type than a node: one more is looked into.
        let expected =
            ["many[*].next.size", "many[*].size", "name", "named.*.next.size", "named.*.size", "one.size", "tags.*"];
        assert_eq!(facts.replace_on_changes, expected);
    }
}
