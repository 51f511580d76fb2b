//! What a registration inherits, and what it was before (engine semantics, sections 2.1 and 2.3).

use std::sync::Arc;

use hashbrown::HashSet;
use pulumi_proto::urn::{ProviderReference, Urn};

use crate::events::{Message, Operation, Severity, SourceRef};

use super::decide::{Answers, Kind, Question, aliases, inputs};
use super::engine::Engine;
use super::goal::Goal;
use super::register::{Registration, random_seed};
use super::registrar::{Refused, Registered, RegistrationResult};
use super::tables::Inheritance;

impl Engine {
    /// Where the component was written that registers this: itself, or a child.
    pub(super) fn place_of_component(&self, urn: &Urn, parent: Option<&Urn>) -> Option<SourceRef> {
        let mut tables = self.tables();
        let known = &tables.constructed_at;
        let source = known.get(urn).or_else(|| known.get(parent?)).copied()?;
        tables.constructed_at.insert(urn.clone(), source);
        Some(source)
    }

    /// Options that a child takes from its parent where it says nothing (section 2.1).
    pub(super) fn inherit(&self, urn: &Urn, goal: &mut Goal) -> Result<(), Refused> {
        let Some(parent) = &goal.parent else { return Ok(()) };
        let inherited = self.tables().goals.get(parent).cloned();
        let Some(inherited) = inherited else {
            let text = format!("its parent {parent} has not been registered in this run");
            self.break_off(urn, goal.source, Message::new(Severity::Error, text));
            return Err(Refused);
        };
        goal.protect = goal.protect.or(Some(inherited.protect));
        goal.retain_on_delete = goal.retain_on_delete.or(Some(inherited.retain_on_delete));
        goal.deleted_with = goal.deleted_with.take().or(inherited.deleted_with);
        let serves = |provider: &ProviderReference| {
            let package = pulumi_proto::urn::TypeToken::new(provider.urn.type_token());
            let is_local_component = !goal.custom && !goal.remote;
            is_local_component || package.provider_package() == Some(goal.type_token.package())
        };
        if goal.provider.is_none() && !goal.type_token.is_provider() {
            goal.provider = inherited.provider.filter(serves);
        }
        if !goal.custom {
            for (package, reference) in inherited.providers {
                goal.providers.entry(package).or_insert(reference);
            }
        } else if goal.provider.is_none() {
            goal.provider = inherited.providers.get(goal.type_token.package()).cloned();
        }
        Ok(())
    }

    /// Finds what a registration was before, and whether it can be at all (section 2.3).
    pub(super) async fn identify(
        self: &Arc<Self>,
        mut goal: Goal,
        urn: Urn,
        kind: Kind,
        internal: bool,
    ) -> Result<Registration, Result<Registered, Refused>> {
        let instance = match (&goal.provider, kind) {
            (Some(reference), Kind::Custom) => Some(self.instance(reference, &urn, goal.source).await.map_err(Err)?),
            _ => None,
        };
        let seed = random_seed();
        let naming = match (&self.naming, kind) {
            (Ok(naming), Kind::Custom) => naming.propose(&urn, &seed),
            _ => None,
        };
        if naming.as_ref().is_some_and(|proposal| proposal.fixed) {
            // Two of one name cannot be there at once.
            goal.delete_before_replace = Some(true);
        }
        let mut registration = Registration {
            old: None,
            kind,
            internal,
            imported: false,
            in_scope: true,
            is_read: true,
            seed,
            naming,
            answers: Answers::default(),
            instance,
            parked: None,
            goal,
            urn,
        };
        let clash = self.find_old(&mut registration);
        if let Some(text) = clash {
            self.complain(&registration.urn, registration.goal.source, Message::new(Severity::Error, text));
            // What is wrong is told at once, and the run ends once the provider has checked the inputs.
            if registration.kind == Kind::Custom {
                let old = registration.old.as_ref();
                let news = old.map(|(_, old)| inputs::ignoring_changes(&registration.goal, old).0);
                let question = news.map_or(Question::CheckFresh, |news| Question::CheckCarried { news });
                self.ask(&mut registration, question).await.map_err(Err)?;
                let Answers { fresh, carried, .. } = std::mem::take(&mut registration.answers);
                if let Some(Err(failures)) = fresh.or(carried) {
                    self.refuse_inputs(&mut registration, &failures);
                }
            }
            self.note_break();
            return Err(Err(Refused));
        }
        let probe = self.new_state(&registration, Arc::default());
        if probe.references().any(|urn| self.tables().failed.contains(urn)) {
            self.tables().failed.insert(registration.urn.clone());
            self.settle(&registration.urn);
            return Err(Ok(Registered::without_outputs(registration.urn, RegistrationResult::Skipped)));
        }
        let mut tables = self.tables();
        let scope = &self.options.scope;
        registration.in_scope = scope.admits(&probe, &mut tables.scoped);
        // As it is recorded, and in a refresh only what hangs on something named itself.
        let none = HashSet::new();
        let marked = if self.options.operation == Operation::Refresh { &none } else { &tables.scoped };
        registration.is_read = registration.old.as_ref().is_some_and(|(_, old)| scope.admits_rereading(old, marked));
        let doomed = self.options.operation == Operation::Destroy && registration.kind == Kind::Custom;
        if let Some((_, old)) = registration.old.as_ref().filter(|_| doomed || !registration.in_scope) {
            // It stays as it is recorded, under its old name.
            if let Some(loaded) = tables.alias_of.get(&registration.urn).cloned() {
                tables.aliased.remove(&loaded);
            }
            tables.decided.insert(old.urn.clone());
            tables.keep_name(&registration.urn, &old.urn);
        }
        drop(tables);
        Ok(registration)
    }

    /// Looks for the recorded entry under every name it may have. Returns what is wrong with the name, if anything.
    fn find_old(&self, registration: &mut Registration) -> Option<String> {
        let (goal, urn) = (&registration.goal, &registration.urn);
        let tables = &mut *self.tables();
        if tables.goals.contains_key(urn) {
            return Some(format!("{urn} is registered twice"));
        }
        let mut named = tables.ledger.named(urn).filter(|(_, state)| !state.delete);
        if let Some(owner) = named.find_map(|(_, state)| state.view_of.clone()) {
            return Some(format!("{urn} is the name of a view that the provider of {owner} shows"));
        }
        tables.goals.insert(
            urn.clone(),
            Inheritance {
                protect: goal.protect.unwrap_or_default(),
                retain_on_delete: goal.retain_on_delete.unwrap_or_default(),
                deleted_with: goal.deleted_with.clone(),
                provider: goal.provider.clone(),
                providers: goal.providers.clone(),
            },
        );
        let candidates = aliases::candidates(urn, goal, |urn| tables.alias_of.get(urn));
        let found = candidates.into_iter().find_map(|candidate| Some((tables.loaded(&candidate)?, candidate)));
        let mut clash = None;
        if let Some((old, candidate)) = found {
            registration.old = Some(old);
            if candidate != *urn {
                if tables.goals.contains_key(&candidate) {
                    clash = Some(format!("its alias {candidate} is a resource of this run"));
                } else if let Some(other) = tables.aliased.get(&candidate) {
                    clash = Some(format!("its alias {candidate} is taken by {other}"));
                } else {
                    tables.aliased.insert(candidate.clone(), urn.clone());
                    tables.alias_of.insert(urn.clone(), candidate);
                }
            }
        }
        if let Some(other) = tables.aliased.get(urn).filter(|other| *other != urn) {
            clash = Some(format!("{other} has taken over what was recorded under this name"));
        }
        clash
    }
}
