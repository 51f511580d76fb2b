//! Recorded strings resolve to the same text as in the Go program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::stack_outputs::ReadableStacks;

use super::{MissingValues, Namespaces, ReferenceRule, Resolver};
use crate::diagnostics::{Sensitivity, SourceFiles};
use crate::process_context::{Account, Git, Head, ProcessContext, Repository};
use crate::secret_text::SecretText;
use crate::secrets::{Auth, AuthKind, Secrets};
use crate::tree::{Node, Value};
use crate::yaml::parse;

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Json) -> BTreeMap<String, String> {
    value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

fn auth(entry: &Json) -> Option<Auth> {
    let kind = match entry["type"].as_str()? {
        "aws-token" => AuthKind::AwsToken,
        "gcp-service-account" => AuthKind::GcpServiceAccount,
        "kubernetes" => AuthKind::Kubernetes,
        _ => AuthKind::PulumiToken,
    };
    let config = texts(&entry["config"]).into_iter().map(|(key, text)| (key, SecretText::new(text))).collect();
    Some(Auth { kind, config })
}

/// Converts a recorded context to environment, variables, secrets and repository. Resolves inherited auth entries.
fn parse_context(context: &Json) -> (BTreeMap<String, String>, BTreeMap<String, String>, Secrets, Repository) {
    let mut secrets = Secrets::default();
    for (key, value) in texts(&context["secrets"]["values"]) {
        secrets.values.insert(key, SecretText::new(value));
    }
    for (name, entry) in context["secrets"]["auth"].as_object().into_iter().flatten() {
        let other = &context["other_stacks"][entry["inherit"].as_str().unwrap_or_default()]["auth"][name];
        secrets.auth.extend(auth(entry).or_else(|| auth(other)).map(|auth| (name.clone(), auth)));
    }
    let git = &context["git"];
    let head = git["commit"]
        .as_str()
        .map(|commit| Head { commit: commit.to_owned(), branch: git["branch"].as_str().map(str::to_owned) });
    let repository = Repository { root: PathBuf::from("<ROOT>"), git: Some(Git { head }) };
    (texts(&context["env"]), texts(&context["variables"]), secrets, repository)
}

/// Resolves a string. References and unresolved placeholders stay unchanged.
fn resolve(recorded_context: &Json, input: &str) -> String {
    let (environment, variables, secrets, repository) = parse_context(recorded_context);
    let process_context = ProcessContext {
        environment,
        now: "2024-01-02T03:04:05Z".parse().unwrap(),
        time_zone: Some(jiff::tz::TimeZone::UTC),
        account: Some(Account {
            home: "/home/pearl".into(),
            username: "pearl".into(),
            id: "1000".into(),
            name: "Pearl Diver".into(),
        }),
    };
    let stack = text(&recorded_context["stack"]);
    let mut sources = SourceFiles::default();
    let file = sources.add("t.yaml", &serde_json::to_string(input).unwrap(), Sensitivity::Public);
    let Some(Node { value, span }) = parse(file, &sources).unwrap().root else { return String::new() };
    let namespaces = Namespaces {
        stack: &stack,
        variables: &variables,
        secrets: &secrets,
        process_context: &process_context,
        repository: &repository,
        project: "reef",
        stacks: ReadableStacks { names: &[], references: &[], values: None },
        missing: MissingValues::Reported,
    };
    let mut resolver = Resolver::new(namespaces, &sources);
    match resolver.resolve(&Node { value, span }, ReferenceRule::Rejected).value {
        Value::Scalar(scalar) => scalar.text,
        Value::Interpolated(string) => string.known().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Strings that are errors, and stay as they are. The Go program resolves them.
const INTENDED_DIFFERENCES: [(&str, &str); 4] = [
    ("${env:MISSING:${env:NAME}}", "a nested placeholder has no meaning: Go ends it at the first `}`"),
    ("${env:${env:NAME}}", "likewise"),
    ("${env:A${env:NAME}", "the first placeholder is not closed: Go takes the second one as its default"),
    ("${resource:db.url:none}", "the default of a reference is for a missing output; Go always takes it"),
];

#[test]
fn recorded_strings_resolve_as_in_go() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/simple-container/placeholders/cases.json");
    let recorded: Json = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut mismatches = Vec::new();
    for case in recorded["cases"].as_array().unwrap() {
        let input = text(&case["input"]);
        let actual = resolve(&recorded["contexts"][text(&case["context"])], &input);
        let is_match = match (case["output"].as_str(), case["output_matches"].as_str(), case["output_is"].as_str()) {
            (Some(output), ..) => actual == output,
            // Date and account are fixed in this test and differ from the recording: only the resolution itself is
            // compared.
            (None, Some(_), _) | (None, None, Some(_)) => !actual.contains("${"),
            // Go panics.
            (None, None, None) => actual == input,
        };
        let is_intended = INTENDED_DIFFERENCES.iter().any(|(known, _)| *known == input);
        if is_match == is_intended {
            mismatches.push(format!("{input} -> {actual} (Go: {})", case["output"]));
        }
    }
    assert_eq!(mismatches, Vec::<String>::new());
}
