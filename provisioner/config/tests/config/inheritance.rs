//! `inherit` (docs/spec/simple-container.md#2.3).

use crate::repository::{Files, PROVISIONER};

fn stacks(stacks: &[(&str, &str, &str)]) -> Files {
    stacks.iter().fold(Files::empty(), |files, (name, server, secrets)| {
        files
            .with(&format!(".sc/stacks/{name}/server.yaml"), server)
            .with(&format!(".sc/stacks/{name}/secrets.yaml"), secrets)
    })
}

/// Shows: server-yaml.md#sections "It works through any number of stacks"
/// Shows: server-yaml.md#sections "Inherited values are resolved with the names and secrets of the stack that inherits
///   them."
#[test]
fn blocks_are_inherited_through_chains_and_resolved_for_the_inheriting_stack() {
    let base = "
provisioner:
  type: pulumi
  config:
    state-storage: { type: fs, config: { path: 'file:///${stack:name}/${secret:own}' } }
    secrets-provider: { type: passphrase }
";
    let files = stacks(&[
        ("base", base, "values: { own: base }"),
        ("middle", "provisioner: { inherit: base }", "values: { own: middle }"),
        ("app", "provisioner: { inherit: middle }", "values: { own: app }"),
    ]);
    // Inherited stacks are read on demand and come first if they are selected.
    let read = files.read(&["app", "base"]);
    assert_eq!(read.messages(), "");
    let urls: Vec<_> =
        read.loaded.stacks.iter().map(|stack| format!("{:?}", stack.provisioner.state_storage)).collect();
    assert!(urls[0].contains("file:///base/base") && urls[1].contains("file:///app/app"), "{urls:?}");
}

#[test]
fn each_inherit_of_the_files_that_were_read_is_listed_with_its_position() {
    let files = stacks(&[
        ("app", "provisioner: { inherit: middle }\nsecrets: { inherit: base }\n", "auth: { a: { inherit: base } }"),
        ("base", PROVISIONER, "auth: { a: { type: pulumi-token, config: { credentials: c } } }"),
        ("middle", "provisioner: { inherit: base }", ""),
        ("other", "provisioner: { inherit: app }", ""),
    ]);
    let read = files.read(&["app"]);
    assert_eq!(read.messages(), "");
    let inheritance = read.loaded.inheritance.iter();
    let listed = inheritance.map(|link| format!("{} {} {}", link.stack, link.from, read.sources.position(link.span)));
    assert_eq!(
        listed.collect::<Vec<_>>(),
        [
            "app middle .sc/stacks/app/server.yaml:1:25",
            "app base .sc/stacks/app/server.yaml:2:21",
            "app base .sc/stacks/app/secrets.yaml:1:23",
            "middle base .sc/stacks/middle/server.yaml:1:25",
        ]
    );
}

#[test]
fn inherited_secrets_replace_own_secrets_and_auth_entries_are_resolved() {
    let server = format!(
        "{PROVISIONER}secrets: {{ inherit: base }}
plugins: [{{ name: p, source: {{ type: local, path: p }}, initSecrets: all }}]\n"
    );
    let files = stacks(&[
        ("base", "secrets: {}", "auth: { a: { inherit: far } }\nvalues: { own: base }"),
        ("far", "", "auth: { a: { type: pulumi-token, config: { credentials: c } } }"),
        ("app", &server, "values: { own: app, more: x }"),
    ]);
    let read = files.read(&["app"]);
    assert_eq!(read.messages(), "");
    let secrets = &read.loaded.stacks[0].plugins[0].secrets;
    assert_eq!(secrets.secrets.iter().map(|(k, v)| (&**k, v.expose())).collect::<Vec<_>>(), [("own", "base")]);
    assert_eq!(secrets.auth["a"].credentials().expose(), "c");
}

/// Shows: comparison.md#where-the-go-tool-reports-nothing "`inherit` from a missing stack, or in a cycle | inherits
///   nothing | an error"
#[test]
fn missing_targets_and_inheritance_cycles_are_reported() {
    let files = stacks(&[
        ("a", "provisioner: { inherit: b }\nsecrets: { inherit: ghost }\ncicd: { inherit: phantom }\n", ""),
        ("b", "provisioner: { inherit: a }\n", "auth: { x: { inherit: a } }"),
    ]);
    insta::assert_snapshot!(files.read(&["a", "b"]).messages(), @r#"
    error[inherit-cycle]: `provisioner` is inherited in a cycle: a -> b -> a
     --> .sc/stacks/a/server.yaml:1:25
      |
    1 | provisioner: { inherit: b }
      |                         ^

    error[inherit]: the stack "ghost" to inherit `secrets` from does not exist
     --> .sc/stacks/a/server.yaml:2:21
      |
    2 | secrets: { inherit: ghost }
      |                     ^^^^^

    error[inherit]: the stack "phantom" to inherit `cicd` from does not exist
     --> .sc/stacks/a/server.yaml:3:18
      |
    3 | cicd: { inherit: phantom }
      |                  ^^^^^^^

    error[inherit-cycle]: `provisioner` is inherited in a cycle: b -> a -> b
     --> .sc/stacks/b/server.yaml:1:25
      |
    1 | provisioner: { inherit: a }
      |                         ^

    error[inherit]: the stack "a" has no auth entry "x" to inherit
    --> .sc/stacks/b/secrets.yaml:1:23
    "#);
}

#[test]
fn environments_and_resources_cannot_be_inherited() {
    let messages = Files::sections(
        "
resources:
  resources:
    e: { inherit: x }
    f: { inherit: x, resources: { a: { inherit: y }, b: { inherit: y, type: s3-bucket } } }
",
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[inherit]: an environment cannot be inherited
     --> .sc/stacks/s/server.yaml:9:19
      |
    9 |     e: { inherit: x }
      |                   ^
      |
      = hint: `provisioner`, `secrets`, `cicd`, `templates` and entries of `auth` can be

    error[inherit-and-resources]: resources are inherited, but resources are defined for stack "f"
      --> .sc/stacks/s/server.yaml:10:19
       |
    10 |     f: { inherit: x, resources: { a: { inherit: y }, b: { inherit: y, type: s3-bucket } } }
       |                   ^
       |
       = hint: remove `inherit`

    error[inherit]: a resource cannot be inherited
      --> .sc/stacks/s/server.yaml:10:49
       |
    10 |     f: { inherit: x, resources: { a: { inherit: y }, b: { inherit: y, type: s3-bucket } } }
       |                                                 ^
       |
       = hint: `provisioner`, `secrets`, `cicd`, `templates` and entries of `auth` can be

    error[inherit-and-type]: resource "b" is inherited, but type is defined for stack "f"
      --> .sc/stacks/s/server.yaml:10:68
       |
    10 |     f: { inherit: x, resources: { a: { inherit: y }, b: { inherit: y, type: s3-bucket } } }
       |                                                                    ^
       |
       = hint: remove `inherit`
    "#);
}
