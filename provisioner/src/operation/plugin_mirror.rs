//! Copies of the locked plugins in a folder of plugins: for machines without network, and for static file servers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bridge::install::MirroredAsset;
use bridge::plugin::{GithubReleaseSource, Platform, PluginConfig, PluginSource, WantedVersion};
use config::Stack;
use engine::StopSignals;
use engine::events::EventSink;
use futures_util::future::{join, join_all};

use super::package_request::PackageRequest;
use super::plugin_events::run_event_sink;
use super::plugin_lock::package_requests;
use super::plugins::load_error_in;
use super::{OperationError, PluginSettings, Stacks};

/// Plugin, and the copies of its assets.
#[derive(Debug)]
pub struct MirroredPlugin {
    /// Declaration of the plugin.
    pub plugin: PluginConfig,
    /// Copies; `None` if the lock file does not record the plugin, or if plugins of its kind are not copied.
    pub assets: Option<Vec<MirroredAsset>>,
}

/// Result of copying the locked plugins.
#[derive(Debug)]
pub struct MirrorReport {
    /// Plugins that were copied, or that need no copy.
    pub mirrored: Vec<MirroredPlugin>,
    /// Error of the others, if there are any.
    pub error: Option<OperationError>,
}

impl PluginSettings {
    /// Returns the plugins that the lock file has for the state and for components.
    fn undeclared_plugins(&self) -> Result<Vec<PluginConfig>, OperationError> {
        let releases = self.sources.lock.undeclared_releases().map_err(OperationError::Lock)?;
        let plugin = |(place, tag, package): (String, String, Option<String>)| {
            let repository = match place.strip_prefix("github.com/") {
                Some(repository) => repository.to_owned(),
                None => format!("https://{place}"),
            };
            let name = package.as_deref().or_else(|| place.rsplit('/').next()).and_then(|name| name.parse().ok())?;
            let source = GithubReleaseSource::new(repository, WantedVersion::Named(tag));
            Some(PluginConfig::new(name, PluginSource::GithubRelease(source)))
        };
        Ok(releases.into_iter().filter_map(plugin).collect())
    }

    /// Copies what the lock file records for the plugins of stacks, for the packages of their core types, and for the state and components,
    /// into a folder of plugins: for some platforms, or for all that are recorded. A plugin that fails does not stop the others.
    ///
    /// # Errors
    /// [`OperationError::Packages`]; [`OperationError::Stopped`] if the user stopped the operation.
    pub async fn mirror(
        &self,
        stacks: &Stacks,
        platforms: &[Platform],
        folder: &Path,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<MirrorReport, OperationError> {
        let mut plugins = self.locked_plugins(stacks)?;
        plugins.extend(self.undeclared_plugins()?);
        let mut providers = plugins.clone();
        let mut seen = BTreeSet::new();
        plugins.retain(|plugin| {
            let key = self.sources.lock_key(plugin).map(|key| format!("{key:?}"));
            seen.insert(key.unwrap_or_else(|| plugin.name.to_string()))
        });
        providers.retain(|plugin| {
            let key = self.sources.terraform_lock_key(plugin).map(|key| format!("{key:?}"));
            key.is_some_and(|key| seen.insert(key))
        });
        let events = run_event_sink(events, &self.loaded);
        let mirror = async |plugin: PluginConfig| {
            let copied = self.sources.mirror(&plugin, platforms, folder, &events).await;
            copied.map(|assets| MirroredPlugin { plugin: plugin.clone(), assets }).map_err(|error| (plugin.name, error))
        };
        let mirror_provider = async |plugin: PluginConfig| {
            let copied = self.sources.mirror_terraform_provider(&plugin, platforms, folder, &events).await;
            copied.map(|assets| MirroredPlugin { plugin: plugin.clone(), assets }).map_err(|error| (plugin.name, error))
        };
        let (plugins, providers) = (plugins.into_iter().map(mirror), providers.into_iter().map(mirror_provider));
        let (all, of_providers) = tokio::select! {
            all = join(join_all(plugins), join_all(providers)) => all,
            () = signals.stop.cancelled() => return Err(OperationError::Stopped),
        };
        let (mut mirrored, mut failed) = (Vec::new(), Vec::new());
        for result in all.into_iter().chain(of_providers) {
            match result {
                Ok(plugin) => mirrored.push(plugin),
                Err(failure) => failed.push(failure),
            }
        }
        let requested: Vec<&Stack> = stacks.requested().map(AsRef::as_ref).collect();
        let packages: Vec<PackageRequest> = package_requests(stacks).collect();
        let error = (!failed.is_empty()).then(|| load_error_in(&requested, &packages, failed));
        Ok(MirrorReport { mirrored, error })
    }
}
