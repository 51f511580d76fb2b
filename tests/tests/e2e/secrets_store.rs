//! Tests of the secrets store with a whole run, with a terminal, and with processes that are killed.

use std::fs;
use std::path::Path;

use crate::repository::{FILES, Repository, Sections};

const SECRETS: &str = ".sc/stacks/reef/secrets.yaml";
const STORE: &str = ".sc/secrets.yaml";

/// Creates a repository with a key of its own, and with a resource that has a secret, which is only in the store.
fn hidden(secrets: &str) -> Repository {
    let resources = "page: { type: files:fs:File, config: { path: a, content: 'key=${secret:token}' } }";
    let repository = Repository::new(Sections { plugins: FILES, resources, ..Sections::default() });
    fs::write(repository.path(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::remove_file(repository.path(".sc/cfg.default.yaml")).unwrap();
    repository.expect_exit(0, "secrets init --generate");
    repository.write(SECRETS, secrets);
    repository.expect_exit(0, &format!("secrets add --yes {SECRETS}"));
    fs::remove_file(repository.path(SECRETS)).unwrap();
    repository
}

#[test]
fn stack_is_provisioned_with_secrets_that_are_only_in_the_store() {
    let repository = hidden("values:\n  token: swordfish-7f3a\n");
    let printed = repository.expect_exit(0, "provision -v");
    assert!(printed.contains("read from .sc/secrets.yaml, in memory: .sc/stacks/reef/secrets.yaml"), "{printed}");
    assert!(!printed.contains("swordfish"), "{printed}");
    assert_eq!(repository.read("site/a"), "key=swordfish-7f3a");
    assert!(!repository.path(SECRETS).exists());
    // A file on the disk precedes the store.
    repository.write(SECRETS, "values:\n  token: other\n");
    repository.expect_exit(0, "provision");
    assert_eq!(repository.read("site/a"), "key=other");
}

#[test]
fn mistake_in_a_file_of_the_store_is_shown_at_its_line() {
    let repository = hidden("values:\n  token: [a]\n");
    // The schemas of the editor do not see the file.
    let output = repository.command("validate").output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("--> .sc/stacks/reef/secrets.yaml (in .sc/secrets.yaml):2:10"), "{printed}");
}

/// Creates a repository with a recorded store whose private key is encrypted, and no passphrase in the profile.
fn encrypted_key() -> Repository {
    let repository = Repository::new(Sections::default());
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/simple-container/secrets/stores/ed25519-openssh-enc/root");
    for file in [STORE, "keys/test_a-ed25519-openssh-enc", "keys/test_a-ed25519-openssh-enc.pub"] {
        repository.write(file, &fs::read_to_string(golden.join(file)).unwrap());
    }
    let profile = fs::read_to_string(golden.join(".sc/cfg.default.yaml")).unwrap();
    repository.write(".sc/cfg.default.yaml", &profile.replace("privateKeyPassword: test-pass\n", ""));
    repository
}

/// Shows: secrets.md#confirmations "`-y`, `-F` and a pipe are no replies. Without a terminal the command is refused
///   (exit code 2) unless each is named"
#[test]
fn passphrase_of_a_key_is_asked_for_and_not_shown() {
    let repository = encrypted_key();
    for (passphrase, exit) in [("high tide", 1), ("test-pass", 0)] {
        let mut terminal = repository.start_on_terminal("secrets reveal");
        terminal.wait_until_shown("test_a-ed25519-openssh-enc:");
        terminal.type_line(passphrase);
        assert_eq!(terminal.wait(), exit, "{}", terminal.screen());
        let screen = terminal.screen();
        assert!(!screen.contains(passphrase) && terminal.is_restored(), "{screen}");
        assert_eq!(repository.path("a.txt").exists(), exit == 0);
    }
    repository.write("a.txt", "changed\n");
    let mut terminal = repository.start_on_terminal("secrets hide");
    terminal.wait_until_shown("test_a-ed25519-openssh-enc:");
    terminal.type_line("test-pass");
    terminal.wait_until_shown("Encrypt the newly registered file a.txt? It is not confirmed yet. [y/N]");
    terminal.type_line("y");
    terminal.wait_until_shown("Accept the changes of a.txt? [y/N]");
    assert!(terminal.screen().contains("1 - one line") && terminal.screen().contains("1 + changed"));
    terminal.type_line("n");
    assert_eq!(terminal.wait(), 1, "{}", terminal.screen());
    drop(terminal);
    // Without a terminal, the passphrase and each reply are lines of standard input.
    repository.write("replies", "test-pass\ny\n");
    let piped = repository.sc_in_shell("exec < replies", "secrets hide");
    assert!(piped.starts_with("exit 2\n") && piped.contains("--accept-file a.txt"), "{piped}");
    let piped = repository.sc_in_shell("exec < replies", "secrets hide --accept-file a.txt");
    assert!(piped.starts_with("exit 0\n"), "{piped}");
    assert!(repository.expect_exit(0, "secrets list").contains("a.txt"));
    let refused = repository.expect_exit(2, "secrets reveal");
    assert!(refused.contains("no terminal to ask for a secret"), "{refused}");
}
