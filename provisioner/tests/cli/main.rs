//! Tests of the `sc` binary: output streams and exit codes.

#![allow(clippy::unwrap_used, reason = "tests")]

mod repository;
mod state;

use std::process::{Command, Output, Stdio};

fn sc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sc"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// Returns exit code, standard output and standard error as one text.
fn check(arguments: &[&str]) -> String {
    told(sc(arguments))
}

fn told(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    format!("exit {}\n--- out\n{}--- err\n{}", status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn the_version_is_printed_and_nothing_else() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(check(&["--version"]), format!("exit 0\n--- out\n{version}\n--- err\n"));
}

#[test]
fn help_is_a_result_and_a_slip_is_wrong_usage() {
    assert!(check(&["help", "provision"]).starts_with("exit 0\n--- out\nCreate, change and delete"));
    insta::assert_snapshot!(check(&["provison"]), @"
    exit 2
    --- out
    --- err
    error: unrecognized subcommand 'provison'

      tip: a similar subcommand exists: 'provision'

    Usage: sc [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    assert!(check(&[]).starts_with("exit 2\n--- out\n--- err\n"));
}

#[test]
fn what_would_destroy_something_else_than_is_meant_is_refused() {
    insta::assert_snapshot!(check(&["destroy", "--yes"]), @"
    exit 2
    --- out
    --- err
    error: destroying a stack takes --parent
      hint: give --parent to destroy all that `sc provision` made for the stack
    ");
    insta::assert_snapshot!(check(&["destroy", "--yes", "-e", "staging"]), @"
    exit 2
    --- out
    --- err
    error: client stacks are not deployed by this sc, so none can be destroyed
      hint: leave --env out and give --parent to destroy what `sc provision` made
    ");
}

#[test]
fn a_reader_that_has_gone_is_told_by_the_exit_code_alone() {
    for arguments in [&["completion", "bash"][..], &["--version"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = sc(arguments).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(3), Vec::new()), "{arguments:?}");
    }
}

#[test]
fn colour_can_be_asked_for_and_refused() {
    let colored = |arguments: &[&str], variables: &[(&str, &str)]| {
        let output = sc(arguments).envs(variables.iter().copied()).output().unwrap();
        output.stderr.contains(&0x1b)
    };
    assert!(!colored(&["destroy"], &[]));
    assert!(colored(&["destroy"], &[("CLICOLOR_FORCE", "1")]));
    assert!(colored(&["destroy", "--color", "always"], &[]));
    assert!(!colored(&["destroy", "--color=never"], &[("CLICOLOR_FORCE", "1")]));
}
