//! `parameters` of an entry of `plugins`.

use bridge::plugin::Parameters;

use crate::repository::Files;

fn declared(entry: &str) -> Option<Parameters> {
    let text = format!("variables: {{ v: {{ value: 0.27.1 }} }}\nplugins: [{{ name: reef, {entry} }}]\n");
    Files::sections(&text).stack().plugins[0].plugin.parameters.clone()
}

/// Shows: server-yaml.md#plugins "a list of texts, taken as they are written: `0.27` is not a number"
#[test]
fn parameters_are_taken_as_they_are_written() {
    for (entry, expected) in [
        ("", None),
        (", parameters:", None),
        (", parameters: [a/b]", Some(vec!["a/b"])),
        (", parameters: [a/b, '0.27.1']", Some(vec!["a/b", "0.27.1"])),
        (", parameters: [a/b, 0.27]", Some(vec!["a/b", "0.27"])),
        (", parameters: [1.10, true, 0x1F, 1_000, '', ~x]", Some(vec!["1.10", "true", "0x1F", "1_000", "", "~x"])),
        (", parameters: [a/b, '${var:v}', 'x-${stack:name}']", Some(vec!["a/b", "0.27.1", "x-s"])),
    ] {
        let parameters = declared(&format!("source: {{ type: local, path: p }}{entry}"));
        let arguments = parameters.map(|parameters| parameters.arguments);
        let expected: Option<Vec<String>> = expected.map(|texts| texts.into_iter().map(str::to_owned).collect());
        assert_eq!(arguments, expected, "{entry}");
    }
}

#[test]
fn repository_says_which_package_is_served_without_parameters() {
    for (source, base) in [
        ("type: local, path: p", "reef"),
        ("type: github-release, repository: pulumi/pulumi-many, version: v1.0.0", "many"),
        ("type: git, repository: 'https://git.example/many.git', version: main", "many"),
        ("type: git, repository: 'https://git.example/Many.git', version: main", "reef"),
    ] {
        let parameters = declared(&format!("source: {{ {source} }}, parameters: [a]")).unwrap();
        assert_eq!(parameters.base.as_str(), base, "{source}");
    }
}

#[test]
fn other_values_of_parameters_are_errors() {
    let messages = Files::sections(
        "
plugins:
  - name: a
    source: { type: local, path: p }
    parameters: honeycombio/honeycombio
  - name: b
    source: { type: local, path: p }
    parameters: []
  - name: c
    source: { type: local, path: p }
    parameters: [a, [b], { c: d }, ~]
  - name: d
    source: { type: local, path: p }
    parameters: ['${secret:s}', '${resource:r.id}']
",
    )
    .secrets("values: { s: hush }")
    .messages();
    assert!(!messages.contains("hush"));
    insta::assert_snapshot!(messages, @r#"
    error[plugin]: plugin "a": parameters must be a list
      --> .sc/stacks/s/server.yaml:10:17
       |
    10 |     parameters: honeycombio/honeycombio
       |                 ^^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: write the arguments that the plugin takes: `parameters: [honeycombio/honeycombio, 0.27.1]`

    error[plugin]: plugin "b": parameters is an empty list
      --> .sc/stacks/s/server.yaml:13:17
       |
    13 |     parameters: []
       |                 ^^
       |
       = hint: remove the key for a plugin that takes no parameters

    error[wrong-kind]: a parameter must be a text
      --> .sc/stacks/s/server.yaml:16:21
       |
    16 |     parameters: [a, [b], { c: d }, ~]
       |                     ^^^ this is a list

    error[wrong-kind]: a parameter must be a text
      --> .sc/stacks/s/server.yaml:16:26
       |
    16 |     parameters: [a, [b], { c: d }, ~]
       |                          ^^^^^^^^ this is a mapping

    error[plugin]: plugin "c": a parameter is empty
      --> .sc/stacks/s/server.yaml:16:36
       |
    16 |     parameters: [a, [b], { c: d }, ~]
       |                                    ^
       |
       = hint: write `""` for an empty text

    error[misplaced-secret]: a parameter cannot be a secret
      --> .sc/stacks/s/server.yaml:19:18
       |
    19 |     parameters: ['${secret:s}', '${resource:r.id}']
       |                  ^^^^^^^^^^^^^

    error[misplaced-reference]: `${resource:r.id}` is not allowed here
      --> .sc/stacks/s/server.yaml:19:34
       |
    19 |     parameters: ['${secret:s}', '${resource:r.id}']
       |                                  ^^^^^^^^^^^^^^^^
       |
       = hint: `${resource:…}` is allowed in `config` and `replacementTrigger` of a resource, in `arguments` of a function, and in `outputs`
    "#);
}
