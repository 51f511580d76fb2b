//! The command line: parses arguments, runs an operation of the library, shows its events, and returns an exit code.
//!
//! Only this module uses a terminal, the environment, signals and exit codes. Never here: a rule of the engine.

#![allow(clippy::disallowed_methods, reason = "this room is the program: it looks at the environment")]

mod access;
mod args;
mod commands;
mod display;
mod exit;
mod panic;
mod process;
mod prompt;
mod runs;
mod session;
mod signals;
mod stacks;
mod storage;
mod table;
mod ui;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use commands::Cli;
use exit::Exit;
use ui::Ui;

/// Runs the program with the arguments and the environment of the process.
pub(crate) fn main() -> ExitCode {
    if let Some(code) = bridge::process::run_helper(std::env::args_os().skip(1)) {
        return code;
    }
    let bugs = panic::report_bugs();
    let exit = run(std::env::args_os().collect());
    // A task that panicked may have been reported as a failed one.
    let exit = if bugs.seen() { Exit::Bug } else { exit };
    ExitCode::from(exit.code())
}

fn run(arguments: Vec<OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let ui = Ui::new(&cli.global, &ui::Facts::of_process());
    // A run mostly waits for plugins and disks, so handing the rest to other threads would cost more than it saves.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return ui.fail(&anyhow::Error::new(error).context("the runtime cannot be started")),
    };
    let result = runtime.block_on(commands::run(&ui, cli));
    // A task that still runs, such as a question without a reply, must not keep the process alive.
    runtime.shutdown_background();
    result.unwrap_or_else(|error| ui.fail(&error))
}

/// Prints the message of an arguments error: help and version as results, all else as an error.
fn refuse(error: &clap::Error) -> Exit {
    let printed = match error.kind() {
        ErrorKind::DisplayVersion => ui::print_result(concat!(env!("CARGO_PKG_VERSION"), "\n")),
        _ => error.print(),
    };
    match (error.kind(), printed) {
        (_, Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::BrokenPipe,
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => Exit::Done,
        _ => Exit::Usage,
    }
}
