//! Start protocol of Pulumi's plugins: the address of the engine is the last argument, the port is the first line of
//! output (docs/spec/provider-protocol.md#1.3 to #1.5).

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::port_line::parse_port;
use super::socket::{PluginAddress, plugin_connection};
use super::start::{exec_failed, start};
use super::{Interrupt, LastOutput, LaunchError, LaunchSpec, Launched};
use crate::process::{FirstLine, OutputStream, Process, describe_exit};

/// Starts a plugin and waits until it has printed its port.
///
/// # Errors
/// [`LaunchError`]; the process is killed.
///
/// # Cancellation
/// The process is killed.
pub(super) async fn launch(spec: LaunchSpec<'_>, engine_address: &str) -> Result<Launched, LaunchError> {
    let (package, directory, limit) = (spec.package, spec.directory.clone(), spec.start_timeout);
    let process = start(spec, &[engine_address.into()])?;
    let line = match tokio::time::timeout(limit, process.first_line()).await {
        Ok(FirstLine::Line(line)) => line,
        Ok(FirstLine::ExecFailed(error)) => return Err(exec_failed(package, &directory, error)),
        Ok(FirstLine::Incomplete(beginning)) => return Err(output_ended(&process, beginning).await),
        Err(_) => {
            return Err(LaunchError::TimedOut { limit, last_output: LastOutput::of(&process) });
        }
    };
    match parse_port(&line) {
        Some(port) => {
            let address = PluginAddress::Tcp((Ipv4Addr::LOCALHOST, port).into());
            let connection = plugin_connection(address.clone(), &process, None);
            Ok(Launched {
                address,
                protocol_version: None,
                connection,
                process,
                ending: Arc::new(Interrupt),
                broker: None,
                kept: None,
                deregistered: CancellationToken::new(),
            })
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

/// Returns the last lines on standard error. If there are none, returns those on standard output without the line
/// `quoted`, which the message quotes already.
fn last_output_without(process: &Process, quoted: &str) -> LastOutput {
    let lines = LastOutput::of(process);
    if !lines.0.is_empty() {
        return lines;
    }
    LastOutput(process.last_lines(OutputStream::Stdout).into_iter().filter(|line| line != quoted).collect())
}
