//! Texts that decide on the package of a plugin: the lock file, the index of a mirror or of a folder of plugins, the checksum file of a release.

use std::fs;

use bridge::install::{GithubReleases, InstallError, LOCK_FILE, LockKey, LockRule, PackageLock};
use bridge::plugin::{GithubReleaseSource, ResolvedPackage, WantedVersion};
use serde_json::json;
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};

use crate::machine::Machine;
use crate::{Read, fuzz, fuzz_valid};

/// Number of cases after which a server starts again, so that it does not keep their requests.
pub(crate) const SERVER_CASES: u32 = 500;

fn key(source: &str, wanted: WantedVersion) -> LockKey {
    LockKey { source: source.to_owned(), wanted, asset: None, package: "reef".parse().unwrap() }
}

/// Returns the declarations of the entries of [`lock_files`].
fn keys() -> Vec<LockKey> {
    let (release, git) = (WantedVersion::of_release, WantedVersion::of_git);
    vec![
        key("github-release github.com/acme/reef", release(">=1, <2").unwrap()),
        key("github-release github.com/acme/reef", release("^1.1").unwrap()),
        key("github-release github.com/acme/reef", release("latest").unwrap()),
        key("git ../reef: a #1", git("1.10").unwrap()),
        key("terraform tf.example/acme/reef", WantedVersion::of_terraform("~> 1.0").unwrap()),
    ]
}

/// Returns a lock file with a release, a commit and a signed release, and one that a merge has left.
fn lock_files() -> Vec<Vec<u8>> {
    let head = "# Written by sc.\nversion: 1\npackages:\n";
    let release = |tag: &str| {
        format!(
            "- source: github-release github.com/acme/reef\n  wanted: \">=1, <2\"\n  package: reef\n  tag: {tag}\n  \
             released: 2026-01-02T03:04:05Z\n  platforms:\n    linux-amd64: {{ asset: reef-{tag}.tar.gz, size: 7, \
             sha256: {0}, by: published }}\n    darwin-arm64: {{ asset: r.zip, sha256: {0}, by: fetched }}\n  entry: x\n",
            sha256(tag.as_bytes())
        )
    };
    let others = format!(
        "- source: \"git ../reef: a #1\"\n  wanted: \"1.10\"\n  tag: \"1.10\"\n  commit: {}\n  tree: {}\n  entry: x\n\
         - source: terraform tf.example/acme/reef\n  wanted: \"~> 1.0\"\n  tag: 1.2.0\n  signer: F84518AB902BDB4A\n  platforms:\n    \
         linux-amd64: {{ asset: reef.zip, sha256: {}, by: signed }}\n  entry: x\n",
        &sha256(b"commit")[..40],
        sha256(b"tree"),
        sha256(b"zip")
    );
    let (ours, theirs) = (release("v1.2.0"), release("v1.10.0"));
    let merged = format!("{head}<<<<<<< HEAD\n{ours}||||||| base\n=======\n{theirs}>>>>>>> next\n{others}");
    [format!("{head}{ours}{others}"), merged].iter().map(|text| with_digests(text.as_bytes())).collect()
}

/// Writes the digest of each entry again, without which a reader looks at nothing else.
fn with_digests(text: &[u8]) -> Vec<u8> {
    let (mut written, mut entry) = (Vec::new(), Vec::new());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"- ") {
            entry.clear();
        }
        if line.starts_with(b"  entry: ") {
            written.extend_from_slice(format!("  entry: {}\n", &sha256(&entry)[..16]).as_bytes());
        } else {
            entry.extend_from_slice(line);
            written.extend_from_slice(line);
        }
    }
    written
}

/// Returns a reader of the lock file of a repository that repairs the file as well.
fn lock_file(pack: fn(&[u8]) -> Vec<u8>) -> Read {
    let (machine, keys) = (Machine::new(), keys());
    let path = machine.path("repo").join(LOCK_FILE);
    Box::new(move |content| {
        fs::write(&path, pack(content)).unwrap();
        let lock = || PackageLock::new(&machine.path("repo"), LockRule::Add);
        let find = |lock: PackageLock| -> Result<Vec<Option<ResolvedPackage>>, InstallError> {
            keys.iter().map(|key| lock.find(key)).collect()
        };
        let repair = || machine.runtime.block_on(lock().repair());
        let (read, before) = (find(lock()), fs::read(&path).unwrap());
        match repair() {
            Ok(notes) => {
                let (found, text) = (find(lock()).unwrap(), fs::read(&path).unwrap());
                if let (Ok(read), true) = (&read, notes.is_empty()) {
                    assert_eq!(*read, found, "what was written is read differently");
                }
                assert_eq!(repair().unwrap(), [""; 0]);
                assert_eq!(fs::read(&path).unwrap(), text, "what was written is written differently");
            }
            Err(_) => {
                assert!(read.is_err(), "what is read cannot be repaired");
                assert_eq!(fs::read(&path).unwrap(), before);
            }
        }
        read.map(drop).map_err(|error| crate::message(&error))
    })
}

#[test]
fn damaged_lock_file_is_read_or_refused_and_repairing_it_is_stable() {
    let (valid, merged) = (lock_files().swap_remove(0), lock_files());
    fuzz_valid("lock file", 1, vec![valid], || lock_file(<[u8]>::to_vec));
    fuzz("lock file after a merge", 1, merged, || lock_file(<[u8]>::to_vec));
}

#[test]
fn damaged_lock_file_with_digests_of_its_entries_is_read_or_refused() {
    fuzz("entries of a lock file", 1, lock_files(), || lock_file(with_digests));
}

/// Returns the package of a version.
fn package(version: &str) -> Vec<u8> {
    let program = format!("#!/bin/sh\necho {version}\n");
    tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, program.as_bytes()))]).unwrap()
}

fn asset(version: &str) -> String {
    format!("pulumi-resource-reef-v{version}-linux-amd64.tar.gz")
}

fn source(wanted: &str) -> GithubReleaseSource {
    GithubReleaseSource {
        platform: Some("linux-amd64".parse().unwrap()),
        ..GithubReleaseSource::new("acme/reef".to_owned(), WantedVersion::of_release(wanted).unwrap())
    }
}

/// Shows: plugins.md#folders-of-plugins-and-mirrors "Ranges and `latest` are resolved by it"
#[test]
fn damaged_index_of_copies_is_read_or_refused() {
    let version = |version: &str| {
        let (name, package) = (asset(version), package(version));
        let file = json!({ "size": package.len(), "sha256": sha256(&package) });
        json!({ "tag": format!("v{version}"), "released": "2026-01-02T03:04:05Z", "assets": { name: file } })
    };
    let index = json!({ "versions": [version("1.0.0"), version("1.1.0"), version("2.0.0")] });
    let corpus = vec![index.to_string().into_bytes(), format!("{index:#}").into_bytes()];
    fuzz_valid("index of copies", 4, corpus, || {
        let (machine, source) = (Machine::new(), source("^1"));
        for version in ["1.0.0", "1.1.0", "2.0.0"] {
            machine.write(&format!("copies/acme/reef/v{version}/{}", asset(version)), &package(version));
        }
        Box::new(move |content| {
            machine.write("copies/acme/reef/index.json", content);
            let program = machine.install(&GithubReleases::new(machine.settings()), &source, usize::MAX >> 8)?;
            assert!(["1.0.0", "1.1.0"].iter().any(|version| program.ends_with(format!("{version}\n").as_bytes())));
            Ok(())
        })
    });
}

/// A digest that is taken from the file stands in it, and the package is refused if it has another one.
#[test]
fn damaged_checksum_file_is_read_or_refused() {
    let (name, digest) = (asset("1.0.0"), sha256(&package("1.0.0")));
    let other = sha256(b"other");
    let corpus = [
        format!("{other}  other.tar.gz\n{digest}  {name}\n"),
        format!("{digest} *{name}\r\n{other} *other.tar.gz\r\n"),
        format!("SHA256 (other.tar.gz) = {other}\nSHA256 ({name}) = {digest}\n"),
        format!("{digest}\n"),
    ];
    let corpus = corpus.map(String::into_bytes).to_vec();
    fuzz_valid("checksum file", 16, corpus, move || {
        let (machine, name, digest) = (Machine::online(), name.clone(), digest.clone());
        let start = move |machine: &Machine| {
            let server = machine.runtime.block_on(ReleaseServer::start()).unwrap();
            server.publish("acme/reef", "v1.0.0", &[(&name, &package("1.0.0")), ("checksums.txt", b"")]);
            server
        };
        let (mut server, mut cases) = (start(&machine), 0);
        Box::new(move |content| {
            cases += 1;
            if cases % SERVER_CASES == 0 {
                server = start(&machine);
            }
            server.replace_asset("v1.0.0", "checksums.txt", content);
            let source = GithubReleaseSource { api_url: Some(server.api_url()), ..source("v1.0.0") };
            let releases = GithubReleases::new(machine.settings());
            let resolved = machine.resolve(&releases, &source)?;
            let ResolvedPackage::Release(release) = resolved else { panic!("another kind of package") };
            let asset = release.assets.into_values().next().unwrap();
            let found = asset.digest.map(|(digest, _)| digest.to_hex());
            let text = String::from_utf8_lossy(content).to_lowercase();
            assert!(found.iter().all(|found| text.contains(found)), "{found:?} is not in the file");
            let installed = machine.install(&releases, &source, usize::MAX >> 8);
            assert_eq!(installed.is_ok(), found.is_none_or(|found| found == digest), "{installed:?}");
            installed.map(drop)
        })
    });
}
