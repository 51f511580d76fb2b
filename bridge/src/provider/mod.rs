//! The service a plugin offers, as a trait over our own types, and its gRPC implementation.
//!
//! Enters: requests whose bags are [`PropertyMap`]s and whose options are spelled out. Leaves: replies, or a
//! [`ProviderError`] that says what the failure means for the resource. Never here: which call comes next, what a
//! stack holds, where a plugin came from. Generated types are named here and in
//! [`host`](crate::host) only (provider protocol, section 3).

mod check;
mod component;
mod configuration;
mod diff;
mod error;
pub mod grpc;
mod invoke;
mod method;
mod resource;
mod views;

use std::fmt;

use async_trait::async_trait;

pub use check::{Autonaming, CheckFailure, CheckReply, CheckRequest};
pub use component::{
    Alias, AliasParent, CallReply, CallRequest, ConstructReply, ConstructRequest, ResourceOptions, RunInfo,
};
pub use configuration::{
    Capabilities, CheckConfigRequest, ConfigureRequest, DiffConfigRequest, ParameterizeReply, ParameterizeRequest,
    SchemaRequest,
};
pub use diff::{DiffChanges, DiffKind, DiffReply, DiffRequest, PropertyDiff};
pub use error::{PartialFailure, ProviderError};
pub use invoke::{InvokeReply, InvokeRequest};
pub use method::Method;
pub use resource::{
    CreateReply, CreateRequest, DeleteRequest, ListReply, ListRequest, Listed, ReadReply, ReadRequest, UpdateReply,
    UpdateRequest,
};
pub use views::{View, ViewFailure, ViewListener, ViewOp, ViewStep, Views};

/// One configured (or not yet configured) instance of a provider: one process, one configuration.
///
/// Calls for different resources may run at once. `name` and `type` of a request are those of its URN. A call that an
/// implementation leaves out behaves like one that a plugin does not implement.
///
/// # Cancellation
/// Dropping a future abandons the answer, not the work: a provider may still create what was asked for. Who needs to
/// know awaits the answer, or [`Provider::cancel`]s and awaits it then.
#[async_trait]
pub trait Provider: Send + Sync + fmt::Debug {
    /// What the provider can take, from its handshake or else from its answer to Configure; the most modest set before.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// The version the plugin says it has (GetPluginInfo), if it says one.
    fn version(&self) -> Option<&str> {
        None
    }

    /// Narrows a provider of many packages to one (Parameterize).
    async fn parameterize(&self, _request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Parameterize })
    }
    /// The package schema as JSON text; `None` where the provider has none (GetSchema).
    async fn schema(&self, _request: SchemaRequest) -> Result<Option<String>, ProviderError> {
        Ok(None)
    }
    /// Checks a configuration. A provider without CheckConfig accepts what it is given.
    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        Ok(CheckReply { inputs: (*request.news).clone(), failures: Vec::new() })
    }
    /// Compares configurations. A provider without DiffConfig answers [`DiffChanges::Unknown`].
    async fn diff_config(&self, _request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        Ok(DiffReply::default())
    }
    /// Configures the instance: exactly once, with inputs that hold no unknowns.
    async fn configure(&self, _request: ConfigureRequest) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Checks and completes the inputs of a resource.
    async fn check(&self, _request: CheckRequest) -> Result<CheckReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Check })
    }
    /// Says what a change of inputs would do.
    async fn diff(&self, _request: DiffRequest) -> Result<DiffReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Diff })
    }
    /// Makes a resource.
    async fn create(&self, _request: CreateRequest) -> Result<CreateReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Create })
    }
    /// Reads what there is.
    async fn read(&self, _request: ReadRequest) -> Result<ReadReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Read })
    }
    /// Changes a resource in place.
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
    /// Makes a component; it registers itself and its children at the monitor.
    async fn construct(&self, _request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        Err(ProviderError::Unimplemented { method: Method::Construct })
    }

    /// Names of the providers of another ecosystem that this one can map (GetMappings); `None` where it cannot say.
    async fn mappings(&self, _key: &str) -> Result<Option<Vec<String>>, ProviderError> {
        Ok(None)
    }
    /// The mapping to another ecosystem (GetMapping): the provider's name there and opaque data.
    async fn mapping(&self, _key: &str, _provider: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        Ok(None)
    }

    /// Asks the provider to end what it is doing (Cancel). Calls in flight still answer.
    async fn cancel(&self) -> Result<(), ProviderError> {
        Ok(())
    }
    /// Ends the instance: Cancel, then SIGINT, then SIGKILL to its process group. Returns once nothing of it is left.
    async fn close(&self) {}
}
