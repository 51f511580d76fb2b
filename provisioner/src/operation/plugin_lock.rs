//! The lock file of a repository, changed on request: what the plugins of stacks mean.

use std::collections::BTreeSet;
use std::sync::Arc;

use bridge::host::{HostError, HostEvents, LockUpdate};
use bridge::install::{LockChange, LockRule, SignerApproval};
use bridge::plugin::{Platform, PluginConfig, ResolvedPackage, WantedVersion};
use config::Stack;
use engine::StopSignals;
use engine::events::EventSink;
use futures_util::future::{join, join_all};

use super::package_request::PackageRequest;
use super::plugin_events::run_event_sink;
use super::plugins::load_error_in;
use super::{OperationError, PluginSettings, Stacks};

/// Request for a change of the lock file.
#[derive(Clone, Debug, Default)]
pub struct LockRequest {
    /// Platforms whose assets are recorded besides that of each declaration.
    pub platforms: Vec<Platform>,
    /// Names of the plugins; all if there is none.
    pub names: Vec<String>,
    /// True if what is recorded is resolved again.
    pub updates: bool,
    /// Tag or commit to which the version is set.
    pub to: Option<String>,
    /// Asked whether a package may have another signer than the recorded one; `None`: it may not.
    pub signer_approval: Option<Arc<dyn SignerApproval>>,
}

/// Plugin, and what the lock file records for it.
#[derive(Debug)]
pub struct LockedPlugin {
    /// Declaration of the plugin.
    pub plugin: PluginConfig,
    /// Record of the declaration.
    pub change: LockChange,
}

/// Result of a change of the lock file.
#[derive(Debug)]
pub struct LockReport {
    /// Plugins that are recorded.
    pub locked: Vec<LockedPlugin>,
    /// Error of the others, if there are any.
    pub error: Option<OperationError>,
}

impl PluginSettings {
    /// Repairs the lock file after a merge. Returns what was decided, in words.
    ///
    /// # Errors
    /// [`OperationError::Lock`].
    pub async fn repair_lock(&self) -> Result<Vec<String>, OperationError> {
        self.sources.lock.repair().await.map_err(OperationError::Lock)
    }

    /// Removes the entries of the lock file that no stack declares, if all stacks were read. Returns their names.
    ///
    /// # Errors
    /// [`OperationError::Lock`].
    pub async fn remove_undeclared_locks(&self) -> Result<Vec<String>, OperationError> {
        self.sources.lock.remove_undeclared().await.map_err(OperationError::Lock)
    }

    /// Returns what the lock file lacks for the requested stacks, and what no stack declares, in words. Asks nobody.
    ///
    /// # Errors
    /// [`OperationError::Packages`]; [`OperationError::Lock`] if the file cannot be used.
    pub fn lock_problems(&self, stacks: &Stacks) -> Result<Vec<String>, OperationError> {
        let mut problems = BTreeSet::new();
        for plugin in self.locked_plugins(stacks)? {
            problems.extend(self.sources.lock_problem(&plugin).map_err(OperationError::Lock)?);
            problems.extend(self.sources.terraform_lock_problem(&plugin).map_err(OperationError::Lock)?);
        }
        let undeclared = self.sources.lock.undeclared().map_err(OperationError::Lock)?;
        problems.extend(undeclared.into_iter().map(|name| format!("{name} is declared by no stack")));
        Ok(problems.into_iter().collect())
    }

    /// Returns the enabled plugins of the requested stacks, and the packages of their core types.
    pub(super) fn locked_plugins(&self, stacks: &Stacks) -> Result<Vec<PluginConfig>, OperationError> {
        let declared = stacks.requested().flat_map(|stack| &stack.plugins).map(|declared| declared.plugin.clone());
        let packages = self.packages.plugins(package_requests(stacks))?;
        Ok(declared.filter(|plugin| plugin.enabled).chain(packages).collect())
    }

    /// Returns whether a request is about a plugin: one that it names; without names, an update is about versions that may move.
    fn is_requested(&self, plugin: &PluginConfig, request: &LockRequest) -> bool {
        if !request.names.is_empty() {
            return request.names.iter().any(|name| name == plugin.name.as_str());
        }
        let recorded = || self.sources.locked(plugin).ok().flatten();
        !request.updates || recorded().is_none_or(|recorded| may_move(plugin, &recorded))
    }

    /// Records what the plugins of stacks mean, and the packages of their core types, in the lock file, unless it must not change. A
    /// plugin that fails does not stop the others. A declaration that several stacks have is in the report once.
    ///
    /// # Errors
    /// [`OperationError::Packages`]; [`OperationError::Stopped`] if the user stopped the operation.
    pub async fn lock(
        &self,
        stacks: &Stacks,
        request: &LockRequest,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<LockReport, OperationError> {
        let mut plugins = self.locked_plugins(stacks)?;
        let mut seen = BTreeSet::new();
        plugins.retain(|plugin| {
            let key = self.sources.lock_key(plugin).map(|key| format!("{key:?}"));
            self.is_requested(plugin, request) && key.is_some_and(|key| seen.insert(key))
        });
        let mut providers = self.locked_plugins(stacks)?;
        providers.retain(|plugin| {
            let is_named = request.names.is_empty() || request.names.iter().any(|name| name == plugin.name.as_str());
            let key = self.sources.terraform_lock_key(plugin).map(|key| format!("{key:?}"));
            is_named && key.is_some_and(|key| seen.insert(key))
        });
        let events = run_event_sink(events, &self.loaded);
        let lock_provider = async |plugin: PluginConfig| {
            let (updates, accepts_replaced) = (request.updates, !request.names.is_empty());
            let signer_approval = request.signer_approval.clone();
            let update = LockUpdate { updates, accepts_replaced, to: None, signer_approval };
            let change = self.sources.lock_terraform_provider(&plugin, &update, &events).await;
            match change {
                Ok(change) => change.map(|change| Ok(LockedPlugin { plugin, change })),
                Err(error) => Some(Err((plugin.name, error))),
            }
        };
        let lock = async |plugin: PluginConfig| {
            // What is accepted has to be named.
            let (updates, accepts_replaced, to) = (request.updates, !request.names.is_empty(), request.to.clone());
            let signer_approval = request.signer_approval.clone();
            let update = LockUpdate { updates, accepts_replaced, to, signer_approval };
            let change = self.sources.lock(&plugin, &update, &events).await;
            let change = match change {
                Ok(Some(change)) => self.lock_platforms(&plugin, change, request, &events).await,
                Ok(None) => return None,
                Err(error) => Err(error),
            };
            Some(
                change
                    .map(|change| LockedPlugin { plugin: plugin.clone(), change })
                    .map_err(|error| (plugin.name, error)),
            )
        };
        let (plugins, providers) = (plugins.into_iter().map(lock), providers.into_iter().map(lock_provider));
        let (all, of_providers) = tokio::select! {
            all = join(join_all(plugins), join_all(providers)) => all,
            () = signals.stop.cancelled() => return Err(OperationError::Stopped),
        };
        let (mut locked, mut failed) = (Vec::new(), Vec::new());
        for result in all.into_iter().chain(of_providers).flatten() {
            match result {
                Ok(plugin) => locked.push(plugin),
                Err(failure) => failed.push(failure),
            }
        }
        let requested: Vec<&Stack> = stacks.requested().map(AsRef::as_ref).collect();
        let packages: Vec<PackageRequest> = package_requests(stacks).collect();
        let error = (!failed.is_empty()).then(|| load_error_in(&requested, &packages, failed));
        Ok(LockReport { locked, error })
    }

    /// Returns what a plugin that no stack declares would mean now. Changes nothing.
    ///
    /// # Errors
    /// [`OperationError::Plugins`]; [`OperationError::Stopped`] if the user stopped the operation.
    pub async fn resolve_new(
        &self,
        plugin: &PluginConfig,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<Option<ResolvedPackage>, OperationError> {
        let events = run_event_sink(events, &self.loaded);
        let sources = self.clone().with_lock_rule(LockRule::Locked).sources;
        let update = LockUpdate { updates: true, ..LockUpdate::default() };
        let change = tokio::select! {
            change = sources.lock(plugin, &update, &events) => change,
            () = signals.stop.cancelled() => return Err(OperationError::Stopped),
        };
        let change = change.map_err(|error| OperationError::Plugins { error, found: Vec::new() })?;
        Ok(change.map(|change| change.after))
    }

    /// Records the assets of further platforms.
    async fn lock_platforms(
        &self,
        plugin: &PluginConfig,
        mut change: LockChange,
        request: &LockRequest,
        events: &Arc<dyn HostEvents>,
    ) -> Result<LockChange, HostError> {
        for platform in &request.platforms {
            let for_platform = PluginConfig { source: plugin.source.for_platform(*platform), ..plugin.clone() };
            let of_platform = self.sources.lock(&for_platform, &LockUpdate::default(), events).await?;
            if let Some(of_platform) = of_platform {
                let is_change = change.is_change || of_platform.is_change;
                change = LockChange { is_change, before: change.before, ..of_platform };
            }
        }
        Ok(change)
    }
}

/// Returns the packages of core types that stacks and the programs of their keys need, each as often as it is needed.
pub(super) fn package_requests(stacks: &Stacks) -> impl Iterator<Item = PackageRequest> {
    let programs = [stacks.programs(), stacks.key_programs()].concat();
    let requests: Vec<_> = programs.iter().flat_map(|program| program.undeclared_packages()).collect();
    requests.into_iter().map(PackageRequest::from)
}

/// Returns whether the version of a plugin may move from what is recorded: whether it is a range, the latest release, or a branch.
fn may_move(plugin: &PluginConfig, recorded: &ResolvedPackage) -> bool {
    match plugin.source.wanted() {
        None => false,
        Some(WantedVersion::Range(_) | WantedVersion::Latest) => true,
        Some(WantedVersion::Named(name)) => recorded.tag().is_none() && !recorded.revision().starts_with(name.as_str()),
    }
}
