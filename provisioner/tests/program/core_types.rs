//! Tests of core types, with a type that exists only in tests: a pond with a fence.

use config::types::{CoreConfig, TextHandle, TypeOrigin};
use engine::RegistrationResult;
use provisioner::registry::packages::Package;
use provisioner::registry::recipe::{CoreTypeRecipe, Recipe, RecipeTable, ResourceNames};
use pulumi_proto::property::PropertyValue;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::fake::{FakeDeployment, StackProgram, urn};

#[derive(Deserialize, JsonSchema)]
struct PondConfig {
    owner: TextHandle,
}

impl CoreConfig for PondConfig {
    const TYPE: &'static str = "pond";
    const ORIGIN: TypeOrigin = TypeOrigin::Own;
    const PROVIDER: &'static str = "water";
    const OUTPUTS: &'static [&'static str] = &["water", "owner"];
}

const WATER: Package = Package { name: "water", variables: &[] };

fn pond(config: &PondConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let name = at.qualified(at.name);
    let water = r.provider(WATER, json!({ "region": "sea" }));
    let pond = r.add(water.resource("water:pond:Pond", &name, json!({ "owner": config.owner, "deep": true })));
    let fence = format!("{name}-fence");
    r.add(water.resource("water:pond:Fence", &fence, json!({ "pond": pond.out("water") })));
    r.publish(json!({ "water": pond.out("water"), "owner": config.owner }));
    r.export(&name, json!({ "water": pond.out("water") }));
}

fn recipes() -> RecipeTable {
    RecipeTable::new([CoreTypeRecipe::of(&[WATER], pond)])
}

fn ponds(resources: &str, rest: &str) -> StackProgram {
    StackProgram::with_types(
        &format!(
            "plugins: [{{ name: p, source: {{ type: local, path: p }} }}]\nresources: {{ resources: {{ e: {{ resources: {{ {resources} }} }} }} }}\n{rest}"
        ),
        recipes().types(),
        recipes(),
    )
}

#[tokio::test]
async fn default_of_reference_applies_to_core_resources_and_outputs_of_the_stack() {
    let subject = ponds(
        "who: { type: 'p:m:Who' },
         big: { type: pond, config: { owner: 'by ${resource:who.name:nobody}' } },
         boat: { type: 'p:m:Boat', config: { on: '${resource:big.water:land}' } }",
        "outputs: { o: '${resource:who.name:nobody}', w: '${resource:e/big.water:land}' }",
    );
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let (pond, boat) = (deployment.goal("big--e"), deployment.goal("boat--e"));
    assert_eq!((&pond.inputs["owner"], &boat.inputs["on"]), (&"by nobody".into(), &"land".into()));
    assert_eq!(pond.dependencies, [urn(&deployment.goal("who--e"))]);
    assert_eq!(boat.dependencies, [urn(&pond)]);
    assert_eq!((deployment.output("o"), deployment.output("w")), ("nobody".into(), "land".into()));
    let preview = FakeDeployment::preview();
    subject.run(&preview).await;
    assert_eq!(preview.goal("boat--e").inputs["on"], PropertyValue::UNKNOWN);
    // Outputs of resources that are out of scope are unknown.
    let skipped = FakeDeployment { results: [("big--e", RegistrationResult::Skipped)].into(), ..Default::default() };
    subject.run(&skipped).await;
    assert!(!skipped.goal("boat--e").inputs.contains_key("on"));
}

#[tokio::test]
async fn core_and_plugin_resources_refer_to_each_other() {
    let subject = ponds(
        "who: { type: 'p:m:Who', config: { name: carl } },
         big: { type: pond, name: lake, config: { owner: 'by ${resource:who.name}' }, options: { protect: true } },
         boat: { type: 'p:m:Boat', config: { on: '${resource:big.water}' } },
         post: { type: 'p:m:Post', options: { dependsOn: [big] } }",
        "outputs: { o: '${resource:big.owner}' }",
    );
    let deployment = FakeDeployment::default().with("lake--e", "water", "wet");
    subject.run(&deployment).await;
    let pond = deployment.goal("lake--e");
    assert_eq!(pond.inputs["owner"], "by carl".into());
    assert_eq!(pond.dependencies, [urn(&deployment.goal("who--e"))]);
    assert_eq!((pond.protect, deployment.goal("s--pond--lake--e--provider--e").protect), (Some(true), None));
    let (boat, post) = (deployment.goal("boat--e"), deployment.goal("post--e"));
    assert_eq!((boat.inputs["on"].clone(), boat.dependencies), ("wet".into(), vec![urn(&pond)]));
    assert_eq!(post.dependencies, [urn(&pond), urn(&deployment.goal("lake--e-fence"))]);
    assert_eq!(deployment.output("lake--e-water"), "wet".into());
    assert_eq!(deployment.output("o"), "by carl".into());
}

#[tokio::test]
async fn dependents_of_failed_core_type_resource_are_not_registered() {
    let subject = ponds(
        "big: { type: pond, config: { owner: x } }, boat: { type: 'p:m:Boat', config: { on: '${resource:big.water}' } }",
        "",
    );
    let deployment =
        FakeDeployment { results: [("big--e", RegistrationResult::Failed)].into(), ..FakeDeployment::default() };
    assert_eq!(subject.diagnostics(&deployment).await, "");
    assert_eq!(deployment.names(), ["reef-s", "p", "s--pond--big--e--provider--e", "big--e"]);
}

#[tokio::test]
async fn output_with_name_of_core_type_export_is_rejected() {
    let subject = ponds("big: { type: pond, config: { owner: x } }", "outputs: { big--e-water: 1 }\n");
    let deployment = FakeDeployment::default().with("big--e", "water", "wet");
    insta::assert_snapshot!(subject.diagnostics(&deployment).await, @r#"
    error[duplicate-output]: the output "big--e-water" is already exported by a core type
     --> .sc/stacks/s/server.yaml:4:12
      |
    4 | outputs: { big--e-water: 1 }
      |            ^^^^^^^^^^^^
    "#);
    assert!(deployment.stack_outputs.lock().unwrap().is_none());
}

#[test]
fn different_resources_of_one_name_are_an_error_before_the_run() {
    let subject = ponds(
        "big: { type: pond, name: lake, config: { owner: carl } },
         same: { type: 'pond', name: lake, config: { owner: carl } },
         other: { type: pond, name: lake, config: { owner: dora } }",
        "",
    );
    insta::assert_snapshot!(subject.render(&subject.program.check_core_types()), @r#"
    error[core-type]: two resources would register different resources of the type water:pond:Pond and the name "lake--e"
     --> .sc/stacks/s/server.yaml:5:10
      |
    3 | resources: { resources: { e: { resources: { big: { type: pond, name: lake, config: { owner: carl } },
      |                                             --- the other one
    4 |          same: { type: 'pond', name: lake, config: { owner: carl } },
    5 |          other: { type: pond, name: lake, config: { owner: dora } } } } } }
      |          ^^^^^
      |
      = note: they belong to "big" of env "e" and "other" of env "e"
      = hint: give one of them another name, or put them into different stacks
    "#);
}

/// Two databases of one environment, in accounts with these keys.
fn databases(first: &str, second: &str) -> StackProgram {
    let database = |name: &str, key: &str| {
        format!("{name}: {{ type: aws-rds-mysql, config: {{ region: sea, accessKey: {key}, secretAccessKey: s }} }}")
    };
    let databases = format!("{},\n{}", database("a", first), database("b", second));
    StackProgram::server(&format!("resources: {{ resources: {{ e: {{ resources: {{ {databases} }} }} }} }}"))
}

fn zones() -> FakeDeployment {
    let names = PropertyValue::from(vec!["sea-1".into()]);
    let reply = [("names".to_owned(), names)].into();
    let replies = [("aws:index/getAvailabilityZones:getAvailabilityZones".to_owned(), reply)].into();
    FakeDeployment { replies, ..FakeDeployment::default() }
}

#[tokio::test]
async fn core_resources_of_one_name_and_config_are_registered_once() {
    let pond = "{ type: pond, name: lake, config: { owner: carl } }";
    let subject = ponds(&format!("big: {pond}, same: {pond}"), "");
    assert_eq!(subject.program.check_core_types(), []);
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let mut names = deployment.names();
    names.retain(|name| name.contains("lake"));
    assert_eq!(names, ["s--pond--lake--e--provider--e", "lake--e", "lake--e-fence"]);
}

#[tokio::test]
async fn equal_resources_of_one_name_are_registered_once() {
    let deployment = zones();
    databases("AK", "AK").run(&deployment).await;
    let names = deployment.names();
    assert_eq!(names.iter().filter(|name| *name == "default-subnet-e-sea-1").count(), 1);
    let subnet = urn(&deployment.goal("default-subnet-e-sea-1"));
    for database in ["a-e", "b-e"] {
        assert!(deployment.goal(database).dependencies.contains(&subnet), "{database}");
    }
}

#[tokio::test]
async fn empty_name_of_a_database_is_sent_as_the_go_program_sends_it() {
    for (key, expected) in [("databaseName: ''", Some("")), ("databaseName: sea", Some("sea")), ("name: n", None)] {
        let config = format!("{{ region: sea, accessKey: a, secretAccessKey: s, {key} }}");
        let database = format!(
            "resources: {{ resources: {{ e: {{ resources: {{ n: {{ type: aws-rds-mysql, config: {config} }} }} }} }} }}"
        );
        let deployment = zones();
        StackProgram::server(&database).run(&deployment).await;
        let inputs = deployment.goal("n-e").inputs;
        assert_eq!(inputs.get("dbName").and_then(PropertyValue::as_str), expected, "{key}");
    }
}

#[tokio::test]
async fn name_that_becomes_known_in_the_run_and_is_taken_is_an_error() {
    insta::assert_snapshot!(databases("AK", "AK2").diagnostics(&zones()).await, @r#"
    error[core-type]: two resources would register different resources of the type aws:ec2/defaultSubnet:DefaultSubnet and the name "default-subnet-e-sea-1"
     --> .sc/stacks/s/server.yaml:3:35
      |
    2 | resources: { resources: { e: { resources: { a: { type: aws-rds-mysql, config: { region: sea, accessKey: AK, secretAccessKey: s } },
      |                                                                               -------------------------------------------------- the other one
    3 | b: { type: aws-rds-mysql, config: { region: sea, accessKey: AK2, secretAccessKey: s } } } } } }
      |                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = note: they belong to "a" of env "e" and "b" of env "e"
      = hint: give one of them another name, or put them into different stacks
    "#);
}

#[tokio::test]
async fn function_is_not_called_if_its_provider_is_out_of_scope() {
    let results = [("s--aws-rds-mysql--a--e--provider--e", RegistrationResult::Skipped)].into();
    let deployment = FakeDeployment { results, ..zones() };
    databases("AK", "AK").run(&deployment).await;
    assert_eq!(deployment.invokes.lock().unwrap().len(), 1);
    assert!(deployment.names().contains(&"b-e".to_owned()) && !deployment.names().contains(&"a-e".to_owned()));
}
