//! Tests of runs that one process puts together, without a command line.
#![expect(clippy::unwrap_used, reason = "a test panics at the first failure")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bridge::host::PluginPool;
use bridge::process::Spawner;
use config::{Account, ProcessContext, Reading};
use engine::StopSignals;
use engine::events::{Event, EventSink, Outcome};
use engine::masking::SecretMasker;
use provisioner::operation::{
    Agreement, FetchRules, PluginSettings, ProcessIdentity, ProvisionOptions, Report, ResumedChanges, RunInputs,
    RunOptions, Selection, SetupError, Stacks, StacksRead, StacksRequest, provision, secrets_diagnostic,
};
use pulumi_proto::property::PropertyValue;
use state::secrets::SecretsError;
use state::store::OutageReport;
use state::{StackView, Unrecorded};

/// Stack without resources, with an output from the environment of the caller.
const SERVER_YAML: &str = r#"
schemaVersion: "1.0"
provisioner:
  type: pulumi
  config:
    state-storage:
      type: fs
      config: { path: "file://${project:root}/state?create_dir=true" }
    secrets-provider: { type: passphrase, config: {} }
outputs:
  greeting: "${env:GREETING}"
"#;

#[derive(Default)]
struct Events(Mutex<Vec<Event>>);

impl EventSink for Events {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

fn process() -> ProcessIdentity {
    let user = rustix::process::geteuid().as_raw();
    ProcessIdentity {
        pid: 7,
        user,
        hostname: "tower".to_owned(),
        fingerprint: None,
        has_ended: |_| false,
        trusted_owners: vec![user],
    }
}

/// Returns a repository with the stack `reef`.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let stack = folder.path().join(".sc/stacks/reef");
    std::fs::create_dir_all(&stack).unwrap();
    std::fs::write(stack.join("server.yaml"), SERVER_YAML).unwrap();
    std::fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: shore\n").unwrap();
    folder
}

fn request<'a>(folder: &'a Path, environment: &[(&str, &str)]) -> StacksRequest<'a> {
    let home = folder.join("home");
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let process_context = ProcessContext {
        environment: environment.collect::<BTreeMap<_, _>>(),
        now: "2024-01-02T03:04:05Z".parse().unwrap(),
        time_zone: Some(jiff::tz::TimeZone::UTC),
        account: Some(Account { home, username: "guest".to_owned(), id: "1000".to_owned(), name: "Guest".to_owned() }),
    };
    StacksRequest {
        folder,
        profile: "default",
        stacks_dir: None,
        reading: Reading::Whole,
        process_context,
        process: process(),
        masker: Arc::new(SecretMasker::default()),
        unrecorded: Unrecorded::default(),
        outages: OutageReport::default(),
        fetch_rules: FetchRules::default(),
        accepts_errors: false,
    }
}

fn read(request: StacksRequest<'_>) -> Stacks {
    match Stacks::read(request, Selection::One(None)).unwrap() {
        StacksRead::Stacks(stacks, _) => *stacks,
        StacksRead::Errors(found, _) => panic!("{found:?}"),
    }
}

/// Provisions the only stack of a repository, as a caller with this environment.
async fn provision_as(folder: &Path, environment: &[(&str, &str)]) -> Report {
    let stacks = read(request(folder, environment));
    assert_eq!(stacks.check_passphrases(), []);
    let stack = stacks.requested().next().unwrap();
    let (access, resumed) = stacks.access(stack, |_| ()).await.unwrap();
    assert_eq!(resumed, ResumedChanges::default());
    let inputs = RunInputs {
        plugins: PluginSettings::new(&stacks, Spawner::unsupervised(), PluginPool::new()).unwrap(),
        events: Arc::new(Events::default()),
        signals: StopSignals::default(),
        options: RunOptions::default(),
    };
    let run = stacks.run(stack, access, inputs).await.unwrap();
    let approve = async |_: &Report| Ok::<_, anyhow::Error>(Agreement::Granted(None));
    let options = ProvisionOptions { refresh: true, preview: true };
    let report = provision(&run, options, approve).await.unwrap().unwrap();
    run.close().await;
    report
}

/// Returns the recorded greeting, read as a caller with this passphrase.
async fn recorded_greeting(folder: &Path, passphrase: &str) -> Option<PropertyValue> {
    let stacks = read(request(folder, &[("PULUMI_CONFIG_PASSPHRASE", passphrase), ("GREETING", "unused")]));
    let access = stacks.open_access(stacks.requested().next().unwrap()).await.unwrap();
    let snapshot = StackView::open(&access).await.unwrap().snapshot.unwrap();
    snapshot.resources.iter().find_map(|resource| resource.outputs.get("greeting").cloned())
}

#[tokio::test]
async fn two_runs_of_one_process_use_the_environment_of_their_own_callers() {
    let (reef, moor) = (repository(), repository());
    let (first, second) = tokio::join!(
        provision_as(reef.path(), &[("PULUMI_CONFIG_PASSPHRASE", "first"), ("GREETING", "ahoy")]),
        provision_as(moor.path(), &[("PULUMI_CONFIG_PASSPHRASE", "second"), ("GREETING", "hello")]),
    );
    for report in [first, second] {
        assert_eq!((report.summary.outcome, report.diagnostics), (Outcome::Succeeded, vec![]));
    }
    assert_eq!(recorded_greeting(reef.path(), "first").await, Some("ahoy".into()));
    assert_eq!(recorded_greeting(moor.path(), "second").await, Some("hello".into()));
    // The caches and journals are below the folders of the callers, who have neither HOME nor XDG_CACHE_HOME.
    assert!(!reef.path().join("home").exists());
}

#[tokio::test]
async fn missing_passphrase_is_an_error_at_the_secrets_provider() {
    let folder = repository();
    let stacks = read(request(folder.path(), &[("GREETING", "ahoy")]));
    let found = stacks.check_passphrases();
    assert_eq!(found.len(), 1);
    let position = stacks.sources.position(found[0].span.unwrap()).to_string();
    assert!(position.ends_with("server.yaml:9:31"), "{position}");
    let stack = stacks.requested().next().unwrap();
    let reason = secrets_diagnostic(stack, &SecretsError::NoPassphrase).unwrap();
    assert_eq!((reason.span, &reason.summary), (found[0].span, &found[0].summary));
    assert!(secrets_diagnostic(stack, &SecretsError::KeyNeeded).is_none());
}

#[tokio::test]
async fn file_with_the_passphrase_is_named_if_it_cannot_be_read() {
    let folder = repository();
    let stacks = read(request(folder.path(), &[("GREETING", "ahoy"), ("PULUMI_CONFIG_PASSPHRASE_FILE", "/no/file")]));
    let error = stacks.open_access(stacks.requested().next().unwrap()).await.err().unwrap();
    assert_eq!(error.to_string(), "PULUMI_CONFIG_PASSPHRASE_FILE names /no/file, which cannot be read");
}

#[test]
fn repository_of_an_account_without_trust_is_refused() {
    let folder = repository();
    let user = process().user;
    let process = ProcessIdentity { trusted_owners: vec![user + 1], ..process() };
    let request = StacksRequest { process, ..request(folder.path(), &[]) };
    let Err(SetupError::ForeignRepository { foreign, .. }) = Stacks::read(request, Selection::All) else {
        panic!("the repository was read")
    };
    assert_eq!(foreign.owner, user);
}
