//! Tests of the switch from the Go program, and back: from the state that one of both leaves, the other finds nothing to do.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod recording;

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use config::Stack;
use config::diagnostics::has_errors;
use engine::events::{Event, EventSink, Operation, Outcome, StepInfo, StepOp};
use engine::{Deployment, DeploymentEnd, DeploymentRequest, StopSignals};
use provisioner::program::Program;
use provisioner::registry::recipe::Effects;
use provisioner::registry::recipes;
use pulumi_proto::property::PropertyMap;
use serde_json::Value;
use state::{MemoryRecorder, Snapshot, StateRecorder};
use tests::echo_cloud::EchoHost;
use tests::stack_files::read_server;

use crate::recording::{LEFT_OUT, Recording};

/// Program that registers a stack.
enum Registrations<'a> {
    OfGo(&'a Recording),
    OfSc(&'a Program),
}

/// Sink that keeps the steps that change something.
#[derive(Clone, Debug, Default)]
struct Changes(Arc<Mutex<Vec<Arc<StepInfo>>>>);

impl EventSink for Changes {
    fn emit(&self, event: Event) {
        if let Event::StepStarted(step) = event
            && !matches!(step.op, StepOp::Same | StepOp::Read)
        {
            self.0.lock().unwrap().push(step);
        }
    }
}

struct NoEffects;

#[async_trait]
impl Effects for NoEffects {
    async fn enable_google_api(&self, _: &str, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Runs an update from a state, and returns its end and the steps that change something.
async fn run(
    registrations: Registrations<'_>,
    snapshot: Snapshot,
    host: &EchoHost,
    preview: bool,
) -> (DeploymentEnd, Vec<Arc<StepInfo>>) {
    let request = DeploymentRequest { preview, ..DeploymentRequest::new("s", "reef", Operation::Update) };
    let recorder = (!preview).then(|| Box::new(MemoryRecorder::new(snapshot.clone())) as Box<dyn StateRecorder>);
    let (changes, signals) = (Changes::default(), StopSignals::default());
    let host = Arc::new(host.clone());
    let (deployment, run) = Deployment::new(request, snapshot, host, recorder, Arc::new(changes.clone()), signals);
    let drive = async {
        let end = match registrations {
            Registrations::OfGo(recording) => recording.run(&deployment).await,
            Registrations::OfSc(program) => program.run(&deployment, &NoEffects).await.end,
        };
        deployment.finish(end).await;
    };
    let (end, ()) = tokio::join!(run, drive);
    let changes = std::mem::take(&mut *changes.0.lock().unwrap());
    (end, changes)
}

/// Reads the stack of a server.yaml; `None` if `sc` refuses it.
fn stack(server: &str, secrets: &str) -> Option<Stack> {
    let (stack, diagnostics) = read_server(server, secrets).unwrap();
    stack.filter(|_| !has_errors(&diagnostics))
}

/// Returns the provider of a recording: with its outputs and replies.
fn host(recording: &Recording) -> EchoHost {
    let outputs = recording.properties("outputs");
    let created = move |token: &str, name: &str, _: &PropertyMap| {
        let of_resource = outputs.get(&format!("{token}::{name}")).or_else(|| outputs.get(name));
        (format!("{name}-1"), of_resource.cloned().unwrap_or_default())
    };
    let mut host = EchoHost::new(created);
    (host.imported, host.replies) = (recording.imported().into(), recording.properties("answers").into());
    host
}

/// Returns the changes, except of resources with a text that the recordings leave out.
fn described(changes: &[Arc<StepInfo>]) -> Vec<String> {
    let has_left_out = |step: &StepInfo| {
        let entries = [&step.old, &step.new].into_iter().flatten();
        entries.into_iter().any(|entry| format!("{:?}", entry.inputs).contains(LEFT_OUT))
    };
    let other = changes.iter().filter(|step| step.op != StepOp::Update || !has_left_out(step));
    other.map(|step| format!("{:?} {} {:?}", step.op, step.urn, step.diffs)).collect()
}

/// Returns the mistakes of a switch to `sc` and back.
async fn switch(recording: &Recording, stack: Stack) -> Vec<String> {
    let program = Program::new(stack.into(), recipes::core_types());
    let host = host(recording);
    let (of_go, _) = run(Registrations::OfGo(recording), Snapshot::default(), &host, false).await;
    if of_go.outcome != Outcome::Succeeded {
        return vec!["the registrations of the Go program fail".to_owned()];
    }
    let mut mistakes = Vec::new();
    for preview in [true, false] {
        let (end, changes) = run(Registrations::OfSc(&program), of_go.snapshot.clone(), &host, preview).await;
        mistakes.extend((end.outcome != Outcome::Succeeded).then(|| "sc fails after the Go program".to_owned()));
        mistakes.extend(described(&changes).into_iter().map(|change| format!("sc after Go: {change}")));
    }
    let (of_sc, _) = run(Registrations::OfSc(&program), Snapshot::default(), &host, false).await;
    let (end, changes) = run(Registrations::OfGo(recording), of_sc.snapshot, &host, true).await;
    mistakes.extend((end.outcome != Outcome::Succeeded).then(|| "the Go program fails after sc".to_owned()));
    mistakes.extend(described(&changes).into_iter().map(|change| format!("Go after sc: {change}")));
    mistakes
}

/// Returns the recordings of runs that have completed. A run that failed, or whose engine refuses a name, leaves no state to
/// switch from.
fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/simple-container/registrations");
    let read = |file| serde_json::from_slice::<Vec<Value>>(&std::fs::read(folder.join(file)).unwrap()).unwrap();
    let has_completed =
        |case: &Value| ["mode", "preview", "crash", "error", "twice"].iter().all(|member| case[member].is_null());
    ["buckets.json", "cases.json"].into_iter().flat_map(read).filter(has_completed).map(Recording).collect()
}

/// Shows: moving.md#moving-from-simple-containers-tool-and-back "The first preview finds nothing to do, except for the
///   texts below."
/// Shows: moving.md#back-to-the-go-tool "It shows the updates of the table above, the other way round, and nothing
///   else."
#[tokio::test]
async fn first_run_after_a_switch_finds_nothing_to_do() {
    let (mut switched, mut mistakes) = (0, Vec::new());
    for recording in recordings() {
        let Some(stack) = stack(recording.server(), "") else { continue };
        switched += 1;
        let found = switch(&recording, stack).await;
        if !found.is_empty() {
            mistakes.push(format!("{}\n  {}", recording.name(), found.join("\n  ")));
        }
    }
    assert!(mistakes.is_empty(), "{} of {switched}:\n{}", mistakes.len(), mistakes.join("\n"));
    assert_eq!(switched, 75);
}

/// The Go program stores the values of an account in plain text, `sc` as secrets.
#[tokio::test]
async fn secret_marks_of_an_account_are_no_change() {
    const KEY: &str = r#"{"type":"service_account","project_id":"tide-7"}"#;
    let secrets = format!(
        "auth: {{ tide: {{ type: gcp-service-account, config: {{ projectId: tide-7, credentials: '{KEY}' }} }} }}"
    );
    let mut switched = 0;
    for recording in recordings() {
        let literal = serde_json::to_string(KEY).unwrap();
        let server = recording.server().replace(&literal, r#""${auth:tide}""#);
        let Some(stack) = stack(&server, &secrets).filter(|_| server != recording.server()) else { continue };
        let mut host = host(&recording);
        host.ignores_secret_marks = true;
        let (of_go, _) = run(Registrations::OfGo(&recording), Snapshot::default(), &host, false).await;
        let program = Program::new(stack.into(), recipes::core_types());
        let (end, changes) = run(Registrations::OfSc(&program), of_go.snapshot, &host, false).await;
        assert_eq!((end.outcome, described(&changes)), (Outcome::Succeeded, Vec::new()), "{}", recording.name());
        let is_secret = |resource: &state::ResourceState| {
            resource.urn.type_token() == "pulumi:providers:gcp" && resource.inputs["credentials"].contains_secrets()
        };
        assert!(end.snapshot.resources.iter().any(|resource| is_secret(resource)), "{}", recording.name());
        switched += 1;
    }
    assert_eq!(switched, 24);
}
