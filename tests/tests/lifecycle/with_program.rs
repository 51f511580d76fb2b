//! Tests of refresh and destroy with the program (engine semantics, sections 5.2 and 5.5): providers and components are
//! updated, resources are read and deleted, but not created or changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::RegistrationResult;
use engine::events::{Outcome, StepOp};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;

use crate::program::{get, group, provider, thing};
use crate::run::entry;
use crate::standing;
use crate::world::{Goes, map};

#[tokio::test]
async fn a_refresh_reads_with_the_provider_as_it_is_configured_now() {
    let program = |v: &str| [provider("p").with("v", v), thing("a").by("p"), thing("b").by("p")];
    let (world, state) = standing(&program("old")).await;
    let ended = world.refresh_with(&state, &program("new")).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("configure p"), ended.called("read a-1"), ended.called("read b-1")), (1, 1, 1));
    assert_eq!(*entry(&ended.state, "p").inputs, map(&[("v", "new")]));
    assert_eq!(entry(&ended.state, "p").id, entry(&state, "p").id);
}

#[tokio::test]
async fn a_refresh_makes_changes_and_deletes_nothing() {
    let (world, state) = standing(&[thing("a").with("v", "1"), thing("gone"), group("g")]).await;
    let program = [thing("a").with("k", "2"), thing("new").of("v", "a"), thing("newer").of("v", "new"), group("h")];
    let ended = world.refresh_with(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    // A resource missing in the program is read with its recorded provider; a component of the program is recorded.
    assert_eq!(
        ended.entries().into_iter().collect::<BTreeSet<_>>(),
        ["a-1", "h", "gone-1", "g"].map(String::from).into()
    );
    assert_eq!(ended.called("read gone-1"), 1);
    assert_eq!([ended.result("new"), ended.result("newer")], [RegistrationResult::Skipped; 2]);
}

#[tokio::test]
async fn the_program_of_a_refresh_sees_what_was_read() {
    let (world, state) = standing(&[thing("a").with("v", "1"), thing("b").of("v", "a")]).await;
    world.drift("a-1", map(&[("v", "9")]));
    let program = [thing("a").with("v", "1"), thing("b").of("v", "a")];
    let ended = world.refresh_with(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(*entry(&ended.state, "a").inputs, map(&[("v", "9")]));
    // The inputs of `b` are recorded unchanged, as a refresh changes no resource.
    assert_eq!(entry(&ended.state, "b").inputs, entry(&state, "b").inputs);
    assert_eq!((ended.counts.get(&StepOp::Update), ended.counts.get(&StepOp::Same)), (Some(&1), Some(&2)));
}

#[tokio::test]
async fn what_a_refresh_finds_gone_leaves_the_state_and_its_references_with_it() {
    let program = [thing("a"), thing("b").of("v", "a"), thing("c").after("b")];
    let (world, state) = standing(&program).await;
    world.when("read b-1", Goes::Gone);
    let ended = world.refresh_with(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["a-1", "c-1"]);
    assert_eq!(entry(&ended.state, "c").dependencies, []);
    assert_eq!(ended.result("b"), RegistrationResult::Skipped);
}

#[tokio::test]
async fn a_provider_to_be_deleted_first_takes_nothing_down_in_a_refresh() {
    let program = |d: &str| [provider("p").with("d", d), thing("a").by("p")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.refresh_with(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    let ended = world.up(&ended.state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries().len(), 2);
}

#[tokio::test]
async fn a_read_that_fails_ends_a_refresh_and_leaves_the_entry() {
    let program = [thing("a"), thing("b").after("a"), thing("c")];
    let (world, state) = standing(&program).await;
    world.when("read a-1", Goes::Wrong);
    let ended = world.refresh_with(&state, &program).parallel(1).go().await.expect(Outcome::Failed);
    assert_eq!(ended.called("read b-1"), 0);
    assert_eq!(ended.entries().len(), 3);
    let ended = world.refresh_with(&state, &program).going_on().go().await.expect(Outcome::Failed);
    assert_eq!((ended.called("read b-1"), ended.called("read c-1")), (0, 1));
    assert_eq!(ended.entries().len(), 3);
}

#[tokio::test]
async fn a_refresh_of_targets_reads_nothing_else() {
    let program = [thing("a"), thing("b"), thing("c").of("v", "b")];
    let (world, state) = standing(&program).await;
    let ended = world.refresh_with(&state, &program).target("b").go().await.expect(Outcome::Succeeded);
    let reads = ["read a-1", "read b-1", "read c-1"].map(|read| ended.called(read));
    assert_eq!(reads, [0, 1, 0]);
    assert_eq!(ended.entries().len(), 3);
}

#[tokio::test]
async fn a_preview_of_a_refresh_reads_and_changes_nothing() {
    let (world, state) = standing(&[thing("a").with("v", "1")]).await;
    world.drift("a-1", map(&[("v", "9")]));
    let ended = world.refresh_with(&state, &[thing("a"), thing("b")]).preview().go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("read a-1"), ended.state), (1, state));
}

#[tokio::test]
async fn an_update_that_reads_with_the_program_goes_on_from_what_it_read() {
    let program = [thing("a").with("v", "1"), thing("b").of("v", "a"), thing("c")];
    let (world, state) = standing(&program).await;
    world.drift("a-1", map(&[("v", "9")]));
    world.when("read c-1", Goes::Gone);
    let ended = world.up(&state, &program).refreshing().with_program().parallel(1).go().await;
    let ended = ended.expect(Outcome::Succeeded);
    let of_a = ended.calls.iter().filter(|call| call.name == "a").map(|call| call.verb);
    assert_eq!(of_a.collect::<Vec<_>>(), ["read", "diff", "check", "diff", "update"]);
    assert_eq!(*entry(&ended.state, "a").inputs, map(&[("v", "1")]));
    assert_eq!(entry(&ended.state, "c").id, ResourceId::new("c-2"));
}

#[tokio::test]
async fn what_an_update_deletes_is_not_read_before() {
    let (world, state) = standing(&[thing("a"), thing("b")]).await;
    let ended = world.up(&state, &[thing("a")]).refreshing().with_program().go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("read b-1"), ended.called("delete b-1")), (0, 1));
}

#[tokio::test]
async fn a_destroy_deletes_with_the_provider_as_it_is_configured_now() {
    let program = |v: &str| [provider("p").with("v", v), thing("a").by("p"), thing("b").by("p").of("v", "a")];
    let (world, state) = standing(&program("old")).await;
    let ended = world.destroy_with(&state, &program("new")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1"]);
    assert_eq!((ended.called("configure p"), ended.called("check a"), ended.called("diff a")), (1, 0, 0));
    assert_eq!(ended.entries(), [""; 0]);
}

#[tokio::test]
async fn a_destroy_makes_nothing_and_takes_what_the_program_brought_with_it() {
    let (world, state) = standing(&[thing("a"), thing("x")]).await;
    world.add("there");
    let program = [
        provider("q"),
        group("g"),
        thing("a").within("g").was_all("a", "Thing", None),
        thing("n").by("q"),
        get("seen", "there"),
    ];
    let ended = world.destroy_with(&state, &program).go().await.expect(Outcome::Succeeded);
    let mut changes = ended.changes();
    changes.sort();
    assert_eq!(changes, ["delete a-1", "delete x-1"]);
    assert_eq!(ended.result("n"), RegistrationResult::Skipped);
    assert_eq!((ended.entries(), world.existing().contains("there")), (vec![], true));
}

#[tokio::test]
async fn a_program_that_gives_up_keeps_a_destroy_from_deleting() {
    let (world, state) = standing(&[thing("a")]).await;
    let ended = world.destroy_with(&state, &[thing("a")]).gives_up().go().await.expect(Outcome::Failed);
    assert_eq!((ended.changes().len(), ended.entries()), (0, vec!["a-1".to_owned()]));
}

#[tokio::test]
async fn a_protected_resource_is_not_destroyed_with_the_program_either() {
    let program = [thing("a").protected(), thing("b")];
    let (world, state) = standing(&program).await;
    let ended = world.destroy_with(&state, &program).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1"]);
}

#[tokio::test]
async fn a_destroy_goes_in_the_recorded_order_whatever_the_program_says_now() {
    let before = [thing("a"), group("g"), thing("b").of("v", "a").within("g")];
    let (world, state) = standing(&before).await;
    let after = [thing("b").was_all("b", "Thing", Some(entry(&state, "g").urn.clone())), thing("a").of("v", "b")];
    let ended = world.destroy_with(&state, &after).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete b-1".to_owned(), "delete a-1".to_owned()], vec![]));
}

#[tokio::test]
async fn a_destroy_ends_though_a_provider_has_a_new_name() {
    let (world, state) = standing(&[provider("p"), thing("a").by("p")]).await;
    let after = [provider("q").was("p"), thing("a").by("q")];
    let ended = world.destroy_with(&state, &after).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete a-1".to_owned()], vec![]));
}

#[tokio::test]
async fn an_update_does_not_read_what_a_replaced_provider_takes_down() {
    let program = |d: &str| [provider("p").with("d", d), thing("a").by("p")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).refreshing().with_program().go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("read a-1"), ended.changes()), (0, vec!["delete a-1".to_owned(), "create a".to_owned()]));
}

#[tokio::test]
async fn a_destroy_deletes_with_the_provider_that_took_the_place_of_the_recorded_one() {
    let program = |k: &str| [provider("p").with("k", k), thing("a").by("p")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.destroy_with(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.called("configure p")), (vec!["delete a-1".to_owned()], 1));
    let instance = |said: &str| ended.calls.iter().find(|call| call.said() == said).unwrap().instance;
    assert_eq!(instance("delete a-1"), instance("configure p"));
}

#[tokio::test]
async fn what_a_dependent_brought_along_comes_after_the_provider_that_takes_it_over() {
    let before = [provider("p"), provider("q"), thing("a").by("p"), thing("b").after("a")];
    let (world, state) = standing(&before).await;
    // `b` is registered, and `a` carried over with it, while the provider that is to delete `a` is still being checked.
    let held = world.hold("checkconfig q");
    let after = [provider("p"), provider("q"), thing("a").by("q"), thing("b")];
    let ended = world.destroy_with(&state, &after).held_up_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).changes(), ["delete b-1", "delete a-1"]);
}

#[tokio::test]
async fn what_a_refresh_reads_does_not_move_into_what_still_hangs_on_it() {
    let (world, state) = standing(&[thing("a"), thing("c").of("v", "a")]).await;
    let was = entry(&state, "a").urn.clone();
    let program = [thing("c").with("v", "1"), thing("a").within("c").was_urn(was.clone())];
    let ended = world.refresh_with(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "a").urn, was);
    let ended = world.up(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "a").parent.as_ref(), Some(&entry(&ended.state, "c").urn));
}

#[tokio::test]
async fn a_refresh_records_what_the_program_says_of_what_it_reads() {
    let before = [thing("b"), thing("a").of("v", "b"), thing("e"), provider("p")];
    let (world, state) = standing(&before).await;
    // `e`, to which `a` is now tied, follows `a` in the loaded list.
    let now = thing("a").of("v", "e").with("w", "1").by("p").deleted_with("e").protected().but(|goal| {
        goal.retain_on_delete = Some(true);
        goal.ignore_changes = vec!["w".to_owned()];
    });
    let program = [thing("e"), provider("p"), now, thing("b").of("v", "a")];
    let ended = world.refresh_with(&state, &program).go().await.expect(Outcome::Succeeded);
    let (was, a) = (entry(&state, "a"), entry(&ended.state, "a"));
    assert_eq!(a.deleted_with.as_ref(), Some(&entry(&ended.state, "e").urn));
    assert_eq!((a.protect, a.retain_on_delete, &a.ignore_changes), (true, true, &vec!["w".to_owned()]));
    assert_eq!(a.provider, entry(&ended.state, "p").as_provider_reference());
    assert_eq!((&a.inputs, &a.dependencies), (&was.inputs, &was.dependencies), "what is there is made of what it was");
    assert_eq!(entry(&ended.state, "b").dependencies, []);
}

#[tokio::test]
async fn a_refresh_records_nothing_but_what_it_read_of_what_is_tied_to_something_that_is_not_there() {
    // A refresh does not create `n`.
    let (world, state) = standing(&[thing("b"), thing("a").of("v", "b")]).await;
    let program = [thing("b"), thing("n"), thing("a").deleted_with("n").protected()];
    let ended = world.refresh_with(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.state, state);
}

#[tokio::test]
async fn what_a_refresh_reads_comes_after_what_it_was_not_to_read() {
    let before = [thing("t"), thing("b").of("v", "t"), thing("c").of("v", "b"), thing("d").of("v", "t")];
    let (world, state) = standing(&before).await;
    let [t, b, c, d] = before;
    // `c` does not depend on the target itself, so it is not read.
    let program = [t, b, c, d.deleted_with("c")];
    let ended = world.refresh_with(&state, &program).target("t").with_dependents().go().await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!((ended.called("read c-1"), ended.called("read d-1")), (0, 1));
    assert_eq!(entry(&ended.state, "d").deleted_with.as_ref(), Some(&entry(&ended.state, "c").urn));
}

#[tokio::test]
async fn what_a_refresh_reads_refers_to_no_copy_of_what_it_found_gone() {
    let b = |k: &str| thing("b").with("k", k);
    let (world, state) = standing(&[b("1"), thing("a")]).await;
    world.when("delete b-1", Goes::Wrong);
    let ended = world.up(&state, &[b("2"), thing("a")]).go().await.expect(Outcome::Failed);
    assert!(ended.entries().contains(&"b-1 (delete)".to_owned()), "{:?}", ended.entries());
    world.mend();
    world.vanish("b-2");
    let program = [b("2"), thing("a").deleted_with("b")];
    let ended = world.refresh_with(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "a").deleted_with, None);
}

#[tokio::test]
async fn what_a_refresh_leaves_under_its_old_name_may_have_children() {
    let (world, state) = standing(&[thing("a"), thing("c").within("a")]).await;
    // `n` is not created, so `b` cannot be tied to it.
    let program = [thing("n"), thing("b").was("a").deleted_with("n"), thing("c").within("b")];
    let ended = world.refresh_with(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("read a-1"), ended.called("read c-1")), (1, 1));
    assert_eq!(ended.state, state);
}

#[tokio::test]
async fn a_component_that_became_a_resource_is_not_made_by_a_refresh() {
    let (world, state) = standing(&[group("g")]).await;
    let urn = entry(&state, "g").urn.clone();
    let ended = world.refresh_with(&state, &[thing("g").was_urn(urn)]).go().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "g"), entry(&state, "g"));
}

#[tokio::test]
async fn what_the_program_calls_secret_is_so_once_it_is_read() {
    let (world, state) = standing(&[thing("a").with("v", "1")]).await;
    world.drift("a-1", map(&[("v", "9")]));
    let program = [thing("a").with("v", "1").but(|goal| goal.additional_secret_outputs = vec!["v".to_owned()])];
    let ended = world.refresh_with(&state, &program).go().await.expect(Outcome::Succeeded);
    assert!(matches!(entry(&ended.state, "a").outputs["v"], PropertyValue::Secret(_)));
}

#[tokio::test]
async fn what_a_refresh_found_goes_before_what_it_was_made_of_though_the_program_has_given_that_up() {
    let (world, state) = standing(&[thing("b"), thing("a").of("v", "b")]).await;
    let ended = world.refresh_with(&state, &[thing("a"), thing("b")]).go().await.expect(Outcome::Succeeded);
    let ended = world.destroy(&ended.state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "delete b-1"]);
}

#[tokio::test]
async fn what_a_refresh_did_not_do_is_left_to_the_next_update() {
    let asks = |trigger: &str, import: &str| {
        let (trigger, import) = (trigger.to_owned(), import.to_owned());
        thing("a").but(move |goal| {
            goal.replacement_trigger = Some(trigger.as_str().into());
            goal.import_id = ResourceId::new(import.as_str());
        })
    };
    let (world, state) = standing(&[asks("1", "")]).await;
    world.add("there");
    let ended = world.refresh_with(&state, &[asks("2", "there")]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.state, state);
}

#[tokio::test]
async fn what_is_only_read_has_not_changed_because_it_is_secret() {
    let (world, state) = standing(&[]).await;
    world.add("there");
    world.drift("there", map(&[("w", "1")]));
    let mut state = world.up(&state, &[get("a", "there")]).go().await.expect(Outcome::Succeeded).state;
    let seen = state.resources.iter_mut().find(|seen| seen.external).unwrap();
    Arc::make_mut(seen).additional_secret_outputs = vec!["w".to_owned()];
    let read = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    assert!(matches!(entry(&read.state, "a").outputs["w"], PropertyValue::Secret(_)));
    let again = world.refresh(&read.state).go().await.expect(Outcome::Succeeded);
    assert_eq!(again.counts.get(&StepOp::Update), None);
}

#[tokio::test]
async fn a_destroy_spares_what_the_program_protects_now_and_deletes_what_it_no_longer_does() {
    let (world, state) = standing(&[thing("a"), thing("b").protected()]).await;
    let program = [thing("a").protected(), thing("b")];
    let ended = world.destroy_with(&state, &program).going_on().go().await.expect(Outcome::Failed);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete b-1".to_owned()], vec!["a-1".to_owned()]));
    assert!(entry(&ended.state, "a").protect);
}

#[tokio::test]
async fn a_destroy_asks_for_the_deletions_that_the_program_leaves_to_it_now() {
    let kept = |name| thing(name).but(|goal| goal.retain_on_delete = Some(true));
    let (world, state) = standing(&[thing("t"), kept("a"), thing("b"), thing("c").deleted_with("t"), thing("d")]).await;
    let program = [thing("t"), thing("a"), kept("b"), thing("c"), thing("d").deleted_with("t")];
    let ended = world.destroy_with(&state, &program).parallel(1).go().await.expect(Outcome::Succeeded);
    let mut changes = ended.changes();
    changes.sort();
    assert_eq!(changes, ["delete a-1", "delete c-1", "delete t-1"]);
    assert_eq!(ended.entries(), [""; 0]);
}

#[tokio::test]
async fn a_destroy_deletes_what_hangs_on_a_superseded_copy_before_the_copy() {
    // The superseded entry may itself refer to a resource that the program has dropped.
    for old in [thing("a").with("k", "1"), thing("a").with("k", "1").within("g")] {
        let before = [provider("p"), group("g"), old.by("p"), thing("b").of("v", "a")];
        let (world, state) = standing(&before).await;
        world.when("delete a-1", Goes::Wrong);
        world.when("update b", Goes::Wrong);
        let new = thing("a").with("k", "2").was_urn(entry(&state, "a").urn.clone());
        let after = [provider("p"), new, thing("b").of("v", "a")];
        let ended = world.up(&state, &after).going_on().go().await.expect(Outcome::Failed);
        assert!(ended.entries().contains(&"a-1 (delete)".to_owned()), "{:?}", ended.entries());
        world.mend();
        let ended = world.destroy_with(&ended.state, &after).go().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes()[0], "delete b-1");
    }
}

#[tokio::test]
async fn a_destroy_spares_a_copy_of_this_run_that_something_still_needs() {
    let (world, state) = standing(&[thing("a"), thing("b").of("v", "a"), thing("c")]).await;
    world.add("there");
    world.when("delete b", Goes::Wrong);
    // A resource that the program now only reads is no longer managed: its entry is deleted, but after its dependents.
    let program = [get("a", "there"), thing("c")];
    let ended = world.destroy_with(&state, &program).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["there", "a-1 (delete)", "b-1"]);
    world.mend();
    let ended = world.destroy_with(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1"]);
}

#[tokio::test]
async fn a_new_component_of_a_refresh_comes_after_one_that_cannot_be_as_the_program_says() {
    let (world, state) = standing(&[group("b")]).await;
    // A refresh does not create `a`, so `b`, which now depends on it, stays as it is recorded.
    let program = [thing("a"), group("b").after("a"), group("c").after("b")];
    let ended = world.refresh_with(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.state.resources.last().unwrap().urn.name(), "c");
}

#[tokio::test]
async fn a_destroy_keeps_what_is_out_of_scope_though_what_it_needs_is_not_as_the_program_says() {
    let (world, state) = standing(&[thing("e"), thing("f").after("e")]).await;
    // A destroy does not create `d`, so `e`, which now refers to it under a new name, stays as it is recorded.
    let program = [thing("d"), thing("e2").was("e").replace_with("d"), thing("f").after("e2")];
    let ended = world.destroy_with(&state, &program).exclude("f").go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.entries(), ["e-1", "f-1"]);
}

#[tokio::test]
async fn a_destroy_does_not_wait_for_what_got_another_name_with_its_parent() {
    let (world, state) = standing(&[group("p"), thing("c").within("p"), thing("f").after("c")]).await;
    let parent = group("p").of_type("OtherThing").was_all("p", "Thing", None);
    let child = thing("c2").was_urn(entry(&state, "c").urn.clone()).within("p").replace_with("d");
    let program = [parent, thing("d"), child, thing("f").after("c2")];
    let ended = world.destroy_with(&state, &program).exclude("f").go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn a_destroy_keeps_what_a_protected_resource_needs_though_the_program_only_reads_that_now() {
    let protected = thing("b").of("v", "a").but_marked("protected", |goal| goal.protect = Some(true));
    let (world, state) = standing(&[thing("a"), protected]).await;
    world.add("there-a");
    let run = world.destroy_with(&state, &[get("a", "there-a")]).keeping_protected();
    let ended = run.go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert!(ended.entries().contains(&"a-1 (delete)".to_owned()), "{:?}", ended.entries());
}
