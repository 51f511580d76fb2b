//! Required keys of all core types: each is reported at the line of the `config` that lacks it.

use config::types::TypeOrigin;
use provisioner::registry::recipes;
use serde_json::Value;

use crate::sections;

/// Keys that a type requires only together with others: type, further keys of the `config`, required keys.
const CONDITIONAL: [(&str, &str, &[&str]); 8] = [
    ("gcp-bucket", "adopt: true", &["bucketName"]),
    ("gcp-cloudsql-postgres", "adopt: true", &["instanceName", "connectionName"]),
    ("gcp-cloudsql-postgres", "adopt: false", &["version"]),
    ("gcp-gke-autopilot-cluster", "adopt: true", &["clusterName"]),
    ("gcp-redis", "adopt: true", &["instanceId", "region"]),
    ("gcp-redis", "adopt: false", &["memorySizeGb"]),
    ("mongodb-atlas", "adopt: true", &["projectId", "clusterName"]),
    ("mongodb-atlas", "adopt: false", &["orgId", "instanceSize", "region", "cloudProvider"]),
];

/// Returns the messages about a resource or a registrar of a type, and the line of its `config`.
fn messages(type_name: &str, config: &str) -> (String, u32) {
    if recipes::core_types().types().registrar(type_name).is_some() {
        let registrar = format!("  registrar:\n    type: {type_name}\n    config: {{ {config} }}\n");
        return (sections(&format!("resources:\n{registrar}  resources: {{}}\n")).messages(), 9);
    }
    let resource = format!("        it:\n          type: {type_name}\n          config: {{ {config} }}\n");
    (sections(&format!("resources:\n  resources:\n    e:\n      resources:\n{resource}")).messages(), 12)
}

#[test]
fn each_required_key_is_reported_if_it_is_missing_or_empty() {
    let mut of_simple_container = 0;
    for core_type in recipes::core_types().core_types() {
        let (name, schema) = (core_type.name(), core_type.schema().to_value());
        let unconditional = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let conditional = CONDITIONAL.iter().filter(|(type_name, ..)| *type_name == name);
        let conditional = conditional.flat_map(|(_, with, keys)| keys.iter().map(move |key| (*with, *key)));
        for (with, key) in unconditional.map(|key| ("x-a: 1", key)).chain(conditional) {
            // Another value than a text cannot be an empty one.
            let kinds = &schema["properties"][key]["type"];
            let is_text = kinds == "string" || kinds.as_array().is_some_and(|kinds| kinds.contains(&"string".into()));
            let empty = is_text.then(|| (format!("{with}, {key}: ''"), "is empty"));
            let missing = [with.to_owned(), format!("{with}, {key}: ")].map(|config| (config, "is missing"));
            for (config, error) in missing.into_iter().chain(empty) {
                let (messages, line) = messages(name, &config);
                let (_, rest) = messages.split_once(&format!("error[missing-key]: `{key}` {error}\n")).unwrap();
                let place = rest.lines().next().unwrap();
                assert!(place.contains(&format!("server.yaml:{line}:")), "{name}: {config}: {messages}");
            }
            of_simple_container += usize::from(core_type.origin() != TypeOrigin::Own);
        }
    }
    assert_eq!(of_simple_container, 39);
}
