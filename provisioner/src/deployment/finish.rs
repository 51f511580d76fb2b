//! What nobody registered goes (engine semantics, section 3).

use std::cell::LazyCell;
use std::sync::Arc;

use futures_util::future::join_all;
use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};

use crate::events::{Message, Operation, Severity, StepOp};
use crate::state::{EntryId, ResourceState};

use super::decide::condemn::Entry;
use super::decide::deletes::{departure, waves};
use super::decide::scope::{Reach, Scope, UrnPattern};
use super::effects::EmptyKeys;
use super::engine::Engine;
use super::report;
use super::tables::Tables;
use super::views::show_under;

impl Engine {
    /// Deletes what is doomed, dependents first. Says whether the user stopped it with work left.
    pub(super) async fn delete_the_rest(self: &Arc<Self>) -> bool {
        if self.options.operation == Operation::Destroy && self.has_program() {
            // What the program has just brought up to date, or made, goes with the rest.
            self.tables().rebase_copies_first();
        }
        let candidates = self.unregistered();
        let Some(Deletable { allowed, forbidden }) = self.deletable(&candidates).await else { return false };
        if !self.options.scope.is_everything() || self.options.exclude_protected {
            self.carry_over(&candidates, &allowed).await;
        }
        if forbidden && !self.preview() {
            return false;
        }
        let doomed: HashMap<EntryId, StepOp> =
            candidates.into_iter().filter(|((id, _), _)| allowed.contains(id)).map(|((id, _), op)| (id, op)).collect();
        if doomed.is_empty() {
            return false;
        }
        let (order, entries, base) = {
            let tables = self.tables();
            let ids: HashSet<EntryId> = doomed.keys().copied().collect();
            // In the order of what was: a new name does not change what an old entry hangs on.
            let order = waves(&tables.base, &ids);
            let entries: HashMap<EntryId, Arc<ResourceState>> =
                ids.into_iter().filter_map(|id| Some((id, Arc::clone(tables.ledger.get(id)?)))).collect();
            (order, entries, tables.base.clone())
        };
        // What is tied to something that goes needs no call of its own.
        self.tables().deleted.extend(doomed.keys().filter_map(|id| entries.get(id)).map(|state| state.urn.clone()));
        let loaded = LazyCell::new(|| by_urn(&base));
        let something_stays = self.tables().ledger.entries().any(|(id, _)| !doomed.contains_key(&id));
        let mut spared = if something_stays { self.needed_by_what_stays(&doomed, &loaded) } else { HashSet::new() };
        for (id, state) in base.iter().filter(|(id, _)| doomed.get(id) == Some(&StepOp::Delete)) {
            // A protected entry stays, as its own step will tell, and so does what it needs.
            if entries.get(id).is_some_and(|entry| entry.protect) {
                self.tables().spare_dependencies((*id, state), &loaded, &mut spared);
            }
        }
        let mut left_undone = false;
        for wave in order {
            let steps = wave.iter().filter(|id| !spared.contains(*id)).filter_map(|id| {
                let entry = (*id, Arc::clone(entries.get(id)?));
                let op = *doomed.get(id)?;
                Some(async move {
                    let _slot = self.slots.acquire().await.ok();
                    if self.halted() {
                        return Some(Went::Nowhere);
                    }
                    let step = self.delete_step(&entry, op).await;
                    if !self.may_begin(&step).await {
                        return Some(Went::Nowhere);
                    }
                    // Boxed: what waits for a slot stays small.
                    Box::pin(self.execute(step)).await.is_err().then_some(Went::Wrong(entry.0))
                })
            });
            for went in join_all(steps).await.into_iter().flatten() {
                match went {
                    Went::Nowhere => left_undone = true,
                    Went::Wrong(id) => {
                        let failed = base.iter().filter(|(other, _)| *other == id);
                        let tables = self.tables();
                        failed.for_each(|(id, state)| tables.spare_dependencies((*id, state), &loaded, &mut spared));
                    }
                }
            }
        }
        self.tell_orphans(&doomed, &entries);
        left_undone && self.signals.stop.is_cancelled()
    }

    /// Tells of what was forgotten without a call, for it was to go with another one, and that other one is there still: it
    /// is protected, needed, or its own deletion failed. Nothing is recorded of it any more, as Pulumi has it.
    fn tell_orphans(&self, doomed: &HashMap<EntryId, StepOp>, entries: &HashMap<EntryId, Arc<ResourceState>>) {
        let orphans: Vec<(&Arc<ResourceState>, &Urn)> = {
            let tables = self.tables();
            // What has a successor in this run has gone, or goes.
            let stands =
                |urn: &Urn| !tables.replaced.contains(urn) && tables.ledger.named(urn).any(|(_, state)| !state.delete);
            let forgotten = |id: &EntryId| tables.ledger.get(*id).is_none() && !tables.untied.contains(id);
            let tied = doomed.keys().filter(|id| forgotten(id)).filter_map(|id| {
                // A copy goes with a copy.
                let is_ours = |state: &&Arc<ResourceState>| {
                    state.custom && !state.external && !state.retain_on_delete && !state.delete
                };
                let state = entries.get(id).filter(is_ours)?;
                let owner = state.deleted_with.as_ref()?;
                (!state.pending_replacement && tables.deleted.contains(owner) && stands(owner))
                    .then_some((state, owner))
            });
            tied.collect()
        };
        for (state, owner) in orphans {
            let owner = owner.name();
            let (text, hint) = if self.preview() {
                let text = format!("it would go with {owner}, which stays, and would not be recorded any more");
                (text, "take `deletedWith` off it to have it deleted by itself".to_owned())
            } else {
                let text = format!("it was to go with {owner}, which stays, and is not recorded any more");
                (text, format!("look whether {:?} still exists, and delete it or import it", &*state.id))
            };
            let urn = Some(state.urn.clone());
            let message = Message { urn, hint, ..Message::new(Severity::Warning, text) };
            self.emit(crate::events::Event::Message(message));
        }
    }

    /// Gives what still awaits its deletion the name of its successor, where that took over under a new one: the old name is
    /// free from now on. Deleted in the same run it would have gone by the old one.
    pub(super) async fn rename_leftovers(&self) {
        self.defer(|tables| {
            let mut effects = Vec::new();
            if tables.aliased.is_empty() {
                return effects;
            }
            // A provider keeps its name, for what it serves names it by that.
            let superseded = |state: &ResourceState| state.delete && !state.is_provider();
            for (id, state) in tables.ledger.entries().filter(|(_, state)| superseded(state)) {
                let successor = tables.aliased.get(&state.urn);
                if let Some(urn) = successor.filter(|urn| tables.ledger.named(urn).any(|(_, new)| !new.delete)) {
                    effects.extend(tables.rewrite(id, |state| state.urn = urn.clone()));
                    for (view, _) in tables.views_of(state) {
                        effects.extend(tables.rewrite(view, |state| show_under(state, urn)));
                    }
                }
            }
            // If a refresh of this run found gone what was live under the old name, only the copy kept references to it valid.
            effects.extend(if effects.is_empty() { Vec::new() } else { tables.repairs(&effects, |_| EmptyKeys::Kept) });
            effects
        })
        .await;
    }

    /// What failed is still what it was, and needs what it referred to then, even if the program has given that up. And
    /// a provider stays as long as anything that stays names it.
    fn needed_by_what_stays(&self, doomed: &HashMap<EntryId, StepOp>, loaded: &ByUrn<'_>) -> HashSet<EntryId> {
        let tables = self.tables();
        let mut spared = HashSet::new();
        // A view goes with what it is a view of.
        let entries = || loaded.values().flatten().filter(|(_, state)| state.view_of.is_none());
        for (id, state) in entries() {
            // What failed may have been confirmed for the sake of others.
            let failed = tables.failed.contains(tables.aliased.get(&state.urn).unwrap_or(&state.urn));
            let untouched = tables.ledger.get(*id).is_some() && (failed || !tables.ledger.is_finished(*id));
            if untouched && !doomed.contains_key(id) {
                tables.spare_dependencies((*id, state), loaded, &mut spared);
            }
        }
        let staying = tables.ledger.entries().filter(|(id, state)| !doomed.contains_key(id) && state.view_of.is_none());
        let providers: HashSet<&ProviderReference> = staying.filter_map(|(_, state)| state.provider.as_ref()).collect();
        let named = |entry: &&&Entry| entry.1.as_provider_reference().is_some_and(|name| providers.contains(&name));
        spared.extend(entries().filter(named).map(|(id, _)| *id));
        spared
    }

    /// Carries over, one after the other, the entries that stay and that nobody registered.
    async fn carry_over(self: &Arc<Self>, candidates: &[(Entry, StepOp)], allowed: &HashSet<EntryId>) {
        for (entry, op) in candidates {
            let stays = matches!(op, StepOp::Delete | StepOp::Discard) && !allowed.contains(&entry.0);
            if !stays || self.tables().decided.contains(&entry.1.urn) {
                continue;
            }
            // A provider that was replaced keeps what it served until that is deleted or taken along.
            let Ok(chain) = self.carry(entry, &entry.1.urn) else { continue };
            for step in chain {
                if self.execute(step).await.is_err() {
                    return;
                }
            }
        }
    }

    /// What nobody registered, and how it would go.
    fn unregistered(&self) -> Vec<(Entry, StepOp)> {
        let destroy = self.options.operation == Operation::Destroy;
        let tables = self.tables();
        let unknown = if destroy { HashSet::new() } else { tables.within_the_unmade() };
        let base = tables.base.iter().filter(|(_, state)| state.view_of.is_none());
        base.filter_map(|(id, loaded)| {
            let state = tables.ledger.get(*id)?;
            if unknown.contains(id) {
                return None;
            }
            if tables.was_to_go(*id) {
                // It was to go before a replacement, and that failed: not twice in one run.
                return None;
            }
            // Its parent may have given it another name meanwhile, under which it was carried over.
            let registered = !destroy && [&loaded.urn, &state.urn].into_iter().any(|urn| tables.is_registered(urn));
            Some(((*id, Arc::clone(state)), departure(state, registered)?))
        })
        .collect()
    }

    /// Which of the candidates targets and excludes let go (section 2.16). `None` if a provider could not say.
    async fn deletable(self: &Arc<Self>, candidates: &[(Entry, StepOp)]) -> Option<Deletable> {
        let scope = &self.options.scope;
        let everything = || candidates.iter().map(|((id, _), _)| *id).collect::<HashSet<_>>();
        if scope.has_targets() {
            return self.deletable_with_targets(candidates).await;
        }
        if scope.is_everything() && !self.options.exclude_protected {
            return Some(Deletable { allowed: everything(), forbidden: false });
        }
        let keep_protected = self.options.exclude_protected && self.options.operation == Operation::Destroy;
        let tables = self.tables();
        let mut kept: HashSet<&Urn> = HashSet::new();
        let mut excluded: HashSet<&Urn> = HashSet::new();
        for (_, state) in &tables.base {
            let hangs = state.references().any(|urn| excluded.contains(urn));
            let named = scope.excludes(&state.urn) || (scope.exclude_dependents && hangs);
            if named {
                excluded.insert(&state.urn);
            }
            if named || (keep_protected && state.protect) {
                kept.insert(&state.urn);
            }
        }
        // What is kept needs what it refers to: dependencies come earlier in the list.
        for (_, state) in tables.base.iter().rev() {
            if kept.contains(&state.urn) {
                kept.extend(state.references());
                kept.extend(state.provider.iter().map(|provider| &provider.urn));
            }
        }
        // So does a copy of what has its place. One without goes, whoever still names it. All under the names that were loaded:
        // a parent may have given a new one meanwhile.
        let stays = |state: &ResourceState| kept.contains(&state.urn) && tables.olds.contains_key(&state.urn);
        let staying: HashSet<EntryId> =
            tables.base.iter().filter(|(_, state)| stays(state)).map(|(id, _)| *id).collect();
        Some(Deletable { allowed: everything().difference(&staying).copied().collect(), forbidden: false })
    }

    /// With targets: what was named, what hangs on it, and what a replacement of it would take along. The peer asks the
    /// providers for that, so we do.
    async fn deletable_with_targets(self: &Arc<Self>, candidates: &[(Entry, StepOp)]) -> Option<Deletable> {
        let scope = &self.options.scope;
        let base = self.tables().base.clone();
        let Reach { mut allowed, roots } = scope.reach(&base);
        for entry in roots {
            match self.condemned_with(entry, true).await {
                Ok(condemned) => allowed.extend(condemned.into_iter().map(|condemned| condemned.entry.0)),
                Err(error) => {
                    self.break_off(&entry.1.urn, None, Message::new(Severity::Error, report::chain(&error)));
                    return None;
                }
            }
        }
        let mut forbidden = false;
        for ((id, state), _) in candidates {
            if allowed.contains(id) && scope.spares(&state.urn) {
                let text = format!("{} would have to go with a target that it depends on", state.urn.name());
                let mut message = Message::new(Severity::Error, text);
                message.hint = format!("add --target '{}' or --target-dependents", state.urn);
                self.complain(&state.urn, None, message);
                self.note_complaint();
                forbidden = true;
            }
        }
        Some(Deletable { allowed, forbidden })
    }

    /// Holds names that the user gave against what there is, and looks at those that are to be proposed. False if the run
    /// cannot go on.
    pub(super) fn check_names(&self) -> bool {
        let scope = &self.options.scope;
        let must_exist: Vec<_> = if self.has_program() {
            self.options.replace.iter().collect()
        } else {
            scope.targets.iter().chain(&scope.excludes).collect()
        };
        let mut fine = true;
        if let Err(error) = &self.naming {
            let mut message = Message::new(Severity::Error, format!("pulumi:autonaming cannot be used: {error}"));
            message.hint = format!("mend it in the stack file, Pulumi.{}.yaml", self.options.stack);
            self.emit(crate::events::Event::Message(message));
            fine = false;
        }
        for pattern in must_exist.into_iter().filter(|pattern| !self.is_fine(pattern)) {
            self.tell_unknown_name(pattern.as_str());
            fine = false;
        }
        if !fine {
            self.note_break();
        }
        fine
    }

    /// Whether it names anything that was recorded, or registered in this run. A target with a star may name nothing, as
    /// then nothing is touched; an exclude must not, as then nothing is spared.
    fn is_fine(&self, pattern: &UrnPattern) -> bool {
        let spares = self.options.scope.excludes.contains(pattern);
        (!pattern.is_literal() && !spares)
            || self.tables().knows(pattern)
            || self.options.gone.iter().any(|urn| pattern.matches(urn))
    }

    fn tell_unknown_name(&self, name: &str) {
        let mut message = Message::new(Severity::Error, format!("no resource of this stack is called {name}"));
        message.hint = "give a name as `sc preview` shows it, or a URN as `sc stack export` has it".to_owned();
        self.emit(crate::events::Event::Message(message));
    }

    /// Targets and excludes that turned out to name nothing: noticed once the program has ended.
    pub(super) fn check_targets_found(&self) {
        if !self.has_program() {
            return;
        }
        let Scope { targets, excludes, .. } = &self.options.scope;
        let unknown = targets.iter().chain(excludes).filter(|pattern| !self.is_fine(pattern));
        let missing: Vec<&str> = unknown.map(UrnPattern::as_str).collect();
        for name in &missing {
            self.tell_unknown_name(name);
        }
        if missing.is_empty() {
            return;
        }
        if self.options.operation == Operation::Destroy {
            // Nothing has been deleted yet, and a slip would delete what is to be spared.
            self.note_break();
        } else {
            self.note_complaint();
        }
    }
}

/// What came of a delete that did not succeed.
enum Went {
    /// It failed.
    Wrong(EntryId),
    /// It was not begun: nothing new may start.
    Nowhere,
}

/// What may go.
struct Deletable {
    allowed: HashSet<EntryId>,
    /// Something would have to go that the user did not name: it was told, and nothing goes.
    forbidden: bool,
}

/// Entries as they were loaded, by URN.
type ByUrn<'a> = HashMap<&'a Urn, Vec<&'a Entry>>;

fn by_urn(loaded: &[Entry]) -> ByUrn<'_> {
    let mut by_urn: ByUrn<'_> = HashMap::new();
    for entry in loaded {
        by_urn.entry(&entry.1.urn).or_default().push(entry);
    }
    by_urn
}

impl Tables {
    /// Where a plugin could not make a component to its end: that one, the recorded components that this run has not
    /// registered, and what is in them. What would have been registered there, nobody knows.
    fn within_the_unmade(&self) -> HashSet<EntryId> {
        let mut found = HashSet::new();
        if self.unmade.is_empty() {
            return found;
        }
        let mut components: HashSet<&Urn> = HashSet::new();
        for (id, state) in &self.base {
            let is_in_one = state.parent.as_ref().is_some_and(|parent| components.contains(parent));
            let name = self.aliased.get(&state.urn).unwrap_or(&state.urn);
            let is_one = !state.custom && (self.unmade.contains(name) || !self.is_registered(&state.urn));
            if is_in_one || is_one {
                found.insert(*id);
                components.insert(&state.urn);
            }
        }
        found
    }

    /// Adds everything that an entry needs, directly or not, to what stays. What was live when it was loaded needs no copies
    /// that were superseded before, but for the one provider that it names.
    fn spare_dependencies(
        &self,
        entry: (EntryId, &Arc<ResourceState>),
        by_urn: &ByUrn<'_>,
        spared: &mut HashSet<EntryId>,
    ) {
        let mut open = vec![entry];
        while let Some((id, state)) = open.pop() {
            let provider = state.provider.iter().map(|provider| &provider.urn);
            for urn in provider.chain(state.references()) {
                for (needed, other) in by_urn.get(urn).into_iter().flatten() {
                    let serves = other.as_provider_reference().is_some_and(|name| state.provider == Some(name));
                    // Superseded since: what has not been registered again still needs it.
                    let was_live = || {
                        self.ledger.loaded(id).is_some() && self.ledger.loaded(*needed).is_some_and(|old| !old.delete)
                    };
                    let needs = state.delete || !other.delete || serves || was_live();
                    if needs && spared.insert(*needed) {
                        open.extend(self.as_it_needs_now(*needed, other));
                    }
                }
            }
        }
    }

    /// What says what an entry needs that was loaded: what this run has made of it, or else what was recorded.
    fn as_it_needs_now<'t>(
        &'t self,
        loaded: EntryId,
        recorded: &'t Arc<ResourceState>,
    ) -> Option<(EntryId, &'t Arc<ResourceState>)> {
        match self.ledger.get(loaded) {
            Some(now) if self.ledger.is_finished(loaded) && !now.delete => Some((loaded, now)),
            Some(_) => Some((loaded, recorded)),
            None => {
                self.ledger.named(self.aliased.get(&recorded.urn).unwrap_or(&recorded.urn)).find(|(_, new)| !new.delete)
            }
        }
    }
}

impl ResourceState {
    /// Whether this is a provider that the engine made by itself.
    pub(super) fn is_default_provider(&self) -> bool {
        self.is_provider() && self.urn.name().starts_with("default")
    }
}
