//! Options of resources that the program will register, for deletions that precede the registrations.

use pulumi_proto::urn::Urn;
use state::ResourceState;

use super::DeploymentState;
use super::resource_record::AnnouncedOptions;
use crate::decisions::aliases;
use crate::goal::Goal;

impl DeploymentState {
    /// Stores the options of resources that the program will register, under the URNs by which they may be recorded.
    pub(crate) fn announce(&mut self, goals: &[(Urn, Goal)]) {
        for (urn, goal) in goals {
            let options = AnnouncedOptions { protect: goal.protect, retain_on_delete: goal.retain_on_delete };
            for recorded in aliases::candidate_urns(urn, goal, |_| None) {
                self.announced.entry(recorded).or_insert(options);
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

    fn announced_option(&self, entry: &ResourceState, option: impl Fn(&AnnouncedOptions) -> Option<bool>) -> bool {
        let parent_of = |urn: &Urn| self.old_or_removed(urn).and_then(|(_, parent)| parent.parent.clone());
        let ancestors = std::iter::successors(entry.parent.clone(), parent_of);
        std::iter::once(entry.urn.clone())
            .chain(ancestors)
            .find_map(|urn| self.announced.get(&urn).and_then(&option))
            .unwrap_or_default()
    }
}
