//! Tests of `sc validate`: mistakes are found without a state, a lock and a configured plugin.

use crate::repository::{FILES, PROVISIONER, REC, Repository, Sections};

/// Shows: server-yaml.md#checks-without-a-cloud "It takes no lock, reads no state, and configures no plugin"
#[test]
fn mistakes_against_the_schemas_are_found_without_state_and_without_configuring_a_plugin() {
    let plugins = format!("{REC}\n- {{ name: off, enabled: false, source: {{ type: local, path: nowhere }} }}");
    let resources = "
        a: { type: rec:index:Thing, config: { v: 1 } }
        b: { type: rec:index:Thing, config: { v: '${resource:a.idd}' } }
        c: { type: rec:index:Thingy }";
    let repository = Repository::new(Sections { plugins: &plugins, resources, ..Sections::default() });
    insta::assert_snapshot!(repository.expect_rejected("validate"), @r#"
    exit 1
    --- out
    2 mistakes
    --- err
    error[unknown-output]: resource "a" has no output "idd"
      --> .sc/stacks/reef/server.yaml:15:51
       |
    15 |         b: { type: rec:index:Thing, config: { v: '${resource:a.idd}' } }
       |                                                   ^^^^^^^^^^^^^^^^^
       |
       = note: the schema of the type rec:index:Thing has no such output
       = hint: did you mean `id`?

    error[unknown-resource-type]: unknown resource type "rec:index:Thingy": the schema of plugin rec has no such type
      --> .sc/stacks/reef/server.yaml:16:20
       |
    16 |         c: { type: rec:index:Thingy }
       |                    ^^^^^^^^^^^^^^^^
       |
       = hint: did you mean `rec:Thing`?
       = hint: `sc schema-gen` writes a list of the types of the plugins
    "#);
    repository.write_sections(Sections {
        plugins: &plugins,
        resources: resources.lines().nth(1).unwrap(),
        outputs: "",
    });
    insta::assert_snapshot!(repository.expect_exit(0, "validate"), @r"
    exit 0
    --- out
    1 stack, 1 resource: no mistakes
    --- err
    ");
    assert_eq!(repository.names("backend"), [""; 0]);
    let calls = repository.calls();
    assert!(!calls.iter().any(|call| call.starts_with("Configure") || call.starts_with("Check")), "{calls:?}");
}

/// Shows: server-yaml.md#checks-without-a-cloud "A plugin that cannot be fetched or started is a mistake at its
///   declaration; the others are checked."
#[test]
fn plugin_that_is_missing_is_a_mistake_at_its_line_and_the_others_are_checked() {
    let missing = "- { name: gone, source: { type: local, path: nowhere } }";
    let plugins = format!("{missing}\n{FILES}\n{}", missing.replace("gone", "lost"));
    let resources = "
        page: { type: files:fs:File, config: { path: a, colour: red } }
        gift: { type: gone:index:Gift }";
    let repository = Repository::new(Sections { plugins: &plugins, resources, ..Sections::default() });
    insta::assert_snapshot!(repository.expect_rejected("validate"), @r#"
    exit 1
    --- out
    3 mistakes
    --- err
    error[plugin-load]: failed to load plugin gone: failed to resolve plugin binary: cannot find plugin [repo]/nowhere: No such file or directory (os error 2)
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: gone, source: { type: local, path: nowhere } }
      |             ^^^^

    error[plugin-load]: failed to load plugin lost: failed to resolve plugin binary: cannot find plugin [repo]/nowhere: No such file or directory (os error 2)
      --> .sc/stacks/reef/server.yaml:10:13
       |
    10 |   - { name: lost, source: { type: local, path: nowhere } }
       |             ^^^^

    error[unknown-property]: the type files:fs:File has no property "colour"
      --> .sc/stacks/reef/server.yaml:15:57
       |
    15 |         page: { type: files:fs:File, config: { path: a, colour: red } }
       |                                                         ^^^^^^
       |
       = hint: it has content, mode, path
    "#);
    assert!(repository.expect_exit(0, "validate --no-plugins").contains("\n1 stack, 2 resources: no mistakes\n"));
}

/// Shows: server-yaml.md#checks-without-a-cloud "of all stacks, or of those named with `-s`"
/// Shows: server-yaml.md#checks-without-a-cloud "The exit code is 0 without mistakes, 1 with mistakes, 2 for wrong
///   usage."
#[test]
fn all_stacks_are_checked_unless_one_is_named() {
    let page = "page: { type: files:fs:File, config: { path: a, content: b } }";
    let good = Sections { plugins: FILES, resources: page, ..Sections::default() };
    let repository = Repository::new(good);
    repository.write_stack("atoll", PROVISIONER, good);
    let line = |arguments: &str, code| {
        let output = repository.expect_exit(code, arguments);
        output.lines().nth(2).unwrap_or_default().to_owned()
    };
    assert_eq!(line("validate", 0), "2 stacks, 2 resources: no mistakes");
    repository.write_stack("atoll", PROVISIONER, Sections { resources: &page.replace("content", "contents"), ..good });
    assert_eq!(line("validate", 1), "1 mistake");
    assert_eq!(line("validate -s reef", 0), "1 stack, 1 resource: no mistakes");
    repository.write_stack("atoll", PROVISIONER, Sections { resources: "page: { type: s3-bukket }", ..good });
    assert_eq!(line("validate", 1), "1 mistake");
    assert!(repository.expect_exit(2, "validate -s rief").contains("did you mean reef?"));
}

/// Shows: events.md#events-as-json-lines "write `download`, `message`, `diagnostic` and `error`"
/// Shows: events.md#events-as-json-lines "All other commands that read stacks write `diagnostic` and `error`"
#[test]
fn mistakes_and_errors_before_a_run_are_events() {
    let repository = Repository::new(Sections { plugins: FILES, resources: "page: { type: s3-bukket }", outputs: "" });
    for arguments in ["validate --json", "preview --json", "refresh --yes --json"] {
        let ended = repository.start(arguments).wait();
        assert_eq!(ended.status, "exit 1", "{arguments}");
        let mut lines = ended.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let event = lines.next().unwrap();
        assert_eq!((&event["event"], &event["sequence"]), (&"diagnostic".into(), &1.into()), "{arguments}");
        assert_eq!(event["code"], "unknown-resource-type");
        assert_eq!(event["place"], ".sc/stacks/reef/server.yaml:13:23");
        assert_eq!((&event["range"]["line"], &event["range"]["endColumn"]), (&13.into(), &32.into()));
        assert_eq!(event["hints"][0], "did you mean `s3-bucket`?");
        assert!(ended.stderr.contains("error[unknown-resource-type]"), "{}", ended.stderr);
        let last = lines.next().unwrap();
        assert_eq!(lines.next(), None);
        if arguments.starts_with("validate") {
            assert_eq!((&last["mistakes"], &last["stacks"]), (&1.into(), &serde_json::Value::Null));
        } else {
            assert_eq!((&last["event"], &last["sequence"], &last["exitCode"]), (&"error".into(), &2.into(), &1.into()));
            assert_eq!(last["message"], "the configuration has an error; nothing was changed");
        }
    }
    let ended = repository.start("stack ls --json -s rief").wait();
    assert_eq!(ended.status, "exit 2");
}

/// Shows: plugins.md#plugins-their-sources-and-their-processes "All plugins that cannot be fetched are reported at
///   their lines, before any plugin is started."
#[test]
fn all_plugins_that_are_missing_are_reported_at_their_lines_before_any_starts() {
    let missing = "- { name: gone, source: { type: local, path: nowhere } }";
    let plugins = format!("{missing}\n{FILES}\n{}", missing.replace("gone", "lost"));
    let repository = Repository::new(Sections { plugins: &plugins, ..Sections::default() });
    let output = repository.expect_rejected("provision");
    for place in ["8:13", "10:13"] {
        assert!(output.contains(&format!("--> .sc/stacks/reef/server.yaml:{place}\n")), "{output}");
    }
    assert!(output.ends_with("error: failed to load 2 plugins; nothing was changed\n"), "{output}");
    assert!(!output.contains("Loaded plugin"), "{output}");
    assert!(repository.expect_rejected("schema-gen schemas").contains("server.yaml:10:13\n"));
}
