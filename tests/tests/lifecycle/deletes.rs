//! Tests of deletions: their order, and the entries that are kept.

use pulumi_proto::resource_id::ResourceId;
use std::sync::Arc;

use engine::RegistrationResult;
use engine::events::Outcome;
use state::Snapshot;

use crate::program::{get, group, provider, thing};
use crate::run::entry;
use crate::standing;
use crate::world::{FRESH, Goes, World, map};

#[tokio::test]
async fn a_destroy_goes_from_dependents_to_what_they_need_and_leaves_nothing() {
    let (world, state) = standing(&[
        provider("p"),
        group("g"),
        thing("a").by("p").within("g"),
        thing("b").of("v", "a"),
        thing("c").after("g"),
    ])
    .await;
    let ended = world.destroy(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().last().unwrap(), "delete a-1", "to depend on a component is to depend on its children");
    assert_eq!(ended.state.resources.len(), 0);
}

#[tokio::test]
async fn what_was_skipped_because_of_a_failure_is_not_deleted() {
    let (world, state) = standing(&[thing("a"), thing("b").after("a"), thing("gone")]).await;
    world.when("update a-1", Goes::Wrong);
    let program = [thing("a").with("v", "2"), thing("b").after("a")];
    let ended = world.up(&state, &program).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.result("b"), RegistrationResult::Skipped);
    assert_eq!(ended.changes(), ["update a-1", "delete gone-1"]);
}

#[tokio::test]
async fn what_a_failed_resource_still_needs_is_not_deleted() {
    let (world, state) = standing(&[thing("net"), thing("a").of("v", "net"), thing("other")]).await;
    world.when("update a-1", Goes::Wrong);
    let ended = world.up(&state, &[thing("a").with("v", "free")]).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["update a-1", "delete other-1"]);
    assert_eq!(ended.entries(), ["net-1", "a-1"]);
}

#[tokio::test]
async fn a_failed_delete_spares_what_the_entry_needs_and_nothing_else() {
    let (world, state) = standing(&[thing("a"), thing("b").after("a"), thing("c")]).await;
    world.when("delete b-1", Goes::Wrong);
    let ended = world.destroy(&state).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
}

#[tokio::test]
async fn a_protected_entry_stays_with_what_it_needs_and_the_rest_goes() {
    let (world, state) = standing(&[thing("a"), thing("b").after("a").protected(), thing("c")]).await;
    let ended = world.destroy(&state).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
}

#[tokio::test]
async fn what_goes_with_its_owner_needs_no_call_even_if_the_owner_was_deleted_by_an_earlier_run() {
    let (world, state) = standing(&[thing("a").with("d", "1"), thing("b").after("a").deleted_with("a")]).await;
    world.when("create a", Goes::Wrong);
    let program = [thing("a").with("d", "2"), thing("b").after("a").deleted_with("a")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1 (owed)", "b-1 (owed)"]);
    world.mend();
    let ended = world.up(&ended.state, &[]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn what_the_stack_does_not_own_is_forgotten_without_a_call() {
    let world = World::default();
    world.add("theirs");
    let state = world.up(&Snapshot::default(), &[get("a", "theirs"), thing("b")]).go().await.state;
    let ended = world.destroy(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1"]);
}

#[tokio::test]
async fn what_is_to_be_retained_is_forgotten_without_a_call() {
    let (world, state) = standing(&[thing("a").but(|goal| goal.retain_on_delete = Some(true))]).await;
    let ended = world.up(&state, &[]).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.entries().len()), (0, 0));
}

#[tokio::test]
async fn references_that_only_a_superseded_copy_kept_valid_go_with_it() {
    let program =
        |p, a| [provider("p").with("d", p), thing("a").by("p").with(FRESH, "1").with("k", a), thing("b").after("a")];
    let (world, state) = standing(&program("1", "1")).await;
    world.when("delete a-1", Goes::Wrong);
    let ended = world.up(&state, &program("1", "2")[..2]).target("a").go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["p", "a-2", "a-1 (delete)", "b-1"]);
    world.mend();
    // The superseded entry is deleted before its provider, and `a` is created again after the provider: in between, no
    // entry is called `a`.
    world.when("read a-2", Goes::Gone);
    let ended = world.up(&ended.state, &program("2", "2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "create a"]);
    assert_eq!(entry(&ended.state, "b").dependencies, [entry(&ended.state, "a").urn.clone()]);
}

#[tokio::test]
async fn a_program_that_gives_up_deletes_nothing() {
    let (world, state) = standing(&[thing("a"), thing("b")]).await;
    let ended = world.up(&state, &[thing("a")]).gives_up().go().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn a_preview_of_anything_changes_nothing() {
    let (world, state) = standing(&[
        provider("p").with("d", "1"),
        thing("a").with("d", "1"),
        thing("b").of("k", "a"),
        thing("c").by("p"),
        thing("e"),
    ])
    .await;
    let program =
        [provider("p").with("d", "2"), thing("a").with("d", "2"), thing("b").of("k", "a"), thing("c").by("p")];
    let ended = world.up(&state, &program).preview().go().await.expect(Outcome::Succeeded);
    assert!(ended.steps.contains(&"delete e".to_owned()));
    world.destroy(&state).preview().go().await.expect(Outcome::Succeeded);
    world.refresh(&state).preview().go().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn outputs_of_a_component_that_was_skipped_are_nobodys_concern() {
    let (world, state) = standing(&[thing("a")]).await;
    world.when("update a-1", Goes::Wrong);
    let program = [thing("a").with("v", "2"), group("g").after("a").says(map(&[("o", "1")])), thing("b")];
    let ended = world.up(&state, &program).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.result("g"), RegistrationResult::Skipped);
    assert_eq!(ended.entries(), ["b-1", "a-1"]);
}

#[tokio::test]
async fn outputs_of_a_new_component_out_of_scope_are_nobodys_concern() {
    let (world, state) = standing(&[thing("a")]).await;
    let program = [thing("a").with("v", "2"), group("g").says(map(&[("o", "1")]))];
    let ended = world.up(&state, &program).target("a").go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1"]);
}

#[tokio::test]
async fn a_renamed_resource_out_of_scope_is_known_by_its_old_name() {
    let (world, state) = standing(&[thing("a"), group("g"), thing("b")]).await;
    let program =
        [thing("a2").was("a"), group("g2").was("g"), thing("b").with("v", "2").after("a2"), thing("c").within("g2")];
    let ended = world.up(&state, &program).target("b").target("c").go().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "b").dependencies[0].name(), "a");
    assert_eq!(entry(&ended.state, "c").parent.as_ref().unwrap().name(), "g");
}

#[tokio::test]
async fn what_a_skipped_resource_still_needs_keeps_its_replaced_provider() {
    let program = |k: &str| [provider("p").with("k", k), thing("a").by("p"), thing("b").of("v", "a")];
    let (world, state) = standing(&program("1")).await;
    world.when("create c", Goes::Wrong);
    let after = [provider("p").with("k", "2"), thing("c"), thing("b").of("v", "c")];
    let ended = world.up(&state, &after).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["create c"]);
}

#[tokio::test]
async fn nobody_waits_for_what_stays_with_the_old_one_of_a_replaced_provider() {
    let before = [provider("p").with("k", "1"), thing("c").by("p"), thing("d").of("v", "c")];
    let (world, state) = standing(&before).await;
    let after = [provider("p").with("k", "2")];
    let ended = world.up(&state, &after).exclude("d").go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0], "d stays, and so does c, which it needs");
}

#[tokio::test]
async fn what_another_ones_chain_carries_over_is_there_for_dependents_only_once_that_is_done() {
    let (world, state) = standing(&[
        provider("p").with("d", "1"),
        thing("a").by("p"),
        thing("b").of("v", "a"),
        thing("d").by("p"),
        group("e").after("b"),
    ])
    .await;
    let after = [provider("p").with("d", "0"), thing("a"), thing("c").of("v", "a"), group("e")];
    // `e` depends on `b`, which depends on `a`, which waits for its provider.
    let ended = world.up(&state, &after).target("c").go().await.expect(Outcome::Succeeded);
    assert!(ended.entries().contains(&"c-1".to_owned()));
}

#[tokio::test]
async fn what_still_awaits_its_deletion_goes_by_the_name_of_its_successor() {
    let (world, state) = standing(&[thing("e").with("k", "1")]).await;
    let after = [thing("g").with("k", "2").was("e")];
    world.when("delete e-1", Goes::Wrong);
    let ended = world.up(&state, &after).go().await.expect(Outcome::Failed);
    let names: Vec<_> =
        ended.state.resources.iter().filter(|state| state.delete).map(|state| state.urn.name()).collect();
    assert_eq!((ended.entries(), names), (vec!["g-1".to_owned(), "e-1 (delete)".to_owned()], vec!["g"]));
    // The old name is available to another resource.
    let ended = world.mend().up(&ended.state, &[thing("g").with("k", "2"), thing("e")]).go().await;
    assert_eq!(ended.expect(Outcome::Succeeded).entries(), ["g-1", "e-2"]);
}

#[tokio::test]
async fn nothing_is_imported_or_read_that_depends_on_what_targets_keep_from_being_made() {
    let (world, state) = standing(&[thing("c")]).await;
    world.add("there");
    let imported = thing("b").after("a").but(|goal| goal.import_id = ResourceId::new("there"));
    for dependent in [imported, get("b", "there").after("a")] {
        let ended = world.up(&state, &[thing("a"), dependent]).target("b").go().await.expect(Outcome::Failed);
        assert_eq!((ended.entries(), ended.called("read there")), (vec!["c-1".to_owned()], 0));
        assert!(ended.errors[0].contains("b depends on a, which is not among the targets"), "{:?}", ended.errors);
    }
}

#[tokio::test]
async fn a_target_cannot_depend_on_what_still_depends_on_it() {
    let (world, state) = standing(&[thing("a"), thing("b").after("a")]).await;
    let ended = world.up(&state, &[thing("b"), thing("a").after("b")]).target("a").go().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["a: a depends on b, which is out of scope and still depends on a"]);
}

#[tokio::test]
async fn what_a_replaced_provider_still_serves_names_it_as_it_is_recorded() {
    let before = [provider("p").with("k", "1"), thing("b").with("k", "1").by("p")];
    let (world, state) = standing(&before).await;
    world.when("delete b-1", Goes::Wrong);
    let after = [provider("q").with("k", "2").was("p"), thing("b").with("k", "2").by("q")];
    let ended = world.up(&state, &after).go().await.expect(Outcome::Failed);
    let old = ended.state.resources.iter().find(|state| state.id_text() == "b-1").unwrap();
    assert_eq!(old.provider.as_ref().unwrap().urn.name(), "p");
    let ended = world.mend().up(&ended.state, &after).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["q", "b-2"]);
}

#[tokio::test]
async fn what_is_out_of_scope_keeps_its_parent_under_the_name_that_it_got_in_this_run() {
    let c = thing("c").of_type("Other").within("a");
    let (world, state) = standing(&[thing("a").of_type("Other"), c, thing("e").within("c")]).await;
    let [a, c, e] = ["a", "c", "e"].map(|name| entry(&state, name).urn.clone());
    // `c` is no longer registered: it is the parent of a resource out of scope.
    let program = [thing("a").was_urn(a), thing("e").was_urn(e).after("a")];
    let ended = world.up(&state, &program).exclude("e").go().await.expect(Outcome::Succeeded);
    assert_eq!(
        (ended.changes(), ended.entries()),
        (vec![], vec!["a-1".to_owned(), "c-1".to_owned(), "e-1".to_owned()])
    );
    assert_ne!(entry(&ended.state, "c").urn, c);
}

#[tokio::test]
async fn what_is_excluded_stays_though_its_parent_gives_it_another_name() {
    let (world, state) = standing(&[thing("a").of_type("Other"), thing("c").within("a")]).await;
    let program = [thing("a").was_urn(entry(&state, "a").urn.clone())];
    let ended = world.up(&state, &program).exclude("c").go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("delete c-1"), ended.entries()), (0, vec!["a-1".to_owned(), "c-1".to_owned()]));
}

#[tokio::test]
async fn a_name_that_a_child_would_get_with_its_parent_belongs_to_who_is_registered_under_it() {
    for parent_first in [true, false] {
        let before = [thing("a").of_type("Other"), thing("o").within("a")];
        let (world, state) = standing(&before).await;
        // The old `o` is a child of an `Other`; the new one is a child of a `Thing`, which `a` now is, too.
        let a = thing("a").was_urn(entry(&state, "a").urn.clone());
        let (a, s) = if parent_first { (a, thing("s").after("a")) } else { (a.after("o"), thing("s")) };
        let program = [s, thing("o").within("s"), a];
        let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["create s", "create o", "delete o-1"], "parent first: {parent_first}");
        assert_eq!(entry(&ended.state, "o").parent.as_ref(), Some(&entry(&ended.state, "s").urn));
    }
}

#[tokio::test]
async fn what_refers_to_something_out_of_scope_follows_it_to_the_name_that_its_parent_gives_it() {
    let before = [group("c"), thing("d").within("c"), thing("e").of("v", "d")];
    let (world, state) = standing(&before).await;
    let [c, d] = ["c", "d"].map(|name| entry(&state, name).urn.clone());
    // The program registers `d` before its former parent gets another URN.
    let held = world.hold("check e");
    let program = [
        thing("d").was_urn(d),
        group("c").of_type("Other").was_urn(c).after("late"),
        thing("late"),
        thing("e").of("v", "d").with("w", "1"),
    ];
    let ended = world.up(&state, &program).exclude("d").held_up_at(held).await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "e").dependencies, [entry(&ended.state, "d").urn.clone()]);
    assert_ne!(entry(&ended.state, "e").dependencies, entry(&state, "e").dependencies);
}

#[tokio::test]
async fn what_refers_to_a_child_that_was_registered_follows_it_to_the_name_that_its_parent_gives_it() {
    let before = [group("a"), thing("b").within("a"), thing("c").within("b"), thing("d").of("v", "c")];
    let (world, state) = standing(&before).await;
    let [a, b, c] = ["a", "b", "c"].map(|name| entry(&state, name).urn.clone());
    // The program registers `c` before its parent, which is out of scope, gets another URN with its own parent.
    let held = world.hold("create late");
    let program = [
        thing("b").was_urn(b),
        thing("c").within("b").was_urn(c).with("v", "1"),
        thing("late"),
        group("a").of_type("Other").was_urn(a).after("late"),
        thing("d").of("v", "c").after("a"),
    ];
    let ended = world.up(&state, &program).exclude("b").held_up_at(held).await;
    let ended = ended.expect(Outcome::Succeeded);
    assert!(entry(&ended.state, "d").dependencies.contains(&entry(&ended.state, "c").urn));
    assert_ne!(entry(&ended.state, "c").urn, entry(&state, "c").urn);
}

#[tokio::test]
async fn a_copy_that_gets_the_name_of_its_successor_leaves_no_references_behind() {
    let (world, state) = standing(&[thing("a").with("k", "1"), thing("b").after("a")]).await;
    world.when("create c", Goes::Wrong);
    let program = [thing("a").with("k", "2"), thing("c").after("a"), thing("b").after("a").after("c")];
    let state = world.up(&state, &program).go().await.expect(Outcome::Failed).state;
    world.vanish("a-2");
    // The resource is missing, is created again under another name, and its dependents are not reached.
    let program = [thing("a2").was("a").with("k", "2"), thing("c").after("a2"), thing("b").after("a2").after("c")];
    let ended = world.up(&state, &program).refreshing().with_program().go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a2-1", "a-1 (delete)", "b-1"]);
    assert_eq!(entry(&ended.state, "b").dependencies, []);
    world.mend();
    let ended = world.up(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create c", "delete a-1"]);
}

#[tokio::test]
async fn what_did_not_come_back_keeps_what_it_needed_though_something_out_of_scope_names_it() {
    let (world, state) = standing(&[thing("b"), thing("c").with("d", "1").after("b"), thing("f").of("v", "c")]).await;
    world.when("create c", Goes::Wrong);
    let program = [thing("c").with("d", "2"), thing("f")];
    let ended = world.up(&state, &program).exclude("f").going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["b-1", "c-1 (owed)", "f-1"]);
    world.mend();
    let ended = world.up(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.entries().len()), (3, 2));
    assert_eq!(ended.changes()[2], "delete b-1");
}

/// Pulumi deletes the entry, too, without a check of the resource.
#[tokio::test]
async fn what_is_tied_to_what_stays_is_forgotten_and_told() {
    let tied = || thing("b").deleted_with("a");
    let told = ["b: it was to go with a, which stays, and is not recorded any more"];
    let programs =
        [vec![thing("a").protected(), tied()], vec![thing("a"), thing("needs").after("a").protected(), tied()]];
    for program in programs {
        let (world, state) = standing(&program).await;
        let preview = world.destroy(&state).preview().go().await.expect(Outcome::Failed);
        assert_eq!(preview.warnings, ["b: it would go with a, which stays, and would not be recorded any more"]);
        let ended = world.destroy(&state).go().await.expect(Outcome::Failed);
        assert_eq!((ended.changes(), ended.warnings), (Vec::new(), told.map(str::to_owned).to_vec()));
    }
    let (world, state) = standing(&[thing("a"), tied()]).await;
    world.when("delete a-1", Goes::Wrong);
    let ended = world.destroy(&state).go().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.warnings), (vec!["a-1".to_owned()], told.map(str::to_owned).to_vec()));
}

#[tokio::test]
async fn what_is_replaced_with_what_it_is_tied_to_is_not_told_as_forgotten() {
    let program = |k: &str| [thing("a").with("k", k), thing("b").deleted_with("a")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.entries(), &ended.warnings[..]), (vec!["a-2".to_owned(), "b-2".to_owned()], &[][..]));
    // A resource that leaves the program, with `deletedWith` on a replaced one, is not reported as forgotten either.
    let ended = world.up(&ended.state, &program("3")[..1]).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.entries(), ended.warnings), (vec!["a-3".to_owned()], Vec::new()));
}

#[tokio::test]
async fn a_target_takes_no_copy_along_that_was_not_named() {
    let program = |k: &str, a: &str| [thing("a"), thing("b").with("k", k).after(a), thing("c")];
    let (world, state) = standing(&program("1", "a")).await;
    world.when("delete b-1", Goes::Wrong);
    let ended = world.up(&state, &program("2", "c")).go().await.expect(Outcome::Failed);
    assert!(ended.entries().contains(&"b-1 (delete)".to_owned()), "{:?}", ended.entries());
    world.mend();
    let ended = world.destroy(&ended.state).target("a").go().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.errors, ["b: b would have to go with a target that it depends on"]);
}

#[tokio::test]
async fn a_destroy_by_the_program_deletes_nothing_where_an_exclude_names_nothing() {
    let program = [thing("a"), thing("b")];
    let (world, state) = standing(&program).await;
    let ended = world.destroy_with(&state, &program).exclude("bb").go().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn what_has_hooks_to_be_run_with_its_deletion_is_not_deleted() {
    let (world, mut state) = standing(&[thing("a"), thing("b").after("a")]).await;
    let hooked = state.resources.iter_mut().find(|state| state.urn.name() == "a").unwrap();
    let hooks = [("BeforeDelete".to_owned(), vec!["backup".to_owned()])];
    Arc::make_mut(hooked).resource_hooks = hooks.into();
    for run in [world.destroy(&state), world.destroy(&state).preview()] {
        let ended = run.go().await.expect(Outcome::Failed);
        assert_eq!(ended.changes(), [""; 0]);
        assert_eq!(ended.errors, ["a: it has hooks that are to run with its deletion, which only its program has"]);
    }
    for replaced in ["k", "d"] {
        let program = [thing("a").with(replaced, "1"), thing("b").after("a")];
        let ended = world.up(&state, &program).go().await.expect(Outcome::Failed);
        assert_eq!(ended.changes(), [""; 0], "{replaced}");
    }
    let ended = world.up(&state, &[]).going_on().go().await.expect(Outcome::Failed);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete b-1".to_owned()], vec!["a-1".to_owned()]));
    assert!(ended.hints[0].starts_with("let `pulumi` do it"), "{:?}", ended.hints);
    let ended = world.up(&ended.state, &[thing("a")]).go().await.expect(Outcome::Succeeded);
    world.destroy(&ended.state).go().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn hooks_of_what_is_deleted_already_hold_nothing_up() {
    let program = |d: &str| [thing("a").with("d", d)];
    let (world, state) = standing(&program("1")).await;
    world.when("create a", Goes::Wrong);
    let mut ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    let owed = ended.state.resources.iter_mut().find(|state| state.urn.name() == "a").unwrap();
    assert!(owed.pending_replacement);
    Arc::make_mut(owed).resource_hooks = [("AfterDelete".to_owned(), vec!["tell".to_owned()])].into();
    let state = ended.state;
    world.mend();
    world.destroy(&state).preview().go().await.expect(Outcome::Succeeded);
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["create a".to_owned()], vec!["a-2".to_owned()]));
}

#[tokio::test]
async fn nothing_goes_for_a_replacement_that_takes_along_what_nobody_can_delete() {
    let program = |d: &str| [thing("a").with("d", d), thing("b").after("a").replace_with("a"), thing("c").of("k", "a")];
    for ancient in ["a", "b"] {
        let (world, mut state) = standing(&program("1")).await;
        let entry = state.resources.iter_mut().find(|state| state.urn.name() == ancient).unwrap();
        Arc::make_mut(entry).provider = None;
        let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
        let whose = if ancient == "a" { "it" } else { ancient };
        let told = format!("a: {whose} is recorded without a provider, so nobody can be asked to delete it");
        assert_eq!((ended.changes(), ended.errors), (Vec::new(), vec![told]));
    }
}

#[tokio::test]
async fn what_has_hooks_does_not_go_with_what_is_deleted_before_it_is_replaced() {
    let program = |d: &str| [thing("a").with("d", d), thing("b").of("k", "a")];
    let (world, mut state) = standing(&program("1")).await;
    let hooked = state.resources.iter_mut().find(|state| state.urn.name() == "b").unwrap();
    Arc::make_mut(hooked).resource_hooks = [("AfterDelete".to_owned(), vec!["tell".to_owned()])].into();
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    assert_eq!((ended.changes(), ended.entries()), (Vec::new(), vec!["a-1".to_owned(), "b-1".to_owned()]));
    assert_eq!(ended.errors, ["a: b has hooks that are to run with its deletion, which only its program has"]);
}

#[tokio::test]
async fn what_is_recorded_without_a_provider_is_not_forgotten() {
    let (world, mut state) = standing(&[thing("a"), thing("b")]).await;
    let ancient = state.resources.iter_mut().find(|state| state.urn.name() == "a").unwrap();
    Arc::make_mut(ancient).provider = None;
    let ended = world.destroy(&state).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["a: it is recorded without a provider, so nobody can be asked to delete it"]);
    assert_eq!(ended.hints, ["delete it by other means, and forget it with `sc state rm a`"]);
    assert_eq!(ended.entries(), ["a-1"]);
}
