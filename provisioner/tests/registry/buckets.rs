//! Tests of the `config` of `s3-bucket` and `gcp-bucket`: errors and warnings.

use provisioner::registry::recipes;

use crate::repository::Files;
use crate::sections;

/// Creates a stack with one resource `b` of the type; `config` is indented as a block below it.
fn bucket(type_name: &str, config: &str) -> Files {
    let config: String = config.lines().map(|line| format!("            {line}\n")).collect();
    let secrets = "
auth:
  reef: { type: aws-token, config: { accessKey: AK, secretAccessKey: hush, region: sea } }
  half: { type: aws-token, config: { accessKey: AK, region: sea } }
  nowhere: { type: aws-token, config: { accessKey: AK, secretAccessKey: hush } }
  cloud: { type: gcp-service-account, config: { projectId: tide-7, credentials: 'no JSON' } }
  key: { type: gcp-service-account, config: { projectId: tide-7, credentials: '{\"type\":\"service_account\"}' } }
";
    sections(&format!(
        "resources:
  resources:
    e:
      resources:
        b:
          type: {type_name}
          config:
{config}"
    ))
    .secrets(secrets)
}

fn s3(config: &str) -> String {
    bucket("s3-bucket", config).messages()
}

fn gcs(config: &str) -> String {
    bucket("gcp-bucket", config).messages()
}

#[test]
fn account_of_another_cloud_is_refused() {
    let found = s3("credentials: ${auth:key}");
    assert!(found.contains("error[credentials]: these are not the credentials of an AWS account"), "{found}");
    let found = gcs("credentials: ${auth:reef}\nlocation: EU");
    assert!(found.contains("error[credentials]: these are the credentials of AWS, and not of Google Cloud"), "{found}");
    assert!(found.contains("where NAME is of type `gcp-service-account`") && !found.contains("hush"), "{found}");
    assert_eq!(gcs("credentials: ${auth:key}\nlocation: EU"), "");
}

#[test]
fn complete_bucket_configs_are_accepted() {
    for config in [
        "credentials: ${auth:reef}",
        "credentials: ${auth:reef}\ndomain: ''\nname: media\nbaseDnsZone: ''",
        "region: sea",
        "region: sea\naccessKey: AK\nsecretAccessKey: ${secret:x}",
        "credentials: ${resource:v.account}",
    ] {
        let files = bucket("s3-bucket", config)
            .secrets("values: { x: hush }\nauth: { reef: { type: aws-token, config: { region: sea } } }");
        let messages = files.messages();
        let unknown = config.contains("resource:").then_some("is not defined in env");
        assert!(unknown.map_or(messages.is_empty(), |unknown| messages.contains(unknown)), "{config}: {messages}");
    }
    assert_eq!(gcs("credentials: ${auth:cloud}\nlocation: EU\nadopt: yes\nbucketName: old"), "");
}

#[test]
fn missing_and_invalid_credentials_are_reported() {
    insta::assert_snapshot!(s3("name: media"), @r#"
    warning[credentials]: no region: the plugin looks for one in its environment
      --> .sc/stacks/s/server.yaml:13:13
       |
    13 |             name: media
       |             ^^^^^^^^^^^
       |
       = hint: add `credentials: "${auth:NAME}"`, where NAME is an `aws-token` in the stack's secrets.yaml
    "#);
    insta::assert_snapshot!(s3("region: sea\naccessKey: AK"), @"
    error[credentials]: `accessKey` requires `secretAccessKey`
      --> .sc/stacks/s/server.yaml:14:24
       |
    14 |             accessKey: AK
       |                        ^^
    ");
    insta::assert_snapshot!(s3("credentials: ${auth:cloud}"), @"
    error[credentials]: these are not the credentials of an AWS account
      --> .sc/stacks/s/server.yaml:13:26
       |
    13 |             credentials: ${auth:cloud}
       |                          ^^^^^^^^^^^^^
       |
       = hint: write `${auth:NAME}`, where NAME is an `aws-token` in the stack's secrets.yaml
    ");
    insta::assert_snapshot!(s3("credentials: ${auth:half}"), @"
    error[credentials]: the credentials lack `accessKey` or `secretAccessKey`
      --> .sc/stacks/s/server.yaml:13:26
       |
    13 |             credentials: ${auth:half}
       |                          ^^^^^^^^^^^^
       |
       = hint: an `aws-token` has `accessKey` and `secretAccessKey`
    ");
    insta::assert_snapshot!(s3("credentials: ${auth:nowhere}\nregion: land"), @"
    warning[credentials]: the credentials have no region: the plugin looks for one in its environment
      --> .sc/stacks/s/server.yaml:13:26
       |
    13 |             credentials: ${auth:nowhere}
       |                          ^^^^^^^^^^^^^^^
       |
       = hint: add `region` to the `aws-token`

    warning[unused]: `region` is ignored: `credentials` overrides it
      --> .sc/stacks/s/server.yaml:14:21
       |
    14 |             region: land
       |                     ^^^^
    ");
    insta::assert_snapshot!(gcs("projectId: tide-7"), @r#"
    error[missing-key]: `credentials` is missing
      --> .sc/stacks/s/server.yaml:13:13
       |
    13 |             projectId: tide-7
       |             ^^^^^^^^^^^^^^^^^
       |
       = hint: add `credentials: "${auth:NAME}"`, where NAME is a `gcp-service-account` in the stack's secrets.yaml

    error[missing-key]: `location` is missing
      --> .sc/stacks/s/server.yaml:13:13
       |
    13 |             projectId: tide-7
       |             ^^^^^^^^^^^^^^^^^
       |
       = hint: add the location of the bucket, such as `location: EU`
    "#);
}

/// Shows: comparison.md#where-the-go-tool-reports-nothing "makes neither record nor worker, and reports nothing | an
///   error at its line"
#[test]
fn domain_without_registrar_is_reported() {
    insta::assert_snapshot!(s3("credentials: ${auth:reef}\ndomain: reef.example"), @"
    error[missing-registrar]: `domain` needs a registrar, which the stack does not have
      --> .sc/stacks/s/server.yaml:14:21
       |
    14 |             domain: reef.example
       |                     ^^^^^^^^^^^^
       |
       = hint: add `resources.registrar` with `type: cloudflare`, or leave the key out
    ");
}

#[test]
fn wrong_kinds_and_misspelled_keys_are_reported_at_their_lines() {
    let messages = s3(
        "credentials: ${auth:reef}\nname: [media]\nallowOnlyHttp: true\nallowOnlyHttps: 'true'\ncorsConfig:\n  allowedOrigin: https://reef.example\n  allowedMethods: GET",
    );
    insta::assert_snapshot!(messages, @"
    error[wrong-kind]: expected a text, found a list
      --> .sc/stacks/s/server.yaml:14:19
       |
    14 |             name: [media]
       |                   ^^^^^^^

    warning[unknown-key]: the key `allowOnlyHttp` is ignored
      --> .sc/stacks/s/server.yaml:15:13
       |
    15 |             allowOnlyHttp: true
       |             ^^^^^^^^^^^^^
       |
       = hint: did you mean `allowOnlyHttps`?
       = hint: the keys are credentials, account, accessKey, secretAccessKey, region, name, allowOnlyHttps, domain, indexDocument, errorDocument, corsConfig, baseDnsZone, provisionWwwDomain

    error[wrong-kind]: expected `true` or `false`, found a text
      --> .sc/stacks/s/server.yaml:16:29
       |
    16 |             allowOnlyHttps: 'true'
       |                             ^^^^^^
       |
       = hint: write it without quotes

    warning[unknown-key]: the key `allowedOrigin` is ignored
      --> .sc/stacks/s/server.yaml:18:15
       |
    18 |               allowedOrigin: https://reef.example
       |               ^^^^^^^^^^^^^
       |
       = hint: did you mean `allowedOrigins`?
       = hint: the keys are allowedOrigins, allowedMethods

    error[wrong-kind]: expected a list, found a text
      --> .sc/stacks/s/server.yaml:19:31
       |
    19 |               allowedMethods: GET
       |                               ^^^
    ");
    insta::assert_snapshot!(gcs("credentials: ${auth:cloud}\nlocation: EU\nadopt: 1\nbucketname: old"), @"
    error[wrong-kind]: expected `true` or `false`, found a number
      --> .sc/stacks/s/server.yaml:15:20
       |
    15 |             adopt: 1
       |                    ^

    warning[unknown-key]: the key `bucketname` is ignored
      --> .sc/stacks/s/server.yaml:16:13
       |
    16 |             bucketname: old
       |             ^^^^^^^^^^
       |
       = hint: did you mean `bucketName`?
       = hint: the keys are credentials, projectId, name, bucketName, location, adopt
    ");
    insta::assert_snapshot!(gcs("credentials: ${auth:cloud}\nlocation: EU\nadopt: true"), @"
    error[missing-key]: `bucketName` is missing
      --> .sc/stacks/s/server.yaml:13:13
       |
    13 |             credentials: ${auth:cloud}
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: add the name of the existing bucket: `adopt` imports it
    ");
}

#[test]
fn reference_to_unknown_output_of_bucket_is_rejected() {
    let files = bucket("s3-bucket", "credentials: ${auth:reef}");
    let files = files.with(
        ".sc/stacks/s/server.yaml",
        &format!(
            "{}resources: {{ resources: {{ e: {{ resources: {{ b: {{ type: s3-bucket, config: {{ region: sea }} }} }} }} }} }}
outputs:
  key: ${{resource:b.acces-key}}
",
            crate::repository::PROVISIONER
        ),
    );
    insta::assert_snapshot!(files.messages(), @r#"
    error[unknown-property]: the core type "s3-bucket" has no "acces-key"
     --> .sc/stacks/s/server.yaml:8:8
      |
    8 |   key: ${resource:b.acces-key}
      |        ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: did you mean `access-key`?
      = hint: it has bucket, region, access-key, secret-key
    "#);
}

#[test]
fn schemas_describe_every_key() {
    let properties = |name: &str| {
        let schema = recipes::built_in_types().get(name).unwrap().schema();
        let properties = schema.pointer("/properties").unwrap().as_object().unwrap();
        let line = |(name, property): (&String, &serde_json::Value)| {
            assert!(property["description"].is_string(), "{name} is described");
            let kind = property.get("type").or(property.get("$ref")).map(ToString::to_string);
            format!("{name}: {}", kind.unwrap_or_default())
        };
        properties.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(properties("s3-bucket"), @r##"
    credentials: ["string","number","boolean","null"]
    account: ["string","number","boolean","null"]
    accessKey: ["string","number","boolean","null"]
    secretAccessKey: ["string","number","boolean","null"]
    region: ["string","number","boolean","null"]
    name: "string"
    allowOnlyHttps: "boolean"
    domain: "string"
    indexDocument: ["string","number","boolean","null"]
    errorDocument: ["string","number","boolean","null"]
    corsConfig: "#/$defs/CorsConfig"
    baseDnsZone: ["string","number","boolean","null"]
    provisionWwwDomain: "boolean"
    "##);
    insta::assert_snapshot!(properties("gcp-bucket"), @r#"
    credentials: ["string","number","boolean","null"]
    projectId: ["string","number","boolean","null"]
    name: "string"
    bucketName: "string"
    location: ["string","number","boolean","null"]
    adopt: "boolean"
    "#);
}
