//! Settings of the plugins of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::attached_plugin::AttachedPlugin;
use super::events::{PluginEvents, PluginWork, WorkInProgress};
use super::load_error::{LoadError, failed_to_load};
use super::plugin_pool::PluginPool;
use super::{HostError, HostEvents};
use crate::install::{FetchEvents, InstallError, PackageSource, VerifiedPackage};
use crate::plugin::{
    GitSource, GithubReleaseSource, Keep, LocalSource, PluginConfig, PluginName, PluginSource, Sha256Digest,
};
use crate::process::{HostEnvironment, Spawner};
use crate::provider::grpc::{Limits, PluginInit};

/// Plugin declared by a stack.
#[derive(Clone, Debug)]
pub struct DeclaredPlugin {
    /// Entry of the plugin in `plugins`.
    pub config: PluginConfig,
    /// Input of Initialize, which is called directly after Configure if the plugin serves `simplecontainer.plugin.v1`.
    pub init: PluginInit,
    /// True if provider resources with equal inputs share an instance. Set it only for a provider that pays no attention to
    /// the URN and the id in Configure, and keeps nothing between calls that differs from one provider resource to another.
    pub shares_equal_configurations: bool,
}

impl DeclaredPlugin {
    /// Returns whether provider resources with equal inputs share an instance.
    pub(super) fn shares_instances(&self) -> bool {
        self.shares_equal_configurations && self.config.keep == Keep::Run
    }
}

/// Plugin to check with [`PluginHost::check`](super::PluginHost::check).
#[derive(Clone, Debug)]
pub struct CheckedPlugin {
    /// Entry of the plugin in `plugins`.
    pub config: PluginConfig,
    /// True if the types of its package are needed. Its schema may be missing or invalid otherwise.
    pub needs_types: bool,
}

/// Package sources by kind. A kind without a source is not supported.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Source of the kind `local`.
    pub local: Option<Arc<dyn PackageSource<Declared = LocalSource>>>,
    /// Source of the kind `github-release`.
    pub github_release: Option<Arc<dyn PackageSource<Declared = GithubReleaseSource>>>,
    /// Source of the kind `git`.
    pub git: Option<Arc<dyn PackageSource<Declared = GitSource>>>,
}

impl Sources {
    /// Resolves a plugin to its package: finds or fetches the files, and verifies them. Emits [`HostEvent::Fetch`](super::HostEvent::Fetch)
    /// meanwhile.
    ///
    /// # Errors
    /// [`HostError`]; the plugin has not been executed.
    ///
    /// # Cancellation
    /// No incomplete package is left.
    pub async fn resolve(
        &self,
        plugin: &PluginConfig,
        events: &Arc<dyn HostEvents>,
    ) -> Result<VerifiedPackage, HostError> {
        let _working = WorkInProgress::begin(plugin.name.as_str(), PluginWork::Preparing, |event| events.emit(event));
        let events = PluginEvents { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        self.resolve_package(plugin, &events).await.map_err(|error| failed_to_load(plugin, LoadError::Resolve(error)))
    }

    /// Returns the digest by which a `checksum` would pin a plugin, as far as its package is on this machine: see
    /// [`PackageSource::known_digest`].
    ///
    /// # Errors
    /// [`InstallError`].
    pub async fn known_digest(&self, plugin: &PluginConfig) -> Result<Option<Sha256Digest>, InstallError> {
        let names = plugin.names();
        let known = match &plugin.source {
            PluginSource::Local(source) => self.local.as_ref().map(|local| local.known_digest(names, source)),
            PluginSource::GithubRelease(source) => {
                self.github_release.as_ref().map(|releases| releases.known_digest(names, source))
            }
            PluginSource::Git(source) => self.git.as_ref().map(|git| git.known_digest(names, source)),
        };
        match known {
            Some(known) => known.await,
            None => Ok(None),
        }
    }

    async fn resolve_package(
        &self,
        plugin: &PluginConfig,
        events: &dyn FetchEvents,
    ) -> Result<VerifiedPackage, InstallError> {
        let names = plugin.names();
        let resolved = match &plugin.source {
            PluginSource::Local(source) => self.local.as_ref().map(|local| local.resolve(names, source, events)),
            PluginSource::GithubRelease(source) => {
                self.github_release.as_ref().map(|releases| releases.resolve(names, source, events))
            }
            PluginSource::Git(source) => self.git.as_ref().map(|git| git.resolve(names, source, events)),
        };
        match resolved {
            Some(resolved) => resolved.await,
            None => Err(InstallError::Unsupported { kind: plugin.source.kind() }),
        }
    }
}

/// Settings of the plugins of a run.
#[derive(Clone)]
pub struct HostSettings {
    /// Name of the project, passed to plugins in their environment.
    pub project: String,
    /// Working directory of the plugins: the root of the repository.
    pub directory: PathBuf,
    /// Patterns of files with secrets, from that folder, which plugins in the sandbox `strict` read only if they are declared. See
    /// [`HiddenFiles`](crate::process::HiddenFiles).
    pub secret_files: Vec<PathBuf>,
    /// Environment from which the variables of the plugins are selected.
    pub environment: HostEnvironment,
    /// Spawner of the plugin processes.
    pub spawner: Spawner,
    /// Sources of the packages.
    pub sources: Sources,
    /// Limits on calls to plugins.
    pub limits: Limits,
    /// Signal after which no plugin is waited for: the plugins are interrupted, and killed soon.
    pub abort: CancellationToken,
    /// Folder of the type cache; `None`: schemas are requested again by each run.
    pub type_cache: Option<PathBuf>,
    /// Number of instances of each plugin that are started at the beginning of the run. It is two for a run that has a configured
    /// instance and checks a configuration beside it, which needs an instance that is not configured.
    pub first_instances: usize,
    /// Receiver of the events of the plugins.
    pub events: Arc<dyn HostEvents>,
    /// Pool of the instances of plugins.
    pub pool: PluginPool,
    /// Plugins that run already, by name of the plugin or of its package.
    pub attached: BTreeMap<String, AttachedPlugin>,
}

impl HostSettings {
    /// Returns the process that a plugin is attached to, by its name or that of its package.
    pub(super) fn attached_to(&self, plugin: &PluginConfig) -> Option<&AttachedPlugin> {
        let of_name = |name: &PluginName| self.attached.get(name.as_str());
        of_name(&plugin.name).or_else(|| of_name(&plugin.package))
    }
}
