//! Functions whose results decide what is registered.

use std::collections::BTreeMap;

use config::KnownValues;
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::repository::Files;

const PLUGINS: &str = "plugins:
  - { name: p, source: { type: git, path: x, ref: v1.2.3 } }
  - { name: q, source: { type: git, path: y, ref: v1.2.3 }, config: { token: '${function:token.v:none}' } }
";

fn files(functions: &str, resources: &str) -> Files {
    Files::sections(&format!(
        "{PLUGINS}resources: {{ functions: {{ token: {{ function: 'p:f' }}, {functions} }}, resources: {{ e: {{ functions: {{ own: {{ function: 'p:f' }} }}, resources: {{ {resources} }} }} }} }}\n"
    ))
}

/// Returns the first lines of the errors.
fn errors(functions: &str, resources: &str) -> String {
    let messages = files(functions, resources).messages();
    let errors: Vec<&str> = messages.lines().filter_map(|line| line.strip_prefix("error[")).collect();
    errors.join("\n")
}

#[test]
fn functions_that_decide_are_found_with_those_in_their_arguments() {
    let functions = "zones: { function: 'p:f', arguments: { region: '${function:region.name}' } }, region: { function: 'p:f' }, other: { function: 'p:f' }";
    let resources = "web: { type: 'p:m:T', forEach: '${function:zones.names}', enabled: '${function:own.on}', config: { v: '${function:other.x}' } }";
    let stack = files(functions, resources).stack();
    let deciding: Vec<String> = stack
        .deciding
        .iter()
        .map(|(environment, name)| format!("{}/{name}", environment.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(deciding, ["/region", "/token", "/zones", "e/own"]);
}

#[test]
fn results_decide_when_the_stack_is_read_again() {
    let functions = "zones: { function: 'p:f' }";
    let resources = "web: { type: 'p:m:T', forEach: '${function:zones.names}' }, db: { type: 'p:m:T', enabled: '${function:own.on}' }";
    let bag = |name: &str, value: PropertyValue| PropertyMap::from([(name.to_owned(), value)]).into();
    let read = |names: PropertyValue, on: PropertyValue| {
        let results = BTreeMap::from([
            ((None, "zones".to_owned()), bag("names", names)),
            ((Some("e".to_owned()), "own".to_owned()), bag("on", on)),
            ((None, "token".to_owned()), PropertyMap::new().into()),
        ]);
        let values = KnownValues { functions: Some(results), ..KnownValues::default() };
        let stack = files(functions, resources).stack_with(&values).unwrap();
        let environment = &stack.environments[0];
        let keys: Vec<&str> = environment.resources.iter().map(|resource| resource.key.as_str()).collect();
        let awaiting = environment.collections.iter().filter_map(|it| Some((it.key.as_str(), it.awaited.as_deref()?)));
        format!(
            "{} | {}",
            keys.join(" "),
            awaiting.map(|(key, event)| format!("{key}: {event}")).collect::<Vec<_>>().join(" ")
        )
    };
    let names = PropertyValue::List(vec!["a".into(), "b".into()]);
    assert_eq!(read(names.clone(), PropertyValue::Bool(true)), "web-a web-b db | ");
    assert_eq!(read(PropertyValue::List(Vec::new()), PropertyValue::Bool(false)), " | ");
    assert_eq!(
        read(PropertyValue::UNKNOWN, PropertyValue::Bool(true)),
        "db | web: the arguments of the function zones are known"
    );
}

/// Shows: server-yaml.md#functions-that-decide "So its arguments are known before the run: they contain no output of a resource, and `dependsOn` is empty."
#[test]
fn function_that_needs_the_run_cannot_decide() {
    let web = "web: { type: 'p:m:T', enabled: '${function:late.on}' }, db: { type: 'p:m:T' }";
    let late = |rest: &str| {
        let functions = format!("late: {{ function: 'p:f', {rest} }}");
        let files = Files::sections(&format!(
            "{PLUGINS}resources: {{ functions: {{ token: {{ function: 'p:f' }} }}, resources: {{ e: {{ functions: {{ {functions} }}, resources: {{ {web} }} }} }} }}\n"
        ));
        files.messages()
    };
    assert!(
        late("arguments: { x: '${resource:db.id}' }")
            .contains("function \"late\" is called before the run, and an argument is an output of a resource")
    );
    assert!(
        late("options: { dependsOn: [db] }")
            .contains("function \"late\" is called before the run, and `dependsOn` names a resource")
    );
    assert_eq!(
        errors("", "web: { type: 'p:m:T', forEach: '${function:gone.x}' }"),
        "unknown-function]: function \"gone\" is not defined in env \"e\""
    );
    let own = Files::sections(
        "plugins: [{ name: p, source: { type: git, path: x, ref: v1.2.3 }, config: { v: '${function:f.x}' } }]
resources: { functions: { f: { function: 'p:f' } }, resources: { e: { resources: {} } } }
",
    );
    assert!(
        own.messages().contains("the plugin \"p\" serves function \"f\", so its `config` cannot depend on it"),
        "{}",
        own.messages()
    );
}
