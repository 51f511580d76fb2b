//! Stores that the Go program wrote: each is decrypted, written again, and extended.

#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

mod edits;
mod faults;
mod hostile;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrets_store::edit::Edit;
use secrets_store::keys::{KeyConfig, OwnKeys, PublicKey};
use secrets_store::reveal::Reveal;
use secrets_store::{SecretsStoreError, StoreFile};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use zeroize::Zeroizing;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Profile {
    private_key_path: Option<String>,
    public_key_path: Option<String>,
    private_key: Option<String>,
    public_key: Option<String>,
    private_key_password: Option<String>,
}

/// A copy of a recorded store.
struct Case {
    folder: TempDir,
    description: Value,
}

impl Case {
    fn open(name: &str) -> Self {
        let source = goldens().join(name);
        let folder = tempfile::tempdir().unwrap();
        copy(&source.join("root"), folder.path());
        let description = serde_json::from_str(&fs::read_to_string(source.join("case.json")).unwrap()).unwrap();
        Self { folder, description }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self) -> StoreFile {
        StoreFile::of(self.root())
    }

    fn text(&self) -> String {
        fs::read_to_string(self.root().join(".sc/secrets.yaml")).unwrap()
    }

    fn text_of(&self, path: &str, keys: &OwnKeys) -> Result<Option<Zeroizing<Vec<u8>>>, SecretsStoreError> {
        let file = self.file();
        file.decrypt(&file.read()?, path, keys)
    }

    fn config(&self, profile: &str) -> KeyConfig {
        let text = fs::read_to_string(self.root().join(format!(".sc/cfg.{profile}.yaml"))).unwrap();
        let profile: Profile = serde_yaml::from_str(&text).unwrap();
        KeyConfig {
            root: self.root().to_owned(),
            home: None,
            private_key_path: profile.private_key_path,
            public_key_path: profile.public_key_path,
            private_key: profile.private_key.map(Zeroizing::new),
            public_key: profile.public_key,
            passphrase: profile.private_key_password.map(Zeroizing::new),
        }
    }

    fn keys(&self, profile: &str) -> OwnKeys {
        OwnKeys::new(self.config(profile))
    }

    fn profiles(&self) -> Vec<&str> {
        self.description["profiles"].as_array().unwrap().iter().map(|profile| profile.as_str().unwrap()).collect()
    }

    /// Returns the expected text of each file.
    fn plain(&self) -> BTreeMap<String, Vec<u8>> {
        let plain = self.description["plain"].as_object().unwrap();
        plain
            .iter()
            .map(|(path, text)| (path.clone(), STANDARD.decode(text["base64"].as_str().unwrap()).unwrap()))
            .collect()
    }
}

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/simple-container/secrets/stores")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn each_case(check: impl Fn(&str, &Case)) {
    let mut names: Vec<String> =
        fs::read_dir(goldens()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 14);
    for name in names {
        check(&name, &Case::open(&name));
    }
}

/// Shows: secrets.md#secrets-in-git "each reads what the other has written"
/// Shows: secrets.md#the-store "The file is written byte by byte as the Go tool writes it"
#[test]
fn each_profile_decrypts_each_file() {
    each_case(|name, case| {
        let expected = case.plain();
        for profile in case.profiles() {
            let keys = case.keys(profile);
            Reveal::prepare(&case.file(), &keys).unwrap().write().unwrap();
            for (path, text) in &expected {
                let file = case.root().join(path);
                assert_eq!(fs::read(&file).unwrap(), *text, "{name}: {path} with {profile}");
                assert_eq!(*case.text_of(path, &keys).unwrap().unwrap(), *text);
                fs::remove_file(file).unwrap();
            }
        }
        let list = case.file().read().unwrap().files;
        assert_eq!(Value::from(list), case.description["list"], "{name}");
    });
}

/// Shows: secrets.md#secrets-in-git "each reads what the other has written"
/// Shows: secrets.md#the-store "The file is written byte by byte as the Go tool writes it"
#[test]
fn store_is_written_as_it_was_read_byte_by_byte() {
    each_case(|name, case| {
        let before = case.text();
        assert_eq!(case.file().read().unwrap().to_yaml(), before, "{name}");
        let keys = case.keys(case.profiles()[0]);
        Reveal::prepare(&case.file(), &keys).unwrap().write().unwrap();
        let hidden = Edit::hide(&case.file(), &keys).unwrap();
        assert_eq!(hidden.changes().count(), 0, "{name}");
        assert_eq!(hidden.commit().unwrap(), [""; 0], "{name}");
        assert_eq!(case.text(), before, "{name}");
    });
}

#[test]
fn numbers_of_pieces_are_those_of_the_go_program() {
    each_case(|name, case| {
        let keys = case.keys(case.profiles()[0]);
        Reveal::prepare(&case.file(), &keys).unwrap().write().unwrap();
        let recorded = case.description["pieces"].as_object().unwrap();
        for recipient in case.file().read().unwrap().recipients() {
            let key = recipient.key.recipient().unwrap();
            let end = &recipient.key.as_str()[recipient.key.as_str().len() - 12..];
            let pieces = recorded.iter().find(|(key, _)| key.ends_with(end)).unwrap().1;
            for entry in &recipient.entries {
                let text = fs::read(case.root().join(&entry.path)).unwrap();
                let elements = secrets_store::ciphers::encrypt(&text, &key).unwrap();
                assert_eq!(
                    (Value::from(elements.len()), elements.len()),
                    (pieces[&entry.path].clone(), entry.elements.len()),
                    "{name}: {}",
                    entry.path
                );
            }
        }
    });
}

#[test]
fn added_file_can_be_decrypted_with_each_other_profile() {
    each_case(|name, case| {
        let keys = case.keys(case.profiles()[0]);
        Reveal::prepare(&case.file(), &keys).unwrap().write().unwrap();
        let before = case.file().read().unwrap();
        let text = "new: \u{2603}é\n".repeat(60);
        fs::write(case.root().join("new.txt"), &text).unwrap();
        let added = Edit::add(&case.file(), "new.txt", &keys).unwrap().commit().unwrap();
        assert_eq!(added, ["new.txt"], "{name}");
        for profile in case.profiles() {
            let revealed = case.text_of("new.txt", &case.keys(profile)).unwrap().unwrap();
            assert_eq!(*revealed, text.as_bytes(), "{name} with {profile}");
        }
        let after = case.file().read().unwrap();
        for recipient in before.recipients() {
            let entries = after.entries(&recipient.key).unwrap();
            assert_eq!(
                entries[..recipient.entries.len()],
                recipient.entries,
                "{name}: other entries keep their ciphertext"
            );
        }
    });
}

#[test]
fn profile_whose_key_was_removed_is_refused() {
    let case = Case::open("after-disallow");
    let key = case.description["refused_error"].as_str().unwrap().split(['(', ')']).nth(1).unwrap();
    let own = OwnKeys::new(KeyConfig { public_key: Some(key.to_owned()), ..case.config("default") });
    let error = Reveal::prepare(&case.file(), &own).unwrap_err();
    assert_eq!(format!("Error: {error}"), case.description["refused_error"].as_str().unwrap());
    assert_eq!(own.public().unwrap(), &PublicKey::of_line(key));
}
