//! Tests of the schemas in editors: `yaml-language-server` checks a server.yaml with them, and the meta-schema of JSON
//! Schema 2020-12 checks the schemas.

#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

mod core_types;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use provisioner::registry::recipes;
use provisioner::schema::{Package, files};
use serde_json::json;
use tests::commands::run;
use tests::sdks::python_venv;

use server::{Diagnostic, LanguageServer};

/// Returns a package with features of real providers: nested types, enums, required and deprecated inputs.
fn reef() -> Package {
    let schema = json!({
        "name": "reef",
        "version": "1.0.0",
        "config": {},
        "provider": { "inputProperties": { "ocean": { "type": "string" }, "depth": { "type": "integer" } } },
        "types": {
            "reef:sea/light:Light": {
                "type": "object",
                "properties": {
                    "hue": { "$ref": "#/types/reef:sea%2Fhue:Hue", "description": "Its colour." },
                    "lumen": { "type": "integer", "default": 100 },
                },
                "required": ["hue"],
            },
            "reef:sea/hue:Hue": {
                "type": "string",
                "enum": [{ "value": "coral" }, { "value": "turquoise" }, { "value": "sand" }],
            },
        },
        "resources": {
            "reef:sea/tank:Tank": {
                "description": "A tank.",
                "inputProperties": {
                    "volume": { "type": "number", "description": "In litres." },
                    "light": { "$ref": "#/types/reef:sea%2Flight:Light" },
                    "tags": { "type": "object", "additionalProperties": { "type": "string" } },
                    "old": { "type": "string", "deprecationMessage": "Use tags." },
                },
                "requiredInputs": ["volume"],
            },
            "reef:sea/fish:Fish": { "inputProperties": { "kind": { "type": "string" } } },
        },
    });
    Package { name: "reef".into(), schemas: Some(schemas::convert_package(&schema.to_string()).unwrap()) }
}

fn write(folder: &Path, packages: Option<Vec<Package>>) {
    for (path, text) in files(&recipes::built_in_types(), packages) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const VALID: &str = r#"schemaVersion: "1.0"
x-anchors: &light
  hue: coral
provisioner:
  type: pulumi
  config:
    state-storage: { type: fs, config: { path: "file://${project:root}/state" } }
    secrets-provider: { type: passphrase, config: { passPhrase: "${secret:word}" } }
plugins:
  - name: reef
    source: { type: github-release, repository: acme/pulumi-reef, version: v1.0.0 }
    config:
      ocean: pacific
      depth: "${var:depth}"
resources:
  resources:
    prod:
      resources:
        tank:
          type: reef:sea/tank:Tank
          config:
            volume: 200
            light:
              <<: *light
              hue: coral
            tags: { a: b }
          options: { protect: true, dependsOn: [media], import: 12345, retainOnDelete: no, ignoreChanges: }
        small:
          type: reef:sea/tank:Tank
          config:
            volume: "${resource:tank.volume}"
            light: "${resource:tank.light}"
        media:
          type: s3-bucket
          config:
            credentials: "${auth:aws}"
            account: 123456789012
            corsConfig: { allowedOrigins: https://reef.example }
templates:
  web: { type: aws-lambda, parentStack: base, config: { credentials: "${auth:aws}", account: 123456789012 } }
  site: { inherit: base/site, type: ignored, config: { whatever: 1 } }
  own: { inherit: "", type: cloudrun, config: { projectId: p } }
  bare: { type: ecs-fargate }
outputs:
  volume: "${resource:prod/tank.volume}"
"#;

#[test]
fn editor_reports_exactly_the_invalid_properties() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Some(vec![reef()]));
    let mut editor = LanguageServer::start(&folder.path().join("server.schema.json"));
    assert_eq!(editor.diagnostics(VALID), []);
    // Columns: the replacement, the reported line, the message.
    let table = [
        ("volume: 200\n", "volume: 200\n            valume: 1\n", "valume: 1", "Property valume is not allowed."),
        ("            volume: 200\n", "", "config:\n            light", "Missing property \"volume\"."),
        ("type: s3-bucket\n", "type: s3-buckets\n", "type: s3-buckets", "Value is not accepted."),
        ("reef:sea/tank:Tank", "reef:sea/tonk:Tank", "reef:sea/tonk", "Value is not accepted."),
        ("depth: \"${var:depth}\"", "deep: 3", "deep: 3", "Property deep is not allowed."),
        ("type: github-release", "type: github", "type: github", "Value is not accepted."),
        ("protect: true", "protectt: true", "protectt", "Property protectt is not allowed."),
        ("corsConfig: {", "corsConfig: { x: 1,", "x: 1", "Property x is not allowed."),
        ("type: aws-lambda", "type: aws-lambdas", "aws-lambdas", "Value is not accepted."),
        ("parentStack: base, config: {", "config: { regoin: x,", "regoin", "Property regoin is not allowed."),
        ("{ projectId: p }", "{ project: p }", "project: p", "Property project is not allowed."),
    ];
    for (valid, invalid, underlined, message) in table {
        assert!(VALID.contains(valid), "{valid}");
        let text = VALID.replacen(valid, invalid, 1);
        let line = text[..text.find(underlined).unwrap()].matches('\n').count() as u64 + 1;
        let found = editor.diagnostics(&text);
        let [Diagnostic { line: at, message: reported }] = &found[..] else { panic!("{invalid}: {found:#?}") };
        assert!(*at == line && reported.starts_with(message), "{invalid}: {found:#?}");
    }
}

#[test]
fn editor_completes_enum_of_nested_type() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Some(vec![reef()]));
    let mut editor = LanguageServer::start(&folder.path().join("server.schema.json"));
    let text = VALID.replace("              hue: coral", "              hue: ");
    editor.diagnostics(&text);
    let line = text.lines().position(|line| line.ends_with("hue: ")).unwrap();
    let completions = editor.completions(line, text.lines().nth(line).unwrap().len());
    for hue in ["coral", "turquoise", "sand"] {
        assert!(completions.iter().any(|label| label == hue), "{completions:?}");
    }
    // Completion also offers the keys of a type, and the types themselves.
    let text = VALID.replace("            volume: 200\n", "            \n");
    editor.diagnostics(&text);
    let line = text.lines().position(|line| line == "            ").unwrap();
    assert!(editor.completions(line, 12).contains(&"volume".to_owned()));
    let text = VALID.replace("type: s3-bucket", "type: ");
    editor.diagnostics(&text);
    let line = text.lines().position(|line| line == "          type: ").unwrap();
    let completions = editor.completions(line, 16);
    for kind in ["s3-bucket", "gcp-bucket", "reef:sea/tank:Tank"] {
        assert!(completions.iter().any(|label| label == kind), "{completions:?}");
    }
}

#[test]
fn schemas_are_valid_against_the_meta_schema() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("reef"), Some(vec![reef()]));
    write(&folder.path().join("core"), None);
    let without_schema = Package { name: "mute".into(), schemas: None };
    write(&folder.path().join("mute"), Some(vec![without_schema]));
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas");
    let python = python_venv("jsonschema", &["jsonschema>=4.25"]).unwrap().python();
    let check = r#"
import json, pathlib, sys
from jsonschema import Draft202012Validator
count = 0
for folder in sys.argv[1:]:
    for path in pathlib.Path(folder).rglob("*.json"):
        document = json.loads(path.read_text())
        for schema in [document] if "$schema" in document else [document["schema"]] if "schema" in document else []:
            assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"], path
            Draft202012Validator.check_schema(schema)
            count += 1
print(count)
"#;
    let mut command = Command::new(python);
    command.args(["-c", check]).arg(folder.path()).arg(&committed);
    let count = String::from_utf8(run(&mut command).unwrap()).unwrap();
    let written = schemas_below(folder.path()) + schemas_below(&committed);
    assert!(written > 90, "{written}");
    assert_eq!(count.trim(), written.to_string());
}

/// Returns the number of files with a schema in a folder, and in the folders in it.
fn schemas_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let count = |path: PathBuf| match path.is_dir() {
        true => schemas_below(&path),
        false if path.extension().is_none_or(|extension| extension != "json") => 0,
        false => usize::from(fs::read_to_string(&path).unwrap().contains("\"$schema\"")),
    };
    entries.map(count).sum()
}
