//! Tests of the `sc` binary: output streams and exit codes.

#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

mod completion;
mod hostile_clones;
mod init;
mod repository;
mod secrets;
mod secrets_confirmations;
mod secrets_flows;
mod state;
mod state_view;
#[cfg(not(feature = "cloud"))]
mod without_clouds;

use std::process::{Command, Output, Stdio};

fn sc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sc"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// Returns exit code, standard output and standard error as one text.
fn check(arguments: &[&str]) -> String {
    run(sc(arguments))
}

fn run(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    format!("exit {}\n--- out\n{}--- err\n{}", status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn version_option_says_which_of_the_two_programs_it_is() {
    let printed = check(&["--version"]);
    let first = format!("exit 0\n--- out\nsc {} (", env!("CARGO_PKG_VERSION"));
    assert!(
        printed.starts_with(&first) && printed.contains("It is not the `sc` that deploys client stacks.\n--- err\n"),
        "{printed}"
    );
}

#[test]
fn help_goes_to_stdout_and_misspelled_command_is_usage_error() {
    assert!(check(&["help", "provision"]).starts_with("exit 0\n--- out\nCreate, update and delete"));
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
fn destroy_without_parent_is_usage_error() {
    insta::assert_snapshot!(check(&["destroy", "--yes"]), @"
    exit 2
    --- out
    --- err
    error: destroying a stack requires --parent
      hint: give --parent to delete all resources that `sc provision` created for the stack
    ");
    insta::assert_snapshot!(check(&["destroy", "--yes", "-e", "staging"]), @"
    exit 2
    --- out
    --- err
    error: this sc does not deploy client stacks and cannot destroy them
      hint: omit --env, and give --parent to destroy the stack that `sc provision` created
    ");
}

#[test]
fn closed_stdout_is_reported_only_by_exit_code() {
    for arguments in [&["completion", "bash"][..], &["--version"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = sc(arguments).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(3), Vec::new()), "{arguments:?}");
    }
}

#[test]
fn color_option_overrides_environment() {
    let colored = |arguments: &[&str], variables: &[(&str, &str)]| {
        let output = sc(arguments).envs(variables.iter().copied()).output().unwrap();
        output.stderr.contains(&0x1b)
    };
    assert!(!colored(&["destroy"], &[]));
    assert!(colored(&["destroy"], &[("CLICOLOR_FORCE", "1")]));
    assert!(colored(&["destroy", "--color", "always"], &[]));
    assert!(!colored(&["destroy", "--color=never"], &[("CLICOLOR_FORCE", "1")]));
}
