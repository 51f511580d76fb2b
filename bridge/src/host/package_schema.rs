//! Parsing of package schemas (GetSchema) into information about resource types and functions. Parses the needed parts only: a schema
//! may have tens of megabytes.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::json_object::JsonObject;
use super::package_types::{InputInfo, NestedObjects, ObjectInfo, PackageTypes, TypeInfo, ValueKind};

/// Part of a package schema that is parsed. All other fields are skipped.
#[derive(Deserialize)]
struct Package<'a> {
    #[serde(borrow, default, deserialize_with = "or_none")]
    resources: BTreeMap<Cow<'a, str>, JsonObject<Resource<'a>>>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    provider: JsonObject<Resource<'a>>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    functions: BTreeMap<Cow<'a, str>, JsonObject<Function<'a>>>,
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
    required_inputs: Vec<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    properties: Properties<'a>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    required: Vec<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    aliases: Vec<FormerType<'a>>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default, deserialize_with = "or_none")]
    inputs: JsonObject<Object<'a>>,
    /// An object, or the type of the only result.
    #[serde(borrow, default, deserialize_with = "or_none")]
    outputs: JsonObject<Object<'a>>,
}

type Properties<'a> = BTreeMap<Cow<'a, str>, JsonObject<Property<'a>>>;

/// Alias of a type: a type token, or an object with an optional type token.
#[derive(Deserialize)]
#[serde(untagged)]
enum FormerType<'a> {
    Token(#[serde(borrow)] Cow<'a, str>),
    Alias(#[serde(borrow)] JsonObject<Alias<'a>>),
}

#[derive(Deserialize)]
struct Alias<'a> {
    #[serde(borrow, rename = "type", default)]
    token: Option<Cow<'a, str>>,
}

impl FormerType<'_> {
    fn into_token(self) -> Option<String> {
        match self {
            Self::Token(token) => Some(token.into_owned()),
            Self::Alias(JsonObject(alias)) => alias.token.map(Cow::into_owned),
        }
    }
}

/// Property, or element of a list or a map.
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
    items: Option<Box<JsonObject<Property<'a>>>>,
    #[serde(borrow, default)]
    additional_properties: Option<Box<JsonObject<Property<'a>>>>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    one_of: Vec<JsonObject<Property<'a>>>,
}

/// References to the types of Pulumi itself.
const ASSET: &str = "pulumi.json#/Asset";
const ARCHIVE: &str = "pulumi.json#/Archive";

#[derive(Default, Deserialize)]
struct Object<'a> {
    #[serde(borrow, default, deserialize_with = "or_none")]
    properties: Properties<'a>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    required: Vec<Cow<'a, str>>,
}

/// Returns the token of the type of the same schema that a `$ref` names.
fn local_type(reference: &str) -> Option<String> {
    Some(reference.strip_prefix("#/types/")?.replace("%2F", "/"))
}

/// Part of an object or enum type that only an enum type has.
#[derive(Deserialize)]
struct Enum {
    #[serde(rename = "enum", default, deserialize_with = "or_none")]
    values: Vec<JsonObject<EnumValue>>,
}

#[derive(Deserialize)]
struct EnumValue {
    #[serde(default)]
    value: serde_json::Value,
}

type Enums<'a> = BTreeMap<Cow<'a, str>, JsonObject<Enum>>;

type Objects<'a> = BTreeMap<Cow<'a, str>, JsonObject<Object<'a>>>;

/// Deserializes `null` as the default value.
fn or_none<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Parses the schema of a package.
///
/// # Errors
/// JSON error with line and column if the text is not a schema.
pub(super) fn parse_schema(package: &str, schema: &str) -> Result<PackageTypes, serde_json::Error> {
    let JsonObject(parsed): JsonObject<Package<'_>> = serde_json::from_str(schema)?;
    let enums = parsed.types.map(|types| serde_json::from_str::<Enums<'_>>(types.get()));
    let mut enums = enums.transpose()?.unwrap_or_default();
    enums.retain(|_, JsonObject(parsed)| !parsed.values.is_empty());
    let objects = parsed.types.map(|types| serde_json::from_str::<Objects<'_>>(types.get()));
    let mut objects = objects.transpose()?.unwrap_or_default();
    let used_objects = objects_of_properties(&parsed, &objects, &enums);
    // A schema has many object types, and very few schemas mark a property with `replaceOnChanges`.
    if schema.contains("\"replaceOnChanges\"") {
        keep_objects_with_replacing_properties(&mut objects);
    } else {
        objects.clear();
    }
    let provider = Some(type_info(parsed.provider, &enums, &objects)).filter(|info| *info != TypeInfo::default());
    let provider = provider.map(|info| (format!("pulumi:providers:{package}"), info));
    let resources = parsed.resources.into_iter();
    let resources = resources.map(|(token, resource)| (token.into_owned(), type_info(resource, &enums, &objects)));
    let functions = parsed.functions.into_iter();
    let functions = functions.map(|(token, function)| (token.into_owned(), function_info(&function, &enums)));
    Ok(PackageTypes::with_functions(resources.chain(provider), used_objects, functions))
}

/// Returns the object types that inputs and outputs of resources and functions contain, directly or indirectly.
fn objects_of_properties(
    package: &Package<'_>,
    objects: &Objects<'_>,
    enums: &Enums<'_>,
) -> BTreeMap<String, ObjectInfo> {
    let mut found = BTreeMap::new();
    let of_resources = package
        .resources
        .values()
        .flat_map(|resource| resource.input_properties.values().chain(resource.properties.values()));
    let of_functions = package
        .functions
        .values()
        .flat_map(|function| function.inputs.properties.values().chain(function.outputs.properties.values()));
    let mut pending: Vec<String> =
        of_resources.chain(of_functions).filter_map(|property| property.object_token()).collect();
    while let Some(token) = pending.pop() {
        let Some(JsonObject(object)) = objects.get(token.as_str()).filter(|object| !object.properties.is_empty())
        else {
            continue;
        };
        if found.contains_key(&token) {
            continue;
        }
        pending.extend(object.properties.values().filter_map(|property| property.object_token()));
        found.insert(token, ObjectInfo { properties: input_infos(&object.properties, &object.required, enums) });
    }
    found
}

fn type_info(JsonObject(resource): JsonObject<Resource<'_>>, enums: &Enums<'_>, objects: &Objects<'_>) -> TypeInfo {
    let secrets = |properties: &Properties<'_>| {
        properties.iter().filter(|(_, property)| property.secret).map(|(name, _)| name.to_string()).collect()
    };
    TypeInfo {
        is_component: resource.is_component,
        inputs: input_infos(&resource.input_properties, &resource.required_inputs, enums),
        outputs: resource
            .properties
            .iter()
            .map(|(name, property)| (name.to_string(), property.nested_objects()))
            .collect(),
        secret_inputs: secrets(&resource.input_properties),
        secret_outputs: secrets(&resource.properties),
        replace_on_changes: replacing_paths(&resource.properties, &resource.required, objects, &mut Vec::new()),
        former_types: resource.aliases.into_iter().filter_map(FormerType::into_token).collect(),
        constants: resource
            .properties
            .into_iter()
            .filter_map(|(name, JsonObject(property))| Some((name.into_owned(), property.constant?)))
            .collect(),
    }
}

fn function_info(function: &Function<'_>, enums: &Enums<'_>) -> TypeInfo {
    let outputs = function.outputs.properties.iter();
    TypeInfo {
        inputs: input_infos(&function.inputs.properties, &function.inputs.required, enums),
        outputs: outputs.map(|(name, property)| (name.to_string(), property.nested_objects())).collect(),
        ..TypeInfo::default()
    }
}

fn input_infos(
    properties: &Properties<'_>,
    required: &[Cow<'_, str>],
    enums: &Enums<'_>,
) -> BTreeMap<String, InputInfo> {
    let info = |name: &Cow<'_, str>, property: &Property<'_>| {
        let enum_type = property.enum_token().and_then(|token| enums.get(token.as_str()));
        InputInfo {
            is_required: required.contains(name),
            enum_values: enum_type.map_or_else(Vec::new, |JsonObject(parsed)| {
                parsed.values.iter().map(|JsonObject(value)| value.value.clone()).collect()
            }),
            nested: if enum_type.is_some() { None } else { property.nested_objects() },
            kind: property.value_kind(enums),
        }
    };
    properties.iter().map(|(name, property)| (name.to_string(), info(name, property))).collect()
}

/// Keeps only object types that contain, directly or indirectly, a property marked with `replaceOnChanges`. Object
/// types that contain each other have a huge number of paths, and nearly none of them ends at such a property.
fn keep_objects_with_replacing_properties(objects: &mut Objects<'_>) {
    let mut containers: HashMap<String, Vec<&str>> = HashMap::new();
    let mut pending: Vec<&str> = Vec::new();
    for (token, object) in &*objects {
        for property in object.properties.values() {
            if property.replace_on_changes {
                pending.push(token);
            } else if let Some(contained) = property.object_token() {
                containers.entry(contained).or_default().push(token);
            }
        }
    }
    let mut found = HashSet::new();
    while let Some(token) = pending.pop() {
        if found.insert(token.to_owned()) {
            pending.extend(containers.get(token).into_iter().flatten());
        }
    }
    objects.retain(|token, _| found.contains(&**token));
}

/// Returns the paths of properties marked with `replaceOnChanges`. `enclosing` holds the types of the enclosing
/// objects, to stop at recursive types. An optional property has another type than a required one, as in Pulumi's
/// tools.
fn replacing_paths<'a>(
    properties: &'a Properties<'a>,
    required: &[Cow<'a, str>],
    objects: &'a Objects<'a>,
    enclosing: &mut Vec<String>,
) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, property) in properties {
        let path = match (property.kind.as_deref(), &property.reference) {
            (Some("array"), None) => format!("{name}[*]"),
            (Some("object"), None) => format!("{name}.*"),
            _ => name.to_string(),
        };
        if property.replace_on_changes {
            paths.push(path);
        } else if let Some((kind, object)) = property.object(objects) {
            let kind = if required.contains(name) { kind } else { format!("{kind}?") };
            if !enclosing.contains(&kind) {
                enclosing.push(kind);
                let inner = replacing_paths(&object.properties, &object.required, objects, enclosing);
                paths.extend(inner.iter().map(|inner| format!("{path}.{inner}")));
                enclosing.pop();
            }
        }
    }
    paths
}

impl<'a> Property<'a> {
    /// Returns the element of a list or a map.
    fn element(&self) -> Option<&Self> {
        let element = self.items.as_ref().or(self.additional_properties.as_ref())?;
        Some(element)
    }

    /// Returns the token of the object type of the property, or of its elements.
    fn object_token(&self) -> Option<String> {
        match &self.reference {
            Some(reference) => local_type(reference),
            None => self.element()?.object_token(),
        }
    }

    /// Returns the place of the objects in a value of the property.
    fn nested_objects(&self) -> Option<NestedObjects> {
        if let Some(reference) = &self.reference {
            return local_type(reference).map(NestedObjects::Object);
        }
        let nested = Box::new(self.element()?.nested_objects()?);
        Some(if self.items.is_some() { NestedObjects::List(nested) } else { NestedObjects::Map(nested) })
    }

    /// Returns the kind of the value; `None` for an object, and if the schema allows several kinds or any.
    fn value_kind(&self, enums: &Enums<'_>) -> Option<ValueKind> {
        match self.reference.as_deref() {
            Some(ASSET) => return Some(ValueKind::Asset),
            Some(ARCHIVE) => return Some(ValueKind::Archive),
            Some(reference) => {
                let JsonObject(found) = enums.get(local_type(reference)?.as_str())?;
                let is_text = found.values.iter().all(|JsonObject(value)| value.value.is_string());
                return Some(if is_text { ValueKind::Text } else { ValueKind::Plain });
            }
            None => {}
        }
        if let Some((first, rest)) = self.one_of.split_first() {
            let kind = first.value_kind(enums)?;
            return rest.iter().all(|other| other.value_kind(enums).as_ref() == Some(&kind)).then_some(kind);
        }
        match self.kind.as_deref()? {
            "string" => Some(ValueKind::Text),
            "number" | "integer" | "boolean" => Some(ValueKind::Plain),
            "array" => Some(ValueKind::List(self.items.as_ref()?.value_kind(enums)?.into())),
            "object" => Some(ValueKind::Map(self.additional_properties.as_ref()?.value_kind(enums)?.into())),
            _ => None,
        }
    }

    /// Returns the token of the enum or object type of the property itself.
    fn enum_token(&self) -> Option<String> {
        local_type(self.reference.as_ref()?)
    }

    /// Returns the type of the property and the object type that it, or its elements, have.
    fn object(&'a self, objects: &'a Objects<'a>) -> Option<(String, &'a Object<'a>)> {
        if self.reference.is_some() {
            let token = self.object_token()?;
            return objects.get(token.as_str()).map(|object| (token, &**object));
        }
        let (kind, object) = self.element()?.object(objects)?;
        Some((format!("{}<{kind}>", if self.items.is_some() { "list" } else { "map" }), object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Parses a schema with one resource type and these object types, and returns the information about the resource
    /// type.
    fn parse_type(resource: serde_json::Value, objects: serde_json::Value) -> TypeInfo {
        let schema = json!({"name": "p", "resources": {"p:index:A": resource}, "types": objects});
        parse_schema("p", &schema.to_string()).unwrap().get("p:index:A").unwrap().into_owned()
    }

    fn of_kind(kind: ValueKind) -> InputInfo {
        InputInfo { kind: Some(kind), ..InputInfo::default() }
    }

    #[test]
    fn kinds_of_values_are_parsed() {
        let reference = |name: &str| json!({"$ref": name});
        let text = || json!({"type": "string"});
        let list = |items: serde_json::Value| json!({"type": "array", "items": items});
        let map = |values: serde_json::Value| json!({"type": "object", "additionalProperties": values});
        let nested = |kind: ValueKind| Some(Box::new(kind));
        for (property, expected) in [
            (text(), Some(ValueKind::Text)),
            (json!({"type": "integer"}), Some(ValueKind::Plain)),
            (json!({"type": "boolean"}), Some(ValueKind::Plain)),
            (reference("#/types/p:index:Mode"), Some(ValueKind::Text)),
            (reference("pulumi.json#/Asset"), Some(ValueKind::Asset)),
            (reference("pulumi.json#/Archive"), Some(ValueKind::Archive)),
            (list(text()), nested(ValueKind::Text).map(ValueKind::List)),
            (map(reference("pulumi.json#/Asset")), nested(ValueKind::Asset).map(ValueKind::Map)),
            (json!({"type": "string", "oneOf": [text(), reference("#/types/p:index:Mode")]}), Some(ValueKind::Text)),
            (json!({"oneOf": [text(), {"type": "number"}]}), None),
            (json!({"oneOf": [text(), reference("pulumi.json#/Asset")]}), None),
            (json!({"type": "object"}), None),
            (json!({"type": "array"}), None),
            (reference("pulumi.json#/Any"), None),
            (reference("#/types/p:index:Object"), None),
            (json!({}), None),
        ] {
            let types = json!({"p:index:Mode": {"type": "string", "enum": [{"value": "on"}]}, "p:index:Object": {}});
            let info = parse_type(json!({"inputProperties": {"x": property}}), types);
            assert_eq!(info.inputs["x"].kind, expected, "{property}");
        }
    }

    #[test]
    fn component_types_are_those_with_is_component() {
        let schema = r#"{"name": "p", "resources": {
            "p:index:A": {"isComponent": true, "inputProperties": {"x": {"type": "string"}}},
            "p:index:B": {"isComponent": false}, "p:index:C": {}}}"#;
        let types = parse_schema("p", schema).unwrap();
        let components = types.tokens().filter(|token| types.get(token).unwrap().is_component);
        assert_eq!(components.collect::<Vec<_>>(), ["p:index:A"]);
        assert!(types.has_components());
        for empty in ["{}", r#"{"resources": null, "provider": null, "types": null}"#] {
            let types = parse_schema("p", empty).unwrap();
            assert!(!types.has_components() && !types.has_resources(), "{empty}");
        }
    }

    #[test]
    fn array_in_place_of_an_object_is_no_schema() {
        for invalid in [
            "",
            "1",
            "null",
            "[]",
            r#"{"resources": 1}"#,
            r#"{"resources": []}"#,
            r#"{"resources": {"p:index:A": []}}"#,
            r#"{"resources": {"p:index:A": {"properties": []}}}"#,
            r#"{"resources": {"p:index:A": {"properties": {"x": []}}}}"#,
            r#"{"resources": {"p:index:A": {"properties": {"x": {"items": []}}}}}"#,
            r#"{"resources": {"p:index:A": {"aliases": [["p:index:B"]]}}}"#,
            r#"{"provider": []}"#,
            r#"{"types": {"p:index:T": [], "": {"properties": {"x": {"replaceOnChanges": true}}}}}"#,
        ] {
            assert!(parse_schema("p", invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn secrets_constants_and_aliases_are_parsed() {
        let info = parse_type(
            json!({
                "inputProperties": {"a": {"type": "string", "secret": true}, "b": {"type": "string"}},
                "properties": {"kind": {"type": "string", "const": "Pod"}, "z": {"secret": true}, "a": {"secret": true}},
                "aliases": [{"type": "p:index:Old"}, {"name": "other"}, "p:index:Older", {"type": null}],
            }),
            json!({}),
        );
        let expected = TypeInfo {
            secret_inputs: vec!["a".to_owned()],
            secret_outputs: vec!["a".to_owned(), "z".to_owned()],
            constants: [("kind".to_owned(), json!("Pod"))].into(),
            former_types: vec!["p:index:Old".to_owned(), "p:index:Older".to_owned()],
            inputs: ["a", "b"].map(|name| (name.to_owned(), of_kind(ValueKind::Text))).into(),
            outputs: ["a", "kind", "z"].map(|name| (name.to_owned(), None)).into(),
            ..TypeInfo::default()
        };
        assert_eq!(info, expected);
    }

    #[test]
    fn required_inputs_and_enum_values_are_parsed() {
        let info = parse_type(
            json!({
                "inputProperties": {
                    "plain": {"type": "string"},
                    "size": {"$ref": "#/types/p:index%2Fsize:Size"},
                    "open": {"oneOf": [{"type": "string"}, {"$ref": "#/types/p:index%2Fsize:Size"}]},
                    "sizes": {"type": "array", "items": {"$ref": "#/types/p:index%2Fsize:Size"}},
                    "object": {"$ref": "#/types/p:index:Object"},
                    "foreign": {"$ref": "/q/v1.0.0/schema.json#/types/p:index%2Fsize:Size"},
                    "json": {"$ref": "pulumi.json#/Json"},
                },
                "requiredInputs": ["size", "missing"],
                "properties": {"id": {}, "plain": {}},
            }),
            json!({
                "p:index/size:Size": {"type": "string", "enum": [{"name": "S", "value": "small"}, {"value": 2}]},
                "p:index:Object": {"type": "object", "properties": {"size": {}}, "enum": null},
            }),
        );
        let mut inputs: BTreeMap<String, InputInfo> =
            ["foreign", "json", "open"].map(|name| (name.to_owned(), InputInfo::default())).into();
        inputs.insert("plain".to_owned(), of_kind(ValueKind::Text));
        let object = |token: &str| NestedObjects::Object(token.to_owned());
        let nested = |nested| InputInfo { nested: Some(nested), ..InputInfo::default() };
        inputs.insert("object".to_owned(), nested(object("p:index:Object")));
        let sizes = nested(NestedObjects::List(object("p:index/size:Size").into()));
        let kind = Some(ValueKind::List(ValueKind::Plain.into()));
        inputs.insert("sizes".to_owned(), InputInfo { kind, ..sizes });
        let enum_values = vec![json!("small"), json!(2)];
        inputs.insert("size".to_owned(), InputInfo { is_required: true, enum_values, ..of_kind(ValueKind::Plain) });
        assert_eq!((info.inputs, info.outputs), (inputs, ["id", "plain"].map(|name| (name.to_owned(), None)).into()));
    }

    #[test]
    fn object_types_of_properties_are_parsed() {
        let reference = |name: &str| json!({"$ref": format!("#/types/p:index:{name}")});
        let schema = json!({
            "resources": {"p:index:A": {
                "inputProperties": {"rules": {"type": "array", "items": reference("Rule")}},
                "properties": {"status": reference("Status")},
            }},
            "types": {
                "p:index:Rule": {"properties": {
                    "mode": reference("Mode"),
                    "next": {"type": "object", "additionalProperties": reference("Rule")},
                }, "required": ["mode"]},
                "p:index:Mode": {"type": "string", "enum": [{"value": "on"}]},
                "p:index:Status": {"properties": {"x": {}}},
                "p:index:Unused": {"properties": {"x": {}}},
            },
        });
        let types = parse_schema("p", &schema.to_string()).unwrap();
        let rule = NestedObjects::Object("p:index:Rule".to_owned());
        let properties = [
            (
                "mode".to_owned(),
                InputInfo { is_required: true, enum_values: vec![json!("on")], ..of_kind(ValueKind::Text) },
            ),
            ("next".to_owned(), InputInfo { nested: Some(NestedObjects::Map(rule.into())), ..InputInfo::default() }),
        ];
        let expected = ObjectInfo { properties: properties.into() };
        assert_eq!(types.object("p:index:Rule").as_deref(), Some(&expected));
        assert!(types.object("p:index:Status").unwrap().properties.contains_key("x"));
        assert_eq!((types.object("p:index:Mode"), types.object("p:index:Unused")), (None, None));
        let outputs = types.get("p:index:A").unwrap().outputs.clone();
        assert_eq!(outputs["status"], Some(NestedObjects::Object("p:index:Status".to_owned())));
    }

    #[test]
    fn arguments_and_results_of_functions_are_parsed() {
        let schema = json!({
            "functions": {
                "p:index/ask:ask": {
                    "inputs": {"properties": {"of": {"type": "string"}}, "required": ["of"]},
                    "outputs": {"properties": {"items": {"type": "array", "items": {"$ref": "#/types/p:index:Item"}}}},
                },
                "p:index:text": {"inputs": null, "outputs": {"type": "string", "plain": true}},
            },
            "types": {"p:index:Item": {"properties": {"name": {"type": "string"}}}},
        });
        let types = parse_schema("p", &schema.to_string()).unwrap();
        assert!(!types.has_resources());
        assert!(types.function_tokens().eq(["p:index/ask:ask", "p:index:text"]));
        let ask = types.function("p:index/ask:ask").unwrap();
        assert_eq!(ask.inputs, [("of".to_owned(), InputInfo { is_required: true, ..of_kind(ValueKind::Text) })].into());
        let items = NestedObjects::List(NestedObjects::Object("p:index:Item".to_owned()).into());
        assert_eq!(ask.outputs, [("items".to_owned(), Some(items))].into());
        assert_eq!(types.function("p:index:text").as_deref(), Some(&TypeInfo::default()));
        assert!(types.object("p:index:Item").unwrap().properties.contains_key("name"));
    }

    #[test]
    fn provider_is_parsed_as_a_type() {
        let schema = json!({"name": "p", "provider": {"inputProperties": {"token": {"secret": true}}}});
        let info = parse_schema("p", &schema.to_string()).unwrap();
        assert_eq!(info.get("pulumi:providers:p").unwrap().secret_inputs, ["token"]);
        assert!(!info.has_resources());
    }

    #[test]
    fn recursive_objects_are_searched_only_if_they_contain_a_replacing_property() {
        let reference = |number: u32| json!({"$ref": format!("#/types/p:index:T{number}")});
        let all: serde_json::Map<_, _> = (0..40).map(|number| (format!("t{number}"), reference(number))).collect();
        let object = json!({ "properties": all });
        let mut objects: serde_json::Map<_, _> =
            (0..40).map(|number| (format!("p:index:T{number}"), object.clone())).collect();
        let marked = json!({"properties": {"x": {"type": "string", "replaceOnChanges": true}}});
        objects.insert("p:index:Marked".to_owned(), marked);
        let info = parse_type(
            json!({"properties": {"deep": reference(0), "one": {"$ref": "#/types/p:index:Marked"}}}),
            objects.into(),
        );
        assert_eq!(info.replace_on_changes, ["one.x"]);
    }

    #[test]
    fn replacing_paths_include_lists_maps_and_objects() {
        let replaces = json!({"type": "string", "replaceOnChanges": true});
        let objects = json!({
            "p:index/node:Node": {"properties": {"size": replaces, "next": {"$ref": "#/types/p:index%2Fnode:Node"}}},
        });
        let node = json!({"$ref": "#/types/p:index%2Fnode:Node"});
        let info = parse_type(
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
        // A list of nodes has another type than a node, so that one more level is searched.
        let expected =
            ["many[*].next.size", "many[*].size", "name", "named.*.next.size", "named.*.size", "one.size", "tags.*"];
        assert_eq!(info.replace_on_changes, expected);
    }
}
