//! Tests of crashes of `sc` and of plugins: no resource is lost, no process is left running, and the next run succeeds.

use rustix::process::Signal;
use serde_json::json;

use crate::processes::{children, name, signal, wait_until};
use crate::repository::{FILES, REC, Repository, Running, Sections};

/// Setting with which a run creates again what an interrupted one may have created.
pub(crate) const RECREATES: &str = "pendingCreates: recreate";

/// Returns a repository with a chain of resources, each of which depends on the previous one.
pub(crate) fn chain(length: usize) -> Repository {
    let things: Vec<String> = (0..length)
        .map(|n| match n {
            0 => "t0: { type: rec:index:Thing, config: { v: 0 } }".to_owned(),
            n => format!("t{n}: {{ type: rec:index:Thing, config: {{ v: '${{resource:t{}.cid}}' }} }}", n - 1),
        })
        .collect();
    Repository::new(Sections { plugins: REC, resources: &things.join("\n"), ..Sections::default() })
        .with_setting(RECREATES)
}

#[test]
fn run_killed_during_a_create_is_continued_by_the_next_run() {
    let repository = chain(3);
    repository.script(json!({"resources": {"t1--prod": {"hang": "create"}}}));
    let running = repository.start("provision -S --parallel 1 -m fill");
    repository.wait_until_called("Create t1--prod");
    running.signal(Signal::KILL);
    // No process of the run is left.
    assert_eq!(running.wait().status, "killed by signal 9");
    assert!(repository.is_locked());
    let server = repository.read(".sc/stacks/reef/server.yaml");
    for has_passphrase in [true, false] {
        let text = if has_passphrase { server.clone() } else { server.replace("{ passPhrase: hush }", "{}") };
        repository.write(".sc/stacks/reef/server.yaml", &text);
        assert!(repository.expect_exit(0, "stack ls").contains("interrupted"));
    }
    repository.write(".sc/stacks/reef/server.yaml", &server);
    assert!(repository.expect_exit(0, "preview").contains("the journal of the interrupted run"));
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

    insta::assert_snapshot!(repository.sc("cancel --yes"), @r"
    exit 0
    --- out
    --- err
    reef is not locked
    an interrupted run left a journal: before using `pulumi` on the stack, run `sc refresh`, which merges the journal into the state or reports why it cannot
    ");

    repository.script(json!({}));
    insta::assert_snapshot!(repository.sc("preview --parallel 1"), @r#"
    exit 0
    --- out
      tank-reef    Stack
    + ├─ t1--prod  rec:Thing  create     an earlier run may have created it
      │     + v: "c:t0--prod-1"
    + └─ t2--prod  rec:Thing  create
            + v: <computed>

    Preview of reef done in [time]: 2 to create, 3 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    warning: the state includes the journal of the interrupted run that started [moment]: 2 created
      pending operations:
      creating t1--prod (rec:index:Thing)
    warning: t1--prod (rec:Thing): an earlier run was interrupted while creating it
      hint: it may exist without being recorded: if it does, give its id to the next `sc provision` or `sc refresh`, which ask for it on a terminal,
            or with --import-pending-creates NAME=ID; if it does not exist, give --clear-pending-creates
    Previewing update of reef
    "#);
    insta::assert_snapshot!(repository.sc("provision --parallel 1"), @r#"
    exit 0
    --- out
      tank-reef    Stack
    + ├─ t1--prod  rec:Thing  create     an earlier run may have created it
      │     + v: "c:t0--prod-1"
    + └─ t2--prod  rec:Thing  create
            + v: <computed>

    Preview of reef done in [time]: 2 to create, 3 unchanged
    Update of reef done in [time]: 2 created, 3 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    warning: the state includes the journal of the interrupted run that started [moment]: 2 created
      pending operations:
      creating t1--prod (rec:index:Thing)
    warning: t1--prod (rec:Thing): an earlier run was interrupted while creating it
      hint: it may exist without being recorded: if it does, give its id to the next `sc provision` or `sc refresh`, which ask for it on a terminal,
            or with --import-pending-creates NAME=ID; if it does not exist, give --clear-pending-creates
    Previewing update of reef
    Updating reef
      + created t1--prod (rec:Thing) ([time])
      + created t2--prod (rec:Thing) ([time])
    "#);
    let history = repository.expect_exit(0, "stack history --json");
    assert!(history.contains(r#""message":"fill""#) && history.matches("sc.user").count() == 2, "{history}");
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    rec pulumi:providers:rec [id]
    t0--prod rec:index:Thing t0--prod-1
    t1--prod rec:index:Thing t1--prod-2
    t2--prod rec:index:Thing t2--prod-1
    creating t1--prod rec:index:Thing
    ");
    insta::assert_snapshot!(repository.sc("refresh --clear-pending-creates"), @r"
    exit 0
    --- out
    No changes: all 5 resources of reef are as recorded ([time])
    --- err
    info: Loaded plugin: rec v1.0.0
    info: cleared the pending create of t1--prod
    ");
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    rec pulumi:providers:rec [id]
    t0--prod rec:index:Thing t0--prod-1
    t1--prod rec:index:Thing t1--prod-2
    t2--prod rec:index:Thing t2--prod-1
    ");
    insta::assert_snapshot!(repository.sc("provision --expect-no-changes"), @r"
    exit 0
    --- out
    No changes: all 5 resources of reef are unchanged ([time])
    --- err
    info: Loaded plugin: rec v1.0.0
    ");
}

/// Shows: state.md#crashes "The next run of any command that changes the stack reads the resource and records it."
#[test]
fn created_resource_with_an_unusable_reply_is_recorded_by_the_next_run() {
    let repository = chain(1);
    repository.script(json!({"resources": {"t0--prod": {"create": "unusable"}}}));
    let output = repository.expect_exit(1, "provision -S");
    assert!(output.contains("hint: it has the id \"t0--prod-1\", and is pending"), "{output}");
    let pending = &repository.state()["checkpoint"]["latest"]["pending_operations"];
    assert_eq!((&pending[0]["type"], &pending[0]["resource"]["id"]), (&json!("creating"), &json!("t0--prod-1")));

    repository.script(json!({}));
    let mut seen = repository.calls().len();
    let output = repository.expect_exit(0, "provision");
    assert!(output.contains("warning: t0--prod (rec:Thing): an earlier run created it"), "{output}");
    // The scripted plugin reads another value than the one that was created.
    assert_eq!(repository.change_calls(&mut seen), ["Update t0--prod"]);
    assert_eq!(repository.resources().last().unwrap(), "t0--prod rec:index:Thing t0--prod-1");
    repository.expect_exit(0, "provision --expect-no-changes");
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(repository.change_calls(&mut seen), ["Delete t0--prod"]);
}

/// Returns a repository whose journal has a created resource and one whose creation had begun, and whose checkpoint another
/// program has replaced.
pub(crate) fn with_conflict() -> Repository {
    let repository = chain(1);
    repository.expect_exit(0, "provision -S");
    let things = ["a", "b"].map(|name| format!("{name}: {{ type: rec:index:Thing }}")).join("\n");
    repository.write_sections(Sections { plugins: REC, resources: &things, ..Sections::default() });
    repository.script(json!({"resources": {"b--prod": {"hang": "create"}}}));
    let running = repository.start("provision -S --parallel 1");
    repository.wait_until_called("Create b--prod");
    running.signal(Signal::KILL);
    running.wait();
    repository.expect_exit(0, "cancel --yes");
    // `pulumi` would change the checkpoint like this, as it does not read journals.
    let checkpoint = repository.read("backend/.pulumi/stacks/tank/reef.json");
    repository.write("backend/.pulumi/stacks/tank/reef.json", &checkpoint.replacen('{', "{ ", 1));
    repository
}

#[test]
fn journal_that_conflicts_with_the_checkpoint_is_reported() {
    let repository = with_conflict();
    insta::assert_snapshot!(repository.sc("stack outputs"), @r#"
    exit 0
    --- out
    {"stackName":"organization/tank/reef","outputs":{}}
    --- err
    warning: these outputs are from the checkpoint only: an interrupted run of organization/tank/reef left the journal [repo]/backend/.sc/journal/tank/reef/[id], but the checkpoint has changed since: the journal starts from [id] and the checkpoint is [id]
        it had created urn:pulumi:reef::tank::rec:index:Thing::a--prod with id "a--prod-1"
        it was creating urn:pulumi:reef::tank::rec:index:Thing::b--prod, which may exist
    "#);
    insta::assert_snapshot!(repository.sc("stack export"), @r#"
    exit 1
    --- out
    --- err
    error: an interrupted run of organization/tank/reef left the journal [repo]/backend/.sc/journal/tank/reef/[id], but the checkpoint has changed since: the journal starts from [id] and the checkpoint is [id]
        it had created urn:pulumi:reef::tank::rec:index:Thing::a--prod with id "a--prod-1"
        it was creating urn:pulumi:reef::tank::rec:index:Thing::b--prod, which may exist
      hint: `sc state repair` records the resources in this list that the state lacks, shows those that it has with another id, and removes the journal
    "#);
    let output = repository.expect_rejected("import a--prod=a--prod-1");
    assert!(output.contains("`sc state repair` records"), "{output}");
    assert!(repository.expect_exit(0, "stack ls").contains("interrupted"));

    let output = repository.expect_exit(2, "state repair");
    assert!(output.contains("  record a--prod (rec:index:Thing) a--prod-1\n"), "{output}");
    insta::assert_snapshot!(repository.expect_exit(0, "state repair --yes"), @r"
    exit 0
    --- out
    --- err
      record a--prod (rec:index:Thing) a--prod-1
      record b--prod (rec:index:Thing) as a pending create
        it may exist: `sc refresh` asks for its id, or clears the pending create
      remove the journal [repo]/backend/.sc/journal/tank/reef/[id]
    made 3 changes to the state of reef
    ");
    assert!(repository.names("backend/.sc").is_empty(), "{:?}", repository.names("backend/.sc"));
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    rec pulumi:providers:rec [id]
    t0--prod rec:index:Thing t0--prod-1
    a--prod rec:index:Thing a--prod-1
    creating b--prod rec:index:Thing
    ");
    repository.script(json!({}));
    let output = repository.expect_exit(0, "preview");
    assert!(output.contains("1 to create, 1 to delete"), "{output}");
    let mut seen = repository.calls().len();
    repository.expect_exit(0, "refresh --import-pending-creates b--prod=b--prod-1");
    repository.expect_exit(0, "provision");
    // The scripted plugin reads another value than the one that was created.
    assert_eq!(repository.change_calls(&mut seen), ["Delete t0--prod", "Update b--prod"]);
}

/// Starts a run that creates `t0` and hangs in the Create of `t1`, takes its lock away, and lets another run create all.
fn overtaken(repository: &Repository) -> Running<'_> {
    repository.script(json!({"resources": {"t1--prod": {"hang": "create"}}}));
    let running = repository.start("provision -S --parallel 1");
    repository.wait_until_called("Create t1--prod");
    std::fs::remove_dir_all(repository.path("backend/.pulumi/locks")).unwrap();
    repository.script(json!({}));
    running
}

/// Shows: state.md#state-edits "records what a journal has that cannot be merged, and removes the journal"
#[test]
fn journal_of_a_run_whose_stack_another_run_has_changed_does_not_block_the_stack() {
    let repository = chain(2);
    let running = overtaken(&repository);
    // The other run merges the journal, and creates t1 as well.
    repository.expect_exit(0, "provision -S");
    running.signal(Signal::INT);
    assert!(running.output().starts_with("exit 4\n"));
    let commands =
        ["provision -S", "preview", "refresh", "stack export", "destroy --yes --parent", "stack rm --force --yes"];
    for command in commands {
        let output = repository.expect_rejected(command);
        assert!(output.contains("hint: `sc state repair` records"), "{command}: {output}");
    }
    let mut seen = repository.calls().len();
    insta::assert_snapshot!(repository.expect_exit(0, "state repair --yes"), @r#"
    exit 0
    --- out
    --- err
      leave t1--prod (rec:index:Thing) t1--prod-1
        "t1--prod-2" is recorded. If the ids name two resources, find out which one is in use; to record "t1--prod-1" instead, run `sc state rm t1--prod`, then `sc import t1--prod=t1--prod-1`. Delete the other one only if both exist
      remove the journal [repo]/backend/.sc/journal/tank/reef/[id]
    made 2 changes to the state of reef
    "#);
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    rec pulumi:providers:rec [id]
    t0--prod rec:index:Thing t0--prod-1
    t1--prod rec:index:Thing t1--prod-2
    creating t1--prod rec:index:Thing
    ");
    repository.expect_exit(0, "refresh --clear-pending-creates");
    repository.expect_exit(0, "provision --expect-no-changes");
    assert_eq!(repository.change_calls(&mut seen), [""; 0]);
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(repository.change_calls(&mut seen), ["Delete t0--prod", "Delete t1--prod"]);
}

/// Shows: state.md#the-state-was-changed-before-the-journal-was-merged "If the state records every resource that the
///   journal has as created, with its URN and id, and the outcome of each Create is known, the next run removes the
///   journal"
#[test]
fn journal_whose_creations_the_state_has_goes_with_the_next_run() {
    let repository = chain(2);
    let running = overtaken(&repository);
    running.signal(Signal::KILL);
    running.wait();
    let journal = repository.names("backend/.sc").remove(0);
    let hidden = repository.read(&journal);
    let complete: String =
        hidden.lines().filter(|line| !line.contains("t1--prod")).map(|line| format!("{line}\n")).collect();
    repository.expect_exit(0, "provision -S");
    // The process has died before it removed the journal, and another program has written the state since.
    let checkpoint = repository.read("backend/.pulumi/stacks/tank/reef.json");
    repository.write("backend/.pulumi/stacks/tank/reef.json", &checkpoint.replacen('{', "{ ", 1));
    repository.write(&journal, &complete);
    let warning = "is not merged: the state has changed since, and records all that the run created";
    for command in ["preview --expect-no-changes", "provision -S --expect-no-changes"] {
        let output = repository.expect_exit(0, command);
        assert_eq!(output.matches(warning).count(), 1, "{command}: {output}");
    }
    let output = repository.expect_exit(0, "provision --expect-no-changes");
    assert!(!output.contains(warning), "{output}");
    assert!(repository.names("backend/.sc").is_empty());
}

/// Shows: state.md#files "it removes the temporary files (`.tmp-sc-…`) of killed ones"
#[test]
fn temporary_files_of_killed_commands_go_with_the_next_one() {
    let repository = chain(1);
    repository.expect_exit(0, "provision -S");
    let secret = ".sc/.tmp/.tmp-sc-a1B2c3";
    let (of_state, of_history) = (
        "backend/.pulumi/stacks/tank/.tmp-sc-a1B2c3",
        "backend/.pulumi/history/tank/reef/.tmp-sc-0aa1a111-1111-4111-8111-111111111111",
    );
    [secret, of_state, of_history].iter().for_each(|file| repository.write(file, "left"));
    let exist = || [secret, of_state, of_history].map(|file| repository.path(file).exists());
    // A command that is writing there, maybe in another PID namespace.
    let open = |path: &str| std::fs::File::open(repository.path(path).parent().unwrap()).unwrap();
    let [writing_secret, writing_state] = [secret, of_state].map(open);
    writing_secret.lock_shared().unwrap();
    writing_state.lock_shared().unwrap();
    repository.expect_exit(0, "provision -S");
    assert_eq!(exist(), [true, true, false]);
    drop((writing_secret, writing_state));
    repository.expect_exit(0, "preview");
    assert_eq!(exist(), [false, true, false], "a preview changes nothing in the backend");
    repository.expect_exit(0, "provision -S");
    assert_eq!(exist(), [false; 3]);
}

/// Kills a run of twenty resources once this number of Creates has started, and checks the next run.
fn check_killed_at(moment: usize) {
    let repository = chain(20);
    let running = repository.start("provision -S");
    let creates = || repository.calls().iter().filter(|call| call.starts_with("Create ")).count();
    wait_until("that many resources are being created", || creates() >= moment);
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status, "killed by signal 9");
    repository.expect_exit(0, "cancel --yes");

    let output = repository.expect_exit(0, "provision -S");
    let resources = repository.resources();
    let pending: Vec<&String> = resources.iter().filter(|line| line.starts_with("creating ")).collect();
    // A chain has at most one running step. Only its resource may exist twice, and then it is reported.
    assert!((20..=20 + pending.len()).contains(&creates()), "{output}");
    assert!(pending.len() <= 1, "{pending:?}");
    for name in pending.iter().filter_map(|line| line.split(' ').nth(1)) {
        assert!(output.contains(&format!("creating {name} (rec:index:Thing)")), "{output}");
    }
    assert_eq!(resources.len(), 22 + pending.len());
    repository.expect_exit(0, "preview --expect-no-changes");
}

#[test]
fn long_run_can_be_killed_at_its_start() {
    check_killed_at(1);
}

#[test]
fn long_run_can_be_killed_in_the_middle() {
    check_killed_at(9);
}

#[test]
fn long_run_can_be_killed_near_its_end() {
    check_killed_at(18);
}

#[test]
fn plugin_that_dies_during_a_create_is_reported_and_others_are_stopped() {
    let repository = chain(3);
    let server = repository.read(".sc/stacks/reef/server.yaml");
    repository.write(".sc/stacks/reef/server.yaml", &server.replace("plugins:\n", &format!("plugins:\n  {FILES}\n")));
    repository.script(json!({"resources": {"t1--prod": {"hang": "create"}}}));
    let running = repository.start("provision -S");
    repository.wait_until_called("Create t1--prod");
    for (pid, command) in repository.processes() {
        if command.contains("resource-rec") && !command.starts_with("supervisor ") {
            signal(pid, Signal::KILL);
        }
    }
    // The process that checks configurations has nothing to do, so its exit is reported at any time, or not at all.
    let output = running.output().replace("warning: plugin rec: it exited unexpectedly (killed by signal 9)\n", "");
    assert!(output.starts_with("exit 1\n"), "{output}");
    // The exit of the process that checks configurations is reported at any time.
    let output = output.replace("warning: plugin rec: it exited unexpectedly (killed by signal 9)\n", "");
    insta::assert_snapshot!(output[output.find("error:").unwrap()..].trim_end(), @r"
    error: t1--prod (rec:Thing): the plugin rec exited during Create (killed by signal 9)
      at .sc/stacks/reef/server.yaml:16:9
         |
      16 |         t1: { type: rec:index:Thing, config: { v: '${resource:t0.cid}' } }
         |         ^^
      hint: it may exist without being recorded: if it does, give its id to the next `sc provision` or `sc refresh`, which ask for it on a terminal,
            or with --import-pending-creates NAME=ID; if it does not exist, give --clear-pending-creates
    ");
    assert!(!repository.is_locked());
    let pending = |lines: &[String]| lines.iter().filter(|line| line.starts_with("creating t1--prod")).count();
    let left = repository.resources();
    assert_eq!((left.len(), pending(&left)), (5, 1), "{left:?}");
    repository.script(json!({}));
    repository.expect_exit(0, "provision");
    let left = repository.resources();
    assert_eq!((left.len(), pending(&left)), (7, 1), "{left:?}");
    repository.expect_exit(0, "refresh --clear-pending-creates");
    assert_eq!(repository.resources().len(), 6);
}

/// Returns the supervisors of a run: one for each process of a plugin.
fn supervisors_of(pid: i32) -> Vec<i32> {
    let children = children(pid).into_iter();
    children.filter(|(_, command)| command.starts_with("supervisor ")).map(|(pid, _)| pid).collect()
}

/// Shows: plugins.md#processes "at the same time | Linux kills the plugins."
#[test]
fn run_killed_together_with_its_supervisor_leaves_no_plugin() {
    let repository = chain(1);
    repository.script(json!({"resources": {"t0--prod": {"hang": "create"}}}));
    let running = repository.start("provision -S");
    repository.wait_until_called("Create t0--prod");
    let supervisors = supervisors_of(running.pid());
    assert_eq!((name(running.pid()), name(supervisors[0])), ("sc".to_owned(), "supervisor".to_owned()));
    // A stopped run notices nothing, as if it were killed at the same moment.
    running.signal(Signal::STOP);
    supervisors.into_iter().for_each(|supervisor| signal(supervisor, Signal::KILL));
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status, "killed by signal 9");
}

/// Shows: plugins.md#processes "What the plugin has started becomes a descendant of `sc`, which kills it. `sc` reports
///   that the supervisor has ended"
/// Shows: plugins.md#processes "The plugins of other supervisors go on."
#[test]
fn killed_supervisor_ends_the_plugin_and_the_run_records_the_call() {
    let repository = chain(1);
    repository.script(json!({"resources": {"t0--prod": {"hang": "create"}}}));
    let running = repository.start("provision -S");
    repository.wait_until_called("Create t0--prod");
    supervisors_of(running.pid()).into_iter().for_each(|supervisor| signal(supervisor, Signal::KILL));
    let output = running.output();
    assert!(output.starts_with("exit 1\n"), "{output}");
    assert!(output.contains("its supervisor process has ended (killed by signal 9), so it was killed"), "{output}");
    let left = repository.resources();
    assert!(left.iter().any(|line| line.starts_with("creating t0--prod")), "{left:?}");
}

#[test]
fn second_concurrent_run_exits_as_locked() {
    let repository = chain(1);
    repository.script(json!({"resources": {"t0--prod": {"hang": "create"}}}));
    let first = repository.start("provision -S");
    repository.wait_until_called("Create t0--prod");
    let second = repository.start("provision -S").wait_for_command();
    assert_eq!(second.status, "exit 4", "{}", second.stderr);
    first.signal(Signal::INT);
    let output = first.output();
    assert!(output.starts_with("exit 130\n"), "{output}");
}
