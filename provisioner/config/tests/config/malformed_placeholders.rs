//! Placeholders that cannot have a value: unclosed, nested or in a key. Environment variables that are not set.

use config::diagnostics::Severity;

use crate::repository::{Files, PROVISIONER};

/// Reads a server.yaml, in which each `§` marks the position of a diagnostic. Returns the codes of the diagnostics and
/// the texts of their positions.
fn marked_diagnostics(server: &str) -> Vec<(&'static str, String)> {
    let read = Files::server(&server.replace('§', "")).read(&["s"]);
    let (mut marks, mut removed) = (Vec::new(), 0);
    for (at, mark) in server.match_indices('§') {
        marks.push(at - removed);
        removed += mark.len();
    }
    let spans: Vec<_> = read.loaded.diagnostics.iter().map(|diagnostic| diagnostic.span.unwrap()).collect();
    assert_eq!(
        spans.iter().map(|span| span.start as usize).collect::<Vec<_>>(),
        marks,
        "{server}\n{}",
        read.messages()
    );
    let codes = read.loaded.diagnostics.iter().map(|diagnostic| diagnostic.code.0);
    codes.zip(spans.into_iter().map(|span| read.sources.slice(span).to_owned())).collect()
}

#[test]
fn malformed_placeholders_and_placeholders_in_keys_are_errors() {
    let messages = Files::sections(
        r#"
plugins: [{ name: p, source: { type: local, path: p } }]
resources:
  resources:
    e:
      resources:
        a:
          type: p:m:A
          config:
            unclosed: "x ${resource:b.value"
            nested: "${resource:${env:X}.value} ${env:X:${var:Y}}"
            json: '{"a": "${secret:X", "b": 1}'
            "${env:X}": in a key
            lines: |
              #!/bin/sh
              echo ${HOME:
              echo é ${env:X
        b: { type: "p:m:B" }
"#,
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[malformed-placeholder]: `${resource:…` is not closed
      --> .sc/stacks/s/server.yaml:15:26
       |
    15 |             unclosed: "x ${resource:b.value"
       |                          ^^^^^^^^^^^
       |
       = hint: add the missing `}`, as in `${resource:KEY.PATH}`
       = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again

    error[malformed-placeholder]: `${resource:…}` contains another placeholder
      --> .sc/stacks/s/server.yaml:16:22
       |
    16 |             nested: "${resource:${env:X}.value} ${env:X:${var:Y}}"
       |                      ^^^^^^^^^^^
       |
       = hint: write text in its place: a placeholder cannot contain another one, not even in its default
       = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again

    error[malformed-placeholder]: `${env:…}` contains another placeholder
      --> .sc/stacks/s/server.yaml:16:49
       |
    16 |             nested: "${resource:${env:X}.value} ${env:X:${var:Y}}"
       |                                                 ^^^^^^
       |
       = hint: write text in its place: a placeholder cannot contain another one, not even in its default
       = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again

    error[malformed-placeholder]: `${secret:…` is not closed
      --> .sc/stacks/s/server.yaml:17:27
       |
    17 |             json: '{"a": "${secret:X", "b": 1}'
       |                           ^^^^^^^^^
       |
       = hint: add the missing `}`, as in `${secret:NAME}`
       = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again

    error[placeholder-in-key]: `${env:X}` is in a key, but placeholders are resolved in values only
      --> .sc/stacks/s/server.yaml:18:14
       |
    18 |             "${env:X}": in a key
       |              ^^^^^^^^
       |
       = hint: write the key without a placeholder

    error[malformed-placeholder]: `${env:…` is not closed
      --> .sc/stacks/s/server.yaml:22:22
       |
    22 |               echo é ${env:X
       |                      ^^^^^^
       |
       = hint: add the missing `}`, as in `${env:NAME}`
       = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again
    "#);
}

/// Shows: server-yaml.md#placeholders "is an error if it is not closed (`${env:HOME`), if it contains another one, even
///   in its default (`${env:A:${env:B}}`), or if it is in a key"
#[test]
fn malformed_placeholders_are_errors_in_each_section() {
    let resource = |rest: &str| {
        let plugin = "plugins: [{ name: p, source: { type: local, path: p } }]";
        format!("{PROVISIONER}{plugin}\nresources: {{ resources: {{ e: {{ resources: {{ {rest} }} }} }} }}\n")
    };
    let plugin = |rest: &str| format!("{PROVISIONER}plugins: [{{ name: p, {rest} }}]\n");
    let sections = |rest: &str| format!("{PROVISIONER}{rest}\n");
    let local = "source: { type: local, path: p }";
    for (server, position) in [
        (PROVISIONER.replace("file:///state", "'file://§${project:root/x'"), "${project:"),
        (PROVISIONER.replace("passPhrase: p", "passPhrase: '§${secret:${env:X}}'"), "${secret:"),
        (plugin("source: { type: local, path: '§${env:P' }"), "${env:"),
        (plugin(&format!("{local}, config: {{ k: '§${{auth:' }}")), "${auth:"),
        (resource("a: { type: 'p:m:A', name: 'é §${stack:name' }"), "${stack:"),
        (resource("a: { type: 'p:m:A', config: { l: [x, '§${var:v'] } }"), "${var:"),
        (resource("a: { type: 'p:m:A', options: { import: '§${date:year' } }"), "${date:"),
        (sections("outputs: { o: '§${resource:${stack:name}/a.b}' }"), "${resource:"),
        (sections("outputs: { o: '§${HOME:-${user:home}}' }"), "${"),
    ] {
        assert_eq!(marked_diagnostics(&server), [("malformed-placeholder", position.to_owned())], "{server}");
    }
    for (server, position) in [
        (resource("'§${stack:name}-a': { type: 'p:m:A' }"), "${stack:name}"),
        (resource("a: { type: 'p:m:A', config: { l: [{ 'é§${env:X': 1 }] } }"), "${env:"),
        (resource("a: { type: 'p:m:A', config: { '§${resource:${env:X}.b}': 1 } }"), "${resource:${env:X}.b}"),
        (plugin(&format!("{local}, config: {{ '§${{env:X}}': 1 }}")), "${env:X}"),
        (sections("outputs: { '§${git:branch}': x }"), "${git:branch}"),
        (sections("variables: { '§${env:X}': { type: string, value: x } }"), "${env:X}"),
        (
            sections("resources: { resources: { '§${stack:name}': { resources: { a: { type: unknown } } } } }")
                .replace("type: unknown", "type: §unknown"),
            "${stack:name}",
        ),
    ] {
        let found = marked_diagnostics(&server);
        assert_eq!(found[0], ("placeholder-in-key", position.to_owned()), "{server}");
    }
    for server in [
        resource("a: { type: 'p:m:A', config: { x: '${HOME', '${1:-x}${#a[@]}${user}': '${} ${', y: 'env:X}' } }"),
        sections("x-shell: { '${env:X}': '${env:X' }\nvariables: { v: { type: string, value: '${env:X' } }"),
    ] {
        assert_eq!(marked_diagnostics(&server), [], "{server}");
    }
}

#[test]
fn position_of_each_placeholder_is_found_after_malformed_ones() {
    let server = format!(
        "{PROVISIONER}outputs:
  a: '§${{var:${{var:b}}}} §${{var:b}} ${{HOME §${{var:c'
  b: §\"\\u0024{{var:d\"
  c: |
    §${{var:e:
    x}}
    §${{var:f}}
"
    );
    let positions = ["${var:", "${var:b}", "${var:", "\"\\u0024{var:d\"", "${var:e:\n", "${var:f}"];
    let found = marked_diagnostics(&server).into_iter().map(|(_, position)| position);
    assert_eq!(found.collect::<Vec<_>>(), positions);
}

/// Shows: server-yaml.md#placeholders "without a default the value is empty, with a warning if the variable is unset"
#[test]
fn unset_variable_without_default_is_a_warning() {
    let server = format!(
        "{PROVISIONER}outputs: {{ a: 'x${{env:UNSET}}', b: '${{env:SET}}${{env:EMPTY}}${{env:UNSET:}}${{env:UNSET:d}}' }}\n"
    );
    let read = Files::server(&server).environment(vec![("SET", "x"), ("EMPTY", "")]).read(&["s"]);
    assert!(read.loaded.diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Warning));
    let texts = read.loaded.stacks[0].outputs.iter().map(|output| output.value.as_scalar().unwrap().text.as_str());
    assert_eq!(texts.collect::<Vec<_>>(), ["x", "xd"]);
    insta::assert_snapshot!(read.messages(), @r#"
    warning[unset-variable]: the environment variable "UNSET" is not set, and `${env:UNSET}` has no default
     --> .sc/stacks/s/server.yaml:6:17
      |
    6 | outputs: { a: 'x${env:UNSET}', b: '${env:SET}${env:EMPTY}${env:UNSET:}${env:UNSET:d}' }
      |                 ^^^^^^^^^^^^
      |
      = note: the value is an empty text
      = hint: set the variable, or write a default: `${env:UNSET:DEFAULT}`
      = hint: if the text may be empty, write `${env:UNSET:}`
    "#);
}

/// Shows: server-yaml.md#placeholders "A namespace with spaces around it (`${ secret:pw }`) and double braces (`${{ secrets.pw }}`)
///   are an error, with the right spelling in the hint"
#[test]
fn misspelled_placeholders_are_errors_with_their_right_spelling() {
    let resource = |text: &str| {
        format!(
            "resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: 'p:m:A', config: {{ b: {text} }} }} }} }} }} }}"
        )
    };
    let plugin = "plugins: [{ name: p, source: { type: local, path: p } }]\n";
    let found = |sections: &str| {
        let messages = Files::sections(&format!("{plugin}{sections}")).messages();
        let shown = messages.lines().filter(|line| line.contains("]: ") || line.contains("= hint: write"));
        shown.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let table = [
        ("${ secret:pw }", "${secret:pw}"),
        ("${env :A:b}", "${env:A:b}"),
        ("${{ secrets.PW }}", "${secret:PW}"),
        ("${{ secret:pw }}", "${secret:pw}"),
        ("${{ vars.title }}", "${var:title}"),
    ];
    for (text, spelling) in table {
        let expected = [
            format!("error[malformed-placeholder]: `{text}` is not how a placeholder is written"),
            format!("= hint: write `{spelling}`"),
        ];
        assert_eq!(found(&resource(&format!("'x {text}'"))), expected, "{text}");
        assert_eq!(found(&format!("outputs: {{ o: '{text}' }}")), expected, "{text}");
    }
    // What only a shell or a workflow expands, and the escape.
    for text in ["'${ HOME:-x }'", "'${{ github.sha }}'", "'${{ matrix.secret }}'", "'{{ secrets.A }}'", "'$ {env:A}'"]
    {
        assert_eq!(found(&resource(text)), [""; 0], "{text}");
    }
    let literal = "variables: { token: { type: string, value: '${{ secrets.TOKEN }}' } }\n";
    assert_eq!(found(&format!("{literal}{}", resource("'${var:token}'"))), [""; 0]);
    assert_eq!(
        marked_diagnostics(&format!("{PROVISIONER}outputs: {{ o: 'é §${{{{ secrets.A }}}} $HOME' }}")),
        [("malformed-placeholder", "${{ secrets.A }}".to_owned())]
    );
}
