//! Schema of server.yaml.

use std::collections::{BTreeMap, BTreeSet};

use bridge::host::expand_index_module;
use config::types::{CoreType, TemplateConfigName, TemplateType, TypeTable};
use pulumi_proto::urn::TypeToken;
use schemas::PackageSchemas;
use serde_json::{Map, Value, json};

use super::json_schema::{as_read, closed_schema, with_aws_accounts, with_pattern_messages};

/// Module that the forms of a type may omit.
const INDEX_MODULE: &str = "index";

/// Returns the schema of server.yaml.
pub(super) fn server_schema(types: &TypeTable, packages: Option<Vec<Package>>) -> Value {
    let mut schema: Value = serde_json::from_str(include_str!("server.json")).expect("server.json is valid JSON");
    let mut definitions = Definitions(Map::new());
    let mut choices: Vec<Value> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let mut open: Vec<Value> = Vec::new();
    for core in types.iter() {
        known.push(core.name().to_owned());
        choices.push(if_type(const_schema(core.name()), &definitions.add_core_type(core)));
        choices.push(json!({ "if": of_type(&const_schema(core.name())), "then": core_options() }));
    }
    let mut templates: Vec<Value> = Vec::new();
    for template in types.templates() {
        let TemplateConfigName { provider, name } = template.config();
        let then = definitions.add(&format!("{provider} {name}"), as_read(closed_schema(template.schema())));
        templates.push(if_type(const_schema(template.name()), &then));
    }
    let registrars =
        types.registrars().map(|core| if_type(const_schema(core.name()), &definitions.add_core_type(core)));
    let registrars: Vec<Value> = registrars.collect();
    let mut configurations: Vec<Value> = Vec::new();
    if packages.is_none() {
        open.push(json!({ "type": "string", "pattern": "^[^:]+(:[^:]+){1,2}$" }));
    }
    for Package { name, schemas } in packages.unwrap_or_default() {
        let Some(schemas) = schemas else {
            open.push(json!({ "type": "string", "pattern": format!("^{name}(:[^:]+){{1,2}}$") }));
            continue;
        };
        let forms = type_forms(&schemas);
        known.extend(forms.values().flat_map(|forms| forms.current.iter().cloned()));
        let former: Vec<&String> = forms.values().flat_map(|forms| &forms.former).collect();
        if !former.is_empty() {
            open.push(json!({ "enum": former, "deprecated": true }));
        }
        let prefix = json!({ "pattern": format!("^{name}:") });
        let PackageSchemas { resources, configuration, definitions: shared, .. } = schemas;
        choices.push(json!({ "if": of_type(&prefix), "then": definitions.add_package(&name, resources, forms) }));
        configurations.push(definitions.add_configuration(&name, configuration));
        definitions.0.extend(shared);
    }
    let known = json!({ "enum": known });
    let accepted = if open.is_empty() {
        known
    } else {
        open.insert(0, known);
        json!({ "anyOf": open })
    };
    let target = schema.pointer_mut("/$defs").and_then(Value::as_object_mut).expect("server.json has `$defs`");
    target.extend(definitions.0);
    let mut replace = |pointer: &str, value: Value| {
        *schema.pointer_mut(pointer).expect("server.json has these pointers") = value;
    };
    // JSON Schema does not allow an empty `allOf`.
    let non_empty = |list: Vec<Value>| if list.is_empty() { json!([true]) } else { list.into() };
    replace("/$defs/resource/allOf", non_empty(choices));
    let template_types: Vec<_> = types.templates().iter().map(TemplateType::name).collect();
    replace("/$defs/template/else/properties/type/enum", json!(template_types));
    let registrar_types: Vec<_> = types.registrars().map(CoreType::name).collect();
    // The type is null or empty for no registrar.
    let nothing = [json!(""), Value::Null];
    let with_nothing = |names: Vec<&str>| names.into_iter().map(Value::from).chain(nothing.clone()).collect::<Value>();
    replace("/$defs/registrar/else/properties/type/enum", with_nothing(registrar_types));
    replace("/$defs/inheritable/else/properties/type/enum", with_nothing(types.block_names().collect()));
    replace("/$defs/registrar/else/allOf", non_empty(registrars));
    replace("/$defs/plugin/allOf", non_empty(configurations));
    replace("/$defs/template/else/allOf", non_empty(templates));
    let kind = &mut schema["$defs"]["resource"]["properties"]["type"];
    if let (Value::Object(kind), Value::Object(accepted)) = (kind, accepted) {
        kind.extend(accepted);
    }
    with_pattern_messages(&mut schema);
    schema
}

/// Definitions that the schema refers to.
struct Definitions(Map<String, Value>);

impl Definitions {
    /// Adds the schema of a core type's `config`, and returns the reference to it.
    fn add_core_type(&mut self, core: &CoreType) -> ConfigSchemaReference {
        let mut schema = as_read(closed_schema(core.schema()));
        with_aws_accounts(&mut schema);
        if let Some(Value::Object(shared)) = schema.remove("$defs") {
            self.0.extend(shared);
        }
        self.add(core.name(), schema)
    }

    /// Adds the types of a package, and returns the condition for its resources. The condition selects by module, then
    /// by type, so that a validator does not try thousands of types for each resource.
    fn add_package(
        &mut self,
        name: &str,
        resources: BTreeMap<String, Value>,
        mut forms: BTreeMap<String, TypeForms>,
    ) -> Value {
        let mut modules: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (token, schema) in resources {
            let Value::Object(schema) = schema else { continue };
            let then = self.add(&format!("config of {token}"), schema);
            let TypeForms { current, former } = forms.remove(&token).unwrap_or_default();
            let mut by_module: BTreeMap<String, Vec<String>> = BTreeMap::new();
            // A former type may be in another module.
            for form in current.into_iter().chain(former) {
                by_module.entry(token_module(&expand_index_module(&form)).to_owned()).or_default().push(form);
            }
            for (module, forms) in by_module {
                modules.entry(module).or_default().push(if_type(json!({ "enum": forms }), &then));
            }
        }
        let by_module = modules.into_iter().map(|(module, choices)| {
            let without_module = if module == INDEX_MODULE { "|[^:]+$" } else { "" };
            let prefix = json!({ "pattern": format!("^{name}:({}[/:]{without_module})", escape_regex(&module)) });
            json!({ "if": of_type(&prefix), "then": { "allOf": choices } })
        });
        json!({ "allOf": by_module.collect::<Vec<_>>() })
    }

    /// Adds the configuration of a package, and returns the condition for its plugins.
    fn add_configuration(&mut self, name: &str, configuration: Value) -> Value {
        let Value::Object(mut schema) = configuration else { return true.into() };
        // A missing property may come from the environment of the plugin.
        schema.remove("required");
        let then = self.add(&format!("configuration of {name}"), schema);
        let named = json!({ "properties": { "name": { "const": name } }, "required": ["name"] });
        let packaged = json!({ "properties": { "package": { "const": name } }, "required": ["package"] });
        let unpackaged = json!({ "allOf": [named, { "not": { "required": ["package"] } }] });
        json!({
            "if": { "anyOf": [packaged, unpackaged] },
            "then": { "properties": { "config": { "anyOf": [{ "$ref": then.reference }, { "type": "null" }] } } },
        })
    }

    fn add(&mut self, name: &str, schema: Map<String, Value>) -> ConfigSchemaReference {
        let required = schema.get("required").and_then(Value::as_array).is_some_and(|required| !required.is_empty());
        self.0.insert(name.to_owned(), schema.into());
        ConfigSchemaReference { reference: definition_reference(name), required }
    }
}

/// Reference to the schema of a `config`, for a known type.
struct ConfigSchemaReference {
    reference: String,
    /// True if the schema has required properties, so that `config` itself is required.
    required: bool,
}

/// Returns the condition: `if` the type matches, `then` the schema holds for the config.
fn if_type(condition: Value, then: &ConfigSchemaReference) -> Value {
    let then_schema = if then.required {
        json!({ "properties": { "config": { "$ref": then.reference } }, "required": ["config"] })
    } else {
        json!({ "properties": { "config": { "anyOf": [{ "$ref": then.reference }, { "type": "null" }] } } })
    };
    json!({ "if": of_type(&condition), "then": then_schema })
}

/// Returns the schema of a resource of a core type, which takes some of the options only.
fn core_options() -> Value {
    json!({ "properties": { "options": { "$ref": "#/$defs/coreOptions" } } })
}

fn of_type(condition: &Value) -> Value {
    json!({ "properties": { "type": condition }, "required": ["type"] })
}

fn const_schema(token: &str) -> Value {
    json!({ "const": token })
}

/// Returns the reference to a definition: a JSON pointer, escaped for a URI.
fn definition_reference(name: &str) -> String {
    let pointer = name.replace('~', "~0").replace('/', "~1").replace('%', "%25").replace(' ', "%20");
    format!("#/{}/{pointer}", schemas::DEFINITIONS)
}

/// Forms in which server.yaml may have a type.
#[derive(Debug, Default)]
struct TypeForms {
    /// The token, and its short forms that name no other type.
    current: Vec<String>,
    /// Former types and their short forms that name no other type.
    former: Vec<String>,
}

/// Returns the forms of each type of a package, by the rules of [`bridge::host::PackageTypes::resolve`]: a form of a type
/// comes before the same form of a former type.
fn type_forms(package: &PackageSchemas) -> BTreeMap<String, TypeForms> {
    let tokens = || package.resources.keys();
    let mut forms: BTreeMap<String, TypeForms> = tokens().map(|token| (token.clone(), TypeForms::default())).collect();
    let mut taken: BTreeSet<String> = tokens().cloned().collect();
    for (form, token) in unambiguous(tokens().flat_map(|token| short_forms(token).map(|form| (form, token)))) {
        if let Some(of_type) = forms.get_mut(token)
            && taken.insert(form.clone())
        {
            of_type.current.push(form);
        }
    }
    for (token, of_type) in &mut forms {
        of_type.current.insert(0, token.clone());
    }
    let former =
        || package.former_types.iter().flat_map(|(token, former)| former.iter().map(move |former| (former, token)));
    let names = unambiguous(former().map(|(former, token)| (former.clone(), token)));
    let short = unambiguous(former().flat_map(|(former, token)| short_forms(former).map(|form| (form, token))));
    for (form, token) in names.into_iter().chain(short) {
        if let Some(of_type) = forms.get_mut(token)
            && taken.insert(form.clone())
        {
            of_type.former.push(form);
        }
    }
    forms
}

fn short_forms(token: &str) -> [String; 2] {
    let short = TypeToken::new(token).short_form().into_owned();
    let with_module = expand_index_module(&short).into_owned();
    [short, with_module]
}

/// Returns the forms that belong to one type only.
fn unambiguous<'t>(forms: impl Iterator<Item = (String, &'t String)>) -> BTreeMap<String, &'t String> {
    let mut named: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
    for (form, token) in forms {
        named.entry(form).or_default().insert(token);
    }
    let of_one_type = |(form, types): (String, BTreeSet<&'t String>)| match types.first() {
        Some(token) if types.len() == 1 => Some((form, *token)),
        Some(_) | None => None,
    };
    named.into_iter().filter_map(of_one_type).collect()
}

/// Returns the module of a token: `s3` of `aws:s3/bucket:Bucket`.
fn token_module(token: &str) -> &str {
    token.split(':').nth(1).and_then(|module| module.split('/').next()).unwrap_or_default()
}

/// Escapes a text for a regular expression.
fn escape_regex(text: &str) -> String {
    // ECMAScript does not allow other escapes.
    text.chars().flat_map(|c| r"\^$.*+?()[]{}|/".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Package that plugins of a stack serve.
#[derive(Clone, Debug)]
pub struct Package {
    /// Name of the package, the first part of its type tokens.
    pub name: String,
    /// Schemas of the package; `None` if its plugin has none, so that all its types are accepted.
    pub schemas: Option<PackageSchemas>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_type_selects_its_config() {
        let text = json!({"name": "p", "resources": {
            "p:index/randomPet:RandomPet": {},
            "p:s3/bucket:Bucket": {"aliases": [{"type": "p:s3/bucketV2:BucketV2"}, "p:old/store:Store", {"name": "x"}]},
            "p:core/v1:Pod": {"aliases": [{"type": "p:core/v1beta1:Pod"}, {"type": "p:shared:Former"}]},
            "p:both:Type": {"aliases": [{"type": "p:shared:Former"}, {"type": "p:core/v1:Pod"}]},
            "p:both/type:Type": {},
            "p:two/name:Name": {},
            "p:two/NAME:Name": {},
        }});
        let package =
            Package { name: "p".to_owned(), schemas: Some(schemas::convert_package(&text.to_string()).unwrap()) };
        let schema = server_schema(&config::types::TypeTable::default(), Some(vec![package]));
        let resource = &schema["$defs"]["resource"];
        let [current, former] = resource["properties"]["type"]["anyOf"].as_array().unwrap().as_slice() else {
            panic!("{resource}")
        };
        let names = |schema: &Value| serde_json::from_value::<Vec<String>>(schema["enum"].clone()).unwrap();
        let former_names =
            ["p:core/v1beta1:Pod", "p:old/store:Store", "p:s3/bucketV2:BucketV2", "p:old:Store", "p:s3:BucketV2"];
        assert_eq!((names(former), &former["deprecated"]), (former_names.map(str::to_owned).to_vec(), &json!(true)));
        let mut accepted: Vec<String> = [names(current), names(former)].concat();
        accepted.sort();
        let mut selected: Vec<String> = Vec::new();
        for module in resource["allOf"][0]["then"]["allOf"].as_array().unwrap() {
            for choice in module["then"]["allOf"].as_array().unwrap() {
                let forms: Vec<String> =
                    serde_json::from_value(choice["if"]["properties"]["type"]["enum"].clone()).unwrap();
                selected.extend(forms);
            }
        }
        selected.sort();
        let expected = [
            "p:RandomPet",
            "p:both/type:Type",
            "p:both:Type",
            "p:core/v1:Pod",
            "p:core/v1beta1:Pod",
            "p:index/randomPet:RandomPet",
            "p:index:RandomPet",
            "p:old/store:Store",
            "p:old:Store",
            "p:s3/bucket:Bucket",
            "p:s3/bucketV2:BucketV2",
            "p:s3:Bucket",
            "p:s3:BucketV2",
            "p:two/NAME:Name",
            "p:two/name:Name",
        ];
        assert_eq!(
            (accepted.as_slice(), selected.as_slice()),
            (&expected.map(str::to_owned)[..], &expected.map(str::to_owned)[..])
        );
        let index = resource["allOf"][0]["then"]["allOf"].as_array().unwrap().iter();
        let patterns: Vec<&Value> = index.map(|module| &module["if"]["properties"]["type"]["pattern"]).collect();
        assert_eq!(
            patterns,
            ["^p:(both[/:])", "^p:(core[/:])", "^p:(index[/:]|[^:]+$)", "^p:(old[/:])", "^p:(s3[/:])", "^p:(two[/:])"]
        );
    }
}
