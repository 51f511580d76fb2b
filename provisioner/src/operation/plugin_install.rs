//! Installation of plugins, and of what they use, without starting them.

use std::cmp::Reverse;
use std::sync::Arc;

use bridge::host::{HostError, HostEvents};
use bridge::install::{InstallError, VerifiedPackage};
use bridge::plugin::{Platform, PluginConfig, PluginName, PluginSource, Sha256Digest};
use config::Stack;
use engine::StopSignals;
use engine::events::EventSink;
use futures_util::future::join_all;

use super::package_request::PackageRequest;
use super::plugin_events::run_event_sink;
use super::plugin_lock::package_requests;
use super::plugins::load_error_in;
use super::{OperationError, PluginSettings, Stacks};

/// Enabled plugin of a stack, or package of its core types, that is installed.
#[derive(Debug)]
pub struct InstalledPlugin {
    /// Declaration of the plugin.
    pub plugin: PluginConfig,
    /// Platform for which it is installed; `None`: that of its declaration.
    pub platform: Option<Platform>,
    /// Verified package.
    pub package: VerifiedPackage,
    /// Digest by which a `checksum` pins the package, or the reason why it cannot be pinned.
    pub digest: Result<Option<Sha256Digest>, InstallError>,
}

/// Result of an installation.
#[derive(Debug)]
pub struct InstallReport {
    /// Plugins that are installed.
    pub installed: Vec<InstalledPlugin>,
    /// Plugins that are not installed for another platform, each with the reason in words.
    pub left_out: Vec<(PluginName, Platform, &'static str)>,
    /// Error of the others, if there are any.
    pub error: Option<OperationError>,
}

impl PluginSettings {
    /// Fetches and verifies all enabled plugins of a stack concurrently, the Terraform providers that their parameters name, and packages
    /// that no plugin declares, without starting them: for some platforms, or for that of each declaration. A plugin that fails does not
    /// stop the other plugins.
    ///
    /// # Errors
    /// [`OperationError::Stopped`] if the user stopped the operation.
    pub async fn install(
        &self,
        stacks: &Stacks,
        stack: &Stack,
        provided: &[PluginConfig],
        platforms: &[Platform],
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<InstallReport, OperationError> {
        let events = run_event_sink(events, &self.loaded);
        let enabled = stack.plugins.iter().map(|declared| &declared.plugin).filter(|plugin| plugin.enabled);
        let (mut plugins, mut left_out) = (Vec::new(), Vec::new());
        for plugin in enabled.chain(provided) {
            if platforms.is_empty() {
                plugins.push((plugin.clone(), None));
            }
            for platform in platforms {
                match reason_to_leave_out(plugin, *platform) {
                    Some(reason) => left_out.push((plugin.name.clone(), *platform, reason)),
                    None => {
                        let source = plugin.source.for_platform(*platform);
                        plugins.push((PluginConfig { source, ..plugin.clone() }, Some(*platform)));
                    }
                }
            }
        }
        // The largest download begins first: the others end while it lasts.
        let mut plugins: Vec<_> = plugins.into_iter().enumerate().collect();
        plugins.sort_by_cached_key(|(_, (plugin, _))| Reverse(self.sources.locked_size(plugin)));
        let install = async |(plugin, platform): (PluginConfig, Option<Platform>)| {
            let package = self.install_one(&plugin, &events).await.map_err(|error| (plugin.name.clone(), error))?;
            let digest = match package.digest() {
                None => self.sources.known_digest(&plugin).await,
                known => Ok(known),
            };
            Ok(InstalledPlugin { plugin, platform, package, digest })
        };
        let mut results = tokio::select! {
            results = join_all(plugins.into_iter().map(async |(place, plugin)| (place, install(plugin).await))) => results,
            // Dropping the future discards incomplete downloads.
            () = signals.stop.cancelled() => return Err(OperationError::Stopped),
        };
        results.sort_by_key(|(place, _)| *place);
        let (mut installed, mut failed) = (Vec::new(), Vec::new());
        for (_, result) in results {
            match result {
                Ok(plugin) => installed.push(plugin),
                Err(failure) => failed.push(failure),
            }
        }
        let requests: Vec<PackageRequest> = package_requests(stacks).collect();
        let error = (!failed.is_empty()).then(|| load_error_in(&[stack], &requests, failed));
        Ok(InstallReport { installed, left_out, error })
    }

    async fn install_one(
        &self,
        plugin: &PluginConfig,
        events: &Arc<dyn HostEvents>,
    ) -> Result<VerifiedPackage, HostError> {
        let package = self.sources.resolve(plugin, events).await?;
        self.sources.fetch_terraform_provider(plugin, &package, events).await?;
        Ok(package)
    }
}

/// Returns why a plugin is not installed for another platform than this one, if it is not.
fn reason_to_leave_out(plugin: &PluginConfig, platform: Platform) -> Option<&'static str> {
    match &plugin.source {
        PluginSource::Local(_) | PluginSource::Installed(_) => Some("its files are on this machine"),
        source if source.build().is_some() && Platform::current() != Some(platform) => {
            Some("it is built on the machine that runs it")
        }
        PluginSource::GithubRelease(_) | PluginSource::Git(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use bridge::plugin::{Build, GithubReleaseSource, LocalSource, WantedVersion};

    use super::*;

    /// Shows: plugins.md#plugins-their-sources-and-their-processes "a plugin that is built, and one whose files are on this machine, are left out"
    #[test]
    fn plugins_whose_files_no_download_decides_are_left_out() {
        let platforms = ["linux-amd64", "darwin-arm64"].map(|name| name.parse::<Platform>().unwrap());
        let other = platforms.into_iter().find(|platform| Platform::current() != Some(*platform)).unwrap();
        let release = GithubReleaseSource::new("acme/reef".into(), WantedVersion::Latest);
        let built = GithubReleaseSource { build: Some(Build::ByRuntime), ..release.clone() };
        for (source, is_installed) in [
            (PluginSource::GithubRelease(release), true),
            (PluginSource::GithubRelease(built), false),
            (PluginSource::Local(LocalSource::new("bin")), false),
        ] {
            let plugin = PluginConfig::new("reef".parse().unwrap(), source);
            assert_eq!(reason_to_leave_out(&plugin, other).is_none(), is_installed, "{plugin:?}");
        }
    }
}
