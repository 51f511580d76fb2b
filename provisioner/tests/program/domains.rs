//! Tests of the registrar `cloudflare` and of resources with a domain (docs/spec/simple-container.md#7.19) beyond their
//! recordings.

use engine::ProgramEnd;
use provisioner::registry::recipes;
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::fake::{FakeDeployment, StackProgram};

const PROVISIONER: &str = "provisioner: { type: pulumi, config: { state-storage: { type: fs, config: { path: file:///x } }, secrets-provider: { type: passphrase } } }";
const REGISTRAR: &str = "credentials: '${secret:s}', accountId: acc, zoneName: reef.example";

fn server(registrar: &str, resources: &str) -> String {
    format!(
        "{PROVISIONER}\nresources:\n  registrar: {{ {registrar} }}\n  resources:\n    e:\n      resources:\n        {resources}\n"
    )
}

fn program(config: &str, resources: &str) -> StackProgram {
    let server = server(&format!("type: cloudflare, config: {{ {config} }}"), resources);
    StackProgram::complete(&server, "values: { s: hush }", recipes::built_in_types(), recipes::core_types())
}

fn errors(server: &str) -> String {
    let read = StackProgram::try_complete(server, recipes::built_in_types(), recipes::core_types());
    let errors = read.err().unwrap_or_default();
    let is_kept = |line: &&str| line.starts_with("error") || line.contains("-->") || line.contains("hint:");
    errors.lines().filter(is_kept).map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Creates a deployment in which Cloudflare knows the zone, unless its id is empty.
fn cloudflare(zone: &str) -> FakeDeployment {
    let reply = PropertyMap::from([("zoneId".to_owned(), zone.into())]);
    let replies = [("cloudflare:index/getZone:getZone".to_owned(), reply)].into();
    FakeDeployment { replies, ..FakeDeployment::default() }
}

fn site(key: &str, domain: &str) -> String {
    format!("{key}: {{ type: s3-bucket, config: {{ region: sea, domain: {domain} }} }}")
}

#[tokio::test]
async fn sites_and_records_share_provider_and_zone() {
    let resources = format!("{}\n        {}", site("a", "a.reef.example"), site("b", "b.reef.example"));
    let subject =
        program(&format!("{REGISTRAR}, dnsRecords: [{{ name: '@', type: TXT, value: '${{secret:s}}' }}]"), &resources);
    let deployment = cloudflare("zone").with("a--e", "bucketDomainName", "a.s3.example");
    let deployment = deployment.with("b--e", "bucketDomainName", "b.s3.example");
    subject.run(&deployment).await;
    assert_eq!(deployment.names().iter().filter(|name| *name == "acc").count(), 1);
    assert_eq!(deployment.invokes.lock().unwrap().len(), 1);
    assert_eq!(deployment.goal("acc").inputs["apiToken"], PropertyValue::secret("hush".into()));
    assert_eq!(deployment.goal("@-record").inputs["content"], PropertyValue::secret("hush".into()));
    for site in ["a", "b"] {
        let record = deployment.goal(&format!("{site}.reef.example-record"));
        assert_eq!(record.inputs["content"], format!("{site}.s3.example").as_str().into());
        let script = deployment.goal(&format!("s{site}--e-host-override-script")).inputs["content"].clone();
        let settings = format!(r#"const settings = {{"host":"{site}.s3.example","pathPrefix":""}};"#);
        assert!(script.as_str().unwrap().contains(&settings), "{script:?}");
        let route = deployment.output(&format!("s{site}--e-host-override-route"));
        assert!(matches!(route, PropertyValue::Resource(_)), "{route:?}");
    }
}

#[test]
fn domain_of_two_resources_is_an_error_before_the_run() {
    let registrar = format!("type: cloudflare, config: {{ {REGISTRAR} }}").replace("${secret:s}", "t");
    let resources = format!("{}\n        {}", site("a", "www.reef.example"), site("b", "www.reef.example"));
    insta::assert_snapshot!(errors(&server(&registrar, &resources)), @"
    error[duplicate-domain]: two resources have this domain
     --> .sc/stacks/s/server.yaml:8:62
      = hint: give each resource a domain of its own
    ");

    let record = "dnsRecords: [{ name: www.reef.example, type: A, value: '192.0.2.1' }]";
    let subject = program(&format!("{REGISTRAR}, {record}"), &site("a", "www.reef.example"));
    insta::assert_snapshot!(subject.render(&subject.program.check_core_types()), @r#"
    error[core-type]: two resources would register different resources of the type cloudflare:index/record:Record and the name "www.reef.example-record"
     --> .sc/stacks/s/server.yaml:3:14
      |
    3 | ...istrar: { type: cloudflare, config: { credentials: '${secret:s}', accountId: acc, zoneName: reef.example, dnsRecords: [{ name: www.reef.example, type: A, value: '192.0.2.1' }] } }
      |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    ...
    7 | ...   a: { type: s3-bucket, config: { region: sea, domain: www.reef.example } }
      |       - the other one
      |
      = note: they belong to "a" of env "e" and "registrar"
      = hint: give one of them another name, or put them into different stacks
    "#);
}

#[tokio::test]
async fn unknown_zone_is_an_error() {
    insta::assert_snapshot!(program(REGISTRAR, &site("a", "a.reef.example")).diagnostics(&cloudflare("")).await, @r#"
    error[core-type]: Cloudflare does not know the zone "reef.example" of the registrar
     --> .sc/stacks/s/server.yaml:7:39
      |
    7 |         a: { type: s3-bucket, config: { region: sea, domain: a.reef.example } }
      |                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[tokio::test]
async fn preview_registers_what_leads_a_domain_to_a_new_bucket() {
    let deployment = FakeDeployment { replies: cloudflare("zone").replies, ..FakeDeployment::preview() };
    let subject = program(REGISTRAR, &site("a", "a.reef.example"));
    assert_eq!(subject.program.run(&deployment, &deployment).await.end, ProgramEnd::Completed);
    assert_eq!(deployment.goal("a.reef.example-record").inputs["content"], PropertyValue::UNKNOWN);
}

#[tokio::test]
async fn registry_asks_for_its_password_at_the_domain() {
    let config = "credentials: '{}', projectId: tide, location: EU, docker: {}, domain: i.reef.example, basicAuth: { username: joe, password: '${secret:s}' }";
    let subject = program(REGISTRAR, &format!("images: {{ type: gcp-artifact-registry, config: {{ {config} }} }}"));
    let deployment = cloudflare("zone");
    subject.run(&deployment).await;
    assert_eq!(deployment.goal("i.reef.example-record").inputs["content"], "eu-docker.pkg.dev".into());
    let script = deployment.goal("si-reef-example-host-override-script");
    let PropertyValue::Secret(content) = &script.inputs["content"] else { panic!("{script:?}") };
    // Base64 of `joe:hush`.
    let settings = r#"{"host":"eu-docker.pkg.dev","pathPrefix":"/tide/images--e","credentials":"am9lOmh1c2g=","realm":"s / e / images"}"#;
    assert!(content.expose().as_str().unwrap().contains(settings), "{content:?}");
}

#[test]
fn packages_of_registrar_and_domains_are_needed() {
    let of = |subject: &StackProgram| {
        let found = subject.program.undeclared_packages();
        found.iter().map(|found| format!("{} for {}", found.package.name, found.resource)).collect::<Vec<_>>()
    };
    let bucket = "a: { type: s3-bucket, config: { region: sea } }";
    let server = format!("{PROVISIONER}\nresources: {{ resources: {{ e: {{ resources: {{ {bucket} }} }} }} }}\n");
    let without = StackProgram::complete(&server, "", recipes::built_in_types(), recipes::core_types());
    assert_eq!(of(&without), ["aws for a"]);
    assert_eq!(of(&program(REGISTRAR, bucket)), ["aws for a", "cloudflare for registrar"]);
    assert_eq!(of(&program(REGISTRAR, &site("a", "a.reef.example"))), ["aws for a", "cloudflare for a"]);
}

#[test]
fn mistakes_are_reported_at_their_lines() {
    let records = "credentials: t, accountId: a, zoneName: z, dnsRecords: [{ type: A, value: x }, { name: n, value: v }, { name: n, type: A, value: v }, { name: m, type: A }, { name: n, type: B, value: w }]";
    let cases = [
        ("type: cloudflare".to_owned(), ""),
        (format!("type: cloudflare, config: {{ {records} }}"), ""),
        ("type: aws-token".to_owned(), ""),
        ("type: cloudflare, config: { credentials: t, accountId: a, zoneName: '${resource:a.region}' }".to_owned(), ""),
        ("type: ''".to_owned(), "a.reef.example"),
        ("inherit: common".to_owned(), "a.reef.example"),
    ];
    let errors = cases.map(|(registrar, domain)| {
        errors(&server(&registrar, &format!("a: {{ type: s3-bucket, config: {{ region: sea, domain: '{domain}' }} }}")))
    });
    insta::assert_snapshot!(errors.join("\n\n"), @r#"
    error[missing-key]: `credentials` is missing
     --> .sc/stacks/s/server.yaml:3:22
      = hint: add an API token of Cloudflare, from secrets.yaml: `"${secret:NAME}"`
    error[missing-key]: `accountId` is missing
     --> .sc/stacks/s/server.yaml:3:22
      = hint: add the id of the account at Cloudflare
    error[missing-key]: `zoneName` is missing
     --> .sc/stacks/s/server.yaml:3:22
      = hint: add the zone, such as `zoneName: example.org`

    error[missing-key]: a DNS record has no `name`
     --> .sc/stacks/s/server.yaml:3:100
    error[missing-key]: a DNS record has no `type`
     --> .sc/stacks/s/server.yaml:3:123
    error[duplicate-record]: two DNS records have the name "n" and the same value
     --> .sc/stacks/s/server.yaml:3:146
      = hint: remove one of them
    error[missing-key]: a DNS record has no `value`
     --> .sc/stacks/s/server.yaml:3:178

    error[unknown-type]: "aws-token" is no type of a registrar
     --> .sc/stacks/s/server.yaml:3:22
      = hint: the types are cloudflare

    error[misplaced-reference]: `${resource:a.region}` is not allowed here
     --> .sc/stacks/s/server.yaml:3:85
      = hint: `${resource:…}` is allowed in `config` and `replacementTrigger` of a resource, in `arguments` of a function, and in `outputs`

    error[missing-registrar]: `domain` needs a registrar, which the stack does not have
     --> .sc/stacks/s/server.yaml:7:62
      = hint: add `resources.registrar` with `type: cloudflare`, or leave the key out

    error[inherit]: the stack "common" to inherit `registrar` from does not exist
     --> .sc/stacks/s/server.yaml:3:25
    "#);
}
