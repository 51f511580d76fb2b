//! Tests of signals: after the first one running steps end, after the second one they stay pending.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::crashes::RECREATES;
use crate::processes::{signal, wait_until};
use crate::repository::{REC, Repository, Running, Sections};

const CHAIN: &str = "first: { type: rec:index:Thing, config: { v: 1 } }
second: { type: rec:index:Thing, config: { v: '${resource:first.cid}' } }";

/// Limit on an abort: two seconds on an idle machine. Cleanup, Cancel and the exit of a stopped plugin would take 15 s.
const ABORT_LIMIT: Duration = Duration::from_secs(5);

/// Starts a run that creates the first of two resources. Its Create hangs until Cancel, or forever if the plugin
/// ignores Cancel.
fn hanging<'a>(repository: &'a Repository, ignores_cancel: bool) -> Running<'a> {
    repository.script(json!({"resources": {"first--prod": {"hang": "create", "deaf": ignores_cancel}}}));
    let running = repository.start("provision -S");
    repository.wait_until_called("Create first--prod");
    running
}

fn repository() -> Repository {
    Repository::new(Sections { plugins: REC, resources: CHAIN, outputs: "" }).with_setting(RECREATES)
}

/// Shows: engine.md#stop-and-abort "The exit code is 130 in all these cases."
#[test]
fn one_signal_lets_running_steps_finish_and_saves_them() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let repository = repository();
        let running = hanging(&repository, false);
        running.signal(signal);
        let output = running.output();
        assert!(output.starts_with("exit 130\n"), "{output}");
        assert!(repository.calls().contains(&"Cancel".to_owned()));
        assert!(!repository.is_locked());
        assert!(repository.resources().contains(&"first--prod rec:index:Thing first--prod-1".to_owned()));
        if signal == Signal::INT {
            insta::assert_snapshot!(output, @r"
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
              + created tank-reef (Stack) ([time])
              + created rec (pulumi:providers:rec) ([time])
            warning: stopping: waiting for first--prod (creating); press Ctrl-C again to abort without waiting
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
              + created second--prod (rec:Thing) ([time])
            "#);
        }
    }
}

#[test]
fn two_signals_leave_running_steps_pending() {
    let repository = repository();
    let running = hanging(&repository, true);
    running.signal(Signal::INT);
    repository.wait_until_called("Cancel");
    running.signal(Signal::INT);
    insta::assert_snapshot!(running.output(), @r"
    exit 130
    --- out
    + tank-reef  Stack                 created [time]
    + └─ rec     pulumi:providers:rec  created [time]

    Update of reef cancelled after [time]: 2 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
    warning: stopping: waiting for first--prod (creating); press Ctrl-C again to abort without waiting
    warning: aborting: not waiting for first--prod (creating); changes in progress stay recorded as pending operations; press Ctrl-C again to end without saving the state
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
    + ├─ first--prod   rec:Thing  created [time]    an earlier run may have created it
      │     + v: 1
    + └─ second--prod  rec:Thing  created [time]
            + v: "c:first--prod-2"

    Update of reef done in [time]: 2 created, 2 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    warning: first--prod (rec:Thing): an earlier run was interrupted while creating it
      hint: it may exist without being recorded: if it does, give its id to the next `sc provision` or `sc refresh`, which ask for it on a terminal,
            or with --import-pending-creates NAME=ID; if it does not exist, give --clear-pending-creates
    Updating reef
      + created first--prod (rec:Thing) ([time])
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

/// Shows: engine.md#stop-and-abort "an abort takes less than two seconds even if a plugin is stopped"
#[test]
fn abort_does_not_wait_for_a_stopped_plugin() {
    let repository = repository();
    let running = hanging(&repository, true);
    for (pid, command) in repository.processes() {
        if command.contains("resource-rec") {
            signal(pid, Signal::STOP);
        }
    }
    let started = Instant::now();
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    let output = running.output();
    assert!(started.elapsed() < ABORT_LIMIT, "{:?}", started.elapsed());
    assert!(output.starts_with("exit 130\n") && output.contains("warning: aborting"), "{output}");
    assert!(!repository.is_locked());
    assert!(repository.resources().contains(&"creating first--prod rec:index:Thing".to_owned()));
}

#[test]
fn hanging_configure_can_be_interrupted() {
    let repository = repository();
    repository.script(json!({"provider": {"hang": true}}));
    let running = repository.start("provision -S");
    repository.wait_until_called("Configure rec");
    running.signal(Signal::INT);
    let output = running.output();
    assert!(output.starts_with("exit 130\n"), "{output}");
    assert!(!repository.is_locked());
}

#[test]
fn interrupt_while_plugins_start_kills_them() {
    let plugins = "- { name: rude, source: { type: local, path: rude.sh } }";
    let repository = Repository::new(Sections { plugins, ..Sections::default() });
    repository.write_script("rude.sh", "touch mark\nsleep 100\n");
    let running = repository.start("provision");
    wait_until("the plugin runs", || repository.path("mark").exists());
    running.signal(Signal::INT);
    insta::assert_snapshot!(running.output(), @r"
    exit 130
    --- out
    --- err
    warning: stopping; press Ctrl-C again to abort without waiting
    error: stopped before any change was made
    ");
    assert!(repository.names("backend").is_empty());
}

/// The plugin never answers, and neither do the commands wait for a user.
///
/// Shows: engine.md#stop-and-abort "stops a command that takes longer, and aborts it if it has not ended after a
///   further `--stop-grace`"
#[test]
fn execution_timeout_stops_and_then_aborts_a_run_that_never_ends() {
    let repository = repository();
    repository.script(json!({"resources": {"first--prod": {"hang": "create", "deaf": true}}}));
    let output = repository.expect_exit(1, "provision -S --execution-timeout 1s --stop-grace 10ms");
    assert!(output.contains("warning: stopping: the execution timeout has expired"), "{output}");
    assert!(output.contains("\nerror: the execution timeout has expired"), "{output}");
    assert!(!repository.is_locked());
}

/// Shows: engine.md#stop-and-abort "it includes the start of plugins and the time at a question"
#[test]
fn execution_timeout_includes_the_start_of_plugins() {
    let plugins = "- { name: rude, source: { type: local, path: rude.sh } }";
    let repository = Repository::new(Sections { plugins, ..Sections::default() });
    repository.write_script("rude.sh", "sleep 100\n");
    for command in ["provision", "preview", "refresh", "destroy --parent --yes"] {
        let output = repository.expect_exit(1, &format!("{command} --execution-timeout 50ms"));
        let error = "error: the execution timeout has expired: stopped before any change was made";
        assert!(output.contains(error), "{command}: {output}");
    }
}

/// Removes the lock of a run that is still active.
#[test]
fn run_that_lost_its_lock_saves_nothing_and_its_journal_is_merged() {
    let repository = repository();
    let running = hanging(&repository, false);
    std::fs::remove_dir_all(repository.path("backend/.pulumi/locks")).unwrap();
    running.signal(Signal::INT);
    insta::assert_snapshot!(running.output(), @"
    exit 4
    --- out
    + tank-reef       Stack                 created [time]
    + ├─ rec          pulumi:providers:rec  created [time]
    + └─ first--prod  rec:Thing             created [time]
            + v: 1

    Update of reef cancelled after [time]: 3 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
    warning: stopping: waiting for first--prod (creating); press Ctrl-C again to abort without waiting
      + created first--prod (rec:Thing) ([time])
    error: the state of organization/tank/reef could not be saved; its changes are kept in the journal [repo]/backend/.sc/journal/tank/reef/[id]
      caused by: organization/tank/reef: the lock of this run was removed, and the stack is not locked now
      hint: the next run merges the journal into the state, or reports a conflict if the state has changed since; in a bucket or a database that is also a run on another machine, unless `journal` is `local`
      hint: run again once no other run uses the stack
    ");
    assert!(!repository.path("backend/.pulumi/stacks/tank/reef.json").exists());
    assert!(!repository.is_locked());

    repository.script(json!({}));
    let output = repository.expect_exit(0, "provision -S");
    assert!(output.contains("the journal of the interrupted run"), "{output}");
    assert!(repository.resources().contains(&"first--prod rec:index:Thing first--prod-1".to_owned()));
}
