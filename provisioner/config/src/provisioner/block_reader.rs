//! Fields and blocks of `provisioner`, with resolved placeholders.

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::placeholder::{ReferenceRule, Resolver};
use crate::reader::{Reader, Section};
use crate::secrets::read_config_field;
use crate::tree::{Node, Value};

/// Code of errors about the block.
pub(super) const CODE: Code = Code("provisioner");
/// Types of state storages.
pub(super) const STATE_STORAGES: [&str; 4] = ["fs", "s3-bucket", "gcp-bucket", "pulumi-cloud"];
/// Types of secrets providers.
pub(super) const SECRETS_PROVIDERS: [&str; 6] =
    ["passphrase", "aws-kms", "gcp-kms", "azure-key-vault", "hashivault", "pulumi-cloud"];

/// Reader of the block.
pub(super) struct BlockReader<'c, 'r> {
    pub(super) resolver: &'c mut Resolver<'r>,
    pub(super) diagnostics: &'c mut Vec<Diagnostic>,
}

/// A text of a `config` with resolved placeholders.
pub(super) struct Field {
    /// Text, with the placeholders of its unknown values in their places.
    pub(super) text: String,
    pub(super) span: Span,
    /// False if a value in the text is not known in this process: the text is checked only as far as it is written.
    pub(super) is_known: bool,
}

impl BlockReader<'_, '_> {
    pub(super) fn reader(&mut self) -> Reader<'_> {
        Reader::new(self.diagnostics)
    }

    /// Reads `{type, config}` below a key. Returns the type, its position, and the config.
    pub(super) fn read_typed_block<'n, const N: usize>(
        &mut self,
        config: Option<Section<'n>>,
        key: &str,
        what: &str,
        known: [&str; N],
        block_span: Span,
    ) -> Option<(&'static str, Span, Option<Section<'n>>)> {
        let section = match config.and_then(|config| config.get(key)) {
            Some(node) => Some(self.reader().mapping(node, &format!("`{key}`"))?),
            None => None,
        };
        let kind = section.and_then(|section| self.reader().text_at(section, "type"));
        let (kind, span) =
            kind.unwrap_or((String::new(), section.or(config).map_or(block_span, |section| section.span)));
        let Some(known_kind) = all_types().find(|known| *known == kind) else {
            let summary = MessageText::new(format_args!(
                "failed to read {what} config: unknown provisioner field config type {kind:?}"
            ));
            self.diagnostics.push(
                Diagnostic::error(CODE, span, summary)
                    .did_you_mean(&kind, known)
                    .help(format_args!("add `{key}: {{ type: {}, config: … }}` below `provisioner.config`", known[0])),
            );
            return None;
        };
        let section = section?;
        self.reader().warn_of_unknown_keys(section, &["type", "config"]);
        let config = self.reader().section(section, "config", "config");
        Some((known_kind, span, config))
    }

    pub(super) fn report<T>(&mut self, summary: impl Into<MessageText>, span: Span, help: &str) -> Option<T> {
        self.diagnostics.push(Diagnostic::error(Code("not-supported"), span, summary).help(help));
        None
    }

    /// Reads a string field.
    pub(super) fn read_field(&mut self, section: Section<'_>, key: &str) -> Option<Field> {
        let Node { value, span } = self.resolve_field(section, key)?;
        let (text, is_known) = match value {
            Value::Scalar(scalar) => (scalar.text, true),
            Value::Interpolated(string) => (string.with_placeholders()?, !string.is_unknown()),
            Value::Sequence(_) | Value::Mapping(_) => return None,
        };
        Some(Field { text, span, is_known })
    }

    /// Reads a text with a value that is known and not empty.
    pub(super) fn read_known(&mut self, section: Section<'_>, key: &str) -> Option<Field> {
        self.read_field(section, key).filter(|field| field.is_known && !field.text.is_empty())
    }

    /// Reads a string field as a node, which holds whether the text is secret. The scalar is converted to a string before
    /// its placeholders are resolved, as in the Go program.
    pub(super) fn resolve_field(&mut self, section: Section<'_>, key: &str) -> Option<Node> {
        let span = section.mapping.get(key)?.span;
        let text = read_config_field(section, key, &mut self.reader())?;
        Some(self.resolver.resolve(&Node::text(text, span), ReferenceRule::Rejected))
    }
}

/// Returns whether a text is a URL with one of the schemes.
pub(super) fn has_scheme(text: &str, schemes: &[&str]) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| schemes.contains(&scheme))
}

/// Returns the types of both blocks. Each block accepts all of them, as in Go.
fn all_types() -> impl Iterator<Item = &'static str> {
    STATE_STORAGES.into_iter().chain(SECRETS_PROVIDERS)
}
