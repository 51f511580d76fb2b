//! From a registration to its steps (engine semantics, sections 2.1 to 2.11).

use std::sync::Arc;

use bridge::provider::Provider;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;
use tokio::sync::{RwLockReadGuard, watch};

use crate::events::{Message, StepOp};

use super::decide::autonaming::Proposal;
use super::decide::condemn::Entry;
use super::decide::existing::must_import;
use super::decide::{
    Answers, Decision, Kind, ProviderChange, Refusal, ReplaceOrder, Replacement, Settlement, Situation, decide,
    replaced_partner,
};
use super::engine::Engine;
use super::goal::Goal;
use super::providers::{INTERNAL_KEY, Instance, VERSION_KEY};
use super::registrar::{Refused, Registered, RegistrationResult};
use super::report;
use super::step::Step;

/// A registration on its way to a settlement.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) goal: Goal,
    pub(super) urn: Urn,
    pub(super) kind: Kind,
    pub(super) old: Option<Entry>,
    pub(super) internal: bool,
    pub(super) imported: bool,
    pub(super) in_scope: bool,
    /// Whether it is read where a refresh goes by the program.
    pub(super) is_read: bool,
    pub(super) seed: [u8; 32],
    /// The physical name that is proposed to the provider.
    pub(super) naming: Option<Proposal>,
    pub(super) answers: Answers,
    /// Who serves it; nobody for components and provider resources.
    pub(super) instance: Option<Arc<Instance>>,
    /// The new instance of a provider resource, checked and not configured.
    pub(super) parked: Option<Arc<dyn Provider>>,
}

impl Engine {
    /// Takes a registration through to its end. `internal` marks what no program asked for.
    pub(super) async fn register(self: &Arc<Self>, mut goal: Goal, internal: bool) -> Result<Registered, Refused> {
        if self.halted() {
            return Err(Refused);
        }
        let urn = Urn::new(
            &self.options.stack,
            &self.options.project,
            goal.parent.as_ref(),
            goal.type_token.as_str(),
            &goal.name,
        );
        let kind = match (goal.custom, goal.type_token.is_provider()) {
            (false, _) => Kind::Component,
            (true, true) => Kind::Provider,
            (true, false) => Kind::Custom,
        };
        if goal.source.is_none() {
            goal.source = self.place_of_component(&urn, goal.parent.as_ref());
        }
        self.inherit(&urn, &mut goal)?;
        if goal.remote && goal.provider.is_none() {
            goal.provider = goal.providers.get(goal.type_token.package()).cloned();
        }
        if (kind == Kind::Custom || goal.remote) && goal.provider.is_none() {
            let package = goal.type_token.package().to_owned();
            let (version, url) = (&goal.version, &goal.plugin_download_url);
            // Boxed, like what follows: what waits for a slot stays small, for ten thousand may.
            let reference = Box::pin(self.default_provider(&urn, &package, version, url, goal.source)).await?;
            goal.provider = Some(reference);
        }
        if kind == Kind::Provider {
            complete_provider_inputs(&mut goal);
        }
        self.tell_secrets(&goal.inputs);
        if goal.remote {
            // It holds no slot and no lock: its children need them.
            return Box::pin(self.construct(goal, urn)).await;
        }
        let _slot = match kind {
            Kind::Custom => self.slots.acquire().await.ok(),
            Kind::Component | Kind::Provider => None,
        };
        if self.halted() {
            return Err(Refused);
        }
        Box::pin(self.take_through(goal, urn, kind, internal)).await
    }

    async fn take_through(
        self: &Arc<Self>,
        goal: Goal,
        urn: Urn,
        kind: Kind,
        internal: bool,
    ) -> Result<Registered, Refused> {
        let deciding = self.deciding.read().await;
        let registration = match self.identify(goal, urn, kind, internal).await {
            Ok(registration) => registration,
            Err(answer) => return answer,
        };
        if let Some((_, old)) = &registration.old {
            // Check and Diff are told these, too.
            [&old.inputs, &old.outputs].into_iter().for_each(|values| self.tell_secrets(values));
        }
        self.converse(registration, deciding).await
    }

    /// Asks until the decision stands, then does what it says.
    async fn converse(
        self: &Arc<Self>,
        mut registration: Registration,
        deciding: RwLockReadGuard<'_, ()>,
    ) -> Result<Registered, Refused> {
        if registration.is_read
            && self.reads_registrations()
            && let Err(answer) = self.refresh_registered(&mut registration).await
        {
            return answer;
        }
        let old = registration.old.as_ref().map(|(_, old)| &**old);
        if registration.in_scope
            && must_import(self.options.operation, registration.kind, &registration.goal.import_id, old)
            && let Err(answer) = self.import(&mut registration).await
        {
            return answer;
        }
        let settlement = self.settlement(&mut registration).await?;
        let chain = if let Settlement::Replace(Replacement { order: ReplaceOrder::DeleteFirst, .. }) = settlement {
            // The walk over the dependents must see a decided picture; what it sees may change this decision, too.
            drop(deciding);
            let _alone = self.deciding.write().await;
            let settlement = self.settlement(&mut registration).await?;
            self.plan(&registration, settlement).await?
        } else {
            let chain = self.plan(&registration, settlement).await?;
            drop(deciding);
            chain
        };
        self.run_chain(registration, chain).await
    }

    /// Asks until the decision stands.
    async fn settlement(self: &Arc<Self>, registration: &mut Registration) -> Result<Settlement, Refused> {
        loop {
            if self.halted() {
                return Err(Refused);
            }
            match self.decision(registration) {
                Decision::Ask(question) => self.ask(registration, question).await?,
                Decision::Settle(settlement) => return Ok(settlement),
                Decision::RefuseInputs(failures) => {
                    self.refuse_inputs(registration, &failures);
                    return Err(Refused);
                }
                Decision::Refuse(refusal) => {
                    let message = report::refusal(&registration.urn, refusal);
                    self.break_off(&registration.urn, registration.goal.source, message);
                    return Err(Refused);
                }
            }
        }
    }

    fn decision(&self, registration: &Registration) -> Decision {
        let tables = self.tables();
        let goal = &registration.goal;
        let old = registration.old.as_ref().map(|(_, state)| &**state);
        // An import has taken the place of what went down already.
        let condemned = tables.condemned(&registration.urn).filter(|_| !registration.imported);
        let renamed_from = goal.provider.as_ref().and_then(|provider| tables.alias_of.get(&provider.urn));
        let old_provider = old.and_then(|old| old.provider.as_ref());
        let needs_missing = !tables.skipped.is_empty() && {
            let state = self.new_state(registration, Arc::default());
            state.references().any(|urn| tables.skipped.contains(urn))
        };
        decide(
            &Situation {
                operation: self.options.operation,
                kind: registration.kind,
                preview: self.preview(),
                goal,
                old,
                imported: registration.imported,
                in_scope: registration.in_scope,
                needs_missing,
                recreating: condemned.map(|condemned| condemned.keys.as_slice()),
                marked: self.options.replace.iter().any(|pattern| pattern.matches(&registration.urn)),
                replaced_partner: replaced_partner(goal, &tables.replaced),
                provider: ProviderChange::between(
                    registration.kind,
                    old_provider,
                    goal.provider.as_ref(),
                    renamed_from,
                ),
                protect: goal.protect.unwrap_or_default(),
                delete_before_replace: goal.delete_before_replace,
            },
            &registration.answers,
        )
    }

    /// Reads what is to be taken over and records it; the conversation then goes on as with any recorded resource.
    /// The answer to the registration where that fails.
    async fn import(self: &Arc<Self>, registration: &mut Registration) -> Result<(), Result<Registered, Refused>> {
        // What another one's replacement takes down is gone before this takes its place.
        if !self.wait_until_gone(&registration.urn).await {
            return Err(self.failed(registration.urn.clone()));
        }
        let mut new = self.new_state(registration, Arc::default());
        if !self.preview() {
            self.refuse_skipped_dependencies(&new, registration.goal.source).map_err(Err)?;
        }
        self.refuse_circle(registration.old.as_ref(), registration.goal.source, || new.clone()).map_err(Err)?;
        new.id.clone_from(&registration.goal.import_id);
        let op = if registration.old.is_some() { StepOp::ImportReplacement } else { StepOp::Import };
        let mut step = self.step(registration, op);
        step.old.clone_from(&registration.old);
        step.new = Some(Arc::new(new));
        let replaces = step.old.is_some();
        let outcome = if self.may_begin(&step).await { self.execute(step).await.ok() } else { None };
        let Some(entry) = outcome else {
            return Err(self.failed(registration.urn.clone()));
        };
        if replaces {
            self.tables().replaced.insert(registration.urn.clone());
            // A marker for the display: it cannot fail.
            self.execute(self.step(registration, StepOp::Replace)).await.ok();
        }
        registration.old = entry;
        registration.imported = true;
        Ok(())
    }

    /// Does the steps of a chain, one after the other, and answers the registration.
    async fn run_chain(self: &Arc<Self>, registration: Registration, chain: Vec<Step>) -> Result<Registered, Refused> {
        let urn = registration.urn.clone();
        let mut outcome = None;
        if let ([], Some(old)) = (chain.as_slice(), registration.old) {
            self.wait_until_carried(&old.1.urn).await;
            outcome = Some(old);
        }
        if !self.wait_until_gone(&urn).await {
            return self.failed(urn);
        }
        for step in chain {
            if self.halted() {
                self.settle(&urn);
                return Err(Refused);
            }
            if !all_gone(&step.after).await {
                return self.failed(urn);
            }
            let outcome_of_step = match step.old.clone().filter(|_| step.op == StepOp::DeleteReplaced) {
                Some(entry) => {
                    self.begin_deletion(&entry).await;
                    let outcome =
                        if self.may_begin(&step).await { self.execute(step).await.map_err(drop) } else { Err(()) };
                    self.end_deletion(&entry);
                    outcome
                }
                None => self.execute(step).await.map_err(drop),
            };
            match outcome_of_step {
                Ok(Some(entry)) => outcome = Some(entry),
                Ok(None) => {}
                Err(_) => return self.failed(urn),
            }
        }
        let Some(entry) = outcome else {
            let skipped = RegistrationResult::Skipped;
            return Ok(Registered::without_outputs(urn, skipped));
        };
        self.settle(&urn);
        let state = Arc::clone(&entry.1);
        let mut tables = self.tables();
        // It may stay under its old name.
        tables.keep_name(&urn, &state.urn);
        let urn = state.urn.clone();
        tables.news.insert(urn.clone(), entry);
        drop(tables);
        Ok(Registered::as_recorded(urn, &state))
    }

    pub(super) fn failed(&self, urn: Urn) -> Result<Registered, Refused> {
        self.settle(&urn);
        if self.options.continue_on_error {
            self.tables().failed.insert(urn.clone());
            Ok(Registered::without_outputs(urn, RegistrationResult::Failed))
        } else {
            Err(Refused)
        }
    }

    /// Waits for a resource that another one's replacement takes down to be gone. False where that failed.
    async fn wait_until_gone(&self, urn: &Urn) -> bool {
        let gone = self.tables().condemned(urn).map(|condemned| condemned.gone.clone());
        all_gone(gone.as_slice()).await
    }
}

/// Waits for all these entries to be gone. False where one of them stays.
async fn all_gone(entries: &[watch::Receiver<bool>]) -> bool {
    for gone in entries {
        if gone.clone().wait_for(|gone| *gone).await.is_err() {
            return false;
        }
    }
    true
}

/// The inputs that the engine itself gives a provider resource: the version of its package and where it comes from.
fn complete_provider_inputs(goal: &mut Goal) {
    use pulumi_proto::property::PropertyValue;
    let inputs = Arc::make_mut(&mut goal.inputs);
    if !goal.version.is_empty() {
        inputs.entry(VERSION_KEY.to_owned()).or_insert_with(|| goal.version.as_str().into());
    }
    if inputs.contains_key(VERSION_KEY) || !goal.plugin_download_url.is_empty() {
        let internal = inputs.entry(INTERNAL_KEY.to_owned()).or_insert_with(|| PropertyMap::new().into());
        if let PropertyValue::Map(internal) = internal
            && !goal.plugin_download_url.is_empty()
        {
            internal.insert("pluginDownloadURL".to_owned(), goal.plugin_download_url.as_str().into());
        }
    }
}

/// What a provider makes random properties of: 32 bytes, as Pulumi's engine gives.
pub(super) fn random_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    seed[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    seed
}

/// Tells of a complaint that a preview goes on after.
pub(super) fn complaint(registration: &Registration, refusal: Refusal) -> Message {
    report::refusal(&registration.urn, refusal)
}
