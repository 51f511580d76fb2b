//! Tests of entries that name one actual resource: no Delete hits the resource of an entry that stays.

use engine::events::Outcome;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, NAMED, yield_until_idle};
use crate::program::{ProgramResource, get, provider, resource};
use crate::run::EndedRun;

/// Returns a resource whose Create takes an existing resource of the name `x` over.
fn named(name: &str) -> ProgramResource {
    resource(name).input(NAMED, "x")
}

fn has_x(cloud: &FakeCloud) -> bool {
    cloud.existing().contains("x")
}

/// Checks that a run sent no Delete, kept the entries, and reported in one warning that one entry keeps the resource.
fn check_kept(ended: &EndedRun, cloud: &FakeCloud, entries: &[&str], keeper: &str) {
    assert!(!ended.changes().contains(&"delete x".to_owned()), "{:?}", ended.changes());
    assert!(has_x(cloud), "{:?}", ended.changes());
    assert_eq!(ended.entries(), entries, "{:?}", ended.warnings);
    assert_eq!(ended.warnings.len(), 1, "{:?}", ended.warnings);
    assert!(ended.warnings[0].contains("\"x\" is not deleted"), "{:?}", ended.warnings);
    let command = format!("run `sc destroy -s s --target urn:pulumi:s::p::cloud:index:Thing::{keeper}`");
    assert!(ended.hints.iter().any(|hint| hint.contains(&command)), "{:?}", ended.hints);
}

/// Shows: engine.md#one-resource-two-entries "The engine sends no Delete for a resource that an entry names that stays"
#[tokio::test]
async fn renamed_resource_that_is_taken_over_is_not_deleted() {
    let (cloud, state) = deploy(&[named("a")]).await;
    let ended = cloud.up(&state, &[named("b")]).run().await.expect(Outcome::Succeeded);
    check_kept(&ended, &cloud, &["x"], "b");
    assert!(ended.warnings[0].contains("a and b (urn:"), "{:?}", ended.warnings);
    let ended = cloud.destroy(&ended.state).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), has_x(&cloud)), (vec!["delete x".to_owned()], false));
}

/// Shows: engine.md#one-resource-two-entries "The engine sends no Delete for a resource that an entry names that stays"
#[tokio::test]
async fn replacement_that_takes_the_old_resource_over_does_not_delete_it() {
    let (cloud, state) = deploy(&[named("a").input("k", "1")]).await;
    let ended = cloud.up(&state, &[named("a").input("k", "2")]).run().await.expect(Outcome::Succeeded);
    check_kept(&ended, &cloud, &["x"], "a");
    assert!(ended.warnings[0].contains("the replaced a and the new a"), "{:?}", ended.warnings);
}

#[tokio::test]
async fn pending_delete_of_an_interrupted_run_does_not_delete_the_resource_of_the_live_entry() {
    let program = |k: &str| [named("a").input("k", k), resource("b").input_from("v", "a").input("w", k)];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("update b-1", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["x", "x (delete)", "b-1"]);
    cloud.clear_failures();
    for run in
        [cloud.up(&ended.state, &program("2")).refresh_first(), cloud.up(&ended.state, &program("2")).parallel(1)]
    {
        let ended = run.run().await.expect(Outcome::Succeeded);
        check_kept(&ended, &cloud, &["x", "b-1"], "a");
    }
    // Both entries are deleted with one Delete, and without a warning.
    let ended = cloud.destroy(&ended.state).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete x"]);
    assert_eq!(ended.warnings, [""; 0]);
}

#[tokio::test]
async fn delete_before_replace_does_not_delete_the_resource_of_another_entry() {
    let (cloud, state) = deploy(&[named("a").input("d", "1"), named("b").input("d", "1")]).await;
    let program = [named("a").input("d", "2"), named("b").input("d", "1")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    check_kept(&ended, &cloud, &["x", "x"], "b");
    // Without another entry the order stays: delete, then create.
    let (cloud, state) = deploy(&[named("a").input("d", "1")]).await;
    let ended = cloud.up(&state, &[named("a").input("d", "2")]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.warnings), (vec!["delete x".to_owned(), "create a".to_owned()], Vec::new()));
}

/// Shows: engine.md#one-resource-two-entries "The engine sends no Delete for a resource that an entry names that stays"
#[tokio::test]
async fn one_of_two_entries_is_removed_without_a_delete() {
    let (cloud, state) = deploy(&[named("a"), named("b")]).await;
    let program = [named("b")];
    let preview = cloud.up(&state, &program).preview().run().await.expect(Outcome::Succeeded);
    assert_eq!(preview.warnings.len(), 1, "{:?}", preview.warnings);
    assert!(preview.steps.contains(&"discard a".to_owned()), "{:?}", preview.steps);
    for run in [
        cloud.up(&state, &program),
        cloud.up(&state, &program).refresh_first(),
        cloud.up(&state, &program).refresh_first().run_program(),
        cloud.destroy(&state).target("a"),
    ] {
        let ended = run.run().await.expect(Outcome::Succeeded);
        check_kept(&ended, &cloud, &["x"], "b");
    }
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries().len()), (vec!["delete x".to_owned()], 0));
}

#[tokio::test]
async fn resource_of_a_protected_retained_or_read_entry_is_not_deleted() {
    let (cloud, state) = deploy(&[named("a"), named("b").protected()]).await;
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Failed);
    check_kept(&ended, &cloud, &["x"], "b");
    let (cloud, state) = deploy(&[named("a"), named("b").retained()]).await;
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.entries().len(), has_x(&cloud)), (0, 0, true));
    let (cloud, state) = deploy(&[named("a")]).await;
    let ended = cloud.up(&state, &[get("b", "x")]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.warnings.len(), has_x(&cloud)), (0, 1, true));
}

#[tokio::test]
async fn pending_delete_that_retains_a_resource_keeps_it_before_a_replacement_of_another_entry() {
    let (cloud, state) = deploy(&[named("a").input("k", "1").input("d", "1")]).await;
    cloud.fail("create b", CallFailure::Error);
    let b = || resource("b").depends_on("a");
    let retained = [resource("a").input("k", "2").input("d", "1").retained(), b()];
    let ended = cloud.up(&state, &retained).run().await.expect(Outcome::Failed);
    let program = |d: &str| [named("a").input("k", "1").input("d", d), b()];
    let ended = cloud.up(&ended.state, &program("1")).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["x", "a-2 (delete)", "x (delete)"]);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "create b"]);
    assert!(has_x(&cloud), "{:?}", ended.entries());
}

#[tokio::test]
async fn equal_configuration_makes_two_providers_one_and_another_makes_them_two() {
    for (config, deletes) in [("1", 0), ("2", 1)] {
        let providers = || vec![provider("p").input("kAccount", "1"), provider("q").input("kAccount", config)];
        let on = |name: &str, provider: &str| vec![named(name).provider(provider)];
        let (cloud, state) = deploy(&[providers(), on("a", "p")].concat()).await;
        let ended = cloud.up(&state, &[providers(), on("b", "q")].concat()).run().await.expect(Outcome::Succeeded);
        let deleted = ended.changes().iter().filter(|change| change.starts_with("delete")).count();
        assert_eq!((deleted, ended.warnings.len()), (deletes, 1 - deletes), "{:?}", ended.changes());
        assert_eq!(cloud.existing().len(), 1);
    }
}

#[tokio::test]
async fn pending_delete_of_a_resource_that_is_deleted_before_its_replacement_goes_with_it() {
    let (cloud, state) = deploy(&[resource("a").input("k", "1").input("d", "1")]).await;
    cloud.fail("delete a-1", CallFailure::Error);
    let program = [resource("a").input("k", "2").input("d", "1")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Failed);
    // The old version is imported again, and the run ends before its pending delete is removed.
    cloud.clear_failures();
    cloud.fail("create b", CallFailure::Error);
    let imported = resource("a").input("k", "1").input("d", "1").imported("a-1");
    let ended = cloud.up(&ended.state, &[imported, resource("b").depends_on("a")]).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &[resource("a").input("k", "1").input("d", "2")]).run().await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("delete a-1"), ended.entries()), (1, vec!["a-3".to_owned()]), "{:?}", ended.changes());
}

#[tokio::test]
async fn resource_with_a_placeholder_id_or_an_id_of_many_entries_is_deleted_as_always() {
    let none = |name: &str| resource(name).input(NAMED, "none");
    let (cloud, state) = deploy(&[none("a")]).await;
    let run = cloud.up(&state, &[none("b")]).allow_lost_records();
    let ended = run.run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.warnings.len()), (vec!["create b".to_owned(), "delete none".to_owned()], 0));

    let (cloud, state) = deploy(&[named("a"), named("b"), named("c")]).await;
    let run = cloud.up(&state, &[named("b"), named("c")]).allow_lost_records();
    let ended = run.run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.warnings.len()), (vec!["delete x".to_owned()], 0), "three entries");
}

#[tokio::test]
async fn provider_decides_whether_entries_with_other_outputs_name_one_resource() {
    let second = named("b").input("v", "2").depends_on("a");
    let (cloud, state) = deploy(&[named("a").input("v", "1"), second]).await;
    let program = [named("b").input("v", "2")];
    // The recorded outputs of `a` are out of date: the resource has those of `b`.
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    check_kept(&ended, &cloud, &["x"], "b");
    // Nothing shows that there are two resources.
    for failure in [CallFailure::Error, CallFailure::Crash] {
        cloud.fail("read x", failure);
        let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
        check_kept(&ended, &cloud, &["x"], "b");
        cloud.clear_failures();
    }
    // If both go, no Delete hits a resource that stays.
    let fork = cloud.fork(&cloud.state());
    fork.allow_missing_resources();
    fork.fail("read x", CallFailure::Error);
    let ended = fork.destroy(&state).allow_lost_records().run().await;
    assert_eq!(ended.changes(), ["delete x", "delete x"]);
    let fork = cloud.fork(&cloud.state());
    fork.fail("read x", CallFailure::Missing);
    let ended = fork.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.warnings.len(), ended.entries()), (vec![], 1, vec!["x".to_owned()]));
    // The provider does not find the resource by its id alone, so both ids are equal by chance.
    cloud.find_nothing_by_id();
    let program = [named("a").input("v", "1")];
    let ended = cloud.up(&state, &program).allow_lost_records().run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.warnings.len()), (vec!["delete x".to_owned()], 0));
}

/// The Delete is sent before the Create has returned the id.
#[tokio::test]
async fn resource_that_is_taken_over_while_it_is_deleted_is_not_recorded_as_created() {
    let old = |name: &str, d: &str| resource("old").input(NAMED, name).input("d", d);
    let program = [old("y", "2"), resource("new").input(NAMED, "x")];
    let (cloud, state) = deploy(&[old("x", "1")]).await;
    let (create, delete) = (cloud.hold("create new"), cloud.hold("delete x"));
    let (ended, ()) = tokio::join!(cloud.up(&state, &program).run(), async {
        create.reached().await;
        delete.reached().await;
        create.release();
        yield_until_idle().await;
        delete.release();
    });
    let ended = ended.expect(Outcome::Failed);
    let text = "the provider returned the existing \"x\", which was deleted at the same time as the resource of old";
    assert!(ended.errors[0].contains(text), "{:?}", ended.errors);
    assert!(!has_x(&cloud) && !ended.entries().contains(&"x".to_owned()), "{:?}", ended.entries());
    let next = cloud.fork(&cloud.state());
    let ended = next.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert!(has_x(&next) && next.existing().contains("y"), "{:?}", ended.changes());
}
