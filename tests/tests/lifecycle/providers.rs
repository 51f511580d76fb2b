//! Tests of provider resources and their instances.
//!
//! Every run checks that no instance is configured or closed twice, used after its end, or left open.

use std::sync::Arc;

use bridge::provider::ParameterizeRequest;
use engine::events::Outcome;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};
use state::Snapshot;

use crate::program::{PROJECT, STACK, provider, thing};
use crate::run::entry;
use crate::standing;
use crate::world::{Goes, World, map};

#[tokio::test]
async fn an_unchanged_provider_is_started_once() {
    let program = [provider("p"), thing("a").by("p"), thing("b").by("p")];
    let (world, state) = standing(&program).await;
    let before = world.boots("p");
    world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(world.boots("p") - before, 1);
}

#[tokio::test]
async fn a_provider_changed_in_place_is_configured_anew_and_its_resources_see_no_other() {
    let program = |v: &str| [provider("p").with("v", v), thing("a").by("p")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("configure p"), ended.called("diffconfig p"), ended.changes().len()), (1, 1, 0));
    assert_eq!(entry(&ended.state, "p").id, entry(&state, "p").id);
}

#[tokio::test]
async fn the_old_instance_of_a_provider_changed_in_place_ends_only_when_nobody_works_with_it() {
    let (world, state) =
        standing(&[provider("p").with("v", "1"), thing("a").with("d", "1"), thing("b").of("k", "a").by("p")]).await;
    let held = world.hold("delete b-1");
    let program = [
        thing("a").with("d", "2"),
        thing("late"),
        provider("p").with("v", "2").after("late"),
        thing("b").of("k", "a").by("p"),
    ];
    let ended = world.up(&state, &program).held_up_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).entries().len(), 4);
}

#[tokio::test]
async fn a_replaced_provider_replaces_what_it_serves_and_deletes_it_with_the_old_one() {
    let program = |k: &str| [provider("p").with("k", k), thing("a").by("p")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "delete a-1"]);
    let instance = |said: &str| ended.calls.iter().find(|call| call.said() == said).unwrap().instance;
    assert_ne!(instance("create a"), instance("delete a-1"));
}

#[tokio::test]
async fn a_provider_that_is_deleted_first_takes_everything_it_serves_with_it() {
    let program = |d: &str| [provider("p").with("d", d), thing("a").by("p"), thing("b").by("p").of("v", "a")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1", "create a", "create b"]);
}

#[tokio::test]
async fn after_a_broken_replacement_of_its_provider_what_is_owed_needs_the_old_one_no_more() {
    let program =
        |d: &str| [provider("p").with("d", d), thing("root").with("d", d), thing("a").by("p").of("k", "root")];
    let (world, state) = standing(&program("1")).await;
    world.when("create root", Goes::Wrong);
    let ended = world.up(&state, &program("2")).going_on().go().await.expect(Outcome::Failed);
    world.mend();
    let ended = world.up(&ended.state, &program("3")).go().await.expect(Outcome::Succeeded);
    assert!(ended.entries().iter().all(|entry| !entry.contains('(')), "{:?}", ended.entries());
}

#[tokio::test]
async fn a_configure_that_fails_is_told_by_whoever_needs_it() {
    let world = World::default();
    world.when("configure p", Goes::Wrong);
    let program = [provider("p"), thing("a").by("p")];
    let ended = world.up(&Snapshot::default(), &program).go().await.expect(Outcome::Failed);
    assert!(ended.errors.iter().any(|error| error.starts_with("a:")), "{:?}", ended.errors);
    assert_eq!(ended.called("check a"), 0);
}

#[tokio::test]
async fn a_configuration_that_nobody_uses_may_fail() {
    let world = World::default();
    world.when("configure p", Goes::Wrong);
    world.up(&Snapshot::default(), &[provider("p"), thing("a")]).go().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn a_provider_that_cannot_be_started_fails_the_run_in_its_words() {
    let world = World::default();
    world.when("boot p", Goes::Wrong);
    let ended = world.up(&Snapshot::default(), &[provider("p"), thing("a").by("p")]).go().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["p: p cannot be started"]);
}

#[tokio::test]
async fn a_provider_that_left_the_program_is_started_from_the_state_for_its_deletes() {
    let (world, state) = standing(&[provider("p").with("v", "1"), thing("a").by("p"), thing("b")]).await;
    let ended = world.up(&state, &[thing("b")]).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("configure p"), ended.called("checkconfig p")), (1, 0));
    assert_eq!(ended.changes(), ["delete a-1"]);
}

#[tokio::test]
async fn a_refresh_and_an_update_in_one_run_share_an_instance() {
    let program = [provider("p"), thing("a").by("p")];
    let (world, state) = standing(&program).await;
    let ended = world.up(&state, &program).refreshing().go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("configure p"), ended.called("checkconfig p"), ended.called("read a-1")), (1, 1, 1));
}

#[tokio::test]
async fn many_resources_at_once_share_one_default_provider() {
    let world = World::default();
    let program: Vec<_> = (0..20).map(|index| thing(&format!("t{index}"))).collect();
    world.up(&Snapshot::default(), &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(world.boots("default"), 1);
}

#[tokio::test]
async fn a_default_provider_is_configured_from_the_stack_and_keeps_its_secrets() {
    let world = World::default();
    let run = world.up(&Snapshot::default(), &[thing("a")]).config("token", "t0p", true).config("region", "r", false);
    let ended = run.go().await.expect(Outcome::Succeeded);
    let inputs = &entry(&ended.state, "default").inputs;
    assert!(inputs["token"].is_secret() && !inputs["region"].is_secret());
}

#[tokio::test]
async fn what_a_provider_serves_that_is_renamed_and_replaced_names_the_old_one_until_it_names_the_new_one() {
    let (world, state) = standing(&[provider("p").with("k", "1"), thing("a").by("p")]).await;
    let program = [provider("p2").was("p").with("k", "2"), thing("a").by("p2")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.entries(), ["p2", "a-1"]);
}

#[tokio::test]
async fn what_went_down_with_its_provider_is_not_read() {
    let program = |d: &str| [provider("p").with("d", d), thing("a").by("p")];
    let (world, state) = standing(&program("1")).await;
    world.when("create a", Goes::Wrong);
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["p", "a-1 (owed)"]);
    let refreshed = world.refresh(&ended.state).go().await.expect(Outcome::Succeeded);
    assert_eq!(refreshed.entries(), ["p", "a-1 (owed)"]);
}

#[tokio::test]
async fn what_an_older_copy_serves_names_it_though_its_successor_gets_another_name() {
    let (world, state) = standing(&[provider("p").with("k", "1"), thing("d").by("p")]).await;
    world.when("create x", Goes::Wrong);
    // The run ends before the program registers the resource of the provider.
    let program = [provider("p").with("k", "2"), thing("x"), thing("d").by("p").after("x")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Failed);
    let program = [provider("p2").was("p").with("k", "3"), thing("x"), thing("d").by("p2").after("x")];
    let ended = world.up(&ended.state, &program).go().await.expect(Outcome::Failed);
    assert_eq!(entry(&ended.state, "d").provider, entry(&state, "d").provider);
    world.mend();
    let ended = world.up(&ended.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "d").provider, entry(&ended.state, "p2").as_provider_reference());
}

/// Returns a state of Pulumi with a parameterized plugin: `a`, served by the provider `p` of the package `reef`.
async fn parameterized(parameters: &str) -> (World, Snapshot) {
    let (world, mut state) = standing(&[provider("p"), thing("a").by("p")]).await;
    let urn = Urn::new(STACK, PROJECT, None, "pulumi:providers:reef", "p");
    let internal = map(&[("name", "cloud"), ("version", "1.1.0"), ("parameterization", parameters)]);
    for state in &mut state.resources {
        let state = Arc::make_mut(state);
        if state.urn.name() == "p" {
            (state.urn, state.type_token) = (urn.clone(), TypeToken::new(urn.type_token()));
            let inputs = [("version", "2.0.0".into()), ("__internal", PropertyValue::Map(internal.clone()))];
            state.inputs = Arc::new(inputs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect());
        } else if let Some(reference) = state.provider.take() {
            state.provider = Some(ProviderReference { urn: urn.clone(), ..reference });
        }
    }
    (world, state)
}

#[tokio::test]
async fn a_plugin_of_many_packages_is_told_which_one_before_it_is_configured() {
    let (world, state) = parameterized("Y29yYWw=").await;
    let ended = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    world.destroy(&ended.state).go().await.expect(Outcome::Succeeded);
    let booted = world.booted().split_off(1);
    let wanted = booted.iter().map(|boot| (boot.package.as_str(), boot.version.as_deref(), boot.name.as_str()));
    assert_eq!(wanted.collect::<Vec<_>>(), [("cloud", Some("1.1.0"), "p"); 2]);
    for told in world.parameterized() {
        let ParameterizeRequest::Value { name, version, value } = told else { panic!("{told:?}") };
        assert_eq!((name.as_str(), version.as_deref(), value.as_slice()), ("reef", Some("2.0.0"), &b"coral"[..]));
    }
    assert_eq!(world.parameterized().len(), 2);
}

#[tokio::test]
async fn a_plugin_that_cannot_serve_the_package_is_told_of_and_deletes_nothing() {
    let (world, state) = parameterized("Y29yYWw=").await;
    for (goes, words) in [(Goes::Wrong, "Parameterize went wrong"), (Goes::Gone, "it serves \"another\" instead")] {
        world.when("parameterize reef", goes);
        let ended = world.destroy(&state).go().await.expect(Outcome::Failed);
        let told = format!("a: the plugin cloud cannot serve the package reef: {words}");
        assert!(ended.errors.contains(&told), "{:?}", ended.errors);
        assert_eq!(ended.entries(), ["p", "a-1"]);
    }
    let (world, state) = parameterized("not base64").await;
    let ended = world.destroy(&state).go().await.expect(Outcome::Failed);
    assert!(ended.errors[0].starts_with("a: the parameters of the provider p are not base64"), "{:?}", ended.errors);
}

#[tokio::test]
async fn default_providers_are_disabled_by_a_list_and_by_nothing_else() {
    let rows = [
        ("", Outcome::Succeeded),
        (r#"["other"]"#, Outcome::Succeeded),
        (r#"["cloud"]"#, Outcome::Failed),
        (r#"["*"]"#, Outcome::Failed),
        ("cloud", Outcome::Failed),
    ];
    for (value, outcome) in rows {
        let world = World::default();
        let run =
            world.up(&Snapshot::default(), &[thing("a")]).config("pulumi:disable-default-providers", value, false);
        assert_eq!(run.go().await.outcome, outcome, "{value}");
    }
}

#[tokio::test]
async fn a_provider_whose_environment_is_to_be_mapped_is_refused() {
    for (mapped, outcome) in [(map(&[("FROM", "TO")]), Outcome::Failed), (PropertyMap::new(), Outcome::Succeeded)] {
        let (world, mut state) = standing(&[provider("p"), thing("a").by("p")]).await;
        let provider = state.resources.iter_mut().find(|state| state.urn.name() == "p").unwrap();
        let inputs = Arc::make_mut(&mut Arc::make_mut(provider).inputs);
        let internal = PropertyMap::from([("envVarMappings".to_owned(), PropertyValue::Map(mapped))]);
        inputs.insert("__internal".to_owned(), PropertyValue::Map(internal));
        let ended = world.destroy(&state).go().await.expect(outcome);
        if outcome == Outcome::Failed {
            assert_eq!(ended.errors, ["a: the provider p has envVarMappings, which sc does not serve"]);
            assert_eq!(ended.entries(), ["p", "a-1"]);
        }
    }
}

#[tokio::test]
async fn what_the_engine_itself_serves_for_programs_is_refused_by_name() {
    let stash = thing("a").but(|goal| goal.type_token = TypeToken::new("pulumi:index:Stash"));
    let ended = World::default().up(&Snapshot::default(), &[stash]).preview().go().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["a: the package pulumi (StackReference, Stash) is not served"]);
}

#[tokio::test]
async fn secrets_of_a_provider_that_is_started_from_the_state_are_told_before_it_can_repeat_them() {
    let (world, mut state) = standing(&[provider("p"), thing("a").by("p")]).await;
    let recorded = state.resources.iter_mut().find(|state| state.urn.name() == "p").unwrap();
    let inputs = Arc::make_mut(&mut Arc::make_mut(recorded).inputs);
    inputs.insert("token".to_owned(), PropertyValue::secret("hush".into()));
    world.when("configure p", Goes::Wrong);
    let ended = world.up(&state, &[]).go().await.expect(Outcome::Failed);
    assert_eq!(ended.told_secrets, ["token"]);
}
