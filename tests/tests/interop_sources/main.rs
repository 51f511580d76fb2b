//! Tests of a provider on Pulumi's Go SDK, published like Pulumi's own and as part of a git repository: `sc` installs
//! it from there and provisions with it.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests::commands::run;
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};
use tests::sdk_providers::{Repository, Sdk, resource_inputs};

const SDK: Sdk = Sdk::Go;

/// Returns the provider's program.
fn program() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    SDK.install(folder.path());
    fs::read(folder.path().join("pulumi-resource-peergo")).unwrap()
}

/// Installs the plugin, removes its source, creates a resource, runs again, and deletes the resource.
fn install_provision_and_destroy(repository: &Repository, source: &Value, remove_source: impl FnOnce()) {
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
        install_provision_and_destroy(&Repository::new(&[]), &source, || server.remove_releases())
    })
    .await
    .unwrap();
}

#[test]
fn provider_from_git_repository_provisions() {
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
    let source = json!({
        "type": "git", "repository": format!("file://{}", origin.path().display()), "ref": "v0.3.1", "subdir": "dist",
        "checksum": sha256(&program()),
    });
    let path = origin.path().to_owned();
    install_provision_and_destroy(&Repository::new(&[]), &source, || {
        fs::rename(&path, path.with_extension("gone")).unwrap()
    });
    fs::remove_dir_all(origin.path().with_extension("gone")).unwrap();
}

fn write_program(folder: &Path, program: &[u8]) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir(folder).unwrap();
    let path = folder.join("pulumi-resource-peergo");
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}
