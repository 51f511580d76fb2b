//! Schema files by provider, in the format of Simple Container's `schema-gen`.

use std::collections::BTreeMap;

use bridge::plugin::Sha256Digest;
use schemas::PackageSchemas;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::json_schema::{DIALECT, closed_schema, to_json_text};
use super::server::Package;
use config::types::{CoreType, TemplateConfigName, TemplateType, TypeOrigin, TypeTable};

/// Name of the file with the definitions that a package's types share.
const SHARED: &str = "types.json";
/// Values of `type` in an envelope.
const RESOURCE: &str = "resource";
const TEMPLATE: &str = "template";

pub(super) fn files(types: &TypeTable, packages: &[Package]) -> BTreeMap<String, String> {
    let mut folders: BTreeMap<&str, Folder<'_>> = BTreeMap::new();
    for core in types.iter().chain(types.registrars()) {
        let folder = folders.entry(core.provider()).or_insert_with(|| Folder::new(title(core.provider())));
        folder.add_core(core);
    }
    // Template types with the same kind of config share a file, named after the last type, as in Simple Container.
    let mut templates: Vec<&TemplateType> = types.templates().iter().collect();
    templates.sort_by_key(|template| template.name());
    let templates: BTreeMap<TemplateConfigName, &TemplateType> =
        templates.into_iter().map(|template| (template.config(), template)).collect();
    for (config, template) in templates {
        let folder = folders.entry(config.provider).or_insert_with(|| Folder::new(title(config.provider)));
        folder.add_template(template);
    }
    for package in packages {
        let Some(schemas) = &package.schemas else { continue };
        let folder = folders.entry(&package.name).or_insert_with(|| Folder::new(package.name.clone()));
        folder.add_package(schemas);
    }
    let mut files = BTreeMap::new();
    let mut providers = Map::new();
    for (provider, folder) in folders {
        let kinds = folder.content_kinds();
        let about = format!("{} provider {kinds}", folder.title);
        providers.insert(provider.to_owned(), json!({ "count": folder.types.len(), "description": about }));
        let index = Index {
            description: format!("JSON Schema definitions for {} {kinds}", folder.title),
            provider,
            resources: folder.types.iter().map(|found| found.envelope(provider, json!({}))).collect(),
        };
        files.insert(format!("{provider}/index.json"), to_json_text(&index));
        let shared = folder.shared.filter(|shared| !shared.is_empty());
        files.extend(
            shared.map(|shared| (format!("{provider}/{SHARED}"), to_json_text(&Shared { dialect: DIALECT, shared }))),
        );
        for found in &folder.types {
            files.insert(
                format!("{provider}/{}.json", found.file),
                to_json_text(&found.envelope(provider, &found.schema)),
            );
        }
    }
    let index = json!({
        "description": "JSON Schema definitions for all Simple Container resources and templates",
        "providers": providers,
        "title": "Simple Container Resource Schemas",
    });
    files.insert("index.json".to_owned(), to_json_text(&index));
    files
}

struct Folder<'p> {
    title: String,
    types: Vec<Type<'p>>,
    shared: Option<&'p BTreeMap<String, Value>>,
}

/// File with the definitions that the types of a package share.
#[derive(serde::Serialize)]
struct Shared<'p> {
    #[serde(rename = "$schema")]
    dialect: &'static str,
    #[serde(rename = "$defs")]
    shared: &'p BTreeMap<String, Value>,
}

/// File that lists the types of a provider.
#[derive(serde::Serialize)]
struct Index<'a> {
    description: String,
    provider: &'a str,
    resources: Vec<Envelope<'a, Value>>,
}

/// File of one type.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, S> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    provider: &'a str,
    description: &'a str,
    resource_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    template_type: Option<&'a str>,
    schema: S,
}

struct Type<'p> {
    /// Name of the file, without its extension.
    file: String,
    name: String,
    description: String,
    kind: &'static str,
    /// Value of `type` in server.yaml.
    resource_type: String,
    schema: ConfigSchema<'p>,
}

/// Schema of a `config`. It is serialized without a copy, because schemas of large packages are large.
enum ConfigSchema<'p> {
    /// Schema of a type of `sc`, derived from its Rust type.
    Typed(Map<String, Value>),
    /// Schema of a package's type. Its references are rewritten to the shared file.
    OfPackage(&'p Value),
}

impl Serialize for ConfigSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("$schema", DIALECT)?;
        match self {
            Self::Typed(members) => members.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?,
            Self::OfPackage(schema) => {
                let mut members = schema.as_object().into_iter().flatten();
                members.try_for_each(|(key, value)| serialize_member(&mut map, key, value))?;
            }
        }
        map.end()
    }
}

/// Part of a schema. Its references are rewritten to the shared file.
struct RewrittenSchema<'p>(&'p Value);

impl Serialize for RewrittenSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(key, value)| serialize_member(&mut map, key, value))?;
                map.end()
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(RewrittenSchema)),
            other => other.serialize(serializer),
        }
    }
}

fn serialize_member<M: SerializeMap>(map: &mut M, key: &str, value: &Value) -> Result<(), M::Error> {
    match value {
        Value::String(target) if key == "$ref" => map.serialize_entry(key, &format!("{SHARED}{target}")),
        _ => map.serialize_entry(key, &RewrittenSchema(value)),
    }
}

impl Type<'_> {
    fn envelope<'a, S>(&'a self, provider: &'a str, schema: S) -> Envelope<'a, S> {
        let Self { name, kind, description, resource_type, .. } = self;
        let template_type = (*kind == TEMPLATE).then_some(resource_type.as_str());
        Envelope { name, kind, provider, description, resource_type, template_type, schema }
    }
}

impl<'p> Folder<'p> {
    fn new(title: String) -> Self {
        Self { title, types: Vec::new(), shared: None }
    }

    fn add_core(&mut self, core: &CoreType) {
        let (name, remark) = match core.origin() {
            TypeOrigin::SimpleContainer(go_name) => (go_name.to_owned(), ""),
            // The own type `aws-queue` becomes `AwsQueue`.
            TypeOrigin::Own => (core.name().split('-').map(capitalize).collect(), " (not in Simple Container)"),
        };
        let about = name.to_lowercase();
        let description = format!("{} {} configuration{remark}", self.title, about.trim_end_matches("config"));
        self.types.push(Type {
            file: name.to_lowercase(),
            name,
            kind: RESOURCE,
            description,
            resource_type: core.name().to_owned(),
            schema: ConfigSchema::Typed(closed_schema(core.schema())),
        });
    }

    fn add_template(&mut self, template: &TemplateType) {
        let name = template.config().name.to_owned();
        self.types.push(Type {
            file: name.to_lowercase(),
            name,
            kind: TEMPLATE,
            description: format!("{} deployment template configuration", self.title),
            resource_type: template.name().to_owned(),
            schema: ConfigSchema::Typed(closed_schema(template.schema())),
        });
    }

    /// Returns the kinds of types in the folder, for descriptions.
    fn content_kinds(&self) -> &'static str {
        match self.types.iter().any(|found| found.kind == TEMPLATE) {
            true => "resources and templates",
            false => "resources",
        }
    }

    fn add_package(&mut self, package: &'p PackageSchemas) {
        // References among the shared definitions are not rewritten: their targets are in the same file.
        self.shared = Some(&package.definitions);
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        for (token, schema) in &package.resources {
            let mut parts = token.split(':').skip(1);
            let (module, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            // The module part of `s3/bucket:Bucket` repeats the name of the type.
            let module = module.split('/').next().unwrap_or_default();
            let file = shorten_file_name(to_file_name(&format!("{module}-{name}")), token);
            let count = taken.entry(file.clone()).or_insert(0);
            *count += 1;
            let file = if *count == 1 { file } else { format!("{file}-{count}") };
            let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            let first = about.lines().next().unwrap_or_default().to_owned();
            self.types.push(Type {
                file,
                name: name.to_owned(),
                kind: RESOURCE,
                description: first,
                resource_type: token.clone(),
                schema: ConfigSchema::OfPackage(schema),
            });
        }
    }
}

/// Returns a name for a file: in lowercase, with `_` in place of characters that separate folders or are not common in
/// file names. The token of a type may contain any character.
fn to_file_name(text: &str) -> String {
    let is_common = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.to_lowercase().replace(|c| !is_common(c), "_")
}

/// Returns a name that leaves place for an extension, as file systems allow 255 bytes. A longer one ends with a digest of
/// the token, so that the name of a type does not depend on other types.
fn shorten_file_name(name: String, token: &str) -> String {
    const MAX_BYTES: usize = 200;
    const DIGEST_DIGITS: usize = 16;
    if name.len() <= MAX_BYTES {
        return name;
    }
    let is_kept = |(start, character): &(usize, char)| start + character.len_utf8() < MAX_BYTES - DIGEST_DIGITS;
    let kept = name.char_indices().take_while(is_kept).map(|(_, character)| character);
    let digest = Sha256Digest::of(token).to_hex();
    kept.chain(['-']).chain(digest.chars().take(DIGEST_DIGITS)).collect()
}

fn title(provider: &str) -> String {
    match provider {
        "aws" => "AWS".to_owned(),
        "gcp" => "Google Cloud Platform".to_owned(),
        "mongodb" => "MongoDB Atlas".to_owned(),
        other => capitalize(other),
    }
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::recipes;

    #[test]
    fn types_of_simple_container_have_its_names_and_folders() {
        // Lines of PATH, name, type and description of the files that Simple Container writes.
        let expected = include_str!("../../../tests/goldens/simple-container/schemas.tsv");
        let types = recipes::core_types().types();
        let own: Vec<&str> = types.iter().filter(|core| core.origin() == TypeOrigin::Own).map(CoreType::name).collect();
        let (mut found, mut found_own): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for (path, text) in &files(&types, &[]) {
            if !path.contains('/') || path.ends_with("/index.json") {
                continue;
            }
            let file: Value = serde_json::from_str(text).unwrap();
            let text = |key: &str| file[key].as_str().unwrap();
            let name = text("resourceType");
            if own.contains(&name) {
                let descriptions = [text("description"), file["schema"]["description"].as_str().unwrap()];
                assert!(
                    descriptions.iter().all(|text| text.to_lowercase().contains("not in simple container")),
                    "{name}"
                );
                found_own.push(name.to_owned());
            } else {
                found.push([path, text("name"), name, text("description")].join("\t"));
            }
        }
        assert_eq!(found, expected.lines().collect::<Vec<_>>());
        assert_eq!(found_own, own, "each own type has a file");
    }

    #[test]
    fn long_file_name_is_shortened_to_a_name_of_its_own() {
        let shorten = |name: &str, token: &str| shorten_file_name(name.to_owned(), token);
        assert_eq!(shorten(&"a".repeat(200), "t"), "a".repeat(200));
        for long in ["a".repeat(201), "日".repeat(400)] {
            let [first, second] = [shorten(&long, "p:m:T"), shorten(&long, "p:m:U")];
            assert!((190..=200).contains(&first.len()) && first.starts_with(&long[..180]), "{first}");
            assert_ne!(first, second);
            assert_eq!(first, shorten(&long, "p:m:T"));
        }
    }
}
