//! Tests of a crash after every record: each leaves a valid state, and the next run completes it.

use engine::events::Outcome;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::FakeCloud;
use crate::program::{ProgramResource, component, provider, resource};
use crate::run::EndedRun;

/// Runs a program again from the state after a crash at each record.
async fn assert_recovery_from_each_crash(ended: &EndedRun, program: &[ProgramResource]) {
    for state in &ended.crash_states {
        let cloud = FakeCloud::default();
        cloud.allow_missing_resources();
        let recovered = cloud.up(state, program).allow_lost_records().run().await.expect(Outcome::Succeeded);
        let again = cloud.up(&recovered.state, program).allow_lost_records().run().await.expect(Outcome::Succeeded);
        assert_eq!(again.changes(), [""; 0]);
        let (mut names, mut expected) = (names(&again.state), names(&ended.state));
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
    }
}

fn names(state: &Snapshot) -> Vec<String> {
    state.resources.iter().map(|state| state.urn.to_string()).collect()
}

fn program(value: &str, key: &str) -> Vec<ProgramResource> {
    vec![
        provider("p").input(key, value),
        component("g"),
        resource("a").input(key, value).parent("g"),
        resource("b").input_from("k", "a").provider("p"),
        resource("c").input_from("v", "b").depends_on("g"),
    ]
}

#[tokio::test]
async fn crash_during_first_create_is_recoverable() {
    let cloud = FakeCloud::default();
    let ended = cloud.up(&Snapshot::default(), &program("1", "v")).run().await.expect(Outcome::Succeeded);
    assert_recovery_from_each_crash(&ended, &program("1", "v")).await;
}

#[tokio::test]
async fn crash_during_update_is_recoverable() {
    let (cloud, state) = deploy(&program("1", "v")).await;
    let ended = cloud.up(&state, &program("2", "v")).run().await.expect(Outcome::Succeeded);
    assert_recovery_from_each_crash(&ended, &program("2", "v")).await;
}

#[tokio::test]
async fn crash_during_create_before_delete_is_recoverable() {
    let (cloud, state) = deploy(&program("1", "k")).await;
    let ended = cloud.up(&state, &program("2", "k")).run().await.expect(Outcome::Succeeded);
    assert_recovery_from_each_crash(&ended, &program("2", "k")).await;
}

#[tokio::test]
async fn crash_during_delete_before_replace_is_recoverable() {
    let (cloud, state) = deploy(&program("1", "d")).await;
    let ended = cloud.up(&state, &program("2", "d")).run().await.expect(Outcome::Succeeded);
    assert_recovery_from_each_crash(&ended, &program("2", "d")).await;
}

#[tokio::test]
async fn crash_during_delete_is_recoverable() {
    let (cloud, state) = deploy(&program("1", "v")).await;
    let ended = cloud.up(&state, &[resource("c")]).run().await.expect(Outcome::Succeeded);
    assert_recovery_from_each_crash(&ended, &[resource("c")]).await;
}

#[tokio::test]
async fn crash_during_rename_is_recoverable() {
    let (cloud, state) = deploy(&program("1", "v")).await;
    let renamed = [
        provider("p2").alias("p").input("v", "1"),
        component("g2").alias("g"),
        resource("a2").alias("a").input("v", "1").parent("g2"),
        resource("b2").alias("b").input_from("k", "a2").provider("p2"),
        resource("c").input_from("v", "b2").depends_on("g2"),
    ];
    let ended = cloud.up(&state, &renamed).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_recovery_from_each_crash(&ended, &renamed).await;
}
