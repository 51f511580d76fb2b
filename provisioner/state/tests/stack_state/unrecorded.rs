//! Journals whose file is removed or cannot be written during a run.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use state::{
    ChangeKind, Effect, EntryId, JournalFolders, OperationId, Record, Snapshot, StackView, StateError,
    StateRecorder as _, UnrecordedReport,
};

use crate::fixture::{Fixture, creation, resource, secret_resource};

/// Returns a fixture with a fallback folder, and the folder.
async fn with_fallback() -> (Fixture, PathBuf) {
    let mut fixture = Fixture::new().await;
    let backend = fixture.folder.path().to_owned();
    let private = backend.join("user");
    fixture.access.journals = JournalFolders::of_backend(&backend).with_fallbacks(&backend, vec![private.clone()]);
    (fixture, private)
}

/// Makes the folder of journals in the backend unusable: a file has its name.
fn break_journals(fixture: &Fixture) {
    let folder = fixture.folder.path().join(".sc");
    fs::remove_dir_all(&folder).ok();
    fs::write(folder, "").unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Shows: state.md#the-journal-could-not-be-written "If the journal or its folder was removed, `sc` writes the whole
///   journal anew."
#[tokio::test]
async fn journal_whose_folder_was_removed_is_written_anew_as_a_whole() {
    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    fs::remove_dir_all(fixture.folder.path().join(".sc")).unwrap();
    for record in creation(1, 2, resource("c")) {
        recorder.append(&record).unwrap();
    }
    drop((state, recorder));
    assert_eq!(fixture.names().await, ["b", "c", "a"]);
}

#[tokio::test]
async fn journal_is_accessible_to_its_owner_only() {
    let fixture = Fixture::new().await;
    let (state, recorder) = fixture.unfinished_run().await;
    let [journal] = &fixture.journals()[..] else { panic!("{:?}", fixture.journals()) };
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(journal), mode(journal.parent().unwrap())), (0o600, 0o700));
    drop((state, recorder));
}

#[tokio::test]
async fn journal_that_was_moved_is_written_anew_after_its_next_flush() {
    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    fs::rename(fixture.folder.path().join(".sc"), fixture.folder.path().join("moved")).unwrap();
    // The flush is on another thread; each append wakes it.
    let mut created = 0;
    while fixture.journals().is_empty() && created < 100_000 {
        created += 1;
        for record in creation(created, created + 1, resource("c")) {
            recorder.append(&record).unwrap();
        }
        std::thread::yield_now();
    }
    drop((state, recorder));
    let names = fixture.names().await;
    assert_eq!(names.iter().filter(|name| *name == "c").count() as u64, created);
}

#[tokio::test]
async fn run_that_cannot_save_writes_a_removed_journal_anew_before_it_names_it() {
    let fixture = Fixture::new().await;
    let (state, recorder) = fixture.unfinished_run().await;
    fs::remove_dir_all(fixture.folder.path().join(".sc")).unwrap();
    fs::remove_dir_all(fixture.folder.path().join(".pulumi/stacks")).unwrap();
    fs::write(fixture.folder.path().join(".pulumi/stacks"), "").unwrap();
    let Err(StateError::Unsaved { kept: Some(kept), .. }) = state.close(Snapshot::default(), None).await else {
        panic!("the checkpoint was saved")
    };
    drop(recorder);
    assert_eq!((fixture.journals(), kept.is_fallback, kept.lacks_changes), (vec![kept.path], false, false));
    assert_eq!(fixture.access.unrecorded.take(), UnrecordedReport::default());
}

/// Shows: state.md#the-journal-could-not-be-written "The file has mode 0600, and its secrets are encrypted as always."
/// Shows: state.md#the-journal-could-not-be-written "finds the journal in the fallback folder by itself"
#[tokio::test]
async fn next_run_finds_the_journal_in_the_fallback_folder() {
    let (fixture, private) = with_fallback().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    recorder.wait_for_secrets().await.unwrap();
    let [begin, end] = creation(1, 2, secret_resource("c"));
    recorder.append(&begin).unwrap();
    break_journals(&fixture);
    recorder.append(&end).unwrap();
    // No operation begins that the backend has no record of.
    let error = recorder.append(&creation(2, 3, resource("d"))[0]).unwrap_err().to_string();
    let [file] = &files(&private)[..] else { panic!("{:?}", files(&private)) };
    assert!(error.contains("no operation begins") && error.contains(&file.display().to_string()), "{error}");
    assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(file).unwrap();
    let count = |part: &str| text.matches(part).count();
    assert_eq!((count("otter"), count("\"ciphertext\":\"marker:")), (2, 2), "{text}");
    drop((state, recorder));
    assert_eq!(fixture.access.unrecorded.take().journal.as_ref(), Some(file));

    fs::remove_file(fixture.folder.path().join(".sc")).unwrap();
    fixture.break_locks().await;
    assert_eq!(fixture.names().await, ["b", "c", "a"]);
    fixture.open().await.unwrap().release().await.unwrap();
    assert!(files(&private).is_empty());
    assert_eq!(fixture.names().await, ["b", "c", "a"]);
}

/// Shows: state.md#the-journal-could-not-be-written "A fallback folder that is a symbolic link, that belongs to another
///   user, or that others can write to, is neither read nor written."
#[tokio::test]
async fn journal_in_a_folder_that_others_can_write_to_is_neither_written_nor_read() {
    let (fixture, private) = with_fallback().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    let [begin, end] = creation(1, 2, resource("c"));
    recorder.append(&begin).unwrap();
    break_journals(&fixture);
    let other = fixture.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    symlink(&other, &private).unwrap();
    recorder.append(&end).unwrap_err();
    assert!(files(&other).is_empty());
    fs::remove_file(&private).unwrap();
    recorder.append(&Record::Change(vec![Effect::Keep(EntryId(0))])).unwrap();
    drop((state, recorder));
    fixture.break_locks().await;
    fs::remove_file(fixture.folder.path().join(".sc")).unwrap();
    assert_eq!(fixture.names().await, ["b", "c", "a"]);
    fs::rename(&private, other.join("moved")).unwrap();
    symlink(other.join("moved"), &private).unwrap();
    assert_eq!(fixture.names().await, ["a"]);
    fs::remove_file(&private).unwrap();
    fs::rename(other.join("moved"), &private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o722)).unwrap();
    assert_eq!(fixture.names().await, ["a"]);
}

#[tokio::test]
async fn change_that_no_journal_contains_is_reported_until_it_is_recorded() {
    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    let created = with_id("c", "c-1");
    let [begin, end] = creation(1, 2, created.clone());
    recorder.append(&begin).unwrap();
    break_journals(&fixture);
    let error = recorder.append(&end).unwrap_err().to_string();
    // The journal that contained the earlier creation is gone.
    let expected = [format!("{} = b", resource("b").urn), format!("{} = c-1", created.urn)];
    assert!(error.ends_with(&format!("at the end of the run:\n  {}", expected.join("\n  "))), "{error}");
    let report = fixture.access.unrecorded.take();
    let lines = |report: &UnrecordedReport| report.changes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(lines(&report), expected);
    assert_eq!(report.changes[0].kind, ChangeKind::Added);
    // A panic drops the state and the recorder.
    drop((state, recorder));
    let report = fixture.access.unrecorded.take();
    assert_eq!((lines(&report), report.journal), (expected.to_vec(), None));
}

#[tokio::test]
async fn record_that_failed_is_written_with_the_next_one() {
    let fixture = Fixture::new().await;
    let (state, mut recorder) = fixture.unfinished_run().await;
    let [begin, end] = creation(1, 2, with_id("c", "c-1"));
    recorder.append(&begin).unwrap();
    break_journals(&fixture);
    recorder.append(&end).unwrap_err();
    fs::remove_file(fixture.folder.path().join(".sc")).unwrap();
    recorder.append(&Record::End { operation: OperationId(9), effects: Vec::new() }).unwrap();
    assert_eq!(fixture.access.unrecorded.take(), UnrecordedReport::default());
    drop((state, recorder));
    assert_eq!(fixture.access.unrecorded.take().journal, fixture.journals().pop());
    let view = StackView::open(&fixture.access).await.unwrap();
    assert_eq!(view.snapshot.unwrap().resources.len(), 3);
}

fn with_id(name: &str, id: &str) -> std::sync::Arc<state::ResourceState> {
    let mut created = state::ResourceState::clone(&resource(name));
    created.id = pulumi_proto::resource_id::ResourceId::new(id);
    std::sync::Arc::new(created)
}
