//! Tests of the transitions of the deployment state: state before, event, state after.

use std::sync::Arc;

use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot};

use super::*;

fn urn(name: &str) -> Urn {
    Urn::new("s", "p", None, "t:m:T", name)
}

fn resource(name: &str, change: impl FnOnce(&mut ResourceState)) -> Arc<ResourceState> {
    let mut state = ResourceState::new(urn(name), true);
    state.id = ResourceId::new(format!("{name}-1"));
    change(&mut state);
    Arc::new(state)
}

fn loaded<const N: usize>(resources: [Arc<ResourceState>; N]) -> DeploymentState {
    DeploymentState::new(Snapshot { resources: resources.into(), ..Snapshot::default() })
}

fn inheritance() -> Inheritance {
    Inheritance {
        protect: false,
        retain_on_delete: false,
        deleted_with: None,
        provider: None,
        providers: BTreeMap::new(),
    }
}

#[test]
fn second_registration_of_a_urn_is_rejected() {
    let mut state = loaded([]);
    assert!(!state.has_begun(&urn("a")));
    assert!(state.register(&urn("a"), inheritance()).is_ok());
    assert!(state.has_begun(&urn("a")) && state.is_registered(&urn("a")));
    assert!(!state.is_decided(&urn("a")) && !state.is_finished(&urn("a")));
    assert!(state.register(&urn("a"), Inheritance { protect: true, ..inheritance() }).is_err());
    assert!(!state.inheritance(&urn("a")).unwrap().protect, "the first registration applies");
}

#[test]
fn registration_is_decided_then_finished() {
    let mut state = loaded([]);
    state.register(&urn("a"), inheritance()).unwrap();
    state.decide(&urn("a"));
    assert!(state.is_decided(&urn("a")) && !state.is_finished(&urn("a")));
    state.finish(&urn("a"));
    assert!(state.is_decided(&urn("a")) && state.is_finished(&urn("a")));
}

#[test]
fn registration_that_ends_early_is_finished_and_not_decided() {
    let mut state = loaded([]);
    state.register(&urn("a"), inheritance()).unwrap();
    state.finish(&urn("a"));
    assert!(state.is_finished(&urn("a")) && !state.is_decided(&urn("a")));
}

#[test]
fn entry_carried_over_by_another_resource_counts_as_registered() {
    let mut state = loaded([resource("a", |_| {})]);
    state.begin_carry_over(&urn("a"));
    assert!(state.is_carried_over(&urn("a")) && state.is_decided(&urn("a")) && state.is_registered(&urn("a")));
    assert!(!state.is_finished(&urn("a")));
    state.finish(&urn("a"));
    assert!(state.is_carried_over(&urn("a")) && state.is_finished(&urn("a")));
}

#[test]
fn renamed_entry_is_decided_and_finished_with_its_registration() {
    let mut state = loaded([resource("old", |_| {})]);
    state.take_over(urn("old"), urn("new"));
    assert_eq!(state.new_urn(&urn("old")), &urn("new"));
    assert_eq!(state.recorded_urn(&urn("new")), Some(&urn("old")));
    assert!(state.is_registered(&urn("old")), "under its new name");
    state.decide(&urn("new"));
    assert!(state.is_decided(&urn("old")) && !state.is_decided_by_urn(&urn("old")));
    state.finish(&urn("new"));
    assert!(state.is_finished(&urn("old")));
}

#[test]
fn recorded_urn_carried_over_by_another_resource_is_not_finished_by_its_registration() {
    let mut state = loaded([resource("old", |_| {})]);
    state.take_over(urn("old"), urn("new"));
    state.begin_carry_over(&urn("old"));
    state.finish(&urn("new"));
    assert!(!state.is_finished(&urn("old")));
}

#[test]
fn resource_that_keeps_its_recorded_urn_can_be_named_as_parent_by_it() {
    let mut state = loaded([resource("old", |_| {})]);
    state.register(&urn("new"), Inheritance { protect: true, ..inheritance() }).unwrap();
    state.take_over(urn("old"), urn("new"));
    state.cancel_new_urn(&urn("new"));
    state.register_recorded_urn(&urn("new"), &urn("old"));
    assert!(state.inheritance(&urn("old")).unwrap().protect);
    assert_eq!(state.new_urn(&urn("old")), &urn("old"));
}

#[test]
fn more_severe_incomplete_reason_replaces_less_severe_one() {
    let mut state = loaded([]);
    state.mark_incomplete(&urn("a"), Incomplete::Skipped);
    assert!(state.is_skipped(&urn("a")) && !state.has_failed(&urn("a")));
    state.mark_incomplete(&urn("a"), Incomplete::Failed);
    state.mark_incomplete(&urn("a"), Incomplete::Skipped);
    assert!(state.has_failed(&urn("a")) && !state.is_skipped(&urn("a")));
    state.mark_incomplete(&urn("a"), Incomplete::NotConstructed);
    assert!(state.has_failed(&urn("a")));
}

#[test]
fn entries_within_not_constructed_component_are_unknown() {
    let component = |state: &mut ResourceState| state.custom = false;
    let child = |state: &mut ResourceState| state.parent = Some(urn("component"));
    let mut state = loaded([resource("component", component), resource("child", child), resource("other", |_| {})]);
    assert!(state.within_not_constructed().is_empty());
    state.mark_incomplete(&urn("component"), Incomplete::NotConstructed);
    let unknown = state.within_not_constructed();
    let names = state.loaded_entries().iter().filter(|(id, _)| unknown.contains(id));
    assert_eq!(names.map(|(_, entry)| entry.urn.name()).collect::<Vec<_>>(), ["component", "child"]);
}

#[test]
fn dependent_replacement_is_found_under_recorded_and_new_urn() {
    let mut state = loaded([resource("old", |_| {})]);
    state.take_over(urn("old"), urn("new"));
    let entry = state.old(&urn("old")).unwrap();
    let (report, deletion) = deletion_channel(Deleted::NotYet);
    state.plan_dependent_replacement(&entry, PlannedDependentReplacement { keys: vec!["v".into()], deletion });
    assert_eq!(state.planned_dependent_replacement(&urn("new")).unwrap().keys, ["v"]);
    assert!(
        state.is_deleted_before_replace(entry.0)
            && state.is_deletion_unfinished(entry.0)
            && state.is_marked_for_deletion(&urn("old"))
    );
    report.done();
    assert!(state.is_deleted_before_replace(entry.0) && !state.is_deletion_unfinished(entry.0));
}

#[test]
fn pending_delete_as_dependent_plans_no_replacement() {
    let mut state = loaded([resource("a", |a| a.delete = true)]);
    let entry = state.loaded_entries()[0].clone();
    let (_report, deletion) = deletion_channel(Deleted::NotYet);
    state.plan_dependent_replacement(&entry, PlannedDependentReplacement { keys: Vec::new(), deletion });
    assert!(state.planned_dependent_replacement(&urn("a")).is_none() && state.is_deleted_before_replace(entry.0));
}

#[test]
fn entry_with_removed_deleted_with_is_released() {
    let mut state = loaded([resource("a", |a| a.deleted_with = Some(urn("b")))]);
    let (id, _) = state.old(&urn("a")).unwrap();
    assert!(!state.is_deleted_with_released(id));
    state.release_deleted_with(id);
    assert!(state.is_deleted_with_released(id));
}

#[test]
fn parts_of_steps_are_not_counted() {
    let mut state = loaded([]);
    for op in [StepOp::Create, StepOp::Create, StepOp::CreateReplacement, StepOp::Replace] {
        state.count(op);
    }
    assert_eq!(state.take_counts(), BTreeMap::from([(StepOp::Create, 2), (StepOp::Replace, 1)]));
    assert!(state.take_counts().is_empty());
}

#[test]
fn stack_outputs_are_held_until_taken() {
    let mut state = loaded([]);
    state.hold_stack_outputs(urn("stack"), PropertyMap::new());
    assert_eq!(state.take_stack_outputs(), Some((urn("stack"), PropertyMap::new())));
    assert_eq!(state.take_stack_outputs(), None);
}

#[test]
fn child_has_the_source_of_its_component() {
    let mut state = loaded([]);
    state.set_source(&urn("component"), SourceRef(7));
    assert_eq!(state.source_of_component(&urn("child"), Some(&urn("component"))), Some(SourceRef(7)));
    assert_eq!(state.source_of_component(&urn("other"), None), None);
}

#[test]
fn urn_of_entry_removed_by_refresh_still_matches() {
    let mut state = loaded([resource("a", |_| {}), resource("b", |_| {})]);
    let (id, _) = state.old(&urn("a")).unwrap();
    let effects = state.remove_effects(id);
    state.ledger_mut().apply(&state::Record::Change(effects));
    state.reload();
    assert!(state.old(&urn("a")).is_none() && state.old(&urn("b")).is_some());
    assert!(state.has_match(&UrnPattern::new("a")) && !state.has_match(&UrnPattern::new("c")));
}

#[test]
fn finished_urn_without_registration_has_not_begun() {
    let mut state = loaded([]);
    state.finish(&urn("a"));
    assert!(state.is_finished(&urn("a")) && !state.has_begun(&urn("a")) && !state.is_registered(&urn("a")));
}
