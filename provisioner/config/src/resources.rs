//! Reads `resources` of server.yaml: `resources.resources.ENVIRONMENT.resources.KEY`, or a shorthand with fewer
//! levels (docs/spec/simple-container.md#2.5.3).

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::options;
use crate::placeholder::{ReferenceRule, Resolver};
use crate::reader::{Reader, Section};
use crate::routing::{RoutingContext, RoutingRequest, missing_type_error};
use crate::stack::{Environment, Resource, ResourceImplementation};
use crate::tree::{Entry, Mapping, Node, Value};
use crate::values;

const RESOURCE_KEYS: [&str; 5] = ["type", "name", "config", "inherit", "options"];
const ENVIRONMENT_KEYS: [&str; 3] = ["template", "resources", "inherit"];
const SECTION_KEYS: [&str; 2] = ["registrar", "resources"];
const SHORTHAND: Code = Code("shorthand");

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
    for ResourceEntry { environment, resource } in entries {
        if let Some(first) = seen.insert((&environment.key, &resource.key), resource.key_span) {
            let summary = format!("resource {:?} of env {:?} is defined twice", resource.key, environment.key);
            diagnostics.push(
                Diagnostic::error(Code("duplicate-resource"), resource.key_span, summary)
                    .label(first, "first defined here"),
            );
            continue;
        }
        let resource = read_resource(environment, resource, routing, resolver, &mut diagnostics);
        let index = *indices.entry(&environment.key).or_insert_with(|| {
            environments.push(Environment {
                name: environment.key.clone(),
                span: environment.key_span,
                resources: vec![],
            });
            environments.len() - 1
        });
        environments[index].resources.extend(resource);
    }
    resolver.diagnostics.extend(diagnostics);
    environments
}

/// Finds all resources, in full form and in shorthand.
fn find_resources<'n>(root: Section<'n>, reader: &mut Reader<'_>) -> Vec<ResourceEntry<'n>> {
    let mut entries = Vec::new();
    let Some(outer) = reader.section(root, "resources", "resources") else { return entries };
    if let Some(environments) = reader.section(outer, "resources", "resources.resources") {
        for environment in environments.mapping {
            let Some(section) = reader.mapping(&environment.value, "an environment") else { continue };
            find_in_environment(environment, section, reader, &mut entries);
        }
    }
    for environment in outer.mapping.into_iter().filter(|entry| !SECTION_KEYS.contains(&entry.key.as_str())) {
        let Some(mapping) = environment.value.as_mapping() else { continue };
        if !mapping.0.is_empty() && mapping.into_iter().all(|entry| is_resource(&entry.value)) {
            let full = format!("resources.resources.{}.resources", environment.key);
            reader.push(
                Diagnostic::warning(
                    SHORTHAND,
                    environment.key_span,
                    format!("env {:?} is taken as `{full}`", environment.key),
                )
                .help("write the full path: the Go program ignores the shorthand"),
            );
            entries.extend(mapping.into_iter().map(|resource| ResourceEntry { environment, resource }));
        } else {
            let summary = format!("the key `{}` is ignored", environment.key);
            let diagnostic = Diagnostic::warning(Code("unknown-key"), environment.key_span, summary);
            reader.push(
                diagnostic
                    .did_you_mean(&environment.key, SECTION_KEYS)
                    .help("declare environments below `resources.resources`"),
            );
        }
    }
    entries
}

fn find_in_environment<'n>(
    environment: &'n Entry,
    section: Section<'n>,
    reader: &mut Reader<'_>,
    entries: &mut Vec<ResourceEntry<'n>>,
) {
    let resources = reader.section(section, "resources", "resources");
    if let Some((_, span)) = reader.text_at(section, "inherit").filter(|(stack, _)| !stack.is_empty()) {
        reader.push(match resources {
            Some(_) => {
                let summary =
                    format!("resources are inherited, but resources are defined for stack {:?}", environment.key);
                Diagnostic::error(Code("inherit-and-resources"), span, summary).help("remove `inherit`")
            }
            None => Diagnostic::error(Code("inherit"), span, "an environment cannot be inherited")
                .help("`provisioner`, `secrets`, `cicd`, `templates` and entries of `auth` can be"),
        });
    }
    if let Some(resources) = resources {
        entries.extend(resources.mapping.into_iter().map(|resource| ResourceEntry { environment, resource }));
    }
    let mut short = Vec::new();
    for resource in section.mapping.into_iter().filter(|entry| !ENVIRONMENT_KEYS.contains(&entry.key.as_str())) {
        if is_resource(&resource.value) {
            let full = format!("resources.resources.{}.resources.{}", environment.key, resource.key);
            reader.push(
                Diagnostic::warning(
                    SHORTHAND,
                    resource.key_span,
                    format!("resource {:?} is taken as `{full}`", resource.key),
                )
                .help("write the full path: the Go program ignores the shorthand"),
            );
            entries.push(ResourceEntry { environment, resource });
            short.push(resource.key.as_str());
        }
    }
    let known: Vec<&str> = ENVIRONMENT_KEYS.into_iter().chain(short).collect();
    reader.warn_of_misspelled_keys(section, &known);
}

/// Returns the environment and the key of each resource that is declared, even of an invalid one.
pub(super) fn declared(root: Section<'_>) -> HashSet<(&str, &str)> {
    let mut ignored = Vec::new();
    let entries = find_resources(root, &mut Reader::new(&mut ignored));
    entries.into_iter().map(|entry| (entry.environment.key.as_str(), entry.resource.key.as_str())).collect()
}

/// Returns true for a mapping with a string `type`.
fn is_resource(node: &Node) -> bool {
    let kind = node.as_mapping().and_then(|mapping| mapping.get_non_null("type"));
    kind.is_some_and(|kind| kind.as_scalar().is_some())
}

fn read_resource(
    environment: &Entry,
    entry: &Entry,
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
    reader.warn_of_misspelled_keys(section, &RESOURCE_KEYS);
    let kind = reader.text_at(section, "type").filter(|(kind, _)| !kind.is_empty());
    if let Some((_, span)) = reader.text_at(section, "inherit").filter(|(stack, _)| !stack.is_empty()) {
        reader.push(match kind {
            Some(_) => {
                let summary = format!(
                    "resource {:?} is inherited, but type is defined for stack {:?}",
                    entry.key, environment.key
                );
                Diagnostic::error(Code("inherit-and-type"), span, summary).help("remove `inherit`")
            }
            None => Diagnostic::error(Code("inherit"), span, "a resource cannot be inherited")
                .help("`provisioner`, `secrets`, `cicd`, `templates` and entries of `auth` can be"),
        });
        return None;
    }
    let name = reader.text_at(section, "name").filter(|(name, _)| !name.is_empty());
    let config_is_mapping = reader.section(section, "config", "config").is_some() || section.get("config").is_none();
    let config = match section.get("config").filter(|_| config_is_mapping) {
        Some(node) => resolver.resolve(node, ReferenceRule::SameEnvironment),
        None => Node { value: Value::Mapping(Mapping::default()), span: entry.key_span },
    };
    let name = match name {
        Some((name, span)) => {
            let resolved = resolver.resolve(&Node::text(name, span), ReferenceRule::Rejected);
            Reader::new(diagnostics).text(&resolved, "`name`")?
        }
        None => entry.key.clone(),
    };
    let raw_options = section.get("options").map(|node| resolver.resolve(node, ReferenceRule::Rejected));
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
    match &implementation {
        ResourceImplementation::Plugin { .. } => values::check(&config, diagnostics),
        ResourceImplementation::Core { type_name } => {
            if let Some(core) = routing.types.get(type_name) {
                core.check(&config, diagnostics);
            }
        }
    }
    Some(Resource {
        key: entry.key.clone(),
        key_span: entry.key_span,
        name,
        implementation,
        type_span,
        config,
        options,
    })
}
