//! Adoption of created resources whose Create has lost its reply, except for the id
//! (docs/engine.md, "Failures").
//!
//! Such a pending create is an entry of the next run, which reads it before all decisions. Until a record of that run
//! changes or confirms the entry, the state keeps the pending create instead.

use std::collections::HashSet;
use std::sync::Arc;

use pulumi_proto::urn::{ProviderReference, Urn};

use super::record::EntryId;
use super::resource::ResourceState;
use super::snapshot::{PendingOperation, Snapshot};

/// Entry that stands for a pending create.
#[derive(Clone, Debug)]
pub(crate) struct Adopted {
    /// The pending create.
    pub(crate) operation: PendingOperation,
    /// Entry whose place the adopted one takes: its resource is deleted already, and its replacement was pending.
    pub(crate) replaced: Option<Arc<ResourceState>>,
}

/// Turns pending creates whose id is known into entries of the snapshot, and returns these. Drops the ones that are
/// recorded already. A pending create whose provider or parent is not recorded stays one.
///
/// If the resource was to replace another one that still exists, the entry is a pending delete: the recorded resource
/// stays the live one, and the replacement is repeated.
pub(crate) fn adopt(snapshot: &mut Snapshot) -> Vec<(EntryId, Adopted)> {
    let mut adopted = Vec::new();
    for operation in std::mem::take(&mut snapshot.pending_operations) {
        if !operation.is_create_with_id() {
            snapshot.pending_operations.push(operation);
            continue;
        }
        let created = &operation.resource;
        let mut entries = snapshot.resources.iter().filter(|entry| entry.urn == created.urn);
        if entries.clone().any(|entry| entry.id == created.id && !entry.pending_replacement) {
            continue;
        }
        let has_live = entries.any(|entry| !entry.delete && !entry.pending_replacement);
        let is_replaced =
            |entry: &Arc<ResourceState>| entry.urn == created.urn && !entry.delete && entry.pending_replacement;
        let place = snapshot.resources.iter().position(is_replaced);
        let before = snapshot.resources.get(..place.unwrap_or(snapshot.resources.len())).unwrap_or_default();
        let Some(entry) = entry_of(created, before, has_live) else {
            snapshot.pending_operations.push(operation);
            continue;
        };
        let entry = Arc::new(entry);
        let (index, replaced) = match place.and_then(|place| Some((place, snapshot.resources.get_mut(place)?))) {
            Some((place, slot)) => (place, Some(std::mem::replace(slot, entry))),
            None => {
                snapshot.resources.push(entry);
                (snapshot.resources.len() - 1, None)
            }
        };
        adopted.push((EntryId(index as u64), Adopted { operation, replaced }));
    }
    adopted
}

/// Returns the entry of a created resource after the entries `before`, with the references that these allow. `None` if
/// its provider or parent is not among them.
fn entry_of(created: &ResourceState, before: &[Arc<ResourceState>], delete: bool) -> Option<ResourceState> {
    let urns: HashSet<&Urn> = before.iter().map(|entry| &entry.urn).collect();
    let has_provider = |provider: &ProviderReference| {
        before.iter().any(|entry| entry.as_provider_reference().as_ref() == Some(provider))
    };
    if !created.provider.as_ref().is_some_and(has_provider)
        || created.parent.as_ref().is_some_and(|parent| !urns.contains(parent))
    {
        return None;
    }
    let mut entry = created.clone();
    entry.delete = delete;
    // The outputs are not known until the resource is read.
    entry.outputs = Arc::clone(&entry.inputs);
    entry.retain_dependencies(|_, urn| urns.contains(urn));
    Some(entry)
}

#[cfg(test)]
mod tests {
    use pulumi_proto::resource_id::ResourceId;
    use pulumi_proto::urn::Urn;

    use super::*;
    use crate::ledger::Ledger;
    use crate::record::{Effect, OperationId, Record, Subject};
    use crate::snapshot::OperationKind;

    fn urn(type_token: &str, name: &str) -> Urn {
        Urn::new("s", "p", None, type_token, name)
    }

    fn provider() -> ResourceState {
        ResourceState { id: ResourceId::new("1"), ..ResourceState::new(urn("pulumi:providers:t", "default"), true) }
    }

    fn resource(id: &str) -> ResourceState {
        let provider = provider().as_provider_reference();
        ResourceState { id: ResourceId::new(id), provider, ..ResourceState::new(urn("t:m:T", "a"), true) }
    }

    fn snapshot(entries: Vec<ResourceState>, created: ResourceState) -> Snapshot {
        let operation = PendingOperation { resource: Arc::new(created), kind: OperationKind::Creating };
        let resources = entries.into_iter().map(Arc::new).collect();
        Snapshot { resources, pending_operations: vec![operation], ..Snapshot::default() }
    }

    /// Returns the entries after the provider: the id, `-` before that of a pending delete, `?` after that of a pending
    /// replacement.
    fn shown(ledger: &Ledger) -> String {
        let shown = |(_, state): (EntryId, &Arc<ResourceState>)| {
            let (delete, replacement) = (state.delete, state.pending_replacement);
            format!("{}{}{}", if delete { "-" } else { "" }, state.id_text(), if replacement { "?" } else { "" })
        };
        ledger.entries().filter(|(_, state)| !state.is_provider()).map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn pending_create_with_an_id_is_an_entry_and_stays_pending_until_a_record_changes_it() {
        let replaced = ResourceState { pending_replacement: true, ..resource("a-1") };
        for (entries, expected) in [
            (vec![provider()], "a-2"),
            (vec![provider(), resource("a-1")], "a-1 -a-2"),
            (vec![provider(), replaced], "a-2"),
        ] {
            let before = snapshot(entries, resource("a-2"));
            let mut ledger = Ledger::new(before.clone());
            assert_eq!(shown(&ledger), expected);
            assert_eq!(ledger.snapshot(), before, "nothing was read yet");
            let (id, read) =
                ledger.unread_creates().map(|(id, pending)| (id, pending.resource.clone())).next().unwrap();
            ledger.apply(&Record::Change(vec![Effect::Rewrite(id, read)]));
            let after = ledger.snapshot();
            assert!(
                after.pending_operations.is_empty() && after.resources.iter().any(|entry| entry.id_text() == "a-2")
            );
            assert_eq!(ledger.unread_creates().count(), 0);
        }
    }

    #[test]
    fn recorded_create_is_not_adopted_again_and_one_without_its_provider_stays_pending() {
        let recorded = Ledger::new(snapshot(vec![provider(), resource("a-2")], resource("a-2")));
        assert_eq!((shown(&recorded).as_str(), recorded.snapshot().pending_operations.len()), ("a-2", 0));
        let without_provider = Ledger::new(snapshot(Vec::new(), resource("a-2")));
        assert_eq!((shown(&without_provider).as_str(), without_provider.snapshot().pending_operations.len()), ("", 1));
    }

    #[test]
    fn adopted_entry_has_only_references_to_recorded_entries() {
        let (missing, known) = (urn("t:m:T", "missing"), provider().urn);
        let dependencies = vec![missing.clone(), known.clone()];
        let created = ResourceState { dependencies, deleted_with: Some(missing), ..resource("a-2") };
        let ledger = Ledger::new(snapshot(vec![provider()], created));
        let (_, entry) = ledger.entries().find(|(_, state)| !state.is_provider()).unwrap();
        assert_eq!((entry.dependencies.clone(), entry.deleted_with.clone()), (vec![known], None));
    }

    #[test]
    fn second_begin_of_an_operation_replaces_its_resource() {
        let mut ledger = Ledger::new(Snapshot::default());
        for id in ["", "a-2"] {
            let subject = Subject::Resource(Arc::new(resource(id)));
            ledger.apply(&Record::Begin { operation: OperationId(0), kind: OperationKind::Creating, subject });
        }
        let pending = ledger.snapshot().pending_operations;
        assert_eq!(pending.iter().map(|pending| pending.resource.id_text()).collect::<Vec<_>>(), ["a-2"]);
    }
}
