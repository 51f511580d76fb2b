//! Compares reading of 200 repositories with recordings of the Go program: both fail, or both read the same values.

use std::fs;
use std::path::Path;

use config::diagnostics::{Severity, SourceFiles, Style, render};
use config::tree::{Node, Value};
use config::types::{CoreConfig, CoreType, TypeOrigin, TypeTable, decode};
use config::{Profile, Repository, Stack, StateStorage, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::repository::{compare_with_schema, process_context, recorded_cases};
use crate::web::templates;

/// The types of resources and registrars that the recorded repositories name.
const TYPES: [&str; 19] = [
    "s3-bucket",
    "ecr-repository",
    "aws-rds-postgres",
    "aws-rds-mysql",
    "aws-cloudtrail-security-alerts",
    "gcp-bucket",
    "gcp-artifact-registry",
    "gcp-docker-image-push",
    "gcp-cloudsql-postgres",
    "gcp-redis",
    "gcp-pubsub",
    "gcp-gke-autopilot-cluster",
    "kubernetes-caddy",
    "kubernetes-helm-postgres-operator",
    "kubernetes-helm-mongodb-operator",
    "kubernetes-helm-rabbitmq-operator",
    "kubernetes-helm-redis-operator",
    "mongodb-atlas",
    "cloudflare",
];

/// Fields that the cases set, for all types.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the test only decodes the fields")]
struct Any<const N: usize> {
    region: Option<String>,
    allocate_storage: Option<i64>,
    allow_only_https: Option<bool>,
}

impl<const N: usize> CoreConfig for Any<N> {
    const TYPE: &'static str = TYPES[N];
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("Any");
    const PROVIDER: &'static str = "any";
    const OUTPUTS: &'static [&'static str] = &[];
}

/// The types of templates of the Go program.
const TEMPLATES: [&str; 7] = [
    "ecs-fargate",
    "aws-lambda",
    "aws-static-website",
    "cloudrun",
    "gcp-static-website",
    "gcp-gke-autopilot",
    "kubernetes-cloudrun",
];

fn types() -> TypeTable {
    macro_rules! table { ($($n:literal)*) => { TypeTable::new([$(CoreType::of::<Any<$n>>()),*]) } }
    table!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17)
        .with_registrars([CoreType::of::<Any<18>>()])
        .with_templates(templates(TEMPLATES))
}

/// Cases with an intended difference to the Go program, in addition to those that the recording marks.
const INTENDED_DIFFERENCES: [(&str, &str); 9] = [
    ("full", "state in S3 and keys in KMS are not supported yet"),
    ("type-cross", "a type in an unsuitable place is rejected when it is read"),
    ("type-secrets-provider-is-state", "likewise"),
    ("ph-walk", "a placeholder within another one, or in a key, is an error"),
    ("unknown-keys", "a key that means nothing may be a misspelt one, which removes resources in silence"),
    ("no-server", "the folder of a client stack is passed by"),
    ("schema-version-int", "the version 99 is of a format that this program does not know"),
    ("schema-version-10", "likewise"),
    ("schema-version-bool", "likewise"),
];

/// Errors and values that were read from a repository.
struct Outcome {
    errors: Vec<String>,
    /// Differences between the diagnostics and those of the schema.
    schema_differences: Vec<String>,
    stacks: Vec<Stack>,
    profile: Option<Profile>,
}

fn read(case: &Json, root: &Path) -> Outcome {
    let objects = |key: &str| case[key].as_object().into_iter().flatten();
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    for (path, content) in objects("files") {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text(content)).unwrap();
    }
    for (path, target) in objects("symlinks") {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(text(target), root.join(path)).unwrap();
    }
    let environment: Vec<(String, String)> = objects("env").map(|(name, value)| (name.clone(), text(value))).collect();
    let environment: Vec<(&str, &str)> = environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let select: Vec<String> = match &case["select"] {
        Json::String(name) => vec![name.clone()],
        names => names.as_array().into_iter().flatten().map(text).collect(),
    };
    let (process_context, repository) =
        (process_context(&environment), Repository { root: root.to_owned(), git: None });
    let mut sources = SourceFiles::default();
    let is_profile = case["mode"] == "profile";
    let profile_name = select.first().filter(|_| is_profile).map_or("default", String::as_str);
    let profile = Profile::read(profile_name, &repository, &process_context, &mut sources);
    let (mut diagnostics, mut stacks, mut servers) = (Vec::new(), Vec::new(), Vec::new());
    match &profile {
        Err(found) if is_profile => diagnostics.extend(found.clone()),
        Ok(_) if is_profile => {}
        profile => {
            let mut profile = profile.clone().unwrap_or_default();
            profile.project_name.get_or_insert_with(|| "orchard".into());
            let types = types();
            let (repository, process_context) = (&repository, &process_context);
            let workspace =
                Workspace { repository, profile: &profile, stacks_dir: None, process_context, types: &types };
            match if select.is_empty() { workspace.stack_names().map(|names| names.stacks) } else { Ok(select) } {
                Ok(names) => {
                    let loaded = workspace.load(&names, &mut sources);
                    servers.extend(names.iter().map(|name| format!(".sc/stacks/{name}/server.yaml")));
                    diagnostics.extend(loaded.diagnostics);
                    stacks = loaded.stacks;
                }
                Err(diagnostic) => diagnostics.push(*diagnostic),
            }
        }
    }
    let schema_differences = compare_with_schema(root, servers, &types(), &diagnostics, &sources);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let errors = errors.map(|diagnostic| render(diagnostic, &sources, Style::Plain)).collect();
    Outcome { errors, schema_differences, stacks, profile: profile.ok() }
}

/// Decodes a scalar as a field of type `T`.
fn decode_field<T: DeserializeOwned>(node: &Node) -> Option<T> {
    decode(node, &mut Vec::new()).map(|decoded| decoded.config)
}

/// Returns true if a config has the values that Go read. Leaves of the JSON are typed fields.
fn has_values(node: &Node, expected: &Json) -> bool {
    match (expected, &node.value) {
        (Json::String(text), Value::Scalar(_)) => decode_field(node).as_ref() == Some(text),
        (Json::String(text), Value::Interpolated(string)) => string.known().as_ref() == Some(text),
        (Json::Bool(value), Value::Scalar(_)) => !node.is_null() && decode_field(node) == Some(*value),
        (Json::Number(number), Value::Scalar(_)) => !node.is_null() && decode_field(node) == number.as_i64(),
        (Json::Array(items), Value::Sequence(nodes)) => {
            let nodes: Vec<&Node> = nodes.iter().filter(|node| !node.is_null()).collect();
            items.len() == nodes.len() && items.iter().zip(nodes).all(|(item, node)| has_values(node, item))
        }
        (Json::Object(members), Value::Mapping(mapping)) => {
            members.iter().all(|(key, value)| mapping.get(key).is_some_and(|node| has_values(node, value)))
        }
        _ => false,
    }
}

fn differences(stack: &Stack, server: &Json) -> Vec<String> {
    let mut differences = Vec::new();
    let config = &server["provisioner"]["config"];
    let StateStorage::FileSystem { url, .. } = &stack.provisioner.state_storage else {
        return vec!["state storage".to_owned()];
    };
    if config["state-storage"]["config"]["path"] != *url {
        differences.push(format!("state {url}"));
    }
    let passphrase = stack.provisioner.secrets_provider.passphrase().map_or("", |text| text.expose());
    if config["secrets-provider"]["config"]["passPhrase"].as_str().unwrap_or_default() != passphrase {
        differences.push(format!("passphrase {passphrase}"));
    }
    let (registrar, config) = (stack.registrar.as_ref(), &server["resources"]["registrar"]["config"]);
    if !config.is_null() && !registrar.is_some_and(|registrar| has_values(&registrar.config, config)) {
        differences.push(format!("registrar: {config}"));
    }
    for (name, environment) in server["resources"]["resources"].as_object().into_iter().flatten() {
        for (key, resource) in environment["resources"].as_object().into_iter().flatten() {
            let actual = stack.environments.iter().find(|known| known.name == *name);
            let actual = actual.and_then(|environment| environment.resources.iter().find(|known| known.key == *key));
            let config = resource.get("config").unwrap_or(&Json::Null);
            match actual {
                Some(actual) if config.is_null() || has_values(&actual.config, config) => {}
                Some(_) => differences.push(format!("config of {name}/{key}: {config}")),
                None => differences.push(format!("no {name}/{key}")),
            }
        }
    }
    differences
}

/// Shows: comparison.md#what-each-of-them-is "**This `sc`** reads the same `server.yaml`"
#[test]
fn recorded_repositories_are_read_as_in_go() {
    let cases: Vec<Json> = recorded_cases("reading");
    let mut mismatches = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        // Client stacks are not read, and only server.yaml is required.
        let is_supported = case["mode"] != "child" && !name.starts_with("client-") && !name.starts_with("required-");
        if !is_supported || !case["expect"].is_object() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let outcome = read(case, folder.path());
        mismatches.extend(outcome.schema_differences.iter().map(|difference| format!("{name}: {difference}")));
        let failed = !outcome.errors.is_empty();
        let should_fail = case["expect"].get("error").is_some();
        let is_intended =
            case.get("rewrite_differs").is_some() || INTENDED_DIFFERENCES.iter().any(|(known, _)| *known == name);
        if failed != should_fail && !is_intended {
            mismatches.push(format!("{name}: Go fails: {should_fail}\n{}", outcome.errors.join("\n")));
        }
        // Go leaves a block empty if the stack that it inherits from is not loaded (docs/spec/simple-container.md#2.3).
        // This crate loads that stack, or reports an error.
        if failed || should_fail || case["rewrite_differs"] == "2.3" {
            continue;
        }
        for stack in &outcome.stacks {
            let found = differences(stack, &case["expect"]["stacks"][&stack.name]["server"]);
            mismatches.extend(found.iter().map(|difference| format!("{name}: {difference}")));
        }
        if let (Some(profile), Some(expected)) = (outcome.profile, case["expect"]["profile"].as_object()) {
            let project = expected.get("projectName").and_then(Json::as_str);
            let stacks_dir = expected.get("stacksDir").and_then(Json::as_str);
            if (profile.project_name.as_deref(), profile.stacks_dir.as_deref()) != (project, stacks_dir) {
                mismatches.push(format!("{name}: {profile:?}"));
            }
        }
    }
    assert_eq!(mismatches.join("\n\n"), "");
}
