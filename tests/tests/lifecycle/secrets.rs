//! Tests of secrets that a provider returns as plain values. The invariants of all runs check that no plain copy of a
//! text of [`secret_text`] is recorded or reported.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::provider::{Alias, AliasParent};
use engine::events::Outcome;
use engine::{Goal, ImportGoal, ProgramGoals};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::TypeToken;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud};
use crate::imports::import;
use crate::invariants::secret_text;
use crate::program::{ProgramResource, component, get, resource};
use crate::run::{Run, entry};

/// Returns a value of these members with a text at the places `v`, `opts.inner` and `list[0]`.
fn values(text: &PropertyValue) -> PropertyMap {
    let opts = [("inner".to_owned(), text.clone()), ("plain".to_owned(), "x".into())].into();
    [
        ("v".to_owned(), text.clone()),
        ("opts".to_owned(), PropertyValue::Map(opts)),
        ("list".to_owned(), vec![text.clone(), "b".into()].into()),
    ]
    .into()
}

fn with_values(text: PropertyValue) -> ProgramResource {
    values(&text).into_iter().fold(resource("a"), |resource, (key, value)| resource.input(&key, value))
}

fn with_secret() -> ProgramResource {
    with_values(PropertyValue::secret(secret_text("1").into()))
}

fn with_plain_text() -> ProgramResource {
    with_values(secret_text("1").into())
}

/// Runs, and checks that the three places of the entry are secret and their values stay.
async fn assert_secret(run: Run) -> Snapshot {
    let ended = run.run().await.expect(Outcome::Succeeded);
    let entry = entry(&ended.state, "a");
    for properties in [&entry.inputs, &entry.outputs] {
        assert_eq!(properties["v"], PropertyValue::secret(secret_text("1").into()));
        let opts = properties["opts"].as_map().expect("the map itself is plain");
        assert!(opts["inner"].is_secret() && !opts["plain"].is_secret(), "{opts:?}");
        assert!(properties["list"].contains_secrets(), "{properties:?}");
    }
    ended.state
}

#[tokio::test]
async fn secret_stays_secret_through_every_operation_of_a_provider_that_returns_plain_values() {
    let cloud = FakeCloud::default();
    cloud.return_plain_values();
    let program = [with_secret()];
    let state = assert_secret(cloud.up(&Snapshot::default(), &program)).await;
    assert_secret(cloud.up(&state, &program)).await;
    assert_secret(cloud.up(&state, &program).refresh_first()).await;
    assert_secret(cloud.up(&state, &program).refresh_first().run_program()).await;
    assert_secret(cloud.up(&state, &[with_secret().input("w", "2")])).await;
    let state = assert_secret(cloud.up(&state, &[with_secret().input("k", "2")])).await;
    assert_secret(cloud.refresh(&state)).await;
    assert_secret(cloud.refresh_with(&state, &program)).await;
    cloud.up(&state, &[with_secret().input("w", "3")]).preview().run().await.expect(Outcome::Succeeded);
    cloud.destroy_with(&state, &program).run().await.expect(Outcome::Succeeded);
}

/// Shows: engine.md#secrets "A resource that the stack records under another name, too, is read with the secrets of
///   that entry."
#[tokio::test]
async fn resource_that_is_read_under_another_name_keeps_its_secrets() {
    let cloud = FakeCloud::default();
    cloud.return_plain_values();
    let owner = values(&PropertyValue::secret(secret_text("1").into())).into_iter();
    let owner = owner.fold(resource("b"), |resource, (key, value)| resource.input(&key, value));
    let owned = cloud.up(&Snapshot::default(), &[owner]).run().await.expect(Outcome::Succeeded);
    let ended = cloud.up(&owned.state, &[get("a", "b-1")]).run().await.expect(Outcome::Succeeded);
    let outputs = &entry(&ended.state, "a").outputs;
    assert!(outputs["v"].is_secret() && outputs["list"].contains_secrets(), "{outputs:?}");
}

#[tokio::test]
async fn refresh_without_drift_changes_nothing_if_secrets_are_read_as_plain_values() {
    let (cloud, state) = deploy(&[with_secret()]).await;
    cloud.return_plain_values();
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    let (read, recorded) = (entry(&ended.state, "a"), entry(&state, "a"));
    assert_eq!((&read.inputs, &read.outputs, read.modified), (&recorded.inputs, &recorded.outputs, recorded.modified));
}

fn cloud_with_existing() -> FakeCloud {
    let cloud = FakeCloud::default();
    cloud.add("a-7");
    cloud.drift("a-7", values(&secret_text("1").into()));
    cloud
}

fn imported(resource: ProgramResource) -> ProgramResource {
    resource.edit_goal(|goal| goal.import_id = ResourceId::new("a-7"))
}

#[tokio::test]
async fn import_option_takes_secrets_from_the_goal() {
    let cloud = cloud_with_existing();
    let program = [imported(with_secret())];
    cloud.up(&Snapshot::default(), &program).preview().run().await.expect(Outcome::Succeeded);
    let state = assert_secret(cloud.up(&Snapshot::default(), &program)).await;
    assert_secret(cloud.up(&state, &program).refresh_first()).await;
}

#[tokio::test]
async fn import_option_with_an_update_takes_secrets_from_the_goal() {
    let cloud = cloud_with_existing();
    assert_secret(cloud.up(&Snapshot::default(), &[imported(with_secret().input("w", "2"))])).await;
}

#[tokio::test]
async fn import_option_that_replaces_an_entry_takes_secrets_from_the_goal() {
    let (_, state) = deploy(&[resource("a")]).await;
    let cloud = cloud_with_existing();
    cloud.allow_missing_resources();
    assert_secret(cloud.up(&state, &[imported(with_secret())])).await;
}

#[tokio::test]
async fn import_operation_takes_secrets_from_the_goal_for_outputs_too() {
    let cloud = cloud_with_existing();
    let inputs = values(&PropertyValue::secret(secret_text("1").into())).into();
    assert_secret(cloud.import(&Snapshot::default(), &[ImportGoal { inputs, ..import("a", "a-7") }])).await;
}

#[tokio::test]
async fn value_that_becomes_secret_leaves_no_plain_copy() {
    let (cloud, state) = deploy(&[with_plain_text()]).await;
    assert_secret(cloud.up(&state, &[with_secret()])).await;
    assert_secret(cloud.up(&state, &[with_secret().input("w", "2")])).await;
    assert_secret(cloud.refresh_with(&state, &[with_secret()])).await;
    let ignoring =
        with_secret().edit_goal(|goal| goal.ignore_changes = ["v", "opts", "list[0]"].map(str::to_owned).to_vec());
    assert_secret(cloud.up(&state, &[ignoring])).await;
}

#[tokio::test]
async fn value_that_becomes_secret_leaves_no_plain_copy_after_a_failure() {
    for (input, call, failure) in [
        ("w", "update a-1", CallFailure::Error),
        ("w", "update a-1", CallFailure::Partial),
        ("w", "diff a", CallFailure::Error),
        ("k", "create a", CallFailure::Error),
        ("k", "delete a-1", CallFailure::Error),
        ("d", "create a", CallFailure::Error),
        ("d", "delete a-1", CallFailure::Error),
    ] {
        let (cloud, state) = deploy(&[with_plain_text()]).await;
        cloud.fail(call, failure);
        let ended = cloud.up(&state, &[with_secret().input(input, "2")]).run().await.expect(Outcome::Failed);
        assert_eq!(crate::invariants::plain_secrets(&ended.state), [""; 0], "{call}");
    }
}

#[tokio::test]
async fn destroy_with_the_program_reports_no_plain_copy_of_a_value_that_becomes_secret() {
    let (cloud, state) = deploy(&[with_plain_text()]).await;
    let ended = cloud.destroy_with(&state, &[with_secret()]).run().await.expect(Outcome::Succeeded);
    assert!(ended.steps.contains(&"same a".to_owned()), "{:?}", ended.steps);
}

#[tokio::test]
async fn value_that_the_program_makes_public_is_plain() {
    let (cloud, state) = deploy(&[with_secret()]).await;
    let public = values(&"public".into()).into_iter().fold(resource("a"), |a, (key, value)| a.input(&key, value));
    let ended = cloud.up(&state, &[public]).run().await.expect(Outcome::Succeeded);
    let entry = entry(&ended.state, "a");
    for (key, value) in entry.inputs.iter().chain(&*entry.outputs) {
        assert!(!value.contains_secrets(), "{key}: {value:?}");
    }
}

#[tokio::test]
async fn output_that_was_secret_stays_secret() {
    let token = || [("token".to_owned(), PropertyValue::secret(secret_text("2").into()))].into();
    let (cloud, state) = deploy(&[resource("a").input("v", "1")]).await;
    cloud.drift("a-1", token());
    let state = cloud.refresh(&state).run().await.expect(Outcome::Succeeded).state;
    cloud.return_plain_values();
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    let entry = entry(&ended.state, "a");
    assert!(entry.inputs["token"].is_secret() && entry.outputs["token"].is_secret(), "{entry:?}");
}

#[tokio::test]
async fn outputs_of_a_component_stay_secret() {
    let secret = || PropertyValue::secret(secret_text("1").into());
    let outputs = |value: PropertyValue| PropertyMap::from([("token".to_owned(), value)]);
    let (cloud, state) = deploy(&[component("c").outputs(outputs(secret()))]).await;
    let program = [component("c").outputs(outputs(secret_text("1").into()))];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert!(entry(&ended.state, "c").outputs["token"].is_secret());
}

/// Goals of a program that has not run.
#[derive(Debug)]
struct Goals(Vec<Goal>);

#[async_trait]
impl ProgramGoals for Goals {
    async fn goals(&self) -> Vec<Goal> {
        self.0.clone()
    }
}

/// Returns the goal of the resource `a` with secrets where the resource has none yet.
fn goal_with_secrets(state: &Snapshot) -> Goal {
    let inputs = values(&PropertyValue::secret("new".into()));
    Goal::custom(TypeToken::new(entry(state, "a").urn.type_token()), "a", inputs)
}

/// Deploys a resource whose values somebody changes.
async fn deploy_and_change(text: &str) -> (FakeCloud, Snapshot) {
    let (cloud, state) = deploy(&[with_values("plain".into())]).await;
    cloud.drift("a-1", values(&text.into()));
    (cloud, state)
}

/// Shows: engine.md#secrets "A refresh that does not run the program evaluates it without any call: what Read returns
///   is secret where the program has a secret"
#[tokio::test]
async fn refresh_before_the_program_records_no_value_in_plaintext_that_the_program_marks_as_secret() {
    let (cloud, state) = deploy_and_change(&secret_text("1")).await;
    let goal = || goal_with_secrets(&state);
    let shorter = Goal { type_token: TypeToken::new(&goal().type_token.as_str().to_uppercase()), ..goal() };
    let name = Some("a".to_owned());
    let alias = Alias::Spec { name, type_token: None, stack: None, project: None, parent: AliasParent::Same };
    let renamed = Goal { name: "b".to_owned(), aliases: vec![alias], ..goal() };
    let by_urn = Alias::Urn(entry(&state, "a").urn.clone());
    let renamed_by_urn = Goal { name: "b".to_owned(), aliases: vec![by_urn], ..goal() };
    for goal in [goal(), shorter, renamed, renamed_by_urn] {
        let goals = || Arc::new(Goals(vec![goal.clone()]));
        assert_secret(cloud.refresh(&state).program_goals(goals())).await;
        cloud.refresh(&state).program_goals(goals()).preview().run().await.expect(Outcome::Succeeded);
        // The recorded entry is marked before the program registers the resource.
        assert_secret(cloud.up(&state, &[with_secret()]).refresh_first().program_goals(goals())).await;
    }
}

/// Shows: engine.md#secrets "A refresh that does not run the program evaluates it without any call: what Read returns
///   is secret where the program has a secret"
#[tokio::test]
async fn refresh_before_the_program_marks_outputs_that_the_program_names() {
    let (cloud, state) = deploy_and_change("changed").await;
    let names = ["v", "opts", "list"].map(str::to_owned).to_vec();
    let goal = Goal { inputs: Arc::default(), additional_secret_outputs: names, ..goal_with_secrets(&state) };
    let ended = cloud.refresh(&state).program_goals(Arc::new(Goals(vec![goal]))).run().await;
    let ended = ended.expect(Outcome::Succeeded);
    let outputs = &entry(&ended.state, "a").outputs;
    assert!(outputs["v"].is_secret() && outputs["opts"].is_secret() && outputs["list"].is_secret(), "{outputs:?}");
}

#[tokio::test]
async fn refresh_keeps_the_secrets_of_resources_that_the_program_has_without_any() {
    let (cloud, state) = deploy(&[with_secret()]).await;
    cloud.return_plain_values();
    let public = Goal { inputs: Arc::new(values(&"public".into())), ..goal_with_secrets(&state) };
    assert_secret(cloud.refresh(&state).program_goals(Arc::new(Goals(vec![public])))).await;
}
