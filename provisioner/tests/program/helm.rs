//! Tests of the operators that Helm charts install: values of the chart, outputs for references, mistakes in their `config`
//! (docs/spec/simple-container.md#7.11, #8.2). Their registrations are compared with recordings in `recorded`.

use provisioner::registry::recipes;
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::fake::{FakeDeployment, StackProgram, urn};

const OF_KUBERNETES: [&str; 4] = ["postgres", "mongodb", "rabbitmq", "redis"];

/// Creates a stack with an operator `store`, whose `config` has `keys` beside the kubeconfig, and a plugin resource with a
/// `config`.
fn operator(operator: &str, keys: &str, boat: &str) -> StackProgram {
    StackProgram::with_secrets(
        &format!(
            "resources: {{ resources: {{ e: {{ resources: {{
               store: {{ type: kubernetes-helm-{operator}-operator, config: {{ kubeconfig: '${{auth:sea}}', {keys} }} }},
               boat: {{ type: 'p:m:Boat', config: {boat} }}
             }} }} }} }}"
        ),
        "auth: { sea: { type: kubernetes, config: { kubeconfig: 'kind: Config' } } }\nvalues: { s: hush }",
    )
}

fn object<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyValue {
    PropertyValue::Map(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<PropertyMap>())
}

fn data<const N: usize>(entries: [(&str, &str); N]) -> PropertyValue {
    PropertyValue::secret(object(entries.map(|(key, text)| (key, text.into()))))
}

fn secret(text: &str) -> PropertyValue {
    PropertyValue::secret(text.into())
}

/// Shows: server-yaml.md#core-types "of the chart: any mapping, with placeholders and references"
#[tokio::test]
async fn values_of_a_chart_have_any_structure_with_secrets_and_references() {
    let subject = operator(
        "redis",
        "values: { a: { token: '${secret:s}', of: '${resource:boat.name}', empty: '', none: ~ }, port: 6379, on: true,
           share: 0.5, list: [1, ~, 'x', '0123'], text: '1.10', octal: 010, gone: ~, $sc::TextHandle: 0, labels: mine }",
        "{ name: x }",
    );
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let goals = deployment.goals.lock().unwrap();
    let chart = goals.iter().find(|goal| goal.remote).unwrap();
    let values = chart.inputs["values"].as_map().unwrap();
    assert_eq!(values["a"], object([("token", secret("hush")), ("of", "x".into()), ("empty", "".into())]));
    assert_eq!((&values["port"], &values["on"], &values["share"]), (&6379.0.into(), &true.into(), &0.5.into()));
    assert_eq!(values["list"], vec![1.0.into(), PropertyValue::Null, "x".into(), "0123".into()].into());
    assert_eq!((&values["text"], &values["labels"]), (&"1.10".into(), &"mine".into()));
    assert_eq!((&values["$sc::TextHandle"], &values["octal"]), (&0.0.into(), &8.0.into()));
    assert!(!values.contains_key("gone"));
    let boat = goals.iter().find(|goal| goal.name == "boat--e").unwrap();
    assert_eq!(chart.property_dependencies["values"], [urn(boat)]);
    let release = goals.iter().find(|goal| goal.type_token.as_str() == "kubernetes:helm.sh/v3:Release").unwrap();
    assert_ne!(release.inputs["values"].as_map().unwrap()["labels"], "mine".into(), "the type sets them");
}

/// Shows: server-yaml.md#core-types "A preview reads it once what the operator runs exists."
#[tokio::test]
async fn outputs_of_each_operator_can_be_referenced() {
    let read = [("password", "cHc="), ("username", "dXNlcg=="), ("host", "aG9zdA=="), ("port", "NTY3Mg=="), ("x", "?")];
    for (name, outputs) in [
        (
            "postgres",
            "{ p: '${resource:store.password}', u: '${resource:store.user}', h: '${resource:store.host}', o: '${resource:store.port}', d: '${resource:store.database}' }",
        ),
        (
            "mongodb",
            "{ p: '${resource:store.password}', u: '${resource:store.user}', h: '${resource:store.host}', o: '${resource:store.port}', d: '${resource:store.dbName}', uri: '${resource:store.uri}', log: '${resource:store.oplogUri}' }",
        ),
        (
            "rabbitmq",
            "{ p: '${resource:store.password}', u: '${resource:store.user}', h: '${resource:store.host}', o: '${resource:store.port}', uri: '${resource:store.uri}' }",
        ),
        ("redis", "{ h: '${resource:store.host}', o: '${resource:store.port}' }"),
    ] {
        let subject = operator(name, "namespace: deep", outputs);
        let deployment = FakeDeployment::default()
            .with("deep/root.store--e.credentials.postgresql.acid.zalan.do-get-0", "data", data(read))
            .with("deep/store--e-default-user-get-0", "data", data(read))
            .with("store--e-root-password-root-generated-password", "result", secret("pw"));
        subject.run(&deployment).await;
        let boat = deployment.goal("boat--e");
        let expected = match name {
            "postgres" => object([
                ("d", "postgres".into()),
                ("h", "store--e.deep.svc.cluster.local".into()),
                ("o", "5432".into()),
                ("p", secret("pw")),
                ("u", "root".into()),
            ]),
            "mongodb" => {
                let uri = "mongodb://root:pw@store--e-svc.deep.svc.cluster.local:27017";
                object([
                    ("d", "admin".into()),
                    ("h", "store--e-svc.deep.svc.cluster.local".into()),
                    (
                        "log",
                        secret(&format!("{uri}/local?authSource=admin&readPreference=primary&replicaSet=store--e")),
                    ),
                    ("o", "27017".into()),
                    ("p", secret("pw")),
                    ("u", "root".into()),
                    ("uri", secret(&format!("{uri}/admin?readPreference=primary&replicaSet=store--e"))),
                ])
            }
            "rabbitmq" => object([
                ("h", secret("host")),
                ("o", secret("5672")),
                ("p", secret("pw")),
                ("u", secret("user")),
                ("uri", secret("")),
            ]),
            _ => object([("h", "store--e.deep.svc.cluster.local".into()), ("o", "6379".into())]),
        };
        assert_eq!(PropertyValue::Map((*boat.inputs).clone()), expected, "{name}");

        let preview = FakeDeployment::preview();
        subject.run(&preview).await;
        assert!(preview.reads.lock().unwrap().is_empty(), "a preview does not read the secret");
        if name == "postgres" {
            assert_eq!(preview.goal("boat--e").inputs["p"], PropertyValue::UNKNOWN);
        }
    }
}

#[tokio::test]
async fn connections_are_exported_as_secrets_as_a_whole() {
    let subject = operator("mongodb", "", "{}");
    let deployment =
        FakeDeployment::default().with("store--e-root-password-root-generated-password", "result", secret("pw"));
    subject.run(&deployment).await;
    let PropertyValue::Secret(connection) = deployment.output("store--e-mongodb-connection") else { panic!() };
    let connection = connection.into_exposed();
    assert!(!connection.contains_secrets());
    assert_eq!(connection.as_map().unwrap()["password"], "pw".into());
    let password = deployment.goal("store--e-root-password").inputs["stringData"].clone();
    assert_eq!(password, PropertyValue::secret(object([("password", "pw".into())])), "as the Go program sends it");
}

#[tokio::test]
async fn secret_that_is_not_base64_is_named() {
    let subject = operator("rabbitmq", "", "{}");
    let deployment =
        FakeDeployment::default().with("default/store--e-default-user-get-0", "data", data([("password", "pw!")]));
    insta::assert_snapshot!(subject.diagnostics(&deployment).await, @r#"
    error[core-type]: "password" of the secret default/store--e-default-user is not the base64 of a text
     --> .sc/stacks/s/server.yaml:4:74
      |
    4 |                store: { type: kubernetes-helm-rabbitmq-operator, config: { kubeconfig: '${auth:sea}',  } },
      |                                                                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn mistakes_in_the_config_of_operators_are_reported_at_their_line() {
    let read = |operator: &str, config: &str| {
        let server = format!(
            "provisioner: {{ type: pulumi, config: {{ state-storage: {{ type: fs, config: {{ path: 'file:///x' }} }}, secrets-provider: {{ type: passphrase }} }} }}
resources:
  resources:
    e:
      resources:
        store:
          type: kubernetes-helm-{operator}-operator
          config:
            {config}"
        );
        StackProgram::try_complete(&server, recipes::built_in_types(), recipes::core_types()).err().unwrap_or_default()
    };
    for operator in OF_KUBERNETES {
        for (config, error) in [("namespace: x", "is missing"), ("kubeconfig: ''", "is empty")] {
            let diagnostics = read(operator, config);
            assert!(diagnostics.contains(&format!("error[missing-key]: `kubeconfig` {error}")), "{diagnostics}");
            assert!(diagnostics.contains("server.yaml:9:"), "{diagnostics}");
        }
    }
    insta::assert_snapshot!(read("postgres", "{ kubeconfig: k, numberOfInstances: two, pg_hba: local, values: [] }"), @r#"
    error[wrong-kind]: expected a whole number, found a text
     --> .sc/stacks/s/server.yaml:9:49
      |
    9 |             { kubeconfig: k, numberOfInstances: two, pg_hba: local, values: [] }
      |                                                 ^^^

    error[wrong-kind]: expected a list, found a text
     --> .sc/stacks/s/server.yaml:9:62
      |
    9 |             { kubeconfig: k, numberOfInstances: two, pg_hba: local, values: [] }
      |                                                              ^^^^^

    error[wrong-kind]: expected a mapping, found a list
     --> .sc/stacks/s/server.yaml:9:77
      |
    9 |             { kubeconfig: k, numberOfInstances: two, pg_hba: local, values: [] }
      |                                                                             ^^
    "#);
}
