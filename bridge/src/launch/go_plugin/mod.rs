//! Start protocol of HashiCorp's go-plugin (docs/spec/plugin-hosts.md#A): the plugin is recognized by a cookie in its
//! environment, and prints its address, its version and its certificate in a handshake line.

mod error;
mod handshake_line;
mod hclog;
mod output;
mod services;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::handshake_line::HandshakeLine;
use self::output::GoPluginOutput;
use super::socket_folder::create_socket_folder;
use super::start::{exec_failed, start};
use super::{
    Broker, Connection, Ending, HostIdentity, LastOutput, LaunchError, LaunchSpec, Launched, plugin_connection,
};
use crate::error::cut;
use crate::fs::ScratchFolder;
use crate::plugin::{GoPlugin, GoPluginTls};
use crate::process::{FirstLine, LogLevel, OutputSink, OutputStream, Process, describe_exit};

pub use error::GoPluginError;
pub(super) use error::is_cookie_refused;
pub use handshake_line::HandshakeError;

/// Maximum number of lines before the handshake line.
const MAX_JUNK_LINES: usize = 20;
/// Limit on the first connection and the health check.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Time between a successful Shutdown and SIGTERM.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// Time between SIGTERM and SIGKILL.
const TERMINATION_GRACE: Duration = Duration::from_secs(3);

/// Values that must live as long as the process.
struct Kept {
    _stdio: JoinSet<()>,
    _folder: ScratchFolder,
}

/// Starts a plugin, waits for its handshake line, connects and checks its health.
///
/// # Errors
/// [`LaunchError`]; the process is killed.
///
/// # Cancellation
/// The process is killed.
pub(super) async fn launch(spec: LaunchSpec<'_>, settings: &GoPlugin) -> Result<Launched, LaunchError> {
    let folder = create_socket_folder(&spec.socket_folders).map_err(GoPluginError::SocketFolder)?;
    let identity = match settings.tls {
        GoPluginTls::Auto => Some(HostIdentity::generate().map_err(GoPluginError::Tls)?),
        GoPluginTls::None => None,
    };
    let (package, directory, limit) = (spec.package, spec.directory.clone(), spec.start_timeout);
    let sink = Arc::clone(&spec.sink);
    let (output, lines) = GoPluginOutput::new(Arc::clone(&spec.sink), MAX_JUNK_LINES);
    let spec = LaunchSpec {
        environment: environment(spec.environment, settings, folder.path(), identity.as_ref()),
        sandbox: spec.sandbox.with_files([], [folder.path().to_owned()]),
        sink: Arc::new(output),
        ..spec
    };
    let process = start(spec, &[])?;
    let read = tokio::time::timeout(limit, read_handshake(&process, lines, settings, &*sink)).await;
    let line = match read {
        Ok(Ok(line)) => line,
        Ok(Err(GoPluginError::NotExecuted(error))) => return Err(exec_failed(package, &directory, error)),
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => {
            let lines = process.last_lines(OutputStream::Stdout);
            if let Some(line) = process.unended_line() {
                return Err(GoPluginError::NoLineEnd { limit, line: cut(&line, 200).into_owned() }.into());
            }
            let printed = LastOutput(lines.iter().map(|line| cut(line, 200).into_owned()).collect());
            return Err(GoPluginError::TimedOut { limit, printed, last_output: last_messages(&process) }.into());
        }
    };
    if identity.is_none() && line.has_certificate() {
        sink.log(LogLevel::Warning, "it offers TLS, which `goPlugin: { tls: none }` does not use");
    }
    let tls = match &identity {
        Some(identity) => Some(identity.with_plugin_certificate(&line.certificate).map_err(GoPluginError::Tls)?),
        None => None,
    };
    let connection = plugin_connection(line.address.clone(), &process, tls.clone());
    let mut stdio = JoinSet::new();
    stdio.spawn(services::drain_stdio(connection.clone(), sink));
    let connect = async {
        services::check_health(&connection).await?;
        Broker::open(&connection, folder.path(), tls).await
    };
    let broker = match tokio::time::timeout(CONNECT_LIMIT, connect).await {
        Ok(Ok(broker)) => broker,
        Ok(Err(source)) => return Err(GoPluginError::Unhealthy(source).into()),
        Err(_) => return Err(GoPluginError::NotConnected(CONNECT_LIMIT).into()),
    };
    let ending = Arc::new(ShutdownEnding(connection.clone()));
    let kept = Some(Box::new(Kept { _stdio: stdio, _folder: folder }) as _);
    Ok(Launched {
        process,
        address: line.address,
        protocol_version: Some(line.version),
        connection,
        ending,
        broker: Some(broker),
        kept,
        deregistered: CancellationToken::new(),
    })
}

/// Ending by Shutdown, then SIGTERM to the group, then SIGKILL. A server ignores SIGINT.
#[derive(Debug)]
struct ShutdownEnding(Connection);

#[async_trait]
impl Ending for ShutdownEnding {
    async fn end(&self, process: &Process, grace: Duration) {
        let is_ending = services::shut_down(&self.0).await;
        if is_ending && tokio::time::timeout(SHUTDOWN_GRACE, process.wait_for_exit()).await.is_ok() {
            process.wait_for_group_end().await;
        } else {
            process.terminate(grace.min(TERMINATION_GRACE)).await;
        }
    }

    async fn abort(&self, process: &Process, grace: Duration) {
        process.terminate(grace).await;
    }
}

/// Returns the environment of a plugin: the given one, without variables of go-plugin, and with those of this start
/// (docs/spec/plugin-hosts.md#A.1).
fn environment(
    base: Vec<(OsString, OsString)>,
    settings: &GoPlugin,
    folder: &Path,
    identity: Option<&HostIdentity>,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = vec![
        (settings.cookie_key.clone().into(), settings.cookie_value.clone().into()),
        ("PLUGIN_PROTOCOL_VERSIONS".into(), handshake_line::join(&settings.versions).into()),
        // A plugin that listens on TCP lets the system choose its port.
        ("PLUGIN_MIN_PORT".into(), "0".into()),
        ("PLUGIN_MAX_PORT".into(), "0".into()),
        ("PLUGIN_UNIX_SOCKET_DIR".into(), folder.into()),
    ];
    if let Some(identity) = identity {
        variables.push(("PLUGIN_CLIENT_CERT".into(), identity.certificate_pem().into()));
    }
    let is_other = |name: &OsString| {
        !name.to_string_lossy().starts_with("PLUGIN_") && name.to_str() != Some(&*settings.cookie_key)
    };
    base.into_iter().filter(|(name, _)| is_other(name)).chain(variables).collect()
}

/// Reads the handshake line, and passes the lines before it to the sink.
async fn read_handshake(
    process: &Process,
    mut lines: mpsc::Receiver<String>,
    settings: &GoPlugin,
    sink: &dyn OutputSink,
) -> Result<HandshakeLine, GoPluginError> {
    let mut junk = Vec::new();
    let mut next = match process.first_line().await {
        FirstLine::Line(line) => Some(line),
        FirstLine::Incomplete(line) => Some(line).filter(|line| !line.is_empty()),
        FirstLine::ExecFailed(error) => return Err(GoPluginError::NotExecuted(error)),
    };
    loop {
        let Some(line) = next else { return Err(no_line(process, junk).await) };
        match handshake_line::parse(&line, &settings.versions, settings.tls == GoPluginTls::Auto) {
            Some(Ok(handshake)) => {
                // Lines that the sink has queued here before it passes lines on itself.
                lines.close();
                while let Some(line) = lines.recv().await {
                    sink.line(OutputStream::Stdout, &line);
                }
                return Ok(handshake);
            }
            Some(Err(refusal)) => {
                return Err(GoPluginError::Handshake { refusal, last_output: last_messages(process) });
            }
            None if junk.len() == MAX_JUNK_LINES => return Err(GoPluginError::NoHandshake(junk)),
            None => {
                sink.line(OutputStream::Stdout, &line);
                junk.push(cut(&line, 200).into_owned());
            }
        }
        next = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = ended(process) => lines.try_recv().ok(),
        };
    }
}

/// Waits for the exit of a process and the end of its output.
async fn ended(process: &Process) {
    process.wait_for_exit().await;
    process.wait_for_output_end().await;
}

/// Returns the error of a process that ended without a handshake line.
async fn no_line(process: &Process, junk: Vec<String>) -> GoPluginError {
    let exited = tokio::time::timeout(Duration::from_secs(1), process.wait_for_exit()).await;
    process.wait_for_output_end().await;
    let LastOutput(lines) = last_messages(process);
    let status = exited.map_or_else(|_| "it closed its output".to_owned(), describe_exit);
    GoPluginError::NoLine { status, last_output: LastOutput(if lines.is_empty() { junk } else { lines }) }
}

/// Returns the last lines on standard error: the messages of the log as text, without those for debugging.
fn last_messages(process: &Process) -> LastOutput {
    let mut log = hclog::LogReader::default();
    let text = |line: String| match log.read(&line) {
        Some((LogLevel::Debug, _)) => None,
        Some((_, text)) => Some(text),
        None => Some(line),
    };
    LastOutput(process.last_lines(OutputStream::Stderr).into_iter().filter_map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_has_only_the_variables_of_this_start() {
        let base = [("PATH", "/bin"), ("PLUGIN_MULTIPLEX_GRPC", "true"), ("COOKIE", "other"), ("MY_PLUGIN_X", "1")];
        let base: Vec<(OsString, OsString)> = base.map(|(name, value)| (name.into(), value.into())).to_vec();
        let settings = GoPlugin {
            cookie_key: "COOKIE".to_owned(),
            cookie_value: "monster".to_owned(),
            versions: vec![2, 5],
            tls: GoPluginTls::None,
        };
        let of_start = |identity| {
            let variables = environment(base.clone(), &settings, Path::new("/run/sc-x"), identity);
            variables.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect::<Vec<_>>()
        };
        let plain = [
            "PATH=/bin",
            "MY_PLUGIN_X=1",
            "COOKIE=monster",
            "PLUGIN_PROTOCOL_VERSIONS=2,5",
            "PLUGIN_MIN_PORT=0",
            "PLUGIN_MAX_PORT=0",
            "PLUGIN_UNIX_SOCKET_DIR=/run/sc-x",
        ];
        assert_eq!(of_start(None), plain);
        let identity = HostIdentity::generate().unwrap();
        let certificate = format!("PLUGIN_CLIENT_CERT={}", identity.certificate_pem());
        assert_eq!(of_start(Some(&identity)).last(), Some(&certificate));
    }
}
