//! Keys that the Go program ignores in a server.yaml.

use config::ignored_by_go;

use crate::repository::Files;

/// Shows: server-yaml.md#environments-and-stacks "`sc validate --compat` lists what the Go program ignores in the files"
#[test]
fn keys_that_the_go_program_does_not_know_are_listed_with_their_effect() {
    let files = Files::sections(
        "plugins: [{ name: p, source: { type: git, path: x, ref: v1.2.3 } }]
resources:
  moved: [{ from: e/a, to: e/b }]
  functions: { ask: { function: 'p:ask' } }
  resources:
    e:
      enabled: true
      functions: { of: { function: 'p:ask' } }
      resources:
        b: { type: 'p:m:T', enabled: true, options: { protect: true } }
        c: { type: 'p:m:T', forEach: [x], name: n }
    f:
      enabled: { type: 'p:m:T' }
      functions: { type: 'p:m:T' }
outputs: { v: x }
",
    );
    let sources = files.read(&["s"]).sources;
    let found: Vec<String> = ignored_by_go(&sources)
        .iter()
        .map(|found| {
            let position = sources.position(found.span.unwrap());
            format!("{}:{} {}", position.line, position.column, found.summary)
        })
        .collect();
    insta::assert_snapshot!(found.join("\n"), @"
    6:1 the Go program ignores `plugins`: it has no plugins, and refuses their types
    20:1 the Go program ignores `outputs`: it exports none of them
    8:3 the Go program ignores `moved`: it creates the resource and deletes the former one
    9:3 the Go program ignores `functions`: it calls none of them, and leaves `${function:…}` as it is
    12:7 the Go program ignores `enabled`: it registers the resources of an environment that is switched off
    13:7 the Go program ignores `functions`: it calls none of them, and leaves `${function:…}` as it is
    15:29 the Go program ignores `enabled`: it registers a resource that is switched off
    15:44 the Go program ignores `options`: it protects nothing and keeps no order
    16:29 the Go program ignores `forEach`: it registers one resource, and leaves `${each:…}` as it is
    ");
}
