//! Entry of `plugins` in server.yaml, with resolved placeholders (docs/server-yaml.md#plugins).

use std::time::Duration;

use pulumi_proto::property::PropertyMap;

use super::{Dialect, Parameters, PluginName, PluginSource, Sandbox};

/// Declared plugin.
#[derive(Clone, Debug)]
pub struct PluginConfig {
    /// Name of the plugin, unique in the stack. Also the name of its provider resource.
    pub name: PluginName,
    /// Pulumi package of the plugin and prefix of its resource types. Two plugins of one package are two configurations
    /// of one provider.
    pub package: PluginName,
    /// False if the plugin must not be resolved or started.
    pub enabled: bool,
    /// Source of the plugin.
    pub source: PluginSource,
    /// Declarer of the plugin, by which a policy tells plugins of stacks from packages of core types.
    pub declared_by: DeclaredBy,
    /// True if no stack declares it: the state or a component needs it.
    pub is_undeclared: bool,
    /// Parameters with which it serves `package`; `None`: it serves that by itself.
    pub parameters: Option<Parameters>,
    /// Inputs of its provider resource, with secrets marked.
    pub config: PropertyMap,
    /// Names of environment variables that its process inherits, in addition to those that every plugin inherits.
    pub pass_env: Vec<String>,
    /// Names of environment variables that its process inherits if they are set. `NAME_*` stands for all variables whose
    /// name begins with `NAME_`.
    pub optional_env: Vec<String>,
    /// Secrets and `auth` entries of the stack that its `Initialize` receives.
    pub init_secrets: InitSecrets,
    /// Time limit from the start of the process until it prints its port.
    pub start_timeout: Duration,
    /// Time for which an instance of the plugin is kept.
    pub keep: Keep,
    /// Start protocol of the plugin.
    pub dialect: Dialect,
    /// Calls that are repeated if the plugin asks for it.
    pub retry: Retry,
    /// Restrictions of its process.
    pub sandbox: Sandbox,
}

impl PluginConfig {
    /// Default of [`start_timeout`](Self::start_timeout).
    pub const START_TIMEOUT: Duration = Duration::from_secs(60);

    /// Creates an enabled plugin with the default settings.
    pub fn new(name: PluginName, source: PluginSource) -> Self {
        Self {
            package: name.clone(),
            name,
            enabled: true,
            source,
            declared_by: DeclaredBy::Stack,
            is_undeclared: false,
            parameters: None,
            config: PropertyMap::new(),
            pass_env: Vec::new(),
            optional_env: Vec::new(),
            init_secrets: InitSecrets::default(),
            start_timeout: Self::START_TIMEOUT,
            keep: Keep::default(),
            dialect: Dialect::default(),
            retry: Retry::default(),
            sandbox: Sandbox::default(),
        }
    }

    /// The names of the plugin. A plugin with parameters is published under the name of the package that it serves without them.
    pub fn names(&self) -> PluginNames<'_> {
        let package = self.parameters.as_ref().map_or(&self.package, |parameters| &parameters.base);
        PluginNames { plugin: &self.name, package, accepts_only_program: self.parameters.is_some() }
    }
}

/// Declarer of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeclaredBy {
    /// `plugins` of server.yaml.
    #[default]
    Stack,
    /// The program, for its core types.
    Program {
        /// `owner/name` of the repository on GitHub whose releases have the package, wherever this machine has a copy of it.
        repository: String,
    },
}

/// Names of a plugin, by which the files of its package are named.
#[derive(Clone, Copy, Debug)]
pub struct PluginNames<'p> {
    /// Name of the plugin.
    pub plugin: &'p PluginName,
    /// Pulumi package of the plugin.
    pub package: &'p PluginName,
    /// True if the only program at the top of the package counts where none has one of the names.
    pub accepts_only_program: bool,
}

/// Time for which an instance of a plugin is kept, after a phase of a run has used it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Until the end of the run: the other phases use it, if they configure it alike.
    #[default]
    Run,
    /// Not at all: each phase starts a process. For providers that remember what they have read.
    Never,
}

/// Calls that are repeated if they fail with RetryInfo, by which a plugin asks for it. Check, Diff, Read, Invoke and
/// Configure always are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// True if Create, Update and Delete are repeated, too. States that such a failure of the plugin had no effect.
    pub mutations: bool,
}

/// Selection of the stack's secrets and `auth` entries that a plugin's `Initialize` receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitSecrets {
    /// Secrets and `auth` entries that its `config` refers to, and the `auth` entry with its name.
    #[default]
    Referenced,
    /// All secrets and `auth` entries.
    All,
}
