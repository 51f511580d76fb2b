//! Views: parts of a resource that its provider shows beside it, and what became of them during a call about the resource
//! (provider protocol, section 2.2).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pulumi_proto::property::PropertyMap;

use super::diff::PropertyDiff;

/// A part of a resource, as its provider shows it. Nobody but the calls about the resource is ever asked for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Its type.
    pub type_token: String,
    /// Its name; with the type, its own among the views of the resource.
    pub name: String,
    /// Type and name of the view that it is within; `None`: right below the resource.
    pub within: Option<(String, String)>,
    /// Its inputs.
    pub inputs: Arc<PropertyMap>,
    /// Its outputs.
    pub outputs: Arc<PropertyMap>,
}

/// Something that became of a view.
#[derive(Clone, Debug)]
pub struct ViewStep {
    /// What was done.
    pub op: ViewOp,
    /// The view before; `None` if it was not there.
    pub old: Option<View>,
    /// The view after; `None` if it is gone.
    pub new: Option<View>,
    /// How it failed, if it did.
    pub failure: Option<ViewFailure>,
    /// Properties that forced a replacement.
    pub replace_keys: Vec<String>,
    /// Properties that changed.
    pub diffs: Vec<String>,
    /// Changes by property path, where the provider says them.
    pub detailed_diff: Option<BTreeMap<String, PropertyDiff>>,
}

/// What is done to a view: the steps of the engine itself, by the protocol's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewOp {
    /// Nothing.
    Same,
    /// It was made.
    Create,
    /// It was changed in place.
    Update,
    /// It was deleted.
    Delete,
    /// It was replaced: said beside the two halves of that.
    Replace,
    /// The new half of a replacement.
    CreateReplacement,
    /// The old half of a replacement.
    DeleteReplaced,
    /// It was read.
    Read,
    /// It was read in place of another one.
    ReadReplacement,
    /// It was read to see how it is.
    Refresh,
    /// What was only read is not there any more.
    ReadDiscard,
    /// What was only read makes way for its replacement.
    DiscardReplaced,
    /// What was deleted before its replacement is not to be replaced after all.
    RemovePendingReplace,
    /// It was taken over.
    Import,
    /// It was taken over in place of another one.
    ImportReplacement,
}

/// How a step of a view failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewFailure {
    /// The provider's words.
    pub message: String,
    /// Whether the view is there all the same, as the step says.
    pub partial: bool,
    /// Whether nobody can say.
    pub indeterminate: bool,
}

/// Who is told of views while a call is under way.
pub trait ViewListener: fmt::Debug + Send + Sync {
    /// Takes what a provider publishes, in its order.
    fn publish(&self, steps: Vec<ViewStep>);
}

/// What a call about a resource says of its views.
#[derive(Clone, Debug, Default)]
pub struct Views {
    /// Those that are recorded.
    pub known: Vec<View>,
    /// Who listens to what becomes of them; `None`: nobody.
    pub listener: Option<Arc<dyn ViewListener>>,
}
