//! Tests of `sc init`.

use std::fs;

use crate::{run, sc};

fn check(folder: &tempfile::TempDir, arguments: &[&str]) -> String {
    let mut command = sc(arguments);
    command.current_dir(folder.path());
    run(command).replace(&*folder.path().canonicalize().unwrap().to_string_lossy(), "FOLDER")
}

/// Shows: server-yaml.md#files "writes a profile, a `server.yaml` from a template"
/// Shows: server-yaml.md#files "It overwrites no file."
#[test]
fn files_are_written_once_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".gitignore"), "/target\n.sc/state").unwrap();
    insta::assert_snapshot!(check(&folder, &["init"]), @"
    exit 0
    --- out
    wrote .sc/cfg.default.yaml
    wrote .sc/stacks/main/server.yaml
    wrote schemas/server.schema.json
    extended .gitignore
    --- err
    next:
      export PULUMI_CONFIG_PASSPHRASE=…     chooses the passphrase of the secrets in the state
      sc plugin install                     downloads the plugin, and prints the checksum that pins it
      sc preview                            shows the changes
      sc provision                          makes them
      sc schema-gen schemas                 adds the types of plugins to the JSON Schema for editors
    ");
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(read(".gitignore"), "/target\n.sc/state\n/.sc/stacks/*/secrets.yaml\n");
    assert!(read(".sc/cfg.default.yaml").starts_with("projectName: "));
    fs::write(folder.path().join(".sc/stacks/main/server.yaml"), "mine\n").unwrap();
    insta::assert_snapshot!(check(&folder, &["init", "--template", "aws", "--json"]), @r#"
    exit 0
    --- out
    {"root":"FOLDER","written":[],"extended":[],"kept":[".sc/cfg.default.yaml",".sc/stacks/main/server.yaml","schemas/server.schema.json",".gitignore"]}
    --- err
    "#);
    assert_eq!(read(".sc/stacks/main/server.yaml"), "mine\n");
    for stack in ["a/b", "..", "", "a b"] {
        let refused = check(&folder, &["init", "--stack", stack]);
        assert!(refused.starts_with("exit 2\n"), "{stack:?}: {refused}");
    }
    assert_eq!(fs::read_dir(folder.path().join(".sc/stacks")).unwrap().count(), 1);
}

/// Shows: server-yaml.md#files "`sc` reads each template without a diagnostic."
#[test]
fn every_template_is_read_without_a_diagnostic() {
    for template in ["random", "local", "aws", "gcp", "empty"] {
        let folder = tempfile::tempdir().unwrap();
        assert!(check(&folder, &["init", "-t", template]).starts_with("exit 0\n"));
        let listed = check(&folder, &["plugin", "ls", "--json"]);
        assert!(listed.starts_with("exit 0\n") && listed.ends_with("--- err\n"), "{template}: {listed}");
        let location = match template {
            "empty" => continue,
            "local" => "plugins/pulumi-resource-files".to_owned(),
            name => format!("pulumi/pulumi-{name}"),
        };
        assert!(listed.contains(&format!("\"location\":\"{location}\"")), "{listed}");
    }
}

#[test]
fn empty_template_can_be_previewed() {
    let folder = tempfile::tempdir().unwrap();
    check(&folder, &["init", "-t", "empty"]);
    let mut command = sc(&["preview"]);
    command.current_dir(folder.path()).env("PULUMI_CONFIG_PASSPHRASE", "low tide").env("HOME", folder.path());
    let previewed = run(command);
    assert!(previewed.starts_with("exit 0\n"), "{previewed}");
}

/// Shows: server-yaml.md#files "`local` runs where nothing else is installed and without a network"
#[test]
fn local_template_is_provisioned_where_nothing_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    assert!(check(&folder, &["init", "-t", "local"]).starts_with("exit 0\n"));
    let path = |name: &str| folder.path().join(name);
    let schema = fs::read_to_string(path("schemas/server.schema.json")).unwrap();
    assert!(schema.contains("server.yaml of Simple Container"));
    let provision = |arguments: &[&str]| {
        let mut command = sc(arguments);
        command.current_dir(folder.path()).env("PULUMI_CONFIG_PASSPHRASE", "low tide").env("HOME", folder.path());
        run(command)
    };
    let provisioned = provision(&["provision", "--yes"]);
    assert!(provisioned.starts_with("exit 0\n"), "{provisioned}");
    assert_eq!(fs::read_to_string(path("site/main/greeting.txt")).unwrap(), "Hello from the stack main.\n");
    assert!(fs::read_to_string(path("site/main/login")).unwrap().starts_with("admin:"));
    let again = provision(&["preview", "--expect-no-changes"]);
    assert!(again.starts_with("exit 0\n"), "{again}");
    assert!(provision(&["destroy", "--parent", "--yes"]).starts_with("exit 0\n"));
    assert!(!path("site/main/greeting.txt").exists());
}

#[test]
fn profile_of_init_gets_keys_from_secrets_init() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    check(&folder, &["init", "-t", "empty"]);
    let profile = folder.path().join(".sc/cfg.default.yaml");
    fs::write(&profile, "# of the team\nprojectName: reef").unwrap();
    insta::assert_snapshot!(check(&folder, &["secrets", "init", "-g"]), @"
    exit 0
    --- out
    --- err
    wrote .gitignore
    added the keys to .sc/cfg.default.yaml
    wrote .sc/cfg.yaml.template
    ");
    assert!(fs::read_to_string(&profile).unwrap().starts_with("# of the team\nprojectName: reef\nprivateKey: |\n"));
    let refused = check(&folder, &["secrets", "init", "-g"]);
    assert!(refused.starts_with("exit 1\n") && refused.contains("was not overwritten"), "{refused}");
    assert!(check(&folder, &["validate"]).starts_with("exit 0\n"));
}

#[test]
fn commands_on_secrets_warn_of_profiles_that_differ() {
    let folder = tempfile::tempdir().unwrap();
    check(&folder, &["init", "-t", "empty"]);
    fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: reef\n").unwrap();
    fs::write(folder.path().join(".sc/cfg.ci.yaml"), "projectName: reef-ci\n").unwrap();
    for arguments in [&["secrets", "list"][..], &["secrets", "allowed-keys", "-p", "ci"]] {
        let printed = check(&folder, arguments);
        assert!(printed.starts_with("exit 0\n"), "{printed}");
        assert!(printed.contains("other profiles of the repository have others"), "{arguments:?}: {printed}");
    }
}

#[test]
fn schema_is_generated_from_files_with_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    check(&folder, &["init", "-t", "empty"]);
    let server = folder.path().join(".sc/stacks/main/server.yaml");
    let text = fs::read_to_string(&server).unwrap() + "colour: blue\n";
    fs::write(&server, text).unwrap();
    let printed = check(&folder, &["schema-gen", "schemas"]);
    assert!(printed.starts_with("exit 0\n") && printed.contains("server.yaml has no key `colour`"), "{printed}");
}

/// Shows: server-yaml.md#files "A new profile has the project and the folder of stacks of the repository's profiles"
#[test]
fn new_profile_has_the_project_of_the_other_profiles() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path(".sc")).unwrap();
    fs::write(path(".sc/cfg.yaml.template"), "projectName: <name>").unwrap();
    fs::write(path(".sc/cfg.broken.yaml"), "projectName: [").unwrap();
    fs::write(path(".sc/cfg.staging.yaml"), "projectName: \"1.30\"\nstacksDir: ./deploy/\n").unwrap();
    insta::assert_snapshot!(check(&folder, &["init", "-t", "empty", "-p", "ci"]), @"
    exit 0
    --- out
    wrote .sc/cfg.ci.yaml, with the project of .sc/cfg.staging.yaml
    wrote ./deploy/main/server.yaml
    wrote schemas/server.schema.json
    wrote .gitignore
    --- err
    next:
      export PULUMI_CONFIG_PASSPHRASE=…     chooses the passphrase of the secrets in the state
      sc preview -p ci                      shows the changes
      sc provision -p ci                    makes them
      sc schema-gen schemas -p ci           adds the types of plugins to the JSON Schema for editors
    ");
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    assert_eq!(read(".sc/cfg.ci.yaml"), "projectName: \"1.30\"\nstacksDir: ./deploy/\n");
    assert!(read("deploy/main/server.yaml").starts_with("# yaml-language-server: $schema=../../schemas/"));
    assert_eq!(read(".gitignore"), "/.sc/state/\n/deploy/*/secrets.yaml\n");
    let keys = check(&folder, &["secrets", "init", "-g"]);
    assert!(keys.contains("wrote .sc/cfg.default.yaml, with the project of .sc/cfg.ci.yaml\n"), "{keys}");
    assert!(read(".sc/cfg.default.yaml").starts_with("projectName: \"1.30\"\nstacksDir: ./deploy/\nprivateKey: |\n"));
    fs::remove_file(path(".sc/cfg.yaml.template")).unwrap();
    fs::remove_file(path(".sc/cfg.default.yaml")).unwrap();
    check(&folder, &["secrets", "init", "-g"]);
    assert!(read(".sc/cfg.yaml.template").starts_with("projectName: \"1.30\"\nstacksDir: ./deploy/\nprivateKeyPath: "));
}

/// Shows: server-yaml.md#files "Each command on stacks warns if the profile that it uses has another project or another folder of stacks
/// than others of the repository"
/// Shows: server-yaml.md#files "also if the profile comes from `SIMPLE_CONTAINER_CONFIG`"
#[test]
fn profiles_that_differ_are_a_warning_of_each_command() {
    let folder = tempfile::tempdir().unwrap();
    check(&folder, &["init", "-t", "empty"]);
    let path = |name: &str| folder.path().join(name);
    fs::write(path(".sc/cfg.default.yaml"), "projectName: reef\n").unwrap();
    fs::write(path(".sc/cfg.ci.yaml"), "projectName: reef\nstacksDir: ./.sc/stacks/\n").unwrap();
    assert!(check(&folder, &["validate"]).ends_with("--- err\n"));
    fs::write(path(".sc/cfg.ci.yaml"), "projectName: reef-ci\nprivateKey: hidden\nstacksDir: deploy\n").unwrap();
    fs::write(path(".sc/cfg.next.yaml"), "privateKeyPath: hidden\n").unwrap();
    insta::assert_snapshot!(check(&folder, &["validate"]), @r#"
    exit 0
    --- out
    1 stack, 0 resources: no mistakes, 2 warnings
    --- err
    warning[profile]: the profile "default" has its stacks in ".sc/stacks", and other profiles of the repository elsewhere: "ci" has "deploy"
     |
     = hint: a command sees the stacks of its own profile only; write the same `stacksDir` into all profiles

    warning[profile]: the profile "default" has the project "reef", and other profiles of the repository have others: "ci" has "reef-ci"
    --> .sc/cfg.default.yaml:1:14
     = hint: each project has states of its own: a command with another project creates everything again; write the same `projectName` into all profiles
    "#);
    fs::write(path(".sc/cfg.ci.yaml"), "projectName: reef-ci\nprivateKey: hidden\n").unwrap();
    for arguments in
        [&["validate", "-p", "ci"][..], &["preview"], &["stack", "ls"], &["plugin", "ls"], &["state", "ls"]]
    {
        let printed = check(&folder, arguments);
        assert!(printed.contains("other profiles of the repository have others"), "{arguments:?}: {printed}");
        assert!(!printed.contains("hidden"), "{printed}");
    }
    for file in [".sc/cfg.default.yaml", ".sc/cfg.yaml.template"] {
        for other in [".sc/cfg.default.yaml", ".sc/cfg.ci.yaml", ".sc/cfg.next.yaml"] {
            fs::remove_file(path(other)).unwrap_or_default();
        }
        fs::write(path(file), "projectName: reef\n").unwrap();
        let mut command = sc(&["validate"]);
        command.current_dir(folder.path()).env("SIMPLE_CONTAINER_CONFIG", "projectName: reff\n");
        let printed = run(command);
        assert!(printed.contains("the profile \"default\" has the project \"reff\", and other profiles"), "{printed}");
    }
}

#[test]
fn links_that_lead_out_of_the_repository_are_not_written_through() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = elsewhere.path().join("bashrc");
    fs::write(&place, "alias ll=ls").unwrap();
    std::os::unix::fs::symlink(&place, folder.path().join(".gitignore")).unwrap();
    let printed = check(&folder, &["init"]);
    assert!(printed.starts_with("exit 1\n") && printed.contains("a link leads out of"), "{printed}");
    assert_eq!(fs::read_to_string(&place).unwrap(), "alias ll=ls");
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(".sc")).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    for arguments in [&["init"][..], &["secrets", "init", "-g"]] {
        let printed = check(&folder, arguments);
        assert!(printed.starts_with("exit 1\n"), "{arguments:?}: {printed}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1, "{arguments:?}");
    }
}
