//! Dependent replacements: the resources that are deleted and replaced because a resource that they depend on is
//! deleted before it is replaced (docs/spec/engine-semantics.md#2.12).

use std::borrow::Cow;
use std::collections::BTreeSet;

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;

use state::{Entry, Relation, ResourceState};

/// A walk over the loaded snapshot that collects the dependents that must be replaced together with a resource that is
/// deleted before it is replaced.
///
/// [`DependentWalk::next`] returns a query; the caller calls the provider and passes the reply to
/// [`DependentWalk::record_reply`].
#[derive(Debug)]
pub(crate) struct DependentWalk {
    /// Entries that the walk has not visited: those after the root in the snapshot, last first, without skipped ones.
    remaining: Vec<Entry>,
    /// The root and all its direct and indirect dependents.
    dependents: HashSet<Urn>,
    /// The root and the dependents that are replaced with it.
    replaced_urns: HashSet<Urn>,
    replaced: Vec<DependentReplacement>,
    queried: Option<(Entry, Vec<String>)>,
}

/// A dependent that is replaced together with the root.
#[derive(Clone, Debug)]
pub(crate) struct DependentReplacement {
    pub(crate) entry: Entry,
    /// Reasons: input names, `provider`, `deletedWith` or `replaceWith`.
    pub(crate) keys: Vec<String>,
}

/// Result of [`DependentWalk::next`].
#[derive(Debug)]
pub(crate) enum WalkResult {
    /// The caller must call Diff, which decides whether the entry is replaced if these inputs become unknown.
    CallDiff { entry: Entry, keys: Vec<String> },
    /// The walk is complete: these dependents are replaced, in the order of the snapshot.
    Done(Vec<DependentReplacement>),
}

impl DependentWalk {
    /// Starts at a root. `is_skipped` selects entries that this run has decided already: they no longer depend on the
    /// root.
    pub(crate) fn new(root: &Entry, snapshot: &[Entry], is_skipped: impl Fn(&Entry) -> bool) -> Self {
        let after = snapshot.iter().position(|(id, _)| *id == root.0).map_or(snapshot.len(), |index| index + 1);
        let remaining = snapshot[after..].iter().rev().filter(|entry| !is_skipped(entry)).cloned().collect::<Vec<_>>();
        let urns = HashSet::from([root.1.urn.clone()]);
        Self { remaining, dependents: urns.clone(), replaced_urns: urns, replaced: Vec::new(), queried: None }
    }

    /// Returns the next query, or the result.
    pub(crate) fn next(&mut self) -> WalkResult {
        while let Some(entry) = self.remaining.pop() {
            if !self.is_dependent(&entry.1) {
                continue;
            }
            self.dependents.insert(entry.1.urn.clone());
            if !entry.1.custom || entry.1.external {
                continue;
            }
            match self.decide_replace(&entry.1) {
                ReplaceDecision::NotReplaced => {}
                ReplaceDecision::Replaced(key) => self.replace(entry, vec![key.to_owned()]),
                ReplaceDecision::NeedsDiff(keys) => {
                    self.queried = Some((entry.clone(), keys.clone()));
                    return WalkResult::CallDiff { entry, keys };
                }
            }
        }
        WalkResult::Done(std::mem::take(&mut self.replaced))
    }

    /// Records the reply to the last query.
    pub(crate) fn record_reply(&mut self, would_replace: bool) {
        if let Some((entry, keys)) = self.queried.take()
            && would_replace
        {
            self.replace(entry, keys);
        }
    }

    fn replace(&mut self, entry: Entry, keys: Vec<String>) {
        self.replaced_urns.insert(entry.1.urn.clone());
        self.replaced.push(DependentReplacement { entry, keys });
    }

    fn is_dependent(&self, state: &ResourceState) -> bool {
        state.references().any(|(relation, urn)| match relation {
            Relation::Provider
            | Relation::Dependency
            | Relation::PropertyDependency(_)
            | Relation::DeletedWith
            | Relation::ReplaceWith => self.dependents.contains(urn),
            // A child is not replaced because its parent is.
            Relation::Parent | Relation::ViewOf => false,
        })
    }

    fn decide_replace(&self, state: &ResourceState) -> ReplaceDecision {
        let mut keys: BTreeSet<Cow<'_, str>> = BTreeSet::new();
        for (relation, _) in state.references().filter(|(_, urn)| self.replaced_urns.contains(*urn)) {
            match relation {
                Relation::Provider => return ReplaceDecision::Replaced("provider"),
                Relation::DeletedWith => return ReplaceDecision::Replaced("deletedWith"),
                Relation::PropertyDependency(key) => {
                    keys.extend(state.inputs.contains_key(key.as_ref()).then_some(key));
                }
                Relation::Parent | Relation::Dependency | Relation::ReplaceWith | Relation::ViewOf => {}
            }
        }
        if keys.is_empty() {
            ReplaceDecision::NotReplaced
        } else {
            ReplaceDecision::NeedsDiff(keys.into_iter().map(Cow::into_owned).collect())
        }
    }
}

/// Decision whether a dependent is replaced together with the root.
enum ReplaceDecision {
    NotReplaced,
    /// The dependent is replaced; the key is the reason.
    Replaced(&'static str),
    /// Diff decides, with these inputs unknown.
    NeedsDiff(Vec<String>),
}
