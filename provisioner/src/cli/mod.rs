//! The command line: parses arguments, runs an operation of the library, shows its events, and returns an exit code.
//!
//! Only this module uses a terminal, the environment, signals and exit codes. Rules of the engine must not be here.

#![expect(clippy::disallowed_methods, reason = "only this module of the binary reads the environment")]

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
use signals::SignalReceiver;
use ui::Ui;

/// Runs the program with the arguments and the environment of the process.
pub(crate) fn main() -> ExitCode {
    if let Some(code) = bridge::process::run_helper(std::env::args_os().skip(1)) {
        return code;
    }
    let panics = panic::install_hook();
    let exit = run(std::env::args_os().collect());
    // A task that panicked may have been reported as a failed task.
    let exit = if panics.has_panicked() { Exit::Bug } else { exit };
    ExitCode::from(exit.code())
}

fn run(arguments: Vec<OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return print_arguments_error(&error),
    };
    let streams = ui::StreamProperties::of_process();
    let signals = match SignalReceiver::start() {
        Ok(signals) => signals,
        Err(error) => {
            let ui = Ui::new(&cli.global, &streams, SignalReceiver::default());
            return ui.fail(&anyhow::Error::new(error).context("the thread for signals cannot be started"));
        }
    };
    let ui = Ui::new(&cli.global, &streams, signals);
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

/// Prints the message of an arguments error: help and version on standard output, errors on standard error.
fn print_arguments_error(error: &clap::Error) -> Exit {
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
