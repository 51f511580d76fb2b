//! Phases that read recorded entries, so that the state matches the actual resources
//! (docs/spec/engine-semantics.md#5.1, #5.2 and #5.4).

use std::sync::Arc;

use futures_util::future::join_all;
use hashbrown::HashSet;
use state::{Effect, Entry, EntryId};

use super::phase_end::PhaseEnd;
use super::program_configurations::{Attempt, repeat_failed};
use super::reading::{EntryReading, read_with};
use super::refresh_registered::{should_read_everything, should_read_registrations};
use crate::context::Context;
use crate::decisions::refresh::should_refresh_first;
use crate::deployment_state::{DeploymentState, EmptyKeys};
use crate::events::Operation;
use crate::reporter::{ErrorReported, Failure};
use crate::secretness::ProgramSecrets;

/// Reads the entries that must be read before all decisions: all in scope in a refresh or with a refresh in the
/// options, else those with `refreshBeforeUpdate`. In an import, or if each entry is read when the program registers
/// its resource (`--run-program`), reads none of these. Reads the resources of pending creates, whose id is known, in
/// every run and independent of the scope.
pub(crate) async fn refresh_first(ctx: &Arc<Context>) -> PhaseEnd {
    let only_creates = should_read_registrations(ctx) || ctx.request.operation == Operation::Import;
    let everything = should_read_everything(ctx);
    let creates: HashSet<EntryId> = ctx.state().ledger().unread_creates().map(|(id, _)| id).collect();
    let has_option = |(_, state): &Entry| should_refresh_first(state, false, true);
    let is_needed = everything || ctx.state().loaded_entries().iter().any(has_option);
    if creates.is_empty() && (only_creates || !is_needed) {
        return PhaseEnd::Complete;
    }
    let chosen = |_: &DeploymentState, (id, state): &Entry, in_scope| {
        creates.contains(id) || (!only_creates && should_refresh_first(state, everything, in_scope))
    };
    let Refreshed { end, failed } = refresh_recorded(ctx, chosen).await;
    if let Err(error) = failed {
        // No decision may use the recorded state of a resource that could not be read.
        ctx.escalate(error, Failure::Fatal);
    }
    end
}

/// Reads the entries in scope that the program of a refresh did not register, and the pending deletes. Does nothing in
/// other operations.
pub(crate) async fn refresh_unregistered(ctx: &Arc<Context>) -> PhaseEnd {
    if ctx.request.operation != Operation::Refresh || !ctx.request.has_program() {
        return PhaseEnd::Complete;
    }
    let chosen = |state: &DeploymentState, (_, resource): &Entry, in_scope| {
        in_scope && (resource.delete || !state.is_registered(&resource.urn))
    };
    refresh_recorded(ctx, chosen).await.end
}

/// Asks for an approval to remove the resources that were not found.
///
/// # Errors
/// The reported error if the approval is refused; `None` if the user has stopped the run at the question.
async fn approve_missing(ctx: &Context) -> Result<(), Option<ErrorReported>> {
    let Some(missing) = ctx.request.missing.as_ref().filter(|_| !ctx.is_preview() && !should_read_registrations(ctx))
    else {
        return Ok(());
    };
    let readings = ctx.state().readings();
    let Err(message) = missing.approve(&readings).await else { return Ok(()) };
    ctx.state().refuse_refresh();
    Err((!ctx.signals.stop.is_cancelled()).then(|| ctx.report_general_error(message, Failure::Fatal)))
}

/// Result of reading many entries.
struct Refreshed {
    end: PhaseEnd,
    failed: Result<(), ErrorReported>,
}

/// Reads the entries that `chosen` selects with the recorded providers. The last argument of `chosen` is true for an
/// entry in scope.
async fn refresh_recorded(ctx: &Arc<Context>, chosen: impl Fn(&DeploymentState, &Entry, bool) -> bool) -> Refreshed {
    let entries: Vec<Entry> = {
        let state = ctx.state();
        let mut marked = HashSet::new();
        let mut entries = Vec::new();
        for entry in state.loaded_entries().iter().filter(|(_, loaded)| loaded.view_of.is_none()) {
            let in_scope = ctx.request.options.scope.can_read(&entry.1, &mut marked);
            if chosen(&state, entry, in_scope) {
                entries.extend(state.ledger().get(entry.0).map(|now| (entry.0, Arc::clone(now))));
            }
        }
        entries
    };
    let goals = match &ctx.request.program_goals {
        Some(program) if !entries.is_empty() => program.goals().await,
        _ => Vec::new(),
    };
    let secrets = &ProgramSecrets::of(&goals);
    let attempts = join_all(entries.iter().map(|entry| read_with(ctx, entry, secrets, None))).await;
    let attempts = repeat_failed(ctx, &entries, (&goals, secrets), attempts).await;
    let report = |attempt: Attempt| attempt.map(|attempt| attempt.map_err(|failed| failed.report(ctx)));
    let found: Vec<_> = attempts.into_iter().map(report).collect();
    let end = PhaseEnd::of(ctx, found.iter().any(Option::is_none));
    let failed = found.iter().flatten().find_map(|found| found.as_ref().err()).map_or(Ok(()), |error| Err(*error));
    if let Err(refused) = approve_missing(ctx).await {
        return Refreshed { end: PhaseEnd::of(ctx, true), failed: refused.map_or(Ok(()), Err) };
    }
    let read: HashSet<EntryId> = entries.iter().map(|(id, _)| *id).collect();
    // All effects go into one record: a list with references to removed entries would be invalid.
    ctx.records
        .defer(|state| {
            let (mut effects, mut unread) = (Vec::new(), HashSet::new());
            for ((id, old), found) in entries.iter().zip(found) {
                let Some(Ok(EntryReading { new, views, .. })) = found else {
                    unread.extend(
                        state.ledger().unread_creates().map(|(create, _)| create).filter(|create| create == id),
                    );
                    continue;
                };
                let Some(new) = new else {
                    effects.extend(state.remove_effects(*id));
                    continue;
                };
                // A pending create is recorded even if it is as it was planned.
                if !Arc::ptr_eq(&new, old) || state.ledger().unread_creates().any(|(unread, _)| unread == *id) {
                    effects.push(Effect::Rewrite(*id, new));
                }
                effects.extend(views.close_with_effects(state, &[], false));
            }
            // Entries that the program has registered meanwhile keep the keys that it gave them.
            let stays = |id| state.ledger().is_confirmed(id) && !read.contains(&id);
            let repairs = state.repairs(&effects, |id| if stays(id) { EmptyKeys::Kept } else { EmptyKeys::Dropped });
            // A record of its entry would make a pending create that was not read a recorded resource.
            let is_pending = |effect: &Effect| matches!(effect, Effect::Rewrite(id, _) if unread.contains(id));
            effects.into_iter().chain(repairs).filter(|effect| !is_pending(effect)).collect()
        })
        .await;
    ctx.state().reload();
    Refreshed { end, failed }
}
