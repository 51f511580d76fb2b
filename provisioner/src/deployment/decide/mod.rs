//! What a registration comes to: a pure function of the situation and the answers so far.
//!
//! Enters: a [`Situation`], read off the tables, and [`Answers`], what providers have said. Leaves: the next
//! [`Question`], or a [`Settlement`]. The function starts anew each time, so what changed in between (a resource that
//! another one's replacement took down) is seen by itself. Never here: I/O, tasks, tables.
//!
//! Beside it, in files of their own: who may be touched, who goes with a replacement, what is read first, what is taken over, what
//! is deleted, how and in which order. Pure functions all of them.
//!
//! Follows engine semantics, sections 2.3 to 2.16, 3 and 5.

pub(super) mod aliases;
pub(super) mod autonaming;
pub(super) mod change;
pub(super) mod condemn;
pub(super) mod deletes;
pub(super) mod existing;
pub(super) mod inputs;
pub(super) mod refresh;
pub(super) mod scope;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bridge::provider::{CheckFailure, DiffReply};
use hashbrown::HashSet;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, Urn};

use crate::events::Operation;
use crate::state::ResourceState;

use super::goal::Goal;
use change::Change;

/// What a resource is to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No provider is asked.
    Component,
    /// The engine itself is its provider; the configuration is what is checked and compared.
    Provider,
    /// A plugin manages it.
    Custom,
}

/// Everything a decision hangs on, apart from what providers answer.
#[derive(Clone, Debug)]
pub(super) struct Situation<'a> {
    /// What the run is for.
    pub(super) operation: Operation,
    pub(super) kind: Kind,
    pub(super) preview: bool,
    pub(super) goal: &'a Goal,
    /// The recorded entry, found by URN or alias; after an import: what the import found.
    pub(super) old: Option<&'a ResourceState>,
    /// The entry was imported by this very registration.
    pub(super) imported: bool,
    /// Whether targets and excludes let the resource be touched.
    pub(super) in_scope: bool,
    /// It refers to something that was not made and is not to be.
    pub(super) needs_missing: bool,
    /// The resource went down with a replaced one in this run: why.
    pub(super) recreating: Option<&'a [String]>,
    /// The user asked for replacement by URN.
    pub(super) marked: bool,
    /// A resource that this one is tied to was replaced in this run: the key to show.
    pub(super) replaced_partner: Option<&'static str>,
    /// How the provider differs from the recorded one.
    pub(super) provider: ProviderChange,
    /// Whether the resource will be protected.
    pub(super) protect: bool,
    /// The goal's delete-before-replace, or what a fixed name forces.
    pub(super) delete_before_replace: Option<bool>,
}

/// How a resource's provider differs from the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProviderChange {
    /// It is the same, if perhaps under another name.
    None,
    /// It is another one; whether that matters is for its DiffConfig to say.
    Other,
    /// A component became a custom resource, or the other way round.
    Kind,
}

impl ProviderChange {
    /// `renamed_from`: the name under which the new provider was recorded, where it has another one now.
    pub(super) fn between(
        kind: Kind,
        old: Option<&ProviderReference>,
        new: Option<&ProviderReference>,
        renamed_from: Option<&Urn>,
    ) -> Self {
        match (kind, old, new) {
            (Kind::Custom, None, Some(_)) | (Kind::Component | Kind::Provider, Some(_), _) => Self::Kind,
            (Kind::Custom, Some(old), Some(new)) if old != new && renamed_from != Some(&old.urn) => Self::Other,
            (Kind::Custom | Kind::Component | Kind::Provider, _, _) => Self::None,
        }
    }
}

/// The key to show where a resource is replaced because one that it is tied to was; `replaced`: those of this run.
pub(super) fn replaced_partner(goal: &Goal, replaced: &HashSet<Urn>) -> Option<&'static str> {
    if goal.replace_with.iter().any(|urn| replaced.contains(urn)) {
        Some("replaceWith")
    } else if goal.deleted_with.as_ref().is_some_and(|urn| replaced.contains(urn)) {
        Some("deletedWith")
    } else {
        None
    }
}

/// What is to be asked of a provider.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Question {
    /// Check the program's inputs as they are, without any old ones.
    CheckFresh,
    /// Check these inputs against the recorded ones.
    CheckCarried { news: Arc<PropertyMap> },
    /// Does the change of provider replace what it serves?
    DiffProvider,
    /// What would a change to these inputs do?
    Diff { news: Arc<PropertyMap> },
}

/// What a Check made of the inputs, or what it found wrong with them.
pub(super) type Checked = Result<Arc<PropertyMap>, Vec<CheckFailure>>;

/// What providers have said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) fresh: Option<Checked>,
    pub(super) carried: Option<Checked>,
    pub(super) provider_diff: Option<DiffReply>,
    pub(super) diff: Option<DiffReply>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    Ask(Question),
    Settle(Settlement),
    Refuse(Refusal),
    /// The inputs are wrong, in the provider's words: the run ends, even a preview.
    RefuseInputs(Vec<CheckFailure>),
}

/// What a registration comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Settlement {
    /// Nothing to do but to record what the program says.
    Same {
        inputs: Arc<PropertyMap>,
    },
    /// There is nothing left to do: an import found what the program says, or a refresh read what there is, or was not to.
    AsRecorded,
    /// The recorded entry is carried over untouched: it is out of scope.
    Untouched,
    /// It is about to be deleted: only what matters to that is brought up to date.
    Doomed,
    /// It would be made, were it in scope, or this an update.
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
pub(super) struct Replacement {
    pub(super) inputs: Arc<PropertyMap>,
    pub(super) change: Change,
    pub(super) order: ReplaceOrder,
    /// Why it cannot be, in a preview, which goes on to show the difference.
    pub(super) complaint: Option<Refusal>,
}

/// In which order a replacement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplaceOrder {
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
pub(super) enum Refusal {
    /// It would be replaced, and is protected.
    Protected,
    /// It is to be imported, and does not match.
    ImportMismatch,
    /// Its replacement trigger is not known.
    UnknownTrigger,
}

/// Maps a situation and the answers so far to what comes next.
pub(super) fn decide(situation: &Situation<'_>, answers: &Answers) -> Decision {
    match converse(situation, answers) {
        Ok(settlement) => Decision::Settle(settlement),
        Err(decision) => decision,
    }
}

/// The conversation from its start; a question that has no answer yet ends it early.
fn converse(situation: &Situation<'_>, answers: &Answers) -> Result<Settlement, Decision> {
    if !situation.in_scope && situation.recreating.is_none() {
        return Ok(if situation.old.is_some() { Settlement::Untouched } else { Settlement::SkipCreate });
    }
    if let Some(settlement) = settle_without_changes(situation) {
        return Ok(settlement);
    }
    if let Some(keys) = situation.recreating {
        // Nobody asked for it to be touched: what is recorded stands in for a Check.
        let inputs = match situation.old {
            Some(old) if !situation.in_scope => Arc::clone(&old.inputs),
            _ => check_fresh(situation, answers)?,
        };
        return Ok(replacement(inputs, Change::replacing(keys), ReplaceOrder::Recreate));
    }
    let Some(old) = situation.old else {
        return Ok(Settlement::Create { inputs: check_fresh(situation, answers)? });
    };
    if old.external {
        return Ok(replacement(check_fresh(situation, answers)?, Change::default(), ReplaceOrder::CreateFirst));
    }
    let marked = situation.marked || old.taint;
    let inputs = if marked { check_fresh(situation, answers)? } else { check_carried(situation, answers, old)? };
    let change = compare(situation, answers, old, &inputs, marked)?;

    let must_replace = old.pending_replacement || (change.changed && change.replaces());
    if must_replace {
        return settle_replacement(situation, answers, old, inputs, change, marked);
    }
    if change.changed || !old.init_errors.is_empty() {
        return Ok(Settlement::Update { inputs, change });
    }
    Ok(if situation.imported { Settlement::AsRecorded } else { Settlement::Same { inputs } })
}

/// What a program comes to that is run to read or to delete what there is (sections 5.2 and 5.5): resources are not touched,
/// but providers and components are brought up to date.
fn settle_without_changes(situation: &Situation<'_>) -> Option<Settlement> {
    let manages_nothing = situation.kind != Kind::Custom;
    match (situation.operation, situation.old) {
        (Operation::Update | Operation::Import, _) => None,
        _ if manages_nothing && !situation.needs_missing => None,
        (_, None) => Some(Settlement::SkipCreate),
        (Operation::Refresh, Some(_)) => Some(Settlement::AsRecorded),
        (Operation::Destroy, Some(_)) if situation.needs_missing => Some(Settlement::SkipCreate),
        (Operation::Destroy, Some(_)) => Some(Settlement::Doomed),
    }
}

fn check_fresh(situation: &Situation<'_>, answers: &Answers) -> Result<Arc<PropertyMap>, Decision> {
    if situation.kind == Kind::Component {
        return Ok(Arc::clone(&situation.goal.inputs));
    }
    accepted(answers.fresh.clone(), || Question::CheckFresh)
}

fn check_carried(
    situation: &Situation<'_>,
    answers: &Answers,
    old: &ResourceState,
) -> Result<Arc<PropertyMap>, Decision> {
    let news = || inputs::ignoring_changes(situation.goal, old).0;
    if situation.kind == Kind::Component {
        return Ok(news());
    }
    accepted(answers.carried.clone(), || Question::CheckCarried { news: news() })
}

fn accepted(answer: Option<Checked>, question: impl FnOnce() -> Question) -> Result<Arc<PropertyMap>, Decision> {
    answer.ok_or_else(|| Decision::Ask(question()))?.map_err(Decision::RefuseInputs)
}

/// The ladder of section 2.9: the first rung that says something decides, only the last one asks the resource's Diff.
fn compare(
    situation: &Situation<'_>,
    answers: &Answers,
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
            let reply = answers.provider_diff.as_ref().ok_or(Decision::Ask(Question::DiffProvider))?;
            if Change::of_provider_swap(reply).replaces() {
                return Ok(Change::replacing(&["provider".to_owned()]));
            }
        }
    }
    let reply = || answers.diff.as_ref().ok_or_else(|| Decision::Ask(Question::Diff { news: Arc::clone(inputs) }));
    let mut change = match situation.kind {
        Kind::Component => Change::of_inputs(&old.inputs, inputs),
        Kind::Provider => Change::of_provider(reply()?, old, inputs),
        Kind::Custom => Change::of_resource(reply()?, old, inputs, &situation.goal.ignore_changes),
    };
    change.replace_on(&situation.goal.replace_on_changes, !old.init_errors.is_empty());
    Ok(change)
}

/// Whether the replacement trigger asks for replacement.
fn trigger_fires(situation: &Situation<'_>, old: &ResourceState) -> Result<bool, Decision> {
    let (new, old) = (&situation.goal.replacement_trigger, &old.replacement_trigger);
    if new.contains_unknowns() && !situation.preview {
        return Err(Decision::Refuse(Refusal::UnknownTrigger));
    }
    if new.contains_unknowns() || old.contains_unknowns() {
        return Ok(true);
    }
    let absent = *new == PropertyValue::Null || *old == PropertyValue::Null;
    Ok(!absent && !new.without_wrappers().same_as(&old.without_wrappers()))
}

fn settle_replacement(
    situation: &Situation<'_>,
    answers: &Answers,
    old: &ResourceState,
    inputs: Arc<PropertyMap>,
    change: Change,
    checked_fresh: bool,
) -> Result<Settlement, Decision> {
    let complaint = if old.protect && situation.protect {
        Some(Refusal::Protected)
    } else if !situation.goal.import_id.is_empty() {
        Some(Refusal::ImportMismatch)
    } else {
        None
    };
    if let Some(refusal) = complaint.filter(|_| !situation.preview) {
        return Err(Decision::Refuse(refusal));
    }
    let inputs = if checked_fresh { inputs } else { check_fresh(situation, answers)? };
    // Only an update makes anew what goes with a replaced provider.
    let delete_first = situation.operation == Operation::Update
        && situation.delete_before_replace.unwrap_or(change.delete_before_replace);
    let order = match (old.pending_replacement, delete_first) {
        (_, true) => ReplaceOrder::DeleteFirst,
        (true, false) => ReplaceOrder::Resume,
        (false, false) => ReplaceOrder::CreateFirst,
    };
    Ok(Settlement::Replace(Replacement { inputs, change, order, complaint }))
}

fn replacement(inputs: Arc<PropertyMap>, change: Change, order: ReplaceOrder) -> Settlement {
    Settlement::Replace(Replacement { inputs, change, order, complaint: None })
}
