//! Tests of old versions, pending deletes of an earlier run, that an entry still uses because that run could not update it.

use engine::events::Outcome;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud};
use crate::program::{ProgramResource, resource};

/// Deploys `a` and its user `b`, then replaces `a` in a run whose update of `b` fails: `a-1` is a pending delete, and `b`
/// uses it.
async fn deploy_user_of_old_version(b: impl Fn(ProgramResource) -> ProgramResource) -> (FakeCloud, Snapshot) {
    let program = |version: &str| [resource("a").input("k", version), b(resource("b").input_from("v", "a"))];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("update b-1", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-2", "a-1 (delete)", "b-1"]);
    cloud.clear_failures();
    (cloud, ended.state)
}

fn replaced() -> ProgramResource {
    resource("a").input("k", "2")
}

#[tokio::test]
async fn old_version_stays_while_its_protected_user_stays() {
    let (cloud, state) = deploy_user_of_old_version(ProgramResource::protected).await;
    let ended = cloud.up(&state, &[replaced()]).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0], "b is protected and uses a-1");
}

#[tokio::test]
async fn old_version_stays_if_the_delete_of_its_user_fails() {
    for parallel in [1, 16] {
        let (cloud, state) = deploy_user_of_old_version(|b| b).await;
        cloud.fail("delete b-1", CallFailure::Error);
        let run = cloud.up(&state, &[replaced()]).parallel(parallel).continue_on_error();
        let ended = run.run().await.expect(Outcome::Failed);
        assert_eq!(ended.changes(), ["delete b-1"]);
        let destroyed = cloud.destroy(&state).parallel(parallel).continue_on_error().run().await;
        assert_eq!(destroyed.expect(Outcome::Failed).changes(), ["delete b-1"]);
        let program = [replaced(), resource("b").input_from("v", "a")];
        let run = cloud.destroy_with(&state, &program).parallel(parallel).continue_on_error();
        assert!(!run.run().await.expect(Outcome::Failed).changes().contains(&"delete a-1".to_owned()));
    }
}

#[tokio::test]
async fn old_version_stays_while_its_user_is_out_of_scope() {
    let (cloud, state) = deploy_user_of_old_version(|b| b).await;
    let registered = vec![replaced(), resource("b").input_from("v", "a")];
    let targeted = cloud.up(&state, &registered).target("a").run().await.expect(Outcome::Succeeded);
    assert_eq!(targeted.changes(), [""; 0]);
    for program in [registered, vec![replaced()]] {
        let excluded = cloud.up(&state, &program).exclude("b").run().await.expect(Outcome::Succeeded);
        assert_eq!(excluded.changes(), [""; 0]);
        assert_eq!(excluded.entries().len(), 3);
    }
}

#[tokio::test]
async fn old_version_goes_after_its_user_is_updated_or_deleted() {
    for parallel in [1, 16] {
        let (cloud, state) = deploy_user_of_old_version(|b| b).await;
        let updated = [replaced(), resource("b").input_from("v", "a")];
        let run = cloud.fork(&cloud.state()).up(&state, &updated).parallel(parallel);
        assert_eq!(run.run().await.expect(Outcome::Succeeded).changes(), ["update b-1", "delete a-1"]);
        let run = cloud.fork(&cloud.state()).up(&state, &[replaced()]).parallel(parallel);
        assert_eq!(run.run().await.expect(Outcome::Succeeded).changes(), ["delete b-1", "delete a-1"]);
        let run = cloud.destroy(&state).parallel(parallel);
        let ended = run.run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes().first().map(String::as_str), Some("delete b-1"), "{:?}", ended.changes());
    }
}

#[tokio::test]
async fn old_version_that_is_recorded_after_its_user_goes_after_it() {
    let program = |version: &str| [resource("a").input("k", version), resource("b").input_from("v", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("delete a-1", CallFailure::Error);
    let state = cloud.up(&state, &program("2")).target("a").run().await.expect(Outcome::Failed);
    assert_eq!(state.entries(), ["a-2", "b-1", "a-1 (delete)"]);
    cloud.clear_failures();
    for parallel in [1, 16] {
        let fork = cloud.fork(&cloud.state());
        let run = fork.up(&state.state, &[replaced()]).parallel(parallel);
        assert_eq!(run.run().await.expect(Outcome::Succeeded).changes(), ["delete b-1", "delete a-1"]);
        let fork = cloud.fork(&cloud.state());
        fork.fail("delete b-1", CallFailure::Error);
        let run = fork.up(&state.state, &[replaced()]).parallel(parallel).continue_on_error();
        assert_eq!(run.run().await.expect(Outcome::Failed).changes(), ["delete b-1"]);
    }
}
