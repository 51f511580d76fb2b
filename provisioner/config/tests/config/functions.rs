//! Reading of `functions`: calls of functions of plugins.

use config::Stack;
use config::graph::{dependencies, dependencies_of_function};

use crate::repository::Files;

const PLUGINS: &str = "plugins:
  - { name: p, source: { type: git, path: x, ref: v1.2.3 } }
  - { name: off, enabled: false, source: { type: git, path: y, ref: v1.2.3 } }
";

fn files(resources: &str) -> Files {
    Files::sections(&format!("{PLUGINS}resources:\n{resources}"))
}

fn read(resources: &str) -> Stack {
    let files = files(resources);
    assert_eq!(files.messages(), "", "{resources}");
    files.read(&["s"]).loaded.stacks.remove(0)
}

/// Returns the first lines of the errors, each with its first hint.
fn mistakes(resources: &str) -> String {
    let messages = files(resources).messages();
    let wanted = messages.lines().filter(|line| line.starts_with("error[") || line.contains("= hint:"));
    wanted.map(|line| line.trim_start_matches([' ', '='])).collect::<Vec<_>>().join("\n")
}

/// Shows: server-yaml.md#functions "`resources.functions` are seen in all environments"
#[test]
fn functions_of_the_stack_and_of_an_environment_are_read() {
    let stack = read(
        "  functions:
    zones: { function: p:getZones, arguments: { state: available } }
  resources:
    prod:
      functions:
        image:
          function: p:index/getImage:getImage
          arguments: { zone: '${function:zones.names[0]}', net: '${resource:net.id}', 'tags': { 'a.b': x } }
          options: { provider: p, version: 1.2.3, dependsOn: [net] }
      resources:
        net: { type: 'p:m:T' }
        web:
          type: 'p:m:T'
          config: { image: '${function:image}', tag: '${function:image.tags[a.b]:none}' }
          options: { replacementTrigger: '${function:zones.names.0}' }
outputs:
  zones: ${function:zones}
  one: ${function:prod/image.id}
  only: ${function:image.id}
  shared: ${function:prod/zones.names}
",
    );
    let functions = stack.functions.iter().map(|function| {
        let after: Vec<String> = dependencies_of_function(function).map(|(name, _)| format!("{name:?}")).collect();
        format!("{:?} {} {}: {}", function.environment, function.name, function.token_text, after.join(", "))
    });
    let (_, web) = stack.resources().last().unwrap();
    let of_web = dependencies("prod", web).map(|(name, _)| format!("web: {name:?}"));
    let outputs = stack.outputs.iter().flat_map(|output| config::graph::references(&output.value));
    let outputs = outputs.map(|reference| format!("output: {reference} {:?}", reference.path));
    insta::assert_snapshot!(functions.chain(of_web).chain(outputs).collect::<Vec<_>>().join("\n"), @r#"
    None zones p:getZones: 
    Some("prod") image p:index/getImage:getImage: Function(None, "zones"), Resource("prod", "net"), Resource("prod", "net")
    web: Function(Some("prod"), "image")
    web: Function(Some("prod"), "image")
    web: Function(None, "zones")
    output: ${function:zones} []
    output: ${function:prod/image.id} ["id"]
    output: ${function:prod/image.id} ["id"]
    output: ${function:zones.names} ["names"]
    "#);
}

/// Shows: server-yaml.md#functions "A function that is switched off, also with its environment, counts as a missing output"
#[test]
fn function_that_is_switched_off_needs_defaults() {
    let enabled = |value: &str| {
        format!(
            "  resources: {{ e: {{ functions: {{ a: {{ function: 'p:f', enabled: {value} }} }}, resources: {{ t: {{ type: 'p:m:T', config: {{ v: '${{function:a.x:none}}' }} }} }} }} }}\n"
        )
    };
    for (value, expected) in [("true", true), ("'false'", false), ("~", true), ("'${env:NONE:false}'", false)] {
        assert_eq!(read(&enabled(value)).functions[0].is_enabled, expected, "{value}");
    }
    insta::assert_snapshot!(
        mistakes(
            "  functions: { a: { function: 'p:f', enabled: false }, b: { function: 'p:f', enabled: maybe } }
  resources: { e: { enabled: false, functions: { c: { function: 'p:f' } } } }
outputs: { a: '${function:a.x}', b: '${function:b}', c: '${function:e/c.x}', d: '${function:e/c.x:none}' }
"
        ),
        @r#"
        error[wrong-kind]: `enabled` must be `true` or `false`
        hint: a placeholder that is known before the run may stand for one of them
        error[switched-off]: function "a" is switched off (`enabled`), and the reference has no default
        hint: write `${function:a.x:DEFAULT}`
        error[switched-off]: function "c" is switched off (`enabled`), and the reference has no default
        hint: write `${function:e/c.x:DEFAULT}`
        "#
    );
}

/// Shows: server-yaml.md#functions "An environment and a resource may be called `functions`: what has the form of one is one."
#[test]
fn environment_and_resource_may_be_called_functions() {
    let keys = |resources: &str| {
        let files = files(resources);
        let messages = files.messages();
        assert!(!messages.contains("error["), "{messages}");
        let stack = files.read(&["s"]).loaded.stacks.remove(0);
        let keys = stack.resources().map(|(environment, resource)| format!("{}/{}", environment.name, resource.key));
        (keys.collect::<Vec<_>>().join(" "), stack.functions.len())
    };
    for (resources, expected) in [
        ("  resources: { functions: { resources: { a: { type: 'p:m:T' } } } }", ("functions/a", 0)),
        ("  resources: { functions: { a: { type: 'p:m:T' } } }", ("functions/a", 0)),
        ("  resources: { e: { resources: { functions: { type: 'p:m:T' } } } }", ("e/functions", 0)),
        ("  resources: { e: { functions: { type: 'p:m:T' } } }", ("e/functions", 0)),
        ("  functions: { a: { type: 'p:m:T' }, b: { type: 'p:m:T' } }", ("functions/a functions/b", 0)),
        ("  resources: { e: { functions: { type: { function: 'p:f' } } } }", ("", 1)),
        ("  functions: {}\n  resources: { e: { functions: ~ } }", ("", 0)),
    ] {
        let (found, functions) = keys(resources);
        assert_eq!((found.as_str(), functions), expected, "{resources}");
    }
    insta::assert_snapshot!(mistakes("  resources: { functions: { a: { function: 'p:f' } } }"), @"
    error[missing-level]: `functions` is in the place of an environment
    hint: write `resources.functions`, or `resources.resources.ENVIRONMENT.functions`
    ");
}

#[test]
fn words_of_other_tools_and_misspelt_keys_are_named() {
    insta::assert_snapshot!(
        mistakes(
            "  functions:
    a: { call: 'p:f', args: { x: 1 } }
    b: { function: 'p:f', inputs: {}, config: {}, argumnets: {}, provider: p, return: x, forEach: [a], type: [] }
    c: { function: 'p:f', options: { dependson: [x], parent: y, version: 9.9.9 } }
    d: { function: 'p:f', options: { dependsOn: [x] }, arguments: { v: { fn::fileAsset: x } } }
    a.b: { function: 'p:f' }
    e: p:f
    f: { function: 'p:f', arguments: [x] }
"
        ),
        @r#"
        error[function]: function "a" has no `function`
        hint: add `function: plugin:name` or `function: plugin:module:name`
        error[unknown-key]: a function has no key `call`
        hint: did you mean `function`?
        error[unknown-key]: a function has no key `args`
        hint: did you mean `arguments`?
        error[unknown-key]: a function has no key `inputs`
        hint: did you mean `arguments`?
        error[unknown-key]: a function has no key `config`
        hint: did you mean `arguments`?
        error[unknown-key]: a function has no key `argumnets`
        hint: did you mean `arguments`?
        hint: the keys are function, arguments, options, enabled
        error[unknown-key]: a function has no key `provider`
        hint: write `options: { provider: … }`
        error[unknown-key]: a function has no key `return`
        hint: write the part of the result into the placeholder: `${function:NAME.PATH}`
        error[unknown-key]: a function has no key `forEach`
        hint: the keys are function, arguments, options, enabled
        error[unknown-key]: a function has no key `type`
        hint: a function has `function: plugin:name`; a resource stands below `resources`
        error[unknown-key]: `options` of a function has no key `dependson`
        hint: did you mean `dependsOn`?
        hint: the keys are provider, version, dependsOn
        error[unknown-key]: `options` of a function has no key `parent`
        hint: the keys are provider, version, dependsOn
        error[option]: version 9.9.9 is not that of the plugin "p"
        error[function]: a function of all environments depends on no resource
        hint: declare it in an environment: `resources.resources.ENVIRONMENT.functions`
        error[asset]: `fn::fileAsset` cannot stand here
        hint: assets and archives are values of properties in the `config` of a plugin's resource
        error[function]: the name "a.b" of a function has a `.`
        hint: a placeholder cannot name it: use letters, digits, `-` and `_`
        error[wrong-kind]: a function must be a mapping
        error[wrong-kind]: `arguments` must be a mapping
        "#
    );
}

/// Shows: server-yaml.md#functions "A plugin that is disabled is a mistake"
#[test]
fn plugin_of_a_function_is_selected_as_that_of_a_type() {
    insta::assert_snapshot!(
        mistakes(
            "  functions:
    a: { function: 'off:f' }
    b: { function: 'q:f' }
    c: { function: f }
    d: { function: 'p:a:b:c' }
    e: { function: 'p:${stack:name}' }
    f: { function: 'p:f', options: { provider: x } }
  resources: { e: { resources: { t: { type: 'p:m:T', config: { v: '${function:a.x} ${function:c}' }, function: 'p:f' } } } }
"
        ),
        @r#"
        error[unknown-function]: unknown function "off:f": no enabled plugin serves the package "off"
        hint: set `enabled: true` to use it
        error[unknown-function]: unknown function "q:f": no enabled plugin serves the package "q"
        hint: declare a plugin with `name: q` in `plugins`
        error[unknown-function]: invalid function "f"
        hint: a function of a plugin is `plugin:module:name` or `plugin:name`
        error[unknown-function]: invalid function "p:a:b:c"
        hint: a function of a plugin is `plugin:module:name` or `plugin:name`
        error[unknown-function]: invalid function "p:${stack:name}"
        hint: placeholders in `function` are not resolved
        error[unknown-provider]: the provider "x" is not an enabled plugin of package "p"
        hint: it has p
        error[unknown-key]: a resource has no key `function`
        hint: functions are declared in `functions` of the environment, beside `resources`
        "#
    );
}

/// Shows: server-yaml.md#functions "A name that is not declared, and a cycle, are mistakes at their lines."
#[test]
fn names_and_cycles_are_checked() {
    insta::assert_snapshot!(
        mistakes(
            "  functions:
    zones: { function: 'p:f', arguments: { v: '${resource:e/t.id}', w: '${function:e/own.x}' } }
    shared: { function: 'p:f' }
    first: { function: 'p:f', arguments: { v: '${function:second.x}' } }
    second: { function: 'p:f', arguments: { v: '${function:first.x}' } }
  resources:
    e:
      functions:
        own: { function: 'p:f', arguments: { v: '${resource:t.id}', w: '${resource:x.id}' }, options: { dependsOn: [y] } }
        self: { function: 'p:f', arguments: { v: '${function:self}' } }
        shared: { function: 'p:f' }
      resources:
        t: { type: 'p:m:T', config: { a: '${function:own.x}', b: '${function:zonse.x}', c: '${function:other.x}' } }
    f: { functions: { other: { function: 'p:f' }, two: { function: 'p:f' } } }
    g: { functions: { two: { function: 'p:f' } } }
outputs: { a: '${function:two.x}', b: '${function:e/two.x}', c: '${function:none}', d: '${function:g/own.x}' }
"
        ),
        @r#"
        error[misplaced-reference]: a function of all environments refers to no resource
        hint: declare it in an environment: `resources.resources.ENVIRONMENT.functions`
        error[misplaced-reference]: a function of all environments refers to functions of all environments only
        error[dependency-cycle]: dependency cycle: function first -> function second -> function first
        error[dependency-cycle]: dependency cycle: t -> function own -> t
        error[unknown-resource]: resource "x" referenced by "own" is not defined in env "e"
        error[unknown-resource]: resource "y" referenced by "own" is not defined in env "e"
        error[dependency-cycle]: dependency cycle: function self -> function self
        error[duplicate-function]: function "shared" of env "e" has the name of a function of all environments
        hint: rename one of them
        error[unknown-function]: function "zonse" is not defined in env "e"
        hint: did you mean `zones`?
        error[unknown-function]: function "other" is not defined in env "e"
        hint: env "f" has it: write `${function:f/other.x}`
        error[unknown-function]: function "two" is defined in several envs
        hint: env "f" has it: write `${function:f/two.x}`
        error[unknown-function]: function "two" is not defined in env "e"
        hint: env "f" has it: write `${function:f/two.x}`
        error[unknown-function]: function "none" is not defined
        error[unknown-function]: function "own" is not defined in env "g"
        hint: env "e" has it: write `${function:e/own.x}`
        "#
    );
}

/// Shows: server-yaml.md#placeholders "`${resource:…}` and `${function:…}` stand in `config` and `replacementTrigger` of a resource, in `arguments` of a function, and in `outputs`"
#[test]
fn placeholder_elsewhere_is_a_mistake_that_says_where_it_may_stand() {
    let files = Files::sections(
        "plugins: [{ name: p, source: { type: git, path: '${function:a.x}', ref: v1.2.3 }, config: { v: '${function:a.x}' } }]
resources:
  functions: { a: { function: 'p:f', options: { provider: '${function:a.x}' } } }
  resources: { e: { resources: { t: { type: 'p:m:T', enabled: '${function:a.x}', config: { v: '${function:}', w: '${function:a.}' } } } } }
",
    );
    let messages = files.messages();
    let wanted = messages.lines().filter(|line| line.starts_with("error[") || line.contains("is allowed in"));
    insta::assert_snapshot!(wanted.map(str::trim_start).collect::<Vec<_>>().join("\n"), @r#"
    error[misplaced-reference]: `${function:a.x}` is not allowed here
    = hint: `${function:…}` is allowed in `config` and `replacementTrigger` of a resource, in `arguments` of a function, and in `outputs`
    error[unknown-provider]: the provider "${function:a.x}" is not an enabled plugin of package "p"
    error[misplaced-reference]: `${function:a.x}` is not allowed here
    = hint: `${function:…}` is allowed in `config` and `replacementTrigger` of a resource, in `arguments` of a function, and in `outputs`
    error[malformed-reference]: function placeholder requires format ${function:NAME.PATH}, got: ${function:}
    error[malformed-reference]: function placeholder requires format ${function:NAME.PATH}, got: ${function:a.}
    "#);
}
