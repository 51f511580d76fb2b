//! `provisioner` of server.yaml: location of the state, and secrets manager (docs/spec/simple-container.md#6).

use bridge::error::shorten;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::placeholder::{ReferenceRule, Resolver};
use crate::reader::{Reader, Section};
use crate::secret_text::SecretText;
use crate::secrets::read_config_field;
use crate::stack::{Confirm, MaxDeletes, Provisioner, SecretsProvider, StateStorage};
use crate::tree::{Node, Value};

const CODE: Code = Code("provisioner");
const KEYS: [&str; 5] = ["organization", "state-storage", "secrets-provider", "confirm", "maxDeletes"];
const STATE_STORAGES: [&str; 4] = ["fs", "s3-bucket", "gcp-bucket", "pulumi-cloud"];
const SECRETS_PROVIDERS: [&str; 4] = ["passphrase", "aws-kms", "gcp-kms", "pulumi-cloud"];

/// Reads the block. If it is inherited from another stack, its placeholders are resolved for the current stack.
pub(super) fn read(node: Option<&Node>, file_start: Option<Span>, resolver: &mut Resolver<'_>) -> Option<Provisioner> {
    let mut diagnostics = Vec::new();
    let provisioner = Context { resolver, diagnostics: &mut diagnostics }.read_provisioner(node, file_start);
    resolver.diagnostics.extend(diagnostics);
    provisioner
}

struct Context<'c, 'r> {
    resolver: &'c mut Resolver<'r>,
    diagnostics: &'c mut Vec<Diagnostic>,
}

/// A text of a `config` with resolved placeholders.
struct Field {
    text: String,
    span: Span,
}

impl Context<'_, '_> {
    fn reader(&mut self) -> Reader<'_> {
        Reader::new(self.diagnostics)
    }

    fn read_provisioner(&mut self, node: Option<&Node>, file_start: Option<Span>) -> Option<Provisioner> {
        let section = match node.filter(|node| !node.is_null()) {
            Some(node) => Some(self.reader().mapping(node, "`provisioner`")?),
            None => None,
        };
        let kind = section.and_then(|section| self.reader().text_at(section, "type"));
        let (kind, span) =
            kind.map_or((String::new(), section.map(|section| section.span).or(file_start)), |(k, s)| (k, Some(s)));
        if kind != "pulumi" {
            self.diagnostics.push(
                Diagnostic::error(CODE, span, format!("unknown provisioner type {kind:?}"))
                    .help("write `provisioner: { type: pulumi, config: … }`"),
            );
            return None;
        }
        let section = section?;
        self.reader().warn_of_unknown_keys(section, &["type", "config", "inherit"]);
        let config = self.reader().section(section, "config", "provisioner.config");
        let (mut organization, mut confirm, mut max_deletes) = (None, Confirm::default(), None);
        if let Some(config) = config {
            self.reader().warn_of_unknown_keys(config, &KEYS);
            organization = self.read_organization(config);
            confirm = self.read_confirm(config);
            max_deletes = self.read_max_deletes(config);
        }
        let state_storage = self.read_state_storage(config, section.span);
        let secrets_provider = self.read_secrets_provider(config, section.span);
        Some(Provisioner {
            organization,
            state_storage: state_storage?,
            secrets_provider: secrets_provider?,
            confirm,
            max_deletes,
        })
    }

    fn read_confirm(&mut self, config: Section<'_>) -> Confirm {
        let Some(Field { text, span }) = self.read_field(config, "confirm") else { return Confirm::default() };
        match text.as_str() {
            "never" => Confirm::Never,
            "" | "deletes" => Confirm::Deletes,
            "always" => Confirm::Always,
            _ => {
                let summary = format!("unknown value {} of `confirm`", shorten(&text));
                self.diagnostics.push(
                    Diagnostic::error(CODE, span, summary)
                        .did_you_mean(&text, ["never", "deletes", "always"])
                        .help("write `never`, `deletes` (the default) or `always`"),
                );
                Confirm::default()
            }
        }
    }

    fn read_max_deletes(&mut self, config: Section<'_>) -> Option<MaxDeletes> {
        let Field { text, span } = self.read_field(config, "maxDeletes").filter(|field| !field.text.is_empty())?;
        let Ok(count) = text.parse() else {
            let summary = format!("`maxDeletes` must be a number, not {}", shorten(&text));
            self.diagnostics.push(
                Diagnostic::error(CODE, span, summary)
                    .help("write the number of resources that a run may delete, such as 3"),
            );
            return None;
        };
        Some(MaxDeletes { count, span })
    }

    /// Reads `organization`. Self-managed backends accept only the name `organization`.
    fn read_organization(&mut self, config: Section<'_>) -> Option<String> {
        let organization =
            self.read_field(config, "organization").filter(|organization| !organization.text.is_empty())?;
        if organization.text != "organization" {
            self.diagnostics.push(
                Diagnostic::error(CODE, organization.span, "organization name must be 'organization'")
                    .help("leave `organization` out: state in files has none"),
            );
        }
        Some(organization.text)
    }

    /// Reads `{type, config}` below a key. Returns the type, its position, and the config.
    fn read_typed_block<'n>(
        &mut self,
        config: Option<Section<'n>>,
        key: &str,
        what: &str,
        known: [&str; 4],
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
            let summary = format!("failed to read {what} config: unknown provisioner field config type {kind:?}");
            self.diagnostics.push(
                Diagnostic::error(CODE, span, summary)
                    .did_you_mean(&kind, known)
                    .help(format!("add `{key}: {{ type: {}, config: … }}` below `provisioner.config`", known[0])),
            );
            return None;
        };
        let section = section?;
        self.reader().warn_of_unknown_keys(section, &["type", "config"]);
        let config = self.reader().section(section, "config", "config");
        Some((known_kind, span, config))
    }

    fn read_state_storage(&mut self, config: Option<Section<'_>>, block_span: Span) -> Option<StateStorage> {
        let (kind, span, config) =
            self.read_typed_block(config, "state-storage", "state storage", STATE_STORAGES, block_span)?;
        match kind {
            "fs" => {}
            "pulumi-cloud" => return self.report_service("the state storage \"pulumi-cloud\"", span),
            _ => return self.report_unsupported("state storage", kind, span, "fs"),
        }
        if let Some(config) = config {
            self.reader().warn_of_unknown_keys(config, &["path", "private"]);
        }
        let private = config.and_then(|config| self.reader().boolean(config, "private")).unwrap_or(false);
        match config.and_then(|config| self.read_field(config, "path")).filter(|path| !path.text.is_empty()) {
            Some(Field { text, span }) if self.resolver.namespaces().root_has_reserved(&text, '?') => {
                let summary = "the path of the repository contains `?`, which begins the parameters of a `file://` URL";
                let help = "move the repository to a folder without `?` in its path, or keep the state elsewhere";
                self.diagnostics.push(Diagnostic::error(CODE, span, summary).help(help));
                None
            }
            Some(Field { text, span }) if text.starts_with("file://") => {
                Some(StateStorage::FileSystem { url: text, span, private })
            }
            Some(Field { text, span }) if has_scheme(&text, &["https", "http"]) => {
                self.report_service("a state storage at an `https://` address", span)
            }
            Some(Field { text, span }) if has_scheme(&text, &["azblob"]) => {
                let help = "keep the state in a folder (`file://…`); `pulumi stack export | sc stack import` moves a stack there";
                self.report("a state storage in Azure (`azblob://`) is not supported".to_owned(), span, help)
            }
            Some(Field { text, span }) if has_scheme(&text, &["s3", "gs", "postgres"]) => {
                let scheme = text.split(':').next().unwrap_or_default();
                self.report_unsupported("state storage", &format!("{scheme}://"), span, "file://")
            }
            Some(Field { span, .. }) => {
                let summary = "the path of a state storage of type \"fs\" must be a `file://` URL";
                self.diagnostics.push(
                    Diagnostic::error(CODE, span, summary)
                        .help("write `file:///absolute/folder`, `file://~/folder` or `file://${project:root}/folder`"),
                );
                None
            }
            None => {
                let summary = "a state storage of type \"fs\" needs a path";
                self.diagnostics.push(
                    Diagnostic::error(CODE, span, summary)
                        .help("write `config: { path: \"file://${project:root}/.sc/state?create_dir=true\" }`"),
                );
                None
            }
        }
    }

    fn read_secrets_provider(&mut self, config: Option<Section<'_>>, block_span: Span) -> Option<SecretsProvider> {
        let (kind, span, config) =
            self.read_typed_block(config, "secrets-provider", "secrets provider", SECRETS_PROVIDERS, block_span)?;
        if kind != "passphrase" {
            return self.report_unsupported("secrets provider", kind, span, "passphrase");
        }
        let Some(config) = config else { return Some(SecretsProvider::Passphrase { passphrase: None, span }) };
        self.reader().warn_of_unknown_keys(config, &["passPhrase"]);
        let field = self.read_field(config, "passPhrase");
        let span = field.as_ref().map_or(span, |field| field.span);
        let passphrase = field.filter(|field| !field.text.is_empty()).map(|field| SecretText::new(field.text));
        Some(SecretsProvider::Passphrase { passphrase, span })
    }

    fn report_unsupported<T>(&mut self, what: &str, kind: &str, span: Span, supported: &str) -> Option<T> {
        self.report(
            format!("the {what} {kind:?} is not supported yet"),
            span,
            &format!("only {supported:?} is supported"),
        )
    }

    /// Reports a state in Pulumi's service, whose protocol is not that of a store.
    fn report_service<T>(&mut self, what: &str, span: Span) -> Option<T> {
        let help = "keep the state in a store of your own, such as a folder (`file://…`); \
                    `pulumi stack export | sc stack import` moves a stack there";
        self.report(format!("{what} is not supported: it belongs to the service Pulumi Cloud"), span, help)
    }

    fn report<T>(&mut self, summary: String, span: Span, help: &str) -> Option<T> {
        self.diagnostics.push(Diagnostic::error(Code("not-supported"), span, summary).help(help));
        None
    }

    /// Reads a string field. The scalar is converted to a string before its placeholders are resolved, as in the Go
    /// program.
    fn read_field(&mut self, section: Section<'_>, key: &str) -> Option<Field> {
        let span = section.mapping.get(key)?.span;
        let text = read_config_field(section, key, &mut self.reader())?;
        let text = match self.resolver.resolve(&Node::text(text, span), ReferenceRule::Rejected).value {
            Value::Scalar(scalar) => scalar.text,
            Value::Interpolated(string) => string.known()?,
            Value::Sequence(_) | Value::Mapping(_) => return None,
        };
        Some(Field { text, span })
    }
}

/// Returns whether a text is a URL with one of the schemes.
fn has_scheme(text: &str, schemes: &[&str]) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| schemes.contains(&scheme))
}

/// Returns the types of both blocks. Each block accepts all of them, as in Go.
fn all_types() -> impl Iterator<Item = &'static str> {
    STATE_STORAGES.into_iter().chain(SECRETS_PROVIDERS)
}
