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
    FetchEvents, InstallError, Installer, LockChange, LockKey, TerraformProviderFolder, VerifiedPackage,
};
use crate::plugin::{
    Parameters, PluginConfig, PluginNames, PluginSource, PluginValueError, TerraformParameters,
    TerraformProviderSource, WantedVersion,
};

/// Name of the bridge without parameters, and that of its program.
const BRIDGE: &str = "terraform-provider";
const PROGRAM: &str = "pulumi-resource-terraform-provider";
/// Variable with the folder in which the bridge looks for providers.
const FOLDER_VARIABLE: &str = "PULUMI_DYNAMIC_TF_PLUGIN_CACHE_DIR";
/// Name of that folder in the cache.
const FOLDER: &str = "terraform";

/// Terraform provider that is placed for the bridge. It stays in the cache while this value exists.
#[derive(Debug)]
pub(super) struct PlacedProvider {
    /// Parameters that name exactly this provider.
    pub(super) parameters: Parameters,
    folder: PathBuf,
    _provider: TerraformProviderFolder,
}

impl PlacedProvider {
    /// Returns the variable that tells the bridge where providers are.
    pub(super) fn variable(&self) -> (OsString, OsString) {
        (FOLDER_VARIABLE.into(), self.folder.clone().into())
    }

    /// Returns the folders that the process of the bridge reads.
    pub(super) fn readable(&self) -> [PathBuf; 2] {
        [self.folder.clone(), self._provider.folder().to_owned()]
    }
}

/// Returns the names by which the lock file knows the provider of a plugin: those of the bridge, whatever the plugin is called.
fn names(plugin: &PluginConfig) -> PluginNames<'_> {
    PluginNames { plugin: &plugin.name, package: &plugin.package, accepts_only_program: false }
}

/// Returns the Terraform provider that a declared plugin means; `None` for a plugin that is not the bridge, or a provider on this machine.
/// `program` is that of its package, once it is known; until then, a local path that ends with the program tells.
fn declared_provider(
    plugin: &PluginConfig,
    program: Option<&Path>,
) -> Result<Option<TerraformParameters>, PluginValueError> {
    let Some(parameters) = &plugin.parameters else { return Ok(None) };
    let declared = match &plugin.source {
        PluginSource::Local(local) => Some(local.path.as_path()),
        _ => None,
    };
    let is_program = |path: &Path| path.file_name().is_some_and(|name| name == PROGRAM);
    if ![program, declared].into_iter().flatten().any(is_program) && parameters.base.as_str() != BRIDGE {
        return Ok(None);
    }
    TerraformParameters::parse(&parameters.arguments)
}

fn unreadable(plugin: &PluginConfig, error: PluginValueError) -> HostError {
    failed_to_load(plugin, LoadError::TerraformParameters(error))
}

impl Sources {
    /// Fetches, verifies and places the Terraform provider that the parameters of a plugin name, if its package is the bridge.
    pub(super) async fn place_terraform_provider(
        &self,
        plugin: &PluginConfig,
        package: &VerifiedPackage,
        events: &Arc<dyn HostEvents>,
    ) -> Result<Option<PlacedProvider>, HostError> {
        let refused = |error| failed_to_load(plugin, LoadError::Resolve(error));
        let program = package.program_origin();
        let declared = declared_provider(plugin, Some(&program)).map_err(|error| unreadable(plugin, error))?;
        let Some(declared) = declared else { return Ok(None) };
        let (Some(providers), Some(parameters)) = (&self.terraform, &plugin.parameters) else { return Ok(None) };
        self.check_terraform_provider(plugin, &declared.source)?;
        let _working = WorkInProgress::begin(plugin.name.as_str(), PluginWork::Preparing, |event| events.emit(event));
        let events = PluginEvents { plugin: plugin.name.to_string(), events: Arc::clone(events) };
        let installer = self.terraform_installer(&events);
        let provider = installer.install(providers.as_ref(), names(plugin), &declared.source).await.map_err(refused)?;
        let folder = self.cache.join(FOLDER);
        provider.place(&folder).map_err(refused)?;
        let parameters = Parameters { arguments: declared.resolved(provider.version()), ..parameters.clone() };
        Ok(Some(PlacedProvider { parameters, folder, _provider: provider }))
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
        let LockUpdate { updates, accepts_replaced, .. } = update;
        let installer = Installer {
            updates: *updates && !matches!(declared.source.version, WantedVersion::Named(_)),
            accepts_replaced: *accepts_replaced,
            ..self.terraform_installer(&events)
        };
        let source = &declared.source;
        installer.lock(providers.as_ref(), names(plugin), source, source).await.map_err(refused)
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
