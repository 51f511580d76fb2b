//! Table of slips in server.yaml, each with what `sc provision` prints. No slip deletes anything: the files that the plugin
//! has created are the record of what exists.

use crate::repository::{Repository, Sections};

const RESOURCES: &str = "
a: { type: files:fs:File, config: { path: a, content: one } }
b: { type: files:fs:File, config: { path: b, content: '${resource:a.path}' } }
";
const LEVELS: &str = "resources:\n  resources:\n    prod:\n      resources:\n";
/// Beginning of resource `a`, after its type.
const CONFIG_OF_A: &str = "config: { path: a,";
const REFERENCE: &str = "${resource:a.path}";

/// Changes of a text of server.yaml: the slip, the text, and what replaces it.
const SLIPS: &[(&str, &str, &str)] = &[
    // Levels and keys.
    ("no environment", LEVELS, "resources:\n  resources:\n"),
    ("no second level", LEVELS, "resources:\n  prod:\n    resources:\n"),
    ("only one level", LEVELS, "resources:\n"),
    ("another order of the levels", LEVELS, "resources:\n  prod:\n    resources:\n      resources:\n"),
    ("first level misspelt", LEVELS, "resource:\n  resources:\n    prod:\n      resources:\n"),
    ("second level misspelt", LEVELS, "resources:\n  resource:\n    prod:\n      resources:\n"),
    ("last level misspelt", LEVELS, "resources:\n  resources:\n    prod:\n      resource:\n"),
    ("option beside type", CONFIG_OF_A, "protect: true, config: { path: a,"),
    ("option of several words beside type", CONFIG_OF_A, "dependsOn: [b], config: { path: a,"),
    ("name of another tool for config", CONFIG_OF_A, "properties: { path: a,"),
    ("config misspelt", CONFIG_OF_A, "confg: { path: a,"),
    ("key of another tool at the top", "plugins:", "environments: {}\nplugins:"),
    ("plugins misspelt", "plugins:", "plugin:"),
    ("outputs misspelt", "outputs:", "ouputs:"),
    ("another version", "schemaVersion: 1.0", "schemaVersion: 2.0"),
    ("duplicate key", "        b: {", "        a: {"),
    ("key for other uses", "plugins:", "x-team: reef\n.shared: &shared { path: c }\nplugins:"),
    ("second document", "outputs:", "---\noutputs:"),
    // References and placeholders.
    ("unknown resource", REFERENCE, "${resource:c.path}"),
    ("unknown resource with a default", REFERENCE, "${resource:c.path:none}"),
    ("unknown output", REFERENCE, "${resource:a.pth}"),
    ("unknown output with a default", REFERENCE, "${resource:a.pth:none}"),
    ("output of the stack", "file: ${resource:b.path}", "file: ${resource:b.contnt}"),
    ("unclosed placeholder", REFERENCE, "${resource:a.path"),
    ("nested placeholder", REFERENCE, "${env:A:${env:B}}"),
    ("placeholder in a key", "content: one", "'${env:A}': one"),
    ("text of a shell", REFERENCE, "${1:-x} ${A:-http://b} ${HOME"),
    ("unset variable", REFERENCE, "x${env:UNSET}"),
    // Types.
    ("unknown type", "b: { type: files:fs:File", "b: { type: files:fs:Fil"),
    ("unknown package", "b: { type: files:fs:File", "b: { type: fils:fs:File"),
    ("unknown property", "content: one", "contnt: one"),
    ("unknown configuration", "root: site", "rooot: site"),
    // Found before anything begins.
    ("unknown plugin file", "$FILES", "nowhere"),
    ("unknown secret", REFERENCE, "${secret:token}"),
    // Syntax.
    ("unquoted placeholder", "'${resource:a.path}'", "${resource:a.path}"),
    ("unquoted asterisk", "'${resource:a.path}'", "*.example.com"),
    ("tab", "        b: {", "\tb: {"),
    ("unclosed quote", "'${resource:a.path}'", "'${resource:a.path}"),
    ("unclosed brace", "content: one }", "content: one"),
];

/// Shows: server-yaml.md#serveryaml "reports their errors together, each with its line, and changes nothing if there is
///   one."
#[test]
fn each_slip_is_reported_at_its_place_and_deletes_nothing() {
    // The path of the plugin is last in its line: its length would move what follows.
    let plugins = "- { name: files, config: { root: site }, source: { type: local, path: '$FILES' } }";
    let sections = Sections { plugins, resources: RESOURCES, outputs: "file: ${resource:b.path}" };
    let repository = Repository::new(sections);
    repository.expect_exit(0, "provision");
    let path = ".sc/stacks/reef/server.yaml";
    let good = repository.read(path);
    let good = good.replace(tests::binaries::files_plugin().unwrap().to_str().unwrap(), "$FILES");
    let mut reported = String::new();
    for (slip, text, replacement) in SLIPS {
        assert_eq!(good.matches(text).count(), 1, "{slip}: the file has the text once");
        repository.write(path, &good.replace(text, replacement));
        let state = repository.files("backend");
        let output = repository.sc("provision");
        let exit = output.lines().next().unwrap_or_default();
        reported.push_str(&format!("{slip}: {exit}\n"));
        let is_reported = |line: &&str| {
            ["error[", "warning[", "error:", "warning:"].iter().any(|start| line.starts_with(start))
                || ["--> ", "= hint:", "hint:"].iter().any(|start| line.trim_start().starts_with(start))
        };
        output.lines().filter(is_reported).for_each(|line| reported.push_str(&format!("    {}\n", line.trim_start())));
        assert!(exit == "exit 0" || repository.files("backend") == state, "{slip}: the state has changed\n{output}");
        assert_eq!(repository.names("site"), ["site/a", "site/b"], "{slip}: {output}");
    }
    insta::assert_snapshot!(reported, @r#"
    no environment: exit 1
        error[missing-level]: `a` is a resource in the place of an environment
        --> .sc/stacks/reef/server.yaml:11:9
        = hint: write `resources.resources.ENVIRONMENT.resources.a`
        error[missing-level]: `b` is a resource in the place of an environment
        --> .sc/stacks/reef/server.yaml:12:9
        = hint: write `resources.resources.ENVIRONMENT.resources.b`
        error[unknown-resource]: resource "b" referenced by output "file" is not defined in any env
        --> .sc/stacks/reef/server.yaml:14:9
        error: the configuration has 3 errors; nothing was changed
    no second level: exit 1
        error[unknown-key]: `resources` has no key `prod`
        --> .sc/stacks/reef/server.yaml:10:3
        = hint: write `resources.resources.prod.resources`
        error[unknown-resource]: resource "b" referenced by output "file" is not defined in any env
        --> .sc/stacks/reef/server.yaml:15:9
        error: the configuration has 2 errors; nothing was changed
    only one level: exit 1
        error[unknown-key]: `resources` has no key `a`
        --> .sc/stacks/reef/server.yaml:10:9
        = hint: write `resources.resources.ENVIRONMENT.resources.a`
        error[unknown-key]: `resources` has no key `b`
        --> .sc/stacks/reef/server.yaml:11:9
        = hint: write `resources.resources.ENVIRONMENT.resources.b`
        error[unknown-resource]: resource "b" referenced by output "file" is not defined in any env
        --> .sc/stacks/reef/server.yaml:13:9
        error: the configuration has 3 errors; nothing was changed
    another order of the levels: exit 1
        error[unknown-key]: `resources` has no key `prod`
        --> .sc/stacks/reef/server.yaml:10:3
        = hint: write `resources.resources.prod.resources`
        error[unknown-resource]: resource "b" referenced by output "file" is not defined in any env
        --> .sc/stacks/reef/server.yaml:16:9
        error: the configuration has 2 errors; nothing was changed
    first level misspelt: exit 1
        error[unknown-key]: server.yaml has no key `resource`
        --> .sc/stacks/reef/server.yaml:9:1
        = hint: did you mean `resources`?
        = hint: the keys are schemaVersion, provisioner, secrets, cicd, templates, resources, variables, plugins, outputs, references; a key that begins with `x-` is ignored
        error[unknown-resource]: resource "b" referenced by output "file" is not defined in any env
        --> .sc/stacks/reef/server.yaml:16:9
        error: the configuration has 2 errors; nothing was changed
    second level misspelt: exit 1
        error[unknown-key]: `resources` has no key `resource`
        --> .sc/stacks/reef/server.yaml:10:3
        = hint: did you mean `resources`?
        = hint: environments are declared below `resources.resources`
        error[unknown-resource]: resource "b" referenced by output "file" is not defined in any env
        --> .sc/stacks/reef/server.yaml:16:9
        error: the configuration has 2 errors; nothing was changed
    last level misspelt: exit 1
        error[unknown-key]: an environment has no key `resource`
        --> .sc/stacks/reef/server.yaml:12:7
        = hint: did you mean `resources`?
        = hint: the keys are template, resources, inherit, enabled and functions; a resource needs a `type`
        error[unknown-resource]: resource "b" referenced by output "file" is not defined in any env
        --> .sc/stacks/reef/server.yaml:16:9
        error: the configuration has 2 errors; nothing was changed
    option beside type: exit 1
        error[unknown-key]: a resource has no key `protect`
        --> .sc/stacks/reef/server.yaml:13:35
        = hint: write `options: { protect: … }`
        error: the configuration has an error; nothing was changed
    option of several words beside type: exit 1
        error[unknown-key]: a resource has no key `dependsOn`
        --> .sc/stacks/reef/server.yaml:13:35
        = hint: write `options: { dependsOn: … }`
        error: the configuration has an error; nothing was changed
    name of another tool for config: exit 1
        error[unknown-key]: a resource has no key `properties`
        --> .sc/stacks/reef/server.yaml:13:35
        = hint: did you mean `config`?
        error: the configuration has an error; nothing was changed
    config misspelt: exit 1
        error[unknown-key]: a resource has no key `confg`
        --> .sc/stacks/reef/server.yaml:13:35
        = hint: did you mean `config`?
        = hint: the keys are type, name, config, inherit, options, enabled, forEach; what the resource is made of stands in `config`
        error: the configuration has an error; nothing was changed
    key of another tool at the top: exit 1
        error[unknown-key]: server.yaml has no key `environments`
        --> .sc/stacks/reef/server.yaml:7:1
        = hint: environments are declared below `resources.resources`
        error: the configuration has an error; nothing was changed
    plugins misspelt: exit 1
        error[unknown-key]: server.yaml has no key `plugin`
        --> .sc/stacks/reef/server.yaml:7:1
        = hint: did you mean `plugins`?
        = hint: the keys are schemaVersion, provisioner, secrets, cicd, templates, resources, variables, plugins, outputs, references; a key that begins with `x-` is ignored
        error[unknown-resource-type]: unknown resource type "files:fs:File": no enabled plugin serves the package "files"
        --> .sc/stacks/reef/server.yaml:13:20
        = hint: declare a plugin with `name: files` in `plugins`
        error[unknown-resource-type]: unknown resource type "files:fs:File": no enabled plugin serves the package "files"
        --> .sc/stacks/reef/server.yaml:14:20
        = hint: declare a plugin with `name: files` in `plugins`
        error: the configuration has 3 errors; nothing was changed
    outputs misspelt: exit 1
        error[unknown-key]: server.yaml has no key `ouputs`
        --> .sc/stacks/reef/server.yaml:15:1
        = hint: did you mean `outputs`?
        = hint: the keys are schemaVersion, provisioner, secrets, cicd, templates, resources, variables, plugins, outputs, references; a key that begins with `x-` is ignored
        error: the configuration has an error; nothing was changed
    another version: exit 1
        error[schema-version]: the version 2.0 of the format is not supported
        --> .sc/stacks/reef/server.yaml:1:16
        = hint: this program reads version 1.0
        error: the configuration has an error; nothing was changed
    duplicate key: exit 1
        error[duplicate-key]: the key `a` is written twice
        --> .sc/stacks/reef/server.yaml:14:9
        error[unknown-resource]: resource "b" referenced by output "file" is not defined in any env
        --> .sc/stacks/reef/server.yaml:16:9
        error: the configuration has 2 errors; nothing was changed
    key for other uses: exit 0
    second document: exit 0
        warning[yaml-document]: only the first document of a file is read
        --> .sc/stacks/reef/server.yaml:15:1
        = hint: remove this line, or move the second document to a file of its own
    unknown resource: exit 1
        error[unknown-resource]: resource "c" referenced by "b" is not defined in env "prod"
        --> .sc/stacks/reef/server.yaml:14:64
        error: the configuration has an error; nothing was changed
    unknown resource with a default: exit 1
        error[unknown-resource]: resource "c" referenced by "b" is not defined in env "prod"
        --> .sc/stacks/reef/server.yaml:14:64
        error: the configuration has an error; nothing was changed
    unknown output: exit 1
        error[unknown-output]: resource "a" has no output "pth"
        --> .sc/stacks/reef/server.yaml:14:64
        = hint: did you mean `path`?
        error: the resources of the stack have 1 error; nothing was changed
    unknown output with a default: exit 1
        error[unknown-output]: resource "a" has no output "pth"
        --> .sc/stacks/reef/server.yaml:14:64
        = hint: did you mean `path`?
        error: the resources of the stack have 1 error; nothing was changed
    output of the stack: exit 1
        error[unknown-output]: resource "b" has no output "contnt"
        --> .sc/stacks/reef/server.yaml:16:9
        = hint: did you mean `content`?
        error: the resources of the stack have 1 error; nothing was changed
    unclosed placeholder: exit 1
        error[malformed-placeholder]: `${resource:…` is not closed
        --> .sc/stacks/reef/server.yaml:14:64
        = hint: add the missing `}`, as in `${resource:KEY.PATH}`
        = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again
        error: the configuration has an error; nothing was changed
    nested placeholder: exit 1
        error[malformed-placeholder]: `${env:…}` contains another placeholder
        --> .sc/stacks/reef/server.yaml:14:64
        = hint: write text in its place: a placeholder cannot contain another one, not even in its default
        = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again
        error: the configuration has an error; nothing was changed
    placeholder in a key: exit 1
        error[placeholder-in-key]: `${env:A}` is in a key, but placeholders are resolved in values only
        --> .sc/stacks/reef/server.yaml:13:55
        = hint: write the key without a placeholder
        error: the configuration has an error; nothing was changed
    text of a shell: exit 0
    unset variable: exit 0
        warning[unset-variable]: the environment variable "UNSET" is not set, and `${env:UNSET}` has no default
        --> .sc/stacks/reef/server.yaml:14:65
        = hint: set the variable, or write a default: `${env:UNSET:DEFAULT}`
        = hint: if the text may be empty, write `${env:UNSET:}`
    unknown type: exit 1
        error[unknown-resource-type]: unknown resource type "files:fs:Fil": the schema of plugin files has no such type
        --> .sc/stacks/reef/server.yaml:14:20
        = hint: did you mean `files:fs:File`?
        = hint: `sc schema-gen` writes a list of the types of the plugins
        error: the resources of the stack have 1 error; nothing was changed
    unknown package: exit 1
        error[unknown-resource-type]: unknown resource type "fils:fs:File": no enabled plugin serves the package "fils"
        --> .sc/stacks/reef/server.yaml:14:20
        = hint: did you mean `files:fs:File`?
        error: the configuration has an error; nothing was changed
    unknown property: exit 1
        error[unknown-property]: the type files:fs:File has no property "contnt"
        --> .sc/stacks/reef/server.yaml:13:54
        = hint: did you mean `content`?
        = hint: it has content, mode, path
        error: the resources of the stack have 1 error; nothing was changed
    unknown configuration: exit 1
        error[unknown-property]: the configuration of package files has no property "rooot"
        --> .sc/stacks/reef/server.yaml:8:30
        = hint: did you mean `root`?
        = hint: it has root
        error: the resources of the stack have 1 error; nothing was changed
    unknown plugin file: exit 1
        error[plugin-load]: failed to load plugin files
        --> .sc/stacks/reef/server.yaml:8:13
        error: failed to load plugins: failed to load plugin files: failed to resolve plugin binary: cannot find plugin [repo]/nowhere: No such file or directory (os error 2)
    unknown secret: exit 1
        error[unresolved-placeholder]: the secret "token" is not defined for stack "reef"
        --> .sc/stacks/reef/server.yaml:14:64
        = hint: the stack has no secrets.yaml: write one beside server.yaml, with `values`
        error: the configuration has an error; nothing was changed
    unquoted placeholder: exit 1
        error[yaml-syntax]: this is not YAML: while parsing a flow mapping, did not find expected ',' or '}'
        --> .sc/stacks/reef/server.yaml:14:63
        = hint: put the value in quotes, as in `"${env:NAME}"`: a brace ends a value in a flow collection
        error: the configuration has an error; nothing was changed
    unquoted asterisk: exit 1
        error[yaml-syntax]: this is not YAML: while parsing node, found unknown anchor
        --> .sc/stacks/reef/server.yaml:14:63
        = hint: put a value that begins with `*` in quotes, as in `"*.example.com"`; without quotes it is an alias
        error: the configuration has an error; nothing was changed
    tab: exit 1
        error[yaml-syntax]: this is not YAML: tabs disallowed within this context (block indentation)
        --> .sc/stacks/reef/server.yaml:14:1
        = hint: use spaces for the indentation: YAML does not allow tabs there
        error: the configuration has an error; nothing was changed
    unclosed quote: exit 1
        error[yaml-syntax]: this is not YAML: unclosed quote
        --> .sc/stacks/reef/server.yaml:14:63
        = hint: close the quote; in a value in double quotes, write `\"` for a quote
        error: the configuration has an error; nothing was changed
    unclosed brace: exit 1
        error[yaml-syntax]: this is not YAML: while parsing a flow mapping, did not find expected ',' or '}'
        --> .sc/stacks/reef/server.yaml:14:9
        = hint: close the map with `}`; put a value that contains a brace in quotes
        error: the configuration has an error; nothing was changed
    "#);
}
