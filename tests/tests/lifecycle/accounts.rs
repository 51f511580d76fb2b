//! Tests of resources that a program moves to a provider of another account: they exist in the account of the recorded provider.

use engine::events::Outcome;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::FakeCloud;
use crate::program::{ProgramResource, provider, resource};
use crate::run::entry;

/// Deploys a resource with the default provider, and returns the program that moves it to a provider of another account.
async fn deploy_and_move_to_other_account() -> (FakeCloud, Snapshot, [ProgramResource; 2]) {
    let (cloud, state) = deploy(&[resource("c")]).await;
    (cloud, state, [provider("p").input("dAccount", "2"), resource("c").provider("p")])
}

#[tokio::test]
async fn refresh_reads_a_resource_in_the_account_in_which_it_is_recorded() {
    let (cloud, state, program) = deploy_and_move_to_other_account().await;
    let recorded = entry(&state, "c").provider.clone();
    let refreshed = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&refreshed.state, "c").provider, recorded, "{:?}", refreshed.entries());
    let ended = cloud.up(&refreshed.state, &program).refresh_first().run_program().run().await;
    assert_eq!(ended.expect(Outcome::Succeeded).changes(), ["create c", "delete c-1"]);
}

#[tokio::test]
async fn destroy_deletes_a_resource_in_the_account_in_which_it_is_recorded() {
    for refreshes in [false, true] {
        let (cloud, state, program) = deploy_and_move_to_other_account().await;
        let run = cloud.destroy_with(&state, &program);
        let run = if refreshes { run.refresh_first() } else { run };
        let ended = run.run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["delete c-1"]);
        assert!(cloud.existing().is_empty(), "{:?}", cloud.existing());
    }
}

#[tokio::test]
async fn recorded_provider_may_be_renamed_at_the_same_time() {
    let p = |token: &str| provider("p").input("dAccount", "1").input("vToken", token);
    let (cloud, state) = deploy(&[p("1"), resource("c").provider("p")]).await;
    let renamed = provider("p2").alias("p").input("dAccount", "1").input("vToken", "2");
    for program in [[renamed.clone(), resource("c")], [resource("c"), renamed]] {
        for refreshes in [false, true] {
            let fork = cloud.fork(&cloud.state());
            let run = fork.destroy_with(&state, &program);
            let run = if refreshes { run.refresh_first() } else { run };
            let ended = run.run().await.expect(Outcome::Succeeded);
            assert_eq!(ended.changes(), ["delete c-1"]);
        }
    }
}
