//! Pulumi's bridge of any Terraform provider: the provider that its parameters name is resolved, locked and verified by `sc`, and placed where the
//! bridge takes it without a connection (docs/plugins.md#terraform-providers).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::events::{PluginEvents, PluginWork, WorkInProgress};
use super::host_settings::{LockUpdate, Sources};
use super::load_error::{LoadError, failed_to_load};
use super::{HostError, HostEvents};
use crate::install::{
    Decision, FetchEvents, InstallError, Installer, LockChange, LockKey, LockRule, MirroredAsset,
    TerraformProviderFolder, VerifiedPackage, package_folders, terraform_provider_place,
};
use crate::message_text::MessageText;
use crate::plugin::{
    Parameters, Platform, PluginConfig, PluginNames, PluginSource, PluginValueError, ResolvedPackage,
    TerraformParameters, TerraformProviderSource, WantedVersion, terraform_provider_of_value,
};
use crate::provider::ParameterizeRequest;

/// Name of the bridge without parameters, and that of its program.
const BRIDGE: &str = "terraform-provider";
const PROGRAM: &str = "pulumi-resource-terraform-provider";
/// Variable with the folder in which the bridge looks for providers.
const FOLDER_VARIABLE: &str = "PULUMI_DYNAMIC_TF_PLUGIN_CACHE_DIR";
/// Name of that folder in the cache.
const FOLDER: &str = "terraform";

/// The bridge as a plugin of a run: where it looks for Terraform providers, and the one that its parameters name. The provider stays in the
/// cache while this value exists.
#[derive(Debug)]
pub(super) struct TerraformBridge {
    /// Parameters that name exactly the provider that is placed.
    pub(super) parameters: Option<Parameters>,
    folder: PathBuf,
    /// Packages of the cache: the places in the folder are links to them.
    packages: PathBuf,
    _provider: Option<TerraformProviderFolder>,
}

impl TerraformBridge {
    /// Returns the variable that tells the bridge where providers are.
    pub(super) fn variable(&self) -> (OsString, OsString) {
        (FOLDER_VARIABLE.into(), self.folder.clone().into())
    }

    /// Returns the folders that the process of the bridge reads. Providers may be placed after its start.
    pub(super) fn readable(&self) -> [PathBuf; 2] {
        [self.folder.clone(), self.packages.clone()]
    }

    /// Returns the provider that a value of parameters names, if it is not placed.
    ///
    /// # Errors
    /// [`HostError`] if the value cannot be read.
    pub(super) fn missing_provider(
        &self,
        plugin: &PluginConfig,
        request: &ParameterizeRequest,
    ) -> Result<Option<TerraformProviderSource>, HostError> {
        let ParameterizeRequest::Value { value, .. } = request else { return Ok(None) };
        let provider = terraform_provider_of_value(value).map_err(|error| unreadable(plugin, error))?;
        Ok(provider.filter(|provider| !is_placed(&self.folder, provider)))
    }
}

/// Returns the error of a provider that is needed and may not be placed.
pub(super) fn without_provider(plugin: &PluginConfig, source: &TerraformProviderSource) -> HostError {
    let TerraformProviderSource { provider, version, .. } = source;
    let message = MessageText::new(format_args!(
        "the plugin {} needs the Terraform provider {provider} {version}, which is not on this machine",
        plugin.name
    ));
    HostError::new(message).with_hint("run the command on a terminal, or outside a pipeline, so that it may be fetched")
}

/// Returns whether a version of a provider is placed for this machine below a folder.
fn is_placed(folder: &Path, source: &TerraformProviderSource) -> bool {
    let platform = source.platform.or(Platform::current());
    platform.is_some_and(|platform| {
        folder.join(terraform_provider_place(&source.provider, source.version.as_str(), platform)).is_dir()
    })
}

/// Returns whether a plugin is the bridge. `program` is that of its package, once it is known; until then, a local path that ends with the
/// program tells.
fn is_bridge(plugin: &PluginConfig, program: Option<&Path>) -> bool {
    let declared = match &plugin.source {
        PluginSource::Local(local) => Some(local.path.as_path()),
        _ => None,
    };
    let is_program = |path: &Path| path.file_name().is_some_and(|name| name == PROGRAM);
    let base = plugin.parameters.as_ref().map_or(&plugin.package, |parameters| &parameters.base);
    base.as_str() == BRIDGE || [program, declared].into_iter().flatten().any(is_program)
}

/// Returns the names by which the lock file knows the provider of a plugin: those of the bridge, whatever the plugin is called.
fn names(plugin: &PluginConfig) -> PluginNames<'_> {
    PluginNames { plugin: &plugin.name, package: &plugin.package, accepts_only_program: false }
}

/// Returns the Terraform provider that a declared plugin means; `None` for a plugin that is not the bridge, or a provider on this machine.
/// `program` is that of [`is_bridge`].
fn declared_provider(
    plugin: &PluginConfig,
    program: Option<&Path>,
) -> Result<Option<TerraformParameters>, PluginValueError> {
    let Some(parameters) = plugin.parameters.as_ref().filter(|_| is_bridge(plugin, program)) else { return Ok(None) };
    let mut declared = TerraformParameters::parse(&parameters.arguments)?;
    if let Some(declared) = &mut declared {
        declared.source.platform = plugin.source.platform();
    }
    Ok(declared)
}

fn unreadable(plugin: &PluginConfig, error: PluginValueError) -> HostError {
    failed_to_load(plugin, LoadError::TerraformParameters(error))
}

impl Sources {
    /// Returns the bridge, if a plugin is it: fetches, verifies and places the Terraform provider that its parameters name. `program` is that
    /// of [`is_bridge`].
    pub(super) async fn terraform_bridge(
        &self,
        plugin: &PluginConfig,
        program: Option<&Path>,
        events: &Arc<dyn HostEvents>,
    ) -> Result<Option<TerraformBridge>, HostError> {
        let Some(providers) = self.terraform.as_ref().filter(|_| is_bridge(plugin, program)) else {
            return Ok(None);
        };
        let (folder, packages) = (self.cache.join(FOLDER), package_folders(&self.cache));
        let bridge = TerraformBridge { parameters: None, folder, packages, _provider: None };
        let declared = declared_provider(plugin, program).map_err(|error| unreadable(plugin, error))?;
        let (Some(declared), Some(parameters)) = (declared, &plugin.parameters) else { return Ok(Some(bridge)) };
        self.check_terraform_provider(plugin, &declared.source)?;
        let refused = |error| failed_to_load(plugin, LoadError::Resolve(error));
        let _working = WorkInProgress::begin(plugin.name.as_str(), PluginWork::Preparing, |event| events.emit(event));
        let events = PluginEvents { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        let installer = self.terraform_installer(&events);
        let provider = installer.install(providers.as_ref(), names(plugin), &declared.source).await.map_err(refused)?;
        provider.place(&bridge.folder).map_err(refused)?;
        let parameters = Parameters { arguments: declared.resolved(provider.version()), ..parameters.clone() };
        Ok(Some(TerraformBridge { parameters: Some(parameters), _provider: Some(provider), ..bridge }))
    }

    /// Fetches, verifies and places the Terraform provider that the parameters of a plugin name, if its package is the bridge: for the
    /// platform of the plugin.
    ///
    /// # Errors
    /// [`HostError`]; the plugin has not been executed.
    pub async fn fetch_terraform_provider(
        &self,
        plugin: &PluginConfig,
        package: &VerifiedPackage,
        events: &Arc<dyn HostEvents>,
    ) -> Result<(), HostError> {
        self.terraform_bridge(plugin, Some(&package.program_origin()), events).await.map(drop)
    }

    /// Returns what the lock file records for a Terraform provider in a version of the state, if it does. `plugin` is the bridge.
    ///
    /// # Errors
    /// [`InstallError::LockFile`].
    pub fn locked_terraform_provider(
        &self,
        plugin: &PluginConfig,
        source: &TerraformProviderSource,
    ) -> Result<Option<ResolvedPackage>, InstallError> {
        let Some(providers) = &self.terraform else { return Ok(None) };
        let key = providers.lock_key(names(plugin), source)?;
        key.map_or(Ok(None), |key| self.lock.find(&key))
    }

    /// Returns whether a Terraform provider is in the cache. `plugin` is the bridge.
    ///
    /// # Errors
    /// [`InstallError`] if the cache cannot be used.
    pub async fn has_terraform_provider(
        &self,
        plugin: &PluginConfig,
        source: &TerraformProviderSource,
    ) -> Result<bool, InstallError> {
        match &self.terraform {
            Some(providers) => Ok(providers.known_digest(names(plugin), source).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Fetches, verifies and places a Terraform provider in a version of the state, which the lock file may have and does not get. `plugin`
    /// is the bridge.
    pub(super) async fn place_recorded_provider(
        &self,
        plugin: &PluginConfig,
        source: &TerraformProviderSource,
        events: &Arc<dyn HostEvents>,
    ) -> Result<Option<TerraformProviderFolder>, HostError> {
        let Some(providers) = self.terraform.as_deref() else { return Ok(None) };
        self.check_terraform_provider(plugin, source)?;
        let _working = WorkInProgress::begin(plugin.name.as_str(), PluginWork::Preparing, |event| events.emit(event));
        let events = PluginEvents { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        let names = names(plugin);
        let placed = async {
            let provider = match self.locked_terraform_provider(plugin, source)? {
                Some(locked) => {
                    let package = match providers.is_complete(names, source, &locked) {
                        true => locked,
                        false => providers.complete(names, source, locked, &events).await?,
                    };
                    let decision = Decision { package, build_refusal: None, is_locked: true };
                    providers.fetch(names, source, decision, &events).await?.0
                }
                None => {
                    let rule = self.lock.rule();
                    if matches!(rule, LockRule::Locked | LockRule::LockedInPipeline) {
                        let name = format!("terraform {} {}", source.provider, source.version);
                        return Err(InstallError::NotLocked { name, is_pipeline: rule == LockRule::LockedInPipeline });
                    }
                    let cache = self.cache.clone();
                    Installer { cache, ..Installer::new(&events) }.install(providers, names, source).await?
                }
            };
            provider.place(&self.cache.join(FOLDER))?;
            Ok(Some(provider))
        };
        placed.await.map_err(|error| failed_to_load(plugin, LoadError::Resolve(error)))
    }

    /// Records the Terraform provider that the parameters of a plugin name in the lock file: see [`Sources::lock`].
    ///
    /// # Errors
    /// [`HostError`]; the lock file is as it was.
    pub async fn lock_terraform_provider(
        &self,
        plugin: &PluginConfig,
        update: &LockUpdate,
        events: &Arc<dyn HostEvents>,
    ) -> Result<Option<LockChange>, HostError> {
        let refused = |error| failed_to_load(plugin, LoadError::Resolve(error));
        let declared = declared_provider(plugin, None).map_err(|error| unreadable(plugin, error))?;
        let Some(declared) = declared else { return Ok(None) };
        let Some(providers) = &self.terraform else { return Ok(None) };
        self.check_terraform_provider(plugin, &declared.source)?;
        let events = PluginEvents { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        let LockUpdate { updates, accepts_replaced, signer_approval, .. } = update;
        let installer = Installer {
            updates: *updates && !matches!(declared.source.version, WantedVersion::Named(_)),
            accepts_replaced: *accepts_replaced,
            signer_approval: signer_approval.clone(),
            ..self.terraform_installer(&events)
        };
        let source = &declared.source;
        installer.lock(providers.as_ref(), names(plugin), source, source).await.map_err(refused)
    }

    /// Copies what the lock file records for the Terraform provider of a plugin into a folder of plugins: see [`Sources::mirror`].
    ///
    /// # Errors
    /// [`HostError`]; files that are complete stay.
    pub async fn mirror_terraform_provider(
        &self,
        plugin: &PluginConfig,
        platforms: &[Platform],
        folder: &Path,
        events: &Arc<dyn HostEvents>,
    ) -> Result<Option<Vec<MirroredAsset>>, HostError> {
        let declared = declared_provider(plugin, None).map_err(|error| unreadable(plugin, error))?;
        let (Some(declared), Some(providers)) = (declared, &self.terraform) else { return Ok(None) };
        self.check_terraform_provider(plugin, &declared.source)?;
        let events = PluginEvents { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        let mirrored = async {
            let source = &declared.source;
            let Some(locked) = self.locked_terraform_provider(plugin, source)? else { return Ok(None) };
            providers.mirror(names(plugin), source, locked, platforms, folder, &events).await
        };
        mirrored.await.map_err(|error| failed_to_load(plugin, LoadError::Resolve(error)))
    }

    /// Returns the Terraform provider of a plugin as the lock file knows it; `None` if it has none.
    pub fn terraform_lock_key(&self, plugin: &PluginConfig) -> Option<LockKey> {
        let declared = declared_provider(plugin, None).ok()??;
        self.terraform.as_ref()?.lock_key(names(plugin), &declared.source).ok()?
    }

    /// Returns what the lock file lacks for the Terraform provider of a plugin, in words: see [`Sources::lock_problem`].
    ///
    /// # Errors
    /// [`InstallError::LockFile`].
    pub fn terraform_lock_problem(&self, plugin: &PluginConfig) -> Result<Option<String>, InstallError> {
        let (Some(key), Some(providers)) = (self.terraform_lock_key(plugin), &self.terraform) else { return Ok(None) };
        let declared = declared_provider(plugin, None).ok().flatten();
        self.problem_of(&key, |package| {
            declared.is_none_or(|declared| providers.is_complete(names(plugin), &declared.source, package))
        })
    }

    fn check_terraform_provider(
        &self,
        plugin: &PluginConfig,
        source: &TerraformProviderSource,
    ) -> Result<(), HostError> {
        let checked = self.policy.check_repository(plugin, &source.provider.to_string());
        checked.map_err(|refusal| failed_to_load(plugin, LoadError::Policy(refusal)))
    }

    fn terraform_installer<'i>(&self, events: &'i dyn FetchEvents) -> Installer<'i> {
        Installer { lock: self.lock.clone(), cache: self.cache.clone(), ..Installer::new(events) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{GithubReleaseSource, LocalSource};

    /// Shows: plugins.md#terraform-providers "The bridge is known by its repository or its program"
    #[test]
    fn bridge_is_known_by_its_repository_or_its_program() {
        let plugin = |source: PluginSource, arguments: &[&str]| {
            let mut plugin = PluginConfig::new("reef".parse().unwrap(), source);
            let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            plugin.parameters =
                (!arguments.is_empty()).then(|| Parameters::new(arguments, &plugin.source, &plugin.package));
            plugin
        };
        let release = |repository: &str| {
            PluginSource::GithubRelease(GithubReleaseSource::new(repository.into(), WantedVersion::Latest))
        };
        let at = |path: &str| PluginSource::Local(LocalSource::new(path));
        let local = || at("bin");
        let found = |plugin: &PluginConfig, program: Option<&str>| {
            let found = declared_provider(plugin, program.map(Path::new)).unwrap();
            found.map(|found| found.source.provider.to_string())
        };
        let reef = Some("registry.opentofu.org/acme/reef".to_owned());
        let (program, other) = (Some("/x/pulumi-resource-terraform-provider"), Some("/x/pulumi-resource-many"));
        let bridge = "pulumi/pulumi-terraform-provider";
        assert_eq!(found(&plugin(release(bridge), &["acme/reef"]), None), reef);
        assert_eq!(found(&plugin(local(), &["acme/reef"]), program), reef);
        assert_eq!(found(&plugin(local(), &["acme/reef"]), other), None);
        assert_eq!(found(&plugin(local(), &["acme/reef"]), None), None);
        assert_eq!(found(&plugin(at("bin/pulumi-resource-terraform-provider"), &["acme/reef"]), None), reef);
        assert_eq!(found(&plugin(release(bridge), &[]), program), None, "without parameters");
        assert_eq!(found(&plugin(release(bridge), &["./reef"]), program), None, "a provider on this machine");
    }
}
