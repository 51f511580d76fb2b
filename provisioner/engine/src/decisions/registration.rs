//! Decides what becomes of one registration: a pure function of the situation and the replies so far.
//!
//! Enters: a [`Situation`], read off the deployment's state, and [`Replies`], what providers have said. Leaves: the next
//! [`ProviderQuery`], or a [`Plan`]. The function starts anew each time, so a change in between (another resource's
//! replacement deleted this one) is taken into account without further code.
//!
//! Engine semantics, sections 2.3 to 2.11.

use std::sync::Arc;

use bridge::provider::{CheckFailure, DiffReply};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, Urn};

use crate::events::Operation;
use state::ResourceState;

use super::change::Change;
use super::ignore_changes;
use crate::goal::{Goal, ResourceKind};

/// Everything a decision hangs on, apart from what providers answer.
#[derive(Clone, Debug)]
pub(crate) struct Situation<'a> {
    /// What the run is for.
    pub(crate) operation: Operation,
    pub(crate) kind: ResourceKind,
    pub(crate) preview: bool,
    pub(crate) goal: &'a Goal,
    /// The recorded entry, found by URN or alias; after an import: what the import found.
    pub(crate) old: Option<&'a ResourceState>,
    /// The entry was imported by this very registration.
    pub(crate) imported: bool,
    /// Whether targets and excludes let the resource be touched.
    pub(crate) in_scope: bool,
    /// It refers to something that was not made and is not to be.
    pub(crate) needs_missing: bool,
    /// The resource went down with a replaced one in this run: why.
    pub(crate) recreating: Option<&'a [String]>,
    /// The user asked for replacement by URN.
    pub(crate) marked: bool,
    /// A resource that this one is tied to was replaced in this run: the key to show.
    pub(crate) replaced_partner: Option<&'static str>,
    /// How the provider differs from the recorded one.
    pub(crate) provider: ProviderChange,
    /// Whether the resource will be protected.
    pub(crate) protect: bool,
    /// The goal's delete-before-replace, or what a fixed name forces.
    pub(crate) delete_before_replace: Option<bool>,
}

/// How a resource's provider differs from the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderChange {
    /// It is the same, if perhaps under another name.
    None,
    /// It is another one; whether that matters is for its DiffConfig to say.
    Other,
    /// A component became a custom resource, or the other way round.
    Kind,
}

impl ProviderChange {
    /// `renamed_from`: the name under which the new provider was recorded, where it has another one now.
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

/// Returns the key to show where a resource is replaced because one that it is tied to was replaced in this run.
pub(crate) fn replaced_partner(goal: &Goal, is_replaced: impl Fn(&Urn) -> bool) -> Option<&'static str> {
    if goal.replace_with.iter().any(&is_replaced) {
        Some("replaceWith")
    } else if goal.deleted_with.as_ref().is_some_and(is_replaced) {
        Some("deletedWith")
    } else {
        None
    }
}

/// What is to be asked of a provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProviderQuery {
    /// Check the program's inputs as they are, without any old ones.
    CheckFresh,
    /// Check these inputs against the recorded ones.
    CheckCarried { news: Arc<PropertyMap> },
    /// Does the change of provider replace what it serves?
    DiffProvider,
    /// What would a change to these inputs do?
    Diff { news: Arc<PropertyMap> },
}

/// What a Check replied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Checked {
    /// The inputs as the provider has completed them.
    Accepted(Arc<PropertyMap>),
    /// What is wrong with the inputs.
    Refused(Vec<CheckFailure>),
}

/// What providers have said so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replies {
    pub(crate) fresh: Option<Checked>,
    pub(crate) carried: Option<Checked>,
    pub(crate) provider_diff: Option<DiffReply>,
    pub(crate) diff: Option<DiffReply>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// A provider must be asked first.
    Query(ProviderQuery),
    /// Everything is known.
    Proceed(Plan),
    /// The registration cannot be carried out: the run ends.
    Refuse(Refusal),
    /// The inputs are wrong, in the provider's words: the run ends, even a preview.
    RefuseInputs(Vec<CheckFailure>),
}

/// What is to be done for a registration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plan {
    /// Nothing changed: the goal is recorded.
    Same {
        inputs: Arc<PropertyMap>,
    },
    /// The recorded entry is confirmed as it is: an import found what the program says, or the operation is a refresh.
    KeepRecorded,
    /// The recorded entry is carried over as it is: it is out of scope.
    CarryOver,
    /// The operation is about to delete the entry: only the options that matter to the deletion are brought up to date.
    KeepUntilDeleted,
    /// The resource would be created, but is out of scope, or the operation creates nothing.
    SkipCreate,
    Create {
        inputs: Arc<PropertyMap>,
    },
    Update {
        inputs: Arc<PropertyMap>,
        change: Change,
    },
    Replace(Replacement),
}

/// How a resource is replaced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Replacement {
    pub(crate) inputs: Arc<PropertyMap>,
    pub(crate) change: Change,
    pub(crate) order: ReplaceOrder,
    /// Why it cannot be, in a preview, which goes on to show the difference.
    pub(crate) refusal: Option<Refusal>,
}

/// In which order a replacement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplaceOrder {
    /// The new one is made, the old one is deleted at the end of the run.
    CreateFirst,
    /// The old one and what cannot live without it are deleted, then the new one is made.
    DeleteFirst,
    /// The old one went down with another one in this run.
    Recreate,
    /// The old one was deleted by an earlier run that stopped there.
    Resume,
}

/// Why a registration cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It would be replaced, and is protected.
    Protected,
    /// It is to be imported, and does not match.
    ImportMismatch,
    /// Its replacement trigger is not known.
    UnknownTrigger,
}

/// Maps a situation and the replies so far to what comes next.
pub(crate) fn decide(situation: &Situation<'_>, replies: &Replies) -> Decision {
    match plan(situation, replies) {
        Ok(settlement) => Decision::Proceed(settlement),
        Err(decision) => decision,
    }
}

/// The conversation from its start; a question that has no answer yet ends it early.
fn plan(situation: &Situation<'_>, replies: &Replies) -> Result<Plan, Decision> {
    if !situation.in_scope && situation.recreating.is_none() {
        return Ok(if situation.old.is_some() { Plan::CarryOver } else { Plan::SkipCreate });
    }
    if let Some(settlement) = plan_without_changes(situation) {
        return Ok(settlement);
    }
    if let Some(keys) = situation.recreating {
        // Nobody asked for it to be touched: what is recorded stands in for a Check.
        let inputs = match situation.old {
            Some(old) if !situation.in_scope => Arc::clone(&old.inputs),
            _ => check_fresh(situation, replies)?,
        };
        return Ok(replacement(inputs, Change::replacing(keys), ReplaceOrder::Recreate));
    }
    let Some(old) = situation.old else {
        return Ok(Plan::Create { inputs: check_fresh(situation, replies)? });
    };
    if old.external {
        return Ok(replacement(check_fresh(situation, replies)?, Change::default(), ReplaceOrder::CreateFirst));
    }
    let marked = situation.marked || old.taint;
    let inputs = if marked { check_fresh(situation, replies)? } else { check_carried(situation, replies, old)? };
    let change = compare(situation, replies, old, &inputs, marked)?;

    let must_replace = old.pending_replacement || (change.changed && change.replaces());
    if must_replace {
        return plan_replacement(situation, replies, old, inputs, change, marked);
    }
    if change.changed || !old.init_errors.is_empty() {
        return Ok(Plan::Update { inputs, change });
    }
    Ok(if situation.imported { Plan::KeepRecorded } else { Plan::Same { inputs } })
}

/// What a program comes to that is run to read or to delete what there is (sections 5.2 and 5.5): resources are not touched,
/// but providers and components are brought up to date.
fn plan_without_changes(situation: &Situation<'_>) -> Option<Plan> {
    let manages_nothing = situation.kind != ResourceKind::Custom;
    match (situation.operation, situation.old) {
        (Operation::Update | Operation::Import, _) => None,
        _ if manages_nothing && !situation.needs_missing => None,
        (_, None) => Some(Plan::SkipCreate),
        (Operation::Refresh, Some(_)) => Some(Plan::KeepRecorded),
        (Operation::Destroy, Some(_)) if situation.needs_missing => Some(Plan::SkipCreate),
        (Operation::Destroy, Some(_)) => Some(Plan::KeepUntilDeleted),
    }
}

fn check_fresh(situation: &Situation<'_>, replies: &Replies) -> Result<Arc<PropertyMap>, Decision> {
    if situation.kind == ResourceKind::Component {
        return Ok(Arc::clone(&situation.goal.inputs));
    }
    accepted(replies.fresh.clone(), || ProviderQuery::CheckFresh)
}

fn check_carried(
    situation: &Situation<'_>,
    replies: &Replies,
    old: &ResourceState,
) -> Result<Arc<PropertyMap>, Decision> {
    let news = || ignore_changes::ignoring_changes(situation.goal, old).0;
    if situation.kind == ResourceKind::Component {
        return Ok(news());
    }
    accepted(replies.carried.clone(), || ProviderQuery::CheckCarried { news: news() })
}

fn accepted(reply: Option<Checked>, query: impl FnOnce() -> ProviderQuery) -> Result<Arc<PropertyMap>, Decision> {
    match reply {
        None => Err(Decision::Query(query())),
        Some(Checked::Accepted(inputs)) => Ok(inputs),
        Some(Checked::Refused(failures)) => Err(Decision::RefuseInputs(failures)),
    }
}

/// The ladder of section 2.9: the first rung that says something decides, only the last one asks the resource's Diff.
fn compare(
    situation: &Situation<'_>,
    replies: &Replies,
    old: &ResourceState,
    inputs: &Arc<PropertyMap>,
    marked: bool,
) -> Result<Change, Decision> {
    if trigger_fires(situation, old)? {
        return Ok(Change::replacing(&["replacementTrigger".to_owned()]));
    }
    if marked {
        return Ok(Change::replacing(&["id".to_owned()]));
    }
    if let Some(key) = situation.replaced_partner {
        return Ok(Change::replacing(&[key.to_owned()]));
    }
    match situation.provider {
        ProviderChange::None => {}
        ProviderChange::Kind => return Ok(Change::replacing(&["provider".to_owned()])),
        ProviderChange::Other => {
            let reply = replies.provider_diff.as_ref().ok_or(Decision::Query(ProviderQuery::DiffProvider))?;
            if Change::of_provider_swap(reply).replaces() {
                return Ok(Change::replacing(&["provider".to_owned()]));
            }
        }
    }
    let reply =
        || replies.diff.as_ref().ok_or_else(|| Decision::Query(ProviderQuery::Diff { news: Arc::clone(inputs) }));
    let mut change = match situation.kind {
        ResourceKind::Component => Change::of_inputs(&old.inputs, inputs),
        ResourceKind::Provider => Change::of_provider(reply()?, old, inputs),
        ResourceKind::Custom => Change::of_resource(reply()?, old, inputs, &situation.goal.ignore_changes),
    };
    change.replace_on(&situation.goal.replace_on_changes, !old.init_errors.is_empty());
    Ok(change)
}

/// Whether the replacement trigger asks for replacement.
fn trigger_fires(situation: &Situation<'_>, old: &ResourceState) -> Result<bool, Decision> {
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

fn plan_replacement(
    situation: &Situation<'_>,
    replies: &Replies,
    old: &ResourceState,
    inputs: Arc<PropertyMap>,
    change: Change,
    checked_fresh: bool,
) -> Result<Plan, Decision> {
    let refusal = if old.protect && situation.protect {
        Some(Refusal::Protected)
    } else if situation.goal.import_id.is_some() {
        Some(Refusal::ImportMismatch)
    } else {
        None
    };
    if let Some(refusal) = refusal.filter(|_| !situation.preview) {
        return Err(Decision::Refuse(refusal));
    }
    let inputs = if checked_fresh { inputs } else { check_fresh(situation, replies)? };
    // Only an update makes anew what goes with a replaced provider.
    let delete_first = situation.operation == Operation::Update
        && situation.delete_before_replace.unwrap_or(change.delete_before_replace);
    let order = match (old.pending_replacement, delete_first) {
        (_, true) => ReplaceOrder::DeleteFirst,
        (true, false) => ReplaceOrder::Resume,
        (false, false) => ReplaceOrder::CreateFirst,
    };
    Ok(Plan::Replace(Replacement { inputs, change, order, refusal }))
}

fn replacement(inputs: Arc<PropertyMap>, change: Change, order: ReplaceOrder) -> Plan {
    Plan::Replace(Replacement { inputs, change, order, refusal: None })
}
