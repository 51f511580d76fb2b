//! What becomes of the list: the effects of a step, and of everything else that follows from it, as one record.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};

use crate::state::{Effect, EntryId, ResourceState};

use super::decide::condemn::Entry;
use super::tables::Tables;
use super::views::show_under;

/// What becomes of keys of property dependencies that named nothing before. Those that name nothing any more go.
#[derive(Clone, Copy)]
pub(super) enum EmptyKeys {
    Dropped,
    Kept,
}

impl Tables {
    /// A new entry that takes nobody's place.
    pub(super) fn addition(&self, new: &Entry) -> Vec<Effect> {
        let mut effects = self.give_way(&new.1.urn);
        effects.push(Effect::Add(new.0, self.as_named_now(&new.1)));
        effects
    }

    /// A new entry in place of an old one.
    pub(super) fn succession(&self, old: EntryId, new: &Entry) -> Vec<Effect> {
        self.follow(old, new, vec![Effect::Remove(old)])
    }

    /// A new entry beside an old one, which awaits its deletion with its views. `under` renames the old one and them.
    pub(super) fn replacement(&self, old: EntryId, new: &Entry, under: Option<&Urn>) -> Vec<Effect> {
        let superseded = |state: &mut ResourceState| {
            state.delete = true;
            if let Some(urn) = under {
                state.urn = urn.clone();
            }
        };
        let views = self.ledger.get(old).into_iter().flat_map(|owner| self.views_of(owner));
        let mut effects = self.rewrite(old, superseded);
        effects.extend(views.flat_map(|(view, _)| {
            self.rewrite(view, |state| {
                state.delete = true;
                under.iter().for_each(|urn| show_under(state, urn));
            })
        }));
        self.follow(old, new, effects)
    }

    /// An entry that is no more, and its views with it, whether its provider says so or not.
    pub(super) fn removal(&self, entry: EntryId) -> Vec<Effect> {
        let mut effects = self.without_views(entry);
        effects.push(Effect::Remove(entry));
        effects
    }

    /// An entry of which nothing is left but the promise of its replacement, so that dependents keep a valid target.
    pub(super) fn promise(&self, entry: EntryId) -> Vec<Effect> {
        let mut effects = self.without_views(entry);
        effects.extend(self.rewrite(entry, |state| state.pending_replacement = true));
        effects
    }

    fn without_views(&self, entry: EntryId) -> Vec<Effect> {
        let Some(owner) = self.ledger.get(entry) else { return Vec::new() };
        // The last of a name leaves nobody behind whose they could be.
        let is_last = self.ledger.named(&owner.urn).all(|(id, _)| id == entry);
        let views = self.ledger.views(&owner.urn).filter(|(_, state)| is_last || state.delete == owner.delete);
        views.map(|(view, _)| Effect::Remove(view)).collect()
    }

    /// An entry that was deleted. If a refresh found its successor gone, it was the last of its name, and the references
    /// that nothing but a superseded copy kept valid go with it.
    pub(super) fn departure(&self, entry: EntryId) -> Vec<Effect> {
        let mut effects = self.removal(entry);
        let last_copy = self.ledger.get(entry).filter(|state| state.delete).filter(|state| {
            self.ledger.named(&state.urn).all(|(id, _)| id == entry)
                && self.ledger.entries().any(|(_, other)| other.references().any(|urn| *urn == state.urn))
        });
        if last_copy.is_some() {
            effects.extend(self.repairs(&effects, |_| EmptyKeys::Kept));
        }
        effects
    }

    /// A new entry in place of one that was deleted before. A provider that something still refers to stays until that
    /// is gone.
    pub(super) fn fulfilment(&self, old: EntryId, new: &Entry) -> Vec<Effect> {
        let reference = self.ledger.get(old).and_then(|state| state.as_provider_reference());
        let mut others = self.ledger.entries().filter(|(id, state)| *id != old && !state.pending_replacement);
        let effects = if reference.is_some() && others.any(|(_, state)| state.provider == reference) {
            self.rewrite(old, |state| (state.delete, state.pending_replacement) = (true, false))
        } else {
            self.removal(old)
        };
        self.follow(old, new, effects)
    }

    /// An entry confirmed as it is, once, and before it whatever it refers to that nothing else has confirmed: a provider that
    /// was replaced meanwhile, for one.
    pub(super) fn keep(&self, entry: EntryId) -> Vec<Effect> {
        if self.ledger.is_finished(entry) || self.ledger.get(entry).is_none() {
            return Vec::new();
        }
        let mut kept = BTreeSet::new();
        let mut open = vec![entry];
        while let Some(id) = open.pop() {
            let Some(state) = self.ledger.get(id).filter(|_| kept.insert(id)) else { continue };
            let named = state
                .references()
                .filter(|urn| self.ledger.named(urn).all(|(id, _)| !self.ledger.is_finished(id)))
                .flat_map(|urn| self.ledger.named(urn));
            let providers = state.provider.iter().flat_map(|reference| {
                let provides = |state: &ResourceState| state.as_provider_reference().as_ref() == Some(reference);
                let entries = self.ledger.named(&reference.urn).filter(move |(_, state)| provides(state));
                let confirmed = entries.clone().any(|(id, _)| self.ledger.is_finished(id));
                entries.filter(move |_| !confirmed)
            });
            // What an entry refers to comes before it.
            open.extend(named.chain(providers).map(|(needed, _)| needed).filter(|needed| *needed < id));
        }
        // What this run has not touched is in the order it was loaded in, by which it is numbered.
        kept.into_iter().map(Effect::Keep).collect()
    }

    /// An entry that is about to be deleted: whether, how and by whom is as asked for, all else as it is recorded.
    pub(super) fn doom(&self, entry: EntryId, asked: &ResourceState) -> Vec<Effect> {
        let Some(now) = self.ledger.get(entry) else { return Vec::new() };
        let newly_tied = || asked.deleted_with.clone().filter(|with| self.can_hang_on(entry, with));
        let doomed = ResourceState {
            provider: asked.provider.clone(),
            protect: asked.protect,
            retain_on_delete: asked.retain_on_delete,
            custom_timeouts: asked.custom_timeouts,
            deleted_with: now.deleted_with.clone().or_else(newly_tied),
            ..(**now).clone()
        };
        if doomed == **now {
            return Vec::new();
        }
        let moves = doomed.provider != now.provider || doomed.deleted_with != now.deleted_with;
        let mut effects = vec![Effect::Rewrite(entry, Arc::new(doomed))];
        if moves {
            // Something that hangs on it may have brought it here before what it refers to now.
            effects.push(Effect::Keep(entry));
            effects.extend(self.carried_dependents(entry).into_iter().map(Effect::Keep));
        }
        effects
    }

    /// An entry changed where it stands.
    pub(super) fn rewrite(&self, entry: EntryId, change: impl FnOnce(&mut ResourceState)) -> Vec<Effect> {
        let Some(state) = self.ledger.get(entry) else { return Vec::new() };
        let mut state = (**state).clone();
        change(&mut state);
        vec![Effect::Rewrite(entry, Arc::new(state))]
    }

    /// Adds a new entry to what becomes of the old one. What was carried over before and hangs on the old one moves behind
    /// the new one, and everything that refers to the old one follows to the name of the new one.
    fn follow(&self, old: EntryId, new: &Entry, mut effects: Vec<Effect>) -> Vec<Effect> {
        let renamed = self.ledger.get(old).filter(|state| state.urn != new.1.urn);
        if renamed.is_some() {
            effects.extend(self.give_way(&new.1.urn));
        }
        effects.push(Effect::Add(new.0, self.as_named_now(&new.1)));
        effects.extend(self.carried_dependents(old).into_iter().map(Effect::Keep));
        if let Some(old) = renamed {
            effects.extend(self.mended(&effects, &old.urn, &new.1.urn));
        }
        effects
    }

    /// A new entry with what it refers to under the names that this run has given it since the program was told of it.
    pub(super) fn as_named_now(&self, new: &Arc<ResourceState>) -> Arc<ResourceState> {
        if self.aliased.is_empty() {
            return Arc::clone(new);
        }
        // A superseded copy keeps the old name.
        let gone = new.references().filter(|urn| !self.ledger.named(urn).any(|(_, state)| !state.delete));
        let renamed: HashMap<Urn, Urn> = gone.map(|urn| (urn.clone(), self.name_now(urn))).collect();
        if renamed.is_empty() { Arc::clone(new) } else { Arc::new(with_references(new, &renamed)) }
    }

    /// What came to a name with its parent goes back to its own where another resource takes that name.
    fn give_way(&self, urn: &Urn) -> Vec<Effect> {
        let there = self.ledger.named(urn).find(|(_, state)| !state.delete);
        let Some((id, _)) = there.filter(|(id, _)| self.olds.get(urn) != Some(id)) else { return Vec::new() };
        let Some((_, loaded)) = self.base.iter().find(|(other, _)| *other == id) else { return Vec::new() };
        let mut effects = self.rewrite(id, |state| state.urn = loaded.urn.clone());
        effects.extend(self.mended(&effects, urn, &loaded.urn));
        effects
    }

    /// The entries that refer to an old name, as some effects leave them, with the new one.
    fn mended(&self, effects: &[Effect], old: &Urn, new: &Urn) -> Vec<Effect> {
        let mut renamed = HashMap::from([(old.clone(), new.clone())]);
        let live = |urn: &Urn| self.ledger.named(urn).map(|(_, state)| state).find(|state| !state.delete);
        let may_be = |state: &ResourceState, urn: &Urn| {
            if state.delete {
                // A copy goes by the name of its successor, which may have left the parent.
                live(&state.urn).is_none_or(|successor| successor.parent == state.parent)
            } else {
                !self.goals.contains_key(urn) && live(urn).is_none()
            }
        };
        let entries = self.entries_after(effects);
        // What a provider serves that was replaced names it until it is replaced, too, or deleted.
        let left = entries.iter().filter(|(_, state)| state.urn == *old);
        let left: Vec<_> = left.filter_map(|(_, state)| state.as_provider_reference()).collect();
        // So does a superseded copy with its own views.
        let has_copy = entries.iter().any(|(_, state)| state.urn == *old && state.delete);
        let of_copy = |state: &ResourceState| has_copy && state.delete && state.view_of.as_ref() == Some(old);
        let entries = entries.into_iter().filter(|(_, state)| !of_copy(state));
        let mended = entries.filter_map(|(id, state)| Some((id, mend(&state, &mut renamed, &left, may_be)?)));
        mended.map(|(id, state)| Effect::Rewrite(id, Arc::new(state))).collect()
    }

    /// The entries as some effects will leave them, in their order, without those that they add.
    pub(super) fn entries_after(&self, effects: &[Effect]) -> Vec<Entry> {
        let changed: HashMap<EntryId, Option<&Arc<ResourceState>>> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Remove(id) => Some((*id, None)),
                Effect::Rewrite(id, state) => Some((*id, Some(state))),
                Effect::Add(..) | Effect::Keep(_) | Effect::DropInheritedPending => None,
            })
            .collect();
        let entries = self.ledger.entries().filter_map(|(id, state)| match changed.get(&id) {
            None => Some((id, Arc::clone(state))),
            Some(state) => Some((id, Arc::clone((*state)?))),
        });
        entries.collect()
    }

    /// Takes references to what is gone out of what these effects leave (section 5.1, item 5).
    pub(super) fn repairs(&self, effects: &[Effect], empty_keys: impl Fn(EntryId) -> EmptyKeys) -> Vec<Effect> {
        let mut earlier: HashSet<Urn> = HashSet::new();
        let mut repairs = Vec::new();
        for (id, state) in self.entries_after(effects) {
            if let Some(repaired) = repaired(&state, &earlier, empty_keys(id)) {
                repairs.push(Effect::Rewrite(id, Arc::new(repaired)));
            }
            earlier.insert(state.urn.clone());
        }
        repairs
    }
}

/// The entry with every reference to an old URN turned into one to the new URN; `None` if there is nothing to mend. A
/// child of a renamed parent has a new name itself, if it `may_be` called so. `left` are providers that are still there
/// under the old name.
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
        mended.provider = Some(ProviderReference::new(urn, Arc::clone(id)));
    }
    Some(mended)
}

/// The entry with what it refers to under other names.
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

fn repaired(state: &ResourceState, earlier: &HashSet<Urn>, empty_keys: EmptyKeys) -> Option<ResourceState> {
    let whole = state.references().all(|urn| earlier.contains(urn));
    if whole && (matches!(empty_keys, EmptyKeys::Kept) || !state.property_dependencies.values().any(Vec::is_empty)) {
        return None;
    }
    let mut new = state.clone();
    new.parent = new.parent.filter(|urn| earlier.contains(urn));
    new.dependencies.retain(|urn| earlier.contains(urn));
    new.property_dependencies = std::mem::take(&mut new.property_dependencies)
        .into_iter()
        .filter_map(|(key, mut urns)| {
            let stays = urns.is_empty() && matches!(empty_keys, EmptyKeys::Kept);
            urns.retain(|urn| earlier.contains(urn));
            (stays || !urns.is_empty()).then_some((key, urns))
        })
        .collect();
    new.deleted_with = new.deleted_with.filter(|urn| earlier.contains(urn));
    new.replace_with.retain(|urn| earlier.contains(urn));
    Some(new)
}
