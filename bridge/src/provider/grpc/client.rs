//! The client of one plugin: makes single calls, with their limits, and tells a plugin that died from a call that failed.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use tonic::Status;

use super::bags::{Decoder, Encoder};
use super::errors::{self, too_slow};
use super::limits::Limits;
use super::plugin_init::PluginInit;
use super::procedures::Rpc;
use super::views::{Caller, Ticket, ViewDesk};
use crate::launch::{Connection, LastWords};
use crate::process::{OutputStream, Process, describe_exit};
use crate::provider::{Capabilities, Method, ProviderError, Views};

/// How long the answer to a call is waited for once the process has ended: it may be in the socket already.
const AFTERLIFE: Duration = Duration::from_secs(1);

/// A provider at the other end of a connection.
///
/// Dropping it kills the plugin's process, if it holds the last reference to it.
pub struct GrpcProvider {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) connection: Connection,
    pub(super) limits: Limits,
    /// What the handshake or Configure said; empty before.
    pub(super) capabilities: OnceLock<Capabilities>,
    pub(super) configured: AtomicBool,
    pub(super) init: Option<PluginInit>,
    pub(super) initialized: AtomicBool,
    pub(super) closed: AtomicBool,
    /// Where views are published: the address of the service, and the desk behind it.
    pub(super) views: Option<(String, Arc<ViewDesk>)>,
    pub(super) process: Option<Arc<Process>>,
    /// What has to live as long as the plugin.
    pub(super) _keep: Option<Box<dyn Any + Send + Sync>>,
}

impl GrpcProvider {
    /// A provider whose handshake is over: `handshake` is what it said, `None` if it has none and says the same in its
    /// answer to Configure. `version` is what GetPluginInfo answered, if anything. With its `process`, every call in flight fails
    /// with [`ProviderError::Died`] when that ends.
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
            init: None,
            initialized: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            views: None,
            process,
            _keep: None,
        }
    }

    /// The same provider, with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same provider, which is handed this right after Configure, if it serves `simplecontainer.plugin.v1`.
    #[must_use]
    pub fn with_init(self, init: PluginInit) -> Self {
        Self { init: Some(init), ..self }
    }

    /// The same provider, which keeps something alive as long as itself: the service that it calls, its files.
    #[must_use]
    pub fn keeping(self, keep: impl Any + Send + Sync) -> Self {
        Self { _keep: Some(Box::new(keep)), ..self }
    }

    /// Name of the plugin.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the plugin ended, and its last words, if it ended without having been closed.
    pub async fn premature_end(&self) -> Option<String> {
        let process = self.process.as_ref()?;
        if process.exit().is_none() || self.closed.load(Ordering::Acquire) {
            return None;
        }
        let (status, last_words) = self.last_words(process).await;
        Some(format!("it ended by itself ({status}){last_words}"))
    }

    /// Returns the capabilities that the handshake or Configure said; before both, the most modest set.
    pub(super) fn known_capabilities(&self) -> Capabilities {
        self.capabilities.get().copied().unwrap_or_default()
    }

    pub(super) fn encoder(&self, method: Method) -> Encoder {
        Encoder { method, capabilities: self.known_capabilities() }
    }

    /// The right to publish views during a call, and the address and token that say so in its request: empty for none.
    /// `sent` are the bags that the plugin gets to see.
    pub(super) fn ticket(
        &self,
        views: &Views,
        preview: bool,
        sent: [&PropertyMap; 2],
    ) -> (Option<Ticket>, String, String) {
        let Some(((address, desk), listener)) = self.views.as_ref().zip(views.listener.as_ref()) else {
            return Default::default();
        };
        let plain = !self.known_capabilities().accept_secrets;
        let secret = plain && sent.iter().any(|bag| bag.values().any(PropertyValue::contains_secrets));
        let ticket = desk.ticket(Caller { listener: Arc::clone(listener), preview, secret });
        let token = ticket.token().to_owned();
        (Some(ticket), address.clone(), token)
    }

    /// Makes a call that fails as a whole or not at all.
    pub(super) async fn call<P: Rpc>(&self, request: &P::Request) -> Result<P::Reply, ProviderError> {
        self.attempt(P::METHOD, None, self.connection.call::<P>(request)).await
    }

    /// Makes a call that may leave a resource behind although it fails; the decoder is for what is said of it.
    pub(super) async fn call_with_parts<P: Rpc>(
        &self,
        decoder: &Decoder,
        request: &P::Request,
    ) -> Result<P::Reply, ProviderError> {
        self.attempt(P::METHOD, Some(decoder), self.connection.call::<P>(request)).await
    }

    /// Makes a call that ought to be quick.
    pub(super) async fn call_within<P: Rpc>(
        &self,
        limit: Duration,
        request: &P::Request,
    ) -> Result<P::Reply, ProviderError> {
        let answer = tokio::time::timeout(limit, self.call::<P>(request)).await;
        answer.unwrap_or_else(|_| Err(too_slow(P::METHOD, limit)))
    }

    /// Awaits a call and watches the process meanwhile: a code alone does not tell a dead plugin from a failed call.
    pub(super) async fn attempt<T>(
        &self,
        method: Method,
        partial: Option<&Decoder>,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, ProviderError> {
        let Some(process) = &self.process else {
            return call.await.map_err(|status| errors::from_status(method, &status, partial));
        };
        // What listens on the port of a dead plugin is a stranger.
        if process.exit().is_some() {
            return Err(self.died(method, process, false).await);
        }
        tokio::pin!(call);
        let answer = tokio::select! {
            biased;
            answer = &mut call => answer,
            _ = process.exited() => match tokio::time::timeout(AFTERLIFE, call).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(_)) | Err(_) => return Err(self.died(method, process, true).await),
            },
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(status) if errors::is_lost_connection(&status) => {
                // The connection of a dying process ends before the process does.
                match tokio::time::timeout(AFTERLIFE, process.exited()).await {
                    Ok(_) => Err(self.died(method, process, true).await),
                    Err(_) => Err(errors::lost_connection(method, status)),
                }
            }
            Err(status) => Err(errors::from_status(method, &status, partial)),
        }
    }

    /// `reached`: the call may have reached the plugin before it ended.
    pub(super) async fn died(&self, method: Method, process: &Process, reached: bool) -> ProviderError {
        let (status, last_words) = self.last_words(process).await;
        ProviderError::Died { plugin: self.name.clone(), method, reached, status, stderr: last_words.0 }
    }

    async fn last_words(&self, process: &Process) -> (String, LastWords) {
        let status = describe_exit(process.exited().await);
        process.drained().await;
        let mut last_words = process.last_lines(OutputStream::Stderr);
        if last_words.is_empty() {
            last_words = process.last_lines(OutputStream::Stdout);
            // Its port was no word of farewell.
            if last_words.first().is_some_and(|line| line.trim().parse::<u16>().is_ok()) {
                last_words.remove(0);
            }
        }
        (status, LastWords(last_words))
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
