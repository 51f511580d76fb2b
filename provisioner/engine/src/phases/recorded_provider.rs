//! Provider with which the recorded resource of a registration is read and deleted (docs/spec/engine-semantics.md#5.4).

use std::sync::Arc;

use crate::context::Context;
use crate::events::Operation;
use crate::goal::ResourceKind;
use crate::providers::Instance;
use crate::registrar::Halted;
use crate::step_generator::{Registration, StepGenerator};

/// Returns the instance of the recorded provider if only that one can find the resource: the program names another provider, and
/// the change replaces the resource, which may be in another account or region. A refresh and a destroy replace nothing, so they
/// keep the recorded provider. `reads` is true if the recorded entry is read next.
///
/// # Errors
/// [`Halted`] if DiffConfig fails, or the recorded provider does not start.
pub(super) async fn recorded_provider(
    ctx: &Arc<Context>,
    registration: &mut Registration,
    reads: bool,
) -> Result<Option<Arc<Instance>>, Halted> {
    let is_needed = reads || (registration.in_scope && ctx.request.operation == Operation::Destroy);
    let provider = registration.old_state().and_then(|old| old.provider.clone()).filter(|_| is_needed);
    let Some(provider) = provider.filter(|_| registration.kind == ResourceKind::Custom) else { return Ok(None) };
    // A new configuration of the same provider resource is what `--run-program` asks for.
    let is_moved = registration.goal.provider.as_ref().is_some_and(|new| new.urn != provider.urn);
    if !is_moved || !StepGenerator::new(ctx).provider_change_replaces(registration).await? {
        return Ok(None);
    }
    let instance = ctx.require_instance(&provider, &registration.urn, registration.goal.source).await?;
    if ctx.request.operation != Operation::Update {
        registration.goal.provider = Some(provider);
        registration.instance = Some(Arc::clone(&instance));
    }
    Ok(Some(instance))
}
