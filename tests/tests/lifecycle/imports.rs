//! Tests of imports without a program.

use std::sync::Arc;

use bridge::provider::{Alias, AliasParent};
use engine::events::Outcome;
use engine::{ImportGoal, ImportProvider};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{TypeToken, Urn};
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, REFRESH_BEFORE_UPDATE, map};
use crate::program::{PROJECT, STACK, get, resource};
use crate::run::entry;
use crate::stopping::stopped_at;

const TYPE: &str = "cloud:index:Thing";

/// Returns the goal of an import with the default provider.
pub(crate) fn import(name: &str, id: &str) -> ImportGoal {
    ImportGoal {
        type_token: TypeToken::new(TYPE),
        name: name.to_owned(),
        id: ResourceId::new(id).expect("an import has an id"),
        parent: None,
        provider: ImportProvider::Default(None),
        protect: false,
        aliases: Vec::new(),
        inputs: Arc::default(),
        additional_secret_outputs: Vec::new(),
        source: None,
    }
}

/// Returns the import of a child of another import.
fn import_child(parent: &str, name: &str, id: &str) -> ImportGoal {
    let root = Urn::root_stack(STACK, PROJECT);
    ImportGoal { parent: Some(Urn::new(STACK, PROJECT, Some(&root), TYPE, parent)), ..import(name, id) }
}

fn cloud_with(ids: &[&str]) -> FakeCloud {
    let cloud = FakeCloud::default();
    ids.iter().for_each(|id| cloud.add(id));
    cloud
}

#[tokio::test]
async fn parent_is_imported_before_child_in_any_order() {
    let cloud = cloud_with(&["p-7", "c-7"]);
    let goals = [import_child("p", "c", "c-7"), import("p", "p-7")];
    let ended = cloud.import(&Snapshot::default(), &goals).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["p-7", "c-7"]);
    assert_eq!(entry(&ended.state, "c").parent.as_ref().unwrap().name(), "p");
}

#[tokio::test]
async fn child_of_failed_import_is_not_read_and_others_are_recorded() {
    let cloud = cloud_with(&["a-7", "c-7"]);
    let goals = [import("p", "p-7"), import_child("p", "c", "c-7"), import("a", "a-7")];
    cloud.fail("read p-7", CallFailure::Missing);
    let ended = cloud.import(&Snapshot::default(), &goals).run().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.call_count("read c-7")), (vec!["a-7".to_owned()], 0));
}

#[tokio::test]
async fn duplicate_import_name_is_rejected() {
    let cloud = cloud_with(&["a-7", "a-8"]);
    let goals = [import("a", "a-7"), import("a", "a-8")];
    let ended = cloud.import(&Snapshot::default(), &goals).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-7"]);
    assert!(ended.errors[0].contains("listed twice"), "{:?}", ended.errors);
}

/// Shows: engine.md#import "A resource that another entry owns is not imported"
#[tokio::test]
async fn resource_that_another_entry_owns_is_not_imported() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    let ended = cloud.import(&state, &[import("b", "a-1")]).run().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.call_count("read a-1")), (vec!["a-1".to_owned()], 0));
    assert!(ended.errors[0].contains(entry(&state, "a").urn.as_str()), "{:?}", ended.errors);

    // The program has renamed the resource without an alias: the entry `a` would be deleted.
    let renamed = || resource("b").edit_goal(|goal| goal.import_id = ResourceId::new("a-1"));
    let ended = cloud.up(&state, &[renamed()]).run().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.changes()), (vec!["a-1".to_owned()], Vec::new()));
    let ended = cloud.up(&state, &[renamed()]).preview().run().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("is recorded already, as"), "{:?}", ended.errors);
    let ended = cloud.up(&state, &[renamed().alias("a")]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.entries(), ended.changes()), (vec!["a-1".to_owned()], Vec::new()));
}

/// Shows: engine.md#import "A resource that another entry owns is not imported"
#[tokio::test]
async fn two_imports_of_one_resource_record_it_once() {
    let cloud = cloud_with(&["a-7"]);
    let goals = [import("a", "a-7"), import("b", "a-7")];
    let ended = cloud.import(&Snapshot::default(), &goals).run().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.call_count("read a-7")), (vec!["a-7".to_owned()], 1));
}

#[tokio::test]
async fn import_with_recorded_alias_is_rejected() {
    let (cloud, state) = deploy(&[resource("old")]).await;
    let was = Alias::Spec {
        name: Some("old".to_owned()),
        type_token: None,
        stack: None,
        project: None,
        parent: AliasParent::None,
    };
    let goal = ImportGoal { aliases: vec![was], ..import("new", "old-1") };
    let ended = cloud.import(&state, &[goal]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["old-1"]);
}

#[tokio::test]
async fn input_that_import_goal_marks_secret_is_secret() {
    let cloud = cloud_with(&["a-7"]);
    cloud.drift("a-7", map(&[("v", "hush"), ("w", "seen")]));
    let known = [("v".to_owned(), PropertyValue::secret("x".into()))].into_iter().collect();
    let goal = ImportGoal { inputs: Arc::new(known), ..import("a", "a-7") };
    let ended = cloud.import(&Snapshot::default(), &[goal]).run().await.expect(Outcome::Succeeded);
    let state = entry(&ended.state, "a");
    assert_eq!((state.inputs["v"].is_secret(), state.inputs["w"].is_secret()), (true, false));
    assert!(state.outputs["v"].is_secret());
}

#[tokio::test]
async fn unknown_import_parent_is_reported() {
    let goals = [import_child("missing", "c", "c-7")];
    let ended = cloud_with(&["c-7"]).import(&Snapshot::default(), &goals).run().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("is not recorded"), "{:?}", ended.errors);
}

#[tokio::test]
async fn import_keeps_recorded_and_pending_delete_entries() {
    let (cloud, state) = deploy(&[resource("a").input("k", "1")]).await;
    cloud.fail("delete a-1", CallFailure::Error);
    let ended = cloud.up(&state, &[resource("a").input("k", "2")]).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    cloud.add("b-7");
    let ended = cloud.import(&ended.state, &[import("b", "b-7")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0], "an import changes no resource");
    let mut entries = ended.entries();
    entries.sort();
    assert_eq!(entries, ["a-1 (delete)", "a-2", "b-7"]);
}

#[tokio::test]
async fn stop_during_import_records_it_and_starts_no_other() {
    let cloud = cloud_with(&["a-7", "b-7"]);
    let hold = cloud.hold("read a-7");
    let run = cloud.import(&Snapshot::default(), &[import("a", "a-7"), import("b", "b-7")]).parallel(1);
    let ended = stopped_at(run, hold).await;
    assert_eq!(ended.expect(Outcome::Canceled).entries(), ["a-7"]);
}

#[tokio::test]
async fn import_stopped_before_start_is_cancelled() {
    let run = cloud_with(&["a-7"]).import(&Snapshot::default(), &[import("a", "a-7")]);
    run.signals().stop.cancel();
    let ended = run.run().await.expect(Outcome::Canceled);
    assert_eq!((ended.calls.len(), ended.entries()), (0, Vec::<String>::new()));
}

#[tokio::test]
async fn import_or_read_creating_dependency_cycle_is_rejected() {
    let (cloud, state) = deploy(&[resource("c"), resource("e").input_from("v", "c")]).await;
    cloud.add("there");
    let imported = resource("c").input_from("v", "e").edit_goal(|goal| goal.import_id = ResourceId::new("there"));
    for dependent in [imported, get("c", "there").depends_on("e")] {
        let ended = cloud.up(&state, &[resource("e"), dependent]).exclude("e").run().await.expect(Outcome::Failed);
        let message = "c depends on e, which is out of scope and still depends on c";
        assert!(ended.errors[0].contains(message), "{:?}", ended.errors);
        assert_eq!((ended.call_count("read there"), ended.entries()), (0, vec!["c-1".to_owned(), "e-1".to_owned()]));
    }
}

#[tokio::test]
async fn pending_delete_entry_of_import_follows_rename_of_parent() {
    let (cloud, state) = deploy(&[resource("b"), resource("f").parent("b"), resource("h").deleted_with("f")]).await;
    let was = entry(&state, "f").urn.clone();
    cloud.add("there");
    let imported = resource("f").alias_urn(was).edit_goal(|goal| goal.import_id = ResourceId::new("there"));
    let program =
        [imported, resource("b2").alias("b").depends_on("f"), resource("h").deleted_with("f").depends_on("b2")];
    let ended = cloud.up(&state, &program).exclude("h").run().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "h").deleted_with.as_ref(), Some(&entry(&ended.state, "f").urn));
    // The entry `f-1` is kept as long as its dependent `h` is out of scope.
    assert_eq!(ended.changes(), [""; 0]);
    assert!(ended.entries().contains(&"f-1 (delete)".to_owned()), "{:?}", ended.entries());
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete f-1"]);
}

#[tokio::test]
async fn import_reads_only_imported_resources() {
    let (cloud, state) = deploy(&[resource("a").input(REFRESH_BEFORE_UPDATE, "1")]).await;
    cloud.add("b-7");
    let ended = cloud.import(&state, &[import("b", "b-7")]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("read a-1"), ended.call_count("read b-7")), (0, 1));
}

/// Shows: engine.md#differences-from-pulumi "An id of an import that is another spelling of the recorded id imports and
///   replaces nothing"
#[tokio::test]
async fn other_spelling_of_the_recorded_id_imports_nothing_and_deletes_nothing() {
    for protect in [false, true] {
        let a = || resource("a").input("v", "1").edit_goal(move |goal| goal.protect = Some(protect));
        let (cloud, state) = deploy(&[a()]).await;
        let spelled = || a().imported("https://a-1");
        let renamed = || resource("b").alias("a").input("v", "1").imported("https://a-1");
        for program in [spelled(), renamed()] {
            let preview =
                cloud.up(&state, std::slice::from_ref(&program)).preview().run().await.expect(Outcome::Succeeded);
            assert!(!preview.steps.iter().any(|step| step.starts_with("import")), "{:?}", preview.steps);
            for run in [
                cloud.up(&state, std::slice::from_ref(&program)),
                cloud.up(&state, std::slice::from_ref(&program)).refresh_first(),
            ] {
                let ended = run.run().await.expect(Outcome::Succeeded);
                assert_eq!((ended.changes(), ended.entries()), (Vec::new(), vec!["a-1".to_owned()]));
                assert_eq!(ended.call_count("read https://a-1"), 1);
                // The spelling is recorded, so the next run does not read by it.
                let ended =
                    cloud.up(&ended.state, std::slice::from_ref(&program)).run().await.expect(Outcome::Succeeded);
                assert_eq!((ended.call_count("read https://a-1"), ended.changes()), (0, Vec::new()));
            }
        }
        let changed = [a().imported("https://a-1").input("v", "2")];
        let ended = cloud.up(&state, &changed).run().await.expect(Outcome::Succeeded);
        assert_eq!((ended.changes(), ended.entries()), (vec!["update a-1".to_owned()], vec!["a-1".to_owned()]));
    }
}

/// Shows: engine.md#differences-from-pulumi "An id of an import that is another spelling of the recorded id imports and
///   replaces nothing"
#[tokio::test]
async fn other_spelling_of_the_id_of_another_entry_is_not_imported() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    let renamed = [resource("b").imported("https://a-1")];
    for run in [cloud.up(&state, &renamed), cloud.up(&state, &renamed).preview()] {
        let ended = run.run().await.expect(Outcome::Failed);
        assert_eq!((ended.entries(), ended.changes()), (vec!["a-1".to_owned()], Vec::new()));
        assert!(ended.errors[0].contains("\"a-1\" is recorded already, as"), "{:?}", ended.errors);
    }
    let ended = cloud.import(&state, &[import("b", "https://a-1")]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1"]);
    assert!(ended.errors[0].contains("\"a-1\" is recorded already, as"), "{:?}", ended.errors);
    // Two imports of one resource, in two spellings, record it once.
    let cloud = cloud_with(&["a-7"]);
    let goals = [import("a", "a-7"), import("b", "https://a-7")];
    let ended = cloud.import(&Snapshot::default(), &goals).run().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.errors.len()), (vec!["a-7".to_owned()], 1));
}

#[tokio::test]
async fn import_command_accepts_another_spelling_of_the_recorded_id() {
    let cloud = cloud_with(&["a-7", "a-8"]);
    let ended = cloud.import(&Snapshot::default(), &[import("a", "https://a-7")]).run().await;
    let ended = cloud.import(&ended.state, &[import("a", "https://a-7")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["a-7"]);
    let ended = cloud.import(&ended.state, &[import("a", "https://a-8")]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-7"]);
    assert!(ended.errors[0].contains("is recorded already, with the id \"a-7\""), "{:?}", ended.errors);
}

#[tokio::test]
async fn import_does_not_replace_a_protected_resource_unless_the_program_lifts_it() {
    let (cloud, state) = deploy(&[resource("a").protected()]).await;
    cloud.add("there");
    let program = [resource("a").protected().imported("there")];
    for run in [cloud.up(&state, &program), cloud.up(&state, &program).preview()] {
        let ended = run.run().await.expect(Outcome::Failed);
        assert_eq!((ended.entries(), ended.changes()), (vec!["a-1".to_owned()], Vec::new()));
        assert!(ended.errors[0].contains("which is recorded as a and protected"), "{:?}", ended.errors);
    }
    let ended = cloud.up(&state, &[resource("a").imported("there")]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete a-1".to_owned()], vec!["there".to_owned()]));
}

#[tokio::test]
async fn import_of_the_old_version_keeps_it_although_its_deletion_is_pending() {
    let (cloud, state) = deploy(&[resource("a").input("k", "1")]).await;
    cloud.fail("delete a-1", CallFailure::Error);
    let ended = cloud.up(&state, &[resource("a").input("k", "2")]).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    let program = [resource("a").input("k", "1").imported("https://a-1")];
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete a-2".to_owned()], vec!["a-1".to_owned()]));
}
