//! Tests of the example repository with the whole engine: its state must match `urns.tsv`.

#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use config::Stack;
use engine::events::{Event, EventSink, Operation, Outcome, StepOp};
use engine::{Deployment, DeploymentEnd, DeploymentRequest, ProgramEnd, StopSignals};
use provisioner::program::Program;
use provisioner::registry::recipe::Effects;
use provisioner::registry::recipes;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use state::{MemoryRecorder, ResourceState, Snapshot, StateRecorder, integrity};
use tests::echo_cloud::EchoHost;
use tests::stack_files::read_stack;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/example")
}

/// Returns the stack of the example.
fn stack() -> Stack {
    let (stack, diagnostics) = read_stack(&folder().join("repo"), "aquarium").unwrap();
    assert_eq!(diagnostics, []);
    stack.unwrap()
}

/// Returns the id of a new resource, and its outputs that are not inputs.
fn created(token: &str, name: &str, inputs: &PropertyMap) -> (String, PropertyMap) {
    let (id, outputs) = match token {
        "aws:s3/bucket:Bucket" => {
            let bucket = inputs.get("bucket").and_then(PropertyValue::as_str).unwrap_or_default().to_owned();
            let arn = format!("arn:aws:s3:::{bucket}");
            (bucket, vec![("arn", arn), ("region", "eu-north-1".to_owned())])
        }
        "aws:iam/user:User" => {
            let id = format!("{name}-0001");
            (id.clone(), vec![("arn", format!("arn:aws:iam::0:user/{id}")), ("name", id)])
        }
        "aws:iam/accessKey:AccessKey" => {
            ("KEY0001".to_owned(), vec![("secret", "hush".to_owned()), ("sesSmtpPasswordV4", "hush, too".to_owned())])
        }
        "tls:index/privateKey:PrivateKey" => {
            ("key".to_owned(), vec![("privateKeyPem", "pem".to_owned()), ("privateKeyPemPkcs8", "pem 8".to_owned())])
        }
        "tls:index/selfSignedCert:SelfSignedCert" => ("cert".to_owned(), vec![("certPem", "cert pem".to_owned())]),
        "files:random:Password" => ("password".to_owned(), vec![("result", "correct horse".to_owned())]),
        _ => (format!("{name}-id"), Vec::new()),
    };
    (id, outputs.into_iter().map(|(name, value)| (name.to_owned(), value.as_str().into())).collect())
}

#[derive(Debug)]
struct NoEvents;

impl EventSink for NoEvents {
    fn emit(&self, _: Event) {}
}

enum Effect {
    Preview,
    Apply,
}

/// Effects of a stack that needs none.
struct NoEffects;

#[async_trait]
impl Effects for NoEffects {
    async fn enable_google_api(&self, project: &str, service: &str, _: &str) -> Result<(), String> {
        panic!("the example switches {service} on in {project}")
    }
}

/// Runs the example from a state.
async fn run(snapshot: Snapshot, operation: Operation, effect: Effect) -> DeploymentEnd {
    let preview = matches!(effect, Effect::Preview);
    let program = Program::new(Arc::new(stack()), recipes::core_types());
    let request = DeploymentRequest { preview, ..DeploymentRequest::new("aquarium", "tidepool", operation) };
    let recorder = (!preview).then(|| Box::new(MemoryRecorder::new(snapshot.clone())) as Box<dyn StateRecorder>);
    let signals = StopSignals::default();
    let (deployment, run) =
        Deployment::new(request, snapshot, Arc::new(EchoHost::new(created)), recorder, Arc::new(NoEvents), signals);
    let drive = async {
        if operation == Operation::Update {
            let result = program.run(&deployment, &NoEffects).await;
            assert_eq!((result.end, result.diagnostics), (ProgramEnd::Completed, vec![]));
            deployment.finish(ProgramEnd::Completed).await;
        }
    };
    let (end, ()) = tokio::join!(run, drive);
    assert_eq!(end.outcome, Outcome::Succeeded);
    end
}

fn changes(end: &DeploymentEnd) -> Vec<(StepOp, usize)> {
    end.summary.changes.iter().filter(|(_, count)| **count > 0).map(|(op, count)| (*op, *count)).collect()
}

/// Row of `urns.tsv`: URN, name of the provider, names of the dependencies.
type Row = (String, String, BTreeSet<String>);

fn expected_rows() -> BTreeSet<Row> {
    let table = std::fs::read_to_string(folder().join("urns.tsv")).unwrap();
    let row = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        let mut cell = || cells.next().unwrap_or_default();
        (cell(), cell(), cell().split_whitespace().map(str::to_owned).collect())
    };
    table.lines().skip(1).filter(|line| !line.is_empty()).map(row).collect()
}

fn row(state: &ResourceState) -> Row {
    let provider = state.provider.as_ref().map_or(String::new(), |provider| provider.urn.name().to_owned());
    (state.urn.to_string(), provider, state.dependencies.iter().map(|urn| urn.name().to_owned()).collect())
}

fn find<'s>(snapshot: &'s Snapshot, name: &str) -> &'s ResourceState {
    snapshot.resources.iter().find(|state| state.urn.name() == name).unwrap()
}

#[tokio::test]
async fn example_state_matches_its_table() {
    let end = run(Snapshot::default(), Operation::Update, Effect::Apply).await;
    integrity::verify(&end.snapshot).unwrap();
    let rows: BTreeSet<Row> = end.snapshot.resources.iter().map(|state| row(state)).collect();
    assert_eq!(rows, expected_rows());
    assert_eq!(end.snapshot.resources.len(), rows.len());

    let policy = r#"{"Statement":[{"Action":"s3:*","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::0:user/media--staging-user-0001"},"Resource":["arn:aws:s3:::media--staging","arn:aws:s3:::media--staging/*"]}],"Version":"2012-10-17"}"#;
    assert_eq!(find(&end.snapshot, "media--staging-policy").inputs["policy"], policy.into());
    let key = find(&end.snapshot, "media--production-access-key");
    assert_eq!(key.outputs["secret"], PropertyValue::secret("hush".into()));
    assert!(key.protect && key.outputs["sesSmtpPasswordV4"].is_secret());
    let provider = find(&end.snapshot, "aquarium--s3-bucket--media--production--provider--production");
    assert_eq!(provider.inputs["version"], "6.83.4".into());
    assert_eq!(provider.inputs["secretKey"], PropertyValue::secret("example/secret/access/key/0001".into()));
    assert_eq!(provider.inputs["skipCredentialsValidation"], false.into());
    assert!(!provider.protect);

    let outputs = &find(&end.snapshot, "tidepool-aquarium").outputs;
    assert_eq!(outputs["media--staging-access-key-secret"], PropertyValue::secret("hush".into()));
    let plain = ["media--staging-bucket-region", "media--production-access-key-name", "bucket", "certificate"];
    assert_eq!(
        plain.map(|name| outputs[name].as_str().unwrap()),
        ["eu-north-1", "KEY0001", "media--production", "cert pem"]
    );
}

#[tokio::test]
async fn second_run_of_the_example_has_no_changes() {
    let first = run(Snapshot::default(), Operation::Update, Effect::Apply).await;
    assert_eq!(changes(&first), [(StepOp::Create, expected_rows().len())]);
    let second = run(first.snapshot.clone(), Operation::Update, Effect::Apply).await;
    assert_eq!(changes(&second), [(StepOp::Same, expected_rows().len())]);
    // The order of independent entries may change, as entries are in the order in which they were confirmed.
    let by_urn = |snapshot: Snapshot| {
        let mut resources = snapshot.resources;
        resources.sort_by(|a, b| a.urn.cmp(&b.urn));
        resources
    };
    assert_eq!(by_urn(second.snapshot), by_urn(first.snapshot));
}

#[tokio::test]
async fn preview_of_the_example_creates_every_resource() {
    let end = run(Snapshot::default(), Operation::Update, Effect::Preview).await;
    assert_eq!(changes(&end), [(StepOp::Create, expected_rows().len())]);
}
