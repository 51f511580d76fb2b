//! Content of a stack's files after inheritance and placeholders.

use std::collections::{BTreeMap, BTreeSet};

use bridge::plugin::PluginVersion;
use pulumi_proto::duration::Timeouts;
use pulumi_proto::urn::Urn;

use crate::diagnostics::Span;
use crate::function::Function;
use crate::place::{Collection, Moved};
use crate::plugins::PluginDeclaration;
use crate::secret_text::SecretText;
use crate::stack_outputs::{FunctionName, OutputReference};
use crate::tree::Node;

/// A stack, ready to be provisioned.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Name of the stack: the name of its folder.
    pub name: String,
    /// The Pulumi project.
    pub project: String,
    /// Name of the stack whose key is the only resource of this one; `None` for a stack of the repository
    /// (docs/spec/simple-container.md#6.4).
    pub key_of: Option<String>,
    /// Location of the state and secrets manager.
    pub provisioner: Provisioner,
    /// All plugins in the order of the file, disabled ones too.
    pub plugins: Vec<PluginDeclaration>,
    /// The environments in the order of the file.
    pub environments: Vec<Environment>,
    /// `functions`: those of all environments, then those of each environment in the order of the file.
    pub functions: Vec<Function>,
    /// `resources.moved`: former places of resources.
    pub moved: Vec<Moved>,
    /// `references`: stacks elsewhere whose outputs may be read.
    pub references: Vec<ReferencedStack>,
    /// Outputs of other stacks that the file reads, in the order of its sections.
    pub outputs_read: Vec<OutputReference>,
    /// Functions whose results are needed before a run, since they decide what it registers.
    pub deciding: BTreeSet<FunctionName>,
    /// `registrar`: of a core type, in no environment, and without references.
    pub registrar: Option<Resource>,
    /// `outputs`; then the templates, by the names that client stacks use.
    pub outputs: Vec<Output>,
    /// `variables`.
    pub variables: BTreeMap<String, String>,
    /// `values` of secrets.yaml.
    pub secrets: BTreeMap<String, SecretText>,
    /// Reason why secrets.yaml, which is not on the disk, was not read from the store.
    pub closed_secrets: Option<String>,
}

impl Environment {
    /// Returns an environment without resources.
    pub fn new(name: &str, span: Span) -> Self {
        let (resources, disabled, collections) = Default::default();
        Self { name: name.to_owned(), span, resources, disabled, collections }
    }
}

impl Stack {
    /// Returns a stack that has nothing but its name and the location of its state.
    pub fn without_sections(name: String, project: String, provisioner: Provisioner) -> Self {
        Self {
            name,
            project,
            key_of: None,
            provisioner,
            plugins: Vec::new(),
            environments: Vec::new(),
            functions: Vec::new(),
            moved: Vec::new(),
            references: Vec::new(),
            outputs_read: Vec::new(),
            deciding: BTreeSet::new(),
            registrar: None,
            outputs: Vec::new(),
            variables: BTreeMap::new(),
            secrets: BTreeMap::new(),
            closed_secrets: None,
        }
    }

    /// Returns the name that names and tags of core types are made of: that of the stack whose key this one has, else its own.
    pub fn base_name(&self) -> &str {
        self.key_of.as_deref().unwrap_or(&self.name)
    }

    /// Returns all resources with their environments, in the order of the file.
    pub fn resources(&self) -> impl Iterator<Item = (&Environment, &Resource)> {
        let environments = self.environments.iter();
        environments.flat_map(|environment| environment.resources.iter().map(move |resource| (environment, resource)))
    }

    /// Returns all resources with the names of their environments, in the order of the file, then the registrar, whose
    /// environment has an empty name.
    pub fn declarations(&self) -> impl Iterator<Item = (&str, &Resource)> {
        let resources = self.resources().map(|(environment, resource)| (environment.name.as_str(), resource));
        resources.chain(self.registrar.iter().map(|registrar| ("", registrar)))
    }
}

/// Entry of `references`: a stack of another project or in another store, whose outputs may be read.
#[derive(Clone, Debug)]
pub struct ReferencedStack {
    /// Name that placeholders use.
    pub name: String,
    /// Position of the name.
    pub span: Span,
    /// The Pulumi project.
    pub project: String,
    /// Name of the stack.
    pub stack: String,
    /// Location of its state, and its secrets manager.
    pub provisioner: Provisioner,
}

/// `provisioner`.
#[derive(Clone, Debug)]
pub struct Provisioner {
    /// `organization`, the first part of the stack's name in stack references.
    pub organization: Option<String>,
    /// Location of the state.
    pub state_storage: StateStorage,
    /// `false` if locks have no lease, and are not taken over (`lock`).
    pub takeover: bool,
    /// `journal`: what a run waits for before it goes on; `None` if server.yaml does not say it.
    pub journal: Option<JournalGuarantee>,
    /// Secrets manager that encrypts the secrets of the state.
    pub secrets_provider: SecretsProvider,
    /// `confirm`: the changes that a provision asks for.
    pub confirm: Confirm,
    /// `maxDeletes`: the limit on the resources that a provision deletes or replaces.
    pub max_deletes: Option<MaxDeletes>,
    /// `acceptMissing`: true if resources that a refresh does not find leave the state without a question.
    pub accept_missing: bool,
    /// `pendingCreates`: what a provision does with resources that an interrupted run may have created.
    pub pending_creates: PendingCreateRule,
}

/// Treatment of resources that an interrupted run may have created, where a provision would create them again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PendingCreateRule {
    /// `ask`: it asks on a terminal, and refuses elsewhere.
    #[default]
    Ask,
    /// `refuse`: it creates none of them.
    Refuse,
    /// `recreate`: it creates them again.
    Recreate,
}

impl PendingCreateRule {
    /// All rules, with their names in server.yaml.
    pub const ALL: [(&'static str, Self); 3] =
        [("ask", Self::Ask), ("refuse", Self::Refuse), ("recreate", Self::Recreate)];
}

/// Lines of the journal that a run waits for: until they are in the store, or on the disk of a store in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalGuarantee {
    /// Lines that announce a call that may create something.
    Intents,
    /// Lines that begin or end an operation.
    Sync,
    /// No line.
    Local,
}

impl JournalGuarantee {
    /// All guarantees, with their names in server.yaml.
    pub const ALL: [(&'static str, Self); 3] =
        [("intents", Self::Intents), ("sync", Self::Sync), ("local", Self::Local)];
}

/// Changes for which a provision asks for a confirmation, where there is a terminal to ask on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confirm {
    /// `never`: it never asks.
    Never,
    /// `deletes`: it asks before resources are deleted or replaced.
    #[default]
    Deletes,
    /// `always`: it asks before any change, and a run that cannot ask needs `--yes`.
    Always,
}

/// Limit on the resources that a provision deletes or replaces, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxDeletes {
    /// Number of resources.
    pub count: u64,
    /// Position of the number.
    pub span: Span,
}

/// Location of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateStorage {
    /// `fs`: a URL such as `file:///…`, verbatim.
    FileSystem {
        /// The URL.
        url: String,
        /// Position of the URL.
        span: Span,
        /// True if only the current user may read and write the files of the state.
        private: bool,
    },
    /// A bucket or a database: `s3-bucket`, `gcp-bucket`, or `fs` with such a URL.
    Remote {
        /// URL as Pulumi takes it. That of a database may contain a password.
        url: SecretText,
        /// Position of the URL, or of the name of the bucket.
        span: Span,
        /// Account that reads and writes the state.
        account: CloudAccount,
        /// Bucket that a run creates if there is none (`provision` of `gcp-bucket`).
        new_bucket: Option<NewBucket>,
    },
}

/// Bucket of Google Cloud Storage that a run creates if there is none (docs/spec/simple-container.md#6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBucket {
    /// Project that gets the bucket.
    pub project: String,
    /// Location, such as `EU`; `None`: the default of the service.
    pub location: Option<String>,
    /// Position of `provision`.
    pub span: Span,
}

/// Secrets manager of a state.
#[derive(Clone, Debug, PartialEq)]
pub enum SecretsProvider {
    /// `passphrase`.
    Passphrase {
        /// The passphrase; `None` if the file has none, so that it is read from the environment.
        passphrase: Option<SecretText>,
        /// Position of the passphrase, or of the block that it is missing from.
        span: Span,
    },
    /// `aws-kms`, `gcp-kms`, `azure-key-vault` and `hashivault`: a key in a key management service.
    Key {
        /// Pulumi's URL of the key, verbatim: `awskms://…`, `gcpkms://…`, `azurekeyvault://…` or `hashivault://…`.
        url: String,
        /// Position of the URL.
        span: Span,
        /// Account that uses the key.
        account: CloudAccount,
    },
    /// `aws-kms` and `gcp-kms` with `provision: true`: a key that a run creates, in a stack of its own.
    ProvisionedKey(Box<ProvisionedKey>),
}

/// Key that a run creates (docs/spec/simple-container.md#6.4).
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionedKey {
    /// Type of the secrets provider: `aws-kms` or `gcp-kms`.
    pub type_name: &'static str,
    /// Position of the type.
    pub type_span: Span,
    /// Position of `provision`.
    pub span: Span,
    /// `config` with resolved placeholders, without `keyName` and `provision`.
    pub config: Node,
    /// Account that creates and uses the key.
    pub account: CloudAccount,
}

impl SecretsProvider {
    /// Returns the position of the passphrase or key, or of the block that it is missing from.
    pub fn span(&self) -> Span {
        match self {
            Self::Passphrase { span, .. } | Self::Key { span, .. } => *span,
            Self::ProvisionedKey(key) => key.span,
        }
    }

    /// Returns the key that a run creates, if the block asks for one.
    pub fn provisioned_key(&self) -> Option<&ProvisionedKey> {
        match self {
            Self::ProvisionedKey(key) => Some(key),
            Self::Passphrase { .. } | Self::Key { .. } => None,
        }
    }

    /// Returns the passphrase, if the file has one.
    pub fn passphrase(&self) -> Option<&SecretText> {
        match self {
            Self::Passphrase { passphrase, .. } => passphrase.as_ref(),
            Self::Key { .. } | Self::ProvisionedKey(_) => None,
        }
    }

    /// Returns the account that uses the key; `None` without a key.
    pub fn account(&self) -> Option<&CloudAccount> {
        match self {
            Self::Passphrase { .. } => None,
            Self::Key { account, .. } => Some(account),
            Self::ProvisionedKey(key) => Some(&key.account),
        }
    }

    /// Returns the secrets of the block.
    pub fn secrets(&self) -> Vec<&SecretText> {
        match self.account() {
            None => self.passphrase().into_iter().collect(),
            Some(CloudAccount::Environment) => Vec::new(),
            Some(CloudAccount::Aws(account)) => account.access_key.iter().map(|(_, secret)| secret).collect(),
            Some(CloudAccount::Google(credentials)) => vec![credentials],
        }
    }
}

/// Account that uses a key or the store of a state. Its credentials are for that only: no plugin receives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CloudAccount {
    /// Account of the environment, as the cloud's own tools find it.
    #[default]
    Environment,
    /// Account at AWS.
    Aws(AwsAccount),
    /// JSON of the credentials of Google Cloud, such as the key of a service account.
    Google(SecretText),
}

/// Account at AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AwsAccount {
    /// Access key and its secret; `None`: the environment has the credentials.
    pub access_key: Option<(SecretText, SecretText)>,
    /// Region; `None`: the URL or the environment names it.
    pub region: Option<String>,
}

impl AwsAccount {
    /// Parses the JSON of an `aws-token` (docs/spec/simple-container.md#3.2); `None` if that fails, or if one part of the
    /// access key is missing. The reason is not returned, as it would show parts of the secret.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Token {
            access_key: Option<String>,
            secret_access_key: Option<String>,
            region: Option<String>,
        }
        let Token { access_key, secret_access_key, region } = serde_json::from_str(text).ok()?;
        let [key, secret, region] =
            [access_key, secret_access_key, region].map(|text| text.filter(|text| !text.is_empty()));
        if key.is_some() != secret.is_some() {
            return None;
        }
        Some(Self {
            access_key: key.zip(secret).map(|(key, secret)| (SecretText::new(key), SecretText::new(secret))),
            region,
        })
    }
}

/// Environment of a stack.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Name.
    pub name: String,
    /// Position of the name.
    pub span: Span,
    /// Resources in the order of the file.
    pub resources: Vec<Resource>,
    /// Keys of the resources that are switched off (`enabled: false`), in the order of the file: they are not registered.
    pub disabled: Vec<String>,
    /// Resources with `forEach`. Each stands for some of `resources`.
    pub collections: Vec<Collection>,
}

/// Resource declaration.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Key of the resource in its environment.
    pub key: String,
    /// Position of the key.
    pub key_span: Span,
    /// `name`, else the key. Core types derive the names of their resources from it.
    pub name: String,
    /// Plugin or core type that manages the resource.
    pub implementation: ResourceImplementation,
    /// Position of the type.
    pub type_span: Span,
    /// `config`, resolved; an empty mapping if it is missing.
    pub config: Node,
    /// `options`.
    pub options: Options,
}

/// Plugin or core type that manages a resource (docs/spec/simple-container.md#10.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceImplementation {
    /// A plugin.
    Plugin {
        /// The type as written: `package:module:Type` or `package:Type`. It is a token of the package's schema, or a short
        /// form or a former type for which the schema has a token.
        type_text: String,
        /// Index into [`Stack::plugins`].
        plugin: usize,
    },
    /// A core type.
    Core {
        /// Name.
        type_name: String,
    },
}

/// Stack output.
#[derive(Clone, Debug)]
pub struct Output {
    /// Name.
    pub name: String,
    /// Position of the name.
    pub span: Span,
    /// Value; placeholders are resolved, references are not.
    pub value: Node,
}

/// `options` of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Version that the plugin has to have, with its position.
    pub version: Option<(PluginVersion, Span)>,
    /// Keys of resources in the same environment, with their positions.
    pub depends_on: Vec<(String, Span)>,
    /// Rejects deletion of the resource.
    pub protect: Option<bool>,
    /// Deletes the old resource before its replacement is created.
    pub delete_before_replace: Option<bool>,
    /// Removes the resource from the state without deleting it in the provider.
    pub retain_on_delete: Option<bool>,
    /// Property paths in which changes are ignored, with their positions.
    pub ignore_changes: Vec<(String, Span)>,
    /// Property paths in which a change replaces the resource, with their positions.
    pub replace_on_changes: Vec<(String, Span)>,
    /// Value in which a change replaces the resource. It may refer to other resources.
    pub replacement_trigger: Option<Node>,
    /// Keys of resources in the same environment whose replacement replaces the resource, with their positions.
    pub replace_with: Vec<(String, Span)>,
    /// Key of a resource in the same environment whose deletion deletes this one as well, with its position.
    pub deleted_with: Option<(String, Span)>,
    /// Property paths whose changes are not shown.
    pub hide_diffs: Vec<String>,
    /// Outputs that are secret in addition to those of the schema, with their positions.
    pub additional_secret_outputs: Vec<(String, Span)>,
    /// Previous names, types or parents of the resource.
    pub aliases: Vec<AliasOption>,
    /// Provider id of an existing resource to import.
    pub import: Option<String>,
    /// Time limits of create, update, delete and read.
    pub custom_timeouts: Timeouts,
}

/// An alias. An absent field has the current value of the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AliasOption {
    /// A whole URN.
    Urn(Urn),
    /// The fields that differed.
    Spec {
        /// Old name.
        name: Option<String>,
        /// Old type.
        type_token: Option<String>,
        /// Old stack.
        stack: Option<String>,
        /// Old project.
        project: Option<String>,
        /// Old parent.
        parent: AliasParentOption,
    },
}

/// The parent in an alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AliasParentOption {
    /// The parent that the resource has now.
    Same,
    /// `parent`.
    Urn(Urn),
    /// `noParent`: the resource had no parent.
    None,
}
