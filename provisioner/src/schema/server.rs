//! Schema of server.yaml.

use std::collections::BTreeMap;

use bridge::host::expand_index_module;
use config::types::{CoreType, TemplateConfigName, TemplateType, TypeTable};
use pulumi_proto::urn::TypeToken;
use schemas::PackageSchemas;
use serde_json::{Map, Value, json};

use super::json_schema::closed_schema;
use super::package::Package;

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
        choices.push(if_type(const_schema(core.name()), definitions.add_core_type(core)));
    }
    let mut templates: Vec<Value> = Vec::new();
    for template in types.templates() {
        let TemplateConfigName { provider, name } = template.config();
        let then = definitions.add(&format!("{provider} {name}"), closed_schema(template.schema()));
        templates.push(if_type(const_schema(template.name()), then));
    }
    let mut configurations: Vec<Value> = Vec::new();
    if packages.is_none() {
        open.push(json!({ "type": "string", "pattern": "^[^:]+(:[^:]+){1,2}$" }));
    }
    for Package { name, schemas } in packages.unwrap_or_default() {
        let Some(schemas) = schemas else {
            open.push(json!({ "type": "string", "pattern": format!("^{name}(:[^:]+){{1,2}}$") }));
            continue;
        };
        known.extend(type_forms(schemas.resources.keys()).into_values().flatten());
        let prefix = json!({ "pattern": format!("^{name}:") });
        let PackageSchemas { resources, configuration, definitions: shared, .. } = schemas;
        choices.push(json!({ "if": of_type(&prefix), "then": definitions.add_package(&name, resources) }));
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
    replace("/$defs/plugin/allOf", non_empty(configurations));
    replace("/$defs/template/else/allOf", non_empty(templates));
    let kind = &mut schema["$defs"]["resource"]["properties"]["type"];
    if let (Value::Object(kind), Value::Object(accepted)) = (kind, accepted) {
        kind.extend(accepted);
    }
    schema
}

/// Definitions that the schema refers to.
struct Definitions(Map<String, Value>);

impl Definitions {
    /// Adds the schema of a core type's `config`, and returns the reference to it.
    fn add_core_type(&mut self, core: &CoreType) -> ConfigSchemaReference {
        let mut schema = closed_schema(core.schema());
        if let Some(Value::Object(shared)) = schema.remove("$defs") {
            self.0.extend(shared);
        }
        self.add(core.name(), schema)
    }

    /// Adds the types of a package, and returns the condition for its resources. The condition selects by module, then
    /// by type, so that a validator does not try thousands of types for each resource.
    fn add_package(&mut self, name: &str, resources: BTreeMap<String, Value>) -> Value {
        let mut modules: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut forms = type_forms(resources.keys());
        for (token, schema) in resources {
            let Value::Object(schema) = schema else { continue };
            let then = self.add(&format!("config of {token}"), schema);
            let condition = json!({ "enum": forms.remove(&token).unwrap_or_default() });
            modules.entry(token_module(&token).to_owned()).or_default().push(if_type(condition, then));
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
fn if_type(condition: Value, then: ConfigSchemaReference) -> Value {
    let then_schema = if then.required {
        json!({ "properties": { "config": { "$ref": then.reference } }, "required": ["config"] })
    } else {
        json!({ "properties": { "config": { "anyOf": [{ "$ref": then.reference }, { "type": "null" }] } } })
    };
    json!({ "if": of_type(&condition), "then": then_schema })
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

/// Returns the forms in which server.yaml may have each type, the token first. Omits a short form that names another type
/// too.
fn type_forms<'t>(tokens: impl Iterator<Item = &'t String> + Clone) -> BTreeMap<String, Vec<String>> {
    let short_forms = |token: &str| {
        let short = TypeToken::new(token).short_form().into_owned();
        let with_module = expand_index_module(&short).into_owned();
        [short, with_module]
    };
    let mut forms: BTreeMap<String, Vec<String>> = tokens.clone().map(|token| (token.clone(), Vec::new())).collect();
    let mut named: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for token in tokens {
        for form in short_forms(token) {
            let types = named.entry(form).or_default();
            if !types.contains(&token) {
                types.push(token);
            }
        }
    }
    for (form, types) in named {
        if let ([token], false) = (types.as_slice(), forms.contains_key(&form))
            && let Some(of_type) = forms.get_mut(*token)
        {
            of_type.push(form);
        }
    }
    for (token, of_type) in &mut forms {
        of_type.insert(0, token.clone());
    }
    forms
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_type_selects_its_config() {
        let text = json!({"name": "p", "resources": {
            "p:index/randomPet:RandomPet": {},
            "p:s3/bucket:Bucket": {},
            "p:core/v1:Pod": {},
            "p:both:Type": {},
            "p:both/type:Type": {},
            "p:two/name:Name": {},
            "p:two/NAME:Name": {},
        }});
        let package =
            Package { name: "p".to_owned(), schemas: Some(schemas::convert_package(&text.to_string()).unwrap()) };
        let schema = server_schema(&config::types::TypeTable::default(), Some(vec![package]));
        let resource = &schema["$defs"]["resource"];
        let mut accepted: Vec<String> = serde_json::from_value(resource["properties"]["type"]["enum"].clone()).unwrap();
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
            "p:index/randomPet:RandomPet",
            "p:index:RandomPet",
            "p:s3/bucket:Bucket",
            "p:s3:Bucket",
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
            ["^p:(both[/:])", "^p:(core[/:])", "^p:(index[/:]|[^:]+$)", "^p:(s3[/:])", "^p:(two[/:])"]
        );
    }
}
