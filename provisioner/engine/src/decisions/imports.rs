//! What becomes of what exists already: imports and reads (engine semantics, sections 2.5, 2.14 and 5.6).

use std::sync::Arc;

use bridge::provider::ReadReply;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::wire::copy_secretness;
use pulumi_proto::resource_id::{ReferenceId, ResourceId};

use crate::events::{Operation, StepOp};
use state::ResourceState;

use crate::goal::ResourceKind;

/// The id that imports know an entry by: the one it was imported under, for a provider may have answered another, else
/// its own.
pub(crate) fn known_id(old: &ResourceState) -> Option<&ResourceId> {
    old.import_id.as_ref().or(old.id.as_ref())
}

/// Returns whether a registration first imports what exists under `import_id`; `None` asks for no import. Only an update
/// imports.
pub(crate) fn must_import(
    operation: Operation,
    kind: ResourceKind,
    import_id: Option<&ResourceId>,
    old: Option<&ResourceState>,
) -> bool {
    let is_other = |old: &ResourceState| old.external || known_id(old) != import_id;
    operation == Operation::Update && kind == ResourceKind::Custom && import_id.is_some() && old.is_none_or(is_other)
}

/// Returns the step that reads `id`. A managed entry with another id is deleted at the end of the run; one with the same
/// id becomes external.
pub(crate) fn read_op(old: Option<&ResourceState>, id: &ReferenceId) -> StepOp {
    let is_same = |old: &ResourceState| matches!(id, ReferenceId::Known(id) if old.id.as_ref() == Some(id));
    match old {
        Some(old) if !old.external && !is_same(old) => StepOp::ReadReplacement,
        Some(_) | None => StepOp::Read,
    }
}

/// Why what is to be taken over cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// There is no such thing.
    Missing,
    /// Its provider read no inputs of it: it cannot import the type.
    WithoutInputs,
}

/// The entry for what is taken over, as it was read. `known`: the inputs of the program, which say what is secret. `reasons`:
/// why it does not work.
pub(crate) fn as_found(
    wanted: &ResourceState,
    reply: ReadReply,
    known: &PropertyMap,
    reasons: Vec<String>,
) -> Result<ResourceState, NotTaken> {
    let outputs = reply.outputs.ok_or(NotTaken::Missing)?;
    let mut inputs = reply.inputs.ok_or(NotTaken::WithoutInputs)?;
    copy_secretness(known, &mut inputs);
    let mut new = wanted.clone();
    new.id = reply.id.or(new.id);
    (new.inputs, new.outputs) = (Arc::new(inputs), Arc::new(outputs));
    new.init_errors = reasons;
    new.refresh_before_update = reply.refresh_before_update;
    Ok(new)
}
