//! Which resources must go before another one is deleted to be replaced (engine semantics, section 2.12).

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;

use crate::state::{EntryId, ResourceState};

/// An entry of the loaded snapshot.
pub(in crate::deployment) type Entry = (EntryId, Arc<ResourceState>);

/// A walk over the loaded snapshot that collects what cannot live through the replacement of a resource.
///
/// A conversation: [`Walk::next`] asks, the caller probes and answers with [`Walk::answer`].
#[derive(Debug)]
pub(in crate::deployment) struct Walk {
    /// What comes after the root in the snapshot, reversed.
    ahead: Vec<Entry>,
    /// Whoever depends on the root, through whatever.
    dependents: HashSet<Urn>,
    /// The root and what is condemned with it.
    condemned_urns: HashSet<Urn>,
    condemned: Vec<Condemned>,
    asked: Option<(Entry, Vec<String>)>,
}

/// An entry that goes down with another one.
#[derive(Clone, Debug)]
pub(in crate::deployment) struct Condemned {
    pub(in crate::deployment) entry: Entry,
    /// Why: input names, `provider`, `deletedWith` or `replaceWith`.
    pub(in crate::deployment) keys: Vec<String>,
}

/// What a walk wants to know.
#[derive(Debug)]
pub(in crate::deployment) enum Probe {
    /// Would the entry be replaced if these inputs became unknown?
    WouldReplace { entry: Entry, keys: Vec<String> },
    /// Nothing more: these go, in this order of the snapshot.
    Done(Vec<Condemned>),
}

impl Walk {
    /// Starts at a root. `passed` tells whose fate this run has decided already: they no longer hang on the root.
    pub(in crate::deployment) fn new(root: &Entry, snapshot: &[Entry], passed: impl Fn(&Entry) -> bool) -> Self {
        let after = snapshot.iter().position(|(id, _)| *id == root.0).map_or(snapshot.len(), |index| index + 1);
        let ahead = snapshot[after..].iter().rev().filter(|entry| !passed(entry)).cloned().collect::<Vec<_>>();
        let urns = HashSet::from([root.1.urn.clone()]);
        Self { ahead, dependents: urns.clone(), condemned_urns: urns, condemned: Vec::new(), asked: None }
    }

    /// Goes on to the next question.
    pub(in crate::deployment) fn next(&mut self) -> Probe {
        while let Some(entry) = self.ahead.pop() {
            if !self.is_dependent(&entry.1) {
                continue;
            }
            self.dependents.insert(entry.1.urn.clone());
            if !entry.1.custom || entry.1.external {
                continue;
            }
            match self.judge(&entry.1) {
                Verdict::Lives => {}
                Verdict::Dies(key) => self.condemn(entry, vec![key.to_owned()]),
                Verdict::Probe(keys) => {
                    self.asked = Some((entry.clone(), keys.clone()));
                    return Probe::WouldReplace { entry, keys };
                }
            }
        }
        Probe::Done(std::mem::take(&mut self.condemned))
    }

    /// Answers the last question.
    pub(in crate::deployment) fn answer(&mut self, would_replace: bool) {
        if let Some((entry, keys)) = self.asked.take()
            && would_replace
        {
            self.condemn(entry, keys);
        }
    }

    fn condemn(&mut self, entry: Entry, keys: Vec<String>) {
        self.condemned_urns.insert(entry.1.urn.clone());
        self.condemned.push(Condemned { entry, keys });
    }

    fn is_dependent(&self, state: &ResourceState) -> bool {
        state
            .dependencies
            .iter()
            .chain(state.property_dependencies.values().flatten())
            .chain(&state.deleted_with)
            .chain(&state.replace_with)
            .chain(state.provider.as_ref().map(|provider| &provider.urn))
            .any(|urn| self.dependents.contains(urn))
    }

    fn judge(&self, state: &ResourceState) -> Verdict {
        let doomed = |urn: &Urn| self.condemned_urns.contains(urn);
        if state.provider.as_ref().is_some_and(|provider| doomed(&provider.urn)) {
            return Verdict::Dies("provider");
        }
        if state.deleted_with.as_ref().is_some_and(doomed) {
            return Verdict::Dies("deletedWith");
        }
        let keys: BTreeSet<&String> = state
            .property_dependencies
            .iter()
            .filter(|(key, urns)| state.inputs.contains_key(*key) && urns.iter().any(doomed))
            .map(|(key, _)| key)
            .collect();
        if keys.is_empty() { Verdict::Lives } else { Verdict::Probe(keys.into_iter().cloned().collect()) }
    }
}

enum Verdict {
    Lives,
    Dies(&'static str),
    Probe(Vec<String>),
}
