//! Objects that no Delete may hit: those that an entry names that stays, and those that are protected or retained.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::events::Outcome;
use state::{OperationKind, ResourceState, Snapshot};

use crate::fake_cloud::{Call, FakeCloud, Object};
use crate::program::{Kept, ProgramResource};

/// Returns the deletes of resources that must stay: a resource that its recorded entry retains, one that the program
/// retains or protects under the URN of the entry, and one that its recorded entry protects if the program cannot have
/// lifted this. `destroys` is true for a destroy, whose program decides alone.
pub(crate) fn deletes_of_kept(
    cloud: &FakeCloud,
    base: &Snapshot,
    calls: &[Call],
    program: &[ProgramResource],
    destroys: bool,
) -> Vec<String> {
    let goals: Vec<Kept> = program.iter().map(|resource| resource.kept_by(program)).collect();
    let kept = |entry: &ResourceState| {
        let goal = goals.iter().find(|goal| goal.urn == entry.urn);
        let recorded = program.is_empty() || !destroys;
        let retained = (recorded && entry.retain_on_delete) || goal.is_some_and(|goal| goal.retained);
        let protected = match goal {
            Some(goal) => goal.protected,
            None => recorded && entry.protect && !program.iter().any(|resource| resource.may_register(entry)),
        };
        retained || (protected && !entry.delete)
    };
    let listed = base.resources.iter().filter(|state| state.custom && !state.external && !state.pending_replacement);
    let kept: BTreeSet<Object> = listed.filter(|entry| kept(entry)).map(|entry| cloud.object_of(base, entry)).collect();
    let deletes = calls.iter().filter(|call| call.verb == "delete" && kept.contains(&call.object));
    deletes.map(|call| format!("{} of a resource that is protected or retained", call.text())).collect()
}

/// Returns the deletes of objects that a live entry names after the run.
///
/// A run that has failed may leave an entry that it was about to delete with another one of the same object. So only the
/// entries of its program count then, except in a destroy. A run that was aborted leaves entries with a pending Delete.
pub(crate) fn deletes_of_named(
    cloud: &FakeCloud,
    state: &Snapshot,
    calls: &[Call],
    program: &[ProgramResource],
    destroys: bool,
    outcome: Outcome,
) -> Vec<String> {
    let urns: BTreeSet<_> = program.iter().map(|resource| resource.kept_by(program).urn).collect();
    let stays = |entry: &ResourceState| outcome == Outcome::Succeeded || (!destroys && urns.contains(&entry.urn));
    let deletes = state.pending_operations.iter().filter(|operation| operation.kind == OperationKind::Deleting);
    let deletes: Vec<_> = deletes.map(|operation| (&operation.resource.urn, &operation.resource.id)).collect();
    let is_being_deleted = |entry: &ResourceState| deletes.contains(&(&entry.urn, &entry.id));
    let live = state.resources.iter().filter(|entry| {
        let names_object = entry.custom && !entry.is_provider() && entry.view_of.is_none();
        names_object && !entry.delete && !entry.pending_replacement && !is_being_deleted(entry) && stays(entry)
    });
    let live: Vec<_> = live.map(|entry| (cloud.object_of(state, entry), entry)).collect();
    let mut violations = Vec::new();
    for delete in calls.iter().filter(|call| call.verb == "delete" && !call.is_busy) {
        let is_named = |(object, entry): &&(Object, &Arc<ResourceState>)| {
            let name = entry.urn.name();
            // An id identifies an object among those of its type.
            let is_same = *object == delete.object && entry.type_token.as_str() == delete.type_token;
            // The entry was created or first read after the Delete, or is that of the Delete, which has failed. A resource that
            // is deleted before a replacement may be the one that the program then reads: nothing says so before.
            let is_new = calls.iter().any(|call| {
                let makes_entry = call.verb == "create" || (call.verb == "read" && entry.external);
                let is_of_entry = makes_entry && call.name == name && call.object == delete.object;
                is_of_entry && call.ended.is_some_and(|ended| ended > delete.started)
            });
            is_same && !is_new && (delete.succeeded || delete.name != name)
        };
        let named = live.iter().find(is_named);
        violations.extend(named.map(|(object, entry)| format!("delete of {object}, which {} names", entry.urn)));
    }
    violations
}
