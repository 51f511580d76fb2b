//! Entries that are carried over as they are recorded, after what they depend on (engine semantics, section 2.16).

use hashbrown::HashSet;
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::Urn;

use crate::deployment_state::DeploymentState;
use crate::entry::Entry;
use crate::step::Step;

/// An entry cannot be carried over: its provider has been replaced in this run.
#[derive(Debug)]
pub(crate) struct ProviderReplaced {
    /// The entry.
    pub(crate) urn: Urn,
}

/// Returns the steps that carry an entry over under a URN, after whatever it refers to that no other steps carry over. The
/// caller must carry them out: others wait for that.
///
/// # Errors
/// [`ProviderReplaced`].
pub(crate) fn carry_over(state: &mut DeploymentState, entry: &Entry, urn: &Urn) -> Result<Vec<Step>, ProviderReplaced> {
    let mut collected = Collected::default();
    collected.add(state, entry, urn)?;
    for (urn, _) in &collected.entries {
        state.begin_carry_over(urn);
    }
    Ok(collected.entries.into_iter().map(|(urn, entry)| Step::carry_over(entry, urn)).collect())
}

/// The entries that are carried over together, dependencies first.
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
        for needed in resource.provider_and_references() {
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
