//! Reading of resources, options and outputs.

use config::{AliasOption, AliasParentOption};

use crate::repository::Files;

const PLUGIN: &str = "plugins: [{ name: p, source: { type: git, path: x, ref: v1.2.3 } }]\n";

/// Shows: server-yaml.md#sections "Shorter forms are accepted with a warning"
#[test]
fn resources_are_found_in_three_levels_and_in_shorthand() {
    let files = Files::sections(&format!(
        "{PLUGIN}resources:
  prod:
    far: {{ type: 'p:m:T' }}
  resources:
    prod:
      template: web
      near: {{ type: 'p:m:T' }}
      resources:
        full: {{ type: 'p:m:T', name: nick }}
    empty: ~
"
    ));
    insta::assert_snapshot!(files.messages(), @r#"
    warning[shorthand]: env "prod" is taken as `resources.resources.prod.resources`
     --> .sc/stacks/s/server.yaml:8:3
      |
    8 |   prod:
      |   ^^^^
      |
      = hint: write the full path: the Go program ignores the shorthand

    warning[shorthand]: resource "near" is taken as `resources.resources.prod.resources.near`
      --> .sc/stacks/s/server.yaml:13:7
       |
    13 |       near: { type: 'p:m:T' }
       |       ^^^^
       |
       = hint: write the full path: the Go program ignores the shorthand

    warning[unused]: `name` has no effect on a resource of a plugin, whose logical name is "full--prod", from its key and its environment
      --> .sc/stacks/s/server.yaml:15:38
       |
    15 |         full: { type: 'p:m:T', name: nick }
       |                                      ^^^^
       |
       = hint: a resource that Pulumi has recorded under this name is kept with `options: { aliases: [{ name: "nick" }] }`
       = hint: a name in the cloud is an input of the type, in `config`; else remove `name`
    "#);
    let stack = files.read(&["s"]).loaded.stacks.remove(0);
    let keys: Vec<_> =
        stack.environments.iter().flat_map(|e| e.resources.iter().map(|r| (&*e.name, &*r.key, &*r.name))).collect();
    assert_eq!(keys, [("prod", "full", "nick"), ("prod", "near", "near"), ("prod", "far", "far")]);
}

#[test]
fn duplicate_resource_is_rejected() {
    let messages = Files::sections(&format!(
        "{PLUGIN}resources: {{ resources: {{ e: {{ a: {{ type: 'p:m:T' }}, resources: {{ a: {{ type: 'p:m:T' }} }} }} }} }}\n"
    ))
    .messages();
    insta::assert_snapshot!(messages, @r#"
    warning[shorthand]: resource "a" is taken as `resources.resources.e.resources.a`
     --> .sc/stacks/s/server.yaml:7:32
      |
    7 | resources: { resources: { e: { a: { type: 'p:m:T' }, resources: { a: { type: 'p:m:T' } } } } }
      |                                ^
      |
      = hint: write the full path: the Go program ignores the shorthand

    error[duplicate-resource]: resource "a" of env "e" is defined twice
     --> .sc/stacks/s/server.yaml:7:32
      |
    7 | resources: { resources: { e: { a: { type: 'p:m:T' }, resources: { a: { type: 'p:m:T' } } } } }
      |                                ^                                  - first defined here
    "#);
}

#[test]
fn all_options_are_read() {
    let stack = Files::sections(&format!(
        "{PLUGIN}resources:
  resources:
    e:
      resources:
        b: {{ type: 'p:m:T' }}
        a:
          type: p:m:T
          options:
            dependsOn: [b]
            protect: yes
            deleteBeforeReplace: false
            ignoreChanges: ['a.b[0]', '[\"x y\"]']
            additionalSecretOutputs: [out]
            aliases: ['urn:pulumi:s::reef::p:m:T::old', {{ name: older, noParent: true }}]
            import: id-${{stack:name}}
            customTimeouts: {{ create: 5m, delete: 90s }}
            version: 1.2.3
            provider: p
"
    ))
    .stack();
    let options = &stack.environments[0].resources[1].options;
    assert_eq!(options.depends_on[0].0, "b");
    assert_eq!(
        (options.protect, options.delete_before_replace, options.retain_on_delete),
        (Some(true), Some(false), None)
    );
    let ignored: Vec<&str> = options.ignore_changes.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(ignored, ["a.b[0]", "[\"x y\"]"]);
    assert_eq!(options.import.as_deref(), Some("id-s"));
    assert_eq!(options.custom_timeouts.create.unwrap().as_secs(), 300);
    assert!(
        matches!(&options.aliases[1], AliasOption::Spec { name: Some(name), parent: AliasParentOption::None, .. } if name == "older")
    );
}

#[test]
fn errors_in_options_are_reported() {
    let messages = Files::sections(&format!(
        "{PLUGIN}resources:
  resources:
    e:
      resources:
        a:
          type: p:m:T
          options:
            protected: true
            protect: maybe
            dependsOn: a
            ignoreChanges: ['a[']
            aliases: [nonsense, {{ parent: 'urn:pulumi:s::reef::p:m:T::x', noParent: true }}]
            customTimeouts: {{ create: 5, updat: 1s }}
            version: 1.3.0
"
    ))
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[unknown-key]: `options` has no key `protected`
      --> .sc/stacks/s/server.yaml:14:13
       |
    14 |             protected: true
       |             ^^^^^^^^^
       |
       = hint: did you mean `protect`?
       = hint: the keys are dependsOn, protect, deleteBeforeReplace, retainOnDelete, ignoreChanges, replaceOnChanges, replacementTrigger, replaceWith, deletedWith, hideDiffs, additionalSecretOutputs, aliases, import, customTimeouts, version, provider

    error[wrong-kind]: expected `true` or `false`, found a text
      --> .sc/stacks/s/server.yaml:15:22
       |
    15 |             protect: maybe
       |                      ^^^^^ this is a text

    error[wrong-kind]: `dependsOn` must be a list
      --> .sc/stacks/s/server.yaml:16:24
       |
    16 |             dependsOn: a
       |                        ^ this is a text

    error[option]: a bracket of a property path lacks its closing bracket
      --> .sc/stacks/s/server.yaml:17:29
       |
    17 |             ignoreChanges: ['a[']
       |                             ^^^^

    error[option]: "nonsense" is not a URN (expected urn:pulumi:STACK::PROJECT::TYPE::NAME)
      --> .sc/stacks/s/server.yaml:18:23
       |
    18 |             aliases: [nonsense, { parent: 'urn:pulumi:s::reef::p:m:T::x', noParent: true }]
       |                       ^^^^^^^^

    error[option]: an alias has either `parent` or `noParent`
      --> .sc/stacks/s/server.yaml:18:43
       |
    18 |             aliases: [nonsense, { parent: 'urn:pulumi:s::reef::p:m:T::x', noParent: true }]
       |                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error[option]: "5" is not a duration
      --> .sc/stacks/s/server.yaml:19:39
       |
    19 |             customTimeouts: { create: 5, updat: 1s }
       |                                       ^
       |
       = hint: write one such as `90s`, `5m` or `1h30m`

    error[unknown-key]: `customTimeouts` has no key `updat`
      --> .sc/stacks/s/server.yaml:19:42
       |
    19 |             customTimeouts: { create: 5, updat: 1s }
       |                                          ^^^^^
       |
       = hint: did you mean `update`?
       = hint: the keys are create, update, delete, read

    error[option]: version 1.3.0 is not that of the plugin "p"
      --> .sc/stacks/s/server.yaml:20:22
       |
     6 | plugins: [{ name: p, source: { type: git, path: x, ref: v1.2.3 } }]
       |                   - the plugin is declared with version 1.2.3
    ...
    20 |             version: 1.3.0
       |                      ^^^^^
    "#);
}

/// Shows: server-yaml.md#values "Values that YAML 1.1 would read differently (`yes`, `012`, `0x1F`, `1_000`, dates),
///   and integers beyond 2^53, cause a warning"
#[test]
fn ambiguous_scalars_are_reported_as_warnings() {
    let messages = Files::sections("outputs: { a: yes, b: 012, c: 90071992547409931, d: 1.50, e: 'no' }\n").messages();
    insta::assert_snapshot!(messages, @r"
    warning[ambiguous-scalar]: `yes` is read as text
     --> .sc/stacks/s/server.yaml:6:15
      |
    6 | outputs: { a: yes, b: 012, c: 90071992547409931, d: 1.50, e: 'no' }
      |               ^^^
      |
      = note: YAML 1.1 reads it as something else
      = hint: put it in quotes

    warning[ambiguous-scalar]: `012` is read as text
     --> .sc/stacks/s/server.yaml:6:23
      |
    6 | outputs: { a: yes, b: 012, c: 90071992547409931, d: 1.50, e: 'no' }
      |                       ^^^
      |
      = note: YAML 1.1 reads it as something else
      = hint: put it in quotes

    warning[rounded-number]: the number is too large to be exact
     --> .sc/stacks/s/server.yaml:6:31
      |
    6 | outputs: { a: yes, b: 012, c: 90071992547409931, d: 1.50, e: 'no' }
      |                               ^^^^^^^^^^^^^^^^^
      |
      = note: integers beyond 2^53 lose their last digits
      = hint: put it in quotes if it is an identifier
    ");
}
