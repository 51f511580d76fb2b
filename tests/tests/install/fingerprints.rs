//! Tests of fingerprints: what a start reads of a package in the cache, and what it trusts.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use bridge::install::{CachedDeclaration, CachedState, Verification, verify_cache};
use bridge::plugin::PluginConfig;
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};

use super::{Machine, asset_name, checksum, plugin, release_source, run, script, write};

/// Time at which a forged fingerprint claims to have been begun.
enum Begun {
    /// After the change of the program.
    Later,
    /// In the same step of the clock.
    WithTheChange,
}

/// Machine with a package in its cache.
struct Installed {
    machine: Machine,
    server: ReleaseServer,
    plugin: PluginConfig,
    folder: PathBuf,
}

impl Installed {
    /// Installs a package, pinned by the digest of its archive.
    async fn pinned() -> Self {
        let server = ReleaseServer::start().await.unwrap();
        let entries =
            [("pulumi-resource-reef", Entry::File(0o755, &script("hello"))), ("text", Entry::File(0o644, b"a"))];
        let archive = tar_gz(&entries).unwrap();
        server.publish("acme/pulumi-reef", "v1.0.0", &[(&asset_name("1.0.0"), &archive)]);
        let machine = Machine::new();
        let mut source = release_source(&server.api_url(), "v1.0.0");
        source.checksum = checksum(&sha256(&archive));
        let plugin = plugin(source);
        let folder = machine.install(&plugin).await.unwrap().folder().to_owned();
        Self { machine, server, plugin, folder }
    }

    fn program(&self) -> PathBuf {
        self.folder.join("pulumi-resource-reef")
    }

    /// Returns the path of the only fingerprint.
    fn fingerprint(&self) -> PathBuf {
        let [name] = self.machine.names("fingerprints").try_into().unwrap();
        self.machine.path("cache/fingerprints").join(name)
    }

    /// Replaces the program, and what the fingerprint says about it but for its digest.
    fn forge(&self, begun: Begun) {
        let before = status(&self.program());
        write(&self.program(), &script("evil"), 0o500);
        let text = fs::read_to_string(self.fingerprint()).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.starts_with("fingerprint 1 ") && rest.contains(&before), "{text}");
        let after = status(&self.program());
        let begun = match begun {
            Begun::Later => "99999999999.0",
            Begun::WithTheChange => after.rsplit_once(' ').unwrap().1,
        };
        fs::write(self.fingerprint(), format!("fingerprint 1 {begun}\n{}", rest.replace(&before, &after))).unwrap();
    }

    async fn words(&self) -> String {
        run(&self.machine.install(&self.plugin).await.unwrap()).await
    }
}

/// Returns what a fingerprint has of a file: inode, size, mode, and the times of its modification and its change.
fn status(path: &Path) -> String {
    let found = fs::metadata(path).unwrap();
    let (modified, changed) = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    let (inode, size, mode) = (found.ino(), found.size(), found.mode());
    format!("{inode} {size} {mode:o} {}.{} {}.{}", modified.0, modified.1, changed.0, changed.1)
}

/// Shows: plugins.md#the-cache "A start compares what the file system says about each file, and reads none"
/// Shows: plugins.md#the-cache "`SC_VERIFY=always` reads all files at each start"
#[tokio::test]
async fn file_that_has_not_changed_by_its_fingerprint_is_not_read() {
    let mut installed = Installed::pinned().await;
    installed.forge(Begun::Later);
    assert_eq!(installed.words().await, "evil", "whoever can write the fingerprint can write the package");
    installed.machine.verification = Verification::Always;
    installed.machine.take_events();
    assert_eq!(installed.words().await, "hello");
    assert_eq!(installed.machine.warnings(), ["the package in the cache is damaged; it is fetched again"]);
}

/// Shows: plugins.md#the-cache "A file that changed while the fingerprint was begun is read again"
#[tokio::test]
async fn file_that_changed_in_the_step_of_the_clock_of_its_fingerprint_is_read() {
    let installed = Installed::pinned().await;
    installed.forge(Begun::WithTheChange);
    assert_eq!(installed.words().await, "hello");
    assert_eq!(installed.machine.warnings().len(), 1);
}

/// Shows: plugins.md#the-cache "A cache that was copied or restored, as in a pipeline, is read once"
#[tokio::test]
async fn restored_cache_is_read_once_and_needs_no_network() {
    let Installed { machine, server, plugin, folder } = Installed::pinned().await;
    drop(server);
    let (cache, copy) = (machine.path("cache"), machine.path("copy"));
    assert!(Command::new("cp").args(["-a"]).args([&cache, &copy]).status().unwrap().success());
    fs::rename(&cache, machine.path("earlier")).unwrap();
    fs::rename(&copy, &cache).unwrap();
    let fingerprint = cache.join("fingerprints").join(folder.file_name().unwrap());
    let text = || fs::read_to_string(&fingerprint).unwrap();
    let mut seen = vec![text()];
    for _ in 0..3 {
        assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "hello");
        seen.push(text());
    }
    assert_ne!(seen[0], seen[1]);
    assert_eq!(seen[2], seen[3]);
    assert_eq!(machine.warnings(), [""; 0]);
}

/// Shows: plugins.md#the-cache "The archive is not read again"
#[tokio::test]
async fn archive_whose_files_were_compared_is_not_needed_any_more() {
    let installed = Installed::pinned().await;
    fs::remove_dir_all(installed.machine.path("cache/downloads")).unwrap();
    // A command that reads all files keeps what the fingerprint says about archives.
    let verified = verify_cache(&installed.machine.path("cache")).await.unwrap();
    assert!(matches!(verified[..], [CachedDeclaration { state: CachedState::Verified, .. }]), "{verified:?}");
    let requests = installed.server.requests().len();
    assert_eq!(installed.words().await, "hello");
    assert_eq!(installed.server.requests().len(), requests);
    // Without its fingerprint, nothing shows that the package has the declared checksum.
    fs::remove_file(installed.fingerprint()).unwrap();
    assert_eq!(installed.words().await, "hello");
    assert!(installed.server.requests().len() > requests, "it is fetched again");
}

#[tokio::test]
async fn malformed_fingerprint_counts_as_none() {
    let installed = Installed::pinned().await;
    let good = fs::read_to_string(installed.fingerprint()).unwrap();
    let requests = installed.server.requests().len();
    for text in
        ["", "fingerprint 1 ", "fingerprint 2 1.2\nend\n", good.trim_end_matches("end\n"), &good.replace(" - ", " ? ")]
    {
        fs::write(installed.fingerprint(), text).unwrap();
        assert_eq!(installed.words().await, "hello", "{text}");
        assert!(fs::read_to_string(installed.fingerprint()).unwrap().ends_with("\nend\n"), "{text}");
    }
    assert_eq!(installed.server.requests().len(), requests, "the archive in the cache has the same files");
}

/// Shows: plugins.md#the-cache "`SC_VERIFY=never` compares nothing: it is for images whose packages were
///   verified when they were built"
#[tokio::test]
async fn changed_file_is_found_unless_nothing_is_verified() {
    let mut installed = Installed::pinned().await;
    write(&installed.program(), &script("evil"), 0o500);
    installed.machine.verification = Verification::Never;
    assert_eq!(installed.words().await, "evil");
    installed.machine.verification = Verification::default();
    assert_eq!(installed.words().await, "hello");
}
