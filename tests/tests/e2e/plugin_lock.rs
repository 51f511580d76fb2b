//! Tests of the lock file as a team uses it: resolved once, reviewed, and the same on every machine.

use std::fs;
use std::process::Command;

use tests::releases::{Entry, ReleaseServer, tar_gz};
use tests::{binaries, http};
use tokio::runtime::Runtime;

use crate::filter::filter_output;
use crate::repository::{Repository, Sections};

const FILE_RESOURCE: &str = "note: { type: files:fs:File, config: { path: note.txt, content: hello } }";
const LOCK_FILE: &str = ".sc/sc.lock";

fn asset(version: &str) -> String {
    format!("pulumi-resource-files-v{version}-linux-amd64.tar.gz")
}

/// Release server with its own runtime, for synchronous tests.
struct Server {
    releases: ReleaseServer,
    runtime: Runtime,
}

impl Server {
    fn new() -> Self {
        Self::of(ReleaseServer::start())
    }

    fn of(server: impl Future<Output = std::io::Result<ReleaseServer>>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let releases = runtime.block_on(server).unwrap();
        releases.add_digests();
        let server = Self { releases, runtime };
        server.publish("1.2.3");
        server
    }

    fn publish(&self, version: &str) {
        let plugin = fs::read(binaries::files_plugin().unwrap()).unwrap();
        let archive = tar_gz(&[("pulumi-resource-files", Entry::File(0o755, &plugin))]).unwrap();
        self.releases.publish("acme/pulumi-files", &format!("v{version}"), &[(&asset(version), &archive)]);
    }

    fn repository(&self, version: &str) -> Repository {
        let plugins = self.plugins(version);
        let repository = Repository::new(Sections { plugins: &plugins, resources: FILE_RESOURCE, outputs: "" });
        fs::create_dir(repository.path("site")).unwrap();
        repository
    }

    fn plugins(&self, version: &str) -> String {
        let url = self.releases.api_url();
        format!(
            "- {{ name: files, source: {{ type: github-release, repository: acme/pulumi-files, version: '{version}', \
             platform: linux-amd64, apiUrl: '{url}' }}, config: {{ root: site }} }}"
        )
    }

    /// Returns the host and the path of the API.
    fn place(&self) -> String {
        self.releases.api_url().split_once("://").unwrap().1.to_owned()
    }

    fn requests(&self) -> usize {
        self.releases.requests().len()
    }

    fn filtered(&self, output: &str) -> String {
        let place = self.releases.api_url();
        let place = place.split_once("://").unwrap().1.to_owned();
        filter_output(&output.replace(&place, "HOST/api"), &[])
    }
}

/// Returns a machine with the files of a repository, without a cache and a state.
fn other_machine(repository: &Repository) -> Repository {
    let other = repository.copy();
    for folder in ["home/.cache", "home/.local"] {
        fs::remove_dir_all(other.path(folder)).ok();
    }
    other
}

fn in_pipeline(repository: &Repository, arguments: &str) -> String {
    let mut command = repository.command(arguments);
    command.env("CI", "true");
    repository.start_command(command).output()
}

#[test]
fn version_moves_by_an_update_only() {
    let server = Server::new();
    let repository = server.repository("^1.2");
    insta::assert_snapshot!(server.filtered(&repository.expect_exit(0, "plugin lock")), @"
    exit 0
    --- out
    PLUGIN  WANTED  BEFORE  LOCKED  RELEASED  VERIFIED BY
    files   ^1.2    -       v1.2.3  -         published (1 platform)
    --- err
    ");
    assert_eq!(repository.names("home/.cache/sc/packages").len(), 0, "published digests need no download");
    repository.expect_exit(0, "provision -S");
    let version = || repository.state()["checkpoint"]["latest"]["resources"][1]["inputs"]["version"].clone();
    assert_eq!(version(), "1.2.3");

    server.publish("1.4.0");
    server.publish("2.0.0");
    let text = repository.read(LOCK_FILE);
    let requests = server.requests();
    repository.expect_exit(0, "preview");
    assert_eq!((server.requests(), repository.read(LOCK_FILE)), (requests, text.clone()));
    let other = other_machine(&repository);
    assert!(in_pipeline(&other, "preview").starts_with("exit 0"));

    insta::assert_snapshot!(server.filtered(&repository.expect_exit(0, "plugin update --dry-run")), @"
    exit 0
    --- out
    PLUGIN  WANTED  BEFORE  LOCKED  RELEASED  VERIFIED BY
    files   ^1.2    v1.2.3  v1.4.0  -         published (1 platform)
    --- err
    info: nothing was changed: this is what `sc plugin update` would record
    ");
    assert_eq!(repository.read(LOCK_FILE), text);
    insta::assert_snapshot!(server.filtered(&repository.expect_exit(0, "plugin update files")), @"
    exit 0
    --- out
    PLUGIN  WANTED  BEFORE  LOCKED  RELEASED  VERIFIED BY
    files   ^1.2    v1.2.3  v1.4.0  -         published (1 platform)
    --- err
    ");
    repository.expect_exit(0, "provision -S");
    assert_eq!(version(), "1.4.0");
    let json = server.filtered(&repository.expect_exit(0, "plugin update files --to v1.2.3 --json"));
    let json: String =
        json.lines().filter(|line| !line.contains("activity")).map(|line| line.to_owned() + "\n").collect();
    insta::assert_snapshot!(json, @r#"
    exit 0
    --- out
    {"name":"files","source":"github-release HOST/api/acme/pulumi-files","wanted":"^1.2","before":"v1.4.0","revision":"v1.2.3","tag":"v1.2.3","released":null,"changed":true}
    --- err
    "#);
    let refused = repository.expect_exit(1, "plugin update files --to v2.0.0");
    assert!(refused.contains("v2.0.0 does not fit the declared version ^1.2"), "{refused}");
    let unknown = repository.expect_exit(2, "plugin update file");
    insta::assert_snapshot!(server.filtered(&unknown), @"
    exit 2
    --- out
    --- err
    error: no stack declares the plugin file
      hint: did you mean files?
    ");
}

/// Shows: plugins.md#the-lock-file "`--locked` fails where an entry is missing"
#[test]
fn declaration_that_is_not_locked_is_refused_at_its_line_in_a_pipeline() {
    let server = Server::new();
    let repository = server.repository("^1.2");
    repository.expect_exit(0, "plugin lock");
    let changed = server.plugins("^2");
    repository.write_sections(Sections { plugins: &changed, resources: FILE_RESOURCE, outputs: "" });
    insta::assert_snapshot!(server.filtered(&in_pipeline(&repository, "preview")), @"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin files
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: files, source: { type: github-release, repository: acme/pulumi-files, version: '^2', platform: linux-amd64, apiUrl: 'http...
      |             ^^^^^

    error: failed to load plugins: failed to load plugin files: failed to resolve plugin binary: github-release HOST/api/acme/pulumi-files ^2 is not in the lock file, which a pipeline must not change
      hint: run `sc plugin lock` on your machine, and commit the lock file
    ");
    insta::assert_snapshot!(server.filtered(&repository.expect_exit(1, "plugin lock --check")), @"
    exit 1
    --- out
    --- err
    warning: github-release HOST/api/acme/pulumi-files ^1.2 is declared by no stack
    warning: github-release HOST/api/acme/pulumi-files ^2 is missing
    error: .sc/sc.lock would change
      hint: run `sc plugin lock` on your machine, and commit the lock file
    ");
    let output = repository.expect_exit(1, "preview --locked");
    assert!(output.contains("^2 is not in the lock file, which --locked must not change"), "{output}");
    // A range that nothing fits.
    insta::assert_snapshot!(server.filtered(&repository.expect_exit(1, "plugin lock")), @r#"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin files
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: files, source: { type: github-release, repository: acme/pulumi-files, version: '^2', platform: linux-amd64, apiUrl: 'http...
      |             ^^^^^

    error: failed to load plugins: failed to load plugin files: failed to resolve plugin binary: acme/pulumi-files at 127.0.0.1 has no release for version "^2": the highest version is 1.2.3
      hint: a range is written as in Cargo: `^1.2`, `~1.4`, `>=1, <2`; a pre-release fits only if the range names one
    "#);
    let fitting = server.plugins(">=1.2, <2");
    repository.write_sections(Sections { plugins: &fitting, resources: FILE_RESOURCE, outputs: "" });
    assert!(in_pipeline(&repository, "preview").starts_with("exit 0"));
    repository.expect_exit(0, "plugin lock");
    assert!(!repository.read(LOCK_FILE).contains("^1.2"), "no stack declares it any more");
    assert!(repository.expect_exit(0, "plugin lock --check").contains(".sc/sc.lock has what the stacks declare"));
}

/// Shows: plugins.md#the-lock-file "takes both sides, and of two entries of one declaration the one with the higher tag"
#[test]
fn conflict_of_a_merge_is_repaired_by_one_command() {
    let server = Server::new();
    let repository = server.repository("^1.2");
    repository.expect_exit(0, "plugin lock");
    let ours = repository.read(LOCK_FILE);
    server.publish("1.4.0");
    repository.expect_exit(0, "plugin update");
    let theirs = repository.read(LOCK_FILE);
    let entry = |text: &str| text[text.find("- source").unwrap()..].to_owned();
    let head = &ours[..ours.find("- source").unwrap()];
    let conflict = format!("{head}<<<<<<< HEAD\n{}=======\n{}>>>>>>> next\n", entry(&ours), entry(&theirs));
    repository.write(LOCK_FILE, &conflict);
    let output = repository.expect_exit(1, "preview");
    assert!(output.contains("line 5 is the mark of a merge that is not resolved"), "{output}");
    assert!(output.contains("`sc plugin lock` repairs it"), "{output}");
    assert_eq!(repository.read(LOCK_FILE), conflict);
    let output = repository.expect_exit(0, "plugin lock");
    assert!(output.contains("^1.2: v1.4.0 is taken, the higher of both sides"), "{output}");
    assert_eq!(repository.read(LOCK_FILE), theirs);
}

/// Shows: plugins.md#slow-downloads "An asset that is locked or resolved is downloaded from its public address"
#[test]
fn locked_asset_of_a_public_repository_needs_no_request_to_the_api() {
    let server = Server::of(ReleaseServer::start_tls());
    let plugins = format!(
        "- {{ name: files, source: {{ type: github-release, repository: '{}/acme/pulumi-files', version: ^1, \
         platform: linux-amd64 }}, config: {{ root: site }} }}",
        server.releases.url()
    );
    let repository = Repository::new(Sections { plugins: &plugins, resources: FILE_RESOURCE, outputs: "" });
    fs::create_dir(repository.path("site")).unwrap();
    let run = |repository: &Repository, arguments: &str| {
        let mut command = repository.command(arguments);
        command.env("SSL_CERT_FILE", server.releases.authority().unwrap());
        repository.start_command(command).output()
    };
    // Without the authority, the certificate is refused.
    let output = repository.expect_exit(1, "plugin lock");
    assert!(output.contains("certificate"), "{output}");
    assert!(run(&repository, "plugin lock").starts_with("exit 0"));
    assert!(repository.read(LOCK_FILE).contains("/acme/pulumi-files\n  wanted: ^1\n"));

    let of_api = || server.releases.requests().iter().filter(|request| request.path.starts_with("/api/")).count();
    let before = of_api();
    let output = run(&repository, "preview --locked");
    assert!(output.starts_with("exit 0"), "{output}");
    let public = |request: &http::Request| {
        request.path == format!("/acme/pulumi-files/releases/download/v1.2.3/{}", asset("1.2.3"))
    };
    assert_eq!(server.releases.requests().iter().filter(|request| public(request)).count(), 1);
    assert_eq!(of_api(), before);

    // The assets of a private repository have no public address.
    server.releases.make_private();
    let other = other_machine(&repository);
    let output = run(&other, "preview --locked");
    assert!(output.starts_with("exit 0"), "{output}");
    assert!(of_api() > before);
}

/// Shows: plugins.md#the-lock-file "`--offline` opens no connection for a package"
#[test]
fn locked_plugin_in_the_cache_runs_in_a_namespace_without_a_network() {
    let server = Server::new();
    let repository = server.repository("^1.2");
    repository.expect_exit(0, "plugin install");
    let unshare = ["--map-root-user", "--net", "--"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("this kernel allows no network namespaces: the plugin is not run in one");
        return;
    }
    for arguments in ["preview --locked", "preview --offline", "provision -S --locked --offline"] {
        let sc = repository.command(arguments);
        let mut command = Command::new("unshare");
        // The plugin listens at the loopback interface.
        command
            .args(unshare)
            .args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
            .arg(sc.get_program())
            .args(sc.get_args());
        let output = repository.start_command(crate::repository::in_place_of(&sc, command)).output();
        assert!(output.starts_with("exit 0"), "{arguments}: {output}");
    }
    let other = other_machine(&repository);
    let requests = server.requests();
    let output = other.expect_exit(1, "preview --offline");
    insta::assert_snapshot!(server.filtered(&output), @"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin files
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: files, source: { type: github-release, repository: acme/pulumi-files, version: '^1.2', platform: linux-amd64, apiUrl: 'ht...
      |             ^^^^^

    error: failed to load plugins: failed to load plugin files: failed to resolve plugin binary: --offline permits no request for the package
      hint: it is not in the cache of this machine: run `sc plugin install` with network first
    ");
    assert_eq!(server.requests(), requests);
}

/// Twenty processes begin at once, without a cache and a lock file.
#[test]
fn twenty_runs_at_once_agree_on_one_entry_and_download_once() {
    let server = Server::new();
    let repository = server.repository("^1");
    let running: Vec<_> = (0..20).map(|_| repository.start("plugin install")).collect();
    for running in running {
        let output = running.output();
        assert!(output.starts_with("exit 0"), "{output}");
    }
    assert_eq!(repository.read(LOCK_FILE).matches("- source").count(), 1);
    let downloads = server.releases.requests().iter().filter(|request| request.path.contains("/assets/")).count();
    assert_eq!(downloads, 1);
    assert!(repository.expect_exit(0, "plugin lock --check").contains("has what the stacks declare"));
    drop(server.runtime);
}

#[test]
fn schema_of_a_plugin_is_printed_as_it_is() {
    let server = Server::new();
    let repository = server.repository("^1.2");
    let output = repository.expect_exit(0, "plugin schema files");
    let (out, err) = output.split_once("--- err\n").unwrap();
    let schema: serde_json::Value = serde_json::from_str(out.strip_prefix("exit 0\n--- out\n").unwrap()).unwrap();
    assert_eq!(schema["name"], "files");
    assert!(err.contains("recorded in .sc/sc.lock"), "{err}");
    assert!(repository.expect_exit(2, "plugin schema file").contains("did you mean files?"));
}

/// Shows: plugins.md#folders-of-plugins-and-mirrors "copies what the lock file records for the plugins of all stacks"
#[test]
fn locked_plugins_are_copied_for_a_machine_without_network() {
    let server = Server::new();
    let repository = server.repository("^1.2");
    repository.expect_exit(0, "plugin lock");
    let mirrored = repository.expect_exit(0, "plugin mirror copies");
    insta::assert_snapshot!(server.filtered(&mirrored).replace(&server.place(), "HOST/api"), @"
    exit 0
    --- out
    PLUGIN  PLATFORM     SIZE    STATE
    files   linux-amd64  7.6 MB  copied
      FILE  [repo]/copies/HOST/api/acme/pulumi-files/v1.2.3/pulumi-resource-files-v1.2.3-linux-amd64.tar.gz
    --- err
    Downloading files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz (7.6 MB)
    Downloaded files: pulumi-resource-files-v1.2.3-linux-amd64.tar.gz (7.6 MB)
    ");
    let again = repository.expect_exit(0, "plugin mirror copies --json");
    assert!(again.contains("\"wasThere\":true"), "{again}");
    let missing = repository.expect_exit(1, "plugin mirror copies --platform darwin-arm64");
    assert!(missing.contains("run `sc plugin lock --platform darwin-arm64`"), "{missing}");

    server.releases.remove_releases();
    let other = other_machine(&repository);
    let mut command = other.command("provision --yes --locked --offline");
    command.env("SC_PLUGIN_PATH", repository.path("copies"));
    let output = other.start_command(command).output();
    assert!(output.starts_with("exit 0\n"), "{output}");
    let mut command = other.command("preview");
    command.env("SC_PLUGIN_MIRROR", "http://mirror.example");
    let refused = other.start_command(command).output();
    assert!(
        refused.contains("SC_PLUGIN_MIRROR cannot be used") && refused.contains("it is not encrypted"),
        "{refused}"
    );
}

/// Shows: plugins.md#adding-a-plugin "The file keeps its comments and its order"
#[test]
fn plugin_is_added_with_the_range_of_its_newest_release() {
    let server = Server::of(ReleaseServer::start_tls());
    let origin = server.releases.url();
    let repository = Repository::new(Sections { plugins: "", resources: FILE_RESOURCE, outputs: "" });
    let path = ".sc/stacks/reef/server.yaml";
    repository.write(path, &repository.read(path).replace(FILE_RESOURCE, "{}\n# about outputs\noutputs: {}"));
    let with_authority = |arguments: &str| {
        let mut command = repository.command(arguments);
        command.env("SSL_CERT_FILE", server.releases.authority().unwrap());
        server.filtered(&repository.start_command(command).output()).replace(&origin, "https://HOST")
    };
    let target = format!("{origin}/acme/pulumi-files");
    let added = with_authority(&format!("plugin add {target}"));
    insta::assert_snapshot!(added, @"
    exit 0
    --- out
    PLUGIN  WANTED  BEFORE  LOCKED  RELEASED  VERIFIED BY
    files   ^1.2    -       v1.2.3  -         published (1 platform)
    --- err
    info: plugin files ^1.2 is added to [repo]/.sc/stacks/reef/server.yaml
    ");
    insta::assert_snapshot!(repository.read(path).replace(&origin, "https://HOST"), @r#"
    schemaVersion: 1.0
    provisioner:
      type: pulumi
      config:
        state-storage: { type: fs, config: { path: file://backend } }
        secrets-provider: { type: passphrase, config: { passPhrase: hush } }
    resources:
      resources:
        prod:
          resources:
            {}
    # about outputs
    outputs: {}
    plugins:
      - name: files
        source:
          type: github-release
          repository: https://HOST/acme/pulumi-files
          version: "^1.2"
    "#);
    let again = with_authority(&format!("plugin add {target}"));
    assert!(again.starts_with("exit 1\n") && again.contains("it declares a plugin files already"), "{again}");
    let before = repository.read(path);
    let missing = with_authority(&format!("plugin add {target}@^7 --name other"));
    assert!(missing.starts_with("exit 1\n") && missing.contains("has no release for version"), "{missing}");
    assert_eq!(repository.read(path), before, "nothing is written before the version is found");
}

/// Shows: plugins.md#plugins-that-no-stack-declares "It is taken in the version that its provider resource in the state has"
/// Shows: plugins.md#plugins-that-no-stack-declares "In a pipeline, it is used only if the lock file records it"
#[test]
fn plugin_that_has_left_the_file_deletes_what_it_has_created() {
    let server = Server::of(ReleaseServer::start_tls());
    let source = format!(
        "{{ type: github-release, repository: '{}/acme/pulumi-files', version: v1.2.3 }}",
        server.releases.url()
    );
    let plugins = format!("- {{ name: files, source: {source}, config: {{ root: site }} }}");
    let repository = Repository::new(Sections { plugins: &plugins, resources: FILE_RESOURCE, outputs: "" });
    fs::create_dir(repository.path("site")).unwrap();
    let run = |repository: &Repository, arguments: &str, variables: &[(&str, &str)]| {
        let mut command = repository.command(arguments);
        command.env("SSL_CERT_FILE", server.releases.authority().unwrap()).envs(variables.iter().copied());
        repository.start_command(command).output()
    };
    assert!(run(&repository, "provision --yes", &[]).starts_with("exit 0\n"));
    repository.write_sections(Sections { plugins: "", resources: "{}", outputs: "" });
    let unlocked = other_machine(&repository);
    fs::remove_file(unlocked.path(LOCK_FILE)).unwrap();
    let refused = run(&unlocked, "provision --yes", &[("CI", "true")]);
    assert!(refused.starts_with("exit 1\n"), "{refused}");
    assert!(refused.contains("a pipeline takes it only if the lock file records it"), "{refused}");
    assert!(refused.contains("declare and enable the plugin in `plugins`"), "{refused}");

    let locked = other_machine(&repository);
    let output = run(&locked, "provision --yes --locked", &[("CI", "true")]);
    assert!(output.starts_with("exit 0\n") && output.contains("deleted note--prod"), "{output}");
    let told = "recorded resources need the plugin files 1.2.3, a release of https://127.0.0.1:";
    assert!(output.contains(told) && output.contains("which no stack declares: it is taken from there"), "{output}");

    server.releases.remove_releases();
    let refused = run(&unlocked, "provision --yes", &[]);
    assert!(refused.starts_with("exit 1\n") && refused.contains("it is not to be had: "), "{refused}");
    assert!(refused.contains("declare and enable the plugin in `plugins`"), "{refused}");
}

/// Shows: plugins.md#the-lock-file "`sc plugin ls NAME` says why it is used in this version"
#[test]
fn one_plugin_is_described_with_the_reason_for_its_version() {
    let server = Server::new();
    let repository = server.repository("^1.2");
    repository.expect_exit(0, "plugin lock");
    let described = server.filtered(&repository.expect_exit(0, "plugin ls files"));
    insta::assert_snapshot!(described, @"
    exit 0
    --- out
    plugin           files
    stacks           reef
    source           github-release acme/pulumi-files
    wanted           ^1.2
    locked           v1.2.3
    verified by      published
    platforms        linux-amd64
    size             7.6 MB (pulumi-resource-files-v1.2.3-linux-amd64.tar.gz)
    reason           it was the highest version in ^1.2 when it was locked; `sc plugin update files` looks for a newer one
    on this machine  no
    --- err
    ");
    let json = repository.expect_exit(0, "plugin ls files --json");
    assert!(json.contains("\"locked\":\"v1.2.3\"") && json.contains("\"on this machine\":\"no\""), "{json}");
    repository.expect_exit(2, "plugin ls fils");
}
