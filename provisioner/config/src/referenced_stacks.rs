//! Reads `references` of server.yaml: stacks of other projects or in other stores, whose outputs `${output:NAME.OUTPUT}` reads.

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::placeholder::{ReferenceRule, Resolver};
use crate::provisioner;
use crate::reader::{Reader, Section};
use crate::stack::{Provisioner, ReferencedStack};
use crate::tree::{Node, Value};

const SECTION: &str = "references";
const KEYS: [&str; 5] = ["name", "project", "stack", "state-storage", "secrets-provider"];
const CODE: Code = Code("references");
/// Characters that cannot stand in a name, since they end it in a placeholder.
const NOT_IN_NAMES: [char; 7] = ['"', '{', '}', ':', '[', ']', '/'];

/// Returns the names of the entries, without checks.
pub(super) fn names(root: Section<'_>) -> Vec<String> {
    let items = root.get(SECTION).and_then(Node::as_sequence).unwrap_or_default();
    let name = |item: &Node| Some(item.as_mapping()?.get_non_null("name")?.as_scalar()?.text.clone());
    items.iter().filter_map(name).collect()
}

/// Reads the section. An entry is in the project, the state storage and with the secrets provider of the stack itself, where it says
/// nothing else.
pub(super) fn read(root: Section<'_>, own: &Provisioner, resolver: &mut Resolver<'_>) -> Vec<ReferencedStack> {
    let Some(node) = root.get(SECTION).filter(|node| !node.is_null()) else { return Vec::new() };
    let Some(items) = node.as_sequence() else {
        let error = Diagnostic::error(Code("wrong-kind"), node.span, "`references` must be a list");
        resolver.diagnostics.push(error.help("write `references: [{ name: net, project: network, stack: prod }]`"));
        return Vec::new();
    };
    let mut read: Vec<ReferencedStack> = Vec::new();
    for item in items {
        let Some(found) = read_one(item, own, resolver) else { continue };
        if let Some(first) = read.iter().find(|known| known.name == found.name) {
            let summary = MessageText::new(format_args!("`references` has {:?} twice", found.name));
            resolver.diagnostics.push(Diagnostic::error(CODE, found.span, summary).label(first.span, "first here"));
            continue;
        }
        if resolver.namespaces().stacks.names.contains(&found.name) {
            let summary =
                MessageText::new(format_args!("{:?} is also the name of a stack of this repository", found.name));
            let error = Diagnostic::error(CODE, found.span, summary);
            resolver.diagnostics.push(error.help("give the entry another name: `${output:…}` could mean both"));
            continue;
        }
        read.push(found);
    }
    read
}

fn read_one(item: &Node, own: &Provisioner, resolver: &mut Resolver<'_>) -> Option<ReferencedStack> {
    let mut diagnostics = Vec::new();
    let mut reader = Reader::new(&mut diagnostics);
    let section = reader.mapping(item, "an entry of `references`");
    let found = section.and_then(|section| {
        reader.reject_misspelled_and_warn_of_unknown_keys(section, &KEYS, "an entry of `references`");
        let name = reader.text_at(section, "name").filter(|(name, _)| !name.is_empty());
        let Some((name, span)) = name else {
            let error = Diagnostic::error(CODE, section.span, "an entry of `references` has no `name`");
            reader.push(error.help("placeholders use the name: `${output:NAME.OUTPUT}`"));
            return None;
        };
        if name.contains(NOT_IN_NAMES) {
            let summary = MessageText::new(format_args!("{name:?} cannot be the name of an entry of `references`"));
            reader.push(Diagnostic::error(CODE, span, summary).help("use letters, digits, hyphens and periods"));
            return None;
        }
        Some((section, name, span))
    });
    resolver.diagnostics.append(&mut diagnostics);
    let (section, name, span) = found?;
    let project = text(section, "project", resolver);
    let stack = text(section, "stack", resolver).unwrap_or_else(|| name.clone());
    let provisioner = provisioner::of_reference(section, own, resolver)?;
    let project = project.unwrap_or_else(|| resolver.namespaces().project.to_owned());
    Some(ReferencedStack { name, span, project, stack, provisioner })
}

/// Returns a text with resolved placeholders; `None` if it is missing, empty or not known in this process.
fn text(section: Section<'_>, key: &str, resolver: &mut Resolver<'_>) -> Option<String> {
    let mut diagnostics = Vec::new();
    let written: Option<(String, Span)> = Reader::new(&mut diagnostics).text_at(section, key);
    resolver.diagnostics.append(&mut diagnostics);
    let (text, span) = written?;
    let text = match resolver.resolve(&Node::text(text, span), ReferenceRule::Rejected).value {
        Value::Scalar(scalar) => scalar.text,
        Value::Interpolated(string) => string.known()?,
        Value::Sequence(_) | Value::Mapping(_) => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}
