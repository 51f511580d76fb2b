//! `provisioner` of server.yaml: where the state is and what encrypts its secrets (simple-container §6).

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::placeholder::{References, Resolver};
use crate::reader::{Reader, Section};
use crate::secret_text::SecretText;
use crate::secrets::config_field;
use crate::stack::{Provisioner, SecretsProvider, StateStorage};
use crate::tree::{Node, Value};

const CODE: Code = Code("provisioner");
const STATE_STORAGES: [&str; 4] = ["fs", "s3-bucket", "gcp-bucket", "pulumi-cloud"];
const SECRETS_PROVIDERS: [&str; 4] = ["passphrase", "aws-kms", "gcp-kms", "pulumi-cloud"];

/// Reads the block, which may be another stack's, with the names of this stack.
pub(super) fn read(node: Option<&Node>, top: Option<Span>, resolver: &mut Resolver<'_>) -> Option<Provisioner> {
    let mut found = Vec::new();
    let provisioner = Context { resolver, found: &mut found }.provisioner(node, top);
    resolver.diagnostics.extend(found);
    provisioner
}

struct Context<'c, 'r> {
    resolver: &'c mut Resolver<'r>,
    found: &'c mut Vec<Diagnostic>,
}

/// A text of a `config` once its placeholders are filled in.
struct Field {
    text: String,
    span: Span,
}

impl Context<'_, '_> {
    fn reader(&mut self) -> Reader<'_> {
        Reader::new(self.found)
    }

    fn provisioner(&mut self, node: Option<&Node>, top: Option<Span>) -> Option<Provisioner> {
        let section = match node.filter(|node| !node.is_null()) {
            Some(node) => Some(self.reader().mapping(node, "`provisioner`")?),
            None => None,
        };
        let kind = section.and_then(|section| self.reader().text_at(section, "type"));
        let (kind, span) =
            kind.map_or((String::new(), section.map(|section| section.span).or(top)), |(k, s)| (k, Some(s)));
        if kind != "pulumi" {
            self.found.push(
                Diagnostic::error(CODE, span, format!("unknown provisioner type {kind:?}"))
                    .help("write `provisioner: { type: pulumi, config: … }`"),
            );
            return None;
        }
        let section = section?;
        self.reader().near_misses(section, &["type", "config", "inherit"]);
        let config = self.reader().section(section, "config", "provisioner.config");
        let mut organization = None;
        if let Some(config) = config {
            self.reader().near_misses(config, &["organization", "state-storage", "secrets-provider"]);
            organization = self.organization(config);
        }
        let state_storage = self.state_storage(config, section.span);
        let secrets_provider = self.secrets_provider(config, section.span);
        Some(Provisioner { organization, state_storage: state_storage?, secrets_provider: secrets_provider? })
    }

    /// Backends without a service know one organization only.
    fn organization(&mut self, config: Section<'_>) -> Option<String> {
        let organization = self.field(config, "organization").filter(|organization| !organization.text.is_empty())?;
        if organization.text != "organization" {
            self.found.push(
                Diagnostic::error(CODE, organization.span, "organization name must be 'organization'")
                    .help("leave `organization` out: state in files has none"),
            );
        }
        Some(organization.text)
    }

    /// `{type, config}` below a key: the type, where it stands, and the config.
    fn block<'n>(
        &mut self,
        config: Option<Section<'n>>,
        key: &str,
        what: &str,
        known: [&str; 4],
        whole: Span,
    ) -> Option<(&'static str, Span, Option<Section<'n>>)> {
        let section = match config.and_then(|config| config.get(key)) {
            Some(node) => Some(self.reader().mapping(node, &format!("`{key}`"))?),
            None => None,
        };
        let kind = section.and_then(|section| self.reader().text_at(section, "type"));
        let (kind, span) = kind.unwrap_or((String::new(), section.or(config).map_or(whole, |section| section.span)));
        let Some(known_kind) = all_types().find(|known| *known == kind) else {
            let summary = format!("failed to read {what} config: unknown provisioner field config type {kind:?}");
            self.found.push(
                Diagnostic::error(CODE, span, summary)
                    .did_you_mean(&kind, known)
                    .help(format!("add `{key}: {{ type: {}, config: … }}` below `provisioner.config`", known[0])),
            );
            return None;
        };
        let section = section?;
        self.reader().near_misses(section, &["type", "config"]);
        let config = self.reader().section(section, "config", "config");
        Some((known_kind, span, config))
    }

    fn state_storage(&mut self, config: Option<Section<'_>>, whole: Span) -> Option<StateStorage> {
        let (kind, span, config) = self.block(config, "state-storage", "state storage", STATE_STORAGES, whole)?;
        if kind != "fs" {
            return self.unsupported("state storage", kind, span, "fs");
        }
        if let Some(config) = config {
            self.reader().near_misses(config, &["path"]);
        }
        match config.and_then(|config| self.field(config, "path")).filter(|path| !path.text.is_empty()) {
            Some(Field { text, span }) if text.starts_with("file://") => {
                Some(StateStorage::FileSystem { url: text, span })
            }
            Some(Field { span, .. }) => {
                let summary = "the path of a state storage of type \"fs\" is a URL";
                self.found.push(
                    Diagnostic::error(CODE, span, summary)
                        .help("write `file:///absolute/folder`, `file://~/folder` or `file://${project:root}/folder`"),
                );
                None
            }
            None => {
                let summary = "a state storage of type \"fs\" needs a path";
                self.found.push(
                    Diagnostic::error(CODE, span, summary)
                        .help("write `config: { path: \"file://${project:root}/.sc/state?create_dir=true\" }`"),
                );
                None
            }
        }
    }

    fn secrets_provider(&mut self, config: Option<Section<'_>>, whole: Span) -> Option<SecretsProvider> {
        let (kind, span, config) =
            self.block(config, "secrets-provider", "secrets provider", SECRETS_PROVIDERS, whole)?;
        if kind != "passphrase" {
            return self.unsupported("secrets provider", kind, span, "passphrase");
        }
        let Some(config) = config else { return Some(SecretsProvider::Passphrase { passphrase: None, span }) };
        self.reader().near_misses(config, &["passPhrase"]);
        let field = self.field(config, "passPhrase");
        let span = field.as_ref().map_or(span, |field| field.span);
        let passphrase = field.filter(|field| !field.text.is_empty()).map(|field| SecretText::new(field.text));
        Some(SecretsProvider::Passphrase { passphrase, span })
    }

    fn unsupported<T>(&mut self, what: &str, kind: &str, span: Span, supported: &str) -> Option<T> {
        let summary = format!("the {what} {kind:?} is not supported yet");
        self.found.push(
            Diagnostic::error(Code("not-supported"), span, summary)
                .help(format!("{supported:?} is the one that works today")),
        );
        None
    }

    /// Typed first, then resolved: that is the order in which the Go program reads.
    fn field(&mut self, section: Section<'_>, key: &str) -> Option<Field> {
        let span = section.mapping.get(key)?.span;
        let text = config_field(section, key, &mut self.reader())?;
        let text = match self.resolver.tree(&Node::text(text, span), References::Refused).value {
            Value::Scalar(scalar) => scalar.text,
            Value::Template(template) => template.known()?,
            Value::Sequence(_) | Value::Mapping(_) => return None,
        };
        Some(Field { text, span })
    }
}

/// Both positions share one table of names.
fn all_types() -> impl Iterator<Item = &'static str> {
    STATE_STORAGES.into_iter().chain(SECRETS_PROVIDERS)
}
