//! The words in which the file readers of this room speak: sections, texts, lists; every mistake collected.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::secret_text::SecretText;
use crate::tree::{Mapping, Node, Value};
use crate::yaml::Document;
use crate::yaml::scalar::config_bool;

const WRONG_KIND: Code = Code("wrong-kind");
const UNKNOWN_KEY: Code = Code("unknown-key");

/// Reads nodes and collects what is wrong with them.
pub(super) struct Reader<'d> {
    diagnostics: &'d mut Vec<Diagnostic>,
}

/// A mapping with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'n> {
    pub(super) mapping: &'n Mapping,
    pub(super) span: Span,
}

impl<'n> Section<'n> {
    /// The value of a key, unless nothing is there.
    pub(super) fn get(self, key: &str) -> Option<&'n Node> {
        self.mapping.get_some(key)
    }
}

impl<'d> Reader<'d> {
    pub(super) fn new(diagnostics: &'d mut Vec<Diagnostic>) -> Self {
        Self { diagnostics }
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// The top of a file. Duplicate keys are mistakes at the top and below the keys that are read; below a key that is
    /// ignored they are passed over, as in the Go program.
    pub(super) fn root<'n>(&mut self, document: &'n Document, known: &[&str], read: &[&str]) -> Option<Section<'n>> {
        for duplicate in &document.duplicates {
            if duplicate.section.as_deref().is_none_or(|section| read.contains(&section)) {
                self.push(duplicate.diagnostic());
            }
        }
        let section = self.mapping(document.root.as_ref()?, "the file")?;
        self.near_misses(section, known);
        Some(section)
    }

    /// A node that must be a mapping; nothing at all counts as none.
    pub(super) fn mapping<'n>(&mut self, node: &'n Node, what: &str) -> Option<Section<'n>> {
        match node.as_mapping() {
            Some(mapping) => Some(Section { mapping, span: node.span }),
            None if node.is_null() => None,
            None => {
                self.push(wrong_kind(node, &format!("{what} must be a mapping")));
                None
            }
        }
    }

    /// A section below a key.
    pub(super) fn section<'n>(&mut self, section: Section<'n>, key: &str, what: &str) -> Option<Section<'n>> {
        self.mapping(section.get(key)?, &format!("`{what}`"))
    }

    /// A list below a key; nothing counts as empty.
    pub(super) fn list<'n>(&mut self, section: Section<'n>, key: &str) -> &'n [Node] {
        match section.get(key) {
            None => &[],
            Some(node) => node.as_sequence().unwrap_or_else(|| {
                self.push(wrong_kind(node, &format!("`{key}` must be a list")));
                &[]
            }),
        }
    }

    /// The source text of a scalar; nothing is an empty text. A secret is refused: what is read here may be shown.
    pub(super) fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        match &node.value {
            Value::Scalar(scalar) if scalar.is_null() => Some(String::new()),
            Value::Scalar(scalar) => Some(scalar.text.clone()),
            Value::Template(_) => {
                self.push(Diagnostic::error(Code("misplaced-secret"), node.span, format!("{what} cannot be a secret")));
                None
            }
            Value::Sequence(_) | Value::Mapping(_) => {
                self.push(wrong_kind(node, &format!("{what} must be a text")));
                None
            }
        }
    }

    /// A text below a key that may be a secret.
    pub(super) fn secret_at(&mut self, section: Section<'_>, key: &str) -> Option<SecretText> {
        let node = section.get(key)?;
        match &node.value {
            Value::Template(template) => template.known().map(SecretText::new),
            _ => self.text(node, &format!("`{key}`")).map(SecretText::new),
        }
    }

    /// The source text below a key, with its place; `None` where nothing is there.
    pub(super) fn text_at(&mut self, section: Section<'_>, key: &str) -> Option<(String, Span)> {
        let node = section.get(key)?;
        Some((self.text(node, &format!("`{key}`"))?, node.span))
    }

    /// A truth value below a key; `None` where nothing is there.
    pub(super) fn boolean(&mut self, section: Section<'_>, key: &str) -> Option<bool> {
        let node = section.get(key)?;
        let value = node.as_scalar().and_then(config_bool);
        if value.is_none() {
            self.wrong_kind(node, "`true` or `false`");
        }
        value
    }

    /// Texts of a list below a key, with their places; nulls are dropped.
    pub(super) fn texts(&mut self, section: Section<'_>, key: &str) -> Vec<(String, Span)> {
        let items = self.list(section, key).iter().filter(|item| !item.is_null());
        items.filter_map(|item| Some((self.text(item, &format!("an item of `{key}`"))?, item.span))).collect()
    }

    /// Says what was expected instead.
    pub(super) fn wrong_kind(&mut self, node: &Node, expected: &str) {
        self.push(wrong_kind(node, &format!("expected {expected}, found {}", node.kind())));
    }

    /// Warns of keys that nobody reads and that look like one that somebody does.
    pub(super) fn near_misses(&mut self, section: Section<'_>, known: &[&str]) {
        for entry in section.mapping {
            let absent = known.iter().copied().filter(|key| section.mapping.entry(key).is_none());
            if known.contains(&entry.key.as_str()) {
                continue;
            }
            if let Some(meant) = crate::diagnostics::closest(&entry.key, absent) {
                self.push(
                    Diagnostic::warning(UNKNOWN_KEY, entry.key_span, format!("the key `{}` is ignored", entry.key))
                        .help(format!("did you mean `{meant}`?")),
                );
            }
        }
    }

    /// Refuses keys that nobody reads.
    pub(super) fn only_keys(&mut self, section: Section<'_>, known: &[&str], of: &str) {
        for entry in section.mapping.into_iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            self.push(
                Diagnostic::error(UNKNOWN_KEY, entry.key_span, format!("{of} has no key `{}`", entry.key))
                    .did_you_mean(&entry.key, known.iter().copied())
                    .help(format!("the keys are {}", known.join(", "))),
            );
        }
    }
}

fn wrong_kind(node: &Node, summary: &str) -> Diagnostic {
    Diagnostic::error(WRONG_KIND, node.span, summary).expected(format!("this is {}", node.kind()))
}
