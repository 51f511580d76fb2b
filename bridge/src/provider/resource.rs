//! Requests and replies of Create, Read, Update, Delete and List.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use super::views::Views;

/// Input of Create.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Checked inputs.
    pub inputs: Arc<PropertyMap>,
    /// Custom timeout of the user; `None`: the default of the provider.
    pub timeout: Option<Duration>,
    /// True in a preview: the provider returns the expected outputs and creates nothing.
    pub preview: bool,
    /// Views of the resource. No views are recorded yet.
    pub views: Views,
}

/// Reply of Create.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateReply {
    /// Id of the resource; `None` only in previews.
    pub id: Option<ResourceId>,
    /// All outputs of the resource. In a preview, missing outputs are unknown.
    pub outputs: PropertyMap,
    /// True if the resource must be refreshed before each update.
    pub refresh_before_update: bool,
}

/// Input of Read.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Id of the resource.
    pub id: Option<ResourceId>,
    /// Recorded outputs; `None` for an import.
    pub outputs: Option<Arc<PropertyMap>>,
    /// Recorded inputs; `None` for an import.
    pub inputs: Option<Arc<PropertyMap>>,
    /// Custom timeout of the user; `None`: the default of the provider.
    pub timeout: Option<Duration>,
    /// Views of the resource.
    pub views: Views,
}

/// Reply of Read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadReply {
    /// Id of the resource, which may differ from the one in the request; `None` if the resource does not exist.
    pub id: Option<ResourceId>,
    /// Live outputs; `None` if the resource does not exist.
    pub outputs: Option<PropertyMap>,
    /// Inputs derived from the live resource; `None` if the provider does not return them.
    pub inputs: Option<PropertyMap>,
    /// True if the resource must be refreshed before each update.
    pub refresh_before_update: bool,
}

/// Input of Update.
#[derive(Clone, Debug)]
pub struct UpdateRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Id of the resource; `None` if its state has none.
    pub id: Option<ResourceId>,
    /// Recorded outputs.
    pub olds: Arc<PropertyMap>,
    /// Recorded inputs.
    pub old_inputs: Arc<PropertyMap>,
    /// Checked inputs of this run.
    pub news: Arc<PropertyMap>,
    /// Custom timeout of the user; `None`: the default of the provider.
    pub timeout: Option<Duration>,
    /// Property paths whose changes are ignored.
    pub ignore_changes: Vec<String>,
    /// True in a preview: the provider returns the expected outputs and changes nothing.
    pub preview: bool,
    /// Views of the resource.
    pub views: Views,
}

/// Reply of Update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateReply {
    /// All outputs of the resource. In a preview, missing outputs are unknown.
    pub outputs: PropertyMap,
    /// True if the resource must be refreshed before each update.
    pub refresh_before_update: bool,
}

/// Input of Delete.
#[derive(Clone, Debug)]
pub struct DeleteRequest {
    /// URN of the resource.
    pub urn: Urn,
    /// Id of the resource; `None` if its state has none.
    pub id: Option<ResourceId>,
    /// Recorded outputs.
    pub outputs: Arc<PropertyMap>,
    /// Recorded inputs.
    pub old_inputs: Arc<PropertyMap>,
    /// Custom timeout of the user; `None`: the default of the provider.
    pub timeout: Option<Duration>,
    /// Views of the resource.
    pub views: Views,
}

/// Input of List.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    /// Type of the resources.
    pub token: String,
    /// Filter of the provider for the type.
    pub query: PropertyMap,
    /// Maximum number of resources in total; `None`: no limit.
    pub limit: Option<NonZeroU32>,
    /// Maximum number of resources in this page; `None`: the default of the provider.
    pub page_size: Option<NonZeroU32>,
    /// Token from the previous page; `None` for the first page.
    pub continuation_token: Option<String>,
}

/// Reply of List.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListReply {
    /// The result is not known yet.
    Computed,
    /// Page of resources.
    Page {
        /// Resources of the page.
        results: Vec<ListedResource>,
        /// Token of the next page; `None` after the last page.
        continuation_token: Option<String>,
    },
}

/// Resource in the reply of List.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedResource {
    /// Id for an import.
    pub id: String,
    /// Display name.
    pub name: String,
}
