//! Commands that read states which the real `pulumi` wrote (`tests/goldens/state`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::repository;
use crate::{sc, told};

fn golden(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/state").join(case)
}

/// A repository whose stack `dev` has the state of a case.
fn with_state(case: &str) -> tempfile::TempDir {
    let facts: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(golden(case).join("case.json")).unwrap()).unwrap();
    // Where a cloud keeps the key there is none.
    let folder = repository("dev", facts["passphrase"].as_str().unwrap_or("none"), "");
    copy(&golden(case).join("backend"), &folder.path().join("backend"));
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

fn check(folder: &tempfile::TempDir, arguments: &[&str]) -> String {
    let mut command = sc(arguments);
    command.current_dir(folder.path());
    told(command)
}

#[test]
fn a_state_is_exported_as_pulumi_exports_it() {
    let folder = with_state("exported");
    let output = sc(&["stack", "export", "-s", "dev"]).current_dir(folder.path()).output().unwrap();
    let expected = fs::read_to_string(golden("exported").join("project/export.json")).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);

    check(&folder, &["stack", "export", "--file", "state.json"]);
    assert_eq!(fs::read_to_string(folder.path().join("state.json")).unwrap(), expected);
}

#[test]
fn a_state_whose_key_a_cloud_keeps_is_exported_and_else_refused() {
    let folder = with_state("cloud");
    let export = check(&folder, &["stack", "export"]);
    assert!(export.starts_with("exit 0\n") && export.contains("hashivault://reef-key"), "{export}");
    insta::assert_snapshot!(check(&folder, &["stack", "outputs"]), @r#"
    exit 1
    --- out
    --- err
    error: the checkpoint of organization/reef/dev cannot be read
      caused by: the secrets of the stack are kept by "cloud", which is not supported
      hint: `pulumi stack change-secrets-provider passphrase` has a passphrase keep them; `sc stack export` needs no key
    "#);
}

#[test]
fn a_store_of_long_ago_is_refused_unless_somebody_insists() {
    let folder = with_state("legacy");
    insta::assert_snapshot!(check(&folder, &["stack", "outputs"]).replace(&*folder.path().to_string_lossy(), "FOLDER"), @"
    exit 1
    --- out
    --- err
    error: the state storage of stack dev cannot be opened
      caused by: FOLDER/backend has the old layout without projects
      hint: `pulumi state upgrade` gives it the layout of today; PULUMI_DIY_BACKEND_IGNORE_DEPRECATION_ERROR=1, which that needs as well, has it used as it is
    ");
    let mut command = sc(&["stack", "outputs", "--show-secrets"]);
    command.current_dir(folder.path()).env("PULUMI_DIY_BACKEND_IGNORE_DEPRECATION_ERROR", "1");
    let told = told(command);
    assert!(told.starts_with("exit 0\n") && told.contains(r#""o":"o:\"old\"""#), "{told}");
}

#[test]
fn outputs_are_masked_unless_secrets_are_asked_for() {
    let folder = with_state("secrets");
    insta::assert_snapshot!(check(&folder, &["stack", "outputs"]), @r#"
    exit 0
    --- out
    {"stackName":"organization/reef/dev","outputs":{"crabOut":"[secret]","nested":"[secret]","outer":"[secret]","same1":"[secret]","same2":"[secret]","token":"[secret]"}}
    --- err
    "#);
    insta::assert_snapshot!(check(&folder, &["stack", "outputs", "--show-secrets"]), @r#"
    exit 0
    --- out
    {"stackName":"organization/reef/dev","outputs":{"crabOut":"o:\"open\"","nested":{"a":["deep"],"b":"clear"},"outer":{"inner":"in-in","n":1},"same1":"twice","same2":"twice","token":"tok-1"}}
    --- err
    "#);
}

#[test]
fn a_stack_that_was_never_provisioned_has_no_outputs() {
    let folder = repository("dev", "hush", "");
    insta::assert_snapshot!(check(&folder, &["stack", "outputs"]), @r#"
    exit 1
    --- out
    --- err
    error: dev has not been provisioned yet
      hint: `sc provision -s dev` does that
    "#);
    insta::assert_snapshot!(check(&folder, &["stack", "ls"]), @r#"
    exit 0
    --- out
    STACK  PROJECT  RESOURCES  UPDATED  STATUS
    dev    reef     -          -        -
    --- err
    "#);
}

#[test]
fn a_wrong_passphrase_and_a_missing_store_are_told() {
    let folder = repository("dev", "not the one", "");
    copy(&golden("secrets").join("backend"), &folder.path().join("backend"));
    insta::assert_snapshot!(check(&folder, &["stack", "outputs"]), @r#"
    exit 1
    --- out
    --- err
    error: the checkpoint of organization/reef/dev cannot be read
      caused by: incorrect passphrase
      hint: the passphrase is `passPhrase` of the secrets provider in server.yaml, else PULUMI_CONFIG_PASSPHRASE
    "#);
    fs::remove_dir_all(folder.path().join("backend")).unwrap();
    let missing = check(&folder, &["stack", "outputs"]).replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(missing, @r#"
    exit 1
    --- out
    --- err
    error: the state storage of stack dev cannot be opened
      caused by: there is no folder FOLDER/backend (add `?create_dir=true` to the URL to have it made)
    "#);
}

#[test]
fn the_lock_of_a_run_that_died_is_shown_and_given_up_once_somebody_says_so() {
    let folder = with_state("killed");
    assert!(check(&folder, &["stack", "ls", "--json"]).contains(r#""locked":true"#));
    insta::assert_snapshot!(check(&folder, &["cancel"]), @r#"
    exit 2
    --- out
    --- err
    dev is locked:
      ccf8692d-f0b0-4c9f-82c0-347ab3d87b72.json: created by user@host (pid 15712) at 2026-11-21T00:50:36.63384618Z
    error: there is no terminal to ask on: Is that run gone, and shall its lock be given up?
      hint: give --yes to go on without being asked
    "#);
    insta::assert_snapshot!(check(&folder, &["cancel", "--yes"]), @r#"
    exit 0
    --- out
    --- err
    dev is locked:
      ccf8692d-f0b0-4c9f-82c0-347ab3d87b72.json: created by user@host (pid 15712) at 2026-11-21T00:50:36.63384618Z
    gave up the lock of dev
    "#);
    insta::assert_snapshot!(check(&folder, &["cancel"]), @r#"
    exit 0
    --- out
    --- err
    dev is not locked
    "#);
}
