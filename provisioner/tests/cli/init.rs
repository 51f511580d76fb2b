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
    extended .gitignore
    --- err
    next:
      export PULUMI_CONFIG_PASSPHRASE=…     chooses the passphrase of the secrets in the state
      sc plugin install                     downloads the plugin, and prints the checksum that pins it
      sc preview                            shows the changes
      sc provision                          makes them
      sc schema-gen schemas                 writes the JSON Schema for editors
    ");
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(read(".gitignore"), "/target\n.sc/state\n/.sc/stacks/*/secrets.yaml\n");
    assert!(read(".sc/cfg.default.yaml").starts_with("projectName: "));
    fs::write(folder.path().join(".sc/stacks/main/server.yaml"), "mine\n").unwrap();
    insta::assert_snapshot!(check(&folder, &["init", "--template", "aws", "--json"]), @r#"
    exit 0
    --- out
    {"root":"FOLDER","written":[],"extended":[],"kept":[".sc/cfg.default.yaml",".sc/stacks/main/server.yaml",".gitignore"]}
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
    for template in ["random", "aws", "gcp", "empty"] {
        let folder = tempfile::tempdir().unwrap();
        assert!(check(&folder, &["init", "-t", template]).starts_with("exit 0\n"));
        let listed = check(&folder, &["plugin", "ls", "--json"]);
        assert!(listed.starts_with("exit 0\n") && listed.ends_with("--- err\n"), "{template}: {listed}");
        assert_eq!(listed.contains(&format!("\"location\":\"pulumi/pulumi-{template}\"")), template != "empty");
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
