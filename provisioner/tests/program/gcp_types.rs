//! Tests of the core types on Google Cloud that the recordings do not show.

use engine::{ProgramEnd, RegistrationResult};
use provisioner::registry::recipes;
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::fake::{FakeDeployment, StackProgram};

const PROVISIONER: &str = "provisioner: { type: pulumi, config: { state-storage: { type: fs, config: { path: file:///x } }, secrets-provider: { type: passphrase } } }";

/// Returns a server.yaml with a resource of the key `it`, and a resource that refers to it.
fn server(type_name: &str, config: &str, app: &str) -> String {
    format!(
        "{PROVISIONER}
plugins: [{{ name: p, source: {{ type: local, path: p }} }}]
resources:
  resources:
    e:
      resources:
        it:
          type: {type_name}
          config:
            credentials: '{{}}'
            {config}
        app: {{ type: 'p:m:App', config: {{ {app} }} }}
"
    )
}

fn program(type_name: &str, config: &str, app: &str) -> StackProgram {
    let server = server(type_name, &config.replace('\n', "\n            "), app);
    StackProgram::complete(&server, "", recipes::built_in_types(), recipes::core_types())
}

/// Returns the errors of a `config`, without the source lines.
fn errors(type_name: &str, config: &str) -> String {
    let server = server(type_name, &config.replace('\n', "\n            "), "");
    let diagnostics = StackProgram::try_complete(&server, recipes::built_in_types(), recipes::core_types());
    let diagnostics = diagnostics.err().unwrap_or_default();
    let is_kept = |line: &&str| ["error", "  -->", "   = "].iter().any(|start| line.starts_with(start));
    let errors = diagnostics.split("\n\n").filter(|found| found.starts_with("error")).flat_map(str::lines);
    errors.filter(is_kept).map(|line| line.replace(".sc/stacks/s/", "")).collect::<Vec<_>>().join("\n")
}

const REDIS: &str = "projectId: tide\nmemorySizeGb: 1";

#[tokio::test]
async fn apis_are_switched_on_once_in_a_run_and_never_in_a_preview() {
    let twice = "it2: { type: gcp-redis, config: { credentials: '{}', projectId: tide, memorySizeGb: 2 } }";
    let server = server("gcp-redis", &REDIS.replace('\n', "\n            "), "") + "        " + twice;
    for (deployment, apis) in [
        (FakeDeployment::default(), &["projects/tide/services/redis.googleapis.com"][..]),
        (FakeDeployment::preview(), &[]),
    ] {
        let subject = StackProgram::complete(&server, "", recipes::built_in_types(), recipes::core_types());
        subject.run(&deployment).await;
        assert_eq!(*deployment.apis.lock().unwrap(), apis);
        assert_eq!(deployment.names().iter().filter(|name| name.starts_with("it")).count(), 2);
    }
}

#[tokio::test]
async fn api_is_left_alone_if_its_provider_is_out_of_scope() {
    let provider = "s--gcp-redis--it--e--provider--e";
    let results = [(provider, RegistrationResult::Skipped)].into();
    let deployment = FakeDeployment { results, ..FakeDeployment::default() };
    let subject = program("gcp-redis", REDIS, "");
    assert_eq!(subject.program.run(&deployment, &deployment).await.end, ProgramEnd::Completed);
    assert!(deployment.apis.lock().unwrap().is_empty());
}

#[tokio::test]
async fn api_that_cannot_be_switched_on_stops_the_resource() {
    let refused_apis = [("projects/tide/services/redis.googleapis.com".to_owned(), "403 Forbidden: no".to_owned())];
    let deployment = FakeDeployment { refused_apis: refused_apis.into(), ..FakeDeployment::default() };
    insta::assert_snapshot!(program("gcp-redis", REDIS, "").diagnostics(&deployment).await, @r#"
    error[core-type]: cannot switch on the API redis.googleapis.com in the project "tide": 403 Forbidden: no
      --> .sc/stacks/s/server.yaml:10:13
       |
    10 |             credentials: '{}'
       |             ^^^^^^^^^^^^^^^^^
       |
       = hint: give the account the role `Service Usage Admin`, or run `gcloud services enable --project tide redis.googleapis.com` yourself
    "#);
    assert!(!deployment.names().contains(&"it--e".to_owned()));

    let refused_apis = [("projects/ti$(id)/services/redis.googleapis.com".to_owned(), "403 Forbidden: no".to_owned())];
    let deployment = FakeDeployment { refused_apis: refused_apis.into(), ..FakeDeployment::default() };
    let hostile = program("gcp-redis", &REDIS.replace("tide", "'ti$(id)'"), "").diagnostics(&deployment).await;
    assert!(hostile.contains("`gcloud services enable --project 'ti$(id)' redis.googleapis.com`"), "{hostile}");
}

#[tokio::test]
async fn references_resolve_to_outputs() {
    let app = "host: '${resource:it.host}', port: '${resource:it.port}'";
    let deployment = FakeDeployment::default().with("it--e", "host", "10.0.0.3").with("it--e", "port", 6379.0);
    program("gcp-redis", REDIS, app).run(&deployment).await;
    let inputs = deployment.goal("app--e").inputs;
    assert_eq!((&inputs["host"], &inputs["port"]), (&"10.0.0.3".into(), &"6379".into()));

    let app = "user: '${resource:it.user}', password: '${resource:it.password}'";
    let deployment = FakeDeployment::default().with("it--e-root-password", "result", "hush");
    program("gcp-cloudsql-postgres", "projectId: tide\nversion: POSTGRES_16", app).run(&deployment).await;
    let inputs = deployment.goal("app--e").inputs;
    assert_eq!((&inputs["user"], &inputs["password"]), (&"postgres".into(), &PropertyValue::secret("hush".into())));
}

#[tokio::test]
async fn adopted_instance_keeps_its_settings_except_those_of_the_config() {
    let object = |members: &[(&str, PropertyValue)]| -> PropertyValue {
        members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<PropertyMap>().into()
    };
    let flag = |name: &str, value: &str| object(&[("name", name.into()), ("value", value.into())]);
    let settings = object(&[
        ("tier", "small".into()),
        ("databaseFlags", vec![flag("max_connections", "50"), flag("log_statement", "all")].into()),
        ("insightsConfigs", vec![object(&[("queryInsightsEnabled", false.into())])].into()),
        ("maintenanceWindows", vec![object(&[("day", 0.0.into())])].into()),
    ]);
    let mut deployment = FakeDeployment::default();
    let found = [("settings".to_owned(), vec![settings].into()), ("region".to_owned(), "eu".into())];
    deployment.replies.insert("gcp:sql/getDatabaseInstance:getDatabaseInstance".to_owned(), found.into());
    let config = "projectId: tide\nadopt: true\ninstanceName: old\nconnectionName: c\nversion: POSTGRES_16\ntier: large
maxConnections: 7\nqueryInsightsEnabled: true";
    program("gcp-cloudsql-postgres", config, "").run(&deployment).await;
    let goal = deployment.goal("it--e");
    assert_eq!((&goal.inputs["region"], &goal.inputs["databaseVersion"]), (&"eu".into(), &"POSTGRES_16".into()));
    let PropertyValue::Map(settings) = &goal.inputs["settings"] else { panic!("{:?}", goal.inputs) };
    assert_eq!(settings["tier"], "large".into());
    assert_eq!(settings["databaseFlags"], vec![flag("log_statement", "all"), flag("max_connections", "7")].into());
    let PropertyValue::Map(insights) = &settings["insightsConfig"] else { panic!("{settings:?}") };
    assert_eq!((&insights["queryInsightsEnabled"], &insights["queryStringLength"]), (&true.into(), &0.0.into()));
    assert!(!settings.contains_key("maintenanceWindow") && !settings.contains_key("backupConfiguration"));
    assert!(deployment.apis.lock().unwrap().is_empty());
}

#[test]
fn mistakes_are_reported_at_their_lines() {
    let cases = [
        ("gcp-redis", "memorySizeGb: 'two'"),
        ("gcp-redis", "projectId: tide\nmemorySizeGb: 0"),
        ("gcp-redis", "projectId: tide\nadopt: true"),
        ("gcp-cloudsql-postgres", "projectId: tide\nversion: POSTGRES_16\navailabilityType: zonal"),
        ("gcp-cloudsql-postgres", "projectId: tide\nadopt: true\ninstanceName: old"),
        ("gcp-pubsub", "topics: [{ name: orders }]\nsubscriptions:\n- { name: in, topic: order }\n- { name: out }"),
        ("gcp-pubsub", "topics: [{ labels: {} }]"),
        ("gcp-gke-autopilot-cluster", "projectId: tide"),
        ("gcp-gke-autopilot-cluster", "projectId: tide\nlocation: eu\nadopt: true\ntimeouts: { create: soon }"),
        (
            "gcp-gke-autopilot-cluster",
            "projectId: tide\nlocation: eu\nexternalEgressIp: { enabled: true, existing: out }",
        ),
        ("gcp-gke-autopilot-cluster", "projectId: tide\nlocation: eu\ncaddy: { trustedProxies: [near] }"),
    ];
    let errors = cases.map(|(type_name, config)| errors(type_name, config));
    insta::assert_snapshot!(errors.join("\n\n"), @r#"
    error[wrong-kind]: expected a whole number, found a text
      --> server.yaml:11:27
       = hint: write it without quotes

    error[unknown-value]: an instance needs memory
      --> server.yaml:12:27
       = hint: write the memory in GiB, such as `memorySizeGb: 1`

    error[missing-key]: `instanceId` is missing
      --> server.yaml:10:13
       = hint: add the name of the existing instance: `adopt` imports it
    error[missing-key]: `region` is missing
      --> server.yaml:10:13
       = hint: add the region of the existing instance

    error[unknown-value]: "zonal" is not a valid value
      --> server.yaml:13:31
       = hint: the values are ZONAL, REGIONAL

    error[missing-key]: `connectionName` is missing
      --> server.yaml:10:13
       = hint: add the connection name of the existing instance: `PROJECT:REGION:NAME`

    error[unknown-topic]: the subscription "out" names no topic of this resource
      --> server.yaml:10:13
       = hint: add the topic to `topics`
    error[unknown-topic]: the subscription "in" names no topic of this resource
      --> server.yaml:13:34
       = hint: did you mean `orders`?
       = hint: add the topic to `topics`

    error[missing-key]: a topic or a subscription has no `name`
      --> server.yaml:10:13

    error[missing-key]: `location` is missing
      --> server.yaml:10:13
       = hint: add the region, such as `location: europe-north1`

    error[missing-key]: `clusterName` is missing
      --> server.yaml:10:13
       = hint: add the name of the existing cluster: `adopt` imports it
    error[invalid-duration]: this is not a duration
      --> server.yaml:14:33
       = hint: write a number and a unit, such as `30m`

    error[invalid-address]: this is not the path of an address
      --> server.yaml:13:58
       = hint: write `projects/PROJECT/regions/REGION/addresses/NAME`

    error[trusted-proxies]: the trusted proxy "near" is no address and no network
      --> server.yaml:13:38
       = hint: write it as `192.0.2.1` or `192.0.2.0/24`
    "#);
}
