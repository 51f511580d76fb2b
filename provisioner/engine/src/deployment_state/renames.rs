//! New URNs of recorded resources, and the references to them.

use std::sync::Arc;

use hashbrown::HashMap;
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{Effect, Entry, EntryId, Relation, ResourceState, Rewrite};

use super::DeploymentState;

impl DeploymentState {
    /// Marks a recorded URN as taken over by a registration under a new URN.
    pub(crate) fn take_over(&mut self, recorded: Urn, urn: Urn) {
        self.new_urns.insert(recorded.clone(), urn.clone());
        self.recorded_urns.insert(urn, recorded);
    }

    /// Cancels the new URN of the entry that a registration has found: the entry keeps its recorded URN.
    pub(crate) fn cancel_new_urn(&mut self, urn: &Urn) {
        if let Some(recorded) = self.recorded_urns.get(urn) {
            self.new_urns.remove(recorded);
        }
    }

    /// Returns the URN of the registration that has taken over a recorded URN.
    pub(crate) fn taken_over_by(&self, recorded: &Urn) -> Option<&Urn> {
        self.new_urns.get(recorded)
    }

    /// Returns whether a registration under a new URN has taken over a recorded URN.
    pub(crate) fn is_taken_over(&self, recorded: &Urn) -> bool {
        self.new_urns.contains_key(recorded)
    }

    /// Returns the URN under which the program has registered a recorded resource, or the recorded URN itself.
    pub(crate) fn new_urn<'u>(&'u self, recorded: &'u Urn) -> &'u Urn {
        self.new_urns.get(recorded).unwrap_or(recorded)
    }

    /// Returns the URN under which a resource of this run was recorded, if it is another one.
    pub(crate) fn recorded_urn(&self, urn: &Urn) -> Option<&Urn> {
        self.recorded_urns.get(urn)
    }

    /// Returns the URN of the registration of a resource that stays under a recorded URN.
    pub(crate) fn registered_urn(&self, kept: &Urn) -> Option<&Urn> {
        self.kept_urns.get(kept)
    }

    /// Returns whether any registration has taken over another URN.
    pub(crate) fn has_new_urns(&self) -> bool {
        !self.new_urns.is_empty()
    }

    /// Returns the current URN of the resource that this run registered, or else loaded, under a URN: the resource may
    /// have been renamed together with its parent.
    pub(super) fn current_urn(&self, urn: &Urn) -> Urn {
        let registered = self.registered(urn).and_then(|(id, _)| self.ledger.get(*id)).map(|state| state.urn.clone());
        registered.or_else(|| Some(self.old(urn)?.1.urn.clone())).unwrap_or_else(|| urn.clone())
    }

    /// Returns the effects of adding a new entry in the place of the old one, after the effects on the old one.
    /// Confirmed dependents of the old entry move after the new one, and references to the old URN change to the new
    /// one.
    pub(super) fn successor_effects(&self, old: EntryId, new: &Entry, mut effects: Vec<Effect>) -> Vec<Effect> {
        let renamed = self.ledger.get(old).filter(|state| state.urn != new.1.urn);
        if renamed.is_some() {
            effects.extend(self.restore_loaded_urn_effects(&new.1.urn));
        }
        effects.push(Effect::Add(new.0, self.with_current_urns(&new.1)));
        effects.extend(self.confirmed_dependents(old).into_iter().map(Effect::Keep));
        if let Some(old) = renamed {
            effects.extend(self.renamed_reference_effects(&effects, &old.urn, &new.1.urn));
        }
        effects
    }

    /// Returns a new entry whose references have the URNs that this run has given them since the program received the
    /// old ones.
    pub(crate) fn with_current_urns(&self, new: &Arc<ResourceState>) -> Arc<ResourceState> {
        if !self.has_new_urns() {
            return Arc::clone(new);
        }
        // A pending delete keeps the old URN, so only live entries count.
        let missing = new.all_dependencies().filter(|urn| !self.ledger.entries_of(urn).any(|(_, state)| !state.delete));
        let renamed: HashMap<Urn, Urn> = missing.map(|urn| (urn.clone(), self.current_urn(urn))).collect();
        if renamed.is_empty() {
            return Arc::clone(new);
        }
        let mut current = (**new).clone();
        current.rewrite_references(|relation, urn| match (relation, renamed.get(urn)) {
            // The registration has resolved its provider already.
            (Relation::Provider, _) | (_, None) => Rewrite::Keep,
            (_, Some(urn)) => Rewrite::Replace(urn.clone()),
        });
        Arc::new(current)
    }

    /// Returns the effects of giving an entry its loaded URN back. The entry got `urn` when its parent was renamed, and
    /// another resource takes `urn` now.
    pub(super) fn restore_loaded_urn_effects(&self, urn: &Urn) -> Vec<Effect> {
        let live = self.ledger.entries_of(urn).find(|(_, state)| !state.delete);
        let Some((id, _)) = live.filter(|(id, _)| self.loaded_live.get(urn) != Some(id)) else { return Vec::new() };
        let Some((_, loaded)) = self.loaded.iter().find(|(other, _)| *other == id) else { return Vec::new() };
        let mut effects = self.rewrite_effects(id, |state| state.urn = loaded.urn.clone());
        effects.extend(self.renamed_reference_effects(&effects, urn, &loaded.urn));
        effects
    }

    /// Returns the rewrites of all entries that refer to an old URN, as `effects` leave them, to the new URN.
    fn renamed_reference_effects(&self, effects: &[Effect], old: &Urn, new: &Urn) -> Vec<Effect> {
        let mut renamed = HashMap::from([(old.clone(), new.clone())]);
        let live = |urn: &Urn| self.ledger.entries_of(urn).map(|(_, state)| state).find(|state| !state.delete);
        let can_rename = |state: &ResourceState, urn: &Urn| {
            if state.delete {
                // A pending delete has the URN of its live entry, which may have another parent now.
                live(&state.urn).is_none_or(|live| live.parent == state.parent)
            } else {
                self.inheritance(urn).is_none() && live(urn).is_none()
            }
        };
        let entries = self.entries_after(effects);
        // Entries refer to a replaced provider under the old URN until they are replaced or deleted, too.
        let remaining = entries.iter().filter(|(_, state)| state.urn == *old);
        let remaining: Vec<_> = remaining.filter_map(|(_, state)| state.as_provider_reference()).collect();
        // Views of a pending delete keep the URN of that entry.
        let has_pending_delete = entries.iter().any(|(_, state)| state.urn == *old && state.delete);
        let is_view_of_pending_delete =
            |state: &ResourceState| has_pending_delete && state.delete && state.view_of.as_ref() == Some(old);
        let entries = entries.into_iter().filter(|(_, state)| !is_view_of_pending_delete(state));
        let changed =
            entries.filter_map(|(id, state)| Some((id, renamed_entry(&state, &mut renamed, &remaining, can_rename)?)));
        changed.map(|(id, state)| Effect::Rewrite(id, Arc::new(state))).collect()
    }
}

/// Returns an entry with its references to an old URN changed to the new URN; `None` if it has none. A child of a
/// renamed parent is renamed, too, if `can_rename` permits. References to the providers in `remaining`, which keep the
/// old URN, stay.
fn renamed_entry(
    state: &ResourceState,
    renamed: &mut HashMap<Urn, Urn>,
    remaining: &[ProviderReference],
    can_rename: impl Fn(&ResourceState, &Urn) -> bool,
) -> Option<ResourceState> {
    let served = state.provider.as_ref().filter(|provider| !remaining.contains(provider));
    let follows = |relation: &Relation<'_>| *relation != Relation::Provider || served.is_some();
    if !state.references().any(|(relation, urn)| follows(&relation) && renamed.contains_key(urn)) {
        return None;
    }
    let mut urn = state.urn.clone();
    if let Some(parent) = state.parent.as_ref().and_then(|parent| renamed.get(parent)) {
        let new = Urn::new(urn.stack(), urn.project(), Some(parent), urn.type_token(), urn.name());
        if can_rename(state, &new) {
            renamed.insert(urn, new.clone());
            urn = new;
        }
    }
    let mut new = state.clone();
    new.urn = urn;
    new.rewrite_references(|relation, urn| match renamed.get(urn) {
        Some(urn) if follows(&relation) => Rewrite::Replace(urn.clone()),
        _ => Rewrite::Keep,
    });
    Some(new)
}

impl DeploymentState {
    /// Returns the views of an entry. The views of a pending delete are pending deletes, too.
    pub(crate) fn views_of(&self, resource: &ResourceState) -> Vec<Entry> {
        let views = self.ledger.views_of(&resource.urn).filter(|(_, state)| state.delete == resource.delete);
        views.map(|(id, state)| (id, Arc::clone(state))).collect()
    }
}

/// Moves a view below the new URN of its resource (docs/spec/engine-semantics.md#4.2).
pub(crate) fn rename_view(view: &mut ResourceState, resource: &Urn) {
    view.urn = Urn::new(resource.stack(), resource.project(), Some(resource), view.urn.type_token(), view.urn.name());
    (view.parent, view.view_of) = (Some(resource.clone()), Some(resource.clone()));
}
