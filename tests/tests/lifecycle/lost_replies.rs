//! Tests of each row of the table of lost replies ([`LostReply`]): the state is compared with what exists in the cloud,
//! and the next runs neither forget a resource nor create one twice.

use bridge::provider::LostReply;
use engine::RegistrationResult;
use engine::events::Outcome;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use state::{OperationKind, Snapshot};

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, keeps_id, map};
use crate::program::{ProgramResource, get, remote_component, resource};
use crate::run::{EndedRun, Run, entry};

/// Returns the pending operations of a state: kind and id.
fn pending(state: &Snapshot) -> Vec<(OperationKind, &str)> {
    state.pending_operations.iter().map(|operation| (operation.kind, operation.resource.id_text())).collect()
}

/// Checks that each existing resource is an entry, or a pending create with its id or, without any id, with its name.
fn assert_nothing_lost(cloud: &FakeCloud, state: &Snapshot, lost: LostReply) {
    for id in cloud.existing() {
        let entries = state.resources.iter().map(|entry| entry.id_text());
        let mut known = entries.chain(pending(state).into_iter().map(|(_, id)| id));
        let name = id.rsplit_once('-').map(|(name, _)| name);
        let mut unknown = state.pending_operations.iter().filter(|operation| operation.is_create_without_id());
        let is_pending = unknown.any(|operation| Some(operation.resource.urn.name()) == name);
        assert!(known.any(|known| known == id) || is_pending, "{lost:?}: {id} is lost: {state:#?}");
    }
}

/// Runs with a call whose reply is lost, which fails the run.
async fn lose(cloud: &FakeCloud, call: &str, lost: LostReply, run: Run) -> EndedRun {
    cloud.fail(call, CallFailure::Lost(lost));
    let ended = run.run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    assert_nothing_lost(cloud, &ended.state, lost);
    ended
}

/// Checks that a destroy deletes everything that exists, and leaves neither entries nor pending creates with an id.
async fn assert_destroyed(cloud: &FakeCloud, state: &Snapshot) {
    let destroyed = cloud.destroy(state).run().await.expect(Outcome::Succeeded);
    assert_eq!((destroyed.entries(), cloud.existing().len()), (Vec::new(), 0));
    assert!(destroyed.state.pending_operations.iter().all(|operation| !operation.is_create_with_id()));
}

/// Shows: engine.md#failures "a pending create, with the id if the reply contains it"
/// Shows: engine.md#failures "The next run reads the resource by its id and records it."
#[tokio::test]
async fn created_resource_whose_id_can_be_read_is_pending_and_the_next_run_adopts_it_once() {
    let program = [resource("a").input("v", "1"), resource("b")];
    for lost in LostReply::ALL.into_iter().filter(|lost| keeps_id(*lost)) {
        let cloud = FakeCloud::default();
        let run = cloud.up(&Snapshot::default(), &program).continue_on_error();
        let ended = lose(&cloud, "create a", lost, run).await;
        assert_eq!(pending(&ended.state), [(OperationKind::Creating, "a-1")], "{lost:?}");
        assert_eq!(ended.entries(), ["b-1"]);
        assert!(ended.hints.iter().any(|hint| hint.contains("\"a-1\"")), "{:?}", ended.hints);
        let fork = || cloud.fork(&cloud.state());

        let next = fork();
        let adopted = next.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!((adopted.call_count("read a-1"), adopted.changes()), (1, Vec::new()), "{lost:?}");
        let mut entries = adopted.entries();
        entries.sort();
        assert_eq!((entries, pending(&adopted.state)), (vec!["a-1".to_owned(), "b-1".to_owned()], Vec::new()));
        let again = next.up(&adopted.state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!((again.call_count("read a-1"), again.changes()), (0, Vec::new()), "{lost:?}");
        assert_destroyed(&next, &again.state).await;

        let next = fork();
        let refreshed = next.refresh(&ended.state).run().await.expect(Outcome::Succeeded);
        assert_eq!((refreshed.call_count("read a-1"), pending(&refreshed.state)), (1, Vec::new()), "{lost:?}");
        let up = next.up(&refreshed.state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!(up.changes(), [""; 0]);

        let next = fork();
        assert_destroyed(&next, &ended.state).await;
        assert_eq!((next.call_count("read a-1"), next.call_count("delete a-1")), (1, 1), "{lost:?}");

        let preview = fork().up(&ended.state, &program).preview().run().await.expect(Outcome::Succeeded);
        assert_eq!((preview.call_count("preview a"), preview.call_count("read a-1")), (0, 1));
    }
}

#[tokio::test]
async fn created_resource_without_a_readable_id_is_pending_and_the_next_run_warns() {
    let program = [resource("a").input("v", "1")];
    for lost in LostReply::ALL.into_iter().filter(|lost| !keeps_id(*lost)) {
        let cloud = FakeCloud::default();
        let ended = lose(&cloud, "create a", lost, cloud.up(&Snapshot::default(), &program)).await;
        assert_eq!(pending(&ended.state), [(OperationKind::Creating, "")], "{lost:?}");
        assert!(ended.hints.iter().any(|hint| hint.contains("--import-pending-creates")), "{:?}", ended.hints);
        let next = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
        assert!(next.warnings.iter().any(|text| text.contains("was interrupted while creating it")), "{lost:?}");
        assert_eq!(next.changes(), ["create a"]);
        assert_eq!(pending(&next.state), [(OperationKind::Creating, "")], "the user resolves it");
        assert_nothing_lost(&cloud, &next.state, lost);
        // The second resource has taken the name, so the first one cannot be imported.
        let again = cloud.up(&next.state, &program).run().await.expect(Outcome::Succeeded);
        let id = entry(&next.state, "a").id_text().to_owned();
        let expected = format!("{id:?} is recorded; a second resource may exist");
        assert!(again.hints.iter().all(|hint| hint.starts_with(&expected)), "{:?}", again.hints);
        assert_eq!(again.hints.len(), 1);
    }
}

#[tokio::test]
async fn hint_never_advises_to_delete_the_only_resource_after_a_delete_before_replace() {
    let program = |d: &str| [resource("a").input("d", d)];
    for lost in LostReply::ALL.into_iter().filter(|lost| !keeps_id(*lost)) {
        let (cloud, state) = deploy(&program("1")).await;
        let ended = lose(&cloud, "create a", lost, cloud.up(&state, &program("2"))).await;
        assert_eq!(ended.entries(), ["a-1 (pending replacement)"]);
        let next = cloud.up(&ended.state, &program("2")).preview().run().await.expect(Outcome::Succeeded);
        let hints = || ended.hints.iter().chain(&next.hints);
        assert!(hints().any(|hint| hint.contains("--import-pending-creates")), "{:?}", ended.hints);
        assert!(!hints().any(|hint| hint.contains("delete it")), "{lost:?}: {:?} {:?}", ended.hints, next.hints);
    }
}

#[tokio::test]
async fn pending_create_whose_resource_does_not_exist_is_created_again() {
    let program = [resource("a")];
    let cloud = FakeCloud::default();
    let ended = lose(&cloud, "create a", LostReply::TooDeep, cloud.up(&Snapshot::default(), &program)).await;
    cloud.vanish("a-1");
    let next = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!((next.changes(), next.entries()), (vec!["create a".to_owned()], vec!["a-2".to_owned()]));
    assert_eq!(pending(&next.state), []);
}

/// Shows: engine.md#failures "If the read fails, the run ends, and the create stays pending until a read succeeds"
#[tokio::test]
async fn pending_create_that_cannot_be_read_stays_pending_and_nothing_is_created() {
    let program = [resource("a").input("v", "1")];
    let cloud = FakeCloud::default();
    let ended = lose(&cloud, "create a", LostReply::NoKind, cloud.up(&Snapshot::default(), &program)).await;
    for run in [cloud.up(&ended.state, &program), cloud.destroy(&ended.state), cloud.refresh(&ended.state)] {
        let next = lose(&cloud, "read a-1", LostReply::NoKind, run).await;
        assert_eq!(pending(&next.state), [(OperationKind::Creating, "a-1")]);
        assert_eq!((next.changes(), next.entries()), (Vec::new(), Vec::new()));
    }
}

#[tokio::test]
async fn secrets_of_a_pending_create_are_marked_again_in_what_is_read() {
    let program = [resource("a").input("v", PropertyValue::secret("hush".into()))];
    let cloud = FakeCloud::default();
    let ended = lose(&cloud, "create a", LostReply::TooDeep, cloud.up(&Snapshot::default(), &program)).await;
    // The provider reads the value without the mark.
    cloud.drift("a-1", map(&[("v", "hush")]));
    let refreshed = cloud.refresh(&ended.state).run().await.expect(Outcome::Succeeded);
    let a = entry(&refreshed.state, "a");
    assert!(a.inputs["v"].is_secret() && a.outputs["v"].is_secret(), "{a:?}");
}

#[tokio::test]
async fn pending_create_is_adopted_by_a_run_with_another_target() {
    let program = [resource("a"), resource("b")];
    let cloud = FakeCloud::default();
    let ended = lose(&cloud, "create a", LostReply::Unknown, cloud.up(&Snapshot::default(), &program)).await;
    let next = cloud.up(&ended.state, &program).target("b").run().await.expect(Outcome::Succeeded);
    assert_eq!((next.call_count("read a-1"), pending(&next.state)), (1, Vec::new()));
    assert_destroyed(&cloud, &next.state).await;
}

/// Shows: engine.md#failures "the old one stays the recorded resource, the created one becomes a pending delete, and
///   the replacement is repeated"
#[tokio::test]
async fn replacement_with_lost_reply_keeps_the_recorded_resource_and_is_repeated() {
    let program = |key: &str| [resource("a").input("k", key), resource("b").input_from("v", "a")];
    for lost in LostReply::ALL.into_iter().filter(|lost| keeps_id(*lost)) {
        let (cloud, state) = deploy(&program("1")).await;
        let ended = lose(&cloud, "create a", lost, cloud.up(&state, &program("2"))).await;
        assert_eq!(pending(&ended.state), [(OperationKind::Creating, "a-2")], "{lost:?}");
        assert_eq!(ended.entries(), ["a-1", "b-1"]);
        for (key, left) in [("2", ["a-3", "b-1"]), ("1", ["a-1", "b-1"])] {
            let next = cloud.fork(&cloud.state());
            let replaced = next.up(&ended.state, &program(key)).run().await.expect(Outcome::Succeeded);
            assert_eq!(replaced.call_count("read a-2"), 1);
            assert_eq!(next.existing().into_iter().collect::<Vec<_>>(), left, "{lost:?} {key}");
            assert_eq!((replaced.entries().len(), pending(&replaced.state)), (2, Vec::new()));
        }
        assert_destroyed(&cloud, &ended.state).await;
    }
}

#[tokio::test]
async fn delete_before_replace_with_lost_reply_is_completed_by_the_next_run() {
    let program = |key: &str| [resource("a").input("d", key), resource("b").depends_on("a")];
    for lost in LostReply::ALL.into_iter().filter(|lost| keeps_id(*lost)) {
        let (cloud, state) = deploy(&program("1")).await;
        let ended = lose(&cloud, "create a", lost, cloud.up(&state, &program("2"))).await;
        assert_eq!(pending(&ended.state), [(OperationKind::Creating, "a-2")], "{lost:?}");
        assert_eq!(ended.entries(), ["a-1 (pending replacement)", "b-1"]);
        let next = cloud.up(&ended.state, &program("2")).run().await.expect(Outcome::Succeeded);
        assert_eq!((next.call_count("read a-2"), next.changes()), (1, Vec::new()), "{lost:?}");
        assert_eq!((next.entries(), pending(&next.state)), (vec!["a-2".to_owned(), "b-1".to_owned()], Vec::new()));
        assert_destroyed(&cloud, &next.state).await;
    }
}

/// Shows: engine.md#failures "Update or Delete whose reply is lost or cannot be used | the entry, unchanged; a pending
///   operation"
#[tokio::test]
async fn updated_resource_with_lost_reply_stays_as_recorded_and_pending() {
    let program = |value: &str| [resource("a").input("v", value)];
    for lost in LostReply::ALL {
        let (cloud, state) = deploy(&program("1")).await;
        let ended = lose(&cloud, "update a-1", lost, cloud.up(&state, &program("2"))).await;
        assert_eq!(pending(&ended.state), [(OperationKind::Updating, "a-1")], "{lost:?}");
        assert_eq!(ended.state.resources, state.resources, "{lost:?}");
        let next = cloud.up(&ended.state, &program("2")).run().await.expect(Outcome::Succeeded);
        assert!(next.warnings.iter().any(|text| text.contains("was interrupted while updating it")), "{lost:?}");
        assert_eq!((next.changes(), pending(&next.state)), (vec!["update a-1".to_owned()], Vec::new()), "{lost:?}");
        assert_destroyed(&cloud, &next.state).await;
    }
}

/// Shows: engine.md#failures "Update or Delete whose reply is lost or cannot be used | the entry, unchanged; a pending
///   operation"
#[tokio::test]
async fn deleted_resource_with_lost_reply_stays_as_recorded_and_pending() {
    let program = [resource("a"), resource("b")];
    for lost in LostReply::ALL {
        let (cloud, state) = deploy(&program).await;
        let ended = lose(&cloud, "delete a-1", lost, cloud.up(&state, &program[1..])).await;
        assert_eq!(pending(&ended.state), [(OperationKind::Deleting, "a-1")], "{lost:?}");
        assert!(ended.entries().contains(&"a-1".to_owned()), "{lost:?}");
        let next = cloud.up(&ended.state, &program[1..]).refresh_first().run().await.expect(Outcome::Succeeded);
        assert_eq!((next.entries(), pending(&next.state)), (vec!["b-1".to_owned()], Vec::new()), "{lost:?}");
    }
}

#[tokio::test]
async fn read_with_lost_reply_fails_and_records_nothing() {
    for lost in LostReply::ALL {
        let cloud = FakeCloud::default();
        cloud.add("theirs");
        let program = [get("a", "theirs")];
        cloud.fail("read theirs", CallFailure::Lost(lost));
        let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Failed);
        assert_eq!((ended.entries(), pending(&ended.state)), (Vec::new(), Vec::new()), "{lost:?}");
        cloud.clear_failures();
        let next = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!(next.entries(), ["theirs"]);
    }
}

/// Shows: hosting.md#limits-on-messages "`--skip-refresh` (`-R`) leaves the refresh out, and the run goes on with the recorded
///   state"
#[tokio::test]
async fn refresh_whose_reply_is_too_large_names_the_flag_that_leaves_it_out() {
    let program = [resource("a").input("v", "1")];
    let (cloud, state) = deploy(&program).await;
    cloud.fail("read a-1", CallFailure::Lost(LostReply::TooLarge));
    let names_flag = |ended: &EndedRun| ended.hints.iter().any(|hint| hint.contains("`--skip-refresh` (`-R`)"));
    for run in [cloud.up(&state, &program), cloud.up(&state, &program).run_program(), cloud.destroy(&state)] {
        let ended = run.refresh_first().run().await.expect(Outcome::Failed);
        assert!(names_flag(&ended), "{:?}", ended.hints);
        assert_eq!(ended.entries(), ["a-1"]);
    }
    let refreshed = cloud.refresh(&state).run().await.expect(Outcome::Failed);
    assert!(!names_flag(&refreshed), "{:?}", refreshed.hints);
    assert!(refreshed.hints.iter().any(|hint| hint.contains("raise its limit")), "{:?}", refreshed.hints);
    cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn import_with_lost_reply_is_pending_with_its_id_and_is_repeated() {
    for lost in LostReply::ALL {
        let cloud = FakeCloud::default();
        cloud.add("a-7");
        let program = [resource("a").edit_goal(|goal| goal.import_id = ResourceId::new("a-7"))];
        let ended = lose(&cloud, "read a-7", lost, cloud.up(&Snapshot::default(), &program)).await;
        assert_eq!(pending(&ended.state), [(OperationKind::Importing, "a-7")], "{lost:?}");
        let next = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!((next.entries(), pending(&next.state)), (vec!["a-7".to_owned()], Vec::new()), "{lost:?}");
        assert_eq!((next.call_count("read a-7"), next.changes()), (1, Vec::new()), "{lost:?}");
    }
}

#[tokio::test]
async fn children_of_a_component_with_lost_reply_are_recorded() {
    let program: [ProgramResource; 1] = [remote_component("c").input("v", "1")];
    for lost in LostReply::ALL {
        let cloud = FakeCloud::default();
        let run = cloud.up(&Snapshot::default(), &program).continue_on_error();
        let ended = lose(&cloud, "construct c", lost, run).await;
        assert_eq!(ended.result("c"), RegistrationResult::Failed);
        assert_eq!(
            (ended.entries(), pending(&ended.state)),
            (vec!["c".to_owned(), "c-child-1".to_owned()], Vec::new())
        );
        let next = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!(next.changes(), [""; 0], "{lost:?}");
        assert_destroyed(&cloud, &next.state).await;
    }
}
