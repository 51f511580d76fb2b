//! Steps that delete entries.

use std::sync::Arc;

use state::{Entry, ResourceState};

use crate::context::Context;
use crate::events::StepOp;
use crate::step::{Actor, Step};

/// Returns an entry as if it had `retainOnDelete`: its deletion leaves the resource alone.
pub(super) fn retained((id, entry): Entry) -> Entry {
    let retain = |entry: Arc<ResourceState>| Arc::new(ResourceState { retain_on_delete: true, ..(*entry).clone() });
    (id, if entry.retain_on_delete { entry } else { retain(entry) })
}

/// Returns a step that deletes an entry, with the provider that is called for it.
pub(crate) async fn delete_step(ctx: &Context, entry: &Entry, op: StepOp) -> Step {
    let mut step = Step::new(op, entry.1.urn.clone());
    step.internal = entry.1.is_default_provider();
    step.old = Some(entry.clone());
    if let Some(reference) = &entry.1.provider
        && entry.1.custom
        && !entry.1.external
    {
        step.actor = match ctx.load_instance(reference).await {
            Ok(instance) => Actor::Instance(instance),
            Err(error) => Actor::Missing(error),
        };
    }
    step
}
