//! Recorder of a plan: the guard of a preview, which collects what the engine has decided.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use engine::events::{Message, StepInfo, StepOp};
use engine::{DecidedRegistration, Goal, PlanGuard, SeedKey};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

use super::planned::{PlannedRead, PlannedRegistration, PlannedResource, PlannedStep};
use super::step_kind::StepKind;

/// Guard of a preview that collects what the engine has decided, and refuses nothing.
#[derive(Debug)]
pub struct PlanRecorder {
    seeds: SeedKey,
    recorded: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    resources: Vec<PlannedResource>,
    positions: HashMap<Urn, usize>,
}

impl Recorded {
    fn resource(&mut self, urn: &Urn) -> &mut PlannedResource {
        let at = *self.positions.entry(urn.clone()).or_insert_with(|| {
            self.resources.push(PlannedResource::new(urn.clone()));
            self.resources.len() - 1
        });
        &mut self.resources[at]
    }
}

impl PlanRecorder {
    /// Creates a recorder with a new key of seeds, which has recorded nothing.
    pub fn new() -> Self {
        Self { seeds: SeedKey::draw(), recorded: Mutex::default() }
    }

    /// Returns the key of the seeds.
    pub fn seeds(&self) -> &SeedKey {
        &self.seeds
    }

    /// Returns the resources that were recorded, in the order in which they were decided, and forgets them.
    pub fn take(&self) -> Vec<PlannedResource> {
        std::mem::take(&mut *self.recorded()).resources
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for PlanRecorder {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl PlanGuard for PlanRecorder {
    fn seed(&self, urn: &Urn) -> [u8; 32] {
        self.seeds.seed(urn)
    }

    fn approves_steps(&self) -> bool {
        true
    }

    async fn approve_registration(&self, decided: &DecidedRegistration<'_>) -> Result<(), Box<Message>> {
        let registration = planned(decided);
        let old_inputs = changed_inputs(&decided.steps, decided.urn);
        let internal = decided.steps.iter().any(|step| step.urn == *decided.urn && step.internal);
        let mut recorded = self.recorded();
        let resource = recorded.resource(decided.urn);
        resource.custom = decided.goal.custom;
        resource.internal |= internal;
        resource.registration = Some(registration);
        resource.old_inputs = old_inputs.or(resource.old_inputs.take());
        Ok(())
    }

    async fn approve_step(&self, step: &StepInfo) -> Result<(), Box<Message>> {
        let mut recorded = self.recorded();
        let resource = recorded.resource(&step.urn);
        resource.internal |= step.internal;
        if let Some(entry) = step.old.as_ref().or(step.new.as_ref()) {
            resource.custom = entry.custom;
        }
        resource.steps.push(PlannedStep { op: step.op, urn: step.urn.clone() });
        if let Some(read) = read(step) {
            resource.read = Some(read);
        }
        if StepKind::of(step.op).is_change() && resource.old_inputs.is_none() {
            resource.old_inputs = step.old.as_ref().map(|old| Arc::clone(&old.inputs));
        }
        Ok(())
    }
}

/// Returns what a step reads, if it reads a resource that is not one of the stack.
pub(super) fn read(step: &StepInfo) -> Option<PlannedRead> {
    let new = step.new.as_ref().filter(|_| matches!(step.op, StepOp::Read | StepOp::ReadReplacement))?;
    let id = new.id.as_ref().map(ToString::to_string);
    Some(PlannedRead { id, properties: Arc::clone(&new.inputs) })
}

/// Returns the recorded inputs of a resource that its steps change.
fn changed_inputs(steps: &[StepInfo], urn: &Urn) -> Option<Arc<PropertyMap>> {
    let mut changing = steps.iter().filter(|step| step.urn == *urn && StepKind::of(step.op).is_change());
    changing.find_map(|step| step.old.as_ref().map(|old| Arc::clone(&old.inputs)))
}

/// Returns a decided registration as a plan has it.
pub(super) fn planned(decided: &DecidedRegistration<'_>) -> PlannedRegistration {
    let steps = &decided.steps;
    let own = || steps.iter().filter(|step| step.urn == *decided.urn);
    let change =
        own().find(|step| !step.diffs.is_empty() || !step.detailed_diff.is_empty() || !step.replace_keys.is_empty());
    PlannedRegistration {
        options: options(decided.goal),
        inputs: Arc::clone(&decided.goal.inputs),
        checked: own().find_map(|step| step.new.as_ref()).map(|new| Arc::clone(&new.inputs)),
        steps: steps.iter().map(|step| PlannedStep { op: step.op, urn: step.urn.clone() }).collect(),
        replace_keys: change.map(|step| step.replace_keys.clone()).unwrap_or_default(),
        diffs: change.map(|step| step.diffs.clone()).unwrap_or_default(),
        detailed_diff: change.map(|step| step.detailed_diff.clone()).unwrap_or_default(),
    }
}

/// Returns the options of a goal as texts; those that are not set are missing.
fn options(goal: &Goal) -> std::collections::BTreeMap<String, String> {
    let list = |values: &[String]| (!values.is_empty()).then(|| values.join(", "));
    let urns = |urns: &[Urn]| {
        let mut names: Vec<&str> = urns.iter().map(Urn::as_str).collect();
        names.sort_unstable();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let flag = |value: Option<bool>| value.map(|value| value.to_string());
    let timeouts = goal.custom_timeouts;
    let has_timeouts = [timeouts.create, timeouts.update, timeouts.delete, timeouts.read].iter().any(Option::is_some);
    let providers: Vec<String> =
        goal.providers.iter().map(|(package, provider)| format!("{package}: {}", provider.urn)).collect();
    let options = [
        ("parent", goal.parent.as_ref().map(ToString::to_string)),
        ("dependsOn", urns(&goal.dependencies)),
        ("provider", goal.provider.as_ref().map(|provider| provider.urn.to_string())),
        ("providers", list(&providers)),
        ("protect", flag(goal.protect)),
        ("deleteBeforeReplace", flag(goal.delete_before_replace)),
        ("ignoreChanges", list(&goal.ignore_changes)),
        ("replaceOnChanges", list(&goal.replace_on_changes)),
        ("additionalSecretOutputs", list(&goal.additional_secret_outputs)),
        ("aliases", (!goal.aliases.is_empty()).then(|| format!("{:?}", goal.aliases))),
        ("customTimeouts", has_timeouts.then(|| format!("{timeouts:?}"))),
        ("import", goal.import_id.as_ref().map(ToString::to_string)),
        ("retainOnDelete", flag(goal.retain_on_delete)),
        ("deletedWith", goal.deleted_with.as_ref().map(ToString::to_string)),
        ("replaceWith", urns(&goal.replace_with)),
        ("hideDiff", list(&goal.hide_diff)),
        ("version", goal.version.clone()),
        ("pluginDownloadURL", goal.plugin_download_url.clone()),
    ];
    options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
