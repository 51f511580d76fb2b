//! Tests of the commands in hints: a name stays one word of the shell, and is no option.

use std::sync::Arc;

use engine::events::Outcome;

use crate::deploy;
use crate::fake_cloud::NAMED;
use crate::program::{provider, resource};
use crate::run::EndedRun;

/// Name that runs a program if it is pasted without quotes.
const NAME: &str = "-a$(id)";
const URN: &str = "'urn:pulumi:s::p::cloud:index:Thing::-a$(id)'";

fn check(ended: &EndedRun, hint: &str) {
    assert!(ended.hints.iter().any(|found| found.contains(hint)), "{hint}: {:?}", ended.hints);
}

#[tokio::test]
async fn command_for_a_resource_that_cannot_be_deleted_quotes_its_name() {
    let (cloud, mut state) = deploy(&[resource(NAME).protected()]).await;
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Failed);
    check(&ended, "run `sc state unprotect -- '-a$(id)'`, or");
    let entry = state.resources.iter_mut().find(|state| state.urn.name() == NAME).unwrap();
    let entry = Arc::make_mut(entry);
    (entry.provider, entry.protect) = (None, false);
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Failed);
    check(&ended, "with `sc state rm -- '-a$(id)'`");
}

#[tokio::test]
async fn command_for_a_protected_dependent_quotes_its_name() {
    let program = |d: &str| [resource("a").input("d", d), resource(NAME).input_from("k", "a").protected()];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    check(&ended, "run `sc state unprotect -- '-a$(id)'`, or");
}

#[tokio::test]
async fn options_for_targets_quote_names_and_urns() {
    let program = [resource("b"), resource(NAME).depends_on("b")];
    let (cloud, state) = deploy(&program).await;
    let ended = cloud.up(&state, &program).replace(NAME).target("b").run().await.expect(Outcome::Succeeded);
    check(&ended, "add `--target='-a$(id)'` to replace it");
    let ended = cloud.destroy(&state).target("b").run().await.expect(Outcome::Failed);
    check(&ended, &format!("add --target {URN} or --target-dependents"));
    let program = [resource("b"), resource(NAME), resource("c").depends_on(NAME)];
    let (cloud, state) = deploy(&program[..1]).await;
    let ended = cloud.up(&state, &program).target("c").run().await.expect(Outcome::Failed);
    check(&ended, &format!("add --target {URN}"));
}

#[tokio::test]
async fn option_for_a_resource_of_a_replaced_provider_quotes_its_urn() {
    let program = |k: &str| [provider("p").input("k", k), resource(NAME).provider("p")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).target("p").run().await.expect(Outcome::Failed);
    check(&ended, &format!("add --target {URN}"));
}

#[tokio::test]
async fn command_that_deletes_a_shared_resource_quotes_its_urn() {
    let (cloud, state) = deploy(&[resource("a").input(NAMED, "x")]).await;
    let ended = cloud.up(&state, &[resource(NAME).input(NAMED, "x")]).run().await.expect(Outcome::Succeeded);
    check(&ended, &format!("run `sc destroy -s s --target {URN}`"));
}
