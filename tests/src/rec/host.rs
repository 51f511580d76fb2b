//! Host whose providers run in the same process: real client code, no sockets.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::{HostError, ProviderHost, ProviderRequest};
use bridge::provider::Provider;

use super::call_recorder::CallRecorder;
use crate::service::start_in_memory;

/// Host that starts instances of the scripted provider, which share one recorder, and of the component provider. It
/// needs a runtime for them.
#[derive(Debug)]
pub struct ScriptedProviderHost {
    call_recorder: Arc<dyn CallRecorder>,
    other_host: Option<Arc<dyn ProviderHost>>,
}

impl ScriptedProviderHost {
    /// Creates a host whose instances share a recorder.
    pub fn new(call_recorder: Arc<dyn CallRecorder>) -> Self {
        Self { call_recorder, other_host: None }
    }

    /// Delegates all packages except `rec` to another host, if one is given.
    #[must_use]
    pub fn with_other_host(self, other_host: Option<Arc<dyn ProviderHost>>) -> Self {
        Self { other_host, ..self }
    }
}

#[async_trait]
impl ProviderHost for ScriptedProviderHost {
    async fn start_provider(&self, request: &ProviderRequest) -> Result<Arc<dyn Provider>, HostError> {
        if let Some(other_host) = self.other_host.as_ref().filter(|_| request.package != "rec") {
            return other_host.start_provider(request).await;
        }
        match request.package.as_str() {
            "rec" => {
                Ok(start_in_memory(super::service(Arc::clone(&self.call_recorder)), "rec", Some("1.0.0".to_owned())))
            }
            "comp" => Ok(start_in_memory(crate::comp::service(), "comp", Some("1.0.0".to_owned()))),
            other => {
                let message = format!("no plugin serves the package {other}");
                Err(HostError::new(message))
            }
        }
    }
}
