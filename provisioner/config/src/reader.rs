//! Helpers of the file readers: sections, texts and lists. Every error is collected.

use std::fmt;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::secret_text::SecretText;
use crate::tree::{Entry, Mapping, Node, Value};
use crate::yaml::Document;
use crate::yaml::scalar::go_bool;

const WRONG_KIND: Code = Code("wrong-kind");
const UNKNOWN_KEY: Code = Code("unknown-key");

/// Reads nodes and collects their errors and warnings.
pub(super) struct Reader<'d> {
    diagnostics: &'d mut Vec<Diagnostic>,
}

/// A mapping with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'n> {
    pub(super) mapping: &'n Mapping,
    pub(super) span: Span,
}

impl<'n> Section<'n> {
    /// Returns the value of a key; `None` if it is missing or null.
    pub(super) fn get(self, key: &str) -> Option<&'n Node> {
        self.mapping.get_non_null(key)
    }
}

impl<'d> Reader<'d> {
    pub(super) fn new(diagnostics: &'d mut Vec<Diagnostic>) -> Self {
        Self { diagnostics }
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Returns the top mapping of a file. Duplicate keys are errors at the top and below the keys in `read`; below
    /// other keys they are ignored, as in the Go program.
    pub(super) fn root<'n>(&mut self, document: &'n Document, read: &[&str]) -> Option<Section<'n>> {
        if let Some(span) = document.second {
            self.push(
                Diagnostic::warning(Code("yaml-document"), span, "only the first document of a file is read")
                    .span_label("the second document begins here")
                    .help("remove this line, or move the second document to a file of its own"),
            );
        }
        for duplicate in &document.duplicates {
            if duplicate.section.as_deref().is_none_or(|section| read.contains(&section)) {
                self.push(duplicate.diagnostic());
            }
        }
        self.mapping(document.root.as_ref()?, "the file")
    }

    /// Returns a node as a mapping; `None` for null. Reports any other kind as an error.
    pub(super) fn mapping<'n>(&mut self, node: &'n Node, what: &str) -> Option<Section<'n>> {
        match node.as_mapping() {
            Some(mapping) => Some(Section { mapping, span: node.span }),
            None if node.is_null() => None,
            None => {
                self.push(wrong_kind_error(node, &format!("{what} must be a mapping")));
                None
            }
        }
    }

    /// Returns the mapping below a key; `None` if it is missing or null.
    pub(super) fn section<'n>(&mut self, section: Section<'n>, key: &str, what: &str) -> Option<Section<'n>> {
        self.mapping(section.get(key)?, &format!("`{what}`"))
    }

    /// Returns the list below a key; empty if the key is missing or null.
    pub(super) fn list<'n>(&mut self, section: Section<'n>, key: &str) -> &'n [Node] {
        match section.get(key) {
            None => &[],
            Some(node) => node.as_sequence().unwrap_or_else(|| {
                self.push(wrong_kind_error(node, &format!("`{key}` must be a list")));
                &[]
            }),
        }
    }

    /// Returns the source text of a scalar; an empty text for null; `None` if it is unknown. A secret is an error, because the
    /// text may be displayed.
    pub(super) fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        match &node.value {
            Value::Scalar(scalar) if scalar.is_null() => Some(String::new()),
            Value::Scalar(scalar) => Some(scalar.text.clone()),
            Value::Interpolated(string) if string.is_unknown() && !string.secret => None,
            Value::Interpolated(_) => {
                self.push(Diagnostic::error(
                    Code("misplaced-secret"),
                    node.span,
                    format_args!("{what} cannot be a secret"),
                ));
                None
            }
            Value::Sequence(_) | Value::Mapping(_) => {
                self.push(wrong_kind_error(node, &format!("{what} must be a text")));
                None
            }
        }
    }

    /// Returns the text below a key, which may be a secret.
    pub(super) fn secret_at(&mut self, section: Section<'_>, key: &str) -> Option<SecretText> {
        let node = section.get(key)?;
        match &node.value {
            Value::Interpolated(string) => string.known().map(SecretText::new),
            _ => self.text(node, &format!("`{key}`")).map(SecretText::new),
        }
    }

    /// Returns the source text below a key, with its position; `None` if the key is missing or null.
    pub(super) fn text_at(&mut self, section: Section<'_>, key: &str) -> Option<(String, Span)> {
        let node = section.get(key)?;
        Some((self.text(node, &format!("`{key}`"))?, node.span))
    }

    /// Returns the boolean below a key; `None` if the key is missing or null, or its value is unknown.
    pub(super) fn boolean(&mut self, section: Section<'_>, key: &str) -> Option<bool> {
        let node = section.get(key).filter(|node| !node.is_unknown())?;
        let value = node.as_scalar().and_then(go_bool);
        if value.is_none() {
            self.report_wrong_kind(node, "`true` or `false`");
        }
        value
    }

    /// Returns the texts of the list below a key, with their positions. Nulls are dropped.
    pub(super) fn texts(&mut self, section: Section<'_>, key: &str) -> Vec<(String, Span)> {
        let items = self.list(section, key).iter().filter(|item| !item.is_null());
        items.filter_map(|item| Some((self.text(item, &format!("an item of `{key}`"))?, item.span))).collect()
    }

    /// Reports that a node is not of the expected kind.
    pub(super) fn report_wrong_kind(&mut self, node: &Node, expected: &str) {
        self.push(wrong_kind_error(node, &format!("expected {expected}, found {}", node.kind())));
    }

    /// Warns of unknown keys that are similar to a known key that is missing.
    pub(super) fn warn_of_misspelled_keys(&mut self, section: Section<'_>, known: &[&str]) {
        for (entry, candidate) in misspelled_keys(section, known) {
            self.push(ignored_key_warning(entry).help(format_args!("did you mean `{candidate}`?")));
        }
    }

    /// Reports unknown keys that are similar to a known key that is missing as errors.
    pub(super) fn reject_misspelled_keys(&mut self, section: Section<'_>, known: &[&str], of: &str) {
        for (entry, candidate) in misspelled_keys(section, known) {
            self.push(unknown_key_error(of, entry).help(format_args!("did you mean `{candidate}`?")));
        }
    }

    /// Reports unknown keys that are similar to a known key that is missing as errors, and warns of the others.
    pub(super) fn reject_misspelled_and_warn_of_unknown_keys(
        &mut self,
        section: Section<'_>,
        known: &[&str],
        of: &str,
    ) {
        let misspelled = misspelled_keys(section, known);
        for entry in section.mapping.into_iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            self.push(match misspelled.iter().find(|(other, _)| other.key == entry.key) {
                Some((_, candidate)) => unknown_key_error(of, entry).help(format_args!("did you mean `{candidate}`?")),
                None => ignored_key_warning(entry).help(format_args!("the keys are {}", known.join(", "))),
            });
        }
    }

    /// Warns of all unknown keys.
    pub(super) fn warn_of_unknown_keys(&mut self, section: Section<'_>, known: &[&str]) {
        for entry in section.mapping.into_iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            self.push(
                ignored_key_warning(entry)
                    .did_you_mean(&entry.key, known.iter().copied())
                    .help(format_args!("the keys are {}", known.join(", "))),
            );
        }
    }

    /// Reports the empty keys of a section whose keys are names.
    pub(super) fn reject_empty_names(&mut self, section: Section<'_>, of: &str) {
        for entry in section.mapping.into_iter().filter(|entry| entry.key.is_empty()) {
            self.push(
                Diagnostic::error(Code("empty-name"), entry.key_span, format_args!("the name of {of} is empty"))
                    .help("write a name in front of the colon"),
            );
        }
    }

    /// Reports unknown keys as errors.
    pub(super) fn reject_unknown_keys(&mut self, section: Section<'_>, known: &[&str], of: &str) {
        for entry in section.mapping.into_iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            self.push(
                unknown_key_error(of, entry)
                    .did_you_mean(&entry.key, known.iter().copied())
                    .help(format_args!("the keys are {}", known.join(", "))),
            );
        }
    }
}

/// Returns the unknown keys that are similar to a known key that is missing, each with this key.
fn misspelled_keys<'n, 'k>(section: Section<'n>, known: &[&'k str]) -> Vec<(&'n Entry, &'k str)> {
    let absent: Vec<&str> = known.iter().copied().filter(|key| section.mapping.entry(key).is_none()).collect();
    let unknown = section.mapping.into_iter().filter(|entry| !known.contains(&entry.key.as_str()));
    unknown.filter_map(|entry| Some((entry, bridge::error::closest(&entry.key, absent.iter().copied())?))).collect()
}

/// Returns the warning that the key of an entry is not read.
pub(super) fn ignored_key_warning(entry: &Entry) -> Diagnostic {
    Diagnostic::warning(UNKNOWN_KEY, entry.key_span, format_args!("the key `{}` is ignored", entry.key))
}

/// Returns the error that an entry has a key that means nothing there.
pub(super) fn unknown_key_error(of: impl fmt::Display, entry: &Entry) -> Diagnostic {
    Diagnostic::error(UNKNOWN_KEY, entry.key_span, format_args!("{of} has no key `{}`", entry.key))
}

fn wrong_kind_error(node: &Node, summary: &str) -> Diagnostic {
    Diagnostic::error(WRONG_KIND, node.span, summary).span_label(format_args!("this is {}", node.kind()))
}
