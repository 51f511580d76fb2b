//! What a deployment knows: what was there, what has been decided, what has been done.
//!
//! One lock guards all of it, held for moments and never across an await.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};
use tokio::sync::watch;

use crate::events::{SourceRef, StepOp};
use crate::state::{EntryId, Ledger, ResourceState, Snapshot};

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
    /// The live entry of each URN as loaded (and refreshed), views apart: nobody registers those.
    pub(super) olds: HashMap<Urn, EntryId>,
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
    /// Components that their plugin could not make to their end, or was not to make.
    pub(super) unmade: HashSet<Urn>,
    /// Entries that are recorded to go with another one, and which the program has tied to none, or to a third, since.
    pub(super) untied: HashSet<EntryId>,
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
            unmade: HashSet::new(),
            untied: HashSet::new(),
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
        let live = self.base.iter().filter(|(_, state)| !state.delete && state.view_of.is_none());
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

    /// What is called now what this run registered under a URN, or else loaded: its parent may have given it another name.
    pub(super) fn name_now(&self, urn: &Urn) -> Urn {
        let registered = self.news.get(urn).and_then(|(id, _)| self.ledger.get(*id)).map(|state| state.urn.clone());
        registered.or_else(|| Some(self.old(urn)?.1.urn.clone())).unwrap_or_else(|| urn.clone())
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

    /// An entry as it was loaded: with the names by which it and the others that were loaded refer to each other.
    pub(super) fn as_loaded(&self, entry: &Entry) -> Entry {
        (entry.0, Arc::clone(self.ledger.loaded(entry.0).unwrap_or(&entry.1)))
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

    /// Remembers that what was registered under a URN stays under its old name, which the program then gives as the parent of
    /// what comes within it.
    pub(super) fn keep_name(&mut self, urn: &Urn, old: &Urn) {
        if urn != old
            && let Some(inheritance) = self.goals.get(urn).cloned()
        {
            self.goals.entry(old.clone()).or_insert(inheritance);
        }
    }

    /// Whether an entry can become what is asked for.
    pub(super) fn can_be(&self, entry: EntryId, asked: &ResourceState) -> bool {
        let serves = |provider: &ProviderReference| {
            let mut named = self.ledger.named(&provider.urn).filter(|(id, _)| self.ledger.is_finished(*id));
            named.any(|(_, state)| state.as_provider_reference().as_ref() == Some(provider))
        };
        let hang = self.carried_dependents(entry);
        asked.provider.as_ref().is_none_or(serves)
            && asked.references().all(|urn| self.stands_before(urn, entry, &hang))
    }

    /// Whether an entry can come to refer to a name.
    pub(super) fn can_hang_on(&self, entry: EntryId, urn: &Urn) -> bool {
        self.stands_before(urn, entry, &self.carried_dependents(entry))
    }

    /// Whether what is called so is there, confirmed by this run, and does not hang on an entry itself, as these do.
    fn stands_before(&self, urn: &Urn, entry: EntryId, hang: &[EntryId]) -> bool {
        let mut stands = false;
        for (id, _) in self.ledger.named(urn) {
            if id == entry || hang.contains(&id) {
                return false;
            }
            stands |= self.ledger.is_finished(id);
        }
        stands
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
        self.note_deleted(entry);
    }

    /// Remembers that an entry is deleted in this run, by the name it was loaded under and the one it has now.
    pub(super) fn note_deleted(&mut self, entry: &Entry) {
        let loaded = self.as_loaded(entry).1.urn.clone();
        let now = self.ledger.get(entry.0).map(|state| state.urn.clone());
        self.deleted.extend(now.into_iter().chain([loaded]));
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
}
