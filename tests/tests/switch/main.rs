//! Tests of the switch from the Go program, and back: from the state that one of both leaves, the other finds nothing to do.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod provider;
mod recording;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use config::diagnostics::SourceFiles;
use config::{ProcessContext, Profile, Repository, Stack, Workspace};
use engine::events::{Event, EventSink, Operation, Outcome, StepInfo, StepOp};
use engine::{Deployment, DeploymentEnd, DeploymentOptions, StopSignals};
use provisioner::program::Program;
use provisioner::registry::recipe::Effects;
use provisioner::registry::recipes;
use serde_json::Value;
use state::{MemoryRecorder, Snapshot, StateRecorder};

use crate::provider::RecordedHost;
use crate::recording::{LEFT_OUT, Recording};

/// Recordings after which `sc` has something to do, on purpose, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

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
    host: &RecordedHost,
    preview: bool,
) -> (DeploymentEnd, Vec<Arc<StepInfo>>) {
    let options = DeploymentOptions { preview, ..DeploymentOptions::new("s", "reef", Operation::Update) };
    let recorder = (!preview).then(|| Box::new(MemoryRecorder::new(snapshot.clone())) as Box<dyn StateRecorder>);
    let (changes, signals) = (Changes::default(), StopSignals::default());
    let host = Arc::new(host.clone());
    let (deployment, run) = Deployment::new(options, snapshot, host, recorder, Arc::new(changes.clone()), signals);
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

/// Reads the stack of a recording; `None` if `sc` refuses it.
fn stack(recording: &Recording) -> Option<Stack> {
    let folder = tempfile::tempdir().unwrap();
    let stack = folder.path().join(".sc/stacks/s");
    std::fs::create_dir_all(&stack).unwrap();
    std::fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: reef").unwrap();
    std::fs::write(stack.join("server.yaml"), recording.server()).unwrap();
    let now = "2024-01-02T03:04:05Z".parse().unwrap();
    let process_context = ProcessContext { environment: BTreeMap::new(), now, time_zone: None, account: None };
    let repository = Repository { root: folder.path().to_owned(), git: None };
    let (mut sources, types) = (SourceFiles::default(), recipes::built_in_types());
    let profile = Profile::read("default", &repository, &process_context, &mut sources).unwrap();
    let workspace = Workspace {
        repository: &repository,
        profile: &profile,
        stacks_dir: None,
        process_context: &process_context,
        types: &types,
    };
    let mut loaded = workspace.load(&["s".to_owned()], &mut sources);
    let has_errors = config::diagnostics::has_errors(&loaded.diagnostics);
    loaded.stacks.pop().filter(|_| !has_errors)
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
    let host = RecordedHost {
        outputs: recording.properties("outputs").into(),
        imported: recording.imported().into(),
        replies: recording.properties("answers").into(),
    };
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

#[tokio::test]
async fn first_run_after_a_switch_finds_nothing_to_do() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/simple-container/registrations");
    let (mut switched, mut mistakes) = (0, Vec::new());
    for file in ["buckets.json", "cases.json"] {
        let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(folder.join(file)).unwrap()).unwrap();
        for recording in cases.into_iter().map(Recording) {
            let case = &recording.0;
            // A run that failed, or whose engine refuses a name, leaves no state to switch from.
            let is_run = case["mode"].is_null() && case["preview"].is_null() && case["crash"].is_null();
            let has_completed = is_run && case["error"].is_null() && case["twice"].is_null();
            if !has_completed || EXCEPTIONS.iter().any(|(name, _)| *name == recording.name()) {
                continue;
            }
            let Some(stack) = stack(&recording) else { continue };
            switched += 1;
            let found = switch(&recording, stack).await;
            if !found.is_empty() {
                mistakes.push(format!("{}\n  {}", recording.name(), found.join("\n  ")));
            }
        }
    }
    assert!(mistakes.is_empty(), "{} of {switched}:\n{}", mistakes.len(), mistakes.join("\n"));
    assert!(switched >= 40, "{switched}");
}
