//! Whole repositories with core types of several clouds, as a pipeline of a team runs them: nothing is declared, and the
//! packages are fake clouds, which check all inputs against the SDK packages.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::process::Signal;
use tests::fake_clouds::packages;
use tests::http::{HttpServer, Response};
use tokio::runtime::Runtime;

use crate::repository::{Repository, Running, Sections};

/// AWS with Atlas and Cloudflare.
const AWS: &str = "
media: { type: s3-bucket, config: { credentials: '${auth:reef}' } }
site:
  type: s3-bucket
  config: { credentials: '${auth:reef}', domain: www.reef.example }
images: { type: ecr-repository, config: { credentials: '${auth:reef}', name: images } }
orders: { type: aws-rds-postgres, config: { credentials: '${auth:reef}', password: '${secret:db}', databaseName: orders } }
documents:
  type: mongodb-atlas
  config:
    publicKey: '${secret:atlas-public}'
    privateKey: '${secret:atlas-private}'
    orgId: org-3
    instanceSize: M10
    region: EU_NORTH_1
    cloudProvider: AWS
    admins: [anna]
    backup: { every: 12h, retention: 168h }";

/// Registrar of the repository on AWS.
const REGISTRAR: &str = "
  registrar:
    type: cloudflare
    config:
      credentials: '${secret:cloudflare}'
      accountId: acc-9
      zoneName: reef.example
      dnsRecords: [{ name: mail.reef.example, type: TXT, value: v=spf1 }]";

/// GKE with Caddy, a database, a cache and queues.
const GKE: &str = "
cluster:
  type: gcp-gke-autopilot-cluster
  config:
    credentials: '${auth:tide}'
    projectId: '${auth:tide.projectId}'
    location: europe-north1
    privateVpc: true
    externalEgressIp: { enabled: true }
    caddy: { replicas: 2, trustedProxies: [192.0.2.0/24] }
db: { type: gcp-cloudsql-postgres, config: { credentials: '${auth:tide}', projectId: tide-7, version: POSTGRES_16 } }
cache: { type: gcp-redis, config: { credentials: '${auth:tide}', projectId: tide-7, memorySizeGb: 1 } }
bus:
  type: gcp-pubsub
  config:
    credentials: '${auth:tide}'
    projectId: tide-7
    topics: [{ name: orders }]
    subscriptions: [{ name: orders-in, topic: orders }]
images:
  type: gcp-artifact-registry
  config: { credentials: '${auth:tide}', projectId: tide-7, location: europe-north1, docker: {} }";

/// Installs all packages in the folder of `pulumi` in the home.
fn install(repository: &Repository) {
    let cloud = env!("CARGO_BIN_EXE_pulumi-resource-cloud");
    let script = format!("#!/bin/sh\nREC_DIR=\"$HOME/../rec\" exec {cloud} \"$@\"\n");
    for (name, package) in packages() {
        let folder = repository.path(&format!("home/.pulumi/plugins/resource-{name}-v{}", package.version));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("pulumi-resource-{name}"));
        fs::write(&path, &script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Operation of the Service Usage API that has ended.
const DONE: &str = r#"{"name":"operations/a","done":true}"#;

/// Server of Google's tokens, and of its Service Usage API, where all APIs are off at first.
struct Google {
    server: HttpServer,
    /// Receives a message for each API that is about to be switched on.
    enabled: Receiver<()>,
    _runtime: Runtime,
}

impl Google {
    /// Starts the server. `operation`: reply to a request that switches an API on.
    fn start(operation: &'static str) -> Self {
        let (sender, enabled) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(HttpServer::start(move |request| {
            let reply = match request.path.as_str() {
                "/token" => r#"{"access_token":"ya29.hidden","expires_in":3600,"token_type":"Bearer"}"#,
                path if path.ends_with(":enable") => {
                    sender.send(()).unwrap_or_default();
                    operation
                }
                path if path.ends_with("/operations/a") => operation,
                _ => r#"{"state":"DISABLED"}"#,
            };
            async move { Response::new(200, reply).with("Content-Type", "application/json") }
        }));
        Self { server: server.unwrap(), enabled, _runtime: runtime }
    }

    /// Returns the APIs that were switched on.
    fn apis(&self) -> BTreeSet<String> {
        let requests = self.server.requests();
        let enabled = requests.iter().filter_map(|request| request.path.strip_suffix(":enable"));
        enabled.map(|path| path.trim_start_matches("/v1/projects/tide-7/services/").to_owned()).collect()
    }
}

/// Creates a repository whose secrets are only in the store.
fn hidden(resources: &str, registrar: &str, google: &Google) -> Repository {
    let repository = Repository::new(Sections { plugins: "", resources, outputs: "" });
    let server = repository.read(".sc/stacks/reef/server.yaml");
    repository
        .write(".sc/stacks/reef/server.yaml", &server.replacen("\nresources:", &format!("\nresources:{registrar}"), 1));
    install(&repository);
    let account = format!(
        r#"{{"type":"authorized_user","client_id":"id","client_secret":"hidden","refresh_token":"hidden","token_uri":"{}/token"}}"#,
        google.server.url()
    );
    fs::write(repository.path(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/simple-container/secrets/stores/ed25519-openssh/root");
    for key in ["keys/test_a-ed25519-openssh", "keys/test_a-ed25519-openssh.pub"] {
        repository.write(key, &fs::read_to_string(golden.join(key)).unwrap());
    }
    let profile = repository.read(".sc/cfg.default.yaml");
    let keys = "privateKeyPath: keys/test_a-ed25519-openssh\npublicKeyPath: keys/test_a-ed25519-openssh.pub\n";
    repository.write(".sc/cfg.default.yaml", &format!("{}\n{keys}", profile.trim_end()));
    let secrets = ".sc/stacks/reef/secrets.yaml";
    repository.write(
        secrets,
        &format!(
            "auth:
  reef: {{ type: aws-token, config: {{ account: '0042', accessKey: AK, secretAccessKey: S-K, region: eu-north-1 }} }}
  tide: {{ type: gcp-service-account, config: {{ projectId: tide-7, credentials: '{account}' }} }}
values: {{ db: s1, atlas-public: s2, atlas-private: s3, cloudflare: s4 }}
"
        ),
    );
    repository.expect_exit(0, &format!("secrets add --yes {secrets}"));
    fs::remove_file(repository.path(secrets)).unwrap();
    repository
}

/// Starts a command with the address of Google's server.
fn start<'r>(repository: &'r Repository, arguments: &str, google: &Google) -> Running<'r> {
    let mut command = repository.command(arguments);
    command.env("CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE", google.server.url());
    repository.start_command(command)
}

/// Runs a command with the address of Google's server, which must succeed.
fn sc(repository: &Repository, arguments: &str, google: &Google) -> String {
    let output = start(repository, arguments, google).output();
    assert!(output.starts_with("exit 0\n"), "{arguments}: {output}");
    output
}

/// Creates a repository, leaves it alone, changes it, and destroys it. Returns its resources and the APIs of Google.
fn live(resources: &str, registrar: &str, change: (&str, &str), parallel: usize) -> (Vec<String>, BTreeSet<String>) {
    let google = Google::start(DONE);
    let repository = hidden(resources, registrar, &google);
    let mut seen = 0;
    sc(&repository, "preview", &google);
    assert_eq!((repository.change_calls(&mut seen), google.apis()), (Vec::new(), BTreeSet::new()));
    sc(&repository, &format!("provision --parallel {parallel}"), &google);
    let created = repository.change_calls(&mut seen);
    assert!(created.iter().all(|call| call.starts_with("Create")), "{created:?}");
    let apis = google.apis();

    sc(&repository, "preview --expect-no-changes", &google);
    sc(&repository, "provision --expect-no-changes", &google);
    assert_eq!(repository.change_calls(&mut seen), Vec::<String>::new());

    let server = repository.read(".sc/stacks/reef/server.yaml");
    assert!(server.contains(change.0), "{server}");
    repository.write(".sc/stacks/reef/server.yaml", &server.replacen(change.0, change.1, 1));
    sc(&repository, &format!("provision --parallel {parallel}"), &google);
    let changed = repository.change_calls(&mut seen);
    assert!(changed.len() == 1 && changed[0].starts_with("Update"), "{changed:?}");

    let state = repository.state();
    let resources = state["checkpoint"]["latest"]["resources"].as_array().unwrap();
    let name = |resource: &serde_json::Value| {
        let urn = resource["urn"].as_str().unwrap();
        let (token, name) = urn.split_once("::tank::").unwrap().1.split_once("::").unwrap();
        format!("{token} {name}")
    };
    let mut resources: Vec<String> = resources.iter().map(name).collect();
    resources.sort();
    sc(&repository, &format!("destroy --parent --yes --parallel {parallel}"), &google);
    assert!(repository.processes().is_empty());
    (resources, apis)
}

#[test]
fn aws_with_atlas_and_cloudflare_is_provisioned_by_a_pipeline() {
    let change = ("instanceSize: M10", "instanceSize: M20");
    let (resources, apis) = live(AWS, REGISTRAR, change, 1);
    assert_eq!(live(AWS, REGISTRAR, change, 16).0, resources);
    assert_eq!(apis, BTreeSet::new());
    insta::assert_snapshot!(resources.join("\n"), @"
    aws:ec2/defaultSubnet:DefaultSubnet default-subnet-prod-eu-north-1a
    aws:ec2/defaultSubnet:DefaultSubnet default-subnet-prod-eu-north-1b
    aws:ec2/defaultVpc:DefaultVpc orders-prod-vpc
    aws:ec2/securityGroup:SecurityGroup orders-prod-sg
    aws:ecr/lifecyclePolicy:LifecyclePolicy reef-images-lc-policy
    aws:ecr/repository:Repository reef-images
    aws:iam/accessKey:AccessKey media--prod-access-key
    aws:iam/accessKey:AccessKey site--prod-access-key
    aws:iam/user:User media--prod-user
    aws:iam/user:User site--prod-user
    aws:rds/instance:Instance orders-prod
    aws:rds/subnetGroup:SubnetGroup orders-prod-subnet-group
    aws:s3/bucket:Bucket media--prod
    aws:s3/bucket:Bucket site--prod
    aws:s3/bucketOwnershipControls:BucketOwnershipControls media--prod-ownership-controls
    aws:s3/bucketOwnershipControls:BucketOwnershipControls site--prod-ownership-controls
    aws:s3/bucketPolicy:BucketPolicy media--prod-policy
    aws:s3/bucketPolicy:BucketPolicy site--prod-policy
    aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock media--prod-access-block
    aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock site--prod-access-block
    cloudflare:index/record:Record mail.reef.example-record
    cloudflare:index/record:Record www.reef.example-record
    cloudflare:index/workerScript:WorkerScript reefsite--prod-host-override-script
    cloudflare:index/workersRoute:WorkersRoute reefsite--prod-host-override-route
    mongodbatlas:index/cloudBackupSchedule:CloudBackupSchedule reef--documents--prod-backups-schedule
    mongodbatlas:index/cluster:Cluster reef--documents--prod-cluster
    mongodbatlas:index/databaseUser:DatabaseUser reef--documents--prod-anna-user
    mongodbatlas:index/project:Project reef--documents--prod
    mongodbatlas:index/projectIpAccessList:ProjectIpAccessList reef--documents--prod-ip-access-list
    pulumi:providers:aws reef--aws-rds-postgres--orders--prod--provider--prod
    pulumi:providers:aws reef--ecr-repository--images--prod--provider--prod
    pulumi:providers:aws reef--s3-bucket--media--prod--provider--prod
    pulumi:providers:aws reef--s3-bucket--site--prod--provider--prod
    pulumi:providers:cloudflare acc-9
    pulumi:providers:mongodbatlas reef--mongodb-atlas--documents--prod--provider--prod
    pulumi:providers:random default_4_21_0
    pulumi:pulumi:Stack tank-reef
    random:index/randomPassword:RandomPassword reef--documents--prod-id-anna-password
    ");
}

#[test]
fn gke_with_caddy_and_data_is_provisioned_by_a_pipeline() {
    let change = ("memorySizeGb: 1", "memorySizeGb: 2");
    let (resources, apis) = live(GKE, "", change, 1);
    assert_eq!(live(GKE, "", change, 16).0, resources);
    let expected = ["artifactregistry", "cloudresourcemanager", "container", "iam", "redis", "sqladmin"];
    assert_eq!(apis, expected.map(|api| format!("{api}.googleapis.com")).into());
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
    gcp:serviceaccount/account:Account admin-imagesprod-sa
    gcp:serviceaccount/account:Account cluster-prod-caddy-sa
    gcp:serviceaccount/account:Account reader-imagesprod-sa
    gcp:serviceaccount/account:Account$gcp:projects/iAMMember:IAMMember cluster-prod-caddy-sa-roles/storage.objectAdmin-iam
    gcp:serviceaccount/account:Account$gcp:serviceaccount/key:Key admin-imagesprod-sa-key
    gcp:serviceaccount/account:Account$gcp:serviceaccount/key:Key cluster-prod-caddy-sa-key
    gcp:serviceaccount/account:Account$gcp:serviceaccount/key:Key reader-imagesprod-sa-key
    gcp:sql/databaseInstance:DatabaseInstance db--prod
    gcp:storage/bucket:Bucket cluster--prod-caddy-acme
    kubernetes:apps/v1:Deployment caddy-prod
    kubernetes:core/v1:ConfigMap caddy-prod-cfg-volumes
    kubernetes:core/v1:Namespace caddy-prod-ns
    kubernetes:core/v1:Secret caddy-prod-secret-volumes
    kubernetes:core/v1:Secret caddy-prod-secrets
    kubernetes:core/v1:Service caddy-prod
    kubernetes:core/v1:ServiceAccount cluster-caddy-sa-prod
    kubernetes:policy/v1:PodDisruptionBudget caddy-prod-pdb
    kubernetes:rbac.authorization.k8s.io/v1:ClusterRole cluster-caddy-sa-prod
    kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding cluster-caddy-sa-prod
    pkg:k8s/extensions:simpleServiceAccount cluster-caddy-sa-prod
    pulumi:providers:gcp reef--gcp-artifact-registry--images--prod--provider--prod
    pulumi:providers:gcp reef--gcp-cloudsql-postgres--db--prod--provider--prod
    pulumi:providers:gcp reef--gcp-gke-autopilot-cluster--cluster--prod--provider--prod
    pulumi:providers:gcp reef--gcp-pubsub--bus--prod--provider--prod
    pulumi:providers:gcp reef--gcp-redis--cache--prod--provider--prod
    pulumi:providers:kubernetes cluster--prod-caddy-kubeprovider
    pulumi:providers:random default_4_21_0
    pulumi:pulumi:Stack tank-reef
    random:index/randomPassword:RandomPassword db--prod-root-password
    simple-container.com:k8s:SimpleContainer caddy-prod
    ");
}

#[test]
fn stop_ends_the_wait_for_an_api() {
    let google = Google::start(r#"{"name":"operations/a"}"#);
    let cache =
        "cache: { type: gcp-redis, config: { credentials: '${auth:tide}', projectId: tide-7, memorySizeGb: 1 } }";
    let repository = hidden(cache, "", &google);
    let running = start(&repository, "provision", &google);
    google.enabled.recv_timeout(Duration::from_secs(60)).unwrap();
    running.signal(Signal::INT);
    let output = running.output();
    assert!(output.starts_with("exit 130\n"), "{output}");
    assert!(output.contains("the run was stopped before it was on"), "{output}");
    assert!(repository.processes().is_empty());
}
