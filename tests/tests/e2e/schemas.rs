//! Tests of `sc schema-gen`: the committed schemas are its output. Also tests a plugin with an invalid schema.

use std::fs;
use std::path::Path;

use serde_json::json;
use tests::program;

use crate::repository::{Repository, Sections};
use crate::words::filtered;

#[test]
fn the_committed_schemas_are_those_of_the_quick_start() {
    let repository = Repository::new(Sections::default());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = repository.path("schemas");
    let mut command = repository.command("");
    command.current_dir(root).arg("schema-gen").arg(&folder);
    command.env("QUICKSTART_PLUGINS", program::files_plugin().unwrap().parent().unwrap());
    let told = repository.start_command(command).told();
    assert!(told.starts_with("exit 0\n"), "{told}");
    for path in repository.names("schemas") {
        let committed = root.join(&path);
        let same = fs::read(&committed).is_ok_and(|bytes| bytes == fs::read(repository.path(&path)).unwrap());
        assert!(same, "{path} is another one now: `cargo quickstart schema-gen schemas` writes it");
    }
}

#[test]
fn schemas_are_written_once_and_only_again_where_they_change() {
    let repository = Repository::new(Sections::default());
    let told = repository.ends(0, "schema-gen out --core");
    insta::assert_snapshot!(filtered(&told, &[(&repository.path(""), "[repo]/")]), @r"
    exit 0
    --- out
    10 schemas in [repo]/out, 10 of them changed
    --- err
    ");
    assert!(repository.ends(0, "schema-gen out --core").contains("0 of them changed"));
    fs::write(repository.path("out/index.json"), "").unwrap();
    assert!(repository.ends(0, "schema-gen out --core --json").contains(r#""changed":1"#));
    assert!(repository.processes().is_empty());
}

/// Without its schema, the secret properties of a plugin are unknown.
#[test]
fn a_plugin_whose_schema_cannot_be_read_is_not_worked_with() {
    let plugins = "- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR] }";
    let resources = "a: { type: rec:index:Thing, config: { v: 1 } }";
    let repository = Repository::new(Sections { plugins, resources, outputs: "" });
    repository.script(json!({"provider": {"schema": "no schema"}}));
    let told = repository.ends(1, "provision -S");
    let word = "error: the schema of plugin rec cannot be read: expected ident at line 1 column";
    assert!(told.contains(word), "{told}");
    assert_eq!((repository.deeds(&mut 0).len(), repository.resources().len()), (0, 1));
    repository.script(json!({"provider": {"schema": "{}"}}));
    repository.ends(0, "provision -S");
}
