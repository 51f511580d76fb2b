//! Tests of pending creates: what a provision does with resources that an interrupted run may have created.

use serde_json::json;

use crate::crashes::RECREATES;
use crate::imports::{TWO, abort_a_create, repository, with_a_pending_create};
use crate::repository::Repository;

const REFUSED: &str = "error: this run would create a resource that may exist: bed--prod; an earlier run was interrupted while creating it, \
                       so nothing was created";

fn is_pending(repository: &Repository) -> bool {
    repository.resources().iter().any(|line| line.starts_with("creating bed--prod"))
}

/// Shows: state.md#crashes "without a terminal it refuses to create such a resource again"
#[test]
fn resource_that_may_exist_is_not_created_again_without_a_word() {
    let repository = with_a_pending_create();
    let mut seen = repository.calls().len();
    let output = repository.expect_exit(1, "provision --yes");
    assert!(output.contains(REFUSED) && output.contains("--import-pending-creates NAME=ID"), "{output}");
    assert!(output.contains("+ ├─ bed--prod    rec:Thing  create     an earlier run may have created it"), "{output}");
    let before = repository.resources();
    assert!(before.len() == 3 && is_pending(&repository), "{before:?}");
    repository.change_calls(&mut seen);
    // Without a preview, everything but that creation is done and recorded.
    let output = repository.expect_exit(1, "provision -S -R --continue-on-error");
    assert!(output.contains("it is not created, because an earlier run was interrupted while creating it"), "{output}");
    assert_eq!(repository.change_calls(&mut seen), ["Create plant--prod"]);
    assert!(is_pending(&repository) && !repository.is_locked());
    // What does not create it is not refused.
    repository.expect_exit(0, "provision --target plant--prod");
    assert!(is_pending(&repository));
}

/// Shows: server-yaml.md#guards "`recreate`: it creates them again"
#[test]
fn rule_of_the_file_creates_it_again() {
    let repository = with_a_pending_create().with_setting(RECREATES);
    let mut seen = repository.calls().len();
    let output = repository.expect_exit(0, "provision");
    assert!(
        output.contains("warning: bed--prod (rec:Thing): an earlier run was interrupted while creating it"),
        "{output}"
    );
    let mut calls = repository.change_calls(&mut seen);
    calls.sort();
    assert_eq!(calls, ["Create bed--prod", "Create plant--prod"]);
}

#[test]
fn provision_and_destroy_resolve_pending_creates_as_refresh_does() {
    let table = [
        ("provision --clear-pending-creates", "info: cleared the pending create of bed--prod", 2),
        ("provision -S --import-pending-creates bed--prod=bed--prod-1", "imported bed--prod", 1),
        ("destroy --parent --yes --clear-pending-creates", "info: cleared the pending create of bed--prod", 0),
    ];
    for (command, expected, created) in table {
        let repository = with_a_pending_create();
        let mut seen = repository.calls().len();
        let preview = if command.starts_with("provision") {
            command.replacen("provision", "preview", 1).replace(" -S", "")
        } else {
            format!("{command} -P")
        };
        let before = repository.expect_exit(0, "stack export");
        let output = repository.expect_exit(0, &preview);
        assert!(output.contains(expected.trim_start_matches("imported ")), "{preview}: {output}");
        assert_eq!(repository.expect_exit(0, "stack export"), before, "a preview records nothing");
        let output = repository.expect_exit(0, command);
        assert!(output.contains(expected), "{command}: {output}");
        assert!(!is_pending(&repository), "{command}");
        let creates = repository.change_calls(&mut seen).iter().filter(|call| call.starts_with("Create")).count();
        assert_eq!(creates, created, "{command}");
    }
}

#[test]
fn user_is_asked_on_a_terminal_before_anything_is_created() {
    let question = "bed--prod (rec:index:Thing) was being created when a run was interrupted.";
    let table = [
        ("bed--prod-1", 0, vec!["bed--prod rec:index:Thing bed--prod-1", "plant--prod rec:index:Thing plant--prod-1"]),
        ("forget", 0, vec!["bed--prod rec:index:Thing bed--prod-2", "plant--prod rec:index:Thing plant--prod-1"]),
        ("", 1, vec!["creating bed--prod rec:index:Thing"]),
    ];
    for (reply, code, expected) in table {
        let repository = with_a_pending_create();
        let mut seen = repository.calls().len();
        // `--yes` is no answer to this question.
        let mut terminal = repository.start_on_terminal("provision --yes");
        terminal.wait_until_shown(question);
        assert_eq!(repository.change_calls(&mut seen), [""; 0]);
        terminal.type_line(reply);
        assert_eq!(terminal.wait(), code, "{reply}: {}", terminal.screen());
        let mut resources = repository.resources().split_off(2);
        resources.sort();
        assert_eq!(resources, expected, "{reply}: {}", terminal.screen());
    }
}

#[test]
fn refresh_asks_about_the_pending_creates_of_the_run_that_it_takes_over() {
    let repository = repository(TWO);
    repository.script(json!({"resources": {"bed--prod": {"hang": "create", "deaf": true}}}));
    let running = repository.start("provision -S -R --target bed--prod");
    repository.wait_until_called("Create bed--prod");
    running.signal(rustix::process::Signal::KILL);
    running.output();
    repository.script(json!({}));
    let mut terminal = repository.start_on_terminal("refresh");
    terminal.wait_until_shown("bed--prod (rec:index:Thing) was being created when a run was interrupted.");
    terminal.type_line("bed--prod-1");
    assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
    assert!(repository.resources().contains(&"bed--prod rec:index:Thing bed--prod-1".to_owned()));
}

#[test]
fn pending_creates_of_a_run_are_one_warning() {
    let repository = with_a_pending_create().with_setting(RECREATES);
    abort_a_create(&repository);
    let output = repository.expect_exit(0, "preview");
    let warning = "warning: an earlier run was interrupted while creating 2 resources: bed--prod (rec:Thing), bed--prod (rec:Thing)";
    assert!(output.contains(warning), "{output}");
    assert_eq!(output.matches("warning:").count(), 1, "{output}");
}
