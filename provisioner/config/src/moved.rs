//! Reads `resources.moved`: former places of resources, which keep what is recorded for them.

use std::collections::{HashMap, HashSet};

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::place::{Moved, Place};
use crate::reader::{Reader, Section};
use crate::stack::{AliasOption, AliasParentOption, Environment, Resource, ResourceImplementation};
use crate::tree::Node;

/// Key of the section. An environment in short form may have this name as well.
pub(super) const MOVED: &str = "moved";
const MOVED_CODE: Code = Code("moved");

/// Entry of the section.
struct Move {
    from: (Place, Span),
    to: (Place, Span),
}

/// Reads the section, checks it, and gives each resource the names that it had as aliases. `declared` holds the environment and the key of
/// each declared resource, even of an invalid one.
pub(super) fn read(
    root: Section<'_>,
    environments: &mut [Environment],
    declared: &HashSet<(&str, &str)>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Moved> {
    let moves = moves(root, &mut Reader::new(diagnostics));
    let is_declared = declared_places(environments, declared);
    let mut by_origin: HashMap<&Place, &Move> = HashMap::new();
    for found in &moves {
        let (from, span) = (&found.from.0, found.from.1);
        if let Some(first) = by_origin.get(from) {
            let error = Diagnostic::error(MOVED_CODE, span, MessageText::new(format_args!("{from} is moved twice")));
            diagnostics.push(error.label(first.from.1, "first moved here"));
            continue;
        }
        if is_declared(from) {
            let summary = MessageText::new(format_args!("{from} is declared, so it was not moved"));
            let help = MessageText::new(format_args!("remove the resource {from}, or this entry"));
            diagnostics.push(Diagnostic::error(MOVED_CODE, span, summary).help(help));
            continue;
        }
        by_origin.insert(from, found);
    }
    let mut moved: Vec<(Moved, Span)> = Vec::new();
    for found in &moves {
        if by_origin.get(&found.from.0).is_some_and(|first| std::ptr::eq(*first, found)) {
            match end_of(found, &by_origin) {
                Some(to) => {
                    moved.push((Moved { from: found.from.0.clone(), to: to.clone(), span: found.from.1 }, found.to.1))
                }
                None => {
                    let summary = MessageText::new(format_args!("{} is moved in a circle", found.from.0));
                    diagnostics.push(Diagnostic::error(MOVED_CODE, found.from.1, summary));
                }
            }
        }
    }
    let known: Vec<String> = declared.iter().map(|(environment, key)| format!("{environment}/{key}")).collect();
    moved.retain(|(Moved { to, .. }, span)| {
        if !is_declared(to) {
            let summary = MessageText::new(format_args!("{to} is not declared"));
            let error = Diagnostic::error(MOVED_CODE, *span, summary);
            diagnostics.push(error.did_you_mean(&to.to_string(), known.iter().map(String::as_str)));
            return false;
        }
        // One that is switched off, or invalid, has no aliases.
        let Some(resource) = find(environments, to) else { return true };
        if let ResourceImplementation::Core { type_name } = &resource.implementation {
            let summary =
                MessageText::new(format_args!("{to} is of the core type {type_name:?}, which is several resources"));
            let help = "rename each of them: `sc state rename OLD NEW`";
            diagnostics.push(Diagnostic::error(MOVED_CODE, *span, summary).help(help));
            return false;
        }
        true
    });
    reject_shared_ends(&moved, &moves, diagnostics);
    for (Moved { from, to, .. }, _) in &moved {
        if let Some(resource) = find(environments, to) {
            resource.options.aliases.push(AliasOption::Spec {
                name: Some(from.logical_name()),
                type_token: None,
                stack: None,
                project: None,
                parent: AliasParentOption::Same,
            });
        }
    }
    moved.into_iter().map(|(moved, _)| moved).collect()
}

/// Returns the entries that can be read.
fn moves(root: Section<'_>, reader: &mut Reader<'_>) -> Vec<Move> {
    let Some(outer) = root.get("resources").and_then(Node::as_mapping) else { return Vec::new() };
    let Some(list) = outer.get_non_null(MOVED).filter(|node| node.as_mapping().is_none()) else { return Vec::new() };
    let Some(items) = list.as_sequence() else {
        reader.report_wrong_kind(list, "a list of `{ from: ENV/KEY, to: ENV/KEY }`");
        return Vec::new();
    };
    let mut read = |item: &Node| {
        let section = reader.mapping(item, "an item of `moved`")?;
        reader.reject_unknown_keys(section, &["from", "to"], "an item of `moved`");
        let mut place = |key: &str| {
            let Some((text, span)) = reader.text_at(section, key) else {
                let summary = MessageText::new(format_args!("an item of `moved` needs `{key}`"));
                reader.push(Diagnostic::error(MOVED_CODE, section.span, summary).help("write `ENV/KEY`"));
                return None;
            };
            let place = Place::parse(&text);
            if place.is_none() {
                let summary = MessageText::new(format_args!("{text:?} is not the place of a resource"));
                reader.push(Diagnostic::error(MOVED_CODE, span, summary).help("write `ENV/KEY`"));
            }
            Some((place?, span))
        };
        let (from, to) = (place("from"), place("to"));
        Some(Move { from: from?, to: to? })
    };
    items.iter().filter_map(&mut read).collect()
}

/// Returns the place to which an entry leads over the following ones; `None` if they lead in a circle.
fn end_of<'m>(first: &'m Move, by_origin: &HashMap<&Place, &'m Move>) -> Option<&'m Place> {
    let mut current = first;
    for _ in 0..=by_origin.len() {
        match by_origin.get(&current.to.0) {
            Some(next) => current = next,
            None => return Some(&current.to.0),
        }
    }
    None
}

/// Reports entries that name the same place for two resources.
fn reject_shared_ends(moved: &[(Moved, Span)], moves: &[Move], diagnostics: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<&Place, Span> = HashMap::new();
    for found in moves.iter().filter(|found| moved.iter().any(|(moved, _)| moved.from == found.from.0)) {
        if let Some(first) = seen.insert(&found.to.0, found.to.1) {
            let summary = MessageText::new(format_args!("two resources are moved to {}", found.to.0));
            diagnostics.push(Diagnostic::error(MOVED_CODE, found.to.1, summary).label(first, "the other one"));
        }
    }
}

/// Returns the question whether the file has a resource at a place. One with `forEach` is at the places of its entries.
fn declared_places<'d>(
    environments: &[Environment],
    declared: &'d HashSet<(&str, &str)>,
) -> impl Fn(&Place) -> bool + use<'d> {
    let mut entries: HashSet<(String, String)> = HashSet::new();
    let mut collections: HashSet<(String, String)> = HashSet::new();
    for environment in environments {
        for collection in &environment.collections {
            collections.insert((environment.name.clone(), collection.key.clone()));
            let keys = collection.instances.iter().map(|(_, key)| (environment.name.clone(), key.clone()));
            entries.extend(keys);
        }
    }
    move |place| match &place.entry {
        Some(_) => entries.contains(&(place.environment.clone(), place.resource_key())),
        None => {
            let is_written = declared.contains(&(place.environment.as_str(), place.key.as_str()));
            is_written && !collections.contains(&(place.environment.clone(), place.key.clone()))
        }
    }
}

fn find<'e>(environments: &'e mut [Environment], place: &Place) -> Option<&'e mut Resource> {
    let environment = environments.iter_mut().find(|environment| environment.name == place.environment)?;
    let key = place.resource_key();
    environment.resources.iter_mut().find(|resource| resource.key == key)
}
