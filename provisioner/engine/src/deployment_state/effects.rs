//! Effects of a step on the recorded list, with all their consequences, for one record.

use std::collections::BTreeSet;
use std::sync::Arc;

use pulumi_proto::urn::Urn;
use state::{Effect, Entry, EntryId, ResourceState};

use super::DeploymentState;
use super::renames::rename_view;
use super::repairs::EmptyKeys;

impl DeploymentState {
    /// Returns the effects of adding an entry that has no predecessor.
    pub(crate) fn add_effects(&self, new: &Entry) -> Vec<Effect> {
        let mut effects = self.restore_loaded_urn_effects(&new.1.urn);
        effects.push(Effect::Add(new.0, self.with_current_urns(&new.1)));
        effects
    }

    /// Returns the effects of putting a new entry in the place of an old one.
    pub(crate) fn update_effects(&self, old: EntryId, new: &Entry) -> Vec<Effect> {
        self.successor_effects(old, new, vec![Effect::Remove(old)])
    }

    /// Returns the effects of adding a new entry, and of marking the old one and its views as pending deletes. `under`
    /// is the new URN of the pending delete. The pending delete is retained if the old or the new entry is.
    pub(crate) fn replace_effects(&self, old: EntryId, new: &Entry, under: Option<&Urn>) -> Vec<Effect> {
        let mark_pending_delete = |state: &mut ResourceState| {
            state.delete = true;
            state.retain_on_delete |= new.1.retain_on_delete;
            if let Some(urn) = under {
                state.urn = urn.clone();
            }
        };
        let views = self.ledger.get(old).into_iter().flat_map(|resource| self.views_of(resource));
        let mut effects = self.rewrite_effects(old, mark_pending_delete);
        effects.extend(views.flat_map(|(view, _)| {
            self.rewrite_effects(view, |state| {
                state.delete = true;
                under.iter().for_each(|urn| rename_view(state, urn));
            })
        }));
        self.successor_effects(old, new, effects)
    }

    /// Returns the effects of removing an entry and its views, even if the provider has not published their deletion.
    pub(crate) fn remove_effects(&self, entry: EntryId) -> Vec<Effect> {
        let mut effects = self.without_views(entry);
        effects.push(Effect::Remove(entry));
        effects
    }

    /// Returns the effects of a deletion whose replacement is pending: the entry stays, so that references to it stay
    /// valid. `deleted` is the entry as the step has deleted or retained it.
    pub(crate) fn pending_replacement_effects(&self, entry: EntryId, deleted: &ResourceState) -> Vec<Effect> {
        let mut effects = self.without_views(entry);
        effects.extend(self.rewrite_effects(entry, |state| {
            (state.pending_replacement, state.retain_on_delete) = (true, deleted.retain_on_delete);
        }));
        effects
    }

    fn without_views(&self, entry: EntryId) -> Vec<Effect> {
        let Some(resource) = self.ledger.get(entry) else { return Vec::new() };
        // If no other entry has the URN, all views of the URN belong to this entry.
        let is_last = self.ledger.entries_of(&resource.urn).all(|(id, _)| id == entry);
        let views = self.ledger.views_of(&resource.urn).filter(|(_, state)| is_last || state.delete == resource.delete);
        views.map(|(view, _)| Effect::Remove(view)).collect()
    }

    /// Returns the effects of a deletion. If a pending delete is the last entry with its URN, because a refresh has
    /// removed the live entry, references to the URN are removed, too.
    pub(crate) fn delete_effects(&self, entry: EntryId) -> Vec<Effect> {
        let mut effects = self.remove_effects(entry);
        // All others are deleted after their dependents. Before a replacement, an entry may go while a dependent without a
        // resource stays: its replacement is pending.
        let may_be_named = |state: &&Arc<ResourceState>| state.delete || self.is_deleted_before_replace(entry);
        let last_with_urn = self.ledger.get(entry).filter(may_be_named).filter(|state| {
            self.ledger.entries_of(&state.urn).all(|(id, _)| id == entry)
                && self.ledger.entries().any(|(_, other)| other.all_dependencies().any(|urn| *urn == state.urn))
        });
        if last_with_urn.is_some() {
            effects.extend(self.repairs(&effects, |_| EmptyKeys::Kept));
        }
        effects
    }

    /// Returns the effects of putting a new entry in the place of one that was deleted before its replacement. A
    /// provider resource becomes a pending delete if an entry without a pending replacement still refers to it.
    pub(crate) fn complete_replacement_effects(&self, old: EntryId, new: &Entry) -> Vec<Effect> {
        let reference = self.ledger.get(old).and_then(|state| state.as_provider_reference());
        let mut others = self.ledger.entries().filter(|(id, state)| *id != old && !state.pending_replacement);
        let effects = if reference.is_some() && others.any(|(_, state)| state.provider == reference) {
            self.rewrite_effects(old, |state| (state.delete, state.pending_replacement) = (true, false))
        } else {
            self.remove_effects(old)
        };
        self.successor_effects(old, new, effects)
    }

    /// Returns the effects of confirming an entry as it is, after everything it refers to that this run has not
    /// confirmed, such as a provider resource that was replaced meanwhile. Empty if the entry is confirmed already.
    ///
    /// The list of a state has an order: an entry refers to earlier ones only, and `pulumi` refuses a state where one does not. A run
    /// writes confirmed entries first, in the order of their confirmation, then those that it has not touched. So an entry that is
    /// confirmed while something it needs is untouched would stand before it. Therefore:
    /// - What it names without a confirmed entry is confirmed with it, with all that this needs in turn.
    /// - One confirmed entry of a URN is enough: a URN may have several, such as a replaced one that waits for its deletion.
    /// - Of a provider it is the entry with the recorded id that counts. The URN alone could be that of a replaced provider.
    /// - Only earlier entries are followed, so that a state with a wrong order, which is reported elsewhere, ends the walk.
    pub(crate) fn confirm_effects(&self, entry: EntryId) -> Vec<Effect> {
        if self.ledger.is_confirmed(entry) || self.ledger.get(entry).is_none() {
            return Vec::new();
        }
        let mut to_confirm = BTreeSet::new();
        let mut open = vec![entry];
        while let Some(id) = open.pop() {
            let Some(state) = self.ledger.get(id).filter(|_| to_confirm.insert(id)) else { continue };
            let named = state
                .all_dependencies()
                .filter(|urn| self.ledger.entries_of(urn).all(|(id, _)| !self.ledger.is_confirmed(id)))
                .flat_map(|urn| self.ledger.entries_of(urn));
            let providers = state.provider.iter().flat_map(|reference| {
                let provides = |state: &ResourceState| state.as_provider_reference().as_ref() == Some(reference);
                let entries = self.ledger.entries_of(&reference.urn).filter(move |(_, state)| provides(state));
                let confirmed = entries.clone().any(|(id, _)| self.ledger.is_confirmed(id));
                entries.filter(move |_| !confirmed)
            });
            // An entry refers to earlier entries only.
            open.extend(named.chain(providers).map(|(needed, _)| needed).filter(|needed| *needed < id));
        }
        // Entries that this run has not touched are numbered in the order in which they were loaded.
        to_confirm.into_iter().map(Effect::Keep).collect()
    }

    /// Returns the effects of updating an entry that is about to be deleted: provider, `protect`, `retainOnDelete` and
    /// timeouts are those of the goal, everything else is as recorded. `deletedWith` comes from the goal only if none
    /// is recorded and the entry can refer to it.
    pub(crate) fn prepare_deletion_effects(&self, entry: EntryId, goal: &ResourceState) -> Vec<Effect> {
        let Some(now) = self.ledger.get(entry) else { return Vec::new() };
        // The recorded provider may have got a new URN since.
        let keeps_provider = self.ledger.base_entry(entry).is_some_and(|base| base.provider == goal.provider);
        let new_deleted_with = || goal.deleted_with.clone().filter(|with| self.can_refer_to(entry, with));
        let updated = ResourceState {
            provider: if keeps_provider { now.provider.clone() } else { goal.provider.clone() },
            protect: goal.protect,
            retain_on_delete: goal.retain_on_delete,
            custom_timeouts: goal.custom_timeouts,
            deleted_with: now.deleted_with.clone().or_else(new_deleted_with),
            ..(**now).clone()
        };
        if updated == **now {
            return Vec::new();
        }
        let moves = updated.provider != now.provider || updated.deleted_with != now.deleted_with;
        let mut effects = vec![Effect::Rewrite(entry, Arc::new(updated))];
        if moves {
            // The step of a dependent may have confirmed the entry already. The entries that it refers to now may have
            // been confirmed after it, so the entry and its dependents move behind them.
            effects.push(Effect::Keep(entry));
            effects.extend(self.confirmed_dependents(entry).into_iter().map(Effect::Keep));
        }
        effects
    }

    /// Returns the effects of changing an entry without moving it.
    pub(crate) fn rewrite_effects(&self, entry: EntryId, change: impl FnOnce(&mut ResourceState)) -> Vec<Effect> {
        let Some(state) = self.ledger.get(entry) else { return Vec::new() };
        let mut state = (**state).clone();
        change(&mut state);
        vec![Effect::Rewrite(entry, Arc::new(state))]
    }
}
