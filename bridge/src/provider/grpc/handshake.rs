//! Handshake and GetPluginInfo with a started plugin (docs/spec/provider-protocol.md#1.5, #3.3, #3.4).

use std::error::Error as _;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pulumi_proto::rpc;

use tonic::{Code, Status};

use super::client::GrpcProvider;
use super::errors::{self, LostCall};
use super::limits::Limits;
use super::procedures::{Attach, GetPluginInfo, Handshake};
use super::views::ResourceStatusTokens;
use crate::error::cause;
use crate::launch::{CallError, Connection, Loss};
use crate::plugin::PluginVersion;
use crate::process::Process;
use crate::provider::{Capabilities, LostReply, Method, ProviderError};

/// Pause between attempts of Handshake.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Information about the host that is sent to the plugin in Handshake.
#[derive(Clone, Copy, Debug)]
pub struct HostInfo<'a> {
    /// Address of the Engine service, `host:port`.
    pub engine_address: &'a str,
    /// Folder of the plugin's program; `None` if the host has not started it.
    pub program_folder: Option<&'a Path>,
    /// Tokens of the resource status service at the same address; `None` if the host does not accept views.
    pub status_tokens: Option<&'a Arc<ResourceStatusTokens>>,
}

/// Calls Handshake and GetPluginInfo of a plugin. Repeats Handshake while the plugin is unavailable or the connection
/// is lost; the plugin may receive it more than once.
///
/// # Errors
/// [`ProviderError`] if the plugin does not reply within the limits, exits, or returns an error.
pub async fn handshake(
    connection: Connection,
    name: &str,
    process: Option<Arc<Process>>,
    host_info: HostInfo<'_>,
    limits: Limits,
) -> Result<GrpcProvider, ProviderError> {
    let provider = GrpcProvider::new(connection.clone(), name, None, None, process.clone()).with_limits(limits);
    let mut last_attempt = None;
    let reply = tokio::time::timeout(limits.handshake, provider.call_handshake(host_info, &mut last_attempt)).await;
    let capabilities = reply.unwrap_or_else(|_| Err(handshake_timed_out(limits.handshake, last_attempt)))?;
    let info = provider.call_within::<GetPluginInfo>(limits.plugin_info, &()).await?;
    let version = Some(info.version).filter(|version| !version.is_empty());
    if let Some(version) = version.as_ref().filter(|version| version.parse::<PluginVersion>().is_err()) {
        let reason = format!("{version:?} is not a version");
        return Err(ProviderError::invalid_reply(Method::GetPluginInfo, LostReply::InvalidField, reason));
    }
    let status_tokens = host_info.status_tokens.map(|tokens| (host_info.engine_address.to_owned(), Arc::clone(tokens)));
    let provider = GrpcProvider::new(connection, name, capabilities, version, process);
    Ok(GrpcProvider { status_tokens, ..provider.with_limits(limits) })
}

/// Returns whether a plugin implements Attach, to which it sends the address of the engine; `None` if the plugin does not say.
pub async fn implements_attach(connection: &Connection, engine_address: &str, limit: Duration) -> Option<bool> {
    let request = rpc::PluginAttach { address: engine_address.to_owned() };
    match tokio::time::timeout(limit, connection.call::<Attach>(&request)).await.ok()? {
        Ok(()) => Some(true),
        Err(CallError::Status(status)) => Some(status.code() != Code::Unimplemented),
        Err(CallError::NotSent(_) | CallError::Lost { .. }) => None,
    }
}

impl GrpcProvider {
    /// Sends the address of the engine to a plugin whose start protocol has no argument for it. Returns false if the plugin
    /// does not implement Attach: it has the address from Handshake (docs/spec/plugin-hosts.md#A.18).
    ///
    /// # Errors
    /// [`ProviderError`] if the plugin does not reply within the limit, or returns another error.
    pub async fn attach(&self, engine_address: &str) -> Result<bool, ProviderError> {
        let request = rpc::PluginAttach { address: engine_address.to_owned() };
        let reply = self.call_within::<Attach>(self.limits.handshake, &request).await;
        errors::none_if_unimplemented(reply).map(|reply| reply.is_some())
    }

    /// Calls Handshake, again while the plugin is unavailable or the connection is lost. Returns `None` if the provider
    /// does not implement Handshake: its capabilities are in the reply of Configure. Stores the status of the last
    /// failed attempt in `last_attempt`, for the error of a caller that stops waiting.
    async fn call_handshake(
        &self,
        host_info: HostInfo<'_>,
        last_attempt: &mut Option<Status>,
    ) -> Result<Option<Capabilities>, ProviderError> {
        let folder = host_info.program_folder.map(|folder| folder.to_string_lossy().into_owned());
        let request = rpc::ProviderHandshakeRequest {
            engine_address: host_info.engine_address.to_owned(),
            root_directory: folder.clone(),
            program_directory: folder,
            configure_with_urn: true,
            supports_views: host_info.status_tokens.is_some(),
            supports_refresh_before_update: true,
            invoke_with_preview: true,
            accepts_byte_string: true,
            ..Default::default()
        };
        loop {
            if let Some(process) = self.process.as_ref().filter(|process| process.exit_status().is_some()) {
                // An exit before the first attempt is reported as an exit during Handshake, too.
                return Err(self.exit_error(Method::Handshake, process, true).await);
            }
            let status = match self.connection.call::<Handshake>(&request).await {
                Ok(reply) => return Ok(Some(capabilities(reply))),
                Err(CallError::Status(status)) if status.code() == Code::Unimplemented => return Ok(None),
                Err(CallError::Status(status)) if status.code() == Code::Unavailable => status,
                Err(error @ CallError::NotSent(_)) if is_permission_denied(&error) => {
                    return Err(errors::from_call_error(Method::Handshake, error, None));
                }
                Err(CallError::NotSent(status) | CallError::Lost { loss: Loss::Connection(status), .. }) => status,
                Err(error) => return Err(errors::from_call_error(Method::Handshake, error, None)),
            };
            *last_attempt = Some(status);
            // A plugin may print its port before it accepts connections. There is no signal that it accepts
            // connections.
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

/// Returns whether the port of the plugin belongs to another account, which waiting does not change.
fn is_permission_denied(error: &CallError) -> bool {
    let CallError::NotSent(status) = error else { return false };
    std::iter::successors(status.source(), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn handshake_timed_out(limit: Duration, last_attempt: Option<Status>) -> ProviderError {
    match (errors::timed_out(Method::Handshake, limit), last_attempt) {
        (ProviderError::Failed { method, message, details, .. }, Some(status)) => {
            let source = Some(cause(LostCall(status)));
            ProviderError::Failed { method, message, indeterminate: false, source, details }
        }
        (error, _) => error,
    }
}

fn capabilities(reply: rpc::ProviderHandshakeResponse) -> Capabilities {
    Capabilities {
        accept_secrets: reply.accept_secrets,
        accept_resources: reply.accept_resources,
        accept_outputs: reply.accept_outputs,
        accept_byte_strings: reply.accepts_byte_string,
        // All providers that implement Handshake support previews.
        supports_preview: true,
        supports_autonaming: reply.supports_autonaming_configuration,
    }
}
