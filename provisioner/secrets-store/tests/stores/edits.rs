//! Edits of a store, their refusals, and two of them at once.

use std::fs;

use bridge::error::Hint as _;
use secrets_store::edit::Edit;
use secrets_store::keys::{KeyConfig, KeyError, KeyPair, OwnKeys, PublicKey};
use secrets_store::reveal::Reveal;
use secrets_store::{PathError, SecretsStoreError};
use zeroize::Zeroizing;

use crate::Case;

fn revealed(name: &str) -> (Case, OwnKeys) {
    let case = Case::open(name);
    let keys = case.keys("default");
    Reveal::prepare(&case.file(), &keys).unwrap().write().unwrap();
    (case, keys)
}

fn order(case: &Case) -> Vec<Vec<String>> {
    let store = case.file().read().unwrap();
    store.recipients().iter().map(|known| known.entries.iter().map(|entry| entry.path.clone()).collect()).collect()
}

#[test]
fn changed_file_moves_to_the_end_of_each_recipient_and_the_others_keep_their_ciphertext() {
    let (case, keys) = revealed("three-recipients");
    let before = case.file().read().unwrap();
    fs::write(case.root().join("a.txt"), "another line\n").unwrap();
    let edit = Edit::hide(&case.file(), &keys).unwrap();
    let changes: Vec<_> = edit.changes().map(|change| (&*change.path, &change.before.as_ref().unwrap()[..])).collect();
    assert_eq!(changes, [("a.txt", &b"one line\n"[..])]);
    edit.commit().unwrap();
    let after = case.file().read().unwrap();
    for recipient in before.recipients() {
        let mut expected: Vec<_> = recipient.entries.iter().filter(|entry| entry.path != "a.txt").cloned().collect();
        let entries = after.entries(&recipient.key).unwrap();
        expected.push(entries.last().unwrap().clone());
        assert_eq!(entries, expected);
        assert_ne!(after.entry(&recipient.key, "a.txt"), before.entry(&recipient.key, "a.txt"));
    }
}

#[test]
fn file_that_is_missing_at_hide_is_an_error_and_nothing_is_written() {
    let (case, keys) = revealed("ed25519-openssh");
    let before = case.text();
    fs::remove_file(case.root().join("a.txt")).unwrap();
    let error = Edit::hide(&case.file(), &keys).unwrap_err();
    assert!(matches!(&error, SecretsStoreError::MissingFile { path, .. } if path == "a.txt"), "{error}");
    assert!(error.hint().unwrap().contains("sc secrets reveal"));
    fs::write(case.root().join("b"), "new").unwrap();
    assert_eq!(Edit::add(&case.file(), "b", &keys).unwrap().commit().unwrap(), ["b"], "a missing file keeps its entry");
    assert!(matches!(Edit::add(&case.file(), "c", &keys), Err(SecretsStoreError::MissingFile { .. })));
    assert_ne!(case.text(), before);
}

#[test]
fn deleted_file_loses_its_entries_and_its_line_of_gitignore() {
    let (case, keys) = revealed("three-recipients");
    fs::write(case.root().join(".gitignore"), "\na.txt\nnonl.txt").unwrap();
    Edit::delete(&case.file(), "./a.txt", false, &keys).unwrap().commit().unwrap();
    Edit::delete(&case.file(), "nonl.txt", true, &keys).unwrap().commit().unwrap();
    assert!(order(&case).concat().iter().all(|path| path != "a.txt" && path != "nonl.txt"));
    assert_eq!(fs::read_to_string(case.root().join(".gitignore")).unwrap(), "");
    assert!(case.root().join("a.txt").exists() && !case.root().join("nonl.txt").exists());
    let error = Edit::delete(&case.file(), "a.txt", false, &keys).unwrap_err();
    assert!(matches!(error, SecretsStoreError::NotRegistered { .. }), "{error}");
}

#[test]
fn allowed_key_reads_all_files_and_a_removed_one_reads_none() {
    let (case, keys) = revealed("ed25519-openssh");
    // The texts of the store count, not those on the disk.
    fs::write(case.root().join("a.txt"), "not hidden yet").unwrap();
    let pair = KeyPair::generate().unwrap();
    let line = format!("{} a comment", pair.public.trim_end());
    let added = Edit::allow(&case.file(), &line, &keys).unwrap().commit().unwrap();
    assert_eq!(added, case.file().read().unwrap().files);
    let config = KeyConfig {
        private_key: Some(pair.private),
        public_key: Some(pair.public),
        private_key_path: None,
        public_key_path: None,
        ..case.config("default")
    };
    let other = OwnKeys::new(config);
    assert_eq!(*case.text_of("a.txt", &other).unwrap().unwrap(), b"one line\n");
    assert_eq!(Edit::allow(&case.file(), &line, &keys).unwrap().commit().unwrap(), [""; 0], "again");
    assert!(matches!(
        Edit::disallow(&case.file(), other.public().unwrap().as_str(), &other),
        Err(SecretsStoreError::OwnKey { .. })
    ));
    Edit::disallow(&case.file(), &line, &keys).unwrap().commit().unwrap();
    assert!(matches!(case.text_of("a.txt", &other), Err(SecretsStoreError::NotRecipient { .. })));
    assert!(matches!(Edit::disallow(&case.file(), &line, &keys), Err(SecretsStoreError::UnknownRecipient { .. })));
}

#[test]
fn keys_that_cannot_be_used_are_named() {
    let case = Case::open("ed25519-openssh-enc");
    let error = |config: KeyConfig| match Reveal::prepare(&case.file(), &OwnKeys::new(config)).unwrap_err() {
        SecretsStoreError::Key(error) => error,
        other => panic!("{other}"),
    };
    let passphrase = |text: &str| Some(Zeroizing::new(text.to_owned()));
    let own = || case.config("default");
    let missing = error(KeyConfig { passphrase: None, ..own() });
    assert!(matches!(missing, KeyError::PassphraseMissing { .. }), "{missing}");
    let wrong = error(KeyConfig { passphrase: passphrase("wrong"), ..own() });
    assert!(matches!(wrong, KeyError::WrongPassphrase { .. }), "{wrong}");
    let pair = KeyPair::generate().unwrap();
    let other_kind =
        KeyConfig { private_key: Some(pair.private.clone()), private_key_path: None, passphrase: None, ..own() };
    let mismatch = error(other_kind.clone());
    assert!(matches!(mismatch, KeyError::Mismatch { .. }), "{mismatch}");
    let needless = error(KeyConfig { passphrase: passphrase("x"), ..other_kind });
    assert!(matches!(needless, KeyError::NeedlessPassphrase { .. }), "{needless}");
    let both = error(KeyConfig { private_key: Some(pair.private), ..own() });
    assert!(matches!(both, KeyError::BothPrivate), "{both}");
    let absent = error(KeyConfig { public_key_path: Some("keys/absent".to_owned()), ..own() });
    assert!(matches!(absent, KeyError::File { field: "publicKeyPath", .. }), "{absent}");
    let none = error(KeyConfig { public_key_path: None, ..own() });
    assert!(matches!(none, KeyError::NoPublic), "{none}");
    // A wrong passphrase of PEM with headers is found by its padding, or by the key.
    let pem = Case::open("rsa2048-pem-enc");
    for attempt in 0..20 {
        let keys = OwnKeys::new(KeyConfig { passphrase: passphrase(&format!("{attempt}")), ..pem.config("default") });
        assert!(matches!(keys.private(), Err(KeyError::WrongPassphrase { .. })), "{attempt}");
    }
}

/// Shows: secrets.md#the-store "one that is empty or cut, or one that cannot be read, is an error with line and column,
///   and it is never overwritten"
#[test]
fn store_that_cannot_be_read_is_refused_by_each_edit() {
    for (text, expected) in [
        ("registry: [\n", ".sc/secrets.yaml:"),
        ("schemaVersion: \"1\"\nregistry:\n  files: []\n", ".sc/secrets.yaml:1:"),
        (
            "schemaVersion: 1\nregistry: new\n",
            ".sc/secrets.yaml was written by a newer program: it is schema version 1",
        ),
        ("registry:\n  files: a\n", ".sc/secrets.yaml:2:"),
        ("secrets:\n  ssh-rsa AAAA one: {}\n  ssh-rsa AAAA two: {}\n", ".sc/secrets.yaml:"),
        (
            "registry:\n  files: []\n  more: 1\nsecrets: {}\n",
            ".sc/secrets.yaml has keys that this sc does not know: registry.more",
        ),
    ] {
        let (case, keys) = revealed("ed25519-openssh");
        fs::write(case.root().join(".sc/secrets.yaml"), text).unwrap();
        let edits = [
            Edit::hide(&case.file(), &keys),
            Edit::add(&case.file(), "a.txt", &keys),
            Edit::delete(&case.file(), "a.txt", false, &keys),
            Edit::allow(&case.file(), "ssh-rsa AAAA", &keys),
            Edit::disallow(&case.file(), "ssh-rsa AAAA", &keys),
        ];
        for edit in edits {
            let error = edit.unwrap_err();
            assert!(error.to_string().starts_with(expected) && error.hint().is_some(), "{text:?}: {error}");
        }
        assert_eq!(case.text(), text);
    }
}

/// Shows: secrets.md#commands "must not leave it, not even through a symbolic link"
#[test]
fn path_of_an_entry_does_not_leave_the_repository() {
    let case = Case::open("ed25519-openssh");
    let text = case.text().replace("path: a.txt", "path: ../a.txt");
    fs::write(case.root().join(".sc/secrets.yaml"), text).unwrap();
    let error = Reveal::prepare(&case.file(), &case.keys("default")).unwrap_err();
    assert!(matches!(error, SecretsStoreError::Path(PathError::Outside(_))), "{error}");
    assert!(!case.root().join("nonl.txt").exists(), "no file was written");
}

#[test]
fn second_of_two_edits_at_once_is_refused() {
    let (case, keys) = revealed("ed25519-openssh");
    fs::write(case.root().join("b"), "new").unwrap();
    let first = Edit::add(&case.file(), "b", &keys).unwrap();
    let second = Edit::delete(&case.file(), "a.txt", false, &keys).unwrap();
    first.commit().unwrap();
    assert!(matches!(second.commit(), Err(SecretsStoreError::Conflict)));
    assert!(case.file().read().unwrap().files.contains(&"a.txt".to_owned()));
}

/// Shows: secrets.md#confirmations "Edits at the same time do not get lost"
#[test]
fn many_edits_at_once_lose_no_file() {
    let (case, _) = revealed("ed25519-openssh");
    let count = case.file().read().unwrap().files.len();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let case = &case;
            scope.spawn(move || {
                let (path, keys) = (format!("new{number}"), case.keys("default"));
                fs::write(case.root().join(&path), &path).unwrap();
                while let Err(error) = Edit::add(&case.file(), &path, &keys).unwrap().commit() {
                    assert!(matches!(error, SecretsStoreError::Conflict), "{error}");
                }
            });
        }
    });
    let keys = case.keys("default");
    for number in 0..8 {
        let path = format!("new{number}");
        assert_eq!(*case.text_of(&path, &keys).unwrap().unwrap(), path.as_bytes());
    }
    assert_eq!(case.file().read().unwrap().files.len(), count + 8);
    assert_eq!(fs::read_to_string(case.root().join(".gitignore")).unwrap().lines().count(), 9);
}

#[test]
fn profile_without_a_private_key_encrypts_what_it_cannot_compare() {
    let (case, keys) = revealed("three-recipients");
    let public = PublicKey::of_line(keys.public().unwrap().as_str());
    let config = KeyConfig { private_key_path: None, ..case.config("default") };
    let edit = Edit::hide(&case.file(), &OwnKeys::new(config)).unwrap();
    assert!(edit.changes().all(|change| change.before.is_none()));
    edit.commit().unwrap();
    assert_eq!(case.file().read().unwrap().entries(&public).unwrap().len(), 6);
    assert_eq!(*case.text_of("a.txt", &case.keys("ci")).unwrap().unwrap(), b"one line\n");
}
