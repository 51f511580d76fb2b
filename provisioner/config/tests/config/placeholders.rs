//! Resolution of placeholders, and diagnostics of unresolved ones.

use config::ResourceImplementation;
use config::StateStorage;
use config::tree::{Part, Value};

use crate::repository::Files;

const PLUGIN: &str = "plugins: [{ name: p, source: { type: local, path: p } }]\n";

/// Resolves a text inside the `config` of a resource. A leading `?` marks a secret text, `<…>` a reference.
fn resolve(text: &str) -> String {
    let server = format!(
        "{PLUGIN}variables: {{ color: {{ type: string, value: green }}, ph: {{ type: string, value: '${{env:NAME}}' }} }}\n\
         resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: 'p:m:A' }}, b: {{ type: 'p:m:B', config: {{ x: '{text}' }} }} }} }} }} }}\n"
    );
    let secrets = "auth:\n  aw: { type: aws-token, config: { account: '123', accessKey: AK, secretAccessKey: S<&>K, region: r } }\n\
                   values: { TOKEN: t0k, PH: '${var:color}' }\n";
    let stack = Files::sections(&server).secrets(secrets).environment(vec![("NAME", "pear"), ("EMPTY", "")]).stack();
    let resource = &stack.environments[0].resources[1];
    assert!(matches!(resource.implementation, ResourceImplementation::Plugin { plugin: 0, .. }));
    match &resource.config.get_path(["x"]).unwrap().value {
        Value::Scalar(scalar) => scalar.text.clone(),
        Value::Interpolated(string) => {
            let part = |part: &Part| match part {
                Part::Text(text) => text.clone(),
                Part::Value(value) => format!("{value:?}"),
                Part::Unknown { placeholder } => placeholder.clone(),
                Part::Reference(reference) => {
                    let default = reference.default.as_ref().map_or(String::new(), |text| format!(" or {text}"));
                    format!("<{} {}{default}>", reference.resource, reference.path.join("/"))
                }
            };
            let text: String = string.parts.iter().map(part).collect();
            format!("{}{text}", if string.secret { "?" } else { "" })
        }
        other => panic!("{other:?}"),
    }
}

/// Shows: server-yaml.md#placeholders "what only a shell expands stays as well"
#[test]
fn each_namespace_resolves_its_values() {
    for (text, expected) in [
        ("a${env:NAME}b${env:NAME}c", "apearbpearc"),
        ("${env:EMPTY}${env:MISSING:}", ""),
        ("${env:MISSING:a:b}", "a:b"),
        ("${env:EMPTY:def}", "def"),
        ("$${env:NAME}}", "$pear}"),
        // Only a shell expands these.
        (
            "${1:-x} ${@} ${#a[@]} ${HOME:-/root} ${A:=http://b} ${A:?is: unset}",
            "${1:-x} ${@} ${#a[@]} ${HOME:-/root} ${A:=http://b} ${A:?is: unset}",
        ),
        ("${unknown:x:d:e}", "d:e"),
        ("${secret:TOKEN}", "?t0k"),
        ("x${secret:TOKEN}", "?xt0k"),
        ("${secret:PH}", "?${var:color}"),
        ("${var:color} ${var:ph}", "green ${env:NAME}"),
        ("${stack:name}", "s"),
        (
            "${auth:aw}",
            r#"?{"account":"123","accessKey":"AK","secretAccessKey":"S\u003c\u0026\u003eK","region":"r","credentials":""}"#,
        ),
        ("${auth:aw.projectId}", "?123"),
        ("${git:branch} ${git:branch.raw} ${git:commit.short}", "f-x f/x 39d4ed9"),
        ("${date:time} ${date:rfc3339} ${date:timestamp}", "2024-01-02T03:04:05 2024-01-02T03:04:05Z 1704164645"),
        ("${user:home} ${user:name}", "/home/pearl Pearl Diver"),
        ("${resource:a.b.0}", "<a b/0>"),
        ("${resource:a.b:c:d} ${resource:a.b:}", "<a b or c:d> <a b or >"),
        ("${resource:a.id}-${resource:a.urn}${secret:TOKEN}", "?<a id>-<a urn>t0k"),
        ("${} ${", "${} ${"),
    ] {
        assert_eq!(resolve(text), expected, "{text}");
    }
}

#[test]
fn provisioner_fields_are_typed_before_they_are_resolved() {
    let server = "
provisioner:
  type: pulumi
  config:
    organization: organization
    state-storage: { type: fs, config: { path: 'file://${project:root}/x' } }
    secrets-provider: { type: passphrase, config: { passPhrase: '${secret:pass}' } }
";
    let read = Files::server(server).secrets("values: { pass: 0123 }").read(&["s"]);
    assert_eq!(read.messages(), "");
    let provisioner = &read.loaded.stacks[0].provisioner;
    let StateStorage::FileSystem { url, .. } = &provisioner.state_storage else { panic!("{provisioner:?}") };
    assert_eq!(*url, format!("file://{}/x", read.root.display()));
    let passphrase = provisioner.secrets_provider.passphrase();
    assert_eq!(passphrase.unwrap().expose(), "0123");
    assert_eq!(format!("{passphrase:?}"), "Some([secret])");
}

/// Shows: server-yaml.md#placeholders "If the path of the repository has a `?`, it is refused in the URL of the state
///   storage"
#[test]
fn path_of_the_repository_with_reserved_characters_is_refused_in_urls_that_it_would_change() {
    let server = "
provisioner:
  type: pulumi
  config:
    state-storage: { type: fs, config: { path: 'file://${project:root}/x' } }
    secrets-provider: { type: passphrase, config: { passPhrase: p } }
plugins:
  - { name: p, source: { type: git, path: 'file://${git:root}/p', ref: v1 } }
";
    assert_eq!(Files::server(server).in_folder("a #b&c").messages(), "");
    let messages = Files::server(server).in_folder("a?b%41").messages();
    insta::assert_snapshot!(messages, @r#"
    error[provisioner]: the path of the repository contains `?`, which begins the parameters of a `file://` URL
     --> .sc/stacks/s/server.yaml:5:48
      |
    5 |     state-storage: { type: fs, config: { path: 'file://${project:root}/x' } }
      |                                                ^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: move the repository to a folder without `?` in its path, or keep the state elsewhere

    error[plugin]: plugin "p": the path of the repository contains `%`, and git decodes `%` in a `file://` URL
     --> .sc/stacks/s/server.yaml:8:43
      |
    8 |   - { name: p, source: { type: git, path: 'file://${git:root}/p', ref: v1 } }
      |                                           ^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: write the path without `file://`
    "#);
    let relative = server.replace("file://${git:root}/", "./").replace("file://${project:root}", "file:///state");
    assert_eq!(Files::server(&relative).in_folder("a?b%41").messages(), "");
}

/// Shows: server-yaml.md#placeholders "A placeholder that cannot be resolved is an error."
#[test]
fn unresolved_placeholders_are_reported_with_suggestions() {
    let messages = Files::sections(
        r#"
variables: { color: { value: green } }
plugins:
  - name: p
    source: { type: local, path: "${env:X:p}" }
    config:
      a: "${secret:TOKN} and ${var:colour}"
      b: "${auth:aw.region} ${auth:wa}"
      c: "${git:comit.short} ${evn:HOME} ${aws:username} ${user}"
      d: "\u0024{secret:none}"
      e: "${resource:a.b}"
"#,
    )
    .secrets("auth: { aw: { type: pulumi-token, config: { credentials: c } } }\nvalues: { TOKEN: t }\n")
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[unresolved-placeholder]: the secret "TOKN" is not defined for stack "s"
      --> .sc/stacks/s/server.yaml:12:11
       |
    12 |       a: "${secret:TOKN} and ${var:colour}"
       |           ^^^^^^^^^^^^^^
       |
       = hint: did you mean `TOKEN`?
       = hint: add it to `values` of the stack's secrets.yaml

    error[unresolved-placeholder]: the variable "colour" is not defined
      --> .sc/stacks/s/server.yaml:12:30
       |
    12 |       a: "${secret:TOKN} and ${var:colour}"
       |                              ^^^^^^^^^^^^^
       |
       = hint: did you mean `color`?
       = hint: add it to `variables` as `{ type: string, value: … }`

    error[unresolved-placeholder]: an auth entry has no property "region"
      --> .sc/stacks/s/server.yaml:13:11
       |
    13 |       b: "${auth:aw.region} ${auth:wa}"
       |           ^^^^^^^^^^^^^^^^^
       |
       = hint: `${auth:aw}` is its credentials, `${auth:aw.projectId}` its account or project

    error[unresolved-placeholder]: the auth entry "wa" is not defined for stack "s"
      --> .sc/stacks/s/server.yaml:13:29
       |
    13 |       b: "${auth:aw.region} ${auth:wa}"
       |                             ^^^^^^^^^^
       |
       = hint: did you mean `aw`?
       = hint: add it to `auth` of the stack's secrets.yaml

    error[unresolved-placeholder]: the namespace `git` has no "comit.short"
      --> .sc/stacks/s/server.yaml:14:11
       |
    14 |       c: "${git:comit.short} ${evn:HOME} ${aws:username} ${user}"
       |           ^^^^^^^^^^^^^^^^^^
       |
       = hint: did you mean `commit.short`?
       = hint: it has root, commit.short, commit.full, branch, branch.clean, branch.raw

    error[unresolved-placeholder]: `${evn:HOME}` cannot be resolved: there is no namespace "evn"
      --> .sc/stacks/s/server.yaml:14:30
       |
    14 |       c: "${git:comit.short} ${evn:HOME} ${aws:username} ${user}"
       |                              ^^^^^^^^^^^
       |
       = hint: did you mean `env`?
       = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again

    error[unresolved-placeholder]: `${aws:username}` cannot be resolved: there is no namespace "aws"
      --> .sc/stacks/s/server.yaml:14:42
       |
    14 |       c: "${git:comit.short} ${evn:HOME} ${aws:username} ${user}"
       |                                          ^^^^^^^^^^^^^^^
       |
       = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again

    error[unresolved-placeholder]: `${user}` has no name
      --> .sc/stacks/s/server.yaml:14:58
       |
    14 |       c: "${git:comit.short} ${evn:HOME} ${aws:username} ${user}"
       |                                                          ^^^^^^^
       |
       = hint: write `${user:NAME}`

    error[unresolved-placeholder]: the secret "none" is not defined for stack "s"
      --> .sc/stacks/s/server.yaml:15:10
       |
    15 |       d: "\u0024{secret:none}"
       |          ^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: add it to `values` of the stack's secrets.yaml

    error[misplaced-reference]: `${resource:a.b}` is not allowed here
      --> .sc/stacks/s/server.yaml:16:11
       |
    16 |       e: "${resource:a.b}"
       |           ^^^^^^^^^^^^^^^
       |
       = hint: `${resource:…}` is allowed in `config` and `replacementTrigger` of a resource, in `arguments` of a function, and in `outputs`
    "#);
}

#[test]
fn malformed_and_misplaced_references_are_rejected() {
    let messages = Files::sections(
        r#"
plugins: [{ name: p, source: { type: local, path: p } }]
resources:
  resources:
    e:
      resources:
        a: { type: "p:m:A", config: { x: "${resource:b}", y: "${resource:f/b.c}", z: "${resource:bb.c}" } }
        b: { type: "p:m:A", options: { dependsOn: [aa], import: "${resource:a.id}" } }
        c: { type: "p:m:A", config: { x: "${resource:d.x}" } }
        d: { type: "p:m:A", config: { x: "${resource:c.x}" } }
    f:
      resources:
        b: { type: "p:m:A", config: { x: "${resource:b.x}" } }
outputs:
  p: "${resource:b.x}"
  q: "${resource:g/b.x}"
  r: "${resource:e/bx.x} ${resource:zzz.x:none}"
"#,
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[malformed-reference]: resource placeholder requires format ${resource:KEY.PATH}, got: ${resource:b}
      --> .sc/stacks/s/server.yaml:12:43
       |
    12 |         a: { type: "p:m:A", config: { x: "${resource:b}", y: "${resource:f/b.c}", z: "${resource:bb.c}" } }
       |                                           ^^^^^^^^^^^^^

    error[unknown-resource]: resource "bb" referenced by "a" is not defined in env "e"
      --> .sc/stacks/s/server.yaml:12:87
       |
    12 |         a: { type: "p:m:A", config: { x: "${resource:b}", y: "${resource:f/b.c}", z: "${resource:bb.c}" } }
       |                                                                                       ^^^^^^^^^^^^^^^^

    error[unknown-resource]: resource "aa" referenced by "b" is not defined in env "e"
      --> .sc/stacks/s/server.yaml:13:52
       |
    13 |         b: { type: "p:m:A", options: { dependsOn: [aa], import: "${resource:a.id}" } }
       |                                                    ^^

    error[misplaced-reference]: `${resource:a.id}` is not allowed here
      --> .sc/stacks/s/server.yaml:13:66
       |
    13 |         b: { type: "p:m:A", options: { dependsOn: [aa], import: "${resource:a.id}" } }
       |                                                                  ^^^^^^^^^^^^^^^^
       |
       = hint: `${resource:…}` is allowed in `config` and `replacementTrigger` of a resource, in `arguments` of a function, and in `outputs`

    error[dependency-cycle]: resource dependency cycle: c -> d -> c
      --> .sc/stacks/s/server.yaml:15:43
       |
    15 |         d: { type: "p:m:A", config: { x: "${resource:c.x}" } }
       |                                           ^^^^^^^^^^^^^^^

    error[dependency-cycle]: resource dependency cycle: b -> b
      --> .sc/stacks/s/server.yaml:18:43
       |
    18 |         b: { type: "p:m:A", config: { x: "${resource:b.x}" } }
       |                                           ^^^^^^^^^^^^^^^

    error[unknown-resource]: resource "b" referenced by output "p" is defined in several envs
      --> .sc/stacks/s/server.yaml:20:7
       |
    20 |   p: "${resource:b.x}"
       |       ^^^^^^^^^^^^^^^
       |
       = hint: name the env: `${resource:e/b.x}`

    error[unknown-resource]: env "g" referenced by output "q" is not defined
      --> .sc/stacks/s/server.yaml:21:7
       |
    21 |   q: "${resource:g/b.x}"
       |       ^^^^^^^^^^^^^^^^^

    error[unknown-resource]: resource "bx" referenced by output "r" is not defined in env "e"
      --> .sc/stacks/s/server.yaml:22:7
       |
    22 |   r: "${resource:e/bx.x} ${resource:zzz.x:none}"
       |       ^^^^^^^^^^^^^^^^^^

    error[unknown-resource]: resource "zzz" referenced by output "r" is not defined in any env
      --> .sc/stacks/s/server.yaml:22:26
       |
    22 |   r: "${resource:e/bx.x} ${resource:zzz.x:none}"
       |                          ^^^^^^^^^^^^^^^^^^^^^^
    "#);
}
