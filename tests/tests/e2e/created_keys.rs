//! Keys of secrets that `sc` creates in a stack of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::json;
use tests::google_kms::{GoogleKms, TOKEN};
use tests::http::{HttpServer, Request, Response};

use crate::repository::{FILES, PROVISIONER, REC, Repository, Sections};

const KEY: &str = "projects/tide-7/locations/global/keyRings/tank-reef-sc/cryptoKeys/tank-reef-sc";
const PAGE: &str = "page: { type: files:fs:File, config: { path: a, content: '${secret:token}' } }";
const GCP: &str = "- { name: gcp, source: { type: local, path: $CLOUD }, passEnv: [REC_DIR] }";
const KEY_CHECKPOINT: &str = "backend/.pulumi/stacks/tank/reef--sc.json";
const CREATES: [&str; 2] = ["Create tank-reef-sc", "Create tank-reef-sc"];

/// Repository whose stack asks for a key in Google Cloud KMS. The provider and the services are stand-ins.
struct Reef {
    repository: Repository,
    kms: GoogleKms,
    apis: HttpServer,
    apis_refuse: Arc<AtomicBool>,
    passphrase: Option<&'static str>,
}

fn provisioner(settings: &str) -> String {
    let provider = format!(
        "type: gcp-kms, config: {{ provision: true, credentials: '${{auth:tide}}', \
         projectId: '${{auth:tide.projectId}}', {settings} }}"
    );
    PROVISIONER.replace("type: passphrase, config: { passPhrase: hush }", &provider)
}

/// Service that has switched on each API unless it refuses that, and the server of access tokens.
async fn apis(refuses: &Arc<AtomicBool>) -> HttpServer {
    let refuses = Arc::clone(refuses);
    let reply = move |request: Request| {
        let (status, body) = match request.path.as_str() {
            "/token" => (200, json!({ "access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer" })),
            _ if refuses.load(Ordering::Relaxed) => (403, json!({ "error": { "message": "denied" } })),
            _ => (200, json!({ "state": "ENABLED" })),
        };
        async move { Response::new(status, body.to_string()).with("Content-Type", "application/json") }
    };
    HttpServer::start(reply).await.unwrap()
}

impl Reef {
    async fn new() -> Self {
        let apis_refuse = Arc::default();
        let (kms, apis) = (GoogleKms::start(&[KEY]).await.unwrap(), apis(&apis_refuse).await);
        let repository = Repository::new(Sections::default());
        let account = format!(
            r#"{{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r","token_uri":"{}/token"}}"#,
            apis.url()
        );
        repository.write(
            ".sc/stacks/reef/secrets.yaml",
            &format!(
                "schemaVersion: 1.0\nauth:\n  tide: {{ type: gcp-service-account, config: {{ projectId: tide-7, \
                 credentials: '{account}' }} }}\nvalues:\n  token: swordfish-7f3a\n"
            ),
        );
        let reef = Self { repository, kms, apis, apis_refuse, passphrase: None };
        reef.choose(&provisioner("keyLocation: global"), PAGE);
        reef
    }

    fn choose(&self, provisioner: &str, resources: &str) {
        let plugins = format!("{FILES}\n{GCP}\n{REC}");
        let outputs = "token: '${secret:token}'";
        self.repository.write_stack("reef", provisioner, Sections { plugins: &plugins, resources, outputs });
    }

    fn command(&self, arguments: &str) -> std::process::Command {
        let mut command = self.repository.command(arguments);
        command
            .env("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS", self.kms.url())
            .env("CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE", self.apis.url())
            .envs(self.passphrase.map(|passphrase| ("PULUMI_CONFIG_PASSPHRASE", passphrase)));
        command
    }

    fn run(&self, arguments: &str) -> String {
        self.repository.start_command(self.command(arguments)).output()
    }

    fn succeed(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.starts_with("exit 0\n"), "{arguments}: {output}");
        output
    }

    /// Returns the calls that created, changed or deleted the key or its ring.
    fn changes(&self) -> Vec<String> {
        let is_change = |call: &String| {
            let change = call.strip_suffix(" tank-reef-sc");
            change.is_some_and(|change| ["Create", "Update", "Delete"].contains(&change))
        };
        self.repository.calls().into_iter().filter(is_change).collect()
    }

    /// Checks that the key protects the secrets of the stack, and that it was changed so.
    fn assert_protected(&self, changes: &[&str]) {
        let provider = self.repository.state()["checkpoint"]["latest"]["secrets_providers"].clone();
        assert_eq!(
            (&provider["type"], &provider["state"]["url"]),
            (&"cloud".into(), &format!("gcpkms://{KEY}").into())
        );
        assert_eq!(self.changes(), changes);
        let outputs = self.succeed("stack outputs --show-secrets");
        assert!(outputs.contains("swordfish-7f3a"), "{outputs}");
        assert_eq!(self.repository.names("backend/.pulumi/locks"), [""; 0]);
        assert!(!self.repository.names("backend").iter().any(|name| name.contains("journal")));
    }

    fn key_state(&self) -> serde_json::Value {
        serde_json::from_str(&self.repository.read(KEY_CHECKPOINT)).unwrap()
    }
}

/// Shows: server-yaml.md#a-key-that-sc-creates "`sc provision` creates the key before the stack"
/// Shows: server-yaml.md#a-key-that-sc-creates "Once the key exists, its settings have no effect"
#[tokio::test(flavor = "multi_thread")]
async fn key_is_created_before_the_stack_and_used_from_then_on() {
    let reef = Reef::new().await;
    let preview = reef.succeed("preview");
    assert!(preview.contains("tank-reef-sc") && preview.contains("page--prod"), "{preview}");
    assert_eq!((reef.repository.names("backend/.pulumi/stacks"), reef.changes()), (vec![], vec![]), "{preview}");
    let provisioned = reef.succeed("provision");
    assert!(!provisioned.contains("encrypted anew"), "{provisioned}");
    reef.assert_protected(&CREATES);
    let requests: Vec<String> = reef.apis.requests().iter().map(|request| request.path.clone()).collect();
    let enabled: Vec<&String> = requests.iter().filter(|path| path.starts_with("/v1/")).collect();
    assert_eq!(
        enabled,
        [
            "/v1/projects/tide-7/services/serviceusage.googleapis.com",
            "/v1/projects/tide-7/services/cloudkms.googleapis.com"
        ]
    );

    let resources = reef.repository.resources();
    let of_gcp = |resource: &String| resource.contains("pulumi:providers:gcp");
    assert!(!resources.iter().any(of_gcp), "the package of the key is none of the stack: {resources:?}");

    let key = reef.key_state();
    assert_eq!(key["checkpoint"]["latest"]["secrets_providers"]["type"], "passphrase");
    let root = &key["checkpoint"]["latest"]["resources"][0];
    assert_eq!(root["outputs"]["tank-reef-sc"], format!("gcpkms://{KEY}"));
    assert_eq!(root["urn"], "urn:pulumi:reef--sc::tank::pulumi:pulumi:Stack::tank-reef--sc");
    let (before, key_before) = (reef.repository.files("backend"), reef.repository.read(KEY_CHECKPOINT));
    let list = reef.succeed("stack ls");
    assert!(list.contains("reef  ") && list.contains("reef--sc  "), "{list}");
    assert!(reef.repository.files("backend") == before, "a list has changed the state");
    // Settings of a key that exists have no effect.
    reef.choose(&provisioner("keyLocation: europe-north1, keyRotationPeriod: 7776000s"), PAGE);
    for command in ["provision --expect-no-changes", "refresh --yes", "destroy --parent --yes"] {
        let output = reef.succeed(command);
        assert!(!output.contains("tank-reef-sc"), "{command}: {output}");
    }
    assert_eq!(
        (reef.changes(), reef.repository.read(KEY_CHECKPOINT)),
        (CREATES.map(str::to_owned).to_vec(), key_before)
    );
    let refused = reef.run("provision -s reef--sc");
    assert!(refused.starts_with("exit 1\n") && refused.contains("maxDeletes 0"), "{refused}");
    let refused = reef.run("stack rename -s reef--sc shore--sc --yes");
    assert!(refused.starts_with("exit 2\n") && refused.contains("cannot be renamed"), "{refused}");
    assert_eq!(reef.changes(), CREATES);
}

#[tokio::test(flavor = "multi_thread")]
async fn folder_with_the_name_of_the_stack_of_a_key_is_refused() {
    let reef = Reef::new().await;
    reef.repository.write_stack("reef--sc", PROVISIONER, Sections::default());
    let output = reef.run("preview -s reef");
    assert!(output.starts_with("exit 1\n") && output.contains("the key of stack reef belongs to"), "{output}");
    assert!(reef.run("preview -s reef--sc").starts_with("exit 0\n"));
}

/// Shows: server-yaml.md#a-key-that-sc-creates "the state keeps its provider so far"
#[tokio::test(flavor = "multi_thread")]
async fn stack_with_another_secrets_provider_gets_the_key_with_its_next_provision() {
    let mut reef = Reef::new().await;
    reef.choose(PROVISIONER, PAGE);
    reef.succeed("provision");
    reef.passphrase = Some("hush");
    reef.choose(&provisioner("keyLocation: global"), PAGE);
    let refused = reef.run("stack change-secrets-provider --yes");
    assert!(refused.starts_with("exit 1\n") && refused.contains("`sc provision` creates it"), "{refused}");
    for command in ["refresh --yes", "stack outputs --show-secrets"] {
        reef.succeed(command);
        assert_eq!(reef.repository.state()["checkpoint"]["latest"]["secrets_providers"]["type"], "passphrase");
    }
    let provisioned = reef.succeed("provision");
    assert!(provisioned.contains("encrypted anew: with the key gcpkms://"), "{provisioned}");
    reef.assert_protected(&CREATES);
}

/// Shows: server-yaml.md#a-key-that-sc-creates "the next provision finishes what an interrupted one has left"
#[tokio::test(flavor = "multi_thread")]
async fn run_killed_between_key_and_stack_is_continued_by_the_next_run() {
    let reef = Reef::new().await;
    // Created after the page, whose creation is recorded then.
    let thing = format!("{PAGE}\nthing: {{ type: rec:index:Thing, config: {{ v: '${{resource:page.path}}' }} }}");
    reef.choose(&provisioner("keyLocation: global"), &thing);
    reef.repository.script(json!({"resources": {"thing--prod": {"hang": "create"}}}));
    let running = reef.repository.start_command(reef.command("provision -S"));
    reef.repository.wait_until_called("Create thing--prod");
    let key = reef.repository.read(KEY_CHECKPOINT);
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status, "killed by signal 9");
    reef.repository.script(json!({}));
    reef.choose(&provisioner("keyLocation: global"), PAGE);
    reef.succeed("provision");
    reef.assert_protected(&CREATES);
    assert_eq!(reef.repository.read(KEY_CHECKPOINT), key);
}

/// Shows: server-yaml.md#a-key-that-sc-creates "the next provision finishes what an interrupted one has left"
#[tokio::test(flavor = "multi_thread")]
async fn creation_of_a_key_that_was_interrupted_is_finished_by_the_next_run() {
    for (stop, statuses) in [(Signal::INT, ["exit 130", "exit 0"]), (Signal::KILL, ["killed by signal 9"; 2])] {
        let reef = Reef::new().await;
        let running = reef.repository.start_command(reef.command("provision"));
        reef.repository.wait_until_called(CREATES[0]);
        running.signal(stop);
        let ended = running.wait();
        assert!(statuses.contains(&ended.status.as_str()), "{}: {}", ended.status, ended.stderr);
        reef.succeed("provision");
        let created: Vec<String> = reef.changes();
        reef.assert_protected(&created.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(stop == Signal::KILL || created == CREATES, "{created:?}");
        reef.succeed("provision --expect-no-changes");
        assert_eq!(reef.changes(), created);
    }
}

/// Shows: server-yaml.md#a-key-that-sc-creates "A run that creates a key is like any other: it locks `<stack>--sc`"
#[tokio::test(flavor = "multi_thread")]
async fn two_runs_create_one_key() {
    let reef = Reef::new().await;
    let start = || reef.repository.start_command(reef.command("provision --lock-timeout 5m"));
    let (first, second) = (start(), start());
    for run in [first, second] {
        let ended = run.wait();
        assert_eq!(ended.status, "exit 0", "{}", ended.stderr);
    }
    reef.assert_protected(&CREATES);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_that_cannot_be_created_leaves_the_stack_alone() {
    let reef = Reef::new().await;
    reef.apis_refuse.store(true, Ordering::Relaxed);
    let output = reef.run("provision");
    assert!(output.starts_with("exit 1\n"), "{output}");
    for expected in [
        "cannot switch on the API serviceusage.googleapis.com in the project \"[secret]\"",
        "--> .sc/stacks/reef/server.yaml:",
        "stack reef is left out, because reef--sc did not succeed",
    ] {
        assert!(output.contains(expected), "{expected}\n{output}");
    }
    assert!(!reef.repository.path("site/a").exists() && reef.changes().is_empty(), "{output}");
    let refused = reef.run("import page--prod=a");
    assert!(refused.contains("this key has not been created yet"), "{refused}");
    reef.apis_refuse.store(false, Ordering::Relaxed);
    reef.succeed("provision");
    reef.assert_protected(&CREATES);
}
