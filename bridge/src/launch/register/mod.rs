//! Start protocol of plugins that register themselves (docs/spec/plugin-hosts.md#C.2): the process finds the socket of
//! the host and a token in its environment, and registers the address at which it listens. Its output has no meaning.

mod awaited;
mod check;
mod error;
mod group;
mod registrations;
mod token;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::group::ProcessGroup;
use self::registrations::{Claim, Expectation, ExpectedPlugin};
use super::start::{exec_failed, start};
use super::{Ending, LastOutput, LaunchError, LaunchSpec, Launched, PluginAddress, plugin_connection};
use crate::plugin::{PluginConfig, PluginVersion, Register};
use crate::process::{FirstLine, LogLevel, OutputSink, OutputStream, Process, describe_exit};

pub use awaited::{AwaitedPlugin, RegisteredPlugin};
pub use error::{RegisterError, RegistrationError};
pub use registrations::PluginRegistrations;

/// Part of the limit on the start that one attempt has: 15 s of 60 s.
const ATTEMPT_PART: u32 = 4;
/// Time for a plugin whose registration was refused to report the error and to exit.
const REFUSED_GRACE: Duration = Duration::from_secs(1);
/// Time for a plugin that has deregistered to exit.
const DEREGISTERED_GRACE: Duration = Duration::from_secs(2);
/// Time between SIGTERM and SIGKILL for a plugin that has deregistered and still runs.
const TERMINATION_GRACE: Duration = Duration::from_secs(3);

/// Reason why an attempt to start a plugin ended.
enum Attempt {
    /// The process has not registered in time.
    TimedOut(LastOutput),
    /// Any other error, after which no further attempt is made.
    Failed(LaunchError),
}

impl From<RegisterError> for Attempt {
    fn from(error: RegisterError) -> Self {
        Self::Failed(error.into())
    }
}

/// Registered plugin.
struct Registered {
    process: Arc<Process>,
    address: PluginAddress,
    expectation: Expectation,
    deregistered: CancellationToken,
    first_line: FirstLineFuture,
}

/// Future of the first line of output; `None` once it was passed on.
type FirstLineFuture = Option<BoxFuture<'static, FirstLine>>;

/// Starts a plugin and waits until it has registered. A process that does not register in time is killed, and another one
/// is started; a process that exits is not.
///
/// # Errors
/// [`LaunchError`]; the process is killed.
///
/// # Cancellation
/// The process is killed.
pub(super) async fn launch(
    spec: LaunchSpec<'_>,
    settings: &Register,
    engine_address: &str,
) -> Result<Launched, LaunchError> {
    let registrations = spec.registrations.clone().ok_or(RegisterError::NoHost)?;
    let (limit, deadline) = (spec.start_timeout / ATTEMPT_PART, Instant::now() + spec.start_timeout);
    let mut attempts = 1;
    let registered = loop {
        let ends = deadline.min(Instant::now() + limit);
        match attempt(&spec, &registrations, engine_address, ends).await {
            Ok(registered) => break registered,
            Err(Attempt::Failed(error)) => return Err(error),
            Err(Attempt::TimedOut(last_output))
                if attempts == settings.start_attempts || Instant::now() >= deadline =>
            {
                return Err(RegisterError::TimedOut { attempts, limit, last_output }.into());
            }
            Err(Attempt::TimedOut(_)) => {
                attempts += 1;
                let message = format!(
                    "it has not registered within {} s; it is started again (attempt {attempts} of {})",
                    limit.as_secs_f32(),
                    settings.start_attempts
                );
                spec.sink.log(LogLevel::Warning, &message);
            }
        }
    };
    Ok(launched(registered, &spec))
}

fn expected(plugin: &PluginConfig, sink: &Arc<dyn OutputSink>) -> ExpectedPlugin {
    let (plugin, package) = (plugin.name.to_string(), plugin.package.to_string());
    ExpectedPlugin { plugin, package, sink: Arc::clone(sink) }
}

/// Starts the process once, and waits until it has registered.
async fn attempt(
    spec: &LaunchSpec<'_>,
    registrations: &PluginRegistrations,
    engine_address: &str,
    ends: Instant,
) -> Result<Registered, Attempt> {
    let mut expectation = registrations.expect(expected(spec.plugin, &spec.sink)).map_err(RegisterError::Token)?;
    let environment = environment(&spec.environment, registrations.socket(), expectation.token(), engine_address);
    let process = start(LaunchSpec { environment, ..spec.clone() }, &[]).map_err(Attempt::Failed)?;
    let mut first_line: FirstLineFuture = Some(Box::pin(process.first_line()));
    let group = ProcessGroup::of_leader(process.id());
    expectation.set_group(group);
    let claim = tokio::select! {
        biased;
        claim = expectation.claim() => claim,
        error = failed(spec, &process, &mut first_line) => return Err(Attempt::Failed(error)),
        () = tokio::time::sleep_until(ends) => {
            let last_output = last_output(&process);
            process.kill();
            process.wait_for_exit().await;
            process.wait_for_group_end().await;
            return Err(Attempt::TimedOut(last_output));
        }
    };
    match check_claim(spec.plugin, spec.package.version(), &expectation, &claim, Some(group)).await {
        Ok(address) => {
            let deregistered = expectation.accept(claim).map_err(RegisterError::Token)?;
            Ok(Registered { process, address, expectation, deregistered, first_line })
        }
        Err(reason) => {
            claim.refuse(reason.clone());
            // The plugin can report the reply before it is killed.
            tokio::time::timeout(REFUSED_GRACE, process.wait_for_exit()).await.ok();
            process.wait_for_output_end().await;
            Err(RegisterError::Refused { reason, last_output: last_output(&process) }.into())
        }
    }
}

/// Returns the address of a registration. `group` are the processes that the host has started for the plugin.
async fn check_claim(
    plugin: &PluginConfig,
    version: Option<&PluginVersion>,
    expectation: &Expectation,
    claim: &Claim,
    group: Option<ProcessGroup>,
) -> Result<PluginAddress, RegistrationError> {
    let request = claim.request.as_ref().map_err(Clone::clone)?;
    let (plugin, expected) = (plugin.name.to_string(), plugin.package.to_string());
    if request.name != expected {
        let found = crate::error::cut(&request.name, 100).into_owned();
        return Err(expectation.other_package(plugin, expected, found));
    }
    let address = check::check_fields(request, version)?;
    // A process that registers from elsewhere, such as one in a container, has a group of its own.
    let groups: Vec<_> = [group, claim.process.and_then(ProcessGroup::of_member)].into_iter().flatten().collect();
    check::check_owner(&address, groups).await?;
    Ok(address)
}

/// Waits for the exit of a process that has not registered, and returns its error. Passes the first line of output on.
async fn failed(spec: &LaunchSpec<'_>, process: &Process, first_line: &mut FirstLineFuture) -> LaunchError {
    if let Some(pending) = first_line {
        let line = pending.await;
        *first_line = None;
        if let Err(error) = forward(line, &*spec.sink) {
            return exec_failed(spec.package, &spec.directory, error);
        }
    }
    let status = describe_exit(process.wait_for_exit().await);
    process.wait_for_output_end().await;
    RegisterError::Exited { status, last_output: last_output(process) }.into()
}

/// Passes the first line of output on. Returns the error of a program that was not executed.
fn forward(line: FirstLine, sink: &dyn OutputSink) -> io::Result<()> {
    match line {
        FirstLine::ExecFailed(error) => return Err(error),
        FirstLine::Incomplete(line) if line.is_empty() => {}
        FirstLine::Line(line) | FirstLine::Incomplete(line) => sink.line(OutputStream::Stdout, &line),
    }
    Ok(())
}

/// Returns the last lines on standard error; if there are none, those on standard output.
fn last_output(process: &Process) -> LastOutput {
    let lines = LastOutput::of(process);
    if lines.0.is_empty() { LastOutput(process.last_lines(OutputStream::Stdout)) } else { lines }
}

fn launched(registered: Registered, spec: &LaunchSpec<'_>) -> Launched {
    let Registered { process, address, expectation, deregistered, first_line } = registered;
    let ending = Arc::new(Termination::default());
    let mut tasks = JoinSet::new();
    if let Some(line) = first_line {
        let sink = Arc::clone(&spec.sink);
        // The program was executed: it has registered.
        tasks.spawn(async move { forward(line.await, &*sink).unwrap_or_default() });
    }
    let (weak, watched) = (Arc::downgrade(&process), deregistered.clone());
    let (sink, is_ending) = (Arc::clone(&spec.sink), Arc::clone(&ending.has_begun));
    tasks.spawn(async move {
        watched.cancelled().await;
        if is_ending.load(Ordering::Acquire) {
            return;
        }
        sink.log(LogLevel::Warning, "it has deregistered: sc does not use it any more, and calls in flight fail");
        let Some(process) = weak.upgrade() else { return };
        if tokio::time::timeout(DEREGISTERED_GRACE, process.wait_for_exit()).await.is_err() {
            process.terminate(TERMINATION_GRACE).await;
        }
    });
    Launched {
        connection: plugin_connection(address.clone(), &process, None),
        process,
        address,
        protocol_version: None,
        ending,
        broker: None,
        kept: Some(Box::new((tasks, expectation))),
        deregistered,
    }
}

/// Ending by SIGTERM to the group, then SIGKILL. A plugin that deregisters meanwhile is not missed.
#[derive(Debug, Default)]
struct Termination {
    has_begun: Arc<AtomicBool>,
}

#[async_trait]
impl Ending for Termination {
    async fn end(&self, process: &Process, grace: Duration) {
        self.has_begun.store(true, Ordering::Release);
        process.terminate(grace).await;
    }

    async fn abort(&self, process: &Process, grace: Duration) {
        self.end(process, grace).await;
    }
}

/// Returns the variables by which a process finds its host.
fn variables(socket: &Path, token: &str, engine_address: &str) -> [(&'static str, OsString); 3] {
    [
        (PluginRegistrations::HOST_VARIABLE, socket.into()),
        (PluginRegistrations::TOKEN_VARIABLE, token.into()),
        (PluginRegistrations::ENGINE_VARIABLE, engine_address.into()),
    ]
}

/// Returns the environment of a plugin: the given one, with the variables of this start.
fn environment(
    base: &[(OsString, OsString)],
    socket: &Path,
    token: &str,
    engine_address: &str,
) -> Vec<(OsString, OsString)> {
    let variables = variables(socket, token, engine_address);
    let is_other = |name: &OsString| variables.iter().all(|(own, _)| name.to_str() != Some(own));
    let others = base.iter().filter(|(name, _)| is_other(name)).cloned();
    others.chain(variables.iter().map(|(name, value)| ((*name).into(), value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_has_the_variables_of_this_start_only() {
        let base = [("PATH", "/bin"), ("SC_PLUGIN_TOKEN", "of another start")];
        let base: Vec<(OsString, OsString)> = base.map(|(name, value)| (name.into(), value.into())).to_vec();
        let variables = environment(&base, Path::new("/run/sc-x/host"), "t", "127.0.0.1:7");
        let shown: Vec<_> =
            variables.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        let expected =
            ["PATH=/bin", "SC_PLUGIN_HOST=/run/sc-x/host", "SC_PLUGIN_TOKEN=t", "SC_PLUGIN_ENGINE=127.0.0.1:7"];
        assert_eq!(shown, expected);
    }
}
