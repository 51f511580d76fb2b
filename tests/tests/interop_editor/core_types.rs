//! Core types in an editor: the keys of each type, and repositories that use all of them.

use std::fs;
use std::path::Path;

use provisioner::registry::recipes;
use serde_json::Value;

use crate::server::LanguageServer;
use crate::write;

/// Schema of an object or a value, with the definitions that it refers to.
#[derive(Clone, Copy)]
struct Shape<'s> {
    schema: &'s Value,
    definitions: &'s Value,
}

impl<'s> Shape<'s> {
    /// Returns the schema that this one refers to, if it does: directly, or as the alternative to null.
    fn resolved(self) -> Self {
        let alternatives = self.schema["anyOf"].as_array().into_iter().flatten();
        let reference = alternatives.chain([self.schema]).find_map(|schema| schema["$ref"].as_str());
        match reference.and_then(|path| path.strip_prefix("#/$defs/")) {
            Some(name) => Self { schema: &self.definitions[name], ..self },
            None => self,
        }
    }

    fn of(self, schema: &'s Value) -> Self {
        Self { schema, ..self }.resolved()
    }

    fn properties(self) -> impl Iterator<Item = (&'s String, Self)> {
        let properties = self.schema["properties"].as_object().into_iter().flatten();
        properties.map(move |(name, schema)| (name, self.of(schema)))
    }

    fn required(self) -> impl Iterator<Item = &'s str> {
        self.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns the members of a valid object except one, in the flow style of YAML.
    fn members(self, except: &str) -> Vec<String> {
        let required = self.required().filter(|name| *name != except);
        required.map(|name| format!("{name}: {}", self.of(&self.schema["properties"][name]).valid())).collect()
    }

    /// Returns a valid value.
    fn valid(self) -> String {
        let kind = &self.schema["type"];
        let is = |name: &str| kind == name || kind.as_array().is_some_and(|kinds| kinds.contains(&name.into()));
        match &self.schema["enum"][0] {
            Value::String(text) => text.clone(),
            _ if is("object") => format!("{{ {} }}", self.members("").join(", ")),
            _ if is("array") => "[]".to_owned(),
            _ if is("string") => "a".to_owned(),
            _ if is("boolean") => "true".to_owned(),
            _ => "1".to_owned(),
        }
    }

    /// Returns values with one misspelt key each, with the key: all keys of the objects in the value.
    fn misspelt(self) -> Vec<(String, String)> {
        let own = self.properties().map(|(name, _)| {
            let wrong = format!("{name}s_");
            (self.members("").into_iter().chain([format!("{wrong}: 1")]).collect::<Vec<_>>().join(", "), wrong)
        });
        let nested = self.properties().flat_map(|(name, shape)| {
            let others = self.members(name);
            shape.misspelt().into_iter().map(move |(value, wrong)| {
                (others.iter().cloned().chain([format!("{name}: {value}")]).collect::<Vec<_>>().join(", "), wrong)
            })
        });
        let of_object = own.chain(nested).map(|(members, wrong)| (format!("{{ {members} }}"), wrong));
        let items = self.schema.get("items").map(|items| self.of(items)).into_iter();
        let of_items = items.flat_map(Self::misspelt).map(|(item, wrong)| (format!("[{item}]"), wrong));
        of_object.chain(of_items).collect()
    }
}

/// Lines of a server.yaml before its resources.
const HEAD: &str = "schemaVersion: 1.0
provisioner: { type: pulumi, config: { state-storage: { type: fs, config: { path: file://state } }, \
                    secrets-provider: { type: passphrase, config: { passPhrase: a } } } }
resources:
";

/// Returns a server.yaml with resources of a type, and the lines of their `config`s.
fn with_resources(type_name: &str, configs: &[&str]) -> (String, Vec<u64>) {
    let mut text = format!("{HEAD}  resources:\n    prod:\n      resources:\n");
    for (number, config) in configs.iter().enumerate() {
        text += &format!("        r{number}:\n          type: {type_name}\n          config: {config}\n");
    }
    let lines = (1..=configs.len() as u64).map(|number| 6 + 3 * number);
    (text, lines.collect())
}

/// Returns a server.yaml with a registrar, and the line of its `config`.
fn with_registrar(type_name: &str, config: &str) -> (String, Vec<u64>) {
    let registrar = format!("  registrar:\n    type: {type_name}\n    config: {config}\n");
    (format!("{HEAD}{registrar}  resources: {{}}\n"), vec![6])
}

/// Shows: server-yaml.md#in-an-editor "An editor shows each missing or misspelt key of each core type at its line."
#[test]
fn each_missing_or_misspelt_key_of_each_core_type_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), None);
    let mut editor = LanguageServer::start(&folder.path().join("server.schema.json"));
    let mut checked = 0;
    for core_type in recipes::core_types().core_types() {
        let (name, schema) = (core_type.name(), core_type.schema().to_value());
        let shape = Shape { schema: &schema, definitions: &schema["$defs"] };
        let missing = shape
            .required()
            .map(|key| (format!("{{ {} }}", shape.members(key).join(", ")), format!("Missing property \"{key}\".")));
        let misspelt = shape.misspelt().into_iter();
        let misspelt = misspelt.map(|(config, wrong)| (config, format!("Property {wrong} is not allowed.")));
        let cases: Vec<(String, String)> = missing.chain(misspelt).collect();
        checked += cases.len();
        let configs: Vec<&str> = cases.iter().map(|(config, _)| config.as_str()).collect();
        let valid = shape.valid();
        let (documents, valid) = match recipes::core_types().types().registrar(name) {
            Some(_) => {
                (configs.iter().map(|config| with_registrar(name, config)).collect(), with_registrar(name, &valid))
            }
            None => (vec![with_resources(name, &configs)], with_resources(name, &[&valid])),
        };
        assert_eq!(editor.diagnostics(&valid.0), [], "{name}");
        let mut cases = cases.iter();
        for (text, lines) in documents {
            let mut found = editor.diagnostics(&text);
            found.sort_by_key(|diagnostic| diagnostic.line);
            // An object that needs one of several keys has a second diagnostic.
            found.dedup_by_key(|diagnostic| diagnostic.line);
            assert_eq!(found.len(), lines.len(), "{text}{found:#?}");
            for (line, found) in lines.into_iter().zip(found) {
                let (config, message) = cases.next().unwrap();
                assert!(found.line == line && found.message.starts_with(message), "{config}: {message}: {found:?}");
            }
        }
    }
    assert!(checked > 250, "{checked}");
}

#[test]
fn repositories_of_pipelines_have_no_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), None);
    let mut editor = LanguageServer::start(&folder.path().join("server.schema.json"));
    for repository in ["aws", "gke"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/interop_pipelines")
            .join(repository)
            .join(".sc/stacks/reef/server.yaml");
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(editor.diagnostics(&text), [], "{repository}");
        let misspelt = text.replacen("projectId:", "projectIds:", 1).replacen("orgId:", "orgIds:", 1);
        assert_ne!(editor.diagnostics(&misspelt), [], "the schema applies to {repository}");
    }
}
