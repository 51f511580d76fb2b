//! Start protocol of Pulumi's plugins: the address of the engine is the last argument, the port is the first line of
//! output (docs/spec/provider-protocol.md#1.3 to #1.5).

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::diagnosis::{diagnose, exec_format_error};
use super::port_line::parse_port;
use super::socket::{PluginAddress, plugin_connection};
use super::{LastOutput, LaunchError, LaunchSpec, Launched};
use crate::process::{FirstLine, OutputStream, Process, ProcessSpec, SpawnError, describe_exit};

/// Starts a plugin and waits until it has printed its port.
///
/// # Errors
/// [`LaunchError`]; the process is killed.
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
    let exec_failed = |source| LaunchError::ExecFailed {
        diagnosis: diagnose(package, &process_spec.directory, &source),
        program: package.program_origin(),
        source,
    };
    if let Some(error) = exec_format_error(&process_spec.program) {
        return Err(exec_failed(error));
    }
    let process = match spec.spawner.spawn(&process_spec, spec.sink) {
        Ok(process) => Arc::new(process),
        Err(SpawnError::Start { source, .. }) => return Err(exec_failed(source)),
        Err(error @ SpawnError::Unsupervised { .. }) => return Err(error.into()),
    };
    let line = match tokio::time::timeout(spec.start_timeout, process.first_line()).await {
        Ok(FirstLine::Line(line)) => line,
        Ok(FirstLine::ExecFailed(error)) => return Err(exec_failed(error)),
        Ok(FirstLine::Incomplete(beginning)) => return Err(output_ended(&process, beginning).await),
        Err(_) => {
            return Err(LaunchError::TimedOut { limit: spec.start_timeout, last_output: last_output(&process) });
        }
    };
    match parse_port(&line) {
        Some(port) => {
            let address = PluginAddress::Tcp((Ipv4Addr::LOCALHOST, port).into());
            Ok(Launched { connection: plugin_connection(address, &process, None), process })
        }
        None => {
            // The output after the first line may explain the failure.
            process.wait_for_output_end().await;
            Err(LaunchError::NotAPort { last_output: last_output_without(&process, &line), line })
        }
    }
}

/// Returns the error of a process whose output ended before its first line did.
async fn output_ended(process: &Process, beginning: String) -> LaunchError {
    // The output of an exiting process ends before the process does.
    let exited = tokio::time::timeout(std::time::Duration::from_secs(1), process.wait_for_exit()).await;
    process.wait_for_output_end().await;
    let last_output = last_output_without(process, &beginning);
    match (exited, beginning.is_empty()) {
        (_, false) => LaunchError::NotAPort { line: beginning, last_output },
        (Ok(status), true) => LaunchError::Exited { status: describe_exit(status), last_output },
        (Err(_), true) => LaunchError::OutputClosed { last_output },
    }
}

fn last_output(process: &Process) -> LastOutput {
    LastOutput(process.last_lines(OutputStream::Stderr))
}

/// Returns the last lines on standard error. If there are none, returns those on standard output without the line
/// `quoted`, which the message quotes already.
fn last_output_without(process: &Process, quoted: &str) -> LastOutput {
    let lines = last_output(process);
    if !lines.0.is_empty() {
        return lines;
    }
    LastOutput(process.last_lines(OutputStream::Stdout).into_iter().filter(|line| line != quoted).collect())
}
