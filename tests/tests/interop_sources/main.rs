//! Tests of a provider on Pulumi's Go SDK, published like Pulumi's own and as part of a git repository: `sc` installs
//! it from there and provisions with it. The same for Terraform providers, by Pulumi's bridge.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod proxy;
mod pulumi;
mod ssh;
mod terraform;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use bridge::plugin::{GithubReleaseSource, WantedVersion};
use bridge::source::{Github, Repository};
use serde_json::{Value, json};
use tests::commands::run;
use tests::http::{HttpServer, Response};
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};
use tests::sdk_providers::{self, Sdk, resource_inputs};
use tests::sdks::{first_on_path, node_modules};

const SDK: Sdk = Sdk::Go;

/// Returns the provider's program.
fn program() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    SDK.install(folder.path());
    fs::read(folder.path().join("pulumi-resource-peergo")).unwrap()
}

/// Installs the plugin, removes its source, creates a resource, runs again, and deletes the resource.
fn install_provision_and_destroy(repository: &sdk_providers::Repository, source: &Value, remove_source: impl FnOnce()) {
    let plugins = json!([{ "name": SDK.package(), "source": source, "passEnv": ["PEER_HOME"] }]);
    let resources = json!({ "a": { "type": "peergo:index:Thing", "config": resource_inputs("1", "x", "first") } });
    repository.declare_sections(&plugins, &resources, &json!({ "out": "${resource:main/a.out}" }));
    repository.run_successfully(&["plugin", "install"]);
    remove_source();
    repository.provision();
    assert_eq!(repository.outputs(&[])["out"], "made of 1");
    assert_eq!(repository.home.resources().len(), 1);
    repository.run_successfully(&["provision", "--expect-no-changes"]);
    repository.run_successfully(&["destroy", "--parent", "--yes"]);
    assert_eq!(repository.home.resources().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_from_release_provisions() {
    let program = program();
    let server = ReleaseServer::start().await.unwrap();
    let members = [
        ("LICENSE", Entry::File(0o644, b"Apache-2.0")),
        ("README.md", Entry::File(0o644, b"A provider.")),
        ("pulumi-resource-peergo", Entry::File(0o755, &program)),
    ];
    let archive = tar_gz(&members).unwrap();
    let platform = bridge::plugin::Platform::current().unwrap().to_string();
    server.publish(
        "acme/pulumi-peergo",
        "v0.3.1",
        &[(&format!("pulumi-resource-peergo-v0.3.1-{platform}.tar.gz"), &archive)],
    );
    server.redirect_downloads();
    let source = json!({
        "type": "github-release", "repository": "acme/pulumi-peergo", "version": "v0.3.1",
        "apiUrl": server.api_url(), "checksum": { platform: sha256(&archive) },
    });
    tokio::task::spawn_blocking(move || {
        install_provision_and_destroy(&sdk_providers::Repository::new(&[]), &source, || server.remove_releases())
    })
    .await
    .unwrap();
}

/// The names and the archive are those of goreleaser, and the version is that of a range.
#[tokio::test(flavor = "multi_thread")]
async fn provider_of_goreleaser_is_found_by_a_range_and_runs_offline() {
    let archive = tar_gz(&[
        ("LICENSE", Entry::File(0o644, b"Apache-2.0")),
        ("README.md", Entry::File(0o644, b"A provider.")),
        ("pulumi-peergo", Entry::File(0o755, &program())),
    ]);
    let archive = archive.unwrap();
    let server = ReleaseServer::start().await.unwrap();
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let os = if os == "macos" { "Darwin" } else { "Linux" };
    let asset = format!("pulumi-peergo_0.3.1_{os}_{}.tar.gz", if arch == "aarch64" { "arm64" } else { arch });
    let sums = format!("{}  {asset}\n", sha256(&archive));
    let files: [(&str, &[u8]); 2] = [(&asset, &archive), ("pulumi-peergo_0.3.1_checksums.txt", sums.as_bytes())];
    server.publish("acme/pulumi-peergo", "v0.3.1", &files);
    server.publish("acme/pulumi-peergo", "v0.4.0", &files);
    let source = json!({
        "type": "github-release", "repository": "acme/pulumi-peergo", "version": "^0.3", "apiUrl": server.api_url(),
    });
    tokio::task::spawn_blocking(move || {
        let repository = sdk_providers::Repository::new(&[]);
        install_provision_and_destroy(&repository, &source, || server.remove_releases());
        repository.run_successfully(&["preview", "--locked", "--offline"]);
        repository.run_successfully(&["plugin", "lock", "--check"]);
    })
    .await
    .unwrap();
}

/// A machine with network locks and copies the provider; another one has the repository and the copies only.
///
/// Shows: plugin-recipes.md#machines-without-network "run there with `SC_PLUGIN_PATH=/path/to/copies SC_OFFLINE=1`"
#[tokio::test(flavor = "multi_thread")]
async fn provider_is_mirrored_and_runs_on_a_machine_without_network() {
    let archive = tar_gz(&[("pulumi-resource-peergo", Entry::File(0o755, &program()))]).unwrap();
    let server = ReleaseServer::start().await.unwrap();
    server.add_digests();
    let platform = bridge::plugin::Platform::current().unwrap().to_string();
    let asset = format!("pulumi-resource-peergo-v0.3.1-{platform}.tar.gz");
    server.publish("acme/pulumi-peergo", "v0.3.1", &[(&asset, &archive)]);
    let source = json!({
        "type": "github-release", "repository": "acme/pulumi-peergo", "version": "^0.3", "apiUrl": server.api_url(),
    });
    tokio::task::spawn_blocking(move || {
        let copies = tempfile::tempdir().unwrap();
        let first = sdk_providers::Repository::new(&[]);
        let plugins = json!([{ "name": SDK.package(), "source": source, "passEnv": ["PEER_HOME"] }]);
        first.declare_sections(&plugins, &json!({}), &json!({}));
        let folder = copies.path().display().to_string();
        first.run_successfully(&["plugin", "lock"]);
        first.run_successfully(&["plugin", "mirror", &folder]);
        server.remove_releases();
        let second = sdk_providers::Repository::new(&[]).with_variable("SC_PLUGIN_PATH", &folder);
        second.write_file(".sc/sc.lock", &first.read_file(".sc/sc.lock"));
        let second = second.with_variable("SC_OFFLINE", "1");
        install_provision_and_destroy(&second, &source, || drop(copies));
    })
    .await
    .unwrap();
}

/// Commits the provider to the folder `dist` of a git repository, with the tag `v0.3.1`.
fn provider_in_git() -> tempfile::TempDir {
    let origin = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(arguments).current_dir(origin.path());
        run(&mut git).unwrap();
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    write_program(&origin.path().join("dist"), &program());
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "a provider"]);
    git(&["tag", "-a", "v0.3.1", "-m", "v0.3.1"]);
    origin
}

#[test]
fn provider_from_git_repository_provisions() {
    let origin = provider_in_git();
    let source = json!({
        "type": "git", "repository": format!("file://{}", origin.path().display()), "ref": "v0.3.1", "subdir": "dist",
        "checksum": sha256(&program()),
    });
    let path = origin.path().to_owned();
    install_provision_and_destroy(&sdk_providers::Repository::new(&[]), &source, || {
        fs::rename(&path, path.with_extension("gone")).unwrap()
    });
    fs::remove_dir_all(origin.path().with_extension("gone")).unwrap();
}

/// Installs a provider from the sources of a language in a git repository, which `sc` builds.
fn build_and_provision(sdk: Sdk, more_files: &[(&str, &str)]) {
    let origin = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(arguments).current_dir(origin.path());
        run(&mut git).unwrap();
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_providers").join(sdk.language());
    for file in fs::read_dir(sources).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), origin.path().join(file.file_name())).unwrap();
        }
    }
    for (name, text) in more_files {
        fs::write(origin.path().join(name), text).unwrap();
    }
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "a provider"]);
    let source = json!({
        "type": "git", "repository": format!("file://{}", origin.path().display()), "version": "main", "build": true,
    });
    let mut repository = sdk_providers::Repository::new(&[]);
    // The authorities of this machine, without which no registry is reached.
    for name in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        if let Ok(value) = std::env::var(name) {
            repository = repository.with_variable(name, &value);
        }
    }
    if sdk == Sdk::Node {
        // The SDK needs a newer Node.js than that of the machine may be.
        let node = node_modules("node-pulumi", 22, &["@pulumi/pulumi@^3.270.0"]).unwrap();
        repository = repository.with_path(first_on_path(&node.bin()).unwrap());
    }
    let plugins = json!([{ "name": sdk.package(), "source": source, "passEnv": ["PEER_HOME"] }]);
    let resources = json!({ "a": { "type": format!("{}:index:Thing", sdk.package()), "config": resource_inputs("1", "x", "first") } });
    repository.declare_sections(&plugins, &resources, &json!({ "out": "${resource:main/a.out}" }));
    repository.run_successfully(&["plugin", "install"]);
    let path = origin.keep();
    fs::rename(&path, path.with_extension("gone")).unwrap();
    repository.provision();
    assert_eq!(repository.outputs(&[])["out"], "made of 1");
    repository.run_successfully(&["preview", "--locked", "--offline"]);
    repository.run_successfully(&["destroy", "--parent", "--yes"]);
    assert_eq!(repository.home.resources().len(), 0);
    fs::remove_dir_all(path.with_extension("gone")).unwrap();
}

#[test]
fn provider_in_go_is_built_from_git() {
    build_and_provision(Sdk::Go, &[("PulumiPlugin.yaml", "runtime: go\n")]);
}

#[test]
fn provider_in_python_is_built_from_git() {
    build_and_provision(
        Sdk::Python,
        &[
            ("requirements.txt", "pulumi>=3.272.0\ngoogleapis-common-protos\n"),
            // The real one compiles protocol files of this tree.
            ("registration.py", "def serve_registered(*_):\n    raise NotImplementedError\n"),
        ],
    );
}

#[test]
fn provider_in_typescript_is_built_from_git() {
    build_and_provision(Sdk::Node, &[]);
}

fn write_program(folder: &Path, program: &[u8]) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir(folder).unwrap();
    let path = folder.join("pulumi-resource-peergo");
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Recorded replies of GitHub, from the tests of its own clients.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_release_of_github_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let npm = |arguments: &[&str]| run(Command::new("npm").args(arguments).current_dir(folder.path())).unwrap();
    npm(&["install", "--silent", "--no-save", "--prefix", ".", "@octokit/fixtures@23.1.2"]);
    let scenario = "node_modules/@octokit/fixtures/scenarios/api.github.com/release-assets/normalized-fixture.json";
    let recorded: Vec<Value> = serde_json::from_slice(&fs::read(folder.path().join(scenario)).unwrap()).unwrap();
    let reply = |path: &str| {
        let recorded = recorded.iter().find(|reply| reply["method"] == "get" && reply["path"] == path);
        recorded.unwrap_or_else(|| panic!("no reply to {path}"))["response"].clone()
    };
    let name = "octokit-fixture-org/release-assets";
    let mut release = reply(&format!("/repos/{name}/releases/tags/v1.0.0"));
    release["assets"] = reply(&format!("/repos/{name}/releases/1000/assets"));
    let list = json!([release]).to_string();
    let server = HttpServer::start(move |request| {
        let body = if request.path.contains("/tags/") { release.to_string() } else { list.clone() };
        async move { Response::new(200, body).with("Content-Type", "application/json; charset=utf-8") }
    });
    let server = server.await.unwrap();
    let version = WantedVersion::of_release("v1.0.0").unwrap();
    let source =
        GithubReleaseSource { api_url: Some(server.url()), ..GithubReleaseSource::new(name.to_owned(), version) };
    let github = Github::new(Repository::of(&source).unwrap(), None).unwrap();
    let found = github.release(Some("v1.0.0")).await.unwrap();
    assert_eq!((found.tag.as_str(), found.draft, found.prerelease), ("v1.0.0", false, false));
    assert!(found.age(SystemTime::now()).is_some(), "{:?}", found.published_at);
    let assets: Vec<_> = found.assets.iter().map(|asset| (asset.name.as_str(), asset.size)).collect();
    assert_eq!(assets, [("test-upload.txt", 14)]);
    assert_eq!(found.assets[0].incomplete_state(), None);
    assert_eq!(github.releases().await.unwrap().len(), 1);
}
