//! New URNs of recorded resources, and the references to them.

use std::sync::Arc;

use hashbrown::HashMap;
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{Effect, EntryId, ResourceState};

use super::DeploymentState;
use crate::entry::Entry;

impl DeploymentState {
    /// Marks a recorded URN as taken over by a registration under a new URN.
    pub(crate) fn take_over(&mut self, recorded: Urn, urn: Urn) {
        self.new_names.insert(recorded.clone(), urn.clone());
        self.recorded_names.insert(urn, recorded);
    }

    /// Leaves the entry that a registration has found under its recorded URN.
    pub(crate) fn leave_recorded_name(&mut self, urn: &Urn) {
        if let Some(recorded) = self.recorded_names.get(urn) {
            self.new_names.remove(recorded);
        }
    }

    /// Returns the URN of the registration that has taken over a recorded URN.
    pub(crate) fn taken_over_by(&self, recorded: &Urn) -> Option<&Urn> {
        self.new_names.get(recorded)
    }

    /// Returns whether a registration under a new URN has taken over a recorded URN.
    pub(crate) fn is_taken_over(&self, recorded: &Urn) -> bool {
        self.new_names.contains_key(recorded)
    }

    /// Returns the URN under which the program has registered a recorded resource, or the recorded URN itself.
    pub(crate) fn new_name<'u>(&'u self, recorded: &'u Urn) -> &'u Urn {
        self.new_names.get(recorded).unwrap_or(recorded)
    }

    /// Returns the URN under which a resource of this run was recorded, if it is another one.
    pub(crate) fn recorded_name(&self, urn: &Urn) -> Option<&Urn> {
        self.recorded_names.get(urn)
    }

    /// Returns whether any registration has taken over another URN.
    pub(crate) fn has_new_names(&self) -> bool {
        !self.new_names.is_empty()
    }

    /// Returns the current URN of the resource that this run registered, or else loaded, under a URN: the resource may
    /// have been renamed together with its parent.
    pub(super) fn current_name(&self, urn: &Urn) -> Urn {
        let registered = self.registered(urn).and_then(|(id, _)| self.ledger.get(*id)).map(|state| state.urn.clone());
        registered.or_else(|| Some(self.old(urn)?.1.urn.clone())).unwrap_or_else(|| urn.clone())
    }

    /// Adds a new entry to the effects on the old one. Confirmed dependents of the old entry move behind the new one,
    /// and references to the old URN change to the new one.
    pub(super) fn follow(&self, old: EntryId, new: &Entry, mut effects: Vec<Effect>) -> Vec<Effect> {
        let renamed = self.ledger.get(old).filter(|state| state.urn != new.1.urn);
        if renamed.is_some() {
            effects.extend(self.give_way(&new.1.urn));
        }
        effects.push(Effect::Add(new.0, self.as_named_now(&new.1)));
        effects.extend(self.confirmed_dependents(old).into_iter().map(Effect::Keep));
        if let Some(old) = renamed {
            effects.extend(self.mended(&effects, &old.urn, &new.1.urn));
        }
        effects
    }

    /// Returns a new entry whose references have the URNs that this run has given them since the program received the
    /// old ones.
    pub(crate) fn as_named_now(&self, new: &Arc<ResourceState>) -> Arc<ResourceState> {
        if !self.has_new_names() {
            return Arc::clone(new);
        }
        // A superseded entry keeps the old URN, so only live entries count.
        let gone = new.references().filter(|urn| !self.ledger.named(urn).any(|(_, state)| !state.delete));
        let renamed: HashMap<Urn, Urn> = gone.map(|urn| (urn.clone(), self.current_name(urn))).collect();
        if renamed.is_empty() { Arc::clone(new) } else { Arc::new(with_references(new, &renamed)) }
    }

    /// Returns the effects of giving an entry its loaded URN back. It has got `urn` together with its parent, and
    /// another resource takes `urn` now.
    pub(super) fn give_way(&self, urn: &Urn) -> Vec<Effect> {
        let there = self.ledger.named(urn).find(|(_, state)| !state.delete);
        let Some((id, _)) = there.filter(|(id, _)| self.loaded_live.get(urn) != Some(id)) else { return Vec::new() };
        let Some((_, loaded)) = self.loaded.iter().find(|(other, _)| *other == id) else { return Vec::new() };
        let mut effects = self.rewrite_effects(id, |state| state.urn = loaded.urn.clone());
        effects.extend(self.mended(&effects, urn, &loaded.urn));
        effects
    }

    /// Returns the rewrites of all entries that refer to an old URN, as `effects` leave them, to the new URN.
    fn mended(&self, effects: &[Effect], old: &Urn, new: &Urn) -> Vec<Effect> {
        let mut renamed = HashMap::from([(old.clone(), new.clone())]);
        let live = |urn: &Urn| self.ledger.named(urn).map(|(_, state)| state).find(|state| !state.delete);
        let may_be = |state: &ResourceState, urn: &Urn| {
            if state.delete {
                // A superseded entry has the URN of its successor, which may have another parent now.
                live(&state.urn).is_none_or(|successor| successor.parent == state.parent)
            } else {
                self.inheritance(urn).is_none() && live(urn).is_none()
            }
        };
        let entries = self.entries_after(effects);
        // Entries refer to a replaced provider under the old URN until they are replaced or deleted, too.
        let left = entries.iter().filter(|(_, state)| state.urn == *old);
        let left: Vec<_> = left.filter_map(|(_, state)| state.as_provider_reference()).collect();
        // Views of a superseded entry keep the URN of that entry.
        let has_copy = entries.iter().any(|(_, state)| state.urn == *old && state.delete);
        let of_copy = |state: &ResourceState| has_copy && state.delete && state.view_of.as_ref() == Some(old);
        let entries = entries.into_iter().filter(|(_, state)| !of_copy(state));
        let mended = entries.filter_map(|(id, state)| Some((id, mend(&state, &mut renamed, &left, may_be)?)));
        mended.map(|(id, state)| Effect::Rewrite(id, Arc::new(state))).collect()
    }
}

/// Returns an entry with its references to an old URN changed to the new URN; `None` if it has none. A child of a
/// renamed parent is renamed, too, if `may_be` permits. References to the providers in `left`, which remain under the
/// old URN, stay.
fn mend(
    state: &ResourceState,
    renamed: &mut HashMap<Urn, Urn>,
    left: &[ProviderReference],
    may_be: impl Fn(&ResourceState, &Urn) -> bool,
) -> Option<ResourceState> {
    let served = state.provider.as_ref().filter(|provider| !left.contains(provider));
    let provider = served.map(|provider| &provider.urn);
    if !state.references().chain(provider).chain(&state.view_of).any(|urn| renamed.contains_key(urn)) {
        return None;
    }
    let mut own = state.urn.clone();
    if let Some(parent) = state.parent.as_ref().and_then(|parent| renamed.get(parent)) {
        let urn = Urn::new(own.stack(), own.project(), Some(parent), own.type_token(), own.name());
        if may_be(state, &urn) {
            renamed.insert(own, urn.clone());
            own = urn;
        }
    }
    let mut mended = with_references(state, renamed);
    mended.urn = own;
    if let Some(ProviderReference { urn, id }) = served {
        let urn = renamed.get(urn).unwrap_or(urn).clone();
        mended.provider = Some(ProviderReference { urn, id: id.clone() });
    }
    Some(mended)
}

/// Returns a copy of an entry with renamed references. The URN and the provider of the entry stay.
fn with_references(state: &ResourceState, renamed: &HashMap<Urn, Urn>) -> ResourceState {
    let new = |urn: &Urn| renamed.get(urn).unwrap_or(urn).clone();
    let mut mended = state.clone();
    mended.parent = state.parent.as_ref().map(new);
    mended.dependencies = state.dependencies.iter().map(new).collect();
    for urns in mended.property_dependencies.values_mut() {
        urns.iter_mut().for_each(|urn| *urn = new(urn));
    }
    mended.deleted_with = state.deleted_with.as_ref().map(new);
    mended.view_of = state.view_of.as_ref().map(new);
    mended.replace_with = state.replace_with.iter().map(new).collect();
    mended
}
