//! `templates` of server.yaml, from which client stacks are deployed. Each is exported as an output of the stack, as
//! YAML with the same bytes as in the Go program (docs/spec/simple-container.md#5.1).

use crate::diagnostics::{Code, Diagnostic};
use crate::inherit::{self, RawStacks};
use crate::placeholder::{ReferenceRule, Resolver};
use crate::reader::Reader;
use crate::sections::{MissingType, check_type, template_types_hint};
use crate::stack::Output;
use crate::tree::{InterpolatedString, Node, Part, Scalar, Value};
use crate::types::{TemplateValue, TypeTable};
use crate::yaml::scalar::{Ambiguity, UntypedScalar, read_untyped};

const KEYS: [&str; 4] = ["type", "parentStack", "config", "inherit"];
/// Indentation of one level of the YAML, in spaces.
const INDENT: usize = 4;
/// Indentation of the lines of a block scalar in `serde_yaml`.
const BLOCK_INDENT: &str = "  ";
/// Line breaks of YAML besides CR and LF.
const OTHER_BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Returns the templates of a stack, own and inherited, as secret outputs. `prefix` is the name of the stack in client
/// stacks: `organization/project/stack`.
pub(super) fn read(
    name: &str,
    prefix: &str,
    stacks: &RawStacks,
    types: &TypeTable,
    resolver: &mut Resolver<'_>,
) -> Vec<Output> {
    let mut diagnostics = Vec::new();
    let root = stacks.get(name).and_then(|raw| raw.root());
    let section = root.and_then(|root| Reader::new(&mut diagnostics).section(root, "templates", "templates"));
    if let Some(section) = section {
        Reader::new(&mut diagnostics).reject_empty_names(section, "a template");
    }
    let mut outputs = Vec::new();
    for entry in section.into_iter().flat_map(|section| section.mapping) {
        let Some(node) = inherit::template(name, &entry.key, stacks, &mut diagnostics) else { continue };
        if let Some(yaml) = export_template(node, types, resolver, &mut diagnostics) {
            let text = InterpolatedString { parts: vec![Part::Text(yaml)], secret: true };
            let value = Node { value: Value::Interpolated(text), span: node.span };
            outputs.push(Output { name: format!("{prefix}/{}", entry.key), span: entry.key_span, value });
        }
    }
    resolver.diagnostics.extend(diagnostics);
    outputs
}

/// Converts a template to YAML; `None` if it is invalid, which is reported.
fn export_template(
    node: &Node,
    types: &TypeTable,
    resolver: &mut Resolver<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<String> {
    if node.is_null() {
        let unknown = Diagnostic::error(Code("unknown-type"), node.span, "unknown template type \"\"");
        diagnostics.push(unknown.help(template_types_hint(types)));
        return None;
    }
    let mut reader = Reader::new(diagnostics);
    let section = reader.mapping(node, "a template")?;
    reader.warn_of_unknown_keys(section, &KEYS);
    if !check_type(section, "template", MissingType::Rejected, types, &mut reader) {
        return None;
    }
    let (kind, span) = reader.text_at(section, "type")?;
    let Some(known) = types.template(&kind) else {
        diagnostics.push(
            Diagnostic::warning(
                Code("unused"),
                span,
                format_args!("no client stack can be deployed from a template of type {kind:?}"),
            )
            .detail("the template is not exported")
            .help(template_types_hint(types)),
        );
        return None;
    };
    // A text is typed before its placeholders are resolved, as in Go. References to resources are resolved when a
    // client stack is deployed.
    let parent = reader.text_at(section, "parentStack").map(|(text, span)| Node::text(text, span));
    let parent = parent.map(|parent| text_of(&resolver.resolve(&parent, ReferenceRule::Kept))).unwrap_or_default();
    let empty = Node { value: Value::Scalar(Scalar { text: String::new(), plain: true }), span: section.span };
    let config = resolver.resolve(section.get("config").unwrap_or(&empty), ReferenceRule::Kept);
    let fields = known.fields(&config, diagnostics)?;
    let mut yaml = String::new();
    push_field(&mut yaml, 0, "type", &kind);
    push_field(&mut yaml, 0, "parentStack", &parent);
    yaml.push_str("config:\n");
    for (key, value) in fields {
        match value {
            TemplateValue::Text(text) => push_field(&mut yaml, INDENT, key, &text),
            TemplateValue::Boolean(value) => yaml.push_str(&format!("{:INDENT$}{key}: {value}\n", "")),
        }
    }
    push_field(&mut yaml, 0, "inherit", "");
    Some(yaml)
}

/// Returns the text of a resolved node; empty for a list or mapping.
fn text_of(node: &Node) -> String {
    match &node.value {
        Value::Scalar(scalar) => scalar.text.clone(),
        Value::Interpolated(string) => string.known().unwrap_or_default(),
        Value::Sequence(_) | Value::Mapping(_) => String::new(),
    }
}

/// Appends a key with its text: one line, or a block scalar below the key.
fn push_field(yaml: &mut String, indent: usize, key: &str, text: &str) {
    let scalar = format_scalar(text);
    let mut lines = scalar.lines();
    yaml.push_str(&format!("{:indent$}{key}: {}\n", "", lines.next().unwrap_or_default()));
    for line in lines {
        let line = line.strip_prefix(BLOCK_INDENT).unwrap_or(line);
        let depth = if line.is_empty() { 0 } else { indent + INDENT };
        yaml.push_str(&format!("{:depth$}{line}\n", ""));
    }
}

/// Serializes a text in the style that the Go library chooses. Both libraries derive from libyaml and differ in which
/// texts are quoted, in the quotes, and in the indentation of blocks.
fn format_scalar(text: &str) -> String {
    if text.contains('\n') && text.contains(OTHER_BREAKS) {
        // In a block scalar these characters would end the line.
        let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
        let quoted = serde_json::Value::from(text).to_string();
        return OTHER_BREAKS.iter().fold(quoted, |text, c| text.replace(*c, &escaped(*c)));
    }
    let plain = Scalar { text: text.to_owned(), plain: true };
    if !text.contains('\n') && read_untyped(&plain) != UntypedScalar::Text(Ambiguity::Clear) {
        return format!("\"{text}\"");
    }
    let written = serde_yaml::to_string(text).unwrap_or_else(|_| serde_json::Value::from(text).to_string());
    match written.split_once('\n') {
        // The header of a block whose first line begins with a space holds the indentation.
        Some((header, lines)) if header.starts_with('|') => format!("{}\n{lines}", header.replace('2', "4")),
        _ => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_in_go() {
        let table = [
            ("", r#""""#),
            ("yes", r#""yes""#),
            ("012", r#""012""#),
            ("12:30:45", r#""12:30:45""#),
            ("a b", "a b"),
            ("a: b", "'a: b'"),
            ("a\tb", r#""a\tb""#),
            ("a\nb", "|-\n  a\n  b"),
            ("a\u{2028}b\nc", r#""a\u2028b\nc""#),
        ];
        for (text, written) in table {
            assert_eq!(format_scalar(text).trim_end(), written, "{text:?}");
        }
    }
}
