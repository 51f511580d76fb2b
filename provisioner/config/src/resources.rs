//! `resources` of server.yaml: three levels, with shorthand (simple-container §2.5.3).

use std::collections::BTreeMap;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::options;
use crate::placeholder::{References, Resolver};
use crate::reader::{Reader, Section};
use crate::routing::{Against, Route, missing_type};
use crate::stack::{Environment, Resource, Target};
use crate::tree::{Entry, Mapping, Node, Value};
use crate::values;

const RESOURCE_KEYS: [&str; 5] = ["type", "name", "config", "inherit", "options"];
const ENVIRONMENT_KEYS: [&str; 3] = ["template", "resources", "inherit"];
const SECTION_KEYS: [&str; 2] = ["registrar", "resources"];
const SHORTHAND: Code = Code("shorthand");

/// A resource where it was found, before it is read.
struct Placed<'n> {
    environment: &'n Entry,
    resource: &'n Entry,
}

/// Reads the section into environments in the order of the file.
pub(super) fn read(root: Section<'_>, against: Against<'_>, resolver: &mut Resolver<'_>) -> Vec<Environment> {
    let mut found = Vec::new();
    let placed = place(root, &mut Reader::new(&mut found));
    let mut environments: Vec<Environment> = Vec::new();
    let mut seen: BTreeMap<(&str, &str), Span> = BTreeMap::new();
    for Placed { environment, resource } in placed {
        if let Some(first) = seen.insert((&environment.key, &resource.key), resource.key_span) {
            let summary = format!("resource {:?} of env {:?} is defined twice", resource.key, environment.key);
            found.push(
                Diagnostic::error(Code("duplicate-resource"), resource.key_span, summary)
                    .also(first, "first defined here"),
            );
            continue;
        }
        let read = resource_entry(environment, resource, against, resolver, &mut found);
        let index = environments.iter().position(|known| known.name == environment.key).unwrap_or_else(|| {
            environments.push(Environment {
                name: environment.key.clone(),
                span: environment.key_span,
                resources: vec![],
            });
            environments.len() - 1
        });
        environments[index].resources.extend(read);
    }
    resolver.diagnostics.extend(found);
    environments
}

/// Finds every resource, wherever it may stand.
fn place<'n>(root: Section<'n>, reader: &mut Reader<'_>) -> Vec<Placed<'n>> {
    let mut placed = Vec::new();
    let Some(outer) = reader.section(root, "resources", "resources") else { return placed };
    if let Some(environments) = reader.section(outer, "resources", "resources.resources") {
        for environment in environments.mapping {
            let Some(section) = reader.mapping(&environment.value, "an environment") else { continue };
            in_environment(environment, section, reader, &mut placed);
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
                .help("write all three levels: other readers of this file ignore the short form"),
            );
            placed.extend(mapping.into_iter().map(|resource| Placed { environment, resource }));
        } else {
            let summary = format!("the key `{}` is ignored", environment.key);
            let diagnostic = Diagnostic::warning(Code("unknown-key"), environment.key_span, summary);
            reader.push(
                diagnostic
                    .did_you_mean(&environment.key, SECTION_KEYS)
                    .help("environments stand below `resources.resources`"),
            );
        }
    }
    placed
}

fn in_environment<'n>(
    environment: &'n Entry,
    section: Section<'n>,
    reader: &mut Reader<'_>,
    placed: &mut Vec<Placed<'n>>,
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
        placed.extend(resources.mapping.into_iter().map(|resource| Placed { environment, resource }));
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
                .help("write all three levels: other readers of this file ignore the short form"),
            );
            placed.push(Placed { environment, resource });
            short.push(resource.key.as_str());
        }
    }
    let known: Vec<&str> = ENVIRONMENT_KEYS.into_iter().chain(short).collect();
    reader.near_misses(section, &known);
}

/// Whether a resource stands in the file, readable or not.
pub(super) fn is_written(root: Section<'_>, environment: &str, key: &str) -> bool {
    let mut unheard = Vec::new();
    let placed = place(root, &mut Reader::new(&mut unheard));
    placed.iter().any(|placed| placed.environment.key == environment && placed.resource.key == key)
}

/// A mapping with a string `type`.
fn is_resource(node: &Node) -> bool {
    let kind = node.as_mapping().and_then(|mapping| mapping.get_some("type"));
    kind.is_some_and(|kind| kind.as_scalar().is_some())
}

fn resource_entry(
    environment: &Entry,
    entry: &Entry,
    against: Against<'_>,
    resolver: &mut Resolver<'_>,
    found: &mut Vec<Diagnostic>,
) -> Option<Resource> {
    let mut reader = Reader::new(found);
    let empty = Mapping::default();
    let section = match reader.mapping(&entry.value, "a resource") {
        Some(section) => section,
        None if entry.value.is_null() => Section { mapping: &empty, span: entry.key_span },
        None => return None,
    };
    reader.near_misses(section, &RESOURCE_KEYS);
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
        Some(node) => resolver.tree(node, References::SameEnvironment),
        None => Node { value: Value::Mapping(Mapping::default()), span: entry.key_span },
    };
    let name = match name {
        Some((name, span)) => {
            let resolved = resolver.tree(&Node::text(name, span), References::Refused);
            Reader::new(found).text(&resolved, "`name`")?
        }
        None => entry.key.clone(),
    };
    let raw_options = section.get("options").map(|node| resolver.tree(node, References::Refused));
    let provider = raw_options.as_ref().and_then(|node| node.as_mapping()?.get_some("provider"));
    let Some((text, type_span)) = kind else {
        found.push(missing_type(&entry.key, &environment.key, entry.key_span));
        return None;
    };
    let route = Route { resource: &entry.key, environment: &environment.key, text: &text, span: type_span, provider };
    let target = route.target(against).map_err(|diagnostic| found.push(*diagnostic)).ok().flatten()?;
    let options = options::read(raw_options.as_ref(), &target, against.plugins, found);
    match &target {
        Target::Plugin { .. } => values::check(&config, found),
        Target::Core { type_name } => {
            if let Some(core) = against.types.get(type_name) {
                core.check(&config, found);
            }
        }
    }
    Some(Resource { key: entry.key.clone(), key_span: entry.key_span, name, target, type_span, config, options })
}
