//! Replacements, and what goes down with them (engine semantics, sections 2.11 and 2.12).

use std::sync::Arc;

use bridge::provider::{DiffConfigRequest, DiffRequest, ProviderError};
use hashbrown::HashSet;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;
use tokio::sync::watch;

use crate::events::{Message, Severity, StepOp};
use crate::state::ResourceState;

use super::decide::change::Change;
use super::decide::condemn::{self, Entry, Probe, Walk};
use super::decide::deletes::{Deletion, deletion};
use super::decide::{ReplaceOrder, Replacement};
use super::engine::Engine;
use super::providers::visible;
use super::register::{Registration, complaint};
use super::registrar::Refused;
use super::report;
use super::step::{Actor, Step};
use super::tables::Condemned;

impl Engine {
    /// The chain of a replacement, and the marks it leaves on the tables.
    pub(super) async fn plan_replacement(
        self: &Arc<Self>,
        registration: &Registration,
        replacement: Replacement,
    ) -> Result<Vec<Step>, Refused> {
        let Replacement { inputs, change, order, complaint: refusal } = replacement;
        if let Some(refusal) = refusal {
            let message = complaint(registration, refusal);
            match refusal {
                super::decide::Refusal::ImportMismatch => {
                    let warning =
                        Message { severity: Severity::Warning, urn: Some(registration.urn.clone()), ..message };
                    self.emit(crate::events::Event::Message(warning));
                }
                super::decide::Refusal::Protected | super::decide::Refusal::UnknownTrigger => {
                    self.complain(&registration.urn, registration.goal.source, message);
                    self.note_complaint();
                }
            }
        }
        if let Some((_, old)) = &registration.old {
            self.refuse_undeletable(registration, old, &HashSet::new())?;
        }
        let mut chain = Vec::new();
        if let (ReplaceOrder::DeleteFirst, Some(old)) = (order, &registration.old) {
            chain = self.plan_deletes(registration, old).await?;
        }
        self.tables().replaced.insert(registration.urn.clone());
        let mut create = self.step(registration, StepOp::CreateReplacement);
        create.old.clone_from(&registration.old);
        create.new = Some(Arc::new(self.new_state(registration, inputs)));
        create.change = change.clone();
        create.delete_first = order != ReplaceOrder::CreateFirst;
        let mut replace = self.step(registration, StepOp::Replace);
        replace.old.clone_from(&registration.old);
        replace.change = change;
        match order {
            ReplaceOrder::CreateFirst | ReplaceOrder::Resume => chain.extend([create, replace]),
            ReplaceOrder::DeleteFirst | ReplaceOrder::Recreate => chain.extend([replace, create]),
        }
        Ok(chain)
    }

    /// The deletes that come before a replacement: what cannot live without the root, in reverse, then the root itself.
    async fn plan_deletes(self: &Arc<Self>, registration: &Registration, root: &Entry) -> Result<Vec<Step>, Refused> {
        let loaded = self.tables().as_loaded(root);
        let mut condemned = match self.condemned_with(&loaded, false).await {
            Ok(condemned) => condemned,
            Err(error) => {
                let message = Message::new(Severity::Error, report::chain(&error));
                self.break_off(&registration.urn, registration.goal.source, message);
                return Err(Refused);
            }
        };
        condemned.reverse();
        let mut seen = HashSet::new();
        condemned.retain(|condemned| seen.insert(condemned.entry.0));
        let doomed = condemned.iter().map(|condemned| &condemned.entry.1.urn).chain([&loaded.1.urn]);
        let doomed: HashSet<Urn> = doomed.cloned().collect();
        let after = {
            let tables = self.tables();
            let after = tables.going_dependents(&doomed);
            // What another root takes down is not deleted twice, only waited for.
            condemned.retain(|condemned| !tables.is_going(condemned.entry.0));
            after
        };
        for condemned in &condemned {
            self.refuse_undeletable(registration, &condemned.entry.1, &doomed)?;
        }
        let protected: Vec<Urn> = condemned
            .iter()
            .filter(|condemned| condemned.entry.1.protect && !condemned.entry.1.delete)
            .map(|condemned| condemned.entry.1.urn.clone())
            .collect();
        if !protected.is_empty() {
            for urn in protected {
                let text = format!(
                    "{} is to be deleted before it is replaced, and {} would have to go with it, which is protected",
                    registration.urn.name(),
                    urn.name()
                );
                let mut message = Message::new(Severity::Error, text);
                message.hint = format!("take `protect` off {}, or undo the change that replaces", urn.name());
                self.complain(&registration.urn, registration.goal.source, message);
            }
            self.note_break();
            return Err(Refused);
        }
        let mut chain = Vec::new();
        for condemn::Condemned { entry, keys } in condemned {
            let owed = entry.1.pending_replacement;
            let (sender, gone) = watch::channel(owed);
            self.tables().condemn(&entry, Condemned { keys, gone });
            // What an interrupted run deleted already is only remembered, not deleted twice.
            if !owed {
                let mut step = self.delete_step(&entry, StepOp::DeleteReplaced).await;
                step.delete_first = true;
                step.gone = Some(sender);
                chain.push(step);
            }
        }
        self.tables().note_deleted(root);
        if !root.1.pending_replacement {
            let mut step = self.delete_step(root, StepOp::DeleteReplaced).await;
            step.delete_first = true;
            step.internal = registration.internal;
            let (sender, gone) = watch::channel(false);
            step.gone = Some(sender);
            self.tables().depart(root.0, gone);
            chain.push(step);
        }
        if let Some(first) = chain.first_mut() {
            first.after = after;
        }
        Ok(chain)
    }

    /// Ends the run before anything is done, if a replacement would delete what cannot be deleted. Who is protected is told
    /// elsewhere. `doomed`: what goes with it.
    fn refuse_undeletable(
        &self,
        registration: &Registration,
        old: &ResourceState,
        doomed: &HashSet<Urn>,
    ) -> Result<(), Refused> {
        let with_its_owner = old
            .deleted_with
            .as_ref()
            .is_some_and(|owner| doomed.contains(owner) || self.tables().deleted.contains(owner));
        let Deletion::Refused(why) = deletion(old, true, with_its_owner, false) else { return Ok(()) };
        let whose = if old.urn == registration.urn { "it" } else { old.urn.name() };
        let mut message = Message::new(Severity::Error, report::undeletable(whose, why));
        message.hint = report::undeletable_hint(&old.urn, why);
        self.break_off(&registration.urn, registration.goal.source, message);
        Err(Refused)
    }

    /// Everything that must go before the root, which is as it was loaded: probes its dependents, in the order of the
    /// snapshot. What is decided is not asked, unless it goes by another name now and `renamed_too` says so.
    pub(super) async fn condemned_with(
        self: &Arc<Self>,
        root: &Entry,
        renamed_too: bool,
    ) -> Result<Vec<condemn::Condemned>, ProviderError> {
        let mut walk = {
            let tables = self.tables();
            Walk::new(root, &tables.base, |(id, state)| {
                if renamed_too && tables.aliased.contains_key(&state.urn) {
                    return tables.decided.contains(&state.urn);
                }
                tables.is_decided(&state.urn) || tables.ledger.get(*id).is_none()
            })
        };
        let mut condemned = loop {
            match walk.next() {
                Probe::WouldReplace { entry, keys } => {
                    let answer = self.would_replace(&entry.1, &keys).await?;
                    walk.answer(answer);
                }
                Probe::Done(condemned) => break condemned,
            }
        };
        let tables = self.tables();
        let tied = tables.base.iter().filter_map(|(id, state)| {
            let key = if state.replace_with.contains(&root.1.urn) {
                "replaceWith"
            } else if state.deleted_with.as_ref() == Some(&root.1.urn) {
                "deletedWith"
            } else {
                return None;
            };
            let open = state.custom && !tables.is_decided(&state.urn) && tables.ledger.get(*id).is_some();
            open.then(|| condemn::Condemned { entry: (*id, Arc::clone(state)), keys: vec![key.to_owned()] })
        });
        condemned.extend(tied.collect::<Vec<_>>());
        Ok(condemned)
    }

    /// Would an entry be replaced if these inputs became unknown? Asked in real runs, too.
    async fn would_replace(&self, state: &ResourceState, keys: &[String]) -> Result<bool, ProviderError> {
        let mut news = (*state.inputs).clone();
        for key in keys {
            news.insert(key.clone(), PropertyValue::UNKNOWN);
        }
        let news = Arc::new(news);
        self.tell_secrets(&state.inputs);
        self.tell_secrets(&state.outputs);
        let host_error = |error: bridge::host::HostError| ProviderError::Failed {
            method: "Diff",
            message: error.message,
            indeterminate: false,
        };
        let reply = match (&state.provider, state.as_provider_reference()) {
            (Some(reference), _) => {
                let instance = match self.load_instance(reference).await {
                    // It is gone already, and so may its provider be: nobody needs to be asked.
                    Err(_) if state.pending_replacement => return Ok(false),
                    loaded => loaded.map_err(host_error)?,
                };
                let Some(provider) = instance.ready().await? else { return Ok(false) };
                let request = DiffRequest {
                    urn: state.urn.clone(),
                    id: state.id.clone(),
                    olds: Arc::clone(&state.outputs),
                    old_inputs: Arc::clone(&state.inputs),
                    news: Arc::clone(&news),
                    ignore_changes: state.ignore_changes.clone(),
                    allow_unknowns: true,
                };
                provider.diff(request).await?
            }
            (None, Some(reference)) => {
                let instance = self.load_instance(&reference).await.map_err(host_error)?;
                let request = DiffConfigRequest {
                    urn: state.urn.clone(),
                    olds: Arc::clone(&state.outputs),
                    old_inputs: Arc::new(visible(&state.inputs)),
                    news: Arc::new(visible(&news)),
                    ignore_changes: state.ignore_changes.clone(),
                };
                instance.provider().diff_config(request).await?
            }
            (None, None) => return Ok(false),
        };
        let mut change = Change::of_resource(&reply, state, &news, &state.ignore_changes);
        change.replace_on(&state.replace_on_changes, !state.init_errors.is_empty());
        Ok(change.changed && change.replaces())
    }

    /// A step that deletes an entry, with the provider that is to do it.
    pub(super) async fn delete_step(self: &Arc<Self>, entry: &Entry, op: StepOp) -> Step {
        let mut step = Step::new(op, entry.1.urn.clone());
        step.internal = entry.1.is_default_provider();
        step.old = Some(entry.clone());
        if let Some(reference) = &entry.1.provider
            && entry.1.custom
            && !entry.1.external
        {
            step.actor = match self.load_instance(reference).await {
                Ok(instance) => Actor::Instance(instance),
                Err(error) => Actor::Missing(error),
            };
        }
        step
    }
}
