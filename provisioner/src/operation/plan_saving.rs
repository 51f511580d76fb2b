//! Previews whose decisions are saved as a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bridge::fs::{Access, write_atomically};
use bridge::host::PluginHost;
use config::PluginDeclaration;
use engine::events::{Event, EventSink, Operation, Outcome, StepOp};
use jiff::{SignedDuration, Timestamp};
use state::secrets::SecretsManager;
use state::{StackView, StateError, content_digest};

use super::plan_error::PlanError;
use super::plan_opening::{VERSION, stack_name};
use super::undecided_resources::UndecidedRule;
use super::{OperationError, Report, StackRun, Stacks, key_stack};
use crate::plan::{
    PlanFile, PlanHeader, PlanOptions, PlanRecorder, PlannedStackName, StackPlan, StackToSeal, Surroundings,
};

/// Plan of a stack that is not sealed yet.
pub struct UnsealedPlan {
    name: PlannedStackName,
    plan: StackPlan,
    manager: Arc<dyn SecretsManager>,
}

impl std::fmt::Debug for UnsealedPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnsealedPlan").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Settings of a plan that do not follow from its stacks.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// Time until the plan expires.
    pub lifetime: SignedDuration,
    /// Name of the profile.
    pub profile: String,
    /// Options of the command that change what is planned.
    pub options: PlanOptions,
}

/// Previews [`super::provision()`] like [`super::preview()`], and returns what was decided as well, if the preview has succeeded.
///
/// # Errors
/// The errors of [`super::preview()`]; [`PlanError::NoKey`] if there is no key to encrypt the plan with, [`PlanError::Drift`] if the
/// refresh has found changes that the recorded state lacks.
pub async fn preview_for_plan(
    run: &StackRun,
    stacks: &Stacks,
    refresh: bool,
) -> Result<(Report, Option<UnsealedPlan>), OperationError> {
    let stack = run.program.stack();
    if run.access.keyring.awaits_key() {
        let key_stack = key_stack(stack).map(|stack| stack.name.clone()).unwrap_or_default();
        return Err(PlanError::NoKey { stack: stack.name.clone(), key_stack }.into());
    }
    let view = StackView::open(&run.access).await?;
    let manager = match (&run.access.configured_secrets, view.secrets()) {
        (Some(configured), _) => run.access.keyring.manager(configured).map_err(StateError::from)?,
        (None, Some(manager)) => manager,
        (None, None) => run.access.keyring.new_manager(None).await.map_err(StateError::from)?,
    };
    manager.prepare();
    let state = view.snapshot.as_ref().map_or_else(|| content_digest(&Default::default()), content_digest);
    let state = state.map_err(StateError::from)?;
    let recorder = Arc::new(PlanRecorder::new());
    let watch = Arc::new(DriftWatch { events: Arc::clone(&run.events), changed: Mutex::default() });
    let mut recorded = run.clone();
    recorded.guard = Arc::clone(&recorder) as _;
    recorded.events = Arc::clone(&watch) as _;
    let report = recorded.preview_view(Operation::Update, refresh, view, UndecidedRule::Refused).await?;
    if report.summary.outcome != Outcome::Succeeded {
        return Ok((report, None));
    }
    run.refuse_pending_creates(&report)?;
    let names: Vec<String> = watch.changed().into_iter().collect();
    if !names.is_empty() {
        return Err(PlanError::Drift { stack: stack.name.clone(), names }.into());
    }
    let files = stacks.file_digests(&stack.name)?;
    let plugins = run.host.get().map(|host| plugin_identities(host)).unwrap_or_default();
    let plan = StackPlan {
        surroundings: Surroundings { state: Some(state), files, plugins: Some(plugins) },
        seeds: recorder.seeds().clone(),
        renewed: renewed(&stack.plugins),
        resources: recorder.take(),
        outputs: report.snapshot.stack_outputs().cloned().unwrap_or_default(),
    };
    Ok((report, Some(UnsealedPlan { name: stack_name(&run.access), plan, manager })))
}

impl Stacks {
    /// Seals the plans of stacks, and writes them to a file that only its owner can read.
    ///
    /// # Errors
    /// [`PlanError`]; the file is as it was then.
    pub async fn save_plan(
        &self,
        path: &Path,
        stacks: Vec<UnsealedPlan>,
        settings: PlanSettings,
    ) -> Result<PlanFile, PlanError> {
        let (created, holder) = (self.process_context.now, self.holder());
        let PlanSettings { lifetime, profile, options } = settings;
        let header = PlanHeader {
            id: hex::encode(engine::SeedKey::draw().as_bytes()),
            version: VERSION.to_owned(),
            created,
            expires: created.checked_add(lifetime).unwrap_or(Timestamp::MAX),
            by: format!("{}@{}", holder.username, holder.hostname),
            profile,
            options,
            stacks: stacks.iter().map(|stack| stack.name.clone()).collect(),
        };
        let mut crypters = Vec::new();
        for stack in &stacks {
            crypters.push(stack.manager.crypter().await.map_err(|error| PlanError::Text(error.into()))?);
        }
        let to_seal: Vec<StackToSeal<'_>> = stacks
            .iter()
            .zip(&crypters)
            .map(|(stack, crypter)| StackToSeal {
                plan: &stack.plan,
                secrets: stack.manager.describe(),
                crypter: &**crypter,
            })
            .collect();
        let file = PlanFile::seal(header, &to_seal).map_err(PlanError::Text)?;
        write_atomically(path, file.text().as_bytes(), Access::Private).map_err(PlanError::File)?;
        Ok(file)
    }
}

/// Returns the plugins of a run with what identifies their packages.
pub(super) fn plugin_identities(host: &PluginHost) -> BTreeMap<String, String> {
    host.package_identities()
}

/// Returns the names of plugins with the names of those values of their `config` that are taken anew in the run.
fn renewed(plugins: &[PluginDeclaration]) -> BTreeMap<String, BTreeSet<String>> {
    let renewed = plugins.iter().filter(|plugin| !plugin.renewed.is_empty());
    renewed.map(|plugin| (plugin.name().to_owned(), plugin.renewed.clone())).collect()
}

/// Event sink that notes the resources in which a refresh finds changes.
struct DriftWatch {
    events: Arc<dyn EventSink>,
    changed: Mutex<BTreeSet<String>>,
}

impl DriftWatch {
    fn changed(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl EventSink for DriftWatch {
    fn emit(&self, event: Event) {
        if let Event::StepSucceeded(step, _) = &event
            && step.op == StepOp::Refresh
            && step.result.is_some_and(|result| result != StepOp::Same)
        {
            let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            changed.insert(step.urn.name().to_owned());
        }
        self.events.emit(event);
    }
}
