//! What the Go program read from 200 repositories: ours fails where it failed, and reads the same where it did not.

use std::fs;
use std::path::Path;

use config::diagnostics::{Severity, SourceFiles, Style, render};
use config::tree::{Node, Value};
use config::types::{CoreConfig, CoreType, TypeTable, decode};
use config::{Profile, Repository, SecretsProvider, Stack, StateStorage, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::repository::{recorded_cases, surroundings};
use crate::web::templates;

/// The resource types of the Go program.
const TYPES: [&str; 18] = [
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
];

/// The fields that the cases try, of whichever type.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoding is what is looked at")]
struct Any<const N: usize> {
    region: Option<String>,
    allocate_storage: Option<i64>,
    allow_only_https: Option<bool>,
}

impl<const N: usize> CoreConfig for Any<N> {
    const TYPE: &'static str = TYPES[N];
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
    table!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17).with_templates(templates(TEMPLATES))
}

/// Cases in which we differ on purpose, beside those that the record itself names.
const REFUSED: [(&str, &str); 5] = [
    ("full", "state in S3, keys in KMS and the registrar are not supported yet"),
    ("type-cross", "a type in an unsuitable place is refused when it is read"),
    ("type-secrets-provider-is-state", "likewise"),
    ("inherit-registrar", "the registrar is not supported yet"),
    ("ph-walk", "likewise"),
];

/// A repository as recorded, and what we say and read.
struct Outcome {
    words: Vec<String>,
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
    let (surroundings, repository) = (surroundings(&environment), Repository { root: root.to_owned(), git: None });
    let mut sources = SourceFiles::default();
    let is_profile = case["mode"] == "profile";
    let profile_name = select.first().filter(|_| is_profile).map_or("default", String::as_str);
    let profile = Profile::read(profile_name, &repository, &surroundings, &mut sources);
    let (mut diagnostics, mut stacks) = (Vec::new(), Vec::new());
    match &profile {
        Err(found) if is_profile => diagnostics.extend(found.clone()),
        Ok(_) if is_profile => {}
        profile => {
            let mut profile = profile.clone().unwrap_or_default();
            profile.project_name.get_or_insert_with(|| "orchard".into());
            let types = types();
            let (repository, surroundings) = (&repository, &surroundings);
            let workspace = Workspace { repository, profile: &profile, stacks_dir: None, surroundings, types: &types };
            match if select.is_empty() { workspace.stack_names() } else { Ok(select) } {
                Ok(names) => {
                    let loaded = workspace.load(&names, &mut sources);
                    diagnostics.extend(loaded.diagnostics);
                    stacks = loaded.stacks;
                }
                Err(diagnostic) => diagnostics.push(*diagnostic),
            }
        }
    }
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let words = errors.map(|diagnostic| render(diagnostic, &sources, Style::Plain)).collect();
    Outcome { words, stacks, profile: profile.ok() }
}

/// A scalar as a field of this type receives it.
fn decoded<T: DeserializeOwned>(node: &Node) -> Option<T> {
    decode(node, &mut Vec::new()).map(|decoded| decoded.config)
}

/// Whether a config holds what Go made of it: JSON leaves are typed fields.
fn holds(node: &Node, expected: &Json) -> bool {
    match (expected, &node.value) {
        (Json::String(text), Value::Scalar(_)) => decoded(node).as_ref() == Some(text),
        (Json::String(text), Value::Template(template)) => template.known().as_ref() == Some(text),
        (Json::Bool(value), Value::Scalar(_)) => !node.is_null() && decoded(node) == Some(*value),
        (Json::Number(number), Value::Scalar(_)) => !node.is_null() && decoded(node) == number.as_i64(),
        (Json::Array(items), Value::Sequence(nodes)) => {
            let nodes: Vec<&Node> = nodes.iter().filter(|node| !node.is_null()).collect();
            items.len() == nodes.len() && items.iter().zip(nodes).all(|(item, node)| holds(node, item))
        }
        (Json::Object(members), Value::Mapping(mapping)) => {
            members.iter().all(|(key, value)| mapping.get(key).is_some_and(|node| holds(node, value)))
        }
        _ => false,
    }
}

fn differences(stack: &Stack, server: &Json) -> Vec<String> {
    let mut differences = Vec::new();
    let config = &server["provisioner"]["config"];
    let StateStorage::FileSystem { url, .. } = &stack.provisioner.state_storage;
    let SecretsProvider::Passphrase { passphrase, .. } = &stack.provisioner.secrets_provider;
    if config["state-storage"]["config"]["path"] != *url {
        differences.push(format!("state {url}"));
    }
    let passphrase = passphrase.as_ref().map_or("", |text| text.expose());
    if config["secrets-provider"]["config"]["passPhrase"].as_str().unwrap_or_default() != passphrase {
        differences.push(format!("passphrase {passphrase}"));
    }
    for (name, environment) in server["resources"]["resources"].as_object().into_iter().flatten() {
        for (key, resource) in environment["resources"].as_object().into_iter().flatten() {
            let ours = stack.environments.iter().find(|known| known.name == *name);
            let ours = ours.and_then(|environment| environment.resources.iter().find(|known| known.key == *key));
            let config = resource.get("config").unwrap_or(&Json::Null);
            match ours {
                Some(ours) if config.is_null() || holds(&ours.config, config) => {}
                Some(_) => differences.push(format!("config of {name}/{key}: {config}")),
                None => differences.push(format!("no {name}/{key}")),
            }
        }
    }
    differences
}

#[test]
fn every_recorded_repository_is_read_as_go_read_it() {
    let cases: Vec<Json> = recorded_cases("reading");
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        // Client stacks are not read, and no file is required but server.yaml.
        let ours = case["mode"] != "child" && !name.starts_with("client-") && !name.starts_with("required-");
        if !ours || !case["expect"].is_object() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let outcome = read(case, folder.path());
        let failed = !outcome.words.is_empty();
        let should_fail = case["expect"].get("error").is_some();
        let on_purpose = case.get("rewrite_differs").is_some() || REFUSED.iter().any(|(known, _)| *known == name);
        if failed != should_fail && !on_purpose {
            wrong.push(format!("{name}: Go fails: {should_fail}\n{}", outcome.words.join("\n")));
        }
        // Section 2.3: Go leaves empty what it does not find, we look further.
        if failed || should_fail || case["rewrite_differs"] == "2.3" {
            continue;
        }
        for stack in &outcome.stacks {
            let found = differences(stack, &case["expect"]["stacks"][&stack.name]["server"]);
            wrong.extend(found.iter().map(|difference| format!("{name}: {difference}")));
        }
        if let (Some(profile), Some(expected)) = (outcome.profile, case["expect"]["profile"].as_object()) {
            let project = expected.get("projectName").and_then(Json::as_str);
            let stacks_dir = expected.get("stacksDir").and_then(Json::as_str);
            if (profile.project_name.as_deref(), profile.stacks_dir.as_deref()) != (project, stacks_dir) {
                wrong.push(format!("{name}: {profile:?}"));
            }
        }
    }
    assert_eq!(wrong.join("\n\n"), "");
}
