//! References between the resources of a stack: checks that every name is defined and that there is no cycle
//! (docs/spec/simple-container.md#3.5).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::stack::{Environment, Output, Resource, ResourceImplementation};
use crate::tree::{Node, Reference, Value};
use crate::types::TypeTable;

const UNKNOWN: Code = Code("unknown-resource");

/// Returns all references in a tree, in order.
pub fn references(node: &Node) -> Vec<&Reference> {
    let mut references = Vec::new();
    collect_references(node, &mut references);
    references
}

fn collect_references<'n>(node: &'n Node, references: &mut Vec<&'n Reference>) {
    match &node.value {
        Value::Scalar(_) => {}
        Value::Interpolated(string) => references.extend(string.references()),
        Value::Sequence(items) => items.iter().for_each(|item| collect_references(item, references)),
        Value::Mapping(mapping) => mapping.into_iter().for_each(|entry| collect_references(&entry.value, references)),
    }
}

/// Returns the references of a resource: those of its `config`, then those of its options.
fn references_of(resource: &Resource) -> impl Iterator<Item = &Reference> {
    let trigger = resource.options.replacement_trigger.as_ref();
    references(&resource.config).into_iter().chain(trigger.into_iter().flat_map(references))
}

/// Returns the keys of the resources after which a resource is registered, with their positions: references first, then
/// those that options name.
pub fn dependencies(resource: &Resource) -> impl Iterator<Item = (&str, Span)> {
    let referred =
        references_of(resource).flat_map(|reference| reference.targets().map(move |key| (key, reference.span)));
    let options = &resource.options;
    let named = options.depends_on.iter().chain(&options.replace_with).chain(&options.deleted_with);
    referred.chain(named.map(|(key, span)| (key.as_str(), *span)))
}

/// Names of the resources of a stack.
struct Names<'s> {
    environments: Vec<EnvironmentNames<'s>>,
    /// Indices of the environments, by name.
    by_name: HashMap<&'s str, usize>,
    /// Indices of the environments that have a resource with the key.
    environments_of: HashMap<&'s str, Vec<usize>>,
    /// Environment and key of each declared resource, even of an invalid one.
    declared: &'s HashSet<(&'s str, &'s str)>,
    types: &'s TypeTable,
}

struct EnvironmentNames<'s> {
    environment: &'s Environment,
    by_key: HashMap<&'s str, &'s Resource>,
    /// All keys, for suggestions.
    keys: Arc<[String]>,
}

/// Checks every name and finds cycles. `declared` holds the environment and the key of each declared resource, even of
/// an invalid one.
pub(super) fn check(
    environments: &[Environment],
    outputs: &[Output],
    types: &TypeTable,
    declared: &HashSet<(&str, &str)>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let names = Names::new(environments, types, declared);
    for environment in &names.environments {
        names.check_environment(environment, diagnostics);
        check_cycles(environment, diagnostics);
    }
    let all_names: Arc<[String]> = environments.iter().map(|environment| environment.name.clone()).collect();
    let all_keys: Arc<[String]> = names.environments.iter().flat_map(|names| names.keys.iter().cloned()).collect();
    let declared_keys: HashSet<&str> = declared.iter().map(|(_, key)| *key).collect();
    for output in outputs {
        for reference in references(&output.value) {
            match &reference.environment {
                Some(environment) => {
                    names.check_qualified(reference, environment, &output.name, &all_names, diagnostics);
                }
                None => names.check_unqualified(reference, &output.name, &all_keys, &declared_keys, diagnostics),
            }
        }
    }
}

impl<'s> Names<'s> {
    fn new(environments: &'s [Environment], types: &'s TypeTable, declared: &'s HashSet<(&'s str, &'s str)>) -> Self {
        let mut environments_of: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, environment) in environments.iter().enumerate() {
            for resource in &environment.resources {
                environments_of.entry(&resource.key).or_default().push(index);
            }
        }
        let names = environments.iter().map(|environment| EnvironmentNames {
            environment,
            by_key: environment.resources.iter().map(|resource| (resource.key.as_str(), resource)).collect(),
            keys: environment.resources.iter().map(|resource| resource.key.clone()).collect(),
        });
        let by_name = environments.iter().enumerate().map(|(index, environment)| (environment.name.as_str(), index));
        Self { environments: names.collect(), by_name: by_name.collect(), environments_of, declared, types }
    }

    fn check_environment(&self, names: &EnvironmentNames<'_>, diagnostics: &mut Vec<Diagnostic>) {
        let environment = names.environment;
        for resource in &environment.resources {
            for (key, span) in dependencies(resource) {
                if !names.by_key.contains_key(key) && !self.declared.contains(&(environment.name.as_str(), key)) {
                    let summary = MessageText::new(format_args!(
                        "resource {key:?} referenced by {:?} is not defined in env {:?}",
                        resource.key, environment.name
                    ));
                    let diagnostic = Diagnostic::error(UNKNOWN, span, summary);
                    let meant = key_within(key, &environment.name).filter(|meant| names.by_key.contains_key(meant));
                    diagnostics.push(match (self.environments_of.get(key), meant) {
                        (Some(_), _) => diagnostic
                            .help("another environment has it, and resources refer to those of their own only"),
                        (None, Some(meant)) => diagnostic.help(format_args!("write the key alone: `{meant}`")),
                        (None, None) => diagnostic.did_you_mean_one_of(key, &names.keys),
                    });
                }
            }
            for reference in references_of(resource) {
                let is_disabled = environment.disabled.contains(&reference.resource);
                diagnostics.extend(is_disabled.then(|| missing_default_error(reference)).flatten());
                if let Some(target) = names.by_key.get(reference.resource.as_str()) {
                    check_core_property(reference, target, self.types, diagnostics);
                }
            }
            check_deleted_with(names, resource, diagnostics);
        }
    }

    /// Checks a reference of an output that names an environment.
    fn check_qualified(
        &self,
        reference: &Reference,
        name: &str,
        output: &str,
        all_names: &Arc<[String]>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let key = reference.resource.as_str();
        let Some(names) = self.by_name.get(name).map(|index| &self.environments[*index]) else {
            let summary = MessageText::new(format_args!("env {name:?} referenced by output {output:?} is not defined"));
            diagnostics.push(Diagnostic::error(UNKNOWN, reference.span, summary).did_you_mean_one_of(name, all_names));
            return;
        };
        if let Some(target) = names.by_key.get(key) {
            check_core_property(reference, target, self.types, diagnostics);
        } else if names.environment.disabled.iter().any(|disabled| disabled == key) {
            diagnostics.extend(missing_default_error(reference));
        } else if !self.declared.contains(&(name, key)) {
            let summary = MessageText::new(format_args!(
                "resource {key:?} referenced by output {output:?} is not defined in env {name:?}"
            ));
            diagnostics.push(Diagnostic::error(UNKNOWN, reference.span, summary).did_you_mean_one_of(key, &names.keys));
        }
    }

    /// Checks a reference of an output that names no environment.
    fn check_unqualified(
        &self,
        reference: &Reference,
        output: &str,
        all_keys: &Arc<[String]>,
        declared_keys: &HashSet<&str>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let key = reference.resource.as_str();
        match self.environments_of.get(key).map(Vec::as_slice) {
            Some([only]) => {
                check_core_property(reference, self.environments[*only].by_key[key], self.types, diagnostics);
            }
            None | Some([]) => {
                let mut environments = self.environments.iter().map(|names| names.environment);
                if environments.any(|environment| environment.disabled.iter().any(|disabled| disabled == key)) {
                    diagnostics.extend(missing_default_error(reference));
                } else if !declared_keys.contains(key) {
                    let summary = MessageText::new(format_args!(
                        "resource {key:?} referenced by output {output:?} is not defined in any env"
                    ));
                    diagnostics
                        .push(Diagnostic::error(UNKNOWN, reference.span, summary).did_you_mean_one_of(key, all_keys));
                }
            }
            Some([first, ..]) => {
                let summary = MessageText::new(format_args!(
                    "resource {key:?} referenced by output {output:?} is defined in several envs"
                ));
                let (path, first) = (reference.path.join("."), &self.environments[*first].environment.name);
                diagnostics.push(
                    Diagnostic::error(UNKNOWN, reference.span, summary)
                        .help(format_args!("name the env: `${{resource:{first}/{key}.{path}}}`")),
                );
            }
        }
    }
}

/// Returns the error of a reference to a resource that is switched off; `None` if the reference has a default, which is its value then.
fn missing_default_error(reference: &Reference) -> Option<Diagnostic> {
    if reference.default.is_some() {
        return None;
    }
    let summary = MessageText::new(format_args!(
        "resource {:?} is switched off (`enabled`), and the reference has no default",
        reference.resource
    ));
    let (key, path) = (&reference.resource, reference.path.join("."));
    let place = reference.environment.as_ref().map(|environment| format!("{environment}/")).unwrap_or_default();
    let help = MessageText::new(format_args!("write `${{resource:{place}{key}.{path}:DEFAULT}}`"));
    Some(Diagnostic::error(Code("switched-off"), reference.span, summary).help(help))
}

/// Returns the key of a resource in a text that stands where a key is expected: a placeholder (`${b}`, `${resource:b.id}`) or the
/// logical name (`b--prod`).
fn key_within<'t>(text: &'t str, environment: &str) -> Option<&'t str> {
    let reference = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let Some(reference) = reference else { return text.strip_suffix(environment)?.strip_suffix("--") };
    reference.strip_prefix("resource:").unwrap_or(reference).split('.').next()
}

/// Checks that `deletedWith` names one resource: a core resource registers several.
fn check_deleted_with(names: &EnvironmentNames<'_>, resource: &Resource, diagnostics: &mut Vec<Diagnostic>) {
    let Some((key, span)) = &resource.options.deleted_with else { return };
    let target = names.by_key.get(key.as_str()).map(|target| &target.implementation);
    if let Some(ResourceImplementation::Core { type_name }) = target {
        let summary = MessageText::new(format_args!("`deletedWith` names {key:?}, which is several resources"));
        let diagnostic = Diagnostic::error(Code("option"), *span, summary);
        diagnostics.push(
            diagnostic.help(format_args!("name a resource of a plugin; {key:?} is of the core type {type_name:?}")),
        );
    }
}

/// Checks that a core type has the referenced output. The outputs of plugin resources are unknown before the run.
fn check_core_property(reference: &Reference, target: &Resource, types: &TypeTable, diagnostics: &mut Vec<Diagnostic>) {
    let ResourceImplementation::Core { type_name } = &target.implementation else { return };
    let Some(core) = types.get(type_name) else { return };
    let property = reference.path[0].as_str();
    if !core.outputs().contains(&property) {
        let summary = MessageText::new(format_args!("the core type {type_name:?} has no {property:?}"));
        diagnostics.push(
            Diagnostic::error(Code("unknown-property"), reference.span, summary)
                .did_you_mean(property, core.outputs().iter().copied())
                .help(format_args!("it has {}", core.outputs().join(", "))),
        );
    }
}

/// Number of names of a cycle that a message lists.
const MAX_LISTED: usize = 10;

/// Reports each cycle once, at the reference that closes it.
fn check_cycles(names: &EnvironmentNames<'_>, diagnostics: &mut Vec<Diagnostic>) {
    let mut done: HashSet<&str> = HashSet::new();
    for resource in &names.environment.resources {
        // Each frame: a key and the dependencies that are still to visit.
        let mut stack: Vec<(&str, VecDeque<(&str, Span)>)> = Vec::new();
        // The index of each key in the stack.
        let mut open: HashMap<&str, usize> = HashMap::new();
        if !done.contains(resource.key.as_str()) {
            open.insert(&resource.key, 0);
            stack.push((&resource.key, dependencies(resource).collect()));
        }
        while let Some((key, rest)) = stack.last_mut() {
            let key = *key;
            let Some((next, span)) = rest.pop_front() else {
                done.insert(key);
                open.remove(key);
                stack.pop();
                continue;
            };
            if let Some(start) = open.get(next) {
                let cycle = &stack[*start..];
                let listed = cycle.iter().take(MAX_LISTED).map(|(key, _)| *key);
                let mut listed: Vec<&str> = listed.chain((cycle.len() > MAX_LISTED).then_some("…")).collect();
                listed.push(next);
                let summary = MessageText::new(format_args!("resource dependency cycle: {}", listed.join(" -> ")));
                diagnostics.push(Diagnostic::error(Code("dependency-cycle"), span, summary));
            } else if let Some(resource) = names.by_key.get(next).filter(|_| !done.contains(next)) {
                open.insert(next, stack.len());
                stack.push((next, dependencies(resource).collect()));
            }
        }
    }
}
