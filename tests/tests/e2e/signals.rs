//! Tests of signals: after the first one running steps end, after the second one they stay pending.

use rustix::process::Signal;
use serde_json::json;

use crate::processes::until;
use crate::repository::{REC, Repository, Running, Sections};

const CHAIN: &str = "first: { type: rec:index:Thing, config: { v: 1 } }
second: { type: rec:index:Thing, config: { v: '${resource:first.cid}' } }";

/// Starts a run that creates the first of two things; its Create hangs until Cancel, or for ever if `deaf` is set.
fn hanging<'a>(repository: &'a Repository, deaf: bool) -> Running<'a> {
    repository.script(json!({"resources": {"first--prod": {"hang": "create", "deaf": deaf}}}));
    let running = repository.start("provision -S");
    repository.until_called("Create first--prod");
    running
}

fn repository() -> Repository {
    Repository::new(Sections { plugins: REC, resources: CHAIN, outputs: "" })
}

#[test]
fn after_one_interrupt_running_steps_end_and_are_saved() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let repository = repository();
        let running = hanging(&repository, false);
        running.signal(signal);
        let told = running.told();
        assert!(told.starts_with("exit 130\n"), "{told}");
        assert!(repository.calls().contains(&"Cancel".to_owned()));
        assert!(!repository.is_locked());
        assert!(repository.resources().contains(&"first--prod rec:index:Thing first--prod-1".to_owned()));
        if signal == Signal::INT {
            insta::assert_snapshot!(told, @r"
            exit 130
            --- out
            + tank-reef       Stack                 created [time]
            + ├─ rec          pulumi:providers:rec  created [time]
            + └─ first--prod  rec:Thing             created [time]
                    + v: 1

            Update of reef cancelled after [time]: 3 created
            --- err
            info: Loaded plugin: rec v1.0.0
            Updating reef
              + creating tank-reef (Stack)
              + created tank-reef (Stack) ([time])
              + creating rec (pulumi:providers:rec)
              + created rec (pulumi:providers:rec) ([time])
              + creating first--prod (rec:Thing)
            warning: stopping: what has begun is finished first (press Ctrl-C again to abort it)
              + created first--prod (rec:Thing) ([time])
            ");
            repository.script(json!({}));
            insta::assert_snapshot!(repository.sc("provision -S"), @r#"
            exit 0
            --- out
              tank-reef        Stack
            + └─ second--prod  rec:Thing  created [time]
                    + v: "c:first--prod-1"

            Update of reef done in [time]: 1 created, 3 unchanged
            --- err
            info: Loaded plugin: rec v1.0.0
            Updating reef
              + creating second--prod (rec:Thing)
              + created second--prod (rec:Thing) ([time])
            "#);
        }
    }
}

#[test]
fn after_two_interrupts_running_steps_are_pending() {
    let repository = repository();
    let running = hanging(&repository, true);
    running.signal(Signal::INT);
    repository.until_called("Cancel");
    running.signal(Signal::INT);
    insta::assert_snapshot!(running.told(), @r"
    exit 130
    --- out
    + tank-reef  Stack                 created [time]
    + └─ rec     pulumi:providers:rec  created [time]

    Update of reef cancelled after [time]: 2 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
      + creating tank-reef (Stack)
      + created tank-reef (Stack) ([time])
      + creating rec (pulumi:providers:rec)
      + created rec (pulumi:providers:rec) ([time])
      + creating first--prod (rec:Thing)
    warning: stopping: what has begun is finished first (press Ctrl-C again to abort it)
    warning: aborting: what is under way stays recorded as pending
    ");
    assert!(!repository.is_locked());
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    rec pulumi:providers:rec [id]
    creating first--prod rec:index:Thing
    ");
    repository.script(json!({}));
    insta::assert_snapshot!(repository.sc("provision -S --parallel 1"), @r#"
    exit 0
    --- out
      tank-reef        Stack
    + ├─ first--prod   rec:Thing  created [time]
      │     + v: 1
    + └─ second--prod  rec:Thing  created [time]
            + v: "c:first--prod-2"

    Update of reef done in [time]: 2 created, 2 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
    warning: first--prod (rec:Thing): an earlier run was interrupted while creating it
      hint: it may exist without being recorded: look for it, and say what its id is (`sc refresh` asks, and takes it with --import-pending-creates);
            `sc refresh --clear-pending-creates` forgets that it was begun
      + creating first--prod (rec:Thing)
      + created first--prod (rec:Thing) ([time])
      + creating second--prod (rec:Thing)
      + created second--prod (rec:Thing) ([time])
    "#);
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    rec pulumi:providers:rec [id]
    first--prod rec:index:Thing first--prod-2
    second--prod rec:index:Thing second--prod-1
    creating first--prod rec:index:Thing
    ");
}

#[test]
fn a_configuration_that_never_ends_can_be_interrupted() {
    let repository = repository();
    repository.script(json!({"provider": {"hang": true}}));
    let running = repository.start("provision -S");
    repository.until_called("Configure rec");
    running.signal(Signal::INT);
    let told = running.told();
    assert!(told.starts_with("exit 130\n"), "{told}");
    assert!(!repository.is_locked());
}

#[test]
fn an_interrupt_while_plugins_start_ends_them() {
    let plugins = "- { name: rude, source: { type: local, path: rude.sh } }";
    let repository = Repository::new(Sections { plugins, ..Sections::default() });
    repository.write_script("rude.sh", "touch mark\nsleep 100\n");
    let running = repository.start("provision");
    until("the plugin runs", || repository.path("mark").exists());
    running.signal(Signal::INT);
    insta::assert_snapshot!(running.told(), @r"
    exit 130
    --- out
    --- err
    warning: stopping: what has begun is finished first (press Ctrl-C again to abort it)
    error: stopped before anything was done
    ");
    assert!(repository.names("backend").is_empty());
}

#[test]
fn a_run_stops_by_itself_when_its_time_is_over() {
    let repository = repository();
    repository.script(json!({"resources": {"first--prod": {"hang": "create"}}}));
    let told = repository.ends(130, "provision -S --execution-timeout 1s");
    assert!(told.contains("the execution timeout is over"), "{told}");
    assert!(!repository.is_locked());
}

/// The lock of a run that still works is removed.
#[test]
fn a_run_whose_lock_was_given_up_saves_nothing_and_its_journal_is_taken_in() {
    let repository = repository();
    let running = hanging(&repository, false);
    std::fs::remove_dir_all(repository.path("backend/.pulumi/locks")).unwrap();
    running.signal(Signal::INT);
    insta::assert_snapshot!(running.told(), @"
    exit 1
    --- out
    + tank-reef       Stack                 created [time]
    + ├─ rec          pulumi:providers:rec  created [time]
    + └─ first--prod  rec:Thing             created [time]
            + v: 1

    Update of reef cancelled after [time]: 3 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
      + creating tank-reef (Stack)
      + created tank-reef (Stack) ([time])
      + creating rec (pulumi:providers:rec)
      + created rec (pulumi:providers:rec) ([time])
      + creating first--prod (rec:Thing)
    warning: stopping: what has begun is finished first (press Ctrl-C again to abort it)
      + created first--prod (rec:Thing) ([time])
    error: the state of organization/tank/reef could not be saved; what was done is kept in [repo]/backend/.sc/journal/tank/reef/[id]
      caused by: organization/tank/reef: the lock of this run was taken away, and nobody holds it
      hint: once nobody works on the stack, run again: what a journal holds is taken in first, or told if the state has changed since
    ");
    assert!(!repository.path("backend/.pulumi/stacks/tank/reef.json").exists());
    assert!(!repository.is_locked());

    repository.script(json!({}));
    let told = repository.ends(0, "provision -S");
    assert!(told.contains("what it did is taken from its journal"), "{told}");
    assert!(repository.resources().contains(&"first--prod rec:index:Thing first--prod-1".to_owned()));
}
