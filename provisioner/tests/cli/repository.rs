//! Tests of commands that read a repository.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

use crate::{run, sc};

/// Creates a repository with one stack whose state is in the folder `backend`, and with further sections.
pub(crate) fn repository(stack: &str, passphrase: &str, sections: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let stack = folder.path().join(".sc/stacks").join(stack);
    fs::create_dir_all(&stack).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    fs::create_dir(folder.path().join("backend")).unwrap();
    fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: reef\n").unwrap();
    let server = format!(
        "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {{ type: fs, config: {{ path: file://backend }} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: {passphrase:?} }} }}
{sections}"
    );
    fs::write(stack.join("server.yaml"), server).unwrap();
    folder
}

fn check(plugins: &str, arguments: &[&str]) -> String {
    let folder = repository("reef", "hush", &format!("plugins:\n{plugins}"));
    let mut command = sc(arguments);
    command.current_dir(folder.path());
    run(command)
}

const PLUGINS: &str = "  - name: files
    source: { type: local, path: ./plugins/files }
  - name: tls
    enabled: false
    source:
      type: github-release
      repository: pulumi/pulumi-tls
      version: v5.2.2
      checksum: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
";

#[test]
fn plugin_ls_shows_declared_plugins() {
    insta::assert_snapshot!(check(PLUGINS, &["plugin", "ls"]), @r#"
    exit 0
    --- out
    STACK  PLUGIN  PACKAGE  VERSION  PINNED  SANDBOX
    reef   files   files    -        no      basic
      SOURCE    local ./plugins/files
    reef   tls     tls      v5.2.2   yes     basic
      SOURCE    github-release pulumi/pulumi-tls (disabled)
      CHECKSUM  sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    --- err
    "#);
    insta::assert_snapshot!(check(PLUGINS, &["plugin", "ls", "--json"]), @r#"
    exit 0
    --- out
    {"stack":"reef","name":"files","package":"files","enabled":true,"source":"local","location":"./plugins/files","version":"","locked":null,"pinned":false,"matches":null,"sandbox":"basic","checksum":null,"declared":true,"found":null}
    {"stack":"reef","name":"tls","package":"tls","enabled":false,"source":"github-release","location":"pulumi/pulumi-tls","version":"v5.2.2","locked":null,"pinned":true,"matches":null,"sandbox":"basic","checksum":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","declared":true,"found":null}
    --- err
    "#);
}

/// Shows: plugins.md#what-is-checked "`sc plugin install` prints each of these values, and `sc plugin ls` those of
///   local plugins"
#[test]
fn checksum_of_a_local_plugin_is_printed_as_it_is_declared() {
    let declaration = |checksum: &str| {
        format!("plugins: [{{ name: files, source: {{ type: local, path: pulumi-resource-files{checksum} }} }}]\n")
    };
    let folder = repository("reef", "hush", &declaration(""));
    let program = folder.path().join("pulumi-resource-files");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let check = |arguments: &[&str]| {
        let mut command = sc(arguments);
        command.current_dir(folder.path()).env("HOME", folder.path()).env("PATH", "/usr/bin:/bin");
        run(command)
    };
    // Printed by `printf '#!/bin/sh\n' | sha256sum`.
    let checksum = "sha256:a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf";
    for command in ["ls", "install"] {
        let printed = check(&["plugin", command]);
        assert!(printed.starts_with("exit 0\n") && printed.contains(checksum), "{printed}");
    }
    let server = folder.path().join(".sc/stacks/reef/server.yaml");
    let text = fs::read_to_string(&server).unwrap();
    fs::write(&server, text.replace(&declaration(""), &declaration(&format!(", checksum: {checksum:?}")))).unwrap();
    assert!(check(&["plugin", "install"]).starts_with("exit 0\n"));
    assert!(check(&["plugin", "ls"]).contains(" yes "));
}

#[test]
fn configuration_errors_are_shown_with_position_and_count() {
    insta::assert_snapshot!(check("  - name: Files\n    sauce: {}\n", &["plugin", "ls"]), @r#"
    exit 1
    --- out
    --- err
    error[plugin]: plugin "Files": source.type is required
     --> .sc/stacks/reef/server.yaml:8:5
      |
    8 |   - name: Files
      |     ^^^^^^^^^^^
      |
      = hint: the types are local, github-release, git, installed

    error[plugin]: plugin "Files": invalid name
     --> .sc/stacks/reef/server.yaml:8:11
      |
    8 |   - name: Files
      |           ^^^^^
      |
      = hint: a name begins with a lower-case letter; lower-case letters, digits and `-` follow

    error[unknown-key]: a plugin has no key `sauce`
     --> .sc/stacks/reef/server.yaml:9:5
      |
    9 |     sauce: {}
      |     ^^^^^
      |
      = hint: the keys are name, enabled, source, parameters, config, passEnv, initSecrets, startTimeout, keep, retry, sandbox, readable, writable, ports, package, protocol, goPlugin, startAttempts

    error: the configuration has 3 errors; nothing was changed
    "#);
}

#[test]
fn missing_stack_or_folder_is_usage_error() {
    insta::assert_snapshot!(check(PLUGINS, &["plugin", "ls", "-s", "reed"]), @r#"
    exit 2
    --- out
    --- err
    error: there is no stack reed
      hint: did you mean reef?
    "#);
    assert!(check(PLUGINS, &["plugin", "ls", "-C", "nowhere"]).starts_with("exit 2\n"));
}

/// Shows: server-yaml.md#core-types "a disabled plugin, or several of one package, are an error before anything is
///   changed"
#[test]
fn core_type_with_unserved_package_fails_before_any_change() {
    let bucket = "plugins: [{ name: aws, enabled: false, source: { type: local, path: aws } }]\n\
        resources: { resources: { e: { resources: { b: { type: s3-bucket, config: { region: sea } } } } } }\n";
    for arguments in [&["provision", "--yes"][..], &["preview"]] {
        let folder = repository("reef", "hush", bucket);
        let mut command = sc(arguments);
        command.current_dir(folder.path());
        let output = run(command);
        assert!(output.starts_with("exit 1\n"), "{output}");
        assert!(output.contains("needs the package \"aws\"") && output.contains("server.yaml:8:56"), "{output}");
        assert!(output.contains("the configuration has an error; nothing was changed"), "{output}");
        assert_eq!(fs::read_dir(folder.path().join("backend")).unwrap().count(), 0);
    }
}

#[test]
fn repository_of_another_user_is_refused() {
    const OTHER: Option<u32> = Some(54321);
    let list = |folder: &tempfile::TempDir, sudo: &str| {
        let mut command = sc(&["plugin", "ls"]);
        command.current_dir(folder.path()).env("SUDO_UID", sudo);
        run(command).replace(&folder.path().canonicalize().unwrap().display().to_string(), "FOLDER")
    };
    for path in [".", ".git", ".sc"] {
        let folder = repository("reef", "hush", "");
        if chown(folder.path().join(path), OTHER, None).is_err() {
            // Only root may change owners.
            return;
        }
        let refused = list(&folder, "1");
        assert!(
            refused.starts_with("exit 1\n--- out\n--- err\nerror: the repository FOLDER is refused: "),
            "{refused}"
        );
        assert!(refused.contains(" belongs to user 54321, neither to you (user 0) nor to root\n"), "{refused}");
        assert!(list(&folder, "54321").starts_with("exit 0\n"), "{path}: the user who called sudo is accepted");
    }
    let folder = repository("reef", "hush", "");
    let (config, target) = (folder.path().join(".sc"), folder.path().join("target"));
    fs::rename(&config, &target).unwrap();
    symlink("target", &config).unwrap();
    assert!(list(&folder, "").starts_with("exit 0\n"));
    lchown(&config, OTHER, None).unwrap();
    insta::assert_snapshot!(list(&folder, ""), @"
    exit 1
    --- out
    --- err
    error: the repository FOLDER is refused: FOLDER/.sc belongs to user 54321, neither to you (user 0) nor to root
      hint: its files name programs that `sc` runs. If you trust user 54321, run `sc` as that user, or set SUDO_UID=54321 to accept its files as root; else choose another folder with --cwd
    ");
}

/// Shows: server-yaml.md#files "Commands pass it by: one on all stacks says so in a line, none lists it, and one that names it is
///   refused."
#[test]
fn folder_of_a_client_stack_is_passed_by_with_a_line() {
    let folder = repository("reef", "hush", "");
    let client = folder.path().join(".sc/stacks/web");
    fs::create_dir(&client).unwrap();
    fs::write(client.join("client.yaml"), "schemaVersion: 1.0\n").unwrap();
    let check = |arguments: &[&str]| {
        let mut command = sc(arguments);
        command.current_dir(folder.path());
        run(command)
    };
    let passed_by = "info: passed by, as client stacks (a client.yaml and no server.yaml): web\n";
    for arguments in [&["validate", "--no-plugins"][..], &["stack", "ls"], &["plugin", "ls"], &["stack", "outputs"]] {
        let shown = check(arguments);
        assert_eq!(shown.matches(passed_by).count(), 1, "{arguments:?}: {shown}");
        assert_eq!(shown.matches("web").count(), 1, "{arguments:?}: {shown}");
    }
    assert!(check(&["validate", "--no-plugins"]).contains("1 stack, 0 resources: no mistakes"));
    assert!(!check(&["validate", "--no-plugins", "-s", "reef"]).contains("web"));
    insta::assert_snapshot!(check(&["preview", "-s", "web"]), @"
    exit 2
    --- out
    --- err
    error: web is a client stack: its folder has a client.yaml and no server.yaml
      hint: `sc` provisions stacks with a server.yaml; Simple Container's own program deploys client stacks
    ");
}
