//! Tests of `retainOnDelete` and `protect` in replacements: as recorded, or added with the change that replaces.

use engine::events::Outcome;

use crate::deploy;
use crate::fake_cloud::{CallFailure, map};
use crate::program::{component, get, resource};
use crate::run::entry;

/// Shows: engine.md#differences-from-pulumi "In a replacement, `retainOnDelete` of the program counts beside the
///   recorded one."
/// Shows: engine.md#differences-from-pulumi "`protect` and `retainOnDelete` of the program count for dependent
///   replacements before they are registered."
#[tokio::test]
async fn retention_that_comes_with_a_replacement_keeps_the_old_resource_in_both_orders() {
    for key in ["k", "d"] {
        let (cloud, state) = deploy(&[resource("a").input(key, "1")]).await;
        let program = [resource("a").input(key, "2").retained()];
        let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!((ended.changes(), ended.entries()), (vec!["create a".to_owned()], vec!["a-2".to_owned()]), "{key}");
        assert!(cloud.existing().contains("a-1"), "{key}");
    }
}

#[tokio::test]
async fn recorded_retention_counts_if_the_replacement_drops_it() {
    for key in ["k", "d"] {
        let (cloud, state) = deploy(&[resource("a").input(key, "1").retained()]).await;
        let ended = cloud.up(&state, &[resource("a").input(key, "2")]).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["create a"], "{key}");
        assert!(!entry(&ended.state, "a").retain_on_delete, "{key}");
    }
}

#[tokio::test]
async fn retention_counts_for_every_reason_to_replace() {
    let renamed = || resource("b").alias("a").input("k", "2").retained();
    let retyped = || {
        let root = pulumi_proto::urn::Urn::root_stack(crate::program::STACK, crate::program::PROJECT);
        resource("a").of_type("OtherThing").alias_spec("a", "Thing", Some(root)).input("d", "2").retained()
    };
    let (cloud, state) = deploy(&[resource("a").input("k", "1").input("d", "1")]).await;
    for program in [renamed(), retyped()] {
        let cloud = cloud.fork(&cloud.state());
        let ended = cloud.up(&state, &[program]).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.call_count("delete a-1"), 0, "{:?}", ended.steps);
        assert!(cloud.existing().contains("a-1"));
    }
    let same = || resource("a").input("k", "1").input("d", "1").retained();
    let ended = cloud.up(&state, &[same()]).replace("a").run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a"]);
    let imported = [same().imported("there")];
    cloud.add("there");
    cloud.drift("there", map(&[("k", "1"), ("d", "1")]));
    let ended = cloud.up(&ended.state, &imported).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.call_count("delete a-2"), 0, "{:?}", ended.steps);
}

#[tokio::test]
async fn pending_delete_of_an_earlier_run_is_retained_if_the_program_now_says_so() {
    let (cloud, state) = deploy(&[resource("a").input("k", "1")]).await;
    cloud.fail("delete a-1", CallFailure::Error);
    let ended = cloud.up(&state, &[resource("a").input("k", "2")]).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &[resource("a").input("k", "2").retained()]).run().await;
    assert_eq!((ended.changes(), ended.entries()), (Vec::new(), vec!["a-2".to_owned()]));
}

/// Shows: engine.md#differences-from-pulumi "In a replacement, `retainOnDelete` of the program counts beside the
///   recorded one."
/// Shows: engine.md#differences-from-pulumi "`protect` and `retainOnDelete` of the program count for dependent
///   replacements before they are registered."
#[tokio::test]
async fn protection_that_comes_with_a_replacement_refuses_it_in_both_orders() {
    for key in ["k", "d"] {
        let (cloud, state) = deploy(&[resource("a").input(key, "1"), resource("b").input_from("k", "a")]).await;
        let program = [resource("a").input(key, "2").protected(), resource("b").input_from("k", "a")];
        for run in [cloud.up(&state, &program).preview(), cloud.up(&state, &program)] {
            let ended = run.run().await.expect(Outcome::Failed);
            assert_eq!(ended.errors, ["a: a would be replaced, and is protected"], "{key}");
            assert_eq!(ended.changes(), [""; 0], "{key}");
        }
    }
}

#[tokio::test]
async fn lifted_protection_permits_the_replacement_in_the_same_run() {
    for program in [resource("a").input("k", "2"), resource("a").input("k", "2").edit_goal(|a| a.protect = Some(false))]
    {
        let (cloud, state) = deploy(&[resource("a").input("k", "1").protected()]).await;
        let ended = cloud.up(&state, &[program]).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["create a", "delete a-1"]);
    }
}

#[tokio::test]
async fn replacement_that_was_interrupted_is_completed_although_the_resource_is_protected_now() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1")]).await;
    cloud.fail("create a", CallFailure::Error);
    let ended = cloud.up(&state, &[resource("a").input("d", "2")]).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    let program = [resource("a").input("d", "2").protected()];
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a"]);
}

/// Shows: engine.md#differences-from-pulumi "In a replacement, `retainOnDelete` of the program counts beside the
///   recorded one."
/// Shows: engine.md#differences-from-pulumi "`protect` and `retainOnDelete` of the program count for dependent
///   replacements before they are registered."
#[tokio::test]
async fn dependent_that_the_program_retains_or_protects_now_is_not_deleted_with_its_dependency() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a")]).await;
    let a = || resource("a").input("d", "2");
    let protected = [a(), resource("b").input_from("k", "a").protected()];
    let ended = cloud.up(&state, &protected).run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.hints, ["remove `protect` from b, or undo the change that replaces a"]);
    let retained = [a(), resource("b").input_from("k", "a").retained()];
    let ended = cloud.up(&state, &retained).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "create a", "create b"]);
    assert!(cloud.existing().contains("b-1"));
}

#[tokio::test]
async fn dependent_inherits_retention_from_its_component_and_keeps_it_under_a_new_name() {
    let (cloud, state) =
        deploy(&[resource("a").input("d", "1"), component("g"), resource("b").parent("g").input_from("k", "a")]).await;
    let program = [
        resource("a").input("d", "2"),
        component("h").alias("g").retained(),
        resource("b").parent("h").input_from("k", "a"),
    ];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.call_count("delete b-1"), 0, "{:?}", ended.steps);
    assert!(cloud.existing().contains("b-1"));
}

#[tokio::test]
async fn dependent_that_moves_out_of_a_retained_or_protected_component_does_not_inherit_from_it() {
    let before = [resource("a").input("d", "1"), component("g"), resource("b").parent("g").input_from("k", "a")];
    let within_g = Some(component("g").urn_within(None));
    for g in [component("g").retained(), component("g").protected()] {
        let (cloud, state) = deploy(&before).await;
        let b = resource("b").input_from("k", "a").alias_spec("b", "Thing", within_g.clone());
        let ended = cloud.up(&state, &[resource("a").input("d", "2"), g, b]).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["delete b-1", "delete a-1", "create a", "create b"]);
    }
}

#[tokio::test]
async fn protected_resource_is_not_replaced_by_a_read_of_another_one() {
    let (cloud, state) = deploy(&[resource("a").protected()]).await;
    cloud.add("theirs");
    for run in [cloud.up(&state, &[get("a", "theirs")]).preview(), cloud.up(&state, &[get("a", "theirs")])] {
        let ended = run.run().await.expect(Outcome::Failed);
        assert_eq!((ended.errors.len(), ended.changes()), (1, Vec::new()), "{:?}", ended.errors);
        assert!(ended.errors[0].contains("is protected and cannot be deleted"), "{:?}", ended.errors);
    }
    let ended = cloud.up(&state, &[get("a", "a-1")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}
