//! What the files of a stack say once everything is read, inherited and resolved.

use std::collections::BTreeMap;

use pulumi_proto::duration::Timeouts;
use pulumi_proto::urn::Urn;

use crate::diagnostics::Span;
use crate::plugins::PluginDeclaration;
use crate::secret_text::SecretText;
use crate::tree::Node;

/// A stack, ready to be provisioned.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Its name: that of its folder.
    pub name: String,
    /// The Pulumi project.
    pub project: String,
    /// Where the state is and what encrypts its secrets.
    pub provisioner: Provisioner,
    /// All plugins in the order of the file, disabled ones too.
    pub plugins: Vec<PluginDeclaration>,
    /// The environments in the order of the file.
    pub environments: Vec<Environment>,
    /// `outputs`, each with its place; then the templates, by the names that client stacks have for them.
    pub outputs: Vec<Output>,
    /// `variables`.
    pub variables: BTreeMap<String, String>,
}

impl Stack {
    /// All resources with their environments, in the order of the file.
    pub fn resources(&self) -> impl Iterator<Item = (&Environment, &Resource)> {
        let environments = self.environments.iter();
        environments.flat_map(|environment| environment.resources.iter().map(move |resource| (environment, resource)))
    }
}

/// `provisioner`.
#[derive(Clone, Debug)]
pub struct Provisioner {
    /// `organization`, the first part of the names that other stacks have for this one.
    pub organization: Option<String>,
    /// Where the state is.
    pub state_storage: StateStorage,
    /// What encrypts its secrets.
    pub secrets_provider: SecretsProvider,
}

/// Where the state is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateStorage {
    /// `fs`: a URL such as `file:///…`, verbatim.
    FileSystem {
        /// The URL.
        url: String,
        /// Where it was written.
        span: Span,
    },
}

/// What encrypts the secrets of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretsProvider {
    /// `passphrase`.
    Passphrase {
        /// The passphrase; `None`: the environment's.
        passphrase: Option<SecretText>,
        /// Where it was written, or the block it is missing from.
        span: Span,
    },
}

/// One environment.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Its name.
    pub name: String,
    /// Where the name was written.
    pub span: Span,
    /// Its resources in the order of the file.
    pub resources: Vec<Resource>,
}

/// One resource.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its key.
    pub key: String,
    /// Where the key was written.
    pub key_span: Span,
    /// `name`, else the key. Core types name what they register by it.
    pub name: String,
    /// What serves it.
    pub target: Target,
    /// Where the type was written.
    pub type_span: Span,
    /// `config`, resolved; an empty mapping where it is missing.
    pub config: Node,
    /// `options`.
    pub options: Options,
}

/// What serves a resource (simple-container §10.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A plugin.
    Plugin {
        /// The type, `package:module:Type`.
        token: String,
        /// Index into [`Stack::plugins`].
        plugin: usize,
    },
    /// A core type.
    Core {
        /// Its name.
        type_name: String,
    },
}

/// One stack output.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Where the name was written.
    pub span: Span,
    /// Its value, resolved up to references.
    pub value: Node,
}

/// `options` of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Keys of the same environment.
    pub depends_on: Vec<(String, Span)>,
    /// Refuse deletion.
    pub protect: Option<bool>,
    /// Delete before replacing.
    pub delete_before_replace: Option<bool>,
    /// Forget instead of deleting.
    pub retain_on_delete: Option<bool>,
    /// Paths whose changes do not count.
    pub ignore_changes: Vec<String>,
    /// Paths whose changes replace.
    pub replace_on_changes: Vec<String>,
    /// Outputs to keep secret.
    pub additional_secret_outputs: Vec<String>,
    /// Where it was before.
    pub aliases: Vec<AliasOption>,
    /// Id of an existing resource to take over.
    pub import: Option<String>,
    /// How long operations may take.
    pub custom_timeouts: Timeouts,
}

/// An alias as written; what is absent is as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AliasOption {
    /// A whole URN.
    Urn(Urn),
    /// What differed.
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
    /// `noParent`: it had no parent.
    None,
}
