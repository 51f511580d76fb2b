//! Tests of remote components and their children.

use std::sync::Arc;

use engine::RegistrationResult;
use engine::events::Outcome;
use engine::masking::MASK;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot};

use crate::deploy;
use crate::fake_cloud::{CONSTRUCTED_SECRET, CallFailure, FakeCloud};
use crate::program::{PROJECT, STACK, component, get, provider, remote_component, resource};
use crate::run::entry;
use crate::stopping::{aborted_at, stopped_at};

#[tokio::test]
async fn component_and_children_are_recorded_before_dependents() {
    let (cloud, state) =
        deploy(&[resource("a"), remote_component("c").input_from("v", "a"), resource("b").depends_on("c")]).await;
    let (component, child) = (entry(&state, "c"), entry(&state, "c-child"));
    assert_eq!((component.custom, component.provider.as_ref()), (false, None));
    assert_eq!(component.outputs["child"].as_str(), Some("c-child-1"));
    assert_eq!(child.parent.as_ref(), Some(&component.urn));
    assert_eq!(child.property_dependencies["v"][0].name(), "a");
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete c-child-1", "delete a-1"]);
}

#[tokio::test]
async fn unchanged_component_makes_no_changes() {
    let program = [remote_component("c").input("v", "1")];
    let (cloud, state) = deploy(&program).await;
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn removed_component_is_deleted_with_its_children() {
    let (cloud, state) = deploy(&[remote_component("c"), resource("a")]).await;
    let ended = cloud.up(&state, &[resource("a")]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete c-child-1".to_owned()], vec!["a-1".to_owned()]));
}

#[tokio::test]
async fn renamed_component_keeps_its_children() {
    let (cloud, state) = deploy(&[remote_component("c").input("v", "1")]).await;
    let ended =
        cloud.up(&state, &[remote_component("d").input("v", "1").alias("c")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.entries(), ["d", "c-child-1"]);
    assert_eq!(entry(&ended.state, "d-child").parent.as_ref().unwrap().name(), "d");
}

#[tokio::test]
async fn construct_does_not_occupy_the_only_parallel_slot() {
    let program = |d: &str| [remote_component("c").input("d", d), resource("b").depends_on("c")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).parallel(1).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete c-child-1", "create c-child"]);
}

#[tokio::test]
async fn component_can_have_parent_and_dependency_on_components() {
    let program =
        [component("g"), remote_component("c").parent("g"), remote_component("d").parent("c").depends_on("c")];
    let (cloud, state) = deploy(&program).await;
    assert_eq!(entry(&state, "d").parent.as_ref().unwrap().name(), "c");
    cloud.destroy(&state).run().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn protect_is_inherited_by_children_of_component() {
    let (cloud, state) = deploy(&[remote_component("c").protected(), resource("a")]).await;
    assert!(entry(&state, "c-child").protect);
    let ended = cloud.up(&state, &[resource("a")]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn unknown_provider_configuration_skips_construct_in_preview() {
    let cloud = FakeCloud::default();
    let program = [resource("a"), provider("p").input_from("v", "a"), remote_component("c").provider("p")];
    let ended = cloud.up(&Snapshot::default(), &program).preview().run().await.expect(Outcome::Succeeded);
    assert!(ended.steps.contains(&"create c".to_owned()), "the engine reports the create step itself");
    assert!(!ended.steps.contains(&"create c-child".to_owned()));
    assert_eq!(cloud.constructed().len(), 0);
}

#[tokio::test]
async fn construct_error_is_reported_with_the_plugins_message() {
    let cloud = FakeCloud::default();
    cloud.fail("construct c", CallFailure::Error);
    let ended = cloud.up(&Snapshot::default(), &[remote_component("c")]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["c: construct c fails"]);
}

#[tokio::test]
async fn secrets_in_the_reply_to_construct_are_masked() {
    let cloud = FakeCloud::default();
    let program = [remote_component("c").input(CONSTRUCTED_SECRET, "hush")];
    let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.masker.mask("hush"), MASK);
}

/// The plugin registers the component with its inputs, without the information which of them are secret.
#[tokio::test]
async fn inputs_of_component_are_recorded_as_secret_where_the_program_has_a_secret() {
    let cloud = FakeCloud::default();
    let secret = PropertyValue::secret("hush".into());
    let program = [remote_component("c").input("pw", secret.clone()).input("open", "v").input("registersInputs", "1")];
    let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded);
    for ended in [cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded), ended] {
        let component = ended.state.resources.iter().find(|entry| entry.urn.name() == "c").unwrap();
        assert_eq!(component.inputs.get("pw"), Some(&secret), "{component:?}");
        assert_eq!(component.inputs.get("open"), Some(&"v".into()));
        assert_eq!(component.outputs.get("pw"), Some(&secret), "{component:?}");
    }
}

#[tokio::test]
async fn failed_construct_skips_dependents_with_continue_on_error() {
    let cloud = FakeCloud::default();
    cloud.fail("construct c", CallFailure::Error);
    let program =
        [remote_component("c"), remote_component("d").depends_on("c"), resource("b").depends_on("d"), resource("a")];
    let ended = cloud.up(&Snapshot::default(), &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.result("c"), RegistrationResult::Failed);
    assert_eq!((ended.result("d"), ended.result("b")), (RegistrationResult::Skipped, RegistrationResult::Skipped));
    assert_eq!(ended.entries(), ["a-1"]);
}

#[tokio::test]
async fn failed_child_is_reported_once_and_created_by_next_run() {
    let cloud = FakeCloud::default();
    cloud.fail("create c-child", CallFailure::Error);
    let program = [remote_component("c"), resource("b").depends_on("c")];
    let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Failed);
    assert_eq!(ended.errors.len(), 1, "{:?}", ended.errors);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create c-child", "create b"]);
}

#[tokio::test]
async fn stop_during_child_create_records_child_and_starts_no_dependent() {
    let cloud = FakeCloud::default();
    let hold = cloud.hold("create c-child");
    let run = cloud.up(&Snapshot::default(), &[remote_component("c"), remote_component("d").depends_on("c")]);
    let ended = stopped_at(run, hold).await;
    assert_eq!(ended.expect(Outcome::Canceled).entries(), ["c", "c-child-1"]);
}

#[tokio::test]
async fn abort_during_construct_leaves_child_pending() {
    let cloud = FakeCloud::default();
    let hold = cloud.hold("create c-child");
    let run = cloud.up(&Snapshot::default(), &[remote_component("c")]);
    let ended = aborted_at(run, hold).await.expect(Outcome::Canceled);
    let pending = &ended.state.pending_operations;
    assert_eq!(pending.iter().map(|operation| operation.resource.urn.name()).collect::<Vec<_>>(), ["c-child"]);
}

#[tokio::test]
async fn children_of_component_out_of_scope_are_unchanged() {
    let program = |v: &str| [remote_component("c").input("v", v), resource("a").input("v", v)];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).target("a").run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1"]);
    let ended = cloud.up(&ended.state, &program("2")).target("c-child").run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update c-child-1"]);
}

#[tokio::test]
async fn row_51_construct_receives_options_and_monitor_endpoint() {
    let cloud = FakeCloud::default();
    let program = [resource("a"), remote_component("c").input_from("v", "a").protected()];
    cloud.up(&Snapshot::default(), &program).preview().run().await.expect(Outcome::Succeeded);
    let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded);
    let constructed = cloud.constructed();
    let [preview, real] = &constructed[..] else { panic!("{constructed:?}") };
    assert_eq!((preview.run.dry_run, real.run.dry_run), (true, false));
    assert!(preview.inputs["v"].contains_unknowns());
    assert_eq!(real.inputs["v"].clone().without_outputs(), "a-1".into());
    assert_eq!((real.name.as_str(), real.options.protect), ("c", Some(true)));
    assert!(real.run.monitor_endpoint.is_some());
    assert!(ended.calls.iter().all(|call| call.name != "c"), "a component receives neither Check nor Diff");
}

#[tokio::test]
async fn row_52_call_receives_unknown_arguments_in_preview() {
    let cloud = FakeCloud::default();
    let program = [resource("a"), remote_component("c").input_from("ask", "a")];
    cloud.up(&Snapshot::default(), &program).preview().run().await.expect(Outcome::Succeeded);
    cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded);
    let called = cloud.called();
    let [(_, preview), (_, real)] = &called[..] else { panic!("{called:?}") };
    assert_eq!((preview.token.as_str(), preview.run.dry_run, real.run.dry_run), ("cloud:index:Thing/ask", true, false));
    assert_eq!((&preview.arguments["value"], &real.arguments["value"]), (&PropertyValue::UNKNOWN, &"a-1".into()));
}

#[tokio::test]
async fn row_52_call_uses_provider_of_its_receiver() {
    let cloud = FakeCloud::default();
    let urn_of = |name: &str| resource(name).urn_within(None).to_string();
    let program = |receiver: &str| {
        [
            provider("p"),
            resource("a").provider("p"),
            remote_component("c").input_from("ask", "a").input("receiver", urn_of(receiver).as_str()),
        ]
    };
    cloud.up(&Snapshot::default(), &program("a")).run().await.expect(Outcome::Succeeded);
    assert_eq!(cloud.called()[0].0, "p");
    let ended = cloud.up(&Snapshot::default(), &program("unregistered")).preview().run().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("is not a resource of this run"), "{:?}", ended.errors);
}

#[tokio::test]
async fn row_52_call_on_provider_resource_uses_that_provider_in_preview() {
    let cloud = FakeCloud::default();
    let of = |receiver: &Urn| remote_component("c").input("ask", "a").input("receiver", receiver.to_string().as_str());
    let urn = Urn::new(STACK, PROJECT, None, "pulumi:providers:cloud", "p");
    let program = [provider("p"), of(&urn).input_from("receiverId", "p")];
    cloud.up(&Snapshot::default(), &program).preview().run().await.expect(Outcome::Succeeded);
    cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(cloud.called().iter().map(|(by, _)| by.as_str()).collect::<Vec<_>>(), ["p", "p"]);
    let ended =
        cloud.up(&Snapshot::default(), &[provider("p"), of(&urn)]).preview().run().await.expect(Outcome::Failed);
    assert!(
        ended.errors[0].contains("is a method of a provider, and __self__ is not a provider"),
        "{:?}",
        ended.errors
    );
}

/// Shows: engine.md#differences-from-pulumi "Inside a component that was not constructed, because of a failure or a
///   skip, nothing is deleted."
#[tokio::test]
async fn children_of_failed_component_are_not_deleted() {
    let program = |v: &str| [resource("a").input("v", v), remote_component("c").depends_on("a"), resource("b")];
    let (cloud, mut state) = deploy(&program("1")).await;
    // The child is from a version of the plugin that created more children.
    let child = state.resources.iter().find(|state| state.urn.name() == "c-child").unwrap();
    let (urn, id) = (child.urn.to_string().replace("c-child", "c-late"), "c-late-1");
    let late = ResourceState { urn: urn.parse().unwrap(), id: ResourceId::new(id), ..(**child).clone() };
    state.resources.push(Arc::new(late));
    for (call, v) in [("construct c", "1"), ("update a-1", "2")] {
        cloud.add(id);
        cloud.fail(call, CallFailure::Error);
        let ended = cloud.up(&state, &program(v)[..2]).continue_on_error().run().await.expect(Outcome::Failed);
        assert_eq!(ended.entries(), ["a-1", "c", "c-child-1", "c-late-1"], "{call}");
        cloud.clear_failures();
        cloud.add("b-1");
    }
    // The construction fails after it has registered the component and a child.
    cloud.add(id);
    let unregistered = resource("unregistered").urn_within(None).to_string();
    let failing = remote_component("c").depends_on("a").input_from("ask", "a").input("receiver", unregistered.as_str());
    let ended = cloud
        .up(&state, &[resource("a").input("v", "1"), failing])
        .continue_on_error()
        .run()
        .await
        .expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1", "c", "c-child-1", "c-late-1"]);
}

#[tokio::test]
async fn managed_child_becomes_external_in_renamed_component() {
    let (cloud, state) = deploy(&[component("g"), resource("g-a").parent("g")]).await;
    let ended = cloud.up(&state, &[component("h").alias("g"), get("h-a", "g-a-1").parent("h")]).run().await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert!(entry(&ended.state, "h-a").external && ended.entries().len() == 2);
}
