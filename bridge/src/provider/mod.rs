//! The resource provider as a trait over our own types, and its gRPC implementation.
//!
//! Input: requests with decoded property maps and typed options. Output: replies, or a [`ProviderError`] with the
//! consequence for the resource. Excluded: the order of calls, stacks and states, the origin of a plugin. Generated
//! types are named here and in [`host`](crate::host) only (docs/spec/provider-protocol.md#3).

mod check;
mod component;
mod configuration;
mod diff;
mod error;
mod error_class;
pub mod grpc;
mod lost_reply;
mod message_limit;
mod method;
mod resource;
mod views;

use std::fmt;

use async_trait::async_trait;

pub use check::{Autonaming, CheckFailure, CheckReply, CheckRequest};
pub use component::{
    Alias, AliasParent, CallReply, CallRequest, ConstructReply, ConstructRequest, InvokeReply, InvokeRequest,
    ResourceOptions, RunInfo,
};
pub use configuration::{
    Capabilities, CheckConfigRequest, ConfigureRequest, DiffConfigRequest, ParameterizeReply, ParameterizeRequest,
    SchemaRequest,
};
pub use diff::{DiffChanges, DiffKind, DiffReply, DiffRequest, PropertyDiff};
pub use error::{PartialFailure, ProviderError};
pub use error_class::{ErrorClass, ErrorDetails, HelpLink};
pub use lost_reply::LostReply;
pub use method::Method;
pub use resource::{
    CreateReply, CreateRequest, DeleteRequest, ListReply, ListRequest, ListedResource, ReadReply, ReadRequest,
    UpdateReply, UpdateRequest,
};
pub use views::{View, ViewFailure, ViewListener, ViewOp, ViewStep, Views};

/// Instance of a provider: one process, with at most one configuration.
///
/// Calls for different resources may run in parallel. The `name` and `type` fields of a request are taken from its URN.
/// The default implementation of a call behaves like a plugin that does not implement it.
///
/// # Cancellation
/// Dropping a future discards the reply and does not stop the operation: the provider may still create the resource. To
/// get the result, await the reply, or call [`Provider::cancel`] and then await the reply.
#[async_trait]
pub trait Provider: Send + Sync + fmt::Debug {
    /// Returns the capabilities from Handshake, or from Configure if there was no handshake. Before both, all are
    /// false.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Returns the version of the plugin from GetPluginInfo; `None` if the reply has none.
    fn version(&self) -> Option<&str> {
        None
    }

    /// Returns whether a Create, Update or Delete that failed with RetryInfo can be repeated, because the declaration of the
    /// plugin states that it had no effect.
    fn can_repeat_mutations(&self) -> bool {
        false
    }

    /// Parameterizes the provider, which then serves the resulting package (Parameterize).
    async fn parameterize(&self, _request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Parameterize })
    }
    /// Returns the package schema as JSON text; `None` if the provider has none (GetSchema).
    async fn schema(&self, _request: SchemaRequest) -> Result<Option<String>, ProviderError> {
        Ok(None)
    }
    /// Checks a provider configuration. Returns the inputs unchanged if the provider does not implement CheckConfig.
    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        Ok(CheckReply { inputs: (*request.news).clone(), failures: Vec::new() })
    }
    /// Compares provider configurations. Returns [`DiffChanges::Unknown`] if the provider does not implement
    /// DiffConfig.
    async fn diff_config(&self, _request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        Ok(DiffReply::default())
    }
    /// Configures the instance. Must be called exactly once, with inputs without unknowns; again if the call failed and
    /// the provider asks to repeat it ([`ErrorDetails::retry_after`]).
    async fn configure(&self, _request: ConfigureRequest) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Checks the inputs of a resource and adds defaults.
    async fn check(&self, _request: CheckRequest) -> Result<CheckReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Check })
    }
    /// Compares the recorded state of a resource with new inputs.
    async fn diff(&self, _request: DiffRequest) -> Result<DiffReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Diff })
    }
    /// Creates a resource.
    async fn create(&self, _request: CreateRequest) -> Result<CreateReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Create })
    }
    /// Reads the live state of a resource.
    async fn read(&self, _request: ReadRequest) -> Result<ReadReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Read })
    }
    /// Updates a resource in place.
    async fn update(&self, _request: UpdateRequest) -> Result<UpdateReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Update })
    }
    /// Deletes a resource.
    async fn delete(&self, _request: DeleteRequest) -> Result<(), ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Delete })
    }
    /// Lists existing resources of a type, one page at a time.
    async fn list(&self, _request: ListRequest) -> Result<ListReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::List })
    }

    /// Calls a function.
    async fn invoke(&self, _request: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Invoke })
    }
    /// Calls a method of a component.
    async fn call(&self, _request: CallRequest) -> Result<CallReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Call })
    }
    /// Constructs a component. The plugin registers the component and its children with the resource monitor.
    async fn construct(&self, _request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Construct })
    }

    /// Returns the providers that the plugin maps for a conversion source (GetMappings); `None` if it is not
    /// implemented.
    async fn mappings(&self, _key: &str) -> Result<Option<Vec<String>>, ProviderError> {
        Ok(None)
    }
    /// Returns the mapping for a conversion source (GetMapping): name of the provider there, and opaque data.
    async fn mapping(&self, _key: &str, _provider: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        Ok(None)
    }

    /// Requests that the provider cancels its operations (Cancel). Calls in flight still return.
    async fn cancel(&self) -> Result<(), ProviderError> {
        Ok(())
    }
    /// Stops the instance: Cleanup (if Initialize was called), Cancel, then SIGINT and SIGKILL to its process group.
    /// Returns once no process is left. If the run is aborted meanwhile, only the signals are sent, and SIGKILL follows
    /// soon.
    async fn close(&self) {}
}
