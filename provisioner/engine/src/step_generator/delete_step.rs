//! Steps that delete entries.

use crate::context::Context;
use crate::entry::Entry;
use crate::events::StepOp;
use crate::step::{Actor, Step};

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
