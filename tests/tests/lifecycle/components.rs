//! Tests of remote components and their children.

use std::sync::Arc;

use engine::RegistrationResult;
use engine::events::Outcome;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot};

use crate::program::{PROJECT, STACK, get, group, provider, remote, thing};
use crate::run::entry;
use crate::standing;
use crate::stopping::{aborted_at, stopped_at};
use crate::world::{Goes, World};

#[tokio::test]
async fn a_component_and_its_children_are_in_the_state_and_dependents_come_after_them() {
    let (world, state) = standing(&[thing("a"), remote("c").of("v", "a"), thing("b").after("c")]).await;
    let (component, child) = (entry(&state, "c"), entry(&state, "c-child"));
    assert_eq!((component.custom, component.provider.as_ref()), (false, None));
    assert_eq!(component.outputs["child"].as_str(), Some("c-child-1"));
    assert_eq!(child.parent.as_ref(), Some(&component.urn));
    assert_eq!(child.property_dependencies["v"][0].name(), "a");
    let ended = world.destroy(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete c-child-1", "delete a-1"]);
}

#[tokio::test]
async fn nothing_is_done_for_a_component_that_did_not_change() {
    let program = [remote("c").with("v", "1")];
    let (world, state) = standing(&program).await;
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn a_component_that_left_the_program_goes_with_its_children() {
    let (world, state) = standing(&[remote("c"), thing("a")]).await;
    let ended = world.up(&state, &[thing("a")]).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete c-child-1".to_owned()], vec!["a-1".to_owned()]));
}

#[tokio::test]
async fn a_component_with_another_name_keeps_its_children() {
    let (world, state) = standing(&[remote("c").with("v", "1")]).await;
    let ended = world.up(&state, &[remote("d").with("v", "1").was("c")]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.entries(), ["d", "c-child-1"]);
    assert_eq!(entry(&ended.state, "d-child").parent.as_ref().unwrap().name(), "d");
}

#[tokio::test]
async fn children_are_replaced_while_the_only_slot_is_free() {
    let program = |d: &str| [remote("c").with("d", d), thing("b").after("c")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).parallel(1).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete c-child-1", "create c-child"]);
}

#[tokio::test]
async fn a_component_is_made_within_another_one_and_depends_on_a_third() {
    let program = [group("g"), remote("c").within("g"), remote("d").within("c").after("c")];
    let (world, state) = standing(&program).await;
    assert_eq!(entry(&state, "d").parent.as_ref().unwrap().name(), "c");
    world.destroy(&state).go().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn protection_of_a_component_is_that_of_its_children() {
    let (world, state) = standing(&[remote("c").protected(), thing("a")]).await;
    assert!(entry(&state, "c-child").protect);
    let ended = world.up(&state, &[thing("a")]).go().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn a_provider_whose_configuration_is_not_known_makes_no_component() {
    let world = World::default();
    let program = [thing("a"), provider("p").of("v", "a"), remote("c").by("p")];
    let ended = world.up(&Snapshot::default(), &program).preview().go().await.expect(Outcome::Succeeded);
    assert!(ended.steps.contains(&"create c".to_owned()), "the engine itself says that it will be there");
    assert!(!ended.steps.contains(&"create c-child".to_owned()));
}

#[tokio::test]
async fn a_component_that_its_plugin_refuses_fails_the_run_in_its_words() {
    let world = World::default();
    world.when("construct c", Goes::Wrong);
    let ended = world.up(&Snapshot::default(), &[remote("c")]).go().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["c: construct c fails"]);
}

#[tokio::test]
async fn where_the_run_goes_on_what_hangs_on_a_refused_component_is_skipped() {
    let world = World::default();
    world.when("construct c", Goes::Wrong);
    let program = [remote("c"), remote("d").after("c"), thing("b").after("d"), thing("a")];
    let ended = world.up(&Snapshot::default(), &program).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.result("c"), RegistrationResult::Failed);
    assert_eq!((ended.result("d"), ended.result("b")), (RegistrationResult::Skipped, RegistrationResult::Skipped));
    assert_eq!(ended.entries(), ["a-1"]);
}

#[tokio::test]
async fn a_failed_child_is_told_once_and_made_by_the_next_run() {
    let world = World::default();
    world.when("create c-child", Goes::Wrong);
    let program = [remote("c"), thing("b").after("c")];
    let ended = world.up(&Snapshot::default(), &program).go().await.expect(Outcome::Failed);
    assert_eq!(ended.errors.len(), 1, "{:?}", ended.errors);
    world.mend();
    let ended = world.up(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create c-child", "create b"]);
}

#[tokio::test]
async fn a_child_under_way_when_the_user_stops_is_recorded_and_no_sibling_follows() {
    let world = World::default();
    let hold = world.hold("create c-child");
    let run = world.up(&Snapshot::default(), &[remote("c"), remote("d").after("c")]);
    let ended = stopped_at(run, hold).await;
    assert_eq!(ended.expect(Outcome::Canceled).entries(), ["c", "c-child-1"]);
}

#[tokio::test]
async fn aborted_in_a_construct_the_child_stays_pending_and_nothing_waits_for_the_plugin() {
    let world = World::default();
    let hold = world.hold("create c-child");
    let run = world.up(&Snapshot::default(), &[remote("c")]);
    let ended = aborted_at(run, hold).await.expect(Outcome::Canceled);
    let pending = &ended.state.pending_operations;
    assert_eq!(pending.iter().map(|operation| operation.resource.urn.name()).collect::<Vec<_>>(), ["c-child"]);
}

#[tokio::test]
async fn of_a_component_out_of_scope_the_children_stay_as_they_are() {
    let program = |v: &str| [remote("c").with("v", v), thing("a").with("v", v)];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).target("a").go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1"]);
    let ended = world.up(&ended.state, &program("2")).target("c-child").go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update c-child-1"]);
}

#[tokio::test]
async fn row_51_construct_says_what_the_program_says_and_where_to_register() {
    let world = World::default();
    let program = [thing("a"), remote("c").of("v", "a").protected()];
    world.up(&Snapshot::default(), &program).preview().go().await.expect(Outcome::Succeeded);
    let ended = world.up(&Snapshot::default(), &program).go().await.expect(Outcome::Succeeded);
    let constructed = world.constructed();
    let [preview, real] = &constructed[..] else { panic!("{constructed:?}") };
    assert_eq!((preview.run.dry_run, real.run.dry_run), (true, false));
    assert!(preview.inputs["v"].contains_unknowns());
    assert_eq!(real.inputs["v"].clone().without_outputs(), "a-1".into());
    assert_eq!((real.name.as_str(), real.options.protect), ("c", Some(true)));
    assert!(real.run.monitor_endpoint.is_some());
    assert!(ended.calls.iter().all(|call| call.name != "c"), "neither Check nor Diff, whoever constructs it");
}

#[tokio::test]
async fn row_52_a_call_keeps_arguments_that_are_not_known() {
    let world = World::default();
    let program = [thing("a"), remote("c").of("ask", "a")];
    world.up(&Snapshot::default(), &program).preview().go().await.expect(Outcome::Succeeded);
    world.up(&Snapshot::default(), &program).go().await.expect(Outcome::Succeeded);
    let called = world.called();
    let [(_, preview), (_, real)] = &called[..] else { panic!("{called:?}") };
    assert_eq!((preview.token.as_str(), preview.run.dry_run, real.run.dry_run), ("cloud:index:Thing/ask", true, false));
    assert_eq!((&preview.arguments["value"], &real.arguments["value"]), (&PropertyValue::UNKNOWN, &"a-1".into()));
}

#[tokio::test]
async fn row_52_a_method_is_that_of_the_provider_of_the_resource_it_is_called_on() {
    let world = World::default();
    let of = |name: &str| thing(name).urn_within(None).to_string();
    let program = |receiver: &str| {
        [provider("p"), thing("a").by("p"), remote("c").of("ask", "a").with("receiver", of(receiver).as_str())]
    };
    world.up(&Snapshot::default(), &program("a")).go().await.expect(Outcome::Succeeded);
    assert_eq!(world.called()[0].0, "p");
    let ended = world.up(&Snapshot::default(), &program("stranger")).preview().go().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("is not a resource of this run"), "{:?}", ended.errors);
}

#[tokio::test]
async fn row_52_a_method_of_a_provider_is_its_own_though_it_does_not_exist_yet() {
    let world = World::default();
    let of = |receiver: &Urn| remote("c").with("ask", "a").with("receiver", receiver.to_string().as_str());
    let urn = Urn::new(STACK, PROJECT, None, "pulumi:providers:cloud", "p");
    let program = [provider("p"), of(&urn).of("receiverId", "p")];
    world.up(&Snapshot::default(), &program).preview().go().await.expect(Outcome::Succeeded);
    world.up(&Snapshot::default(), &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(world.called().iter().map(|(by, _)| by.as_str()).collect::<Vec<_>>(), ["p", "p"]);
    let ended = world.up(&Snapshot::default(), &[provider("p"), of(&urn)]).preview().go().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("is of a provider, and __self__ is none"), "{:?}", ended.errors);
}

#[tokio::test]
async fn nothing_is_deleted_of_what_is_in_a_component_that_could_not_be_made() {
    let program = |v: &str| [thing("a").with("v", v), remote("c").after("a"), thing("b")];
    let (world, mut state) = standing(&program("1")).await;
    // The child is from a version of the plugin that created more children.
    let child = state.resources.iter().find(|state| state.urn.name() == "c-child").unwrap();
    let (urn, id) = (child.urn.to_string().replace("c-child", "c-late"), "c-late-1");
    let late = ResourceState { urn: urn.parse().unwrap(), id: ResourceId::new(id), ..(**child).clone() };
    state.resources.push(Arc::new(late));
    for (call, v) in [("construct c", "1"), ("update a-1", "2")] {
        world.add(id);
        world.when(call, Goes::Wrong);
        let ended = world.up(&state, &program(v)[..2]).going_on().go().await.expect(Outcome::Failed);
        assert_eq!(ended.entries(), ["a-1", "c", "c-child-1", "c-late-1"], "{call}");
        world.mend();
        world.add("b-1");
    }
    // The construction fails after it has registered the component and a child.
    world.add(id);
    let stranger = thing("stranger").urn_within(None).to_string();
    let failing = remote("c").after("a").of("ask", "a").with("receiver", stranger.as_str());
    let ended = world.up(&state, &[thing("a").with("v", "1"), failing]).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1", "c", "c-child-1", "c-late-1"]);
}

#[tokio::test]
async fn what_is_read_within_a_component_of_another_name_gives_up_what_was_managed_under_the_old_one() {
    let (world, state) = standing(&[group("g"), thing("g-a").within("g")]).await;
    let ended = world.up(&state, &[group("h").was("g"), get("h-a", "g-a-1").within("h")]).go().await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert!(entry(&ended.state, "h-a").external && ended.entries().len() == 2);
}
