//! `inherit` (docs/spec/simple-container.md#2.3): blocks of other stacks, transitively. A missing target and a cycle
//! are errors.

use std::collections::BTreeMap;

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, FileId, Span};
use crate::placeholder::MissingValues;
use crate::reader::Section;
use crate::secrets::{Auth, AuthDeclaration, Secrets, SecretsFile};
use crate::tree::Node;
use crate::yaml::Document;

/// Key of the registrar in `resources`.
pub(super) const REGISTRAR: &str = "registrar";

pub(super) type RawStacks = BTreeMap<String, RawStack>;

/// Error of a block whose diagnostic is already reported.
pub(super) struct Reported;

/// Value of `inherit` in a block, with its position.
struct Link<'n> {
    /// `STACK`, or `STACK/TEMPLATE` in a template.
    target: &'n str,
    span: Span,
}

/// Block of a stack that is read from the files of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inheritance {
    /// The stack with `inherit`.
    pub stack: String,
    /// Stack that it names, which may be missing.
    pub from: String,
    /// Position of the name.
    pub span: Span,
}

/// Returns the stacks that a stack inherits from directly, with the position of each `inherit`. That of an environment or a resource is
/// not supported, so its stack is not returned.
pub(super) fn inherited_stacks(raw: &RawStack) -> Vec<(String, Span)> {
    let blocks = ["provisioner", "secrets", "cicd", REGISTRAR]
        .into_iter()
        .filter_map(|key| block_link(raw, key).map(|link| (link.target.to_owned(), link.span)));
    let auth = raw.secrets.auth.values().filter_map(|declaration| match declaration {
        AuthDeclaration::Inherited { stack, span } => Some((stack.clone(), *span)),
        AuthDeclaration::Own(_) => None,
    });
    let templates = raw.root().and_then(|root| root.get("templates")?.as_mapping());
    let templates = templates.into_iter().flatten().filter_map(|entry| {
        let Link { target, span } = inherit_link(&entry.value)?;
        Some((target.split_once('/').map_or(target, |(stack, _)| stack).to_owned(), span))
    });
    blocks.chain(auth).chain(templates).collect()
}

/// Returns each `inherit` of the stacks, by the names of the stacks.
pub(super) fn inheritance(stacks: &RawStacks) -> Vec<Inheritance> {
    let of_stack = |(name, raw): (&String, &RawStack)| {
        let named = |(from, span)| Inheritance { stack: name.clone(), from, span };
        inherited_stacks(raw).into_iter().map(named).collect::<Vec<_>>()
    };
    stacks.iter().flat_map(of_stack).collect()
}

/// Returns the selected stacks, each after the stacks that it inherits from.
pub(super) fn sort_by_inheritance(names: &[String], stacks: &RawStacks) -> Vec<String> {
    fn visit<'s>(name: &'s str, stacks: &'s RawStacks, seen: &mut Vec<String>) {
        if seen.iter().any(|known| known == name) {
            return;
        }
        // Marked before its targets are visited, so that a cycle ends; moved after them below.
        seen.push(name.to_owned());
        for (target, _) in stacks.get(name).map(inherited_stacks).unwrap_or_default() {
            if let Some((target, _)) = stacks.get_key_value(&target) {
                visit(target, stacks, seen);
            }
        }
        if let Some(at) = seen.iter().position(|known| known == name) {
            let name = seen.remove(at);
            seen.push(name);
        }
    }
    let mut seen = Vec::new();
    for name in names {
        visit(name, stacks, &mut seen);
    }
    seen.retain(|name| names.contains(name));
    seen
}

/// Returns a block of a stack, or of the stack that it is inherited from.
///
/// # Errors
/// [`Reported`] if the target is missing or the chain is a cycle.
pub(super) fn block<'r>(
    name: &str,
    key: &str,
    stacks: &'r RawStacks,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Option<&'r Node>, Reported> {
    let owner = find_owner(name, key, stacks, diagnostics)?;
    Ok(find_block(&stacks[owner], key))
}

/// Returns the secrets of a stack, or of the stack that its `secrets` block is inherited from. Resolves inherited
/// entries of `auth`. An entry whose file was not read is missing without an error if `missing` values are unknown.
pub(super) fn secrets(
    name: &str,
    stacks: &RawStacks,
    missing: MissingValues,
    diagnostics: &mut Vec<Diagnostic>,
) -> Secrets {
    let Ok(owner) = find_owner(name, "secrets", stacks, diagnostics) else { return Secrets::default() };
    let file = &stacks[owner].secrets;
    let (mut found, mut is_incomplete) = (BTreeMap::new(), file.has_errors);
    for entry in file.auth.keys() {
        match auth(owner, entry, stacks, diagnostics) {
            Ok(auth) => drop(found.insert(entry.clone(), auth)),
            Err(NoAuth::Reported) => {}
            Err(NoAuth::Unread(_)) if missing == MissingValues::Unknown => is_incomplete = true,
            Err(NoAuth::Unread(error)) => diagnostics.push(*error),
        }
    }
    let (values, closed) = (file.values.clone(), file.closed.clone());
    Secrets { auth: found, values, is_incomplete, closed, is_withheld: file.is_withheld }
}

/// Reason why an entry of `auth` has no value.
enum NoAuth {
    /// An error, which is reported.
    Reported,
    /// The file of the entry was not read; its error.
    Unread(Box<Diagnostic>),
}

fn auth(owner: &str, entry: &str, stacks: &RawStacks, diagnostics: &mut Vec<Diagnostic>) -> Result<Auth, NoAuth> {
    let mut chain = vec![owner.to_owned()];
    let mut inherit_span: Option<Span> = None;
    loop {
        let here = chain.last().map(String::as_str).unwrap_or_default();
        match stacks.get(here).and_then(|raw| raw.secrets.auth.get(entry)) {
            Some(AuthDeclaration::Own(auth)) => return Ok(auth.clone()),
            Some(AuthDeclaration::Inherited { stack, span }) => {
                inherit_span = inherit_span.or(Some(*span));
                let cycle = chain.contains(stack);
                chain.push(stack.clone());
                if cycle {
                    diagnostics.push(cycle_error(&format!("auth entry {entry:?}"), &chain, inherit_span));
                    return Err(NoAuth::Reported);
                }
            }
            // The error of the file is reported.
            None if stacks.get(here).is_some_and(|raw| raw.secrets.has_errors) => return Err(NoAuth::Reported),
            None => {
                let summary = match stacks.contains_key(here) {
                    true => format!("the stack {here:?} has no auth entry {entry:?} to inherit"),
                    false => format!("the stack {here:?} to inherit from does not exist"),
                };
                let closed = stacks.get(here).and_then(|raw| raw.secrets.closed.clone());
                let error = Diagnostic::error(Code("inherit"), inherit_span, summary);
                let error = closed.into_iter().fold(error, Diagnostic::help);
                if stacks.get(here).is_some_and(|raw| raw.secrets.is_withheld) {
                    return Err(NoAuth::Unread(error.into()));
                }
                diagnostics.push(error);
                return Err(NoAuth::Reported);
            }
        }
    }
}

/// Returns a template of a stack, or the template that it is inherited from. `inherit` is `stack/template`, or `stack`
/// for the same name. `None` if the target is missing or the chain is a cycle, which is reported.
pub(super) fn template<'r>(
    stack: &str,
    template: &str,
    stacks: &'r RawStacks,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<&'r Node> {
    let mut chain: Vec<String> = Vec::new();
    let mut inherit_span: Option<Span> = None;
    let (mut stack, mut template) = (stack.to_owned(), template.to_owned());
    loop {
        let templates = stacks.get(&stack).map(|raw| raw.root().and_then(|root| root.get("templates")?.as_mapping()));
        let Some(node) = templates.flatten().and_then(|templates| templates.get(&template)) else {
            let summary = match templates {
                Some(_) => format!("the stack {stack:?} has no template {template:?} to inherit"),
                None => format!("the stack {stack:?} to inherit the template {template:?} from does not exist"),
            };
            let diagnostic = Diagnostic::error(Code("inherit"), inherit_span, summary);
            diagnostics.push(match templates {
                Some(there) => {
                    let names = there.into_iter().flatten().map(|entry| entry.key.as_str());
                    diagnostic.did_you_mean(&template, names)
                }
                None => diagnostic.did_you_mean(&stack, stacks.keys().map(String::as_str)),
            });
            return None;
        };
        let link = inherit_link(node);
        let here = format!("{stack}/{template}");
        let cycle = chain.contains(&here);
        chain.push(here);
        if cycle {
            diagnostics.push(cycle_error("the template", &chain, inherit_span));
            return None;
        }
        let Some(Link { target, span }) = link else { return Some(node) };
        inherit_span = inherit_span.or(Some(span));
        match target.split_once('/') {
            Some((of, name)) => (stack, template) = (of.to_owned(), name.to_owned()),
            None => stack = target.to_owned(),
        }
    }
}

/// Returns the stack at the end of a chain of `inherit`.
fn find_owner<'r>(
    name: &str,
    key: &str,
    stacks: &'r RawStacks,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<&'r str, Reported> {
    let mut chain: Vec<String> = Vec::new();
    let mut inherit_span: Option<Span> = None;
    let mut here = name.to_owned();
    loop {
        let Some((owner, raw)) = stacks.get_key_value(&here) else {
            let summary = MessageText::new(format_args!("the stack {here:?} to inherit `{key}` from does not exist"));
            let names = stacks.keys().map(String::as_str);
            diagnostics.push(Diagnostic::error(Code("inherit"), inherit_span, summary).did_you_mean(&here, names));
            return Err(Reported);
        };
        chain.push(here.clone());
        let Some(link) = block_link(raw, key) else { return Ok(owner) };
        inherit_span = inherit_span.or(Some(link.span));
        if chain.iter().any(|known| known == link.target) {
            chain.push(link.target.to_owned());
            diagnostics.push(cycle_error(&format!("`{key}`"), &chain, inherit_span));
            return Err(Reported);
        }
        here = link.target.to_owned();
    }
}

fn block_link<'n>(raw: &'n RawStack, key: &str) -> Option<Link<'n>> {
    inherit_link(find_block(raw, key)?)
}

/// Returns a block of a stack: a section, or the registrar in `resources`.
fn find_block<'n>(raw: &'n RawStack, key: &str) -> Option<&'n Node> {
    let root = raw.root()?;
    if key == REGISTRAR { root.get("resources")?.as_mapping()?.get(key) } else { root.get(key) }
}

/// Returns the `inherit` of a block; `None` if it is missing or empty.
fn inherit_link(block: &Node) -> Option<Link<'_>> {
    let node = block.as_mapping()?.get_non_null("inherit")?;
    let target = node.as_scalar()?.text.as_str();
    (!target.is_empty()).then_some(Link { target, span: node.span })
}

fn cycle_error(what: &str, chain: &[String], at: Option<Span>) -> Diagnostic {
    Diagnostic::error(Code("inherit-cycle"), at, format_args!("{what} is inherited in a cycle: {}", chain.join(" -> ")))
}

/// The parsed files of one stack.
#[derive(Debug)]
pub(super) struct RawStack {
    pub(super) server: Option<Document>,
    pub(super) server_file: Option<FileId>,
    pub(super) secrets: SecretsFile,
}

impl RawStack {
    /// Returns the top mapping of server.yaml.
    pub(super) fn root(&self) -> Option<Section<'_>> {
        let node = self.server.as_ref()?.root.as_ref()?;
        Some(Section { mapping: node.as_mapping()?, span: node.span })
    }

    /// Returns the start of server.yaml, the position at which a missing block is reported.
    pub(super) fn file_start(&self) -> Option<Span> {
        self.server_file.map(|file| Span { file, start: 0, end: 0 })
    }
}
