//! Tests of plugin installation: use of installed plugins, concurrent runs, and kills during the installation.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bridge::plugin::Platform;
use rustix::process::Signal;
use tests::binaries;
use tests::http::{Gate, Response};
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};
use tokio::runtime::Runtime;

use crate::filter::filter_output;
use crate::processes::wait_until;
use crate::repository::{Repository, Sections};

const FILE_RESOURCE: &str = "note: { type: files:fs:File, config: { path: note.txt, content: hello } }";
const ASSET: &str = "pulumi-resource-files-v1.2.3-linux-amd64.tar.gz";

/// Returns the published archive of the plugin `files`.
fn archive() -> &'static [u8] {
    static ARCHIVE: OnceLock<Vec<u8>> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        let plugin = fs::read(binaries::files_plugin().unwrap()).unwrap();
        let license = Entry::File(0o644, b"free");
        tar_gz(&[("LICENSE", license), ("pulumi-resource-files", Entry::File(0o755, &plugin))]).unwrap()
    })
}

/// Release server with its own runtime, for synchronous tests.
struct Server {
    releases: ReleaseServer,
    _runtime: Runtime,
}

impl Server {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let releases = runtime.block_on(ReleaseServer::start()).unwrap();
        releases.publish("acme/pulumi-files", "v1.2.3", &[(ASSET, archive())]);
        Self { releases, _runtime: runtime }
    }

    /// Returns the declaration of the plugin in a stack.
    fn plugin(&self, more: &str) -> String {
        let url = self.releases.api_url();
        format!(
            "- {{ name: files, source: {{ type: github-release, repository: acme/pulumi-files, version: v1.2.3, \
             platform: linux-amd64, apiUrl: '{url}'{more} }}, config: {{ root: site }} }}"
        )
    }

    fn repository(&self, more: &str) -> Repository {
        let repository =
            Repository::new(Sections { plugins: &self.plugin(more), resources: FILE_RESOURCE, outputs: "" });
        fs::create_dir(repository.path("site")).unwrap();
        repository
    }
}

/// Checks that the content of every package in the cache has its digest, that every name refers to a package, and that the lock file is whole.
fn assert_cache_is_intact(repository: &Repository) {
    let lock_file = fs::read_to_string(repository.path(".sc/sc.lock")).unwrap_or_default();
    assert!(lock_file.is_empty() || lock_file.lines().last().unwrap().starts_with("  entry: "), "{lock_file}");
    let cache = repository.path("home/.cache/sc");
    let names = |folder: &str| {
        let entries = fs::read_dir(cache.join(folder)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    for package in names("packages") {
        let mut lines: Vec<String> = files(&cache.join("packages").join(&package))
            .into_iter()
            .map(|(path, (bytes, executable))| {
                format!("{} {}{path}\n", sha256(&bytes), if executable { '*' } else { ' ' })
            })
            .collect();
        lines.sort();
        assert_eq!(sha256(lines.concat().as_bytes()), package);
    }
    for name in names("names").into_iter().filter(|name| !name.starts_with(".tmp")) {
        let text = fs::read(cache.join("names").join(name)).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let package = record["package"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
        assert!(names("packages").contains(&package), "{package}");
    }
}

/// Returns the files of a folder with their content and whether they are executable.
fn files(folder: &Path) -> BTreeMap<String, (Vec<u8>, bool)> {
    let read = |entry: fs::DirEntry| {
        let executable = entry.metadata().unwrap().permissions().mode() & 0o111 != 0;
        (entry.file_name().into_string().unwrap(), (fs::read(entry.path()).unwrap(), executable))
    };
    fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap())).collect()
}

/// Shows: plugins.md#plugins-their-sources-and-their-processes "`sc` fetches it, verifies it and starts it."
#[test]
fn plugin_of_a_github_release_is_installed_and_used() {
    let server = Server::new();
    let repository = server.repository("");
    let filtered =
        |output: String| filter_output(&output, &[(&repository.path(""), "[repo]")]).replace(&size(), "[size]");
    insta::assert_snapshot!(filtered(repository.expect_exit(0, "plugin install")), @r"
    exit 0
    --- out
    STACK  PLUGIN  REVISION
    reef   files   v1.2.3
      CHECKSUM  sha256:[id]
    --- err
    Downloading files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz ([size])
    Downloaded files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz ([size])
    info: plugin files: version v1.2.3 is recorded in .sc/sc.lock
    ");
    let declaration = server.plugin("");
    drop(server);
    repository.expect_exit(0, "provision -S");
    assert_eq!(fs::read_to_string(repository.path("site/note.txt")).unwrap(), "hello");
    let output = repository.expect_exit(0, "plugin install --json");
    let line: serde_json::Value = serde_json::from_str(output.lines().nth(2).unwrap()).unwrap();
    assert_eq!((&line["revision"], &line["name"]), (&"v1.2.3".into(), &"files".into()));
    // The reported checksum can be declared as it is.
    assert_eq!(line["checksum"], "sha256:[id]");
    let pinned = declaration.replace(" }, config", &format!(", checksum: '{}' }}, config", sha256(archive())));
    repository.write_sections(Sections { plugins: &pinned, resources: FILE_RESOURCE, outputs: "" });
    repository.expect_exit(0, "provision --expect-no-changes");
    assert_cache_is_intact(&repository);
}

/// Shows: plugins.md#the-cache "`sc plugin verify` reads all packages of the cache, and fails if one is not as it was fetched."
#[test]
fn packages_in_the_cache_are_verified() {
    let server = Server::new();
    let repository = server.repository("");
    assert!(repository.expect_exit(0, "plugin verify").contains("no packages are in the cache"));
    repository.expect_exit(0, "plugin install");
    let filtered = |output: String| filter_output(&output, &[(&repository.path(""), "[repo]")]);
    insta::assert_snapshot!(filtered(repository.expect_exit(0, "plugin verify")), @"
    exit 0
    --- out
    SOURCE                            REVISION  STATE
    github-release acme/pulumi-files  v1.2.3    verified
      DIGEST  sha256:[id]
    --- err
    ");
    let packages = repository.path("home/.cache/sc/packages");
    let package = fs::read_dir(&packages).unwrap().next().unwrap().unwrap().path();
    let license = package.join("LICENSE");
    fs::remove_file(&license).unwrap();
    fs::write(&license, "paid").unwrap();
    insta::assert_snapshot!(filtered(repository.expect_exit(1, "plugin verify")), @"
    exit 1
    --- out
    SOURCE                            REVISION  STATE
    github-release acme/pulumi-files  v1.2.3    damaged
      DIGEST  sha256:[id]
    --- err
    error: 1 package is not as it was fetched
      hint: what is damaged or missing is not run: the next run that needs it fetches it again, as `sc plugin install` does
    ");
    assert!(
        repository.expect_exit(0, "provision -S").contains("the package in the cache is damaged; it is fetched again")
    );
    assert!(repository.expect_exit(0, "plugin verify --json").contains(r#""state":"verified""#));
    // A rule that is not one changes nothing.
    let mut command = repository.command("preview");
    command.env("SC_VERIFY", "sometimes");
    let output = repository.start_command(command).output();
    assert!(output.contains("SC_VERIFY must be `always` or `never`, not \"sometimes\""), "{output}");
}

fn size() -> String {
    let tenths = archive().len() / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// Shows: plugins.md#another-version "the new plugin compares the resources that were recorded with the old version"
/// Shows: plugins.md#another-version "If the state was written with a later version than the declared one, `sc` warns."
#[test]
fn new_plugin_version_manages_existing_resources() {
    let server = Server::new();
    let asset = ASSET.replace("1.2.3", "1.4.0");
    server.releases.publish("acme/pulumi-files", "v1.4.0", &[(&asset, archive())]);
    let repository = server.repository("");
    repository.expect_exit(0, "provision -S");
    let version = || repository.state()["checkpoint"]["latest"]["resources"][1]["inputs"]["version"].clone();
    assert_eq!(version(), "1.2.3");
    let later = server.plugin("").replace("v1.2.3", "v1.4.0");
    repository.write_sections(Sections { plugins: &later, resources: FILE_RESOURCE, outputs: "" });
    let output = repository.expect_exit(0, "provision -S");
    assert!(!output.contains("made with version") && !output.contains("replac"), "{output}");
    assert_eq!(version(), "1.4.0");
    // Back to the earlier version, for which the state of the later version may be too new.
    repository.write_sections(Sections { plugins: &server.plugin(""), resources: FILE_RESOURCE, outputs: "" });
    let output = repository.expect_exit(0, "provision -S");
    assert!(output.contains("files: version 1.4.0 is requested, but version 1.2.3 is declared"), "{output}");
    repository.expect_exit(0, "destroy --parent --yes");
    assert!(!repository.path("site/note.txt").exists());
}

#[test]
fn plugin_with_a_wrong_checksum_is_not_installed() {
    let server = Server::new();
    let repository = server.repository(&format!(", checksum: '{}'", "0".repeat(64)));
    let output = repository.expect_rejected("provision");
    insta::assert_snapshot!(filter_output(&output, &[]).replace(&size(), "[size]"), @r"
    exit 1
    --- out
    --- err
    Downloading files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz ([size])
    Downloaded files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz ([size])
    error[plugin-load]: failed to load plugin files
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: files, source: { type: github-release, repository: acme/pulumi-files, version: v1.2.3, platform: linux-amd64, apiUrl: 'ht...
      |             ^^^^^

    error: failed to load plugins: failed to load plugin files: failed to resolve plugin binary: checksum mismatch: expected sha256:[id], got sha256:[id]
      hint: if the plugin was changed on purpose, declare the new checksum
    ");
    assert!(repository.names("home/.cache/sc/packages").is_empty());
    let output = repository.expect_exit(1, "plugin install --json");
    assert!(output.contains(r#""event":"download","plugin":"files","what":"pulumi-resource-files"#), "{output}");
    assert!(output.contains("checksum mismatch"), "{output}");
}

#[test]
fn token_is_sent_only_to_its_server() {
    let server = Server::new();
    server
        .releases
        .override_response("/releases/", Response::new(401, r#"{"message": "Bad credentials: hunter2hunter2"}"#));
    let repository = server.repository(", token: hunter2hunter2");
    let output = repository.expect_rejected("provision");
    assert!(output.contains("refuses access") && !output.contains("hunter2"), "{output}");
    assert!(output.contains("with the token of source.token") && output.contains("may be wrong, expired"), "{output}");
    assert_eq!(server.releases.requests()[0].header("authorization"), Some("Bearer hunter2hunter2"));
}

#[test]
fn twenty_concurrent_runs_share_an_empty_cache() {
    let server = Server::new();
    let repository = server.repository("");
    let all: Vec<_> = (0..20).map(|_| repository.start("plugin install")).collect();
    for run in all {
        let output = run.output();
        assert!(output.starts_with("exit 0\n"), "{output}");
    }
    let downloads = server.releases.requests().iter().filter(|request| request.path.contains("/assets/")).count();
    assert_eq!(downloads, 1);
    assert_cache_is_intact(&repository);
    assert!(repository.names("home/.cache/sc/work").is_empty());
}

#[test]
fn killed_download_publishes_no_package() {
    let server = Server::new();
    let repository = server.repository("");
    for sent in [0, 1, archive().len() / 2, archive().len() - 1] {
        let gate: Gate = Arc::new(tokio::sync::Semaphore::new(0));
        server
            .releases
            .override_response("/assets/", Response { gate: Some((sent, gate)), ..Response::new(200, archive()) });
        let earlier_requests = server.releases.requests().len();
        let running = repository.start("plugin install");
        wait_until("the download has begun", || server.releases.requests().len() == earlier_requests + 2);
        running.signal(Signal::KILL);
        running.output();
        wait_until("its processes have ended", || repository.processes().is_empty());
        assert_cache_is_intact(&repository);
        assert!(repository.names("home/.cache/sc/packages").is_empty());
    }
    server.releases.clear_overrides();
    repository.expect_exit(0, "plugin install");
    assert_cache_is_intact(&repository);
}

/// Shows: plugins.md#the-cache "It is therefore complete or absent, even if a run is killed."
#[test]
fn kill_at_any_moment_leaves_the_cache_intact() {
    const KILLS: u32 = 40;
    let server = Server::new();
    let duration = {
        let repository = server.repository("");
        let begun = Instant::now();
        repository.expect_exit(0, "plugin install");
        begun.elapsed()
    };
    let repository = server.repository("");
    let mut published = 0;
    for kill in 0..KILLS {
        fs::remove_dir_all(repository.path("home/.cache/sc/names")).ok();
        fs::remove_dir_all(repository.path("home/.cache/sc/packages")).ok();
        let running = repository.start("plugin install");
        // The sleeps spread the kills over the time that an installation takes. They do not wait for a condition.
        std::thread::sleep(duration * kill / KILLS + Duration::from_millis(1));
        running.signal(Signal::KILL);
        running.output();
        assert_cache_is_intact(&repository);
        published += repository.names("home/.cache/sc/names").len();
    }
    assert!(published < KILLS as usize, "every run ended before it was killed");
    repository.expect_exit(0, "plugin install");
    repository.expect_exit(0, "provision -S");
    assert_cache_is_intact(&repository);
}

/// Shows: plugins.md#git "fetches the repository with your keys and credential helpers"
/// Shows: plugins.md#the-cache "A tag or a commit that is in the cache needs no network."
#[test]
fn plugin_of_a_git_repository_is_used() {
    let origin = tempfile::tempdir().unwrap();
    let git = |arguments: &str| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(arguments.split(' '));
        assert!(git.current_dir(origin.path()).status().unwrap().success());
    };
    git("init --quiet --initial-branch=main");
    fs::create_dir(origin.path().join("bin")).unwrap();
    fs::copy(binaries::files_plugin().unwrap(), origin.path().join("bin/pulumi-resource-files")).unwrap();
    git("add .");
    git("commit --quiet -m plugin");
    git("tag v1.2.3");
    let plugin = format!(
        "- {{ name: files, source: {{ type: git, repository: 'file://{}', ref: v1.2.3, subdir: bin }}, \
         config: {{ root: site }} }}",
        origin.path().display()
    );
    let repository = Repository::new(Sections { plugins: &plugin, resources: FILE_RESOURCE, outputs: "" });
    fs::create_dir(repository.path("site")).unwrap();
    repository.expect_exit(0, "provision -S");
    origin.close().unwrap();
    repository.expect_exit(0, "provision --expect-no-changes");
    repository.expect_exit(0, "destroy --parent --yes");
    assert!(!repository.path("site/note.txt").exists());
}

/// Shows: plugins.md#plugins-their-sources-and-their-processes "`--platform linux-arm64` does so for another platform"
#[test]
fn plugins_are_installed_for_another_platform() {
    let server = Server::new();
    let platforms = ["linux-amd64", "linux-arm64"];
    let other = platforms.into_iter().find(|name| Platform::current() != Some(name.parse().unwrap())).unwrap();
    let archive = |words: &str| {
        let script = format!("#!/bin/sh\necho {words}\n");
        tar_gz(&[("pulumi-resource-files", Entry::File(0o755, script.as_bytes()))]).unwrap()
    };
    let assets = platforms.map(|name| (format!("pulumi-resource-files-v1.3.0-{name}.tar.gz"), archive(name)));
    let assets: Vec<(&str, &[u8])> = assets.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    server.releases.publish("acme/pulumi-files", "v1.3.0", &assets);
    let declared = server.plugin("").replace("v1.2.3", "v1.3.0").replace("platform: linux-amd64, ", "");
    let local = "- { name: rec, source: { type: local, path: $REC } }";
    let plugins = format!("{declared}\n{local}");
    let repository = Repository::new(Sections { plugins: &plugins, resources: "{}", outputs: "" });
    let output = repository.expect_exit(0, &format!("plugin install --platform {other} --json"));
    let row = output.lines().find(|line| line.contains("\"revision\"")).unwrap();
    let row: serde_json::Value = serde_json::from_str(row).unwrap();
    assert_eq!((row["name"].as_str(), row["platform"].as_str()), (Some("files"), Some(other)));
    let packages = fs::read_dir(repository.path("home/.cache/sc/packages")).unwrap();
    let programs: Vec<_> = packages.map(|package| package.unwrap().path().join("pulumi-resource-files")).collect();
    assert_eq!(programs.len(), 1, "{programs:?}");
    assert!(fs::read_to_string(&programs[0]).unwrap().contains(other));
    let told = format!("the plugin rec is not installed for {other}: its files are on this machine");
    assert!(output.contains(&told), "{output}");
    // A platform for which nothing is published, at the position of the declaration.
    let refused = repository.expect_exit(1, "plugin install --platform windows-amd64");
    assert!(refused.contains("error[plugin-load]: failed to load plugin files"), "{refused}");
    assert!(refused.contains("--> .sc/stacks/reef/server.yaml:8:13"), "{refused}");
}
