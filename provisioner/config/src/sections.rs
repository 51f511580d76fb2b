//! The sections of server.yaml that this engine reads but does not act on: their mistakes are told, and so is what is
//! not done.

use std::collections::BTreeMap;

use crate::diagnostics::{Code, Diagnostic, closest};
use crate::reader::{Reader, Section};
use crate::routing::GO_TYPES;
use crate::tree::Node;
use crate::types::{TemplateType, TypeTable};

/// Types other than resources and templates that share one table of names with them (simple-container §2.2, §7.1): each
/// may be written in any of these sections.
const OTHER_TYPES: [&str; 8] = [
    "pulumi-token",
    "aws-token",
    "gcp-service-account",
    "kubernetes",
    "aws-secrets-manager",
    "gcp-secrets-manager",
    "github-actions",
    "cloudflare",
];

/// `variables`: the texts by name.
pub(super) fn variables(root: Section<'_>, found: &mut Vec<Diagnostic>) -> BTreeMap<String, String> {
    let mut reader = Reader::new(found);
    let mut variables = BTreeMap::new();
    let Some(section) = reader.section(root, "variables", "variables") else { return variables };
    for entry in section.mapping {
        let value = match reader.mapping(&entry.value, "a variable") {
            Some(variable) => {
                reader.near_misses(variable, &["type", "value"]);
                reader.text_at(variable, "value").map(|(text, _)| text)
            }
            None => None,
        };
        variables.insert(entry.key.clone(), value.unwrap_or_default());
    }
    variables
}

/// Checks the sections that are not read elsewhere.
pub(super) fn check(root: Section<'_>, types: &TypeTable, found: &mut Vec<Diagnostic>) {
    let mut reader = Reader::new(found);
    reader.text_at(root, "schemaVersion");
    for (key, what) in [("secrets", "secrets"), ("cicd", "cicd")] {
        if let Some(section) = reader.section(root, key, key) {
            known_type(section, what, Missing::Allowed, types, &mut reader);
        }
    }
    registrar(root, types, &mut reader);
}

/// Whether a section may be without a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Allowed,
    Refused,
}

/// The type of a block that is not inherited.
pub(super) fn known_type(
    section: Section<'_>,
    what: &str,
    missing: Missing,
    types: &TypeTable,
    reader: &mut Reader<'_>,
) -> bool {
    if reader.text_at(section, "inherit").is_some_and(|(stack, _)| !stack.is_empty()) {
        return true;
    }
    let written = reader.text_at(section, "type").filter(|(text, _)| !text.is_empty());
    let (text, span) = written.unwrap_or((String::new(), section.span));
    let templates = || types.templates().iter().map(TemplateType::name);
    let known = || OTHER_TYPES.into_iter().chain(GO_TYPES).chain(templates());
    if known().any(|known| known == text) || (text.is_empty() && missing == Missing::Allowed) {
        return true;
    }
    let unknown = Diagnostic::error(Code("unknown-type"), span, format!("unknown {what} type {text:?}"));
    reader.push(match (what, closest(&text, known())) {
        ("template", None) => unknown.help(template_types(types)),
        _ => unknown.did_you_mean(&text, known()),
    });
    false
}

/// The types of templates, for a hint.
pub(super) fn template_types(types: &TypeTable) -> String {
    let names: Vec<_> = types.templates().iter().map(TemplateType::name).collect();
    format!("the types of templates are {}", names.join(", "))
}

fn registrar(root: Section<'_>, types: &TypeTable, reader: &mut Reader<'_>) {
    let Some(resources) = root.get("resources").and_then(Node::as_mapping) else { return };
    let Some(node) = resources.get_some("registrar") else { return };
    let Some(registrar) = reader.mapping(node, "`resources.registrar`") else { return };
    if !known_type(registrar, "registrar", Missing::Allowed, types, reader) {
        return;
    }
    let named =
        ["inherit", "type"].into_iter().find_map(|key| reader.text_at(registrar, key).filter(|(t, _)| !t.is_empty()));
    if let Some((_, span)) = named {
        reader.push(
            Diagnostic::error(Code("not-supported"), span, "DNS records through a registrar are not supported yet")
                .help("remove `registrar`, or keep managing this stack's records with the Go program"),
        );
    }
}
