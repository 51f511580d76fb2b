//! Tests of questions for confirmation on a terminal.

use crate::repository::{REC, Repository, Sections};
use crate::terminal::Terminal;

const LOCK: &str = "backend/.pulumi/locks/organization/tank/reef/3a4c1c62-0000-4000-8000-000000000000.json";

/// Commands that ask, the first one inside of a session.
const COMMANDS: [&str; 6] = [
    "destroy --parent",
    "stack rm --force",
    "stack rename shore",
    "stack restore bak",
    "state protect thing--prod",
    "cancel",
];

/// Returns a repository in which each of the commands has something to ask about.
fn repository() -> Repository {
    let thing = |v: u32| format!("thing: {{ type: rec:index:Thing, config: {{ v: {v} }} }}");
    let repository = Repository::new(Sections { plugins: REC, resources: &thing(1), outputs: "" });
    repository.expect_exit(0, "provision -S");
    repository.write_sections(Sections { plugins: REC, resources: &thing(2), outputs: "" });
    repository.expect_exit(0, "provision -S");
    repository
}

/// Runs each command up to its question, lets the user reply, and checks that nothing has changed.
fn assert_nothing_changes(reply: impl Fn(&mut Terminal), code: i32, last_line: &str) {
    let repository = repository();
    for command in COMMANDS {
        if command == "cancel" {
            repository
                .write(LOCK, r#"{"pid":1,"username":"rosa","hostname":"ship","timestamp":"2026-01-01T00:00:00Z"}"#);
        }
        let before = repository.files("backend");
        let mut terminal = repository.start_on_terminal(command);
        terminal.wait_until_shown("[y/N]");
        reply(&mut terminal);
        assert_eq!(terminal.wait(), code, "{command}");
        let screen = terminal.screen();
        assert!(screen.trim_end().ends_with(last_line), "{command}: {screen}");
        assert!(terminal.is_restored() && terminal.line_before_cursor().is_empty(), "{command}: {screen}");
        assert!(repository.files("backend") == before, "{command}");
    }
}

/// Shows: engine.md#stop-and-abort "An answer of *no* to a question is a failure instead"
#[test]
fn declined_question_fails_and_changes_nothing() {
    assert_nothing_changes(|terminal| terminal.type_line("n"), 1, "\nnothing was changed");
}

/// Shows: engine.md#stop-and-abort "at a question, and in commands that run no plugin, the first Ctrl-C ends the
///   program"
#[test]
fn ctrl_c_at_a_question_ends_the_program_and_its_line() {
    assert_nothing_changes(|terminal| terminal.press_ctrl_c(), 130, "[y/N] ^C\nnothing was changed");
}

/// Shows: engine.md#stop-and-abort "it includes the start of plugins and the time at a question"
#[test]
fn execution_timeout_includes_the_time_at_a_question() {
    let repository = repository();
    let mut terminal = repository.start_on_terminal("destroy --parent -S --execution-timeout 300ms");
    assert_eq!(terminal.wait(), 1);
    let screen = terminal.screen();
    assert!(screen.contains("error: the execution timeout has expired"), "{screen}");
    assert!(terminal.is_restored() && terminal.line_before_cursor().is_empty(), "{screen}");
}
