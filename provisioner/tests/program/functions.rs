//! Tests of functions: when they are called, with what, and what becomes of their results.

use std::collections::BTreeMap;

use bridge::host::{InputInfo, NestedObjects, ObjectInfo, PackageTypes, TypeInfo, ValueKind};
use engine::{ProgramGoals as _, RegistrationResult};
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::fake::{FakeDeployment, StackProgram};

/// Reads a stack with these functions of its environment `e`, and resources.
fn program(functions: &str, resources: &str, rest: &str) -> StackProgram {
    let indented = |text: &str| text.lines().map(|line| format!("        {line}\n")).collect::<String>();
    let (functions, resources) = (indented(functions), indented(resources));
    StackProgram::server(&format!(
        "plugins: [{{ name: p, source: {{ type: local, path: p }}, config: {{ v: 1 }} }}]
resources:
  resources:
    e:
      functions:
{functions}      resources:
{resources}{rest}"
    ))
}

fn map(key: &str, value: impl Into<PropertyValue>) -> PropertyMap {
    [(key.to_owned(), value.into())].into()
}

/// Returns a deployment whose plugin answers `p:index:ask`.
fn answering(deployment: FakeDeployment) -> FakeDeployment {
    let names = PropertyValue::List(vec!["x".into(), "y".into()]);
    FakeDeployment { replies: [("p:index:ask".to_owned(), map("names", names))].into(), ..deployment }
}

fn calls(deployment: &FakeDeployment) -> Vec<PropertyMap> {
    deployment.invokes.lock().unwrap().iter().map(|goal| goal.arguments.clone()).collect()
}

const NET: &str = "net: { type: 'p:m:N', config: { id: n1 } }
web: { type: 'p:m:W', config: { zone: '${function:zones.names[0]}', all: '${function:zones.names}', whole: '${function:zones}' } }";

/// Shows: server-yaml.md#functions "Resources that use the result depend on the resources in the arguments and in `dependsOn`."
#[tokio::test]
async fn function_is_called_once_its_arguments_are_known_and_its_result_has_their_dependencies() {
    let ask = "zones: { function: 'p:ask', arguments: { of: '${resource:net.id}', n: 1, none: null }, options: { dependsOn: [net] } }";
    let subject =
        program(ask, NET, "outputs: { zones: '${function:zones.names}', one: '${function:e/zones.names.1}' }\n");
    let deployment = answering(FakeDeployment::default());
    subject.run(&deployment).await;
    let arguments: PropertyMap = [("of".to_owned(), "net--e-1".into()), ("n".to_owned(), 1.0.into())].into();
    assert_eq!(calls(&deployment), [arguments]);
    let web = deployment.goal("web--e");
    assert_eq!((&web.inputs["zone"], web.inputs["whole"].contains_unknowns()), (&"x".into(), false));
    assert_eq!(web.dependencies.iter().map(|urn| urn.name()).collect::<Vec<_>>(), ["net--e"]);
    assert_eq!(web.property_dependencies["zone"].len(), 1);
    assert_eq!(deployment.output("one"), "y".into());
    let invokes = deployment.invokes.lock().unwrap();
    assert_eq!(invokes[0].provider.as_ref().unwrap().urn.name(), "p");
}

/// Shows: server-yaml.md#functions "If an argument is not known yet"
/// Shows: server-yaml.md#functions "the function is not called, and its result is unknown"
#[tokio::test]
async fn preview_calls_only_what_depends_on_nothing_that_would_change() {
    let arguments = "arguments: { of: '${resource:net.id}' }";
    for (ask, unchanged, is_called) in [
        ("zones: { function: 'p:ask', arguments: { of: x } }".to_owned(), vec![], true),
        (format!("zones: {{ function: 'p:ask', {arguments} }}"), vec![], false),
        ("zones: { function: 'p:ask', arguments: { of: '${resource:net.name}' } }".to_owned(), vec![], false),
        ("zones: { function: 'p:ask', arguments: { of: '${resource:net.name}' } }".to_owned(), vec!["net--e"], true),
        ("zones: { function: 'p:ask', options: { dependsOn: [net] } }".to_owned(), vec![], false),
        ("zones: { function: 'p:ask', options: { dependsOn: [net] } }".to_owned(), vec!["net--e"], true),
        (
            "first: { function: 'p:ask', options: { dependsOn: [net] } }\nzones: { function: 'p:ask', arguments: { of: '${function:first.names[0]}' } }".to_owned(),
            vec![],
            false,
        ),
    ] {
        let resources = NET.replace("id: n1", "name: n1");
        let subject = program(&ask, &resources, "");
        let deployment = answering(FakeDeployment { unchanged, ..FakeDeployment::preview() });
        subject.run(&deployment).await;
        let zone = deployment.goal("web--e").inputs["zone"].clone();
        let expected = if is_called { "x".into() } else { PropertyValue::UNKNOWN };
        assert_eq!((calls(&deployment).is_empty(), zone), (!is_called, expected), "{ask}");
    }
}

/// Shows: server-yaml.md#functions "a run calls a function once for equal arguments"
/// Shows: server-yaml.md#functions "the update uses the results of its preview"
#[tokio::test]
async fn equal_arguments_are_one_call_of_preview_and_update() {
    let ask = "zones: { function: 'p:ask', arguments: { of: x } }
again: { function: 'p:index:ask', arguments: { of: '${var:x}' } }
other: { function: 'p:ask', arguments: { of: y } }
late: { function: 'p:ask', arguments: { of: '${resource:net.id}' } }";
    let subject = program(ask, NET, "variables: { x: { type: string, value: x } }\n");
    let preview = answering(FakeDeployment::preview());
    subject.run(&preview).await;
    let mut seen = calls(&preview);
    seen.sort_by_key(|arguments| format!("{arguments:?}"));
    assert_eq!(seen, [map("of", "x"), map("of", "y")]);
    let update = answering(FakeDeployment::default());
    subject.run(&update).await;
    assert_eq!(calls(&update), [map("of", "net--e-1")]);
    assert_eq!(update.goal("web--e").inputs["zone"], "x".into());
}

#[tokio::test]
async fn function_is_not_called_while_goals_are_collected() {
    let subject = program("zones: { function: 'p:ask' }", NET, "");
    let goals = subject.program.goals().await;
    let web = goals.iter().find(|goal| goal.name == "web--e").unwrap();
    assert_eq!(web.inputs["zone"], PropertyValue::UNKNOWN);
}

/// Shows: server-yaml.md#functions "A secret among the arguments makes the whole result secret"
#[tokio::test]
async fn secret_argument_makes_the_result_secret_and_is_sent_as_it_is() {
    let subject = program("zones: { function: 'p:ask', arguments: { of: 'a ${secret:s}' } }", NET, "");
    let deployment = answering(FakeDeployment::default());
    subject.run(&deployment).await;
    assert_eq!(calls(&deployment), [map("of", "a hush")]);
    let web = deployment.goal("web--e");
    assert_eq!(web.inputs["zone"], PropertyValue::secret("x".into()));
    assert!(matches!(web.inputs["whole"], PropertyValue::Secret(_)));
}

#[tokio::test]
async fn failed_call_stops_the_program_and_is_made_again_in_the_next_run() {
    let subject = program("zones: { function: 'p:ask' }", NET, "");
    let deployment = FakeDeployment::default();
    assert_eq!(subject.diagnostics(&deployment).await, "");
    assert!(!deployment.names().contains(&"web--e".to_owned()));
    let deployment = answering(FakeDeployment::default());
    subject.run(&deployment).await;
    assert_eq!(calls(&deployment).len(), 1);
}

#[tokio::test]
async fn function_that_is_switched_off_or_waits_for_a_skipped_resource_is_not_called() {
    let resources = "net: { type: 'p:m:N' }\nweb: { type: 'p:m:W', config: { v: '${function:zones.names:none}' } }";
    let subject = program("zones: { function: 'p:ask', enabled: false }", resources, "");
    let deployment = answering(FakeDeployment::default());
    subject.run(&deployment).await;
    assert_eq!((calls(&deployment).len(), &deployment.goal("web--e").inputs["v"]), (0, &"none".into()));
    let subject = program("zones: { function: 'p:ask', options: { dependsOn: [net] } }", resources, "");
    let results = [("net--e", RegistrationResult::Skipped)].into();
    let deployment = answering(FakeDeployment { results, ..FakeDeployment::default() });
    subject.run(&deployment).await;
    assert_eq!((calls(&deployment).len(), deployment.goal("web--e").inputs.get("v")), (0, None));
}

#[tokio::test]
async fn result_that_does_not_exist_is_named_with_those_that_do() {
    let resources = "web: { type: 'p:m:W', config: { v: '${function:zones.nmaes}' } }";
    let subject = program("zones: { function: 'p:ask' }", resources, "");
    let deployment = answering(FakeDeployment::default());
    insta::assert_snapshot!(subject.diagnostics(&deployment).await, @r#"
    error[unknown-output]: function "zones" has no result "nmaes"
     --> .sc/stacks/s/server.yaml:9:45
      |
    9 |         web: { type: 'p:m:W', config: { v: '${function:zones.nmaes}' } }
      |                                             ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: did you mean `names`?
    "#);
}

/// Shows: server-yaml.md#placeholders "`${resource:ENV/KEY.PATH}` reads a resource of another environment of the stack"
#[tokio::test]
async fn resource_reads_one_of_another_environment() {
    let subject = StackProgram::server(
        "plugins: [{ name: p, source: { type: local, path: p } }]
resources:
  functions: { ask: { function: 'p:ask' } }
  resources:
    test: { resources: { a: { type: 'p:m:T', config: { ip: '${resource:prod/web[eu].ip}', all: '${resource:prod/web[*].ip}', f: '${function:ask.names[1]}' } } } }
    prod: { resources: { web: { type: 'p:m:T', forEach: { eu: 1, us: 2 }, config: { ip: '${each:value}' } } } }
",
    );
    let deployment = answering(FakeDeployment::default());
    subject.run(&deployment).await;
    let a = deployment.goal("a--test");
    let all = PropertyValue::List(vec![1.0.into(), 2.0.into()]);
    assert_eq!((&a.inputs["ip"], &a.inputs["all"], &a.inputs["f"]), (&1.0.into(), &all, &"y".into()));
    assert_eq!(a.dependencies.iter().map(|urn| urn.name()).collect::<Vec<_>>(), ["web-eu--prod", "web-us--prod"]);
}

fn types() -> BTreeMap<String, PackageTypes> {
    let text = || InputInfo { kind: Some(ValueKind::Text), ..InputInfo::default() };
    let nested = NestedObjects::Object("p:index:Filter".to_owned());
    let ask = TypeInfo {
        inputs: [
            ("of".to_owned(), InputInfo { is_required: true, ..text() }),
            ("filter".to_owned(), InputInfo { nested: Some(nested.clone()), ..InputInfo::default() }),
        ]
        .into(),
        outputs: [("names".to_owned(), None), ("filter".to_owned(), Some(nested))].into(),
        ..TypeInfo::default()
    };
    let filter = ObjectInfo { properties: [("name".to_owned(), text())].into() };
    let types = PackageTypes::with_functions(
        [("p:m/thing:Thing".to_owned(), TypeInfo::default())],
        [("p:index:Filter".to_owned(), filter)],
        [("p:index/ask:ask".to_owned(), ask)],
    );
    [("p".to_owned(), types)].into()
}

/// Shows: server-yaml.md#functions "Before a run, the functions are compared with the schema of the plugin"
#[test]
fn functions_are_compared_with_the_schema() {
    let functions = "a: { function: 'p:ask', arguments: { of: 1.30, filter: { nmae: x } } }
b: { function: 'p:Ask', arguments: { off: x } }
c: { function: 'p:aks' }
d: { function: 'p:m:Thing' }
e: { function: 'p:ask', arguments: { of: x, names: [] } }
f: { function: 'p:aks', enabled: false }";
    let subject = program(
        functions,
        "t: { type: 'p:m:Thing', config: { a: '${function:a.nmaes}', b: '${function:a.filter.x}', c: '${function:e}' } }",
        "",
    );
    let findings = subject.program.check_types(&types());
    let warnings: Vec<String> = findings
        .warnings
        .into_iter()
        .map(|warning| subject.render(&[subject.program.diagnostic_of(warning)]))
        .collect();
    let outputs = subject.program.check_outputs(&types(), |_, _| None);
    let text = [subject.render(&findings.errors), warnings.join("\n\n"), subject.render(&outputs)].join("\n\n");
    insta::assert_snapshot!(text, @r#"
    error[unknown-property]: the function p:ask has no property "filter.nmae"
     --> .sc/stacks/s/server.yaml:7:66
      |
    7 |         a: { function: 'p:ask', arguments: { of: 1.30, filter: { nmae: x } } }
      |                                                                  ^^^^
      |
      = hint: the object has name

    error[unknown-property]: the function p:ask has no argument "off"
     --> .sc/stacks/s/server.yaml:8:46
      |
    8 |         b: { function: 'p:Ask', arguments: { off: x } }
      |                                              ^^^
      |
      = hint: it has filter, of

    error[missing-argument]: the function p:ask needs the argument "of"
     --> .sc/stacks/s/server.yaml:8:9
      |
    8 |         b: { function: 'p:Ask', arguments: { off: x } }
      |         ^
      |
      = hint: write `arguments: { of: … }`

    error[unknown-function]: unknown function "p:aks": the schema of plugin p has no such function
     --> .sc/stacks/s/server.yaml:9:24
      |
    9 |         c: { function: 'p:aks' }
      |                        ^^^^^^^

    error[unknown-function]: unknown function "p:m:Thing": the schema of plugin p has no such function
      --> .sc/stacks/s/server.yaml:10:24
       |
    10 |         d: { function: 'p:m:Thing' }
       |                        ^^^^^^^^^^^
       |
       = hint: it is the type of a resource

    error[unknown-property]: the function p:ask has no argument "names"
      --> .sc/stacks/s/server.yaml:11:53
       |
    11 |         e: { function: 'p:ask', arguments: { of: x, names: [] } }
       |                                                     ^^^^^
       |
       = hint: it is a result of the function

    warning[function-case]: the schema of plugin p spells the function "p:Ask" as "p:ask"
     --> .sc/stacks/s/server.yaml:8:9
      |
    8 |         b: { function: 'p:Ask', arguments: { off: x } }
      |         ^
      |
      = hint: write `function: p:ask`

    error[unknown-output]: function "a" has no result "nmaes"
      --> .sc/stacks/s/server.yaml:14:47
       |
    14 |         t: { type: 'p:m:Thing', config: { a: '${function:a.nmaes}', b: '${function:a.filter.x}', c: '${function:e}' } }
       |                                               ^^^^^^^^^^^^^^^^^^^
       |
       = note: the schema of the function p:index/ask:ask has no such result
       = hint: did you mean `names`?

    error[unknown-output]: function "a" has no result "filter.x"
      --> .sc/stacks/s/server.yaml:14:73
       |
    14 |         t: { type: 'p:m:Thing', config: { a: '${function:a.nmaes}', b: '${function:a.filter.x}', c: '${function:e}' } }
       |                                                                         ^^^^^^^^^^^^^^^^^^^^^^
       |
       = note: the schema of the function p:index/ask:ask has no such result
       = hint: the object has name
    "#);
    assert!(subject.program.check_types(&BTreeMap::new()).errors.is_empty(), "without a schema");
}

#[tokio::test]
async fn function_has_the_token_of_the_schema_and_texts_of_its_arguments() {
    let subject = program("zones: { function: 'p:ask', arguments: { of: 1.30 } }", NET, "");
    let replies = [("p:index/ask:ask".to_owned(), map("names", vec![PropertyValue::from("x")]))].into();
    let deployment = FakeDeployment { replies, types: types(), ..FakeDeployment::default() };
    subject.run(&deployment).await;
    assert_eq!(calls(&deployment), [map("of", "1.30")]);
}
