//! What nobody registered goes (engine semantics, section 3).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::join_all;
use pulumi_proto::urn::Urn;

use crate::events::{Message, Operation, Severity, StepOp};
use crate::state::{EntryId, ResourceState};

use super::decide::condemn::Entry;
use super::decide::deletes::waves;
use super::decide::scope::references;
use super::engine::Engine;
use super::report;

impl Engine {
    /// Deletes what is doomed, dependents first. Says whether the user stopped it with work left.
    pub(super) async fn delete_the_rest(self: &Arc<Self>) -> bool {
        self.carry_the_unregistered().await;
        let Some(doomed) = self.doomed().await else { return false };
        let (order, entries) = {
            let tables = self.tables();
            let ids: HashSet<EntryId> = doomed.keys().copied().collect();
            let list: Vec<Entry> =
                tables.base.iter().filter_map(|(id, _)| Some((*id, Arc::clone(tables.ledger.get(*id)?)))).collect();
            let order = waves(&list, &ids);
            (order, list.into_iter().collect::<HashMap<_, _>>())
        };
        let mut spared = self.kept_by_protection(&entries, &doomed);
        for wave in order {
            if self.halted() {
                return self.signals.stop.is_cancelled();
            }
            let steps = wave.iter().filter(|id| !spared.contains(id)).filter_map(|id| {
                let entry = (*id, Arc::clone(entries.get(id)?));
                let op = *doomed.get(id)?;
                Some(async move {
                    let _slot = self.slots.acquire().await.ok();
                    if self.halted() {
                        return None;
                    }
                    let step = self.delete_step(&entry, op).await;
                    if matches!(op, StepOp::Delete | StepOp::DeleteReplaced) {
                        self.tables().deleted.insert(entry.1.urn.clone());
                    }
                    self.execute(step).await.is_err().then_some(entry)
                })
            });
            let failed: Vec<Entry> = join_all(steps).await.into_iter().flatten().collect();
            for (_, state) in failed {
                spare_dependencies(&state, &entries, &mut spared);
            }
        }
        self.halted() && self.signals.stop.is_cancelled()
    }

    /// Entries out of scope that nobody registered are carried over, one after the other.
    async fn carry_the_unregistered(self: &Arc<Self>) {
        if self.options.scope.is_everything() || self.options.operation == Operation::Destroy {
            return;
        }
        let base = self.tables().base.clone();
        for entry in base {
            let carried = {
                let mut tables = self.tables();
                let open = !entry.1.delete
                    && !tables.decided.contains(&entry.1.urn)
                    && !tables.aliased.contains_key(&entry.1.urn)
                    && !tables.condemned.contains_key(&entry.1.urn);
                open && !self.options.scope.admits(&entry.1, &mut tables.scoped)
            };
            if !carried {
                continue;
            }
            self.tables().decided.insert(entry.1.urn.clone());
            let mut chain = Vec::new();
            let urn = entry.1.urn.clone();
            // A provider that was replaced keeps what it served until that is deleted or taken along.
            self.carry(&entry, &urn, &mut chain);
            for step in chain {
                if self.execute(step).await.is_err() {
                    return;
                }
            }
        }
    }

    /// What goes, and how. `None` if targets forbid it.
    async fn doomed(self: &Arc<Self>) -> Option<HashMap<EntryId, StepOp>> {
        let destroy = self.options.operation == Operation::Destroy;
        let candidates: Vec<(Entry, StepOp)> = {
            let tables = self.tables();
            let base = tables.base.iter().filter(|(_, state)| state.view_of.is_none());
            base.filter_map(|(id, loaded)| {
                let state = tables.ledger.get(*id)?;
                let registered =
                    !destroy && (tables.decided.contains(&loaded.urn) || tables.aliased.contains_key(&loaded.urn));
                let op = match (state.delete, registered, state.pending_replacement, state.external) {
                    (true, _, _, false) => StepOp::DeleteReplaced,
                    (true, _, _, true) => StepOp::DiscardReplaced,
                    (false, true, _, _) => return None,
                    (false, false, true, _) => StepOp::RemovePendingReplace,
                    (false, false, false, false) => StepOp::Delete,
                    (false, false, false, true) => StepOp::Discard,
                };
                Some(((*id, Arc::clone(state)), op))
            })
            .collect()
        };
        let allowed = self.deletable(&candidates).await?;
        Some(candidates.into_iter().filter(|((id, _), _)| allowed.contains(id)).map(|((id, _), op)| (id, op)).collect())
    }

    /// Which of the candidates targets and excludes let go (section 2.16).
    async fn deletable(self: &Arc<Self>, candidates: &[(Entry, StepOp)]) -> Option<HashSet<EntryId>> {
        let scope = &self.options.scope;
        let everything = || candidates.iter().map(|((id, _), _)| *id).collect::<HashSet<_>>();
        if scope.has_targets() {
            let named: HashSet<EntryId> =
                candidates.iter().filter(|((_, state), _)| scope.targets(&state.urn)).map(|((id, _), _)| *id).collect();
            let mut allowed = named.clone();
            let mut urns: HashSet<Urn> = HashSet::new();
            for ((id, state), _) in candidates {
                let provider = state.provider.iter().map(|provider| &provider.urn);
                let hangs = provider.chain(references(state)).any(|urn| urns.contains(urn));
                if named.contains(id) || hangs {
                    urns.insert(state.urn.clone());
                    allowed.insert(*id);
                }
            }
            // The peer also lets go what a replacement of a target would take along, and asks the providers for that.
            for (entry, _) in candidates.iter().filter(|((id, _), _)| named.contains(id)) {
                match self.condemned_with(entry).await {
                    Ok(condemned) => allowed.extend(condemned.into_iter().map(|condemned| condemned.entry.0)),
                    Err(error) => {
                        self.break_off(&entry.1.urn, None, Message::new(Severity::Error, report::chain(&error)));
                        return None;
                    }
                }
            }
            let mut forbidden = false;
            for ((id, state), op) in candidates {
                let counts = matches!(op, StepOp::Delete) && allowed.contains(id) && !named.contains(id);
                if counts && !scope.target_dependents {
                    let text = format!("{} would have to go with a target that it depends on", state.urn.name());
                    let mut message = Message::new(Severity::Error, text);
                    message.hint = format!("add --target '{}' or --target-dependents", state.urn);
                    self.complain(&state.urn, None, message);
                    self.note_complaint();
                    forbidden = true;
                }
            }
            return (!forbidden || self.preview()).then_some(allowed);
        }
        if scope.is_everything() && !self.options.exclude_protected {
            return Some(everything());
        }
        let keep_protected = self.options.exclude_protected && self.options.operation == Operation::Destroy;
        let mut kept: HashSet<Urn> = HashSet::new();
        let mut excluded: HashSet<Urn> = HashSet::new();
        for ((_, state), _) in candidates {
            let hangs = references(state).any(|urn| excluded.contains(urn));
            let named = scope.excludes(&state.urn) || (scope.exclude_dependents && hangs);
            if named {
                excluded.insert(state.urn.clone());
            }
            if named || (keep_protected && state.protect) {
                kept.insert(state.urn.clone());
            }
        }
        // What is kept needs what it refers to: dependencies come earlier in the list.
        for ((_, state), _) in candidates.iter().rev() {
            if kept.contains(&state.urn) {
                kept.extend(references(state).cloned());
                kept.extend(state.provider.iter().map(|provider| provider.urn.clone()));
            }
        }
        let allowed = candidates.iter().filter(|((_, state), _)| !kept.contains(&state.urn) || state.delete);
        Some(allowed.map(|((id, _), _)| *id).collect())
    }

    /// Protected entries that would go stay, and so does what they need. Each is told of by its own failed step.
    fn kept_by_protection(
        &self,
        entries: &HashMap<EntryId, Arc<ResourceState>>,
        doomed: &HashMap<EntryId, StepOp>,
    ) -> HashSet<EntryId> {
        let mut spared = HashSet::new();
        for (id, op) in doomed {
            if let Some(state) = entries.get(id).filter(|state| state.protect && *op == StepOp::Delete) {
                spare_dependencies(state, entries, &mut spared);
            }
        }
        spared
    }

    /// Holds names that the user gave against what there is. False if the run cannot go on.
    pub(super) fn check_names(&self) -> bool {
        let known: Vec<Urn> = self.tables().base.iter().map(|(_, state)| state.urn.clone()).collect();
        let scope = &self.options.scope;
        let must_exist: Vec<_> = match self.options.operation {
            Operation::Update => self.options.replace.iter().collect(),
            Operation::Refresh | Operation::Destroy | Operation::Import => {
                scope.targets.iter().chain(&scope.excludes).collect()
            }
        };
        let mut fine = true;
        for pattern in must_exist.into_iter().filter(|pattern| pattern.is_literal()) {
            if !known.iter().any(|urn| pattern.matches(urn)) {
                self.tell_unknown_name(pattern.as_str());
                fine = false;
            }
        }
        if !fine {
            self.note_break();
        }
        fine
    }

    fn tell_unknown_name(&self, name: &str) {
        let mut message = Message::new(Severity::Error, format!("no resource of this stack is called {name}"));
        message.hint = "`sc stack export` lists the URNs".to_owned();
        self.emit(crate::events::Event::Message(message));
    }

    /// Literal targets that turned out to name nothing: noticed once the program has ended.
    pub(super) fn check_targets_found(&self) {
        if self.options.operation != Operation::Update {
            return;
        }
        let missing: Vec<String> = {
            let tables = self.tables();
            let exists =
                |name: &str| name.parse::<Urn>().is_ok_and(|urn| tables.goals.contains_key(&urn) || tables.had(&urn));
            let literal = self.options.scope.targets.iter().filter(|pattern| pattern.is_literal());
            literal.map(|pattern| pattern.as_str().to_owned()).filter(|name| !exists(name)).collect()
        };
        for name in &missing {
            self.tell_unknown_name(name);
        }
        if !missing.is_empty() {
            self.note_complaint();
        }
    }
}

/// Adds everything that an entry needs, directly or not, to what stays.
fn spare_dependencies(
    state: &ResourceState,
    entries: &HashMap<EntryId, Arc<ResourceState>>,
    spared: &mut HashSet<EntryId>,
) {
    let mut open = vec![Arc::new(state.clone())];
    while let Some(state) = open.pop() {
        let provider = state.provider.iter().map(|provider| &provider.urn);
        for urn in provider.chain(references(&state)) {
            for (id, needed) in entries.iter().filter(|(_, state)| state.urn == *urn) {
                if spared.insert(*id) {
                    open.push(Arc::clone(needed));
                }
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
