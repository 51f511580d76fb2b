//! Whole repositories with core types of several clouds, as a pipeline of a team runs them (`pipeline.sh`): nothing is declared,
//! nothing is revealed, and the state and the key of its secrets are in the cloud.
//!
//! The packages are fake clouds, which hold all inputs and functions to the SDK packages. Real peers: `moto` for S3, KMS and the
//! policies; Pulumi's Python SDK for charts. The stores of Google have no public peer, so they are stand-ins.

#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

mod google;
mod repository;

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::moto::MotoServer;

use google::{DONE, Google, IN_PROGRESS, REFUSED};
use repository::Repository;

/// Creates a repository's resources with a failure in between, leaves them alone, changes one, adopts one, and destroys them.
/// Returns the resources.
fn live(repository: &Repository, steps: &Steps<'_>, parallel: usize) -> Vec<String> {
    let mut seen = 0;
    repository.succeed("preview");
    assert_eq!(repository.changes(&mut seen), Vec::<String>::new(), "a preview changes nothing");

    let refused = "AccessDenied: the quota of the reef is used up";
    repository.script(&json!({ "fail": { name_of(steps.failing): refused } }));
    let output = repository.pipeline(1, parallel);
    assert!(output.contains(refused) && output.contains(name_of(steps.failing)), "{output}");
    let mut created = repository.changes(&mut seen);
    let failed = format!("Create {}", steps.failing);
    assert!(created.contains(&failed), "{created:?}");
    created.retain(|call| *call != failed);

    repository.script(&json!({}));
    repository.pipeline(0, parallel);
    let resumed = repository.changes(&mut seen);
    assert!(resumed.contains(&failed), "{resumed:?}");
    created.extend(resumed);
    assert!(created.iter().all(|call| call.starts_with("Create ")), "{created:?}");
    let distinct: BTreeSet<&String> = created.iter().collect();
    assert_eq!(distinct.len(), created.len(), "nothing is created twice");

    repository.pipeline(0, parallel);
    assert_eq!(repository.changes(&mut seen), Vec::<String>::new(), "nothing is left to do");

    let followed = repository.follow_guide();
    assert!(followed.contains(&"sc preview -s reef --expect-no-changes".to_owned()), "{followed:?}");
    assert_eq!(repository.changes(&mut seen), Vec::<String>::new(), "nothing changes on the way to `sc` and back");
    repository.hide_again();

    repository.change(steps.change.0, steps.change.1);
    repository.pipeline(0, parallel);
    assert_eq!(repository.changes(&mut seen), [format!("Update {}", steps.changed)]);

    repository.change(steps.adoption.0, steps.adoption.1);
    repository.script(steps.existing);
    repository.pipeline(0, parallel);
    let adopted = repository.changes(&mut seen);
    assert!(
        !adopted.is_empty() && adopted.iter().all(|call| *call == format!("Read {}", steps.adopted)),
        "{adopted:?}"
    );
    repository.assert_hidden();

    let resources = repository.resources();
    let output = repository.end_with(1, "destroy --parent --yes");
    assert!(output.contains(name_of(steps.adopted)) && output.contains("protected"), "{output}");
    assert_eq!(repository.changes(&mut seen), Vec::<String>::new(), "nothing is deleted if something is protected");
    repository.succeed(&format!("state unprotect {} -s reef --yes", name_of(steps.adopted)));
    repository.succeed(&format!("destroy --parent --yes --parallel {parallel}"));
    let deleted = repository.changes(&mut seen);
    assert!(deleted.contains(&format!("Delete {}", steps.adopted)), "{deleted:?}");
    assert!(deleted.iter().all(|call| call.starts_with("Delete ")), "{deleted:?}");
    assert_eq!(repository.resources(), Vec::<String>::new());
    resources
}

/// Returns the name in `TYPE NAME`.
fn name_of(resource: &str) -> &str {
    resource.split_once(' ').unwrap().1
}

/// Texts and resources (`TYPE NAME`) of the steps of a repository's life.
struct Steps<'a> {
    /// Resource that cannot be created at first.
    failing: &'a str,
    /// Replacement in server.yaml that updates the resource `changed`.
    change: (&'a str, &'a str),
    changed: &'a str,
    /// Replacement in server.yaml that adopts the resource `adopted`, which the script of the fake clouds has.
    adoption: (&'a str, &'a str),
    adopted: &'a str,
    existing: &'a serde_json::Value,
}

/// Creates a repository whose state is in S3, with its bucket and its key.
fn on_aws(moto: &MotoServer) -> Repository {
    moto.python(
        "post('/moto-api/reset', '')
def at(name): return boto3.client(name, endpoint_url=client(name).meta.endpoint_url, region_name='eu-north-1',
    aws_access_key_id='AKIATEST', aws_secret_access_key='test')
at('s3').create_bucket(Bucket='reef-states', CreateBucketConfiguration={'LocationConstraint': 'eu-north-1'})
key = at('kms').create_key()['KeyMetadata']['KeyId']
at('kms').create_alias(AliasName='alias/reef', TargetKeyId=key)",
    )
    .unwrap();
    let url = moto.url().to_owned();
    Repository::new("aws", "", &[("AWS_ENDPOINT_URL_S3", url.clone()), ("AWS_ENDPOINT_URL_KMS", url)])
}

/// Shows: moving.md#moving-from-simple-containers-tool-and-back "replaces the binary. The files, the keys, the store of
///   secrets and the state stay as they are."
/// Shows: moving.md#to-sc "Secrets need not be revealed"
#[test]
fn aws_with_atlas_and_cloudflare() {
    let steps = Steps {
        failing: "aws:s3/bucketPolicy:BucketPolicy site--prod-policy",
        change: ("instanceSize: M10", "instanceSize: M20"),
        changed: "mongodbatlas:index/cluster:Cluster reef--documents--prod-cluster",
        adoption: (
            "outputs:",
            r#"        archive:
          type: mongodb-atlas
          config:
            publicKey: "${secret:atlas-public}"
            privateKey: "${secret:atlas-private}"
            orgId: org-3
            projectId: p-7
            clusterName: archive
            adopt: true
outputs:"#,
        ),
        adopted: "mongodbatlas:index/cluster:Cluster archive",
        existing: &json!({
            "existing": { "mongodbatlas:index/cluster:Cluster::p-7-archive": {
                "projectId": "p-7", "name": "archive", "providerInstanceSizeName": "M10",
                "providerRegionName": "EU_NORTH_1", "clusterType": "REPLICASET", "providerName": "AWS",
            } },
            "results": { "mongodbatlas:index/getCluster:getCluster": {
                "providerInstanceSizeName": "M10", "providerRegionName": "EU_NORTH_1", "clusterType": "REPLICASET",
                "providerName": "AWS", "backingProviderName": "",
            } },
        }),
    };
    let moto = MotoServer::start().unwrap();
    let resources = live(&on_aws(&moto), &steps, 1);
    let repository = on_aws(&moto);
    assert_eq!(live(&repository, &steps, 16), resources);
    insta::assert_snapshot!(resources.join("\n"), @"
    aws:ec2/defaultSubnet:DefaultSubnet default-subnet-prod-eu-north-1a
    aws:ec2/defaultSubnet:DefaultSubnet default-subnet-prod-eu-north-1b
    aws:ec2/defaultVpc:DefaultVpc orders-prod-vpc
    aws:ec2/defaultVpc:DefaultVpc stock-prod-vpc
    aws:ec2/securityGroup:SecurityGroup orders-prod-sg
    aws:ec2/securityGroup:SecurityGroup stock-prod-mysql-sg
    aws:ecr/lifecyclePolicy:LifecyclePolicy reef-images-lc-policy
    aws:ecr/repository:Repository reef-images
    aws:iam/accessKey:AccessKey media--prod-access-key
    aws:iam/accessKey:AccessKey site--prod-access-key
    aws:iam/user:User media--prod-user
    aws:iam/user:User site--prod-user
    aws:rds/instance:Instance orders-prod
    aws:rds/instance:Instance stock-prod
    aws:rds/subnetGroup:SubnetGroup orders-prod-subnet-group
    aws:rds/subnetGroup:SubnetGroup stock-prod-mysql-subnet-group
    aws:s3/bucket:Bucket media--prod
    aws:s3/bucket:Bucket site--prod
    aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2 media--prod-cors
    aws:s3/bucketOwnershipControls:BucketOwnershipControls media--prod-ownership-controls
    aws:s3/bucketOwnershipControls:BucketOwnershipControls site--prod-ownership-controls
    aws:s3/bucketPolicy:BucketPolicy media--prod-policy
    aws:s3/bucketPolicy:BucketPolicy site--prod-policy
    aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock media--prod-access-block
    aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock site--prod-access-block
    aws:sqs/queue:Queue jobs--prod
    aws:sqs/queue:Queue jobs--prod-dead-letters
    aws:sqs/redriveAllowPolicy:RedriveAllowPolicy jobs--prod-dead-letters-allow
    cloudflare:index/record:Record mail.reef.example-record
    cloudflare:index/record:Record www.reef.example-record
    cloudflare:index/workerScript:WorkerScript reefsite--prod-host-override-script
    cloudflare:index/workersRoute:WorkersRoute reefsite--prod-host-override-route
    mongodbatlas:index/cloudBackupSchedule:CloudBackupSchedule reef--documents--prod-backups-schedule
    mongodbatlas:index/cluster:Cluster archive
    mongodbatlas:index/cluster:Cluster reef--documents--prod-cluster
    mongodbatlas:index/databaseUser:DatabaseUser reef--documents--prod-anna-user
    mongodbatlas:index/project:Project reef--documents--prod
    mongodbatlas:index/projectIpAccessList:ProjectIpAccessList reef--documents--prod-ip-access-list
    pulumi:providers:aws reef--aws-rds-mysql--stock--prod--provider--prod
    pulumi:providers:aws reef--aws-rds-postgres--orders--prod--provider--prod
    pulumi:providers:aws reef--aws-sqs-queue--jobs--prod--provider--prod
    pulumi:providers:aws reef--ecr-repository--images--prod--provider--prod
    pulumi:providers:aws reef--s3-bucket--media--prod--provider--prod
    pulumi:providers:aws reef--s3-bucket--site--prod--provider--prod
    pulumi:providers:cloudflare acc-9
    pulumi:providers:mongodbatlas reef--mongodb-atlas--archive--prod--provider--prod
    pulumi:providers:mongodbatlas reef--mongodb-atlas--documents--prod--provider--prod
    pulumi:providers:random default_4_21_0
    pulumi:pulumi:Stack tank-reef
    random:index/randomPassword:RandomPassword reef--documents--prod-id-anna-password
    ");
    accepts_policies(&moto, &repository);
    accepts_queues(&moto, &repository);
}

/// Lets the service accept the policies of buckets.
fn accepts_policies(moto: &MotoServer, repository: &Repository) {
    let policies = repository.created("aws:s3/bucketPolicy:BucketPolicy");
    assert!(!policies.is_empty());
    for inputs in policies {
        let (bucket, policy) = (inputs["bucket"].as_str().unwrap(), inputs["policy"].as_str().unwrap());
        let kept = moto
            .python(&format!(
                "client('s3').create_bucket(Bucket={bucket:?})
client('s3').put_bucket_policy(Bucket={bucket:?}, Policy={policy:?})
print(client('s3').get_bucket_policy(Bucket={bucket:?})['Policy'])"
            ))
            .unwrap();
        assert_eq!(kept.trim(), policy);
    }
}

/// Lets the service accept the queues, and the policy that connects them, with its own ARN in the place of that of the fake cloud.
/// The service of `moto` ignores policies that say which queues may use a dead letter queue.
fn accepts_queues(moto: &MotoServer, repository: &Repository) {
    let created = repository.created("aws:sqs/queue:Queue");
    let [dead_letters, queue] = &created[..] else { panic!("{created:?}") };
    let text = |inputs: &Value, key: &str| inputs[key].as_str().unwrap().to_owned();
    let (name, dead_letters, policy) = (text(queue, "name"), text(dead_letters, "name"), text(queue, "redrivePolicy"));
    let kept = moto
        .python(&format!(
            "import json
def attribute(url, name):
    return client('sqs').get_queue_attributes(QueueUrl=url, AttributeNames=[name])['Attributes'][name]
dead_letters = client('sqs').create_queue(QueueName={dead_letters:?})['QueueUrl']
policy = {{**json.loads({policy:?}), 'deadLetterTargetArn': attribute(dead_letters, 'QueueArn')}}
queue = client('sqs').create_queue(QueueName={name:?}, Attributes={{'RedrivePolicy': json.dumps(policy)}})['QueueUrl']
print(attribute(queue, 'RedrivePolicy') == json.dumps(policy), sorted(policy))"
        ))
        .unwrap();
    assert_eq!(kept.trim(), "True ['deadLetterTargetArn', 'maxReceiveCount']");
}

/// Replacement in server.yaml that adopts an instance of Redis.
const ADOPTED_REDIS: (&str, &str) = (
    "        bus:",
    r#"        old:
          type: gcp-redis
          config:
            credentials: "${auth:tide}"
            projectId: tide-7
            instanceId: old
            region: europe-north1
            adopt: true
        bus:"#,
);

/// Shows: moving.md#moving-from-simple-containers-tool-and-back "replaces the binary. The files, the keys, the store of
///   secrets and the state stay as they are."
/// Shows: moving.md#to-sc "Secrets need not be revealed"
#[test]
fn gke_with_caddy_data_and_operators() {
    let steps = Steps {
        failing: "gcp:redis/instance:Instance cache--prod",
        change: ("memorySizeGb: 1", "memorySizeGb: 2"),
        changed: "gcp:redis/instance:Instance cache--prod",
        adoption: ADOPTED_REDIS,
        adopted: "gcp:redis/instance:Instance old--prod",
        existing: &json!({
            "existing": { "gcp:redis/instance:Instance::projects/tide-7/locations/europe-north1/instances/old": {
                "name": "old", "memorySizeGb": 4, "redisVersion": "REDIS_7_0", "region": "europe-north1",
            } },
            "results": { "gcp:redis/getInstance:getInstance": { "memorySizeGb": 4, "redisVersion": "REDIS_7_0" } },
        }),
    };
    let live_in_parallel = |parallel| {
        let google = Google::start(DONE);
        let repository = Repository::new("gke", &google.account(), &google.environment());
        let resources = live(&repository, &steps, parallel);
        assert!(google.has_state());
        assert_eq!(google.take_key_methods(), ["decrypt", "encrypt"].map(str::to_owned).into());
        let apis = ["artifactregistry", "cloudresourcemanager", "container", "iam", "redis", "sqladmin"];
        assert_eq!(google.apis(), apis.map(|api| format!("{api}.googleapis.com")).into());
        resources
    };
    let resources = live_in_parallel(1);
    assert_eq!(live_in_parallel(16), resources);
    insta::assert_snapshot!(resources.join("\n"), @"
    gcp:artifactregistry/repository:Repository images--prod
    gcp:artifactregistry/repositoryIamMember:RepositoryIamMember images--prod-admin-sa-iam-binding
    gcp:artifactregistry/repositoryIamMember:RepositoryIamMember images--prod-reader-sa-iam-binding
    gcp:compute/address:Address cluster--prod-egress-ip
    gcp:compute/network:Network cluster--prod-vpc
    gcp:compute/networkPeering:NetworkPeering cluster--prod-vpc-to-default
    gcp:compute/networkPeering:NetworkPeering default-to-cluster--prod
    gcp:compute/router:Router cluster--prod-router
    gcp:compute/routerNat:RouterNat cluster--prod-nat
    gcp:compute/subnetwork:Subnetwork cluster--prod-subnet
    gcp:container/cluster:Cluster cluster--prod
    gcp:pubsub/subscription:Subscription orders-in
    gcp:pubsub/topic:Topic orders
    gcp:redis/instance:Instance cache--prod
    gcp:redis/instance:Instance old--prod
    gcp:serviceaccount/account:Account admin-imagesprod-sa
    gcp:serviceaccount/account:Account cluster-prod-caddy-sa
    gcp:serviceaccount/account:Account films--prod-sa
    gcp:serviceaccount/account:Account reader-imagesprod-sa
    gcp:serviceaccount/account:Account$gcp:projects/iAMMember:IAMMember cluster-prod-caddy-sa-roles/storage.objectAdmin-iam
    gcp:serviceaccount/account:Account$gcp:serviceaccount/key:Key admin-imagesprod-sa-key
    gcp:serviceaccount/account:Account$gcp:serviceaccount/key:Key cluster-prod-caddy-sa-key
    gcp:serviceaccount/account:Account$gcp:serviceaccount/key:Key reader-imagesprod-sa-key
    gcp:sql/databaseInstance:DatabaseInstance db--prod
    gcp:storage/bucket:Bucket cluster--prod-caddy-acme
    gcp:storage/bucket:Bucket films--prod
    gcp:storage/bucketIAMMember:BucketIAMMember films--prod-iam-bucket
    gcp:storage/bucketIAMMember:BucketIAMMember films--prod-iam-object
    gcp:storage/hmacKey:HmacKey films--prod-hmac
    kubernetes:acid.zalan.do/v1:postgresql pg--edge
    kubernetes:apps/v1:Deployment caddy-edge
    kubernetes:apps/v1:Deployment caddy-prod
    kubernetes:core/v1:ConfigMap caddy-edge-cfg-volumes
    kubernetes:core/v1:ConfigMap caddy-prod-cfg-volumes
    kubernetes:core/v1:Namespace caddy-edge-ns
    kubernetes:core/v1:Namespace caddy-prod-ns
    kubernetes:core/v1:Namespace create-ns-operators-edge-documents--edge
    kubernetes:core/v1:Namespace create-ns-operators-edge-pg--edge
    kubernetes:core/v1:Namespace create-ns-operators-edge-queues--edge
    kubernetes:core/v1:Namespace create-ns-operators-edge-sessions--edge
    kubernetes:core/v1:Secret caddy-edge-secret-volumes
    kubernetes:core/v1:Secret caddy-edge-secrets
    kubernetes:core/v1:Secret caddy-prod-secret-volumes
    kubernetes:core/v1:Secret caddy-prod-secrets
    kubernetes:core/v1:Secret default/queues--edge-default-user-get-0
    kubernetes:core/v1:Secret default/root.pg--edge.credentials.postgresql.acid.zalan.do-get-0
    kubernetes:core/v1:Secret documents--edge-root-password
    kubernetes:core/v1:Service caddy-edge
    kubernetes:core/v1:Service caddy-prod
    kubernetes:core/v1:ServiceAccount caddy-caddy-sa-edge
    kubernetes:core/v1:ServiceAccount cluster-caddy-sa-prod
    kubernetes:core/v1:ServiceAccount mongodb-database--edge
    kubernetes:helm.sh/v3:Release sessions--edge
    kubernetes:helm.sh/v4:Chart documents--edge
    kubernetes:helm.sh/v4:Chart pg--edge
    kubernetes:helm.sh/v4:Chart queues--edge
    kubernetes:helm.sh/v4:Chart sessions--edge
    kubernetes:helm.sh/v4:Chart$kubernetes:apps/v1:Deployment documents--edge-operator
    kubernetes:helm.sh/v4:Chart$kubernetes:apps/v1:Deployment pg--edge-operator
    kubernetes:helm.sh/v4:Chart$kubernetes:apps/v1:Deployment queues--edge-operator
    kubernetes:helm.sh/v4:Chart$kubernetes:apps/v1:Deployment sessions--edge-operator
    kubernetes:mongodbcommunity.mongodb.com/v1:MongoDBCommunity documents--edge
    kubernetes:policy/v1:PodDisruptionBudget caddy-edge-pdb
    kubernetes:policy/v1:PodDisruptionBudget caddy-prod-pdb
    kubernetes:rabbitmq.com/v1beta1:RabbitmqCluster queues--edge
    kubernetes:rbac.authorization.k8s.io/v1:ClusterRole caddy-caddy-sa-edge
    kubernetes:rbac.authorization.k8s.io/v1:ClusterRole cluster-caddy-sa-prod
    kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding caddy-caddy-sa-edge
    kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding cluster-caddy-sa-prod
    kubernetes:rbac.authorization.k8s.io/v1:Role mongodb-database--edge
    kubernetes:rbac.authorization.k8s.io/v1:RoleBinding mongodb-database--edge
    pkg:k8s/extensions:simpleServiceAccount caddy-caddy-sa-edge
    pkg:k8s/extensions:simpleServiceAccount cluster-caddy-sa-prod
    pulumi:providers:gcp reef--gcp-artifact-registry--images--prod--provider--prod
    pulumi:providers:gcp reef--gcp-bucket--films--prod--provider--prod
    pulumi:providers:gcp reef--gcp-cloudsql-postgres--db--prod--provider--prod
    pulumi:providers:gcp reef--gcp-gke-autopilot-cluster--cluster--prod--provider--prod
    pulumi:providers:gcp reef--gcp-pubsub--bus--prod--provider--prod
    pulumi:providers:gcp reef--gcp-redis--cache--prod--provider--prod
    pulumi:providers:gcp reef--gcp-redis--old--prod--provider--prod
    pulumi:providers:kubernetes caddy--edge-caddy-kubeprovider
    pulumi:providers:kubernetes cluster--prod-caddy-kubeprovider
    pulumi:providers:kubernetes reef--kubernetes-caddy--caddy--edge--provider--edge
    pulumi:providers:kubernetes reef--kubernetes-helm-mongodb-operator--documents--edge--provider--edge
    pulumi:providers:kubernetes reef--kubernetes-helm-postgres-operator--pg--edge--provider--edge
    pulumi:providers:kubernetes reef--kubernetes-helm-rabbitmq-operator--queues--edge--provider--edge
    pulumi:providers:kubernetes reef--kubernetes-helm-redis-operator--sessions--edge--provider--edge
    pulumi:providers:random default_4_21_0
    pulumi:pulumi:Stack tank-reef
    random:index/randomPassword:RandomPassword db--prod-root-password
    random:index/randomPassword:RandomPassword documents--edge-root-password-root-generated-password
    simple-container.com:k8s:SimpleContainer caddy-edge
    simple-container.com:k8s:SimpleContainer caddy-prod
    ");
}

/// Shows: server-yaml.md#core-types "If that fails, the error has the words of Google, and nothing of the type is
///   registered but its provider."
#[test]
fn api_that_cannot_be_switched_on_leaves_out_what_needs_it() {
    let google = Google::start(REFUSED);
    let repository = Repository::new("gke", &google.account(), &google.environment());
    let output = repository.end_with(1, "provision");
    assert!(output.contains("cannot switch on the API redis.googleapis.com in the project"), "{output}");
    assert!(output.contains("Permission denied to enable service"), "{output}");
    assert!(output.contains("gcloud services enable --project "), "{output}");
    assert!(output.contains(" redis.googleapis.com` yourself"), "{output}");
    let created = repository.changes(&mut 0);
    let of_cache = "Create gcp:redis/instance:Instance cache--prod".to_owned();
    assert!(!created.contains(&of_cache) && created.iter().any(|call| call.contains("films")), "{created:?}");
}

/// Shows: server-yaml.md#core-types "with `adopt` only the instance, protected. If there is none, the error names it."
#[test]
fn adopted_instance_that_is_missing_is_named() {
    let google = Google::start(DONE);
    let repository = Repository::new("gke", &google.account(), &google.environment());
    repository.change(ADOPTED_REDIS.0, ADOPTED_REDIS.1);
    let instance = "gcp:redis/instance:Instance::projects/tide-7/locations/europe-north1/instances/old";
    repository.script(&json!({ "missing": [instance] }));
    let output = repository.end_with(1, "provision --skip-preview");
    assert!(output.contains("instances/old\" does not exist\n  at .sc/stacks/reef/server.yaml:"), "{output}");
    assert!(!repository.resources().iter().any(|resource| resource.ends_with("old--prod")));
}

/// Shows: server-yaml.md#core-types "waits for the secret for up to a minute, and fails if it does not appear; the next
///   update reads it again"
#[test]
fn secret_that_never_appears_is_named_after_a_minute() {
    let google = Google::start(DONE);
    let repository = Repository::new("gke", &google.account(), &google.environment());
    let secret = "default/root.pg--edge.credentials.postgresql.acid.zalan.do";
    repository.script(&json!({ "missing": [format!("kubernetes:core/v1:Secret::{secret}")] }));
    let output = repository.end_with(1, "provision --skip-preview");
    assert!(output.contains(secret) && output.contains("does not exist"), "{output}");
    repository.script(&json!({}));
    repository.pipeline(0, 16);
}

#[test]
fn stop_ends_the_wait_for_an_api() {
    let google = Google::start(IN_PROGRESS);
    let repository = Repository::new("gke", &google.account(), &google.environment());
    let mut command = repository.command("provision");
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    google.enabled.recv_timeout(Duration::from_secs(60)).unwrap();
    kill_process(Pid::from_child(&running), Signal::INT).unwrap();
    let output = running.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("the run was stopped before it was on"), "{stderr}");
}
