//! Decision about one registration: a pure function of the situation and the replies so far.
//!
//! Input: a [`Situation`], which the caller takes from the deployment state, and [`Replies`] of providers. Output: the
//! next [`ProviderQuery`], or a [`Plan`]. Each call starts from the beginning, so a change since the last call (such as
//! a deletion of this resource by another replacement) needs no further code.
//!
//! docs/spec/engine-semantics.md#2.3 to #2.11.

use std::sync::Arc;

use bridge::provider::{CheckFailure, DiffReply};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, Urn};

use crate::events::Operation;
use state::ResourceState;

use super::change::Change;
use super::ignore_changes;
use crate::goal::{Goal, ResourceKind};

/// Input of a decision, apart from the replies of providers.
#[derive(Clone, Debug)]
pub(crate) struct Situation<'a> {
    /// Operation of the run.
    pub(crate) operation: Operation,
    pub(crate) kind: ResourceKind,
    pub(crate) preview: bool,
    pub(crate) goal: &'a Goal,
    /// Recorded entry, found by URN or alias; after an import, the imported entry.
    pub(crate) old: Option<&'a ResourceState>,
    /// True if this registration has imported the entry.
    pub(crate) imported: bool,
    /// True if targets and excludes permit changes of the resource.
    pub(crate) in_scope: bool,
    /// True if the goal refers to a resource that the run skips.
    pub(crate) depends_on_skipped: bool,
    /// Replace keys of a dependent replacement; `None` if this run does not delete the resource together with one that
    /// it depends on.
    pub(crate) dependent_replace_keys: Option<&'a [String]>,
    /// True if the option `--replace` names the resource.
    pub(crate) replace_requested: bool,
    /// Replace key, if the resource of `replaceWith` or `deletedWith` was replaced in this run.
    pub(crate) replace_with_key: Option<&'static str>,
    /// Difference between the provider of the goal and the recorded one.
    pub(crate) provider: ProviderChange,
    /// True if the goal protects the resource.
    pub(crate) protect: bool,
    /// Option `deleteBeforeReplace` of the goal, or true if the physical name is fixed.
    pub(crate) delete_before_replace: Option<bool>,
}

/// Difference between the provider of a resource and its recorded provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderChange {
    /// The provider is the same, possibly under a new URN.
    None,
    /// The provider is another one: its DiffConfig decides whether the resource is replaced.
    Other,
    /// A component became a custom resource, or the other way round.
    Kind,
}

impl ProviderChange {
    /// Compares the provider references of a resource. `renamed_from` is the recorded URN of the new provider, if it
    /// has a new URN.
    pub(crate) fn between(
        kind: ResourceKind,
        old: Option<&ProviderReference>,
        new: Option<&ProviderReference>,
        renamed_from: Option<&Urn>,
    ) -> Self {
        match (kind, old, new) {
            (ResourceKind::Custom, None, Some(_)) | (ResourceKind::Component | ResourceKind::Provider, Some(_), _) => {
                Self::Kind
            }
            (ResourceKind::Custom, Some(old), Some(new)) if old != new && renamed_from != Some(&old.urn) => Self::Other,
            (ResourceKind::Custom | ResourceKind::Component | ResourceKind::Provider, _, _) => Self::None,
        }
    }
}

/// Returns the replace key of a resource whose `replaceWith` or `deletedWith` names a resource that was replaced in
/// this run.
pub(crate) fn replace_with_key(goal: &Goal, is_replaced: impl Fn(&Urn) -> bool) -> Option<&'static str> {
    if goal.replace_with.iter().any(&is_replaced) {
        Some("replaceWith")
    } else if goal.deleted_with.as_ref().is_some_and(is_replaced) {
        Some("deletedWith")
    } else {
        None
    }
}

/// Provider call that a decision needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProviderQuery {
    /// Check of the program's inputs without old inputs.
    CheckWithoutOlds,
    /// Check of these inputs against the recorded ones.
    CheckAgainstOlds { news: Arc<PropertyMap> },
    /// DiffConfig that decides whether the change of provider replaces the resource.
    DiffProvider,
    /// Diff of these inputs against the recorded state.
    Diff { news: Arc<PropertyMap> },
}

/// Reply to a Check.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Checked {
    /// Inputs as the provider has completed them.
    Accepted(Arc<PropertyMap>),
    /// Failures of the inputs.
    Rejected(Vec<CheckFailure>),
}

/// Replies of providers so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replies {
    pub(crate) check_without_olds: Option<Checked>,
    pub(crate) check_against_olds: Option<Checked>,
    pub(crate) provider_diff: Option<DiffReply>,
    pub(crate) diff: Option<DiffReply>,
}

/// Next action for a registration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// A provider must be called first.
    Query(ProviderQuery),
    /// The plan is decided.
    Proceed(Plan),
    /// The registration is refused, which ends the run.
    Refuse(Refusal),
    /// Check has rejected the inputs, which ends the run, even a preview.
    InputsRejected(Vec<CheckFailure>),
}

impl Decision {
    /// Returns the name of the decision, without the values in it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Query(ProviderQuery::CheckWithoutOlds) => "query Check without olds",
            Self::Query(ProviderQuery::CheckAgainstOlds { .. }) => "query Check against olds",
            Self::Query(ProviderQuery::DiffProvider) => "query DiffConfig",
            Self::Query(ProviderQuery::Diff { .. }) => "query Diff",
            Self::Proceed(Plan::Same { .. }) => "same",
            Self::Proceed(Plan::KeepRecorded) => "keep recorded",
            Self::Proceed(Plan::CarryOver) => "carry over",
            Self::Proceed(Plan::KeepUntilDeleted) => "keep until deleted",
            Self::Proceed(Plan::Skip) => "skip",
            Self::Proceed(Plan::Create { .. }) => "create",
            Self::Proceed(Plan::Update { .. }) => "update",
            Self::Proceed(Plan::Replace(Replacement { order, .. })) => match order {
                ReplaceOrder::CreateBeforeDelete => "replace, create first",
                ReplaceOrder::DeleteBeforeReplace => "replace, delete first",
                ReplaceOrder::Recreate => "recreate",
                ReplaceOrder::Resume => "resume replacement",
            },
            Self::Refuse(_) => "refuse",
            Self::InputsRejected(_) => "inputs rejected",
        }
    }
}

/// Steps to carry out for a registration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plan {
    /// The resource has not changed. The goal is recorded.
    Same {
        inputs: Arc<PropertyMap>,
    },
    /// No step: the entry is confirmed as it is, with the state that this registration has imported or read. For an
    /// import that matches the program, and for a refresh.
    KeepRecorded,
    /// The recorded entry is out of scope, and is carried over as it is.
    CarryOver,
    /// The operation is about to delete the entry. Only the options that matter to the deletion are updated.
    KeepUntilDeleted,
    /// No step changes the resource, for one of these reasons:
    /// - It is out of scope, and is not recorded.
    /// - The operation is a refresh or a destroy. The resource is not recorded, and is a custom resource or depends on
    ///   a skipped one.
    /// - The operation is a destroy, and the resource depends on a skipped one.
    Skip,
    Create {
        inputs: Arc<PropertyMap>,
    },
    Update {
        inputs: Arc<PropertyMap>,
        change: Change,
    },
    Replace(Replacement),
}

/// Replacement of a resource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Replacement {
    pub(crate) inputs: Arc<PropertyMap>,
    pub(crate) change: Change,
    pub(crate) order: ReplaceOrder,
    /// Reason that a real run would refuse the replacement. Only a preview has one: it goes on to show the difference.
    pub(crate) refusal: Option<Refusal>,
}

/// Order of the steps of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplaceOrder {
    /// The new resource is created first, and the old one is deleted at the end of the run.
    CreateBeforeDelete,
    /// The old resource and its dependent replacements are deleted, then the new resource is created. Entries with a
    /// pending replacement are not deleted again.
    DeleteBeforeReplace,
    /// The old resource is a dependent replacement: this run deletes it, unless an earlier run did. The new one is
    /// created.
    Recreate,
    /// An earlier run deleted the old resource and did not create the new one, which is created now.
    Resume,
}

/// Reason that a registration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The resource must be replaced, and is protected.
    Protected,
    /// The imported resource must be replaced to match the program.
    ImportMismatch,
    /// The replacement trigger is unknown.
    UnknownTrigger,
}

/// Decides the next action for a registration.
pub(crate) fn decide(situation: &Situation<'_>, replies: &Replies) -> Decision {
    match plan(situation, replies) {
        Ok(plan) => Decision::Proceed(plan),
        Err(decision) => decision,
    }
}

/// Decides the plan of a registration.
///
/// # Errors
/// The query whose reply is missing, or the refusal of the registration.
fn plan(situation: &Situation<'_>, replies: &Replies) -> Result<Plan, Decision> {
    if !situation.in_scope && situation.dependent_replace_keys.is_none() {
        return Ok(if situation.old.is_some() { Plan::CarryOver } else { Plan::Skip });
    }
    if let Some(plan) = plan_without_changes(situation) {
        return Ok(plan);
    }
    if let Some(keys) = situation.dependent_replace_keys {
        // A resource out of scope is created again with its recorded inputs, without a Check.
        let inputs = match situation.old {
            Some(old) if !situation.in_scope => Arc::clone(&old.inputs),
            _ => check_without_olds(situation, replies)?,
        };
        return Ok(replacement(inputs, Change::replacement(keys), ReplaceOrder::Recreate));
    }
    let Some(old) = situation.old else {
        return Ok(Plan::Create { inputs: check_without_olds(situation, replies)? });
    };
    if old.external {
        return Ok(replacement(
            check_without_olds(situation, replies)?,
            Change::default(),
            ReplaceOrder::CreateBeforeDelete,
        ));
    }
    let replace_requested = situation.replace_requested || old.taint;
    let inputs = if replace_requested {
        check_without_olds(situation, replies)?
    } else {
        check_against_olds(situation, replies, old)?
    };
    let change = compare(situation, replies, old, &inputs, replace_requested)?;

    let must_replace = old.pending_replacement || (change.changed && change.replaces());
    if must_replace {
        return plan_replacement(situation, replies, old, inputs, change, replace_requested);
    }
    if change.changed || !old.init_errors.is_empty() {
        return Ok(Plan::Update { inputs, change });
    }
    Ok(if situation.imported { Plan::KeepRecorded } else { Plan::Same { inputs } })
}

/// Returns the plan of a resource that the program phase of a refresh or a destroy does not change
/// (docs/spec/engine-semantics.md#5.2 and #5.5). Such a resource is one of these:
/// - a custom resource
/// - a provider or component that depends on a skipped resource
///
/// Returns `None` for other providers and components, and in other operations.
fn plan_without_changes(situation: &Situation<'_>) -> Option<Plan> {
    let is_provider_or_component = situation.kind != ResourceKind::Custom;
    match (situation.operation, situation.old) {
        (Operation::Update | Operation::Import, _) => None,
        _ if is_provider_or_component && !situation.depends_on_skipped => None,
        (_, None) => Some(Plan::Skip),
        (Operation::Refresh, Some(_)) => Some(Plan::KeepRecorded),
        (Operation::Destroy, Some(_)) if situation.depends_on_skipped => Some(Plan::Skip),
        (Operation::Destroy, Some(_)) => Some(Plan::KeepUntilDeleted),
    }
}

fn check_without_olds(situation: &Situation<'_>, replies: &Replies) -> Result<Arc<PropertyMap>, Decision> {
    if situation.kind == ResourceKind::Component {
        return Ok(Arc::clone(&situation.goal.inputs));
    }
    accepted(replies.check_without_olds.clone(), || ProviderQuery::CheckWithoutOlds)
}

fn check_against_olds(
    situation: &Situation<'_>,
    replies: &Replies,
    old: &ResourceState,
) -> Result<Arc<PropertyMap>, Decision> {
    let news = || ignore_changes::apply_ignore_changes(situation.goal, old).0;
    if situation.kind == ResourceKind::Component {
        return Ok(news());
    }
    accepted(replies.check_against_olds.clone(), || ProviderQuery::CheckAgainstOlds { news: news() })
}

fn accepted(reply: Option<Checked>, query: impl FnOnce() -> ProviderQuery) -> Result<Arc<PropertyMap>, Decision> {
    match reply {
        None => Err(Decision::Query(query())),
        Some(Checked::Accepted(inputs)) => Ok(inputs),
        Some(Checked::Rejected(failures)) => Err(Decision::InputsRejected(failures)),
    }
}

/// Checks the reasons for a change in the order of docs/spec/engine-semantics.md#2.9; the first one that applies
/// decides. Calls Diff of the resource only if no other reason applies.
fn compare(
    situation: &Situation<'_>,
    replies: &Replies,
    old: &ResourceState,
    inputs: &Arc<PropertyMap>,
    replace_requested: bool,
) -> Result<Change, Decision> {
    if has_trigger_changed(situation, old)? {
        return Ok(Change::replacement(&["replacementTrigger".to_owned()]));
    }
    if replace_requested {
        return Ok(Change::replacement(&["id".to_owned()]));
    }
    if let Some(key) = situation.replace_with_key {
        return Ok(Change::replacement(&[key.to_owned()]));
    }
    match situation.provider {
        ProviderChange::None => {}
        ProviderChange::Kind => return Ok(Change::replacement(&["provider".to_owned()])),
        ProviderChange::Other => {
            let reply = replies.provider_diff.as_ref().ok_or(Decision::Query(ProviderQuery::DiffProvider))?;
            if Change::from_provider_change(reply).replaces() {
                return Ok(Change::replacement(&["provider".to_owned()]));
            }
        }
    }
    let reply =
        || replies.diff.as_ref().ok_or_else(|| Decision::Query(ProviderQuery::Diff { news: Arc::clone(inputs) }));
    let mut change = match situation.kind {
        ResourceKind::Component => Change::from_inputs(&old.inputs, inputs),
        ResourceKind::Provider => Change::from_diff_config(reply()?, old, inputs),
        ResourceKind::Custom => Change::from_diff(reply()?, old, inputs, &situation.goal.ignore_changes),
    };
    change.apply_replace_on_changes(&situation.goal.replace_on_changes, !old.init_errors.is_empty());
    Ok(change)
}

/// Returns whether the replacement trigger has changed, so that the resource is replaced.
fn has_trigger_changed(situation: &Situation<'_>, old: &ResourceState) -> Result<bool, Decision> {
    let old = &old.replacement_trigger;
    let Some(new) = &situation.goal.replacement_trigger else { return Ok(old.contains_unknowns()) };
    if new.contains_unknowns() && !situation.preview {
        return Err(Decision::Refuse(Refusal::UnknownTrigger));
    }
    if new.contains_unknowns() || old.contains_unknowns() {
        return Ok(true);
    }
    let was_absent = *old == PropertyValue::Null;
    Ok(!was_absent && !new.without_wrappers().same_as(&old.without_wrappers()))
}

/// Decides in which order a resource is replaced, and whether it may be (docs/spec/engine-semantics.md#2.11).
///
/// - A protected resource is refused, since its object would be deleted. If the object is gone already, because a run has ended
///   between the deletion and the creation (`pending_replacement`), nothing is left to protect.
/// - An import is refused: what exists differs from the goal in a way that only a new object could have.
/// - A preview shows the replacement with its refusal, so that the user sees all changes of the run at once.
/// - The inputs of the new object come from a Check without the recorded inputs. A provider may derive values from these, such as a
///   random name, and the new object needs its own, or it could not be created beside the old one.
/// - The old object is deleted after the new one exists, unless the user or the provider asks for the opposite. The user decides
///   over the provider, in both directions.
/// - A destroy that runs the program creates nothing again, so that an order for dependents means nothing there.
fn plan_replacement(
    situation: &Situation<'_>,
    replies: &Replies,
    old: &ResourceState,
    inputs: Arc<PropertyMap>,
    change: Change,
    checked_without_olds: bool,
) -> Result<Plan, Decision> {
    // The resource of a pending replacement is deleted already: the replacement only creates it again.
    let refusal = if situation.protect && !old.pending_replacement {
        Some(Refusal::Protected)
    } else if situation.goal.import_id.is_some() {
        Some(Refusal::ImportMismatch)
    } else {
        None
    };
    if let Some(refusal) = refusal.filter(|_| !situation.preview) {
        return Err(Decision::Refuse(refusal));
    }
    let inputs = if checked_without_olds { inputs } else { check_without_olds(situation, replies)? };
    // Only an update creates dependent replacements again.
    let delete_before_replace = situation.operation == Operation::Update
        && situation.delete_before_replace.unwrap_or(change.delete_before_replace);
    let order = match (old.pending_replacement, delete_before_replace) {
        (_, true) => ReplaceOrder::DeleteBeforeReplace,
        (true, false) => ReplaceOrder::Resume,
        (false, false) => ReplaceOrder::CreateBeforeDelete,
    };
    Ok(Plan::Replace(Replacement { inputs, change, order, refusal }))
}

fn replacement(inputs: Arc<PropertyMap>, change: Change, order: ReplaceOrder) -> Plan {
    Plan::Replace(Replacement { inputs, change, order, refusal: None })
}
