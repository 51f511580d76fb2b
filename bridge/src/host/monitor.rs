//! The seam between component plugins and the deployment in which they make their children.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use crate::provider::{CallReply, InvokeReply, ResourceOptions, RunInfo};

/// What a component plugin may ask of a deployment while it answers Construct or Call. Every call returns once its outcome
/// is decided and recorded.
#[async_trait]
pub trait Monitor: Send + Sync {
    /// The run that the plugin is in; without the address of the monitor.
    fn run(&self) -> &RunInfo;

    /// Tells the user that the plugin asked for what only a program can have; the run cannot go on.
    fn refuse(&self, what: &str);

    /// Registers a resource: a child, or the component itself.
    async fn register(&self, request: ResourceRegistration) -> Result<ResourceAnswer, MonitorRefusal>;

    /// Says what the outputs of a component are.
    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), MonitorRefusal>;

    /// Reads a resource that the stack does not own.
    async fn read(&self, request: ResourceRead) -> Result<ResourceAnswer, MonitorRefusal>;

    /// Calls a function. `None`: what it depends on does not exist yet, and nothing was asked.
    async fn invoke(&self, request: FunctionCall) -> Result<Option<InvokeReply>, MonitorRefusal>;

    /// Calls a method of a component.
    async fn call(&self, request: MethodCall) -> Result<CallReply, MonitorRefusal>;
}

/// Why the deployment does not do what it was asked. Of what it refused itself the user has been told; what a provider
/// answered to a function or a method is the caller's to make something of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MonitorRefusal(pub String);

/// Who serves a resource or a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageChoice {
    /// The provider resource; `None`: the parent's, or the default one of the package.
    pub provider: Option<ProviderReference>,
    /// Version of the package for a default provider; `None`: any.
    pub version: Option<String>,
    /// Where the package of a default provider comes from; `None`: the usual place.
    pub download_url: Option<String>,
}

/// A resource that is to exist.
#[derive(Clone, Debug)]
pub struct ResourceRegistration {
    /// Its type.
    pub type_token: TypeToken,
    /// Its name.
    pub name: String,
    /// Its parent.
    pub parent: Option<Urn>,
    /// Managed by a plugin; components are not.
    pub custom: bool,
    /// A component that its plugin is to construct.
    pub remote: bool,
    /// Its inputs. Output values only where it is remote.
    pub inputs: PropertyMap,
    /// Everything it depends on.
    pub dependencies: Vec<Urn>,
    /// Input name to the URNs it came from.
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Who serves it.
    pub package: PackageChoice,
    /// Package to the provider that its children use.
    pub providers: BTreeMap<String, ProviderReference>,
    /// Id of an existing resource to import; `None` without import.
    pub import_id: Option<ResourceId>,
    /// Paths whose changes are not shown.
    pub hide_diff: Vec<String>,
    /// The rest of its options.
    pub options: ResourceOptions,
}

/// A resource that the stack does not own.
#[derive(Clone, Debug)]
pub struct ResourceRead {
    /// Its type.
    pub type_token: TypeToken,
    /// Its name.
    pub name: String,
    /// Id of the resource to read; may be unknown in a preview.
    pub id: ReferenceId,
    /// Its parent.
    pub parent: Option<Urn>,
    /// What else identifies it.
    pub properties: PropertyMap,
    /// Everything it depends on.
    pub dependencies: Vec<Urn>,
    /// Who serves it.
    pub package: PackageChoice,
    /// Outputs to keep secret.
    pub additional_secret_outputs: Vec<String>,
}

/// What became of a registration or a read.
#[derive(Clone, Debug)]
pub struct ResourceAnswer {
    /// The resource's URN.
    pub urn: Urn,
    /// Id of the resource; `None` if it is unknown, and for a component.
    pub id: Option<ResourceId>,
    /// Its outputs. In a preview, what is missing from them is unknown.
    pub outputs: Arc<PropertyMap>,
    /// Output name to the URNs it depends on; of remote components.
    pub dependencies: BTreeMap<String, Vec<Urn>>,
    /// How it went.
    pub outcome: ResourceOutcome,
}

/// How a registration or a read went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceOutcome {
    /// As wished.
    Succeeded,
    /// It failed, or hangs on what failed, and the run goes on.
    Failed,
    /// Out of scope: nothing is known of it.
    Unknown,
}

/// A call of a function.
#[derive(Clone, Debug)]
pub struct FunctionCall {
    /// Token of the function.
    pub token: TypeToken,
    /// Its arguments.
    pub arguments: PropertyMap,
    /// Who serves it.
    pub package: PackageChoice,
    /// The resource whose provider serves it if none is named.
    pub parent: Option<Urn>,
    /// What must exist first.
    pub depends_on: Vec<Urn>,
}

/// A call of a method.
#[derive(Clone, Debug)]
pub struct MethodCall {
    /// Token of the method.
    pub token: TypeToken,
    /// Its arguments, the receiver under `__self__`.
    pub arguments: PropertyMap,
    /// Argument name to the URNs it depends on.
    pub argument_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Who serves it.
    pub package: PackageChoice,
}
