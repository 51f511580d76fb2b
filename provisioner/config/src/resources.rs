//! Reads `resources` of server.yaml: `resources.resources.ENVIRONMENT.resources.KEY`, or a shorthand with fewer
//! levels (docs/spec/simple-container.md#2.5.3).

use std::collections::{BTreeMap, HashMap, HashSet};

use bridge::message_text::MessageText;

use crate::asset_function::{self, AssetRule};
use crate::collections::{self, FOR_EACH};
use crate::diagnostics::{Code, Diagnostic, Span, has_errors};
use crate::function::{FUNCTION, FUNCTIONS, has_functions, is_resource, is_section_of_all};
use crate::inherit::REGISTRAR;
use crate::moved::MOVED;
use crate::options;
use crate::place::Collection;
use crate::placeholder::{Each, ReferenceRule, Resolver};
use crate::reader::{Reader, Section, unknown_key_error};
use crate::routing::{RoutingContext, RoutingRequest, missing_type_error};
use crate::stack::{Environment, Resource, ResourceImplementation};
use crate::tree::{Entry, Mapping, Node, Value};
use crate::types::TypeTable;
use crate::yaml::scalar::go_bool;

const RESOURCE_KEYS: [&str; 7] = ["type", "name", "config", "inherit", "options", ENABLED, FOR_EACH];
const ENVIRONMENT_KEYS: [&str; 5] = ["template", "resources", "inherit", ENABLED, FUNCTIONS];
const SECTION_KEYS: [&str; 4] = [REGISTRAR, "resources", MOVED, FUNCTIONS];
/// Key with which a resource, a function and an environment are switched off. A resource and an environment may have this name as well.
pub(super) const ENABLED: &str = "enabled";
const SHORTHAND: Code = Code("shorthand");
const MISSING_LEVEL: Code = Code("missing-level");

/// The entries of a resource and its environment in the file, before they are read.
struct ResourceEntry<'n> {
    environment: &'n Entry,
    resource: &'n Entry,
}

/// Reads the section into environments in the order of the file.
pub(super) fn read(root: Section<'_>, routing: RoutingContext<'_>, resolver: &mut Resolver<'_>) -> Vec<Environment> {
    let mut diagnostics = Vec::new();
    let entries = find_resources(root, &mut Reader::new(&mut diagnostics));
    let mut environments: Vec<Environment> = Vec::new();
    let mut indices: HashMap<&str, usize> = HashMap::new();
    let mut seen: BTreeMap<(&str, &str), Span> = BTreeMap::new();
    let mut switches: HashMap<Span, Switch> = HashMap::new();
    for ResourceEntry { environment, resource } in entries {
        if let Some(first) = seen.insert((&environment.key, &resource.key), resource.key_span) {
            let summary = MessageText::new(format_args!(
                "resource {:?} of env {:?} is defined twice",
                resource.key, environment.key
            ));
            diagnostics.push(
                Diagnostic::error(Code("duplicate-resource"), resource.key_span, summary)
                    .label(first, "first defined here"),
            );
            continue;
        }
        resolver.environment = Some(environment.key.clone());
        let index = *indices.entry(&environment.key).or_insert_with(|| {
            environments.push(Environment::new(&environment.key, environment.key_span));
            environments.len() - 1
        });
        let is_switched_on = switches
            .entry(environment.key_span)
            .or_insert_with(|| is_enabled(&environment.value, resolver, &mut diagnostics))
            .clone();
        let mut add = |key: String, resolver: &mut Resolver<'_>| {
            let read = read_resource(environment, (resource, &key), routing, resolver, &mut diagnostics);
            let switch = is_switched_on.clone().and(|| is_enabled(&resource.value, resolver, &mut diagnostics));
            match switch {
                Switch::On => environments[index].resources.extend(read),
                Switch::Off => environments[index].disabled.push(key),
                Switch::Awaits(event) => {
                    let (span, instances) = (resource.key_span, vec![]);
                    let awaited = Some(event);
                    environments[index].collections.push(Collection {
                        key,
                        span,
                        instances,
                        is_unknown: true,
                        awaited,
                    });
                }
            }
        };
        let Some(for_each) = resource.value.as_mapping().and_then(|mapping| mapping.get_non_null(FOR_EACH)) else {
            add(resource.key.clone(), resolver);
            continue;
        };
        let mut collected = Vec::new();
        let read_before = resolver.read_early();
        let entries = collections::entries(for_each, resolver, &mut collected);
        let awaited = if entries.is_none() { resolver.awaited_since(read_before) } else { None };
        if entries.is_none() {
            read_unknown_instance(&resource.value, resolver);
        }
        let (is_unknown, mut instances) = (entries.is_none(), Vec::new());
        for each in entries.into_iter().flatten() {
            let key = format!("{}-{}", resource.key, each.key);
            instances.push((each.key.clone(), key.clone()));
            resolver.each = Some(each);
            add(key, resolver);
        }
        resolver.each = None;
        diagnostics.extend(collected);
        if let Some(ResourceImplementation::Core { type_name }) =
            environments[index].resources.last().map(|resource| &resource.implementation)
            && instances.len() > 1
        {
            collections::reject_fixed_names(&resource.value, type_name, &mut diagnostics);
        }
        let (key, span) = (resource.key.clone(), resource.key_span);
        environments[index].collections.push(Collection { key, span, instances, is_unknown, awaited });
    }
    resolver.environment = None;
    collections::reject_equal_keys(&environments, &mut diagnostics);
    reject_repeated_domains(&environments, routing.types, &mut diagnostics);
    resolver.diagnostics.extend(diagnostics);
    environments
}

/// Reads a resource whose collection is not known yet, without its errors, for what it reads of other stacks and of functions: the
/// stack is read again with that.
fn read_unknown_instance(resource: &Node, resolver: &mut Resolver<'_>) {
    let reported = resolver.diagnostics.len();
    resolver.each = Some(Each { key: String::new(), value: Node::text("", resource.span) });
    if let Some(config) = resource.as_mapping().and_then(|mapping| mapping.get("config")) {
        resolver.resolve(config, ReferenceRule::SameEnvironment);
    }
    is_enabled(resource, resolver, &mut Vec::new());
    resolver.each = None;
    resolver.diagnostics.truncate(reported);
}

/// State of a resource, a function or an environment by its `enabled`.
#[derive(Clone)]
enum Switch {
    /// Registered.
    On,
    /// Left out.
    Off,
    /// Decided once this has happened.
    Awaits(String),
}

impl Switch {
    /// Returns the state of what is within something with this state.
    fn and(self, inner: impl FnOnce() -> Self) -> Self {
        if matches!(self, Self::On) { inner() } else { self }
    }
}

/// Returns whether a function, or the environment of one, is in use. What an output decides that is not known yet is.
pub(super) fn is_switched_on(node: &Node, resolver: &mut Resolver<'_>, diagnostics: &mut Vec<Diagnostic>) -> bool {
    !matches!(is_enabled(node, resolver, diagnostics), Switch::Off)
}

/// Returns whether a resource, a function or an environment is in use, by its `enabled`. A value that is not known here, which is reported where it
/// is needed, counts as `true`.
fn is_enabled(node: &Node, resolver: &mut Resolver<'_>, diagnostics: &mut Vec<Diagnostic>) -> Switch {
    let written = node.as_mapping().and_then(|mapping| mapping.get_non_null(ENABLED));
    let Some(written) = written.filter(|written| !is_resource(written)) else { return Switch::On };
    let (read_before, reported) = (resolver.read_early(), resolver.diagnostics.len());
    let resolved = resolver.resolve(written, ReferenceRule::KnownBefore);
    if has_errors(&resolver.diagnostics[reported..]) {
        return Switch::On;
    }
    let value = match &resolved.value {
        Value::Scalar(scalar) => go_bool(scalar).or_else(|| scalar.text.parse().ok()),
        Value::Interpolated(_) if resolved.is_unknown() => {
            return resolver.awaited_since(read_before).map_or(Switch::On, Switch::Awaits);
        }
        Value::Interpolated(string) => string.known().and_then(|text| text.parse().ok()),
        Value::Sequence(_) | Value::Mapping(_) => None,
    };
    match value {
        Some(true) => Switch::On,
        Some(false) => Switch::Off,
        None => {
            // What a placeholder stands for, no editor knows.
            let code = if resolved == *written { Code("wrong-kind") } else { Code("enabled") };
            let error = Diagnostic::error(code, written.span, "`enabled` must be `true` or `false`");
            diagnostics.push(error.help("a placeholder that is known before the run may stand for one of them"));
            Switch::On
        }
    }
}

/// Reports domains of several resources, because a domain can lead to one of them.
fn reject_repeated_domains(environments: &[Environment], types: &TypeTable, diagnostics: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<String, (Span, String)> = HashMap::new();
    let declared = environments.iter().flat_map(|environment| {
        environment.resources.iter().map(move |resource| (environment.name.as_str(), resource))
    });
    for (environment, resource) in declared {
        let ResourceImplementation::Core { type_name } = &resource.implementation else { continue };
        let Some(domain) = types.get(type_name).and_then(|core| core.domain(&resource.config)) else { continue };
        let text = match &domain.value.value {
            Value::Scalar(scalar) => scalar.text.clone(),
            Value::Interpolated(string) => string.known().unwrap_or_default(),
            Value::Sequence(_) | Value::Mapping(_) => continue,
        };
        let place = format!("{:?} of env {environment:?}", resource.key);
        if let Some((first, other)) = seen.insert(text, (domain.value.span, place.clone())) {
            let error =
                Diagnostic::error(Code("duplicate-domain"), domain.value.span, "two resources have this domain");
            let detail = MessageText::new(format_args!("they are {other} and {place}"));
            let error = error.label(first, "the other one").detail(detail);
            diagnostics.push(error.help("give each resource a domain of its own"));
        }
    }
}

/// Finds all resources, in full form and in shorthand.
fn find_resources<'n>(root: Section<'n>, reader: &mut Reader<'_>) -> Vec<ResourceEntry<'n>> {
    let mut entries = Vec::new();
    let Some(outer) = reader.section(root, "resources", "resources") else { return entries };
    if let Some(environments) = reader.section(outer, "resources", "resources.resources") {
        reader.reject_empty_names(environments, "an environment");
        for environment in environments.mapping {
            if let Some(diagnostic) = missing_level_error(environment) {
                reader.push(diagnostic);
                continue;
            }
            let Some(section) = reader.mapping(&environment.value, "an environment") else { continue };
            find_in_environment(environment, section, reader, &mut entries);
        }
    }
    let is_section = |entry: &&Entry| match entry.key.as_str() {
        MOVED => entry.value.as_mapping().is_none(),
        FUNCTIONS => is_section_of_all(&entry.value),
        key => SECTION_KEYS.contains(&key),
    };
    for environment in outer.mapping.into_iter().filter(|entry| !is_section(entry)) {
        let resources = environment.value.as_mapping().filter(|mapping| !mapping.0.is_empty());
        match resources.filter(|mapping| mapping.into_iter().all(|entry| is_resource(&entry.value))) {
            Some(resources) => {
                let full = format!("resources.resources.{}.resources", environment.key);
                let summary = MessageText::new(format_args!("env {:?} is taken as `{full}`", environment.key));
                reader.push(shorthand_warning(environment, summary));
                entries.extend(resources.into_iter().map(|resource| ResourceEntry { environment, resource }));
            }
            None => reader.push(unknown_section_error(environment)),
        }
    }
    entries
}

/// Returns the error of a resource in the place of an environment, or of an environment that has the name of a level.
fn missing_level_error(environment: &Entry) -> Option<Diagnostic> {
    let key = &environment.key;
    if is_resource(&environment.value) {
        let summary = MessageText::new(format_args!("`{key}` is a resource in the place of an environment"));
        let help = MessageText::new(format_args!("write `resources.resources.ENVIRONMENT.resources.{key}`"));
        return Some(Diagnostic::error(MISSING_LEVEL, environment.key_span, summary).help(help));
    }
    let is_environment = match key.as_str() {
        ENABLED => environment.value.as_mapping().is_some(),
        FUNCTIONS => !has_functions(&environment.value),
        _ => false,
    };
    (ENVIRONMENT_KEYS.contains(&key.as_str()) && !is_environment).then(|| {
        let summary = MessageText::new(format_args!("`{key}` is in the place of an environment"));
        let error = Diagnostic::error(MISSING_LEVEL, environment.key_span, summary);
        match key == FUNCTIONS {
            true => error.help("write `resources.functions`, or `resources.resources.ENVIRONMENT.functions`"),
            false => error.help("write `resources.resources.ENVIRONMENT.resources.KEY`"),
        }
    })
}

/// Returns the error of an unknown key in `resources`, which may be an environment with a level too few.
fn unknown_section_error(entry: &Entry) -> Diagnostic {
    let key = &entry.key;
    let unknown = unknown_key_error("`resources`", entry);
    let has_resources = entry.value.as_mapping().is_some_and(|mapping| mapping.entry("resources").is_some());
    if has_resources {
        return unknown.help(format_args!("write `resources.resources.{key}.resources`"));
    }
    if is_resource(&entry.value) {
        return unknown.help(format_args!("write `resources.resources.ENVIRONMENT.resources.{key}`"));
    }
    unknown.did_you_mean(key, SECTION_KEYS).help("environments are declared below `resources.resources`")
}

fn shorthand_warning(entry: &Entry, summary: MessageText) -> Diagnostic {
    Diagnostic::warning(SHORTHAND, entry.key_span, summary)
        .help("write the full path: the Go program ignores the shorthand")
}

fn find_in_environment<'n>(
    environment: &'n Entry,
    section: Section<'n>,
    reader: &mut Reader<'_>,
    entries: &mut Vec<ResourceEntry<'n>>,
) {
    let resources = reader.section(section, "resources", "resources");
    // Only Simple Container uses it.
    reader.text_at(section, "template");
    if let Some((_, span)) = reader.text_at(section, "inherit").filter(|(stack, _)| !stack.is_empty()) {
        reader.push(match resources {
            Some(_) => {
                let summary = MessageText::new(format_args!(
                    "resources are inherited, but resources are defined for stack {:?}",
                    environment.key
                ));
                Diagnostic::error(Code("inherit-and-resources"), span, summary).help("remove `inherit`")
            }
            None => Diagnostic::error(Code("inherit"), span, "an environment cannot be inherited")
                .help("`provisioner`, `secrets`, `cicd`, `templates` and entries of `auth` can be"),
        });
    }
    if let Some(resources) = resources {
        reader.reject_empty_names(resources, "a resource");
        entries.extend(resources.mapping.into_iter().map(|resource| ResourceEntry { environment, resource }));
    }
    let is_level = |entry: &&Entry| match entry.key.as_str() {
        ENABLED | FUNCTIONS => !is_resource(&entry.value),
        key => ENVIRONMENT_KEYS.contains(&key),
    };
    for resource in section.mapping.into_iter().filter(|entry| !is_level(entry)) {
        if is_resource(&resource.value) {
            let full = format!("resources.resources.{}.resources.{}", environment.key, resource.key);
            reader.push(shorthand_warning(
                resource,
                MessageText::new(format_args!("resource {:?} is taken as `{full}`", resource.key)),
            ));
            entries.push(ResourceEntry { environment, resource });
        } else {
            reader.push(
                unknown_key_error("an environment", resource).did_you_mean(&resource.key, ENVIRONMENT_KEYS).help(
                    "the keys are template, resources, inherit, enabled and functions; a resource needs a `type`",
                ),
            );
        }
    }
}

/// Reports keys that a resource does not have.
fn reject_unknown_keys(section: Section<'_>, reader: &mut Reader<'_>) {
    for entry in section.mapping.into_iter().filter(|entry| !RESOURCE_KEYS.contains(&entry.key.as_str())) {
        let key = entry.key.as_str();
        let unknown = unknown_key_error("a resource", entry);
        reader.push(if options::KEYS.contains(&key) {
            unknown.help(format_args!("write `options: {{ {key}: … }}`"))
        } else if ["args", "inputs", "properties", "props"].contains(&key) {
            unknown.help("did you mean `config`?")
        } else if key == FUNCTION {
            unknown.help("functions are declared in `functions` of the environment, beside `resources`")
        } else {
            unknown.did_you_mean(key, RESOURCE_KEYS.into_iter().chain(options::KEYS)).help(MessageText::new(
                format_args!(
                    "the keys are {}; what the resource is made of stands in `config`",
                    RESOURCE_KEYS.join(", ")
                ),
            ))
        });
    }
}

/// Returns the environment and the key of each resource that is declared, even of an invalid one.
pub(super) fn declared(root: Section<'_>) -> HashSet<(&str, &str)> {
    let mut ignored = Vec::new();
    let entries = find_resources(root, &mut Reader::new(&mut ignored));
    entries.into_iter().map(|entry| (entry.environment.key.as_str(), entry.resource.key.as_str())).collect()
}

/// Returns the error of a domain in a stack without a registrar.
fn missing_registrar_error(domain: &Entry, types: &TypeTable) -> Diagnostic {
    let summary = MessageText::new(format_args!("`{}` needs a registrar, which the stack does not have", domain.key));
    let registrars: Vec<String> = types.registrars().map(|core| format!("`type: {}`", core.name())).collect();
    let help = MessageText::new(format_args!(
        "add `resources.registrar` with {}, or leave the key out",
        registrars.join(" or ")
    ));
    Diagnostic::error(Code("missing-registrar"), domain.value.span, summary).help(help)
}

/// Returns the warning of a `name` on a resource of a plugin: only core types make names of it. `logical` is the name that the
/// resource has.
fn unused_name_warning(entry: &Entry, name: &str, logical: &str) -> Diagnostic {
    let summary = MessageText::new(format_args!(
        "`name` has no effect on a resource of a plugin, whose logical name is {logical:?}, from its key and its environment"
    ));
    let alias = MessageText::new(format_args!(
        "a resource that Pulumi has recorded under this name is kept with `options: {{ aliases: [{{ name: {name:?} }}] }}`"
    ));
    Diagnostic::warning(Code("unused"), entry.value.span, summary)
        .help(alias)
        .help("a name in the cloud is an input of the type, in `config`; else remove `name`")
}

fn read_resource(
    environment: &Entry,
    (entry, key): (&Entry, &str),
    routing: RoutingContext<'_>,
    resolver: &mut Resolver<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Resource> {
    let mut reader = Reader::new(diagnostics);
    let empty = Mapping::default();
    let section = match reader.mapping(&entry.value, "a resource") {
        Some(section) => section,
        None if entry.value.is_null() => Section { mapping: &empty, span: entry.key_span },
        None => return None,
    };
    reject_unknown_keys(section, &mut reader);
    let kind = reader.text_at(section, "type").filter(|(kind, _)| !kind.is_empty());
    if let Some((_, span)) = reader.text_at(section, "inherit").filter(|(stack, _)| !stack.is_empty()) {
        reader.push(match kind {
            Some(_) => {
                let summary = MessageText::new(format_args!(
                    "resource {:?} is inherited, but type is defined for stack {:?}",
                    entry.key, environment.key
                ));
                Diagnostic::error(Code("inherit-and-type"), span, summary).help("remove `inherit`")
            }
            None => Diagnostic::error(Code("inherit"), span, "a resource cannot be inherited")
                .help("`provisioner`, `secrets`, `cicd`, `templates` and entries of `auth` can be"),
        });
        return None;
    }
    let name = reader.text_at(section, "name").filter(|(name, _)| !name.is_empty());
    let name_entry = section.mapping.entry("name");
    let mut name_is_known = false;
    let config_is_mapping = reader.section(section, "config", "config").is_some() || section.get("config").is_none();
    let config = match section.get("config").filter(|_| config_is_mapping) {
        Some(node) => resolver.resolve(node, ReferenceRule::SameEnvironment),
        None => Node { value: Value::Mapping(Mapping::default()), span: entry.key_span },
    };
    let name = match name {
        Some((name, span)) => {
            let reported = resolver.diagnostics.len();
            let resolved = resolver.resolve(&Node::text(name, span), ReferenceRule::Rejected);
            name_is_known = resolver.diagnostics.len() == reported && !resolved.is_unknown();
            let has_secret = matches!(&resolved.value, Value::Interpolated(string) if string.secret);
            match resolved.is_unknown() && !has_secret {
                true => key.to_owned(),
                false => Reader::new(diagnostics).text(&resolved, "`name`")?,
            }
        }
        None => key.to_owned(),
    };
    let raw_options = section.get("options").map(|node| options::resolve(node, resolver));
    let provider = raw_options.as_ref().and_then(|node| node.as_mapping()?.get_non_null("provider"));
    let Some((text, type_span)) = kind else {
        diagnostics.push(missing_type_error(&entry.key, &environment.key, entry.key_span));
        return None;
    };
    let request =
        RoutingRequest { resource: &entry.key, environment: &environment.key, text: &text, span: type_span, provider };
    let implementation =
        request.select_implementation(routing).map_err(|diagnostic| diagnostics.push(*diagnostic)).ok().flatten()?;
    let options = options::read(raw_options.as_ref(), &implementation, routing.plugins, diagnostics);
    if let Some(trigger) = &options.replacement_trigger {
        asset_function::check(trigger, AssetRule::Rejected, diagnostics);
    }
    match &implementation {
        ResourceImplementation::Plugin { .. } => {
            asset_function::check_config(&config, diagnostics);
            let logical = format!("{key}--{}", environment.key);
            let unused_name = name_entry.filter(|_| name_is_known && name != logical);
            diagnostics.extend(unused_name.map(|entry| unused_name_warning(entry, &name, &logical)));
        }
        ResourceImplementation::Core { type_name } => {
            if let Some(core) = routing.types.get(type_name) {
                core.check(&config, diagnostics);
                let domain = core.domain(&config).filter(|_| !routing.has_registrar);
                diagnostics.extend(domain.map(|domain| missing_registrar_error(domain, routing.types)));
            }
        }
    }
    Some(Resource { key: key.to_owned(), key_span: entry.key_span, name, implementation, type_span, config, options })
}
