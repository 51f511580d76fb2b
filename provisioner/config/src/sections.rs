//! Reads `variables` of server.yaml. Checks `schemaVersion` and the types of `secrets` and `cicd`.

use std::collections::BTreeMap;

use bridge::error::shorten;
use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, closest};
use crate::reader::{Reader, Section, unknown_key_error};
use crate::types::{TemplateType, TypeTable};
use crate::yaml::Document;

/// Types of `auth`, `secrets` and `cicd` blocks. As in Go, one namespace holds these types and the types of resources,
/// registrars and templates (docs/spec/simple-container.md#2.2, #7.1), so a section accepts any type of the namespace.
const BLOCK_TYPES: [&str; 7] = [
    "pulumi-token",
    "aws-token",
    "gcp-service-account",
    "kubernetes",
    "aws-secrets-manager",
    "gcp-secrets-manager",
    "github-actions",
];

/// Version of the format of server.yaml.
const SCHEMA_VERSION: &str = "1.0";

/// Reads `variables`: texts by name.
pub(super) fn variables(root: Section<'_>, diagnostics: &mut Vec<Diagnostic>) -> BTreeMap<String, String> {
    let mut reader = Reader::new(diagnostics);
    let mut variables = BTreeMap::new();
    let Some(section) = reader.section(root, "variables", "variables") else { return variables };
    for entry in section.mapping {
        let value = match reader.mapping(&entry.value, "a variable") {
            Some(variable) => {
                reader.warn_of_unknown_keys(variable, &["type", "value"]);
                reader.text_at(variable, "value").map(|(text, _)| text)
            }
            None => None,
        };
        variables.insert(entry.key.clone(), value.unwrap_or_default());
    }
    variables
}

/// Reports keys at the top of the file that mean nothing. A key may stand there for other uses: if it begins with `x-` or
/// `.`, or if an alias refers to an anchor in its value.
pub(super) fn reject_unknown_keys(root: Section<'_>, document: &Document, known: &[&str], reader: &mut Reader<'_>) {
    for entry in root.mapping.into_iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        let key = &entry.key;
        if key.starts_with("x-") || key.starts_with('.') || document.aliased_sections.contains(key) {
            continue;
        }
        let unknown = unknown_key_error("server.yaml", entry);
        reader.push(if ["env", "envs", "environment", "environments"].contains(&key.as_str()) {
            unknown.help("environments are declared below `resources.resources`")
        } else {
            unknown
                .did_you_mean(key, known.iter().copied())
                .help(format_args!("the keys are {}; a key that begins with `x-` is ignored", known.join(", ")))
        });
    }
}

/// Checks `schemaVersion`, and the types of `secrets` and `cicd`.
pub(super) fn check(root: Section<'_>, types: &TypeTable, diagnostics: &mut Vec<Diagnostic>) {
    let mut reader = Reader::new(diagnostics);
    if let Some((version, span)) = reader.text_at(root, "schemaVersion")
        && !["", "1", SCHEMA_VERSION].contains(&version.as_str())
    {
        let summary =
            MessageText::new(format_args!("the version {} of the format is not supported", shorten(&version)));
        reader.push(
            Diagnostic::error(Code("schema-version"), span, summary)
                .help(format_args!("this program reads version {SCHEMA_VERSION}")),
        );
    }
    for (key, what) in [("secrets", "secrets"), ("cicd", "cicd")] {
        if let Some(section) = reader.section(root, key, key) {
            check_type(section, what, MissingType::Allowed, types, &mut reader);
        }
    }
}

/// Rule for a section without a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingType {
    Allowed,
    Rejected,
}

/// Reports an unknown type and returns false for it. The type of an inherited block is not checked.
pub(super) fn check_type(
    section: Section<'_>,
    what: &str,
    missing: MissingType,
    types: &TypeTable,
    reader: &mut Reader<'_>,
) -> bool {
    if reader.text_at(section, "inherit").is_some_and(|(stack, _)| !stack.is_empty()) {
        return true;
    }
    let declared_type = reader.text_at(section, "type").filter(|(text, _)| !text.is_empty());
    let (text, span) = declared_type.unwrap_or((String::new(), section.span));
    let templates = || types.templates().iter().map(TemplateType::name);
    let known = || BLOCK_TYPES.into_iter().chain(types.simple_container_names()).chain(templates());
    if known().any(|known| known == text) || (text.is_empty() && missing == MissingType::Allowed) {
        return true;
    }
    let unknown = Diagnostic::error(Code("unknown-type"), span, format_args!("unknown {what} type {text:?}"));
    reader.push(match (what, closest(&text, known())) {
        ("template", None) => unknown.help(template_types_hint(types)),
        _ => unknown.did_you_mean(&text, known()),
    });
    false
}

/// Returns the hint that lists the types of templates.
pub(super) fn template_types_hint(types: &TypeTable) -> String {
    let names: Vec<_> = types.templates().iter().map(TemplateType::name).collect();
    format!("the types of templates are {}", names.join(", "))
}
