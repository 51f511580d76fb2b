//! Finds the recorded entry of a registration (docs/spec/engine-semantics.md#2.3).

use std::sync::Arc;

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;
use state::ResourceState;

use super::early_end::EarlyEnd;
use super::queries;
use super::registration::{GoalOrigin, Registration};
use crate::context::Context;
use crate::decisions::decision::{Checked, ProviderQuery, Replies};
use crate::decisions::{aliases, ignore_changes};
use crate::deployment_state::{DeploymentState, Incomplete, Inheritance};
use crate::events::{Message, Operation, Severity};
use crate::goal::{Goal, ResourceKind};
use crate::registrar::{Halted, Registered, RegistrationResult};
use crate::reporter::Failure;
use crate::secretness::GoalInputs;

/// Finds the recorded entry of a goal, and checks whether the goal can be registered.
///
/// # Errors
/// [`EarlyEnd`] if the provider of the goal does not start, the goal depends on a failed resource, or its URN clashes
/// with another one.
pub(super) async fn identify(
    ctx: &Arc<Context>,
    mut goal: Goal,
    urn: Urn,
    origin: GoalOrigin,
) -> Result<Registration, EarlyEnd> {
    let kind = goal.kind();
    let instance = match (&goal.provider, kind) {
        (Some(reference), ResourceKind::Custom) => {
            Some(ctx.require_instance(reference, &urn, goal.source).await.map_err(Halted::from)?)
        }
        _ => None,
    };
    let seed = ctx.request.guard.seed(&urn);
    let autonaming = match (&ctx.autonaming, kind) {
        (Ok(config), ResourceKind::Custom) => config.propose(&urn, &seed),
        _ => None,
    };
    if autonaming.as_ref().is_some_and(|proposal| proposal.is_fixed) {
        // Two resources with the same physical name cannot exist at the same time.
        goal.delete_before_replace = Some(true);
    }
    let mut registration = Registration {
        old: None,
        kind,
        origin,
        imported: false,
        in_scope: true,
        should_refresh: true,
        seed,
        autonaming,
        replies: Replies::default(),
        instance,
        unconfigured: None,
        goal_inputs: GoalInputs::new(Arc::clone(&goal.inputs)),
        goal,
        urn,
    };
    let clash = find_old(&mut ctx.state(), &mut registration);
    if let Some(clash) = clash {
        return Err(refuse_urn(ctx, registration, clash).await.into());
    }
    registration.goal_inputs.search_recorded(registration.old.as_ref().map(|(_, old)| old));
    let goal = registration.new_state(Arc::default());
    let scope = &ctx.request.options.scope;
    registration.in_scope = scope.can_touch(&goal, ctx.state().scope_marks());
    keep_protection(ctx, &registration).await;
    let mut state = ctx.state();
    if goal.all_dependencies().any(|urn| state.has_failed(urn)) {
        state.mark_incomplete(&registration.urn, Incomplete::Failed);
        drop(state);
        ctx.shared.finish(&registration.urn);
        let skipped = Registered::without_outputs(registration.urn, RegistrationResult::Skipped);
        return Err(EarlyEnd::Reply(Box::new(skipped)));
    }
    // The references of the recorded entry decide whether it is read, not those of the goal. The refresh operation does
    // not use the marked URNs, so its options for dependents include direct dependents only.
    let none = HashSet::new();
    let marked = if ctx.request.operation == Operation::Refresh { &none } else { &*state.scope_marks() };
    registration.should_refresh = registration.old_state().is_some_and(|old| scope.can_read_registered(old, marked));
    let is_to_be_deleted = ctx.request.operation == Operation::Destroy && registration.kind == ResourceKind::Custom;
    if let Some((_, old)) = registration.old.as_ref().filter(|_| is_to_be_deleted || !registration.in_scope) {
        // The entry stays as it is recorded, under its recorded URN.
        state.cancel_new_urn(&registration.urn);
        state.decide(&old.urn);
        state.register_recorded_urn(&registration.urn, &old.urn);
    }
    drop(state);
    Ok(registration)
}

/// Sets `protect` and `retainOnDelete` of a recorded entry where the goal has them, in a destroy: the entry is deleted at the end
/// also if its registration is skipped or fails, and as a dependent of a target by what it is recorded with. The goal lifts them only
/// once it is applied.
async fn keep_protection(ctx: &Context, registration: &Registration) {
    let scope = &ctx.request.options.scope;
    let may_be_dependent = scope.target_dependents && !scope.is_excluded(&registration.urn);
    let may_be_deleted = registration.in_scope || may_be_dependent;
    let Some((id, old)) = registration.old.as_ref().filter(|_| may_be_deleted) else { return };
    let (protect, retain) = (registration.goal.protect == Some(true), registration.goal.retain_on_delete == Some(true));
    if ctx.request.operation != Operation::Destroy || (old.protect || !protect) && (old.retain_on_delete || !retain) {
        return;
    }
    let keep = |entry: &mut ResourceState| {
        entry.protect |= protect;
        entry.retain_on_delete |= retain;
    };
    ctx.records.defer(|state| state.rewrite_effects(*id, keep)).await;
}

/// Reports a URN that cannot be registered. The run ends once the provider has checked the inputs, so that rejected
/// inputs are reported, too.
async fn refuse_urn(ctx: &Arc<Context>, mut registration: Registration, clash: String) -> Halted {
    let message = Message::new(Severity::Error, clash);
    let error = ctx.report_error(&registration.urn, registration.goal.source, message, Failure::AtEnd);
    if registration.kind == ResourceKind::Custom {
        let news = registration.old_state().map(|old| ignore_changes::apply_ignore_changes(&registration.goal, old).0);
        let query = news.map_or(ProviderQuery::CheckWithoutOlds, |news| ProviderQuery::CheckAgainstOlds { news });
        if let Err(error) = queries::call_provider(ctx, &mut registration, query).await {
            return error.into();
        }
        let Replies { check_without_olds, check_against_olds, .. } = std::mem::take(&mut registration.replies);
        if let Some(Checked::Rejected(failures)) = check_without_olds.or(check_against_olds) {
            queries::report_rejected_inputs(ctx, &mut registration, &failures);
        }
    }
    ctx.escalate(error, Failure::Fatal).into()
}

/// Registers the URN, and looks the recorded entry up under the URN and its aliases. Returns the reason if the URN
/// cannot be registered.
fn find_old(state: &mut DeploymentState, registration: &mut Registration) -> Option<String> {
    let (goal, urn) = (&registration.goal, &registration.urn);
    if state.inheritance(urn).is_some() {
        return Some(format!("{urn} is registered twice"));
    }
    let view_of =
        state.ledger().entries_of(urn).filter(|(_, entry)| !entry.delete).find_map(|(_, entry)| entry.view_of.clone());
    if let Some(view_of) = view_of {
        return Some(format!("{urn} is the URN of a view that the provider of {view_of} publishes"));
    }
    let inheritance = Inheritance {
        protect: goal.protect.unwrap_or_default(),
        retain_on_delete: goal.retain_on_delete.unwrap_or_default(),
        deleted_with: goal.deleted_with.clone(),
        provider: goal.provider.clone(),
        providers: goal.providers.clone(),
    };
    if state.register(urn, inheritance).is_err() {
        return Some(format!("{urn} is registered twice"));
    }
    let mut candidates = aliases::candidate_urns(urn, goal, |urn| state.recorded_urn(urn));
    // The program knows a parent that stays under its recorded URN by that one only.
    if let Some(parent) = goal.parent.as_ref().and_then(|parent| state.registered_urn(parent)) {
        let moved = Goal { parent: Some(parent.clone()), ..goal.clone() };
        let urn = Urn::new(urn.stack(), urn.project(), Some(parent), moved.type_token.as_str(), &moved.name);
        candidates.extend(aliases::candidate_urns(&urn, &moved, |urn| state.recorded_urn(urn)));
    }
    let found = candidates.into_iter().find_map(|candidate| Some((state.old_or_removed(&candidate)?, candidate)));
    let mut clash = None;
    if let Some((old, candidate)) = found {
        registration.old = Some(old);
        if candidate != *urn {
            if state.inheritance(&candidate).is_some() {
                clash = Some(format!("its alias {candidate} is a resource of this run"));
            } else if let Some(other) = state.taken_over_by(&candidate) {
                clash = Some(format!("its alias {candidate} is taken by {other}"));
            } else {
                state.take_over(candidate, urn.clone());
            }
        }
    }
    if let Some(other) = state.taken_over_by(urn).filter(|other| *other != urn) {
        clash = Some(format!("{other} has taken over the entry that was recorded under this URN"));
    }
    clash
}
