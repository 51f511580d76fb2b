//! Reading of `${output:STACK.NAME}` and `references`: outputs of other stacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::{StackOutputs, values};
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::repository::{Files, PROVISIONER};

const PLUGIN: &str = "plugins: [{ name: p, source: { type: git, path: x, ref: v1.2.3 }";

/// Returns a repository in which the stack `s` has the resource `web` with a `config`, beside the stacks `base` and `base.eu`.
fn files(config: &str, more: &str) -> Files {
    let server = format!(
        "{PLUGIN} }}]\nresources: {{ resources: {{ e: {{ resources: {{ web: {{ type: 'p:m:T', config: {config} }} }} }} }} }}\n{more}"
    );
    let files = Files::sections(&server);
    ["base", "base.eu"]
        .into_iter()
        .fold(files, |files, stack| files.with(&format!(".sc/stacks/{stack}/server.yaml"), PROVISIONER))
}

/// Returns the first lines of the errors.
fn errors(files: &Files) -> String {
    let messages = files.messages();
    let errors: Vec<&str> = messages.lines().filter_map(|line| line.strip_prefix("error[")).collect();
    errors.join("\n")
}

fn outputs() -> StackOutputs {
    let list = |items: &[&str]| PropertyValue::List(items.iter().map(|item| (*item).into()).collect());
    let of_base: PropertyMap = [
        ("vpc", "vpc-1".into()),
        ("size", PropertyValue::Number(3.0)),
        ("on", PropertyValue::Bool(true)),
        ("zones", list(&["a", "b"])),
        ("password", PropertyValue::secret("hush".into())),
        ("keys", PropertyValue::secret(list(&["k"]))),
        ("a.b", PropertyMap::from([("c".to_owned(), "deep".into())]).into()),
        ("later", PropertyValue::UNKNOWN),
        ("nothing", PropertyValue::Null),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let of_eu = PropertyMap::from([("vpc".to_owned(), "vpc-eu".into())]);
    BTreeMap::from([("base".to_owned(), Arc::new(of_base)), ("base.eu".to_owned(), Arc::new(of_eu))])
}

/// Shows: server-yaml.md#outputs-of-other-stacks "the longest name of a stack that fits"
/// Shows: server-yaml.md#outputs-of-other-stacks "A secret output stays secret"
#[test]
fn output_keeps_its_type_and_its_secret() {
    let secret = PropertyValue::secret;
    let list = |items: &[&str]| PropertyValue::List(items.iter().map(|item| (*item).into()).collect());
    for (text, expected) in [
        ("${output:base.vpc}", "vpc-1".into()),
        ("${output:base.eu.vpc}", "vpc-eu".into()),
        ("${output:base.size}", PropertyValue::Number(3.0)),
        ("n=${output:base.size}, ${output:base.on}", "n=3, true".into()),
        ("${output:base.zones}", list(&["a", "b"])),
        ("${output:base.zones[1]}", "b".into()),
        ("${output:base.zones.0}", "a".into()),
        ("${output:base[a.b].c}", "deep".into()),
        ("${output:base.password}", secret("hush".into())),
        ("p:${output:base.password}", secret("p:hush".into())),
        ("${output:base.keys}", secret(list(&["k"]))),
        ("${output:base.keys[0]}", secret("k".into())),
        ("${output:base.later}", PropertyValue::UNKNOWN),
        ("x ${output:base.later.y}", PropertyValue::UNKNOWN),
        ("${output:base.none:d}", "d".into()),
        ("${output:base.nothing:d}", "d".into()),
    ] {
        let stack = files(&format!("{{ v: '{text}' }}"), "").stack_with_outputs(&outputs()).unwrap();
        let (_, web) = stack.resources().next().unwrap();
        let config: PropertyMap = [("v".to_owned(), expected)].into();
        assert_eq!(values::evaluate_constant(&web.config), config.into(), "{text}");
    }
}

#[test]
fn output_that_is_missing_is_told_with_those_that_are_there() {
    for (text, expected) in [
        (
            "${output:base.vcp}",
            "error[unknown-output]: the stack \"base\" has no output \"vcp\"|hint: did you mean `vpc`?",
        ),
        (
            "${output:base.zones[7]}",
            "has no output \"zones.7\"|hint: the output \"zones\" is there, and has no such part",
        ),
        ("${output:base.eu.x}", "the stack \"base.eu\" has no output \"x\"|hint: its outputs are vpc"),
        ("x${output:base.zones}", "error[cannot-join]: `${output:base.zones}` is no text"),
    ] {
        let found = files(&format!("{{ v: '{text}' }}"), "").stack_with_outputs(&outputs()).unwrap_err();
        expected.split('|').for_each(|part| assert!(found.contains(part), "{text}: {found}"));
    }
}

/// Shows: server-yaml.md#outputs-of-other-stacks "in `config` of resources, plugins and the registrar, in `forEach` and `enabled`, and in `outputs`"
#[test]
fn placeholder_stands_where_a_value_is_known_before_the_run() {
    let read = |files: &Files| {
        let stack = files.stack();
        stack.outputs_read.iter().map(|read| format!("{} {}", read.stack, read.path.join("."))).collect::<Vec<_>>()
    };
    let server = format!(
        "{PLUGIN}, config: {{ c: '${{output:base.plugin}}' }} }}]
resources:
  resources:
    e:
      enabled: '${{output:base.env}}'
      resources:
        web: {{ type: 'p:m:T', forEach: '${{output:base.each}}', enabled: '${{output:base.on}}', config: {{ v: '${{output:base.v}}' }} }}
        db: {{ type: 'p:m:T', enabled: '${{output:base.on:true}}' }}
outputs: {{ o: '${{output:base.out}}' }}
"
    );
    let files = Files::sections(&server).with(".sc/stacks/base/server.yaml", PROVISIONER);
    assert_eq!(read(&files), ["base plugin", "base env", "base each", "base v", "base on", "base on", "base out"]);
    for (place, text) in [
        ("name", "resources: { resources: { e: { resources: { web: { type: 'p:m:T', name: 'X' } } } } }"),
        (
            "option",
            "resources: { resources: { e: { resources: { web: { type: 'p:m:T', options: { import: 'X' } } } } } }",
        ),
        ("cicd", "secrets: { type: x, config: { v: 'X' } }"),
    ] {
        let text = text.replace('X', "${output:base.v}");
        let files =
            Files::sections(&format!("{PLUGIN} }}]\n{text}\n")).with(".sc/stacks/base/server.yaml", PROVISIONER);
        let found = files.messages();
        let is_refused = found.contains("`${output:base.v}` is not allowed here");
        assert_eq!(is_refused, place != "cicd", "{place}: {found}");
    }
    let provisioner = PROVISIONER.replace("file:///state", "'file:///${output:base.v}'");
    let found = Files::server(&provisioner).with(".sc/stacks/base/server.yaml", PROVISIONER).messages();
    assert!(found.contains("`${output:base.v}` is not allowed here"), "{found}");
}

#[test]
fn stack_that_cannot_be_read_is_a_mistake() {
    for (text, expected) in [
        ("${output:bse.vpc}", "unknown-stack]: there is no stack \"bse\" whose outputs could be read"),
        ("${output:s.v}", "own-output]: `${output:s.v}` reads an output of its own stack"),
        (
            "${output:base}",
            "malformed-reference]: output placeholder requires format ${output:STACK.NAME}, got: ${output:base}",
        ),
        (
            "${output:base.}",
            "malformed-reference]: output placeholder requires format ${output:STACK.NAME}, got: ${output:base.}",
        ),
        (
            "${output:}",
            "malformed-reference]: output placeholder requires format ${output:STACK.NAME}, got: ${output:}",
        ),
        ("${output:base.v", "malformed-placeholder]: `${output:…` is not closed"),
    ] {
        assert_eq!(errors(&files(&format!("{{ v: '{text}' }}"), "")), expected, "{text}");
    }
}

/// Shows: server-yaml.md#outputs-of-other-stacks "what an entry does not say is that of the stack itself"
#[test]
fn references_name_stacks_of_other_projects_and_stores() {
    let references = "references:
  - { name: net, project: network, stack: prod, state-storage: { type: fs, config: { path: file:///other } } }
  - { name: own }
";
    let stack = files("{ v: '${output:net.vpc}${output:own.x}' }", references).stack();
    let read: Vec<_> = stack.outputs_read.iter().map(|read| read.stack.as_str()).collect();
    assert_eq!(read, ["net", "own"]);
    let seen: Vec<String> = stack
        .references
        .iter()
        .map(|found| format!("{} {}/{} {:?}", found.name, found.project, found.stack, found.provisioner.state_storage))
        .map(|text| text.split(", span").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        seen,
        ["net network/prod FileSystem { url: \"file:///other\"", "own reef/own FileSystem { url: \"file:///state\""]
    );
    for (references, expected) in [
        ("[{ project: x }]", "references]: an entry of `references` has no `name`"),
        ("[{ name: base }]", "references]: \"base\" is also the name of a stack of this repository"),
        ("[{ name: n }, { name: n }]", "references]: `references` has \"n\" twice"),
        ("[{ name: 'a[b]' }]", "references]: \"a[b]\" cannot be the name of an entry of `references`"),
        ("{ name: n }", "wrong-kind]: `references` must be a list"),
    ] {
        assert_eq!(errors(&files("{}", &format!("references: {references}\n"))), expected, "{references}");
    }
}

/// Shows: server-yaml.md#outputs-of-other-stacks "is decided once that stack is provisioned"
#[test]
fn output_decides_which_resources_there_are() {
    let server = |each: &str, enabled: &str| {
        format!(
            "{PLUGIN} }}]
resources: {{ resources: {{ e: {{ resources: {{
  web: {{ type: 'p:m:T', forEach: '{each}', config: {{ v: '${{each:value}}' }} }},
  db: {{ type: 'p:m:T', enabled: '{enabled}' }},
  all: {{ type: 'p:m:T', config: {{ all: '${{resource:web[*].v}}', one: '${{resource:db.v:none}}' }}, options: {{ dependsOn: [web, db] }} }}
}} }} }} }}
"
        )
    };
    let read = |each: &str, enabled: &str| {
        let files = Files::sections(&server(each, enabled)).with(".sc/stacks/base/server.yaml", PROVISIONER);
        let stack = files.stack_with_outputs(&outputs()).unwrap();
        let environment = &stack.environments[0];
        let keys: Vec<&str> = environment.resources.iter().map(|resource| resource.key.as_str()).collect();
        let awaiting = environment.collections.iter().filter_map(|it| Some((it.key.as_str(), it.awaited.as_deref()?)));
        format!(
            "{} | {}",
            keys.join(" "),
            awaiting.map(|(key, stack)| format!("{key}<{stack}")).collect::<Vec<_>>().join(" ")
        )
    };
    assert_eq!(read("${output:base.zones}", "${output:base.on}"), "web-a web-b db all | ");
    assert_eq!(read("${output:base[a.b]}", "${output:base.later}"), "web-c all | db<base is provisioned");
    assert_eq!(read("${output:base.later}", "true"), "db all | web<base is provisioned");
}
