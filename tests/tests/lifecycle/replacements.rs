//! Tests of replacements in both orders, of replacement partners, and of failures during replacements.

use std::sync::Arc;

use engine::events::Outcome;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use state::Snapshot;

use crate::program::{get, group, provider, thing};
use crate::run::entry;
use crate::standing;
use crate::world::{Goes, World, calm};

#[tokio::test]
async fn a_new_one_comes_first_and_the_old_one_goes_at_the_end() {
    let program = |k: &str| [thing("a").with("k", k), thing("b").of("v", "a")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "update b-1", "delete a-1"]);
}

#[tokio::test]
async fn old_copies_of_several_runs_go_together() {
    let program = |k: &str| [thing("a").with("k", k)];
    let (world, state) = standing(&program("1")).await;
    world.when("delete a-1", Goes::Wrong).when("delete a-2", Goes::Wrong);
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    let ended = world.up(&ended.state, &program("3")).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-3", "a-2 (delete)", "a-1 (delete)"]);
    world.mend();
    let ended = world.up(&ended.state, &program("3")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 2);
}

#[tokio::test]
async fn an_old_copy_goes_after_what_was_made_with_it() {
    let program = |k: &str| [thing("a").with("k", k), thing("b").of("k", "a")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "create b", "delete b-1", "delete a-1"]);
}

#[tokio::test]
async fn a_replaced_and_renamed_resource_is_deleted_after_what_hung_on_it() {
    let (world, state) = standing(&[thing("a").with("k", "1"), thing("b").of("v", "a")]).await;
    let ended = world.up(&state, &[thing("c").was("a").with("k", "2")]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create c", "delete b-1", "delete a-1"]);
}

#[tokio::test]
async fn a_failed_delete_before_a_replacement_leaves_everything_as_it_was() {
    let program = |d: &str| [thing("a").with("d", d), thing("b").of("k", "a")];
    let (world, state) = standing(&program("1")).await;
    world.when("delete b-1", Goes::Wrong);
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
}

#[tokio::test]
async fn what_a_broken_replacement_could_not_delete_is_not_deleted_twice_in_one_run() {
    let (world, state) = standing(&[thing("a").with("d", "1"), thing("b").of("k", "a")]).await;
    world.when("delete b-1", Goes::Wrong);
    let ended = world.up(&state, &[thing("a").with("d", "2")]).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["delete b-1"]);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
}

#[tokio::test]
async fn a_replacement_that_is_owed_is_made_without_another_delete() {
    let program = |d: &str| [thing("a").with("d", d), thing("b").of("k", "a")];
    let (world, state) = standing(&program("1")).await;
    world.when("create a", Goes::Wrong);
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1 (owed)", "b-1 (owed)"]);
    world.mend();
    let ended = world.up(&ended.state, &program("1")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "create b"]);
}

#[tokio::test]
async fn a_replacement_that_is_owed_and_no_longer_wanted_is_forgotten() {
    let (world, state) = standing(&[thing("a").with("d", "1"), thing("b").of("k", "a")]).await;
    world.when("create a", Goes::Wrong);
    let program = [thing("a").with("d", "2"), thing("b").of("k", "a")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Failed);
    world.mend();
    let ended = world.up(&ended.state, &[]).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.entries().len()), (0, 0));
}

#[tokio::test]
async fn a_new_one_that_does_not_come_up_is_recorded_and_updated_by_the_next_run() {
    let program = |k: &str| [thing("a").with("k", k)];
    let (world, state) = standing(&program("1")).await;
    world.when("create a", Goes::HalfWell);
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    assert_eq!((ended.entries().join(", "), ended.half_done.len()), ("a-2, a-1 (delete)".to_owned(), 1));
    world.mend();
    let ended = world.up(&ended.state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-2", "delete a-1"]);
}

#[tokio::test]
async fn a_new_one_that_does_not_come_up_and_has_no_id_is_not_recorded() {
    let program = |k: &str| [thing("a").with("k", k)];
    let (world, state) = standing(&program("1")).await;
    world.when("create a", Goes::Gone);
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.half_done), (vec!["a-1".to_owned()], Vec::new()));
    world.mend();
    let ended = world.up(&ended.state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "delete a-1"]);
}

#[tokio::test]
async fn a_failed_update_keeps_the_old_inputs_and_is_tried_again() {
    let (world, state) = standing(&[thing("a").with("v", "1")]).await;
    world.when("update a-1", Goes::HalfWell);
    let ended = world.up(&state, &[thing("a").with("v", "2")]).go().await.expect(Outcome::Failed);
    let a = entry(&ended.state, "a");
    assert_eq!((a.inputs["v"].as_str(), a.outputs["v"].as_str()), (Some("1"), Some("2")));
    world.mend();
    let ended = world.up(&ended.state, &[thing("a").with("v", "1")]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1"]);
}

#[tokio::test]
async fn partners_are_replaced_together() {
    let program = |k: &str| [thing("a").with("k", k), thing("b").after("a").replace_with("a")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 4);
    assert_eq!(ended.called("diff b"), 0);
}

#[tokio::test]
async fn a_protected_dependent_stops_a_replacement_that_would_take_it_down() {
    let (world, state) = standing(&[thing("a").with("d", "1"), thing("b").of("k", "a").protected()]).await;
    let program = [thing("a").with("d", "2"), thing("b").of("k", "a").protected()];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn a_new_name_of_the_parent_is_a_new_name_of_all_beneath_it() {
    let (world, state) =
        standing(&[group("g"), group("h").within("g"), thing("a").within("h"), thing("b").of("v", "a")]).await;
    // The grandchild is not registered yet when its dependent still refers to its former URN.
    let program = [group("g2").was("g"), group("h").within("g2"), thing("a").within("h"), thing("b").of("v", "a")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.entries(), ["g2", "h", "a-1", "b-1"]);
}

#[tokio::test]
async fn what_hangs_on_a_child_goes_down_with_it_though_the_parent_gave_it_a_new_name() {
    let program = |parent, d: &str| [parent, thing("a").within("g").with("d", d), thing("b").of("k", "a")];
    let (world, state) = standing(&program(group("g"), "1")).await;
    let parent = group("g").of_type("OtherThing").was_all("g", "Thing", None);
    let ended = world.up(&state, &program(parent, "2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1", "create a", "create b"]);
}

#[tokio::test]
async fn what_goes_with_a_child_needs_no_call_though_the_parent_gave_it_a_new_name() {
    let program = |parent, d: &str| {
        let with_it = thing("b").after("a").deleted_with("a");
        [parent, thing("a").within("g").with("d", d), with_it]
    };
    let (world, state) = standing(&program(group("g"), "1")).await;
    let parent = group("g").of_type("OtherThing").was_all("g", "Thing", None);
    let ended = world.up(&state, &program(parent, "2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "create a", "create b"]);
}

#[tokio::test]
async fn a_child_waits_for_the_end_of_what_needed_it_though_the_parent_gave_it_a_new_name() {
    let (world, state) =
        standing(&[group("g"), thing("a").within("g").with("d", "1"), thing("b").of("v", "a").with("d", "1")]).await;
    let parent = group("g").of_type("OtherThing").was_all("g", "Thing", None).after("slow");
    let program = [thing("slow"), parent, thing("a").within("g").with("d", "2"), thing("b").with("d", "2")];
    let (before, going) = (world.hold("create slow"), world.hold("delete b-1"));
    let run = tokio::spawn(world.up(&state, &program).go());
    going.reached().await;
    before.release();
    calm().await;
    assert_eq!(world.count("delete a-1"), 0, "b is on its way out and still needs it");
    going.release();
    run.await.expect("it does not panic").expect(Outcome::Succeeded);
}

#[tokio::test]
async fn an_import_that_finds_nothing_fails_alone_where_the_run_goes_on() {
    let world = World::default();
    world.when("read nothing", Goes::Gone);
    let import = |name: &str, id: &'static str| thing(name).but(move |goal| goal.import_id = ResourceId::new(id));
    world.add("there");
    let program = [import("a", "nothing"), import("b", "there"), thing("c").after("a")];
    let ended = world.up(&Snapshot::default(), &program).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["there"]);
}

#[tokio::test]
async fn an_import_takes_the_place_of_what_was_managed() {
    let (world, state) = standing(&[thing("a"), thing("b").of("v", "a")]).await;
    world.add("there");
    let program = [thing("a").but(|goal| goal.import_id = ResourceId::new("there")), thing("b").of("v", "a")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update b-1", "delete a-1"]);
    assert_eq!(entry(&ended.state, "a").import_id, ResourceId::new("there"));
}

#[tokio::test]
async fn an_import_takes_the_place_of_what_a_replacement_took_down() {
    let program = |d: &str, import: &'static str| {
        let imported = thing("a").with("v", "1").by("p").but(move |goal| goal.import_id = ResourceId::new(import));
        [provider("p").with("d", d), imported]
    };
    let (world, state) = standing(&program("1", "")).await;
    world.add("there");
    let ended = world.up(&state, &program("2", "there")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "update there"]);
    assert_eq!(ended.entries(), ["p", "there"]);
}

#[tokio::test]
async fn what_is_only_read_now_is_deleted_if_it_is_another_one_and_let_go_if_it_is_the_same() {
    let (world, state) = standing(&[thing("a"), thing("b")]).await;
    world.add("theirs");
    let ended = world.up(&state, &[get("a", "theirs"), get("b", "b-1")]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1"]);
}

#[tokio::test]
async fn row_05_both_checks_of_a_replacement_have_one_seed_and_no_other_resource_has_it() {
    let program = |k: &str| [thing("a").with("k", k), thing("b")];
    let (world, state) = standing(&program("1")).await;
    let before = world.checked().len();
    world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    let checked = world.checked();
    let seeds = |name: &str| {
        let checks = checked[before..].iter().filter(|check| check.urn.name() == name);
        checks.map(|check| check.random_seed).collect::<Vec<_>>()
    };
    let (of_a, of_b) = (seeds("a"), seeds("b"));
    assert_eq!((of_a.len(), of_b.len()), (2, 1));
    assert_eq!(of_a[0], of_a[1]);
    assert_ne!(of_a[0], of_b[0]);
    assert_ne!(of_a[0], checked[0].random_seed, "nor has another run");
}

#[tokio::test]
async fn what_went_down_does_not_come_back_in_a_circle_with_what_is_out_of_scope() {
    let (world, state) = standing(&[thing("a").with("d", "1"), thing("b").of("k", "a"), thing("c").of("v", "b")]).await;
    let program = [thing("a").with("d", "2"), thing("c").after("a"), thing("b").of("v", "c")];
    let ended = world.up(&state, &program).target("a").go().await.expect(Outcome::Failed);
    let circle = "b depends on c, which is out of scope and still depends on b";
    assert!(ended.errors[0].contains(circle), "{:?}", ended.errors);
    assert_eq!(ended.entries(), ["a-2", "b-1 (owed)", "c-1"]);
    let ended = world.up(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["a-2", "c-1", "b-2"]);
}

#[tokio::test]
async fn a_circle_is_refused_whatever_what_is_out_of_scope_is_called_by_now() {
    let (world, state) = standing(&[
        thing("c").with("v", "1"),
        thing("b").within("c").with("k", "1"),
        group("a").within("b").deleted_with("c"),
    ])
    .await;
    let was = |name: &str| entry(&state, name).urn.clone();
    // The program refers to `a` by its old URN; `a` gets another one with its parent.
    let program = [
        group("a").was_urn(was("a")),
        thing("b").was_urn(was("b")).with("k", "2"),
        thing("c").with("v", "2").after("a").after("b"),
    ];
    let ended = world.up(&state, &program).exclude("a").go().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("depends on a, which is out of scope and still depends on"), "{:?}", ended.errors);
}

#[tokio::test]
async fn what_got_the_name_of_another_one_that_was_recorded_gives_it_back() {
    let (world, state) = standing(&[group("g"), thing("a"), thing("c").within("a"), thing("h").within("g")]).await;
    let with_both = [group("g"), thing("a"), thing("h").within("g"), thing("c").within("h")];
    world.when("delete c-1", Goes::Wrong);
    let state = world.up(&state, &with_both).go().await.expect(Outcome::Failed).state;
    world.mend();
    let was = |name: &str| entry(&state, name).urn.clone();
    let program = [
        group("g2").of_type("OtherThing"),
        thing("a").within("g2").was_urn(was("a")),
        thing("h").was_urn(was("h")).after("a"),
        thing("c").within("h"),
    ];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["g2", "a-1", "h-1", "c-1"]);
}

#[tokio::test]
async fn what_was_renamed_is_referred_to_by_its_new_name_though_a_copy_of_it_keeps_the_old_one() {
    let (world, state) = standing(&[thing("a"), thing("b"), thing("c").with("k", "1")]).await;
    world.when("delete c-1", Goes::Wrong);
    let within = thing("c").with("k", "2").within("b").was_urn(entry(&state, "c").urn.clone());
    let state = world.up(&state, &[thing("a"), thing("b"), within]).go().await.expect(Outcome::Failed).state;
    world.mend();
    let (b, c) = (entry(&state, "b").urn.clone(), entry(&state, "c").urn.clone());
    // `c` is out of scope, and gets another URN once its parent has one.
    let program =
        [thing("a"), thing("c").was_urn(c), thing("b").within("a").was_urn(b), thing("h").after("b").after("c")];
    let ended =
        world.up(&state, &program).target("a").with_dependents().parallel(1).go().await.expect(Outcome::Succeeded);
    let h = entry(&ended.state, "h");
    let live = ended.state.resources.iter().find(|state| state.urn.name() == "c" && !state.delete).unwrap();
    assert!(h.dependencies.contains(&live.urn), "{:?}", h.dependencies);
}

#[tokio::test]
async fn secrets_of_what_is_asked_whether_it_would_go_along_are_told_before_its_provider_can_repeat_them() {
    let (world, mut state) = standing(&[thing("a").with("d", "1"), thing("b").of("k", "a")]).await;
    let recorded = state.resources.iter_mut().find(|state| state.urn.name() == "b").unwrap();
    let inputs = Arc::make_mut(&mut Arc::make_mut(recorded).inputs);
    inputs.insert("token".to_owned(), PropertyValue::secret("hush".into()));
    // No other event announces the secrets of a resource that left the program.
    let ended = world.up(&state, &[thing("a").with("d", "2")]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.told_secrets, ["token"]);
}
