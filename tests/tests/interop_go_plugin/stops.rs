//! Stops of `sc` while a provider behind the library creates a resource.

use std::fs::{self, File};
use std::process::{Child, Output};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};

use crate::repository::{Repository, SETTINGS};

/// Waits until a condition holds that another process brings about.
fn wait_until(name: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        // Polls: the files and processes belong to other programs, which report nothing to this one.
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within a minute: {name}");
}

/// Returns a repository in which the provider does not reply to Create, and `sc provision` that waits for it.
fn creating(deaf: bool) -> (Repository, Child) {
    let repository = Repository::new("", SETTINGS);
    let script = format!(r#"{{"resources": {{"a--prod": {{"hang": "create", "deaf": {deaf}}}}}}}"#);
    fs::write(repository.path("rec/script.json"), script).unwrap();
    let sc = repository.start("provision");
    // The preview calls Create, too, and gets its reply.
    wait_until("Create", || repository.calls("Create") == 2);
    (repository, sc)
}

fn signal(sc: &Child, signal: Signal) {
    kill_process(Pid::from_raw(sc.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

/// Waits for the exit, and returns the output as text.
fn output(sc: Child) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = sc.wait_with_output().unwrap();
    (status.code(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

/// Shows: hosting.md#start-protocols "Cancel, Shutdown of its controller, SIGTERM, SIGKILL"
#[test]
fn stop_cancels_what_runs_and_ends_the_plugin_in_order() {
    let (repository, sc) = creating(false);
    signal(&sc, Signal::INT);
    let (code, output) = output(sc);
    assert_eq!((code, repository.calls("Cancel")), (Some(130), 1), "{output}");
    assert_eq!((repository.processes(), repository.socket_folders()), (0, vec![]), "{output}");
    // The provider replied to Create after Cancel, so the resource exists.
    fs::remove_file(repository.path("rec/script.json")).unwrap();
    repository.run_all("after the stop", &[("provision", "unchanged"), ("destroy --parent --yes", "deleted")]);
    assert_eq!(repository.calls("Create"), 2, "created once");
}

#[test]
fn plugin_that_does_not_heed_cancel_is_killed_after_a_second_signal() {
    let (repository, sc) = creating(true);
    signal(&sc, Signal::INT);
    wait_until("Cancel", || repository.calls("Cancel") == 1);
    signal(&sc, Signal::INT);
    let (code, output) = output(sc);
    assert_ne!(code, Some(0), "{output}");
    assert_eq!((repository.processes(), repository.socket_folders()), (0, vec![]), "{output}");
}

/// Shows: hosting.md#start-protocols "If `sc` was killed, the folder stays until a later start of such a plugin removes
///   it"
/// Shows: plugins.md#processes "The supervisors kill their descendants."
#[test]
fn kill_leaves_no_process_and_the_next_run_removes_the_sockets() {
    let (repository, sc) = creating(true);
    signal(&sc, Signal::KILL);
    output(sc);
    wait_until("end of the plugin", || repository.processes() == 0);
    let left = repository.socket_folders();
    assert!(!left.is_empty(), "the removal is tried");
    // The next run removes folders without an owner that are not new.
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    for folder in &left {
        File::open(folder).unwrap().set_modified(long_ago).unwrap();
    }
    fs::remove_file(repository.path("rec/script.json")).unwrap();
    let (code, output) = repository.sc("preview");
    assert!(repository.socket_folders().is_empty(), "{code:?}: {output}");
}
