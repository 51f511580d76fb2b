//! Pulumi's own dialect: the engine's address is the only argument, the port is the first line of output (provider
//! protocol, sections 1.3 to 1.5).

use std::sync::Arc;

use super::diagnosis::{diagnose, refusal};
use super::local::local;
use super::port_line::parse_port;
use super::{LastWords, LaunchError, LaunchSpec, Launched};
use crate::process::{FirstLine, OutputStream, Process, ProcessSpec, SpawnError, describe_exit};

/// Starts a plugin and waits until it has said its port.
///
/// # Errors
/// [`LaunchError`]; no process is left then.
///
/// # Cancellation
/// The process is killed.
pub async fn launch(spec: LaunchSpec<'_>, engine_address: &str) -> Result<Launched, LaunchError> {
    let package = spec.package;
    let mut arguments = package.arguments().to_vec();
    arguments.push(engine_address.into());
    let process_spec = ProcessSpec {
        program: package.program().to_owned(),
        arguments,
        directory: spec.directory,
        environment: spec.environment,
    };
    let not_run = |source| LaunchError::NotRun {
        diagnosis: diagnose(&process_spec.program, &process_spec.directory, &source),
        program: if package.arguments().is_empty() {
            package.origin().to_owned()
        } else {
            process_spec.program.clone()
        },
        source,
    };
    if let Some(error) = refusal(&process_spec.program) {
        return Err(not_run(error));
    }
    let process = match spec.spawner.spawn(&process_spec, spec.sink) {
        Ok(process) => Arc::new(process),
        Err(SpawnError::Start { source, .. }) => return Err(not_run(source)),
        Err(error @ SpawnError::Unsupervised { .. }) => return Err(error.into()),
    };
    let line = match tokio::time::timeout(spec.start_timeout, process.first_line()).await {
        Ok(FirstLine::Line(line)) => line,
        Ok(FirstLine::NotRun(error)) => return Err(not_run(error)),
        Ok(FirstLine::Ended(beginning)) => return Err(ended(&process, beginning).await),
        Err(_) => {
            return Err(LaunchError::TooSlow { limit: spec.start_timeout, last_words: last_words(&process) });
        }
    };
    match parse_port(&line) {
        Some(port) => Ok(Launched { connection: local(port, &process), process }),
        None => {
            // What follows explains more than the first line does.
            process.drained().await;
            Err(LaunchError::NoPort { last_words: last_words_but(&process, &line), line })
        }
    }
}

async fn ended(process: &Process, beginning: String) -> LaunchError {
    // The output of a dying process ends before the process does.
    let exited = tokio::time::timeout(std::time::Duration::from_secs(1), process.exited()).await;
    process.drained().await;
    let last_words = last_words_but(process, &beginning);
    match (exited, beginning.is_empty()) {
        (_, false) => LaunchError::NoPort { line: beginning, last_words },
        (Ok(status), true) => LaunchError::Ended { status: describe_exit(status), last_words },
        (Err(_), true) => LaunchError::Closed { last_words },
    }
}

fn last_words(process: &Process) -> LastWords {
    LastWords(process.last_lines(OutputStream::Stderr))
}

/// The last words; what it said on its output, but for what is quoted already, if there are none.
fn last_words_but(process: &Process, quoted: &str) -> LastWords {
    let words = last_words(process);
    if !words.0.is_empty() {
        return words;
    }
    LastWords(process.last_lines(OutputStream::Stdout).into_iter().filter(|line| line != quoted).collect())
}
