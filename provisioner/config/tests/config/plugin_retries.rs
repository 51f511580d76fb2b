//! `retry` of an entry of `plugins`.

use bridge::plugin::Retry;

use crate::repository::Files;

#[test]
fn mutations_are_repeated_only_if_it_is_declared() {
    for (entry, mutations) in [
        ("", false),
        (", retry:", false),
        (", retry: {}", false),
        (", retry: { mutations: }", false),
        (", retry: { mutations: false }", false),
        (", retry: { mutations: true }", true),
    ] {
        let text = format!("plugins: [{{ name: acme, source: {{ type: local, path: p }}{entry} }}]\n");
        let stack = Files::sections(&text).stack();
        assert_eq!(stack.plugins[0].plugin.retry, Retry { mutations }, "{entry}");
    }
}

#[test]
fn other_keys_and_values_of_retry_are_errors() {
    let messages = Files::sections(
        "
plugins:
  - name: a
    source: { type: local, path: p }
    retry: true
  - name: b
    source: { type: local, path: p }
    retry: { mutation: true }
  - name: c
    source: { type: local, path: p }
    retry: { mutations: often }
",
    )
    .messages();
    insta::assert_snapshot!(messages, @"
    error[wrong-kind]: `retry` must be a mapping
      --> .sc/stacks/s/server.yaml:10:12
       |
    10 |     retry: true
       |            ^^^^ this is a boolean

    error[unknown-key]: retry has no key `mutation`
      --> .sc/stacks/s/server.yaml:13:14
       |
    13 |     retry: { mutation: true }
       |              ^^^^^^^^
       |
       = hint: did you mean `mutations`?
       = hint: the keys are mutations

    error[wrong-kind]: expected `true` or `false`, found a text
      --> .sc/stacks/s/server.yaml:16:25
       |
    16 |     retry: { mutations: often }
       |                         ^^^^^ this is a text
    ");
}
