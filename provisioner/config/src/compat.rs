//! Lists what the Go program of Simple Container ignores in a server.yaml (docs/spec/simple-container.md#2.2): it reads past keys that it does not
//! know.

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, SourceFiles};
use crate::function::{FUNCTIONS, is_section_of_all};
use crate::tree::{Entry, Mapping, Node};
use crate::yaml;

/// Name of the files.
const SERVER: &str = "server.yaml";
/// Keys at the top, and what becomes of them.
const TOP: [(&str, &str); 3] = [
    ("plugins", "it has no plugins, and refuses their types"),
    ("outputs", "it exports none of them"),
    ("references", "it reads no outputs of other stacks, and leaves `${output:…}` as it is"),
];
/// Keys of `provisioner.config` that it reads.
const PROVISIONER: [&str; 3] = ["organization", "state-storage", "secrets-provider"];
/// Keys of an environment.
const ENVIRONMENT: [(&str, &str); 2] =
    [("enabled", "it registers the resources of an environment that is switched off"), (FUNCTIONS, CALLS_NONE)];
const CALLS_NONE: &str = "it calls none of them, and leaves `${function:…}` as it is";
/// Keys of a resource.
const RESOURCE: [(&str, &str); 3] = [
    ("enabled", "it registers a resource that is switched off"),
    ("forEach", "it registers one resource, and leaves `${each:…}` as it is"),
    ("options", "it protects nothing and keeps no order"),
];

/// Returns a warning for each key that the Go program ignores in the files `server.yaml` among these, each at its position. Files that are no
/// YAML have none.
pub fn ignored_by_go(sources: &SourceFiles) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for file in sources.named(SERVER) {
        let Some(root) = yaml::parse(file, sources).ok().and_then(|document| document.root) else { continue };
        let Some(root) = root.as_mapping() else { continue };
        list(root, &TOP, &mut found);
        if let Some(config) = mapping_at(root, &["provisioner", "config"]) {
            let own = config.into_iter().filter(|entry| !PROVISIONER.contains(&entry.key.as_str()));
            found.extend(own.map(|entry| warning(entry, "it guards nothing, and waits for nothing")));
        }
        let Some(resources) = mapping_at(root, &["resources"]) else { continue };
        let moved = resources.entry("moved").filter(|entry| entry.value.as_mapping().is_none());
        found.extend(moved.map(|entry| warning(entry, "it creates the resource and deletes the former one")));
        let functions = resources.entry(FUNCTIONS).filter(|entry| is_section_of_all(&entry.value));
        found.extend(functions.map(|entry| warning(entry, CALLS_NONE)));
        for environment in mapping_at(resources, &["resources"]).into_iter().flatten() {
            let Some(environment) = environment.value.as_mapping() else { continue };
            list(environment, &ENVIRONMENT, &mut found);
            for resource in mapping_at(environment, &["resources"]).into_iter().flatten() {
                if let Some(resource) = resource.value.as_mapping() {
                    list(resource, &RESOURCE, &mut found);
                }
            }
        }
    }
    found
}

/// Adds the warnings of a mapping's keys. A mapping with a `type` below one of them is a resource of this name.
fn list(mapping: &Mapping, ignored: &[(&str, &str)], found: &mut Vec<Diagnostic>) {
    for entry in mapping {
        let is_resource = entry.value.get_path(["type"]).is_some_and(|kind| kind.as_scalar().is_some());
        let effect = ignored.iter().find(|(key, _)| *key == entry.key).filter(|_| !is_resource);
        found.extend(effect.map(|(_, effect)| warning(entry, effect)));
    }
}

fn warning(entry: &Entry, effect: &str) -> Diagnostic {
    let summary = MessageText::new(format_args!("the Go program ignores `{}`: {effect}", entry.key));
    Diagnostic::warning(Code("compat"), entry.key_span, summary)
}

fn mapping_at<'m>(mapping: &'m Mapping, path: &[&str]) -> Option<&'m Mapping> {
    let (first, rest) = path.split_first()?;
    mapping.get(first)?.get_path(rest.iter().copied()).and_then(Node::as_mapping)
}
