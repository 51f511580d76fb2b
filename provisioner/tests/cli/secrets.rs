//! Tests of `sc secrets` and `sc stack secret-get`: output, files and their permissions, refusals.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use crate::{run, sc};

/// Creates a repository with a profile whose key pair is generated, and with one stack.
fn repository() -> tempfile::TempDir {
    let folder = crate::repository::repository("reef", "hush", "outputs:\n  token: '${secret:TOKEN}'\n");
    fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::remove_file(folder.path().join(".sc/cfg.default.yaml")).unwrap();
    assert!(check(&folder, &["secrets", "init", "-g"]).starts_with("exit 0\n"));
    fs::write(folder.path().join(SECRETS), "values:\n  TOKEN: hush-hush\n").unwrap();
    folder
}

const SECRETS: &str = ".sc/stacks/reef/secrets.yaml";

fn check_with(folder: &Path, arguments: &[&str], input: &str) -> String {
    let mut command = sc(arguments);
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap_or_default();
    let output = child.wait_with_output().unwrap();
    let text =
        |bytes| String::from_utf8(bytes).unwrap().replace(&*folder.canonicalize().unwrap().to_string_lossy(), "FOLDER");
    format!("exit {}\n--- out\n{}--- err\n{}", output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn check(folder: &tempfile::TempDir, arguments: &[&str]) -> String {
    let mut command = sc(arguments);
    command.current_dir(folder.path());
    run(command).replace(&*folder.path().canonicalize().unwrap().to_string_lossy(), "FOLDER")
}

fn mode(folder: &tempfile::TempDir, path: &str) -> u32 {
    fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777
}

#[test]
fn file_is_added_hidden_and_revealed() {
    let folder = repository();
    assert_eq!(mode(&folder, ".sc/cfg.default.yaml"), 0o600);
    insta::assert_snapshot!(check_with(folder.path(), &["secrets", "add", SECRETS], "y\n"), @"
    exit 0
    --- out
    --- err
    .sc/stacks/reef/secrets.yaml:
         1 + values:
         2 +   TOKEN: hush-hush
    Accept the changes of .sc/stacks/reef/secrets.yaml? [y/N]
    encrypted .sc/stacks/reef/secrets.yaml
    ");
    insta::assert_snapshot!(check(&folder, &["secrets", "hide"]), @"
    exit 0
    --- out
    --- err
    no secret file has changed
    ");
    fs::remove_file(folder.path().join(SECRETS)).unwrap();
    insta::assert_snapshot!(check(&folder, &["secrets", "hide"]), @"
    exit 1
    --- out
    --- err
    error: failed to read secret file \".sc/stacks/reef/secrets.yaml\"
      caused by: cannot read FOLDER/.sc/stacks/reef/secrets.yaml
      caused by: No such file or directory (os error 2)
      hint: `sc secrets reveal` writes the files that are registered; paths start at the root of the repository
    ");
    insta::assert_snapshot!(check(&folder, &["secrets", "reveal"]), @"
    exit 0
    --- out
    revealed .sc/stacks/reef/secrets.yaml
    revealed 1 secret file(s)
    --- err
    ");
    assert_eq!(mode(&folder, SECRETS), 0o600);
    insta::assert_snapshot!(check(&folder, &["secrets", "list", "--json"]), @r#"
    exit 0
    --- out
    {"path":".sc/stacks/reef/secrets.yaml"}
    --- err
    "#);
}

/// Shows: secrets.md#commands "No usable reply is wrong usage (exit code 2), a *no* ends with exit code 1; then nothing
///   is written."
#[test]
fn change_that_is_declined_or_has_no_reply_writes_nothing() {
    let folder = repository();
    assert!(check(&folder, &["secrets", "add", SECRETS, "--yes"]).starts_with("exit 0\n"));
    let store = || fs::read(folder.path().join(".sc/secrets.yaml")).unwrap();
    let before = store();
    fs::write(folder.path().join(SECRETS), "values:\n  TOKEN: other\n").unwrap();
    insta::assert_snapshot!(check_with(folder.path(), &["secrets", "hide"], "n\n"), @"
    exit 1
    --- out
    --- err
    .sc/stacks/reef/secrets.yaml:
         2 -   TOKEN: hush-hush
         2 +   TOKEN: other
    Accept the changes of .sc/stacks/reef/secrets.yaml? [y/N]
    nothing was changed
    ");
    assert!(check(&folder, &["secrets", "hide"]).starts_with("exit 2\n"), "no terminal, no reply");
    assert!(check_with(folder.path(), &["secrets", "reveal"], "n\n").starts_with("exit 1\n"));
    assert_eq!(fs::read_to_string(folder.path().join(SECRETS)).unwrap(), "values:\n  TOKEN: other\n");
    assert_eq!(store(), before);
    assert!(
        check(&folder, &["secrets", "reveal", "--json", "-F"])
            .contains("{\"revealed\":[\".sc/stacks/reef/secrets.yaml\"]}")
    );
}

/// Shows: secrets.md#nothing-needs-to-be-revealed-to-provision "read it from the store, in memory, with the key of the
///   profile"
#[test]
fn stack_is_read_from_the_store_if_its_secrets_are_not_on_the_disk() {
    let folder = repository();
    assert!(check(&folder, &["secrets", "add", SECRETS, "-y"]).starts_with("exit 0\n"));
    fs::remove_file(folder.path().join(SECRETS)).unwrap();
    insta::assert_snapshot!(check(&folder, &["stack", "secret-get", "TOKEN"]), @"
    exit 0
    --- out
    hush-hush
    --- err
    ");
    insta::assert_snapshot!(check(&folder, &["stack", "secret-get", "TOKE"]), @r#"
    exit 1
    --- out
    --- err
    error: secret "TOKE" not found in stack "reef"
      hint: did you mean TOKEN?
    "#);
    insta::assert_snapshot!(check(&folder, &["validate", "-v"]), @"
    exit 0
    --- out
    1 stack, 0 resources: no mistakes
    --- err
    info: read from .sc/secrets.yaml, in memory: .sc/stacks/reef/secrets.yaml
    ");
    assert!(!folder.path().join(SECRETS).exists(), "nothing is revealed");
    // The key of another profile opens nothing, and the reason is a hint.
    fs::rename(folder.path().join(".sc/cfg.default.yaml"), folder.path().join(".sc/cfg.kept.yaml")).unwrap();
    assert!(check(&folder, &["secrets", "init", "-g"]).starts_with("exit 0\n"));
    let refused = check(&folder, &["validate"]);
    assert!(
        refused.starts_with("exit 1\n")
            && refused.contains("the store does not open: it has nothing for the public key of the profile, ssh-rsa …"),
        "{refused}"
    );
    let variable = fs::read_to_string(folder.path().join(".sc/cfg.kept.yaml")).unwrap();
    let mut command = sc(&["stack", "secret-get", "TOKEN"]);
    command.current_dir(folder.path()).env("SIMPLE_CONTAINER_CONFIG", variable);
    assert!(run(command).starts_with("exit 0\n--- out\nhush-hush\n"));
}

#[test]
fn profile_is_not_overwritten_and_needs_a_repository() {
    let folder = repository();
    insta::assert_snapshot!(check(&folder, &["secrets", "init", "-g"]), @"
    exit 1
    --- out
    --- err
    error: the profile .sc/cfg.default.yaml exists, and was not overwritten
      hint: the keys in it would be lost: edit it, or write another profile with --profile NAME
    ");
    let without_keys = tempfile::tempdir().unwrap();
    fs::create_dir(without_keys.path().join(".git")).unwrap();
    fs::write(without_keys.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let mut command = sc(&["secrets", "init"]);
    command.current_dir(without_keys.path()).env("HOME", "/nowhere");
    insta::assert_snapshot!(run(command), @"
    exit 1
    --- out
    --- err
    wrote .gitignore
    wrote .sc/cfg.default.yaml
    wrote .sc/cfg.yaml.template
    error: .sc/cfg.default.yaml was written, but its keys cannot be used: the file of `publicKeyPath` cannot be used: cannot read /nowhere/.ssh/id_rsa.pub: No such file or directory (os error 2)
      hint: edit .sc/cfg.default.yaml, or create the key with `ssh-keygen -t rsa -b 4096`; `sc secrets init --generate` writes a key of its own
    ");
    assert_eq!(mode(&without_keys, ".sc/cfg.default.yaml"), 0o600);
    let outside = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(check(&outside, &["secrets", "init"]), @"
    exit 1
    --- out
    --- err
    error: failed to detect git dir: repository does not exist
      hint: run `git init` in the project's folder first: the store belongs into git, and the profile must stay out of it
    ");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn refusals_name_the_reason() {
    let folder = repository();
    for (arguments, expected) in [
        (&["add", "../x"][..], "error: the path \"../x\" leaves the repository\n"),
        (&["add", "/etc/passwd"], "leaves the repository\n"),
        (&["add", ".git/HEAD"], "belongs to git or to the store\n"),
        (&["add", "absent"], "error: failed to read secret file \"absent\"\n"),
        (&["delete", "absent"], "error: \"absent\" is not in the store\n  hint: the store has no files\n"),
        (&["allow", "garbage"], "error: failed to parse public key: \"garbage\""),
        (&["disallow", "garbage"], "is not found in secrets: no decryption can be made\n  hint: the store is empty"),
        (&["reveal", "-p", "ghost"], "error[profile]: the profile \"ghost\" does not exist"),
    ] {
        let arguments: Vec<&str> = std::iter::once("secrets").chain(arguments.iter().copied()).collect();
        let printed = check(&folder, &arguments);
        assert!(printed.starts_with("exit 1\n") && printed.contains(expected), "{arguments:?}: {printed}");
    }
    fs::write(folder.path().join(".sc/secrets.yaml"), "registry:\n  files: {}\n").unwrap();
    insta::assert_snapshot!(check(&folder, &["secrets", "list"]), @"
    exit 1
    --- out
    --- err
    error: .sc/secrets.yaml:2:10: registry.files: invalid type: map, expected a sequence
      hint: correct the file, or restore it from git; it was not taken for an empty store
    ");
    assert!(check(&folder, &["validate"]).starts_with("exit 0\n"), "the file on the disk precedes the store");
}
