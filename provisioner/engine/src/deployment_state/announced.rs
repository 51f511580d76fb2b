//! Resources that the program will register, for deletions that precede the registrations.

use std::collections::BTreeSet;

use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};
use state::ResourceState;

use super::DeploymentState;
use super::resource_record::{Announced, AnnouncedOptions};
use crate::decisions::aliases;
use crate::goal::Goal;

impl DeploymentState {
    /// Stores the resources that the program will register, under the URNs by which they may be recorded. Of the open
    /// packages it may register others, too.
    pub(crate) fn announce(&mut self, goals: &[(Urn, Goal)], open_packages: BTreeSet<String>) {
        self.announced.is_announced = true;
        self.announced.open_packages = open_packages;
        for (urn, goal) in goals {
            let options = AnnouncedOptions {
                urn: urn.clone(),
                remote: goal.remote,
                protect: goal.protect,
                retain_on_delete: goal.retain_on_delete,
            };
            for recorded in aliases::candidate_urns(urn, goal, |_| None) {
                self.announced.resources.entry(recorded).or_insert_with(|| options.clone());
            }
        }
    }

    /// Returns whether the program will register a recorded entry, or a component around it, as protected.
    pub(crate) fn will_be_protected(&self, entry: &ResourceState) -> bool {
        self.announced_option(entry, |options| options.protect)
    }

    /// Returns whether the program will register a recorded entry, or a component around it, with `retainOnDelete`.
    pub(crate) fn will_be_retained(&self, entry: &ResourceState) -> bool {
        self.announced_option(entry, |options| options.retain_on_delete)
    }

    /// Returns whether the program will not register a live entry: it has announced its resources, and neither this one nor a
    /// component that could register it. False where this is not known.
    pub(super) fn is_gone(&self, loaded: &ResourceState, now: &ResourceState) -> bool {
        let Announced { is_announced, resources, open_packages } = &self.announced;
        let is_known = |urn: &Urn| self.is_registered(urn) || resources.contains_key(urn);
        let parent_of = |urn: &Urn| self.old_or_removed(urn).and_then(|(_, parent)| parent.parent.clone());
        let mut ancestors = std::iter::successors(loaded.parent.clone(), parent_of);
        let is_local = |urn: &Urn| resources.get(urn).is_some_and(|options| !options.remote && options.urn == *urn);
        let registers_no_others = |urn: &Urn| urn.type_token() == ROOT_STACK_TYPE || !is_known(urn) || is_local(urn);
        let is_removable = !now.delete && !now.external && !now.pending_replacement && !now.is_provider();
        *is_announced
            && is_removable
            && loaded.type_token.as_str() != ROOT_STACK_TYPE
            && !open_packages.contains(loaded.type_token.package())
            && ![&loaded.urn, &now.urn].into_iter().any(is_known)
            && ancestors.all(|urn| registers_no_others(&urn))
    }

    fn announced_option(&self, entry: &ResourceState, option: impl Fn(&AnnouncedOptions) -> Option<bool>) -> bool {
        let parent_of = |urn: &Urn| self.old_or_removed(urn).and_then(|(_, parent)| parent.parent.clone());
        let ancestors = std::iter::successors(entry.parent.clone(), parent_of);
        std::iter::once(entry.urn.clone())
            .chain(ancestors)
            .find_map(|urn| self.announced.resources.get(&urn).and_then(&option))
            .unwrap_or_default()
    }
}
