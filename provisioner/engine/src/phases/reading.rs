//! Reads one recorded entry, and compares the result with the recorded state (docs/spec/engine-semantics.md#5.1).

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use bridge::message_text::MessageText;
use bridge::provider::{DiffKind, DiffRequest, Method, PropertyDiff, ProviderError};
use jiff::Timestamp;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{Entry, EntryId, ResourceState};

use crate::context::Context;
use crate::decisions::change::Change;
use crate::decisions::refresh::{refresh_result, refreshed_state};
use crate::events::{Event, Message, Operation, Severity, SourceRef, StepFailure, StepInfo, StepOp};
use crate::goal::BUILT_IN;
use crate::messages;
use crate::providers::Instance;
use crate::reporter::{ErrorReported, Failure};
use crate::secretness::{GoalInputs, ProgramSecrets, mark_secrets};
use crate::step::StepError;
use crate::step_executor::{ViewLog, call_read};

/// Result of reading one entry.
pub(super) struct EntryReading {
    pub(super) result: StepOp,
    /// Entry as it is now, the same `Arc` if nothing has changed; `None` if the resource does not exist any more.
    pub(super) new: Option<Arc<ResourceState>>,
    pub(super) change: Change,
    /// Views that the provider published.
    pub(super) views: Arc<ViewLog>,
}

/// An entry that is to be read.
pub(super) struct EntryToRead<'a> {
    pub(super) id: EntryId,
    pub(super) old: &'a Arc<ResourceState>,
    /// URN that the provider receives.
    pub(super) urn: &'a Urn,
    /// Instance that reads the entry; `None`: that of the recorded provider.
    pub(super) instance: Option<&'a Arc<Instance>>,
    pub(super) source: Option<SourceRef>,
    /// Outputs that the goal marks as secret, in addition to those of the entry.
    pub(super) secret_outputs: &'a [String],
    /// Inputs of the goal, or only those that are secret; empty if no goal is known.
    pub(super) goal_inputs: &'a GoalInputs,
    pub(super) internal: bool,
    /// True if the result is counted in the summary of the run.
    pub(super) counts: bool,
}

/// Reading that has failed and is not reported yet.
pub(super) struct FailedReading {
    error: StepError,
    info: Arc<StepInfo>,
    /// True if the run goes on without the reading if the user leaves the refresh out.
    can_be_skipped: bool,
}

impl FailedReading {
    /// Reports the failure.
    pub(super) fn report(self, ctx: &Context) -> ErrorReported {
        let Self { error, info, can_be_skipped } = self;
        let mut message = messages::error_message(&error);
        message.hint = messages::reading_hint(&error, can_be_skipped);
        message.plugin = info.old.as_ref().map(|old| old.type_token.package().to_owned());
        let reported = ctx.report_error(&info.urn, info.source, message, Failure::Step);
        if !ctx.is_preview() {
            let failure = StepFailure {
                message: MessageText::chain(&error),
                indeterminate: false,
                partial: false,
                details: messages::error_details(&error),
            };
            ctx.emit(Event::StepFailed(info, failure));
        }
        reported
    }
}

/// Returns the provider that Read of an entry calls; `None` if the entry is not read.
pub(super) fn reads_with_provider(old: &ResourceState) -> Option<&ProviderReference> {
    let is_read = old.custom && !old.is_provider() && !old.pending_replacement && old.type_token.package() != BUILT_IN;
    old.provider.as_ref().filter(|_| is_read)
}

/// Reads one entry, and reports the step.
///
/// # Errors
/// [`ErrorReported`] if the read fails.
pub(super) async fn read_entry(ctx: &Arc<Context>, entry: EntryToRead<'_>) -> Result<EntryReading, ErrorReported> {
    try_reading(ctx, entry).await.map_err(|failed| failed.report(ctx))
}

/// Reads a recorded entry before the program registers its resource, with an instance of its provider; `None`: the recorded one.
/// `secrets` are those of the program. Returns `None` after a stop.
pub(super) async fn read_with(
    ctx: &Arc<Context>,
    (id, old): &Entry,
    secrets: &ProgramSecrets,
    instance: Option<&Arc<Instance>>,
) -> Option<Result<EntryReading, FailedReading>> {
    let _slot = ctx.slot().await;
    if ctx.signals.stop.is_cancelled() {
        return None;
    }
    let internal = old.is_default_provider();
    let counts = ctx.request.operation == Operation::Refresh && !internal;
    let (id, urn, source, none) = (*id, &old.urn, None, GoalInputs::default());
    let secrets = secrets.of_resource(urn);
    let (goal_inputs, secret_outputs) = secrets.map_or((&none, &[][..]), |of| (&of.inputs, &of.outputs));
    let entry = EntryToRead { id, old, urn, instance, source, secret_outputs, goal_inputs, internal, counts };
    Some(try_reading(ctx, entry).await)
}

/// Reads one entry, and reports the step unless it fails.
async fn try_reading(ctx: &Arc<Context>, entry: EntryToRead<'_>) -> Result<EntryReading, FailedReading> {
    let started = Instant::now();
    let mut info = StepInfo {
        source: entry.source,
        internal: entry.internal,
        ..StepInfo::new(StepOp::Refresh, entry.urn.clone(), Some(Arc::clone(entry.old)), None)
    };
    ctx.emit(Event::StepStarted(Arc::new(info.clone())));
    let views = ViewLog::of_refresh(ctx, entry.urn, (entry.id, Arc::clone(entry.old)));
    let found = match read_and_compare(ctx, &entry, &views).await {
        Ok(found) => {
            ctx.state().add_reading((entry.id, entry.old), found.new.is_some());
            if entry.counts {
                ctx.state().count(found.result);
            }
            info.result = Some(found.result);
            info.new.clone_from(&found.new);
            info.diffs.clone_from(&found.change.diffs);
            info.detailed_diff.clone_from(&found.change.detailed);
            ctx.emit(Event::StepSucceeded(Arc::new(info), started.elapsed()));
            Ok(found)
        }
        Err(error) => {
            let is_by_option = ctx.request.refresh && ctx.request.operation != Operation::Refresh;
            let can_be_skipped = is_by_option && !entry.old.refresh_before_update && is_recorded(ctx, entry.id);
            Err(FailedReading { error, info: Arc::new(info), can_be_skipped })
        }
    };
    // An error in reading a view is reported on its own; the reading of the resource stays valid.
    views.report_ends(entry.counts).ok();
    found
}

async fn read_and_compare(
    ctx: &Arc<Context>,
    entry: &EntryToRead<'_>,
    views: &Arc<ViewLog>,
) -> Result<EntryReading, StepError> {
    let old = entry.old;
    let found = |result, new, change| EntryReading { result, new, change, views: Arc::clone(views) };
    let unchanged = || found(StepOp::Same, Some(Arc::clone(old)), Change::default());
    let reference = match &old.provider {
        // Resources that Pulumi's engine itself serves, such as references to other stacks, are not read: they stay as
        // recorded.
        Some(_) if old.type_token.package() == BUILT_IN => return Ok(unchanged()),
        Some(reference) if old.custom && !old.is_provider() => reference,
        _ => return Ok(unchanged()),
    };
    let instance = match entry.instance {
        Some(instance) => Arc::clone(instance),
        None => match ctx.load_instance(reference).await {
            // The resource of a pending replacement is deleted already, and its provider may be deleted, too.
            Err(_) if old.pending_replacement => return Ok(unchanged()),
            loaded => loaded.map_err(StepError::Host)?,
        },
    };
    if old.pending_replacement {
        return Ok(unchanged());
    }
    // Only the id of the resource of a pending create is known, so it is read like an import.
    let is_recorded = is_recorded(ctx, entry.id);
    let (outputs, inputs) = (Arc::clone(&old.outputs), Arc::clone(&old.inputs));
    let (outputs, inputs) = (is_recorded.then_some(outputs), is_recorded.then_some(inputs));
    let timeout = old.custom_timeouts.durations().read;
    let reading = call_read(&instance, entry.urn, old.id.as_ref(), outputs, inputs, timeout, views.views()).await;
    let reading = match reading {
        // What a pending create has made is not recorded, so that there is nothing to keep.
        Err(ProviderError::Unimplemented { method: Method::Read }) if is_recorded => {
            report_missing_read(ctx, old);
            return Ok(unchanged());
        }
        reading => reading?,
    };
    let Some(reading) = reading else { return Ok(unchanged()) };
    let (error, reasons) = reading.failure.map(|(error, failure)| (error, failure.reasons)).unzip();
    let Some(mut new) = refreshed_state(old, reading.reply, reasons.unwrap_or_default()) else {
        return Ok(found(StepOp::Delete, None, Change::default()));
    };
    new.additional_secret_outputs.clear();
    mark_secrets(&mut new, entry.goal_inputs, Some(old));
    let unmarked = new.clone();
    new.additional_secret_outputs = [&old.additional_secret_outputs, entry.secret_outputs].concat();
    mark_secrets(&mut new, entry.goal_inputs, Some(old));
    ctx.mask_init_errors(&mut new);
    if let Some(error) = error {
        // It may quote secrets that were read just now, which are masked from here on.
        ctx.emit_message(entry.urn, entry.source, Message::new(Severity::Warning, MessageText::chain(&error)));
    }
    new.additional_secret_outputs.clone_from(&old.additional_secret_outputs);
    // Diff receives values before options mark any of them as secret.
    let change = detect_drift(ctx, &instance, entry.urn, old, if old.external { &new } else { &unmarked }).await?;
    let same = [share_if_equal(&mut new.inputs, &old.inputs), share_if_equal(&mut new.outputs, &old.outputs)];
    if same.contains(&false) {
        new.modified = Some(Timestamp::now());
    }
    let new = if new == **old { Arc::clone(old) } else { Arc::new(new) };
    Ok(found(refresh_result(&change), Some(new), change))
}

/// Warns that a plugin does not implement Read, once in a phase.
fn report_missing_read(ctx: &Context, old: &ResourceState) {
    let package = old.type_token.package();
    if ctx.without_read.lock().unwrap_or_else(PoisonError::into_inner).insert(package.to_owned()) {
        ctx.emit(Event::Message(messages::missing_read(package)));
    }
}

/// Returns whether an entry is recorded: it is not that of a pending create, whose resource was not read yet.
fn is_recorded(ctx: &Context, id: EntryId) -> bool {
    ctx.state().ledger().unread_creates().all(|(unread, _)| unread != id)
}

/// Returns the changes of a resource since it was recorded: calls Diff with the read state as the old one, and inverts
/// the reply.
async fn detect_drift(
    ctx: &Context,
    instance: &Instance,
    urn: &Urn,
    old: &ResourceState,
    new: &ResourceState,
) -> Result<Change, ProviderError> {
    if old.external {
        return Ok(Change { changed: old.outputs != new.outputs, ..Change::default() });
    }
    let Some(provider) = instance.ready().await? else { return Ok(Change::default()) };
    let request = DiffRequest {
        urn: urn.clone(),
        id: new.id.clone(),
        olds: Arc::clone(&new.outputs),
        old_inputs: Arc::clone(&new.inputs),
        news: Arc::clone(&old.inputs),
        ignore_changes: old.ignore_changes.clone(),
        allow_unknowns: ctx.is_preview(),
    };
    let reply = provider.diff(request).await?;
    let mut change = Change::from_diff(&reply, new, &old.inputs, &old.ignore_changes);
    for diff in change.detailed.values_mut() {
        *diff = PropertyDiff { kind: invert(diff.kind), ..*diff };
    }
    Ok(change)
}

/// Replaces properties that were read by the recorded ones if both are equal, to share their memory. Returns whether
/// they are equal.
fn share_if_equal(read: &mut Arc<PropertyMap>, known: &Arc<PropertyMap>) -> bool {
    let same = *read == *known;
    if same {
        read.clone_from(known);
    }
    same
}

fn invert(kind: DiffKind) -> DiffKind {
    match kind {
        DiffKind::Add => DiffKind::Delete,
        DiffKind::AddReplace => DiffKind::DeleteReplace,
        DiffKind::Delete => DiffKind::Add,
        DiffKind::DeleteReplace => DiffKind::AddReplace,
        DiffKind::Update | DiffKind::UpdateReplace => kind,
    }
}
