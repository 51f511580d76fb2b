//! What a deployment knows: what was there, what has been decided, what has been done.
//!
//! One lock guards all of it, held for moments and never across an await.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use pulumi_proto::urn::{ProviderReference, Urn};
use tokio::sync::watch;

use crate::events::StepOp;
use crate::state::{Effect, EntryId, Ledger, ResourceState, Snapshot};

use super::decide::condemn::Entry;

/// The tables of a deployment.
#[derive(Debug)]
pub(super) struct Tables {
    /// The list as it is now; records go through it.
    pub(super) ledger: Ledger,
    /// All entries as loaded (and refreshed), in their order.
    pub(super) base: Vec<Entry>,
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
    /// Decided and done, well or badly.
    pub(super) settled: HashSet<Urn>,
    /// URNs that are or were replaced in this run.
    pub(super) replaced: HashSet<Urn>,
    /// URNs that are or were deleted in this run, for those that go with them without a call.
    pub(super) deleted: HashSet<Urn>,
    /// URNs that went down with a replaced one and wait to be registered again.
    pub(super) condemned: HashMap<Urn, Condemned>,
    /// Carried over by the chain of somebody who refers to it.
    pub(super) carried: HashSet<Urn>,
    /// URNs that targets kept from being created.
    pub(super) skipped: HashSet<Urn>,
    /// URNs that failed, or hang on one that did.
    pub(super) failed: HashSet<Urn>,
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
            carried: HashSet::new(),
            skipped: HashSet::new(),
            failed: HashSet::new(),
            scoped: HashSet::new(),
            counts: BTreeMap::new(),
            stack_outputs: None,
        };
        tables.rebase();
        tables
    }

    /// Takes the list as it stands for what was loaded: at the start, and after a refresh.
    pub(super) fn rebase(&mut self) {
        self.base = self.ledger.entries().map(|(id, state)| (id, Arc::clone(state))).collect();
        let live = self.base.iter().filter(|(_, state)| !state.delete);
        self.olds = live.map(|(id, state)| (state.urn.clone(), *id)).collect();
        self.old_providers = self
            .base
            .iter()
            .filter_map(|(_, state)| Some((state.as_provider_reference()?, Arc::clone(state))))
            .collect();
    }

    /// The live entry that was loaded for a URN, as it is now (gone if this run removed it).
    pub(super) fn old(&self, urn: &Urn) -> Option<Entry> {
        let id = *self.olds.get(urn)?;
        Some((id, Arc::clone(self.ledger.get(id)?)))
    }

    /// The live entry that was loaded for a URN, as it is now, or as it was if it is gone.
    pub(super) fn loaded(&self, urn: &Urn) -> Option<Entry> {
        let id = *self.olds.get(urn)?;
        let state = self.ledger.get(id).or_else(|| self.ledger.base().resources.get(usize::try_from(id.0).ok()?))?;
        Some((id, Arc::clone(state)))
    }

    /// Whether a registration of a URN has begun, or somebody carries its entry over.
    pub(super) fn begun(&self, urn: &Urn) -> bool {
        self.goals.contains_key(urn) || self.decided.contains(urn)
    }

    /// Whether a live entry was loaded for a URN.
    pub(super) fn had(&self, urn: &Urn) -> bool {
        self.olds.contains_key(urn)
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
            } else if provider.chain(super::decide::scope::references(state)).any(|urn| urns.contains(urn)) {
                urns.insert(&state.urn);
                found.push(id);
            }
        }
        found
    }

    /// The entries that refer to a URN that this run has given up for a new one, with the reference mended.
    pub(super) fn mended_references(&self) -> Vec<Effect> {
        if self.aliased.is_empty() {
            return Vec::new();
        }
        self.ledger
            .entries()
            .filter_map(|(id, state)| Some(Effect::Rewrite(id, Arc::new(mend(state, &self.aliased)?))))
            .collect()
    }
}

/// The entry with every reference to an old URN turned into one to the new URN; `None` if there is nothing to mend.
pub(super) fn mend(state: &ResourceState, aliased: &HashMap<Urn, Urn>) -> Option<ResourceState> {
    let provider = state.provider.iter().map(|provider| &provider.urn);
    if aliased.is_empty()
        || !super::decide::scope::references(state).chain(provider).any(|urn| aliased.contains_key(urn))
    {
        return None;
    }
    let new = |urn: &Urn| aliased.get(urn).unwrap_or(urn).clone();
    let mut mended = state.clone();
    if let Some(parent) = state.parent.as_ref().filter(|parent| aliased.contains_key(parent)) {
        let parent = new(parent);
        let urn =
            Urn::new(state.urn.stack(), state.urn.project(), Some(&parent), state.urn.type_token(), state.urn.name());
        mended.urn = urn;
        mended.parent = Some(parent);
    }
    mended.dependencies = state.dependencies.iter().map(new).collect();
    for urns in mended.property_dependencies.values_mut() {
        urns.iter_mut().for_each(|urn| *urn = new(urn));
    }
    mended.deleted_with = state.deleted_with.as_ref().map(new);
    mended.replace_with = state.replace_with.iter().map(new).collect();
    mended.provider = state.provider.clone().map(|provider| ProviderReference::new(new(&provider.urn), provider.id));
    Some(mended)
}
