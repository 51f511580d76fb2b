//! Registrations of a program: custom resources, provider resources, components.

use std::sync::Arc;

use super::components::construct;
use super::default_providers::{Package, default_provider};
use super::register::{prepare, register_prepared};
use crate::context::Context;
use crate::goal::{Goal, ResourceKind};
use crate::registrar::{Halted, Registered};
use crate::step_generator::GoalOrigin;

/// Registers a goal, with a default provider if it needs one.
///
/// # Errors
/// [`Halted`] if the registration fails, or the run is halted.
pub(crate) async fn register(ctx: &Arc<Context>, mut goal: Goal) -> Result<Registered, Halted> {
    let urn = prepare(ctx, &mut goal)?;
    if (goal.kind() == ResourceKind::Custom || goal.remote) && goal.provider.is_none() {
        let (version, download_url) = (goal.version.as_deref(), goal.plugin_download_url.as_deref());
        let package = Package::of(&goal.type_token, version, download_url, goal.subpackage.as_ref());
        // Boxed, like the futures below: tens of thousands may wait for a slot, so each must be small.
        goal.provider = Some(Box::pin(default_provider(ctx, &urn, package, goal.source)).await?);
    }
    ctx.add_secrets(&goal.inputs);
    if goal.remote {
        // A component holds no slot and no lock: its children need them.
        Box::pin(construct(ctx, goal, urn)).await
    } else {
        let _slot = match goal.kind() {
            ResourceKind::Custom => ctx.registration_slot().await,
            ResourceKind::Component | ResourceKind::Provider => None,
        };
        ctx.check_running()?;
        Box::pin(register_prepared(ctx, goal, urn, GoalOrigin::Program)).await
    }
}
