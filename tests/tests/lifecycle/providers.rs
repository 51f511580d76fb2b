//! Tests of provider resources and their instances.
//!
//! Every run checks that no instance is configured or closed twice, used after its close, or left open.

use std::sync::Arc;

use bridge::host::Subpackage;
use bridge::provider::ParameterizeRequest;
use engine::Goal;
use engine::events::Outcome;
use engine::masking::MASK;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, map};
use crate::program::{PROJECT, STACK, provider, resource};
use crate::run::entry;

#[tokio::test]
async fn unchanged_provider_is_started_once() {
    let program = [provider("p"), resource("a").provider("p"), resource("b").provider("p")];
    let (cloud, state) = deploy(&program).await;
    let before = cloud.boot_count("p");
    cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(cloud.boot_count("p") - before, 1);
}

#[tokio::test]
async fn updated_provider_is_configured_once_and_resources_are_unchanged() {
    let program = |v: &str| [provider("p").input("v", v), resource("a").provider("p")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("configure p"), ended.call_count("diffconfig p"), ended.changes().len()), (1, 1, 0));
    assert_eq!(entry(&ended.state, "p").id, entry(&state, "p").id);
}

/// Shows: engine.md#differences-from-pulumi "The old instance of a provider that was updated in place ends after its
///   last call."
#[tokio::test]
async fn old_instance_of_updated_provider_closes_after_its_last_call() {
    let (cloud, state) = deploy(&[
        provider("p").input("v", "1"),
        resource("a").input("d", "1"),
        resource("b").input_from("k", "a").provider("p"),
    ])
    .await;
    let held = cloud.hold("delete b-1");
    let program = [
        resource("a").input("d", "2"),
        resource("late"),
        provider("p").input("v", "2").depends_on("late"),
        resource("b").input_from("k", "a").provider("p"),
    ];
    let ended = cloud.up(&state, &program).run_held_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).entries().len(), 4);
}

#[tokio::test]
async fn replaced_provider_replaces_resources_and_deletes_with_old_instance() {
    let program = |k: &str| [provider("p").input("k", k), resource("a").provider("p")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "delete a-1"]);
    let instance = |text: &str| ended.calls.iter().find(|call| call.text() == text).unwrap().instance;
    assert_ne!(instance("create a"), instance("delete a-1"));
}

#[tokio::test]
async fn delete_before_replace_of_provider_deletes_its_resources_first() {
    let program = |d: &str| {
        [provider("p").input("d", d), resource("a").provider("p"), resource("b").provider("p").input_from("v", "a")]
    };
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1", "create a", "create b"]);
}

#[tokio::test]
async fn pending_replacement_does_not_need_replaced_provider() {
    let program = |d: &str| {
        [
            provider("p").input("d", d),
            resource("root").input("d", d),
            resource("a").provider("p").input_from("k", "root"),
        ]
    };
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create root", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).continue_on_error().run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program("3")).run().await.expect(Outcome::Succeeded);
    assert!(ended.entries().iter().all(|entry| !entry.contains('(')), "{:?}", ended.entries());
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): a failed Configure is only logged.
#[tokio::test]
async fn configure_error_is_reported_for_the_resource_that_needs_it() {
    let cloud = FakeCloud::default();
    cloud.fail("configure p", CallFailure::Error);
    let program = [provider("p"), resource("a").provider("p")];
    let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Failed);
    assert!(ended.errors.iter().any(|error| error.starts_with("a:")), "{:?}", ended.errors);
    assert_eq!(ended.call_count("check a"), 0);
}

#[tokio::test]
async fn configure_error_of_unused_provider_is_ignored() {
    let cloud = FakeCloud::default();
    cloud.fail("configure p", CallFailure::Error);
    cloud.up(&Snapshot::default(), &[provider("p"), resource("a")]).run().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn provider_start_error_fails_the_run() {
    let cloud = FakeCloud::default();
    cloud.fail("boot p", CallFailure::Error);
    let ended = cloud
        .up(&Snapshot::default(), &[provider("p"), resource("a").provider("p")])
        .run()
        .await
        .expect(Outcome::Failed);
    assert_eq!(ended.errors, ["p: p cannot be started"]);
}

#[tokio::test]
async fn removed_provider_is_started_from_state_for_deletes() {
    let (cloud, state) = deploy(&[provider("p").input("v", "1"), resource("a").provider("p"), resource("b")]).await;
    let ended = cloud.up(&state, &[resource("b")]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("configure p"), ended.call_count("checkconfig p")), (1, 0));
    assert_eq!(ended.changes(), ["delete a-1"]);
}

#[tokio::test]
async fn refresh_and_update_in_one_run_share_an_instance() {
    let program = [provider("p"), resource("a").provider("p")];
    let (cloud, state) = deploy(&program).await;
    let ended = cloud.up(&state, &program).refresh_first().run().await.expect(Outcome::Succeeded);
    assert_eq!(
        (ended.call_count("configure p"), ended.call_count("checkconfig p"), ended.call_count("read a-1")),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn concurrent_resources_share_one_default_provider() {
    let cloud = FakeCloud::default();
    let program: Vec<_> = (0..20).map(|index| resource(&format!("t{index}"))).collect();
    cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(cloud.boot_count("default"), 1);
}

#[tokio::test]
async fn default_provider_is_configured_from_stack_config_with_secrets() {
    let cloud = FakeCloud::default();
    let run =
        cloud.up(&Snapshot::default(), &[resource("a")]).config("token", "t0p", true).config("region", "r", false);
    let ended = run.run().await.expect(Outcome::Succeeded);
    let inputs = &entry(&ended.state, "default").inputs;
    assert!(inputs["token"].is_secret() && !inputs["region"].is_secret());
}

#[tokio::test]
async fn renamed_and_replaced_provider_makes_no_resource_changes() {
    let (cloud, state) = deploy(&[provider("p").input("k", "1"), resource("a").provider("p")]).await;
    let program = [provider("p2").alias("p").input("k", "2"), resource("a").provider("p2")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.entries(), ["p2", "a-1"]);
}

#[tokio::test]
async fn resource_that_moves_from_a_renamed_provider_to_the_default_account_is_replaced() {
    let (cloud, state) = deploy(&[provider("p").input("kAccount", "1"), resource("a").provider("p")]).await;
    let program = [provider("p2").alias("p").input("kAccount", "1"), resource("a").depends_on("p2")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "delete a-1"]);
}

#[tokio::test]
async fn pending_replacement_is_not_refreshed() {
    let program = |d: &str| [provider("p").input("d", d), resource("a").provider("p")];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create a", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["p", "a-1 (pending replacement)"]);
    let refreshed = cloud.refresh(&ended.state).run().await.expect(Outcome::Succeeded);
    assert_eq!(refreshed.entries(), ["p", "a-1 (pending replacement)"]);
}

#[tokio::test]
async fn entry_keeps_reference_to_pending_delete_provider_after_rename() {
    let (cloud, state) = deploy(&[provider("p").input("k", "1"), resource("d").provider("p")]).await;
    cloud.fail("create x", CallFailure::Error);
    // The run ends before the program registers the resource of the provider.
    let program = [provider("p").input("k", "2"), resource("x"), resource("d").provider("p").depends_on("x")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Failed);
    let program =
        [provider("p2").alias("p").input("k", "3"), resource("x"), resource("d").provider("p2").depends_on("x")];
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Failed);
    assert_eq!(entry(&ended.state, "d").provider, entry(&state, "d").provider);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "d").provider, entry(&ended.state, "p2").as_provider_reference());
}

/// Returns a state of Pulumi with a parameterized plugin: `a`, served by the provider `p` of the package `reef`.
async fn parameterized(parameters: &str) -> (FakeCloud, Snapshot) {
    let (cloud, mut state) = deploy(&[provider("p"), resource("a").provider("p")]).await;
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
    (cloud, state)
}

#[tokio::test]
async fn parameterized_plugin_is_parameterized_before_configure() {
    let (cloud, state) = parameterized("Y29yYWw=").await;
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    cloud.destroy(&ended.state).run().await.expect(Outcome::Succeeded);
    let booted = cloud.booted().split_off(1);
    let requests = booted.iter().map(|boot| (boot.package.as_str(), boot.version.as_deref(), boot.name.as_str()));
    assert_eq!(requests.collect::<Vec<_>>(), [("cloud", Some("1.1.0"), "p"); 2]);
    for request in cloud.parameterized() {
        let ParameterizeRequest::Value { name, version, value } = request else { panic!("{request:?}") };
        assert_eq!((name.as_str(), version.as_deref(), value.as_slice()), ("reef", Some("2.0.0"), &b"coral"[..]));
    }
    assert_eq!(cloud.parameterized().len(), 2);
}

/// Shows: engine.md#components-of-plugins "one for each package, version and download URL, with the value of its parameters in
///   `__internal`"
#[tokio::test]
async fn default_provider_of_a_package_with_parameters_records_their_value() {
    let of_package = |name: &str, version: &'static str| {
        let subpackage = Arc::new(Subpackage {
            name: "reef".to_owned(),
            version: version.to_owned(),
            base_name: "cloud".to_owned(),
            base_version: Some("1.1.0".to_owned()),
            value: b"coral".to_vec(),
        });
        let edit = move |goal: &mut Goal| {
            (goal.version, goal.subpackage) = (Some(version.to_owned()), Some(Arc::clone(&subpackage)));
        };
        resource(name).edit_goal(edit)
    };
    let program = [of_package("a", "2.0.0"), of_package("b", "2.0.0"), of_package("c", "2.1.0")];
    let (cloud, state) = deploy(&program).await;
    let of_providers = state.resources.iter().filter(|resource| resource.is_provider());
    let mut of_providers: Vec<_> = of_providers.map(|provider| (provider.urn.as_str(), &*provider.inputs)).collect();
    of_providers.sort_unstable_by_key(|(urn, _)| *urn);
    let internal = map(&[("name", "cloud"), ("version", "1.1.0"), ("parameterization", "Y29yYWw=")]);
    let inputs = |version: &str| -> PropertyMap {
        let inputs = [("version", version.into()), ("__internal", PropertyValue::Map(internal.clone()))];
        inputs.map(|(key, value)| (key.to_owned(), value)).into()
    };
    let urn = |name: &str| Urn::new(STACK, PROJECT, None, "pulumi:providers:reef", name);
    let (first, second) = (urn("default_2_0_0"), urn("default_2_1_0"));
    assert_eq!(of_providers, [(first.as_str(), &inputs("2.0.0")), (second.as_str(), &inputs("2.1.0"))]);
    let booted = cloud.booted();
    assert!(booted.iter().all(|boot| (boot.package.as_str(), boot.subpackage.as_deref()) == ("cloud", Some("reef"))));
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.state.resources.len(), state.resources.len());
}

#[tokio::test]
async fn failed_parameterize_is_reported_and_deletes_nothing() {
    let (cloud, state) = parameterized("Y29yYWw=").await;
    for (failure, message) in
        [(CallFailure::Error, "Parameterize went wrong"), (CallFailure::OtherPackage, "it serves \"another\" instead")]
    {
        cloud.fail("parameterize reef", failure);
        let ended = cloud.destroy(&state).run().await.expect(Outcome::Failed);
        let error = format!("a: the plugin cloud cannot serve the package reef: {message}");
        assert!(ended.errors.contains(&error), "{:?}", ended.errors);
        assert_eq!(ended.entries(), ["p", "a-1"]);
    }
    let (cloud, state) = parameterized("not base64").await;
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Failed);
    assert!(ended.errors[0].starts_with("a: the parameters of the provider p are not base64"), "{:?}", ended.errors);
}

#[tokio::test]
async fn disable_default_providers_accepts_only_a_list() {
    let rows = [
        ("", Outcome::Succeeded),
        (r#"["other"]"#, Outcome::Succeeded),
        (r#"["cloud"]"#, Outcome::Failed),
        (r#"["*"]"#, Outcome::Failed),
        ("cloud", Outcome::Failed),
    ];
    for (value, outcome) in rows {
        let cloud = FakeCloud::default();
        let run =
            cloud.up(&Snapshot::default(), &[resource("a")]).config("pulumi:disable-default-providers", value, false);
        assert_eq!(run.run().await.outcome, outcome, "{value}");
    }
}

#[tokio::test]
async fn provider_with_env_var_mappings_is_rejected() {
    for (mapped, outcome) in [(map(&[("FROM", "TO")]), Outcome::Failed), (PropertyMap::new(), Outcome::Succeeded)] {
        let (cloud, mut state) = deploy(&[provider("p"), resource("a").provider("p")]).await;
        let provider = state.resources.iter_mut().find(|state| state.urn.name() == "p").unwrap();
        let inputs = Arc::make_mut(&mut Arc::make_mut(provider).inputs);
        let internal = PropertyMap::from([("envVarMappings".to_owned(), PropertyValue::Map(mapped))]);
        inputs.insert("__internal".to_owned(), PropertyValue::Map(internal));
        let ended = cloud.destroy(&state).run().await.expect(outcome);
        if outcome == Outcome::Failed {
            assert_eq!(ended.errors, ["a: the provider p has envVarMappings, which sc does not support"]);
            assert_eq!(ended.entries(), ["p", "a-1"]);
        }
    }
}

#[tokio::test]
async fn pulumi_package_resource_is_rejected() {
    let stash = resource("a").edit_goal(|goal| goal.type_token = TypeToken::new("pulumi:index:Stash"));
    let ended = FakeCloud::default().up(&Snapshot::default(), &[stash]).preview().run().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["a: the package pulumi (StackReference, Stash) is not supported"]);
}

#[tokio::test]
async fn secrets_of_provider_from_state_are_masked_before_configure() {
    let (cloud, mut state) = deploy(&[provider("p"), resource("a").provider("p")]).await;
    let recorded = state.resources.iter_mut().find(|state| state.urn.name() == "p").unwrap();
    let inputs = Arc::make_mut(&mut Arc::make_mut(recorded).inputs);
    inputs.insert("token".to_owned(), PropertyValue::secret("hush".into()));
    cloud.fail("configure p", CallFailure::Error);
    let ended = cloud.up(&state, &[]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.masker.mask("hush"), MASK);
}
