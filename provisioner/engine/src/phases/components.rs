//! Components that their plugins construct (docs/spec/engine-semantics.md#2.15).
//!
//! The plugin registers the component and its children through the resource monitor. Construct itself is not a step.

use std::sync::Arc;

use bridge::provider::{ConstructReply, ConstructRequest, Method, Provider, ProviderError, ResourceOptions};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

use super::phase_end::failed;
use super::register::{prepare, register_prepared};
use super::run_info::monitored_run_info;
use crate::context::Context;
use crate::deployment_state::Incomplete;
use crate::events::Message;
use crate::goal::Goal;
use crate::messages;
use crate::registrar::{Halted, Registered, RegistrationResult};
use crate::reporter::Failure;
use crate::secretness::{mark, only_secrets};
use crate::step_generator::GoalOrigin;

/// Calls the plugin of a component to construct it.
///
/// # Errors
/// [`Halted`] if the run is halted.
pub(super) async fn construct(ctx: &Arc<Context>, goal: Goal, urn: Urn) -> Result<Registered, Halted> {
    if has_failed_dependency(ctx, &goal) {
        ctx.state().mark_incomplete(&urn, Incomplete::NotConstructed);
        return Ok(Registered::without_outputs(urn, RegistrationResult::Skipped));
    }
    let reference = goal.provider.clone().ok_or_else(|| ctx.halted())?;
    let source = goal.source;
    if let Some(source) = source {
        ctx.state().set_source(&urn, source);
    }
    let secrets = only_secrets(&goal.inputs);
    if !secrets.is_empty() {
        ctx.state().set_constructed_secrets(&urn, secrets);
    }
    let instance = ctx.require_instance(&reference, &urn, source).await?;
    ctx.check_running()?;
    let reply = match instance.ready().await {
        Ok(Some(provider)) => call_construct(ctx, provider, &goal).await,
        Ok(None) => return register_unknown(ctx, goal).await,
        Err(error) => Err(error),
    };
    match reply {
        Ok(ConstructReply { urn, state, state_dependencies }) => {
            let state = state.into_iter().map(|(key, value)| (key, value.without_outputs()));
            let mut outputs: PropertyMap = state.collect();
            let registered = ctx.state().registered(&urn).cloned();
            for known in [Some(&goal.inputs), registered.as_ref().map(|(_, component)| &component.outputs)] {
                known.into_iter().for_each(|known| mark(&mut outputs, known));
            }
            ctx.add_secrets(&outputs);
            Ok(Registered {
                urn,
                id: None,
                outputs: Arc::new(outputs),
                has_all_outputs: !ctx.is_preview(),
                dependencies: state_dependencies,
                result: RegistrationResult::Succeeded,
            })
        }
        // The error of a child has been reported; the error of the plugin only repeats it.
        Err(_) if ctx.is_halted() => Err(ctx.halted()),
        Err(error) => {
            let message =
                Message { plugin: Some(goal.type_token.package().to_owned()), ..messages::error_message(&error) };
            ctx.report_error(&urn, source, message, Failure::Step);
            ctx.state().mark_incomplete(&urn, Incomplete::NotConstructed);
            failed(ctx, &urn).into_reply()
        }
    }
}

/// Registers a component without inputs, because the configuration of its provider is not known yet. Children and
/// outputs of the component are unknown (docs/spec/engine-semantics.md#8.4).
async fn register_unknown(ctx: &Arc<Context>, goal: Goal) -> Result<Registered, Halted> {
    let mut unknown = Goal {
        parent: goal.parent,
        source: goal.source,
        ..Goal::component(goal.type_token, goal.name, PropertyMap::new())
    };
    let urn = prepare(ctx, &mut unknown)?;
    let registered = Box::pin(register_prepared(ctx, unknown, urn, GoalOrigin::Program)).await?;
    Ok(Registered::without_outputs(registered.urn, registered.result))
}

fn has_failed_dependency(ctx: &Context, goal: &Goal) -> bool {
    let state = ctx.state();
    goal.all_dependencies().any(|urn| state.has_failed(urn))
}

async fn call_construct(
    ctx: &Arc<Context>,
    provider: &Arc<dyn Provider>,
    goal: &Goal,
) -> Result<ConstructReply, ProviderError> {
    let providers = goal.providers.iter();
    let request = ConstructRequest {
        run: monitored_run_info(ctx, Method::Construct).await?,
        type_token: goal.type_token.as_str().to_owned(),
        name: goal.name.clone(),
        parent: goal.parent.clone(),
        inputs: Arc::clone(&goal.inputs),
        input_dependencies: goal.property_dependencies.clone(),
        providers: providers.map(|(package, reference)| (package.clone(), reference.to_string())).collect(),
        dependencies: goal.dependencies.clone(),
        options: ResourceOptions {
            aliases: goal.aliases.clone(),
            protect: goal.protect,
            additional_secret_outputs: goal.additional_secret_outputs.clone(),
            custom_timeouts: goal.custom_timeouts,
            deleted_with: goal.deleted_with.clone(),
            delete_before_replace: goal.delete_before_replace,
            ignore_changes: goal.ignore_changes.clone(),
            replace_on_changes: goal.replace_on_changes.clone(),
            retain_on_delete: goal.retain_on_delete,
            replace_with: goal.replace_with.clone(),
            replacement_trigger: goal.replacement_trigger.clone(),
        },
    };
    provider.construct(request).await
}
