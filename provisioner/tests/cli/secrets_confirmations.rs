//! Recipients and files that somebody adds to the store of a repository, and `sc secrets` asks about.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{run, sc};

const STORE: &str = ".sc/secrets.yaml";

/// A clone of a repository whose default branch has a store with `a.env`.
struct Clone {
    folder: tempfile::TempDir,
}

impl Clone {
    fn new() -> Self {
        let clone = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(clone.folder.path().join("origin")).unwrap();
        clone.git("origin", &["init", "--quiet", "--initial-branch", "main"]);
        clone.sc_in("origin", &["secrets", "init", "-g"]);
        clone.write("origin/a.env", "a\n");
        clone.sc_in("origin", &["secrets", "add", "-y", "a.env"]);
        clone.git("origin", &["add", ".gitignore", STORE]);
        clone.git("origin", &["commit", "--quiet", "-m", "store"]);
        clone.git(".", &["clone", "--quiet", "origin", "clone"]);
        for file in ["a.env", ".sc/cfg.default.yaml"] {
            fs::copy(clone.path("origin").join(file), clone.path("clone").join(file)).unwrap();
        }
        clone
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"];
        let mut command = Command::new("git");
        command.args(identity).args(arguments).current_dir(self.path(folder)).env("HOME", self.folder.path());
        let status = command.stdin(Stdio::null()).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    }

    fn sc_in(&self, folder: &str, arguments: &[&str]) -> String {
        let mut command = sc(arguments);
        command.current_dir(self.path(folder)).env("HOME", self.folder.path()).env("PATH", "/usr/bin:/bin");
        run(command)
    }

    fn sc(&self, arguments: &[&str]) -> String {
        self.sc_in("clone", arguments)
    }

    fn store(&self) -> String {
        fs::read_to_string(self.path("clone").join(STORE)).unwrap()
    }

    /// Adds a recipient, as a branch does, and returns its fingerprint.
    fn add_recipient(&self) -> String {
        let key = self.path("key");
        let status = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
        assert!(status.unwrap().success());
        let line = fs::read_to_string(self.path("key.pub")).unwrap();
        let key = line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        assert!(self.sc(&["secrets", "allow", &key]).starts_with("exit 0\n"));
        let printed = Command::new("ssh-keygen").arg("-lf").arg(self.path("key.pub")).output().unwrap().stdout;
        String::from_utf8(printed).unwrap().split(' ').nth(1).unwrap().to_owned()
    }
}

fn is_refused(printed: &str, named: &str) -> bool {
    printed.starts_with("exit 2\n")
        && printed.contains(named)
        && printed.contains(".sc/secrets.yaml lists what neither")
}

/// Shows: secrets.md#confirmations "are confirmed if the store of the default branch"
#[test]
fn store_of_the_default_branch_is_encrypted_without_a_question() {
    let clone = Clone::new();
    clone.write("clone/a.env", "changed\n");
    let printed = clone.sc(&["secrets", "hide", "-F"]);
    assert!(printed.starts_with("exit 0\n") && printed.contains("encrypted a.env"), "{printed}");
}

/// Shows: secrets.md#confirmations "`-y`, `-F` and a pipe are no replies. Without a terminal the command is refused
///   (exit code 2) unless each is named"
#[test]
fn new_recipient_and_new_file_are_refused_without_a_terminal_unless_they_are_named() {
    let clone = Clone::new();
    let fingerprint = clone.add_recipient();
    clone.write("clone/a.env", "changed\n");
    clone.write("clone/b.env", "b\n");
    let store = clone.store().replace("    files:\n", "    files:\n        - b.env\n");
    clone.write("clone/.sc/secrets.yaml", &store);
    for options in [&["-F"][..], &["-y"], &["--accept-file", "b.env", "-F"], &["--accept-file", "a.env", "-F"]] {
        let printed = clone.sc(&[&["secrets", "hide"], options].concat());
        assert!(is_refused(&printed, &format!("--accept-recipient {fingerprint}")), "{options:?}: {printed}");
        assert_eq!(clone.store(), store);
    }
    let printed = clone.sc(&["secrets", "hide", "-F", "--accept-recipient", &fingerprint]);
    assert!(is_refused(&printed, "--accept-file b.env"), "{printed}");
    clone.write("clone/c.env", "c\n");
    let printed = clone.sc(&["secrets", "add", "-y", "c.env"]);
    assert!(is_refused(&printed, &fingerprint) && !printed.contains("c.env"), "{printed}");
    let accept = ["secrets", "hide", "-F", "--accept-recipient", &fingerprint, "--accept-file", "b.env"];
    let printed = clone.sc(&accept);
    assert!(printed.starts_with("exit 0\n") && printed.contains("encrypted b.env"), "{printed}");
    // They are known in this clone from now on.
    clone.write("clone/b.env", "changed\n");
    assert!(clone.sc(&["secrets", "hide", "-F"]).starts_with("exit 0\n"));
    assert!(clone.sc(&["secrets", "add", "-y", "c.env"]).starts_with("exit 0\n"));
}

#[test]
fn option_in_the_hint_quotes_the_path_of_the_file() {
    let clone = Clone::new();
    clone.write("clone/-b $(id).env", "b\n");
    let store = clone.store().replace("    files:\n", "    files:\n        - -b $(id).env\n");
    clone.write("clone/.sc/secrets.yaml", &store);
    let printed = clone.sc(&["secrets", "hide", "-F"]);
    assert!(is_refused(&printed, "--accept-file='-b $(id).env'"), "{printed}");
}

/// Shows: secrets.md#confirmations "everything is new until the first `hide`"
#[test]
fn without_a_default_branch_everything_is_new_until_the_first_hide() {
    let clone = Clone::new();
    clone.git("clone", &["remote", "set-head", "origin", "--delete"]);
    clone.write("clone/a.env", "changed\n");
    let printed = clone.sc(&["secrets", "hide", "-F"]);
    assert!(is_refused(&printed, "--accept-file a.env"), "{printed}");
    assert!(!printed.contains("--accept-recipient"), "the key of the profile is known: {printed}");
    assert!(clone.sc(&["secrets", "hide", "-F", "--accept-file", "a.env"]).starts_with("exit 0\n"));
    clone.write("clone/a.env", "again\n");
    assert!(clone.sc(&["secrets", "hide", "-F"]).starts_with("exit 0\n"));
    let record = clone.path("clone/.git/sc-secrets-confirmed");
    assert_eq!(fs::read_to_string(record).unwrap(), "file a.env\n");
}

/// Shows: security.md#the-secrets-store "Plaintext on its way to a file is in `.sc/.tmp/`, which git ignores and only
///   you can read."
/// Shows: security.md#the-secrets-store "removes what a killed one has left there"
#[test]
fn plaintext_of_a_killed_command_is_hidden_from_git_and_removed_by_the_next_one() {
    let clone = Clone::new();
    fs::remove_file(clone.path("clone/a.env")).unwrap();
    assert!(clone.sc(&["secrets", "reveal"]).starts_with("exit 0\n"));
    let left: &Path = &clone.path("clone/.sc/.tmp/.tmp-left");
    fs::write(left, "plaintext").unwrap();
    let mut status = Command::new("git");
    status.args(["status", "--porcelain"]).current_dir(clone.path("clone")).env("HOME", clone.folder.path());
    assert_eq!(String::from_utf8(status.output().unwrap().stdout).unwrap(), "");
    assert!(clone.sc(&["secrets", "list"]).starts_with("exit 0\n"));
    assert!(!left.exists());
}
