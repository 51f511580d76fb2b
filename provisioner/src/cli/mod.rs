//! The command line: parses arguments, runs an operation of the library, shows its events, and returns an exit code.
//!
//! Only this module uses a terminal, the environment, signals and exit codes. Rules of the engine must not be here.

#![expect(clippy::disallowed_methods, reason = "only this module of the binary reads the environment")]

mod access;
mod addresses;
mod args;
mod argument_errors;
mod attached_plugins;
mod causes;
mod changed_since;
mod ci_systems;
mod commands;
mod completions;
mod display;
mod downloads;
mod editor;
mod error_texts;
mod exit;
mod git;
mod git_changes;
mod guard;
mod listing;
mod lock_process;
mod migrated;
mod output;
mod panic;
mod plaintext;
mod plan_args;
mod plan_markdown;
mod plugins;
mod process;
mod profile_settings;
mod prompt;
mod questions;
mod recorded_names;
mod run_origin;
mod runs;
mod session;
mod session_events;
mod shell_words;
mod signals;
mod stack_queue;
mod stack_runs;
mod stacks;
mod streams;
mod trace;
mod ui;
mod waits;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use commands::Cli;
use exit::Exit;
use signals::SignalReceiver;
use trace::Trace;
use ui::Ui;

/// Runs the program with the arguments and the environment of the process.
pub(crate) fn main() -> ExitCode {
    if let Some(code) = bridge::process::run_helper(std::env::args_os().skip(1)) {
        return code;
    }
    if commands::complete(&std::env::args_os().collect::<Vec<_>>()) {
        return ExitCode::SUCCESS;
    }
    let panics = panic::install_hook();
    let exit = run(std::env::args_os().collect());
    // A task that panicked may have been reported as a failed task.
    let exit = if panics.has_panicked() { Exit::Bug } else { exit };
    ExitCode::from(exit.code())
}

fn run(arguments: Vec<OsString>) -> Exit {
    let cli = match Cli::try_parse_from(commands::secrets::with_commit_flag(arguments)) {
        Ok(cli) => cli,
        Err(error) => return print_arguments_error(&argument_errors::with_tips(error)),
    };
    let streams = output::StreamProperties::of_process();
    let start = if cli.command.has_own_signals() { || Ok(SignalReceiver::default()) } else { SignalReceiver::start };
    let signals = match start() {
        Ok(signals) => signals,
        Err(error) => {
            let ui = Ui::new(&cli.global, &streams, SignalReceiver::default());
            return ui.output.fail(&anyhow::Error::new(error).context("the thread for signals cannot be started"));
        }
    };
    let ui = Ui::new(&cli.global, &streams, signals);
    let trace = match Trace::start(&ui.output, &cli.global, |name| std::env::var(name).ok()) {
        Ok(trace) => trace,
        Err(error) => return ui.output.fail(&error),
    };
    let exit = until_end(&ui, || run_command(&ui, cli));
    if let Err(error) = trace.finish() {
        ui.output.warn(format_args!("{error:#}"));
    }
    exit
}

/// Runs a command, and prints what it could not record, also after a panic, which the hook has reported. All state of the
/// command is dropped then, so what it could not record is known.
fn until_end(ui: &Ui, command: impl FnOnce() -> Exit) -> Exit {
    let exit = catch_unwind(AssertUnwindSafe(command)).unwrap_or(Exit::Bug);
    ui.report_unrecorded(exit)
}

fn run_command(ui: &Ui, cli: Cli) -> Exit {
    // A run mostly waits for plugins and disks, so handing the rest to other threads would cost more than it saves.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return ui.output.fail(&anyhow::Error::new(error).context("the runtime cannot be started")),
    };
    let result = runtime.block_on(commands::run(ui, cli));
    // A task that still runs, such as a question without a reply, must not keep the process alive.
    runtime.shutdown_background();
    result.unwrap_or_else(|error| ui.output.fail(&error))
}

/// Prints the message of an arguments error: help and version on standard output, errors on standard error.
fn print_arguments_error(error: &clap::Error) -> Exit {
    let printed = match error.kind() {
        ErrorKind::DisplayVersion => output::print_result(&version_text()),
        _ => error.print(),
    };
    match (error.kind(), printed) {
        (_, Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::BrokenPipe,
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => Exit::Done,
        _ => Exit::Usage,
    }
}

/// Returns the name, the version, the commit with its date, and what the program is: two programs are called `sc`.
///
/// Builds of `.ci/release` name their commit (`SC_COMMIT`) and its date (`SC_COMMIT_DATE`).
fn version_text() -> String {
    let commit = match (option_env!("SC_COMMIT"), option_env!("SC_COMMIT_DATE")) {
        (Some(commit), Some(date)) => format!("commit {commit}, {date}"),
        _ => "not built by a release".to_owned(),
    };
    format!(
        "sc {} ({commit})\nProvisions the parent stacks of Simple Container with Pulumi providers. It is not the `sc` that deploys client \
         stacks.\n{}",
        env!("CARGO_PKG_VERSION"),
        addresses::lines(),
    )
}

#[cfg(test)]
mod tests {
    use state::format::UpdateKind;
    use state::secrets::Keyring;
    use state::store::{FileUrl, LockHolder, StackReference, StateStore, StoreOptions};
    use state::{Effect, EntryId, JournalFolders, OperationId, Record, ResourceState, StackAccess, StackState};
    use state::{StateRecorder as _, UnrecordedReport};

    use super::*;

    /// Records a creation whose record cannot be written, and ends as the closure does.
    fn lose_a_record(ui: &Ui, end: impl FnOnce() -> Exit) -> Exit {
        let folder = tempfile::tempdir().unwrap();
        let url = FileUrl::parse("file://.", folder.path(), None).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let access = StackAccess {
                store: StateStore::open_folder(&url, StoreOptions::default()).await.unwrap(),
                stack: StackReference::new("reef", "dev").unwrap(),
                keyring: std::sync::Arc::new(Keyring::new(None)),
                configured_secrets: None,
                config: Default::default(),
                journals: JournalFolders::of_backend(folder.path()),
                journal_mode: Default::default(),
                unrecorded: ui.unrecorded.clone(),
                locks: state::LockSettings::default(),
                begins_anew: false,
                engine_version: String::new(),
            };
            let holder =
                LockHolder { pid: 1, username: String::new(), hostname: String::new(), process: None, lease: None };
            let state = StackState::open(access, &holder).await.unwrap();
            // No journal can be written below a file.
            std::fs::write(folder.path().join(".sc"), "").unwrap();
            let mut created = ResourceState::new("urn:pulumi:dev::reef::t:m:T::a".parse().unwrap(), true);
            created.id = pulumi_proto::resource_id::ResourceId::new("a-1");
            let effects = vec![Effect::Add(EntryId(0), std::sync::Arc::new(created))];
            state.recorder(UpdateKind::Update).append(&Record::End { operation: OperationId(0), effects }).unwrap_err();
            end()
        })
    }

    #[test]
    fn panic_exits_as_a_bug_after_the_unrecorded_changes_were_printed() {
        let cli = Cli::try_parse_from(["sc", "stack", "ls"]).unwrap();
        let ui = Ui::new(&cli.global, &output::StreamProperties::default(), SignalReceiver::default());
        let panics = || lose_a_record(&ui, || std::panic::resume_unwind(Box::new("oh")));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(ui.unrecorded.changes().len(), 1, "the change is still known after the panic");
        assert_eq!(until_end(&ui, || std::panic::resume_unwind(Box::new("oh"))), Exit::Bug);
        assert_eq!(ui.unrecorded.take(), UnrecordedReport::default());
        for exit in [Exit::Done, Exit::Canceled, Exit::Failed] {
            assert_eq!(until_end(&ui, || lose_a_record(&ui, || exit)), Exit::Failed, "{exit:?}");
            assert_eq!(until_end(&ui, || exit), exit);
        }
    }

    /// Shows: state.md#the-journal-could-not-be-written "A third Ctrl-C prints the lines, too."
    #[test]
    fn signal_that_ends_the_process_prints_the_unrecorded_changes_first() {
        let cli = Cli::try_parse_from(["sc", "stack", "ls"]).unwrap();
        let ui = Ui::new(&cli.global, &output::StreamProperties::default(), SignalReceiver::default());
        assert_eq!(ui.end_by_signal()(), Exit::Canceled);
        lose_a_record(&ui, || {
            // The run has not ended.
            assert_eq!(ui.end_by_signal()(), Exit::Failed);
            assert_eq!(ui.unrecorded.take(), UnrecordedReport::default(), "they were printed");
            Exit::Canceled
        });
    }
}
