//! Tests of packages from other places: fetching, refusals, and the contents of the cache.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod archives;
mod builds;
mod cache;
mod compliance;
mod copied_kinds;
mod copies;
mod downloads;
mod fingerprints;
mod formats;
mod git;
mod lock;
mod manifests;
mod prune;
mod ranges;
mod release;
mod terraform;
mod terraform_answers;
mod terraform_peers;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bridge::install::{
    BUILD_LIMIT, CacheSettings, FetchEvent, FetchEvents, GitRepositories, GithubReleases, InstallError,
    InstalledPackages, Installer, LocalPackages, LockRule, PackageCopies, PackageLock, Verification, VerifiedPackage,
};
use bridge::plugin::{
    Checksum, GitSource, GithubReleaseSource, PluginConfig, PluginSource, SourceToken, WantedVersion,
};
use bridge::process::{HostEnvironment, OutputStream, ProcessSandbox, ProcessSpec, Spawner};
use bridge::source::Credentials;

/// Machine with an empty cache.
struct Machine {
    folder: tempfile::TempDir,
    events: Events,
    /// Folder that precedes the others on PATH.
    programs: Option<PathBuf>,
    /// Rule for which files of packages in the cache are read.
    verification: Verification,
    /// Rule for the lock file, which is neither read nor written unless a test says so.
    lock_rule: LockRule,
    is_offline: bool,
    /// Spawner of git and of builds.
    spawner: Spawner,
    /// Time after which a command of a build is ended.
    build_limit: Duration,
    /// Credentials for sources without a token.
    credentials: Credentials,
    /// Folders of plugins, and a mirror.
    copies: PackageCopies,
}

/// Sink that keeps events.
#[derive(Default)]
struct Events(Mutex<Vec<FetchEvent>>);

impl FetchEvents for Events {
    fn emit(&self, event: FetchEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("sc-install-").tempdir().unwrap();
        for name in ["repo", "home"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let (events, verification, lock_rule) = Default::default();
        Self {
            folder,
            events,
            programs: None,
            verification,
            lock_rule,
            is_offline: false,
            spawner: Spawner::unsupervised(),
            build_limit: BUILD_LIMIT,
            credentials: Credentials::default(),
            copies: PackageCopies::default(),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn settings(&self) -> CacheSettings {
        let path = std::env::var_os("PATH").unwrap();
        let folders = self.programs.iter().cloned().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).unwrap();
        let environment = HostEnvironment::new([("PATH".into(), path), ("HOME".into(), self.path("home").into())]);
        let (verification, is_offline, credentials) = (self.verification, self.is_offline, self.credentials.clone());
        let (spawner, build_limit) = (self.spawner.clone(), self.build_limit);
        CacheSettings {
            folder: self.path("cache"),
            root: self.path("repo"),
            environment,
            spawner,
            verification,
            is_offline,
            build_limit,
            credentials,
            copies: self.copies.clone(),
        }
    }

    fn installer(&self) -> Installer<'_> {
        let lock = PackageLock::new(&self.path("repo"), self.lock_rule);
        Installer { lock, cache: self.path("cache"), ..Installer::new(&self.events) }
    }

    async fn install(&self, plugin: &PluginConfig) -> Result<VerifiedPackage, InstallError> {
        let settings = self.settings();
        let (names, installer) = (plugin.names(), self.installer());
        match &plugin.source {
            PluginSource::Git(git) => installer.install(&GitRepositories::new(settings), names, git).await,
            PluginSource::GithubRelease(release) => {
                installer.install(&GithubReleases::new(settings), names, release).await
            }
            PluginSource::Installed(installed) => {
                let local = LocalPackages {
                    root: self.path("repo"),
                    cache: settings.folder.clone(),
                    environment: settings.environment.clone(),
                    spawner: settings.spawner.clone(),
                    verification: settings.verification,
                    is_offline: settings.is_offline,
                };
                let packages = InstalledPackages::new(settings, local, Some(self.path("pulumi")));
                installer.install(&packages, names, installed).await
            }
            PluginSource::Local(_) => unreachable!("the tests of bridge install local plugins"),
        }
    }

    async fn refusal(&self, plugin: &PluginConfig) -> String {
        bridge::error::chain(&self.install(plugin).await.unwrap_err())
    }

    /// Returns the events since the last call.
    fn take_events(&self) -> Vec<FetchEvent> {
        std::mem::take(&mut *self.events.0.lock().unwrap())
    }

    fn warnings(&self) -> Vec<String> {
        let warning = |event| match event {
            FetchEvent::Warning(text) => Some(text),
            _ => None,
        };
        self.take_events().into_iter().filter_map(warning).collect()
    }

    /// Returns the names in a folder of the cache.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path("cache").join(folder)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Checks that the cache contains no packages and no incomplete files.
    fn assert_empty(&self) {
        for folder in ["packages", "names", "work"] {
            assert_eq!(self.names(folder), Vec::<String>::new(), "{folder}");
        }
    }
}

/// Returns a plugin that prints a text.
fn script(words: &str) -> Vec<u8> {
    format!("#!/bin/sh\necho {words}\n").into_bytes()
}

/// Returns the source of the plugin `reef` in a release.
fn release_source(api_url: &str, tag: &str) -> GithubReleaseSource {
    GithubReleaseSource {
        platform: Some("linux-amd64".parse().unwrap()),
        api_url: Some(api_url.into()),
        ..GithubReleaseSource::new("acme/pulumi-reef".into(), WantedVersion::of_release(tag).unwrap())
    }
}

/// Returns the source of the plugin `reef` in a git repository.
fn git_source(url: &str, revision: &str) -> GitSource {
    GitSource {
        url: url.into(),
        version: WantedVersion::of_git(revision).unwrap(),
        subdir: PathBuf::new(),
        platform: None,
        checksum: None,
        token: None,
        insecure: false,
        build: None,
    }
}

fn plugin(source: impl Into<Source>) -> PluginConfig {
    PluginConfig::new("reef".parse().unwrap(), source.into().0)
}

struct Source(PluginSource);

impl From<GithubReleaseSource> for Source {
    fn from(source: GithubReleaseSource) -> Self {
        Self(PluginSource::GithubRelease(source))
    }
}

impl From<GitSource> for Source {
    fn from(source: GitSource) -> Self {
        Self(PluginSource::Git(source))
    }
}

fn checksum(hex: &str) -> Option<Checksum> {
    Some(Checksum::One(hex.parse().unwrap()))
}

fn token(text: &str) -> Option<SourceToken> {
    SourceToken::new(text.into())
}

/// Returns Pulumi's name for the asset of a version.
fn asset_name(version: &str) -> String {
    format!("pulumi-resource-reef-v{version}-linux-amd64.tar.gz")
}

/// Runs a package like the launcher, and returns its output.
async fn run(package: &VerifiedPackage) -> String {
    run_program(package.program(), package.arguments()).await
}

async fn run_program(program: &Path, arguments: &[OsString]) -> String {
    let spec = ProcessSpec {
        program: program.to_owned(),
        arguments: arguments.to_vec(),
        directory: "/".into(),
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        sandbox: ProcessSandbox::None,
    };
    let process = Spawner::unsupervised().spawn(&spec, Arc::new(())).unwrap();
    process.wait_for_exit().await;
    process.wait_for_output_end().await;
    process.last_lines(OutputStream::Stdout).join("\n")
}

fn write(path: &Path, content: &[u8], mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    drop(fs::remove_file(path));
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
