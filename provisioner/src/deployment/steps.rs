//! Doing steps: what is done to one entry, how it is recorded, what is told of it (engine semantics, sections 1.3, 4 and 6.3).

use std::sync::Arc;
use std::time::Instant;

use bridge::provider::{Provider, ProviderError, ViewOp};
use jiff::Timestamp;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::ProviderReference;

use crate::events::{Event, StepFailure, StepOp};
use crate::state::{Effect, OperationKind, ResourceState};

use super::calls::{Reading, delete, read};
use super::decide::condemn::Entry;
use super::decide::deletes::{Deletion, Undeletable, deletion};
use super::decide::existing::as_found;
use super::engine::Engine;
use super::providers::Instance;
use super::report;
use super::step::{Actor, Step, StepError};
use super::tables::Tables;
use super::views::ViewLog;

/// What a step left behind.
#[derive(Debug)]
pub(super) struct Done {
    /// The entry it made or confirmed.
    pub(super) new: Option<Entry>,
    /// It exists but did not come up; recorded, and a failure all the same.
    partial: Option<ProviderError>,
}

impl Engine {
    /// Whether a step may begin once its provider is configured, which may take long. What comes of that, the step tells.
    pub(super) async fn may_begin(&self, step: &Step) -> bool {
        if let Actor::Instance(instance) = &step.actor {
            instance.ready().await.ok();
        }
        !self.halted()
    }

    /// Does a step, records it and tells of it.
    pub(super) async fn execute(self: &Arc<Self>, mut step: Step) -> Result<Option<Entry>, StepError> {
        // What is to be deleted waits for nobody: nothing is made of it.
        if let (true, None, Some(state)) = (step.carried, &step.doomed_as, &step.new) {
            self.wait_for_references(state).await;
        }
        if let Some(new) = &mut step.new {
            *new = self.tables().as_named_now(new);
        }
        let started = Instant::now();
        self.emit(Event::StepStarted(Arc::new(step.info(step.new.clone()))));
        let views = ViewLog::of_step(self, &step);
        let outcome = match self.perform(&step, &views).await {
            Ok(Done { new, partial: None }) => Ok(new),
            Ok(Done { partial: Some(error), .. }) => Err(StepError::Provider(error)),
            Err(error) => Err(error),
        };
        let deletes = matches!(step.op, StepOp::Delete | StepOp::DeleteReplaced);
        // What goes with a resource is told before the resource itself is gone; what comes with it, after it is there.
        let mut of_views = if deletes { views.conclude(true) } else { Ok(()) };
        match &outcome {
            Ok(new) => {
                let info = step.info(new.as_ref().map(|(_, state)| Arc::clone(state)));
                if !step.internal && step.op != StepOp::Read {
                    self.count(step.op);
                }
                self.emit(Event::StepSucceeded(Arc::new(info), started.elapsed()));
            }
            Err(error) => self.tell_failure(&step, error),
        }
        if !deletes {
            of_views = views.conclude(true);
        }
        let outcome = outcome.and_then(|new| of_views.map(|()| new).map_err(StepError::Refused));
        if !matches!(step.op, StepOp::DeleteReplaced | StepOp::Replace) {
            self.settle(&step.urn);
        }
        outcome
    }

    /// Counts a step that succeeded, unless it is only a part of one that counts.
    pub(super) fn count(&self, op: StepOp) {
        let logical = matches!(
            op,
            StepOp::Same
                | StepOp::Create
                | StepOp::Update
                | StepOp::Delete
                | StepOp::Replace
                | StepOp::Read
                | StepOp::Discard
                | StepOp::Import
        );
        if logical {
            *self.tables().counts.entry(op).or_default() += 1;
        }
    }

    fn tell_failure(&self, step: &Step, error: &StepError) {
        self.tables().failed.insert(step.urn.clone());
        match error {
            StepError::NotDeleted { why: Undeletable::Protected, .. } => self.note_complaint(),
            StepError::Provider(_)
            | StepError::Host(_)
            | StepError::Refused(_)
            | StepError::NotDeleted { why: Undeletable::Hooked | Undeletable::Unserved, .. } => self.note_failure(),
            // What cannot be written down must not be done.
            StepError::State(_) => self.note_break(),
        }
        let (indeterminate, partial) = match error {
            StepError::Provider(error) => (error.is_indeterminate(), step.leaves_something(error)),
            StepError::State(_) | StepError::Host(_) | StepError::Refused(_) | StepError::NotDeleted { .. } => {
                (false, false)
            }
        };
        self.complain(&step.urn, step.source, report::step_message(step, error));
        if !self.preview() {
            let failure = StepFailure { message: error.to_string(), indeterminate, partial };
            let info = step.info(step.new.clone());
            self.emit(Event::StepFailed(Arc::new(info), failure));
        }
    }

    async fn perform(self: &Arc<Self>, step: &Step, views: &Arc<ViewLog>) -> Result<Done, StepError> {
        match step.op {
            StepOp::Same => self.perform_same(step, views).await,
            StepOp::Create | StepOp::CreateReplacement => self.perform_create(step, views).await,
            StepOp::Update => self.perform_update(step, views).await,
            StepOp::Delete | StepOp::DeleteReplaced => self.perform_delete(step, views).await,
            StepOp::Read | StepOp::ReadReplacement => self.perform_read(step, views).await,
            StepOp::Import | StepOp::ImportReplacement => self.perform_import(step, views).await,
            StepOp::Discard | StepOp::DiscardReplaced | StepOp::RemovePendingReplace => {
                let (entry, _) = step.old.as_ref().ok_or_else(|| StepError::Refused("nothing to remove".into()))?;
                self.end(None, |tables| tables.departure(*entry)).await?;
                Ok(Done { new: None, partial: None })
            }
            StepOp::Replace | StepOp::Refresh => Ok(Done { new: None, partial: None }),
        }
    }

    async fn perform_same(self: &Arc<Self>, step: &Step, views: &Arc<ViewLog>) -> Result<Done, StepError> {
        let (Some((old_id, old)), Some(new)) = (&step.old, &step.new) else {
            return Ok(Done { new: None, partial: None });
        };
        if step.carried {
            // As it is now: what it refers to may have got a new name since the step was planned.
            self.defer(|tables| {
                let mut effects = tables.keep(*old_id);
                effects.extend(step.doomed_as.iter().flat_map(|asked| tables.doom(*old_id, asked)));
                effects
            })
            .await;
            let new = self.tables().ledger.get(*old_id).map(|state| (*old_id, Arc::clone(state)));
            return Ok(Done { new, partial: None });
        }
        views.note(ViewOp::Same);
        let mut new = (**new).clone();
        new.id.clone_from(&old.id);
        new.outputs = Arc::clone(&old.outputs);
        mark_secrets(&mut new);
        if let Actor::Parked(provider) = &step.actor {
            self.keep_provider(provider, old, &new).await;
        }
        if **old == new {
            let entry = (*old_id, Arc::clone(old));
            self.defer(|tables| with_views(tables, tables.keep(*old_id), views)).await;
            return Ok(Done { new: Some(entry), partial: None });
        }
        let entry = self.new_entry(new);
        self.end(None, |tables| with_views(tables, tables.succession(*old_id, &entry), views)).await?;
        Ok(Done { new: Some(entry), partial: None })
    }

    /// An unchanged provider resource: configured with what is recorded, unless an instance of it is at work already.
    async fn keep_provider(self: &Arc<Self>, parked: &Arc<dyn Provider>, old: &ResourceState, new: &ResourceState) {
        let Some(reference) = new.as_provider_reference() else { return };
        let old_reference = ProviderReference::new(old.urn.clone(), old.id.as_str());
        let make = || Instance::configure(Arc::clone(parked), new.urn.clone(), old.id.clone(), &old.inputs, &self.jobs);
        let instance = self.providers.known_or(&old_reference, make).await;
        if !Arc::ptr_eq(instance.provider(), parked) {
            self.close_later(Arc::clone(parked));
        }
        if reference != old_reference {
            self.providers.adopt(reference, instance);
        }
    }

    async fn perform_create(self: &Arc<Self>, step: &Step, views: &Arc<ViewLog>) -> Result<Done, StepError> {
        let wanted = step.new.as_ref().ok_or_else(|| StepError::Refused("nothing to create".into()))?;
        let mut new = (**wanted).clone();
        let operation = match &step.actor {
            Actor::Nobody | Actor::Missing(_) => None,
            Actor::Instance(_) | Actor::Parked(_) => Some(self.begin(OperationKind::Creating, wanted).await?),
        };
        let outcome = self.create(step, &mut new, views).await;
        let partial = match outcome {
            Ok(()) => None,
            Err(StepError::Provider(ProviderError::Partial { message, failure }))
                if !failure.id.is_empty() || self.preview() =>
            {
                new.id = failure.id.clone();
                new.outputs = Arc::new(failure.outputs.clone());
                new.init_errors = failure.reasons.clone();
                new.refresh_before_update = failure.refresh_before_update;
                Some(ProviderError::Partial { message, failure })
            }
            // Nobody can say whether it exists: it stays pending.
            Err(error @ StepError::Provider(ProviderError::Died { method: "Create", reached: true, .. })) => {
                return Err(error);
            }
            Err(error) => {
                self.end_without_effect(operation).await?;
                return Err(error);
            }
        };
        new.created = Some(self.now());
        new.modified = new.created;
        mark_secrets(&mut new);
        let entry = self.new_entry(new);
        // What comes after a deletion takes the old entry's place; otherwise the old one awaits its own deletion.
        self.end(operation, |tables| {
            let effects = match &step.old {
                None => tables.addition(&entry),
                Some((old, _)) if step.delete_first => tables.fulfilment(*old, &entry),
                Some((old, _)) => tables.replacement(*old, &entry, None),
            };
            with_views(tables, effects, views)
        })
        .await?;
        Ok(Done { new: Some(entry), partial })
    }

    async fn perform_update(self: &Arc<Self>, step: &Step, views: &Arc<ViewLog>) -> Result<Done, StepError> {
        let (Some((old_id, old)), Some(new)) = (&step.old, &step.new) else {
            return Err(StepError::Refused("nothing to update".into()));
        };
        let mut new = (**new).clone();
        new.id.clone_from(&old.id);
        let operation = match &step.actor {
            Actor::Nobody | Actor::Missing(_) => None,
            Actor::Instance(_) | Actor::Parked(_) => {
                Some(self.begin(OperationKind::Updating, &Arc::new(new.clone())).await?)
            }
        };
        let partial = match self.update(step, old, &mut new, views).await {
            Ok(()) => None,
            Err(StepError::Provider(ProviderError::Partial { message, failure })) => {
                new.outputs = Arc::new(failure.outputs.clone());
                new.inputs = Arc::clone(&old.inputs);
                new.init_errors = failure.reasons.clone();
                new.refresh_before_update = failure.refresh_before_update;
                Some(ProviderError::Partial { message, failure })
            }
            Err(error) => {
                self.end(operation, |tables| views.effects(tables, &[], false)).await?;
                return Err(error);
            }
        };
        new.modified = Some(self.now());
        mark_secrets(&mut new);
        let entry = self.new_entry(new);
        self.end(operation, |tables| with_views(tables, tables.succession(*old_id, &entry), views)).await?;
        Ok(Done { new: Some(entry), partial })
    }

    async fn perform_delete(self: &Arc<Self>, step: &Step, views: &Arc<ViewLog>) -> Result<Done, StepError> {
        let (old_id, old) = step.old.as_ref().ok_or_else(|| StepError::Refused("nothing to delete".into()))?;
        let replacing = step.op == StepOp::DeleteReplaced;
        let with_its_owner = {
            let tables = self.tables();
            let tied_to = old.deleted_with.as_ref().filter(|_| !tables.untied.contains(old_id));
            tied_to.is_some_and(|urn| tables.deleted.contains(urn))
        };
        let asks = match deletion(old, replacing, with_its_owner, self.preview()) {
            Deletion::Refused(why) => return Err(report::not_deleted(&old.urn, why)),
            Deletion::Forget => false,
            Deletion::Ask => true,
        };
        if self.preview() {
            views.note(ViewOp::Delete);
        }
        let operation = match &step.actor {
            Actor::Instance(instance) if asks => {
                let operation = self.begin(OperationKind::Deleting, old).await?;
                if let Err(error) = delete(instance, old, views.views()).await {
                    self.end(Some(operation), |tables| views.effects(tables, &[], false)).await?;
                    return Err(error.into());
                }
                Some(operation)
            }
            Actor::Missing(error) if asks => return Err(StepError::Host(error.clone())),
            Actor::Nobody | Actor::Parked(_) | Actor::Instance(_) | Actor::Missing(_) => None,
        };
        if let Some(reference) = old.as_provider_reference().filter(|_| !self.preview())
            && let Some(instance) = self.providers.forget(&reference)
        {
            self.retire(instance);
        }
        let promises = step.delete_first && !old.delete;
        self.end(operation, |tables| {
            let mut effects = views.effects(tables, &[], false);
            effects.extend(if promises { tables.promise(*old_id) } else { tables.departure(*old_id) });
            effects
        })
        .await?;
        if let Some(gone) = &step.gone {
            gone.send_replace(true);
        }
        Ok(Done { new: None, partial: None })
    }

    async fn perform_read(&self, step: &Step, views: &Arc<ViewLog>) -> Result<Done, StepError> {
        let wanted = step.new.as_ref().ok_or_else(|| StepError::Refused("nothing to read".into()))?;
        let mut new = (**wanted).clone();
        let mut partial = None;
        let operation = self.begin(OperationKind::Reading, wanted).await?;
        if let Actor::Instance(instance) = &step.actor
            && !new.id.is_empty()
        {
            let known = Some(Arc::clone(&new.inputs));
            match read(instance, &new.urn, &new.id, known.clone(), known, 0.0, views.views()).await {
                Ok(None) => {}
                Ok(Some(Reading { reply, failure })) => {
                    let Some(outputs) = reply.outputs else {
                        self.end_without_effect(Some(operation)).await?;
                        return Err(StepError::Refused(report::does_not_exist(&new.urn, &new.id)));
                    };
                    if !reply.id.is_empty() {
                        new.id = reply.id;
                    }
                    new.outputs = Arc::new(outputs);
                    if let Some((error, failure)) = failure {
                        new.init_errors = failure.reasons;
                        partial = Some(error);
                    }
                }
                Err(error) => {
                    self.end_without_effect(Some(operation)).await?;
                    return Err(error.into());
                }
            }
        }
        mark_secrets(&mut new);
        if let Some((_, old)) = &step.old {
            new.created = old.created;
            new.modified = if old.outputs == new.outputs { old.modified } else { Some(self.now()) };
        }
        let entry = self.new_entry(new);
        if let Some((_, old)) = &step.old
            && step.op == StepOp::Read
            && old.outputs != entry.1.outputs
        {
            *self.tables().counts.entry(StepOp::Read).or_default() += 1;
        }
        self.end(Some(operation), |tables| {
            let effects = match &step.old {
                None => tables.addition(&entry),
                Some((old, _)) if step.op == StepOp::ReadReplacement => tables.replacement(*old, &entry, None),
                Some((old, _)) => tables.succession(*old, &entry),
            };
            with_views(tables, effects, views)
        })
        .await?;
        Ok(Done { new: Some(entry), partial })
    }

    async fn perform_import(&self, step: &Step, views: &Arc<ViewLog>) -> Result<Done, StepError> {
        let wanted = step.new.as_ref().ok_or_else(|| StepError::Refused("nothing to import".into()))?;
        if let (StepOp::Import, Some((_, old))) = (step.op, &step.old) {
            return Err(StepError::Refused(report::is_recorded(&old.urn, &old.id)));
        }
        let operation = self.begin(OperationKind::Importing, wanted).await?;
        let reading = match &step.actor {
            Actor::Instance(instance) => {
                let timeout = wanted.custom_timeouts.read;
                let reading = read(instance, &wanted.urn, &wanted.id, None, None, timeout, views.views()).await;
                reading.map_err(StepError::from)
            }
            Actor::Missing(error) => Err(StepError::Host(error.clone())),
            Actor::Nobody | Actor::Parked(_) => Ok(None),
        };
        let found = reading.and_then(|reading| {
            let Some(Reading { reply, failure }) = reading else { return Ok((**wanted).clone()) };
            let reasons = failure.map(|(_, failure)| failure.reasons).unwrap_or_default();
            as_found(wanted, reply, &step.known_inputs, reasons)
                .map_err(|why| StepError::Refused(report::not_taken(wanted, why)))
        });
        let mut new = match found {
            Ok(new) => new,
            Err(error) => {
                self.end_without_effect(Some(operation)).await?;
                return Err(error);
            }
        };
        new.created = Some(self.now());
        new.modified = new.created;
        mark_secrets(&mut new);
        let entry = self.new_entry(new);
        // What was imported under another name before is deleted under the name of its successor.
        self.end(Some(operation), |tables| {
            let effects = match &step.old {
                None => tables.addition(&entry),
                Some((old, _)) => tables.replacement(*old, &entry, Some(&entry.1.urn)),
            };
            with_views(tables, effects, views)
        })
        .await?;
        Ok(Done { new: Some(entry), partial: None })
    }

    fn new_entry(&self, state: ResourceState) -> Entry {
        (self.tables().ledger.new_entry(), Arc::new(state))
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// What a step records, and what became of the views of its resource.
fn with_views(tables: &Tables, mut effects: Vec<Effect>, views: &ViewLog) -> Vec<Effect> {
    let of_views = views.effects(tables, &effects, true);
    effects.extend(of_views);
    effects
}

/// Marks the outputs that must be secret, whatever the provider said (engine semantics, section 7).
pub(super) fn mark_secrets(state: &mut ResourceState) {
    let must_be_secret = |key: &String, value: &PropertyValue| {
        // Ids are none of the outputs that may be named.
        let is_named = || key != "id" && state.additional_secret_outputs.contains(key);
        !value.is_secret() && (state.inputs.get(key).is_some_and(PropertyValue::is_secret) || is_named())
    };
    if !state.outputs.iter().any(|(key, value)| must_be_secret(key, value)) {
        return;
    }
    let marked = state.outputs.iter().map(|(key, value)| {
        let value = value.clone();
        let secret = must_be_secret(key, &value);
        (key.clone(), if secret { PropertyValue::secret(value) } else { value })
    });
    state.outputs = Arc::new(marked.collect());
}
