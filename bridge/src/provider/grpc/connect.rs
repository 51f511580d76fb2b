//! From a connection to a provider: Handshake and GetPluginInfo (provider protocol, sections 1.5, 3.3, 3.4).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pulumi_proto::rpc;

use tonic::{Code, Status};

use super::client::GrpcProvider;
use super::errors::{self, BrokenCall};
use super::limits::Limits;
use super::procedures::{GetPluginInfo, Handshake};
use super::views::ViewDesk;
use crate::error::cause;
use crate::launch::Connection;
use crate::plugin::PluginVersion;
use crate::process::Process;
use crate::provider::{Capabilities, Method, ProviderError};

/// How long is waited between attempts while the plugin is not there yet.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// What the host says of itself in the handshake.
#[derive(Clone, Copy, Debug)]
pub struct Announcement<'a> {
    /// Address of the Engine service, `host:port`.
    pub engine_address: &'a str,
    /// Folder of the plugin's program.
    pub program_folder: &'a Path,
    /// Where views are taken that are published at the same address; `None`: nowhere.
    pub views: Option<&'a Arc<ViewDesk>>,
}

/// Shakes hands with a plugin that is starting to listen, and asks who it is.
///
/// # Errors
/// [`ProviderError`] where the plugin does not answer in time, ends, or refuses.
pub async fn connect(
    connection: Connection,
    name: &str,
    process: Option<Arc<Process>>,
    announcement: Announcement<'_>,
    limits: Limits,
) -> Result<GrpcProvider, ProviderError> {
    let provider = GrpcProvider::new(connection.clone(), name, None, None, process.clone()).with_limits(limits);
    let mut last_attempt = None;
    let handshake = tokio::time::timeout(limits.handshake, provider.handshake(announcement, &mut last_attempt)).await;
    let capabilities = handshake.unwrap_or_else(|_| Err(not_in_time(limits.handshake, last_attempt)))?;
    let info = provider.call_within::<GetPluginInfo>(limits.plugin_info, &()).await?;
    let version = Some(info.version).filter(|version| !version.is_empty());
    if let Some(version) = version.as_ref().filter(|version| version.parse::<PluginVersion>().is_err()) {
        let reason = format!("{version:?} is no version");
        return Err(ProviderError::Protocol { method: Method::GetPluginInfo, reason });
    }
    let views = announcement.views.map(|desk| (announcement.engine_address.to_owned(), Arc::clone(desk)));
    let provider = GrpcProvider::new(connection, name, capabilities, version, process);
    Ok(GrpcProvider { views, ..provider.with_limits(limits) })
}

impl GrpcProvider {
    /// Says hello until somebody answers. `None` is a provider without handshake: its capabilities come from Configure.
    /// What came of the last attempt is left behind for the report of one who gives up.
    async fn handshake(
        &self,
        announcement: Announcement<'_>,
        last_attempt: &mut Option<Status>,
    ) -> Result<Option<Capabilities>, ProviderError> {
        let folder = announcement.program_folder.to_string_lossy().into_owned();
        let request = rpc::ProviderHandshakeRequest {
            engine_address: announcement.engine_address.to_owned(),
            root_directory: Some(folder.clone()),
            program_directory: Some(folder),
            configure_with_urn: true,
            supports_views: announcement.views.is_some(),
            supports_refresh_before_update: true,
            invoke_with_preview: true,
            accepts_byte_string: true,
            ..Default::default()
        };
        loop {
            if let Some(process) = self.process.as_ref().filter(|process| process.exit().is_some()) {
                return Err(self.died(Method::Handshake, process, true).await);
            }
            let status = match self.connection.call::<Handshake>(&request).await {
                Ok(reply) => return Ok(Some(capabilities(reply))),
                Err(status) => status,
            };
            match status.code() {
                Code::Unimplemented => return Ok(None),
                code if code != Code::Unavailable && !errors::is_lost_connection(&status) => {
                    return Err(errors::from_status(Method::Handshake, &status, None));
                }
                _ => {}
            }
            *last_attempt = Some(status);
            // A plugin prints its port before it serves; nothing tells when it does.
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

fn not_in_time(limit: Duration, last_attempt: Option<Status>) -> ProviderError {
    match (errors::too_slow(Method::Handshake, limit), last_attempt) {
        (ProviderError::Failed { method, message, .. }, Some(status)) => {
            let source = Some(cause(BrokenCall(status)));
            ProviderError::Failed { method, message, indeterminate: false, source }
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
        // Who shakes hands knows previews.
        supports_preview: true,
        supports_autonaming: reply.supports_autonaming_configuration,
    }
}
