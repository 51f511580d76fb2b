//! Tests of commands on states that the real `pulumi` wrote (`tests/goldens/state`).

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::repository::repository;
use crate::{run, sc};

fn golden(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/state").join(case)
}

/// Creates a repository whose stack `dev` has the recorded state of a case.
pub(crate) fn with_state(case: &str) -> tempfile::TempDir {
    let facts: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(golden(case).join("case.json")).unwrap()).unwrap();
    // A case with a cloud secrets manager has no passphrase.
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

/// Returns exit code, standard output and standard error of a command as one text.
pub(crate) fn check(folder: &tempfile::TempDir, arguments: &[&str]) -> String {
    let mut command = sc(arguments);
    command.current_dir(folder.path());
    run(command).replace(&folder.path().display().to_string(), "FOLDER")
}

#[test]
fn state_is_exported_as_by_pulumi() {
    let folder = with_state("exported");
    let output = sc(&["stack", "export", "-s", "dev"]).current_dir(folder.path()).output().unwrap();
    let expected = fs::read_to_string(golden("exported").join("project/export.json")).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);

    check(&folder, &["stack", "export", "--file", "state.json"]);
    assert_eq!(fs::read_to_string(folder.path().join("state.json")).unwrap(), expected);
}

/// Shows: server-yaml.md#checks-without-a-cloud "Commands that need nothing but the state read no more than `provisioner`"
#[test]
fn commands_on_a_state_work_while_other_sections_have_mistakes() {
    let folder = with_state("exported");
    let server = folder.path().join(".sc/stacks/dev/server.yaml");
    let text = fs::read_to_string(&server).unwrap();
    fs::write(
        &server,
        format!("{text}resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: none }} }} }} }} }}\nx: 1\n"),
    )
    .unwrap();
    for arguments in [
        &["stack", "export"][..],
        &["stack", "outputs"],
        &["stack", "history"],
        &["stack", "restore"],
        &["stack", "ls"],
        &["stack", "tag", "ls"],
        &["state", "ls"],
        &["cancel"],
    ] {
        let printed = check(&folder, arguments);
        assert!(printed.starts_with("exit 0\n") && !printed.contains("error"), "{arguments:?}: {printed}");
    }
    assert!(check(&folder, &["preview"]).contains("the configuration has 2 errors"));
    fs::write(&server, text.replace("type: passphrase", "type: passphrse")).unwrap();
    assert!(check(&folder, &["stack", "export"]).starts_with("exit 1\n"));
}

#[test]
fn export_writes_into_pipes_devices_and_targets_of_links_instead_of_replacing_them() {
    let folder = with_state("exported");
    let expected = fs::read_to_string(golden("exported").join("project/export.json")).unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = {
        let pipe = pipe.clone();
        thread::spawn(move || fs::read_to_string(pipe).unwrap())
    };
    let output = check(&folder, &["stack", "export", "--file", "pipe"]);
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo(), "the pipe was replaced");
    assert_eq!(reader.join().unwrap(), expected);

    symlink("state.json", folder.path().join("link.json")).unwrap();
    fs::write(folder.path().join("state.json"), "").unwrap();
    assert!(check(&folder, &["stack", "export", "--file", "link.json"]).starts_with("exit 0\n"));
    assert_eq!(fs::read_to_string(folder.path().join("state.json")).unwrap(), expected);

    // The name is a link, so that a faulty export replaces the link and not the device.
    let elsewhere = tempfile::tempdir().unwrap();
    let full = elsewhere.path().join("full");
    symlink("/dev/full", &full).unwrap();
    let printed = check(&folder, &["stack", "export", "--file", &full.display().to_string()]);
    assert!(printed.ends_with("caused by: No space left on device (os error 28)\n"), "{printed}");
    assert_eq!(fs::read_link(&full).unwrap(), Path::new("/dev/full"));

    // The user may only have cloned a link that leads out of the repository.
    fs::write(elsewhere.path().join("mine"), "mine").unwrap();
    symlink(elsewhere.path().join("mine"), folder.path().join("out.json")).unwrap();
    let printed = check(&folder, &["stack", "export", "--file", "out.json"]);
    assert!(printed.starts_with("exit 1\n") && printed.contains("a link leads out of"), "{printed}");
    assert_eq!(fs::read_to_string(elsewhere.path().join("mine")).unwrap(), "mine");
}

/// Shows: state.md#files "Such secrets do not prevent an export."
#[test]
fn state_with_key_in_vault_without_its_address_can_only_be_exported() {
    let folder = with_state("cloud");
    let export = check(&folder, &["stack", "export"]);
    assert!(export.starts_with("exit 0\n") && export.contains("hashivault://reef-key"), "{export}");
    let outputs = check(&folder, &["stack", "outputs"]);
    if cfg!(not(feature = "cloud")) {
        assert!(outputs.contains("hashivault:// needs the feature `cloud`"), "{outputs}");
        return;
    }
    insta::assert_snapshot!(outputs, @"
    exit 1
    --- out
    --- err
    error: the checkpoint of organization/reef/dev (FOLDER/backend/.pulumi/stacks/reef/dev.json) cannot be read
      caused by: the data key of stack organization/reef/dev cannot be decrypted with the key hashivault://reef-key?engine=transit: there are no valid credentials: the address of Vault is missing: neither VAULT_SERVER_URL nor VAULT_ADDR is set
      hint: log in again with `vault login`, and set VAULT_ADDR and VAULT_TOKEN, or VAULT_SERVER_URL and VAULT_SERVER_TOKEN
    ");
}

/// Shows: state.md#files "`sc` refuses such a backend, as `pulumi` does"
/// Shows: state.md#files "If `PULUMI_DIY_BACKEND_IGNORE_DEPRECATION_ERROR` is set, `sc` reads and writes it."
#[test]
fn legacy_backend_layout_is_rejected_unless_overridden() {
    let folder = with_state("legacy");
    insta::assert_snapshot!(check(&folder, &["stack", "outputs"]).replace(&*folder.path().to_string_lossy(), "FOLDER"), @"
    exit 1
    --- out
    --- err
    error: the backend of stack dev cannot be opened
      caused by: file://FOLDER/backend has the old layout without projects
      hint: `pulumi state upgrade` converts it to the current layout; to use it unchanged, set PULUMI_DIY_BACKEND_IGNORE_DEPRECATION_ERROR=1, which the upgrade needs as well
    ");
    let mut command = sc(&["stack", "outputs", "--show-secrets"]);
    command.current_dir(folder.path()).env("PULUMI_DIY_BACKEND_IGNORE_DEPRECATION_ERROR", "1");
    let output = run(command);
    assert!(output.starts_with("exit 0\n") && output.contains(r#""o":"o:\"old\"""#), "{output}");
}

/// Shows: comparison.md#for-pulumi-users "secrets are masked without `--show-secrets`"
#[test]
fn secret_outputs_are_masked_without_show_secrets() {
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
fn stack_that_was_never_provisioned_has_no_outputs() {
    let folder = repository("dev", "hush", "");
    insta::assert_snapshot!(check(&folder, &["stack", "outputs"]), @r#"
    exit 1
    --- out
    --- err
    error: dev has not been provisioned yet
      hint: provision it with `sc provision -s dev`
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
fn wrong_passphrase_and_missing_backend_are_reported() {
    let folder = repository("dev", "not the one", "");
    copy(&golden("secrets").join("backend"), &folder.path().join("backend"));
    insta::assert_snapshot!(check(&folder, &["stack", "outputs"]), @r#"
    exit 1
    --- out
    --- err
    error: the checkpoint of organization/reef/dev (FOLDER/backend/.pulumi/stacks/reef/dev.json) cannot be read
      caused by: incorrect passphrase
      hint: the passphrase is `passPhrase` of the secrets provider in server.yaml, else PULUMI_CONFIG_PASSPHRASE
    "#);
    fs::remove_dir_all(folder.path().join("backend")).unwrap();
    let missing = check(&folder, &["stack", "outputs"]).replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(missing, @r#"
    exit 1
    --- out
    --- err
    error: the backend of stack dev cannot be opened
      caused by: there is no folder FOLDER/backend (add `?create_dir=true` to the URL to create it)
    "#);
}

#[test]
fn cancel_shows_lock_of_crashed_run_and_releases_it_after_confirmation() {
    let folder = with_state("killed");
    assert!(check(&folder, &["stack", "ls", "--json"]).contains(r#""locked":true"#));
    insta::assert_snapshot!(check(&folder, &["cancel"]), @r#"
    exit 2
    --- out
    --- err
    dev is locked:
      ccf8692d-f0b0-4c9f-82c0-347ab3d87b72.json: created by user@host (pid 15712) at 2026-11-21T00:50:36.63384618Z
    error: no terminal to ask for confirmation: Remove the lock? Make sure that the run has ended.
      hint: give --yes to proceed without confirmation
    "#);
    insta::assert_snapshot!(check(&folder, &["cancel", "--yes"]), @r#"
    exit 0
    --- out
    --- err
    dev is locked:
      ccf8692d-f0b0-4c9f-82c0-347ab3d87b72.json: created by user@host (pid 15712) at 2026-11-21T00:50:36.63384618Z
    removed the lock of dev
    "#);
    insta::assert_snapshot!(check(&folder, &["cancel"]), @r#"
    exit 0
    --- out
    --- err
    dev is not locked
    "#);
}

/// Creates a repository whose stack `stack` has the recorded state of a case.
fn with_state_of_stack(case: &str, stack: &str) -> tempfile::TempDir {
    let folder = with_state(case);
    let stacks = folder.path().join(".sc/stacks");
    fs::rename(stacks.join("dev"), stacks.join(stack)).unwrap();
    folder
}

#[test]
fn history_of_pulumi_is_listed_newest_first() {
    let folder = with_state_of_stack("two-stacks", "prod");
    let listed = check(&folder, &["stack", "history"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[2].starts_with("STARTED ") && lines[2].ends_with("  STEPS"), "{listed}");
    // The first column has the age.
    assert!(lines[3].ends_with("update  succeeded  1 same, 1 update"), "{listed}");
    assert_eq!(lines[4], "  2026-11-21 00:52:41 UTC");
    assert!(lines[5].ends_with("update  succeeded  2 create"), "{listed}");
    assert!(lines.iter().all(|line| line.len() <= 80), "{listed}");
    let output = check(&folder, &["stack", "history", "--json"]);
    assert_eq!(output.lines().count(), 5, "{output}");
    let newest: serde_json::Value = serde_json::from_str(output.lines().nth(2).unwrap()).unwrap();
    assert_eq!(
        (&newest["stack"], &newest["kind"], &newest["result"]),
        (&"prod".into(), &"update".into(), &"succeeded".into())
    );
    assert!(newest["environment"]["exec.kind"] == "cli" && newest["startTime"].is_string(), "{newest}");
}

#[test]
fn stack_rename_renames_stack_file_and_reports_remaining_steps() {
    let folder = with_state("up");
    fs::write(folder.path().join("Pulumi.dev.yaml"), "config: {}\n").unwrap();
    insta::assert_snapshot!(check(&folder, &["stack", "rename", "west"]), @"
    exit 2
    --- out
    --- err
    error: no terminal to ask for confirmation: Rename the state of organization/reef/dev to organization/reef/west? Nothing in the cloud is changed.
      hint: give --yes to proceed without confirmation
    ");
    insta::assert_snapshot!(check(&folder, &["stack", "rename", "dev", "--yes"]), @"
    exit 2
    --- out
    --- err
    error: the stack already has the name organization/reef/dev
      hint: give a different name
    ");
    insta::assert_snapshot!(check(&folder, &["stack", "rename", "de/v", "--yes"]), @r#"
    exit 2
    --- out
    --- err
    error: "de/v" names another organization than "organization", the only one of this kind of store
      hint: give a name such as reef, or organization/PROJECT/NAME
    "#);
    insta::assert_snapshot!(check(&folder, &["stack", "rename", "organization/shore/west", "--yes"]), @"
    exit 0
    --- out
    --- err
    renamed organization/reef/dev to organization/shore/west
    warning: rename the folder of its server.yaml to west and set `projectName: shore` in the profile before the next provision
    ");
    assert!(folder.path().join("Pulumi.west.yaml").exists() && !folder.path().join("Pulumi.dev.yaml").exists());
    assert!(folder.path().join("backend/.pulumi/stacks/shore/west.json").exists());
    let output = check(&folder, &["stack", "rename", "east", "--yes"]);
    let moved = "error: organization/reef/dev is now organization/shore/west: ";
    assert!(output.starts_with("exit 1\n") && output.contains(moved), "{output}");

    let stacks = folder.path().join(".sc/stacks");
    fs::rename(stacks.join("dev"), stacks.join("west")).unwrap();
    fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: shore\n").unwrap();
    insta::assert_snapshot!(check(&folder, &["stack", "rename", "organization/reef/dev", "--yes", "--json"]), @r#"
    exit 0
    --- out
    {"stack":"organization/shore/west","renamed":"organization/reef/dev"}
    --- err
    "#);
}

#[test]
fn stack_rename_does_not_replace_existing_stack_file() {
    let folder = with_state("up");
    for stack in ["dev", "west"] {
        fs::write(folder.path().join(format!("Pulumi.{stack}.yaml")), "config: {}\n").unwrap();
    }
    let output = check(&folder, &["stack", "rename", "west", "--yes"]);
    assert!(output.starts_with("exit 1\n") && output.contains("Pulumi.west.yaml already exists"), "{output}");
    assert!(folder.path().join("backend/.pulumi/stacks/reef/dev.json").exists());
}

#[test]
fn stack_with_resources_is_removed_only_with_force() {
    let folder = with_state("up");
    fs::write(folder.path().join("Pulumi.dev.yaml"), "config: {}\n").unwrap();
    insta::assert_snapshot!(check(&folder, &["stack", "rm"]), @"
    exit 2
    --- out
    --- err
    error: no terminal to ask for confirmation: Remove the state of organization/reef/dev? Nothing in the cloud is changed.
      hint: give --yes to proceed without confirmation
    ");
    insta::assert_snapshot!(check(&folder, &["stack", "rm", "--yes"]), @"
    exit 1
    --- out
    --- err
    error: organization/reef/dev still has 3 resources
      hint: `sc destroy --parent` deletes them; --force removes the stack and leaves them in the cloud
    ");
    insta::assert_snapshot!(check(&folder, &["stack", "rm", "--yes", "--force", "--preserve-config"]), @"
    exit 0
    --- out
    --- err
    removed the state of organization/reef/dev
    ");
    assert!(folder.path().join("Pulumi.dev.yaml").exists());
    assert!(folder.path().join("backend/.pulumi/stacks/reef/dev.json.bak").exists());
    insta::assert_snapshot!(check(&folder, &["stack", "rm", "--yes"]), @"
    exit 1
    --- out
    --- err
    error: there is no state of organization/reef/dev
      hint: `sc stack ls` lists the stacks
    ");

    let folder = with_state("init");
    fs::write(folder.path().join("Pulumi.dev.yaml"), "config: {}\n").unwrap();
    insta::assert_snapshot!(check(&folder, &["stack", "rm", "--yes", "--remove-backups", "--json"]), @r#"
    exit 0
    --- out
    {"removed":"organization/reef/dev"}
    --- err
    "#);
    assert!(!folder.path().join("Pulumi.dev.yaml").exists());
    assert!(!folder.path().join("backend/.pulumi/stacks/reef/dev.json.bak").exists());
}

#[test]
fn tags_are_read_set_and_removed() {
    let folder = with_state("two-stacks");
    insta::assert_snapshot!(check(&folder, &["stack", "tag", "ls"]), @"
    exit 0
    --- out
    NAME   VALUE
    a<b>   x & y
    owner  ada
    --- err
    ");
    insta::assert_snapshot!(check(&folder, &["stack", "tag", "set", "tier", "gold"]), @"
    exit 0
    --- out
    --- err
    set the tag tier of dev
    ");
    insta::assert_snapshot!(check(&folder, &["stack", "tag", "ls", "--json"]), @r#"
    exit 0
    --- out
    {"a<b>":"x & y","owner":"ada","tier":"gold"}
    --- err
    "#);
    insta::assert_snapshot!(check(&folder, &["stack", "tag", "get", "tier"]), @"
    exit 0
    --- out
    gold
    --- err
    ");
    insta::assert_snapshot!(check(&folder, &["stack", "tag", "get", "tide"]), @"
    exit 1
    --- out
    --- err
    error: the stack has no tag tide
      hint: the tags are: a<b>, owner, tier
    ");
    for tag in ["tier", "owner", "a<b>"] {
        assert!(check(&folder, &["stack", "tag", "rm", tag]).starts_with("exit 0\n"));
    }
    insta::assert_snapshot!(check(&folder, &["stack", "tag", "rm", "owner"]), @"
    exit 1
    --- out
    --- err
    error: the stack has no tag owner
      hint: the stack has no tags
    ");
    assert!(!folder.path().join("backend/.pulumi/stacks/reef/dev.pulumi-tags").exists());
}

#[test]
fn environment_variable_selects_compression_of_state() {
    let folder = with_state("gzip");
    let import = |variable: &str| {
        check(&folder, &["stack", "export", "-f", "state.json"]);
        let mut command = sc(&["stack", "import", "-f", "state.json"]);
        command.current_dir(folder.path()).env(variable, "true");
        let output = run(command);
        assert!(output.starts_with("exit 0\n"), "{output}");
    };
    let stored = |name: &str| fs::read(folder.path().join("backend/.pulumi/stacks/reef").join(name)).unwrap();
    import("PULUMI_DIY_BACKEND_ZSTD");
    assert!(stored("dev.json.zst").starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    import("PULUMI_SELF_MANAGED_STATE_GZIP");
    assert!(stored("dev.json.gz").starts_with(&[0x1f, 0x8b, 0x08]));
    import("ANYTHING_ELSE");
    assert!(stored("dev.json").starts_with(b"{\"version\":3"));
}

/// Shows: security.md#files "A state in a folder of the repository is refused if a link leads it out of the repository"
#[test]
fn state_behind_a_link_that_leads_out_of_the_repository_is_refused() {
    for link in ["backend", "backend/.pulumi", "backend/.pulumi/stacks"] {
        let (folder, elsewhere) = (with_state("exported"), tempfile::tempdir().unwrap());
        let place = folder.path().join(link);
        copy(&place, elsewhere.path());
        fs::remove_dir_all(&place).unwrap();
        symlink(elsewhere.path(), &place).unwrap();
        let printed = check(&folder, &["state", "ls"]);
        assert!(printed.starts_with("exit 1\n") && printed.contains("a link leads out of"), "{link}: {printed}");
    }
    // A link inside of the repository is one of its author.
    let folder = with_state("exported");
    fs::rename(folder.path().join("backend"), folder.path().join("real")).unwrap();
    symlink("real", folder.path().join("backend")).unwrap();
    assert!(check(&folder, &["state", "ls"]).starts_with("exit 0\n"));
}
