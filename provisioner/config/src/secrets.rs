//! `secrets.yaml` of a stack (docs/spec/simple-container.md#4.1): the values of `${secret:…}` and `${auth:…}`.

use std::collections::BTreeMap;

use bridge::message_text::MessageText;

use super::secret_text::SecretText;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::reader::{Reader, Section, ignored_key_warning};
use crate::tree::Node;
use crate::yaml::Document;
use crate::yaml::scalar::go_text;

/// The secrets of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Secrets {
    /// `values`.
    pub(crate) values: BTreeMap<String, SecretText>,
    /// `auth`, inherited entries included.
    pub(crate) auth: BTreeMap<String, Auth>,
    /// True if a secret may be missing because of an error in secrets.yaml, which is reported.
    pub(crate) is_incomplete: bool,
    /// Reason why secrets.yaml was not read from the store, and what to do.
    pub(crate) closed: Option<String>,
    /// True if secrets.yaml is neither on the disk nor opened by the keys of the profile: another process may have it.
    pub(crate) is_withheld: bool,
}

/// Entry of `auth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// Type of the entry.
    pub kind: AuthKind,
    /// Non-empty fields of `config`.
    pub config: BTreeMap<String, SecretText>,
}

/// Keys of an entry.
const AUTH_KEYS: [&str; 3] = ["type", "config", "inherit"];

/// The types of `auth` entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthKind {
    /// `aws-token`
    AwsToken,
    /// `gcp-service-account`
    GcpServiceAccount,
    /// `kubernetes`
    Kubernetes,
    /// `pulumi-token`
    PulumiToken,
}

impl AuthKind {
    const ALL: [Self; 4] = [Self::AwsToken, Self::GcpServiceAccount, Self::Kubernetes, Self::PulumiToken];

    /// Returns the value of `type` in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AwsToken => "aws-token",
            Self::GcpServiceAccount => "gcp-service-account",
            Self::Kubernetes => "kubernetes",
            Self::PulumiToken => "pulumi-token",
        }
    }

    /// Returns the fields of `config`, in the order in which they are serialized.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::AwsToken => &["account", "accessKey", "secretAccessKey", "region", "credentials"],
            Self::GcpServiceAccount => &["projectId", "credentials"],
            Self::Kubernetes => &["kubeconfig"],
            Self::PulumiToken => &["credentials"],
        }
    }
}

impl Auth {
    /// Returns the value of `${auth:<name>}`. Placeholders inside the value are not resolved.
    pub fn credentials(&self) -> SecretText {
        let field = match self.kind {
            AuthKind::AwsToken | AuthKind::GcpServiceAccount | AuthKind::PulumiToken => "credentials",
            AuthKind::Kubernetes => "kubeconfig",
        };
        match (self.kind, self.config.get(field)) {
            (AuthKind::AwsToken, None) => SecretText::new(self.account_json()),
            (_, text) => text.cloned().unwrap_or_else(|| SecretText::new("")),
        }
    }

    /// Returns the value of `${auth:<name>.projectId}`.
    pub fn project_id(&self) -> SecretText {
        let field = match self.kind {
            AuthKind::AwsToken => "account",
            AuthKind::GcpServiceAccount => "projectId",
            AuthKind::Kubernetes => return SecretText::new("n/a"),
            AuthKind::PulumiToken => return SecretText::new(""),
        };
        self.config.get(field).cloned().unwrap_or_else(|| SecretText::new(""))
    }

    /// Returns the texts that are secret: the value of `${auth:<name>}`, and all fields except `account`, `projectId`
    /// and `region`.
    fn secret_texts(&self) -> impl Iterator<Item = SecretText> {
        let is_secret = |field: &&String| !matches!(field.as_str(), "account" | "projectId" | "region");
        let fields = self.config.iter().filter(move |(field, _)| is_secret(field));
        fields.map(|(_, text)| text.clone()).chain([self.credentials()])
    }

    /// Serializes all fields as compact JSON, escaped as by Go's encoder.
    fn account_json(&self) -> String {
        let members = self.kind.fields().iter().map(|field| {
            let text = self.config.get(*field).map_or("", SecretText::expose);
            let text = serde_json::Value::from(text).to_string();
            let text = [
                ("<", "\\u003c"),
                (">", "\\u003e"),
                ("&", "\\u0026"),
                ("\u{2028}", "\\u2028"),
                ("\u{2029}", "\\u2029"),
            ]
            .into_iter()
            .fold(text, |text, (from, to)| text.replace(from, to));
            format!("\"{field}\":{text}")
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

/// Parsed `secrets.yaml`, before inheritance.
#[derive(Clone, Debug, Default)]
pub(super) struct SecretsFile {
    pub(super) values: BTreeMap<String, SecretText>,
    pub(super) auth: BTreeMap<String, AuthDeclaration>,
    /// True if the file has errors, which are reported: entries may be missing.
    pub(super) has_errors: bool,
    /// True if the file is not on the disk, but in the store.
    pub(super) is_stored: bool,
    /// Reason why the file was not read from the store, and what to do.
    pub(super) closed: Option<String>,
    /// True if the file is neither on the disk nor opened by the keys of the profile: another process may have it.
    pub(super) is_withheld: bool,
}

/// An entry of `auth`, before inheritance.
#[derive(Clone, Debug)]
pub(super) enum AuthDeclaration {
    Own(Auth),
    /// The entry of the same name in another stack.
    Inherited {
        stack: String,
        span: Span,
    },
}

impl SecretsFile {
    pub(super) fn texts(&self) -> impl Iterator<Item = SecretText> {
        let own = self.auth.values().filter_map(|auth| match auth {
            AuthDeclaration::Own(auth) => Some(auth),
            AuthDeclaration::Inherited { .. } => None,
        });
        self.values.values().cloned().chain(own.flat_map(Auth::secret_texts))
    }

    /// Reads the file. Leaves out invalid entries and reports them.
    pub(super) fn read(document: &Document, reader: &mut Reader<'_>) -> Self {
        let mut file = Self::default();
        let Some(root) = reader.root(document, &["auth", "values"]) else { return file };
        reader.warn_of_misspelled_keys(root, &["schemaVersion", "auth", "values"]);
        reader.text_at(root, "schemaVersion");
        if let Some(values) = reader.section(root, "values", "values") {
            for entry in values.mapping {
                if let Some(text) = reader.text(&entry.value, "a secret") {
                    file.values.insert(entry.key.clone(), SecretText::new(text));
                }
            }
        }
        if let Some(auth) = reader.section(root, "auth", "auth") {
            for entry in auth.mapping {
                if let Some(declaration) = read_auth_entry(&entry.key, &entry.value, reader) {
                    file.auth.insert(entry.key.clone(), declaration);
                }
            }
        }
        file
    }
}

fn read_auth_entry(name: &str, node: &Node, reader: &mut Reader<'_>) -> Option<AuthDeclaration> {
    let section = reader.mapping(node, "an auth entry")?;
    let kind = reader.text_at(section, "type");
    if let Some((stack, span)) = reader.text_at(section, "inherit").filter(|(stack, _)| !stack.is_empty()) {
        if let Some((kind, at)) = kind {
            let summary = MessageText::new(format_args!("auth {name:?} is inherited, but type {kind:?} is defined"));
            reader.push(Diagnostic::error(Code("inherit-and-type"), at, summary).help("remove `type` or `inherit`"));
            return None;
        }
        reader.warn_of_unknown_keys(section, &AUTH_KEYS);
        return Some(AuthDeclaration::Inherited { stack, span });
    }
    let (kind, at) = kind.unwrap_or((String::new(), section.span));
    let Some(known) = AuthKind::ALL.into_iter().find(|known| known.as_str() == kind) else {
        let names = AuthKind::ALL.map(AuthKind::as_str);
        let summary =
            MessageText::new(format_args!("failed to detect auth type for {name:?}: unknown auth type {kind:?}"));
        reader.push(
            Diagnostic::error(Code("unknown-auth-type"), at, summary)
                .did_you_mean(&kind, names)
                .help(format_args!("the types are {}", names.join(", "))),
        );
        return None;
    };
    warn_of_misplaced_keys(section, known, reader);
    let mut config = BTreeMap::new();
    if let Some(fields) = reader.section(section, "config", "config") {
        reader.warn_of_unknown_keys(fields, known.fields());
        for field in known.fields() {
            if let Some(text) = read_config_field(fields, field, reader).filter(|text| !text.is_empty()) {
                config.insert((*field).to_owned(), SecretText::new(text));
            }
        }
    }
    Some(AuthDeclaration::Own(Auth { kind: known, config }))
}

/// Warns of keys beside `type`. The account of an entry stands in `config`, also for the Go program.
fn warn_of_misplaced_keys(section: Section<'_>, kind: AuthKind, reader: &mut Reader<'_>) {
    for entry in section.mapping.into_iter().filter(|entry| !AUTH_KEYS.contains(&entry.key.as_str())) {
        let key = entry.key.as_str();
        let warning = ignored_key_warning(entry);
        reader.push(if kind.fields().contains(&key) {
            warning.help(format_args!("write it one level deeper, in `config`: `config: {{ {key}: … }}`"))
        } else {
            let of_account = format!("the keys of a {:?} in `config` are {}", kind.as_str(), kind.fields().join(", "));
            warning
                .did_you_mean(key, AUTH_KEYS.into_iter().chain(kind.fields().iter().copied()))
                .help(format_args!("the keys are {}; {of_account}", AUTH_KEYS.join(", ")))
        });
    }
}

/// Reads a string field of a `config`. Warns if the value differs from the source text.
pub(super) fn read_config_field(section: Section<'_>, field: &str, reader: &mut Reader<'_>) -> Option<String> {
    let node = section.mapping.get(field)?;
    let Some(scalar) = node.as_scalar() else {
        reader.report_wrong_kind(node, "a text");
        return None;
    };
    let text = go_text(scalar);
    if text != scalar.text && !scalar.is_null() {
        let summary = MessageText::new(format_args!("`{field}` is changed when it is read"));
        reader.push(
            Diagnostic::warning(Code("rewritten-scalar"), node.span, summary)
                .detail("an unquoted number, date or boolean is parsed and formatted again")
                .help("put the value in quotes"),
        );
    }
    Some(text)
}
