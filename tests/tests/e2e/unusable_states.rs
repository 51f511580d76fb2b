//! Tests of states that cannot be used: locked, encrypted, damaged or unreachable.

use std::fs;

use crate::repository::{CHECKPOINT, FILES, PROVISIONER, REC, Repository, Sections};

const PAGE: &str = "page: { type: files:fs:File, config: { path: a, content: b } }
pw: { type: files:random:Password, config: { length: 12 }, options: { dependsOn: [page] } }";
const SECTIONS: Sections<'_> = Sections { plugins: FILES, resources: PAGE, outputs: "" };

fn provisioned() -> Repository {
    let repository = Repository::new(SECTIONS);
    repository.expect_exit(0, "provision --parallel 1");
    repository
}

#[test]
fn locked_stack_is_reported_with_its_holder() {
    let repository = provisioned();
    repository.write(
        "backend/.pulumi/locks/organization/tank/reef/3a4c1c62-0000-4000-8000-000000000000.json",
        r#"{"pid":77,"username":"ada","hostname":"engine","timestamp":"2026-11-20T08:00:00Z"}"#,
    );
    for command in ["provision", "refresh", "destroy --parent --yes"] {
        let output = repository.expect_rejected(command);
        assert!(output.starts_with("exit 4\n") && output.contains("ada@engine (pid [pid])"), "{output}");
    }
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 4
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error: organization/tank/reef: the stack is currently locked by 1 lock(s)
        [id]: created by ada@engine (pid [pid]) at [moment]
      hint: wait for that run to end; if it was interrupted, remove its lock with `sc cancel -s reef`
    ");
    repository.expect_exit(0, "preview");
}

/// Shows: performance.md#performance "A run that changes nothing and has no secrets does not derive the key"
/// Shows: state.md#secrets "It waits for the key before the first call that changes something"
/// Shows: state.md#secrets "A run that does none of these needs no key"
#[test]
fn wrong_passphrase_is_reported_before_changes_even_without_secrets() {
    let page = |content| format!("page: {{ type: files:fs:File, config: {{ path: a, content: {content} }} }}");
    let (before, after) = (page("b"), page("c"));
    let repository = Repository::new(Sections { resources: &before, ..SECTIONS });
    repository.expect_exit(0, "provision");
    repository.write_stack("reef", &PROVISIONER.replace("hush", "hash"), Sections { resources: &before, ..SECTIONS });
    repository.expect_exit(0, "provision --skip-refresh --expect-no-changes");
    let wrong = Sections { resources: &after, ..SECTIONS };
    repository.write_stack("reef", &PROVISIONER.replace("hush", "hash"), wrong);
    let output = repository.expect_exit(1, "provision --skip-refresh");
    assert!(
        output.contains("incorrect passphrase\n") && output.contains("hint: the passphrase is `passPhrase`"),
        "{output}"
    );
    assert_eq!(repository.read("site/a"), "b");
    let output = repository.expect_exit(1, "provision");
    assert!(output.contains("incorrect passphrase\n") && output.contains("hint: the passphrase is"), "{output}");
    assert_eq!(repository.read("site/a"), "b");
}

#[test]
fn wrong_passphrase_is_reported_with_a_hint() {
    let repository = provisioned();
    repository.write_stack("reef", &PROVISIONER.replace("hush", "hash"), SECTIONS);
    let rejection = repository.expect_rejected("provision");
    insta::assert_snapshot!(rejection, @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error[passphrase]: the state has another passphrase
     --> .sc/stacks/reef/server.yaml:6:65
      |
    6 |     secrets-provider: { type: passphrase, config: { passPhrase: [secret] } }
      |                                                                 ^^^^^^^^

    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: incorrect passphrase
      hint: the passphrase is `passPhrase` of the secrets provider in server.yaml, else PULUMI_CONFIG_PASSPHRASE
    ");
    // A preview reads the state before it starts plugins.
    assert_eq!(repository.expect_rejected("preview"), rejection.replace("info: Loaded plugin: files v0.1.0\n", ""));
    assert!(repository.expect_rejected("destroy --parent --yes").starts_with("exit 1\n"));
    repository.write_stack("reef", &PROVISIONER.replace("{ passPhrase: hush }", "{}"), SECTIONS);
    let rejection = repository.expect_rejected("provision");
    insta::assert_snapshot!(rejection, @r"
    exit 1
    --- out
    --- err
    error[passphrase]: the state needs a passphrase, and none was given
     --> .sc/stacks/reef/server.yaml:6:31
      |
    6 |     secrets-provider: { type: passphrase, config: {} }
      |                               ^^^^^^^^^^
      |
      = hint: set `passPhrase` of the secrets provider, or the environment variable PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE

    error: the configuration has an error; nothing was changed
    ");
    for command in ["provision -S", "refresh", "destroy --parent --yes", "import page--prod=a"] {
        assert_eq!(repository.expect_rejected(command), rejection, "{command}");
    }
    insta::assert_snapshot!(repository.expect_rejected("preview"), @"
    exit 1
    --- out
    --- err
    error[passphrase]: the state needs a passphrase, and none was given
     --> .sc/stacks/reef/server.yaml:6:31
      |
    6 |     secrets-provider: { type: passphrase, config: {} }
      |                               ^^^^^^^^^^

    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: the stack is protected by a passphrase, and none was given
      hint: the passphrase is `passPhrase` of the secrets provider in server.yaml, else PULUMI_CONFIG_PASSPHRASE
    ");
}

#[test]
fn stack_ls_needs_no_passphrase_and_skips_unreadable_stacks() {
    let repository = provisioned();
    repository.write_stack("reef", &PROVISIONER.replace("{ passPhrase: hush }", "{}"), SECTIONS);
    repository.write_stack(
        "atoll",
        PROVISIONER,
        Sections { resources: &PAGE.replace("path: a", "path: c"), ..SECTIONS },
    );
    repository.expect_exit(0, "provision -s atoll");
    let row = |output: &str, stack: &str| {
        let line = output.lines().find(|line| line.starts_with(stack)).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let output = repository.expect_exit(0, "stack ls");
    assert_eq!(
        (row(&output, "atoll"), row(&output, "reef")),
        ("atoll tank 4 [age] -".into(), "reef tank 4 [age] -".into())
    );
    repository.write("backend/.pulumi/stacks/tank/atoll.json", "{");
    let output = repository.expect_exit(1, "stack ls");
    assert_eq!(
        (row(&output, "atoll"), row(&output, "reef")),
        ("atoll tank - - unreadable".into(), "reef tank 4 [age] -".into())
    );
    let message =
        "error: the stack atoll cannot be read\n  caused by: the checkpoint of organization/tank/atoll ([repo]/";
    assert!(output.contains(message), "{output}");
    let output = repository.expect_exit(1, "stack ls --json");
    assert!(output.contains(r#""interrupted":null"#) && output.contains(r#""resources":4"#), "{output}");
}

#[test]
fn damaged_state_is_reported_and_not_overwritten() {
    let repository = provisioned();
    let text = repository.read(CHECKPOINT);
    fs::write(repository.path(CHECKPOINT), &text[..text.find("\"resources\"").unwrap()]).unwrap();
    let output = repository.expect_rejected("provision");
    let words = "cannot be read\n  caused by: it is not a checkpoint\n  caused by: EOF while parsing ";
    assert!(output.starts_with("exit 1\n") && output.contains(words), "{output}");
    fs::write(repository.path(CHECKPOINT), text.replace("\"version\":3", "\"version\":9")).unwrap();
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: its format has version 9, which is newer than the supported ones (3 and 4)
      hint: a newer version of `pulumi` or `sc` has written this: use a version of `sc` that supports it; the file is intact
    ");
    fs::write(repository.path(CHECKPOINT), text.replace("\"files:fs:File\"", "7")).unwrap();
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: it is not a checkpoint
      caused by: invalid type: integer `7`, expected a string at line 1 column [column]
      hint: `sc stack restore` lists the earlier states that the backend keeps, and restores one
    ");
}

#[test]
fn state_with_integrity_violation_is_rejected() {
    let repository = provisioned();
    let mut state = repository.state();
    let resources = state["checkpoint"]["latest"]["resources"].as_array_mut().unwrap();
    resources.swap(1, 2);
    fs::write(repository.path(CHECKPOINT), state.to_string()).unwrap();
    insta::assert_snapshot!(repository.expect_rejected("preview"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error: the state is inconsistent
        urn:pulumi:reef::tank::files:fs:File::page--prod: its provider urn:pulumi:reef::tank::pulumi:providers:files::files::[id] comes later in the state
      hint: nothing was changed; `sc state repair` can repair the state, and `sc stack restore` lists earlier states and restores one
    ");
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error: the state is inconsistent
        urn:pulumi:reef::tank::files:fs:File::page--prod: its provider urn:pulumi:reef::tank::pulumi:providers:files::files::[id] comes later in the state
      hint: nothing was changed; `sc state repair` can repair the state, and `sc stack restore` lists earlier states and restores one
    ");
}

#[test]
fn missing_state_storage_is_reported() {
    let repository = Repository::new(SECTIONS);
    fs::remove_dir(repository.path("backend")).unwrap();
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    error: the backend of stack reef cannot be opened
      caused by: there is no folder [repo]/backend (add `?create_dir=true` to the URL to create it)
    ");
    fs::write(repository.path("backend"), "").unwrap();
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    error: the backend of stack reef cannot be opened
      caused by: there is no folder [repo]/backend (add `?create_dir=true` to the URL to create it)
    ");
}

#[test]
fn file_in_place_of_a_storage_folder_is_reported_before_changes() {
    let repository = Repository::new(SECTIONS);
    repository.write("backend/.pulumi/locks", "");
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error: cannot list [repo]/backend/.pulumi/locks/organization/tank/reef
      caused by: Not a directory (os error 20)
    ");
    assert!(!repository.path("site").exists());

    let repository = Repository::new(SECTIONS);
    repository.write("backend/.sc", "");
    insta::assert_snapshot!(repository.sc("provision"), @r"
    exit 1
    --- out
    --- err
    error: cannot list [repo]/backend/.sc/renames
      caused by: Not a directory (os error 20)
    ");
    assert!(!repository.path("site").exists());
    assert!(!repository.is_locked());

    let repository = Repository::new(SECTIONS);
    repository.write("backend/.pulumi/history", "");
    insta::assert_snapshot!(repository.sc("provision"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error: cannot list [repo]/backend/.pulumi/history/tank/reef
      caused by: Not a directory (os error 20)
    ");
    assert!(!repository.path("site").exists());
    assert!(!repository.is_locked());
}

#[test]
fn obstacles_to_saving_are_reported() {
    let repository = Repository::new(SECTIONS);
    repository.write("backend/.pulumi/stacks/tank/reef.json/in-the-way", "");
    insta::assert_snapshot!(repository.sc("provision"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error: cannot read [repo]/backend/.pulumi/stacks/tank/reef.json
      caused by: it is a folder, not a regular file
    ");
    assert!(!repository.is_locked());

    let repository = provisioned();
    fs::remove_dir_all(repository.path("backend/.pulumi/history")).unwrap();
    repository.write("backend/.pulumi/history", "");
    let page = PAGE.replace("content: b", "content: c");
    repository.write_sections(Sections { resources: &page, ..SECTIONS });
    insta::assert_snapshot!(repository.sc("provision -R -S"), @r#"
    exit 1
    --- out
      tank-reef      Stack
    ~ └─ page--prod  files:fs:File  updated [time]
            ~ content: "b" → "c"

    Update of reef done in [time]: 1 updated, 3 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      ~ updated page--prod (files:fs:File) ([time])
    error: the state of organization/tank/reef was saved, but the run could not be added to its history
      caused by: cannot create folder [repo]/backend/.pulumi/history/tank/reef
      caused by: Not a directory (os error 20)
    "#);
    assert!(!repository.is_locked());
    repository.expect_exit(0, "preview --expect-no-changes");
}

/// Runs the command with files limited to a number of blocks of 512 bytes.
fn on_a_full_disk(repository: &Repository, blocks: u32, arguments: &str) -> String {
    repository.sc_in_shell(&format!("trap '' XFSZ; ulimit -f {blocks}"), arguments)
}

#[test]
fn journal_write_failure_stops_the_run_before_the_next_step() {
    let things: String =
        (0..20).map(|n| format!("t{n}: {{ type: rec:index:Thing, config: {{ v: {n} }} }}\n")).collect();
    let repository = Repository::new(Sections { plugins: REC, resources: &things, ..Sections::default() });
    let output = on_a_full_disk(&repository, 10, "provision --parallel 1 -S");
    assert!(output.starts_with("exit 1\n"), "{output}");
    let reason = "the outcome could be recorded in no journal (cannot write [repo]/backend/.sc/journal/";
    assert!(output.contains(reason), "{output}");
    // The completed steps fit into the checkpoint.
    assert!(!repository.is_locked());
    repository.expect_exit(0, "provision");
    assert_eq!(repository.resources().len(), 22);
    let created = repository.calls().iter().filter(|call| call.starts_with("Create ")).count();
    assert_eq!(created, 20 + (20 - 5), "the creates of the preview included, and no resource is created twice");
}

/// Compresses the checkpoints, so that the journal is the first file without space: for a step, or for its last line.
#[test]
fn state_is_saved_after_a_journal_write_failure() {
    let repository = Repository::new(Sections { plugins: FILES, ..Sections::default() });
    repository.expect_exit(0, "provision");
    let prelude = "export PULUMI_SELF_MANAGED_STATE_GZIP=true; ulimit -f 10";
    let mut succeeded = Vec::new();
    for length in (1000..1400).step_by(20) {
        let page =
            format!("page: {{ type: files:fs:File, config: {{ path: page, content: {} }} }}", "x".repeat(length));
        repository.write_sections(Sections { plugins: FILES, resources: &page, ..Sections::default() });
        let output = repository.sc_in_shell(prelude, "provision -R -S");
        assert!(!output.contains("could not be saved") && !repository.is_locked(), "{length}: {output}");
        succeeded.push(output.starts_with("exit 0\n"));
    }
    assert!(succeeded[0] && !succeeded[19], "{succeeded:?}");
    repository.expect_exit(0, "provision -R -S");
    repository.expect_exit(0, "preview --expect-no-changes");
}

/// Shows: state.md#the-checkpoint-could-not-be-saved "the next run of `sc` then restores everything"
#[test]
fn unsaved_state_is_restored_from_the_journal_by_the_next_run() {
    let big = format!("big: {{ type: files:fs:File, config: {{ path: big, content: {} }} }}", "x".repeat(6000));
    let sections = Sections { plugins: FILES, resources: &big, ..Sections::default() };
    let repository = Repository::new(sections);
    repository.expect_exit(0, "provision");
    let resources = format!("{big}\nlate: {{ type: files:fs:File, config: {{ path: late, content: b }} }}");
    repository.write_sections(Sections { resources: &resources, ..sections });
    insta::assert_snapshot!(on_a_full_disk(&repository, 10, "provision --parallel 1 -R -S"), @r#"
    exit 1
    --- out
      tank-reef      Stack
    + └─ late--prod  files:fs:File  created [time]
            + content: "b"
            + mode: "0644"
            + path: "late"

    Update of reef done in [time]: 1 created, 3 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      + created late--prod (files:fs:File) ([time])
    error: the state of organization/tank/reef could not be saved; its changes are kept in the journal [repo]/backend/.sc/journal/tank/reef/[id]
      caused by: cannot write [repo]/backend/.pulumi/stacks/tank/reef.json
      caused by: File too large (os error 27)
      hint: fix the cause, remove the lock with `sc cancel` and run again: the journal is merged into the state first
    "#);
    assert!(repository.is_locked());
    assert!(repository.expect_rejected("provision").starts_with("exit 4\n"));
    insta::assert_snapshot!(repository.sc("cancel --yes"), @r"
    exit 0
    --- out
    --- err
    reef is locked:
      [id]: created by [holder] (pid [pid]) at [moment]
        no process [pid] runs on this host: the run has ended
    removed the lock of reef
    an interrupted run left a journal: before using `pulumi` on the stack, run `sc refresh`, which merges the journal into the state or reports why it cannot
    ");
    // The disk is still full, so no run may continue from the old checkpoint.
    let output = on_a_full_disk(&repository, 10, "provision --parallel 1 -R -S");
    assert!(output.starts_with("exit 1\n") && output.contains("could not be saved"), "{output}");
    assert!(repository.is_locked());
    repository.expect_exit(0, "cancel --yes");
    insta::assert_snapshot!(repository.sc("preview"), @r"
    exit 0
    --- out
    No changes: all 4 resources of reef are unchanged ([time])
    --- err
    info: Loaded plugin: files v0.1.0
    warning: the state includes the journal of the interrupted run that started [moment]: 1 created
    ");
    insta::assert_snapshot!(repository.sc("provision --parallel 1"), @r"
    exit 0
    --- out
    No changes: all 4 resources of reef are unchanged ([time])
    --- err
    info: Loaded plugin: files v0.1.0
    warning: the state includes the journal of the interrupted run that started [moment]: 1 created
    ");
    assert_eq!(repository.resources().len(), 4);
    assert!(repository.resources().contains(&"late--prod files:fs:File late".to_owned()));
}

#[test]
fn full_disk_from_the_start_changes_nothing() {
    let repository = Repository::new(SECTIONS);
    insta::assert_snapshot!(on_a_full_disk(&repository, 0, "provision -S"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error: cannot write [repo]/backend/.pulumi/meta.yaml.attrs
      caused by: File too large (os error 27)
    ");
    assert!(!repository.is_locked());
    assert!(!repository.path("site").exists());
}

/// Imports an export unchanged, with resources of another stack, and truncated.
#[test]
fn valid_export_is_imported_and_invalid_export_is_rejected() {
    let repository = provisioned();
    repository.expect_exit(0, "stack export --show-secrets -f state.json");
    let export = repository.read("state.json");
    let output = repository.expect_exit(0, "stack import -f state.json");
    assert!(output.contains("as the state of reef"), "{output}");
    assert!(repository.expect_exit(0, "preview --expect-no-changes").contains("unchanged"));

    fs::write(repository.path("state.json"), export.replace("urn:pulumi:reef::", "urn:pulumi:atoll::")).unwrap();
    let other_stack = "it holds 4 resources of another stack: urn:pulumi:atoll::";
    let output = repository.expect_rejected("stack import -f state.json");
    assert!(
        output.contains(other_stack) && output.contains("hint: nothing was changed; --force imports it"),
        "{output}"
    );
    fs::write(repository.path("state.json"), &export[..export.len() / 2]).unwrap();
    let output = repository.expect_rejected("stack import -f state.json");
    let words = "error: this is not an exported deployment\n  caused by: EOF while parsing";
    assert!(output.starts_with("exit 1\n") && output.contains(words), "{output}");
    assert!(repository.expect_rejected("stack import -f nowhere.json").contains("nowhere.json cannot be read"));
    assert!(repository.expect_exit(0, "preview --expect-no-changes").contains("unchanged"));
}
