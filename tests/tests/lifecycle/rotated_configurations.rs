//! Refreshes with a recorded configuration that does not work any more.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::provider::{Alias, AliasParent};
use engine::events::Outcome;
use engine::{Goal, ProgramGoals};
use pulumi_proto::urn::TypeToken;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{FakeCloud, map};
use crate::program::{ProgramResource, provider, resource};
use crate::run::{EndedRun, Run, entry};

/// Program with these goals.
#[derive(Debug)]
struct Goals(Vec<Goal>);

#[async_trait]
impl ProgramGoals for Goals {
    async fn goals(&self) -> Vec<Goal> {
        self.0.clone()
    }
}

fn provider_goal(name: &str, token: &str, account: &str) -> Goal {
    let inputs = map(&[("vToken", token), ("kAccount", account)]);
    Goal::custom(TypeToken::new("pulumi:providers:cloud"), name, inputs)
}

const CALLS: [&str; 2] = ["configure", "read"];

fn program(token: &str, account: &str) -> [ProgramResource; 3] {
    [
        provider("p").input("vToken", token).input("kAccount", account),
        resource("a").provider("p"),
        resource("b").provider("p"),
    ]
}

/// Deploys the program, after which the cloud refuses the token `old` in a call.
async fn rotated(call: &'static str) -> (FakeCloud, Snapshot) {
    let (cloud, state) = deploy(&program("old-7", "one")).await;
    cloud.refuse(call, "vToken", "old-7");
    (cloud, state)
}

fn of_program(run: Run, token: &str, account: &str) -> Run {
    run.program_goals(Arc::new(Goals(vec![provider_goal("p", token, account)])))
}

fn assert_read_with_program(ended: &EndedRun, what: &str) {
    let warning = "p: the recorded configuration of the provider p does not work any more: its resources are read with that of \
                   the program, which differs in vToken";
    assert_eq!(ended.warnings, [warning], "{what}");
}

/// Shows: engine.md#differences-from-pulumi "A refresh whose recorded configuration does not work any more is repeated
///   with that of the program, if DiffConfig calls the difference no replacement."
#[tokio::test]
async fn refresh_is_repeated_with_a_configuration_that_differs_in_place() {
    for call in CALLS {
        let (cloud, state) = rotated(call).await;
        let ended = of_program(cloud.refresh(&state), "new-8", "one").run().await.expect(Outcome::Succeeded);
        assert_read_with_program(&ended, call);
        assert_eq!(entry(&ended.state, "p").inputs, entry(&state, "p").inputs, "the next update records it");
        let update = of_program(cloud.up(&state, &program("new-8", "one")).refresh_first(), "new-8", "one");
        let ended = update.run().await.expect(Outcome::Succeeded);
        assert_read_with_program(&ended, call);
        assert_eq!(ended.changes(), [""; 0]);
        let preview = of_program(cloud.up(&state, &program("new-8", "one")).refresh_first(), "new-8", "one").preview();
        assert_read_with_program(&preview.run().await.expect(Outcome::Succeeded), call);
    }
}

/// Shows: engine.md#differences-from-pulumi "A refresh whose recorded configuration does not work any more is repeated
///   with that of the program, if DiffConfig calls the difference no replacement."
#[tokio::test]
async fn provider_that_an_alias_renames_is_read_with_its_configuration_of_the_program() {
    for call in CALLS {
        let (cloud, state) = rotated(call).await;
        let named = |name: &str| Alias::Spec {
            name: Some(name.to_owned()),
            type_token: None,
            stack: None,
            project: None,
            parent: AliasParent::Same,
        };
        let urn = entry(&state, "p").urn.clone();
        for (alias, is_read) in [(named("p"), true), (Alias::Urn(urn), true), (named("other"), false)] {
            let goal = Goal { aliases: vec![alias], ..provider_goal("renamed", "new-8", "one") };
            let refresh = cloud.refresh(&state).program_goals(Arc::new(Goals(vec![goal])));
            if is_read {
                assert_read_with_program(&refresh.run().await.expect(Outcome::Succeeded), call);
            } else {
                assert_eq!(refresh.run().await.expect(Outcome::Failed).warnings, [""; 0], "{call}");
            }
        }
        // The goal with the recorded name is that of the provider, also if another one has an alias for it.
        let other = Goal { aliases: vec![named("p")], ..provider_goal("renamed", "new-8", "two") };
        let goals = vec![other, provider_goal("p", "new-8", "one")];
        let ended = cloud.refresh(&state).program_goals(Arc::new(Goals(goals))).run().await.expect(Outcome::Succeeded);
        assert_read_with_program(&ended, call);
    }
}

/// Shows: engine.md#differences-from-pulumi "A refresh whose recorded configuration does not work any more is repeated
///   with that of the program, if DiffConfig calls the difference no replacement."
#[tokio::test]
async fn destroy_with_a_refresh_deletes_with_the_configuration_that_works() {
    let (cloud, state) = rotated("configure").await;
    let destroy = of_program(cloud.destroy(&state).refresh_first(), "new-8", "one");
    let ended = destroy.run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 2);
}

/// Shows: engine.md#differences-from-pulumi "A refresh whose recorded configuration does not work any more is repeated
///   with that of the program, if DiffConfig calls the difference no replacement."
#[tokio::test]
async fn configuration_that_replaces_the_provider_is_not_used_and_named() {
    for call in CALLS {
        let (cloud, state) = rotated(call).await;
        let ended = of_program(cloud.refresh(&state), "new-8", "two").run().await.expect(Outcome::Failed);
        let warning =
            "p: the recorded configuration of the provider p differs from that of the program in kAccount, vToken";
        assert_eq!(ended.warnings, [warning], "{call}");
        let hints = ended.hints.join(" ");
        assert!(hints.contains("--run-program") && hints.contains("-R -S"), "{hints}");
        let texts = [ended.errors, ended.warnings, ended.hints].concat().concat();
        assert!(!texts.contains("old-7") && !texts.contains("new-8"), "{texts}");
    }
}

#[tokio::test]
async fn configuration_that_does_not_work_either_is_named() {
    for call in CALLS {
        let (cloud, state) = rotated(call).await;
        cloud.refuse(call, "kAccount", "one");
        let ended = of_program(cloud.refresh(&state), "new-8", "one").run().await.expect(Outcome::Failed);
        assert!(ended.warnings.last().unwrap().ends_with("differs from that of the program in vToken"), "{call}");
    }
}

#[tokio::test]
async fn equal_or_unknown_configuration_is_not_tried() {
    let (cloud, state) = rotated("read").await;
    let reads = |ended: &EndedRun| ended.call_count("read a-1") + ended.call_count("read b-1");
    let ended = of_program(cloud.refresh(&state), "old-7", "one").run().await.expect(Outcome::Failed);
    assert_eq!((ended.warnings.len(), reads(&ended)), (0, 2));
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Failed);
    assert_eq!((ended.warnings.len(), reads(&ended)), (0, 2));
}

#[tokio::test]
async fn provider_of_which_one_reading_succeeds_is_not_read_again() {
    let (cloud, state) = deploy(&program("old-7", "one")).await;
    cloud.fail("read a-1", crate::fake_cloud::CallFailure::Error);
    let ended = of_program(cloud.refresh(&state), "new-8", "one").run().await.expect(Outcome::Failed);
    assert_eq!((ended.warnings.len(), ended.call_count("read b-1"), ended.call_count("configure p")), (0, 1, 1));
}
