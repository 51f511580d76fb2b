//! Tests of concurrent registrations, steps and replacements.

use engine::RegistrationResult;
use engine::events::Outcome;
use state::Snapshot;

use crate::program::{group, provider, thing};
use crate::run::{entries, entry};
use crate::standing;
use crate::world::{Goes, World, calm};

#[tokio::test]
async fn independent_resources_are_made_at_the_same_time() {
    let world = World::default();
    let (a, b) = (world.hold("create a"), world.hold("create b"));
    let run = world.up(&Snapshot::default(), &[thing("a"), thing("b")]).go();
    let (ended, ()) = tokio::join!(run, async {
        a.reached().await;
        b.reached().await;
        b.release();
        a.release();
    });
    assert_eq!(ended.expect(Outcome::Succeeded).entries(), ["b-1", "a-1"]);
}

#[tokio::test]
async fn no_more_are_worked_on_than_allowed() {
    let world = World::default();
    let holds = ["a", "b", "c"].map(|name| world.hold(&format!("create {name}")));
    let run = world.up(&Snapshot::default(), &[thing("a"), thing("b"), thing("c")]).parallel(2).go();
    let (ended, ()) = tokio::join!(run, async {
        holds[0].reached().await;
        holds[1].reached().await;
        calm().await;
        assert!(!holds[2].is_reached());
        holds.iter().for_each(|hold| hold.release());
    });
    ended.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn two_roots_that_are_deleted_first_go_at_once() {
    let program = |d: &str| {
        ["a", "b"]
            .map(|name| thing(name).with("d", d))
            .into_iter()
            .chain([thing("x").of("k", "a"), thing("y").of("k", "b")])
    };
    let (world, state) = standing(&program("1").collect::<Vec<_>>()).await;
    let ended = world.up(&state, &program("2").collect::<Vec<_>>()).go().await.expect(Outcome::Succeeded);
    let changes = ended.changes();
    let at =
        |call: &str| changes.iter().position(|other| other == call).unwrap_or_else(|| panic!("{call}: {changes:?}"));
    assert!(at("delete x-1") < at("delete a-1") && at("delete a-1") < at("create a"));
    assert!(at("delete y-1") < at("delete b-1") && at("delete b-1") < at("create b"));
    assert_eq!(changes.len(), 8);
}

#[tokio::test]
async fn what_hangs_on_two_roots_is_deleted_once_and_before_both() {
    let program = |d: &str| [thing("a").with("d", d), thing("b").with("d", d), thing("c").of("k1", "a").of("k2", "b")];
    let (world, state) = standing(&program("1")).await;
    let held = world.hold("delete c-1");
    let ended = world.up(&state, &program("2")).held_up_at(held).await;
    let changes = ended.expect(Outcome::Succeeded).changes();
    assert_eq!(changes[0], "delete c-1");
    assert_eq!(changes.iter().filter(|change| *change == "delete c-1").count(), 1);
    assert_eq!(changes.last().unwrap(), "create c");
}

#[tokio::test]
async fn a_root_stays_where_what_another_one_was_to_delete_stays() {
    let program = |d: &str| [thing("a").with("d", d), thing("b").with("d", d), thing("c").of("k1", "a").of("k2", "b")];
    let (world, state) = standing(&program("1")).await;
    world.when("delete c-1", Goes::Wrong);
    let ended = world.up(&state, &program("2")).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["delete c-1"]);
    assert_eq!(ended.result("c"), RegistrationResult::Skipped);
    world.mend();
    let ended = world.up(&ended.state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 6);
}

#[tokio::test]
async fn a_root_that_another_one_takes_down_while_it_waits_is_only_made_again() {
    let program = |d: &str| [thing("a").with("d", d), thing("b").with("d", d).of("k", "a")];
    let (world, state) = standing(&program("1")).await;
    // The program has dropped the reference, so both are registered at once.
    let ended = world.up(&state, &[thing("a").with("d", "2"), thing("b").with("d", "2")]).go().await;
    let changes = ended.expect(Outcome::Succeeded).changes();
    assert_eq!(changes.iter().filter(|change| *change == "delete b-1").count(), 1);
}

#[tokio::test]
async fn what_is_registered_while_it_is_being_deleted_waits_for_its_end() {
    let (world, state) = standing(&[thing("a").with("d", "1"), thing("b").of("k", "a")]).await;
    let held = world.hold("delete b-1");
    let program = [thing("a").with("d", "2"), thing("late"), thing("b").with("k", "a-1").after("late")];
    let run = world.up(&state, &program).go();
    let (ended, ()) = tokio::join!(run, async {
        held.reached().await;
        calm().await;
        assert_eq!((world.count("check b"), world.count("create b")), (2, 1), "b waits");
        held.release();
    });
    assert_eq!(ended.expect(Outcome::Succeeded).changes().len(), 5);
}

#[tokio::test]
async fn a_new_name_does_not_hide_that_the_old_one_is_being_deleted() {
    let (world, state) = standing(&[thing("a").with("d", "1"), thing("b").of("k", "a")]).await;
    let held = world.hold("delete b-1");
    let program = [thing("a").with("d", "2"), thing("late"), thing("c").was("b").with("k", "a-1").after("late")];
    let run = world.up(&state, &program).go();
    let (ended, ()) = tokio::join!(run, async {
        held.reached().await;
        calm().await;
        assert_eq!((world.count("check c"), world.count("create c")), (1, 0), "c waits");
        held.release();
    });
    let mut entries = ended.expect(Outcome::Succeeded).entries();
    entries.sort();
    assert_eq!(entries, ["a-2", "c-1", "late-1"]);
}

#[tokio::test]
async fn who_left_under_a_new_name_is_not_deleted_with_the_root() {
    let (world, state) = standing(&[thing("a").with("d", "1"), thing("b").of("k", "a")]).await;
    // `b` becomes `c`, depends on nothing, and is done before the root is replaced.
    let program = [thing("c").was("b").with("k", "a-1"), thing("a").with("d", "2").after("c")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "create a"]);
    assert_eq!(ended.entries(), ["b-1", "a-2"]);
}

#[tokio::test]
async fn who_left_and_is_being_updated_is_not_deleted_with_the_root() {
    let (world, state) = standing(&[thing("a").with("d", "1"), thing("b").of("v", "a")]).await;
    let held = world.hold("update b-1");
    let ended = world.up(&state, &[thing("b").with("v", "free"), thing("a").with("d", "2")]).held_up_at(held).await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!(ended.called("delete b-1"), 0);
    assert_eq!(ended.called("update b-1"), 1);
}

#[tokio::test]
async fn registrations_that_come_while_a_root_waits_for_its_turn_are_answered() {
    let (world, state) = standing(&[thing("slow"), thing("a").with("d", "1")]).await;
    let held = world.hold("check slow");
    let program = [thing("slow"), thing("a").with("d", "2"), thing("b"), thing("c").after("b")];
    let ended = world.up(&state, &program).held_up_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).answers.len(), 4);
}

#[tokio::test]
async fn even_one_at_a_time_a_root_gets_its_turn() {
    let program = |d: &str| [thing("a").with("d", d), thing("b").of("k", "a"), thing("c").with("d", d)];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).parallel(1).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 6);
}

#[tokio::test]
async fn what_is_under_way_when_another_one_fails_is_recorded() {
    let world = World::default();
    world.when("create bad", Goes::Wrong);
    let held = world.hold("create slow");
    let program = [thing("slow"), thing("bad"), thing("never").after("slow")];
    let ended = world.up(&Snapshot::default(), &program).held_up_at(held).await;
    let ended = ended.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["slow-1"]);
    assert_eq!(ended.called("check never"), 0);
}

#[tokio::test]
async fn nothing_more_is_asked_for_a_registration_once_another_one_failed() {
    let (world, state) = standing(&[thing("a")]).await;
    world.when("create bad", Goes::Wrong);
    let held = world.hold("check a");
    let ended = world.up(&state, &[thing("a"), thing("bad")]).held_up_at(held).await;
    assert_eq!(ended.expect(Outcome::Failed).called("diff a"), 0);
}

#[tokio::test]
async fn two_resources_are_renamed_at_once_beneath_one_that_depends_on_both() {
    let (world, state) = standing(&[thing("a"), thing("b"), thing("x").of("v1", "a").of("v2", "b")]).await;
    let held = world.hold("diff a2");
    let program = [thing("a2").was("a"), thing("b2").was("b"), thing("x").of("v1", "a2").of("v2", "b2")];
    let ended = world.up(&state, &program).held_up_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).changes(), [""; 0]);
}

#[tokio::test]
async fn a_renamed_resource_leaves_no_second_entry_while_what_it_referred_to_is_renamed() {
    let (world, state) = standing(&[thing("b"), thing("a").after("b")]).await;
    let held = world.hold("diff b2");
    let ended = world.up(&state, &[thing("b2").was("b"), thing("a2").was("a")]).held_up_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).entries(), ["a-1", "b-1"]);
}

#[tokio::test]
async fn an_old_one_that_awaits_deletion_follows_the_new_name_of_what_it_refers_to() {
    let (world, state) = standing(&[thing("a"), thing("b").with("k", "1").after("a")]).await;
    let held = world.hold("create b");
    let ended = world.up(&state, &[thing("a2").was("a"), thing("b").with("k", "2")]).held_up_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).changes(), ["create b", "delete b-1"]);
}

#[tokio::test]
async fn outputs_of_a_component_do_not_undo_a_new_name() {
    let (world, state) = standing(&[group("g"), thing("a").within("g"), thing("b").after("a")]).await;
    let program =
        [group("h").was("g").says(crate::world::map(&[("o", "1")])), thing("a").within("h"), thing("b").after("a")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(entry(&ended.state, "h").outputs, crate::world::map(&[("o", "1")]).into());
}

#[tokio::test]
async fn a_user_that_leaves_a_provider_while_it_is_replaced_is_deleted_by_the_old_one() {
    let program = |d: &str| [provider("p").with("d", d), provider("q"), thing("a").by("p")];
    let (world, state) = standing(&program("1")).await;
    let held = world.hold("create a");
    let moved =
        [provider("q"), thing("a").by("q").with("k", "new"), thing("late"), provider("p").with("d", "2").after("late")];
    let ended = world.up(&state, &moved).held_up_at(held).await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!(ended.called("delete a-1"), 1);
    assert!(!world.existing().contains("a-1"));
    assert!(entries(&ended.state).iter().all(|entry| !entry.contains('(')), "{:?}", ended.entries());
}

#[tokio::test]
async fn many_independent_chains_of_replacements_end() {
    let program = |d: &str| {
        let mut things = Vec::new();
        for chain in 0..12 {
            things.push(thing(&format!("root{chain}")).with("d", d));
            for link in 0..4 {
                let below = if link == 0 { format!("root{chain}") } else { format!("t{chain}-{}", link - 1) };
                things.push(thing(&format!("t{chain}-{link}")).of(if link % 2 == 0 { "k" } else { "v" }, &below));
            }
        }
        things
    };
    let (world, state) = standing(&program("1")).await;
    world.be_restless();
    world.up(&state, &program("2")).parallel(3).go().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn nothing_is_deleted_while_what_hung_on_it_is_being_deleted_by_another_chain() {
    let program = |d: &str| [thing("a").with("d", d), thing("x").of("k", "a"), thing("b").with("d", d).after("a")];
    let (world, state) = standing(&program("1")).await;
    let (x, b) = (world.hold("delete x-1"), world.hold("delete b-1"));
    // `b` no longer depends on `a`, and is itself replaced while the dependents of `a` are being deleted.
    let run =
        world.up(&state, &[thing("a").with("d", "2"), thing("late"), thing("b").with("d", "2").after("late")]).go();
    let (ended, ()) = tokio::join!(run, async {
        x.reached().await;
        b.reached().await;
        x.release();
        calm().await;
        assert_eq!(world.count("delete a-1"), 0);
        b.release();
    });
    ended.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn what_hangs_on_something_that_is_being_deleted_is_deleted_after_it() {
    let first = [
        thing("a").with("d", "1"),
        thing("b").with("v", "1").replace_with("a"),
        thing("c").of("k", "b").with("d", "1"),
    ];
    let (world, state) = standing(&first).await;
    let b = world.hold("delete b-1");
    // The replacement of `a` deletes `b`; `c` no longer depends on `b`, and is itself replaced in the meantime.
    let then =
        [thing("a").with("d", "2"), thing("b").of("v", "a"), thing("late"), thing("c").with("d", "2").after("late")];
    let (ended, ()) = tokio::join!(world.up(&state, &then).go(), async {
        b.reached().await;
        calm().await;
        assert_eq!(world.count("delete c-1"), 0);
        b.release();
    });
    ended.expect(Outcome::Succeeded);
    assert_eq!(world.count("delete c-1"), 1);
}
