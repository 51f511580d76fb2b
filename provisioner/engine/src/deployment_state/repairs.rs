//! Repairs of references to missing entries in the recorded list.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::Urn;
use state::{Effect, Entry, EntryId, ResourceState};

use super::DeploymentState;

/// Treatment of keys of property dependencies that have no URNs. Keys that lose all their URNs in a repair are dropped
/// in any case.
#[derive(Clone, Copy)]
pub(crate) enum EmptyKeys {
    Dropped,
    Kept,
}

impl DeploymentState {
    /// Returns the recorded entries as some effects will leave them, in their order, without those that the effects
    /// add.
    pub(crate) fn entries_after(&self, effects: &[Effect]) -> Vec<Entry> {
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

    /// Returns the rewrites that remove references to missing entries from the list as `effects` leave it
    /// (docs/spec/engine-semantics.md#5.1, item 5). An entry is missing if no earlier entry has its URN.
    pub(crate) fn repairs(&self, effects: &[Effect], empty_keys: impl Fn(EntryId) -> EmptyKeys) -> Vec<Effect> {
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

fn repaired(state: &ResourceState, earlier: &HashSet<Urn>, empty_keys: EmptyKeys) -> Option<ResourceState> {
    let whole = state.all_dependencies().all(|urn| earlier.contains(urn));
    if whole && (matches!(empty_keys, EmptyKeys::Kept) || !state.property_dependencies.values().any(Vec::is_empty)) {
        return None;
    }
    let mut new = state.clone();
    new.retain_dependencies(|_, urn| earlier.contains(urn));
    let had_none = |key: &str| state.property_dependencies.get(key).is_some_and(Vec::is_empty);
    let is_kept_empty = |key: &str| matches!(empty_keys, EmptyKeys::Kept) && had_none(key);
    new.property_dependencies.retain(|key, urns| !urns.is_empty() || is_kept_empty(key));
    Some(new)
}
