//! Imports and reads of existing resources (docs/spec/engine-semantics.md#2.5, #2.14 and #5.6).

use std::sync::Arc;

use bridge::provider::ReadReply;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::{ReferenceId, ResourceId};

use crate::events::{Operation, StepOp};
use state::ResourceState;

use crate::goal::ResourceKind;

/// Returns the id of an entry to compare with the id of an import: the id under which the entry was imported, because
/// the provider may have returned another one, else the id of the resource.
pub(crate) fn id_for_import(old: &ResourceState) -> Option<&ResourceId> {
    old.import_id.as_ref().or(old.id.as_ref())
}

/// Returns whether an entry owns the resource that is imported as `planned`, if both name the same resource. The entry
/// of the same URN does not count, and neither does an entry whose deletion or removal leaves the resource alone: a read
/// resource, and one with `retainOnDelete`.
pub(crate) fn owns_imported(entry: &ResourceState, planned: &ResourceState) -> bool {
    entry.urn != planned.urn && !entry.external && !entry.retain_on_delete
}

/// Returns whether a registration first imports the resource with `import_id`. `None` means no import. Only an update
/// imports.
pub(crate) fn should_import(
    operation: Operation,
    kind: ResourceKind,
    import_id: Option<&ResourceId>,
    old: Option<&ResourceState>,
) -> bool {
    let is_other = |old: &ResourceState| old.external || id_for_import(old) != import_id;
    operation == Operation::Update && kind == ResourceKind::Custom && import_id.is_some() && old.is_none_or(is_other)
}

/// Returns the step that reads `id`. A managed entry with another id is deleted at the end of the run; one with the
/// same id becomes external.
pub(crate) fn read_op(old: Option<&ResourceState>, id: &ReferenceId) -> StepOp {
    let is_same = |old: &ResourceState| matches!(id, ReferenceId::Known(id) if old.id.as_ref() == Some(id));
    match old {
        Some(old) if !old.external && !is_same(old) => StepOp::ReadReplacement,
        Some(_) | None => StepOp::Read,
    }
}

/// Reason that a resource cannot be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportFailure {
    /// The resource does not exist.
    Missing,
    /// The provider returned no inputs, so it cannot import resources of the type.
    WithoutInputs,
}

/// Returns the entry of an imported resource, as it was read.
///
/// # Errors
/// [`ImportFailure`] if the resource does not exist, or has no inputs.
pub(crate) fn imported_state(
    planned: &ResourceState,
    reply: ReadReply,
    init_errors: Vec<String>,
) -> Result<ResourceState, ImportFailure> {
    let is_empty = |properties: &Option<PropertyMap>| properties.as_ref().is_none_or(PropertyMap::is_empty);
    if reply.id.is_none() && is_empty(&reply.inputs) && is_empty(&reply.outputs) {
        // Pulumi's SDK for Python sends empty properties in the place of none. Pulumi records a resource without properties then.
        return Err(ImportFailure::Missing);
    }
    let outputs = reply.outputs.ok_or(ImportFailure::Missing)?;
    let inputs = reply.inputs.ok_or(ImportFailure::WithoutInputs)?;
    let mut new = planned.clone();
    new.id = reply.id.or(new.id);
    (new.inputs, new.outputs) = (Arc::new(inputs), Arc::new(outputs));
    new.init_errors = init_errors;
    new.refresh_before_update = reply.refresh_before_update;
    Ok(new)
}
