//! Tests of the text of the lock file.

use super::super::tests::{key, release};
use super::super::{LockKey, WantedVersion};
use super::*;

fn lock(entries: &[(&str, &str)]) -> LockFile {
    let mut lock = LockFile::default();
    entries.iter().for_each(|(wanted, tag)| lock.put(&key(wanted), release(tag)));
    lock
}

const TEXT: &str = "\
# Which packages the plugins of server.yaml are. Written by sc: commit it, and do not edit it.
# `sc plugin update` changes a version, and `sc plugin lock` repairs the file after a merge.
version: 1
packages:
- source: \"git ../reef: a #1\"
  wanted: \"1.10\"
  tag: \"1.10\"
  commit: 0123456789abcdef0123456789abcdef01234567
  tree: dc9c5edb8b2d479e697b4b0b8ab874f32b325138598ce9e7b759eb8292110622
  entry: 57adefbe0868136e
- source: github-release github.com/acme/reef
  wanted: \">=1, <2\"
  tag: v1.2.0
  platforms:
    linux-amd64: { asset: reef-v1.2.0.tar.gz, size: 7, sha256: 34bd659feb530efab079c898eb496cfabe7dfa512811185f24ff115b0263ccff, by: published }
  entry: 08246a065e5f7ada
";

fn with_commit() -> LockFile {
    let mut lock = lock(&[(">=1, <2", "v1.2.0")]);
    let git =
        LockKey { source: "git ../reef: a #1".to_owned(), wanted: WantedVersion::of_git("1.10").unwrap(), ..key("x") };
    let commit = "0123456789abcdef0123456789abcdef01234567".to_owned();
    let tree = Some(Sha256Digest::of("tree"));
    lock.put(&git, ResolvedPackage::Commit(ResolvedCommit { tag: Some("1.10".to_owned()), commit, tree }));
    lock
}

#[test]
fn text_has_a_line_for_each_platform_and_is_read_again() {
    let text = with_commit().to_text();
    assert_eq!(text, TEXT);
    assert_eq!(LockFile::parse(&text).unwrap(), with_commit());
    for empty in ["", "# a comment\n\n", "version: 1\n", "version: 1\npackages: []\n"] {
        assert_eq!(LockFile::parse(empty).unwrap(), LockFile::default(), "{empty:?}");
    }
}

#[test]
fn other_line_ends_and_another_layout_are_read() {
    let text = with_commit().to_text();
    let json = serde_json::to_string(&yaml::from_str::<serde_yaml::Value>(&text).unwrap()).unwrap();
    for text in [text.replace('\n', "\r\n"), text.replace("\n  ", "\n    ").replace("\n- ", "\n  - "), json] {
        assert_eq!(LockFile::parse(&text).unwrap(), with_commit(), "{text}");
    }
}

#[test]
fn entry_of_another_writer_is_refused_by_name() {
    let text = with_commit().to_text();
    let error = |text: &str| LockFile::parse(text).unwrap_err().to_string();
    for (from, to) in [
        ("size: 7", "size: 8"),
        ("tag: v1.2.0", "tag: v1.3.0"),
        ("linux-amd64:", "linux-arm64:"),
        ("by: published", "by: fetched"),
        ("wanted: \">=1, <2\"", "wanted: \">=1, <3\""),
    ] {
        assert!(text.contains(from), "{from}");
        let found = error(&text.replace(from, to));
        assert!(found.contains("is not as sc has written it") && found.contains("github.com/acme/reef"), "{found}");
    }
    let reef = "the entry \"github-release github.com/acme/reef >=1, <2\" at line 11";
    for (text, expected) in [
        (text.replace("size: 7", "size: 8"), format!("{reef} is not as sc has written it")),
        (text.replace("by: published", "by: hearsay"), format!("{reef}: an asset cannot be read")),
        (
            text.replace("version: 1\n", "version: 1\n<<<<<<< ours\n"),
            "line 4 is the mark of a merge that is not resolved".to_owned(),
        ),
        ("version: 2\nnew: true\n".to_owned(), "its version is 2, and this sc reads version 1".to_owned()),
    ] {
        assert_eq!(error(&text), expected);
    }
    for other in ["version: 1\npackages: {}\n", "a: [", "version: 1\nother: x\n", "[]", "version: x\n"] {
        assert!(matches!(LockFile::parse(other), Err(LockFileError::Yaml(_))), "{other}");
    }
}

fn conflict(ours: &str, theirs: &str) -> String {
    let (head, body) = ours.split_at(ours.find("- source").unwrap());
    let theirs = &theirs[theirs.find("- source").unwrap()..];
    format!("{head}<<<<<<< HEAD\n{body}||||||| base\n- source: x\n=======\n{theirs}>>>>>>> next\n")
}

/// Shows: plugins.md#the-lock-file "takes both sides, and of two entries of one declaration the one with the higher tag"
#[test]
fn both_sides_of_a_merge_are_taken_and_the_higher_tag() {
    let ours = lock(&[("^1", "v1.2.0"), ("v3.0.0", "v3.0.0")]);
    let theirs = lock(&[("^1", "v1.10.0"), ("^2", "v2.0.0"), ("v3.0.0", "v3.0.0")]);
    let repaired = LockFile::repair(&conflict(&ours.to_text(), &theirs.to_text())).unwrap();
    assert_eq!(repaired.lock, lock(&[("^1", "v1.10.0"), ("^2", "v2.0.0"), ("v3.0.0", "v3.0.0")]));
    assert_eq!(repaired.notes, ["github-release github.com/acme/reef ^1: v1.10.0 is taken, the higher of both sides"]);
}

#[test]
fn platforms_of_both_sides_are_taken_unless_their_digests_differ() {
    let of_platform = |platform: &str, size| {
        let ResolvedPackage::Release(mut release) = release("v1.2.0") else { unreachable!() };
        let (_, asset) = release.assets.pop_first().unwrap();
        release.assets.insert(platform.parse().unwrap(), ResolvedAsset { size: Some(size), ..asset });
        let mut lock = LockFile::default();
        lock.put(&key("^1"), ResolvedPackage::Release(release));
        lock.to_text()
    };
    let repaired =
        LockFile::repair(&conflict(&of_platform("linux-amd64", 7), &of_platform("darwin-arm64", 7))).unwrap();
    let ResolvedPackage::Release(both) = &repaired.lock.entries[0].resolved else { unreachable!() };
    assert_eq!(both.assets.len(), 2);
    let repaired = LockFile::repair(&conflict(&of_platform("linux-amd64", 7), &of_platform("linux-amd64", 8))).unwrap();
    assert_eq!(repaired.lock, LockFile::default());
    assert!(repaired.notes[0].ends_with("with other digests: it is resolved again"), "{:?}", repaired.notes);
}

fn signed(signer: &str) -> LockFile {
    let ResolvedPackage::Release(mut release) = release("1.2.0") else { unreachable!() };
    release.signer = Some(signer.to_owned());
    for asset in release.assets.values_mut() {
        asset.size = None;
        asset.digest = asset.digest.map(|(digest, _)| (digest, DigestOrigin::Signed));
    }
    let mut lock = LockFile::default();
    lock.put(&key("^1"), ResolvedPackage::Release(release));
    lock
}

#[test]
fn signer_and_an_asset_without_a_size_are_written_and_read_again() {
    let text = signed("0123456789ABCDEF").to_text();
    assert!(text.contains("\n  signer: 0123456789ABCDEF\n"), "{text}");
    assert!(text.contains("{ asset: reef-1.2.0.tar.gz, sha256: ") && text.contains(", by: signed }"), "{text}");
    assert_eq!(LockFile::parse(&text).unwrap(), signed("0123456789ABCDEF"));
    assert!(LockFile::parse(&text.replace("signer: 0", "signer: 1")).is_err());
}

#[test]
fn entry_with_two_signers_is_resolved_again() {
    let repaired = LockFile::repair(&conflict(&signed("A").to_text(), &signed("B").to_text())).unwrap();
    assert_eq!(repaired.lock, LockFile::default());
    assert!(repaired.notes[0].ends_with("other signers of 1.2.0: it is resolved again"), "{:?}", repaired.notes);
}

#[test]
fn mixed_entry_is_left_out_by_a_repair() {
    let text = lock(&[("^1", "v1.2.0"), ("^2", "v2.0.0")]).to_text().replacen("tag: v1.2.0", "tag: v1.3.0", 1);
    let repaired = LockFile::repair(&text).unwrap();
    assert_eq!(repaired.lock, lock(&[("^2", "v2.0.0")]));
    assert!(repaired.notes[0].ends_with("is not as sc has written it: it is resolved again"), "{:?}", repaired.notes);
}

/// Mutates the text of a lock file: no text makes the reader panic, and what it accepts is what was written. Runs more cases with
/// `FUZZ_CASES`.
#[test]
fn mutated_text_is_refused_or_means_what_was_written() {
    let cases: u64 = std::env::var("FUZZ_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(3_000);
    let (original, text) = (with_commit(), with_commit().to_text().into_bytes());
    let entries = original.entries().to_vec();
    for seed in 0..cases {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        let mut mutated = text.clone();
        for _ in 0..=next(4) {
            if mutated.is_empty() {
                break;
            }
            let at = next(mutated.len());
            match next(4) {
                0 => mutated[at] = u8::try_from(next(128)).unwrap(),
                1 => drop(mutated.remove(at)),
                2 => mutated.insert(at, b"\n:{}-<=> \"'#&*!"[next(15)]),
                _ => mutated.truncate(at.max(1)),
            }
        }
        let mutated = String::from_utf8_lossy(&mutated);
        let parsed = LockFile::parse(&mutated);
        let repaired = LockFile::repair(&mutated).map(|repaired| repaired.lock);
        for read in [parsed, repaired].into_iter().flatten() {
            let is_written = |entry: &LockEntry| entries.contains(entry);
            assert!(read.entries().iter().all(is_written), "seed {seed}: {mutated}");
        }
    }
}
