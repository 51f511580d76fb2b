//! Parts of the recipes of the core types on Kubernetes.

use config::types::TextHandle;
use serde_json::{Value, json};

use crate::registry::packages::KUBERNETES;
use crate::registry::recipe::{Provider, Recipe, ResourceNames, trim_hash};

/// Greatest length of a name of a resource in a cluster.
const MAX_NAME: usize = 63;

/// Adds the provider of a cluster.
pub(super) fn cluster(kubeconfig: Option<TextHandle>, r: &mut Recipe<'_>) -> Provider {
    r.provider(KUBERNETES, json!({ "kubeconfig": kubeconfig, "enableServerSideApply": true }))
}

pub(super) fn labels(application: &str, at: &ResourceNames<'_>) -> Value {
    json!({
        "simple-container-com/app-name": application,
        "simple-container-com/app-type": "simple-container",
        "simple-container-com/env": at.environment,
    })
}

/// Returns the annotations of the resources of an environment.
pub(super) fn annotations(at: &ResourceNames<'_>) -> Value {
    json!({ "pulumi.com/patchForce": "true", "simple-container.com/env": at.environment })
}

/// Returns a text as the name of a resource in a cluster, as the Go program makes it
/// (docs/spec/simple-container.md#7.11): a name that is too long ends with a hash of it.
pub(super) fn resource_name(text: &str) -> String {
    let characters = text.to_lowercase().replace('_', "-");
    let characters = characters.chars().filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-');
    trim_hash(characters.collect::<String>().trim_matches('-'), MAX_NAME).replace("--", "-")
}

/// Returns the members of both objects. Those of the second one override those of the first.
pub(super) fn merged(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            first.extend(second);
            first.into()
        }
        (_, second) => second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_resources_have_the_characters_and_the_length_of_labels() {
        let long = "the_gate_of_all_teams_in_the_whole_company_and_then_some_more_of_them-caddy-sa--pre_prod";
        for (text, name) in [
            ("operators--staging", "operators-staging"),
            ("My_Operators", "my-operators"),
            ("--a---b--", "a--b"),
            ("ä.b/c", "bc"),
            ("", ""),
            (long, "the-gate-of-all-teams-in-the-whole-company-and-then-some-m-7421"),
        ] {
            assert_eq!(resource_name(text), name);
        }
        let exact = "a".repeat(63);
        assert_eq!(resource_name(&exact), exact);
        assert_eq!(resource_name(&"a".repeat(64)).len(), 63);
    }
}
