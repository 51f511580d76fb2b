//! Tests of the package cache: it is complete, shared, and verified at each start.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::error::Hint as _;
use bridge::install::FetchEvent;
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};

use super::{Machine, asset_name, checksum, plugin, release_source, run, script, write};

async fn server() -> ReleaseServer {
    let server = ReleaseServer::start().await.unwrap();
    let archive = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script("hello")))]).unwrap();
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&asset_name("1.0.0"), &archive)]);
    server.publish("acme/pulumi-reef", "v1.0.1", &[(&asset_name("1.0.1"), &archive)]);
    server
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns a folder and everything below it.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let mut paths = vec![folder.to_owned()];
    let mut next = 0;
    while next < paths.len() {
        if paths[next].is_dir() {
            paths.extend(fs::read_dir(&paths[next]).unwrap().map(|entry| entry.unwrap().path()));
        }
        next += 1;
    }
    paths
}

#[tokio::test]
async fn everything_in_the_cache_is_private() {
    let (machine, server) = (Machine::new(), server().await);
    // The folder of an earlier version, which others can read.
    fs::create_dir(machine.path("cache")).unwrap();
    set_mode(&machine.path("cache"), 0o755);
    machine.install(&plugin(release_source(&server.api_url(), "v1.0.0"))).await.unwrap();
    let paths = tree(&machine.path("cache"));
    for expected in ["packages", "fingerprints", "names", "downloads", "locks"] {
        assert!(paths.contains(&machine.path("cache").join(expected)), "{expected}");
    }
    for path in paths {
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    assert_eq!(machine.names("work"), Vec::<String>::new());
}

/// Shows: plugins.md#the-cache "A cache that another user may have changed is refused, whether it has the package or
///   not"
#[tokio::test]
async fn cache_that_others_can_write_to_is_refused_on_a_miss_and_on_a_hit() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin_config = plugin(release_source(&server.api_url(), "v1.0.0"));
    let cache = machine.path("cache");
    let refused = |path: &Path| {
        let (path, owner) = (path.display(), fs::metadata(path).unwrap().uid());
        format!(
            "cannot use the cache of packages: {path} is refused: other users can write to it (owner {owner}, mode "
        )
    };
    // Missing: nothing is fetched into it.
    fs::create_dir(&cache).unwrap();
    set_mode(&cache, 0o777);
    let error = machine.install(&plugin_config).await.unwrap_err();
    assert_eq!(bridge::error::chain(&error), refused(&cache) + "0777)");
    let hint = error.hint().unwrap().into_string();
    assert!(hint.contains(&format!("`chmod -R go-w {}`", cache.display())), "{hint}");
    assert!(server.requests().is_empty() && mode(&cache) == 0o777);
    set_mode(&cache, 0o700);
    for folder in ["names", "packages", "fingerprints", "locks", "work", "downloads"] {
        let folder = cache.join(folder);
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o775);
        assert_eq!(machine.refusal(&plugin_config).await, refused(&folder) + "0775)");
        fs::remove_dir(&folder).unwrap();
    }
    // Present: it is not run.
    let package = machine.install(&plugin_config).await.unwrap();
    let entry = cache.join("names").join(&machine.names("names")[0]);
    let (folder, program) = (package.folder().to_owned(), package.program().to_owned());
    for path in [cache.clone(), cache.join("names"), entry, cache.join("packages"), folder, program] {
        let before = mode(&path);
        set_mode(&path, before | 0o022);
        assert_eq!(machine.refusal(&plugin_config).await, refused(&path) + &format!("{:04o})", before | 0o022));
        set_mode(&path, before);
    }
    assert_eq!(run(&machine.install(&plugin_config).await.unwrap()).await, "hello");
}

#[tokio::test]
async fn cache_of_another_user_is_refused() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin_config = plugin(release_source(&server.api_url(), "v1.0.0"));
    let package = machine.install(&plugin_config).await.unwrap();
    // Only root can give files away; the decision about owners has a test of its own.
    if std::os::unix::fs::chown(package.program(), Some(12345), None).is_err() {
        return;
    }
    let error = machine.refusal(&plugin_config).await;
    let path = package.program().display();
    assert!(error.contains(&format!("{path} is refused: it belongs to user 12345 (mode 0500)")), "{error}");
}

/// Edits the executable of a cached package, and everything in the cache that names the package by its digest.
fn forge(machine: &Machine, folder: &Path) {
    let evil = script("evil");
    write(&folder.join("pulumi-resource-reef"), &evil, 0o500);
    let digest = sha256(format!("{} *pulumi-resource-reef\n", sha256(&evil)).as_bytes());
    let forged = folder.with_file_name(&digest);
    drop(fs::remove_dir_all(&forged));
    fs::rename(folder, &forged).unwrap();
    let old = folder.file_name().unwrap().to_str().unwrap();
    for name in machine.names("names") {
        let entry = machine.path("cache/names").join(name);
        let text = fs::read_to_string(&entry).unwrap();
        assert!(text.contains(old));
        fs::write(&entry, text.replace(old, &digest)).unwrap();
    }
}

/// Shows: plugins.md#the-cache "an edit of the
///   package does not make another plugin run under a `checksum`"
#[tokio::test]
async fn pinned_package_is_not_run_after_its_executable_folder_and_entry_were_edited() {
    let archive = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script("hello")))]).unwrap();
    for pin in [sha256(&archive), sha256(&script("hello"))] {
        let (machine, server) = (Machine::new(), server().await);
        let mut source = release_source(&server.api_url(), "v1.0.0");
        source.checksum = checksum(&pin);
        let plugin_config = plugin(source.clone());
        let folder = machine.install(&plugin_config).await.unwrap().folder().to_owned();
        forge(&machine, &folder);
        // The edit is one that an unpinned plugin does not notice.
        source.checksum = None;
        assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "evil");
        assert_eq!(run(&machine.install(&plugin_config).await.unwrap()).await, "hello", "it is fetched again");
        let folder = machine.install(&plugin_config).await.unwrap().folder().to_owned();
        drop(server);
        forge(&machine, &folder);
        assert!(machine.refusal(&plugin_config).await.starts_with("cannot fetch"));
    }
}

/// Shows: plugins.md#the-cache "Without a fingerprint, the archive in `downloads` is hashed and decompressed"
#[tokio::test]
async fn pinned_archive_that_was_edited_is_no_evidence() {
    let evil = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script("evil")))]).unwrap();
    let archive = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script("hello")))]).unwrap();
    let (machine, server) = (Machine::new(), server().await);
    let mut source = release_source(&server.api_url(), "v1.0.0");
    source.checksum = checksum(&sha256(&archive));
    let plugin_config = plugin(source);
    let folder = machine.install(&plugin_config).await.unwrap().folder().to_owned();
    forge(&machine, &folder);
    write(&machine.path("cache/downloads").join(sha256(&archive)), &evil, 0o400);
    assert_eq!(run(&machine.install(&plugin_config).await.unwrap()).await, "hello");
}

#[tokio::test]
async fn pinned_archive_covers_all_kinds_of_entries() {
    let entries = [
        ("./", Entry::Folder),
        ("pulumi-resource-reef", Entry::File(0o755, &script("hello"))),
        ("data/", Entry::Folder),
        ("data/text", Entry::File(0o644, b"text")),
        ("data/link", Entry::Link("text")),
        ("data/hard", Entry::HardLink("data/text")),
    ];
    let archive = tar_gz(&entries).unwrap();
    let (machine, server) = (Machine::new(), server().await);
    server.publish("acme/pulumi-reef", "v2.0.0", &[(&asset_name("2.0.0"), &archive)]);
    let mut source = release_source(&server.api_url(), "v2.0.0");
    source.checksum = checksum(&sha256(&archive));
    let plugin_config = plugin(source);
    machine.install(&plugin_config).await.unwrap();
    drop(server);
    assert_eq!(run(&machine.install(&plugin_config).await.unwrap()).await, "hello", "it needs no network");
}

#[tokio::test]
async fn identical_packages_are_stored_once() {
    let (machine, server) = (Machine::new(), server().await);
    for version in ["v1.0.0", "v1.0.1"] {
        machine.install(&plugin(release_source(&server.api_url(), version))).await.unwrap();
    }
    assert_eq!((machine.names("packages").len(), machine.names("names").len()), (1, 2));
}

/// Shows: plugins.md#the-cache "A package that was changed or damaged, as far as the file system shows it, is never run."
#[tokio::test]
async fn altered_package_is_fetched_again() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin_config = plugin(release_source(&server.api_url(), "v1.0.0"));
    let alterations: [&dyn Fn(&std::path::Path); 7] = [
        &|folder| fs::set_permissions(folder.join("pulumi-resource-reef"), fs::Permissions::from_mode(0o400)).unwrap(),
        &|folder| write(&folder.join("pulumi-resource-reef"), &script("evil"), 0o755),
        &|folder| write(&folder.join("pulumi-resource-reef"), b"", 0o755),
        &|folder| write(&folder.join("PulumiPlugin.yaml"), b"runtime: python", 0o644),
        &|folder| fs::rename(folder.join("pulumi-resource-reef"), folder.join("pulumi-resource-ref")).unwrap(),
        // Another content of the same size, with the time of the earlier one.
        &|folder| {
            let program = folder.join("pulumi-resource-reef");
            let before = fs::metadata(&program).unwrap();
            write(&program, &script("hellO"), 0o500);
            let file = fs::File::open(&program).unwrap();
            file.set_modified(before.modified().unwrap()).unwrap();
            assert_eq!(fs::metadata(&program).unwrap().len(), before.len());
        },
        &|folder| fs::remove_file(folder.join("pulumi-resource-reef")).unwrap(),
    ];
    for alteration in alterations {
        let folder = machine.install(&plugin_config).await.unwrap().folder().to_owned();
        machine.take_events();
        alteration(&folder);
        assert_eq!(run(&machine.install(&plugin_config).await.unwrap()).await, "hello");
        assert_eq!(machine.warnings(), ["the package in the cache is damaged; it is fetched again"]);
    }
    // Without the server, an altered package does not run.
    let folder = machine.install(&plugin_config).await.unwrap().folder().to_owned();
    drop(server);
    write(&folder.join("pulumi-resource-reef"), &script("evil"), 0o755);
    assert!(machine.refusal(&plugin_config).await.starts_with("cannot fetch"));
}

#[tokio::test]
async fn malformed_cache_record_is_ignored() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin_config = plugin(release_source(&server.api_url(), "v1.0.0"));
    machine.install(&plugin_config).await.unwrap();
    let [name] = machine.names("names").try_into().unwrap();
    for text in ["", "{", "[]", r#"{"of": "something else", "revision": "", "package": ""}"#] {
        fs::write(machine.path("cache/names").join(&name), text).unwrap();
        assert_eq!(run(&machine.install(&plugin_config).await.unwrap()).await, "hello");
    }
}

/// Shows: plugins.md#the-cache "Several runs may share the cache. One run fetches a package, and the others wait for
///   it."
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_installs_fetch_the_package_once() {
    let (machine, server) = (Arc::new(Machine::new()), server().await);
    let plugin_config = Arc::new(plugin(release_source(&server.api_url(), "v1.0.0")));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (machine, plugin_config) = (machine.clone(), plugin_config.clone());
        all.spawn(async move { run(&machine.install(&plugin_config).await.unwrap()).await });
    }
    assert_eq!(all.join_all().await, vec!["hello"; 20]);
    assert_eq!(server.requests().iter().filter(|request| request.path.contains("/assets/")).count(), 1);
    let started = |event: &FetchEvent| matches!(event, FetchEvent::Started { .. });
    assert_eq!(machine.take_events().iter().filter(|event| started(event)).count(), 1);
}
