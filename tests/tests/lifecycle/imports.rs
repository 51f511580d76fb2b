//! Resources taken into the state without a program.

use provisioner::deployment::{ImportGoal, ImportProvider};
use provisioner::events::Outcome;
use provisioner::state::Snapshot;
use pulumi_proto::urn::{TypeToken, Urn};

use crate::program::{PROJECT, STACK, thing};
use crate::run::entry;
use crate::standing;
use crate::world::{Goes, World};

const TYPE: &str = "cloud:index:Thing";

fn import(name: &str, id: &str) -> ImportGoal {
    ImportGoal {
        type_token: TypeToken::new(TYPE),
        name: name.to_owned(),
        id: id.to_owned(),
        parent: None,
        provider: ImportProvider::Default(String::new()),
        protect: false,
        source: None,
    }
}

/// Below another import.
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
async fn resources_that_are_each_others_parents_are_refused() {
    let mut first = below("b", "a", "a-7");
    let a = Urn::new(STACK, PROJECT, first.parent.as_ref(), TYPE, "a");
    first.parent = Some(Urn::new(STACK, PROJECT, Some(&a), TYPE, "b"));
    let mut second = import("b", "b-7");
    second.parent = Some(Urn::new(STACK, PROJECT, first.parent.as_ref(), TYPE, "a"));
    let ended = World::default().import(&Snapshot::default(), &[first, second]).go().await;
    assert_eq!(ended.expect(Outcome::Failed).entries(), [""; 0]);
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
    let stop = run.signals().stop;
    let stopping = async {
        hold.reached().await;
        stop.cancel();
        hold.release();
    };
    let (ended, ()) = tokio::join!(run.go(), stopping);
    assert_eq!(ended.expect(Outcome::Canceled).entries(), ["a-7"]);
}
