//! Compares the stacks of `docs/cloud-stacks.md` with the SDK packages: types, inputs and outputs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests::commands::run;

use crate::{sdk_packages, sdk_types, types_of};

/// Returns the YAML block after the comment `<!-- file: NAME -->` of a page.
fn block<'p>(page: &'p str, name: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("<!-- file: {name} -->\n```yaml\n")).unwrap();
    rest.split_once("\n```\n").unwrap().0
}

/// Returns the resources of a server.yaml as pairs of key and description.
fn resources(document: &Value) -> Vec<(&str, &Value)> {
    let environments = document["resources"]["resources"].as_object().unwrap().values();
    let resources = environments.flat_map(|environment| environment["resources"].as_object().unwrap());
    resources.map(|(key, resource)| (key.as_str(), resource)).collect()
}

/// Returns the key and the first segment of the path of each `${resource:…}` in a text.
fn references(text: &str) -> Vec<(&str, &str)> {
    let references = text.split("${resource:").skip(1).map(|rest| rest.split('}').next().unwrap());
    let parts = references.map(|reference| reference.rsplit('/').next().unwrap().split_once('.').unwrap());
    parts.map(|(key, path)| (key, path.split('.').next().unwrap())).collect()
}

/// Asserts that the resources and references of a stack exist in an SDK package.
fn assert_resources_exist(text: &str, package: &str, packages: &str, python: &Path) {
    let document: Value = serde_yaml::from_str(text).unwrap();
    let types = types_of(&sdk_types(python, packages, package));
    let mut tokens = BTreeMap::new();
    for (key, resource) in resources(&document) {
        let written = resource["type"].as_str().unwrap();
        if written.starts_with(&format!("{package}:")) {
            tokens.insert(key, types.resolve(written).unwrap_or_else(|| panic!("{written} is no type of {package}")));
        }
    }
    assert!(!tokens.is_empty(), "{package}");
    if package == "random" {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (list, made) = (folder.path().join("list.json"), folder.path().join(format!("{package}.json")));
    let content = json!({ "packages": { package: { "resources": tokens.values().collect::<Vec<_>>() } } });
    fs::write(&list, content.to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_clouds/sdk_data.py");
    run(Command::new(python).arg(script).arg(packages).arg(&list).arg(folder.path())).unwrap();
    let sdk: Value = serde_json::from_str(&fs::read_to_string(made).unwrap()).unwrap();
    for (key, resource) in resources(&document) {
        let Some(token) = tokens.get(key) else { continue };
        let config = resource["config"].as_object().unwrap();
        let shape = &sdk["resources"][token];
        let inputs = shape["inputs"].as_object().unwrap();
        for input in config.keys() {
            assert!(inputs.contains_key(input), "{token} has no input {input}");
        }
        for input in shape["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(config.contains_key(input), "{key} lacks the required input {input}");
        }
    }
    for (key, output) in references(text) {
        let Some(token) = tokens.get(key) else { continue };
        let outputs = sdk["resources"][token]["outputs"].as_object().unwrap();
        assert!(["id", "urn"].contains(&output) || outputs.contains_key(output), "{token} has no output {output}");
    }
}

/// Shows: cloud-stacks.md#complete-stacks-for-aws-and-google-cloud "Each type, input and output in them exists in the
///   SDK package of its plugin."
#[test]
fn documented_stacks_use_only_types_inputs_and_outputs_of_their_packages() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cloud-stacks.md");
    let page = fs::read_to_string(page).unwrap();
    let (venv, packages) = sdk_packages();
    for name in ["aws", "gcp"] {
        for package in [name, "random"] {
            assert_resources_exist(block(&page, name), package, &packages, &venv.python());
        }
    }
}
