//! Tests of errors in server.yaml and in inputs: position, message and hint are shown, and nothing is changed.

use crate::repository::{FILES, REC, Repository, Sections};

fn repository(resources: &str) -> Repository {
    Repository::new(Sections { plugins: FILES, resources, ..Sections::default() })
}

fn check(plugins: &str, resources: &str, outputs: &str) -> String {
    Repository::new(Sections { plugins, resources, outputs }).expect_rejected("provision")
}

/// Shows: server-yaml.md#serveryaml "reports their errors together, each with its line, and changes nothing if there is
///   one."
/// Shows: server-yaml.md#serveryaml "What needs a plugin is checked after that"
#[test]
fn errors_in_plugin_declarations_are_reported_together_before_any_plugin_starts() {
    let plugins = "
        - { name: files, source: { type: local, path: $FILES } }
        - { name: files, source: { type: local, path: $FILES } }
        - { name: pulumi, source: { type: local, path: $FILES } }
        - { name: Bad, source: { type: local, path: $FILES } }
        - { source: { type: local, path: x } }
        - { name: a }
        - { name: b, source: { type: ftp, path: x } }
        - { name: c, source: { type: local } }
        - { name: d, source: { type: git, path: x, repository: y, ref: main } }
        - { name: e, source: { type: local, path: x, checksum: abc } }
        - { name: f, source: { type: github-release, repository: o/r, version: v1, platform: amiga } }
        - { name: g, source: { type: local, path: x, cheksum: abc } }";
    insta::assert_snapshot!(check(plugins, "", ""), @r#"
    exit 1
    --- out
    --- err
    error[plugin]: plugin "files" is declared more than once
     --> .sc/stacks/reef/server.yaml:9:13
      |
    8 |   - { name: files, source: { type: local, path: [bin]/pulumi-resource-files } }
      |             ----- first declared here
    9 |   - { name: files, source: { type: local, path: [bin]/pulumi-resource-files } }
      |             ^^^^^

    error[plugin]: plugin "pulumi": name is reserved
      --> .sc/stacks/reef/server.yaml:10:13
       |
    10 |   - { name: pulumi, source: { type: local, path: [bin]/pulumi-resource-files } }
       |             ^^^^^^

    error[plugin]: plugin "Bad": invalid name
      --> .sc/stacks/reef/server.yaml:11:13
       |
    11 |   - { name: Bad, source: { type: local, path: [bin]/pulumi-resource-files } }
       |             ^^^
       |
       = hint: a name begins with a lower-case letter; lower-case letters, digits and `-` follow

    error[plugin]: plugin #5: name is required
      --> .sc/stacks/reef/server.yaml:12:5
       |
    12 |   - { source: { type: local, path: x } }
       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error[plugin]: plugin "a": source.type is required
      --> .sc/stacks/reef/server.yaml:13:5
       |
    13 |   - { name: a }
       |     ^^^^^^^^^^^
       |
       = hint: the types are local, github-release, git, installed

    error[plugin]: plugin "b": unknown source type "ftp"
      --> .sc/stacks/reef/server.yaml:14:32
       |
    14 |   - { name: b, source: { type: ftp, path: x } }
       |                                ^^^
       |
       = hint: the types are local, github-release, git, installed

    error[plugin]: plugin "c": source.path is required for source type "local"
      --> .sc/stacks/reef/server.yaml:15:24
       |
    15 |   - { name: c, source: { type: local } }
       |                        ^^^^^^^^^^^^^^^

    error[plugin]: plugin "d": source.path and source.repository disagree
      --> .sc/stacks/reef/server.yaml:16:58
       |
    16 |   - { name: d, source: { type: git, path: x, repository: y, ref: main } }
       |                                                          ^

    error[plugin]: plugin "e": invalid checksum
      --> .sc/stacks/reef/server.yaml:17:58
       |
    17 |   - { name: e, source: { type: local, path: x, checksum: abc } }
       |                                                          ^^^
       |
       = hint: a checksum is `sha256:` and 64 hexadecimal digits

    error[plugin]: plugin "f": unsupported platform "amiga"
      --> .sc/stacks/reef/server.yaml:18:88
       |
    18 |   - { name: f, source: { type: github-release, repository: o/r, version: v1, platform: amiga } }
       |                                                                                        ^^^^^

    error[unknown-key]: `source` of type "local" has no key `cheksum`
      --> .sc/stacks/reef/server.yaml:19:48
       |
    19 |   - { name: g, source: { type: local, path: x, cheksum: abc } }
       |                                                ^^^^^^^
       |
       = hint: did you mean `checksum`?
       = hint: the keys are type, path, checksum, build

    error: the configuration has 11 errors; nothing was changed
    "#);
}

#[test]
fn resource_type_requires_an_enabled_plugin() {
    let plugins = "- { name: files, enabled: false, source: { type: local, path: mark.sh } }";
    let resources = "
        page: { type: files:fs:File, config: { path: a } }
        site: { type: web:index:Site }
        base: { type: s3-bukket }";
    insta::assert_snapshot!(check(plugins, resources, ""), @r#"
    exit 1
    --- out
    --- err
    error[unknown-resource-type]: unknown resource type "files:fs:File": no enabled plugin serves the package "files"
      --> .sc/stacks/reef/server.yaml:13:23
       |
     8 |   - { name: files, enabled: false, source: { type: local, path: mark.sh } }
       |             ----- this plugin is disabled
    ...
    13 |         page: { type: files:fs:File, config: { path: a } }
       |                       ^^^^^^^^^^^^^
       |
       = hint: set `enabled: true` to use it

    error[unknown-resource-type]: unknown resource type "web:index:Site": no enabled plugin serves the package "web"
      --> .sc/stacks/reef/server.yaml:14:23
       |
    14 |         site: { type: web:index:Site }
       |                       ^^^^^^^^^^^^^^
       |
       = hint: declare a plugin with `name: web` in `plugins`

    error[unknown-resource-type]: unknown resource type "s3-bukket"
      --> .sc/stacks/reef/server.yaml:15:23
       |
    15 |         base: { type: s3-bukket }
       |                       ^^^^^^^^^
       |
       = note: unknown type "s3-bukket" for resource "base" of env "prod"
       = hint: did you mean `s3-bucket`?

    error: the configuration has 3 errors; nothing was changed
    "#);
}

#[test]
fn disabled_plugin_is_not_started() {
    let plugins = format!("{FILES}\n- {{ name: off, enabled: false, source: {{ type: local, path: off.sh }} }}");
    let page = "page: { type: files:fs:File, config: { path: a, content: b } }";
    let repository = Repository::new(Sections { plugins: &plugins, resources: page, ..Sections::default() });
    repository.write_script("off.sh", "touch mark\n");
    repository.expect_exit(0, "provision");
    assert!(!repository.path("mark").exists());
}

#[test]
fn unresolved_and_circular_references_are_rejected() {
    let resources = "
        hen: { type: files:fs:File, config: { path: hen, content: '${resource:egg.sha256}' } }
        egg: { type: files:fs:File, config: { path: egg, content: '${resource:hen.sha256}' } }
        nest: { type: files:fs:File, config: { path: '${resource:tree.path}', content: '${secret:stick}' } }
        bird: { type: files:fs:File, config: { path: bird, content: '${birdsong:loud}' } }";
    insta::assert_snapshot!(check(FILES, resources, "song: '${resource:prod/brid.content}'"), @r#"
    exit 1
    --- out
    --- err
    error[dependency-cycle]: resource dependency cycle: hen -> egg -> hen
      --> .sc/stacks/reef/server.yaml:14:68
       |
    14 |         egg: { type: files:fs:File, config: { path: egg, content: '${resource:hen.sha256}' } }
       |                                                                    ^^^^^^^^^^^^^^^^^^^^^^

    error[unknown-resource]: resource "tree" referenced by "nest" is not defined in env "prod"
      --> .sc/stacks/reef/server.yaml:15:55
       |
    15 |         nest: { type: files:fs:File, config: { path: '${resource:tree.path}', content: '${secret:stick}' } }
       |                                                       ^^^^^^^^^^^^^^^^^^^^^

    error[unresolved-placeholder]: the secret "stick" is not defined for stack "reef"
      --> .sc/stacks/reef/server.yaml:15:89
       |
    15 |         nest: { type: files:fs:File, config: { path: '${resource:tree.path}', content: '${secret:stick}' } }
       |                                                                                         ^^^^^^^^^^^^^^^
       |
       = hint: the stack has no secrets.yaml: write one beside server.yaml, with `values`

    error[unresolved-placeholder]: `${birdsong:loud}` cannot be resolved: there is no namespace "birdsong"
      --> .sc/stacks/reef/server.yaml:16:70
       |
    16 |         bird: { type: files:fs:File, config: { path: bird, content: '${birdsong:loud}' } }
       |                                                                      ^^^^^^^^^^^^^^^^
       |
       = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again

    error[unknown-resource]: resource "brid" referenced by output "song" is not defined in env "prod"
      --> .sc/stacks/reef/server.yaml:18:10
       |
    18 |   song: '${resource:prod/brid.content}'
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: did you mean `bird`?

    error: the configuration has 5 errors; nothing was changed
    "#);
}

/// Shows: plugin-authoring.md#calls "is shown at its line in `server.yaml`, as the failures of `Check` are"
#[test]
fn check_failures_are_shown_at_the_line_of_each_property() {
    let resources = "
        page:
          type: files:fs:File
          config:
            path: ../escape
            content: hello
            mode: 600";
    let repository = repository(resources);
    let preview = repository.expect_rejected("preview");
    insta::assert_snapshot!(preview, @r#"
    exit 1
    --- out
    + tank-reef      Stack                   create
    + ├─ files       pulumi:providers:files  create
      │     + root: "site"
    ✗ └─ page--prod  files:fs:File           failed     property mode: a string is expected, not a number (quote it to make it a string)

    Preview of reef failed after [time]: 1 failed, 2 to create
    --- err
    info: Loaded plugin: files v0.1.0
    Previewing update of reef
    error: page--prod (files:fs:File): property mode: a string is expected, not a number (quote it to make it a string)
      at .sc/stacks/reef/server.yaml:18:13
         |
      18 |             mode: 600
         |             ^^^^
    error: page--prod (files:fs:File): property path: the path must stay below the root of the plugin: it may not contain ".."
      at .sc/stacks/reef/server.yaml:16:13
         |
      16 |             path: ../escape
         |             ^^^^
    "#);
    assert_eq!(repository.sc("provision --parallel 1"), preview);
    assert!(!repository.path("site").exists());
    assert!(!repository.is_locked());
    insta::assert_snapshot!(repository.names("backend").join("\n"), @r"
    backend/.pulumi/meta.yaml
    backend/.pulumi/meta.yaml.attrs
    ");
}

#[test]
fn check_config_failures_are_shown_at_the_line_of_each_property() {
    let plugins = "
        - name: files
          source: { type: local, path: $FILES }
          config:
            root: [site]";
    let page = "page: { type: files:fs:File, config: { path: a, content: b } }";
    let repository = Repository::new(Sections { plugins, resources: page, ..Sections::default() });
    insta::assert_snapshot!(repository.expect_rejected("preview"), @r"
    exit 1
    --- out
    + tank-reef  Stack                   create
    ✗ └─ files   pulumi:providers:files  failed     property root: a string is expected, not a list

    Preview of reef failed after [time]: 1 failed, 1 to create
    --- err
    info: Loaded plugin: files v0.1.0
    Previewing update of reef
    error: files (pulumi:providers:files): property root: a string is expected, not a list
      at .sc/stacks/reef/server.yaml:11:7
         |
      11 |       root: [site]
         |       ^^^^
    ");
}

#[test]
fn failed_configure_fails_the_resources_of_the_provider() {
    let repository = Repository::new(Sections { plugins: REC, resources: "a: { type: rec:index:Thing }", outputs: "" });
    repository.script(serde_json::json!({"provider": {"configure": "error"}}));
    insta::assert_snapshot!(repository.expect_rejected("preview"), @r"
    exit 1
    --- out
    + tank-reef   Stack                 create
    + ├─ rec      pulumi:providers:rec  create
    ✗ └─ a--prod  rec:Thing             failed     the provider rec could not be configured: rec: Configure fails

    Preview of reef failed after [time]: 1 failed, 2 to create
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    error: a--prod (rec:Thing): the provider rec could not be configured: rec: Configure fails
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         a: { type: rec:index:Thing }
         |         ^
    ");
    insta::assert_snapshot!(repository.sc("provision --skip-preview"), @r"
    exit 1
    --- out
    + tank-reef   Stack                 created [time]
    + ├─ rec      pulumi:providers:rec  created [time]
    ✗ └─ a--prod  rec:Thing             failed [time]     the provider rec could not be configured: rec: Configure fails

    Update of reef failed after [time]: 1 failed, 2 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
    error: a--prod (rec:Thing): the provider rec could not be configured: rec: Configure fails
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         a: { type: rec:index:Thing }
         |         ^
    ");
    assert!(!repository.is_locked());
}

/// Shows: server-yaml.md#plugins "Before a run refreshes or changes anything, all resources of plugins are compared
///   with the schemas."
#[test]
fn types_and_properties_that_the_schema_lacks_are_reported_before_the_refresh() {
    let repository = repository("page: { type: files:fs:File, config: { path: a, content: b } }");
    repository.expect_exit(0, "provision");
    let resources = "
        page: { type: files:fs:File, config: { path: a, content: b, colour: red } }
        pages: { type: files:fs:Fiel, config: { path: c } }";
    repository.write_sections(Sections { plugins: FILES, resources, ..Sections::default() });
    let provision = repository.expect_rejected("provision");
    insta::assert_snapshot!(provision, @r#"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error[unknown-property]: the type files:fs:File has no property "colour"
      --> .sc/stacks/reef/server.yaml:13:69
       |
    13 |         page: { type: files:fs:File, config: { path: a, content: b, colour: red } }
       |                                                                     ^^^^^^
       |
       = hint: it has content, mode, path

    error[unknown-resource-type]: unknown resource type "files:fs:Fiel": the schema of plugin files has no such type
      --> .sc/stacks/reef/server.yaml:14:24
       |
    14 |         pages: { type: files:fs:Fiel, config: { path: c } }
       |                        ^^^^^^^^^^^^^
       |
       = hint: did you mean `files:fs:File`?
       = hint: `sc schema-gen` writes a list of the types of the plugins

    error: the resources of the stack have 2 errors; nothing was changed
    "#);
    assert_eq!(repository.expect_rejected("preview"), provision);
}

/// Shows: server-yaml.md#placeholders "an output that neither the schema nor the state has is an error before anything
///   is changed"
#[test]
fn output_that_the_schema_lacks_is_reported_before_anything_is_created() {
    let resources = "
        page: { type: files:fs:File, config: { path: a, content: b } }
        copy: { type: files:fs:File, config: { path: c, content: '${resource:page.contnet}' } }";
    let repository = repository(resources);
    insta::assert_snapshot!(repository.sc("provision --parallel 1"), @r#"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error[unknown-output]: resource "page" has no output "contnet"
      --> .sc/stacks/reef/server.yaml:14:67
       |
    14 |         copy: { type: files:fs:File, config: { path: c, content: '${resource:page.contnet}' } }
       |                                                                   ^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = note: the schema of the type files:fs:File has no such output
       = hint: did you mean `content`?

    error: the resources of the stack have 1 error; nothing was changed
    "#);
    assert!(!repository.path("site").exists());
}

#[test]
fn resources_without_an_enabled_plugin_are_reported() {
    let resources = "
        page: { type: files:fs:File, config: { path: a, content: b } }
        copy: { type: files:fs:File, config: { path: c, content: d }, options: { dependsOn: [page] } }";
    let repository = repository(resources);
    repository.expect_exit(0, "provision --parallel 1");

    repository.write_sections(Sections::default());
    insta::assert_snapshot!(repository.sc("provision --parallel 1"), @r#"
    exit 1
    --- out
    --- err
    error: no enabled plugin serves the package "files" of recorded resources: page--prod, copy--prod
      hint: declare and enable the plugin in `plugins`: it is needed to delete these resources
    "#);
    insta::assert_snapshot!(repository.sc("provision -R -S --parallel 1"), @r#"
    exit 1
    --- out
    --- err
    error: no enabled plugin serves the package "files" of recorded resources: page--prod, copy--prod
      hint: declare and enable the plugin in `plugins`: it is needed to delete these resources
    "#);
    insta::assert_snapshot!(repository.sc("preview -R"), @r#"
    exit 1
    --- out
    --- err
    error: no enabled plugin serves the package "files" of recorded resources: page--prod, copy--prod
      hint: declare and enable the plugin in `plugins`: it is needed to delete these resources
    "#);
    insta::assert_snapshot!(repository.sc("destroy --parent --yes -R"), @r#"
    exit 1
    --- out
    --- err
    error: no enabled plugin serves the package "files" of recorded resources: page--prod, copy--prod
      hint: declare and enable the plugin in `plugins`: it is needed to delete these resources
    "#);
    assert_eq!(repository.resources().len(), 4);
    assert!(repository.path("site/a").exists());

    let disabled = FILES.replace("name: files,", "name: files, enabled: false,");
    repository.write_sections(Sections { plugins: &disabled, ..Sections::default() });
    insta::assert_snapshot!(repository.sc("provision --parallel 1"), @r#"
    exit 1
    --- out
    --- err
    error: no enabled plugin serves the package "files" of recorded resources: page--prod, copy--prod
      hint: declare and enable the plugin in `plugins`: it is needed to delete these resources
    "#);
    assert_eq!(repository.resources().len(), 4);

    repository.write_sections(Sections { plugins: FILES, ..Sections::default() });
    repository.expect_exit(0, "provision");
    assert!(!repository.path("site/a").exists());
}

#[test]
fn failed_create_skips_only_its_dependents() {
    let resources = "
        page: { type: files:fs:File, config: { path: nowhere/a, content: b } }
        copy: { type: files:fs:File, config: { path: c, content: '${resource:page.sha256}' } }";
    let repository = repository(resources);
    insta::assert_snapshot!(repository.sc("provision --parallel 1"), @r#"
    exit 1
    --- out
    + tank-reef      Stack                   create
    + ├─ files       pulumi:providers:files  create
      │     + root: "site"
    + ├─ page--prod  files:fs:File           create
      │     + content: "b"
      │     + mode: "0644"
      │     + path: "nowhere/a"
    + └─ copy--prod  files:fs:File           create
            + content: "[id]"
            + mode: "0644"
            + path: "c"

    Preview of reef done in [time]: 4 to create
    Update of reef failed after [time]: 1 failed, 2 created
    --- err
    info: Loaded plugin: files v0.1.0
    Previewing update of reef
    Updating reef
      + created tank-reef (Stack) ([time])
      + created files (pulumi:providers:files) ([time])
    error: page--prod (files:fs:File): cannot write the file nowhere/a: the folder nowhere does not exist. Declare it as files:fs:Directory and use the path of that resource
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         page: { type: files:fs:File, config: { path: nowhere/a, content: b } }
         |         ^^^^
    "#);
    insta::assert_snapshot!(repository.resources().join("\n"), @r"
    tank-reef pulumi:pulumi:Stack
    files pulumi:providers:files [id]
    ");
    assert!(!repository.is_locked());
}
