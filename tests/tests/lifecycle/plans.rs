//! Tests of saved plans: a run does what its plan has, or refuses it before the step. The control is the same run without a plan.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use engine::events::{Message, Outcome, Severity};
use engine::{PlanGuard, RandomSeeds};
use provisioner::plan::{PlanEnforcer, PlanRecorder, PlanUse, StackPlan, StepKinds, Surroundings};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::FakeCloud;
use crate::program::{ProgramResource, component, get, provider, resource};
use crate::run::EndedRun;

/// Returns the plan of a preview, which must succeed.
pub(crate) async fn planned(cloud: &FakeCloud, state: &Snapshot, program: &[ProgramResource]) -> StackPlan {
    let recorder = Arc::new(PlanRecorder::new());
    let guard = Arc::clone(&recorder) as Arc<dyn PlanGuard>;
    cloud.up(state, program).preview().guard(guard).run().await.expect(Outcome::Succeeded);
    StackPlan {
        surroundings: Surroundings::default(),
        seeds: recorder.seeds().clone(),
        renewed: Default::default(),
        resources: recorder.take(),
        outputs: PropertyMap::new(),
    }
}

/// Counts how often it is recorded that a plan is used.
#[derive(Debug, Default)]
pub(crate) struct CountedUse {
    count: AtomicUsize,
    is_refused: bool,
}

#[async_trait]
impl PlanUse for CountedUse {
    async fn record(&self) -> Result<(), Box<Message>> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let refused = || Box::new(Message::new(Severity::Error, "the plan was used"));
        if self.is_refused { Err(refused()) } else { Ok(()) }
    }
}

/// Returns the guard of a run by a plan.
pub(crate) fn enforcer(plan: StackPlan, allows_fewer: bool) -> Arc<PlanEnforcer> {
    Arc::new(PlanEnforcer::new(Arc::new(plan), allows_fewer, Arc::new(CountedUse::default())))
}

/// Replaces a planned input of a resource by an unknown value.
fn open_input(plan: &mut StackPlan, name: &str, key: &str) {
    let planned =
        plan.resources.iter_mut().find(|resource| resource.urn.name() == name).expect("the plan has the resource");
    let registration = planned.registration.as_mut().expect("it is registered");
    for inputs in [Some(&mut registration.inputs), registration.checked.as_mut()].into_iter().flatten() {
        Arc::make_mut(inputs).insert(key.to_owned(), PropertyValue::UNKNOWN);
    }
}

#[tokio::test]
async fn plan_is_carried_out_with_what_was_unknown() {
    let before = [resource("a").input("k", "1"), resource("b").input_from("v", "a"), resource("c").input("d", "1")];
    let after = [
        provider("p"),
        component("g"),
        resource("a").input("k", "2"),
        resource("b").input_from("v", "a"),
        resource("n").input_from("v", "a").provider("p").parent("g"),
        get("r", "there"),
    ];
    let (cloud, state) = deploy(&before).await;
    cloud.add("there");
    let unplanned = cloud.fork(&cloud.state()).up(&state, &after).run().await.expect(Outcome::Succeeded);
    let guard = enforcer(planned(&cloud, &state, &after).await, false);
    let ended = cloud.up(&state, &after).guard(Arc::clone(&guard) as _).run().await.expect(Outcome::Succeeded);
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    assert_eq!(sorted(ended.changes()), sorted(unplanned.changes()));
    assert!(guard.is_used());
    assert_eq!(guard.left_out(), []);
}

#[tokio::test]
async fn unplanned_step_is_refused_before_it_begins() {
    let program = |k: &str, v: &str| vec![resource("a").input("k", k), resource("b").input("v", v)];
    let with = |mut program: Vec<ProgramResource>, more: ProgramResource| {
        program.push(more);
        program
    };
    let without_b = vec![resource("a").input("k", "1")];
    let of_provider = |name: &str, token: &str| {
        vec![
            provider(name).input("vToken", token),
            resource("a").input("k", "1").provider(name),
            resource("b").input("v", "2"),
        ]
    };
    let protected =
        vec![resource("a").input("k", "1"), resource("b").input("v", "2").edit_goal(|goal| goal.protect = Some(true))];
    // Program of the plan, program of the run, and the error of the run.
    let table = [
        (program("1", "2"), program("1", "3"), "b: b is not as planned: v is \"3\" (planned: \"2\")"),
        (
            program("1", "2"),
            program("2", "2"),
            "a: a is not as planned: k is \"2\" (planned: \"1\"); it would be replaced",
        ),
        (program("1", "2"), program("1", "1"), "it was to be updated, which is no longer needed"),
        (program("1", "2"), with(program("1", "2"), resource("c")), "c: the plan has no resource c"),
        (program("1", "1"), without_b, "b: b would be deleted, which the plan does not do"),
        (program("1", "2"), protected, "its option protect is true (planned: "),
        (program("1", "2"), with(program("1", "2"), provider("p")), "p: the plan has no resource p"),
        (of_provider("p", "1"), of_provider("q", "1"), "the plan has no resource q"),
        (of_provider("p", "1"), of_provider("p", "2"), "p: p is not as planned: vToken is \"2\" (planned: \"1\")"),
    ];
    for (of_plan, of_run, error) in table {
        let (cloud, state) = deploy(&program("1", "1")).await;
        let plan = planned(&cloud, &state, &of_plan).await;
        let control = cloud.fork(&cloud.state()).up(&state, &of_run).guard(Arc::new(RandomSeeds::draw())).run().await;
        control.expect(Outcome::Succeeded);
        let kinds = StepKinds::of(&plan.resources);
        let guard = enforcer(plan, false);
        let ended = cloud.up(&state, &of_run).guard(guard).parallel(1).run().await.expect(Outcome::Failed);
        assert!(ended.errors.iter().any(|found| found.contains(error)), "{error}: {:?}", ended.errors);
        assert!(ended.hints.iter().any(|hint| hint.contains("make a new plan")), "{:?}", ended.hints);
        assert_planned(&kinds, &state, &ended);
    }
}

/// Checks that each step of a run which changes something is one of a plan. Steps are texts such as `create a`. The steps of a view
/// are those of its resource.
pub(crate) fn assert_planned(kinds: &StepKinds, base: &Snapshot, ended: &EndedRun) {
    let entries = base.resources.iter().chain(&ended.state.resources);
    let views: BTreeSet<&str> = entries.filter(|entry| entry.view_of.is_some()).map(|entry| entry.urn.name()).collect();
    let planned: BTreeSet<(String, String)> =
        kinds.iter().map(|(urn, kind)| (urn.name().to_owned(), format!("{kind:?}").to_lowercase())).collect();
    for step in &ended.steps {
        let (op, name) = step.split_once(' ').expect("a step has a kind and a name");
        if views.contains(name) {
            continue;
        }
        let kind = match op {
            "same" | "refresh" => continue,
            "create-replacement" | "delete-replaced" | "remove-pending-replace" | "read-replacement" => "replace",
            "import-replacement" => "import",
            "discard-replaced" => "discard",
            op => op,
        };
        assert!(planned.contains(&(name.to_owned(), kind.to_owned())), "{step} is not planned: {planned:?}");
    }
}

#[tokio::test]
async fn unknown_value_changes_no_kind_of_step_unless_fewer_are_allowed() {
    let program = |key: &str, value: &str| vec![resource("a").input(key, value), resource("b").input("v", "1")];
    // Key of the unknown input, its value in the run, whether fewer changes are allowed, and the error.
    let table = [
        ("v", "2", false, None),
        ("v", "3", false, None),
        ("v", "1", false, Some("a: a is not as planned: it was to be updated, which is no longer needed")),
        ("v", "1", true, None),
    ];
    for (key, value, allows_fewer, error) in table {
        let (cloud, state) = deploy(&program(key, "1")).await;
        let mut plan = planned(&cloud, &state, &program(key, "2")).await;
        open_input(&mut plan, "a", key);
        let guard = enforcer(plan, allows_fewer);
        let ended = cloud.up(&state, &program(key, value)).guard(Arc::clone(&guard) as _).run().await;
        assert_eq!(ended.errors.first().map(String::as_str), error, "{key} {value}");
        assert_eq!(ended.outcome == Outcome::Succeeded, error.is_none());
        assert_eq!(guard.is_used(), value != "1");
    }
    // An update that turns into a replacement.
    let with_k = |k: &str| vec![resource("a").input("k", k).input("v", "2")];
    let (cloud, state) = deploy(&[resource("a").input("k", "1").input("v", "1")]).await;
    let mut plan = planned(&cloud, &state, &with_k("1")).await;
    open_input(&mut plan, "a", "k");
    let ended = cloud.up(&state, &with_k("2")).guard(enforcer(plan, true)).run().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["a: a is not as planned: it would be replaced (planned: updated)"]);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn plan_is_recorded_as_used_before_the_first_change_alone() {
    let program = |v: &str| [resource("a").input("v", v), resource("b").input("v", v)];
    let (cloud, state) = deploy(&program("1")).await;
    for (value, is_refused, count) in [("1", true, 0), ("2", false, 1), ("2", true, 1)] {
        let plan = planned(&cloud, &state, &program(value)).await;
        let counted = Arc::new(CountedUse { is_refused, ..CountedUse::default() });
        let guard = Arc::new(PlanEnforcer::new(Arc::new(plan), false, Arc::clone(&counted) as _));
        let run = cloud.fork(&cloud.state()).up(&state, &program(value)).guard(guard).parallel(1);
        let ended = run.run().await;
        assert_eq!(counted.count.load(Ordering::Relaxed), count);
        let (changes, outcome) = (if is_refused { 0 } else { 2 }, ended.outcome);
        assert_eq!(ended.changes().len(), changes);
        assert_eq!(outcome == Outcome::Failed, is_refused && count > 0);
    }
}

#[tokio::test]
async fn planned_change_that_the_program_does_not_come_to_is_left_out() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    let guard = enforcer(planned(&cloud, &state, &[resource("a"), resource("b")]).await, false);
    cloud.up(&state, &[resource("a")]).guard(Arc::clone(&guard) as _).run().await.expect(Outcome::Succeeded);
    let names: Vec<String> = guard.left_out().iter().map(|(urn, _)| urn.name().to_owned()).collect();
    assert_eq!(names, ["b"]);
    assert!(!guard.is_used());
}
