//! Reads `variables` of server.yaml. Checks `schemaVersion` and the types of `secrets` and `cicd`.

use std::collections::BTreeMap;

use bridge::error::shorten;
use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic};
use crate::reader::{Reader, Section, unknown_key_error};
use crate::types::{CICD_TYPES, CoreType, SECRETS_TYPES, TemplateType, TypeTable};
use crate::yaml::Document;

/// Version of the format of server.yaml.
const SCHEMA_VERSION: &str = "1.0";

/// Reads `variables`: texts by name.
pub(super) fn variables(root: Section<'_>, diagnostics: &mut Vec<Diagnostic>) -> BTreeMap<String, String> {
    let mut reader = Reader::new(diagnostics);
    let mut variables = BTreeMap::new();
    let Some(section) = reader.section(root, "variables", "variables") else { return variables };
    reader.reject_empty_names(section, "a variable");
    for entry in section.mapping {
        let value = match reader.mapping(&entry.value, "a variable") {
            Some(variable) => {
                reader.warn_of_unknown_keys(variable, &["type", "value"]);
                reader.text_at(variable, "type");
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
            reader.warn_of_unknown_keys(section, &["type", "config", "inherit"]);
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
    if types.block_names().any(|known| known == text) || (text.is_empty() && missing == MissingType::Allowed) {
        return true;
    }
    let useful = useful_types(what, types);
    let unknown = Diagnostic::error(Code("unknown-type"), span, format_args!("unknown {what} type {text:?}"))
        .did_you_mean(&text, useful.iter().copied());
    reader.push(match useful.is_empty() {
        true => unknown,
        false => unknown.help(format_args!("{} {}", types_are(what), useful.join(", "))),
    });
    false
}

/// Returns the types that are of use in a section, which accepts those of the other sections as well.
fn useful_types(what: &str, types: &TypeTable) -> Vec<&'static str> {
    match what {
        "template" => types.templates().iter().map(TemplateType::name).collect(),
        "secrets" => SECRETS_TYPES.to_vec(),
        "cicd" => CICD_TYPES.to_vec(),
        _ => types.registrars().map(CoreType::name).collect(),
    }
}

/// Returns the beginning of a list of types.
fn types_are(what: &str) -> String {
    match what {
        "template" => "the types of templates are".to_owned(),
        _ => format!("the types of `{what}` are"),
    }
}

/// Returns the hint that lists the types of templates.
pub(super) fn template_types_hint(types: &TypeTable) -> String {
    format!("{} {}", types_are("template"), useful_types("template", types).join(", "))
}
