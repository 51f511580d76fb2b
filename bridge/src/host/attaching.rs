//! Connection to a plugin that runs already, with Handshake and Attach.

use std::sync::Arc;

use super::attached_plugin::AttachedPlugin;
use super::attachment::Attachment;
use super::endpoint::Endpoint;
use super::engine_service;
use super::host_settings::HostSettings;
use super::instance::Instance;
use super::load_error::LoadError;
use crate::launch::attached_connection;
use crate::plugin::PluginConfig;
use crate::provider::grpc::{HostInfo, ResourceStatusTokens, handshake};

/// Connects to a plugin that runs already, and calls Handshake and Attach. The instance is used by one lease.
pub(super) async fn attach(
    plugin: &PluginConfig,
    attached: &AttachedPlugin,
    attachment: Arc<Attachment>,
    settings: &HostSettings,
) -> Result<Instance, LoadError> {
    attached.check_version(plugin)?;
    let status_tokens = Arc::new(ResourceStatusTokens::default());
    let guard = settings.pool.connection_guard();
    let services = engine_service::services(Arc::clone(&attachment), Arc::clone(&status_tokens), guard.limits());
    let engine = Endpoint::serve(services, guard).await.map_err(LoadError::Listen)?;
    let address = engine.address();
    let connection = attached_connection(attached.address.clone());
    let host_info = HostInfo { engine_address: &address, program_folder: None, status_tokens: Some(&status_tokens) };
    let failed = |source| LoadError::NotAttached { setting: attached.setting, source };
    let provider = handshake(connection, plugin.name.as_str(), None, host_info, settings.limits).await;
    let provider = provider.map_err(failed)?.left_running();
    let is_implemented = provider.attach(&address).await.map_err(failed)?;
    if attached.requires_attach && !is_implemented {
        return Err(LoadError::WithoutAttach { setting: attached.setting });
    }
    let instance = Instance::new(provider.with_guard(engine), attachment, None);
    instance.use_up();
    Ok(instance)
}
