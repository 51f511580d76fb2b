//! Packages of core types that no plugin declares: found on this machine, or downloaded from their releases.
//!
//! The cache of packages comes first, then the folder of plugins of the `pulumi` command line, which is only read, then the
//! release on GitHub, whose digest is verified. Excluded: the start of the packages; plugins of stacks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bridge::error::{Hint as _, chain};
use bridge::fs::TrustError;
use bridge::host::{HostEvent, HostEvents};
use bridge::install::{
    CacheSettings, FetchEvent, FetchEvents, GithubReleases, InstallError, Installer, PackageLock, PackageSource as _,
    find_in_pulumi_folder,
};
use bridge::message_text::MessageText;
use bridge::plugin::{
    DeclaredBy, GithubReleaseSource, LocalSource, Platform, PluginConfig, PluginPolicy, PluginSource, PluginUse,
    PluginValueError, ResolvedPackage, Sha256Digest, WantedVersion,
};
use engine::StopSignals;
use engine::events::{Event, EventSink, Message, Severity};
use futures_util::future::join_all;
use tokio::sync::Mutex;

use crate::program::Program;
use crate::registry::packages::CorePackage;
use config::diagnostics::{Diagnostic, finish};

use super::package_request::{PackageError, PackageFolders, PackageRequest};
use super::plugin_events::{LoadedPlugins, run_event_sink};
use super::undeclared_plugin::UndeclaredDownload;
use super::{Approval, Stacks};

/// Variable with the base URL of a server with the API of GitHub that has the releases.
const API_URL: &str = "SC_PACKAGES_API_URL";

/// Decides about downloads of packages.
#[async_trait]
pub trait DownloadApproval: Send + Sync {
    /// Returns whether these packages may be downloaded.
    async fn approve(&self, downloads: &[PackageDownload]) -> Approval;

    /// Returns whether what no stack declares may be fetched and run.
    async fn approve_undeclared(&self, download: &UndeclaredDownload) -> Approval;
}

/// Package that is not on this machine.
#[derive(Clone, Copy, Debug)]
pub struct PackageDownload {
    /// The package.
    pub package: CorePackage,
    /// Size of the download in bytes.
    pub bytes: u64,
}

/// Place that a package is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageLocation {
    /// A process that runs already.
    Attached,
    /// The cache of packages, which has the download with this digest.
    Cache(Sha256Digest),
    /// Folder in the folder of plugins of the `pulumi` command line.
    PulumiFolder(PathBuf),
    /// The release on GitHub: the package is not on this machine.
    Release,
}

impl PackageLocation {
    /// Returns the first place that has a package.
    fn first(is_attached: bool, cached: Option<Sha256Digest>, pulumi_folder: Option<PathBuf>) -> Self {
        match (is_attached, cached, pulumi_folder) {
            (true, ..) => Self::Attached,
            (false, Some(digest), _) => Self::Cache(digest),
            (false, None, Some(folder)) => Self::PulumiFolder(folder),
            (false, None, None) => Self::Release,
        }
    }
}

/// Package with the place that it is taken from.
#[derive(Clone, Debug)]
pub struct LocatedPackage {
    /// The package.
    pub package: CorePackage,
    /// Plugin of the package, with the source that has it.
    pub plugin: PluginConfig,
    /// Release of the package, from which it is downloaded if no place on this machine has it.
    release: GithubReleaseSource,
    /// Place of the package.
    pub location: PackageLocation,
    /// Reason why the folder of the `pulumi` command line is not used although it has the package.
    pub refused: Option<String>,
}

/// Reason why packages are not provided.
#[derive(Debug)]
pub(super) enum CorePackagesError {
    /// Packages cannot be installed.
    NotInstalled(Vec<Diagnostic>),
    /// The user declined the download of these packages.
    Declined(Vec<CorePackage>),
    /// The user stopped the operation.
    Stopped,
}

/// Packages of core types of a command. Clones share what was found and approved.
#[derive(Clone)]
pub struct CorePackages {
    releases: GithubReleases,
    cache: PathBuf,
    lock: PackageLock,
    policy: Arc<PluginPolicy>,
    /// Folder of plugins of the `pulumi` command line.
    pulumi_plugins: Option<PathBuf>,
    api_url: Option<String>,
    /// Decides about downloads; `None`: packages are downloaded.
    pub approval: Option<Arc<dyn DownloadApproval>>,
    provided: Arc<Mutex<Provided>>,
}

/// Packages that a command has located or installed.
#[derive(Debug, Default)]
struct Provided {
    packages: BTreeMap<&'static str, LocatedPackage>,
    is_approved: bool,
}

/// Returns the folder in which the `pulumi` command line installs plugins.
pub(super) fn pulumi_plugins(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let variable = |name: &str| variables.get(name).filter(|value| !value.is_empty());
    let home = variable("PULUMI_HOME").map(PathBuf::from);
    let home = home.or_else(|| variable("HOME").map(|home| Path::new(home).join(".pulumi")));
    home.map(|home| home.join("plugins"))
}

impl CorePackages {
    /// Returns the packages of core types for stacks, in the environment of their caller.
    pub(super) fn new(stacks: &Stacks, settings: CacheSettings) -> Self {
        let variable = |name: &str| stacks.process_context.environment.get(name).filter(|value| !value.is_empty());
        Self {
            cache: settings.folder.clone(),
            lock: PackageLock::default(),
            policy: Arc::clone(&stacks.policy),
            releases: GithubReleases::new(settings),
            pulumi_plugins: pulumi_plugins(&stacks.process_context.environment),
            api_url: variable(API_URL).cloned(),
            approval: None,
            provided: Arc::default(),
        }
    }

    /// Sets the lock file, which has these packages as well.
    pub(super) fn with_lock(self, lock: PackageLock) -> Self {
        Self { lock, ..self }
    }

    /// Returns the plugins of packages, with their releases as sources, each once.
    ///
    /// # Errors
    /// [`CorePackagesError::NotInstalled`] if a name cannot be used.
    pub(super) fn plugins(
        &self,
        requests: impl Iterator<Item = PackageRequest>,
    ) -> Result<Vec<PluginConfig>, CorePackagesError> {
        let mut plugins = Vec::new();
        for request in requests {
            let plugin = self.plugin(request.package);
            plugins.push(plugin.map_err(|error| request.diagnostic(&error.into(), &self.places())));
        }
        all_or_errors(plugins)
    }

    fn plugin(&self, package: CorePackage) -> Result<PluginConfig, PluginValueError> {
        let source = PluginSource::GithubRelease(self.release(package));
        let mut plugin = PluginConfig::new(package.name.parse()?, source);
        plugin.declared_by = DeclaredBy::Program { repository: package.repository() };
        plugin.optional_env = package.variables().map(str::to_owned).collect();
        Ok(plugin)
    }

    /// Returns the source of a package.
    fn release(&self, package: CorePackage) -> GithubReleaseSource {
        let version = WantedVersion::Named(format!("v{}", package.version));
        GithubReleaseSource {
            api_url: self.api_url.clone(),
            is_mirror: true,
            requires_digest: true,
            ..GithubReleaseSource::new(package.repository(), version)
        }
    }

    /// Returns the packages that a program needs and no plugin declares, and where they are. Downloads none.
    ///
    /// # Errors
    /// [`CorePackagesError::NotInstalled`] if the cache cannot be used.
    pub(super) async fn locate(
        &self,
        program: &Program,
        is_attached: impl Fn(&str) -> bool,
    ) -> Result<Vec<LocatedPackage>, CorePackagesError> {
        let requests = program.undeclared_packages().into_iter().map(PackageRequest::from).collect();
        self.locate_all(requests, &is_attached)
            .await
            .map(|located| located.into_iter().map(|(_, located)| located).collect())
    }

    /// Returns the plugins of packages. Downloads those that are not on this machine, once they are approved. Emits where
    /// each package is taken from, once per package.
    ///
    /// # Errors
    /// [`CorePackagesError::NotInstalled`] if packages cannot be installed; [`CorePackagesError::Declined`];
    /// [`CorePackagesError::Stopped`] if the user stopped the operation.
    pub(super) async fn provide(
        &self,
        requests: Vec<PackageRequest>,
        is_attached: impl Fn(&str) -> bool,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<Vec<PluginConfig>, CorePackagesError> {
        let mut provided = self.provided.lock().await;
        let mut seen: BTreeSet<&str> = provided.packages.keys().copied().collect();
        let names: Vec<&str> = requests.iter().map(|request| request.package.name).collect();
        let new: Vec<_> = requests.into_iter().filter(|request| seen.insert(request.package.name)).collect();
        let work = async {
            self.check_policy(&new, &is_attached)?;
            let located = self.locate_all(new, &is_attached).await?;
            self.approve(&located, &mut provided.is_approved, signals).await?;
            self.download(&located, events).await?;
            emit_locations(&located, events);
            let located = located.into_iter().map(|(_, located)| (located.package.name, located));
            provided.packages.extend(located);
            Ok(names.iter().filter_map(|name| Some(provided.packages.get(name)?.plugin.clone())).collect())
        };
        tokio::select! {
            result = work => result,
            // Dropping the future discards incomplete downloads.
            () = signals.stop.cancelled() => Err(CorePackagesError::Stopped),
        }
    }

    /// Checks that the policy allows packages, before one is looked for.
    fn check_policy(
        &self,
        requests: &[PackageRequest],
        is_attached: &impl Fn(&str) -> bool,
    ) -> Result<(), CorePackagesError> {
        let refusal = |request: &PackageRequest| {
            let plugin = self.plugin(request.package).map_err(PackageError::from);
            let usage = if is_attached(request.package.name) { PluginUse::Attached } else { PluginUse::Package };
            let checked = plugin.and_then(|plugin| Ok(self.policy.check(&plugin, usage).map_err(Box::new)?));
            checked.err().map(|error| request.diagnostic(&error, &self.places()))
        };
        let mut refused: Vec<Diagnostic> = requests.iter().filter_map(refusal).collect();
        finish(&mut refused);
        if refused.is_empty() { Ok(()) } else { Err(CorePackagesError::NotInstalled(refused)) }
    }

    async fn locate_all(
        &self,
        requests: Vec<PackageRequest>,
        is_attached: &impl Fn(&str) -> bool,
    ) -> Result<Vec<(PackageRequest, LocatedPackage)>, CorePackagesError> {
        let locate = async |request: PackageRequest| {
            let is_attached = is_attached(request.package.name);
            let located = self.locate_one(request.package, is_attached).await;
            located.map_err(|error| request.diagnostic(&error, &self.places())).map(|located| (request, located))
        };
        all_or_errors(join_all(requests.into_iter().map(locate)).await)
    }

    async fn locate_one(&self, package: CorePackage, is_attached: bool) -> Result<LocatedPackage, PackageError> {
        let release = self.release(package);
        let mut plugin = self.plugin(package)?;
        let cached = match self.releases.known_digest(plugin.names(), &release).await {
            // The package may be in the folder of the `pulumi` command line.
            Err(InstallError::NoPlatform) => None,
            cached => cached?,
        };
        let version = package.version.parse()?;
        let find = |plugins: &PathBuf| find_in_pulumi_folder(plugins, &plugin.package, &version);
        // A package there has no digest.
        let pulumi_plugins = self.pulumi_plugins.as_ref().filter(|_| self.policy.requires_checksum.is_none());
        let (pulumi_folder, refused) = match pulumi_plugins.map_or(Ok(None), find) {
            Ok(found) => (found, None),
            Err(error) => (None, Some(refusal(package, &error))),
        };
        let location = PackageLocation::first(is_attached, cached, pulumi_folder);
        if let PackageLocation::PulumiFolder(path) = &location {
            plugin.source = PluginSource::Local(LocalSource::new(path.clone()));
        }
        let refused = refused.filter(|_| location == PackageLocation::Release);
        Ok(LocatedPackage { package, plugin, release, location, refused })
    }

    async fn approve(
        &self,
        located: &[(PackageRequest, LocatedPackage)],
        is_approved: &mut bool,
        signals: &StopSignals,
    ) -> Result<(), CorePackagesError> {
        let Some(approval) = self.approval.as_ref().filter(|_| !*is_approved) else { return Ok(()) };
        let missing = located.iter().filter(|(_, located)| located.location == PackageLocation::Release);
        // A package that cannot be downloaded is reported instead of a question.
        let find_size = async |(request, located): &(PackageRequest, LocatedPackage)| {
            let (names, release) = (located.plugin.names(), &located.release);
            let locked = self.installer(&()).locked(&self.releases, names, release);
            if let Some(bytes) =
                locked.map_err(|error| request.diagnostic(&error.into(), &self.places()))?.and_then(asset_size)
            {
                return Ok(PackageDownload { package: located.package, bytes });
            }
            let bytes = self.releases.download_size(located.plugin.names(), &located.release).await;
            let bytes = bytes.map_err(|error| request.diagnostic(&error.into(), &self.places()))?;
            Ok(PackageDownload { package: located.package, bytes })
        };
        let downloads = all_or_errors(join_all(missing.map(find_size)).await)?;
        if downloads.is_empty() {
            return Ok(());
        }
        match approval.approve(&downloads).await {
            Approval::Granted => {
                *is_approved = true;
                Ok(())
            }
            // The end of a question by a stop is not a reply.
            Approval::Declined if signals.stop.is_cancelled() => Err(CorePackagesError::Stopped),
            Approval::Declined => {
                Err(CorePackagesError::Declined(downloads.iter().map(|download| download.package).collect()))
            }
        }
    }

    /// Downloads the packages that are not on this machine, in parallel.
    async fn download(
        &self,
        located: &[(PackageRequest, LocatedPackage)],
        events: &Arc<dyn EventSink>,
    ) -> Result<(), CorePackagesError> {
        let host_events = run_event_sink(events, &LoadedPlugins::default());
        let missing = located.iter().filter(|(_, located)| located.location == PackageLocation::Release);
        let download = async |(request, located): &(PackageRequest, LocatedPackage)| {
            if let Some(refused) = &located.refused {
                events.emit(Event::Message(Message::new(Severity::Warning, refused.clone())));
            }
            let events = DownloadEvents { package: request.package.name, events: Arc::clone(&host_events) };
            let installed =
                self.installer(&events).install(&self.releases, located.plugin.names(), &located.release).await;
            installed.map(drop).map_err(|error| request.diagnostic(&error.into(), &self.places()))
        };
        all_or_errors(join_all(missing.map(download)).await).map(drop)
    }

    /// Returns the folders that a package can be copied to.
    fn places(&self) -> PackageFolders<'_> {
        PackageFolders { cache: &self.cache, pulumi: self.pulumi_plugins.as_deref() }
    }

    fn installer<'e>(&self, events: &'e dyn FetchEvents) -> Installer<'e> {
        Installer { lock: self.lock.clone(), cache: self.cache.clone(), ..Installer::new(events) }
    }
}

/// Returns the size of the asset of a package for this machine, in bytes.
fn asset_size(package: ResolvedPackage) -> Option<u64> {
    let ResolvedPackage::Release(release) = package else { return None };
    release.assets.get(&Platform::current()?)?.size
}

/// Returns the warning about a plugin in the folder of the `pulumi` command line that another user could have changed.
fn refusal(package: CorePackage, error: &TrustError) -> String {
    let CorePackage { name, version, .. } = package;
    let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("the package {name} {version} that pulumi has installed is not used: {}{hint}", chain(error))
}

/// Returns all values, or all errors if there is one.
fn all_or_errors<T>(results: Vec<Result<T, Diagnostic>>) -> Result<Vec<T>, CorePackagesError> {
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => errors.push(error),
        }
    }
    finish(&mut errors);
    if errors.is_empty() { Ok(values) } else { Err(CorePackagesError::NotInstalled(errors)) }
}

/// Emits the places of packages, in one line.
fn emit_locations(located: &[(PackageRequest, LocatedPackage)], events: &Arc<dyn EventSink>) {
    let place = |LocatedPackage { package, location, .. }: &LocatedPackage| {
        let CorePackage { name, version, .. } = package;
        match location {
            PackageLocation::Attached => format!("{name} {version} from a process that runs already"),
            PackageLocation::Cache(_) => format!("{name} {version} from the cache"),
            PackageLocation::PulumiFolder(folder) => format!("{name} {version} from {}", folder.display()),
            PackageLocation::Release => format!("{name} {version} from a release of {}", package.repository()),
        }
    };
    let places: Vec<String> = located.iter().map(|(_, located)| place(located)).collect();
    if !places.is_empty() {
        let text = MessageText::new(format_args!("Packages of core types: {}", places.join(", ")));
        events.emit(Event::Message(Message::new(Severity::Info, text)));
    }
}

/// Receiver of the events of a download.
struct DownloadEvents {
    package: &'static str,
    events: Arc<dyn HostEvents>,
}

impl FetchEvents for DownloadEvents {
    fn emit(&self, event: FetchEvent) {
        self.events.emit(HostEvent::Fetch { plugin: self.package.to_owned(), event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: plugins.md#packages-of-core-types "A run takes each package that its stacks use from the first of these
    ///   places"
    #[test]
    fn attached_process_precedes_cache_and_cache_precedes_pulumi_folder_and_release() {
        let digest = Sha256Digest::from_bytes([7; 32]);
        let (cached, folder) = (PackageLocation::Cache(digest), PackageLocation::PulumiFolder("p".into()));
        for (is_attached, is_cached, is_in_folder, expected) in [
            (true, true, true, &PackageLocation::Attached),
            (true, false, false, &PackageLocation::Attached),
            (false, true, true, &cached),
            (false, true, false, &cached),
            (false, false, true, &folder),
            (false, false, false, &PackageLocation::Release),
        ] {
            let location =
                PackageLocation::first(is_attached, is_cached.then_some(digest), is_in_folder.then(|| "p".into()));
            assert_eq!(location, *expected, "{is_attached} {is_cached} {is_in_folder}");
        }
    }
}
