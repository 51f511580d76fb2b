//! Tests of a provider on Pulumi's Go SDK, published like Pulumi's own and as part of a git repository: `sc` installs
//! it from there and provisions with it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests::peers::run;
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};
use tests::things::{Peer, Repository, thing};

const PEER: Peer = Peer::Go;

/// Returns the provider's program.
fn program() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    PEER.install(folder.path());
    fs::read(folder.path().join("pulumi-resource-peergo")).unwrap()
}

/// Creates a thing, runs again without the source, and deletes the thing.
fn lives(repository: &Repository, source: &Value, gone: impl FnOnce()) {
    let plugins = json!([{ "name": PEER.package(), "source": source, "passEnv": ["PEER_HOME"] }]);
    let thing = json!({ "a": { "type": "peergo:index:Thing", "config": thing("1", "x", "first") } });
    repository.describe_as(&plugins, &thing, &json!({ "out": "${resource:main/a.out}" }));
    repository.succeeds(&["plugin", "install"]);
    gone();
    repository.provision();
    assert_eq!(repository.outputs(&[])["out"], "made of 1");
    assert_eq!(repository.home.things().len(), 1);
    repository.succeeds(&["provision", "--expect-no-changes"]);
    repository.succeeds(&["destroy", "--parent", "--yes"]);
    assert_eq!(repository.home.things().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_release() {
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
    tokio::task::spawn_blocking(move || lives(&Repository::new(&[]), &source, || server.withdraw())).await.unwrap();
}

#[test]
fn from_a_git_repository() {
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
    lives(&Repository::new(&[]), &source, || fs::rename(&path, path.with_extension("gone")).unwrap());
    fs::remove_dir_all(origin.path().with_extension("gone")).unwrap();
}

fn write_program(folder: &Path, program: &[u8]) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir(folder).unwrap();
    let path = folder.join("pulumi-resource-peergo");
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}
