//! `--lock-timeout`: runs that wait for the lock of a stack.

use rustix::process::Signal;
use serde_json::json;

use crate::crashes::chain;
use crate::repository::Repository;

/// Lock of another machine.
const LOCK: &str = "backend/.pulumi/locks/organization/tank/reef/5cbf3a5e-51d4-4ac0-8c5d-1c9c7f3b8d1e.json";
const HOLDER: &str = r#"{"pid":7,"username":"ada","hostname":"reefbox","timestamp":"2026-09-01T08:00:00Z"}"#;

fn locked() -> Repository {
    let repository = chain(1);
    repository.write(LOCK, HOLDER);
    repository
}

/// Shows: state.md#a-run "wait for the lock, and show who holds it"
#[test]
fn run_waits_until_the_run_that_has_the_lock_has_ended() {
    let repository = chain(2);
    repository.script(json!({"resources": {"t1--prod": {"hang": "create"}}}));
    let first = repository.start("provision -S --parallel 1");
    repository.wait_until_called("Create t1--prod");
    let second = repository.start("provision -S --lock-timeout 5m");
    second.wait_until_printed("waiting for the lock of organization/tank/reef, 300 s at most:");
    second.wait_until_printed(&format!("process {} runs on this host", first.pid()));
    repository.script(json!({}));
    first.signal(Signal::INT);
    assert_eq!(first.wait_for_command().status, "exit 130");
    let second = second.wait();
    assert_eq!(second.status, "exit 0", "{}", second.stderr);
    assert_eq!(second.stderr.matches("waiting for the lock").count(), 1, "{}", second.stderr);
    assert!(!repository.is_locked());
    assert_eq!(repository.calls().iter().filter(|call| *call == "Create t0--prod").count(), 1);
}

/// Shows: state.md#a-run "A locked stack ends a command at once, with exit code 4."
/// Shows: state.md#a-run "wait for the lock, and show who holds it"
#[test]
fn run_fails_once_the_time_to_wait_is_over() {
    let repository = locked();
    for command in ["provision -S", "refresh --yes", "destroy --parent --yes", "import t0--prod=x"] {
        let output = repository.expect_rejected(&format!("{command} --lock-timeout 50ms"));
        let waited =
            "info: waiting for the lock of organization/tank/reef, 0.05 s at most:\n    [id]: created by ada@reefbox";
        assert!(output.starts_with("exit 4\n") && output.contains(waited), "{command}: {output}");
        let output = repository.expect_rejected(command);
        assert!(output.starts_with("exit 4\n") && !output.contains("waiting"), "{command}: {output}");
    }
}

/// Shows: state.md#a-run "wait for the lock, and show who holds it"
#[test]
fn edit_of_a_state_waits_for_the_lock_as_a_run_does() {
    let repository = chain(1);
    repository.sc("provision -S");
    repository.sc("stack export --file export.json");
    repository.write(LOCK, HOLDER);
    let commands = [
        "state rm t0--prod --yes",
        "state rename t0--prod t1--prod --yes",
        "state protect t0--prod --yes",
        "state taint t0--prod --yes",
        "stack import --file export.json",
        "stack restore history --yes",
        "stack rename shore --yes",
        "stack rm --force --yes",
        "stack migrate --to file://other?create_dir=true --yes",
    ];
    for command in commands {
        let output = repository.expect_rejected(&format!("{command} --lock-timeout 50ms"));
        let waited =
            "info: waiting for the lock of organization/tank/reef, 0.05 s at most:\n    [id]: created by ada@reefbox";
        assert!(output.starts_with("exit 4\n") && output.contains(waited), "{command}: {output}");
        let output = repository.expect_rejected(command);
        assert!(output.starts_with("exit 4\n") && !output.contains("waiting"), "{command}: {output}");
    }
    let edit = repository.start("state protect t0--prod --yes --lock-timeout 5m");
    edit.wait_until_printed("waiting for the lock");
    std::fs::remove_file(repository.path(LOCK)).unwrap();
    let edit = edit.wait();
    assert_eq!(edit.status, "exit 0", "{}", edit.stderr);
    assert!(repository.sc("stack export").contains("\"protect\": true"));
    assert!(!repository.is_locked());
}

#[test]
fn run_that_waits_is_stopped_and_leaves_no_lock() {
    let repository = locked();
    let running = repository.start("provision -S --lock-timeout 5m");
    running.wait_until_printed("waiting for the lock");
    running.signal(Signal::INT);
    assert_eq!(running.wait().status, "exit 130");
    assert_eq!(repository.names("backend/.pulumi/locks"), [LOCK]);
}

/// Lock with a lease of a run on another machine.
const LEASED: &str = r#"{"pid":7,"username":"ada","hostname":"reefbox","timestamp":"2026-09-01T08:00:00Z","sc":{"run":"r","leaseSeconds":60,"renewals":3}}"#;

/// Sets the time of the lock back, as if its run had not renewed it since.
fn age_lock(repository: &Repository, seconds: u64) {
    let file = std::fs::File::options().write(true).open(repository.path(LOCK)).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(seconds)).unwrap();
}

/// Shows: state.md#locks "after 120 seconds without a renewal, by the clock of the store"
/// Shows: state.md#locks "at once, if its process ran on this host and has ended"
/// Shows: state.md#locks "has no lease and is never taken over"
#[test]
fn lock_of_a_run_elsewhere_is_taken_over_once_it_was_not_renewed_for_two_minutes() {
    let repository = chain(1);
    for command in ["provision -S", "refresh --yes", "stack tag set owner ada", "destroy --parent --yes"] {
        repository.write(LOCK, LEASED);
        if command.starts_with("stack") {
            // Tags need no lock.
            repository.sc(command);
            continue;
        }
        let output = repository.expect_rejected(command);
        assert!(output.starts_with("exit 4\n"), "{command}: {output}");
        assert!(
            output.contains("the next command takes over its lock 120 s after its last renewal"),
            "{command}: {output}"
        );
        age_lock(&repository, 121);
        let output = repository.expect_exit(0, command);
        assert!(output.contains("warning: took over the lock of organization/tank/reef: "), "{command}: {output}");
        assert!(output.contains("created by ada@reefbox (pid "), "{command}: {output}");
        assert!(!repository.is_locked(), "{command}");
    }
}

/// Shows: state.md#locks "locks have no lease and stay until they are released or removed by `sc cancel`, and no lock
///   is taken over"
#[test]
fn lock_is_not_taken_over_if_that_is_switched_off() {
    let repository = chain(1);
    let server = repository.read(".sc/stacks/reef/server.yaml");
    let provisioner = "    secrets-provider:";
    let server = server.replacen(provisioner, &format!("    lock: {{ takeover: false }}\n{provisioner}"), 1);
    repository.write(".sc/stacks/reef/server.yaml", &server);
    repository.script(json!({"resources": {"t0--prod": {"hang": "create"}}}));
    let running = repository.start("provision -S");
    repository.wait_until_called("Create t0--prod");
    let lock = repository.names("backend/.pulumi/locks").remove(0);
    let text = repository.read(&lock);
    assert!(text.contains("\"sc\":{\"started\":") && !text.contains("leaseSeconds"), "{text}");
    running.signal(Signal::KILL);
    running.wait();
    repository.script(json!({}));
    assert!(repository.expect_rejected("provision -S").starts_with("exit 4\n"));
    repository.expect_exit(0, "cancel --yes");
    repository.expect_exit(0, "provision -S");
}

/// Runs that are stopped (`SIGSTOP`) for longer than their lease.
///
/// Shows: state.md#locks "If the lock was removed meanwhile, the run begins no further operation, calls no method,
///   repeats no provider call that has failed, saves nothing, and ends with exit code 4"
#[test]
fn run_that_was_stopped_beyond_its_lease_and_taken_over_begins_nothing_more() {
    let repository = chain(3);
    repository.script(json!({"resources": {"t0--prod": {"hang": "create"}}}));
    let mut command = repository.command("provision -S --parallel 1");
    command.env("SC_LOCK_LEASE_SECONDS", "3");
    let stopped = repository.start_command(command);
    repository.wait_until_called("Create t0--prod");
    stopped.signal(Signal::STOP);
    // The other machine sees a lock that is not renewed; its process id means nothing there.
    let lock = repository.names("backend/.pulumi/locks").remove(0);
    let elsewhere = repository.read(&lock).replace("\"bootId\":\"", "\"bootId\":\"of-another-machine-");
    let modified = std::fs::metadata(repository.path(&lock)).unwrap().modified().unwrap();
    repository.write(&lock, &elsewhere);
    std::fs::File::options().write(true).open(repository.path(&lock)).unwrap().set_modified(modified).unwrap();
    repository.script(json!({}));
    let taken_over = repository.start("provision -S --lock-timeout 1m").wait_for_command();
    assert_eq!(taken_over.status, "exit 0", "{}", taken_over.stderr);
    assert!(taken_over.stderr.contains("its run has not renewed it for"), "{}", taken_over.stderr);
    let saved = repository.state();
    let calls = repository.calls().len();
    stopped.signal(Signal::CONT);
    let stopped = stopped.wait();
    assert_eq!(stopped.status, "exit 4", "{}", stopped.stderr);
    assert!(stopped.stderr.contains("the lock of this run was removed"), "{}", stopped.stderr);
    let begun: Vec<_> = repository.calls().split_off(calls);
    assert!(!begun.iter().any(|call| call.starts_with("Create") || call.starts_with("Update")), "{begun:?}");
    assert_eq!(repository.state(), saved);
    assert!(!repository.is_locked());
}
