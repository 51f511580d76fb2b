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

#[test]
fn run_that_waits_is_stopped_and_leaves_no_lock() {
    let repository = locked();
    let running = repository.start("provision -S --lock-timeout 5m");
    running.wait_until_printed("waiting for the lock");
    running.signal(Signal::INT);
    assert_eq!(running.wait().status, "exit 130");
    assert_eq!(repository.names("backend/.pulumi/locks"), [LOCK]);
}
