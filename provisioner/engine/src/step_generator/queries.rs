//! Provider calls for the queries of decisions (docs/spec/engine-semantics.md#2.6, #2.9 and #2.13).

use std::sync::Arc;

use bridge::message_text::MessageText;
use bridge::provider::{
    CheckConfigRequest, CheckFailure, CheckReply, CheckRequest, DiffChanges, DiffConfigRequest, DiffReply, DiffRequest,
    Provider, ProviderError,
};
use pulumi_proto::property::PropertyMap;

use super::registration::Registration;
use crate::context::{Context, host_error};
use crate::decisions::decision::{Checked, ProviderQuery};
use crate::decisions::ignore_changes;
use crate::events::{Message, Severity};
use crate::goal::{INTERNAL_KEY, ResourceKind, VERSION_KEY, visible};
use crate::messages;
use crate::registrar::Halted;
use crate::reporter::{ErrorReported, report_all};
use crate::secretness::{GoalInputs, mark_inputs};

/// Calls the provider for a query, and stores the reply in the registration.
///
/// # Errors
/// [`ErrorReported`] if the provider does not start or the call fails; fatal.
pub(super) async fn call_provider(
    ctx: &Arc<Context>,
    registration: &mut Registration,
    query: ProviderQuery,
) -> Result<(), ErrorReported> {
    match query {
        ProviderQuery::CheckWithoutOlds => {
            let news = Arc::clone(&registration.goal.inputs);
            registration.replies.check_without_olds = Some(check(ctx, registration, Arc::default(), news).await?);
            Ok(())
        }
        ProviderQuery::CheckAgainstOlds { news } => {
            let olds = registration.old.as_ref().map(|(_, old)| Arc::clone(&old.inputs)).unwrap_or_default();
            report_failed_ignore_changes(ctx, registration);
            registration.replies.check_against_olds = Some(check(ctx, registration, olds, news).await?);
            Ok(())
        }
        ProviderQuery::DiffProvider => {
            let reply = diff_provider(ctx, registration).await;
            registration.replies.provider_diff = Some(or_fatal(ctx, registration, reply)?);
            Ok(())
        }
        ProviderQuery::Diff { news } => {
            let reply = diff(ctx, registration, news).await;
            registration.replies.diff = Some(or_fatal(ctx, registration, reply)?);
            Ok(())
        }
    }
}

fn or_fatal<T>(
    ctx: &Context,
    registration: &Registration,
    reply: Result<T, ProviderError>,
) -> Result<T, ErrorReported> {
    reply.map_err(|error| {
        let mut message = messages::error_message(&error);
        message.plugin = Some(registration.goal.type_token.package().to_owned());
        ctx.report_fatal(&registration.urn, registration.goal.source, message)
    })
}

async fn check(
    ctx: &Arc<Context>,
    registration: &mut Registration,
    olds: Arc<PropertyMap>,
    news: Arc<PropertyMap>,
) -> Result<Checked, ErrorReported> {
    // Paths of `ignoreChanges` have their recorded values.
    let is_goal = Arc::ptr_eq(&news, &registration.goal.inputs);
    let goal = if is_goal { registration.goal_inputs.clone() } else { GoalInputs::new(Arc::clone(&news)) };
    let mut reply = match registration.kind {
        ResourceKind::Provider => check_config(ctx, registration, olds, news).await?,
        ResourceKind::Component | ResourceKind::Custom => {
            let reply = check_inputs(ctx, registration, olds, news).await;
            or_fatal(ctx, registration, reply)?
        }
    };
    mark_inputs(&mut reply.inputs, &goal, registration.old_state());
    // An error of Diff, which is called before a step shows the inputs, may quote them.
    ctx.add_secrets(&reply.inputs);
    Ok(if reply.failures.is_empty() {
        Checked::Accepted(Arc::new(reply.inputs))
    } else {
        Checked::Rejected(reply.failures)
    })
}

/// Reports the failures of a Check with the messages of the provider, as fatal errors.
pub(super) fn report_rejected_inputs(
    ctx: &Arc<Context>,
    registration: &mut Registration,
    failures: &[CheckFailure],
) -> Halted {
    if let Some(unconfigured) = registration.unconfigured.take() {
        ctx.start_closing(unconfigured);
    }
    let report = |failure| {
        let message = messages::rejected_input(&registration.urn, failure);
        ctx.report_fatal(&registration.urn, registration.goal.source, message)
    };
    report_all(failures.iter().map(report)).map_or_else(|| ctx.halted(), Halted::from)
}

/// Reports the paths of `ignoreChanges` that could not be reset.
fn report_failed_ignore_changes(ctx: &Context, registration: &Registration) {
    let Some((_, old)) = registration.old.as_ref().filter(|_| !registration.goal.ignore_changes.is_empty()) else {
        return;
    };
    let (_, failed) = ignore_changes::apply_ignore_changes(&registration.goal, old);
    if failed.is_empty() {
        return;
    }
    let text = MessageText::new(format_args!(
        "changes of {} cannot be ignored: old and new values differ in shape",
        failed.join(", ")
    ));
    ctx.emit_message(&registration.urn, registration.goal.source, Message::new(Severity::Info, text));
}

async fn check_inputs(
    ctx: &Context,
    registration: &Registration,
    olds: Arc<PropertyMap>,
    news: Arc<PropertyMap>,
) -> Result<CheckReply, ProviderError> {
    let unchecked = |news: &PropertyMap| Ok(CheckReply { inputs: news.clone(), failures: Vec::new() });
    let Some(instance) = &registration.instance else { return unchecked(&news) };
    let Some(provider) = instance.ready().await? else { return unchecked(&news) };
    report_unsupported_autonaming(ctx, registration, provider);
    let request = CheckRequest {
        urn: registration.urn.clone(),
        olds,
        news,
        random_seed: registration.seed,
        autonaming: registration.autonaming.as_ref().map(|proposal| proposal.autonaming.clone()),
        preview: ctx.is_preview(),
    };
    provider.check(request).await
}

/// Reports, with the first Check, that a provider chooses its own names, if the user enforces names or configures them
/// for its package.
fn report_unsupported_autonaming(ctx: &Context, registration: &Registration, provider: &Arc<dyn Provider>) {
    let should_warn = registration.autonaming.as_ref().is_some_and(|proposal| proposal.warn_if_unsupported);
    let is_first =
        registration.replies.check_without_olds.is_none() && registration.replies.check_against_olds.is_none();
    if !should_warn || !is_first || provider.capabilities().supports_autonaming {
        return;
    }
    let package = registration.goal.type_token.package();
    let text =
        MessageText::new(format_args!("{package} does not support pulumi:autonaming, and chooses its own names"));
    ctx.emit_message(&registration.urn, registration.goal.source, Message::new(Severity::Warning, text));
}

/// Checks the configuration of a provider resource on a new instance, which stays unconfigured.
async fn check_config(
    ctx: &Arc<Context>,
    registration: &mut Registration,
    olds: Arc<PropertyMap>,
    news: Arc<PropertyMap>,
) -> Result<CheckReply, ErrorReported> {
    if let Some(unconfigured) = registration.unconfigured.take() {
        ctx.start_closing(unconfigured);
    }
    let provider = match ctx.providers.start_provider(&registration.urn, &news).await {
        Ok(provider) => provider,
        Err(error) => return Err(ctx.report_fatal(&registration.urn, registration.goal.source, host_error(error))),
    };
    registration.unconfigured = Some(Arc::clone(&provider));
    let request = CheckConfigRequest {
        urn: registration.urn.clone(),
        olds: Arc::new(visible(&olds)),
        news: Arc::new(visible(&news)),
    };
    let reply = provider.check_config(request).await;
    let mut reply = or_fatal(ctx, registration, reply)?;
    if !reply.failures.is_empty() {
        return Ok(reply);
    }
    if let Some(version) = news.get(VERSION_KEY) {
        let replied = reply.inputs.entry(VERSION_KEY.to_owned()).or_insert_with(|| version.clone());
        if replied != version {
            let text = "the provider changed the version of its own configuration";
            return Err(ctx.report_fatal(
                &registration.urn,
                registration.goal.source,
                Message::new(Severity::Error, text),
            ));
        }
    }
    if let Some(internal) = news.get(INTERNAL_KEY) {
        reply.inputs.insert(INTERNAL_KEY.to_owned(), internal.clone());
    }
    Ok(reply)
}

async fn diff(ctx: &Context, registration: &Registration, news: Arc<PropertyMap>) -> Result<DiffReply, ProviderError> {
    let Some((_, old)) = &registration.old else { return Ok(DiffReply::default()) };
    match (&registration.instance, &registration.unconfigured) {
        (Some(instance), _) => {
            let Some(provider) = instance.ready().await? else {
                report_unknown_configuration(ctx, registration);
                return Ok(DiffReply { changes: DiffChanges::Some, ..DiffReply::default() });
            };
            let request = DiffRequest {
                urn: registration.urn.clone(),
                id: old.id.clone(),
                olds: Arc::clone(&old.outputs),
                old_inputs: Arc::clone(&old.inputs),
                news,
                ignore_changes: registration.goal.ignore_changes.clone(),
                allow_unknowns: ctx.is_preview(),
            };
            provider.diff(request).await
        }
        (None, Some(unconfigured)) => {
            let request = DiffConfigRequest {
                urn: registration.urn.clone(),
                olds: Arc::clone(&old.outputs),
                old_inputs: Arc::new(visible(&old.inputs)),
                news: Arc::new(visible(&news)),
                ignore_changes: registration.goal.ignore_changes.clone(),
            };
            unconfigured.diff_config(request).await
        }
        (None, None) => Ok(DiffReply::default()),
    }
}

fn report_unknown_configuration(ctx: &Context, registration: &Registration) {
    let text = "the configuration of its provider is not known yet: the resource is treated as changed";
    ctx.emit_message(&registration.urn, registration.goal.source, Message::new(Severity::Warning, text));
}

/// Calls DiffConfig for the new provider with the configuration of the old one: the reply decides whether the change of
/// provider replaces the resource.
async fn diff_provider(ctx: &Context, registration: &Registration) -> Result<DiffReply, ProviderError> {
    let old = registration.old.as_ref().and_then(|(_, old)| old.provider.clone());
    let (Some(_), Some(new), Some(old)) = (&registration.instance, &registration.goal.provider, old) else {
        return Ok(DiffReply::default());
    };
    let (old, new_inputs) = {
        let state = ctx.state();
        let new_inputs = state.registered(&new.urn).map(|(_, state)| Arc::clone(&state.inputs));
        (state.loaded_provider(&old).cloned(), new_inputs.unwrap_or_default())
    };
    let (olds, old_inputs) = old.map(|old| (Arc::clone(&old.outputs), visible(&old.inputs))).unwrap_or_default();
    let request = DiffConfigRequest {
        urn: new.urn.clone(),
        olds,
        old_inputs: Arc::new(old_inputs),
        news: Arc::new(visible(&new_inputs)),
        ignore_changes: Vec::new(),
    };
    ctx.providers.diff_config(new, &new_inputs, request).await
}
