//! Conversion of the types of a package schema. Only referenced types are converted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::package::{Alias, ComplexType, DEFINITIONS, Package, PackageSchemas, Property, Resource};

/// References to the types of Pulumi itself, and the tokens of their definitions.
const ASSETS: [(&str, &str); 2] =
    [("pulumi.json#/Asset", "pulumi:assetOrArchive"), ("pulumi.json#/Archive", "pulumi:archive")];

/// Pattern of a placeholder, which may replace a value of any type.
const PLACEHOLDER: &str = r"\$\{[^}]*\}";

pub(crate) fn package(package: &Package<'_>) -> PackageSchemas {
    let mut converter = Converter { types: &package.types, pending: Vec::new(), referenced: BTreeSet::new() };
    let resources: BTreeMap<String, Value> =
        package.resources.iter().map(|(token, resource)| (token.to_string(), converter.resource(resource))).collect();
    let former_types = package.resources.iter().map(|(token, resource)| (token.to_string(), former_types(resource)));
    let former_types = former_types.filter(|(_, former)| !former.is_empty()).collect();
    let configuration = converter.resource(&package.provider);
    let mut definitions = BTreeMap::new();
    while let Some(token) = converter.pending.pop() {
        if let Some(schema_type) = package.types.get(&*token) {
            let schema = converter.complex(schema_type);
            definitions.insert(token, schema);
        }
    }
    definitions.extend(asset_definitions(&converter.referenced));
    PackageSchemas {
        name: package.name.to_string(),
        version: package.version.to_string(),
        resources,
        former_types,
        configuration,
        definitions,
    }
}

fn former_types(resource: &Resource<'_>) -> Vec<String> {
    let token = |alias: &Alias<'_>| match alias {
        Alias::Token(token) => Some(token.to_string()),
        Alias::Object { token } => token.as_ref().map(Cow::to_string),
    };
    resource.aliases.iter().filter_map(token).collect()
}

struct Converter<'p> {
    types: &'p BTreeMap<Cow<'p, str>, ComplexType<'p>>,
    /// Tokens of referenced types that are not converted yet.
    pending: Vec<String>,
    referenced: BTreeSet<String>,
}

impl Converter<'_> {
    fn resource(&mut self, resource: &Resource<'_>) -> Value {
        let mut schema = self.object(&resource.input_properties, &resource.required_inputs);
        describe(&mut schema, &resource.description, &resource.deprecation_message);
        Value::Object(schema)
    }

    fn complex(&mut self, schema_type: &ComplexType<'_>) -> Value {
        let mut schema = if schema_type.values.is_empty() {
            let mut schema = self.object(&schema_type.properties, &schema_type.required);
            schema.extend(or_placeholder("object"));
            schema
        } else {
            let values: Vec<&Value> = schema_type.values.iter().map(|value| &value.value).collect();
            schema_or_placeholder(json!({ "enum": values }))
        };
        describe(&mut schema, &schema_type.description, "");
        Value::Object(schema)
    }

    /// Converts an object type. Undeclared properties are errors, so that misspelt names are reported. A required
    /// property with a default may be omitted.
    fn object(
        &mut self,
        properties: &BTreeMap<Cow<'_, str>, Property<'_>>,
        required: &[Cow<'_, str>],
    ) -> Map<String, Value> {
        let needs_value =
            |name: &&Cow<'_, str>| properties.get(&***name).is_some_and(|property| property.default.is_none());
        let required: Vec<&str> = required.iter().filter(needs_value).map(|name| &**name).collect();
        let properties: Map<String, Value> =
            properties.iter().map(|(name, property)| (name.to_string(), self.property(property))).collect();
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        schema.insert("additionalProperties".into(), false.into());
        schema
    }

    fn property(&mut self, property: &Property<'_>) -> Value {
        let mut schema = match &property.constant {
            Some(value) => schema_or_placeholder(json!({ "const": value })),
            None => self.type_of(property),
        };
        let mut description = property.description.trim().to_owned();
        if property.will_replace_on_changes {
            let blank = if description.is_empty() { "" } else { "\n\n" };
            description.push_str(blank);
            description.push_str("A change replaces the resource.");
        }
        describe(&mut schema, &description, &property.deprecation_message);
        if let Some(default) = &property.default {
            schema.insert("default".into(), default.clone());
        }
        if property.secret {
            schema.insert("writeOnly".into(), true.into());
        }
        Value::Object(schema)
    }

    fn type_of(&mut self, spec: &Property<'_>) -> Map<String, Value> {
        if !spec.reference.is_empty() {
            return self.reference(&spec.reference);
        }
        if !spec.one_of.is_empty() {
            let choices: Vec<Value> = spec.one_of.iter().map(|choice| self.type_of(choice).into()).collect();
            return fields([("anyOf", choices.into())]);
        }
        match &*spec.kind {
            // Any text may be a placeholder, so no pattern is needed.
            "string" => fields([("type", json!(["string", "null"]))]),
            kind @ ("boolean" | "integer" | "number") => or_placeholder(kind),
            "array" => {
                let items = spec.items.as_ref().map_or_else(Map::new, |items| self.type_of(items));
                let mut schema = or_placeholder("array");
                schema.insert("items".into(), items.into());
                schema
            }
            "object" => {
                let values = spec.additional_properties.as_ref().map_or_else(Map::new, |values| self.type_of(values));
                let mut schema = or_placeholder("object");
                schema.insert("additionalProperties".into(), values.into());
                schema
            }
            _ => Map::new(),
        }
    }

    /// Converts a reference to a type of this package, to an asset or to an archive. Other references (any value, types of other
    /// packages) become the empty schema, which accepts any value.
    fn reference(&mut self, reference: &str) -> Map<String, Value> {
        if let Some((_, token)) = ASSETS.iter().find(|(known, _)| *known == reference) {
            self.referenced.insert((*token).to_owned());
            return fields([("$ref", format!("#/{DEFINITIONS}/{token}").into())]);
        }
        let Some(token) = reference.strip_prefix("#/types/").map(decode_percent) else { return Map::new() };
        if !self.types.contains_key(&*token) {
            return Map::new();
        }
        if self.referenced.insert(token.clone()) {
            self.pending.push(token.clone());
        }
        let pointer = token.replace('~', "~0").replace('/', "~1").replace('%', "%25");
        fields([("$ref", format!("#/{DEFINITIONS}/{pointer}").into())])
    }
}

/// Returns the definitions of assets and archives, if one of them is referenced. An archive may contain assets.
fn asset_definitions(referenced: &BTreeSet<String>) -> BTreeMap<String, Value> {
    let [(_, asset), (_, archive)] = ASSETS;
    if !referenced.contains(asset) && !referenced.contains(archive) {
        return BTreeMap::new();
    }
    let text = |description: &str| json!({ "type": ["string", "number", "boolean"], "description": description });
    let members = json!({
        "type": "object",
        "description": "Archive of these files: assets and archives by name.",
        "additionalProperties": { "$ref": format!("#/{DEFINITIONS}/{asset}") },
    });
    let archives = json!({
        "fn::fileArchive": text("Path of a folder or a packed archive (.tar, .tgz, .tar.gz, .zip, .jar), from the root of the repository."),
        "fn::remoteArchive": text("URL of a packed archive."),
        "fn::assetArchive": members,
    });
    let mut all = archives.clone();
    all["fn::fileAsset"] = text("Path of a file, from the root of the repository.");
    all["fn::stringAsset"] = text("Content of the asset.");
    all["fn::remoteAsset"] = text("URL of a file.");
    let definition = |description: &str, functions: Value| {
        let mut schema = or_placeholder("object");
        schema.extend(fields([
            ("description", description.into()),
            ("properties", functions),
            ("minProperties", 1.into()),
            ("maxProperties", 1.into()),
            ("additionalProperties", false.into()),
        ]));
        Value::Object(schema)
    };
    let asset = (asset.to_owned(), definition("An asset or an archive: a mapping with one of these keys.", all));
    let archive = (archive.to_owned(), definition("An archive: a mapping with one of these keys.", archives));
    [asset, archive].into()
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the schema of a value of a kind, a placeholder, or null. Written as a list of types: with `anyOf`, editors
/// would guess the intended alternative. Null means absent.
fn or_placeholder(kind: &str) -> Map<String, Value> {
    fields([("type", json!([kind, "string", "null"])), ("pattern", PLACEHOLDER.into())])
}

/// Returns the schema of a value that matches `schema`, a placeholder, or null.
fn schema_or_placeholder(schema: Value) -> Map<String, Value> {
    fields([("anyOf", json!([schema, { "type": ["string", "null"], "pattern": PLACEHOLDER }]))])
}

fn describe(schema: &mut Map<String, Value>, description: &str, deprecation: &str) {
    let mut text = description.trim().to_owned();
    if !deprecation.is_empty() {
        let blank = if text.is_empty() { "" } else { "\n\n" };
        text = format!("{text}{blank}Deprecated: {}", deprecation.trim());
        schema.insert("deprecated".into(), true.into());
    }
    if !text.is_empty() {
        schema.insert("description".into(), text.into());
    }
}

/// Decodes the percent encoding of a reference, which is a URI: `%2F` is `/`.
fn decode_percent(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::convert_package;

    fn inputs(input_properties: Value, types: Value) -> Value {
        let text = json!({
            "name": "reef", "version": "1.2.3", "types": types,
            "resources": { "reef:sea:Shell": { "inputProperties": input_properties, "requiredInputs": ["size"] } },
        });
        let converted = convert_package(&text.to_string()).unwrap();
        json!({ "resource": converted.resources["reef:sea:Shell"], "$defs": converted.definitions })
    }

    #[test]
    fn required_inputs_are_kept_and_undeclared_names_are_errors() {
        let schema = inputs(json!({ "size": { "type": "integer", "description": "In mm." } }), json!({}));
        insta::assert_snapshot!(schema, @r##"{"resource":{"type":"object","properties":{"size":{"type":["integer","string","null"],"pattern":"\\$\\{[^}]*\\}","description":"In mm."}},"required":["size"],"additionalProperties":false},"$defs":{}}"##);
    }

    #[test]
    fn input_with_a_default_is_not_required() {
        let schema = inputs(json!({ "size": { "type": "integer", "default": 3 } }), json!({}));
        assert_eq!(schema["resource"].get("required"), None);
        assert_eq!(schema["resource"]["properties"]["size"]["default"], 3);
    }

    #[test]
    fn only_referenced_types_are_converted() {
        let types = json!({
            "reef:sea/hue:Hue": { "type": "string", "enum": [{ "value": "red" }, { "value": "blue" }] },
            "reef:sea/opts:Opts": { "type": "object", "properties": { "hue": { "$ref": "#/types/reef:sea%2Fhue:Hue" } } },
            "reef:sea/never:Never": { "type": "object" },
        });
        let schema = inputs(json!({ "opts": { "$ref": "#/types/reef:sea%2Fopts:Opts" } }), types);
        assert_eq!(schema["resource"]["properties"]["opts"]["$ref"], "#/$defs/reef:sea~1opts:Opts");
        assert_eq!(schema["$defs"]["reef:sea/hue:Hue"]["anyOf"][0]["enum"], json!(["red", "blue"]));
        assert_eq!(schema["$defs"].as_object().unwrap().len(), 2);
    }

    #[test]
    fn recursive_type_is_converted_once() {
        let types = json!({ "reef:a:A": { "properties": { "a": { "$ref": "#/types/reef:a:A" } } } });
        let schema = inputs(json!({ "a": { "type": "array", "items": { "$ref": "#/types/reef:a:A" } } }), types);
        assert_eq!(schema["$defs"].as_object().unwrap().len(), 1);
    }

    #[test]
    fn assets_and_archives_are_mappings_with_one_function() {
        let schema = inputs(json!({ "code": { "$ref": "pulumi.json#/Archive" } }), json!({}));
        assert_eq!(schema["resource"]["properties"]["code"]["$ref"], "#/$defs/pulumi:archive");
        let definitions = &schema["$defs"];
        let keys = |name: &str| -> Vec<String> {
            definitions[name]["properties"].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(keys("pulumi:archive"), ["fn::fileArchive", "fn::remoteArchive", "fn::assetArchive"]);
        assert_eq!(keys("pulumi:assetOrArchive").len(), 6);
    }

    #[test]
    fn unsupported_reference_accepts_any_value() {
        for open in ["pulumi.json#/Any", "/aws/v6.0.0/schema.json#/types/aws:a:B", "#/types/gone"] {
            let schema = inputs(json!({ "x": { "$ref": open } }), json!({}));
            assert_eq!(schema["resource"]["properties"]["x"], json!({}), "{open}");
        }
    }

    #[test]
    fn secrets_deprecations_and_replacements_are_described() {
        let property =
            json!({ "type": "string", "secret": true, "willReplaceOnChanges": true, "deprecationMessage": "Use b." });
        let schema = inputs(json!({ "a": property }), json!({}));
        insta::assert_snapshot!(schema["resource"]["properties"]["a"], @r#"{"type":["string","null"],"deprecated":true,"description":"A change replaces the resource.\n\nDeprecated: Use b.","writeOnly":true}"#);
    }

    #[test]
    fn invalid_package_schema_is_refused() {
        assert!(convert_package("{}").is_err());
        assert!(convert_package("tide").is_err());
    }
}
