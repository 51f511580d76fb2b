//! Start protocol of Pulumi's plugins: the address of the engine is the last argument, the port is the first line of
//! output (docs/spec/provider-protocol.md#1.3 to #1.5).

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

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
            let last_output = LastOutput::of(&process);
            return Err(match process.unended_line() {
                Some(line) => {
                    let situation = format!("within {} s (startTimeout)", limit.as_secs_f32());
                    LaunchError::NoLineEnd { line, situation, last_output }
                }
                None => LaunchError::TimedOut { limit, last_output },
            });
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
        (exited, false) if parse_port(&beginning).is_some() => {
            let situation = match exited {
                Ok(status) => format!("before it exited ({})", describe_exit(status)),
                Err(_) => "before it closed its output".to_owned(),
            };
            LaunchError::NoLineEnd { line: beginning, situation, last_output }
        }
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

/// Terminal progress sequences that the build tool of .NET writes before the output of the program.
const PROGRESS: [&str; 2] = ["\u{1b}]9;4;3;\u{1b}\\", "\u{1b}]9;4;0;\u{1b}\\"];

/// Returns the port in the first line of a plugin's output (docs/spec/provider-protocol.md#1.5): a plain decimal number, optionally surrounded by white space and the progress sequences
/// of .NET.
pub(super) fn parse_port(line: &str) -> Option<u16> {
    let line = PROGRESS.iter().fold(line.to_owned(), |line, mark| line.replace(mark, ""));
    let digits = line.trim();
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| is_plain && *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: plugin-authoring.md#what-a-process-has-to-do "print the port number, alone, as the first line of standard
    ///   output"
    #[test]
    fn port_line_is_a_plain_decimal_number() {
        for (line, port) in [
            ("41233", 41233),
            ("  1\t", 1),
            ("65535\r", 65535),
            ("\u{1b}]9;4;3;\u{1b}\\\u{1b}]9;4;0;\u{1b}\\50051", 50051),
        ] {
            assert_eq!(parse_port(line), Some(port), "{line:?}");
        }
        for invalid in [
            "",
            " ",
            "0",
            "65536",
            "+80",
            "-1",
            "8080 ready",
            "0x1F90",
            "port: 80",
            "\u{1b}[33m80\u{1b}[39m",
            "1|1|tcp|x",
        ] {
            assert_eq!(parse_port(invalid), None, "{invalid:?}");
        }
    }
}
