//! Functions of providers (docs/spec/engine-semantics.md#8.3).

use std::sync::Arc;

use bridge::provider::{InvokeReply, InvokeRequest, ProviderError};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

use super::default_providers::{Package, default_provider};
use crate::context::Context;
use crate::events::Message;
use crate::goal::InvokeGoal;
use crate::messages;
use crate::providers::Instance;
use crate::registrar::Halted;
use crate::reporter::{Failure, report_all};

/// Calls a function for a program. An error is fatal.
///
/// # Errors
/// [`Halted`] if the call fails, or the run is halted.
pub(crate) async fn invoke(ctx: &Arc<Context>, goal: InvokeGoal) -> Result<PropertyMap, Halted> {
    let (package, source) = (goal.token.package().to_owned(), goal.source);
    let reply = match call_function(ctx, goal).await {
        Ok(reply) => reply,
        Err(CallError::Halted(halted)) => return Err(halted),
        Err(CallError::Provider(error)) => {
            let mut message = messages::error_message(&error);
            (message.plugin, message.source) = (Some(package), source);
            return Err(ctx.report_general_error(message, Failure::Fatal).into());
        }
    };
    let report = |failure| {
        let plugin = Some(package.clone());
        ctx.report_general_error(Message { plugin, source, ..Message::rejected_input(failure) }, Failure::Fatal)
    };
    match report_all(reply.failures.iter().map(report)) {
        Some(error) => Err(error.into()),
        None => Ok(reply.result),
    }
}

/// Calls a function. If the configuration of its provider is not known, returns an empty reply without a call.
///
/// # Errors
/// [`CallError`]; an error of the provider has not been reported.
pub(crate) async fn call_function(ctx: &Arc<Context>, goal: InvokeGoal) -> Result<InvokeReply, CallError> {
    ctx.check_running()?;
    let package = goal.token.package().to_owned();
    ctx.add_secrets(&goal.arguments);
    let instance = instance_for(ctx, &package, &goal).await?;
    let Some(provider) = instance.ready().await? else { return Ok(InvokeReply::default()) };
    let request = InvokeRequest {
        token: goal.token.as_str().to_owned(),
        arguments: Arc::new(goal.arguments),
        preview: ctx.is_preview(),
    };
    let reply = provider.invoke(request).await?;
    ctx.add_secrets(&reply.result);
    Ok(reply)
}

/// Returns the instance that serves a function of a package, or a method.
///
/// # Errors
/// [`Halted`] if the instance does not start.
pub(super) async fn instance_for(
    ctx: &Arc<Context>,
    package: &str,
    goal: &InvokeGoal,
) -> Result<Arc<Instance>, Halted> {
    let urn = Urn::root_stack(&ctx.request.stack, &ctx.request.project);
    let reference = match &goal.provider {
        Some(reference) => reference.clone(),
        None => {
            let (version, download_url) = (goal.version.as_deref(), goal.plugin_download_url.as_deref());
            let subpackage = goal.subpackage.as_ref();
            let name = subpackage.map_or(package, |subpackage| subpackage.name.as_str());
            default_provider(ctx, &urn, Package { name, version, download_url, subpackage }, None).await?
        }
    };
    Ok(ctx.require_instance(&reference, &urn, goal.source).await?)
}

/// Error of a call of a function or a method.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The provider rejected the arguments or failed. The error has not been reported.
    Provider(ProviderError),
    /// The run is halted.
    Halted(Halted),
}

impl From<ProviderError> for CallError {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

impl From<Halted> for CallError {
    fn from(halted: Halted) -> Self {
        Self::Halted(halted)
    }
}
