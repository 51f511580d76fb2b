//! Tests of the own types of `sc`: what the program registers for the server.yaml that each has in `tests/own_types`, and the
//! APIs of Google that it switches on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use config::types::TypeOrigin;
use provisioner::registry::recipes;
use serde_json::Value;

use crate::buckets::registrations;
use crate::fake::{FakeDeployment, StackProgram};

/// Returns the server.yaml of an own type.
fn case(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/own_types/{name}.yaml"));
    let text = fs::read_to_string(&file);
    text.unwrap_or_else(|error| panic!("{error}: write {} with all keys of the type", file.display()))
}

/// Returns the names of the outputs that are texts, by type, of the packages of core types.
fn text_outputs() -> BTreeMap<String, Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/registry/sdk");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found = BTreeMap::new();
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
        let sdk: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        for (token, resource) in sdk["resources"].as_object().unwrap() {
            let outputs = resource["outputs"].as_object().into_iter().flatten();
            let texts = outputs.filter(|(_, kind)| **kind == "string").map(|(name, _)| name.clone());
            found.insert(token.clone(), texts.collect());
        }
    }
    found
}

/// Returns a deployment whose resources have a text for each output that is no input.
async fn deployment_with_outputs(subject: &StackProgram) -> FakeDeployment {
    let (outputs, first) = (text_outputs(), FakeDeployment::preview());
    subject.run(&first).await;
    let mut deployment = FakeDeployment::default();
    for goal in first.goals.lock().unwrap().iter() {
        for output in outputs.get(goal.type_token.as_str()).into_iter().flatten() {
            if !goal.inputs.contains_key(output) {
                deployment = deployment.with(&goal.name, output, format!("{}.{output}", goal.name).as_str());
            }
        }
    }
    deployment
}

/// Shows: architecture.md#recipes-of-core-types "Tests compare the former with recordings of Simple Container, all of
///   them; an own type has a written case instead"
/// Shows: server-yaml.md#core-types "It registers the queue `B`; with `deadLetterQueue` also the queue
///   `B-dead-letters`, and `B-dead-letters-allow`, by which only `B` can move messages there."
#[tokio::test]
async fn each_own_type_registers_what_its_case_says() {
    let types = recipes::core_types();
    let own = types.core_types().filter(|core_type| core_type.origin() == TypeOrigin::Own);
    for name in own.map(|core_type| core_type.name()) {
        let subject = StackProgram::complete(&case(name), "", recipes::built_in_types(), recipes::core_types());
        assert!(subject.program.check_core_types().is_empty(), "{name}");
        let deployment = deployment_with_outputs(&subject).await;
        let registrations = registrations(&subject, &deployment).await;
        let apis: String = deployment.apis.lock().unwrap().iter().map(|api| format!("\nAPI {api}")).collect();
        insta::assert_snapshot!(name, registrations + &apis);
    }
}
