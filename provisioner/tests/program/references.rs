//! Tests of the values, dependencies and options in goals of plugin resources.

use std::time::Duration;

use pulumi_proto::property::path::PropertyPath;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use crate::fake::{FakeDeployment, StackProgram, urn};

#[tokio::test]
async fn resource_is_registered_after_its_dependencies() {
    let subject = StackProgram::resources(
        "
c: { type: 'p:m:C', config: { x: '${resource:b.out}', y: 1, none: null }, options: { dependsOn: [d] } }
b: { type: 'p:m:B', config: { x: '${resource:a.id}', y: [{ z: 'z${resource:a.n}' }] } }
a: { type: 'p:m:A', config: { n: 24 } }
d: { type: 'p:m:D' }
",
        "",
    );
    let deployment = FakeDeployment::default().with("b--e", "out", "o");
    subject.run(&deployment).await;
    assert_eq!(deployment.names(), ["reef-s", "p", "a--e", "d--e", "b--e", "c--e"]);
    let (b, c) = (deployment.goal("b--e"), deployment.goal("c--e"));
    let a = urn(&deployment.goal("a--e"));
    assert_eq!(b.inputs["x"], PropertyValue::from("a--e-1"));
    assert_eq!(b.inputs["y"], vec![PropertyMap::from([("z".into(), "z24".into())]).into()].into());
    assert_eq!(b.dependencies, std::slice::from_ref(&a));
    assert_eq!(b.property_dependencies, [("x".into(), vec![a.clone()]), ("y".into(), vec![a])].into());
    assert_eq!(c.dependencies, [urn(&b), urn(&deployment.goal("d--e"))]);
    assert_eq!(
        c.property_dependencies,
        [("none".into(), vec![]), ("x".into(), vec![urn(&b)]), ("y".into(), vec![])].into()
    );
    assert_eq!(c.inputs.keys().collect::<Vec<_>>(), ["x", "y"], "a null is omitted");
    assert_eq!(c.parent, Some(urn(&deployment.goal("reef-s"))));
    assert_eq!(c.provider.unwrap().to_string(), "urn:pulumi:s::reef::pulumi:providers:p::p::p-1");
}

#[tokio::test]
async fn few_more_registrations_are_started_than_the_deployment_carries_out() {
    let independent: String = (0..20).map(|number| format!("aa{number:02}: {{ type: 'p:m:A' }}\n")).collect();
    let resources = independent + "b: { type: 'p:m:B', options: { dependsOn: [aa00] } }\n";
    let subject = StackProgram::resources(&resources, "");
    let run = async |parallel| {
        let deployment = FakeDeployment { parallel, ..FakeDeployment::default() };
        subject.run(&deployment).await;
        let (open, most) = *deployment.open.lock().unwrap();
        assert_eq!(open, 0);
        (most, deployment.names())
    };
    let (all, in_order) = run(None).await;
    assert_eq!(all, 20, "all that are ready");
    let (most, names) = run(Some(2)).await;
    assert_eq!(most, 8);
    assert_eq!(names, in_order, "one that becomes ready comes after those that wait");
}

/// Shows: server-yaml.md#placeholders "A placeholder that is the whole value keeps the type of the output."
#[tokio::test]
async fn single_reference_keeps_its_type_and_joined_references_become_text() {
    let subject = StackProgram::resources(
        "
a: { type: 'p:m:A' }
b:
  type: p:m:B
  config:
    whole: ${resource:a.list}
    item: ${resource:a.map.deep.1}
    joined: ${resource:a.n}/${resource:a.t}/${resource:a.id}
    secret: ${resource:a.s}
    inside: ${resource:a.sm.k}
    around: <${resource:a.s}>
    own: <${secret:s} ${resource:a.n}>
    urn: ${resource:a.urn}
",
        "",
    );
    let list = PropertyValue::List(vec![1.0.into(), "x".into()]);
    let map = |key: &str, value: PropertyValue| PropertyValue::Map([(key.to_owned(), value)].into());
    let deployment = FakeDeployment::default()
        .with("a--e", "list", list.clone())
        .with("a--e", "map", map("deep", list.clone()))
        .with("a--e", "n", 1.5)
        .with("a--e", "t", true)
        .with("a--e", "s", PropertyValue::secret("h".into()))
        .with("a--e", "sm", PropertyValue::secret(map("k", 1.0.into())));
    subject.run(&deployment).await;
    let inputs = deployment.goal("b--e").inputs;
    assert_eq!(inputs["whole"], list);
    assert_eq!(inputs["item"], "x".into());
    assert_eq!(inputs["joined"], "1.5/true/a--e-1".into());
    assert_eq!(inputs["secret"], PropertyValue::secret("h".into()));
    assert_eq!(inputs["inside"], PropertyValue::secret(1.0.into()));
    assert_eq!(inputs["around"], PropertyValue::secret("<h>".into()));
    assert_eq!(inputs["own"], PropertyValue::secret("<hush 1.5>".into()));
    assert_eq!(inputs["urn"], "urn:pulumi:s::reef::p:m:A::a--e".into());
}

#[tokio::test]
async fn missing_outputs_and_texts_joined_with_them_are_unknown_in_preview() {
    let subject = StackProgram::resources(
        "
a: { type: 'p:m:A', config: { n: 1 } }
b: { type: 'p:m:B', config: { id: '${resource:a.id}', x: 'x${resource:a.out}${secret:s}', n: '${resource:a.n}', in: '${resource:a.s.k}' } }
",
        "outputs: { x: '${resource:b.none}', y: 'y${resource:a.n}' }\n",
    );
    let unknown_secret = PropertyValue::secret(PropertyValue::UNKNOWN);
    let deployment = FakeDeployment::preview().with("a--e", "s", unknown_secret);
    subject.run(&deployment).await;
    let inputs = deployment.goal("b--e").inputs;
    for name in ["id", "x", "in"] {
        assert_eq!(inputs[name], PropertyValue::UNKNOWN, "{name}");
    }
    assert_eq!(inputs["n"], 1.0.into());
    assert_eq!(deployment.output("x"), PropertyValue::UNKNOWN);
    assert_eq!(deployment.output("y"), "y1".into());
}

#[tokio::test]
async fn provider_goal_has_version_and_plugin_download_url() {
    for (source, version, url) in [
        ("type: local, path: p", "", ""),
        ("type: git, path: 'https://x.example/p.git', ref: main", "", ""),
        ("type: git, path: 'https://x.example/p.git', ref: v1.2.3", "1.2.3", ""),
        ("type: github-release, path: pulumi/pulumi-p, ref: v1.2.3", "1.2.3", ""),
        ("type: github-release, path: 'https://github.com/pulumi/pulumi-p', ref: v1.2.3", "1.2.3", ""),
        ("type: github-release, path: o/n, ref: v1.2.3", "1.2.3", "github://api.github.com/o/n"),
        ("type: github-release, path: 'https://ghe.example/o/n.git', ref: 1.2.3", "1.2.3", "github://ghe.example/o/n"),
    ] {
        let subject = StackProgram::server(&format!("plugins: [{{ name: p, source: {{ {source} }} }}]\n"));
        let deployment = FakeDeployment::default();
        subject.run(&deployment).await;
        let goal = deployment.goal("p");
        assert_eq!(
            (goal.version.as_deref().unwrap_or_default(), goal.plugin_download_url.as_deref().unwrap_or_default()),
            (version, url),
            "{source}"
        );
    }
}

#[tokio::test]
async fn options_that_name_resources_are_urns_and_order_them() {
    let subject = StackProgram::resources(
        "
a:
  type: p:m:A
  options: { replaceWith: [c], deletedWith: b, replacementTrigger: ['${resource:d.id}', 7], hideDiffs: [x.y] }
b: { type: p:m:A }
c: { type: p:m:A }
d: { type: p:m:A }
",
        "",
    );
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let goal = deployment.goal("a--e");
    let names = |urns: Vec<Urn>| urns.iter().map(|urn| urn.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(goal.replace_with), ["c--e"]);
    assert_eq!(names(goal.deleted_with.into_iter().collect()), ["b--e"]);
    assert_eq!(goal.dependencies, [], "the options order the resources, and are no dependencies");
    assert_eq!(goal.hide_diff, ["x.y"]);
    let Some(PropertyValue::List(trigger)) = goal.replacement_trigger else { panic!() };
    assert!(
        matches!(&trigger[..], [PropertyValue::String(id), PropertyValue::Number(7.0)] if !id.is_empty()),
        "{trigger:?}"
    );
}

/// Shows: server-yaml.md#options "Options are set in the registration of the resource."
#[tokio::test]
async fn options_are_set_in_goal() {
    let subject = StackProgram::resources(
        "
a:
  type: p:m:A
  options:
    protect: true
    deleteBeforeReplace: false
    retainOnDelete: true
    ignoreChanges: [x.y]
    replaceOnChanges: [z]
    additionalSecretOutputs: [out]
    aliases: [{ name: old }]
    import: id-1
    customTimeouts: { create: 5m, delete: 90s }
",
        "",
    );
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let goal = deployment.goal("a--e");
    assert_eq!(
        (goal.protect, goal.delete_before_replace, goal.retain_on_delete),
        (Some(true), Some(false), Some(true))
    );
    assert_eq!((goal.ignore_changes, goal.replace_on_changes), (vec!["x.y".to_owned()], vec!["z".to_owned()]));
    assert_eq!((goal.additional_secret_outputs, goal.import_id), (vec!["out".to_owned()], ResourceId::new("id-1")));
    assert_eq!(
        (goal.custom_timeouts.create, goal.custom_timeouts.delete),
        (Some(Duration::from_secs(300)), Some(Duration::from_secs(90)))
    );
    insta::assert_debug_snapshot!(goal.aliases, @r#"
    [
        Spec {
            name: Some(
                "old",
            ),
            type_token: None,
            stack: None,
            project: None,
            parent: Same,
        },
    ]
    "#);
}

#[tokio::test]
async fn goal_has_position_of_its_declaration() {
    let subject = StackProgram::resources(
        "
a:
  type: p:m:A
  config:
    list:
      - name: x
",
        "",
    );
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let position = |name: &str, path: Option<&str>| {
        let path = path.map(|path| path.parse::<PropertyPath>().unwrap());
        let span = subject.program.source_of(deployment.goal(name).source.unwrap(), path.as_ref())?;
        Some((subject.sources.position(span).line, subject.sources.slice(span)))
    };
    assert_eq!(position("reef-s", None), None);
    assert_eq!(position("p", None), Some((2, "p")));
    assert_eq!(position("a--e", None), Some((7, "a")));
    assert_eq!(position("a--e", Some("list[0].name")), Some((11, "name")));
    assert_eq!(position("a--e", Some("list[0].nothing")), Some((11, "name: x")));
    assert_eq!(position("a--e", Some("nothing.here")), Some((7, "a")));
}
