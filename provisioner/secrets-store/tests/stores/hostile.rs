//! Stores of somebody who writes the repository, and has no key: what they register, and what they put in the way.

use std::fs;
use std::os::unix::fs::symlink;

use bridge::error::Hint as _;
use secrets_store::confirmed::Listed;
use secrets_store::edit::Edit;
use secrets_store::keys::{KeyConfig, KeyPair, OwnKeys};
use secrets_store::reveal::Reveal;
use secrets_store::{PathError, SecretsStoreError, StoreFile};

const STORE: &str = ".sc/secrets.yaml";

/// A repository with a profile that holds a key pair, a second one that names a file, and a store with `a.env`.
struct Victim {
    folder: tempfile::TempDir,
    pair: KeyPair,
}

impl Victim {
    fn new() -> Self {
        let (folder, pair) = (tempfile::tempdir().unwrap(), KeyPair::generate().unwrap());
        let victim = Self { folder, pair };
        fs::create_dir_all(victim.path(".sc")).unwrap();
        fs::create_dir_all(victim.path("keys")).unwrap();
        fs::write(victim.path(".sc/cfg.default.yaml"), victim.profile()).unwrap();
        fs::write(victim.path(".sc/cfg.other.yaml"), "privateKeyPath: keys/other\n").unwrap();
        fs::write(victim.path("keys/other"), "-----BEGIN ENCRYPTED PRIVATE KEY-----").unwrap();
        fs::write(victim.path("a.env"), "a").unwrap();
        Edit::add(&victim.file(), "a.env", &victim.keys()).unwrap().commit().unwrap();
        victim
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn file(&self) -> StoreFile {
        StoreFile::of(self.folder.path())
    }

    fn profile(&self) -> String {
        let key: String = self.pair.private.lines().map(|line| format!("    {line}\n")).collect();
        format!("projectName: x\nprivateKey: |\n{key}publicKey: {}\n", self.pair.public.trim_end())
    }

    fn keys(&self) -> OwnKeys {
        OwnKeys::new(KeyConfig {
            root: self.folder.path().to_owned(),
            private_key: Some(self.pair.private.clone()),
            public_key: Some(self.pair.public.clone()),
            ..KeyConfig::default()
        })
    }

    /// Registers a path as somebody does who edits the store.
    fn register(&self, path: &str) {
        let text = fs::read_to_string(self.path(STORE)).unwrap();
        fs::write(self.path(STORE), text.replace("    files:\n", &format!("    files:\n        - {path}\n"))).unwrap();
    }

    /// Renames the entries of a file as somebody does who edits the store.
    fn rename_entries(&self, path: &str) {
        let text = fs::read_to_string(self.path(STORE)).unwrap();
        fs::write(self.path(STORE), text.replace("a.env", path)).unwrap();
    }
}

fn is_refused(error: &SecretsStoreError) -> bool {
    matches!(error, SecretsStoreError::Path(PathError::Profile(_) | PathError::PrivateKey(_)))
}

/// Puts a key of the store into the repository in each way, and returns the path.
fn key_files(victim: &Victim) -> Vec<&'static str> {
    let root = victim.folder.path();
    symlink(".sc/cfg.default.yaml", root.join("link.yaml")).unwrap();
    symlink(".sc", root.join("sc")).unwrap();
    fs::hard_link(root.join(".sc/cfg.default.yaml"), root.join("hard.yaml")).unwrap();
    symlink(root.join("keys/other"), root.join("b.env")).unwrap();
    fs::write(root.join("copy.env"), format!("KEY=\"{}\"\n", victim.pair.private.replace('\n', "\\n"))).unwrap();
    fs::write(root.join("id_rsa"), victim.pair.private.as_bytes()).unwrap();
    vec![
        ".sc/cfg.default.yaml",
        "./.sc/../.sc/cfg.default.yaml",
        ".sc/cfg.other.yaml",
        "sc/cfg.default.yaml",
        "link.yaml",
        "hard.yaml",
        "keys/other",
        "b.env",
        "copy.env",
        "id_rsa",
    ]
}

/// Shows: security.md#the-secrets-store "A key that opens the store is never registered, encrypted, overwritten or
///   shown"
#[test]
fn key_that_opens_the_store_is_never_registered_hidden_or_revealed_over() {
    let victim = Victim::new();
    let keys = victim.keys();
    let paths = key_files(&victim);
    let before = fs::read_to_string(victim.path(STORE)).unwrap();
    for path in paths {
        let added = Edit::add(&victim.file(), path, &keys).unwrap_err();
        victim.register(path);
        let hidden = Edit::hide(&victim.file(), &keys).unwrap_err();
        assert!(hidden.hint().unwrap().contains("sc secrets delete"), "{path}");
        fs::write(victim.path(STORE), &before).unwrap();
        victim.rename_entries(path);
        let revealed = Reveal::prepare(&victim.file(), &keys).unwrap_err();
        for error in [added, hidden, revealed] {
            assert!(is_refused(&error), "{path}: {error}");
            assert!(!format!("{error:?}").contains("MIIE"), "{path}");
        }
        fs::write(victim.path(STORE), &before).unwrap();
    }
    // A profile that does not exist yet would be taken for one of the user.
    victim.rename_entries("sc/cfg.new.yaml");
    assert!(is_refused(&Reveal::prepare(&victim.file(), &keys).unwrap_err()));
}

/// Shows: security.md#the-secrets-store "A key that opens the store is never registered, encrypted, overwritten or
///   shown"
#[test]
fn key_that_the_store_has_already_is_not_encrypted_for_others_and_can_be_removed() {
    let victim = Victim::new();
    victim.rename_entries(".sc/cfg.default.yaml");
    fs::write(victim.path(".gitignore"), ".sc/cfg.default.yaml\n").unwrap();
    let other = KeyPair::generate().unwrap();
    assert!(is_refused(&Edit::allow(&victim.file(), &other.public, &victim.keys()).unwrap_err()));
    let delete =
        |and_file| Edit::delete(&victim.file(), ".sc/cfg.default.yaml", and_file, &OwnKeys::new(KeyConfig::default()));
    assert!(is_refused(&delete(true).unwrap_err()));
    delete(false).unwrap().commit().unwrap();
    assert!(victim.file().read().unwrap().files.is_empty());
    // The profile stays where git does not see it.
    assert_eq!(fs::read_to_string(victim.path(".gitignore")).unwrap(), ".sc/cfg.default.yaml\n");
    assert!(victim.path(".sc/cfg.default.yaml").exists());
}

#[test]
fn another_private_key_is_an_ordinary_secret() {
    let victim = Victim::new();
    fs::write(victim.path("deploy.pem"), KeyPair::generate().unwrap().private.as_bytes()).unwrap();
    let edit = Edit::add(&victim.file(), "deploy.pem", &victim.keys()).unwrap();
    assert_eq!(edit.commit().unwrap(), ["deploy.pem"]);
}

#[test]
fn edit_lists_what_it_takes_from_the_store() {
    let victim = Victim::new();
    let keys = victim.keys();
    let other = KeyPair::generate().unwrap();
    let allowed = Edit::allow(&victim.file(), &other.public, &keys).unwrap();
    assert_eq!(allowed.listed(), Listed::default(), "the user names the recipient");
    allowed.commit().unwrap();
    let listed = |edit: Edit| {
        let listed = edit.listed();
        (listed.recipients.len(), listed.files)
    };
    assert_eq!(listed(Edit::hide(&victim.file(), &keys).unwrap()), (0, vec![]), "nothing changes");
    fs::write(victim.path("b.env"), "b").unwrap();
    victim.register("b.env");
    assert_eq!(listed(Edit::hide(&victim.file(), &keys).unwrap()), (1, vec!["b.env".to_owned()]));
    // The file of `add` is named by the user, and the other one is not.
    fs::write(victim.path("c.env"), "c").unwrap();
    assert_eq!(listed(Edit::add(&victim.file(), "c.env", &keys).unwrap()), (1, vec!["b.env".to_owned()]));
    // A known path that has become a link to another file counts as that file, too.
    fs::remove_file(victim.path("a.env")).unwrap();
    symlink("c.env", victim.path("a.env")).unwrap();
    let expected = vec!["b.env".to_owned(), "a.env".to_owned(), "c.env".to_owned()];
    assert_eq!(listed(Edit::hide(&victim.file(), &keys).unwrap()), (1, expected));
}

/// Shows: secrets.md#the-store "one that is empty or cut, or one that cannot be read, is an error with line and column,
///   and it is never overwritten"
#[test]
fn empty_or_cut_store_is_damaged_and_never_overwritten() {
    let victim = Victim::new();
    let whole = fs::read_to_string(victim.path(STORE)).unwrap();
    let cut = whole.split("secrets:").next().unwrap();
    for text in ["", "\n", "# a comment\n", "---\n", "~", "{}", cut] {
        fs::write(victim.path(STORE), text).unwrap();
        let keys = victim.keys();
        let errors = [
            Edit::hide(&victim.file(), &keys).map(drop).unwrap_err(),
            Edit::add(&victim.file(), "a.env", &keys).map(drop).unwrap_err(),
            Reveal::prepare(&victim.file(), &keys).map(drop).unwrap_err(),
            victim.file().read().map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, SecretsStoreError::Unreadable(_)), "{text:?}: {error}");
            assert!(error.hint().unwrap().contains("restore it from git"), "{text:?}");
        }
        assert_eq!(fs::read_to_string(victim.path(STORE)).unwrap(), text);
    }
}

#[test]
fn links_that_lead_out_of_the_repository_are_not_written_through() {
    let elsewhere = tempfile::tempdir().unwrap();
    let place = elsewhere.path().join("file");
    let write = |text: &str| fs::write(&place, text).unwrap();
    for name in [".gitignore", STORE] {
        let victim = Victim::new();
        let text = fs::read_to_string(victim.path(STORE)).unwrap();
        write(if name == STORE { &text } else { "alias ll=ls" });
        fs::remove_file(victim.path(name)).unwrap();
        symlink(&place, victim.path(name)).unwrap();
        let before = fs::read(&place).unwrap();
        fs::write(victim.path("b.env"), "b").unwrap();
        let error = Edit::add(&victim.file(), "b.env", &victim.keys()).unwrap().commit().unwrap_err();
        assert!(matches!(error, SecretsStoreError::File(_)), "{name}: {error}");
        assert_eq!(fs::read(&place).unwrap(), before, "{name}");
        assert!(victim.path(name).symlink_metadata().unwrap().is_symlink());
    }
}

#[test]
fn revealed_file_is_written_by_the_folder_that_git_ignores() {
    let victim = Victim::new();
    fs::remove_file(victim.path("a.env")).unwrap();
    Reveal::prepare(&victim.file(), &victim.keys()).unwrap().write().unwrap();
    assert_eq!(fs::read_to_string(victim.path("a.env")).unwrap(), "a");
    assert_eq!(fs::read_to_string(victim.path(".sc/.tmp/.gitignore")).unwrap(), "*\n");
    let left: Vec<_> = fs::read_dir(victim.path(".sc/.tmp")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".gitignore"]);
}
