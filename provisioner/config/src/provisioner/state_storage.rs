//! `state-storage` of a provisioner: where the state is (docs/spec/simple-container.md#6.2).

use bridge::message_text::MessageText;

use super::block_reader::{BlockReader, CODE, Field, STATE_STORAGES, has_scheme};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::reader::Section;
use crate::secret_text::SecretText;
use crate::stack::{CloudAccount, NewBucket, StateStorage};

/// Schemes of the URLs of buckets and databases.
const REMOTE_SCHEMES: [&str; 4] = ["s3", "gs", "azblob", "postgres"];

/// Schemes of the addresses of Pulumi's service.
pub(super) const SERVICE_SCHEMES: [&str; 2] = ["https", "http"];

impl BlockReader<'_, '_> {
    pub(super) fn read_state_storage(&mut self, config: Option<Section<'_>>, block_span: Span) -> Option<StateStorage> {
        let provisioner = config;
        let (kind, span, config) =
            self.read_typed_block(config, "state-storage", "state storage", STATE_STORAGES, block_span)?;
        match kind {
            "fs" => self.read_path(provisioner, config, span),
            "s3-bucket" => self.read_s3_bucket(config, span),
            "gcp-bucket" => self.read_gcp_bucket(config, span),
            "pulumi-cloud" => self.report_service("the state storage \"pulumi-cloud\"", provisioner, span),
            _ => self.report(
                format_args!("{kind:?} is not a state storage, but a secrets provider"),
                span,
                "the state storages are \"fs\", \"s3-bucket\" and \"gcp-bucket\"",
            ),
        }
    }

    /// Reads `fs`: a URL, of a folder or of any other store.
    fn read_path(
        &mut self,
        provisioner: Option<Section<'_>>,
        config: Option<Section<'_>>,
        span: Span,
    ) -> Option<StateStorage> {
        if let Some(config) = config {
            self.reader().warn_of_unknown_keys(config, &["path", "private"]);
        }
        let private = config.and_then(|config| self.reader().boolean(config, "private")).unwrap_or(false);
        match config.and_then(|config| self.read_field(config, "path")).filter(|path| !path.text.is_empty()) {
            Some(Field { text, span, .. }) if self.resolver.namespaces().root_has_reserved(&text, '?') => {
                let summary = "the path of the repository contains `?`, which begins the parameters of a `file://` URL";
                let help = "move the repository to a folder without `?` in its path, or keep the state elsewhere";
                self.diagnostics.push(Diagnostic::error(CODE, span, summary).help(help));
                None
            }
            Some(Field { text, span, .. }) if has_scheme(&text, &["file"]) => {
                Some(StateStorage::FileSystem { url: text, span, private })
            }
            Some(Field { text, span, .. }) if has_scheme(&text, &REMOTE_SCHEMES) => {
                if private {
                    let summary = "`private` has no effect: it is about the files of a `file://` state storage";
                    self.diagnostics.push(Diagnostic::warning(CODE, span, summary));
                }
                Some(remote(text, span, CloudAccount::Environment))
            }
            Some(Field { text, span, .. }) if has_scheme(&text, &SERVICE_SCHEMES) => {
                self.report_service("a state storage at an `https://` address", provisioner, span)
            }
            Some(Field { text, span, is_known: false }) => Some(StateStorage::FileSystem { url: text, span, private }),
            Some(Field { span, .. }) => {
                let summary = "the path of a state storage of type \"fs\" must be a URL";
                self.diagnostics.push(Diagnostic::error(CODE, span, summary).help(
                    "write `file:///absolute/folder`, `file://~/folder`, `file://${project:root}/folder`, `s3://bucket`, \
                     `gs://bucket`, `azblob://container` or `postgres://host/database`",
                ));
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

    /// Reads `s3-bucket`. As in Simple Container, `provision` creates no bucket.
    fn read_s3_bucket(&mut self, config: Option<Section<'_>>, span: Span) -> Option<StateStorage> {
        let keys = ["bucketName", "provision", "account", "accessKey", "secretAccessKey", "region", "credentials"];
        if let Some(config) = config {
            self.reader().warn_of_unknown_keys(config, &keys);
        }
        for key in ["account", "provision"] {
            config.and_then(|config| self.reader().text_at(config, key));
        }
        let Field { text: bucket, span, .. } = self.read_bucket(config, &["bucketName"], "s3-bucket", span)?;
        let account = config.and_then(|config| self.read_aws_account(config)).unwrap_or_default();
        let region = account.region.as_ref().map(|region| format!("?region={region}")).unwrap_or_default();
        Some(remote(format!("s3://{bucket}{region}"), span, CloudAccount::Aws(account)))
    }

    /// Reads `gcp-bucket`.
    fn read_gcp_bucket(&mut self, config: Option<Section<'_>>, span: Span) -> Option<StateStorage> {
        if let Some(config) = config {
            let keys = ["bucketName", "name", "projectId", "credentials", "location", "provision"];
            self.reader().warn_of_unknown_keys(config, &keys);
        }
        let Field { text: bucket, span, .. } = self.read_bucket(config, &["bucketName", "name"], "gcp-bucket", span)?;
        let credentials = config.and_then(|config| self.read_known(config, "credentials"));
        let account = credentials
            .map_or(CloudAccount::Environment, |credentials| CloudAccount::Google(SecretText::new(credentials.text)));
        let new_bucket = config.and_then(|config| self.read_new_bucket(config));
        Some(StateStorage::Remote { url: SecretText::new(format!("gs://{bucket}")), span, account, new_bucket })
    }

    /// Reads `provision` of `gcp-bucket`.
    fn read_new_bucket(&mut self, config: Section<'_>) -> Option<NewBucket> {
        self.reader().boolean(config, "provision").filter(|provision| *provision)?;
        let span = config.mapping.get("provision").map_or(config.span, |node| node.span);
        let mut text = |key: &str| self.read_field(config, key).map(|field| field.text).filter(|text| !text.is_empty());
        let (project, location) = (text("projectId"), text("location"));
        if project.is_none() {
            let summary = "`projectId` is missing: the project that gets the bucket";
            self.diagnostics.push(
                Diagnostic::error(CODE, span, summary)
                    .help("add `projectId: \"${auth:NAME.projectId}\"`, or remove `provision` if the bucket exists"),
            );
        }
        Some(NewBucket { project: project?, location, span })
    }

    /// Reads the name of a bucket from the first of the keys that has one.
    fn read_bucket(&mut self, config: Option<Section<'_>>, keys: &[&str], kind: &str, span: Span) -> Option<Field> {
        let mut names = keys.iter().filter_map(|key| self.read_field(config?, key));
        let name = names.find(|name| !name.text.is_empty());
        if name.is_none() {
            let summary = MessageText::new(format_args!("a state storage of type {kind:?} needs the name of a bucket"));
            self.diagnostics.push(
                Diagnostic::error(CODE, span, summary)
                    .help(format_args!("write `config: {{ {}: my-bucket }}`", keys[0])),
            );
        }
        name
    }

    /// Reports a state in Pulumi's service, whose protocol is not that of a store.
    fn report_service<T>(&mut self, what: &str, provisioner: Option<Section<'_>>, span: Span) -> Option<T> {
        let help = "keep the state in a store of your own, such as a folder (`file://…`) or a bucket (`s3://…`, `gs://…`, `azblob://…`); \
                    `pulumi stack export | sc stack import` moves a stack there";
        let summary = format_args!("{what} is not supported: it belongs to the service Pulumi Cloud");
        let error = Diagnostic::error(Code("not-supported"), span, summary).help(help);
        let has_organization = provisioner.is_some_and(|config| config.get("organization").is_some());
        let leave_out =
            "leave `organization` out then: it is an account of the service, and a store of your own has none";
        self.diagnostics.push(if has_organization { error.help(leave_out) } else { error });
        None
    }
}

fn remote(url: String, span: Span, account: CloudAccount) -> StateStorage {
    StateStorage::Remote { url: SecretText::new(url), span, account, new_bucket: None }
}
