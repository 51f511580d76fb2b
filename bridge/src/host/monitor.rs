//! The interface through which component plugins register resources with a deployment.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use super::subpackage::Subpackage;
use crate::provider::{CallReply, InvokeReply, ResourceOptions, RunInfo};

/// Resource monitor of a deployment, which component plugins call during Construct and Call. Every call returns once
/// its outcome is decided and recorded.
#[async_trait]
pub trait Monitor: Send + Sync {
    /// Returns information about the run, without the address of the monitor.
    fn run(&self) -> &RunInfo;

    /// Reports to the user that the plugin requested a feature that `sc` does not support. The run fails.
    fn report_unsupported(&self, feature: &str);

    /// Registers a resource: a component or one of its children.
    async fn register(&self, request: ResourceRegistration) -> Result<ResourceReply, MonitorError>;

    /// Registers the outputs of a component.
    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), MonitorError>;

    /// Reads an external resource.
    async fn read(&self, request: ResourceRead) -> Result<ResourceReply, MonitorError>;

    /// Calls a function. Returns `None` without a call if one of its dependencies does not exist yet.
    async fn invoke(&self, request: FunctionCall) -> Result<Option<InvokeReply>, MonitorError>;

    /// Calls a method of a component.
    async fn call(&self, request: MethodCall) -> Result<CallReply, MonitorError>;
}

/// Reason why the deployment rejects or fails a call. The deployment has reported its own errors to the user. An error
/// that a provider returned for a function or a method is reported by the caller only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MonitorError(pub String);

/// Provider of a resource or a function: an explicit provider, or options of a default provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderSelection {
    /// Explicit provider; `None`: the provider of the parent, or the default provider of the package.
    pub provider: Option<ProviderReference>,
    /// Package version of a default provider; `None`: any version.
    pub version: Option<String>,
    /// URL to download the plugin of a default provider from; `None`: the default location.
    pub download_url: Option<String>,
    /// Package that a default provider serves after Parameterize; `None`: that of the type.
    pub subpackage: Option<Arc<Subpackage>>,
}

/// Registration of a resource (RegisterResource).
#[derive(Clone, Debug)]
pub struct ResourceRegistration {
    /// Type of the resource.
    pub type_token: TypeToken,
    /// Name of the resource.
    pub name: String,
    /// Parent of the resource.
    pub parent: Option<Urn>,
    /// True if a provider manages the resource; false for a component.
    pub custom: bool,
    /// True for a component that its plugin constructs.
    pub remote: bool,
    /// Inputs of the resource. They contain output values only if `remote` is set.
    pub inputs: PropertyMap,
    /// Resources that the resource depends on.
    pub dependencies: Vec<Urn>,
    /// URNs that each input depends on.
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Provider of the resource.
    pub package: ProviderSelection,
    /// Providers of the children, by package.
    pub providers: BTreeMap<String, ProviderReference>,
    /// Id of an existing resource to import; `None` without import.
    pub import_id: Option<ResourceId>,
    /// Property paths whose changes are not displayed.
    pub hide_diff: Vec<String>,
    /// Other resource options.
    pub options: ResourceOptions,
}

/// Read of an external resource (ReadResource).
#[derive(Clone, Debug)]
pub struct ResourceRead {
    /// Type of the resource.
    pub type_token: TypeToken,
    /// Name of the resource.
    pub name: String,
    /// Id of the resource to read; may be unknown in a preview.
    pub id: ReferenceId,
    /// Parent of the resource.
    pub parent: Option<Urn>,
    /// Further properties that identify the resource.
    pub properties: PropertyMap,
    /// Resources that the resource depends on.
    pub dependencies: Vec<Urn>,
    /// Provider of the resource.
    pub package: ProviderSelection,
    /// Outputs to mark as secret.
    pub additional_secret_outputs: Vec<String>,
}

/// Reply to a registration or a read.
#[derive(Clone, Debug)]
pub struct ResourceReply {
    /// URN of the resource.
    pub urn: Urn,
    /// Id of the resource; `None` if it is unknown, and for a component.
    pub id: Option<ResourceId>,
    /// Outputs of the resource. In a preview, missing outputs are unknown.
    pub outputs: Arc<PropertyMap>,
    /// URNs that each output depends on; only for remote components.
    pub dependencies: BTreeMap<String, Vec<Urn>>,
    /// Outcome of the registration or the read.
    pub outcome: ResourceOutcome,
}

/// Outcome of a registration or a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceOutcome {
    /// The registration or the read succeeded.
    Succeeded,
    /// The resource or one of its dependencies failed, and the run continues.
    Failed,
    /// The resource is out of scope and its state is unknown.
    Unknown,
}

/// Call of a function (Invoke).
#[derive(Clone, Debug)]
pub struct FunctionCall {
    /// Token of the function.
    pub token: TypeToken,
    /// Arguments of the function.
    pub arguments: PropertyMap,
    /// Provider of the function.
    pub package: ProviderSelection,
    /// Resource whose provider is called if `package` names none.
    pub parent: Option<Urn>,
    /// Resources that must exist before the call.
    pub depends_on: Vec<Urn>,
}

/// Call of a method of a component (Call).
#[derive(Clone, Debug)]
pub struct MethodCall {
    /// Token of the method.
    pub token: TypeToken,
    /// Arguments of the method; the receiver has the key `__self__`.
    pub arguments: PropertyMap,
    /// URNs that each argument depends on.
    pub argument_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Provider of the component.
    pub package: ProviderSelection,
}
