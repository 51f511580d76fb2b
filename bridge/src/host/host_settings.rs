//! Settings of the plugins of a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::attached_plugin::AttachedPlugin;
use super::events::{PluginEvents, PluginWork, WorkInProgress};
use super::load_error::{LoadError, failed_to_load};
use super::plugin_pool::PluginPool;
use super::{HostError, HostEvents, ProviderRequest};
use crate::install::{
    FetchEvent, FetchEvents, InstallError, Installer, LockChange, LockKey, MirroredAsset, PackageLock, PackageSource,
    SignerApproval, TerraformProviderFolder, VerifiedPackage,
};
use crate::plugin::{
    GitSource, GithubReleaseSource, InstalledSource, Keep, LocalSource, Platform, PluginConfig, PluginName,
    PluginPolicy, PluginSource, PluginUse, PluginVersion, ResolvedPackage, Sha256Digest, TerraformProviderSource,
    WantedVersion,
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
    pub local: Option<Arc<dyn PackageSource<Declared = LocalSource, Package = VerifiedPackage>>>,
    /// Source of the kind `github-release`.
    pub github_release: Option<Arc<dyn PackageSource<Declared = GithubReleaseSource, Package = VerifiedPackage>>>,
    /// Source of the kind `git`.
    pub git: Option<Arc<dyn PackageSource<Declared = GitSource, Package = VerifiedPackage>>>,
    /// Source of the kind `installed`.
    pub installed: Option<Arc<dyn PackageSource<Declared = InstalledSource, Package = VerifiedPackage>>>,
    /// Source of the Terraform providers that parameters name.
    pub terraform:
        Option<Arc<dyn PackageSource<Declared = TerraformProviderSource, Package = TerraformProviderFolder>>>,
    /// Rules about the plugins that may be used.
    pub policy: Arc<PluginPolicy>,
    /// Local builds that take the place of declared plugins: absolute paths, by the name of the plugin.
    pub overrides: BTreeMap<PluginName, PathBuf>,
    /// Lock file, which decides between a declaration and its package.
    pub lock: PackageLock,
    /// Folder of the cache.
    pub cache: PathBuf,
}

impl Sources {
    /// Checks that the policy allows the use of a plugin.
    ///
    /// # Errors
    /// [`HostError`] with a [`PolicyRefusal`](crate::plugin::PolicyRefusal) as its cause.
    pub fn check_policy(&self, plugin: &PluginConfig) -> Result<(), HostError> {
        let is_override = self.overrides.contains_key(&plugin.name);
        self.check_use(plugin, if is_override { PluginUse::Override } else { self.package_use(plugin) })
    }

    fn package_use(&self, plugin: &PluginConfig) -> PluginUse {
        match self.locked(plugin) {
            Ok(Some(_)) => PluginUse::Locked,
            // That the lock file cannot be read is said where it is needed.
            Ok(None) | Err(_) => PluginUse::Package,
        }
    }

    /// Checks that the policy allows a use of a plugin.
    pub(super) fn check_use(&self, plugin: &PluginConfig, usage: PluginUse) -> Result<(), HostError> {
        self.policy.check(plugin, usage).map_err(|refusal| failed_to_load(plugin, LoadError::Policy(refusal)))
    }

    /// Resolves a plugin to its package, if the policy allows its use: finds or fetches the files, and verifies them. Emits [`HostEvent::Fetch`](super::HostEvent::Fetch)
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
        self.check_policy(plugin)?;
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
            PluginSource::Installed(source) => {
                self.installed.as_ref().map(|installed| installed.known_digest(names, source))
            }
        };
        match known {
            Some(known) => known.await,
            None => Ok(None),
        }
    }

    /// Returns the declared source of a plugin as the lock file knows it; `None` for one that is not locked, or whose address cannot be used.
    pub fn lock_key(&self, plugin: &PluginConfig) -> Option<LockKey> {
        let names = plugin.names();
        let key = match &plugin.source {
            PluginSource::Local(source) => self.local.as_ref()?.lock_key(names, source),
            PluginSource::GithubRelease(source) => self.github_release.as_ref()?.lock_key(names, source),
            PluginSource::Git(source) => self.git.as_ref()?.lock_key(names, source),
            PluginSource::Installed(_) => return None,
        };
        key.ok().flatten()
    }

    /// Records what the declaration of a plugin means in the lock file, unless the file must not change: see [`Installer::lock`].
    ///
    /// # Errors
    /// [`HostError`]; the lock file is as it was.
    pub async fn lock(
        &self,
        plugin: &PluginConfig,
        update: &LockUpdate,
        events: &Arc<dyn HostEvents>,
    ) -> Result<Option<LockChange>, HostError> {
        self.check_use(plugin, if update.updates { PluginUse::Package } else { self.package_use(plugin) })?;
        let LockUpdate { updates, accepts_replaced, to, signer_approval } = update;
        let (updates, accepts_replaced, to) = (*updates, *accepts_replaced, to.as_deref());
        let _working = WorkInProgress::begin(plugin.name.as_str(), PluginWork::Preparing, |event| events.emit(event));
        let events = PluginEvents { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        let (lock, cache) = (self.lock.clone(), self.cache.clone());
        let build_refusal = self.policy.check_build(plugin).err().map(Box::new);
        let signer_approval = signer_approval.clone();
        let installer = Installer {
            updates,
            accepts_replaced,
            signer_approval,
            build_refusal,
            lock,
            cache,
            ..Installer::new(&events)
        };
        // What the latest release and a branch are, only their place knows: any version may be chosen.
        let is_open = |wanted: &WantedVersion| match (wanted, &plugin.source) {
            (WantedVersion::Latest, _) => true,
            (WantedVersion::Named(_), PluginSource::Git(_)) => wanted.stated().is_none(),
            _ => false,
        };
        if let (Some(to), Some(wanted)) = (to, plugin.source.wanted())
            && !is_open(wanted)
            && !wanted.accepts(to)
        {
            let error = InstallError::DoesNotFit { to: to.to_owned(), wanted: wanted.to_string() };
            return Err(failed_to_load(plugin, LoadError::Resolve(error)));
        }
        let (names, named) = (plugin.names(), to.map(|to| WantedVersion::Named(to.to_owned())));
        let changed = match (&plugin.source, &self.github_release, &self.git) {
            (PluginSource::GithubRelease(source), Some(releases), _) => {
                let version = named.unwrap_or_else(|| source.version.clone());
                let source = self.with_policy_age(source);
                let resolved_as = GithubReleaseSource { version, ..source.clone() };
                installer.lock(releases.as_ref(), names, &source, &resolved_as).await
            }
            (PluginSource::Git(source), _, Some(git)) => {
                let version = named.unwrap_or_else(|| source.version.clone());
                installer.lock(git.as_ref(), names, source, &GitSource { version, ..source.clone() }).await
            }
            _ => Ok(None),
        };
        changed.map_err(|error| failed_to_load(plugin, LoadError::Resolve(error)))
    }

    /// Copies what the lock file records for a plugin into a folder of plugins, for some platforms, or for all that are recorded. Returns
    /// `None` if it records nothing, or if packages of the kind of its source cannot be copied.
    ///
    /// # Errors
    /// [`HostError`]; files that are complete stay.
    pub async fn mirror(
        &self,
        plugin: &PluginConfig,
        platforms: &[Platform],
        folder: &Path,
        events: &Arc<dyn HostEvents>,
    ) -> Result<Option<Vec<MirroredAsset>>, HostError> {
        self.check_use(plugin, self.package_use(plugin))?;
        let _working = WorkInProgress::begin(plugin.name.as_str(), PluginWork::Preparing, |event| events.emit(event));
        let events = PluginEvents { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        let mirrored = async {
            let Some(package) = self.locked(plugin)? else { return Ok(None) };
            let names = plugin.names();
            match (&plugin.source, &self.github_release, &self.git) {
                (PluginSource::GithubRelease(source), Some(releases), _) => {
                    releases.mirror(names, source, package, platforms, folder, &events).await
                }
                (PluginSource::Git(source), _, Some(git)) => {
                    git.mirror(names, source, package, platforms, folder, &events).await
                }
                _ => Ok(None),
            }
        };
        mirrored.await.map_err(|error| failed_to_load(plugin, LoadError::Resolve(error)))
    }

    /// Returns what the lock file lacks for a plugin, in words; `None` if nothing. Asks nobody.
    ///
    /// # Errors
    /// [`InstallError::LockFile`].
    pub fn lock_problem(&self, plugin: &PluginConfig) -> Result<Option<String>, InstallError> {
        let Some(key) = self.lock_key(plugin) else { return Ok(None) };
        let names = plugin.names();
        self.problem_of(&key, |package| match (&plugin.source, &self.github_release, &self.git) {
            (PluginSource::GithubRelease(source), Some(releases), _) => releases.is_complete(names, source, package),
            (PluginSource::Git(source), _, Some(git)) => git.is_complete(names, source, package),
            _ => true,
        })
    }

    /// Returns what the lock file lacks for a declaration, in words. `is_complete` tells whether a recorded package has all that is needed.
    pub(super) fn problem_of(
        &self,
        key: &LockKey,
        is_complete: impl FnOnce(&ResolvedPackage) -> bool,
    ) -> Result<Option<String>, InstallError> {
        let LockKey { source, wanted, .. } = key;
        let Some((package, is_exact)) = self.lock.find_exact(key)? else {
            return Ok(Some(format!("{source} {wanted} is missing")));
        };
        Ok(match (is_exact, is_complete(&package)) {
            (true, true) => None,
            (_, false) => Some(format!("{source} {wanted} has no digest for this platform")),
            (false, true) => {
                Some(format!("{source} {wanted} is not recorded by this version; {} fits it", package.revision()))
            }
        })
    }

    /// Returns what the lock file records for a plugin, if it does. Asks nobody.
    ///
    /// # Errors
    /// [`InstallError::LockFile`].
    pub fn locked(&self, plugin: &PluginConfig) -> Result<Option<ResolvedPackage>, InstallError> {
        match self.lock_key(plugin) {
            Some(key) => self.lock.find(&key),
            None => Ok(None),
        }
    }

    /// Returns the length of what the lock file records for a plugin on this machine, in bytes; 0 if it is not known.
    pub fn locked_size(&self, plugin: &PluginConfig) -> u64 {
        let Ok(Some(ResolvedPackage::Release(release))) = self.locked(plugin) else { return 0 };
        let platform = plugin.source.platform().or(Platform::current());
        platform.and_then(|platform| release.assets.get(&platform)?.size).unwrap_or(0)
    }

    /// Returns the version that the lock file records for a plugin, if it does.
    pub fn locked_version(&self, plugin: &PluginConfig) -> Option<PluginVersion> {
        let locked = self.locked(plugin).ok()??;
        match (plugin.source.wanted()?, locked.tag()?) {
            (WantedVersion::Range(range), tag) => range.version_of(tag),
            (_, tag) => tag.parse().ok(),
        }
    }

    /// Returns the source of a release with the age that the policy demands.
    fn with_policy_age(&self, source: &GithubReleaseSource) -> GithubReleaseSource {
        GithubReleaseSource { policy_age: self.policy.release_age(), ..source.clone() }
    }

    async fn resolve_package(
        &self,
        plugin: &PluginConfig,
        events: &dyn FetchEvents,
    ) -> Result<VerifiedPackage, InstallError> {
        let names = plugin.names();
        let (lock, cache) = (self.lock.clone(), self.cache.clone());
        let build_refusal = self.policy.check_build(plugin).err().map(Box::new);
        let is_undeclared = plugin.is_undeclared;
        let installer = Installer { lock, cache, is_undeclared, build_refusal, ..Installer::new(events) };
        let unsupported = || InstallError::Unsupported { kind: plugin.source.kind() };
        if let Some(path) = self.overrides.get(&plugin.name) {
            let text = format!("the local build {} is used in place of the declared plugin", path.display());
            events.emit(FetchEvent::Warning(text));
            let packages = self.local.as_deref().ok_or_else(unsupported)?;
            let local_build = LocalSource::new(path.clone());
            return installer.install(packages, names, &local_build).await;
        }
        match &plugin.source {
            PluginSource::Local(source) => {
                let packages = self.local.as_deref().ok_or_else(unsupported)?;
                installer.install(packages, names, source).await
            }
            PluginSource::GithubRelease(source) => {
                let packages = self.github_release.as_deref().ok_or_else(unsupported)?;
                installer.install(packages, names, &self.with_policy_age(source)).await
            }
            PluginSource::Git(source) => {
                let packages = self.git.as_deref().ok_or_else(unsupported)?;
                installer.install(packages, names, source).await
            }
            PluginSource::Installed(source) => {
                let packages = self.installed.as_deref().ok_or_else(unsupported)?;
                installer.install(packages, names, source).await
            }
        }
    }
}

/// Change of what the lock file records for a plugin.
#[derive(Clone, Debug, Default)]
pub struct LockUpdate {
    /// True if what is recorded is resolved again.
    pub updates: bool,
    /// True if another content of the same tag may be recorded.
    pub accepts_replaced: bool,
    /// Tag or commit to which the version is set.
    pub to: Option<String>,
    /// Asked whether a package may have another signer than the recorded one; `None`: it may not.
    pub signer_approval: Option<Arc<dyn SignerApproval>>,
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
    /// Finder of packages that are needed and that no stack declares; `None`: they are refused.
    pub undeclared: Option<Arc<dyn UndeclaredPackages>>,
}

/// Finder of packages that components or the state need, and that no stack declares.
#[async_trait]
pub trait UndeclaredPackages: Send + Sync {
    /// Returns the plugin of a package that no plugin serves, if it may be used. Tells where it is from, or why it is not used.
    async fn find(&self, request: &ProviderRequest) -> Option<DeclaredPlugin>;

    /// Returns whether a Terraform provider that is not placed may be fetched for the bridge. Tells why it is needed, or why it is refused.
    async fn may_place(&self, bridge: &PluginConfig, provider: &TerraformProviderSource) -> bool;
}

impl HostSettings {
    /// Returns the process that a plugin is attached to, by its name or that of its package, with parameters or without them.
    pub(super) fn attached_to(&self, plugin: &PluginConfig) -> Option<&AttachedPlugin> {
        let base = plugin.parameters.as_ref().map(|parameters| &parameters.base);
        let names = [Some(&plugin.name), Some(&plugin.package), base];
        names.into_iter().flatten().find_map(|name| self.attached.get(name.as_str()))
    }
}
