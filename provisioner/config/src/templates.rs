//! `templates` of server.yaml: what client stacks are deployed by. They find each among the outputs of this stack, as
//! YAML with the bytes that the Go program writes (simple-container §5.1).

use crate::diagnostics::{Code, Diagnostic};
use crate::inherit::{self, RawStacks};
use crate::placeholder::{References, Resolver};
use crate::reader::Reader;
use crate::sections::{Missing, known_type, template_types};
use crate::stack::Output;
use crate::tree::{Node, Part, Scalar, Template as Text, Value};
use crate::types::{TemplateValue, TypeTable};
use crate::yaml::scalar::{Ambiguity, Free, free};

const KEYS: [&str; 4] = ["type", "parentStack", "config", "inherit"];
/// How deep a level of the YAML is.
const INDENT: usize = 4;
/// How deep our library writes the lines of a block.
const BLOCK_INDENT: &str = "  ";
/// What YAML takes for a line end beside the usual ones.
const OTHER_BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// The templates of a stack, or of those that it inherits them from, as secret outputs. `prefix` is what client stacks
/// call the stack: `organization/project/stack`.
pub(super) fn read(
    name: &str,
    prefix: &str,
    stacks: &RawStacks,
    types: &TypeTable,
    resolver: &mut Resolver<'_>,
) -> Vec<Output> {
    let mut found = Vec::new();
    let root = stacks.get(name).and_then(|raw| raw.root());
    let section = root.and_then(|root| Reader::new(&mut found).section(root, "templates", "templates"));
    let mut outputs = Vec::new();
    for entry in section.into_iter().flat_map(|section| section.mapping) {
        let Some(node) = inherit::template(name, &entry.key, stacks, &mut found) else { continue };
        if let Some(yaml) = template(node, types, resolver, &mut found) {
            let text = Text { parts: vec![Part::Text(yaml)], secret: true };
            let value = Node { value: Value::Template(text), span: node.span };
            outputs.push(Output { name: format!("{prefix}/{}", entry.key), span: entry.key_span, value });
        }
    }
    resolver.diagnostics.extend(found);
    outputs
}

/// A template as YAML; `None` where it is none, which has been told.
fn template(
    node: &Node,
    types: &TypeTable,
    resolver: &mut Resolver<'_>,
    found: &mut Vec<Diagnostic>,
) -> Option<String> {
    if node.is_null() {
        let unknown = Diagnostic::error(Code("unknown-type"), node.span, "unknown template type \"\"");
        found.push(unknown.help(template_types(types)));
        return None;
    }
    let mut reader = Reader::new(found);
    let section = reader.mapping(node, "a template")?;
    reader.near_misses(section, &KEYS);
    if !known_type(section, "template", Missing::Refused, types, &mut reader) {
        return None;
    }
    let (kind, span) = reader.text_at(section, "type")?;
    let Some(known) = types.template(&kind) else {
        found.push(
            Diagnostic::warning(Code("unused"), span, format!("no client stack can be deployed by a {kind:?}"))
                .detail("the template is not exported")
                .help(template_types(types)),
        );
        return None;
    };
    // A text is typed before its placeholders are filled in, as in Go. What refers to resources is filled in when a client
    // stack is deployed.
    let parent = reader.text_at(section, "parentStack").map(|(text, span)| Node::text(text, span));
    let parent = parent.map(|parent| text(&resolver.tree(&parent, References::Left))).unwrap_or_default();
    let nothing = Node { value: Value::Scalar(Scalar { text: String::new(), plain: true }), span: section.span };
    let config = resolver.tree(section.get("config").unwrap_or(&nothing), References::Left);
    let fields = known.fields(&config, found)?;
    let mut yaml = String::new();
    push(&mut yaml, 0, "type", &kind);
    push(&mut yaml, 0, "parentStack", &parent);
    yaml.push_str("config:\n");
    for (key, value) in fields {
        match value {
            TemplateValue::Text(text) => push(&mut yaml, INDENT, key, &text),
            TemplateValue::Boolean(value) => yaml.push_str(&format!("{:INDENT$}{key}: {value}\n", "")),
        }
    }
    push(&mut yaml, 0, "inherit", "");
    Some(yaml)
}

/// The text of a resolved text.
fn text(node: &Node) -> String {
    match &node.value {
        Value::Scalar(scalar) => scalar.text.clone(),
        Value::Template(template) => template.known().unwrap_or_default(),
        Value::Sequence(_) | Value::Mapping(_) => String::new(),
    }
}

/// One line, or a block of them below its key.
fn push(yaml: &mut String, indent: usize, key: &str, text: &str) {
    let scalar = scalar(text);
    let mut lines = scalar.lines();
    yaml.push_str(&format!("{:indent$}{key}: {}\n", "", lines.next().unwrap_or_default()));
    for line in lines {
        let line = line.strip_prefix(BLOCK_INDENT).unwrap_or(line);
        let depth = if line.is_empty() { 0 } else { indent + INDENT };
        yaml.push_str(&format!("{:depth$}{line}\n", ""));
    }
}

/// A text in the style that Go chooses for it. Both libraries come from libyaml and differ in what has to be quoted, in
/// the quotes, and in the depth of blocks.
fn scalar(text: &str) -> String {
    if text.contains('\n') && text.contains(OTHER_BREAKS) {
        // In a block they would end the line.
        let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
        let quoted = serde_json::Value::from(text).to_string();
        return OTHER_BREAKS.iter().fold(quoted, |text, c| text.replace(*c, &escaped(*c)));
    }
    let plain = Scalar { text: text.to_owned(), plain: true };
    if !text.contains('\n') && free(&plain) != Free::Text(Ambiguity::Clear) {
        return format!("\"{text}\"");
    }
    let written = serde_yaml::to_string(text).unwrap_or_else(|_| serde_json::Value::from(text).to_string());
    match written.split_once('\n') {
        // A block whose first line begins with a space says how deep it is.
        Some((header, lines)) if header.starts_with('|') => format!("{}\n{lines}", header.replace('2', "4")),
        _ => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_where_go_quotes_them() {
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
            assert_eq!(scalar(text).trim_end(), written, "{text:?}");
        }
    }
}
