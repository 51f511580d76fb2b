//! Tests of installed plugins: provisioned with, shared by many runs, and killed during their installation.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tests::http::{Gate, Response};
use tests::program;
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};
use tokio::runtime::Runtime;

use crate::processes::until;
use crate::repository::{Repository, Sections};
use crate::words::filtered;

const NOTE: &str = "note: { type: files:fs:File, config: { path: note.txt, content: hello } }";
const ASSET: &str = "pulumi-resource-files-v1.2.3-linux-amd64.tar.gz";

/// Returns the published archive of the plugin `files`.
fn archive() -> &'static [u8] {
    static ARCHIVE: OnceLock<Vec<u8>> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        let plugin = fs::read(program::files_plugin().unwrap()).unwrap();
        let license = Entry::File(0o644, b"free");
        tar_gz(&[("LICENSE", license), ("pulumi-resource-files", Entry::File(0o755, &plugin))]).unwrap()
    })
}

/// Server of releases with a runtime of its own, for synchronous tests.
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
        let repository = Repository::new(Sections { plugins: &self.plugin(more), resources: NOTE, outputs: "" });
        fs::create_dir(repository.path("site")).unwrap();
        repository
    }
}

/// Checks that every package of the cache has the content of its digest, and that every name leads to a package.
fn assert_whole(repository: &Repository) {
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

#[test]
fn a_plugin_of_a_release_is_installed_and_provisioned_with() {
    let server = Server::new();
    let repository = server.repository("");
    let shown = |told: String| filtered(&told, &[(&repository.path(""), "[repo]")]).replace(&size(), "[size]");
    insta::assert_snapshot!(shown(repository.ends(0, "plugin install")), @r"
    exit 0
    --- out
    STACK  PLUGIN  REVISION  CHECKSUM
    reef   files   v1.2.3    sha256:[id]
    --- err
    Downloading files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz ([size])
    Downloaded files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz ([size])
    ");
    let server_less = server.plugin("");
    drop(server);
    repository.ends(0, "provision -S");
    assert_eq!(fs::read_to_string(repository.path("site/note.txt")).unwrap(), "hello");
    let told = repository.ends(0, "plugin install --json");
    let line: serde_json::Value = serde_json::from_str(told.lines().nth(2).unwrap()).unwrap();
    assert_eq!((&line["revision"], &line["name"]), (&"v1.2.3".into(), &"files".into()));
    // The reported checksum can be declared as it is.
    assert_eq!(line["checksum"], "sha256:[id]");
    let pinned = server_less.replace(" }, config", &format!(", checksum: '{}' }}, config", sha256(archive())));
    repository.describe(Sections { plugins: &pinned, resources: NOTE, outputs: "" });
    repository.ends(0, "provision --expect-no-changes");
    assert_whole(&repository);
}

fn size() -> String {
    let tenths = archive().len() / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[test]
fn another_version_takes_over_what_the_last_one_made() {
    let server = Server::new();
    let asset = ASSET.replace("1.2.3", "1.4.0");
    server.releases.publish("acme/pulumi-files", "v1.4.0", &[(&asset, archive())]);
    let repository = server.repository("");
    repository.ends(0, "provision -S");
    let version = || repository.state()["checkpoint"]["latest"]["resources"][1]["inputs"]["version"].clone();
    assert_eq!(version(), "1.2.3");
    let later = server.plugin("").replace("v1.2.3", "v1.4.0");
    repository.describe(Sections { plugins: &later, resources: NOTE, outputs: "" });
    let told = repository.ends(0, "provision -S");
    assert!(!told.contains("made with version") && !told.contains("replac"), "{told}");
    assert_eq!(version(), "1.4.0");
    // Back to the earlier version: the state of the later one may be too new for it.
    repository.describe(Sections { plugins: &server.plugin(""), resources: NOTE, outputs: "" });
    let told = repository.ends(0, "provision -S");
    assert!(told.contains("files: version 1.4.0 is asked for, and 1.2.3 is declared"), "{told}");
    repository.ends(0, "destroy --parent --yes");
    assert!(!repository.path("site/note.txt").exists());
}

#[test]
fn what_is_declared_is_what_runs_or_nothing_does() {
    let server = Server::new();
    let repository = server.repository(&format!(", checksum: '{}'", "0".repeat(64)));
    let told = repository.refused("provision");
    insta::assert_snapshot!(filtered(&told, &[]).replace(&size(), "[size]"), @r"
    exit 1
    --- out
    --- err
    Downloading files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz ([size])
    Downloaded files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz ([size])
    error: failed to load plugins: failed to load plugin files: failed to resolve plugin binary: checksum mismatch: expected sha256:[id], got sha256:[id]
      hint: if the plugin was changed on purpose, declare the new checksum
    ");
    assert!(repository.names("home/.cache/sc/packages").is_empty());
    let told = repository.ends(1, "plugin install --json");
    assert!(told.contains(r#""event":"download","plugin":"files","what":"pulumi-resource-files"#), "{told}");
    assert!(told.contains("checksum mismatch"), "{told}");
}

#[test]
fn a_token_is_shown_to_nobody_else() {
    let server = Server::new();
    server.releases.answer("/releases/", Response::new(401, r#"{"message": "Bad credentials: hunter2hunter2"}"#));
    let repository = server.repository(", token: hunter2hunter2");
    let told = repository.refused("provision");
    assert!(told.contains("refuses access") && !told.contains("hunter2"), "{told}");
    assert!(told.contains("the token in source.token may be wrong, expired"), "{told}");
    assert_eq!(server.releases.requests()[0].header("authorization"), Some("Bearer hunter2hunter2"));
}

#[test]
fn twenty_runs_at_once_share_an_empty_cache() {
    let server = Server::new();
    let repository = server.repository("");
    let all: Vec<_> = (0..20).map(|_| repository.start("plugin install")).collect();
    for run in all {
        let told = run.told();
        assert!(told.starts_with("exit 0\n"), "{told}");
    }
    let downloads = server.releases.requests().iter().filter(|request| request.path.contains("/assets/")).count();
    assert_eq!(downloads, 1);
    assert_whole(&repository);
    assert!(repository.names("home/.cache/sc/work").is_empty());
}

#[test]
fn a_kill_in_the_middle_of_a_download_leaves_nothing_published() {
    let server = Server::new();
    let repository = server.repository("");
    for sent in [0, 1, archive().len() / 2, archive().len() - 1] {
        let gate: Gate = Arc::new(tokio::sync::Semaphore::new(0));
        server.releases.answer("/assets/", Response { gate: Some((sent, gate)), ..Response::new(200, archive()) });
        let asked = server.releases.requests().len();
        let running = repository.start("plugin install");
        until("the download has begun", || server.releases.requests().len() == asked + 2);
        running.signal(Signal::KILL);
        running.told();
        until("nothing of it is left", || repository.processes().is_empty());
        assert_whole(&repository);
        assert!(repository.names("home/.cache/sc/packages").is_empty());
    }
    server.releases.behave();
    repository.ends(0, "plugin install");
    assert_whole(&repository);
}

#[test]
fn a_kill_at_any_moment_leaves_the_cache_whole() {
    const KILLS: u32 = 40;
    let server = Server::new();
    let whole = {
        let repository = server.repository("");
        let begun = Instant::now();
        repository.ends(0, "plugin install");
        begun.elapsed()
    };
    let repository = server.repository("");
    let mut published = 0;
    for kill in 0..KILLS {
        fs::remove_dir_all(repository.path("home/.cache/sc/names")).ok();
        fs::remove_dir_all(repository.path("home/.cache/sc/packages")).ok();
        let running = repository.start("plugin install");
        // The sleep selects the moment of the kill; it waits for nothing.
        std::thread::sleep(whole * kill / KILLS + Duration::from_millis(1));
        running.signal(Signal::KILL);
        running.told();
        assert_whole(&repository);
        published += repository.names("home/.cache/sc/names").len();
    }
    assert!(published < KILLS as usize, "every run came to its end before it was killed");
    repository.ends(0, "plugin install");
    repository.ends(0, "provision -S");
    assert_whole(&repository);
}

#[test]
fn a_plugin_of_a_git_repository_is_provisioned_with() {
    let origin = tempfile::tempdir().unwrap();
    let git = |arguments: &str| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(arguments.split(' '));
        assert!(git.current_dir(origin.path()).status().unwrap().success());
    };
    git("init --quiet --initial-branch=main");
    fs::create_dir(origin.path().join("bin")).unwrap();
    fs::copy(program::files_plugin().unwrap(), origin.path().join("bin/pulumi-resource-files")).unwrap();
    git("add .");
    git("commit --quiet -m plugin");
    git("tag v1.2.3");
    let plugin = format!(
        "- {{ name: files, source: {{ type: git, repository: 'file://{}', ref: v1.2.3, subdir: bin }}, \
         config: {{ root: site }} }}",
        origin.path().display()
    );
    let repository = Repository::new(Sections { plugins: &plugin, resources: NOTE, outputs: "" });
    fs::create_dir(repository.path("site")).unwrap();
    repository.ends(0, "provision -S");
    origin.close().unwrap();
    repository.ends(0, "provision --expect-no-changes");
    repository.ends(0, "destroy --parent --yes");
    assert!(!repository.path("site/note.txt").exists());
}
