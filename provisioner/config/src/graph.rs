//! References between the resources and the functions of a stack: checks that every resource is defined and that there is no cycle
//! (docs/spec/simple-container.md#3.5).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::function::Function;
use crate::stack::{Environment, Output, Resource, ResourceImplementation};
use crate::tree::{Node, Reference, ReferenceKind, Value};
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

/// Name of a resource or a function among those of its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeName<'s> {
    /// Environment and name of a function. One that is seen in all environments has none.
    Function(Option<&'s str>, &'s str),
    /// Environment and key of a resource.
    Resource(&'s str, &'s str),
}

/// Returns the names of what a reference in an environment refers to.
pub fn targets<'s>(reference: &'s Reference, environment: &'s str) -> impl Iterator<Item = NodeName<'s>> {
    let named = reference.environment.as_deref();
    reference.targets().map(move |key| match reference.kind {
        ReferenceKind::Resource => NodeName::Resource(named.unwrap_or(environment), key),
        ReferenceKind::Function => NodeName::Function(named, key),
    })
}

/// Returns the names of the resources and the functions after which a resource of an environment is registered, with their positions:
/// references first, then those that options name.
pub fn dependencies<'s>(environment: &'s str, resource: &'s Resource) -> impl Iterator<Item = (NodeName<'s>, Span)> {
    let referred = references_of(resource)
        .flat_map(move |reference| targets(reference, environment).map(move |target| (target, reference.span)));
    referred.chain(named_by_options(resource).map(move |(key, span)| (NodeName::Resource(environment, key), span)))
}

/// Returns the keys that options of a resource name, with their positions.
fn named_by_options(resource: &Resource) -> impl Iterator<Item = (&str, Span)> {
    let options = &resource.options;
    let named = options.depends_on.iter().chain(&options.replace_with).chain(&options.deleted_with);
    named.map(|(key, span)| (key.as_str(), *span))
}

/// Returns the names of the resources and the functions after which a function is called, with their positions.
pub fn dependencies_of_function(function: &Function) -> impl Iterator<Item = (NodeName<'_>, Span)> {
    // A function of all environments refers to no resource.
    let environment = function.environment.as_deref().unwrap_or_default();
    let referred = references(&function.arguments).into_iter();
    let referred =
        referred.flat_map(move |reference| targets(reference, environment).map(move |target| (target, reference.span)));
    let named = function.depends_on.iter();
    referred.chain(named.map(move |(key, span)| (NodeName::Resource(environment, key), *span)))
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
    functions: &[Function],
    outputs: &[Output],
    types: &TypeTable,
    declared: &HashSet<(&str, &str)>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let names = Names::new(environments, types, declared);
    let all_names: Arc<[String]> = environments.iter().map(|environment| environment.name.clone()).collect();
    for environment in &names.environments {
        names.check_environment(environment, &all_names, diagnostics);
    }
    names.check_functions(functions, &all_names, diagnostics);
    check_cycles(environments, functions, diagnostics);
    let all_keys: Arc<[String]> = names.environments.iter().flat_map(|names| names.keys.iter().cloned()).collect();
    let declared_keys: HashSet<&str> = declared.iter().map(|(_, key)| *key).collect();
    for output in outputs {
        for reference in resource_references(references(&output.value)) {
            match &reference.environment {
                Some(environment) => {
                    let holder = format!("output {:?}", output.name);
                    names.check_qualified(reference, environment, &holder, &all_names, diagnostics);
                }
                None => names.check_unqualified(reference, &output.name, &all_keys, &declared_keys, diagnostics),
            }
        }
    }
}

/// Omits references to functions, which are checked where they are led to their functions.
fn resource_references<'r>(references: impl IntoIterator<Item = &'r Reference>) -> impl Iterator<Item = &'r Reference> {
    references.into_iter().filter(|reference| reference.kind == ReferenceKind::Resource)
}

impl<'s> Names<'s> {
    fn new(environments: &'s [Environment], types: &'s TypeTable, declared: &'s HashSet<(&'s str, &'s str)>) -> Self {
        let mut environments_of: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, environment) in environments.iter().enumerate() {
            for resource in &environment.resources {
                environments_of.entry(&resource.key).or_default().push(index);
            }
        }
        let names = environments.iter().map(EnvironmentNames::new);
        let by_name = environments.iter().enumerate().map(|(index, environment)| (environment.name.as_str(), index));
        Self { environments: names.collect(), by_name: by_name.collect(), environments_of, declared, types }
    }

    fn check_environment(
        &self,
        names: &EnvironmentNames<'_>,
        all_names: &Arc<[String]>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        for resource in &names.environment.resources {
            for reference in resource_references(references_of(resource)) {
                self.check_reference(names, reference, &resource.key, all_names, diagnostics);
            }
            for (key, span) in named_by_options(resource) {
                self.check_named(names, (key, span), &resource.key, diagnostics);
            }
            check_deleted_with(names, resource, diagnostics);
        }
    }

    /// Checks the references and options of functions. One of all environments refers to no resource, which is checked before.
    fn check_functions(&self, functions: &[Function], all_names: &Arc<[String]>, diagnostics: &mut Vec<Diagnostic>) {
        for function in functions {
            let Some(environment) = &function.environment else { continue };
            let known = self.by_name.get(environment.as_str()).map(|index| &self.environments[*index]);
            // An environment may have no resource.
            let without_resources = Environment::new(environment, function.name_span);
            let empty = EnvironmentNames::new(&without_resources);
            let names = known.unwrap_or(&empty);
            for reference in resource_references(references(&function.arguments)) {
                self.check_reference(names, reference, &function.name, all_names, diagnostics);
            }
            for (key, span) in &function.depends_on {
                self.check_named(names, (key, *span), &function.name, diagnostics);
            }
        }
    }

    /// Checks a reference of a resource or a function of an environment.
    fn check_reference(
        &self,
        names: &EnvironmentNames<'_>,
        reference: &Reference,
        holder: &str,
        all_names: &Arc<[String]>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        if let Some(environment) = reference.environment.as_deref().filter(|name| *name != names.environment.name) {
            return self.check_qualified(reference, environment, &format!("{holder:?}"), all_names, diagnostics);
        }
        for key in reference.targets() {
            if !self.is_declared(names, key) {
                let diagnostic = self.unknown_error(names, (key, reference.span), holder);
                diagnostics.push(match self.environments_of.get(key).and_then(|found| found.first()) {
                    Some(other) => {
                        let environment = Some(self.environments[*other].environment.name.clone());
                        let named = Reference { environment, ..reference.clone() };
                        diagnostic.help(format_args!("another environment has it: write `{named}`"))
                    }
                    None => diagnostic,
                });
            }
        }
        let is_disabled = names.environment.disabled.contains(&reference.resource);
        diagnostics.extend(is_disabled.then(|| missing_default_error(reference)).flatten());
        if let Some(target) = names.by_key.get(reference.resource.as_str()) {
            check_core_property(reference, target, self.types, diagnostics);
        }
    }

    /// Checks a key that an option names.
    fn check_named(
        &self,
        names: &EnvironmentNames<'_>,
        (key, span): (&str, Span),
        holder: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        if !self.is_declared(names, key) {
            let diagnostic = self.unknown_error(names, (key, span), holder);
            diagnostics.push(match self.environments_of.contains_key(key) {
                true => diagnostic.help("another environment has it, and options name resources of their own only"),
                false => diagnostic,
            });
        }
    }

    fn is_declared(&self, names: &EnvironmentNames<'_>, key: &str) -> bool {
        names.by_key.contains_key(key) || self.declared.contains(&(names.environment.name.as_str(), key))
    }

    /// Returns the error of a key that an environment does not have.
    fn unknown_error(&self, names: &EnvironmentNames<'_>, (key, span): (&str, Span), holder: &str) -> Diagnostic {
        let environment = &names.environment.name;
        let summary = MessageText::new(format_args!(
            "resource {key:?} referenced by {holder:?} is not defined in env {environment:?}"
        ));
        let diagnostic = Diagnostic::error(UNKNOWN, span, summary);
        let meant = key_within(key, environment).filter(|meant| names.by_key.contains_key(meant));
        match meant {
            _ if self.environments_of.contains_key(key) => diagnostic,
            Some(meant) => diagnostic.help(format_args!("write the key alone: `{meant}`")),
            None => diagnostic.did_you_mean_one_of(key, &names.keys),
        }
    }

    /// Checks a reference that names an environment.
    fn check_qualified(
        &self,
        reference: &Reference,
        name: &str,
        holder: &str,
        all_names: &Arc<[String]>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let key = reference.resource.as_str();
        let Some(names) = self.by_name.get(name).map(|index| &self.environments[*index]) else {
            let summary = MessageText::new(format_args!("env {name:?} referenced by {holder} is not defined"));
            diagnostics.push(Diagnostic::error(UNKNOWN, reference.span, summary).did_you_mean_one_of(name, all_names));
            return;
        };
        if let Some(target) = names.by_key.get(key) {
            check_core_property(reference, target, self.types, diagnostics);
        } else if names.environment.disabled.iter().any(|disabled| disabled == key) {
            diagnostics.extend(missing_default_error(reference));
        } else if !self.declared.contains(&(name, key)) {
            let summary = MessageText::new(format_args!(
                "resource {key:?} referenced by {holder} is not defined in env {name:?}"
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

impl<'s> EnvironmentNames<'s> {
    fn new(environment: &'s Environment) -> Self {
        Self {
            environment,
            by_key: environment.resources.iter().map(|resource| (resource.key.as_str(), resource)).collect(),
            keys: environment.resources.iter().map(|resource| resource.key.clone()).collect(),
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

/// Names that a node of the graph depends on and that are still to visit.
type Pending<'s> = VecDeque<(NodeName<'s>, Span)>;

/// Reports each cycle of the stack once, at the reference that closes it.
fn check_cycles(environments: &[Environment], functions: &[Function], diagnostics: &mut Vec<Diagnostic>) {
    let resources = environments.iter().flat_map(|environment| {
        environment.resources.iter().map(move |resource| (environment.name.as_str(), resource))
    });
    let resources: HashMap<NodeName<'_>, (&str, &Resource)> = resources
        .map(|(environment, resource)| (NodeName::Resource(environment, &resource.key), (environment, resource)))
        .collect();
    let by_name: HashMap<NodeName<'_>, &Function> = functions
        .iter()
        .map(|function| (NodeName::Function(function.environment.as_deref(), &function.name), function))
        .collect();
    let pending = |name: &NodeName<'_>| -> Option<Pending<'_>> {
        match (resources.get(name), by_name.get(name)) {
            (Some((environment, resource)), _) => Some(dependencies(environment, resource).collect()),
            (None, Some(function)) => Some(dependencies_of_function(function).collect()),
            (None, None) => None,
        }
    };
    let in_order = environments.iter().flat_map(|environment| {
        environment.resources.iter().map(move |resource| NodeName::Resource(&environment.name, &resource.key))
    });
    let of_functions =
        functions.iter().map(|function| NodeName::Function(function.environment.as_deref(), &function.name));
    let mut done: HashSet<NodeName<'_>> = HashSet::new();
    for first in in_order.chain(of_functions) {
        // Each frame: a name and what is still to visit.
        let mut stack: Vec<(NodeName<'_>, Pending<'_>)> = Vec::new();
        // The index of each name in the stack.
        let mut open: HashMap<NodeName<'_>, usize> = HashMap::new();
        if !done.contains(&first) {
            open.insert(first, 0);
            stack.extend(pending(&first).map(|rest| (first, rest)));
        }
        while let Some((name, rest)) = stack.last_mut() {
            let name = *name;
            let Some((next, span)) = rest.pop_front() else {
                done.insert(name);
                open.remove(&name);
                stack.pop();
                continue;
            };
            if let Some(start) = open.get(&next) {
                let cycle: Vec<NodeName<'_>> = stack[*start..].iter().map(|(name, _)| *name).collect();
                diagnostics.push(cycle_error(&cycle, span));
            } else if !done.contains(&next)
                && let Some(rest) = pending(&next)
            {
                open.insert(next, stack.len());
                stack.push((next, rest));
            }
        }
    }
}

/// Returns the error of a cycle that a reference closes. Environments are named if there are several.
fn cycle_error(cycle: &[NodeName<'_>], span: Span) -> Diagnostic {
    let environment_of = |name: &NodeName<'_>| match name {
        NodeName::Resource(environment, _) => (*environment).to_owned(),
        NodeName::Function(environment, _) => environment.unwrap_or_default().to_owned(),
    };
    let environments: HashSet<String> =
        cycle.iter().map(environment_of).filter(|environment| !environment.is_empty()).collect();
    let in_words = |name: &NodeName<'_>| {
        let environment = Some(environment_of(name)).filter(|name| environments.len() > 1 && !name.is_empty());
        let place = environment.map(|environment| format!("{environment}/")).unwrap_or_default();
        match name {
            NodeName::Resource(_, key) => format!("{place}{key}"),
            NodeName::Function(_, name) => format!("function {place}{name}"),
        }
    };
    let listed = cycle.iter().take(MAX_LISTED).map(in_words);
    let mut listed: Vec<String> = listed.chain((cycle.len() > MAX_LISTED).then(|| "…".to_owned())).collect();
    listed.extend(cycle.first().map(in_words));
    let has_function = cycle.iter().any(|name| matches!(name, NodeName::Function(..)));
    let what = if has_function { "dependency cycle" } else { "resource dependency cycle" };
    let summary = MessageText::new(format_args!("{what}: {}", listed.join(" -> ")));
    Diagnostic::error(Code("dependency-cycle"), span, summary)
}
