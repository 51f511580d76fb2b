//! Request and reply of Diff, and the detailed diff of properties.

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
    /// Property paths whose changes are ignored.
    pub ignore_changes: Vec<String>,
    /// True if unknowns in `news` are sent as unknowns: in previews, and in the Diffs that search dependent
    /// replacements.
    pub allow_unknowns: bool,
}

/// Reply of Diff and DiffConfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffReply {
    /// Result of the comparison.
    pub changes: DiffChanges,
    /// Properties (names or paths) whose change forces replacement. Ignored if nothing changed.
    pub replaces: Vec<String>,
    /// Outputs that an update does not change.
    pub stables: Vec<String>,
    /// Changed properties (names or paths).
    pub diffs: Vec<String>,
    /// The old resource must be deleted before the new one is created.
    pub delete_before_replace: bool,
    /// Changes by property path; `None` if the provider returns no detailed diff.
    pub detailed_diff: Option<BTreeMap<String, PropertyDiff>>,
}

/// Result of a comparison by a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffChanges {
    /// The provider returns no result. The engine compares the inputs.
    #[default]
    Unknown,
    /// No changes, even if other fields of the reply list changes.
    None,
    /// At least one change.
    Some,
}

/// Entry of a detailed diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyDiff {
    /// Kind of the change.
    pub kind: DiffKind,
    /// True if the old value is one of the old inputs; false if it is one of the old outputs.
    pub input_diff: bool,
}

/// Kind of the change of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffKind {
    /// Added.
    Add,
    /// Added, which forces replacement.
    AddReplace,
    /// Deleted.
    Delete,
    /// Deleted, which forces replacement.
    DeleteReplace,
    /// Updated.
    Update,
    /// Updated, which forces replacement.
    UpdateReplace,
}

impl DiffKind {
    /// Returns true if the change forces replacement.
    pub fn is_replace(self) -> bool {
        matches!(self, Self::AddReplace | Self::DeleteReplace | Self::UpdateReplace)
    }

    /// Returns the same kind of change, but forcing replacement.
    #[must_use]
    pub fn as_replace(self) -> Self {
        match self {
            Self::Add | Self::AddReplace => Self::AddReplace,
            Self::Delete | Self::DeleteReplace => Self::DeleteReplace,
            Self::Update | Self::UpdateReplace => Self::UpdateReplace,
        }
    }
}
