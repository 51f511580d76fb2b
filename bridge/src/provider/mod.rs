//! The service a plugin offers, as a trait over our own types, and its gRPC implementation.
//!
//! Enters: requests whose bags are [`PropertyMap`]s and whose options are spelled out. Leaves: replies, or a
//! [`ProviderError`] that says what the failure means for the resource. Never here: which call comes next, what a
//! stack holds, where a plugin came from. This is the only door to the generated types (provider protocol, section 3).

mod component;
mod error;
pub mod grpc;
mod views;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

pub use component::{
    Alias, AliasParent, CallReply, CallRequest, ConstructReply, ConstructRequest, ResourceOptions, RunInfo, Timeouts,
};
pub use error::{PartialFailure, ProviderError};
pub use views::{View, ViewFailure, ViewListener, ViewOp, ViewStep, Views};

/// One configured (or not yet configured) instance of a provider: one process, one configuration.
///
/// Calls for different resources may run at once. `name` and `type` of a request are those of its URN.
///
/// # Cancellation
/// Dropping a future abandons the answer, not the work: a provider may still create what was asked for. Who needs to
/// know awaits the answer, or [`Provider::cancel`]s and awaits it then.
#[async_trait]
pub trait Provider: Send + Sync + fmt::Debug {
    /// What the provider can take, from its handshake or else from its answer to Configure; the most modest set before.
    fn capabilities(&self) -> Capabilities;

    /// The version the plugin says it has (GetPluginInfo); may be empty.
    fn version(&self) -> &str;

    /// Narrows a provider of many packages to one (Parameterize).
    async fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError>;
    /// The package schema as JSON text; `None` where the provider has none (GetSchema).
    async fn schema(&self, request: SchemaRequest) -> Result<Option<String>, ProviderError>;
    /// Checks a configuration. A provider without CheckConfig accepts what it is given.
    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError>;
    /// Compares configurations. A provider without DiffConfig answers [`DiffChanges::Unknown`].
    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError>;
    /// Configures the instance: exactly once, with inputs that hold no unknowns.
    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError>;

    /// Checks and completes the inputs of a resource.
    async fn check(&self, request: CheckRequest) -> Result<CheckReply, ProviderError>;
    /// Says what a change of inputs would do.
    async fn diff(&self, request: DiffRequest) -> Result<DiffReply, ProviderError>;
    /// Makes a resource.
    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError>;
    /// Reads what there is.
    async fn read(&self, request: ReadRequest) -> Result<ReadReply, ProviderError>;
    /// Changes a resource in place.
    async fn update(&self, request: UpdateRequest) -> Result<UpdateReply, ProviderError>;
    /// Deletes a resource.
    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError>;
    /// Lists existing resources of a type, one page at a time.
    async fn list(&self, request: ListRequest) -> Result<ListReply, ProviderError>;

    /// Calls a function.
    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeReply, ProviderError>;
    /// Calls a method of a component.
    async fn call(&self, request: CallRequest) -> Result<CallReply, ProviderError>;
    /// Makes a component; it registers itself and its children at the monitor.
    async fn construct(&self, request: ConstructRequest) -> Result<ConstructReply, ProviderError>;

    /// Names of the providers of another ecosystem that this one can map (GetMappings); `None` where it cannot say.
    async fn mappings(&self, key: &str) -> Result<Option<Vec<String>>, ProviderError>;
    /// The mapping to another ecosystem (GetMapping): the provider's name there and opaque data.
    async fn mapping(&self, key: &str, provider: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError>;

    /// Asks the provider to end what it is doing (Cancel). Calls in flight still answer.
    async fn cancel(&self) -> Result<(), ProviderError>;
    /// Ends the instance: Cancel, then SIGINT, then SIGKILL to its process group. Returns once nothing of it is left.
    async fn close(&self);
}

/// What a provider can take and do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Takes secrets as tagged objects; otherwise they are sent plain and marked again in the answers.
    pub accept_secrets: bool,
    /// Takes resource references; otherwise they are sent as ids.
    pub accept_resources: bool,
    /// Takes output values in Construct and Call.
    pub accept_outputs: bool,
    /// Takes strings that are not UTF-8.
    pub accept_byte_strings: bool,
    /// Answers Create and Update in previews.
    pub supports_preview: bool,
    /// Takes autonaming options in Check.
    pub supports_autonaming: bool,
}

/// Input of Parameterize.
#[derive(Clone, Debug)]
pub enum ParameterizeRequest {
    /// Command line arguments, as when generating an SDK.
    Arguments(Vec<String>),
    /// The parameters that a generated SDK or a state carries.
    Value {
        /// Name of the resulting package.
        name: String,
        /// Version of the resulting package.
        version: String,
        /// Opaque parameters.
        value: Vec<u8>,
    },
}

/// The package that a parameterized provider serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterizeReply {
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    pub version: String,
}

/// Which schema is wanted: that of the package itself when empty.
#[derive(Clone, Debug, Default)]
pub struct SchemaRequest {
    /// Name of the parameterized package.
    pub subpackage_name: String,
    /// Version of the parameterized package.
    pub subpackage_version: String,
}

/// Input of CheckConfig. Unknowns are allowed, secrets travel plain and are marked again in the answer.
#[derive(Clone, Debug)]
pub struct CheckConfigRequest {
    /// URN of the provider resource.
    pub urn: Urn,
    /// Checked inputs of the last run; empty if there was none.
    pub olds: Arc<PropertyMap>,
    /// Inputs as the program gives them.
    pub news: Arc<PropertyMap>,
}

/// Input of Check.
#[derive(Clone, Debug)]
pub struct CheckRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Checked inputs of the last run; empty if there was none.
    pub olds: Arc<PropertyMap>,
    /// Inputs as the program gives them.
    pub news: Arc<PropertyMap>,
    /// Seed for names and other random choices: the same in both Checks of a replacement.
    pub random_seed: [u8; 32],
    /// How the provider shall choose a name, if the user said so.
    pub autonaming: Option<Autonaming>,
    /// In a preview unknowns are sent and accepted.
    pub preview: bool,
}

/// How a provider shall choose the name of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Autonaming {
    /// Use this name, or one derived from it.
    Propose(String),
    /// Use exactly this name.
    Enforce(String),
    /// Choose no name.
    Disable,
}

/// Answer of Check and CheckConfig.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckReply {
    /// The inputs from now on, defaults added.
    pub inputs: PropertyMap,
    /// What is wrong with them; any failure fails the registration.
    pub failures: Vec<CheckFailure>,
}

/// Why inputs were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    /// Path of the property; empty for the resource as a whole.
    pub property: String,
    /// The provider's words.
    pub reason: String,
}

/// Input of DiffConfig.
#[derive(Clone, Debug)]
pub struct DiffConfigRequest {
    /// URN of the provider resource.
    pub urn: Urn,
    /// Outputs of the last run.
    pub olds: Arc<PropertyMap>,
    /// Checked inputs of the last run.
    pub old_inputs: Arc<PropertyMap>,
    /// Checked inputs of this run.
    pub news: Arc<PropertyMap>,
    /// Paths whose changes do not count.
    pub ignore_changes: Vec<String>,
}

/// Input of Diff.
#[derive(Clone, Debug)]
pub struct DiffRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Its id.
    pub id: String,
    /// Recorded outputs.
    pub olds: Arc<PropertyMap>,
    /// Recorded inputs.
    pub old_inputs: Arc<PropertyMap>,
    /// Checked inputs of this run.
    pub news: Arc<PropertyMap>,
    /// Paths whose changes do not count.
    pub ignore_changes: Vec<String>,
    /// Whether unknowns in `news` are sent as such (previews, and probes of dependents).
    pub allow_unknowns: bool,
}

/// Answer of Diff and DiffConfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffReply {
    /// Whether anything changed.
    pub changes: DiffChanges,
    /// Properties (names or paths) whose change forces replacement. Counts only where something changed.
    pub replaces: Vec<String>,
    /// Outputs that will not change.
    pub stables: Vec<String>,
    /// Changed properties (names or paths).
    pub diffs: Vec<String>,
    /// The old resource must go before the new one comes.
    pub delete_before_replace: bool,
    /// Changes by property path, where the provider says them.
    pub detailed_diff: Option<BTreeMap<String, PropertyDiff>>,
}

/// Whether a provider sees a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffChanges {
    /// The provider does not say: compare inputs.
    #[default]
    Unknown,
    /// Nothing changed, whatever else the answer holds.
    None,
    /// Something changed.
    Some,
}

/// One entry of a detailed diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyDiff {
    /// What happens to the property.
    pub kind: DiffKind,
    /// The old value is that of the old inputs, not of the outputs.
    pub input_diff: bool,
}

/// What happens to a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffKind {
    /// It comes.
    Add,
    /// It comes, and that forces replacement.
    AddReplace,
    /// It goes.
    Delete,
    /// It goes, and that forces replacement.
    DeleteReplace,
    /// It changes.
    Update,
    /// It changes, and that forces replacement.
    UpdateReplace,
}

impl DiffKind {
    /// Whether the change forces replacement.
    pub fn is_replace(self) -> bool {
        matches!(self, Self::AddReplace | Self::DeleteReplace | Self::UpdateReplace)
    }

    /// The same change, forcing replacement.
    #[must_use]
    pub fn as_replace(self) -> Self {
        match self {
            Self::Add | Self::AddReplace => Self::AddReplace,
            Self::Delete | Self::DeleteReplace => Self::DeleteReplace,
            Self::Update | Self::UpdateReplace => Self::UpdateReplace,
        }
    }
}

/// Input of Configure.
#[derive(Clone, Debug)]
pub struct ConfigureRequest {
    /// URN of the provider resource.
    pub urn: Urn,
    /// Its id; [`pulumi_proto::property::UNKNOWN_STRING`] in the preview of a new one.
    pub id: String,
    /// Checked inputs without `__internal`; `version` included.
    pub inputs: Arc<PropertyMap>,
}

/// Input of Create.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Checked inputs.
    pub inputs: Arc<PropertyMap>,
    /// Seconds the user allows; 0 leaves it to the provider.
    pub timeout: f64,
    /// Only say what would come out.
    pub preview: bool,
    /// Its views: none are known yet.
    pub views: Views,
}

/// Answer of Create.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateReply {
    /// The resource's id; empty only in previews.
    pub id: String,
    /// All its outputs. In a preview what is missing is unknown.
    pub outputs: PropertyMap,
    /// The resource wants to be read before each update.
    pub refresh_before_update: bool,
}

/// Input of Read.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Its id, never empty.
    pub id: String,
    /// Known outputs; `None` for an import.
    pub outputs: Option<Arc<PropertyMap>>,
    /// Known inputs; `None` for an import.
    pub inputs: Option<Arc<PropertyMap>>,
    /// Seconds the user allows; 0 leaves it to the provider.
    pub timeout: f64,
    /// Its views.
    pub views: Views,
}

/// Answer of Read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadReply {
    /// The id there is; may differ from the one asked for; empty where the resource is gone.
    pub id: String,
    /// Live outputs; absent where the resource is gone.
    pub outputs: Option<PropertyMap>,
    /// Inputs derived from the live resource; absent where the provider cannot say.
    pub inputs: Option<PropertyMap>,
    /// The resource wants to be read before each update.
    pub refresh_before_update: bool,
}

/// Input of Update.
#[derive(Clone, Debug)]
pub struct UpdateRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Its id.
    pub id: String,
    /// Recorded outputs.
    pub olds: Arc<PropertyMap>,
    /// Recorded inputs.
    pub old_inputs: Arc<PropertyMap>,
    /// Checked inputs of this run.
    pub news: Arc<PropertyMap>,
    /// Seconds the user allows; 0 leaves it to the provider.
    pub timeout: f64,
    /// Paths whose changes do not count.
    pub ignore_changes: Vec<String>,
    /// Only say what would come out.
    pub preview: bool,
    /// Its views.
    pub views: Views,
}

/// Answer of Update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateReply {
    /// All outputs. In a preview what is missing is unknown.
    pub outputs: PropertyMap,
    /// The resource wants to be read before each update.
    pub refresh_before_update: bool,
}

/// Input of Delete.
#[derive(Clone, Debug)]
pub struct DeleteRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Its id.
    pub id: String,
    /// Recorded outputs.
    pub outputs: Arc<PropertyMap>,
    /// Recorded inputs.
    pub old_inputs: Arc<PropertyMap>,
    /// Seconds the user allows; 0 leaves it to the provider.
    pub timeout: f64,
    /// Its views.
    pub views: Views,
}

/// Input of List.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    /// Type of the resources.
    pub token: String,
    /// What to look for.
    pub query: PropertyMap,
    /// At most so many in all; below 1: no limit.
    pub limit: i64,
    /// At most so many in this page; below 1: as the provider likes.
    pub page_size: i64,
    /// Where the last page ended; empty for the first.
    pub continuation_token: String,
}

/// Answer of List.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListReply {
    /// The provider cannot say yet.
    Computed,
    /// One page.
    Page {
        /// What there is.
        results: Vec<Listed>,
        /// Where to go on; empty after the last page.
        continuation_token: String,
    },
}

/// One listed resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Id that an import takes.
    pub id: String,
    /// A name to show.
    pub name: String,
}

/// Input of Invoke.
#[derive(Clone, Debug)]
pub struct InvokeRequest {
    /// Token of the function.
    pub token: String,
    /// Its arguments; unknown ones are left out on the wire.
    pub arguments: Arc<PropertyMap>,
    /// Whether this is a preview.
    pub preview: bool,
}

/// Answer of Invoke.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvokeReply {
    /// The result, where there are no failures.
    pub result: PropertyMap,
    /// Arguments that were refused.
    pub failures: Vec<CheckFailure>,
}
