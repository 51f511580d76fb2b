//! Builds of plugins whose files are not ready to run. Each is made in a copy of the files, in a sandbox, and kept in the cache: the
//! files, the commands and the programs of this machine decide what it is.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::build_recipe::BuildRecipe;
use super::cache_key::CacheKey;
use super::file_digests::FileDigests;
use super::file_modes::{make_private_and_read_only, make_writable};
use super::fingerprint::FileTime;
use super::layout::ExecutableNames;
use super::package_cache::{CachedPackage, Lookup};
use super::package_use::PackageUse;
use super::runtime_context::RuntimeContext;
use super::verify::read_folder;
use super::{FetchEvent, InstallError, run_blocking};
use crate::fs::{FileError, create_private_folders};
use crate::plugin::{Build, Platform, Sha256Digest};
use crate::process::{AllowedAccess, ProcessSandbox, ProcessSpec, SandboxSupport};

/// Port of https, the only one that a build connects to, beside those of the proxies and registries that its environment names.
const HTTPS: u16 = 443;
/// Variables that a build gets: none with a secret of this machine, except in the address of a registry that the user has set.
const VARIABLES: [&str; 23] = [
    "PATH",
    "LANG",
    "LC_ALL",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "npm_config_registry",
    "NPM_CONFIG_REGISTRY",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_CERT",
    "PIP_DEFAULT_TIMEOUT",
    "GOPROXY",
    "GOSUMDB",
];
/// Variables with which no package manager opens a connection.
const OFFLINE: [(&str, &str); 3] = [("npm_config_offline", "true"), ("PIP_NO_INDEX", "1"), ("UV_OFFLINE", "1")];

/// Build of the files of a plugin.
pub(super) struct TreeBuild<'a> {
    pub(super) context: &'a RuntimeContext<'a>,
    pub(super) build: &'a Build,
    /// Accepted names of its program.
    pub(super) names: &'a ExecutableNames,
    /// Folder with all files.
    pub(super) tree: &'a Path,
    /// Folder of the plugin, relative to it.
    pub(super) inside: &'a Path,
    /// Digest of the files, as a `checksum` pins a folder.
    pub(super) digest: Sha256Digest,
}

/// Built files in the cache.
#[derive(Debug)]
pub(super) struct BuiltTree {
    /// Folder with all files.
    pub(super) folder: PathBuf,
    /// Use of the files, which are not removed meanwhile.
    pub(super) package_use: Option<PackageUse>,
}

impl BuiltTree {
    fn of(cached: CachedPackage) -> Self {
        Self { folder: cached.folder, package_use: cached.package_use }
    }
}

impl TreeBuild<'_> {
    /// Returns the built files: from the cache, or built now. Waits if another run builds them.
    pub(super) async fn kept(&self) -> Result<BuiltTree, InstallError> {
        let recipe = self.context.recipe(self.build, self.names, &self.tree.join(self.inside)).await?;
        let key = self.key(&recipe);
        if let Lookup::Valid(_, cached) = self.open(&key).await? {
            return Ok(BuiltTree::of(cached));
        }
        let events = self.context.events;
        let _lock = self.context.cache.lock(&key, || events.emit(FetchEvent::Waiting)).await?;
        match self.open(&key).await? {
            Lookup::Valid(_, cached) => return Ok(BuiltTree::of(cached)),
            Lookup::Damaged => {
                let text = "what was built is damaged in the cache; it is built again";
                events.emit(FetchEvent::Warning(text.to_owned()));
            }
            Lookup::Missing => {}
        }
        if let Some(reason) = &recipe.unpinned {
            let text = format!(
                "another build may get other dependencies, since {reason}: the lock file covers the files of the plugin only"
            );
            events.emit(FetchEvent::Warning(text));
        }
        events.emit(FetchEvent::Building);
        self.run(recipe, key).await.map(BuiltTree::of)
    }

    fn key(&self, recipe: &BuildRecipe) -> CacheKey {
        let platform = Platform::current().map_or(String::new(), |platform| platform.to_string());
        let inside = self.inside.to_string_lossy();
        CacheKey::new(["build", &self.digest.to_hex(), &inside, &self.names.of_plugin, &platform, &recipe.key()])
    }

    /// Finds the built files of a key.
    async fn open(&self, key: &CacheKey) -> Result<Lookup, InstallError> {
        let (cache, key, verification) = (self.context.cache.clone(), key.clone(), self.context.verification);
        run_blocking(move || cache.open(&key, verification)).await
    }

    /// Copies the files, runs the commands, and moves the result to the cache: the whole of it, or nothing.
    async fn run(&self, mut recipe: BuildRecipe, key: CacheKey) -> Result<CachedPackage, InstallError> {
        if matches!(self.build, Build::Command(_)) {
            recipe.readable = self.context.tool_files(self.tree).await;
        }
        let scratch = self.context.cache.scratch()?;
        let root = fs::canonicalize(scratch.path()).map_err(FileError::of("find", scratch.path()))?;
        let (folder, home) = (root.join("build"), root.join("home"));
        create_private_folders(&home)?;
        let (tree, copy) = (self.tree.to_owned(), folder.clone());
        let copied = run_blocking(move || {
            let copied = read_folder(&tree, Some(&copy), None)?.checksum_digest();
            make_writable(&copy)?;
            Ok(copied)
        });
        if copied.await? != self.digest {
            let reason = "files were changed while they were copied";
            return Err(InstallError::NotHashable { path: self.tree.to_owned(), reason });
        }
        let directory = folder.join(self.inside);
        let environment = self.environment(&recipe, &home);
        let sandbox = self.sandbox(&recipe, &root, &environment);
        for (program, arguments) in recipe.commands {
            let (directory, environment, sandbox) = (directory.clone(), environment.clone(), sandbox.clone());
            let program = directory.join(program);
            self.context.run(ProcessSpec { program, arguments, directory, environment, sandbox }, true).await?;
        }
        let (cache, digest) = (self.context.cache.clone(), self.digest);
        run_blocking(move || {
            make_private_and_read_only(&folder)?;
            let (begun, _) = FileTime::after_changes_of(&folder, None, scratch.path())?;
            let published = cache.publish(&folder, FileDigests::of(&folder)?, begun, None)?;
            cache.write_entry(&key, &key.new_entry(&digest.to_string(), None, published.files.cache_digest()))?;
            drop(scratch);
            Ok(published)
        })
        .await
    }

    /// Returns the environment of the commands, with a home directory of their own.
    fn environment(&self, recipe: &BuildRecipe, home: &Path) -> Vec<(OsString, OsString)> {
        let offline = OFFLINE.iter().filter(|_| self.context.is_offline);
        let known = self.context.environment.select(VARIABLES);
        let known = known.filter(|(name, _)| !recipe.environment.iter().any(|(own, _)| own == name));
        known
            .chain(recipe.environment.iter().cloned())
            .chain(offline.map(|(name, value)| (name.into(), value.into())))
            .chain([("HOME".into(), home.into())])
            .collect()
    }

    /// Returns the sandbox of the commands: they change the files below `root` only, and connect by https only. A system without
    /// such a sandbox is told.
    fn sandbox(&self, recipe: &BuildRecipe, root: &Path, environment: &[(OsString, OsString)]) -> ProcessSandbox {
        if let Err(error) = SandboxSupport::current().check_strict() {
            let text = format!("the build runs without a sandbox that limits its files and connections: {error}");
            self.context.events.emit(FetchEvent::Warning(text));
            return ProcessSandbox::Basic;
        }
        let values = || environment.iter().filter_map(|(_, value)| value.to_str());
        let ports = values().flat_map(|value| value.split([',', '|', ' '])).filter_map(port_of);
        let ports = if self.context.is_offline { Vec::new() } else { [HTTPS].into_iter().chain(ports).collect() };
        let certificates = [
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "NODE_EXTRA_CA_CERTS",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "PIP_CERT",
        ];
        let certificates = self.context.environment.select(certificates).map(|(_, path)| PathBuf::from(path));
        let path = self.context.environment.get("PATH").unwrap_or_default();
        let readable = recipe.readable.iter().cloned().chain(std::env::split_paths(path)).chain(certificates);
        ProcessSandbox::Strict(AllowedAccess {
            readable: readable.filter(|path| path.is_absolute() && path.exists()).collect(),
            writable: vec![root.to_owned()],
            ports,
            ..AllowedAccess::default()
        })
    }
}

/// Returns the port of an address that names one.
fn port_of(address: &str) -> Option<u16> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (_, port) = authority.rsplit_once(':')?;
    port.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_those_that_addresses_name() {
        for (address, expected) in [
            ("https://proxy.golang.org", None),
            ("http://user:word@proxy.corp.example:3128/x", Some(3128)),
            ("http://127.0.0.1:8080", Some(8080)),
            ("http://host/a:1", None),
            ("direct", None),
        ] {
            assert_eq!(port_of(address), expected, "{address}");
        }
    }
}
