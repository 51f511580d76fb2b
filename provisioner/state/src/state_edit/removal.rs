//! Removes entries from a state.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};

use super::edits::Selection;
use super::error::StateEditError;
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;

/// Options of a removal.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveOptions<'a> {
    /// Id of the entry to remove, which tells the entries of one URN apart; `None` selects by URN only.
    pub id: Option<&'a str>,
    /// Treatment of protected entries.
    pub protected: BlockerPolicy,
    /// Treatment of other entries that depend on the removed ones.
    pub dependents: BlockerPolicy,
}

/// Treatment of entries that block a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockerPolicy {
    /// Refuses the removal.
    #[default]
    Refuse,
    /// Removes the blocking entry as well.
    Remove,
}

/// Removes entries from the snapshot and returns them. The resources themselves are not deleted.
///
/// # Errors
/// [`StateEditError::NoSuchId`], [`StateEditError::Ambiguous`], [`StateEditError::HasDependents`],
/// [`StateEditError::Protected`].
pub fn remove_entries(
    snapshot: &mut Snapshot,
    selected: Selection<'_>,
    options: RemoveOptions<'_>,
) -> Result<Vec<Arc<ResourceState>>, StateEditError> {
    let indices = indices_to_remove(snapshot, selected, options)?;
    let (mut removed, mut kept) = (Vec::new(), Vec::new());
    for (index, state) in std::mem::take(&mut snapshot.resources).into_iter().enumerate() {
        if indices.contains(&index) { removed.push(state) } else { kept.push(state) }
    }
    snapshot.resources = kept;
    Ok(removed)
}

fn indices_to_remove(
    snapshot: &Snapshot,
    selected: Selection<'_>,
    options: RemoveOptions<'_>,
) -> Result<HashSet<usize>, StateEditError> {
    let is_selected = |state: &ResourceState| selected(&state.urn) && options.id.is_none_or(|id| state.id_text() == id);
    let mut ids_by_urn: HashMap<&Urn, Vec<String>> = HashMap::new();
    for state in snapshot.resources.iter().filter(|state| is_selected(state)) {
        ids_by_urn.entry(&state.urn).or_default().push(state.id_text().to_owned());
    }
    if let (Some(id), true) = (options.id, ids_by_urn.is_empty()) {
        return Err(StateEditError::NoSuchId(id.to_owned()));
    }
    if let Some((urn, ids)) = ids_by_urn.into_iter().filter(|(_, ids)| ids.len() > 1).min() {
        return Err(StateEditError::Ambiguous { urn: urn.clone(), ids });
    }

    let (mut kept, mut seen) = (ReferenceTargets::default(), ReferenceTargets::default());
    let (mut removed, mut dependents) = (Vec::new(), Vec::new());
    for (index, state) in snapshot.resources.iter().enumerate() {
        let loses_reference = seen.contains_references_of(state) && !kept.contains_references_of(state);
        seen.insert(state);
        if is_selected(state) || (loses_reference && options.dependents == BlockerPolicy::Remove) {
            removed.push(index);
            continue;
        }
        if loses_reference {
            dependents.push(state.urn.clone());
        }
        kept.insert(state);
    }
    if !dependents.is_empty() {
        return Err(StateEditError::HasDependents(dependents));
    }
    let protected = removed
        .iter()
        .map(|index| &snapshot.resources[*index])
        .filter(|state| state.protect && options.protected == BlockerPolicy::Refuse);
    let protected: Vec<Urn> = protected.map(|state| state.urn.clone()).collect();
    if !protected.is_empty() {
        return Err(StateEditError::Protected(protected));
    }
    Ok(removed.into_iter().collect())
}

/// URNs and provider references that entries can refer to.
#[derive(Default)]
struct ReferenceTargets<'s> {
    urns: HashSet<&'s Urn>,
    providers: HashSet<ProviderReference>,
}

impl<'s> ReferenceTargets<'s> {
    fn insert(&mut self, state: &'s ResourceState) {
        self.urns.insert(&state.urn);
        self.providers.extend(state.as_provider_reference());
    }

    /// Returns `true` if the set contains all references of an entry.
    fn contains_references_of(&self, state: &ResourceState) -> bool {
        let provider = state.provider.as_ref().filter(|_| !state.pending_replacement);
        provider.is_none_or(|provider| self.providers.contains(provider))
            && state.all_dependencies().all(|urn| self.urns.contains(urn))
    }
}
