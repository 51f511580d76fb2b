//! Tests of Ctrl-C on a terminal.

use serde_json::json;

use crate::processes::wait_until;
use crate::repository::{REC, Repository, Sections};

const THING: &str = "thing: { type: rec:index:Thing, config: { v: 1 } }";

/// Without the notices, nothing would be shown: the calls ignore Cancel, so they last until the second Ctrl-C.
///
/// Shows: engine.md#stop-and-abort "`sc` shows at once that it is stopping, the steps that still run, and what the next
///   Ctrl-C does."
#[test]
fn ctrl_c_shows_at_once_what_runs_and_what_the_next_one_does() {
    let repository = Repository::new(Sections { plugins: REC, resources: THING, outputs: "" });
    repository.expect_exit(0, "provision -S");
    for (command, hanging, shown) in [
        ("refresh", "read", "stopping: waiting for thing--prod (reading)"),
        ("preview -R", "check", "stopping: waiting for thing--prod (checking)"),
        ("destroy --parent --yes -R", "delete", "stopping: waiting for thing--prod (deleting)"),
    ] {
        repository.script(json!({"resources": {"thing--prod": {"hang": hanging, "deaf": true}}}));
        std::fs::remove_file(repository.path("rec/calls.jsonl")).unwrap();
        let mut terminal = repository.start_on_terminal(command);
        let hanging = format!("{}{} thing--prod", hanging[..1].to_uppercase(), &hanging[1..]);
        repository.wait_until_called(&hanging);
        terminal.press_ctrl_c();
        terminal.wait_until_shown(shown);
        terminal.wait_until_shown("press Ctrl-C again to abort without waiting");
        terminal.press_ctrl_c();
        assert_eq!(terminal.wait(), 130, "{command}");
        let screen = terminal.screen();
        assert!(screen.contains("aborting") && screen.contains("cancelled after"), "{screen}");
        assert!(terminal.is_restored() && terminal.line_before_cursor().is_empty(), "{screen}");
        assert!(!repository.is_locked());
    }
}

#[test]
fn ctrl_c_while_a_plugin_starts_is_shown() {
    let plugins = "- { name: rude, source: { type: local, path: rude.sh } }";
    let repository = Repository::new(Sections { plugins, ..Sections::default() });
    repository.write_script("rude.sh", "touch mark\nsleep 100\n");
    let mut terminal = repository.start_on_terminal("provision");
    wait_until("the plugin runs", || repository.path("mark").exists());
    terminal.press_ctrl_c();
    assert_eq!(terminal.wait(), 130);
    let screen = terminal.screen();
    assert!(screen.contains("warning: stopping; press Ctrl-C again to abort without waiting"), "{screen}");
    assert!(screen.contains("stopped before any change was made"), "{screen}");
    assert!(terminal.is_restored() && terminal.line_before_cursor().is_empty(), "{screen}");
}
