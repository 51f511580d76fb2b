//! Tests of the core types with fake clouds, which check inputs against the SDK packages.

use std::collections::BTreeMap;

use serde_json::Value;
use tests::fake_clouds::{package_of, packages};

use crate::repository::{Repository, Sections};

/// Plugins of the fake cloud, one with the name of each cloud.
const AWS: &str = "- { name: aws, source: { type: local, path: $CLOUD }, passEnv: [REC_DIR] }";
const GCP: &str = "- { name: gcp, source: { type: local, path: $CLOUD }, passEnv: [REC_DIR] }";

const SECRETS: &str = "
auth:
  reef: { type: aws-token, config: { account: '0042', accessKey: AK, secretAccessKey: S-K, region: eu-north-1 } }
  tide: { type: gcp-service-account, config: { projectId: tide-7, credentials: '{\"type\": \"service_account\"}' } }
";

fn repository(plugins: &str, resources: &str) -> Repository {
    let repository = Repository::new(Sections { plugins, resources, outputs: "" });
    repository.write(".sc/stacks/reef/secrets.yaml", SECRETS);
    repository
}

fn write_sections(repository: &Repository, plugins: &str, resources: &str) {
    repository.write_sections(Sections { plugins, resources, outputs: "" });
}

/// Returns the calls that the plugin received after the first `seen`, without Checks. Adjacent Deletes are sorted, as
/// Deletes of independent resources have no order.
fn new_calls(repository: &Repository, seen: &mut usize) -> Vec<String> {
    let calls = repository.calls();
    let new: Vec<String> = calls[*seen..].iter().filter(|call| !call.starts_with("Check")).cloned().collect();
    *seen = calls.len();
    let is_deletion = |call: &String| call.starts_with("Delete");
    let mut runs: Vec<Vec<String>> =
        new.chunk_by(|a, b| is_deletion(a) && is_deletion(b)).map(<[String]>::to_vec).collect();
    for run in runs.iter_mut().filter(|run| run.len() > 1) {
        assert!(is_bucket_deleted_last(run), "a bucket is deleted before its parts: {run:?}");
        run.sort();
    }
    runs.concat()
}

/// Returns whether each bucket is deleted after the resources that are named after it, except the account and key of a
/// Google bucket, and the queue for dead letters of a queue.
fn is_bucket_deleted_last(deletions: &[String]) -> bool {
    deletions.iter().enumerate().all(|(at, deletion)| {
        let parts = deletions[at..].iter().filter(|later| later.starts_with(&format!("{deletion}-")));
        parts.filter(|part| !["-sa", "-hmac", "-dead-letters"].iter().any(|end| part.ends_with(end))).count() == 0
    })
}

/// Checks that the state has the secret outputs and versions that the SDKs add to registrations.
fn assert_as_an_sdk_registers(repository: &Repository) {
    let packages = packages();
    let state = repository.state();
    let resources = state["checkpoint"]["latest"]["resources"].as_array().unwrap();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for resource in resources {
        let token = resource["type"].as_str().unwrap();
        let Some(package) = packages.get(package_of(token)) else { continue };
        let shape = &package.resources[token];
        let is_provider = token.starts_with("pulumi:providers:");
        if !is_provider {
            let named = resource["additionalSecretOutputs"].as_array().into_iter().flatten();
            let named: Vec<_> = named.filter_map(Value::as_str).collect();
            assert_eq!(named, shape.secret_outputs, "{token}");
        }
        for output in shape.secret_outputs.iter().filter(|output| resource["outputs"].get(output.as_str()).is_some()) {
            assert!(resource["outputs"][output]["ciphertext"].is_string(), "{token}: {output} is not encrypted");
        }
        for input in shape.secret_inputs.iter().filter(|input| resource["inputs"].get(input.as_str()).is_some()) {
            assert!(resource["inputs"][input]["ciphertext"].is_string(), "{token}: {input} is not encrypted");
        }
        if is_provider {
            let version = resource["inputs"]["version"].as_str();
            assert!(version.is_none_or(|version| version == package.version), "{token} {version:?}");
        }
        *seen.entry(token).or_default() += 1;
    }
    assert!(!seen.is_empty());
}

#[test]
fn s3_bucket_is_created_updated_replaced_and_destroyed() {
    let minimal = "media: { type: s3-bucket, config: { credentials: '${auth:reef}' } }";
    let repository = repository(AWS, minimal);
    let mut seen = 0;
    repository.expect_exit(0, "provision --parallel 1");
    insta::assert_debug_snapshot!(new_calls(&repository, &mut seen), @r#"
    [
        "Create media--prod",
        "Create media--prod-access-block",
        "Create media--prod-ownership-controls",
        "Create media--prod-user",
        "Create media--prod-access-key",
        "Create media--prod-policy",
    ]
    "#);
    assert_as_an_sdk_registers(&repository);
    insta::assert_snapshot!(repository.sc("stack outputs"), @r#"
    exit 0
    --- out
    {"stackName":"organization/tank/reef","outputs":{"media--prod-access-key-name":"media--prod-access-key-id","media--prod-access-key-secret":"[secret]","media--prod-bucket-name":"media--prod","media--prod-bucket-region":"media--prod.region","media--prod-bucket-user":"media--prod-user.name"}}
    --- err
    "#);
    repository.expect_exit(0, "provision --expect-no-changes");
    assert_eq!(new_calls(&repository, &mut seen), Vec::<String>::new());

    let full = "
media:
  type: s3-bucket
  config:
    credentials: '${auth:reef}'
    allowOnlyHttps: true
    corsConfig: { allowedOrigins: 'https://reef.example', allowedMethods: [GET, PUT] }";
    write_sections(&repository, AWS, full);
    repository.expect_exit(0, "provision --parallel 1");
    insta::assert_debug_snapshot!(new_calls(&repository, &mut seen), @r#"
    [
        "Create media--prod-cors",
        "Update media--prod-policy",
    ]
    "#);
    assert_as_an_sdk_registers(&repository);

    // A new name replaces the bucket.
    write_sections(&repository, AWS, &full.replace("allowOnlyHttps", "name: films\n    allowOnlyHttps"));
    repository.expect_exit(0, "provision --parallel 1");
    insta::assert_debug_snapshot!(new_calls(&repository, &mut seen), @r#"
    [
        "Create films--prod",
        "Create films--prod-cors",
        "Create films--prod-access-block",
        "Create films--prod-ownership-controls",
        "Create films--prod-user",
        "Create films--prod-access-key",
        "Create films--prod-policy",
        "Delete media--prod",
        "Delete media--prod-access-block",
        "Delete media--prod-access-key",
        "Delete media--prod-cors",
        "Delete media--prod-ownership-controls",
        "Delete media--prod-policy",
        "Delete media--prod-user",
    ]
    "#);

    repository.expect_exit(0, "destroy --parent --yes --parallel 1");
    insta::assert_debug_snapshot!(new_calls(&repository, &mut seen), @r#"
    [
        "Delete films--prod",
        "Delete films--prod-access-block",
        "Delete films--prod-access-key",
        "Delete films--prod-cors",
        "Delete films--prod-ownership-controls",
        "Delete films--prod-policy",
        "Delete films--prod-user",
    ]
    "#);
    assert_eq!(repository.resources().len(), 0);
}

/// Shows: server-yaml.md#core-types "It registers the queue `B`; with `deadLetterQueue` also the queue
///   `B-dead-letters`, and `B-dead-letters-allow`, by which only `B` can move messages there."
#[test]
fn queue_with_dead_letters_is_created_changed_and_destroyed() {
    let resources = "
jobs: { type: aws-sqs-queue, config: { credentials: '${auth:reef}', deadLetterQueue: { maxReceiveCount: 5 } } }";
    let repository = repository(AWS, resources);
    let mut seen = 0;
    assert_eq!(repository.sc("validate").lines().next(), Some("exit 0"));
    repository.expect_exit(0, "preview");
    assert_eq!(new_calls(&repository, &mut seen), Vec::<String>::new());
    repository.expect_exit(0, "provision --parallel 1");
    let created = ["Create jobs--prod-dead-letters", "Create jobs--prod", "Create jobs--prod-dead-letters-allow"];
    assert_eq!(new_calls(&repository, &mut seen), created);
    assert_as_an_sdk_registers(&repository);
    repository.expect_exit(0, "provision --expect-no-changes");
    assert_eq!(new_calls(&repository, &mut seen), Vec::<String>::new());

    write_sections(&repository, AWS, &resources.replace("maxReceiveCount: 5", "maxReceiveCount: 6"));
    repository.expect_exit(0, "provision --parallel 1");
    assert_eq!(new_calls(&repository, &mut seen), ["Update jobs--prod"]);

    repository.expect_exit(0, "destroy --parent --yes --parallel 1");
    let deleted = ["Delete jobs--prod", "Delete jobs--prod-dead-letters", "Delete jobs--prod-dead-letters-allow"];
    assert_eq!(new_calls(&repository, &mut seen), deleted);
    assert_eq!(repository.resources().len(), 0);
}

#[test]
fn gcp_bucket_is_created_replaced_and_destroyed() {
    let resources = "
media: { type: gcp-bucket, config: { credentials: '${auth:tide}', projectId: '${auth:tide.projectId}', location: EU } }";
    let repository = repository(GCP, resources);
    let mut seen = 0;
    repository.expect_exit(0, "provision --parallel 1");
    insta::assert_debug_snapshot!(new_calls(&repository, &mut seen), @r#"
    [
        "Create media--prod",
        "Create media--prod-sa",
        "Create media--prod-iam-object",
        "Create media--prod-iam-bucket",
        "Create media--prod-hmac",
    ]
    "#);
    assert_as_an_sdk_registers(&repository);
    insta::assert_snapshot!(repository.sc("stack outputs"), @r#"
    exit 0
    --- out
    {"stackName":"organization/tank/reef","outputs":{"media--prod-bucket-location":"EU","media--prod-bucket-name":"media--prod","media--prod-hmac-access-key-id":"media--prod-hmac.accessId","media--prod-hmac-secret-key":"[secret]"}}
    --- err
    "#);
    repository.expect_exit(0, "provision --expect-no-changes");
    assert_eq!(new_calls(&repository, &mut seen), Vec::<String>::new());

    write_sections(&repository, GCP, &resources.replace("location: EU", "location: US"));
    repository.expect_exit(0, "provision --parallel 1");
    insta::assert_debug_snapshot!(new_calls(&repository, &mut seen), @r#"
    [
        "Delete media--prod",
        "Delete media--prod-iam-bucket",
        "Delete media--prod-iam-object",
        "Create media--prod",
        "Create media--prod-iam-object",
        "Create media--prod-iam-bucket",
    ]
    "#);

    repository.expect_exit(0, "destroy --parent --yes --parallel 1");
    insta::assert_debug_snapshot!(new_calls(&repository, &mut seen), @r#"
    [
        "Delete media--prod",
        "Delete media--prod-hmac",
        "Delete media--prod-iam-bucket",
        "Delete media--prod-iam-object",
        "Delete media--prod-sa",
    ]
    "#);
}

/// Shows: server-yaml.md#core-types "import the existing bucket of exactly this name instead of creating `B`"
#[test]
fn existing_gcp_bucket_is_adopted() {
    let repository = repository(
        GCP,
        "
old:
  type: gcp-bucket
  config: { credentials: '${auth:tide}', projectId: tide-7, location: EU, bucketName: reef-archive, adopt: true }",
    );
    let mut seen = 0;
    repository.expect_exit(0, "provision --parallel 1");
    insta::assert_debug_snapshot!(new_calls(&repository, &mut seen), @r#"
    [
        "Read reef-archive--prod",
        "Read reef-archive--prod",
        "Create reef-archive--prod-bucket-sa",
        "Create reef-archive--prod-bucket-iam",
        "Create reef-archive--prod-hmac-key",
    ]
    "#);
    assert_as_an_sdk_registers(&repository);
    repository.expect_exit(0, "provision --expect-no-changes");
}

#[test]
fn environments_have_separate_buckets() {
    let repository =
        repository(&format!("{AWS}\n{GCP}"), "media: { type: s3-bucket, config: { credentials: '${auth:reef}' } }");
    let server = ".sc/stacks/reef/server.yaml";
    let staging = "    staging: { resources: { media: { type: gcp-bucket, config: { credentials: '${auth:tide}', projectId: p, location: EU } }, films: { type: s3-bucket, config: { region: eu-west-1 } } } }\n";
    repository.write(server, &(repository.read(server) + staging));
    repository.expect_exit(0, "provision");
    let mut resources = repository.resources();
    resources.sort();
    insta::assert_debug_snapshot!(resources, @r#"
    [
        "films--staging aws:s3/bucket:Bucket films--staging-id",
        "films--staging-access-block aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock films--staging-access-block-id",
        "films--staging-access-key aws:iam/accessKey:AccessKey films--staging-access-key-id",
        "films--staging-ownership-controls aws:s3/bucketOwnershipControls:BucketOwnershipControls films--staging-ownership-controls-id",
        "films--staging-policy aws:s3/bucketPolicy:BucketPolicy films--staging-policy-id",
        "films--staging-user aws:iam/user:User films--staging-user-id",
        "media--prod aws:s3/bucket:Bucket media--prod-id",
        "media--prod-access-block aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock media--prod-access-block-id",
        "media--prod-access-key aws:iam/accessKey:AccessKey media--prod-access-key-id",
        "media--prod-ownership-controls aws:s3/bucketOwnershipControls:BucketOwnershipControls media--prod-ownership-controls-id",
        "media--prod-policy aws:s3/bucketPolicy:BucketPolicy media--prod-policy-id",
        "media--prod-user aws:iam/user:User media--prod-user-id",
        "media--staging gcp:storage/bucket:Bucket media--staging-id",
        "media--staging-hmac gcp:storage/hmacKey:HmacKey media--staging-hmac-id",
        "media--staging-iam-bucket gcp:storage/bucketIAMMember:BucketIAMMember media--staging-iam-bucket-id",
        "media--staging-iam-object gcp:storage/bucketIAMMember:BucketIAMMember media--staging-iam-object-id",
        "media--staging-sa gcp:serviceaccount/account:Account media--staging-sa-id",
        "reef--gcp-bucket--media--staging--provider--staging pulumi:providers:gcp [id]",
        "reef--s3-bucket--films--staging--provider--staging pulumi:providers:aws [id]",
        "reef--s3-bucket--media--prod--provider--prod pulumi:providers:aws [id]",
        "tank-reef pulumi:pulumi:Stack",
    ]
    "#);
    assert_as_an_sdk_registers(&repository);
    repository.expect_exit(0, "provision --expect-no-changes");
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(repository.resources().len(), 0);
}

/// Shows: hosting.md#shared-instances "therefore share an instance if their inputs are equal"
/// Shows: hosting.md#shared-instances "In the state they stay apart"
#[test]
fn providers_of_one_account_share_a_process() {
    let media =
        |number| format!("media-{number}: {{ type: s3-bucket, config: {{ credentials: '${{auth:reef}}' }} }}\n");
    // One process checks the configurations, and one has them.
    for (keep, buckets, expected) in [("run", 30, 2), ("never", 2, 2 * 2)] {
        let plugin = format!("- {{ name: aws, source: {{ type: local, path: aws }}, keep: {keep} }}");
        let repository = repository(&plugin, &(0..buckets).map(media).collect::<String>());
        repository.write_script("aws", "echo $$ >> \"$HOME/../starts\"\nexec $CLOUD \"$@\"\n");
        repository.expect_exit(0, "provision");
        let started = repository.read("starts").lines().count();
        assert_eq!(started, expected, "keep: {keep}, preview and update");
        let resources = repository.resources();
        let providers = resources.iter().filter(|line| line.contains(" pulumi:providers:aws "));
        assert_eq!(providers.count(), buckets, "in the state they stay apart");
        repository.expect_exit(0, "provision --expect-no-changes");
        repository.expect_exit(0, "destroy --parent --yes");
    }
}
