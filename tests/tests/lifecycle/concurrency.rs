//! Tests of concurrent registrations, steps and replacements.

use engine::RegistrationResult;
use engine::events::Outcome;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, yield_until_idle};
use crate::program::{component, provider, resource};
use crate::run::{entries, entry};

/// Shows: engine.md#concurrency "Independent resources are created concurrently."
#[tokio::test]
async fn independent_resources_are_created_concurrently() {
    let cloud = FakeCloud::default();
    let (a, b) = (cloud.hold("create a"), cloud.hold("create b"));
    let run = cloud.up(&Snapshot::default(), &[resource("a"), resource("b")]).run();
    let (ended, ()) = tokio::join!(run, async {
        a.reached().await;
        b.reached().await;
        b.release();
        a.release();
    });
    assert_eq!(ended.expect(Outcome::Succeeded).entries(), ["b-1", "a-1"]);
}

/// Shows: engine.md#concurrency "is the maximum number of resources that are processed concurrently"
#[tokio::test]
async fn parallel_limits_concurrent_steps() {
    let cloud = FakeCloud::default();
    let holds = ["a", "b", "c"].map(|name| cloud.hold(&format!("create {name}")));
    let run = cloud.up(&Snapshot::default(), &[resource("a"), resource("b"), resource("c")]).parallel(2).run();
    let (ended, ()) = tokio::join!(run, async {
        // Each creation waits for its record, so any two of them may come first.
        let reached = || holds.iter().filter(|hold| hold.is_reached()).count();
        while reached() < 2 {
            tokio::task::yield_now().await;
        }
        yield_until_idle().await;
        assert_eq!(reached(), 2);
        holds.iter().for_each(|hold| hold.release());
    });
    ended.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn independent_delete_before_replace_chains_keep_their_order() {
    let program = |d: &str| {
        ["a", "b"]
            .map(|name| resource(name).input("d", d))
            .into_iter()
            .chain([resource("x").input_from("k", "a"), resource("y").input_from("k", "b")])
    };
    let (cloud, state) = deploy(&program("1").collect::<Vec<_>>()).await;
    let ended = cloud.up(&state, &program("2").collect::<Vec<_>>()).run().await.expect(Outcome::Succeeded);
    let changes = ended.changes();
    let at =
        |call: &str| changes.iter().position(|other| other == call).unwrap_or_else(|| panic!("{call}: {changes:?}"));
    assert!(at("delete x-1") < at("delete a-1") && at("delete a-1") < at("create a"));
    assert!(at("delete y-1") < at("delete b-1") && at("delete b-1") < at("create b"));
    assert_eq!(changes.len(), 8);
}

/// Shows: engine.md#differences-from-pulumi "If two replacements delete the same dependent, both wait for its Delete."
#[tokio::test]
async fn shared_dependent_of_two_replacements_is_deleted_once_and_first() {
    let program = |d: &str| {
        [
            resource("a").input("d", d),
            resource("b").input("d", d),
            resource("c").input_from("k1", "a").input_from("k2", "b"),
        ]
    };
    let (cloud, state) = deploy(&program("1")).await;
    let held = cloud.hold("delete c-1");
    let ended = cloud.up(&state, &program("2")).run_held_at(held).await;
    let changes = ended.expect(Outcome::Succeeded).changes();
    assert_eq!(changes[0], "delete c-1");
    assert_eq!(changes.iter().filter(|change| *change == "delete c-1").count(), 1);
    assert_eq!(changes.last().unwrap(), "create c");
}

#[tokio::test]
async fn failed_delete_of_shared_dependent_keeps_both_replaced_resources() {
    let program = |d: &str| {
        [
            resource("a").input("d", d),
            resource("b").input("d", d),
            resource("c").input_from("k1", "a").input_from("k2", "b"),
        ]
    };
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("delete c-1", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["delete c-1"]);
    assert_eq!(ended.result("c"), RegistrationResult::Skipped);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 6);
}

#[tokio::test]
async fn resource_deleted_by_another_replacement_is_not_deleted_twice() {
    let program = |d: &str| [resource("a").input("d", d), resource("b").input("d", d).input_from("k", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    // The program has dropped the reference, so both are registered at once.
    let ended = cloud.up(&state, &[resource("a").input("d", "2"), resource("b").input("d", "2")]).run().await;
    let changes = ended.expect(Outcome::Succeeded).changes();
    assert_eq!(changes.iter().filter(|change| *change == "delete b-1").count(), 1);
}

#[tokio::test]
async fn registration_waits_for_running_delete_of_its_resource() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a")]).await;
    let held = cloud.hold("delete b-1");
    let program = [resource("a").input("d", "2"), resource("late"), resource("b").input("k", "a-1").depends_on("late")];
    let run = cloud.up(&state, &program).run();
    let (ended, ()) = tokio::join!(run, async {
        held.reached().await;
        yield_until_idle().await;
        assert_eq!((cloud.call_count("check b"), cloud.call_count("create b")), (2, 1), "the registration of b waits");
        held.release();
    });
    assert_eq!(ended.expect(Outcome::Succeeded).changes().len(), 5);
}

#[tokio::test]
async fn registration_under_alias_waits_for_running_delete() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a")]).await;
    let held = cloud.hold("delete b-1");
    let program = [
        resource("a").input("d", "2"),
        resource("late"),
        resource("c").alias("b").input("k", "a-1").depends_on("late"),
    ];
    let run = cloud.up(&state, &program).run();
    let (ended, ()) = tokio::join!(run, async {
        held.reached().await;
        yield_until_idle().await;
        assert_eq!((cloud.call_count("check c"), cloud.call_count("create c")), (1, 0), "the registration of c waits");
        held.release();
    });
    let mut entries = ended.expect(Outcome::Succeeded).entries();
    entries.sort();
    assert_eq!(entries, ["a-2", "c-1", "late-1"]);
}

#[tokio::test]
async fn renamed_former_dependent_is_not_a_dependent_replacement() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a")]).await;
    // `b` becomes `c`, depends on nothing, and is completed before `a` is replaced.
    let program = [resource("c").alias("b").input("k", "a-1"), resource("a").input("d", "2").depends_on("c")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "create a"]);
    assert_eq!(ended.entries(), ["b-1", "a-2"]);
}

#[tokio::test]
async fn former_dependent_being_updated_is_not_a_dependent_replacement() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("v", "a")]).await;
    let held = cloud.hold("update b-1");
    let ended =
        cloud.up(&state, &[resource("b").input("v", "free"), resource("a").input("d", "2")]).run_held_at(held).await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!(ended.call_count("delete b-1"), 0);
    assert_eq!(ended.call_count("update b-1"), 1);
}

#[tokio::test]
async fn registrations_return_while_delete_before_replace_waits() {
    let (cloud, state) = deploy(&[resource("slow"), resource("a").input("d", "1")]).await;
    let held = cloud.hold("check slow");
    let program = [resource("slow"), resource("a").input("d", "2"), resource("b"), resource("c").depends_on("b")];
    let ended = cloud.up(&state, &program).run_held_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).replies.len(), 4);
}

#[tokio::test]
async fn delete_before_replace_completes_with_parallel_one() {
    let program =
        |d: &str| [resource("a").input("d", d), resource("b").input_from("k", "a"), resource("c").input("d", d)];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).parallel(1).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 6);
}

#[tokio::test]
async fn running_create_is_recorded_after_another_failure() {
    let cloud = FakeCloud::default();
    cloud.fail("create bad", CallFailure::Error);
    let held = cloud.hold("create slow");
    let program = [resource("slow"), resource("bad"), resource("never").depends_on("slow")];
    let ended = cloud.up(&Snapshot::default(), &program).run_held_at(held).await;
    let ended = ended.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["slow-1"]);
    assert_eq!(ended.call_count("check never"), 0);
}

#[tokio::test]
async fn registration_makes_no_further_calls_after_another_failure() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    cloud.fail("create bad", CallFailure::Error);
    let held = cloud.hold("check a");
    let ended = cloud.up(&state, &[resource("a"), resource("bad")]).run_held_at(held).await;
    assert_eq!(ended.expect(Outcome::Failed).call_count("diff a"), 0);
}

#[tokio::test]
async fn concurrent_renames_of_two_dependencies_update_the_dependent() {
    let (cloud, state) =
        deploy(&[resource("a"), resource("b"), resource("x").input_from("v1", "a").input_from("v2", "b")]).await;
    let held = cloud.hold("diff a2");
    let program = [
        resource("a2").alias("a"),
        resource("b2").alias("b"),
        resource("x").input_from("v1", "a2").input_from("v2", "b2"),
    ];
    let ended = cloud.up(&state, &program).run_held_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).changes(), [""; 0]);
}

#[tokio::test]
async fn concurrent_rename_of_resource_and_dependency_leaves_one_entry_each() {
    let (cloud, state) = deploy(&[resource("b"), resource("a").depends_on("b")]).await;
    let held = cloud.hold("diff b2");
    let ended = cloud.up(&state, &[resource("b2").alias("b"), resource("a2").alias("a")]).run_held_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).entries(), ["a-1", "b-1"]);
}

#[tokio::test]
async fn pending_delete_entry_follows_rename_of_its_dependency() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").input("k", "1").depends_on("a")]).await;
    let held = cloud.hold("create b");
    let ended = cloud.up(&state, &[resource("a2").alias("a"), resource("b").input("k", "2")]).run_held_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).changes(), ["create b", "delete b-1"]);
}

#[tokio::test]
async fn component_outputs_keep_renamed_urn() {
    let (cloud, state) = deploy(&[component("g"), resource("a").parent("g"), resource("b").depends_on("a")]).await;
    let program = [
        component("h").alias("g").outputs(crate::fake_cloud::map(&[("o", "1")])),
        resource("a").parent("h"),
        resource("b").depends_on("a"),
    ];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(entry(&ended.state, "h").outputs, crate::fake_cloud::map(&[("o", "1")]).into());
}

#[tokio::test]
async fn resource_moved_off_replaced_provider_is_deleted_by_old_provider() {
    let program = |d: &str| [provider("p").input("d", d), provider("q"), resource("a").provider("p")];
    let (cloud, state) = deploy(&program("1")).await;
    let held = cloud.hold("create a");
    let moved = [
        provider("q"),
        resource("a").provider("q").input("k", "new"),
        resource("late"),
        provider("p").input("d", "2").depends_on("late"),
    ];
    let ended = cloud.up(&state, &moved).run_held_at(held).await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!(ended.call_count("delete a-1"), 1);
    assert!(!cloud.existing().contains("a-1"));
    assert!(entries(&ended.state).iter().all(|entry| !entry.contains('(')), "{:?}", ended.entries());
}

#[tokio::test]
async fn many_replacement_chains_complete_with_limited_parallelism() {
    let program = |d: &str| {
        let mut resources = Vec::new();
        for chain in 0..12 {
            resources.push(resource(&format!("root{chain}")).input("d", d));
            for link in 0..4 {
                let below = if link == 0 { format!("root{chain}") } else { format!("t{chain}-{}", link - 1) };
                resources.push(
                    resource(&format!("t{chain}-{link}")).input_from(if link % 2 == 0 { "k" } else { "v" }, &below),
                );
            }
        }
        resources
    };
    let (cloud, state) = deploy(&program("1")).await;
    cloud.vary_timing();
    cloud.up(&state, &program("2")).parallel(3).run().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn delete_waits_for_dependent_deleted_by_another_replacement() {
    let program = |d: &str| {
        [resource("a").input("d", d), resource("x").input_from("k", "a"), resource("b").input("d", d).depends_on("a")]
    };
    let (cloud, state) = deploy(&program("1")).await;
    let (x, b) = (cloud.hold("delete x-1"), cloud.hold("delete b-1"));
    // `b` no longer depends on `a`, and is itself replaced while the dependents of `a` are being deleted.
    let run = cloud
        .up(
            &state,
            &[resource("a").input("d", "2"), resource("late"), resource("b").input("d", "2").depends_on("late")],
        )
        .run();
    let (ended, ()) = tokio::join!(run, async {
        x.reached().await;
        b.reached().await;
        x.release();
        yield_until_idle().await;
        assert_eq!(cloud.call_count("delete a-1"), 0);
        b.release();
    });
    ended.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn former_dependent_is_deleted_after_running_delete_of_its_dependency() {
    let first = [
        resource("a").input("d", "1"),
        resource("b").input("v", "1").replace_with("a"),
        resource("c").input_from("k", "b").input("d", "1"),
    ];
    let (cloud, state) = deploy(&first).await;
    let b = cloud.hold("delete b-1");
    // The replacement of `a` deletes `b`; `c` no longer depends on `b`, and is itself replaced in the meantime.
    let then = [
        resource("a").input("d", "2"),
        resource("b").input_from("v", "a"),
        resource("late"),
        resource("c").input("d", "2").depends_on("late"),
    ];
    let (ended, ()) = tokio::join!(cloud.up(&state, &then).run(), async {
        b.reached().await;
        yield_until_idle().await;
        assert_eq!(cloud.call_count("delete c-1"), 0);
        b.release();
    });
    ended.expect(Outcome::Succeeded);
    assert_eq!(cloud.call_count("delete c-1"), 1);
}
