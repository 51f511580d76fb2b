//! Making the state match the world (engine semantics, section 5.1).

use std::sync::Arc;
use std::time::Instant;

use bridge::provider::{DiffKind, DiffRequest, PropertyDiff, ProviderError};
use futures_util::future::join_all;
use hashbrown::HashSet;
use pulumi_proto::urn::Urn;

use crate::events::{Event, Message, Operation, Severity, StepFailure, StepInfo, StepOp};
use crate::state::{Effect, ResourceState};

use super::decide::change::Change;
use super::decide::condemn::Entry;
use super::engine::Engine;
use super::report;
use super::step::StepError;
use super::steps::{mark_secrets, read};
use super::tables::Tables;

/// What a refresh found.
struct Found {
    result: StepOp,
    /// The entry as it is now; `None`: gone.
    new: Option<Arc<ResourceState>>,
    change: Change,
}

impl Engine {
    /// Reads what is to be read before anything else: everything if the user said so, else what asked for it. Says
    /// whether the user stopped it with something unread.
    pub(super) async fn refresh_first(self: &Arc<Self>) -> bool {
        let everything = self.options.refresh || self.options.operation == Operation::Refresh;
        let entries: Vec<Entry> = {
            let tables = &mut *self.tables();
            let mut chosen = Vec::new();
            for entry in tables.base.iter().filter(|(_, state)| state.view_of.is_none()) {
                let admitted = self.options.scope.admits(&entry.1, &mut tables.scoped);
                let in_scope = admitted && (!self.options.scope.has_targets() || tables.scoped.contains(&entry.1.urn));
                let asked = !entry.1.delete && entry.1.refresh_before_update;
                if (everything && in_scope) || (!everything && asked) {
                    chosen.push(entry.clone());
                }
            }
            chosen
        };
        if entries.is_empty() {
            return false;
        }
        let reading = entries.into_iter().map(|entry| async move {
            let _slot = self.slots.acquire().await.ok();
            if self.signals.stop.is_cancelled() { None } else { Some(self.refresh(&entry).await) }
        });
        let found = join_all(reading).await;
        let stopped = found.iter().any(Option::is_none);
        // All at once: a list without what is gone and with references to it is no state.
        let effects: Vec<Effect> = found.into_iter().flatten().flatten().collect();
        self.defer(|tables| {
            let repairs = tables.repairs(&effects);
            effects.into_iter().chain(repairs).collect()
        })
        .await;
        self.tables().rebase();
        stopped
    }

    /// Reads one entry, and says what is to become of it; `None`: nothing.
    async fn refresh(self: &Arc<Self>, entry: &Entry) -> Option<Effect> {
        let (id, old) = entry;
        let started = Instant::now();
        let mut info = StepInfo {
            op: StepOp::Refresh,
            result: None,
            urn: old.urn.clone(),
            old: Some(Arc::clone(old)),
            new: None,
            replace_keys: Vec::new(),
            diffs: Vec::new(),
            detailed_diff: std::collections::BTreeMap::new(),
            internal: old.is_default_provider(),
        };
        self.emit(Event::StepStarted(Arc::new(info.clone())));
        match self.look(old).await {
            Ok(found) => {
                let effect = match &found.new {
                    Some(new) if new != old => Some(Effect::Rewrite(*id, Arc::clone(new))),
                    Some(_) => None,
                    None => Some(Effect::Remove(*id)),
                };
                if self.options.operation == Operation::Refresh && !info.internal {
                    *self.tables().counts.entry(found.result).or_default() += 1;
                }
                info.result = Some(found.result);
                info.new = found.new;
                info.diffs = found.change.diffs;
                info.detailed_diff = found.change.detailed;
                self.emit(Event::StepSucceeded(Arc::new(info), started.elapsed()));
                effect
            }
            Err(error) => {
                self.note_failure();
                let mut message = Message::new(Severity::Error, report::chain(&error));
                message.plugin = Some(old.type_token.package().to_owned());
                self.complain(&old.urn, None, message);
                if !self.preview() {
                    let failure = StepFailure { message: error.to_string(), indeterminate: false, partial: false };
                    self.emit(Event::StepFailed(Arc::new(info), failure));
                }
                None
            }
        }
    }

    async fn look(self: &Arc<Self>, old: &Arc<ResourceState>) -> Result<Found, StepError> {
        let unchanged = || Found { result: StepOp::Same, new: Some(Arc::clone(old)), change: Change::default() };
        let reference = match &old.provider {
            Some(reference) if old.custom && !old.is_provider() => reference,
            _ => return Ok(unchanged()),
        };
        let instance = self.load_instance(reference).await.map_err(StepError::Host)?;
        if old.pending_replacement {
            return Ok(unchanged());
        }
        let (outputs, inputs) = (Some(Arc::clone(&old.outputs)), Some(Arc::clone(&old.inputs)));
        let reading = read(&instance, &old.urn, &old.id, outputs, inputs, old.custom_timeouts.read).await?;
        let Some(reading) = reading else { return Ok(unchanged()) };
        let reply = reading.reply;
        let (Some(outputs), false) = (reply.outputs, reply.id.is_empty()) else {
            return Ok(Found { result: StepOp::Delete, new: None, change: Change::default() });
        };
        let mut new = (**old).clone();
        new.id = reply.id;
        new.outputs = Arc::new(outputs);
        if let Some(inputs) = reply.inputs {
            new.inputs = Arc::new(inputs);
        }
        new.refresh_before_update = reply.refresh_before_update;
        new.init_errors.clear();
        if let Some((error, failure)) = reading.failure {
            new.init_errors = failure.reasons;
            let mut message = Message::new(Severity::Warning, report::chain(&error));
            message.urn = Some(old.urn.clone());
            self.emit(Event::Message(message));
        }
        mark_secrets(&mut new);
        if new.inputs != old.inputs || new.outputs != old.outputs {
            new.modified = Some(self.now());
        }
        let change = self.drift(&instance, old, &new).await?;
        let result = if change.changed { StepOp::Update } else { StepOp::Same };
        Ok(Found { result, new: Some(Arc::new(new)), change })
    }

    /// What the provider says of the difference: asked with the roles swapped, and turned round again.
    async fn drift(
        &self,
        instance: &super::providers::Instance,
        old: &ResourceState,
        new: &ResourceState,
    ) -> Result<Change, ProviderError> {
        if old.external {
            return Ok(Change { changed: old.outputs != new.outputs, ..Change::default() });
        }
        let Some(provider) = instance.ready().await? else { return Ok(Change::default()) };
        let request = DiffRequest {
            urn: old.urn.clone(),
            id: new.id.clone(),
            olds: Arc::clone(&new.outputs),
            old_inputs: Arc::clone(&new.inputs),
            news: Arc::clone(&old.inputs),
            ignore_changes: old.ignore_changes.clone(),
            allow_unknowns: self.preview(),
        };
        let reply = provider.diff(request).await?;
        let mut change = Change::of_resource(&reply, new, &old.inputs, &old.ignore_changes);
        for diff in change.detailed.values_mut() {
            *diff = PropertyDiff { kind: inverted(diff.kind), ..*diff };
        }
        Ok(change)
    }
}

impl Tables {
    /// Takes references to what is gone out of what these effects leave (section 5.1, item 5).
    fn repairs(&self, effects: &[Effect]) -> Vec<Effect> {
        let mut earlier: HashSet<Urn> = HashSet::new();
        let mut repairs = Vec::new();
        for (id, state) in self.entries_after(effects) {
            if let Some(repaired) = repaired(&state, &earlier) {
                repairs.push(Effect::Rewrite(id, Arc::new(repaired)));
            }
            earlier.insert(state.urn.clone());
        }
        repairs
    }
}

fn repaired(state: &ResourceState, earlier: &HashSet<Urn>) -> Option<ResourceState> {
    let mut new = state.clone();
    new.parent = new.parent.filter(|urn| earlier.contains(urn));
    new.dependencies.retain(|urn| earlier.contains(urn));
    new.property_dependencies = std::mem::take(&mut new.property_dependencies)
        .into_iter()
        .filter_map(|(key, mut urns)| {
            urns.retain(|urn| earlier.contains(urn));
            (!urns.is_empty()).then_some((key, urns))
        })
        .collect();
    new.deleted_with = new.deleted_with.filter(|urn| earlier.contains(urn));
    new.replace_with.retain(|urn| earlier.contains(urn));
    (new != *state).then_some(new)
}

fn inverted(kind: DiffKind) -> DiffKind {
    match kind {
        DiffKind::Add => DiffKind::Delete,
        DiffKind::AddReplace => DiffKind::DeleteReplace,
        DiffKind::Delete => DiffKind::Add,
        DiffKind::DeleteReplace => DiffKind::AddReplace,
        DiffKind::Update | DiffKind::UpdateReplace => kind,
    }
}
