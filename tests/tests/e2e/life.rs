//! Tests of the life of a stack with the example plugin.

use std::fs;

use crate::repository::{FILES, PROVISIONER, REC, Repository, Sections};

const PAGE: &str = "page: { type: files:fs:File, config: { path: a, content: one } }";

fn sections(resources: &str) -> Sections<'_> {
    Sections { plugins: FILES, resources, outputs: "" }
}

fn provisioned(resources: &str) -> Repository {
    let repository = Repository::new(sections(resources));
    repository.ends(0, "provision --parallel 1");
    repository
}

#[test]
fn a_preview_leaves_nothing_on_the_disk() {
    let repository = Repository::new(sections(PAGE));
    let before = repository.files(".");
    for command in ["preview", "provision -P", "preview --json", "provision --preview -R --diff=false"] {
        repository.ends(0, command);
        assert_eq!(repository.files("."), before, "{command}");
    }
    repository.ends(7, "preview --expect-no-changes");
    assert_eq!(repository.files("."), before);
    assert!(!repository.path("backend/.pulumi").exists());
    assert!(repository.ends(0, "stack ls").contains("reef   tank     -"));

    repository.ends(0, "provision");
    let before = repository.files(".");
    repository.describe(sections(&PAGE.replace("one", "two")));
    let server = repository.read(".sc/stacks/reef/server.yaml");
    repository.ends(0, "preview");
    repository.ends(0, "destroy --parent --preview");
    repository.describe(sections(PAGE));
    assert_eq!(repository.files("."), before);
    assert!(server.contains("two"));
}

#[test]
fn a_resource_is_created_kept_updated_and_deleted() {
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
      + creating tank-reef (Stack)
      + created tank-reef (Stack) ([time])
      + creating files (pulumi:providers:files)
      + created files (pulumi:providers:files) ([time])
      + creating page--prod (files:fs:File)
      + created page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.read("site/a"), "one");
    insta::assert_snapshot!(repository.sc("provision"), @r"
    exit 0
    --- out
    Refresh of reef done in [time]: 3 unchanged
    Preview of reef done in [time]: 3 unchanged
    Update of reef done in [time]: 3 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Refreshing reef
    Previewing update of reef
    Updating reef
    ");
    repository.ends(0, "provision --expect-no-changes");
    repository.describe(sections(&PAGE.replace("one", "two")));
    repository.ends(7, "preview --expect-no-changes");
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
      ~ updating page--prod (files:fs:File)
      ~ updated page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.read("site/a"), "two");
    repository.describe(sections(""));
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
      - deleting page--prod (files:fs:File)
      - deleted page--prod (files:fs:File) ([time])
    "#);
    assert!(!repository.path("site/a").exists());
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    files pulumi:providers:files [id]
    ");
}

#[test]
fn a_changed_place_is_a_replacement_made_first_unless_told_otherwise() {
    let repository = provisioned(PAGE);
    repository.describe(sections(&PAGE.replace("path: a", "path: b")));
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
      ± creating page--prod (files:fs:File)
      ± replaced page--prod (files:fs:File) ([time])
      ± deleting old page--prod (files:fs:File)
      ± deleted old page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.names("site"), ["site/b"]);
    let first = PAGE.replace("path: a", "path: c").replace(" } }", " }, options: { deleteBeforeReplace: true } }");
    repository.describe(sections(&first));
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
      ± deleting old page--prod (files:fs:File)
      ± deleted old page--prod (files:fs:File) ([time])
      ± creating page--prod (files:fs:File)
      ± replaced page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.names("site"), ["site/c"]);
}

#[test]
fn drift_is_found_and_repaired() {
    let repository = provisioned(PAGE);
    fs::write(repository.path("site/a"), "tampered").unwrap();
    repository.ends(0, "preview -R --expect-no-changes");
    repository.ends(7, "preview --expect-no-changes");
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
    ~ └─ page--prod  files:fs:File  update
            ~ content: "tampered" → "one"

    Preview of reef done in [time]: 1 to update, 2 unchanged
    Update of reef done in [time]: 1 updated, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Refreshing reef
      ~ updated page--prod (files:fs:File) ([time])
    Previewing update of reef
    Updating reef
      ~ updating page--prod (files:fs:File)
      ~ updated page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.read("site/a"), "one");
    fs::remove_file(repository.path("site/a")).unwrap();
    insta::assert_snapshot!(repository.sc("refresh --yes"), @r"
    exit 0
    --- out
      tank-reef      Stack
    - └─ page--prod  files:fs:File  deleted [time]

    Refresh of reef done in [time]: 1 deleted, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Refreshing reef
      - deleted page--prod (files:fs:File) ([time])
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
      + creating page--prod (files:fs:File)
      + created page--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.read("site/a"), "one");
}

#[test]
fn nothing_is_decided_before_all_is_read() {
    let names: Vec<String> = (0..12).map(|n| format!("t{n}")).collect();
    let things: String =
        names.iter().map(|name| format!("{name}: {{ type: rec:index:Thing, config: {{ v: 1 }} }}\n")).collect();
    let repository = Repository::new(Sections { plugins: REC, resources: &things, outputs: "" });
    repository.ends(0, "provision -S");
    let drift: serde_json::Map<_, _> =
        names.iter().map(|name| (format!("{name}--prod"), serde_json::json!({"drift": {"v": 2}}))).collect();
    repository.script(serde_json::json!({ "resources": drift }));
    let told = repository.ends(7, "preview --expect-no-changes");
    assert!(told.contains("12 to update, 2 unchanged"), "{told}");
    let told = repository.ends(0, "provision -S");
    assert!(told.contains("12 updated, 2 unchanged"), "{told}");
}

#[test]
fn a_stack_is_destroyed_in_the_order_of_its_dependencies_and_stays_empty() {
    let repository = provisioned(
        "folder: { type: files:fs:Directory, config: { path: docs } }
page: { type: files:fs:File, config: { path: '${resource:folder.path}/a', content: one } }",
    );
    assert_eq!(repository.names("site"), ["site/docs/a"]);
    assert!(repository.refused("destroy --parent").starts_with("exit 2\n"));
    insta::assert_snapshot!(repository.sc("destroy --parent --yes"), @r"
    exit 0
    --- out
    Destroy of reef done in [time]: 4 deleted
    --- err
    info: Loaded plugin: files v0.1.0
    Destroying reef
      - deleting page--prod (files:fs:File)
      - deleted page--prod (files:fs:File) ([time])
      - deleting folder--prod (files:fs:Directory)
      - deleted folder--prod (files:fs:Directory) ([time])
      - deleting files (pulumi:providers:files)
      - deleted files (pulumi:providers:files) ([time])
      - deleting tank-reef (Stack)
      - deleted tank-reef (Stack) ([time])
    ");
    assert!(!repository.path("site/docs").exists());
    assert!(repository.resources().is_empty());
    insta::assert_snapshot!(repository.sc("destroy --parent --yes"), @r"
    exit 0
    --- out
    Destroy of reef done in [time]: no changes
    --- err
    info: Loaded plugin: files v0.1.0
    Destroying reef
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
    Refresh of reef done in [time]: no changes
    --- err
    info: Loaded plugin: files v0.1.0
    Refreshing reef
    ");
}

#[test]
fn a_stack_inherits_the_provisioner_of_another_and_both_are_provisioned_in_order() {
    let repository = Repository::new(sections(PAGE));
    let shore = "shore: { type: files:fs:File, config: { path: shore, content: '${stack:name}' } }";
    repository.describe_stack("atoll", "provisioner: { inherit: reef }\n", sections(shore));
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
      + creating tank-reef (Stack)
      + created tank-reef (Stack) ([time])
      + creating files (pulumi:providers:files)
      + created files (pulumi:providers:files) ([time])
      + creating page--prod (files:fs:File)
      + created page--prod (files:fs:File) ([time])
    info: Loaded plugin: files v0.1.0
    Updating atoll
      + creating tank-atoll (Stack)
      + created tank-atoll (Stack) ([time])
      + creating files (pulumi:providers:files)
      + created files (pulumi:providers:files) ([time])
      + creating shore--prod (files:fs:File)
      + created shore--prod (files:fs:File) ([time])
    "#);
    assert_eq!(repository.read("site/shore"), "atoll");
    // The number of digits of a timestamp varies, and so does the width of its column.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let stacks: Vec<_> = repository.sc("stack ls").lines().map(words).collect();
    insta::assert_snapshot!(stacks.join("\n"), @r"
    exit 0
    --- out
    STACK PROJECT RESOURCES UPDATED STATUS
    reef tank 3 [moment] -
    atoll tank 3 [moment] -
    --- err
    ");
    repository.ends(2, "destroy --parent --yes");
    repository.ends(0, "destroy --parent --yes -s reef");
    assert_eq!(repository.names("site"), ["site/shore"]);
}

#[test]
fn protected_resources_stay() {
    let protected = PAGE.replace(" } }", " }, options: { protect: true } }");
    let repository = provisioned(&protected);
    insta::assert_snapshot!(repository.sc("destroy --parent --yes"), @r"
    exit 1
    --- out
    Destroy of reef failed after [time]: 1 failed
    --- err
    info: Loaded plugin: files v0.1.0
    Destroying reef
      - deleting page--prod (files:fs:File)
    error: page--prod (files:fs:File): page--prod is protected and cannot be deleted
      hint: take `protect` off the resource and provision once more before it goes
      ✗ failed to delete page--prod (files:fs:File)
    ");
    repository.describe(sections(&protected.replace("path: a", "path: b")));
    insta::assert_snapshot!(repository.sc("provision -S -R"), @r"
    exit 1
    --- out
    Update of reef failed after [time]: 1 failed, 2 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Updating reef
    error: page--prod (files:fs:File): page--prod would be replaced, and is protected
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         page: { type: files:fs:File, config: { path: b, content: one }, options: { protect: true } }
         |         ^^^^
      hint: take `protect` off the resource, or undo the change that replaces it
    ");
    repository.describe(sections(""));
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
      - deleting page--prod (files:fs:File)
    error: page--prod (files:fs:File): page--prod is protected and cannot be deleted
      hint: take `protect` off the resource and provision once more before it goes
      ✗ failed to delete page--prod (files:fs:File)
    "#);
    assert_eq!(repository.names("site"), ["site/a"]);
    repository.describe(sections(PAGE));
    repository.ends(0, "provision");
    repository.ends(0, "destroy --parent --yes");
    assert_eq!(repository.names("site"), [""; 0]);
}

#[test]
fn what_is_retained_leaves_the_state_and_not_the_world() {
    let repository = provisioned(&PAGE.replace(" } }", " }, options: { retainOnDelete: true } }"));
    repository.describe(sections(""));
    repository.ends(0, "provision");
    assert_eq!(repository.names("site"), ["site/a"]);
    assert_eq!(repository.resources().len(), 2);
}

#[test]
fn what_exists_is_imported_and_brought_to_what_is_described() {
    let repository = Repository::new(sections(""));
    repository.write("site/a", "one");
    let import = |content: &str| {
        format!("page: {{ type: files:fs:File, config: {{ path: a, content: {content} }}, options: {{ import: a }} }}")
    };
    repository.describe(sections(&import("two")));
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
      + creating tank-reef (Stack)
      + created tank-reef (Stack) ([time])
      + creating files (pulumi:providers:files)
      + created files (pulumi:providers:files) ([time])
      = importing page--prod (files:fs:File)
      = imported page--prod (files:fs:File) ([time])
      ~ updating page--prod (files:fs:File)
      ~ updated page--prod (files:fs:File) ([time])
    "#);
    repository.describe(sections(&import("one")));
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
      ~ updating page--prod (files:fs:File)
      ~ updated page--prod (files:fs:File) ([time])
    "#);
    repository.ends(0, "provision --expect-no-changes");
    assert_eq!(repository.read("site/a"), "one");
}

#[test]
fn a_renamed_resource_is_known_by_its_alias() {
    let repository = provisioned(PAGE);
    let renamed = "leaf: { type: files:fs:File, config: { path: a, content: one }, options: { aliases: [{ name: page--prod }] } }";
    repository.describe(sections(renamed));
    assert!(repository.ends(0, "provision --expect-no-changes").contains("3 unchanged"));
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    files pulumi:providers:files [id]
    leaf--prod files:fs:File a
    ");
}

#[test]
fn ignored_changes_are_not_made() {
    let repository = provisioned(PAGE);
    repository
        .describe(sections(&PAGE.replace("one", "two").replace(" } }", " }, options: { ignoreChanges: [content] } }")));
    repository.ends(0, "provision --expect-no-changes");
    assert_eq!(repository.read("site/a"), "one");
}

#[test]
fn what_depends_on_another_resource_waits_for_it() {
    let repository = Repository::new(sections(
        "page: { type: files:fs:File, config: { path: docs/a, content: one }, options: { dependsOn: [folder] } }
folder: { type: files:fs:Directory, config: { path: docs } }",
    ));
    repository.ends(0, "provision");
    repository.ends(0, "destroy --parent --yes");
    assert_eq!(repository.names("site"), [""; 0]);
}

#[test]
fn events_are_lines_of_json_on_standard_output_alone() {
    let repository = Repository::new(sections(PAGE));
    let ended = repository.start("provision --json").wait();
    assert_eq!((ended.how.as_str(), ended.stderr.as_str()), ("exit 0", ""));
    let events: Vec<serde_json::Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"step-succeeded") && kinds.contains(&"phase-ended"), "{kinds:?}");
    assert!(events.iter().all(|event| event["time"].is_string()));

    let ended = repository.start("provision --json -s reed").wait();
    assert_eq!(ended.how, "exit 2");
    let repository = Repository::new(sections("page: { type: files:fs:File, config: { path: ../a, content: one } }"));
    let ended = repository.start("provision --json").wait();
    assert_eq!(ended.how, "exit 1");
    let events: Vec<serde_json::Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let message = events.iter().find(|event| event["severity"] == "error").unwrap();
    assert_eq!(message["property"], "path");
    assert_eq!(message["place"], ".sc/stacks/reef/server.yaml:13:48");
}

#[test]
fn the_state_lies_where_the_configuration_says() {
    let repository = Repository::new(Sections::default());
    let elsewhere = PROVISIONER.replace("file://backend", "file://over/there?create_dir=true");
    repository.describe_stack("reef", &elsewhere, sections(PAGE));
    repository.ends(0, "provision");
    assert!(repository.path("over/there/.pulumi/stacks/tank/reef.json").exists());
    assert!(repository.names("backend").is_empty());
}

#[test]
fn what_reads_or_deletes_can_go_by_the_configuration_of_today() {
    let described = |zone: &str| {
        format!(
            "- {{ name: rec, source: {{ type: local, path: $REC }}, passEnv: [REC_DIR], config: {{ zone: {zone} }} }}"
        )
    };
    let thing = "a: { type: 'rec:index:Thing', config: { v: 1 } }";
    let repository = Repository::new(Sections { plugins: &described("n"), resources: thing, outputs: "" });
    repository.ends(0, "provision --parallel 1");
    repository.describe(Sections { plugins: &described("s"), resources: thing, outputs: "" });
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
      ~ updating rec (pulumi:providers:rec)
      ~ updated rec (pulumi:providers:rec) ([time])
      ~ updated a--prod (rec:Thing) ([time])
    "#);
    repository.script(serde_json::json!({}));
    repository.describe(Sections { plugins: &described("t"), resources: thing, outputs: "" });
    insta::assert_snapshot!(repository.sc("destroy --parent --run-program --yes --parallel 1"), @r#"
    exit 0
    --- out
    Destroy of reef done in [time]: 1 updated, 3 deleted, 2 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Destroying reef
      ~ updating rec (pulumi:providers:rec)
      ~ updated rec (pulumi:providers:rec) ([time])
      - deleting a--prod (rec:Thing)
      - deleted a--prod (rec:Thing) ([time])
      - deleting rec (pulumi:providers:rec)
      - deleted rec (pulumi:providers:rec) ([time])
      - deleting tank-reef (Stack)
      - deleted tank-reef (Stack) ([time])
    "#);
}
