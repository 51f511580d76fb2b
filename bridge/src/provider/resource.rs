//! Requests and replies of the calls that make, read, change and delete resources, and of List.

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
    /// How long the user allows; `None` leaves it to the provider.
    pub timeout: Option<Duration>,
    /// Only say what would come out.
    pub preview: bool,
    /// Its views: none are known yet.
    pub views: Views,
}

/// Answer of Create.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateReply {
    /// The resource's id; `None` only in previews.
    pub id: Option<ResourceId>,
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
    /// Id of the resource.
    pub id: Option<ResourceId>,
    /// Known outputs; `None` for an import.
    pub outputs: Option<Arc<PropertyMap>>,
    /// Known inputs; `None` for an import.
    pub inputs: Option<Arc<PropertyMap>>,
    /// How long the user allows; `None` leaves it to the provider.
    pub timeout: Option<Duration>,
    /// Its views.
    pub views: Views,
}

/// Answer of Read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadReply {
    /// The id of the resource, which may differ from the one of the request; `None` if the resource is gone.
    pub id: Option<ResourceId>,
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
    /// Id of the resource; `None` if its state has none.
    pub id: Option<ResourceId>,
    /// Recorded outputs.
    pub olds: Arc<PropertyMap>,
    /// Recorded inputs.
    pub old_inputs: Arc<PropertyMap>,
    /// Checked inputs of this run.
    pub news: Arc<PropertyMap>,
    /// How long the user allows; `None` leaves it to the provider.
    pub timeout: Option<Duration>,
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
    /// Id of the resource; `None` if its state has none.
    pub id: Option<ResourceId>,
    /// Recorded outputs.
    pub outputs: Arc<PropertyMap>,
    /// Recorded inputs.
    pub old_inputs: Arc<PropertyMap>,
    /// How long the user allows; `None` leaves it to the provider.
    pub timeout: Option<Duration>,
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
    /// At most so many in all; `None`: no limit.
    pub limit: Option<NonZeroU32>,
    /// At most so many in this page; `None`: as the provider likes.
    pub page_size: Option<NonZeroU32>,
    /// Where the last page ended; `None` for the first.
    pub continuation_token: Option<String>,
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
        /// Where to go on; `None` after the last page.
        continuation_token: Option<String>,
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
