//! Requests and replies of Diff, and what a provider says of each property that changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

/// Input of Diff.
#[derive(Clone, Debug)]
pub struct DiffRequest {
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
