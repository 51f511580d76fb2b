//! Settings for finding and starting the plugins of a repository.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::host::{AttachedPlugin, PluginPool, Sources};
use bridge::install::{
    BUILD_LIMIT, CacheSettings, GitRepositories, GithubReleases, InstalledPackages, LOCK_FILE, LocalPackages, LockKey,
    LockRule, PackageCopies, PackageLock, TerraformProviders, Verification,
};
use bridge::plugin::{PluginConfig, PluginVersion};
use bridge::process::{HostEnvironment, Spawner};
use bridge::provider::grpc::Limits;
use bridge::source::{Credentials, FileServer};

use super::core_packages::{CorePackages, pulumi_plugins};
use super::plugin_events::LoadedPlugins;
use super::{SetupError, Stacks};
use crate::registry::packages;

/// Environment variable with the folders of plugins, as PATH has folders.
const PLUGIN_PATH: &str = "SC_PLUGIN_PATH";
/// Environment variable with the address of a mirror.
const PLUGIN_MIRROR: &str = "SC_PLUGIN_MIRROR";
/// Environment variable for which files of packages in the cache are read at a start.
const VERIFY: &str = "SC_VERIFY";

/// Settings for finding and starting plugins.
#[derive(Clone)]
pub struct PluginSettings {
    /// Working directory of plugins: the root of the repository.
    pub directory: PathBuf,
    /// Patterns of files with secrets, which plugins in the sandbox `strict` read only if they are declared.
    pub secret_files: Vec<PathBuf>,
    /// Environment of the host. Plugins receive a part of it.
    pub environment: HostEnvironment,
    /// Spawner of the plugins' processes.
    pub spawner: Spawner,
    /// Sources that packages are fetched from.
    pub sources: Sources,
    /// Packages of core types that no plugin declares.
    pub packages: CorePackages,
    /// Folder that caches the information about types from schemas.
    pub type_cache: PathBuf,
    /// Time limits for quick calls to plugins.
    pub limits: Limits,
    /// Pool of running plugins. Its owner closes it.
    pub pool: PluginPool,
    /// Plugins that run already, by name of the plugin or of its package.
    pub attached: BTreeMap<String, AttachedPlugin>,
    /// Plugins whose load was reported.
    pub(super) loaded: LoadedPlugins,
}

impl PluginSettings {
    /// Returns the settings for the plugins of stacks, in the environment of their caller, none of them attached. The owner
    /// of the pool closes it.
    ///
    /// # Errors
    /// [`SetupError::Verification`].
    pub fn new(stacks: &Stacks, spawner: Spawner, pool: PluginPool) -> Result<Self, SetupError> {
        let variables = &stacks.process_context.environment;
        let environment = HostEnvironment::new(
            variables.iter().map(|(name, value)| (OsString::from(name.as_str()), OsString::from(value.as_str()))),
        );
        let root = stacks.repository.root.clone();
        let of_builds = if stacks.fetch_rules.offline { offline(&environment) } else { environment.clone() };
        let fetched = CacheSettings {
            folder: cache_folder(variables, &root),
            root: root.clone(),
            environment: of_builds.clone(),
            spawner: spawner.clone(),
            verification: verification(variables)?,
            is_offline: stacks.fetch_rules.offline,
            build_limit: BUILD_LIMIT,
            credentials: Credentials::new(environment.clone(), spawner.clone(), {
                let masker = Arc::clone(&stacks.masker);
                move |token| masker.add_text(token)
            }),
            copies: package_copies(variables, &root)?,
        };
        let type_cache = fetched.folder.join("types");
        let local = LocalPackages {
            root: root.clone(),
            cache: fetched.folder.clone(),
            environment: of_builds.clone(),
            spawner: spawner.clone(),
            verification: fetched.verification,
            is_offline: fetched.is_offline,
        };
        let installed = InstalledPackages::new(fetched.clone(), local.clone(), pulumi_plugins(variables));
        let sources = Sources {
            local: Some(Arc::new(local)),
            github_release: Some(Arc::new(GithubReleases::new(fetched.clone()))),
            git: Some(Arc::new(GitRepositories::new(fetched.clone()))),
            installed: Some(Arc::new(installed)),
            terraform: Some(Arc::new(TerraformProviders::new(fetched.clone()))),
            policy: Arc::clone(&stacks.policy),
            overrides: BTreeMap::new(),
            lock: PackageLock::default(),
            cache: fetched.folder.clone(),
        };
        let packages = CorePackages::new(stacks, fetched);
        let lock = package_lock(stacks, &sources);
        let (packages, sources) = (packages.with_lock(lock.clone()), Sources { lock, ..sources });
        Ok(Self {
            packages,
            secret_files: secret_files(stacks),
            directory: root,
            environment,
            spawner,
            sources,
            type_cache,
            limits: Limits::default(),
            pool,
            attached: BTreeMap::new(),
            loaded: LoadedPlugins::default(),
        })
    }
}

impl PluginSettings {
    /// Sets what may be done with the lock file.
    #[must_use]
    pub fn with_lock_rule(self, rule: LockRule) -> Self {
        let lock = self.sources.lock.clone().with_rule(rule);
        let packages = self.packages.with_lock(lock.clone());
        Self { packages, sources: Sources { lock, ..self.sources }, ..self }
    }

    /// Returns the version that the lock file records for a plugin, if it does.
    pub(super) fn locked_version(&self, plugin: &PluginConfig) -> Option<PluginVersion> {
        self.sources.locked_version(plugin)
    }

    /// Returns the declarations of a plugin as the lock file knows them: its own, and that of the Terraform provider that it runs.
    pub(super) fn lock_keys(&self, plugin: &PluginConfig) -> Vec<LockKey> {
        [self.sources.lock_key(plugin), self.sources.terraform_lock_key(plugin)].into_iter().flatten().collect()
    }

    /// Returns whether a package is served by a process that runs already.
    pub(super) fn is_attached(&self, package: &str) -> bool {
        self.attached.contains_key(package)
    }
}

/// Returns an environment in which builds open no connection: Go takes modules and toolchains from this machine only.
fn offline(environment: &HostEnvironment) -> HostEnvironment {
    let all = environment
        .with_prefix("")
        .chain([("GOPROXY", "off"), ("GOTOOLCHAIN", "local")].map(|(name, value)| (name.into(), value.into())));
    HostEnvironment::new(all)
}

/// Returns whether the command runs in a pipeline, as `CI` says.
pub(super) fn is_pipeline(stacks: &Stacks) -> bool {
    stacks.process_context.environment.get("CI").is_some_and(|value| !value.is_empty())
}

/// Returns the lock file of a repository. A pipeline never changes it.
fn package_lock(stacks: &Stacks, sources: &Sources) -> PackageLock {
    let root = &stacks.repository.root;
    let rule = match (stacks.fetch_rules.locked, is_pipeline(stacks), root.join(LOCK_FILE).exists()) {
        (true, ..) => LockRule::Locked,
        (false, true, true) => LockRule::LockedInPipeline,
        (false, true, false) => LockRule::ReadOnly,
        (false, false, _) => LockRule::Add,
    };
    let lock = PackageLock::new(root, rule);
    if !stacks.are_all {
        return lock;
    }
    let plugins = stacks.stacks.iter().flat_map(|stack| &stack.plugins).map(|declared| &declared.plugin);
    let of_core_types = packages::repositories().map(|repository| format!("github-release github.com/{repository}"));
    let keys = plugins.flat_map(|plugin| [sources.lock_key(plugin), sources.terraform_lock_key(plugin)]).flatten();
    lock.with_declared(keys, of_core_types)
}

/// Returns the folders of plugins and the mirror that are asked before the place of a plugin.
fn package_copies(variables: &BTreeMap<String, String>, root: &Path) -> Result<PackageCopies, SetupError> {
    let variable = |name: &str| variables.get(name).filter(|value| !value.is_empty());
    let of_account = variable("XDG_DATA_HOME").map(PathBuf::from);
    let of_account = of_account.or_else(|| Some(Path::new(variable("HOME")?).join(".local/share")));
    let folders = match variable(PLUGIN_PATH) {
        Some(path) => std::env::split_paths(path).map(|folder| root.join(folder)).collect(),
        None => of_account.map(|folder| folder.join("sc/plugins")).into_iter().collect(),
    };
    let mirror = variable(PLUGIN_MIRROR).cloned();
    if let Some(address) = &mirror {
        FileServer::check_address(address)
            .map_err(|error| SetupError::Mirror { variable: PLUGIN_MIRROR, error: Box::new(error) })?;
    }
    Ok(PackageCopies { folders, mirror })
}

/// Returns the rule for which files of packages in the cache are read at a start.
fn verification(variables: &BTreeMap<String, String>) -> Result<Verification, SetupError> {
    match variables.get(VERIFY).map_or("", String::as_str) {
        "" => Ok(Verification::default()),
        "always" => Ok(Verification::Always),
        "never" => Ok(Verification::Never),
        other => Err(SetupError::Verification { variable: VERIFY, value: other.to_owned() }),
    }
}

/// Returns the patterns of the profiles, the secrets store and the `secrets.yaml` of stacks, from the root of the repository.
fn secret_files(stacks: &Stacks) -> Vec<PathBuf> {
    let folders = [Path::new(".sc/stacks"), &stacks.stacks_folder];
    let of_stacks = folders.map(|folder| folder.join("*").join("secrets.yaml"));
    secrets_store::SECRET_PATTERNS.map(PathBuf::from).into_iter().chain(of_stacks).collect()
}

/// Returns the folder for packages, and for copies of plugins that are about to run: the user's cache folder, as
/// programs can be executed there, or one in the repository.
pub fn cache_folder(environment: &BTreeMap<String, String>, repository: &Path) -> PathBuf {
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    match (variable("XDG_CACHE_HOME"), variable("HOME")) {
        (Some(cache), _) => Path::new(cache).join("sc"),
        (None, Some(home)) => Path::new(home).join(".cache/sc"),
        (None, None) => repository.join(".sc/cache"),
    }
}
