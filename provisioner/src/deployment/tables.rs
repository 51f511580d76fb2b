//! What a deployment knows: what was there, what has been decided, what has been done.
//!
//! One lock guards all of it, held for moments and never across an await.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};
use tokio::sync::watch;

use crate::events::{SourceRef, StepOp};
use crate::state::{Effect, EntryId, Ledger, ResourceState, Snapshot};

use super::decide::condemn::Entry;
use super::decide::deletes::copies_first;
use super::decide::scope::UrnPattern;

/// The tables of a deployment.
#[derive(Debug)]
pub(super) struct Tables {
    /// The list as it is now; records go through it.
    pub(super) ledger: Ledger,
    /// All entries as loaded (and refreshed), in their order.
    pub(super) base: Vec<Entry>,
    /// What was loaded, and a refresh of this run found gone.
    gone: Vec<Urn>,
    /// Whether any entry is a view of another one.
    has_views: bool,
    /// The live entry of each URN as loaded (and refreshed).
    olds: HashMap<Urn, EntryId>,
    /// Provider entries as loaded, by what refers to them.
    pub(super) old_providers: HashMap<ProviderReference, Arc<ResourceState>>,

    /// Registered in this run: what children inherit.
    pub(super) goals: HashMap<Urn, Inheritance>,
    /// What became of the registrations and reads that ended well.
    pub(super) news: HashMap<Urn, (EntryId, Arc<ResourceState>)>,
    /// Old URNs taken over by a registration under a new one, and back.
    pub(super) aliased: HashMap<Urn, Urn>,
    pub(super) alias_of: HashMap<Urn, Urn>,
    /// Whose fate is decided: a registration, a read, an old one carried along.
    pub(super) decided: HashSet<Urn>,
    /// Decided and done, well or badly; with the names of the entries that were taken over.
    pub(super) settled: HashSet<Urn>,
    /// URNs that are or were replaced in this run.
    pub(super) replaced: HashSet<Urn>,
    /// URNs that are or were deleted in this run, for those that go with them without a call.
    pub(super) deleted: HashSet<Urn>,
    /// URNs that went down with a replaced one and wait to be registered again.
    condemned: HashMap<Urn, Condemned>,
    /// Entries that go or went before their replacement; true once they are gone.
    going: HashMap<EntryId, watch::Receiver<bool>>,
    /// Entries that are being deleted before their replacement at this moment.
    pub(super) deleting: HashMap<EntryId, Arc<ResourceState>>,
    /// Carried over by the chain of somebody who refers to it.
    pub(super) carried: HashSet<Urn>,
    /// URNs that targets kept from being created.
    pub(super) skipped: HashSet<Urn>,
    /// URNs that failed, or hang on one that did.
    pub(super) failed: HashSet<Urn>,
    /// Where the program wrote the components that plugins make: what these register comes from there, too.
    pub(super) constructed_at: HashMap<Urn, SourceRef>,
    /// Named by targets or excludes, or hanging on one that is.
    pub(super) scoped: HashSet<Urn>,
    /// Steps that succeeded.
    pub(super) counts: BTreeMap<StepOp, usize>,
    /// Outputs of the root stack, held back until the end.
    pub(super) stack_outputs: Option<(Urn, pulumi_proto::property::PropertyMap)>,
}

/// What the children of a registration inherit where they say nothing.
#[derive(Clone, Debug)]
pub(super) struct Inheritance {
    pub(super) protect: bool,
    pub(super) retain_on_delete: bool,
    pub(super) deleted_with: Option<Urn>,
    pub(super) provider: Option<ProviderReference>,
    /// Of a component: package to provider.
    pub(super) providers: BTreeMap<String, ProviderReference>,
}

/// A resource that went down with a replaced one.
#[derive(Clone, Debug)]
pub(super) struct Condemned {
    /// Why.
    pub(super) keys: Vec<String>,
    /// Turns true once it is gone; closes where the chain that was to delete it broke.
    pub(super) gone: watch::Receiver<bool>,
}

impl Tables {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        let mut tables = Self {
            has_views: snapshot.resources.iter().any(|state| state.view_of.is_some()),
            ledger: Ledger::new(snapshot),
            base: Vec::new(),
            gone: Vec::new(),
            olds: HashMap::new(),
            old_providers: HashMap::new(),
            goals: HashMap::new(),
            news: HashMap::new(),
            aliased: HashMap::new(),
            alias_of: HashMap::new(),
            decided: HashSet::new(),
            settled: HashSet::new(),
            replaced: HashSet::new(),
            deleted: HashSet::new(),
            condemned: HashMap::new(),
            going: HashMap::new(),
            deleting: HashMap::new(),
            carried: HashSet::new(),
            skipped: HashSet::new(),
            failed: HashSet::new(),
            constructed_at: HashMap::new(),
            scoped: HashSet::new(),
            counts: BTreeMap::new(),
            stack_outputs: None,
        };
        tables.rebase();
        tables
    }

    /// Takes the list as it stands for what was loaded: at the start, and after a refresh.
    pub(super) fn rebase(&mut self) {
        let before = std::mem::take(&mut self.base);
        self.base = self.ledger.entries().map(|(id, state)| (id, Arc::clone(state))).collect();
        if before.len() > self.base.len() {
            let left: HashSet<EntryId> = self.base.iter().map(|(id, _)| *id).collect();
            let gone = before.into_iter().filter(|(id, _)| !left.contains(id));
            self.gone.extend(gone.map(|(_, state)| state.urn.clone()));
        }
        let live = self.base.iter().filter(|(_, state)| !state.delete);
        self.olds = live.map(|(id, state)| (state.urn.clone(), *id)).collect();
        self.old_providers = self
            .base
            .iter()
            .filter_map(|(_, state)| Some((state.as_provider_reference()?, Arc::clone(state))))
            .collect();
    }

    /// The same, with what awaits its deletion before what hangs on it.
    pub(super) fn rebase_copies_first(&mut self) {
        self.rebase();
        self.base = copies_first(&self.base, |entry| self.ledger.is_finished(entry));
    }

    /// The live entry that was loaded for a URN, as it is now (gone if this run removed it).
    pub(super) fn old(&self, urn: &Urn) -> Option<Entry> {
        let id = *self.olds.get(urn)?;
        Some((id, Arc::clone(self.ledger.get(id)?)))
    }

    /// What the live entry that was loaded for a URN is called now: its parent may have given it another name.
    pub(super) fn name_now(&self, urn: &Urn) -> Urn {
        self.old(urn).map_or_else(|| urn.clone(), |(_, state)| state.urn.clone())
    }

    /// The live entry that was loaded for a URN, or that has come to it with its parent in this run.
    pub(super) fn standing(&self, urn: &Urn) -> Option<Entry> {
        let renamed = || self.ledger.named(urn).find(|(_, state)| !state.delete);
        self.old(urn).or_else(|| renamed().map(|(id, state)| (id, Arc::clone(state))))
    }

    /// The live entry that was loaded for a URN, as it is now, or as it was if it is gone.
    pub(super) fn loaded(&self, urn: &Urn) -> Option<Entry> {
        let id = *self.olds.get(urn)?;
        let state = self.ledger.get(id).or_else(|| self.ledger.loaded(id))?;
        Some((id, Arc::clone(state)))
    }

    /// Whether a registration of a URN has begun, or somebody carries its entry over.
    pub(super) fn begun(&self, urn: &Urn) -> bool {
        self.goals.contains_key(urn) || self.decided.contains(urn)
    }

    /// Whether anything that was loaded, or registered in this run, is called so.
    pub(super) fn knows(&self, pattern: &UrnPattern) -> bool {
        let there = self.base.iter().map(|(_, state)| &state.urn);
        there.chain(&self.gone).chain(self.goals.keys()).any(|urn| pattern.matches(urn))
    }

    /// The entries that this run has confirmed already although they hang on one that is about to change: in their order.
    pub(super) fn carried_dependents(&self, entry: EntryId) -> Vec<EntryId> {
        if !self.ledger.is_finished(entry) {
            return Vec::new();
        }
        let mut urns: HashSet<&Urn> = HashSet::new();
        let mut found = Vec::new();
        for (id, state) in self.ledger.entries().filter(|(id, _)| self.ledger.is_finished(*id)) {
            let provider = state.provider.iter().map(|provider| &provider.urn);
            if id == entry {
                urns.insert(&state.urn);
            } else if provider.chain(state.references()).any(|urn| urns.contains(urn)) {
                urns.insert(&state.urn);
                found.push(id);
            }
        }
        found
    }

    /// Whether a loaded entry's fate is decided, under whatever name.
    pub(super) fn is_decided(&self, urn: &Urn) -> bool {
        self.decided.contains(self.aliased.get(urn).unwrap_or(urn))
    }

    /// Whether the program has registered or read what was loaded under a URN, under whatever name.
    pub(super) fn is_registered(&self, urn: &Urn) -> bool {
        self.begun(urn) || self.aliased.contains_key(urn)
    }

    /// What took a resource of this run down, under the name it has now or the one it had.
    pub(super) fn condemned(&self, urn: &Urn) -> Option<&Condemned> {
        self.condemned.get(urn).or_else(|| self.condemned.get(self.alias_of.get(urn)?))
    }

    /// Remembers that an entry goes down with another one.
    pub(super) fn condemn(&mut self, entry: &Entry, condemned: Condemned) {
        self.depart(entry.0, condemned.gone.clone());
        if !entry.1.delete {
            self.condemned.insert(entry.1.urn.clone(), condemned);
        }
        self.deleted.insert(entry.1.urn.clone());
    }

    /// Remembers that an entry is deleted before its replacement comes, and when that is done.
    pub(super) fn depart(&mut self, entry: EntryId, gone: watch::Receiver<bool>) {
        self.going.insert(entry, gone);
    }

    /// Whether an entry goes or went before its replacement.
    pub(super) fn is_going(&self, entry: EntryId) -> bool {
        self.going.contains_key(&entry)
    }

    /// Whether an entry was to go before its replacement and is still there.
    pub(super) fn was_to_go(&self, entry: EntryId) -> bool {
        self.going.get(&entry).is_some_and(|gone| !*gone.borrow())
    }

    /// The ends of the entries that go down already and refer to one of these URNs.
    pub(super) fn going_dependents(&self, urns: &HashSet<Urn>) -> Vec<watch::Receiver<bool>> {
        let refers = |state: &ResourceState| {
            let provider = state.provider.iter().map(|provider| &provider.urn);
            provider.chain(state.references()).any(|urn| urns.contains(urn))
        };
        let dependents = self.base.iter().filter(|(_, state)| refers(state));
        dependents.filter_map(|(id, _)| self.going.get(id).cloned()).collect()
    }

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

    /// A new entry beside an old one, which awaits its deletion. `under` renames the old one.
    pub(super) fn replacement(&self, old: EntryId, new: &Entry, under: Option<&Urn>) -> Vec<Effect> {
        let superseded = |state: &mut ResourceState| {
            state.delete = true;
            if let Some(urn) = under {
                state.urn = urn.clone();
            }
        };
        self.follow(old, new, self.rewrite(old, superseded))
    }

    /// An entry that is no more, and its views with it: only its provider could say otherwise, and is not asked for views.
    pub(super) fn removal(&self, entry: EntryId) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(owner) = self.ledger.get(entry).filter(|_| self.has_views) {
            let views = self.ledger.entries().filter(|(_, state)| state.view_of.as_ref() == Some(&owner.urn));
            effects.extend(views.map(|(view, _)| Effect::Remove(view)));
        }
        effects.push(Effect::Remove(entry));
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
            vec![Effect::Remove(old)]
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
        let gone = new.references().filter(|urn| self.ledger.named(urn).next().is_none());
        let renamed: HashMap<Urn, Urn> =
            gone.filter_map(|urn| Some((urn.clone(), self.old(urn)?.1.urn.clone()))).collect();
        if renamed.is_empty() { Arc::clone(new) } else { Arc::new(with_references(new, &renamed)) }
    }

    /// What came to a name with its parent goes back to its own where another resource takes that name.
    fn give_way(&self, urn: &Urn) -> Vec<Effect> {
        let there = self.ledger.named(urn).find(|(_, state)| !state.delete);
        let Some((id, _)) = there.filter(|_| !self.olds.contains_key(urn)) else { return Vec::new() };
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
        let mended =
            entries.into_iter().filter_map(|(id, state)| Some((id, mend(&state, &mut renamed, &left, may_be)?)));
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
