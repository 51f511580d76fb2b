//! Tests of Terraform providers with programs of others: GnuPG signs what we verify, and Terraform installs from the registry of the tests.

#![expect(clippy::print_stdout, reason = "a program that is missing is told")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tests::commands::run;
use tests::http::Response;
use tests::terraform_registry::{AuthorKey, TerraformRegistry};

use super::Machine;
use super::terraform::{PROVIDER, install, locking, provider_source, publish_provider};

/// Returns whether a program is on PATH; its absence is told.
fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !is_there {
        println!("{program} is not on PATH: skipped");
    }
    is_there
}

/// Returns a command of GnuPG with a home of its own.
fn gpg(home: &Path, program: &str, arguments: &[&str]) -> Vec<u8> {
    run(Command::new(program).env("GNUPGHOME", home).args(arguments)).unwrap()
}

#[tokio::test]
async fn signature_of_gnupg_is_verified() {
    if !has("gpg") {
        return;
    }
    // The path of a socket of the agent has a limit.
    let home = tempfile::Builder::new().prefix("sc-gpg-").tempdir_in("/tmp").unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let gpg = |arguments: &[&str]| gpg(home.path(), "gpg", &[&["--batch", "--quiet", "--yes"], arguments].concat());
    let registry = TerraformRegistry::start().await.unwrap();
    publish_provider(&registry, "1.2.0", "1.2.0");
    let name = |platform: &str| format!("terraform-provider-reef_1.2.0_{platform}.zip");
    let machine = Machine::new();
    install(&machine, &provider_source(&registry, "1.2.0")).await.unwrap();
    let sums = registry.sums(PROVIDER, "1.2.0").unwrap();
    assert!(sums.contains(&name("darwin_arm64")), "{sums}");
    let content = home.path().join("SHA256SUMS");
    fs::write(&content, &sums).unwrap();
    for algorithm in ["rsa2048", "ed25519"] {
        let user = format!("{algorithm} <reef@reef.example>");
        gpg(&["--passphrase", "", "--quick-gen-key", &user, algorithm, "sign", "never"]);
        let public = String::from_utf8(gpg(&["--armor", "--export", &user])).unwrap();
        let listed = String::from_utf8(gpg(&["--with-colons", "--list-keys", &user])).unwrap();
        let fingerprint =
            listed.lines().find_map(|line| line.strip_prefix("fpr:")).unwrap().trim_matches(':').to_owned();
        for armor in [&["--armor"][..], &[]] {
            let signature =
                gpg(&[armor, &["--local-user", &user, "--output", "-", "--detach-sign", content.to_str().unwrap()]]
                    .concat());
            registry.name_keys(std::slice::from_ref(&public));
            registry.override_response("/SHA256SUMS.sig", Response::new(200, signature));
            let machine = locking();
            install(&machine, &provider_source(&registry, "1.2.0")).await.unwrap();
            let lock = fs::read_to_string(machine.path("repo/.sc/sc.lock")).unwrap();
            assert!(lock.contains(&fingerprint), "{algorithm}: {fingerprint}: {lock}");
        }
    }
    run(Command::new("gpgconf").env("GNUPGHOME", home.path()).args(["--kill", "all"])).ok();
}

/// Terraform itself shows that the registry of the tests speaks the protocol, and that its signatures are valid.
#[tokio::test]
async fn terraform_installs_from_the_registry_of_the_tests() {
    if !has("terraform") {
        return;
    }
    let registry = TerraformRegistry::start_tls().await.unwrap();
    registry.sign_with(Some(&AuthorKey::generate().unwrap())).unwrap();
    for version in ["1.1.0", "1.2.0", "2.0.0"] {
        publish_provider(&registry, version, version);
    }
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{}/{PROVIDER}", registry.host());
    let settings = format!(
        "terraform {{\n  required_providers {{\n    reef = {{\n      source  = \"{source}\"\n      version = \"~> 1.0\"\n    }}\n  }}\n}}\n"
    );
    fs::write(folder.path().join("main.tf"), settings).unwrap();
    let mut command = Command::new("terraform");
    command.args(["init", "-no-color", "-input=false"]).current_dir(folder.path());
    command.env("SSL_CERT_FILE", registry.authority().unwrap()).env("CHECKPOINT_DISABLE", "1");
    command.env("TF_CLI_CONFIG_FILE", "/dev/null").env_remove("HTTPS_PROXY").env_remove("https_proxy");
    let output = tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap().unwrap();
    let output = String::from_utf8_lossy(&output).into_owned();
    assert!(output.contains("Terraform has been successfully initialized"), "{output}");
    let locked = fs::read_to_string(folder.path().join(".terraform.lock.hcl")).unwrap();
    assert!(locked.contains("version     = \"1.2.0\""), "{locked}");
}
