//! Tests of imports without a program.

use std::sync::Arc;

use bridge::provider::{Alias, AliasParent};
use engine::events::Outcome;
use engine::{ImportGoal, ImportProvider};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{TypeToken, Urn};
use state::Snapshot;

use crate::program::{PROJECT, STACK, get, thing};
use crate::run::entry;
use crate::standing;
use crate::stopping::stopped_at;
use crate::world::{FRESH, Goes, World, map};

const TYPE: &str = "cloud:index:Thing";

fn import(name: &str, id: &str) -> ImportGoal {
    ImportGoal {
        type_token: TypeToken::new(TYPE),
        name: name.to_owned(),
        id: ResourceId::new(id).expect("an import has an id"),
        parent: None,
        provider: ImportProvider::Default(None),
        protect: false,
        aliases: Vec::new(),
        inputs: Arc::default(),
        additional_secret_outputs: Vec::new(),
        source: None,
    }
}

/// Returns the import of a child of another import.
fn below(parent: &str, name: &str, id: &str) -> ImportGoal {
    let root = Urn::root_stack(STACK, PROJECT);
    ImportGoal { parent: Some(Urn::new(STACK, PROJECT, Some(&root), TYPE, parent)), ..import(name, id) }
}

fn world_with(ids: &[&str]) -> World {
    let world = World::default();
    ids.iter().for_each(|id| world.add(id));
    world
}

#[tokio::test]
async fn a_parent_is_imported_before_its_child_in_whatever_order_they_are_named() {
    let world = world_with(&["p-7", "c-7"]);
    let goals = [below("p", "c", "c-7"), import("p", "p-7")];
    let ended = world.import(&Snapshot::default(), &goals).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["p-7", "c-7"]);
    assert_eq!(entry(&ended.state, "c").parent.as_ref().unwrap().name(), "p");
}

#[tokio::test]
async fn who_is_below_what_could_not_be_imported_is_not_asked_for_and_the_others_are_recorded() {
    let world = world_with(&["a-7", "c-7"]);
    let goals = [import("p", "p-7"), below("p", "c", "c-7"), import("a", "a-7")];
    world.when("read p-7", Goes::Gone);
    let ended = world.import(&Snapshot::default(), &goals).go().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.called("read c-7")), (vec!["a-7".to_owned()], 0));
}

#[tokio::test]
async fn one_resource_cannot_be_two() {
    let world = world_with(&["a-7", "a-8"]);
    let goals = [import("a", "a-7"), import("a", "a-8")];
    let ended = world.import(&Snapshot::default(), &goals).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-7"]);
    assert!(ended.errors[0].contains("named twice"), "{:?}", ended.errors);
}

#[tokio::test]
async fn what_is_recorded_under_its_old_name_is_not_imported_beside_it() {
    let (world, state) = standing(&[thing("old")]).await;
    let was = Alias::Spec {
        name: Some("old".to_owned()),
        type_token: None,
        stack: None,
        project: None,
        parent: AliasParent::None,
    };
    let goal = ImportGoal { aliases: vec![was], ..import("new", "old-1") };
    let ended = world.import(&state, &[goal]).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["old-1"]);
}

#[tokio::test]
async fn what_is_secret_in_the_program_is_secret_in_what_was_read() {
    let world = world_with(&["a-7"]);
    world.drift("a-7", map(&[("v", "hush"), ("w", "seen")]));
    let known = [("v".to_owned(), PropertyValue::secret("x".into()))].into_iter().collect();
    let goal = ImportGoal { inputs: Arc::new(known), ..import("a", "a-7") };
    let ended = world.import(&Snapshot::default(), &[goal]).go().await.expect(Outcome::Succeeded);
    let state = entry(&ended.state, "a");
    assert_eq!((state.inputs["v"].is_secret(), state.inputs["w"].is_secret()), (true, false));
    assert!(state.outputs["v"].is_secret());
}

#[tokio::test]
async fn a_parent_that_nobody_knows_is_told() {
    let goals = [below("nobody", "c", "c-7")];
    let ended = world_with(&["c-7"]).import(&Snapshot::default(), &goals).go().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("is not recorded"), "{:?}", ended.errors);
}

#[tokio::test]
async fn what_is_recorded_stays_as_it_is_and_what_awaits_deletion_still_does() {
    let (world, state) = standing(&[thing("a").with("k", "1")]).await;
    world.when("delete a-1", Goes::Wrong);
    let ended = world.up(&state, &[thing("a").with("k", "2")]).go().await.expect(Outcome::Failed);
    world.mend();
    world.add("b-7");
    let ended = world.import(&ended.state, &[import("b", "b-7")]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0], "nothing in the cloud is touched");
    let mut entries = ended.entries();
    entries.sort();
    assert_eq!(entries, ["a-1 (delete)", "a-2", "b-7"]);
}

#[tokio::test]
async fn an_import_under_way_when_the_user_stops_is_recorded_and_no_other_follows() {
    let world = world_with(&["a-7", "b-7"]);
    let hold = world.hold("read a-7");
    let run = world.import(&Snapshot::default(), &[import("a", "a-7"), import("b", "b-7")]).parallel(1);
    let ended = stopped_at(run, hold).await;
    assert_eq!(ended.expect(Outcome::Canceled).entries(), ["a-7"]);
}

#[tokio::test]
async fn nothing_is_imported_or_read_that_would_close_a_circle_with_what_is_out_of_scope() {
    let (world, state) = standing(&[thing("c"), thing("e").of("v", "c")]).await;
    world.add("there");
    let imported = thing("c").of("v", "e").but(|goal| goal.import_id = ResourceId::new("there"));
    for dependent in [imported, get("c", "there").after("e")] {
        let ended = world.up(&state, &[thing("e"), dependent]).exclude("e").go().await.expect(Outcome::Failed);
        let circle = "c depends on e, which is out of scope and still depends on c";
        assert!(ended.errors[0].contains(circle), "{:?}", ended.errors);
        assert_eq!((ended.called("read there"), ended.entries()), (0, vec!["c-1".to_owned(), "e-1".to_owned()]));
    }
}

#[tokio::test]
async fn what_an_import_supersedes_keeps_the_name_of_its_successor_when_its_parent_gets_another_one() {
    let (world, state) = standing(&[thing("b"), thing("f").within("b"), thing("h").deleted_with("f")]).await;
    let was = entry(&state, "f").urn.clone();
    world.add("there");
    let imported = thing("f").was_urn(was).but(|goal| goal.import_id = ResourceId::new("there"));
    let program = [imported, thing("b2").was("b").after("f"), thing("h").deleted_with("f").after("b2")];
    let ended = world.up(&state, &program).exclude("h").go().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "h").deleted_with.as_ref(), Some(&entry(&ended.state, "f").urn));
    // `h` keeps the former `f` as long as it is out of scope.
    assert_eq!(ended.changes(), [""; 0]);
    assert!(ended.entries().contains(&"f-1 (delete)".to_owned()), "{:?}", ended.entries());
    let ended = world.up(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete f-1"]);
}

#[tokio::test]
async fn nothing_else_is_read_before_an_import() {
    let (world, state) = standing(&[thing("a").with(FRESH, "1")]).await;
    world.add("b-7");
    let ended = world.import(&state, &[import("b", "b-7")]).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("read a-1"), ended.called("read b-7")), (0, 1));
}
