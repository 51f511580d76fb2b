//! Tests of `sc schema-gen`, with a check that the committed schemas are its output, and of a plugin with an invalid
//! schema.

use std::fs;
use std::path::Path;

use provisioner::registry::recipes;
use provisioner::schema;
use serde_json::json;
use tests::binaries;

use crate::repository::{Repository, Sections};

#[test]
fn committed_schemas_match_the_quick_start() {
    let repository = Repository::new(Sections::default());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = repository.path("schemas");
    let mut command = repository.command("");
    command.current_dir(root).arg("schema-gen").arg(&folder);
    command.env("QUICKSTART_PLUGINS", binaries::files_plugin().unwrap().parent().unwrap());
    let output = repository.start_command(command).output();
    assert!(output.starts_with("exit 0\n"), "{output}");
    for path in repository.names("schemas") {
        let committed = root.join(&path);
        let same = fs::read(&committed).is_ok_and(|bytes| bytes == fs::read(repository.path(&path)).unwrap());
        assert!(same, "{path} is out of date: run `cargo quickstart schema-gen schemas`");
    }
}

#[test]
fn only_changed_schemas_are_written() {
    let repository = Repository::new(Sections::default());
    let output = repository.expect_exit(0, "schema-gen out --core");
    let count = schema::files(&recipes::built_in_types(), None).len();
    let expected = format!("{count} schemas in [repo]/out, {count} of them changed\n");
    assert!(output.contains(&expected), "{output}");
    assert!(repository.expect_exit(0, "schema-gen out --core").contains("0 of them changed"));
    fs::write(repository.path("out/index.json"), "").unwrap();
    assert!(repository.expect_exit(0, "schema-gen out --core --json").contains(r#""changed":1"#));
    assert!(repository.processes().is_empty());
}

/// A plugin without a readable schema is rejected, as its secret properties are unknown.
///
/// Shows: server-yaml.md#plugins "If a plugin returns an error or an invalid schema, `sc` does not use the plugin"
#[test]
fn plugin_with_an_invalid_schema_is_rejected() {
    let plugins = "- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR] }";
    let resources = "a: { type: rec:index:Thing, config: { v: 1 } }";
    let repository = Repository::new(Sections { plugins, resources, outputs: "" });
    repository.script(json!({"provider": {"schema": "no schema"}}));
    let output = repository.expect_rejected("provision -S");
    let message = "error: the schema of plugin rec is invalid: expected ident at line 1 column";
    assert!(output.contains(message), "{output}");
    assert_eq!(repository.change_calls(&mut 0).len(), 0);
    repository.script(json!({"provider": {"schema": "{}"}}));
    repository.expect_exit(0, "provision -S");
}
