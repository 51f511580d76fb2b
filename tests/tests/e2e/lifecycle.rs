//! Tests of the lifecycle of a stack with the example plugin.

use std::fs;

use crate::repository::{FILES, PROVISIONER, REC, Repository, Sections};

const PAGE: &str = "page: { type: files:fs:File, config: { path: a, content: one } }";

fn sections(resources: &str) -> Sections<'_> {
    Sections { plugins: FILES, resources, outputs: "" }
}

fn provisioned(resources: &str) -> Repository {
    let repository = Repository::new(sections(resources));
    repository.expect_exit(0, "provision --parallel 1");
    repository
}

#[test]
fn preview_writes_nothing_to_disk() {
    let repository = Repository::new(sections(PAGE));
    let before = repository.files(".");
    for command in ["preview", "provision -P", "preview --json", "provision --preview -R --diff=false"] {
        repository.expect_exit(0, command);
        assert_eq!(repository.files("."), before, "{command}");
    }
    repository.expect_exit(7, "preview --expect-no-changes");
    assert_eq!(repository.files("."), before);
    assert!(!repository.path("backend/.pulumi").exists());
    assert!(repository.expect_exit(0, "stack ls").contains("reef   tank     -"));

    repository.expect_exit(0, "provision");
    let before = repository.files(".");
    repository.write_sections(sections(&PAGE.replace("one", "two")));
    let server = repository.read(".sc/stacks/reef/server.yaml");
    repository.expect_exit(0, "preview");
    repository.expect_exit(0, "destroy --parent --preview");
    repository.write_sections(sections(PAGE));
    assert_eq!(repository.files("."), before);
    assert!(server.contains("two"));
}

#[test]
fn resource_is_created_unchanged_updated_and_deleted() {
    let repository = Repository::new(sections(PAGE));
    insta::assert_snapshot!(repository.sc("provision -S --parallel 1"), @r#"
    exit 0
    --- out
    + tank-reef      Stack                   created [time]
    + ├─ files       pulumi:providers:files  created [time]
      │     + root: "site"
    + └─ page--prod  files:fs:File           created [time]
            + content: "one"
            + mode: "0644"
            + path: "a"

    Update of reef done in [time]: 3 created
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      + created tank-reef (Stack) ([time])
      + created files (pulumi:providers:files) ([time])
      + created page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.read("site/a"), "one");
    insta::assert_snapshot!(repository.sc("provision"), @r"
    exit 0
    --- out
    No changes: all 3 resources of reef are unchanged ([time])
    --- err
    info: Loaded plugin: files v0.1.0
    ");
    repository.expect_exit(0, "provision --expect-no-changes");
    repository.write_sections(sections(&PAGE.replace("one", "two")));
    repository.expect_exit(7, "preview --expect-no-changes");
    insta::assert_snapshot!(repository.sc("provision -S -R"), @r#"
    exit 0
    --- out
      tank-reef      Stack
    ~ └─ page--prod  files:fs:File  updated [time]
            ~ content: "one" → "two"

    Update of reef done in [time]: 1 updated, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      ~ updated page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.read("site/a"), "two");
    repository.write_sections(sections(""));
    insta::assert_snapshot!(repository.sc("provision -S -R"), @r#"
    exit 0
    --- out
      tank-reef      Stack
    - └─ page--prod  files:fs:File  deleted [time]
            - content: "two"
            - mode: "0644"
            - path: "a"

    Update of reef done in [time]: 1 deleted, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      - deleted page--prod (files:fs:File) ([time])
    "#);
    assert!(!repository.path("site/a").exists());
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    files pulumi:providers:files [id]
    ");
}

#[test]
fn replacement_is_created_first_unless_delete_before_replace() {
    let repository = provisioned(PAGE);
    repository.write_sections(sections(&PAGE.replace("path: a", "path: b")));
    insta::assert_snapshot!(repository.sc("provision -S -R"), @r#"
    exit 0
    --- out
      tank-reef      Stack
    ± └─ page--prod  files:fs:File  replaced [time]
            ~ path: "a" → "b" [replaces]

    Update of reef done in [time]: 1 replaced, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      ± replaced page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.names("site"), ["site/b"]);
    let first = PAGE.replace("path: a", "path: c").replace(" } }", " }, options: { deleteBeforeReplace: true } }");
    repository.write_sections(sections(&first));
    insta::assert_snapshot!(repository.sc("provision -S -R"), @r#"
    exit 0
    --- out
      tank-reef      Stack
    ± └─ page--prod  files:fs:File  replaced [time]
            ~ path: "b" → "c" [replaces]

    Update of reef done in [time]: 1 replaced, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      ± replaced page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.names("site"), ["site/c"]);
}

#[test]
fn drift_is_detected_and_corrected() {
    let repository = provisioned(PAGE);
    fs::write(repository.path("site/a"), "tampered").unwrap();
    repository.expect_exit(0, "preview -R --expect-no-changes");
    repository.expect_exit(7, "preview --expect-no-changes");
    insta::assert_snapshot!(repository.sc("provision"), @r#"
    exit 0
    --- out
      tank-reef      Stack
    ~ └─ page--prod  files:fs:File  updated [time]
            ~ content: "one" → "tampered"
            ~ sha256:
              - "[id]"
              + "[id]"
            ~ size: 3 → 8

    Refresh of reef done in [time]: 1 updated, 2 unchanged
      tank-reef      Stack
    ~ └─ page--prod  files:fs:File  update     changed outside
            ~ content: "tampered" → "one"

    Preview of reef done in [time]: 1 to update, 2 unchanged
    Update of reef done in [time]: 1 updated, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Refreshing reef
    Previewing update of reef
    Updating reef
      ~ updated page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.read("site/a"), "one");
    fs::remove_file(repository.path("site/a")).unwrap();
    insta::assert_snapshot!(repository.sc("refresh --yes"), @r"
    exit 0
    --- out
      tank-reef      Stack
    - └─ page--prod  files:fs:File  missing [time]

    Refresh of reef done in [time]: 1 missing, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Refreshing reef
    ");
    insta::assert_snapshot!(repository.sc("provision -S"), @r#"
    exit 0
    --- out
      tank-reef      Stack
    + └─ page--prod  files:fs:File  created [time]
            + content: "one"
            + mode: "0644"
            + path: "a"

    Update of reef done in [time]: 1 created, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      + created page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.read("site/a"), "one");
}

#[test]
fn refresh_completes_before_the_program_runs() {
    let names: Vec<String> = (0..12).map(|n| format!("t{n}")).collect();
    let things: String =
        names.iter().map(|name| format!("{name}: {{ type: rec:index:Thing, config: {{ v: 1 }} }}\n")).collect();
    let repository = Repository::new(Sections { plugins: REC, resources: &things, outputs: "" });
    repository.expect_exit(0, "provision -S");
    let drift: serde_json::Map<_, _> =
        names.iter().map(|name| (format!("{name}--prod"), serde_json::json!({"drift": {"v": 2}}))).collect();
    repository.script(serde_json::json!({ "resources": drift }));
    let output = repository.expect_exit(7, "preview --expect-no-changes");
    assert!(output.contains("12 to update, 2 unchanged"), "{output}");
    let output = repository.expect_exit(0, "provision -S");
    assert!(output.contains("12 updated, 2 unchanged"), "{output}");
}

/// Shows: comparison.md#for-pulumi-users "`--parent` is required, as in Simple Container; the empty stack stays"
#[test]
fn destroy_deletes_dependents_first_and_keeps_the_empty_stack() {
    let repository = provisioned(
        "folder: { type: files:fs:Directory, config: { path: docs } }
page: { type: files:fs:File, config: { path: '${resource:folder.path}/a', content: one } }",
    );
    assert_eq!(repository.names("site"), ["site/docs/a"]);
    assert!(repository.expect_rejected("destroy --parent").starts_with("exit 2\n"));
    insta::assert_snapshot!(repository.sc("destroy --parent --yes"), @r"
    exit 0
    --- out
    - tank-reef        Stack                   delete
    - ├─ files         pulumi:providers:files  delete
    - ├─ folder--prod  files:fs:Directory      delete
    - └─ page--prod    files:fs:File           delete

    Preview of reef done in [time]: 4 to delete
    Destroy of reef done in [time]: 4 deleted
    --- err
    info: Loaded plugin: files v0.1.0
    Previewing destroy of reef
    Destroying reef
      - deleted page--prod (files:fs:File) ([time])
      - deleted folder--prod (files:fs:Directory) ([time])
      - deleted files (pulumi:providers:files) ([time])
      - deleted tank-reef (Stack) ([time])
    ");
    assert!(!repository.path("site/docs").exists());
    assert!(repository.resources().is_empty());
    insta::assert_snapshot!(repository.sc("destroy --parent --yes"), @r"
    exit 0
    --- out
    No changes: reef has no resources ([time])
    --- err
    info: Loaded plugin: files v0.1.0
    ");
    insta::assert_snapshot!(repository.sc("stack outputs"), @r#"
    exit 0
    --- out
    {"stackName":"organization/tank/reef","outputs":{}}
    --- err
    "#);
    insta::assert_snapshot!(repository.sc("refresh --yes"), @r"
    exit 0
    --- out
    No changes: reef has no resources ([time])
    --- err
    info: Loaded plugin: files v0.1.0
    ");
}

#[test]
fn inheriting_stack_is_provisioned_after_its_parent() {
    let repository = Repository::new(sections(PAGE));
    let shore = "shore: { type: files:fs:File, config: { path: shore, content: '${stack:name}' } }";
    repository.write_stack("atoll", "provisioner: { inherit: reef }\n", sections(shore));
    insta::assert_snapshot!(repository.sc("provision -S --parallel 1"), @r#"
    exit 0
    --- out
    + tank-reef      Stack                   created [time]
    + ├─ files       pulumi:providers:files  created [time]
      │     + root: "site"
    + └─ page--prod  files:fs:File           created [time]
            + content: "one"
            + mode: "0644"
            + path: "a"

    Update of reef done in [time]: 3 created
    + tank-atoll      Stack                   created [time]
    + ├─ files        pulumi:providers:files  created [time]
      │     + root: "site"
    + └─ shore--prod  files:fs:File           created [time]
            + content: "atoll"
            + mode: "0644"
            + path: "shore"

    Update of atoll done in [time]: 3 created
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      + created tank-reef (Stack) ([time])
      + created files (pulumi:providers:files) ([time])
      + created page--prod (files:fs:File) ([time])
    Updating atoll
      + created tank-atoll (Stack) ([time])
      + created files (pulumi:providers:files) ([time])
      + created shore--prod (files:fs:File) ([time])
    info: 2 stacks done in [time]: 6 created
    "#);
    assert_eq!(repository.read("site/shore"), "atoll");
    // The width of the column with the ages varies.
    let without_padding = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let stacks: Vec<_> = repository.sc("stack ls").lines().map(without_padding).collect();
    insta::assert_snapshot!(stacks.join("\n"), @r"
    exit 0
    --- out
    STACK PROJECT RESOURCES UPDATED STATUS
    reef tank 3 [age] -
    atoll tank 3 [age] -
    --- err
    ");
    repository.expect_exit(2, "destroy --parent --yes");
    repository.expect_exit(0, "destroy --parent --yes -s reef");
    assert_eq!(repository.names("site"), ["site/shore"]);
}

#[test]
fn protected_resources_are_kept() {
    let protected = PAGE.replace(" } }", " }, options: { protect: true } }");
    let repository = provisioned(&protected);
    insta::assert_snapshot!(repository.sc("destroy --parent --yes"), @r"
    exit 1
    --- out
      tank-reef      Stack
    ✗ └─ page--prod  files:fs:File  failed     page--prod is protected and cannot be deleted

    Preview of reef failed after [time]: 1 failed
    --- err
    info: Loaded plugin: files v0.1.0
    Previewing destroy of reef
    error: page--prod (files:fs:File): page--prod is protected and cannot be deleted
      hint: run `sc state unprotect page--prod`, or set `protect: false` in server.yaml and provision, then delete it
    ");
    repository.write_sections(sections(&protected.replace("path: a", "path: b")));
    insta::assert_snapshot!(repository.sc("provision -S -R"), @r"
    exit 1
    --- out
      tank-reef      Stack
    ✗ └─ page--prod  files:fs:File  failed [time]     page--prod would be replaced, and is protected

    Update of reef failed after [time]: 1 failed, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
    error: page--prod (files:fs:File): page--prod would be replaced, and is protected
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         page: { type: files:fs:File, config: { path: b, content: one }, options: { protect: true } }
         |         ^^^^
      hint: remove `protect` from the resource, or undo the change that replaces it
    ");
    repository.write_sections(sections(""));
    insta::assert_snapshot!(repository.sc("provision -S -R"), @r#"
    exit 1
    --- out
      tank-reef      Stack
    ✗ └─ page--prod  files:fs:File  failed [time]
            - content: "one"
            - mode: "0644"
            - path: "a"

    Update of reef failed after [time]: 1 failed, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
    error: page--prod (files:fs:File): page--prod is protected and cannot be deleted
      hint: run `sc state unprotect page--prod`, or set `protect: false` in server.yaml and provision, then delete it
    "#);
    assert_eq!(repository.names("site"), ["site/a"]);
    repository.write_sections(sections(PAGE));
    repository.expect_exit(0, "provision");
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(repository.names("site"), [""; 0]);
}

#[test]
fn retain_on_delete_removes_only_the_state_entry() {
    let repository = provisioned(&PAGE.replace(" } }", " }, options: { retainOnDelete: true } }"));
    repository.write_sections(sections(""));
    repository.expect_exit(0, "provision");
    assert_eq!(repository.names("site"), ["site/a"]);
    assert_eq!(repository.resources().len(), 2);
}

#[test]
fn import_option_imports_and_then_updates_the_resource() {
    let repository = Repository::new(sections(""));
    repository.write("site/a", "one");
    let import = |content: &str| {
        format!("page: {{ type: files:fs:File, config: {{ path: a, content: {content} }}, options: {{ import: a }} }}")
    };
    repository.write_sections(sections(&import("two")));
    insta::assert_snapshot!(repository.sc("provision -S"), @r#"
    exit 0
    --- out
    + tank-reef      Stack                   created [time]
    + ├─ files       pulumi:providers:files  created [time]
      │     + root: "site"
    ~ └─ page--prod  files:fs:File           updated [time]
            ~ content: "one" → "two"

    Update of reef done in [time]: 2 created, 1 updated, 1 imported
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      + created tank-reef (Stack) ([time])
      + created files (pulumi:providers:files) ([time])
      = imported page--prod (files:fs:File) ([time])
      ~ updated page--prod (files:fs:File) ([time])
    "#);
    repository.write_sections(sections(&import("one")));
    insta::assert_snapshot!(repository.sc("provision -S --parallel 1"), @r#"
    exit 0
    --- out
      tank-reef      Stack
    ~ └─ page--prod  files:fs:File  updated [time]
            ~ content: "two" → "one"

    Update of reef done in [time]: 1 updated, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
      ~ updated page--prod (files:fs:File) ([time])
    "#);
    repository.expect_exit(0, "provision --expect-no-changes");
    assert_eq!(repository.read("site/a"), "one");
}

#[test]
fn alias_keeps_a_renamed_resource() {
    let repository = provisioned(PAGE);
    repository.write_sections(sections("leaf: { type: files:fs:File, config: { path: a, content: one } }"));
    let preview = repository.expect_exit(0, "preview");
    assert!(preview.contains("give it `options: { aliases: [{ name: \"page--prod\" }] }`"), "{preview}");
    let renamed = "leaf: { type: files:fs:File, config: { path: a, content: one }, options: { aliases: [{ name: page--prod }] } }";
    repository.write_sections(sections(renamed));
    assert!(
        repository
            .expect_exit(0, "preview")
            .contains("leaf--prod  files:fs:File  rename     renamed from page--prod\n")
    );
    assert!(repository.expect_exit(0, "provision --expect-no-changes").contains("1 renamed, 2 unchanged"));
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    files pulumi:providers:files [id]
    leaf--prod files:fs:File a
    ");
}

#[test]
fn ignore_changes_prevents_an_update() {
    let repository = provisioned(PAGE);
    repository.write_sections(sections(
        &PAGE.replace("one", "two").replace(" } }", " }, options: { ignoreChanges: [content] } }"),
    ));
    repository.expect_exit(0, "provision --expect-no-changes");
    assert_eq!(repository.read("site/a"), "one");
}

#[test]
fn depends_on_orders_create_and_delete() {
    let repository = Repository::new(sections(
        "page: { type: files:fs:File, config: { path: docs/a, content: one }, options: { dependsOn: [folder] } }
folder: { type: files:fs:Directory, config: { path: docs } }",
    ));
    repository.expect_exit(0, "provision");
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(repository.names("site"), [""; 0]);
}

/// Shows: events.md#events-as-json-lines "every command writes each event as one line to standard output, and writes
///   nothing else there"
#[test]
fn json_events_are_printed_only_to_standard_output() {
    let repository = Repository::new(sections(PAGE));
    let ended = repository.start("provision --json").wait();
    assert_eq!((ended.status.as_str(), ended.stderr.as_str()), ("exit 0", ""));
    let events: Vec<serde_json::Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"step-succeeded") && kinds.contains(&"phase-ended"), "{kinds:?}");
    assert!(events.iter().all(|event| event["time"].is_string()));

    let ended = repository.start("provision --json -s reed").wait();
    assert_eq!(ended.status, "exit 2");
    let repository = Repository::new(sections("page: { type: files:fs:File, config: { path: ../a, content: one } }"));
    let ended = repository.start("provision --json").wait();
    assert_eq!(ended.status, "exit 1");
    let events: Vec<serde_json::Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let message = events.iter().find(|event| event["severity"] == "error").unwrap();
    assert_eq!(message["property"], "path");
    assert_eq!(message["place"], ".sc/stacks/reef/server.yaml:13:48");
}

#[test]
fn state_is_stored_at_the_configured_path() {
    let repository = Repository::new(Sections::default());
    let elsewhere = PROVISIONER.replace("file://backend", "file://over/there?create_dir=true");
    repository.write_stack("reef", &elsewhere, sections(PAGE));
    repository.expect_exit(0, "provision");
    assert!(repository.path("over/there/.pulumi/stacks/tank/reef.json").exists());
    assert!(repository.names("backend").is_empty());
}

#[test]
fn run_program_refreshes_and_destroys_with_the_current_provider_configuration() {
    let described = |zone: &str| {
        format!(
            "- {{ name: rec, source: {{ type: local, path: $REC }}, passEnv: [REC_DIR], config: {{ zone: {zone} }} }}"
        )
    };
    let thing = "a: { type: 'rec:index:Thing', config: { v: 1 } }";
    let repository = Repository::new(Sections { plugins: &described("n"), resources: thing, outputs: "" });
    repository.expect_exit(0, "provision --parallel 1");
    repository.write_sections(Sections { plugins: &described("s"), resources: thing, outputs: "" });
    repository.script(serde_json::json!({ "resources": { "a--prod": { "drift": { "v": 2 } } } }));
    insta::assert_snapshot!(repository.sc("refresh --run-program --yes --parallel 1"), @r#"
    exit 0
    --- out
      tank-reef   Stack
    ~ ├─ rec      pulumi:providers:rec  updated [time]
      │     ~ zone: "n" → "s"
    ~ └─ a--prod  rec:Thing             updated [time]
            ~ out: "o:1" → "o:2"
            ~ v: 1 → 2

    Refresh of reef done in [time]: 2 updated, 1 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Refreshing reef
      ~ updated rec (pulumi:providers:rec) ([time])
    "#);
    repository.script(serde_json::json!({}));
    repository.write_sections(Sections { plugins: &described("t"), resources: thing, outputs: "" });
    insta::assert_snapshot!(repository.sc("destroy --parent --run-program --yes --parallel 1"), @r"
    exit 0
    --- out
    - tank-reef   Stack                 delete
    - ├─ rec      pulumi:providers:rec  delete
    - └─ a--prod  rec:Thing             delete

    Preview of reef done in [time]: 1 to update, 3 to delete, 2 unchanged
    Destroy of reef done in [time]: 1 updated, 3 deleted, 2 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing destroy of reef
    Destroying reef
      ~ updated rec (pulumi:providers:rec) ([time])
      - deleted a--prod (rec:Thing) ([time])
      - deleted rec (pulumi:providers:rec) ([time])
      - deleted tank-reef (Stack) ([time])
    ");
}
