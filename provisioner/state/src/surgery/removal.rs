//! Removes entries from a state.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};

use super::error::SurgeryError;
use super::selection::Selection;
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;

/// How entries are removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Removal<'a> {
    /// Only the entry with this id, where a URN has several.
    pub id: Option<&'a str>,
    /// What becomes of the removal if an entry is protected.
    pub protected: Blocked,
    /// What becomes of the removal if other entries depend on one of those.
    pub dependents: Blocked,
}

/// What becomes of a removal that an entry stands in the way of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blocked {
    /// It is refused.
    #[default]
    Refused,
    /// That entry is removed as well.
    Removed,
}

/// Removes entries, and returns them. What they stand for is not deleted.
///
/// # Errors
/// [`SurgeryError::Ambiguous`], [`SurgeryError::Needed`], [`SurgeryError::Protected`].
pub fn remove(
    snapshot: &mut Snapshot,
    selected: Selection<'_>,
    how: Removal<'_>,
) -> Result<Vec<Arc<ResourceState>>, SurgeryError> {
    let gone = chosen(snapshot, selected, how)?;
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    for (index, state) in std::mem::take(&mut snapshot.resources).into_iter().enumerate() {
        if gone.contains(&index) { removed.push(state) } else { left.push(state) }
    }
    snapshot.resources = left;
    Ok(removed)
}

/// The places of the entries that a removal takes.
fn chosen(snapshot: &Snapshot, selected: Selection<'_>, how: Removal<'_>) -> Result<HashSet<usize>, SurgeryError> {
    let meant = |state: &ResourceState| selected(&state.urn) && how.id.is_none_or(|id| state.id_text() == id);
    let mut copies: HashMap<&Urn, Vec<String>> = HashMap::new();
    for state in snapshot.resources.iter().filter(|state| meant(state)) {
        copies.entry(&state.urn).or_default().push(state.id_text().to_owned());
    }
    if let (Some(id), true) = (how.id, copies.is_empty()) {
        return Err(SurgeryError::NoSuchId(id.to_owned()));
    }
    if let Some((urn, ids)) = copies.into_iter().filter(|(_, ids)| ids.len() > 1).min() {
        return Err(SurgeryError::Ambiguous { urn: urn.clone(), ids });
    }

    let (mut kept, mut seen) = (Names::default(), Names::default());
    let (mut gone, mut needed) = (Vec::new(), Vec::new());
    for (index, state) in snapshot.resources.iter().enumerate() {
        let cut_off = seen.satisfy(state) && !kept.satisfy(state);
        seen.insert(state);
        if meant(state) || (cut_off && how.dependents == Blocked::Removed) {
            gone.push(index);
            continue;
        }
        if cut_off {
            needed.push(state.urn.clone());
        }
        kept.insert(state);
    }
    if !needed.is_empty() {
        return Err(SurgeryError::Needed(needed));
    }
    let protected = gone
        .iter()
        .map(|index| &snapshot.resources[*index])
        .filter(|state| state.protect && how.protected == Blocked::Refused);
    let protected: Vec<Urn> = protected.map(|state| state.urn.clone()).collect();
    if !protected.is_empty() {
        return Err(SurgeryError::Protected(protected));
    }
    Ok(gone.into_iter().collect())
}

/// What entries can refer to.
#[derive(Default)]
struct Names<'s> {
    urns: HashSet<&'s Urn>,
    providers: HashSet<ProviderReference>,
}

impl<'s> Names<'s> {
    fn insert(&mut self, state: &'s ResourceState) {
        self.urns.insert(&state.urn);
        self.providers.extend(state.as_provider_reference());
    }

    /// Whether all that an entry refers to is here.
    fn satisfy(&self, state: &ResourceState) -> bool {
        let provider = state.provider.as_ref().filter(|_| !state.pending_replacement);
        provider.is_none_or(|provider| self.providers.contains(provider))
            && state.references().all(|urn| self.urns.contains(urn))
    }
}
