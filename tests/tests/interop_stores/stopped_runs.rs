//! Runs that are stopped for longer than their lease, and go on after another machine has taken over.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tests::processes::wait_until;

use crate::life::Repository;
use crate::{postgres, s3};

/// Stops a run in the middle of a Create for longer than its lease, lets another machine take over, and lets the run go on.
fn stop_past_the_lease(machine: &Repository) {
    fs::create_dir(machine.path("rec/ledger")).unwrap();
    let things = [("first", "1"), ("second", "${resource:first.cid}")];
    machine.write_things(&things);
    machine.script(&json!({ "provider": { "createDelay": 1500 } }));
    let mut command = machine.command("provision -S -R --parallel 1");
    command.env("SC_LOCK_LEASE_SECONDS", "3");
    let ledger = machine.path("rec/ledger");
    let existing = || fs::read_dir(&ledger).unwrap().count();
    // The provider names the second resource, and creates it some time later.
    let is_named = || fs::read_to_string(machine.path("rec/ids.json")).is_ok_and(|ids| ids.contains("second--prod"));
    let mut run = machine.start_until(&mut command, "the second resource is named", is_named);
    kill_process(Pid::from_child(&run), Signal::STOP).unwrap();
    wait_until("the second resource exists", || existing() == 2);

    let other = machine.elsewhere();
    fs::remove_dir_all(other.path("rec")).unwrap();
    std::os::unix::fs::symlink(machine.path("rec"), other.path("rec")).unwrap();
    other.write_things(&things);
    let refreshed = other.sc(0, "refresh --yes --lock-timeout 60s");
    assert!(refreshed.contains("took over the lock"), "{refreshed}");
    assert!(refreshed.contains("creating second--prod"), "{refreshed}");

    kill_process(Pid::from_child(&run), Signal::CONT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(4));
    let shown = other.sc(0, "state ls");
    assert!(shown.contains("was created as second--prod-1 by a run that was taken over"), "{shown}");
    let calls = machine.calls().len();
    other.sc(0, "provision -S -R");
    other.expect(0, "provision -S -R --expect-no-changes", "unchanged");
    let creates = machine.calls().split_off(calls).into_iter().filter(|call| call["rpc"] == "Create").count();
    assert_eq!((creates, existing()), (0, 2), "nothing is created a second time");
    // The machine of the run finds nothing to do either.
    machine.expect(0, "provision -S -R --expect-no-changes", "unchanged");
}

/// Shows: state.md#two-machines "If the state lacks the resource, it becomes a pending create with its id"
#[test]
fn run_stopped_past_its_lease_reports_what_it_has_created_beside_s3() {
    let server = s3::with_bucket("reef");
    stop_past_the_lease(&Repository::in_s3(server.url()));
}

/// Shows: state.md#two-machines "If the state lacks the resource, it becomes a pending create with its id"
#[test]
fn run_stopped_past_its_lease_reports_what_it_has_created_beside_postgres() {
    let server = postgres::start(&[]);
    stop_past_the_lease(&Repository::in_postgres(server.port()));
}
