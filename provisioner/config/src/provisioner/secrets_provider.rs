//! `secrets-provider`: the passphrase or key that protects the secrets of a state
//! (docs/spec/simple-container.md#6.3).

use bridge::error::shorten;
use bridge::message_text::MessageText;

use super::block_reader::{BlockReader, CODE, Field, SECRETS_PROVIDERS, has_scheme};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::reader::Section;
use crate::secret_text::SecretText;
use crate::stack::{AwsAccount, CloudAccount, ProvisionedKey, SecretsProvider};
use crate::tree::{Entry, Mapping, Node, Value};

/// Code of errors about the credentials of a key.
const CREDENTIALS: Code = Code("credentials");

/// Key management service of a type of secrets provider.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    Aws,
    Google,
    Azure,
    Vault,
}

impl Service {
    const ALL: [Self; 4] = [Self::Aws, Self::Google, Self::Azure, Self::Vault];

    fn kind(self) -> &'static str {
        match self {
            Self::Aws => "aws-kms",
            Self::Google => "gcp-kms",
            Self::Azure => "azure-key-vault",
            Self::Vault => "hashivault",
        }
    }

    fn scheme(self) -> &'static str {
        match self {
            Self::Aws => "awskms",
            Self::Google => "gcpkms",
            Self::Azure => "azurekeyvault",
            Self::Vault => "hashivault",
        }
    }

    /// Keys of `config`.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Aws => &["keyName", "provision", "account", "accessKey", "secretAccessKey", "region", "credentials"],
            Self::Google => &["keyName", "provision", "keyLocation", "keyRotationPeriod", "credentials", "projectId"],
            Self::Azure | Self::Vault => &["keyName"],
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Aws => "awskms://alias/NAME?region=REGION",
            Self::Google => "gcpkms://projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/NAME",
            Self::Azure => "azurekeyvault://VAULT.vault.azure.net/keys/NAME",
            Self::Vault => "hashivault://NAME",
        }
    }
}

impl BlockReader<'_, '_> {
    /// Reads the block.
    pub(super) fn read_secrets_provider(
        &mut self,
        config: Option<Section<'_>>,
        block_span: Span,
    ) -> Option<SecretsProvider> {
        let (kind, span, config) =
            self.read_typed_block(config, "secrets-provider", "secrets provider", SECRETS_PROVIDERS, block_span)?;
        let service = match kind {
            "passphrase" => return Some(self.read_passphrase(config, span)),
            "aws-kms" => Service::Aws,
            "gcp-kms" => Service::Google,
            "azure-key-vault" => Service::Azure,
            "hashivault" => Service::Vault,
            "pulumi-cloud" => {
                let help = "use a passphrase or a key of your own: `passphrase`, `aws-kms`, `gcp-kms`, `azure-key-vault`, `hashivault`";
                let summary =
                    "the secrets provider \"pulumi-cloud\" is not supported: it belongs to the service Pulumi Cloud";
                return self.report(summary.to_owned(), span, help);
            }
            _ => {
                let help =
                    "supported are \"passphrase\", \"aws-kms\", \"gcp-kms\", \"azure-key-vault\" and \"hashivault\"";
                return self.report(format_args!("{kind:?} is not a secrets provider"), span, help);
            }
        };
        let Some(config) = config else { return self.report_missing_key(service, span) };
        self.reader().warn_of_unknown_keys(config, service.keys());
        self.reader().text_at(config, "account");
        let account: Option<CloudAccount> = match service {
            Service::Aws => self.read_aws_account(config).map(CloudAccount::Aws),
            Service::Google => self.read_known(config, "credentials").map(|field| CloudAccount::Google(field.into())),
            // The credentials come from the environment, as for Pulumi.
            Service::Azure | Service::Vault => None,
        };
        if service.keys().contains(&"provision") && self.reader().boolean(config, "provision") == Some(true) {
            let account = account.unwrap_or_default();
            return Some(SecretsProvider::ProvisionedKey(Box::new(ProvisionedKey {
                type_name: service.kind(),
                type_span: span,
                span: config.mapping.get("provision").map_or(span, |node| node.span),
                config: self.read_key_settings(service, config),
                account,
            })));
        }
        let Some(key) = self.read_text(config, "keyName") else { return self.report_missing_key(service, span) };
        let of_url = self.check_url(service, &key, config, &account)?;
        let Field { text: url, span, .. } = key;
        // The account of one service is of no use to another.
        let account = account.filter(|_| of_url == service).unwrap_or_default();
        Some(SecretsProvider::Key { url, span, account })
    }

    /// Reads the settings of a key that a run creates.
    fn read_key_settings(&mut self, service: Service, config: Section<'_>) -> Node {
        if let Some(Field { span, .. }) = self.read_text(config, "keyName") {
            let summary = "`keyName` has no effect beside `provision: true`, which creates a key";
            self.diagnostics.push(Diagnostic::warning(CODE, span, summary).help("remove one of them"));
        }
        let names = service.keys().iter().filter(|name| !["keyName", "provision"].contains(name));
        let entries = names.filter_map(|name| {
            let entry = config.mapping.entry(name)?;
            let value = self.resolve_field(config, name)?;
            Some(Entry { key: entry.key.clone(), key_span: entry.key_span, value })
        });
        Node { value: Value::Mapping(Mapping(entries.collect())), span: config.span }
    }

    fn read_passphrase(&mut self, config: Option<Section<'_>>, span: Span) -> SecretsProvider {
        let Some(config) = config else { return SecretsProvider::Passphrase { passphrase: None, span } };
        self.reader().warn_of_unknown_keys(config, &["passPhrase"]);
        let field = self.read_field(config, "passPhrase");
        let span = field.as_ref().map_or(span, |field| field.span);
        let passphrase = field.filter(|field| field.is_known && !field.text.is_empty()).map(SecretText::from);
        SecretsProvider::Passphrase { passphrase, span }
    }

    /// Reads a text; `None` if it is missing or empty.
    fn read_text(&mut self, config: Section<'_>, key: &str) -> Option<Field> {
        self.read_field(config, key).filter(|field| !field.text.is_empty())
    }

    fn report_missing_key<T>(&mut self, service: Service, span: Span) -> Option<T> {
        let summary =
            MessageText::new(format_args!("a secrets provider of type {:?} needs the URL of a key", service.kind()));
        let help = MessageText::new(format_args!("write `config: {{ keyName: {:?} }}`", service.example()));
        self.diagnostics.push(Diagnostic::error(CODE, span, summary).help(help));
        None
    }

    /// Checks that the text is the URL of a key, and returns its service. One of another service than that of the type is used,
    /// with a warning: the Go program passes it on, too.
    fn check_url(
        &mut self,
        service: Service,
        key: &Field,
        config: Section<'_>,
        account: &Option<CloudAccount>,
    ) -> Option<Service> {
        let (url, span) = (key.text.as_str(), key.span);
        if let Some(of_url) = Service::ALL.into_iter().find(|service| has_scheme(url, &[service.scheme()])) {
            if of_url != service {
                let summary = format!("this is a key of {}, not of {}", of_url.kind(), service.kind());
                let help = MessageText::new(format_args!("write `type: {}`", of_url.kind()));
                self.diagnostics.push(Diagnostic::warning(CODE, span, summary).help(help));
            }
            return Some(of_url);
        }
        if !key.is_known {
            return Some(service);
        }
        let summary = format!("{:?} is not the URL of a key", shorten(url));
        let region = match account {
            Some(CloudAccount::Aws(AwsAccount { region: Some(region), .. })) => region,
            _ => "REGION",
        };
        let help = format!("write `keyName: {:?}`", self.url_of(service, url, region, config));
        let error = Diagnostic::error(CODE, span, summary).help(help);
        let created =
            "for a key that does not exist, write `provision: true` in place of `keyName`: `sc provision` creates it";
        let creates = service.keys().contains(&"provision");
        self.diagnostics.push(if creates { error.help(created) } else { error });
        None
    }

    /// Returns the URL of a key whose bare name, id or ARN is given. AWS finds a key by its name, which is an alias, only behind
    /// `alias/`.
    fn url_of(&mut self, service: Service, name: &str, region: &str, config: Section<'_>) -> String {
        let mut text = |key: &str, missing: &str| {
            self.read_text(config, key).map_or_else(|| missing.to_owned(), |field| field.text)
        };
        match service {
            Service::Aws if name.starts_with("arn:") => {
                let of_arn = name.split(':').nth(3).filter(|region| !region.is_empty()).unwrap_or(region);
                format!("awskms:///{name}?region={of_arn}")
            }
            Service::Aws if name.starts_with("alias/") || is_aws_key_id(name) => {
                format!("awskms://{name}?region={region}")
            }
            Service::Aws => format!("awskms://alias/{name}?region={region}"),
            Service::Google if name.starts_with("projects/") => format!("gcpkms://{name}"),
            Service::Google => {
                let (project, location) = (text("projectId", "PROJECT"), text("keyLocation", "LOCATION"));
                format!("gcpkms://projects/{project}/locations/{location}/keyRings/RING/cryptoKeys/{name}")
            }
            Service::Azure if name.starts_with("https://") => name.replacen("https", "azurekeyvault", 1),
            Service::Azure => format!("azurekeyvault://VAULT.vault.azure.net/keys/{name}"),
            Service::Vault => format!("hashivault://{name}"),
        }
    }

    /// Reads the fields of an account of AWS. `credentials`, the account as JSON, overrides the others.
    pub(super) fn read_aws_account(&mut self, config: Section<'_>) -> Option<AwsAccount> {
        if let Some(Field { text, span, is_known }) = self.read_text(config, "credentials") {
            if !is_known {
                return Some(AwsAccount::default());
            }
            let account = AwsAccount::parse(&text);
            if account.is_none() {
                let summary = "these are not the credentials of an AWS account";
                let help = "write `${auth:NAME}`, where NAME is an `aws-token` in the stack's secrets.yaml";
                self.diagnostics.push(Diagnostic::error(CREDENTIALS, span, summary).help(help));
            }
            // The text is kept, so that the snippet of the message masks it.
            let invalid =
                || AwsAccount { access_key: Some((SecretText::new(""), SecretText::new(text))), region: None };
            return account.or_else(|| Some(invalid()));
        }
        let [key, secret, region] = ["accessKey", "secretAccessKey", "region"].map(|key| self.read_text(config, key));
        if let (Some(Field { span, .. }), None) | (None, Some(Field { span, .. })) = (&key, &secret) {
            let summary = "an access key of AWS needs both `accessKey` and `secretAccessKey`";
            self.diagnostics.push(Diagnostic::error(CREDENTIALS, *span, summary));
        }
        Some(AwsAccount {
            access_key: (key.is_some() || secret.is_some()).then(|| (into_secret(key), into_secret(secret))),
            region: region.map(|field| field.text),
        })
    }
}

/// Returns whether a text is the id of a key on AWS: a UUID, or `mrk-` and 32 hexadecimal digits.
fn is_aws_key_id(text: &str) -> bool {
    let digits = text.strip_prefix("mrk-").map_or_else(|| text.replace('-', ""), str::to_owned);
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the text of a field; empty if it is missing or unknown.
fn into_secret(field: Option<Field>) -> SecretText {
    field.filter(|field| field.is_known).map_or_else(|| SecretText::new(""), SecretText::from)
}

impl From<Field> for SecretText {
    fn from(field: Field) -> Self {
        Self::new(field.text)
    }
}
