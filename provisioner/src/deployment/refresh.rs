//! Making the state match the world (engine semantics, sections 5.1, 5.2 and 5.4).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bridge::provider::{DiffKind, DiffRequest, PropertyDiff, ProviderError};
use futures_util::future::join_all;
use hashbrown::HashSet;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

use crate::events::{Event, Message, Operation, Severity, SourceRef, StepFailure, StepInfo, StepOp};
use crate::state::{Effect, EntryId, ResourceState, StateError};

use super::calls::read;
use super::decide::Kind;
use super::decide::change::Change;
use super::decide::condemn::Entry;
use super::decide::refresh::{as_read, is_read_first, shown_as};
use super::door::BUILT_IN;
use super::effects::EmptyKeys;
use super::engine::Engine;
use super::providers::Instance;
use super::register::Registration;
use super::registrar::{Refused, Registered};
use super::report;
use super::step::StepError;
use super::steps::mark_secrets;
use super::tables::Tables;
use super::views::ViewLog;

/// What a refresh found.
struct Found {
    result: StepOp,
    /// The entry as it is now, the very same if nothing is new; `None`: gone.
    new: Option<Arc<ResourceState>>,
    change: Change,
    /// What its provider said of its views.
    views: Arc<ViewLog>,
}

/// What is read.
struct Reading<'a> {
    id: EntryId,
    old: &'a Arc<ResourceState>,
    /// Under which name the provider is asked.
    urn: &'a Urn,
    /// Who reads it; `None`: the provider that is recorded.
    instance: Option<&'a Arc<Instance>>,
    source: Option<SourceRef>,
    /// What the program wants to be secret, beside what is recorded to be.
    secret_outputs: &'a [String],
    internal: bool,
    /// Whether what is found counts as what the run did.
    counts: bool,
}

impl Engine {
    /// Whether what the program registers is read where it registers it.
    pub(super) fn reads_registrations(&self) -> bool {
        self.has_program() && self.options.run_program && self.reads_everything()
    }

    fn reads_everything(&self) -> bool {
        self.options.refresh || self.options.operation == Operation::Refresh
    }

    /// Reads what is to be read before anything else: everything if the user said so, else what asked for it. Says
    /// whether the user stopped it with something unread.
    pub(super) async fn refresh_first(self: &Arc<Self>) -> bool {
        if self.reads_registrations() || self.options.operation == Operation::Import {
            return false;
        }
        let everything = self.reads_everything();
        let asks = |(_, state): &Entry| is_read_first(state, false, true);
        if !everything && !self.tables().base.iter().any(asks) {
            return false;
        }
        let chosen = |_: &Tables, state: &ResourceState, in_scope| is_read_first(state, everything, in_scope);
        let (stopped, failed) = self.refresh_recorded(chosen).await;
        if failed {
            // Nobody works on by what is known of what could not be read.
            self.note_break();
        }
        stopped
    }

    /// Reads what the program did not register. Says whether the user stopped it with something unread.
    pub(super) async fn refresh_the_rest(self: &Arc<Self>) -> bool {
        if self.options.operation != Operation::Refresh || !self.has_program() {
            return false;
        }
        let chosen = |tables: &Tables, state: &ResourceState, in_scope| {
            in_scope && (state.delete || !tables.is_registered(&state.urn))
        };
        self.refresh_recorded(chosen).await.0
    }

    /// Reads the entries that are chosen, given whether they are in scope, by the providers that are recorded. Says whether the
    /// user stopped it with something unread, and whether something could not be read.
    async fn refresh_recorded(
        self: &Arc<Self>,
        chosen: impl Fn(&Tables, &ResourceState, bool) -> bool,
    ) -> (bool, bool) {
        let entries: Vec<Entry> = {
            let tables = self.tables();
            let mut marked = HashSet::new();
            let mut entries = Vec::new();
            for (id, state) in tables.base.iter().filter(|(_, state)| state.view_of.is_none()) {
                let in_scope = self.options.scope.admits_reading(state, &mut marked);
                if chosen(&tables, state, in_scope) {
                    entries.extend(tables.ledger.get(*id).map(|state| (*id, Arc::clone(state))));
                }
            }
            entries
        };
        let reading = entries.iter().map(|&(id, ref old)| async move {
            let _slot = self.slots.acquire().await.ok();
            if self.signals.stop.is_cancelled() {
                return None;
            }
            let internal = old.is_default_provider();
            let counts = self.options.operation == Operation::Refresh && !internal;
            let (instance, source, secret_outputs) = (None, None, [].as_slice());
            let reading = Reading { id, old, urn: &old.urn, instance, source, secret_outputs, internal, counts };
            Some(self.refresh(reading).await)
        });
        let found = join_all(reading).await;
        let stopped = found.iter().any(Option::is_none);
        let failed = found.iter().flatten().any(Option::is_none);
        let read: HashSet<EntryId> = entries.iter().map(|(id, _)| *id).collect();
        // All at once: a list without what is gone and with references to it is no state.
        self.defer(|tables| {
            let mut effects = Vec::new();
            for ((id, old), found) in entries.iter().zip(found) {
                let Some(Found { new, views, .. }) = found.flatten() else { continue };
                let Some(new) = new else {
                    effects.extend(tables.removal(*id));
                    continue;
                };
                if !Arc::ptr_eq(&new, old) {
                    effects.push(Effect::Rewrite(*id, new));
                }
                effects.extend(views.effects(tables, &[], false));
            }
            // What the program has registered meanwhile says which keys it has.
            let stays = |id| tables.ledger.is_finished(id) && !read.contains(&id);
            let repairs = tables.repairs(&effects, |id| if stays(id) { EmptyKeys::Kept } else { EmptyKeys::Dropped });
            effects.into_iter().chain(repairs).collect()
        })
        .await;
        self.tables().rebase();
        (stopped, failed)
    }

    /// Reads what a registration was before, by the provider that it has now, and records what is found at once; the
    /// conversation then goes on with that. Components and provider resources have nothing to read.
    pub(super) async fn refresh_registered(
        self: &Arc<Self>,
        registration: &mut Registration,
    ) -> Result<(), Result<Registered, Refused>> {
        let Some((id, old)) = registration.old.clone() else { return Ok(()) };
        if self.tables().is_going(id) {
            // Another one's replacement takes it down: nobody waits to see what it was.
            return Ok(());
        }
        let custom = registration.kind == Kind::Custom;
        let reading = Reading {
            id,
            old: &old,
            urn: &registration.urn,
            instance: registration.instance.as_ref(),
            source: registration.goal.source,
            secret_outputs: &registration.goal.additional_secret_outputs,
            internal: registration.internal,
            // What becomes of the others is told by what follows.
            counts: self.options.operation == Operation::Refresh && custom,
        };
        let Some(found) = self.refresh(reading).await else {
            self.tables().failed.insert(registration.urn.clone());
            return Err(self.failed(registration.urn.clone()));
        };
        let recorded = match found.new {
            None => {
                registration.old = None;
                self.end(None, |tables| {
                    let gone = tables.removal(id);
                    let repairs = tables.repairs(&gone, |_| EmptyKeys::Kept);
                    gone.into_iter().chain(repairs).collect()
                })
                .await
            }
            Some(new) => self.record_reading(registration, (id, old), &new, &found.views).await,
        };
        if let Err(error) = recorded {
            let message = Message::new(Severity::Error, report::chain(&error));
            self.break_off(&registration.urn, registration.goal.source, message);
            return Err(Err(Refused));
        }
        Ok(())
    }

    /// Records what was read of a registration that is still there.
    async fn record_reading(
        self: &Arc<Self>,
        registration: &mut Registration,
        (id, old): Entry,
        new: &Arc<ResourceState>,
        views: &ViewLog,
    ) -> Result<(), StateError> {
        // Nothing else will confirm it, nor record what the program says of it now.
        let refreshes = self.options.operation == Operation::Refresh;
        let was_read = old.custom && !old.is_provider() && !old.pending_replacement;
        let ends_here = refreshes && registration.kind == Kind::Custom && was_read;
        let asked = ends_here.then(|| {
            let asked = self.new_state(registration, Arc::default());
            let (dependencies, property_dependencies) = (Vec::new(), BTreeMap::new());
            Arc::new(ResourceState { dependencies, property_dependencies, ..asked })
        });
        let successor = self.tables().ledger.new_entry();
        let mut known = (id, Arc::clone(&old));
        let recorded = self
            .end(None, |tables| {
                // What it refers to may have gone, or got a new name, since the reading began.
                let now = tables.ledger.get(id).unwrap_or(&old);
                let mut read = if Arc::ptr_eq(new, &old) { (**now).clone() } else { with_reading(now, new) };
                let asked = asked.map(|asked| tables.as_named_now(&asked)).filter(|asked| tables.can_be(id, asked));
                let renamed = asked.as_ref().is_some_and(|asked| asked.urn != now.urn);
                let mut effects = if refreshes { tables.keep(id) } else { Vec::new() };
                if let Some(asked) = &asked {
                    read = as_asked(asked, read);
                }
                known.1 = if read == **now { Arc::clone(now) } else { Arc::new(read) };
                if renamed {
                    known.0 = successor;
                    effects.extend(tables.succession(id, &known));
                } else if known.1 != *now {
                    effects.push(Effect::Rewrite(id, Arc::clone(&known.1)));
                    // What it refers to now may have come behind it.
                    let moved = asked.iter().flat_map(|_| [id].into_iter().chain(tables.carried_dependents(id)));
                    effects.extend(moved.map(Effect::Keep));
                }
                let of_views = views.effects(tables, &effects, renamed);
                effects.extend(of_views);
                effects
            })
            .await;
        registration.old = Some(known);
        recorded
    }

    /// Reads one entry, and tells of it; `None`: that failed.
    async fn refresh(self: &Arc<Self>, reading: Reading<'_>) -> Option<Found> {
        let started = Instant::now();
        let mut info = StepInfo {
            op: StepOp::Refresh,
            result: None,
            urn: reading.urn.clone(),
            old: Some(Arc::clone(reading.old)),
            new: None,
            replace_keys: Vec::new(),
            diffs: Vec::new(),
            detailed_diff: BTreeMap::new(),
            internal: reading.internal,
        };
        self.emit(Event::StepStarted(Arc::new(info.clone())));
        let views = ViewLog::of_refresh(self, reading.urn, (reading.id, Arc::clone(reading.old)));
        let looked = self.look(&reading, &views).await;
        let found = match looked {
            Ok(found) => {
                if reading.counts {
                    *self.tables().counts.entry(found.result).or_default() += 1;
                }
                info.result = Some(found.result);
                info.new.clone_from(&found.new);
                info.diffs.clone_from(&found.change.diffs);
                info.detailed_diff.clone_from(&found.change.detailed);
                self.emit(Event::StepSucceeded(Arc::new(info), started.elapsed()));
                Some(found)
            }
            Err(error) => {
                self.note_failure();
                let mut message = Message::new(Severity::Error, report::chain(&error));
                message.plugin = Some(reading.old.type_token.package().to_owned());
                self.complain(reading.urn, reading.source, message);
                if !self.preview() {
                    let failure = StepFailure { message: error.to_string(), indeterminate: false, partial: false };
                    self.emit(Event::StepFailed(Arc::new(info), failure));
                }
                None
            }
        };
        // What the provider could not read of a view is an error of its own; what it read of the resource stands.
        views.conclude(reading.counts).ok();
        found
    }

    async fn look(self: &Arc<Self>, wanted: &Reading<'_>, views: &Arc<ViewLog>) -> Result<Found, StepError> {
        let old = wanted.old;
        let found = |result, new, change| Found { result, new, change, views: Arc::clone(views) };
        let unchanged = || found(StepOp::Same, Some(Arc::clone(old)), Change::default());
        let reference = match &old.provider {
            // What Pulumi's engine serves itself, a reference to another stack, say, stays as it was read.
            Some(_) if old.type_token.package() == BUILT_IN => return Ok(unchanged()),
            Some(reference) if old.custom && !old.is_provider() => reference,
            _ => return Ok(unchanged()),
        };
        let instance = match wanted.instance {
            Some(instance) => Arc::clone(instance),
            None => match self.load_instance(reference).await {
                // It is gone already, and so may its provider be: there is nothing to read.
                Err(_) if old.pending_replacement => return Ok(unchanged()),
                loaded => loaded.map_err(StepError::Host)?,
            },
        };
        if old.pending_replacement {
            return Ok(unchanged());
        }
        let (outputs, inputs) = (Some(Arc::clone(&old.outputs)), Some(Arc::clone(&old.inputs)));
        let timeout = old.custom_timeouts.read;
        let reading = read(&instance, wanted.urn, &old.id, outputs, inputs, timeout, views.views()).await?;
        let Some(reading) = reading else { return Ok(unchanged()) };
        let (error, reasons) = reading.failure.map(|(error, failure)| (error, failure.reasons)).unzip();
        let Some(mut new) = as_read(old, reading.reply, reasons.unwrap_or_default()) else {
            return Ok(found(StepOp::Delete, None, Change::default()));
        };
        if let Some(error) = error {
            let mut message = Message::new(Severity::Warning, report::chain(&error));
            message.urn = Some(wanted.urn.clone());
            message.source = wanted.source;
            self.emit(Event::Message(message));
        }
        let unmarked = new.clone();
        new.additional_secret_outputs.extend_from_slice(wanted.secret_outputs);
        mark_secrets(&mut new);
        new.additional_secret_outputs.clone_from(&old.additional_secret_outputs);
        // A provider is asked before options make anything of it secret.
        let change = self.drift(&instance, wanted.urn, old, if old.external { &new } else { &unmarked }).await?;
        let same = [share(&mut new.inputs, &old.inputs), share(&mut new.outputs, &old.outputs)];
        if same.contains(&false) {
            new.modified = Some(self.now());
        }
        let new = if new == **old { Arc::clone(old) } else { Arc::new(new) };
        Ok(found(shown_as(&change), Some(new), change))
    }

    /// What the provider says of the difference: asked with the roles swapped, and turned round again.
    async fn drift(
        &self,
        instance: &Instance,
        urn: &Urn,
        old: &ResourceState,
        new: &ResourceState,
    ) -> Result<Change, ProviderError> {
        if old.external {
            return Ok(Change { changed: old.outputs != new.outputs, ..Change::default() });
        }
        let Some(provider) = instance.ready().await? else { return Ok(Change::default()) };
        let request = DiffRequest {
            urn: urn.clone(),
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

/// Lets go of a copy of what is known already. False if it is none.
fn share(read: &mut Arc<PropertyMap>, known: &Arc<PropertyMap>) -> bool {
    let same = *read == *known;
    if same {
        read.clone_from(known);
    }
    same
}

/// An entry with what was read of it.
fn with_reading(now: &ResourceState, read: &ResourceState) -> ResourceState {
    ResourceState {
        id: read.id.clone(),
        inputs: Arc::clone(&read.inputs),
        outputs: Arc::clone(&read.outputs),
        init_errors: read.init_errors.clone(),
        refresh_before_update: read.refresh_before_update,
        modified: read.modified,
        ..now.clone()
    }
}

/// What was read of an entry, with what the program says of it. Its dependencies are those of its inputs, which are as they
/// were.
fn as_asked(asked: &ResourceState, read: ResourceState) -> ResourceState {
    ResourceState {
        id: read.id,
        inputs: read.inputs,
        dependencies: read.dependencies,
        property_dependencies: read.property_dependencies,
        outputs: read.outputs,
        init_errors: read.init_errors,
        refresh_before_update: read.refresh_before_update,
        created: read.created,
        modified: read.modified,
        // Nothing was replaced nor imported.
        replacement_trigger: read.replacement_trigger,
        import_id: read.import_id,
        taint: read.taint,
        external: read.external,
        pending_replacement: read.pending_replacement,
        source_position: read.source_position,
        stack_trace: read.stack_trace,
        resource_hooks: read.resource_hooks,
        extension_ref: read.extension_ref,
        snippet_id: read.snippet_id,
        ..asked.clone()
    }
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
