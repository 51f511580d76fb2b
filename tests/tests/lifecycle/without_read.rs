//! Tests of providers that do not implement Read.

use bridge::provider::LostReply;
use engine::events::Outcome;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ResourceId;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, REFRESH_BEFORE_UPDATE};
use crate::imports::import;
use crate::program::{get, resource};
use crate::run::{EndedRun, entries};

const WARNING: &str = "it does not implement Read: a refresh keeps";

fn withhold_read(cloud: &FakeCloud, names: &[&str]) {
    for name in names {
        cloud.fail(&format!("read {name}"), CallFailure::Unimplemented);
    }
}

fn outputs_of(state: &Snapshot) -> Vec<&PropertyMap> {
    state.resources.iter().map(|entry| &*entry.outputs).collect()
}

/// Returns the number of warnings about the missing Read.
fn warnings(ended: &EndedRun) -> usize {
    ended.warnings.iter().filter(|text| text.contains(WARNING)).count()
}

/// Shows: engine.md#refresh "keeps its entries as they are recorded, with one warning for each plugin"
#[tokio::test]
async fn refresh_without_read_keeps_the_recorded_state_with_one_warning() {
    let program = [resource("a").input("v", "1"), resource("b").input_from("v", "a")];
    let (cloud, state) = deploy(&program).await;
    withhold_read(&cloud, &["a", "b"]);
    for run in [cloud.refresh(&state), cloud.up(&state, &program).refresh_first()] {
        let ended = run.run().await.expect(Outcome::Succeeded);
        assert_eq!((warnings(&ended), ended.changes()), (1, Vec::new()), "{:?}", ended.warnings);
        assert_eq!((ended.entries(), outputs_of(&ended.state)), (entries(&state), outputs_of(&state)));
    }
    let with_program = cloud.up(&state, &program).refresh_first().run_program().run().await.expect(Outcome::Succeeded);
    assert_eq!((warnings(&with_program), with_program.changes()), (1, Vec::new()), "{:?}", with_program.warnings);
    let previewed = cloud.up(&state, &program).refresh_first().preview().run().await.expect(Outcome::Succeeded);
    assert_eq!(warnings(&previewed), 1);
    let destroyed = cloud.destroy(&state).refresh_first().run().await.expect(Outcome::Succeeded);
    assert_eq!((warnings(&destroyed), destroyed.entries(), cloud.existing().len()), (1, Vec::new(), 0));
}

#[tokio::test]
async fn resource_without_read_is_updated_and_one_with_read_is_refreshed() {
    let program = |v: &str| [resource("a").input("v", v), resource("b").input("v", v)];
    let (cloud, state) = deploy(&program("1")).await;
    withhold_read(&cloud, &["a"]);
    cloud.fail("read b-1", CallFailure::Missing);
    let ended = cloud.up(&state, &program("2")).refresh_first().run().await.expect(Outcome::Succeeded);
    assert_eq!((warnings(&ended), ended.entries()), (1, vec!["a-1".to_owned(), "b-2".to_owned()]));
    assert_eq!(ended.call_count("update a-1"), 1);
}

#[tokio::test]
async fn refresh_before_update_without_read_keeps_the_recorded_state() {
    let program = |v: &str| [resource("a").input("v", v).input(REFRESH_BEFORE_UPDATE, "1")];
    let (cloud, state) = deploy(&program("1")).await;
    withhold_read(&cloud, &["a"]);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!((warnings(&ended), ended.call_count("update a-1")), (1, 1));
}

/// Shows: engine.md#refresh "An import, a read and a pending create with an id need Read, and fail without it."
#[tokio::test]
async fn import_read_and_pending_create_fail_without_read() {
    let reason = "the provider does not implement Read";
    let has_reason = |ended: &EndedRun| ended.errors.iter().any(|error| error.contains(reason));
    let cloud = FakeCloud::default();
    cloud.add("a-7");
    withhold_read(&cloud, &["a"]);
    let none = Snapshot::default();
    let imported = [resource("a").edit_goal(|goal| goal.import_id = ResourceId::new("a-7"))];
    for run in
        [cloud.import(&none, &[import("a", "a-7")]), cloud.up(&none, &imported), cloud.up(&none, &[get("a", "a-7")])]
    {
        let ended = run.run().await.expect(Outcome::Failed);
        assert!(has_reason(&ended) && warnings(&ended) == 0, "{:?}", ended.errors);
        assert!(ended.entries().is_empty());
    }
    let program = [resource("a").input("v", "1")];
    let cloud = FakeCloud::default();
    cloud.fail("create a", CallFailure::Lost(LostReply::Unknown));
    let lost = cloud.up(&none, &program).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    withhold_read(&cloud, &["a"]);
    for run in
        [cloud.up(&lost.state, &program), cloud.refresh(&lost.state), cloud.up(&lost.state, &program).refresh_first()]
    {
        let next = run.run().await.expect(Outcome::Failed);
        assert!(has_reason(&next) && warnings(&next) == 0, "{:?} {:?}", next.errors, next.warnings);
        assert!(next.hints.iter().any(|hint| hint.contains("--clear-pending-creates")), "{:?}", next.hints);
        let pending: Vec<_> = next.state.pending_operations.iter().map(|pending| pending.resource.id_text()).collect();
        assert_eq!((next.entries(), pending), (Vec::new(), vec!["a-1"]));
    }
}
