//! Moves entries from the state of one stack to that of another one.
//!
//! Children and views of a moved entry move with it. Its provider moves with it if no other entry uses the provider, and is
//! copied otherwise; an equal provider of the target is used in its place. The URNs get the stack and the project of the target.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, ROOT_STACK_TYPE, Urn};

use super::move_error::{MoveError, StayingReference};
use crate::references::{Relation, Rewrite};
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;
use crate::store::StackReference;

/// Changes of two states by a move of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceMove {
    /// Root stack resource that the target gets, because it has none.
    pub created_root: Option<Urn>,
    /// Provider resources that the target gets, by their URNs in the source.
    pub providers: Vec<(Urn, ProviderMove)>,
    /// Moved resources, by their URNs in the source. Each comes after those that it refers to.
    pub moved: Vec<Urn>,
    /// References of remaining entries to moved ones, which are removed; one for each pair of entries.
    pub pruned: Vec<(Urn, Relation<'static>, Urn)>,
}

/// Treatment of the provider resource of a moved resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderMove {
    /// Moved, because no remaining entry uses it.
    Moved,
    /// Copied, because remaining entries use it, too.
    Copied,
}

/// Moves entries to the target, with the URNs of the stack `to`. Both snapshots are unchanged after an error.
///
/// # Errors
/// [`MoveError`].
pub fn move_resources(
    source: &mut Snapshot,
    target: &mut Snapshot,
    to: &StackReference,
    selected: &[Urn],
) -> Result<ResourceMove, MoveError> {
    let moved = with_children(source, selected)?;
    let departure = Departure { source, to, moved };
    departure.check_entries()?;
    let providers = departure.providers()?;
    departure.check_references(&providers)?;
    let taken = |urn: &&Urn| target.all_resources().any(|state| state.urn == departure.renamed(urn));
    let taken: Vec<Urn> = departure.moved_entries().map(|state| &state.urn).filter(taken).cloned().collect();
    if !taken.is_empty() {
        return Err(MoveError::Taken(taken));
    }
    let arrived = departure.arrive(target, &providers)?;
    let (remaining, result) = departure.depart(providers, &arrived);
    (source.resources, source.pending_operations) = remaining;
    *target = arrived.target;
    Ok(ResourceMove { created_root: arrived.created_root, ..result })
}

/// Returns the URNs of the selected entries, of their descendants and of their views.
fn with_children(source: &Snapshot, selected: &[Urn]) -> Result<HashSet<Urn>, MoveError> {
    let mut moved: HashSet<Urn> = selected.iter().cloned().collect();
    for state in source.resources.iter().filter(|state| moved.contains(&state.urn)) {
        if is_root(state) {
            return Err(MoveError::Root(state.urn.clone()));
        }
        if state.is_provider() {
            return Err(MoveError::Provider(state.urn.clone()));
        }
    }
    loop {
        let belongs = |state: &&Arc<ResourceState>| {
            let owners = [&state.parent, &state.view_of];
            !moved.contains(&state.urn) && owners.into_iter().flatten().any(|owner| moved.contains(owner))
        };
        // A view may come before its resource.
        let found: Vec<Urn> = source.resources.iter().filter(belongs).map(|state| state.urn.clone()).collect();
        if found.is_empty() {
            return Ok(moved);
        }
        moved.extend(found);
    }
}

fn is_root(state: &ResourceState) -> bool {
    state.type_token.as_str() == ROOT_STACK_TYPE
}

/// Entries of a source that move to another stack.
struct Departure<'a> {
    source: &'a Snapshot,
    to: &'a StackReference,
    moved: HashSet<Urn>,
}

/// Provider resource of moved entries that is not among them.
struct UsedProvider {
    state: Arc<ResourceState>,
    reference: ProviderReference,
    treatment: ProviderMove,
}

/// Target with the moved entries.
struct Arrived {
    target: Snapshot,
    created_root: Option<Urn>,
    /// Providers that the target did not have, by their URNs in the source.
    added: HashSet<Urn>,
}

impl Departure<'_> {
    fn moved_entries(&self) -> impl Iterator<Item = &Arc<ResourceState>> {
        self.source.resources.iter().filter(|state| self.moved.contains(&state.urn))
    }

    fn remaining_entries(&self) -> impl Iterator<Item = &Arc<ResourceState>> {
        self.source.resources.iter().filter(|state| !self.moved.contains(&state.urn))
    }

    /// Returns the URN of an entry in the target.
    fn renamed(&self, urn: &Urn) -> Urn {
        urn.in_stack(self.to.stack(), self.to.project())
    }

    /// Checks that no moved entry has an operation that has not ended, or is to be deleted or replaced.
    fn check_entries(&self) -> Result<(), MoveError> {
        let pending = self.source.pending_operations.iter().map(|operation| &operation.resource);
        let unsettled = self.moved_entries().filter(|state| state.delete || state.pending_replacement);
        let operated = pending.filter(|state| self.moved.contains(&state.urn));
        let mut found: Vec<Urn> = operated.chain(unsettled).map(|state| state.urn.clone()).collect();
        found.sort();
        found.dedup();
        if found.is_empty() { Ok(()) } else { Err(MoveError::Pending(found)) }
    }

    /// Returns the providers of the moved entries that are not among them, in the order of the source.
    fn providers(&self) -> Result<Vec<UsedProvider>, MoveError> {
        let references = self.moved_entries().filter_map(|state| state.provider.as_ref());
        let used: HashSet<&ProviderReference> =
            references.filter(|provider| !self.moved.contains(&provider.urn)).collect();
        let remaining: HashSet<&Urn> =
            self.remaining_entries().flat_map(|state| state.references()).map(|(_, urn)| urn).collect();
        let mut providers = Vec::new();
        for state in self.remaining_entries() {
            let Some(reference) = state.as_provider_reference().filter(|reference| used.contains(reference)) else {
                continue;
            };
            if state.delete {
                return Err(MoveError::Pending(vec![state.urn.clone()]));
            }
            let is_used = remaining.contains(&state.urn);
            let treatment = if is_used { ProviderMove::Copied } else { ProviderMove::Moved };
            providers.push(UsedProvider { state: Arc::clone(state), reference, treatment });
        }
        Ok(providers)
    }

    /// Checks that what moves refers to nothing that stays except the root, and that no remaining entry uses a provider that is
    /// the child of a moved component.
    fn check_references(&self, providers: &[UsedProvider]) -> Result<(), MoveError> {
        let mut staying = Vec::new();
        let copied: HashSet<&Urn> = providers.iter().map(|provider| &provider.state.urn).collect();
        for state in self.moved_entries().chain(providers.iter().map(|provider| &provider.state)) {
            for (relation, urn) in state.references() {
                let is_known = self.moved.contains(urn) || copied.contains(urn) || urn.type_token() == ROOT_STACK_TYPE;
                let is_listed =
                    staying.iter().any(|found: &StayingReference| found.urn == state.urn && found.target == *urn);
                if !is_known && !is_listed {
                    let (urn, relation, target) = (state.urn.clone(), relation.into_owned(), urn.clone());
                    staying.push(StayingReference { urn, relation, target });
                }
            }
        }
        if !staying.is_empty() {
            return Err(MoveError::Staying(staying));
        }
        let users = self.remaining_entries().filter_map(|state| Some((state, state.provider.as_ref()?)));
        let mut users = users.filter(|(_, provider)| self.moved.contains(&provider.urn));
        match users.next() {
            Some((state, provider)) => {
                Err(MoveError::ProviderOfOthers { provider: provider.urn.clone(), user: state.urn.clone() })
            }
            None => Ok(()),
        }
    }

    /// Returns the target with the providers that it lacks, and the moved entries.
    fn arrive(&self, target: &Snapshot, providers: &[UsedProvider]) -> Result<Arrived, MoveError> {
        let mut target = target.clone();
        let mut created_root = None;
        let root = match target.resources.iter().find(|state| is_root(state) && !state.delete) {
            Some(root) => root.urn.clone(),
            None => {
                let root = Urn::root_stack(self.to.stack(), self.to.project());
                let created = Some(Timestamp::now());
                let state = ResourceState { created, modified: created, ..ResourceState::new(root.clone(), false) };
                target.resources.insert(0, Arc::new(state));
                created_root = Some(root.clone());
                root
            }
        };
        let mut arrival = Arrival { departure: self, root, providers: HashMap::new() };
        let mut added = HashSet::new();
        for UsedProvider { state, reference, .. } in providers {
            let urn = self.renamed(&state.urn);
            let present = target.resources.iter().find(|present| present.urn == urn && !present.delete);
            let used = match present {
                Some(present) if present.inputs == state.inputs => present.as_provider_reference(),
                Some(_) => return Err(MoveError::OtherProvider(state.urn.clone())),
                None => {
                    let arrived = arrival.entry(state);
                    let reference = arrived.as_provider_reference();
                    target.resources.push(Arc::new(arrived));
                    added.insert(state.urn.clone());
                    reference
                }
            };
            arrival.providers.extend(used.map(|used| (reference.clone(), used)));
        }
        for state in self.moved_entries() {
            self.carry_rest(state, &mut target)?;
            let arrived = arrival.entry(state);
            if let (Some(reference), Some(arrived)) = (state.as_provider_reference(), arrived.as_provider_reference()) {
                arrival.providers.insert(reference, arrived);
            }
            target.resources.push(Arc::new(arrived));
        }
        Ok(Arrived { target, created_root, added })
    }

    /// Gives the target the extension and the snippet that an entry refers to.
    fn carry_rest(&self, state: &ResourceState, target: &mut Snapshot) -> Result<(), MoveError> {
        if let Some((key, extension)) =
            state.extension_ref.as_ref().and_then(|key| self.source.rest.extensions.get_key_value(key))
        {
            match target.rest.extensions.get(key) {
                Some(present) if present != extension => return Err(MoveError::Extension(state.urn.clone())),
                Some(_) => {}
                None => drop(target.rest.extensions.insert(key.clone(), extension.clone())),
            }
        }
        let has_uuid = |snippet: &&serde_json::Value| {
            state.snippet_id.as_deref().is_some_and(|id| snippet.get("uuid").and_then(|uuid| uuid.as_str()) == Some(id))
        };
        if target.rest.snippets.iter().any(|snippet| has_uuid(&snippet)) {
            return Ok(());
        }
        target.rest.snippets.extend(self.source.rest.snippets.iter().find(has_uuid).cloned());
        Ok(())
    }

    /// Returns the remaining entries and operations of the source, without references to what has moved, and the changes.
    fn depart(
        &self,
        providers: Vec<UsedProvider>,
        arrived: &Arrived,
    ) -> ((Vec<Arc<ResourceState>>, Vec<crate::snapshot::PendingOperation>), ResourceMove) {
        let is_moved = |provider: &&UsedProvider| provider.treatment == ProviderMove::Moved;
        let gone: HashSet<ProviderReference> =
            providers.iter().filter(is_moved).map(|provider| provider.reference.clone()).collect();
        let mut pruned: Vec<(Urn, Relation<'static>, Urn)> = Vec::new();
        let mut remaining = Vec::new();
        for state in self.remaining_entries() {
            if state.as_provider_reference().is_some_and(|reference| gone.contains(&reference)) {
                continue;
            }
            let mut state = Arc::clone(state);
            for (relation, target) in self.prune(&mut state) {
                if !pruned.iter().any(|(urn, _, known)| *urn == state.urn && *known == target) {
                    pruned.push((state.urn.clone(), relation, target));
                }
            }
            remaining.push(state);
        }
        let mut operations = self.source.pending_operations.clone();
        for operation in &mut operations {
            self.prune(&mut operation.resource);
        }
        let moved = self.moved_entries().map(|state| state.urn.clone()).collect();
        let listed = providers.into_iter().filter(|provider| {
            provider.treatment == ProviderMove::Moved || arrived.added.contains(&provider.state.urn)
        });
        let providers = listed.map(|provider| (provider.state.urn.clone(), provider.treatment)).collect();
        ((remaining, operations), ResourceMove { created_root: None, providers, moved, pruned })
    }

    /// Removes the references of an entry to moved ones, and returns them.
    fn prune(&self, state: &mut Arc<ResourceState>) -> Vec<(Relation<'static>, Urn)> {
        let mut pruned = Vec::new();
        if state.references().any(|(_, urn)| self.moved.contains(urn)) {
            Arc::make_mut(state).retain_dependencies(|relation, urn| {
                if self.moved.contains(urn) {
                    pruned.push((relation.into_owned(), urn.clone()));
                }
                !self.moved.contains(urn)
            });
        }
        pruned
    }
}

/// Entries on their way to the target.
struct Arrival<'a> {
    departure: &'a Departure<'a>,
    /// Root stack resource of the target.
    root: Urn,
    /// Providers of the target by those of the source that they stand for.
    providers: HashMap<ProviderReference, ProviderReference>,
}

impl Arrival<'_> {
    /// Returns an entry as the target has it.
    fn entry(&self, state: &ResourceState) -> ResourceState {
        let renamed = |urn: &Urn| self.renamed(urn);
        let mut entry = ResourceState { urn: renamed(&state.urn), ..state.clone() };
        entry.rewrite_references(|_, urn| Rewrite::Replace(renamed(urn)));
        if let Some(provider) = &state.provider {
            entry.provider = self.providers.get(provider).cloned().or(entry.provider);
        }
        entry.aliases.iter_mut().for_each(|alias| *alias = renamed(alias));
        for properties in [&mut entry.inputs, &mut entry.outputs] {
            if properties.values().any(has_references) {
                *properties = Arc::new(self.renamed_in_map(properties));
            }
        }
        if has_references(&entry.replacement_trigger) {
            entry.replacement_trigger = self.renamed_in(&entry.replacement_trigger);
        }
        entry
    }

    fn renamed(&self, urn: &Urn) -> Urn {
        if urn.qualified_type() == ROOT_STACK_TYPE { self.root.clone() } else { self.departure.renamed(urn) }
    }

    /// Returns a value whose references to moved resources are those of the target.
    fn renamed_in(&self, value: &PropertyValue) -> PropertyValue {
        match value {
            PropertyValue::Resource(reference) if self.departure.moved.contains(&reference.urn) => {
                let mut reference = reference.clone();
                reference.urn = self.renamed(&reference.urn);
                PropertyValue::Resource(reference)
            }
            PropertyValue::List(items) => PropertyValue::List(items.iter().map(|item| self.renamed_in(item)).collect()),
            PropertyValue::Map(map) => PropertyValue::Map(self.renamed_in_map(map)),
            PropertyValue::Secret(secret) => PropertyValue::secret_verbatim(self.renamed_in(secret.expose())),
            other => other.clone(),
        }
    }

    fn renamed_in_map(&self, map: &PropertyMap) -> PropertyMap {
        map.iter().map(|(key, value)| (key.clone(), self.renamed_in(value))).collect()
    }
}

fn has_references(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Resource(_) => true,
        PropertyValue::List(items) => items.iter().any(has_references),
        PropertyValue::Map(map) => map.values().any(has_references),
        PropertyValue::Secret(secret) => has_references(secret.expose()),
        _ => false,
    }
}
