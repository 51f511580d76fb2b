//! Methods of resources and providers (docs/spec/engine-semantics.md#2.15).

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::error::chain;
use bridge::provider::{CallReply, CallRequest, Method, ProviderError};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use super::invokes::{CallError, instance_for};
use super::run_info::monitored_run_info;
use crate::context::Context;
use crate::goal::InvokeGoal;

/// Calls a method. If the configuration of its provider is not known, returns an empty reply without a call.
///
/// # Errors
/// [`CallError`]; an error of the provider has not been reported.
pub(crate) async fn call(
    ctx: &Arc<Context>,
    goal: InvokeGoal,
    argument_dependencies: BTreeMap<String, Vec<Urn>>,
) -> Result<CallReply, CallError> {
    ctx.check_running()?;
    let token = TypeToken::new(goal.token.as_str().split('/').next().unwrap_or_default());
    let provider = receiver(ctx, &token, &goal).map_err(failed)?;
    let goal = InvokeGoal { provider, ..goal };
    let package = token.provider_package().unwrap_or_else(|| token.package()).to_owned();
    ctx.add_secrets(&goal.arguments);
    let instance = instance_for(ctx, &package, &goal).await?;
    let Some(provider) = instance.ready().await? else { return Ok(CallReply::default()) };
    let request = CallRequest {
        run: monitored_run_info(ctx, Method::Call).await?,
        token: goal.token.as_str().to_owned(),
        arguments: Arc::new(goal.arguments),
        argument_dependencies,
    };
    // A method may change resources, and no record precedes it.
    let confirmed = ctx.records.confirm_lock().await;
    confirmed.map_err(|error| failed(format!("the method was not called: {}", chain(&error))))?;
    let reply = provider.call(request).await?;
    ctx.add_secrets(&reply.result);
    Ok(reply)
}

/// Returns the error of a call that was not made.
fn failed(message: String) -> ProviderError {
    ProviderError::Failed { method: Method::Call, message, indeterminate: false, source: None, details: None }
}

/// Returns the provider that serves a method; `None` if the default provider does. `pulumi:providers:PACKAGE/METHOD` is
/// served by the provider resource that it is called on, every other method by the provider that the goal names, or
/// else by that of the resource that it is called on.
fn receiver(ctx: &Context, token: &TypeToken, goal: &InvokeGoal) -> Result<Option<ProviderReference>, String> {
    let of = |value: &PropertyValue| match value {
        PropertyValue::Resource(reference) => Some((reference.urn.clone(), reference.id.clone())),
        PropertyValue::Map(members) => {
            let text = |key| members.get(key).and_then(PropertyValue::as_str);
            Some((text("urn")?.parse().ok()?, text("id").map(ReferenceId::from)))
        }
        _ => None,
    };
    let receiver = goal.arguments.get("__self__").cloned().map(PropertyValue::without_outputs);
    let receiver = receiver.as_ref().map(|value| of(value).ok_or(value));
    if token.is_provider() {
        return match receiver {
            Some(Ok((urn, Some(id)))) => Ok(Some(ProviderReference { urn, id })),
            _ => Err(format!("the method {} is a method of a provider, and __self__ is not a provider", goal.token)),
        };
    }
    if goal.provider.is_some() {
        return Ok(goal.provider.clone());
    }
    let Some(receiver) = receiver else { return Ok(None) };
    let (urn, _) = receiver.map_err(|_| format!("__self__ of the method {} is not a resource", goal.token))?;
    let state = ctx.state();
    let known = state.inheritance(&urn).ok_or_else(|| format!("{urn} is not a resource of this run"))?;
    let serves = |reference: &&ProviderReference| {
        TypeToken::new(reference.urn.type_token()).provider_package() == Some(token.package())
    };
    Ok(known.provider.as_ref().filter(serves).cloned())
}
