//! Tests of `mongodb-atlas` (docs/spec/simple-container.md#7.10) beyond its recordings.

use provisioner::registry::recipes;
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::buckets::registrations;
use crate::fake::{FakeDeployment, StackProgram};

const KEYS: &str = "publicKey: PUB, privateKey: '${secret:s}'";
const SIZE: &str = "instanceSize: M10, region: EU_NORTH_1, cloudProvider: AWS";

fn server(config: &str, rest: &str) -> String {
    format!(
        "resources:\n  resources:\n    e:\n      resources:\n        db: {{ type: mongodb-atlas, config: {{ {config} }} }}\n{rest}"
    )
}

fn cluster(config: &str, rest: &str) -> StackProgram {
    StackProgram::with_secrets(&server(config, rest), "values: { s: hush }")
}

fn diagnostics(config: &str) -> String {
    let provisioner = "provisioner: { type: pulumi, config: { state-storage: { type: fs, config: { path: file:///x } }, secrets-provider: { type: passphrase } } }\n";
    let server = format!("{provisioner}{}", server(config, ""));
    StackProgram::try_complete(&server, recipes::built_in_types(), recipes::core_types()).err().unwrap_or_default()
}

/// Returns the lines of the diagnostics that say what is wrong and where.
fn summaries(config: &str) -> String {
    let diagnostics = diagnostics(config);
    let is_summary = |line: &&str| line.starts_with("error") || line.starts_with("warning") || line.contains(" --> ");
    diagnostics.lines().filter(is_summary).collect::<Vec<_>>().join("\n")
}

fn map<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyMap {
    members.map(|(name, value)| (name.to_owned(), value)).into()
}

fn atlas() -> FakeDeployment {
    FakeDeployment::default()
        .with("s--db--e-cluster", "mongoUriWithOptions", "mongodb+srv://c.example/?w=majority")
        .with("s--db--e-1-joe-password", "result", PropertyValue::secret("pw".into()))
}

#[tokio::test]
async fn private_link_uses_account_on_aws_and_its_uri() {
    let subject = cluster(
        &format!(
            "{KEYS}, {SIZE}, orgId: o, deletionProtection: true, networkConfig: {{ privateLinkEndpoint: {{ providerName: AWS }} }},
             extraProviders: {{ AWS: {{ type: aws-token, config: {{ accessKey: AK, secretAccessKey: SK, region: eu-north-1 }} }} }}"
        ),
        "",
    );
    let endpoints = map([("srvConnectionString", "mongodb+srv://private.example".into())]);
    let strings = map([("privateEndpoints", vec![PropertyValue::Map(endpoints)].into())]);
    let link = "s--db--e-private-link-endpoint";
    let deployment = atlas().with(link, "endpointServiceName", "service").with(link, "privateLinkId", "link");
    let replies = [
        ("aws:index/getAvailabilityZones:getAvailabilityZones", map([("names", vec!["a".into(), "b".into()].into())])),
        ("aws:ec2/getSubnet:getSubnet", map([("id", "subnet".into())])),
        (
            "mongodbatlas:index/getCluster:getCluster",
            map([("connectionStrings", vec![PropertyValue::Map(strings)].into())]),
        ),
    ];
    let replies = replies.map(|(token, reply)| (token.to_owned(), reply)).into();
    let deployment = FakeDeployment { replies, ..deployment };
    insta::assert_snapshot!(registrations(&subject, &deployment).await, @r#"
    pulumi:providers:p p
    pulumi:providers:mongodbatlas s--mongodb-atlas--db--e--provider--e (3.38.0)
      privateKey: secret "hush"
      publicKey: "PUB"
      region: "EU_NORTH_1"
      - secret outputs privateKey
    pulumi:providers:aws s--mongodb-atlas--db-dep-AWS--e--provider--e (6.83.4)
      accessKey: secret "AK"
      region: "eu-north-1"
      secretKey: secret "SK"
      skipCredentialsValidation: false
      skipRegionValidation: true
      - secret outputs accessKey, secretKey, token
    mongodbatlas:index/project:Project s--db--e (3.38.0)
      name: "s--db--e"
      orgId: "o"
      - provider s--mongodb-atlas--db--e--provider--e
      - protect true
    mongodbatlas:index/cluster:Cluster s--db--e-cluster (3.38.0)
      cloudBackup: false
      clusterType: "REPLICASET"
      name: "s--db--e"
      projectId: "s--db--e-1"
        from s--db--e
      providerInstanceSizeName: "M10"
      providerName: "AWS"
      providerRegionName: "EU_NORTH_1"
      - after s--db--e
      - provider s--mongodb-atlas--db--e--provider--e
      - protect true
    mongodbatlas:index/privateLinkEndpoint:PrivateLinkEndpoint s--db--e-private-link-endpoint (3.38.0)
      projectId: "s--db--e-1"
        from s--db--e
      providerName: "AWS"
      region: "eu-north-1"
      - after s--db--e
      - provider s--mongodb-atlas--db--e--provider--e
      - protect true
    aws:ec2/defaultVpc:DefaultVpc s--db--e-vpc (6.83.4)
      - after s--db--e-cluster
      - provider s--mongodb-atlas--db-dep-AWS--e--provider--e
    aws:ec2/securityGroup:SecurityGroup s--db--e-aws-endpoint-sg (6.83.4)
      description: "Managed by Pulumi"
      egress: [{ cidrBlocks: ["0.0.0.0/0"], description: "Allow ALL outbound traffic", fromPort: Number(0.0), ipv6CidrBlocks: ["::/0"], protocol: "tcp", toPort: Number(65535.0) }]
      ingress: [{ cidrBlocks: ["0.0.0.0/0"], description: "Allow ALL inbound traffic", fromPort: Number(0.0), ipv6CidrBlocks: ["::/0"], protocol: "tcp", toPort: Number(65535.0) }]
      vpcId: "s--db--e-vpc-1"
        from s--db--e-vpc
      - after s--db--e-vpc, s--db--e-cluster
      - provider s--mongodb-atlas--db-dep-AWS--e--provider--e
    aws:ec2/vpcEndpoint:VpcEndpoint s--db--e-vpc-endpoint (6.83.4)
      securityGroupIds: ["s--db--e-aws-endpoint-sg-1"]
        from s--db--e-aws-endpoint-sg
      serviceName: "service"
        from s--db--e-private-link-endpoint
      subnetIds: ["subnet", "subnet"]
      vpcEndpointType: "Interface"
      vpcId: "s--db--e-vpc-1"
        from s--db--e-vpc
      - after s--db--e-aws-endpoint-sg, s--db--e-private-link-endpoint, s--db--e-vpc, s--db--e-cluster
      - provider s--mongodb-atlas--db-dep-AWS--e--provider--e
    mongodbatlas:index/privateLinkEndpointService:PrivateLinkEndpointService s--db--e-private-link-endpoint-svc (3.38.0)
      endpointServiceId: "s--db--e-vpc-endpoint-1"
        from s--db--e-vpc-endpoint
      privateLinkId: "link"
        from s--db--e-private-link-endpoint
      projectId: "s--db--e-1"
        from s--db--e
      providerName: "AWS"
      - after s--db--e-vpc-endpoint, s--db--e-private-link-endpoint, s--db--e
      - provider s--mongodb-atlas--db--e--provider--e
      - protect true
    outputs
      s--db--e-id: "s--db--e-1"
      s--db--e-mongo-uri-options: "mongodb+srv://private.example"
      s--db--e-users: {  }
    "#);
    let invokes = deployment.invokes.lock().unwrap();
    let calls =
        invokes.iter().map(|call| format!("{} {:?}", call.token, call.arguments)).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(calls, @r#"
    aws:index/getAvailabilityZones:getAvailabilityZones {"filters": List([Map({"name": String("region-name"), "values": List([String("eu-north-1")])})])}
    aws:ec2/getSubnet:getSubnet {"filters": List([Map({"name": String("availability-zone"), "values": List([String("a")])}), Map({"name": String("default-for-az"), "values": List([String("true")])})])}
    aws:ec2/getSubnet:getSubnet {"filters": List([Map({"name": String("availability-zone"), "values": List([String("b")])}), Map({"name": String("default-for-az"), "values": List([String("true")])})])}
    mongodbatlas:index/getCluster:getCluster {"name": String("s--db--e"), "projectId": String("s--db--e-1")}
    "#);
}

#[tokio::test]
async fn references_give_the_access_of_the_first_user() {
    let rest = "outputs:\n  uri: '${resource:e/db.uri}'\n  log: '${resource:e/db.oplogUri}'\n  who: '${resource:e/db.user} ${resource:e/db.password} ${resource:e/db.dbName}'\n";
    let subject = cluster(&format!("{KEYS}, {SIZE}, orgId: o, developers: [joe]"), rest);
    let deployment = atlas();
    subject.run(&deployment).await;
    let secret = |text: &str| PropertyValue::secret(text.into());
    assert_eq!(deployment.output("uri"), secret("mongodb+srv://joe:pw@c.example/s--e?w=majority"));
    assert_eq!(deployment.output("log"), secret("mongodb+srv://joe:pw@c.example/local?w=majority"));
    assert_eq!(deployment.output("who"), secret("joe pw s--e"));
    let users = map([(
        "joe",
        "{\"userName\":\"joe\",\"password\":\"pw\",\"dbUri\":\"mongodb+srv://c.example/?w=majority\"}".into(),
    )]);
    assert_eq!(deployment.output("s--db--e-users"), PropertyValue::secret(PropertyValue::Map(users)));

    let preview = FakeDeployment::preview();
    subject.run(&preview).await;
    for output in ["uri", "who", "s--db--e-users", "s--db--e-mongo-uri-options"] {
        assert!(preview.output(output).contains_unknowns(), "{output}");
    }

    let without = cluster(&format!("{KEYS}, {SIZE}, orgId: o"), "outputs: { uri: '${resource:e/db.uri}' }\n");
    insta::assert_snapshot!(without.diagnostics(&atlas()).await, @r#"
    error[unknown-output]: resource "db" has no output "uri"
     --> .sc/stacks/s/server.yaml:8:18
      |
    8 | outputs: { uri: '${resource:e/db.uri}' }
      |                  ^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[tokio::test]
async fn uri_of_a_reference_keeps_hosts_and_options() {
    let config = format!("{KEYS}, {SIZE}, orgId: o, admins: [u/]");
    let subject = cluster(&config, "outputs: { uri: '${resource:e/db.uri}' }\n");
    for (uri, expected) in [
        ("mongodb+srv://c.example", "mongodb+srv://u%2F:p@c.example/s--e"),
        ("mongodb://a:1,b:2/?ssl=true", "mongodb://u%2F:p@a:1,b:2/s--e?ssl=true"),
        ("mongodb://x:y@a/old?w=1", "mongodb://u%2F:p@a/s--e?w=1"),
        ("none", "none"),
    ] {
        let deployment = FakeDeployment::default().with("s--db--e-cluster", "mongoUriWithOptions", uri);
        let deployment = deployment.with("s--db--e-1-u/-password", "result", "p");
        subject.run(&deployment).await;
        assert_eq!(deployment.output("uri"), PropertyValue::secret(expected.into()));
    }
}

#[tokio::test]
async fn long_name_of_a_cluster_is_cut_and_ends_with_a_hash() {
    // The hashes are those of an implementation of the rule in Python.
    for (environment, name) in [
        ("exactly-23-bytes", "s--db--exactly-23-bytes"),
        ("staging-of-all-teams", "s--db--staging-of-8f75"),
        ("ааааааааа", "s--db--ааааа-65b4"),
    ] {
        let server =
            server(&format!("{KEYS}, {SIZE}, orgId: o"), "").replace("    e:\n", &format!("    {environment}:\n"));
        let deployment = FakeDeployment::default();
        StackProgram::with_secrets(&server, "values: { s: hush }").run(&deployment).await;
        assert_eq!(deployment.goal(&format!("{name}-cluster")).inputs["name"], name.into());
    }
}

#[tokio::test]
async fn adopted_cluster_keeps_what_is_not_configured() {
    let subject = cluster(&format!("{KEYS}, projectId: prj, adopt: true, clusterName: old"), "");
    let found = map([
        ("providerInstanceSizeName", "M5".into()),
        ("providerRegionName", "US_EAST_1".into()),
        ("clusterType", "REPLICASET".into()),
        ("providerName", "TENANT".into()),
        ("backingProviderName", "GCP".into()),
    ]);
    let replies = [("mongodbatlas:index/getCluster:getCluster".to_owned(), found)].into();
    let deployment = FakeDeployment { replies, ..FakeDeployment::default() };
    insta::assert_snapshot!(registrations(&subject, &deployment).await, @r#"
    pulumi:providers:p p
    pulumi:providers:mongodbatlas s--mongodb-atlas--db--e--provider--e (3.38.0)
      privateKey: secret "hush"
      publicKey: "PUB"
      region: ""
      - secret outputs privateKey
    mongodbatlas:index/cluster:Cluster old (3.38.0)
      backingProviderName: "GCP"
      clusterType: "REPLICASET"
      name: "old"
      projectId: "prj"
      providerInstanceSizeName: "M5"
      providerName: "TENANT"
      providerRegionName: "US_EAST_1"
      - provider s--mongodb-atlas--db--e--provider--e
      - import prj-old
      - protect true
    outputs
      s--db--e-id: "prj"
      s--db--e-users: []
    "#);
}

#[test]
fn missing_keys_are_reported() {
    insta::assert_snapshot!(diagnostics("admins: [root]"), @"
    error[missing-key]: `publicKey` is missing
     --> .sc/stacks/s/server.yaml:6:44
      |
    6 |         db: { type: mongodb-atlas, config: { admins: [root] } }
      |                                            ^^^^^^^^^^^^^^^^^^
      |
      = hint: an API key of Atlas has a public and a private part; keep the private one in secrets.yaml

    error[missing-key]: `privateKey` is missing
     --> .sc/stacks/s/server.yaml:6:44
      |
    6 |         db: { type: mongodb-atlas, config: { admins: [root] } }
      |                                            ^^^^^^^^^^^^^^^^^^
      |
      = hint: an API key of Atlas has a public and a private part; keep the private one in secrets.yaml

    error[missing-key]: `orgId` is missing
     --> .sc/stacks/s/server.yaml:6:44
      |
    6 |         db: { type: mongodb-atlas, config: { admins: [root] } }
      |                                            ^^^^^^^^^^^^^^^^^^
      |
      = hint: add it, or the `projectId` of an existing project

    error[missing-key]: `instanceSize` is missing
     --> .sc/stacks/s/server.yaml:6:44
      |
    6 |         db: { type: mongodb-atlas, config: { admins: [root] } }
      |                                            ^^^^^^^^^^^^^^^^^^
      |
      = hint: add a size, such as `instanceSize: M10`

    error[missing-key]: `region` is missing
     --> .sc/stacks/s/server.yaml:6:44
      |
    6 |         db: { type: mongodb-atlas, config: { admins: [root] } }
      |                                            ^^^^^^^^^^^^^^^^^^
      |
      = hint: add a region of Atlas, such as `region: EU_NORTH_1`

    error[missing-key]: `cloudProvider` is missing
     --> .sc/stacks/s/server.yaml:6:44
      |
    6 |         db: { type: mongodb-atlas, config: { admins: [root] } }
      |                                            ^^^^^^^^^^^^^^^^^^
      |
      = hint: add a cloud, such as `cloudProvider: AWS`
    ");
    assert_eq!(summaries(&format!("publicKey: a, privateKey: b, projectId: p, {SIZE}")), "");
    assert_eq!(summaries("publicKey: a, privateKey: b, projectId: p, adopt: true, clusterName: c"), "");
    insta::assert_snapshot!(summaries("publicKey: a, privateKey: b, adopt: true"), @"
    error[missing-key]: `projectId` is missing
     --> .sc/stacks/s/server.yaml:6:44
    error[missing-key]: `clusterName` is missing
     --> .sc/stacks/s/server.yaml:6:44
    ");
}

#[test]
fn wrong_backups_networks_and_users_are_reported() {
    let of = |rest: &str| summaries(&format!("publicKey: a, privateKey: b, orgId: o, {SIZE}, {rest}"));
    insta::assert_snapshot!(of("backup: { every: 2d }"), @r#"
    error[missing-key]: `retention` is missing
     --> .sc/stacks/s/server.yaml:6:152
    error[unknown-value]: "2d" is not a duration
     --> .sc/stacks/s/server.yaml:6:161
    "#);
    insta::assert_snapshot!(of("backup: { advanced: { daily: { every: 1, unit: day }, weekly: { every: 1, retainFor: x } } }"), @"
    error[wrong-kind]: expected a whole number, found a text
     --> .sc/stacks/s/server.yaml:6:229
    ");
    insta::assert_snapshot!(of("backup: { advanced: { daily: { every: 1, retainFor: 2, unit: day } } }, networkConfig: {}"), @r#"
    error[unknown-value]: "day" is not a unit of a retention
     --> .sc/stacks/s/server.yaml:6:205
    error[missing-key]: `networkConfig` has neither `privateLinkEndpoint` nor `allowCidrs`
     --> .sc/stacks/s/server.yaml:6:231
    "#);
    insta::assert_snapshot!(of("networkConfig: { privateLinkEndpoint: { providerName: AWs } }, extraProviders: { AWS: { type: gcp-service-account, config: {} } }"), @r#"
    error[unknown-provider]: `extraProviders` has no account "AWs"
     --> .sc/stacks/s/server.yaml:6:198
    error[unknown-type]: "gcp-service-account" is not a type of account that a cluster can use
     --> .sc/stacks/s/server.yaml:6:238
    "#);
    insta::assert_snapshot!(of("admins: [a, b], developers: [c, b, '']"), @r#"
    error[unknown-value]: a user has an empty name
     --> .sc/stacks/s/server.yaml:6:172
    error[duplicate-user]: "b" is an admin and a developer
     --> .sc/stacks/s/server.yaml:6:176
    "#);
}

#[test]
fn keys_without_effect_and_rounded_values_are_warnings() {
    // The error at the end makes the diagnostics visible.
    let of =
        |rest: &str| summaries(&format!("publicKey: a, privateKey: b, orgId: o, {SIZE}, {rest}, developers: ['']"));
    insta::assert_snapshot!(of("backup: { every: 90m, retention: 12h }, namingStrategyVersion: 7"), @"
    warning[rounded]: only whole hours count: this is taken as 1
     --> .sc/stacks/s/server.yaml:6:161
    warning[rounded]: only whole days count: this is taken as 0
     --> .sc/stacks/s/server.yaml:6:177
    warning[unknown-value]: there is no naming strategy 7: the strategy 2 applies
     --> .sc/stacks/s/server.yaml:6:207
    error[unknown-value]: a user has an empty name
     --> .sc/stacks/s/server.yaml:6:222
    ");
    let advanced =
        "monthly: { every: 1, retainFor: 2, dayOfMonth: 3 }, pointInTimeRecovery: { enabled: true }, export: {}";
    insta::assert_snapshot!(of(&format!("backup: {{ every: 1h, advanced: {{ {advanced} }} }}")), @"
    warning[unused]: `every` is ignored: `advanced` overrides it
     --> .sc/stacks/s/server.yaml:6:161
    warning[unused]: `dayOfMonth` is not used, as in the Go program
     --> .sc/stacks/s/server.yaml:6:224
    warning[unused]: `pointInTimeRecovery` is not used, as in the Go program
     --> .sc/stacks/s/server.yaml:6:250
    warning[unused]: `export` is not used, as in the Go program
     --> .sc/stacks/s/server.yaml:6:277
    error[unknown-value]: a user has an empty name
     --> .sc/stacks/s/server.yaml:6:297
    ");
}
