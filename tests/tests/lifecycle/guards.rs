//! Tests of the numbers and questions that guards of a command line need: deletions, and resources that a refresh does not
//! find.

use engine::events::{Deletions, Outcome};
use pulumi_proto::resource_id::ResourceId;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, REFRESH_BEFORE_UPDATE};
use crate::program::{ProgramResource, component, get, provider, resource};
use crate::run::{Run, entries};

/// Returns the deletions that a preview announces, after checking that the run makes as many, and does not exceed them as a limit.
async fn announced(cloud: &FakeCloud, state: &Snapshot, program: &[ProgramResource]) -> Deletions {
    let preview = cloud.up(state, program).preview().run().await.expect(Outcome::Succeeded);
    let count = preview.deletions.total();
    if let Some(too_few) = count.checked_sub(1) {
        let ended = cloud.fork(&cloud.state()).up(state, program).deletion_limit(too_few).run().await;
        let ended = ended.expect(Outcome::Failed);
        assert!(ended.deletions.total() <= too_few, "{:?}", ended.changes());
        let text = format!("the run would delete or replace more resources than the limit of {too_few}");
        assert!(ended.errors.iter().any(|error| error.contains(&text)), "{:?}", ended.errors);
    }
    let only = cloud.fork(&cloud.state()).up(state, program).delete_only(&preview.deleted).run().await;
    assert_eq!(only.expect(Outcome::Succeeded).deletions, preview.deletions);
    let ended = cloud.up(state, program).deletion_limit(count).run().await.expect(Outcome::Succeeded);
    assert_eq!(preview.deletions, ended.deletions);
    preview.deletions
}

fn deletions(removed: usize, replaced: usize) -> Deletions {
    Deletions { replaced, removed }
}

#[tokio::test]
async fn removed_and_replaced_resources_and_dependents_count_as_deleted() {
    let program = |k: &str, d: &str| {
        [resource("a").input("k", k), resource("b").input_from("k", "a"), resource("c").input("d", d)]
    };
    let (cloud, state) = deploy(&program("1", "1")).await;
    assert_eq!(announced(&cloud.fork(&cloud.state()), &state, &program("2", "2")).await, deletions(0, 3));
    assert_eq!(announced(&cloud.fork(&cloud.state()), &state, &[resource("a").input("k", "2")]).await, deletions(2, 1));
    assert_eq!(announced(&cloud.fork(&cloud.state()), &state, &program("1", "1")).await, deletions(0, 0));
    let destroyed = cloud.destroy(&state).preview().run().await.expect(Outcome::Succeeded);
    assert_eq!(destroyed.deletions, deletions(3, 0));
}

#[tokio::test]
async fn dependents_that_are_deleted_before_a_replacement_count_as_deleted() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a")]).await;
    let program = [resource("a").input("d", "2"), resource("b").input_from("k", "a")];
    assert_eq!(announced(&cloud.fork(&cloud.state()), &state, &program).await, deletions(0, 2));
    let dropped = announced(&cloud, &state, &[resource("a").input("d", "2")]).await;
    assert_eq!(dropped.total(), 2);
}

/// Shows: server-yaml.md#guards "Every resource counts for which the run calls Delete"
/// Shows: server-yaml.md#guards "A resource with `retainOnDelete` does not"
#[tokio::test]
async fn pending_deletes_of_earlier_runs_count_as_deleted() {
    let program = |k: &str| [resource("a").input("k", k)];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("delete a-1", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    assert_eq!(ended.deletions, deletions(0, 0));
    cloud.clear_failures();
    assert_eq!(announced(&cloud.fork(&cloud.state()), &ended.state, &program("2")).await, deletions(1, 0));
    assert_eq!(announced(&cloud.fork(&cloud.state()), &ended.state, &program("3")).await, deletions(1, 1));
}

#[tokio::test]
async fn replacement_by_an_import_counts_as_deleted() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    cloud.add("found-a");
    let program = [resource("a").edit_goal(|goal| goal.import_id = ResourceId::new("found-a"))];
    assert_eq!(announced(&cloud, &state, &program).await.total(), 1);
}

/// A preview that does not know an output announces an update where the run replaces.
#[tokio::test]
async fn run_that_would_delete_more_than_its_limit_changes_nothing_for_that() {
    let replaced = |key: &str| [resource("a").input(key, "2"), resource("b")];
    let dependents = [resource("a").input("d", "2"), resource("b").input_from("k", "a")];
    let table: [(&[ProgramResource], &[ProgramResource], &str); 4] = [
        (&[resource("a").input("k", "1"), resource("b")], &replaced("k"), "a: a would be replaced"),
        (&[resource("a").input("d", "1"), resource("b")], &replaced("d"), "a: a would be replaced"),
        (&[resource("a").input("d", "1"), dependents[1].clone()], &dependents, "a: a would be replaced"),
        (&[resource("a"), resource("b")], &[resource("a")], ": b was not deleted"),
    ];
    for (before, after, error) in table {
        let (cloud, state) = deploy(before).await;
        for parallel in [1, 16] {
            let run = cloud.up(&state, after).deletion_limit(0).parallel(parallel).continue_on_error();
            let ended = run.run().await.expect(Outcome::Failed);
            let text = format!("{error}: the run would delete or replace more resources than the limit of 0");
            assert_eq!((ended.errors.as_slice(), ended.changes()), (&[text][..], Vec::new()));
            let sorted = |mut entries: Vec<String>| {
                entries.sort();
                entries
            };
            assert_eq!(sorted(ended.entries()), sorted(entries(&state)));
            assert_eq!(ended.hints, ["allow more"]);
        }
    }
}

#[tokio::test]
async fn limit_that_is_reached_lets_begun_replacements_finish() {
    let program = |d: &str| -> Vec<ProgramResource> {
        let root = |n: usize| resource(&format!("r{n}")).input("d", d);
        let dependent = |n: usize| resource(&format!("s{n}")).input_from("k", &format!("r{n}"));
        (0..6).flat_map(|n| [root(n), dependent(n)]).collect()
    };
    let (cloud, state) = deploy(&program("1")).await;
    for parallel in [1, 16] {
        let fork = cloud.fork(&cloud.state());
        let run = fork.up(&state, &program("2")).deletion_limit(5).parallel(parallel);
        let ended = run.run().await.expect(Outcome::Failed);
        assert_eq!((ended.deletions.total(), fork.existing().len()), (4, 12), "{:?}", ended.changes());
        assert!(!ended.state.resources.iter().any(|entry| entry.pending_replacement), "{:?}", ended.entries());
        assert_eq!(ended.errors.len(), 4, "{:?}", ended.errors);
    }
}

#[tokio::test]
async fn resource_that_the_preview_has_not_shown_is_not_deleted_in_place_of_another() {
    let program = |a: &str, b: &str| [resource("a").input("k", a), resource("b").input("d", b), resource("c")];
    let (cloud, state) = deploy(&program("1", "1")).await;
    let preview = cloud.up(&state, &program("2", "1")).preview().run().await.expect(Outcome::Succeeded);
    let shown = |name: &str| preview.deleted.iter().any(|urn| urn.name() == name);
    assert!(shown("a") && !shown("b"), "{:?}", preview.deleted);
    for (after, error) in
        [(&program("1", "2")[..], "b: b would be replaced"), (&program("1", "1")[..2], ": c was not deleted")]
    {
        let ended = cloud.up(&state, after).delete_only(&preview.deleted).run().await.expect(Outcome::Failed);
        assert_eq!(ended.errors.len(), 1, "{:?}", ended.errors);
        assert!(ended.errors[0].starts_with(error), "{:?}", ended.errors);
        assert!(ended.errors[0].contains(": the preview has not shown that "), "{:?}", ended.errors);
        assert_eq!(ended.changes(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn retained_resources_components_and_providers_do_not_count_as_deleted() {
    let retained = |name: &str| resource(name).edit_goal(|goal| goal.retain_on_delete = Some(true));
    let program = [provider("p"), component("g"), retained("a"), resource("b").provider("p"), get("c", "there")];
    let cloud = FakeCloud::default();
    cloud.add("there");
    let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(announced(&cloud, &ended.state, &[]).await, deletions(1, 0));
    let (cloud, state) = deploy(&[retained("a").input("k", "1")]).await;
    assert_eq!(announced(&cloud, &state, &[retained("a").input("k", "2")]).await, deletions(0, 0));
}

#[tokio::test]
async fn refused_refresh_records_nothing() {
    let program = [resource("a"), resource("b").input_from("v", "a"), resource("c")];
    let (cloud, state) = deploy(&program).await;
    cloud.blind();
    type Start = fn(&FakeCloud, &Snapshot, &[ProgramResource]) -> Run;
    let starts: [Start; 3] = [
        |cloud, state, _| cloud.refresh(state),
        |cloud, state, program| cloud.up(state, program).refresh_first().continue_on_error(),
        |cloud, state, _| cloud.destroy(state).refresh_first(),
    ];
    for start in starts {
        for parallel in [1, 16] {
            let run = start(&cloud, &state, &program).refuse_missing().parallel(parallel);
            let ended = run.run().await.expect(Outcome::Failed);
            assert_eq!(ended.errors, [": missing: a, b, c"]);
            assert_eq!((ended.changes(), ended.entries()), (Vec::new(), entries(&state)));
        }
        // A preview goes on.
        let preview = start(&cloud, &state, &program).refuse_missing().preview().run().await;
        let preview = preview.expect(Outcome::Succeeded);
        assert_eq!((preview.readings[0].read, preview.readings[0].missing.len()), (3, 3));
    }
    cloud.clear_failures();
    let ended = cloud.up(&state, &program).refresh_first().refuse_missing().run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn resource_that_is_read_before_its_update_is_approved_without_a_refresh() {
    let program = [resource("a").input(REFRESH_BEFORE_UPDATE, "1"), resource("b")];
    let (cloud, state) = deploy(&program).await;
    cloud.blind();
    let ended = cloud.up(&state, &program).refuse_missing().run().await.expect(Outcome::Failed);
    assert_eq!((ended.errors, ended.readings[0].read), (vec![": missing: a".to_owned()], 1));
}

#[tokio::test]
async fn readings_are_counted_by_provider_and_name_protected_resources() {
    let protected = resource("a").edit_goal(|goal| goal.protect = Some(true));
    let program =
        [provider("p"), protected.provider("p"), resource("b").provider("p"), resource("c"), get("d", "there")];
    let cloud = FakeCloud::default();
    cloud.add("there");
    let state = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded).state;
    cloud.fail("read a-1", CallFailure::Missing);
    let runs = [
        cloud.refresh(&state),
        cloud.refresh_with(&state, &program).preview(),
        cloud.up(&state, &program).refresh_first().run_program().preview(),
    ];
    for run in runs {
        let ended = run.run().await.expect(Outcome::Succeeded);
        let mut found: Vec<_> = ended.readings.iter().map(|found| (found.providers[0].name(), found.read)).collect();
        found.sort();
        assert_eq!(found, [("default", 1), ("p", 2)]);
        let missing = ended.readings.iter().flat_map(|found| &found.missing);
        let missing: Vec<_> = missing.map(|resource| (resource.urn.name(), resource.protect)).collect();
        assert_eq!(missing, [("a", true)]);
    }
}

/// Each plugin of server.yaml and each core type has a provider resource of its own.
#[tokio::test]
async fn providers_with_equal_configurations_have_one_number() {
    let program = |other: &str| {
        let of = |name: &str, v: &str| provider(name).input("v", v);
        let things = ["a", "b", "c"].map(|name| resource(name).provider(&format!("p{name}")));
        [of("pa", "1"), of("pb", "1"), of("pc", other)].into_iter().chain(things).collect::<Vec<_>>()
    };
    for (other, expected) in [("1", [0, 0, 0]), ("2", [0, 0, 2])] {
        let (cloud, state) = deploy(&program(other)).await;
        cloud.blind();
        for run in [cloud.refresh(&state), cloud.refresh_with(&state, &program(other)).preview()] {
            let ended = run.run().await.expect(Outcome::Succeeded);
            let found: Vec<_> = ended.readings.iter().map(|found| found.configuration).collect();
            assert_eq!(found, expected);
        }
    }
}

#[tokio::test]
async fn provider_that_was_reconfigured_after_missing_resources_is_the_likely_cause() {
    let program = |v: &str| [provider("p").input("v", v), resource("a").provider("p"), resource("b").provider("p")];
    let (cloud, state) = deploy(&program("1")).await;
    let is_reconfigured = async |state: &Snapshot| {
        cloud.blind();
        let ended = cloud.refresh(state).preview().run().await.expect(Outcome::Succeeded);
        cloud.clear_failures();
        ended.readings[0].is_reconfigured
    };
    assert!(!is_reconfigured(&state).await);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert!(is_reconfigured(&ended.state).await);
    let changed =
        [provider("p").input("v", "2"), resource("a").provider("p").input("v", "1"), resource("b").provider("p")];
    let ended = cloud.up(&ended.state, &changed).run().await.expect(Outcome::Succeeded);
    assert!(!is_reconfigured(&ended.state).await, "a was updated with the new configuration");
}
