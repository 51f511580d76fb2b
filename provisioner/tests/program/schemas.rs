//! Tests of the constants, secret marks and options that a plugin's schema adds to the goals of its resources.

use std::collections::BTreeMap;

use bridge::host::{PackageTypes, TypeInfo};
use bridge::provider::{Alias, AliasParent};
use provisioner::program::Program;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use serde_json::json;

use crate::fake::{FakeDeployment, Run, StackProgram};

fn types() -> BTreeMap<String, PackageTypes> {
    let resource = TypeInfo {
        secret_inputs: vec!["password".to_owned(), "pin".to_owned(), "absent".to_owned()],
        secret_outputs: vec!["password".to_owned(), "token".to_owned()],
        constants: [("kind".to_owned(), json!("A")), ("level".to_owned(), json!(2))].into(),
        replace_on_changes: vec!["place".to_owned()],
        former_types: vec!["p:m:Old".to_owned()],
        ..TypeInfo::default()
    };
    let provider = TypeInfo { secret_inputs: vec!["key".to_owned()], ..TypeInfo::default() };
    let types = [("p:m:A".to_owned(), resource), ("pulumi:providers:p".to_owned(), provider)];
    let types = types.into_iter().collect();
    [("p".to_owned(), types)].into()
}

/// Shows: server-yaml.md#plugins "Other facts of the schema (GetSchema) apply too"
#[tokio::test]
async fn schema_of_type_adds_secrets_constants_and_aliases_to_goal() {
    let subject = StackProgram::resources(
        "
a:
  type: p:m:A
  config: { password: open, kind: '${resource:b.id}', plain: x }
  options: { additionalSecretOutputs: [token], replaceOnChanges: [plain], aliases: ['urn:pulumi:s::reef::p:m:A::z'] }
b: { type: 'p:m:B', config: { password: open } }
",
        "",
    );
    let deployment = FakeDeployment { types: types(), ..FakeDeployment::default() };
    subject.run(&deployment).await;
    let a = deployment.goal("a--e");
    assert_eq!(a.inputs["password"], PropertyValue::secret("open".into()));
    assert_eq!((&a.inputs["kind"], &a.inputs["level"]), (&"A".into(), &2.0.into()), "a constant has only one value");
    assert_eq!(a.inputs.keys().collect::<Vec<_>>(), ["kind", "level", "password", "plain"]);
    assert_eq!((&a.property_dependencies["kind"], &a.property_dependencies["level"]), (&vec![], &vec![]));
    assert_eq!(a.additional_secret_outputs, ["token", "password", "token"], "as Pulumi's language hosts have it");
    assert_eq!(a.replace_on_changes, ["plain", "place"]);
    let former = Alias::Spec {
        name: None,
        type_token: Some("p:m:Old".to_owned()),
        stack: None,
        project: None,
        parent: AliasParent::Same,
    };
    assert_eq!((a.aliases.len(), &a.aliases[1]), (2, &former));
    let b = deployment.goal("b--e");
    assert_eq!((&b.inputs["password"], b.additional_secret_outputs.len()), (&"open".into(), 0));
}

#[tokio::test]
async fn unknown_input_is_not_marked_secret_and_partially_known_input_is() {
    let resources = "
a: { type: 'p:m:A', config: { password: '${resource:b.out}', pin: ['1', '${resource:b.out}'] } }
b: { type: 'p:m:B' }
";
    let deployment = FakeDeployment { run: Run::Preview, types: types(), ..FakeDeployment::default() };
    StackProgram::resources(resources, "").run(&deployment).await;
    let a = deployment.goal("a--e");
    assert_eq!(a.inputs["password"], PropertyValue::UNKNOWN);
    assert!(a.inputs["pin"].is_secret());
}

#[tokio::test]
async fn schema_of_provider_adds_secrets_to_provider_goal() {
    let plugins = "plugins: [{ name: p, source: { type: local, path: p }, config: { key: open, other: open } }]";
    // A provider that serves no resource is registered, too.
    for served in ["a: { type: 'p:m:A' }", ""] {
        let resources = format!("resources: {{ resources: {{ e: {{ resources: {{ {served} }} }} }} }}");
        let subject = StackProgram::server(&format!("{plugins}\n{resources}"));
        let deployment = FakeDeployment { types: types(), ..FakeDeployment::default() };
        subject.run(&deployment).await;
        let provider = deployment.goal("p");
        assert_eq!(provider.inputs["key"], PropertyValue::secret("open".into()), "{served}");
        assert_eq!(provider.inputs["other"], "open".into());
    }
}

#[tokio::test]
async fn plugins_of_same_package_use_their_own_schemas() {
    let plugins = "plugins:
  - { name: p, source: { type: local, path: p } }
  - { name: q, package: p, source: { type: local, path: q } }";
    let resource = |name, plugin| {
        format!("{name}: {{ type: 'p:m:A', config: {{ password: open }}, options: {{ provider: {plugin} }} }}")
    };
    let resources = [resource("a", "p"), resource("b", "q")].join(", ");
    let resources = format!("resources: {{ resources: {{ e: {{ resources: {{ {resources} }} }} }} }}");
    let subject = StackProgram::server(&format!("{plugins}\n{resources}"));
    let deployment = FakeDeployment { types: types(), ..FakeDeployment::default() };
    subject.run(&deployment).await;
    let is_secret = |name| deployment.goal(name).inputs["password"].is_secret();
    assert_eq!((is_secret("a--e"), is_secret("b--e")), (true, false));
}

/// Shows: server-yaml.md#plugins "Another form of the same type replaces nothing"
#[tokio::test]
async fn short_form_and_former_type_register_the_token_of_the_schema_with_an_alias() {
    let info = |former: &[&str]| TypeInfo {
        former_types: former.iter().map(|former| (*former).to_owned()).collect(),
        ..TypeInfo::default()
    };
    let types = [("p:index/thing:Thing", info(&["p:old:Thing"])), ("p:s3/bucket:Bucket", info(&[]))];
    let types: PackageTypes = types.map(|(token, info)| (token.to_owned(), info)).into_iter().collect();
    let subject = StackProgram::resources(
        "
full: { type: 'p:index/thing:Thing' }
module: { type: 'p:index:Thing' }
short: { type: 'p:Thing' }
former: { type: 'p:old:Thing' }
bucket: { type: 'p:s3:Bucket' }
unknown: { type: 'p:Unknown' }
",
        "",
    );
    let deployment = FakeDeployment { types: [("p".to_owned(), types)].into(), ..FakeDeployment::default() };
    subject.run(&deployment).await;
    for (name, token, aliases) in [
        ("full--e", "p:index/thing:Thing", &["p:old:Thing"] as &[&str]),
        ("module--e", "p:index/thing:Thing", &["p:old:Thing", "p:index:Thing"]),
        ("short--e", "p:index/thing:Thing", &["p:old:Thing", "p:index:Thing"]),
        ("former--e", "p:index/thing:Thing", &["p:old:Thing"]),
        ("bucket--e", "p:s3/bucket:Bucket", &["p:s3:Bucket"]),
        // Without a schema of the type, its plugin decides about it.
        ("unknown--e", "p:index:Unknown", &[]),
    ] {
        let goal = deployment.goal(name);
        let former = goal.aliases.iter().map(|alias| match alias {
            Alias::Spec { type_token: Some(former), .. } => former.as_str(),
            other => panic!("{other:?}"),
        });
        assert_eq!((goal.type_token.as_str(), former.collect::<Vec<_>>().as_slice()), (token, aliases), "{name}");
    }
}

#[test]
fn import_of_a_short_form_has_the_token_of_the_schema() {
    let types: PackageTypes = [("p:index/thing:Thing".to_owned(), TypeInfo::default())].into_iter().collect();
    let subject = StackProgram::resources("a: { type: 'p:Thing' }", "");
    let mut goal = subject.program.import("a--e", &ResourceId::new("i-1").unwrap()).unwrap();
    assert_eq!(goal.type_token.as_str(), "p:Thing");
    Program::resolve_import_type(&mut goal, &types);
    assert_eq!((goal.type_token.as_str(), goal.aliases.len()), ("p:index/thing:Thing", 1));
}
