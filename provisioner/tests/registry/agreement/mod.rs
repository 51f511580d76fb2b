//! Compares reader and schema value by value: each value of files with all keys is replaced by others, which both must accept
//! or both refuse. The schema may refuse what the reader accepts with a warning.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use config::diagnostics::Severity;
use provisioner::registry::recipes;
use provisioner::schema;
use serde_json::{Value, json};

use crate::repository::Files;

/// Codes of errors about several places of a file, or about other files, which a schema cannot report.
const BEYOND_A_SCHEMA: [&str; 14] = [
    "dependency-cycle",
    "duplicate-domain",
    "duplicate-record",
    "duplicate-user",
    "missing-registrar",
    "misplaced-reference",
    // Keys that are required only beside others.
    "missing-key",
    "unknown-property",
    "unknown-provider",
    "unknown-resource",
    "unknown-resource-type",
    "unknown-topic",
    "unresolved-placeholder",
    "inherit",
];

/// Values that depend on others, or whose format a schema cannot express: end of the path, and value as JSON, `*` for any.
const EXCEPTIONS: [(&str, &str); 3] = [
    // `contentBasedDeduplication` needs it.
    ("/queue/config/fifo", "*"),
    ("/queue/config/name", "3.5"),
    // Only an adopted instance may have none.
    ("/redis/config/memorySizeGb", "0"),
];

/// Returns the values that take the place of another one.
fn replacements(of: &Value) -> Vec<Value> {
    let of_kind = match of {
        Value::Object(_) => vec![json!([]), json!({}), json!({ "zzz": 1 })],
        Value::Array(_) => vec![json!([]), json!([null]), json!({ "zzz": 1 })],
        Value::Number(_) => {
            vec![json!(""), json!(-1), json!(0), json!(70_000), json!(3.5), json!(true), json!(["zzz"])]
        }
        _ => vec![json!(""), json!(3.5), json!(["zzz"])],
    };
    of_kind.into_iter().chain([Value::Null, json!("zzz")]).collect()
}

/// Returns the documents with a single resource each, in place of one with all.
fn with_one_resource(document: &Value) -> Vec<Value> {
    let environments = document["resources"]["resources"].as_object().into_iter().flatten();
    let resources = environments.flat_map(|(environment, section)| {
        let resources = section["resources"].as_object().into_iter().flatten();
        resources.map(move |(key, resource)| (environment, key, resource))
    });
    let single = |(environment, key, resource): (&String, &String, &Value)| {
        let mut single = document.clone();
        single["resources"]["resources"] = json!({ environment: { "resources": { key: resource } } });
        single
    };
    resources.map(single).collect()
}

/// Returns the paths of all values in a document.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    let mut add = |key: &str, item: &Value| {
        let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        found.push(path.clone());
        paths(item, &path, found);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, item)| add(key, item)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| add(&index.to_string(), item)),
        _ => {}
    }
}

/// Writes a document as YAML, with texts without quotes where they stay texts.
fn to_yaml(value: &Value) -> String {
    let is_word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
            && !["true", "false", "null", "y", "n", "yes", "no", "on", "off"].contains(&text.to_lowercase().as_str())
    };
    match value {
        Value::String(text) if is_word(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(to_yaml).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{}: {}", json!(key), to_yaml(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

struct Comparison {
    schema: jsonschema::Validator,
    /// Repository whose server.yaml is written anew for each document: to make folders takes longer than to read them.
    files: Files,
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl Comparison {
    fn new() -> Self {
        let schemas = schema::files(&recipes::built_in_types(), None);
        let schema: Value = serde_json::from_str(&schemas["server.schema.json"]).unwrap();
        let files = Files::server("").types(recipes::built_in_types()).secrets(include_str!("secrets.yaml"));
        let (root, folder) = files.write();
        Self { schema: jsonschema::validator_for(&schema).unwrap(), files, root, _folder: folder }
    }

    /// Returns the difference between reader and schema about a document; `None` if they agree.
    fn difference(&self, document: &Value) -> Option<String> {
        fs::write(self.root.join(".sc/stacks/s/server.yaml"), to_yaml(document)).unwrap();
        let (loaded, _) = self.files.read_at(&self.root, &["s"]);
        let found = &loaded.diagnostics;
        let is_of_schema = |code: &str| !BEYOND_A_SCHEMA.contains(&code);
        let errors = found.iter().filter(|found| found.severity == Severity::Error && is_of_schema(found.code.0));
        let refused: Vec<String> = errors.map(|error| format!("{}: {}", error.code.0, error.summary)).collect();
        match (self.schema.is_valid(document), refused.is_empty()) {
            (true, false) => Some(format!("only the reader refuses: {}", refused.join("; "))),
            (false, _) if found.is_empty() => {
                let error = self.schema.iter_errors(document).next().map(|error| error.to_string());
                Some(format!("only the schema refuses: {}", error.unwrap_or_default()))
            }
            _ => None,
        }
    }
}

/// Shows: server-yaml.md#in-an-editor "They also accept the same values of each key: kinds, ranges, formats and known
///   names."
#[test]
fn reader_and_schema_agree_about_each_value() {
    let documents = |text: &str| -> Vec<Value> {
        text.split("\n---\n").map(|document| serde_yaml::from_str(document).unwrap()).collect()
    };
    let mut compared: Vec<(Value, &str)> = Vec::new();
    for text in [include_str!("sections.yaml"), include_str!("provisioners.yaml")] {
        for document in documents(text) {
            // The provisioner is compared in documents of its own.
            let below =
                ["/templates", "/plugins", "/resources"].into_iter().rfind(|path| document.pointer(path).is_some());
            compared.push((document, below.unwrap_or_default()));
        }
    }
    for document in documents(include_str!("core_types.yaml")) {
        compared.extend(with_one_resource(&document).into_iter().map(|document| (document, "/resources/resources")));
    }
    let (next, differences) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let comparison = Comparison::new();
                while let Some((document, below)) = compared.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = differences_of_values(&comparison, document, below);
                    differences.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut differences = differences.into_inner().unwrap();
    differences.sort();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Returns the differences about a document, and about it with each value below a path replaced.
fn differences_of_values(comparison: &Comparison, document: &Value, below: &str) -> Vec<String> {
    let mut differences: Vec<String> = comparison.difference(document).into_iter().collect();
    let mut found = Vec::new();
    paths(document, "", &mut found);
    for path in found.iter().filter(|path| path.starts_with(below)) {
        let value = document.pointer(path).unwrap();
        let mut changed = Vec::new();
        for replacement in replacements(value) {
            let mut document = document.clone();
            *document.pointer_mut(path).unwrap() = replacement.clone();
            changed.push((replacement.to_string(), document));
        }
        let (parent, key) = path.rsplit_once('/').unwrap();
        let mut removed = document.clone();
        if let Some(Value::Object(members)) = removed.pointer_mut(parent) {
            members.shift_remove(&key.replace("~1", "/"));
            changed.push(("nothing".to_owned(), removed));
        }
        if value.is_object() {
            let mut document = document.clone();
            document.pointer_mut(path).unwrap()["zzz"] = json!(1);
            changed.push(("a further key".to_owned(), document));
        }
        let is_excepted =
            |value: &str| EXCEPTIONS.iter().any(|(end, of)| path.ends_with(end) && (*of == "*" || *of == value));
        for (value, document) in changed.into_iter().filter(|(value, _)| !is_excepted(value)) {
            let difference = comparison.difference(&document);
            differences.extend(difference.map(|difference| format!("{path} = {value}: {difference}")));
        }
    }
    differences
}
