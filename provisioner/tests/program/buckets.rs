//! Tests of the registrations of `s3-bucket` and `gcp-bucket`, as specified in docs/spec/simple-container.md#7.3 and
//! #7.6.

use std::fmt::Write as _;
use std::time::Duration;

use bridge::provider::Alias;
use engine::{Goal, RegistrationResult};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;

use crate::fake::{FakeDeployment, StackProgram};

/// Creates a stack with environments, and with auth entries in its secrets.yaml.
fn buckets(environments: &str, rest: &str) -> StackProgram {
    let secrets = "
auth:
  reef: { type: aws-token, config: { account: '0042', accessKey: AK, secretAccessKey: 'S<K>', region: eu-north-1 } }
  shore: { type: aws-token, config: { region: eu-west-1 } }
  cloud: { type: gcp-service-account, config: { projectId: tide-7, credentials: '{\"k\": 1}' } }
";
    StackProgram::with_secrets(&format!("resources: {{ resources: {{ {environments} }} }}\n{rest}"), secrets)
}

fn bucket(resource: &str) -> StackProgram {
    buckets(&format!("staging: {{ resources: {{ {resource} }} }}"), "")
}

/// Creates a deployment that returns outputs for the resources of the bucket `media`.
fn cloud() -> FakeDeployment {
    FakeDeployment::default()
        .with("media--staging", "arn", "arn:of:media")
        .with("media--staging", "region", "eu-north-1")
        .with("media--staging-user", "arn", "arn:of:user")
        .with("media--staging-user", "name", "user-1")
        .with("media--staging-access-key", "secret", PropertyValue::secret("sk".into()))
}

fn text(value: &PropertyValue) -> String {
    match value {
        PropertyValue::Secret(secret) => format!("secret {}", text(secret.expose())),
        PropertyValue::Unknown(_) => "unknown".to_owned(),
        PropertyValue::Bool(value) => value.to_string(),
        PropertyValue::String(value) => format!("{value:?}"),
        PropertyValue::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        PropertyValue::Map(map) => format!("{{ {} }}", properties(map).join(", ")),
        value => format!("{value:?}"),
    }
}

fn properties(map: &PropertyMap) -> Vec<String> {
    map.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect()
}

/// Formats a registration: its type and name, its inputs and their dependencies, its options.
fn registration(goal: &Goal) -> String {
    let mut text_of_goal = format!("{} {}", goal.type_token, goal.name);
    if let Some(version) = &goal.version {
        write!(text_of_goal, " ({version})").unwrap();
    }
    for (name, value) in &*goal.inputs {
        write!(text_of_goal, "\n  {name}: {}", text(value)).unwrap();
        let from: Vec<_> = goal.property_dependencies[name].iter().map(|urn| urn.name()).collect();
        if !from.is_empty() {
            write!(text_of_goal, "\n    from {}", from.join(", ")).unwrap();
        }
    }
    let after: Vec<_> = goal.dependencies.iter().map(|urn| urn.name()).collect();
    let aliases = goal.aliases.iter().map(|alias| match alias {
        Alias::Spec { type_token: Some(former), name: None, .. } => former.as_str(),
        other => panic!("{other:?}"),
    });
    let flag = |flag: Option<bool>| flag.map(|flag| flag.to_string()).unwrap_or_default();
    let timeout =
        |timeout: Option<Duration>| timeout.map(|timeout| format!("{} s", timeout.as_secs_f64())).unwrap_or_default();
    for (option, value) in [
        ("after", after.join(", ")),
        ("provider", goal.provider.as_ref().map(|provider| provider.urn.name().to_owned()).unwrap_or_default()),
        ("secret outputs", goal.additional_secret_outputs.join(", ")),
        ("former type", aliases.collect::<Vec<_>>().join(", ")),
        ("import", ResourceId::text(goal.import_id.as_ref()).to_owned()),
        ("protect", flag(goal.protect)),
        ("retain", flag(goal.retain_on_delete)),
        ("create within", timeout(goal.custom_timeouts.create)),
    ] {
        if !value.is_empty() {
            write!(text_of_goal, "\n  - {option} {value}").unwrap();
        }
    }
    text_of_goal
}

/// Runs a program, and formats its registrations in order, except components, and then the stack outputs.
pub(crate) async fn registrations(subject: &StackProgram, deployment: &FakeDeployment) -> String {
    subject.run(deployment).await;
    let goals = deployment.goals.lock().unwrap();
    let outputs = properties(deployment.stack_outputs.lock().unwrap().as_ref().unwrap());
    let goals = goals.iter().filter(|goal| goal.custom).map(registration);
    goals.chain([format!("outputs\n  {}", outputs.join("\n  "))]).collect::<Vec<_>>().join("\n")
}

/// Shows: server-yaml.md#core-types "It registers the bucket `B`, `B-cors` (with `allowedOrigins`), `B-access-block`,
///   `B-ownership-controls`, `B-user`, `B-access-key`"
#[tokio::test]
async fn s3_bucket_registers_user_and_access_key() {
    let subject = bucket("media: { type: s3-bucket, config: { credentials: '${auth:reef}' } }");
    insta::assert_snapshot!(registrations(&subject, &cloud()).await, @r#"
    pulumi:providers:p p
    pulumi:providers:aws s--s3-bucket--media--staging--provider--staging (6.83.4)
      accessKey: secret "AK"
      region: "eu-north-1"
      secretKey: secret "S<K>"
      skipCredentialsValidation: false
      skipRegionValidation: true
      - secret outputs accessKey, secretKey, token
    aws:s3/bucket:Bucket media--staging (6.83.4)
      acl: "private"
      bucket: "media--staging"
      tags: { simple-container.com/env: "staging", simple-container.com/stack: "s" }
      - provider s--s3-bucket--media--staging--provider--staging
    aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock media--staging-access-block (6.83.4)
      blockPublicAcls: true
      blockPublicPolicy: true
      bucket: "media--staging-1"
        from media--staging
      ignorePublicAcls: true
      restrictPublicBuckets: true
      - after media--staging
      - provider s--s3-bucket--media--staging--provider--staging
    aws:s3/bucketOwnershipControls:BucketOwnershipControls media--staging-ownership-controls (6.83.4)
      bucket: "media--staging-1"
        from media--staging
      rule: { objectOwnership: "ObjectWriter" }
      - after media--staging
      - provider s--s3-bucket--media--staging--provider--staging
    aws:iam/user:User media--staging-user (6.83.4)
      forceDestroy: true
      tags: { simple-container.com/env: "staging", simple-container.com/stack: "s" }
      - after media--staging-ownership-controls
      - provider s--s3-bucket--media--staging--provider--staging
    aws:iam/accessKey:AccessKey media--staging-access-key (6.83.4)
      user: "media--staging-user-1"
        from media--staging-user
      - after media--staging-user, media--staging-ownership-controls
      - provider s--s3-bucket--media--staging--provider--staging
      - secret outputs secret, sesSmtpPasswordV4
    aws:s3/bucketPolicy:BucketPolicy media--staging-policy (6.83.4)
      bucket: "media--staging-1"
        from media--staging
      policy: "{\"Statement\":[{\"Action\":\"s3:*\",\"Effect\":\"Allow\",\"Principal\":{\"AWS\":\"arn:of:user\"},\"Resource\":[\"arn:aws:s3:::media--staging-1\",\"arn:aws:s3:::media--staging-1/*\"]}],\"Version\":\"2012-10-17\"}"
        from media--staging-user, media--staging
      - after media--staging, media--staging-user, media--staging-ownership-controls
      - provider s--s3-bucket--media--staging--provider--staging
    outputs
      media--staging-access-key-name: "media--staging-access-key-1"
      media--staging-access-key-secret: secret "sk"
      media--staging-bucket-name: "media--staging"
      media--staging-bucket-region: "eu-north-1"
      media--staging-bucket-user: "user-1"
    "#);
}

#[tokio::test]
async fn s3_bucket_applies_name_cors_https_and_options() {
    let subject = bucket(
        "site: { type: 'p:m:Site' },
         shelf:
           { type: s3-bucket, name: box,
             config: {
               credentials: '${auth:reef}', account: '${auth:reef.projectId}', name: media, allowOnlyHttps: yes,
               corsConfig: { allowedOrigins: 'https://${resource:site.host}', allowedMethods: [PUT, ~, POST] } },
             options: { protect: true, retainOnDelete: false, dependsOn: [site], customTimeouts: { create: 5m } } }",
    );
    let deployment = cloud().with("site--staging", "host", "reef.example");
    insta::assert_snapshot!(registrations(&subject, &deployment).await, @r#"
    pulumi:providers:p p
    p:m:Site site--staging
      - provider p
    pulumi:providers:aws s--s3-bucket--box--staging--provider--staging (6.83.4)
      accessKey: secret "AK"
      region: "eu-north-1"
      secretKey: secret "S<K>"
      skipCredentialsValidation: false
      skipRegionValidation: true
      - secret outputs accessKey, secretKey, token
    aws:s3/bucket:Bucket media--staging (6.83.4)
      acl: "private"
      bucket: "media--staging"
      tags: { simple-container.com/env: "staging", simple-container.com/stack: "s" }
      - after site--staging
      - provider s--s3-bucket--box--staging--provider--staging
      - protect true
      - retain false
      - create within 300 s
    aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2 media--staging-cors (6.83.4)
      bucket: "media--staging-1"
        from media--staging
      corsRules: [{ allowedHeaders: ["*"], allowedMethods: ["PUT", "POST"], allowedOrigins: ["https://reef.example"] }]
        from site--staging
      - after media--staging, site--staging
      - provider s--s3-bucket--box--staging--provider--staging
      - protect true
      - retain false
      - create within 300 s
    aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock media--staging-access-block (6.83.4)
      blockPublicAcls: true
      blockPublicPolicy: true
      bucket: "media--staging-1"
        from media--staging
      ignorePublicAcls: true
      restrictPublicBuckets: true
      - after media--staging, site--staging
      - provider s--s3-bucket--box--staging--provider--staging
      - protect true
      - retain false
      - create within 300 s
    aws:s3/bucketOwnershipControls:BucketOwnershipControls media--staging-ownership-controls (6.83.4)
      bucket: "media--staging-1"
        from media--staging
      rule: { objectOwnership: "ObjectWriter" }
      - after media--staging, site--staging
      - provider s--s3-bucket--box--staging--provider--staging
      - protect true
      - retain false
      - create within 300 s
    aws:iam/user:User media--staging-user (6.83.4)
      forceDestroy: true
      tags: { simple-container.com/env: "staging", simple-container.com/stack: "s" }
      - after media--staging-ownership-controls, site--staging
      - provider s--s3-bucket--box--staging--provider--staging
      - protect true
      - retain false
      - create within 300 s
    aws:iam/accessKey:AccessKey media--staging-access-key (6.83.4)
      user: "media--staging-user-1"
        from media--staging-user
      - after media--staging-user, media--staging-ownership-controls, site--staging
      - provider s--s3-bucket--box--staging--provider--staging
      - secret outputs secret, sesSmtpPasswordV4
      - protect true
      - retain false
      - create within 300 s
    aws:s3/bucketPolicy:BucketPolicy media--staging-policy (6.83.4)
      bucket: "media--staging-1"
        from media--staging
      policy: "{\"Statement\":[{\"Action\":\"s3:*\",\"Effect\":\"Allow\",\"Principal\":{\"AWS\":\"arn:of:user\"},\"Resource\":[\"arn:aws:s3:::media--staging-1\",\"arn:aws:s3:::media--staging-1/*\"]},{\"Action\":\"s3:*\",\"Condition\":{\"Bool\":{\"aws:SecureTransport\":\"false\"}},\"Effect\":\"Deny\",\"Principal\":\"*\",\"Resource\":[\"arn:of:media/*\"],\"Sid\":\"DenyNonSecureTransport\"}],\"Version\":\"2012-10-17\"}"
        from media--staging-user, media--staging
      - after media--staging, media--staging-user, media--staging-ownership-controls, site--staging
      - provider s--s3-bucket--box--staging--provider--staging
      - protect true
      - retain false
      - create within 300 s
    outputs
      media--staging-access-key-name: "media--staging-access-key-1"
      media--staging-access-key-secret: secret "sk"
      media--staging-bucket-name: "media--staging"
      media--staging-bucket-region: "eu-north-1"
      media--staging-bucket-user: "user-1"
    "#);
}

#[tokio::test]
async fn gcp_bucket_registers_service_account_and_hmac_key() {
    let subject = bucket(
        "a_rather_long_name_of_a_bucket:
           { type: gcp-bucket,
             config: { credentials: '${auth:cloud}', projectId: '${auth:cloud.projectId}', location: EU } }",
    );
    let deployment = FakeDeployment::default()
        .with("a_rather_long_name_of_a_bucket--staging-sa", "email", "sa@tide")
        .with("a_rather_long_name_of_a_bucket--staging-hmac", "accessId", "GOOG1")
        .with("a_rather_long_name_of_a_bucket--staging-hmac", "secret", "hush");
    insta::assert_snapshot!(registrations(&subject, &deployment).await, @r#"
    pulumi:providers:p p
    pulumi:providers:gcp s--gcp-bucket--a_rather_long_name_of_a_bucket--staging--provider--staging (8.41.1)
      credentials: secret "{\"k\": 1}"
      project: secret "tide-7"
      - secret outputs accessToken
    gcp:storage/bucket:Bucket a_rather_long_name_of_a_bucket--staging (8.41.1)
      location: "EU"
      name: "a_rather_long_name_of_a_bucket--staging"
      - provider s--gcp-bucket--a_rather_long_name_of_a_bucket--staging--provider--staging
      - secret outputs effectiveLabels, pulumiLabels
    gcp:serviceaccount/account:Account a_rather_long_name_of_a_bucket--staging-sa (8.41.1)
      accountId: "a-rather-long-et-staging-sa"
      displayName: "Service Account for a_rather_long_name_of_a_bucket--staging"
      - provider s--gcp-bucket--a_rather_long_name_of_a_bucket--staging--provider--staging
      - former type gcp:serviceAccount/account:Account
    gcp:storage/bucketIAMMember:BucketIAMMember a_rather_long_name_of_a_bucket--staging-iam-object (8.41.1)
      bucket: "a_rather_long_name_of_a_bucket--staging"
        from a_rather_long_name_of_a_bucket--staging
      member: "serviceAccount:sa@tide"
        from a_rather_long_name_of_a_bucket--staging-sa
      role: "roles/storage.objectAdmin"
      - after a_rather_long_name_of_a_bucket--staging, a_rather_long_name_of_a_bucket--staging-sa
      - provider s--gcp-bucket--a_rather_long_name_of_a_bucket--staging--provider--staging
    gcp:storage/bucketIAMMember:BucketIAMMember a_rather_long_name_of_a_bucket--staging-iam-bucket (8.41.1)
      bucket: "a_rather_long_name_of_a_bucket--staging"
        from a_rather_long_name_of_a_bucket--staging
      member: "serviceAccount:sa@tide"
        from a_rather_long_name_of_a_bucket--staging-sa
      role: "roles/storage.legacyBucketWriter"
      - after a_rather_long_name_of_a_bucket--staging, a_rather_long_name_of_a_bucket--staging-sa
      - provider s--gcp-bucket--a_rather_long_name_of_a_bucket--staging--provider--staging
    gcp:storage/hmacKey:HmacKey a_rather_long_name_of_a_bucket--staging-hmac (8.41.1)
      serviceAccountEmail: "sa@tide"
        from a_rather_long_name_of_a_bucket--staging-sa
      - after a_rather_long_name_of_a_bucket--staging-sa
      - provider s--gcp-bucket--a_rather_long_name_of_a_bucket--staging--provider--staging
      - secret outputs secret
    outputs
      a_rather_long_name_of_a_bucket--staging-bucket-location: "EU"
      a_rather_long_name_of_a_bucket--staging-bucket-name: "a_rather_long_name_of_a_bucket--staging"
      a_rather_long_name_of_a_bucket--staging-hmac-access-key-id: "GOOG1"
      a_rather_long_name_of_a_bucket--staging-hmac-secret-key: secret "hush"
    "#);
}

#[tokio::test]
async fn adopted_gcp_bucket_is_imported() {
    let subject = bucket(
        "media:
           { type: gcp-bucket,
             config: { credentials: '${auth:cloud}', location: EU, adopt: true, name: not-this, bucketName: old } }",
    );
    let deployment = FakeDeployment::default()
        .with("old--staging-bucket-sa", "email", "sa@tide")
        .with("old--staging-hmac-key", "accessId", "GOOG1")
        .with("old--staging-hmac-key", "secret", "hush");
    insta::assert_snapshot!(registrations(&subject, &deployment).await, @r#"
    pulumi:providers:p p
    pulumi:providers:gcp s--gcp-bucket--media--staging--provider--staging (8.41.1)
      credentials: secret "{\"k\": 1}"
      project: ""
      - secret outputs accessToken
    gcp:storage/bucket:Bucket old--staging (8.41.1)
      location: "EU"
      name: "old"
      - provider s--gcp-bucket--media--staging--provider--staging
      - secret outputs effectiveLabels, pulumiLabels
      - import old
    gcp:serviceaccount/account:Account old--staging-bucket-sa (8.41.1)
      accountId: "old--staging-bucket-sa"
      displayName: "Service account for bucket old"
      - provider s--gcp-bucket--media--staging--provider--staging
      - former type gcp:serviceAccount/account:Account
    gcp:storage/bucketIAMMember:BucketIAMMember old--staging-bucket-iam (8.41.1)
      bucket: "old"
        from old--staging
      member: "serviceAccount:sa@tide"
        from old--staging-bucket-sa
      role: "roles/storage.objectAdmin"
      - after old--staging, old--staging-bucket-sa
      - provider s--gcp-bucket--media--staging--provider--staging
    gcp:storage/hmacKey:HmacKey old--staging-hmac-key (8.41.1)
      serviceAccountEmail: "sa@tide"
        from old--staging-bucket-sa
      - after old--staging-bucket-sa
      - provider s--gcp-bucket--media--staging--provider--staging
      - secret outputs secret
    outputs
      old--staging-bucket-location: "EU"
      old--staging-bucket-name: "old"
      old--staging-hmac-access-key-id: "GOOG1"
      old--staging-hmac-secret-key: secret "hush"
    "#);
}

#[tokio::test]
async fn each_environment_has_its_own_bucket_and_provider() {
    let resource = "{ type: s3-bucket, config: { credentials: '${auth:reef}' } }";
    let subject = buckets(
        &format!(
            "staging: {{ resources: {{ media: {resource} }} }}, production: {{ resources: {{ media: {resource} }} }}"
        ),
        "",
    );
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let goals = deployment.goals.lock().unwrap();
    let lines = |environment: &str| -> Vec<String> {
        let of = |goal: &&Goal| goal.name.contains(&format!("--{environment}"));
        let line = |goal: &Goal| {
            let provider = goal.provider.as_ref().map(|provider| provider.urn.name()).unwrap_or("itself");
            format!("{} by {provider}", goal.name)
        };
        goals.iter().filter(of).map(line).collect()
    };
    insta::assert_snapshot!(lines("staging").join("\n"), @"
    s--s3-bucket--media--staging--provider--staging by itself
    media--staging by s--s3-bucket--media--staging--provider--staging
    media--staging-access-block by s--s3-bucket--media--staging--provider--staging
    media--staging-ownership-controls by s--s3-bucket--media--staging--provider--staging
    media--staging-user by s--s3-bucket--media--staging--provider--staging
    media--staging-access-key by s--s3-bucket--media--staging--provider--staging
    media--staging-policy by s--s3-bucket--media--staging--provider--staging
    ");
    let production: Vec<_> = lines("staging").iter().map(|line| line.replace("staging", "production")).collect();
    assert_eq!(lines("production"), production);
}

#[tokio::test]
async fn references_resolve_to_outputs_of_core_type() {
    let subject = buckets(
        "staging: { resources: {
           media: { type: s3-bucket, config: { credentials: '${auth:reef}' } },
           cold: { type: gcp-bucket, config: { credentials: '${auth:cloud}', location: EU } },
           s3: { type: 'p:m:App', config: {
             a: '${resource:media.bucket}', b: '${resource:media.region}', c: '${resource:media.access-key}',
             d: '${resource:media.secret-key}' } },
           gcs: { type: 'p:m:App', config: {
             a: '${resource:cold.bucket}', b: '${resource:cold.location}', c: '${resource:cold.access-key}',
             d: '${resource:cold.secret-key}', e: '${resource:cold.endpoint}' } } } }",
        "",
    );
    let deployment =
        cloud().with("cold--staging-hmac", "accessId", "GOOG1").with("cold--staging-hmac", "secret", "hush");
    subject.run(&deployment).await;
    let apps = [deployment.goal("s3--staging"), deployment.goal("gcs--staging")];
    insta::assert_snapshot!(apps.each_ref().map(registration).join("\n"), @r#"
    p:m:App s3--staging
      a: "media--staging"
        from media--staging
      b: "eu-north-1"
        from media--staging
      c: "media--staging-access-key-1"
        from media--staging-access-key
      d: secret "sk"
        from media--staging-access-key
      - after media--staging, media--staging-access-key
      - provider p
    p:m:App gcs--staging
      a: "cold--staging"
        from cold--staging
      b: "EU"
        from cold--staging
      c: "GOOG1"
        from cold--staging-hmac
      d: secret "hush"
        from cold--staging-hmac
      e: "https://storage.googleapis.com"
      - after cold--staging, cold--staging-hmac
      - provider p
    "#);
}

#[tokio::test]
async fn computed_values_of_new_bucket_are_unknown_in_preview() {
    let subject = bucket(
        "media: { type: s3-bucket, config: { credentials: '${auth:reef}' } },
         cold: { type: gcp-bucket, config: { credentials: '${auth:cloud}', location: EU } }",
    );
    let deployment = FakeDeployment::preview();
    subject.run(&deployment).await;
    let input = |name: &str, property: &str| deployment.goal(name).inputs[property].clone();
    assert_eq!(input("media--staging-policy", "policy"), PropertyValue::UNKNOWN);
    assert_eq!(input("media--staging-policy", "bucket"), PropertyValue::UNKNOWN);
    assert_eq!(input("media--staging-access-key", "user"), PropertyValue::UNKNOWN);
    assert_eq!(input("cold--staging-iam-object", "member"), PropertyValue::UNKNOWN);
    assert_eq!(deployment.output("media--staging-bucket-name"), "media--staging".into());
    assert!(deployment.output("media--staging-access-key-secret").contains_secrets());
}

#[tokio::test]
async fn provider_has_no_credentials_if_account_has_no_key() {
    for account in ["credentials: '${auth:shore}'", "region: eu-west-1"] {
        let subject = bucket(&format!("media: {{ type: s3-bucket, config: {{ {account} }} }}"));
        let deployment = FakeDeployment::default();
        subject.run(&deployment).await;
        let provider = deployment.goal("s--s3-bucket--media--staging--provider--staging");
        assert_eq!(
            properties(&provider.inputs),
            ["region: \"eu-west-1\"", "skipCredentialsValidation: true", "skipRegionValidation: true"]
        );
    }
}

#[tokio::test]
async fn credentials_may_reference_another_resource() {
    let subject = bucket(
        "vault: { type: 'p:m:Vault' },
         whole: { type: s3-bucket, config: { credentials: '${resource:vault.account}' } },
         parts: { type: s3-bucket, config: {
           region: sea, accessKey: '${resource:vault.key}', secretAccessKey: '${resource:vault.secret}' } }",
    );
    let account = PropertyValue::secret("{\"accessKey\":\"AK\",\"secretAccessKey\":\"SK\",\"region\":\"sea\"}".into());
    let deployment = FakeDeployment::default()
        .with("vault--staging", "account", account)
        .with("vault--staging", "key", "AK")
        .with("vault--staging", "secret", "SK");
    subject.run(&deployment).await;
    let provider = |name: &str| deployment.goal(&format!("s--s3-bucket--{name}--staging--provider--staging"));
    assert_eq!(provider("whole").inputs, provider("parts").inputs);
    assert_eq!(provider("whole").dependencies, provider("parts").dependencies);
    assert_eq!(provider("whole").inputs["secretKey"], PropertyValue::secret("SK".into()));

    let preview = FakeDeployment::preview();
    subject.run(&preview).await;
    let whole = preview.goal("s--s3-bucket--whole--staging--provider--staging").inputs;
    assert_eq!((&whole["region"], &whole["accessKey"]), (&PropertyValue::UNKNOWN, &PropertyValue::UNKNOWN));

    let invalid = FakeDeployment::default()
        .with("vault--staging", "account", "top secret, and no account")
        .with("vault--staging", "key", "AK")
        .with("vault--staging", "secret", "SK");
    insta::assert_snapshot!(subject.diagnostics(&invalid).await, @"
    error[credentials]: these are not the credentials of an AWS account
     --> .sc/stacks/s/server.yaml:4:59
      |
    4 |          whole: { type: s3-bucket, config: { credentials: '${resource:vault.account}' } },
      |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
    ");
}

#[tokio::test]
async fn outputs_of_skipped_resources_are_omitted() {
    let subject = bucket("media: { type: s3-bucket, config: { credentials: '${auth:reef}' } }");
    let skipped = [
        ("media--staging-user", RegistrationResult::Skipped),
        ("media--staging-access-key", RegistrationResult::Skipped),
    ];
    let deployment = FakeDeployment { results: skipped.into(), ..FakeDeployment::default() };
    subject.run(&deployment).await;
    assert!(!deployment.goal("media--staging-access-key").inputs.contains_key("user"));
    assert!(!deployment.goal("media--staging-policy").inputs.contains_key("policy"));
    let outputs = deployment.stack_outputs.lock().unwrap().clone().unwrap();
    assert_eq!(outputs.keys().collect::<Vec<_>>(), ["media--staging-bucket-name"]);
}

#[tokio::test]
async fn resources_that_do_not_depend_on_failed_resource_are_registered() {
    let subject = bucket("media: { type: s3-bucket, config: { credentials: '${auth:reef}' } }");
    for (failed, omitted) in [
        ("media--staging-access-block", &[][..]),
        ("media--staging-user", &["media--staging-access-key", "media--staging-policy"]),
    ] {
        let deployment =
            FakeDeployment { results: [(failed, RegistrationResult::Failed)].into(), ..FakeDeployment::default() };
        assert_eq!(subject.diagnostics(&deployment).await, "");
        let names = deployment.names();
        for part in ["access-block", "ownership-controls", "user", "access-key", "policy"] {
            let name = format!("media--staging-{part}");
            assert_eq!(names.contains(&name), !omitted.contains(&name.as_str()), "{name} after {failed} failed");
        }
    }
}

#[tokio::test]
async fn plugin_used_only_by_core_types_registers_no_provider_resource() {
    let plugins = "plugins:\n- { name: aws, source: { type: local, path: aws } }\n- { name: p, source: { type: local, path: p } }\n";
    let resources = |more: &str| {
        format!(
            "resources: {{ resources: {{ e: {{ resources: {{ b: {{ type: s3-bucket, config: {{ region: sea }} }}{more} }} }} }} }}\n"
        )
    };
    let first = async |resources: &str| {
        let deployment = FakeDeployment::default();
        StackProgram::server(&format!("{plugins}{resources}")).run(&deployment).await;
        deployment.names()[1..3].to_vec()
    };
    assert_eq!(first(&resources("")).await, ["p", "s--s3-bucket--b--e--provider--e"]);
    assert_eq!(first(&resources(", c: { type: 'aws:s3/bucket:Bucket' }")).await, ["aws", "p"]);
}
