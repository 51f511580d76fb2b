//! The client of a plugin: makes calls within their limits, and distinguishes an exited plugin from a failed call.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug_span};

use super::bags::{Decoder, Encoder};
use super::errors::{self, timed_out};
use super::limits::Limits;
use super::plugin_init::PluginInit;
use super::procedures::Rpc;
use super::views::{CallContext, ResourceStatusToken, ResourceStatusTokens};
use crate::launch::{CallError, Connection, Ending, Interrupt, LastOutput, Loss};
use crate::process::{OutputStream, Process, describe_exit};
use crate::provider::{Capabilities, Method, ProviderError, Views};

/// Limit on the wait for a reply after the process exited, because the reply may be in the socket already, and on the
/// wait for the exit of the process after its connection was lost.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// Provider at the other end of a gRPC connection.
///
/// Dropping it kills the process of the plugin if it holds the last reference to the process.
pub struct GrpcProvider {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) connection: Connection,
    pub(super) limits: Limits,
    /// Capabilities from Handshake or Configure; empty before.
    pub(super) capabilities: OnceLock<Capabilities>,
    pub(super) configured: AtomicBool,
    pub(super) init: OnceLock<PluginInit>,
    pub(super) initialized: AtomicBool,
    pub(super) closed: AtomicBool,
    /// Address of the resource status service, and the tokens of its calls.
    pub(super) status_tokens: Option<(String, Arc<ResourceStatusTokens>)>,
    pub(super) process: Option<Arc<Process>>,
    pub(super) ending: Arc<dyn Ending>,
    /// True if closing the provider leaves the plugin as it is.
    pub(super) is_left_running: bool,
    /// Signal to stop waiting for the plugin when it is closed.
    pub(super) abort: Mutex<CancellationToken>,
    /// Value that must live as long as the plugin.
    pub(super) _guard: Option<Box<dyn Any + Send + Sync>>,
}

impl GrpcProvider {
    /// Creates the client of a plugin. `handshake` holds the capabilities from the reply to Handshake; `None` before
    /// Handshake, or if the provider does not implement it and returns them from Configure. `version` is the version
    /// from GetPluginInfo. If `process` is given, calls in flight fail with [`ProviderError::PluginExited`] when it
    /// exits.
    pub fn new(
        connection: Connection,
        name: impl Into<String>,
        handshake: Option<Capabilities>,
        version: Option<String>,
        process: Option<Arc<Process>>,
    ) -> Self {
        Self {
            name: name.into(),
            version,
            connection,
            limits: Limits::default(),
            capabilities: handshake.map_or_else(OnceLock::new, OnceLock::from),
            configured: AtomicBool::new(false),
            init: OnceLock::new(),
            initialized: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            status_tokens: None,
            process,
            ending: Arc::new(Interrupt),
            is_left_running: false,
            abort: Mutex::default(),
            _guard: None,
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the input of Initialize, which is called directly after Configure if the plugin serves
    /// `simplecontainer.plugin.v1`.
    pub fn set_init(&self, init: PluginInit) {
        // A provider is configured once, so a second input would never be used.
        self.init.set(init).ok();
    }

    /// Sets the way to end the process of the plugin.
    #[must_use]
    pub fn with_ending(self, ending: Arc<dyn Ending>) -> Self {
        Self { ending, ..self }
    }

    /// Makes closing the provider leave the plugin as it is: another program has started it.
    #[must_use]
    pub fn left_running(self) -> Self {
        Self { is_left_running: true, ..self }
    }

    /// Sets the signal after which closing the provider does not wait for the plugin any more.
    pub fn set_abort(&self, abort: CancellationToken) {
        *self.abort.lock().unwrap_or_else(PoisonError::into_inner) = abort;
    }

    /// Keeps a value alive as long as the provider, such as the service that the plugin calls and its files.
    #[must_use]
    pub fn with_guard(self, guard: impl Any + Send + Sync) -> Self {
        Self { _guard: Some(Box::new(guard)), ..self }
    }

    /// Returns the process of the plugin; `None` if the provider is not a process of its own.
    pub fn process(&self) -> Option<&Arc<Process>> {
        self.process.as_ref()
    }

    /// Returns the name of the plugin.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Describes the exit of the plugin, with its last output; `None` if it runs or was closed.
    pub async fn unexpected_exit(&self) -> Option<String> {
        let process = self.process.as_ref()?;
        if process.exit_status().is_none() || self.closed.load(Ordering::Acquire) {
            return None;
        }
        let (status, last_output) = self.exit_report(process).await;
        Some(format!("it exited unexpectedly ({status}){last_output}"))
    }

    /// Returns the capabilities from Handshake or Configure. Before both, all are false.
    pub(super) fn known_capabilities(&self) -> Capabilities {
        self.capabilities.get().copied().unwrap_or_default()
    }

    pub(super) fn encoder(&self, method: Method) -> Encoder {
        Encoder { method, capabilities: self.known_capabilities() }
    }

    /// Issues a resource status token for a call. Returns the token, and the address and token for the request: both
    /// are empty if view steps are not accepted. `sent` holds the property maps of the request.
    pub(super) fn resource_status_token(
        &self,
        views: &Views,
        preview: bool,
        sent: [&PropertyMap; 2],
    ) -> (Option<ResourceStatusToken>, String, String) {
        let Some(((address, tokens), listener)) = self.status_tokens.as_ref().zip(views.listener.as_ref()) else {
            return Default::default();
        };
        let sends_plain_text = !self.known_capabilities().accept_secrets;
        let has_plain_secrets =
            sends_plain_text && sent.iter().any(|bag| bag.values().any(PropertyValue::contains_secrets));
        let token = tokens.issue(CallContext { listener: Arc::clone(listener), preview, has_plain_secrets });
        let text = token.as_str().to_owned();
        (Some(token), address.clone(), text)
    }

    /// Makes a call that cannot fail partially.
    pub(super) async fn call<P: Rpc>(&self, request: &P::Request) -> Result<P::Reply, ProviderError> {
        self.await_call(P::METHOD, None, self.connection.call::<P>(request)).await
    }

    /// Makes a call that may fail partially. `decoder` decodes the state of the resource in the error.
    pub(super) async fn call_with_partial_failure<P: Rpc>(
        &self,
        decoder: &Decoder,
        request: &P::Request,
    ) -> Result<P::Reply, ProviderError> {
        self.await_call(P::METHOD, Some(decoder), self.connection.call::<P>(request)).await
    }

    /// Makes a call that fails if there is no reply within `limit`.
    pub(super) async fn call_within<P: Rpc>(
        &self,
        limit: Duration,
        request: &P::Request,
    ) -> Result<P::Reply, ProviderError> {
        let reply = tokio::time::timeout(limit, self.call::<P>(request)).await;
        reply.unwrap_or_else(|_| Err(timed_out(P::METHOD, limit)))
    }

    /// Awaits a call and the exit of the process. A status code alone does not distinguish an exited plugin from a
    /// failed call.
    pub(super) async fn await_call<T>(
        &self,
        method: Method,
        partial: Option<&Decoder>,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, ProviderError> {
        let span = debug_span!("call", %method, plugin = self.name);
        self.reply_or_exit(method, partial, call).instrument(span).await
    }

    async fn reply_or_exit<T>(
        &self,
        method: Method,
        partial: Option<&Decoder>,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, ProviderError> {
        let Some(process) = &self.process else {
            return call.await.map_err(|error| errors::from_call_error(method, error, partial));
        };
        // Another process may listen on the port of an exited plugin.
        if process.exit_status().is_some() {
            return Err(self.exit_error(method, process, false).await);
        }
        tokio::pin!(call);
        let reply = tokio::select! {
            biased;
            reply = &mut call => reply,
            _ = process.wait_for_exit() => match tokio::time::timeout(EXIT_GRACE, call).await {
                Ok(Ok(reply)) => Ok(reply),
                Ok(Err(error)) => {
                    let error = errors::from_call_error(method, error, partial);
                    let has_id = error.id_in_lost_reply().is_some();
                    return Err(if has_id { error } else { self.exit_error(method, process, true).await });
                }
                Err(_) => return Err(self.exit_error(method, process, true).await),
            },
        };
        let error = match reply {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        let is_sent = match &error {
            CallError::NotSent(_) => false,
            CallError::Lost { loss: Loss::Connection(_), .. } => true,
            CallError::Status(_) | CallError::Lost { .. } => {
                return Err(errors::from_call_error(method, error, partial));
            }
        };
        // The connection of an exiting process ends before the process does.
        let error = errors::from_call_error(method, error, partial);
        let has_id = error.id_in_lost_reply().is_some();
        match tokio::time::timeout(EXIT_GRACE, process.wait_for_exit()).await {
            Ok(_) if !has_id => Err(self.exit_error(method, process, is_sent).await),
            Ok(_) | Err(_) => Err(error),
        }
    }

    /// Returns the error of a call to an exited plugin. `is_sent`: the request may have been sent before the exit.
    pub(super) async fn exit_error(&self, method: Method, process: &Process, is_sent: bool) -> ProviderError {
        let (status, last_output) = self.exit_report(process).await;
        ProviderError::PluginExited { plugin: self.name.clone(), method, is_sent, status, last_output: last_output.0 }
    }

    async fn exit_report(&self, process: &Process) -> (String, LastOutput) {
        let status = describe_exit(process.wait_for_exit().await);
        process.wait_for_output_end().await;
        let mut last_output = process.last_lines(OutputStream::Stderr);
        if last_output.is_empty() {
            last_output = process.last_lines(OutputStream::Stdout);
            // The port line does not explain the exit.
            if last_output.first().is_some_and(|line| line.trim().parse::<u16>().is_ok()) {
                last_output.remove(0);
            }
        }
        (status, LastOutput(last_output))
    }
}

impl fmt::Debug for GrpcProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcProvider")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("process", &self.process.as_ref().map(|process| process.id()))
            .finish_non_exhaustive()
    }
}
