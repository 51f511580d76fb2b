//! Tests of states that have lost their resources: refused, continued from on request, restored, or between two names.

use std::fs;

use rustix::process::Signal;

use crate::repository::{CHECKPOINT, REC, Repository, Sections};

const TWO: &str = "
    bed: { type: rec:index:Thing, config: { v: '1' } }
    plant: { type: rec:index:Thing, config: { v: '${resource:bed.out}' } }";
const SECTIONS: Sections<'_> = Sections { plugins: REC, resources: TWO, outputs: "" };
/// State that `pulumi stack init` writes first.
const BARE: &str = r#"{"version":0,"checkpoint":{"stack":"organization/tank/reef"}}"#;

fn provisioned() -> Repository {
    let repository = Repository::new(SECTIONS);
    repository.expect_exit(0, "provision");
    repository
}

/// Replaces the checkpoint, and not its previous version, which is a link to the same file.
fn overwrite(repository: &Repository, text: &str) {
    fs::remove_file(repository.path(CHECKPOINT)).unwrap();
    repository.write(CHECKPOINT, text);
}

/// Shows: state.md#files "A text without resources is a state only if `pulumi` or `sc` writes such a text."
#[test]
fn text_that_is_no_state_is_refused_by_every_command() {
    let repository = provisioned();
    let without_id = repository.read(CHECKPOINT).replace(r#""id":"bed--prod-1","#, "");
    let calls = repository.calls().len();
    for (text, expected) in [
        ("{}", "it is not a state: expected a number in `version`, found nothing"),
        (r#"{"version":3,"checkpoint":null}"#, "it is not a state: expected an object in `checkpoint`, found null"),
        ("", "it is not a state: expected a JSON object, found an empty text"),
        (&without_id, "bed--prod: is managed by a provider, yet has no id"),
    ] {
        overwrite(&repository, text);
        let mut commands = vec![
            "provision",
            "preview",
            "refresh --yes",
            "destroy --parent --yes",
            "import bed--prod=x",
            "state taint bed--prod",
        ];
        if text != without_id {
            commands.extend(["stack outputs", "stack export", "stack ls", "stack rename deep --yes", "stack rm --yes"]);
        }
        for command in commands {
            let output = repository.expect_rejected(command);
            assert!(output.starts_with("exit 1\n") && output.contains(expected), "{command} of {text}: {output}");
            assert!(output.contains("`sc stack restore` lists"), "{command}: {output}");
        }
    }
    assert_eq!(repository.calls()[calls..].iter().filter(|call| call.starts_with("Create")).count(), 0);
    overwrite(&repository, "{}");
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: rec v1.0.0
    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: it is not a state: expected a number in `version`, found nothing
      hint: `sc stack restore` lists the earlier states that the backend keeps, and restores one
    ");
}

/// Shows: state.md#a-run "A run does not continue from a state that has lost its resources"
/// Shows: state.md#a-run "`--allow-empty` continues, and `sc stack restore` restores an earlier state"
#[test]
fn emptied_state_is_refused_unless_the_user_allows_it() {
    let repository = provisioned();
    repository.expect_exit(0, "provision");
    overwrite(&repository, BARE);
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    info: Loaded plugin: rec v1.0.0
    error: the state of organization/tank/reef has no resources, but the previous state [repo]/backend/.pulumi/stacks/tank/reef.json.bak has 4 resources, and no run in the history removed them
      hint: `sc stack restore` lists the earlier states and restores one of them; --allow-empty continues without resources, and a provision then creates all of them again
    ");
    for command in ["refresh --yes", "destroy --parent --yes -S", "import bed--prod=x"] {
        let output = repository.expect_rejected(command);
        assert!(
            output.contains("and no run in the history removed them") && output.contains("--allow-empty"),
            "{output}"
        );
    }
    for command in ["preview", "provision --preview", "refresh --preview"] {
        let output = repository.expect_exit(0, command);
        assert!(
            output.contains("warning: the state of organization/tank/reef has no resources"),
            "{command}: {output}"
        );
    }
    let mut seen = repository.calls().len();
    let output = repository.expect_exit(0, "provision --allow-empty");
    assert!(output.contains("warning: the state of organization/tank/reef has no resources"), "{output}");
    assert_eq!(repository.change_calls(&mut seen), ["Create bed--prod", "Create plant--prod"]);

    repository.expect_exit(0, "destroy --parent --yes");
    repository.expect_exit(0, "refresh --yes");
    let output = repository.expect_exit(0, "provision");
    assert!(!output.contains("no run in its history"), "the destroy is in the history: {output}");
}

#[test]
fn earlier_state_is_listed_and_restored() {
    let repository = provisioned();
    repository.expect_exit(0, "provision");
    overwrite(&repository, "{}");
    let output = repository.expect_exit(0, "stack restore");
    let rows: Vec<&str> = output.lines().filter(|line| line.ends_with(" 4")).collect();
    let count = |kind: &str| rows.iter().filter(|row| row.starts_with(kind)).count();
    assert_eq!([count("bak"), count("history-"), count("backup-")], [1, 2, 2], "{output}");
    let output = repository.expect_exit(0, "stack restore --json");
    assert_eq!(output.matches(r#""resources":4"#).count(), 5, "{output}");

    let output = repository.expect_rejected("stack restore nothing --yes");
    assert!(output.starts_with("exit 2\n") && output.contains("the stack has no copy nothing"), "{output}");
    let output = repository.expect_rejected("stack restore history --yes");
    assert!(output.contains("history is the beginning of several names"), "{output}");
    assert!(repository.expect_rejected("stack restore bak").starts_with("exit 2\n"));
    insta::assert_snapshot!(repository.expect_exit(0, "stack restore bak --yes"), @r"
    exit 0
    --- out
    --- err
    warning: all resources of the copy are shown as added: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read: it is not a state: expected a number in `version`, found nothing
      add tank-reef (pulumi:pulumi:Stack)
      add rec (pulumi:providers:rec) [id]
      add bed--prod (rec:index:Thing) bed--prod-1
      add plant--prod (rec:index:Thing) plant--prod-1
    restored bak with 4 resources as the state of reef
    run `sc refresh` next: the resources may have changed since that state was saved
    ");
    repository.expect_exit(0, "provision --expect-no-changes");
    assert!(!repository.is_locked());

    overwrite(&repository, "{}");
    let output = repository.expect_exit(0, &format!("stack restore {CHECKPOINT}.bak --yes --json"));
    assert!(output.contains(r#""restored":"bak""#) && output.contains(r#""resources":4"#), "{output}");
    repository.expect_exit(0, "provision --expect-no-changes");
}

/// Returns a repository with a rename that was killed after its first step, before it removed the old checkpoint.
fn killed_rename() -> Repository {
    let prepared = provisioned();
    prepared.write("Pulumi.reef.yaml", "config: {}\n");
    let is_moving = |repository: &Repository| {
        // The intent is written under a temporary name first.
        let mut intents =
            repository.files("backend/.sc/renames").into_iter().filter(|(name, _)| name.ends_with(".json"));
        intents.any(|(_, intent)| String::from_utf8_lossy(&intent).contains("\"moving\""))
    };
    // On a busy machine the rename may end before the test sees its intent.
    for _ in 0..50 {
        let repository = prepared.copy();
        let mut running = repository.start("stack rename deep --yes");
        while !running.has_ended() && !is_moving(&repository) {
            std::thread::yield_now();
        }
        if !running.has_ended() {
            running.signal(Signal::KILL);
        }
        running.wait();
        if is_moving(&repository) && repository.path(CHECKPOINT).exists() {
            return repository;
        }
    }
    panic!("no rename was killed in time");
}

/// Returns the files that a stack has, apart from those that stay under its old name.
fn files_of(repository: &Repository, stack: &str) -> Vec<String> {
    let mut names = repository.names(".");
    names.retain(|name| {
        let is_checkpoint = name.ends_with(&format!("/{stack}.json")) && !name.contains("/moved/");
        is_checkpoint
            || name.contains(&format!("history/tank/{stack}/"))
            || name.ends_with(&format!("Pulumi.{stack}.yaml"))
    });
    names.retain(|name| !name.ends_with(".attrs"));
    names.iter().map(|name| name.rsplit('/').next().unwrap().split('-').next().unwrap().to_owned()).collect()
}

/// Shows: state.md#interrupted-renames "the next command of `sc` on the old or the new name undoes or completes the
///   rename"
#[test]
fn rename_killed_before_the_old_checkpoint_is_removed_is_undone() {
    let killed = killed_rename();
    for command in
        ["stack ls", "preview --expect-no-changes", "provision --expect-no-changes", "cancel --yes", "stack outputs"]
    {
        let repository = killed.copy();
        if command == "cancel --yes" {
            repository.expect_exit(0, command);
        }
        let command = if command == "cancel --yes" { "stack history" } else { command };
        let output = repository.expect_exit(0, command);
        let warning = "warning: undid an interrupted rename of organization/tank/reef to organization/tank/deep";
        assert!(output.contains(warning), "{command}: {output}");
        assert!(files_of(&repository, "deep").is_empty(), "{command}");
        assert!(files_of(&repository, "reef").contains(&"Pulumi.reef.yaml".to_owned()), "{command}");
        assert!(
            !repository.is_locked()
                && repository.names("backend/.sc/renames").iter().all(|name| !name.ends_with(".json"))
        );
        repository.expect_exit(0, "provision --expect-no-changes");
    }
    let repository = killed;
    repository.expect_exit(0, "stack rename deep --yes");
    assert!(files_of(&repository, "reef").is_empty());
    fs::rename(repository.path(".sc/stacks/reef"), repository.path(".sc/stacks/deep")).unwrap();
    repository.expect_exit(0, "provision --expect-no-changes");
}

/// Leaves the files of a rename that was killed after the old checkpoint was removed: half of the history and the
/// settings have their old names.
fn half_moved() -> Repository {
    let repository = killed_rename();
    let folder = repository.path("backend/.sc/renames");
    let intent = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let intent = intent.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "json")).unwrap();
    let text = fs::read_to_string(&intent).unwrap();
    repository.expect_exit(0, "stack rename deep --yes");
    fs::create_dir_all(repository.path("backend/.pulumi/history/tank/reef")).unwrap();
    let moved = repository.names("backend/.pulumi/history/tank/deep");
    let moved = moved.iter().find(|name| name.ends_with(".history.json")).unwrap();
    fs::rename(repository.path(moved), repository.path(&moved.replace("/deep", "/reef"))).unwrap();
    fs::rename(repository.path("Pulumi.deep.yaml"), repository.path("Pulumi.reef.yaml")).unwrap();
    fs::write(intent, text).unwrap();
    repository
}

/// Shows: state.md#interrupted-renames "A command on the old name that completes the rename then fails"
#[test]
fn rename_killed_after_the_old_checkpoint_is_removed_is_completed() {
    let half_moved = half_moved();
    let repository = half_moved.copy();
    let mut calls = repository.calls().len();
    insta::assert_snapshot!(repository.sc("provision"), @r"
    exit 1
    --- out
    --- err
    error: an interrupted rename of this stack was completed: organization/tank/reef is organization/tank/deep now
      hint: rename the folder of its server.yaml to deep before the next provision
    ");
    assert_eq!(repository.change_calls(&mut calls), [""; 0], "nothing is created under the old name");
    assert!(files_of(&repository, "reef").is_empty());
    assert_eq!(files_of(&repository, "deep").len(), 4);
    fs::rename(repository.path(".sc/stacks/reef"), repository.path(".sc/stacks/deep")).unwrap();
    repository.expect_exit(0, "provision --expect-no-changes");

    for command in
        ["stack ls", "preview --expect-no-changes", "provision --expect-no-changes", "stack rename reef --yes"]
    {
        let repository = half_moved.copy();
        fs::rename(repository.path(".sc/stacks/reef"), repository.path(".sc/stacks/deep")).unwrap();
        let output = repository.expect_exit(0, command);
        let warning = "warning: completed an interrupted rename of organization/tank/reef to organization/tank/deep";
        assert!(output.contains(warning), "{command}: {output}");
        let (name, other) = if command.contains("rename") { ("reef", "deep") } else { ("deep", "reef") };
        assert!(files_of(&repository, other).is_empty(), "{command}");
        assert!(files_of(&repository, name).contains(&format!("Pulumi.{name}.yaml")), "{command}");
        assert!(!repository.is_locked(), "{command}");
    }
}
