//! References between the resources of a stack: checks that every name is defined and that there is no cycle
//! (docs/spec/simple-container.md#3.5).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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

/// Returns the keys of the resources that a resource depends on, with their positions: references first, then
/// `dependsOn`.
pub fn dependencies(resource: &Resource) -> impl Iterator<Item = (&str, Span)> {
    let referred =
        references(&resource.config).into_iter().map(|reference| (reference.resource.as_str(), reference.span));
    referred.chain(resource.options.depends_on.iter().map(|(key, span)| (key.as_str(), *span)))
}

/// Checks every name and finds cycles. `is_declared` returns true for a resource that is declared, even if it is
/// invalid.
pub(super) fn check(
    environments: &[Environment],
    outputs: &[Output],
    types: &TypeTable,
    is_declared: &dyn Fn(&str, &str) -> bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for environment in environments {
        check_names(environment, types, is_declared, diagnostics);
        check_cycles(environment, diagnostics);
    }
    for output in outputs {
        for reference in references(&output.value) {
            check_output_reference(reference, &output.name, environments, types, is_declared, diagnostics);
        }
    }
}

fn check_names(
    environment: &Environment,
    types: &TypeTable,
    is_declared: &dyn Fn(&str, &str) -> bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let by_key = by_key(environment);
    for resource in &environment.resources {
        for (key, span) in dependencies(resource) {
            if !by_key.contains_key(key) && !is_declared(&environment.name, key) {
                let summary = format!(
                    "resource {key:?} referenced by {:?} is not defined in env {:?}",
                    resource.key, environment.name
                );
                diagnostics.push(Diagnostic::error(UNKNOWN, span, summary).did_you_mean(key, by_key.keys().copied()));
            }
        }
        for reference in references(&resource.config) {
            if let Some(target) = by_key.get(reference.resource.as_str()) {
                check_core_property(reference, target, types, diagnostics);
            }
        }
    }
}

fn by_key(environment: &Environment) -> BTreeMap<&str, &Resource> {
    environment.resources.iter().map(|resource| (resource.key.as_str(), resource)).collect()
}

/// Checks that a core type has the referenced output. The outputs of plugin resources are unknown before the run.
fn check_core_property(reference: &Reference, target: &Resource, types: &TypeTable, diagnostics: &mut Vec<Diagnostic>) {
    let ResourceImplementation::Core { type_name } = &target.implementation else { return };
    let Some(core) = types.get(type_name) else { return };
    let property = reference.path[0].as_str();
    if !core.outputs().contains(&property) {
        let summary = format!("the core type {type_name:?} has no {property:?}");
        diagnostics.push(
            Diagnostic::error(Code("unknown-property"), reference.span, summary)
                .did_you_mean(property, core.outputs().iter().copied())
                .help(format!("it has {}", core.outputs().join(", "))),
        );
    }
}

fn check_output_reference<'e>(
    reference: &Reference,
    output: &str,
    environments: &'e [Environment],
    types: &TypeTable,
    is_declared: &dyn Fn(&str, &str) -> bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let key = reference.resource.as_str();
    let in_environment =
        |environment: &'e Environment| environment.resources.iter().find(|resource| resource.key == key);
    match &reference.environment {
        Some(name) => {
            let Some(environment) = environments.iter().find(|environment| environment.name == *name) else {
                let summary = format!("env {name:?} referenced by output {output:?} is not defined");
                let names = environments.iter().map(|environment| environment.name.as_str());
                diagnostics.push(Diagnostic::error(UNKNOWN, reference.span, summary).did_you_mean(name, names));
                return;
            };
            if let Some(target) = in_environment(environment) {
                check_core_property(reference, target, types, diagnostics);
            } else if !is_declared(name, key) {
                let summary =
                    format!("resource {key:?} referenced by output {output:?} is not defined in env {name:?}");
                let keys = environment.resources.iter().map(|resource| resource.key.as_str());
                diagnostics.push(Diagnostic::error(UNKNOWN, reference.span, summary).did_you_mean(key, keys));
            }
        }
        None => match environments.iter().filter_map(|e| Some((e, in_environment(e)?))).collect::<Vec<_>>()[..] {
            [(_, target)] => check_core_property(reference, target, types, diagnostics),
            [] => {
                if !environments.iter().any(|environment| is_declared(&environment.name, key)) {
                    let summary = format!("resource {key:?} referenced by output {output:?} is not defined in any env");
                    let all = environments.iter().flat_map(|environment| &environment.resources);
                    diagnostics.push(
                        Diagnostic::error(UNKNOWN, reference.span, summary)
                            .did_you_mean(key, all.map(|resource| resource.key.as_str())),
                    );
                }
            }
            [(first, _), ..] => {
                let summary = format!("resource {key:?} referenced by output {output:?} is defined in several envs");
                let path = reference.path.join(".");
                diagnostics.push(
                    Diagnostic::error(UNKNOWN, reference.span, summary)
                        .help(format!("name the env: `${{resource:{}/{key}.{path}}}`", first.name)),
                );
            }
        },
    }
}

/// Reports each cycle once, at the reference that closes it.
fn check_cycles(environment: &Environment, diagnostics: &mut Vec<Diagnostic>) {
    let by_key = by_key(environment);
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for resource in &environment.resources {
        // Each frame: a key and the dependencies that are still to visit.
        let mut stack: Vec<(&str, VecDeque<(&str, Span)>)> = Vec::new();
        if !done.contains(resource.key.as_str()) {
            stack.push((&resource.key, dependencies(resource).collect()));
        }
        while let Some((key, rest)) = stack.last_mut() {
            let key = *key;
            let Some((next, span)) = rest.pop_front() else {
                done.insert(key);
                stack.pop();
                continue;
            };
            if let Some(start) = stack.iter().position(|(open, _)| *open == next) {
                let mut names: Vec<&str> = stack[start..].iter().map(|(key, _)| *key).collect();
                names.push(next);
                let summary = format!("resource dependency cycle: {}", names.join(" -> "));
                diagnostics.push(Diagnostic::error(Code("dependency-cycle"), span, summary));
            } else if let Some(resource) = by_key.get(next).filter(|_| !done.contains(next)) {
                stack.push((next, dependencies(resource).collect()));
            }
        }
    }
}
