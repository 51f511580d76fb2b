//! Connection to a plugin that runs already, with Handshake and Attach.

use std::sync::Arc;

use super::attached_plugin::AttachedPlugin;
use super::attachment::Attachment;
use super::engine_service::EngineServices;
use super::host_settings::HostSettings;
use super::instance::Instance;
use super::load_error::LoadError;
use crate::launch::attached_connection;
use crate::plugin::PluginConfig;
use crate::provider::grpc::{HostInfo, handshake};

/// Connects to a plugin that runs already, and calls Handshake and Attach. The instance is used by one lease.
pub(super) async fn attach(
    plugin: &PluginConfig,
    attached: &AttachedPlugin,
    attachment: Arc<Attachment>,
    settings: &HostSettings,
) -> Result<Instance, LoadError> {
    attached.check_version(plugin)?;
    let engine = EngineServices::serve(Arc::clone(&attachment), settings.pool.connection_guard()).await;
    let EngineServices { endpoint, status_tokens, .. } = engine.map_err(LoadError::Listen)?;
    let address = endpoint.address();
    let connection = attached_connection(attached.address.clone());
    let host_info = HostInfo { engine_address: &address, program_folder: None, status_tokens: Some(&status_tokens) };
    let failed = |source| LoadError::NotAttached { setting: attached.setting, source };
    let provider = handshake(connection, plugin.name.as_str(), None, host_info, settings.limits).await;
    let provider = provider.map_err(failed)?.left_running();
    let is_implemented = provider.attach(&address).await.map_err(failed)?;
    if attached.requires_attach && !is_implemented {
        return Err(LoadError::WithoutAttach { setting: attached.setting });
    }
    let instance = Instance::new(provider.with_guard(endpoint), attachment, None);
    instance.use_up();
    Ok(instance)
}
