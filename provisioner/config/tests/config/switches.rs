//! Reading of `enabled`: resources and environments that are switched off.

use crate::repository::Files;

const PLUGIN: &str = "plugins: [{ name: p, source: { type: git, path: x, ref: v1.2.3 } }]\n";

/// Returns the resources that are registered, and those that are switched off.
fn read(resources: &str) -> (Vec<String>, Vec<String>) {
    let files = Files::sections(&format!(
        "{PLUGIN}variables: {{ no: {{ type: string, value: 'false' }} }}\nresources:\n  resources:\n{resources}"
    ));
    assert_eq!(files.messages(), "");
    let stack = files.read(&["s"]).loaded.stacks.remove(0);
    let enabled = stack.resources().map(|(environment, resource)| format!("{}/{}", environment.name, resource.key));
    let disabled = stack
        .environments
        .iter()
        .flat_map(|environment| environment.disabled.iter().map(move |key| format!("{}/{key}", environment.name)));
    (enabled.collect(), disabled.collect())
}

/// Shows: server-yaml.md#switches "The value is a boolean, or the text `true` or `false`, also of a placeholder"
#[test]
fn switch_is_a_boolean_or_a_text_of_one() {
    for (value, is_enabled) in [
        ("true", true),
        ("false", false),
        ("off", false),
        ("'false'", false),
        ("'true'", true),
        ("~", true),
        ("'${var:no}'", false),
        ("'${env:NONE:false}'", false),
        ("'${env:NONE:true}'", true),
    ] {
        let (enabled, disabled) =
            read(&format!("    e: {{ resources: {{ a: {{ type: 'p:m:T', enabled: {value} }} }} }}\n"));
        let (expected, other) = if is_enabled { (enabled, disabled) } else { (disabled, enabled) };
        assert_eq!((expected, other), (vec!["e/a".to_owned()], Vec::new()), "{value}");
    }
}

/// Shows: server-yaml.md#switches "A resource and an environment may be called `enabled`: what has the form of one is one."
#[test]
fn resource_and_environment_may_be_called_enabled() {
    let text = "    enabled: { resources: { a: { type: 'p:m:T' } } }
    e: { resources: { enabled: { type: 'p:m:T' } } }
    f: { enabled: false, resources: { a: { type: 'p:m:T' }, b: { type: 'p:m:T', enabled: true } } }
";
    let (enabled, disabled) = read(text);
    assert_eq!((enabled.concat(), disabled.concat()), ("enabled/ae/enabled".to_owned(), "f/af/b".to_owned()));
    let files =
        Files::sections(&format!("{PLUGIN}resources: {{ resources: {{ e: {{ enabled: {{ type: 'p:m:T' }} }} }} }}\n"));
    assert!(files.messages().contains("warning[shorthand]: resource \"enabled\" is taken as"), "{}", files.messages());
    let files = Files::sections(&format!("{PLUGIN}resources: {{ resources: {{ enabled: false }} }}\n"));
    assert!(files.messages().contains("`enabled` is in the place of an environment"), "{}", files.messages());
}

/// Shows: server-yaml.md#switches "A reference to a resource that is switched off needs a default"
#[test]
fn reference_to_what_is_switched_off_needs_a_default() {
    let files = Files::sections(&format!(
        "{PLUGIN}resources:
  resources:
    e:
      resources:
        a: {{ type: 'p:m:T', enabled: false }}
        b: {{ type: 'p:m:T', config: {{ v: '${{resource:a.id}}', w: '${{resource:a.id:none}}' }}, options: {{ dependsOn: [a] }} }}
outputs:
  all: ${{resource:e/a.id}}
  any: ${{resource:a.id}}
  some: ${{resource:a.id:none}}
"
    ));
    insta::assert_snapshot!(files.messages(), @r#"
    error[switched-off]: resource "a" is switched off (`enabled`), and the reference has no default
      --> .sc/stacks/s/server.yaml:12:43
       |
    12 |         b: { type: 'p:m:T', config: { v: '${resource:a.id}', w: '${resource:a.id:none}' }, options: { dependsOn: [a] } }
       |                                           ^^^^^^^^^^^^^^^^
       |
       = hint: write `${resource:a.id:DEFAULT}`

    error[switched-off]: resource "a" is switched off (`enabled`), and the reference has no default
      --> .sc/stacks/s/server.yaml:14:8
       |
    14 |   all: ${resource:e/a.id}
       |        ^^^^^^^^^^^^^^^^^^
       |
       = hint: write `${resource:e/a.id:DEFAULT}`

    error[switched-off]: resource "a" is switched off (`enabled`), and the reference has no default
      --> .sc/stacks/s/server.yaml:15:8
       |
    15 |   any: ${resource:a.id}
       |        ^^^^^^^^^^^^^^^^
       |
       = hint: write `${resource:a.id:DEFAULT}`
    "#);
    let files = Files::sections(&format!(
        "{PLUGIN}resources: {{ resources: {{ e: {{ enabled: [no], resources: {{ a: {{ type: 'p:m:T', enabled: maybe }}, b: {{ type: 'p:m:T', enabled: '${{stack:name}}' }} }} }} }} }}\n"
    ));
    insta::assert_snapshot!(files.messages(), @"
    error[wrong-kind]: `enabled` must be `true` or `false`
     --> .sc/stacks/s/server.yaml:7:41
      |
    7 | resources: { resources: { e: { enabled: [no], resources: { a: { type: 'p:m:T', enabled: maybe }, b: { type: 'p:m:T', enabled: '${stac...
      |                                         ^^^^
      |
      = hint: a placeholder that is known before the run may stand for one of them

    error[wrong-kind]: `enabled` must be `true` or `false`
     --> .sc/stacks/s/server.yaml:7:89
      |
    7 | resources: { resources: { e: { enabled: [no], resources: { a: { type: 'p:m:T', enabled: maybe }, b: { type: 'p:m:T', enabled: '${stac...
      |                                                                                         ^^^^^
      |
      = hint: a placeholder that is known before the run may stand for one of them

    error[enabled]: `enabled` must be `true` or `false`
     --> .sc/stacks/s/server.yaml:7:127
      |
    7 | ... 'p:m:T', enabled: maybe }, b: { type: 'p:m:T', enabled: '${stack:name}' } } } } }
      |                                                             ^^^^^^^^^^^^^^^
      |
      = hint: a placeholder that is known before the run may stand for one of them
    ");
}
