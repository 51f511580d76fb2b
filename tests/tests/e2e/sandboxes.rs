//! Tests of plugins with `sandbox: strict`.

use std::fs;

use crate::repository::{Repository, Sections};

const PAIR: &str = "pair: { type: comp:index:Pair, config: { value: 1 } }
after: { type: rec:index:Thing, config: { v: '${resource:pair.last}' } }";

/// Plugin that quotes why a file cannot be read.
const READER: &str = "- { name: reader, source: { type: local, path: reader }, sandbox: strict }";

fn lines_of(output: &str, word: &str) -> String {
    output.lines().filter(|line| line.contains(word)).collect::<Vec<_>>().join("\n")
}

/// Each phase has another monitor, and the component plugin reaches both.
///
/// Shows: hosting.md#sandbox "and to the ports that `sc` has opened for it"
#[test]
fn strict_plugins_construct_components_and_write_only_where_they_may() {
    let plugins = "- { name: comp, source: { type: local, path: $COMP }, sandbox: strict }
- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR], sandbox: strict, writable: [rec] }";
    let sections = Sections { plugins, resources: PAIR, outputs: "last: '${resource:prod/pair.last}'" };
    let repository = Repository::new(sections);
    let output = repository.expect_exit(0, "provision --verbose");
    let loaded = lines_of(&output, "sandbox: strict");
    assert!(loaded.contains("comp") && loaded.contains("rec"), "{output}");
    let created = ["Create after--prod", "Create pair--prod-one", "Create pair--prod-two"];
    let mut calls = repository.change_calls(&mut 0);
    calls.sort();
    assert_eq!(calls, created);
    repository.expect_exit(0, "provision --expect-no-changes");
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(repository.resources().len(), 0);
    assert_eq!((repository.processes(), repository.names("tmp")), (Vec::new(), Vec::new()));
}

/// Shows: hosting.md#sandbox "`sc` names the key that allows it; for calls once, as a warning"
#[test]
fn file_outside_of_a_strict_sandbox_is_refused_and_the_keys_are_named() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(&outside, "s3cr3t").unwrap();
    let resources = "a: { type: reader:index:Thing }";
    let repository = Repository::new(Sections { plugins: READER, resources, outputs: "" });
    repository.write_script("reader", &format!("cat '{}' >&2; exit 1\n", outside.path().display()));
    let output = repository.expect_exit(1, "preview");
    for expected in ["Permission denied", "declare in `readable`, `writable` and `ports` what the plugin needs"] {
        assert!(output.contains(expected), "{output}");
    }
    assert!(!output.contains("s3cr3t"), "{output}");

    let declared =
        READER.replace("sandbox: strict", &format!("sandbox: strict, readable: ['{}']", outside.path().display()));
    repository.write_sections(Sections { plugins: &declared, resources, outputs: "" });
    let output = repository.expect_exit(1, "preview");
    assert!(output.contains("s3cr3t") && !output.contains("Permission denied"), "{output}");
}

/// The plugin is a file at the root of the repository, so that its folder contains them as well.
///
/// Shows: hosting.md#secret-files "A plugin with `strict` reads them only if `readable` or `writable` names them"
/// Shows: hosting.md#secret-files "so `sc` allows the entries beside them one by one at the start of the plugin"
#[test]
fn strict_plugin_reads_no_profile_no_store_and_no_secrets_of_stacks_unless_they_are_declared() {
    let secrets = [".sc/cfg.default.yaml", ".sc/cfg.other.yaml", ".sc/secrets.yaml", ".sc/stacks/reef/secrets.yaml"];
    let others = ["README.md", ".sc/notes", ".sc/stacks/reef/notes", "src/secrets.yaml"];
    let resources = "a: { type: reader:index:Thing }";
    let repository = Repository::new(Sections { plugins: READER, resources, outputs: "" });
    for path in others {
        repository.write(path, &format!("text of {path}\n"));
    }
    repository.write(".sc/cfg.other.yaml", "projectName: tank # s3cr3t\n");
    repository.write(".sc/cfg.default.yaml", "projectName: tank # s3cr3t\n");
    repository.write(".sc/stacks/reef/secrets.yaml", "schemaVersion: 1.0\nvalues: {} # s3cr3t\n");
    repository.write(".sc/secrets.yaml", "registry: { files: [] } # s3cr3t\nsecrets: {}\n");
    let files = [&secrets[..], &others].concat().join(" ");
    repository.write_script("reader", &format!("cat {files} >&2; ls -a . .sc >&2; exit 1\n"));
    let output = repository.expect_exit(1, "preview");
    assert!(!output.contains("s3cr3t"), "{output}");
    for path in secrets {
        assert!(output.contains(&format!("{path}: Permission denied")), "{path}: {output}");
    }
    for path in others {
        assert!(output.contains(&format!("text of {path}")), "{path}: {output}");
    }

    let declared = READER.replace("strict", "strict, readable: [.sc/cfg.other.yaml]");
    repository.write_sections(Sections { plugins: &declared, resources, outputs: "" });
    let output = repository.expect_exit(1, "preview");
    assert_eq!(output.matches("s3cr3t").count(), 1, "{output}");
}

#[test]
fn missing_path_of_a_strict_sandbox_is_named() {
    let plugins = READER.replace("sandbox: strict", "sandbox: strict, writable: [nowhere]");
    let repository = Repository::new(Sections { plugins: &plugins, resources: "", outputs: "" });
    repository.write_script("reader", "echo executed; exit 1\n");
    let output = repository.expect_exit(1, "preview");
    for expected in
        ["its sandbox cannot be applied: ", "nowhere, which `writable` names, does not exist", "create it, or leave it"]
    {
        assert!(output.contains(expected), "{output}");
    }
    assert!(!output.contains("executed"), "{output}");
}
