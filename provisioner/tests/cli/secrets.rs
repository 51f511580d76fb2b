//! Tests of `sc secrets` and `sc stack secret-get`: output, files and their permissions, refusals.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

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

/// Writes an editor that leaves a swap file and a backup beside the file, records where it was, and runs a command on the file.
fn editor(folder: &tempfile::TempDir, command: &str) -> String {
    let script = folder.path().join("editor.sh");
    let record = folder.path().join("edited");
    let text = format!(
        "#!/bin/sh\nfolder=$(dirname \"$1\")\necho hush > \"$folder/.file.swp\"\necho hush > \"$1~\"\nstat -c %a \"$folder\" > '{0}'\necho \"$folder\" >> '{0}'\n{command}\n",
        record.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}

fn edit(folder: &tempfile::TempDir, editor: &str) -> String {
    let mut command = sc(&["secrets", "edit", SECRETS]);
    let runtime = folder.path().join("runtime");
    fs::create_dir_all(&runtime).unwrap();
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    command
        .current_dir(folder.path())
        .env("EDITOR", editor)
        .env("PATH", "/usr/bin:/bin")
        .env("XDG_RUNTIME_DIR", runtime);
    run(command)
}

/// Returns the files below the folder for plain text.
fn plaintext(folder: &tempfile::TempDir) -> usize {
    let own = fs::read_dir(folder.path().join("runtime")).unwrap().next();
    own.map_or(0, |own| fs::read_dir(own.unwrap().path()).unwrap().count())
}

/// Shows: secrets.md#editing "All that the editor leaves in it (swap files, backups) is removed with it when the editor ends, and after a
///   kill by the next command."
#[test]
fn file_of_the_store_is_edited_in_a_private_folder_that_is_removed() {
    let folder = repository();
    assert!(check(&folder, &["secrets", "add", SECRETS, "-y"]).starts_with("exit 0\n"));
    fs::remove_file(folder.path().join(SECRETS)).unwrap();
    let change = editor(&folder, "sed -i s/hush-hush/moonlight/ \"$1\"");
    insta::assert_snapshot!(edit(&folder, &change), @"
    exit 0
    --- out
    --- err
    encrypted .sc/stacks/reef/secrets.yaml
    ");
    let record = fs::read_to_string(folder.path().join("edited")).unwrap();
    let (mode, place) = record.trim_end().split_once('\n').unwrap();
    assert!(mode == "700" && place.contains("/runtime/sc-"), "{record}");
    assert_eq!(plaintext(&folder), 0, "swap files and backups are removed");
    assert!(!folder.path().join(SECRETS).exists(), "nothing is revealed");
    assert!(check(&folder, &["stack", "secret-get", "TOKEN"]).contains("moonlight"));
    // A file on the disk is changed as well; one with another text is not overwritten.
    assert!(check(&folder, &["secrets", "reveal"]).starts_with("exit 0\n"));
    assert!(edit(&folder, &editor(&folder, "sed -i s/moonlight/starlight/ \"$1\"")).starts_with("exit 0\n"));
    assert_eq!(fs::read_to_string(folder.path().join(SECRETS)).unwrap(), "values:\n  TOKEN: starlight\n");
    assert!(check(&folder, &["secrets", "hide"]).contains("no secret file has changed"));
    fs::write(folder.path().join(SECRETS), "values: {}\n").unwrap();
    let refused = edit(&folder, &change);
    assert!(refused.starts_with("exit 1\n") && refused.contains("has another text on the disk"), "{refused}");
}

/// Shows: secrets.md#editing "An unchanged text, or an editor that fails, changes nothing."
#[test]
fn edit_without_a_change_or_of_an_editor_that_fails_or_is_killed_changes_nothing() {
    let folder = repository();
    assert!(check(&folder, &["secrets", "add", SECRETS, "-y"]).starts_with("exit 0\n"));
    let store = || fs::read(folder.path().join(".sc/secrets.yaml")).unwrap();
    let before = store();
    assert!(edit(&folder, &editor(&folder, ":")).contains("secrets.yaml was not changed\n"));
    let failed = edit(&folder, &editor(&folder, "echo x >> \"$1\"; exit 3"));
    assert!(failed.starts_with("exit 1\n") && failed.contains("nothing was changed"), "{failed}");
    assert_eq!((store() == before, plaintext(&folder)), (true, 0));
    // A kill leaves the folder to the next command.
    let mut killed = sc(&["secrets", "edit", SECRETS]);
    let script = editor(&folder, "kill -9 $PPID");
    killed.current_dir(folder.path()).env("EDITOR", script).env("PATH", "/usr/bin:/bin");
    killed.env("XDG_RUNTIME_DIR", folder.path().join("runtime"));
    assert!(!killed.output().unwrap().status.success());
    assert_eq!(plaintext(&folder), 1);
    let mut next = sc(&["secrets", "list"]);
    next.current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path().join("runtime"));
    assert!(run(next).starts_with("exit 0\n"));
    assert_eq!((store() == before, plaintext(&folder)), (true, 0));
    let unknown = check(&folder, &["secrets", "edit", "absent"]);
    assert!(unknown.starts_with("exit 1\n") && unknown.contains("\"absent\" is not in the store"), "{unknown}");
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
    insta::assert_snapshot!(check(&folder, &["validate"]), @"
    exit 0
    --- out
    1 stack, 0 resources: no mistakes
    --- err
    info: unknown here, and not checked: ${secret:TOKEN} (--require-values makes them mistakes)
    ");
    let refused = check(&folder, &["validate", "--require-values"]);
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
    // As its hint says: the two lines name no key.
    let mut command = sc(&["secrets", "init", "--generate"]);
    command.current_dir(without_keys.path()).env("HOME", "/nowhere");
    insta::assert_snapshot!(run(command), @"
    exit 0
    --- out
    --- err
    added the keys to .sc/cfg.default.yaml
    ");
    let profile = fs::read_to_string(without_keys.path().join(".sc/cfg.default.yaml")).unwrap();
    assert!(profile.contains("privateKey: |") && !profile.contains("id_rsa"), "{profile}");
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
fn profile_that_git_tracks_gets_no_generated_key() {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        assert!(Command::new("git").args(arguments).current_dir(folder.path()).status().unwrap().success());
    };
    git(&["init", "--quiet"]);
    fs::create_dir(folder.path().join(".sc")).unwrap();
    fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: reef\n").unwrap();
    git(&["add", ".sc/cfg.default.yaml"]);
    let init = || {
        let mut command = sc(&["secrets", "init", "--generate"]);
        command.current_dir(folder.path()).env("PATH", std::env::var_os("PATH").unwrap());
        run(command)
    };
    insta::assert_snapshot!(init(), @"
    exit 1
    --- out
    --- err
    error: git tracks .sc/cfg.default.yaml, so the next commit would contain the private key
      hint: run `git rm --cached .sc/cfg.default.yaml`, commit that, and run the command again
    ");
    assert_eq!(fs::read_to_string(folder.path().join(".sc/cfg.default.yaml")).unwrap(), "projectName: reef\n");
    git(&["rm", "--quiet", "--cached", ".sc/cfg.default.yaml"]);
    assert!(init().starts_with("exit 0\n"));
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
        (
            &["allow", "-----BEGIN OPENSSH PRIVATE KEY-----\nhush"],
            "error: failed to parse public key: a file that begins with `-----BEGIN` is not one, and may be a private key\n  hint: give",
        ),
        (&["disallow", "garbage"], "is not found in secrets: no decryption can be made\n  hint: the store is empty"),
        (&["reveal", "-p", "ghost"], "error[profile]: the profile \"ghost\" does not exist"),
    ] {
        let arguments: Vec<&str> = std::iter::once("secrets").chain(arguments.iter().copied()).collect();
        let printed = check(&folder, &arguments);
        assert!(printed.starts_with("exit 1\n") && printed.contains(expected), "{arguments:?}: {printed}");
        assert!(!printed.contains("hush"), "{arguments:?}: {printed}");
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
