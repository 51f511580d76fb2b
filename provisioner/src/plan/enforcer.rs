//! Enforcer of a plan: the guard of a run, which refuses what the plan does not have.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bridge::message_text::MessageText;
use engine::events::{Message, Severity, StepInfo};
use engine::{DecidedRegistration, PlanGuard};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{TypeToken, Urn};
use tokio::sync::OnceCell;

use super::compare::differences;
use super::planned::{PlannedRegistration, PlannedResource, PlannedStep, StackPlan};
use super::recorder::{planned, read};
use super::step_kind::{StepKind, StepKinds};

/// Number of differences that one message names.
const MAX_DIFFERENCES: usize = 10;

/// Record that a plan is used, which a run makes once, before its first change.
#[async_trait]
pub trait PlanUse: fmt::Debug + Send + Sync {
    /// Records that the plan is used.
    ///
    /// # Errors
    /// The message that the plan was used before, or that this cannot be recorded. Nothing may be changed then.
    async fn record(&self) -> Result<(), Box<Message>>;
}

/// Guard of a run that refuses what its plan does not have.
#[derive(Debug)]
pub struct PlanEnforcer {
    plan: Arc<StackPlan>,
    positions: HashMap<Urn, usize>,
    kinds: StepKinds,
    /// True if planned operations may be left out that are no longer needed.
    allows_fewer: bool,
    plan_use: Arc<dyn PlanUse>,
    used: OnceCell<()>,
    approved: Mutex<BTreeSet<(Urn, StepKind)>>,
}

impl PlanEnforcer {
    /// Creates the guard of a run by a plan. `allows_fewer`: planned operations may be left out that are no longer needed.
    pub fn new(plan: Arc<StackPlan>, allows_fewer: bool, plan_use: Arc<dyn PlanUse>) -> Self {
        let positions = plan.resources.iter().enumerate().map(|(at, resource)| (resource.urn.clone(), at)).collect();
        let kinds = StepKinds::of(&plan.resources);
        Self { plan, positions, kinds, allows_fewer, plan_use, used: OnceCell::new(), approved: Mutex::default() }
    }

    /// Returns the planned changes that a run which has ended has not come to, sorted by URN; none if planned operations may be left
    /// out.
    pub fn left_out(&self) -> Vec<(Urn, StepKind)> {
        if self.allows_fewer {
            return Vec::new();
        }
        let approved = self.approved();
        let changes = self.kinds.iter().filter(|(_, kind)| kind.is_change());
        let left_out = changes.filter(|(urn, kind)| !approved.contains(&((*urn).clone(), *kind)));
        left_out.map(|(urn, kind)| (urn.clone(), kind)).collect()
    }

    /// Returns whether the run has begun a change, so that the plan is used.
    pub fn is_used(&self) -> bool {
        self.used.initialized()
    }

    fn approved(&self) -> MutexGuard<'_, BTreeSet<(Urn, StepKind)>> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resource(&self, urn: &Urn) -> Option<&PlannedResource> {
        self.plan.resources.get(*self.positions.get(urn)?)
    }

    /// Approves steps of these kinds: records that the plan is used if they change something.
    async fn approve(&self, steps: impl Iterator<Item = (Urn, StepKind)>) -> Result<(), Box<Message>> {
        let steps: Vec<_> = steps.collect();
        if steps.iter().any(|(_, kind)| kind.is_change()) {
            self.used.get_or_try_init(|| self.plan_use.record()).await?;
        }
        self.approved().extend(steps);
        Ok(())
    }

    /// Returns what a registration has that the plan does not have.
    fn registration_differences(
        &self,
        planned: &PlannedRegistration,
        now: &PlannedRegistration,
        urn: &Urn,
    ) -> Vec<String> {
        let is_provider = TypeToken::new(urn.type_token()).is_provider();
        let none = BTreeSet::new();
        let renewed = if is_provider { self.plan.renewed.get(urn.name()).unwrap_or(&none) } else { &none };
        let mut found = option_differences(planned, now);
        found.extend(input_differences(&planned.inputs, &now.inputs, renewed, is_provider));
        if let (Some(planned), Some(now)) = (&planned.checked, &now.checked) {
            // What Check returns for an input that differs, differs as well.
            if found.is_empty() {
                let checked = input_differences(planned, now, renewed, is_provider);
                found.extend(checked.into_iter().map(|text| format!("after Check, {text}")));
            }
        }
        found.extend(self.step_differences(planned, now, urn, is_provider));
        // A replacement replaces all properties, for whatever reason.
        if found.is_empty() && !is_provider && own_kind(planned, urn) == StepKind::Update {
            found.extend(diff_differences(planned, now));
        }
        found
    }

    fn step_differences(
        &self,
        planned: &PlannedRegistration,
        now: &PlannedRegistration,
        urn: &Urn,
        is_provider: bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for PlannedStep { op, urn: other } in now.steps.iter().filter(|step| step.urn != *urn) {
            let kind = StepKind::of(*op);
            if !self.kinds.contains(other, kind) {
                found.push(format!("{} would be {}, which the plan does not do", other.name(), kind.participle()));
            }
        }
        let (planned, now) = (own_kind(planned, urn), own_kind(now, urn));
        // Values that are taken anew change a provider resource, and nothing else.
        let renews = is_provider && [planned, now].iter().all(|kind| matches!(kind, StepKind::Same | StepKind::Update));
        let is_fewer = planned.is_change() && !now.is_change();
        if planned == now || renews || (is_fewer && self.allows_fewer) {
            return found;
        }
        found.push(match is_fewer {
            true => format!("it was to be {}, which is no longer needed", planned.participle()),
            false => format!("it would be {} (planned: {})", now.participle(), planned.participle()),
        });
        found
    }
}

#[async_trait]
impl PlanGuard for PlanEnforcer {
    fn seed(&self, urn: &Urn) -> [u8; 32] {
        self.plan.seeds.seed(urn)
    }

    fn approves_steps(&self) -> bool {
        true
    }

    async fn approve_registration(&self, decided: &DecidedRegistration<'_>) -> Result<(), Box<Message>> {
        let urn = decided.urn;
        let Some(planned_registration) = self.resource(urn).and_then(|resource| resource.registration.as_ref()) else {
            return Err(refusal(format_args!("the plan has no resource {}", urn.name())));
        };
        let now = planned(decided);
        let found = self.registration_differences(planned_registration, &now, urn);
        if !found.is_empty() {
            return Err(refusal(format_args!("{} is not as planned: {}", urn.name(), listed(&found))));
        }
        self.approve(now.steps.into_iter().map(|PlannedStep { op, urn }| (urn, StepKind::of(op)))).await?;
        // A planned change that is no longer needed is not left out.
        self.approved().insert((urn.clone(), own_kind(planned_registration, urn)));
        Ok(())
    }

    async fn approve_step(&self, step: &StepInfo) -> Result<(), Box<Message>> {
        let (urn, kind) = (&step.urn, StepKind::of(step.op));
        if !self.kinds.contains(urn, kind) {
            let (name, participle) = (urn.name(), kind.participle());
            return Err(refusal(format_args!("{name} would be {participle}, which the plan does not do")));
        }
        if let (Some(planned), Some(now)) = (self.resource(urn).and_then(|resource| resource.read.as_ref()), read(step))
        {
            let mut found = differences(&planned.properties, &now.properties, &BTreeSet::new());
            if planned.id.is_some() && planned.id != now.id {
                found.push("its id is another one".to_owned());
            }
            if !found.is_empty() {
                return Err(refusal(format_args!("{} is not read as planned: {}", urn.name(), listed(&found))));
            }
        }
        self.approve([(urn.clone(), kind)].into_iter()).await
    }

    async fn approve_default_provider(&self, urn: &Urn) -> Result<(), Box<Message>> {
        match self.resource(urn) {
            Some(_) => Ok(()),
            None => Err(refusal(format_args!("the plan has no default provider {}", urn.name()))),
        }
    }
}

/// Returns the kind of the steps of a registration on its own resource: the strongest, as an import may come before an update.
fn own_kind(registration: &PlannedRegistration, urn: &Urn) -> StepKind {
    let own = registration.steps.iter().filter(|step| step.urn == *urn);
    own.map(|step| StepKind::of(step.op)).find(|kind| kind.is_change()).unwrap_or(StepKind::Same)
}

fn option_differences(planned: &PlannedRegistration, now: &PlannedRegistration) -> Vec<String> {
    // Outputs that are not known yet may bring further dependencies.
    let is_open = planned.inputs.values().any(PropertyValue::contains_unknowns);
    let compared = |options: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        options
            .iter()
            .filter(|(name, _)| !is_open || *name != "dependsOn")
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect()
    };
    let (planned, now) = (compared(&planned.options), compared(&now.options));
    let names: BTreeSet<&String> = planned.keys().chain(now.keys()).collect();
    let text =
        |options: &BTreeMap<String, String>, name| options.get(name).map_or("not set", String::as_str).to_owned();
    let differing = names.into_iter().filter(|name| planned.get(*name) != now.get(*name));
    differing
        .map(|name| format!("its option {name} is {} (planned: {})", text(&now, name), text(&planned, name)))
        .collect()
}

/// Returns the differences of inputs. Secrets of a provider resource are not compared: they are taken anew.
fn input_differences(
    planned: &PropertyMap,
    now: &PropertyMap,
    renewed: &BTreeSet<String>,
    is_provider: bool,
) -> Vec<String> {
    if !is_provider {
        return differences(planned, now, renewed);
    }
    let secret = planned.iter().chain(now).filter(|(_, value)| value.contains_secrets()).map(|(name, _)| name.clone());
    differences(planned, now, &renewed.iter().cloned().chain(secret).collect())
}

/// Returns the changes of properties that the plan does not have. Where it knows all inputs, the changes are equal.
fn diff_differences(planned: &PlannedRegistration, now: &PlannedRegistration) -> Vec<String> {
    let checked = planned.checked.as_ref().unwrap_or(&planned.inputs);
    let open: BTreeSet<&str> =
        checked.iter().filter(|(_, value)| value.contains_unknowns()).map(|(name, _)| name.as_str()).collect();
    let mut names: BTreeSet<&str> = planned.diffs.iter().map(String::as_str).collect();
    names.extend(planned.detailed_diff.keys().map(|path| first_name(path)));
    let now_names = now.diffs.iter().map(String::as_str).chain(now.detailed_diff.keys().map(|path| first_name(path)));
    let new: BTreeSet<&str> = now_names.filter(|name| !names.contains(name) && !open.contains(name)).collect();
    let mut found: Vec<String> =
        new.into_iter().map(|name| format!("{name} would change, which the plan does not have")).collect();
    let has_both = !planned.detailed_diff.is_empty() && !now.detailed_diff.is_empty();
    if found.is_empty() && open.is_empty() && has_both && planned.detailed_diff != now.detailed_diff {
        found.push("the provider reports other changes".to_owned());
    }
    found
}

/// Returns the name of the property at the start of a path.
fn first_name(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

fn listed(found: &[String]) -> String {
    let shown = found.iter().take(MAX_DIFFERENCES).map(String::as_str).collect::<Vec<_>>().join("; ");
    match found.len().saturating_sub(MAX_DIFFERENCES) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn refusal(text: fmt::Arguments<'_>) -> Box<Message> {
    let hint = "nothing else was begun; make a new plan with `sc preview --save-plan FILE`, and review it".into();
    Box::new(Message { hint: Some(hint), ..Message::new(Severity::Error, MessageText::new(text)) })
}
