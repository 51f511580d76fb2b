//! Tests of the files that the store writes, so that Pulumi's command line can read them.

mod copies;
#[cfg(debug_assertions)]
mod renames;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bridge::fs::Access;

use super::super::catalog::HistoryEntry;
use super::super::compliance::{EMPTY, SECOND, error_chain, holder, leased, save, stack};
use super::super::tests::{compressing_store, file_store, url};
use super::super::*;

/// Shows: state.md#a-run "Every file in the lock folder counts as a lock, except `.attrs` sidecars."
#[tokio::test]
async fn any_file_except_sidecars_in_the_lock_folder_counts_as_lock() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    let locks = folder.path().join(".pulumi/locks/organization/reef/dev");
    std::fs::create_dir_all(locks.join("sub")).unwrap();
    std::fs::write(locks.join("x.json.attrs"), "").unwrap();
    let lock = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    store.unlock(lock).await.unwrap();
    std::fs::write(locks.join("about-to-lock.tmp"), "").unwrap();
    let error = store.lock(&stack("dev"), &holder(1)).await.unwrap_err();
    assert!(error.to_string().contains("about-to-lock.tmp: created by an unknown holder"), "{error}");
}

#[tokio::test]
async fn unreadable_lock_counts_and_can_be_broken() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    let locks = folder.path().join(".pulumi/locks/organization/reef/dev");
    std::fs::create_dir_all(&locks).unwrap();
    std::os::unix::fs::symlink("round.json", locks.join("round.json")).unwrap();
    assert_eq!(store.locks(&stack("dev")).await.unwrap().len(), 1);
    store.break_locks(&stack("dev"), &store.locks(&stack("dev")).await.unwrap()).await.unwrap();
    assert!(store.locks(&stack("dev")).await.unwrap().is_empty());
}

/// Shows: state.md#locks "While the lock of an ended run is removed, a stack in a folder stays locked, and a lock that
///   was renewed meanwhile stays."
#[tokio::test]
async fn renewal_and_removal_of_a_lock_exclude_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    let dev = stack("dev");
    let (mut renewals, mut removals) = (0, 0);
    for round in 0..100 {
        let lock = store.lock(&dev, &leased(1)).await.unwrap();
        let read = store.locks(&dev).await.unwrap().remove(0);
        let by = leased(2);
        let remove = store.remove_ended_lock(&dev, &read, &by);
        let (renewed, removed) = match round % 2 {
            0 => tokio::join!(store.renew(&lock), remove),
            _ => {
                let (removed, renewed) = tokio::join!(remove, store.renew(&lock));
                (renewed, removed)
            }
        };
        assert_eq!(renewed.is_ok(), !removed.unwrap(), "{renewed:?}");
        assert_eq!(store.locks(&dev).await.unwrap().len(), usize::from(renewed.is_ok()));
        if renewed.is_ok() {
            renewals += 1
        } else {
            removals += 1
        }
        store.unlock(lock).await.unwrap();
    }
    assert!(renewals > 0 && removals > 0, "{renewals} {removals}");
}

#[tokio::test]
async fn one_of_several_concurrent_writes_on_a_condition_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let objects = FolderObjects::open(&url(folder.path()), Access::Shared).await.unwrap();
    let key = ".pulumi/stacks/reef/dev.json";
    let write = async |condition: &WriteCondition| {
        let write = async |number: u8| objects.write(key, vec![number].into(), condition, Durability::Immediate).await;
        let mut written = Vec::new();
        for result in futures_util::future::join_all((0..16).map(write)).await {
            match result {
                Ok(version) => written.push(version),
                Err(error) => assert!(matches!(error, WriteError::Condition), "{error}"),
            }
        }
        assert_eq!(written.len(), 1, "{condition:?}");
        written.remove(0)
    };
    let mut version = write(&WriteCondition::Missing).await;
    for _ in 0..20 {
        version = write(&WriteCondition::Unchanged(version)).await;
        assert_eq!(objects.read(key, 10).await.unwrap().unwrap().version, version);
    }
}

#[tokio::test]
async fn state_that_was_restored_is_the_one_that_was_read_and_a_changed_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    save(&store, "dev", EMPTY).await.unwrap();
    let path = folder.path().join(".pulumi/stacks/reef/dev.json");
    for (text, is_expected) in [(EMPTY, true), (SECOND, false)] {
        save(&store, "dev", EMPTY).await.unwrap();
        let read = store.load(&stack("dev")).await.unwrap();
        let lock = store.lock(&stack("dev"), &holder(1)).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, text).unwrap();
        let saved = store.save(&lock, "{}", &Expected::unchanged(read.as_ref())).await;
        store.unlock(lock).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), if is_expected { "{}" } else { text });
        assert_eq!(saved.is_ok(), is_expected, "{saved:?}");
    }
}

/// Shows: state.md#state "in the files and the formats that the `pulumi` command line uses"
#[tokio::test]
async fn files_have_the_names_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    let dev = stack("dev");
    let lock = store.lock(&dev, &holder(1)).await.unwrap();
    store.save(&lock, EMPTY, &Expected::Any).await.unwrap();
    store.save(&lock, SECOND, &Expected::Any).await.unwrap();
    store.archive(&dev, &HistoryEntry::new("{}")).await.unwrap();
    store.unlock(lock).await.unwrap();
    let found = files(folder.path(), folder.path());
    let expected = [
        ".pulumi/backups/reef/dev/dev.NS.json",
        ".pulumi/history/reef/dev/dev-NS.checkpoint.json",
        ".pulumi/history/reef/dev/dev-NS.history.json",
        ".pulumi/meta.yaml",
        ".pulumi/stacks/reef/dev.json",
        ".pulumi/stacks/reef/dev.json.bak",
    ];
    assert_eq!(found, with_sidecars(&expected));
    let text = |key: &str| std::fs::read_to_string(folder.path().join(key)).unwrap();
    assert_eq!(text(".pulumi/stacks/reef/dev.json.bak"), EMPTY);
    assert_eq!(text(".pulumi/meta.yaml"), "version: 1\n");
    assert!(text(".pulumi/meta.yaml.attrs").ends_with("\"md5\":\"EaRWdV65+nlqCnYlI4a4Wg==\"}\n"));
}

#[tokio::test]
async fn previous_checkpoint_is_kept_with_its_sidecar() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    let read = |name: &str| {
        let path = |name: &str| std::fs::read_to_string(folder.path().join(".pulumi/stacks/reef").join(name)).unwrap();
        (path(name), path(&format!("{name}.attrs")))
    };
    let mut saved: Vec<(String, String)> = Vec::new();
    for text in [EMPTY, SECOND, EMPTY] {
        save(&store, "dev", text).await.unwrap();
        let now = read("dev.json");
        assert_eq!(now.0, text);
        if let Some(before) = saved.last() {
            assert_eq!(read("dev.json.bak"), *before);
            assert_ne!(now.1, before.1);
        }
        saved.push(now);
    }
    let stacks = folder.path().join(".pulumi/stacks/reef");
    assert_eq!(std::fs::read_dir(&stacks).unwrap().count(), 4);
    std::fs::remove_file(stacks.join("dev.json.attrs")).unwrap();
    save(&store, "dev", SECOND).await.unwrap();
    assert!(!stacks.join("dev.json.bak.attrs").exists(), "the sidecar of an older checkpoint does not fit this one");
}

fn with_sidecars(files: &[&str]) -> Vec<String> {
    files.iter().flat_map(|file| [(*file).to_owned(), format!("{file}.attrs")]).collect()
}

/// Returns the files below a folder, sorted, with `NS` for a time in nanoseconds.
fn files(root: &Path, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(root, &path));
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let number = name.split(['-', '.']).find(|part| part.len() == 19 && part.parse::<u64>().is_ok());
            found.push(number.map_or(name.clone(), |number| name.replace(number, "NS")));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn unsupported_layouts_are_refused() {
    let cases = [
        ("meta.yaml", "version: 0\n", "old layout"),
        ("meta.yaml", "version: 2\n", "newer than the supported ones"),
        ("meta.yaml", "", "names no version"),
        ("meta.yaml", "[", "is not YAML"),
        ("stacks/dev.json", "{}", "old layout"),
        ("stacks/dev.json.gz", "", "old layout"),
    ];
    for (file, text, message) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".pulumi").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let error = file_store(folder.path()).await.unwrap_err();
        let error = error_chain(&error);
        assert!(error.contains(message), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { new_layout: Layout::Legacy, ..StoreOptions::default() };
    let error = StateStore::open_folder(&url(folder.path()), options).await.unwrap_err();
    assert!(matches!(error, StoreError::Legacy(_)), "{error}");
    let error = file_store(Path::new("/nowhere/at/all")).await.unwrap_err();
    assert!(error.to_string().contains("there is no folder"), "{error}");
}

#[tokio::test]
async fn checkpoint_with_another_compression_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let dev = stack("dev");
    for compression in [Compression::Gzip, Compression::None, Compression::Zstd] {
        let store = compressing_store(folder.path(), compression).await;
        save(&store, "dev", EMPTY).await.unwrap();
        store.archive(&dev, &HistoryEntry::new("{}")).await.unwrap();
        let stored = std::fs::read(folder.path().join(format!(".pulumi/stacks/reef/dev.json{}", compression.suffix())));
        assert_eq!(Compression::of(&stored.unwrap()), compression);
        assert_eq!(store.list().await.unwrap(), std::slice::from_ref(&dev));
    }
    let expected = [
        ".pulumi/backups/reef/dev/dev.NS.json",
        ".pulumi/backups/reef/dev/dev.NS.json.gz",
        ".pulumi/backups/reef/dev/dev.NS.json.zst",
        ".pulumi/history/reef/dev/dev-NS.checkpoint.json",
        ".pulumi/history/reef/dev/dev-NS.checkpoint.json.gz",
        ".pulumi/history/reef/dev/dev-NS.checkpoint.json.zst",
        ".pulumi/history/reef/dev/dev-NS.history.json",
        ".pulumi/history/reef/dev/dev-NS.history.json.gz",
        ".pulumi/history/reef/dev/dev-NS.history.json.zst",
        ".pulumi/meta.yaml",
        ".pulumi/stacks/reef/dev.json.bak",
        ".pulumi/stacks/reef/dev.json.gz.bak",
        ".pulumi/stacks/reef/dev.json.zst",
    ];
    let mut expected = with_sidecars(&expected);
    expected.sort();
    assert_eq!(files(folder.path(), folder.path()), expected);
    let sidecar = |name: &str| std::fs::read_to_string(folder.path().join(".pulumi/stacks/reef").join(name)).unwrap();
    assert!(sidecar("dev.json.gz.bak.attrs").contains("\"user.content_type\":\"application/x-gzip\""));
    assert!(sidecar("dev.json.zst.attrs").contains("\"user.content_type\":\"application/octet-stream\""));
}

#[tokio::test]
async fn legacy_layout_is_written_if_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        StoreOptions { new_layout: Layout::Legacy, legacy_stores: LegacyStores::Accepted, ..StoreOptions::default() };
    let store = StateStore::open_folder(&url(folder.path()), options).await.unwrap();
    let dev = stack("dev");
    let lock = store.lock(&dev, &holder(1)).await.unwrap();
    assert!(folder.path().join(".pulumi/locks/dev").join(&lock.name).exists());
    for text in [EMPTY, SECOND] {
        store.save(&lock, text, &Expected::Any).await.unwrap();
    }
    store.archive(&dev, &HistoryEntry::new("{}")).await.unwrap();
    store.unlock(lock).await.unwrap();
    let expected = [
        ".pulumi/backups/dev/dev.NS.json",
        ".pulumi/history/dev/dev-NS.checkpoint.json",
        ".pulumi/history/dev/dev-NS.history.json",
        ".pulumi/stacks/dev.json",
        ".pulumi/stacks/dev.json.bak",
    ];
    assert_eq!(files(folder.path(), folder.path()), with_sidecars(&expected));
    assert_eq!(store.full_name(&dev), "dev");

    let options = StoreOptions { legacy_stores: LegacyStores::Accepted, ..StoreOptions::default() };
    let reopened = StateStore::open_folder(&url(folder.path()), options).await.unwrap();
    assert_eq!(reopened.text(&dev).await.unwrap().as_deref(), Some(SECOND));
    assert_eq!(reopened.list().await.unwrap(), [StackReference::without_project("dev").unwrap()]);
}

#[tokio::test]
async fn rename_and_remove_move_the_same_files_as_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    let (dev, west) = (stack("dev"), stack("west"));
    let lock = store.lock(&dev, &holder(1)).await.unwrap();
    store.save(&lock, EMPTY, &Expected::Any).await.unwrap();
    store.archive(&dev, &HistoryEntry::new("{}")).await.unwrap();
    store.set_tags(&dev, &[("owner".to_owned(), "ada".to_owned())].into()).await.unwrap();
    store.unlock(lock).await.unwrap();
    let mut rename = store.begin_rename(&dev, &west, &holder(1)).await.unwrap();
    store.rename(&mut rename, SECOND, &Expected::Any).await.unwrap();
    store.finish_rename(rename).await.unwrap();
    store.remove_renamed_mark(&dev).await.unwrap();
    std::fs::remove_dir_all(folder.path().join(".sc")).unwrap();
    let of_dev = [".pulumi/backups/reef/dev/dev.NS.json"];
    let of_west =
        [".pulumi/history/reef/west/west-NS.checkpoint.json", ".pulumi/history/reef/west/west-NS.history.json"];
    let meta = [".pulumi/meta.yaml"];
    let stacks =
        [".pulumi/stacks/reef/dev.json.bak", ".pulumi/stacks/reef/dev.pulumi-tags", ".pulumi/stacks/reef/west.json"];
    let expected = [&of_dev[..], &of_west, &meta, &stacks].concat();
    assert_eq!(files(folder.path(), folder.path()), with_sidecars(&expected));

    let lock = store.lock(&west, &holder(1)).await.unwrap();
    store.archive(&west, &HistoryEntry::new("{}")).await.unwrap();
    store.remove(&lock, Backups::Kept, &Expected::Any).await.unwrap();
    store.unlock(lock).await.unwrap();
    let of_west = [".pulumi/backups/reef/west/west.NS.json"];
    let stacks = [&stacks[..2], &[".pulumi/stacks/reef/west.json.bak"]].concat();
    let expected = [&of_dev[..], &of_west, &meta, &stacks].concat();
    assert_eq!(files(folder.path(), folder.path()), with_sidecars(&expected));

    save(&store, "west", EMPTY).await.unwrap();
    let lock = store.lock(&west, &holder(1)).await.unwrap();
    store.remove(&lock, Backups::Removed, &Expected::Any).await.unwrap();
    let expected = [&of_dev[..], &meta, &stacks[..2]].concat();
    let mut left = files(folder.path(), folder.path());
    left.retain(|file| !file.contains("/locks/"));
    assert_eq!(left, with_sidecars(&expected));
    store.unlock(lock).await.unwrap();
}

#[tokio::test]
async fn options_retain_checkpoints_and_skip_backups() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { retain_checkpoints: true, skip_backups: true, ..StoreOptions::default() };
    let store = StateStore::open_folder(&url(folder.path()), options).await.unwrap();
    for text in [EMPTY, SECOND] {
        save(&store, "dev", text).await.unwrap();
    }
    store.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
    assert!(!folder.path().join(".pulumi/backups").exists());
    let stacks = files(folder.path(), &folder.path().join(".pulumi/stacks"));
    let kept = ".pulumi/stacks/reef/dev.json.NS";
    let bak = ".pulumi/stacks/reef/dev.json.bak";
    let expected = [".pulumi/stacks/reef/dev.json", kept, kept, bak];
    assert_eq!(stacks.iter().filter(|name| !name.ends_with(".attrs")).collect::<Vec<_>>(), expected.each_ref());
    assert_eq!(store.list().await.unwrap(), [stack("dev")]);
}

/// Shows: state.md#files "`sc` recognizes compressed files by their content"
/// Shows: state.md#files "If a checkpoint exists in several forms, the newest one counts."
#[tokio::test]
async fn compression_is_detected_by_content_and_newest_file_wins() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    let stacks = folder.path().join(".pulumi/stacks/reef");
    std::fs::create_dir_all(&stacks).unwrap();
    let write = |name: &str, content: &[u8], seconds: u64| {
        let path = stacks.join(name);
        std::fs::write(&path, content).unwrap();
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        std::fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    };
    write("dev.json", &Compression::Zstd.compress(EMPTY), 2);
    write("dev.json.zst", &Compression::None.compress(SECOND), 1);
    assert_eq!(store.text(&stack("dev")).await.unwrap().unwrap(), EMPTY);
    write("dev.json.gz", &Compression::Gzip.compress(SECOND), 2);
    assert_eq!(store.text(&stack("dev")).await.unwrap().unwrap(), SECOND, "of equally new files the last one counts");
}

#[tokio::test]
async fn damaged_checkpoint_is_reported_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    let stacks = folder.path().join(".pulumi/stacks/reef");
    std::fs::create_dir_all(&stacks).unwrap();
    for compression in [Compression::Gzip, Compression::Zstd] {
        let path = stacks.join(format!("dev.json{}", compression.suffix()));
        let compressed = compression.compress(EMPTY).into_owned();
        std::fs::write(&path, &compressed[..compressed.len() / 2]).unwrap();
        let error = error_chain(&store.text(&stack("dev")).await.unwrap_err());
        assert!(error.starts_with(&format!("{} is damaged: it cannot be decompressed: ", path.display())), "{error}");
    }
}

/// Returns the modes of a folder and of everything below it.
fn modes(folder: &Path) -> Vec<(PathBuf, bool, u32)> {
    let metadata = std::fs::metadata(folder).unwrap();
    let mut found = vec![(folder.to_owned(), metadata.is_dir(), metadata.permissions().mode() & 0o777)];
    if metadata.is_dir() {
        let entries = std::fs::read_dir(folder).unwrap();
        found.extend(entries.flat_map(|entry| modes(&entry.unwrap().path())));
    }
    found
}

fn private_options() -> StoreOptions {
    StoreOptions { access: Access::Private, retain_checkpoints: true, ..StoreOptions::default() }
}

#[tokio::test]
async fn missing_folder_is_created_by_the_first_write() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("store/state");
    let open = async |create| {
        let url = FileUrl { create, ..url(&missing) };
        StateStore::open_folder(&url, StoreOptions::default()).await
    };
    assert!(matches!(open(false).await, Err(StoreError::NoFolder(_))));
    let store = open(true).await.unwrap();
    assert!(store.locks(&stack("dev")).await.unwrap().is_empty());
    assert!(!folder.path().join("store").exists(), "reads create nothing");
    let lock = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    assert!(missing.is_dir());
    store.unlock(lock).await.unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let url = FileUrl { create: true, ..url(&folder.path().join("file")) };
    assert!(StateStore::open_folder(&url, StoreOptions::default()).await.is_err(), "it is no folder");
}

/// Shows: state.md#files "Files and folders under `.pulumi` have the permissions that `pulumi` gives them"
#[tokio::test]
async fn files_have_the_permissions_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    // Mode 0666 for files and 0777 for folders, less the umask.
    let (file, subfolder) = (folder.path().join("file"), folder.path().join("folder"));
    std::fs::write(&file, "").unwrap();
    std::fs::create_dir(&subfolder).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let store = file_store(folder.path()).await.unwrap();
    let lock = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    store.save(&lock, EMPTY, &Expected::Any).await.unwrap();
    store.save(&lock, SECOND, &Expected::Any).await.unwrap();
    store.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
    for (path, is_folder, found) in modes(&folder.path().join(".pulumi")) {
        assert_eq!(found, mode(if is_folder { &subfolder } else { &file }), "{}", path.display());
    }
    store.unlock(lock).await.unwrap();
}

#[tokio::test]
async fn private_store_is_accessible_to_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = StateStore::open_folder(&url(folder.path()), private_options()).await.unwrap();
    let lock = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    store.save(&lock, EMPTY, &Expected::Any).await.unwrap();
    store.save(&lock, SECOND, &Expected::Any).await.unwrap();
    store.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
    store.set_tags(&stack("dev"), &[("owner".to_owned(), "ada".to_owned())].into()).await.unwrap();
    for (path, is_folder, mode) in modes(&folder.path().join(".pulumi")) {
        assert_eq!(mode, if is_folder { 0o700 } else { 0o600 }, "{}", path.display());
    }
    store.unlock(lock).await.unwrap();
}

/// Shows: state.md#files "An existing `.pulumi` then becomes 0700 at the next change, and a file loses the permissions
///   of others"
#[tokio::test]
async fn store_that_becomes_private_withdraws_earlier_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    save(&store, "dev", EMPTY).await.unwrap();
    store.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
    let private = StateStore::open_folder(&url(folder.path()), private_options()).await.unwrap();
    save(&private, "dev", SECOND).await.unwrap();
    let root = folder.path().join(".pulumi");
    assert_eq!(modes(&root)[0].2, 0o700, "it encloses the older files");
    let replaced = modes(&root.join("stacks/reef"));
    assert!(replaced.iter().any(|(path, ..)| path.ends_with("dev.json.bak")));
    for (path, _, mode) in replaced.iter().filter(|(_, is_folder, _)| !is_folder) {
        assert_eq!(*mode, 0o600, "{}", path.display());
    }
}

/// Puts a named pipe in the place of a file. Opening it would wait for a writer.
fn replace_by_pipe(path: &Path) {
    std::fs::remove_file(path).ok();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Shows: state.md#files "a named pipe or a device in place of a file is an error"
#[tokio::test]
async fn named_pipe_in_place_of_a_file_is_refused_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    save(&store, "dev", EMPTY).await.unwrap();
    let pulumi = folder.path().join(".pulumi");
    let refused = "it is a named pipe, not a regular file";
    // The backup and the sidecar are replaced or copied, not read.
    replace_by_pipe(&pulumi.join("stacks/reef/dev.json.bak"));
    save(&store, "dev", SECOND).await.unwrap();
    replace_by_pipe(&pulumi.join("stacks/reef/dev.pulumi-tags"));
    assert!(error_chain(&store.tags(&stack("dev")).await.unwrap_err()).ends_with(refused));
    replace_by_pipe(&pulumi.join("history/reef/dev/dev-1.history.json"));
    assert!(error_chain(&store.history(&stack("dev")).await.unwrap_err()).ends_with(refused));
    replace_by_pipe(&pulumi.join("locks/organization/reef/dev/pipe.json"));
    assert_eq!(store.locks(&stack("dev")).await.unwrap().len(), 1);
    replace_by_pipe(&pulumi.join("stacks/reef/dev.json"));
    assert!(error_chain(&store.text(&stack("dev")).await.unwrap_err()).ends_with(refused));
    replace_by_pipe(&pulumi.join("meta.yaml"));
    assert!(error_chain(&file_store(folder.path()).await.unwrap_err()).ends_with(refused));
}

/// Shows: state.md#files "`meta.yaml`, tags, locks and entries of the history have at most 4 MiB and 64 levels"
#[tokio::test]
async fn documents_of_the_store_have_a_size_limit_and_a_depth_limit() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    save(&store, "dev", EMPTY).await.unwrap();
    let pulumi = folder.path().join(".pulumi");
    let large = " ".repeat((4 << 20) + 1);
    std::fs::write(pulumi.join("stacks/reef/dev.pulumi-tags"), &large).unwrap();
    let error = error_chain(&store.tags(&stack("dev")).await.unwrap_err());
    assert!(error.ends_with("it is larger than 4 MiB"), "{error}");
    std::fs::create_dir_all(pulumi.join("history/reef/dev")).unwrap();
    let bomb = Compression::Gzip.compress(&large).into_owned();
    std::fs::write(pulumi.join("history/reef/dev/dev-1.history.json.gz"), bomb).unwrap();
    let error = error_chain(&store.history(&stack("dev")).await.unwrap_err());
    assert!(error.ends_with("it cannot be decompressed: it is larger than 4 MiB"), "{error}");
    let deep = "[".repeat(65) + &"]".repeat(65);
    std::fs::write(pulumi.join("stacks/reef/dev.pulumi-tags"), format!("{{\"version\":1,\"x\":{deep}}}")).unwrap();
    let error = error_chain(&store.tags(&stack("dev")).await.unwrap_err());
    assert!(error.ends_with("it is nested deeper than 64 levels"), "{error}");
    let entry = format!(
        "{{\"kind\":\"update\",\"startTime\":1,\"endTime\":2,\"result\":\"failed\",\"config\":{{\"a:b\":{deep}}}}}"
    );
    let error = crate::format::UpdateInfo::from_json(&entry).unwrap_err();
    assert!(error.to_string().ends_with("it is nested deeper than 64 levels"), "{error}");
    std::fs::write(pulumi.join("meta.yaml"), "[".repeat(150_000)).unwrap();
    let error = error_chain(&file_store(folder.path()).await.unwrap_err());
    assert!(error.ends_with("it is nested deeper than 64 levels at line 1 column 65"), "{error}");
}
