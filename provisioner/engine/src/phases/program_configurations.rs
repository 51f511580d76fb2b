//! Readings with the configuration of the program, for a provider whose recorded one does not work any more (docs/engine.md).

use std::sync::Arc;

use bridge::message_text::MessageText;
use bridge::provider::{CheckConfigRequest, DiffConfigRequest, Provider};
use futures_util::future::join_all;
use hashbrown::HashMap;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{Entry, ResourceState};

use super::reading::{EntryReading, FailedReading, read_with, reads_with_provider};
use super::register::complete_provider_inputs;
use crate::context::Context;
use crate::decisions::aliases::candidate_urns;
use crate::decisions::change::{Change, compare, without_wrappers};
use crate::events::{Message, Severity};
use crate::goal::{Goal, VERSION_KEY, visible};
use crate::providers::Instance;
use crate::secretness::ProgramSecrets;

/// Result of the attempt to read an entry; `None` after a stop.
pub(super) type Attempt = Option<Result<EntryReading, FailedReading>>;

/// Repeats the readings of each provider for which all have failed with its configuration of the program. Returns the attempts
/// with those of the repeated readings in their places.
pub(super) async fn repeat_failed(
    ctx: &Arc<Context>,
    entries: &[Entry],
    (goals, secrets): (&[Goal], &ProgramSecrets),
    mut attempts: Vec<Attempt>,
) -> Vec<Attempt> {
    if goals.is_empty() {
        return attempts;
    }
    for (reference, places) in failed_providers(entries, &attempts) {
        if ctx.signals.stop.is_cancelled() {
            break;
        }
        let (instance, keys) = match configure(ctx, reference, goals).await {
            Configured::Ready { instance, keys } => (instance, keys),
            Configured::Refused { keys } => {
                report_difference(ctx, &reference.urn, &keys);
                continue;
            }
            Configured::Same => continue,
        };
        let text = MessageText::new(format_args!(
            "the recorded configuration of the provider {} does not work any more: its resources are read with that of the \
             program, which differs in {}",
            reference.urn.name(),
            keys.join(", "),
        ));
        ctx.emit_message(&reference.urn, None, Message::new(Severity::Warning, text));
        let read = |place: &usize| {
            let entry = &entries[*place];
            read_with(ctx, entry, secrets, Some(&instance))
        };
        let again = join_all(places.iter().map(read)).await;
        if again.iter().all(|attempt| matches!(attempt, Some(Err(_)))) {
            report_difference(ctx, &reference.urn, &keys);
        }
        for (place, attempt) in places.into_iter().zip(again) {
            attempts[place] = attempt;
        }
    }
    attempts
}

/// Returns the providers for which all readings have failed, with the places of their entries, in the order of the entries.
fn failed_providers<'e>(entries: &'e [Entry], attempts: &[Attempt]) -> Vec<(&'e ProviderReference, Vec<usize>)> {
    let mut providers: Vec<(&ProviderReference, Vec<usize>)> = Vec::new();
    let mut known: HashMap<&ProviderReference, usize> = HashMap::new();
    for (place, (_, old)) in entries.iter().enumerate() {
        let Some(reference) = reads_with_provider(old) else { continue };
        let index = *known.entry(reference).or_insert_with(|| {
            providers.push((reference, Vec::new()));
            providers.len() - 1
        });
        providers[index].1.push(place);
    }
    let has_failed = |place: &usize| matches!(attempts[*place], Some(Err(_)));
    providers.retain(|(_, places)| places.iter().all(has_failed));
    providers
}

/// Configuration of the program for a provider.
enum Configured {
    /// Configuration that works, and differs from the recorded one in these keys.
    Ready { instance: Arc<Instance>, keys: Vec<String> },
    /// Configuration that differs in these keys, and replaces the provider or does not work either.
    Refused { keys: Vec<String> },
    /// Configuration that is the recorded one, or is not known.
    Same,
}

/// Checks the configuration that the program has for a provider, and configures an instance with it, which serves the provider from
/// now on.
async fn configure(ctx: &Arc<Context>, reference: &ProviderReference, goals: &[Goal]) -> Configured {
    let recorded = ctx.state().loaded_provider(reference).cloned();
    let (Some(goal), Some(recorded)) = (goal_of(ctx, &reference.urn, goals), recorded) else {
        return Configured::Same;
    };
    let mut goal = goal.clone();
    complete_provider_inputs(&mut goal);
    if goal.inputs.values().any(PropertyValue::contains_unknowns) {
        return Configured::Same;
    }
    let Ok(provider) = ctx.providers.start_provider(&reference.urn, &goal.inputs).await else {
        return Configured::Same;
    };
    let configured = check_and_configure(ctx, reference, &recorded, &goal.inputs, &provider).await;
    if !matches!(configured, Configured::Ready { .. }) {
        ctx.start_closing(provider);
    }
    configured
}

/// Returns the goal of a recorded resource: that with its URN, or else that with an alias for it.
fn goal_of<'g>(ctx: &Context, recorded: &Urn, goals: &'g [Goal]) -> Option<&'g Goal> {
    let (stack, project) = (&ctx.request.stack, &ctx.request.project);
    let urn_of = |goal: &Goal| Urn::new(stack, project, goal.parent.as_ref(), goal.type_token.as_str(), &goal.name);
    let was_recorded = |goal: &&Goal| candidate_urns(&urn_of(goal), goal, |_| None).contains(recorded);
    goals.iter().find(|goal| urn_of(goal) == *recorded).or_else(|| goals.iter().find(was_recorded))
}

async fn check_and_configure(
    ctx: &Arc<Context>,
    reference: &ProviderReference,
    recorded: &ResourceState,
    inputs: &PropertyMap,
    provider: &Arc<dyn Provider>,
) -> Configured {
    let (urn, old_inputs) = (reference.urn.clone(), Arc::new(visible(&recorded.inputs)));
    let news = Arc::new(visible(inputs));
    let request = CheckConfigRequest { urn: urn.clone(), olds: Arc::clone(&old_inputs), news };
    let checked = match provider.check_config(request).await {
        Ok(reply) if reply.failures.is_empty() => Arc::new(reply.inputs),
        Ok(_) | Err(_) => return Configured::Same,
    };
    ctx.add_secrets(&checked);
    let (mut keys, _) = compare(&without_wrappers(&old_inputs), &without_wrappers(&checked));
    keys.retain(|key| key != VERSION_KEY);
    if keys.is_empty() {
        return Configured::Same;
    }
    let request = DiffConfigRequest {
        urn,
        olds: Arc::clone(&recorded.outputs),
        old_inputs,
        news: Arc::clone(&checked),
        ignore_changes: Vec::new(),
    };
    let replaces = match provider.diff_config(request).await {
        Ok(reply) => Change::from_diff_config(&reply, recorded, &checked).replaces(),
        Err(_) => true,
    };
    if replaces {
        return Configured::Refused { keys };
    }
    let instance = Instance::configure(Arc::clone(provider), reference.clone(), &checked, &ctx.jobs);
    if instance.ready().await.is_err() {
        return Configured::Refused { keys };
    }
    if let Some(before) = ctx.providers.insert(reference.clone(), Arc::clone(&instance)) {
        ctx.retire(before);
    }
    Configured::Ready { instance, keys }
}

/// Reports the keys in which the recorded configuration of a provider differs from that of the program, without their values.
fn report_difference(ctx: &Context, urn: &Urn, keys: &[String]) {
    let text = MessageText::new(format_args!(
        "the recorded configuration of the provider {} differs from that of the program in {}",
        urn.name(),
        keys.join(", "),
    ));
    let hint = "if the recorded one is out of date, run `sc refresh --run-program`, which reads with the configuration of the \
                program, or `sc provision -R -S`, which reads nothing first";
    let message = Message { hint: Some(hint.into()), ..Message::new(Severity::Warning, text) };
    ctx.emit_message(urn, None, message);
}
