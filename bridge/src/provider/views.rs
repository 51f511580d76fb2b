//! Views: parts of a resource that its provider publishes, and the steps on them during a call for the resource
//! (docs/spec/provider-protocol.md#2.2).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pulumi_proto::property::PropertyMap;

use super::diff::PropertyDiff;

/// Part of a resource, published by its provider. Providers receive views only in calls for the resource that owns
/// them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Type of the view.
    pub type_token: String,
    /// Name of the view. Type and name identify the view among the views of the resource.
    pub name: String,
    /// Type and name of the parent view; `None` if the parent is the resource.
    pub parent: Option<(String, String)>,
    /// Inputs of the view.
    pub inputs: Arc<PropertyMap>,
    /// Outputs of the view.
    pub outputs: Arc<PropertyMap>,
}

/// Step on a view.
#[derive(Clone, Debug)]
pub struct ViewStep {
    /// Operation of the step.
    pub op: ViewOp,
    /// View before the step; `None` if it did not exist.
    pub old: Option<View>,
    /// View after the step; `None` if it does not exist any more.
    pub new: Option<View>,
    /// Failure of the step; `None` if it succeeded.
    pub failure: Option<ViewFailure>,
    /// Properties that forced a replacement.
    pub replace_keys: Vec<String>,
    /// Properties that changed.
    pub diffs: Vec<String>,
    /// Changes by property path; `None` if the provider publishes no detailed diff.
    pub detailed_diff: Option<BTreeMap<String, PropertyDiff>>,
}

/// Operation on a view. The variants have the names of the protocol and mean the same as the operations of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewOp {
    /// The view is unchanged.
    Same,
    /// The view was created.
    Create,
    /// The view was updated in place.
    Update,
    /// The view was deleted.
    Delete,
    /// The view was replaced. Published in addition to `CreateReplacement` and `DeleteReplaced`.
    Replace,
    /// The new view of a replacement was created.
    CreateReplacement,
    /// The old view of a replacement was deleted.
    DeleteReplaced,
    /// The view was read.
    Read,
    /// The view was read as a replacement of another view.
    ReadReplacement,
    /// The view was refreshed.
    Refresh,
    /// An external view was removed from the state.
    ReadDiscard,
    /// An external view was removed from the state because it was replaced.
    DiscardReplaced,
    /// The mark "pending replacement" of a deleted view was removed.
    RemovePendingReplace,
    /// The view was imported.
    Import,
    /// The view was imported as a replacement of another view.
    ImportReplacement,
}

/// Failure of a step on a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewFailure {
    /// Message of the provider.
    pub message: String,
    /// True if the step took effect in part: the view has the state of the step.
    pub partial: bool,
    /// True if the effect of the step is unknown.
    pub indeterminate: bool,
}

/// Listener of the view steps that a provider publishes during a call.
pub trait ViewListener: fmt::Debug + Send + Sync {
    /// Receives view steps in the order in which the provider publishes them.
    fn publish(&self, steps: Vec<ViewStep>);

    /// Discards the received steps: the call failed without an effect, and is repeated. The default keeps them.
    fn discard(&self) {}
}

/// Views of the resource of a call.
#[derive(Clone, Debug, Default)]
pub struct Views {
    /// Recorded views.
    pub recorded: Vec<View>,
    /// Listener of view steps; `None` if view steps are not accepted.
    pub listener: Option<Arc<dyn ViewListener>>,
}
