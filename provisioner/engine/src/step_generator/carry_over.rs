//! Steps that carry entries over as they are recorded, after their dependencies (docs/spec/engine-semantics.md#2.16).

use hashbrown::HashSet;
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::Urn;

use crate::deployment_state::DeploymentState;
use crate::step::Step;
use state::Entry;

/// Error of an entry that cannot be carried over: its provider has been replaced in this run.
#[derive(Debug)]
pub(crate) struct ProviderReplaced {
    /// URN of the entry.
    pub(crate) urn: Urn,
}

/// Returns the steps that carry an entry over under a URN, after the entries that it refers to and that no other steps
/// carry over. The caller must carry the steps out: other registrations wait for them.
///
/// # Errors
/// [`ProviderReplaced`] if the provider of one of these entries has been replaced in this run.
pub(crate) fn carry_over(state: &mut DeploymentState, entry: &Entry, urn: &Urn) -> Result<Vec<Step>, ProviderReplaced> {
    let mut collected = Collected::default();
    collected.add(state, entry, urn)?;
    for (urn, _) in &collected.entries {
        state.begin_carry_over(urn);
    }
    Ok(collected.entries.into_iter().map(|(urn, entry)| Step::carry_over(entry, urn)).collect())
}

/// Entries that are carried over together, dependencies first.
#[derive(Default)]
struct Collected {
    visited: HashSet<Urn>,
    entries: Vec<(Urn, Entry)>,
}

impl Collected {
    fn add(&mut self, state: &DeploymentState, entry: &Entry, urn: &Urn) -> Result<(), ProviderReplaced> {
        let (_, resource) = entry;
        self.visited.insert(urn.clone());
        if let Some(provider) = &resource.provider
            && state.registered(&provider.urn).is_some_and(|(_, new)| ReferenceId::from(new.id.as_ref()) != provider.id)
        {
            return Err(ProviderReplaced { urn: urn.clone() });
        }
        for needed in resource.provider_and_dependencies() {
            if self.visited.contains(needed) || state.is_registered(needed) {
                continue;
            }
            if let Some(entry) = state.live(needed) {
                self.add(state, &entry, needed)?;
            }
        }
        self.entries.push((urn.clone(), entry.clone()));
        Ok(())
    }
}
