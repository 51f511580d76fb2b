//! The folders of schemas by provider, in the envelopes of Simple Container's `schema-gen`.

use std::collections::BTreeMap;

use schemas::PackageSchemas;
use serde_json::{Map, Value, json};

use super::{DIALECT, Package, config_of, text};
use crate::registry::types::{CoreType, TypeTable};

/// The file that a package's types share.
const SHARED: &str = "types.json";

pub(super) fn files(types: &TypeTable, packages: &[Package]) -> BTreeMap<String, String> {
    let mut folders: BTreeMap<&str, Folder> = BTreeMap::new();
    for core in types.iter() {
        let folder = folders.entry(provider_of(core)).or_insert_with(|| Folder::new(title(provider_of(core))));
        folder.add_core(core);
    }
    for package in packages {
        let Some(schemas) = &package.schemas else { continue };
        let folder = folders.entry(&package.name).or_insert_with(|| Folder::new(package.name.clone()));
        folder.add_package(schemas);
    }
    let mut files = BTreeMap::new();
    let mut providers = Map::new();
    for (provider, folder) in folders {
        let about = format!("{} provider resources", folder.title);
        providers.insert(provider.to_owned(), json!({ "count": folder.types.len(), "description": about }));
        let index = json!({
            "description": format!("JSON Schema definitions for {} resources", folder.title),
            "provider": provider,
            "resources": folder.types.iter().map(|found| found.envelope(provider, json!({}))).collect::<Vec<_>>(),
        });
        files.insert(format!("{provider}/index.json"), text(&index));
        for found in &folder.types {
            let schema = found.envelope(provider, found.schema.clone().into());
            files.insert(format!("{provider}/{}.json", found.file), text(&schema));
        }
        if !folder.shared.is_empty() {
            let shared = json!({ "$schema": DIALECT, "$defs": folder.shared });
            files.insert(format!("{provider}/{SHARED}"), text(&shared));
        }
    }
    let index = json!({
        "description": "JSON Schema definitions for all Simple Container resources",
        "providers": providers,
        "title": "Simple Container Resource Schemas",
    });
    files.insert("index.json".to_owned(), text(&index));
    files
}

struct Folder {
    title: String,
    types: Vec<Type>,
    shared: Map<String, Value>,
}

struct Type {
    /// Name of the file, without its end.
    file: String,
    name: String,
    description: String,
    /// The `type` in server.yaml.
    resource_type: String,
    schema: Map<String, Value>,
}

impl Type {
    fn envelope(&self, provider: &str, schema: Value) -> Value {
        json!({
            "name": self.name,
            "type": "resource",
            "provider": provider,
            "description": self.description,
            "resourceType": self.resource_type,
            "schema": schema,
        })
    }
}

impl Folder {
    fn new(title: String) -> Self {
        Self { title, types: Vec::new(), shared: Map::new() }
    }

    fn add_core(&mut self, core: &CoreType) {
        let mut schema = Map::from_iter([("$schema".to_owned(), DIALECT.into())]);
        schema.extend(config_of(core));
        // `s3-bucket`: S3Bucket, as Simple Container's own.
        let words = core.name().split('-').map(capitalized);
        let name: String = words.collect();
        let description = format!("{} {} configuration", self.title, name.to_lowercase());
        self.types.push(Type {
            file: name.to_lowercase(),
            name,
            description,
            resource_type: core.name().to_owned(),
            schema,
        });
    }

    fn add_package(&mut self, package: &PackageSchemas) {
        // References among them stay as they are: they lead within the file.
        self.shared = package.definitions.iter().map(|(name, schema)| (name.clone(), schema.clone())).collect();
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        for (token, schema) in &package.resources {
            let mut parts = token.split(':').skip(1);
            let (module, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            // `s3/bucket:Bucket` says its name twice.
            let module = module.split('/').next().unwrap_or_default();
            let file = format!("{module}-{name}").to_lowercase();
            let count = taken.entry(file.clone()).or_insert(0);
            *count += 1;
            let file = if *count == 1 { file } else { format!("{file}-{count}") };
            let mut inner = Map::from_iter([("$schema".to_owned(), DIALECT.into())]);
            if let Value::Object(members) = to_shared(schema) {
                inner.extend(members);
            }
            let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            let first = about.lines().next().unwrap_or_default().to_owned();
            self.types.push(Type {
                file,
                name: name.to_owned(),
                description: first,
                resource_type: token.clone(),
                schema: inner,
            });
        }
    }
}

/// The schema with its references to what a package's types share leading to that file.
fn to_shared(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match value {
                Value::String(target) if key == "$ref" => (key.clone(), format!("{SHARED}{target}").into()),
                _ => (key.clone(), to_shared(value)),
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(to_shared).collect(),
        _ => schema.clone(),
    }
}

/// The provider that Simple Container puts a core type with: by the words of its name.
fn provider_of(core: &CoreType) -> &'static str {
    let is = |words: &[&str]| core.name().split('-').any(|word| words.contains(&word));
    if is(&["aws", "s3", "ecr", "rds"]) {
        "aws"
    } else if is(&["gcp", "gke"]) {
        "gcp"
    } else if is(&["kubernetes"]) {
        "kubernetes"
    } else if is(&["mongodb"]) {
        "mongodb"
    } else {
        "unknown"
    }
}

fn title(provider: &str) -> String {
    match provider {
        "aws" => "AWS".to_owned(),
        "gcp" => "Google Cloud Platform".to_owned(),
        "mongodb" => "MongoDB Atlas".to_owned(),
        other => capitalized(other),
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}
