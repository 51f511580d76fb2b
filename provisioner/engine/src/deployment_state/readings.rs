//! Results of reading recorded resources, by provider.

use pulumi_proto::urn::Urn;
use state::{EntryId, ResourceState};

use super::DeploymentState;
use crate::events::is_managed;
use crate::missing::{MissingResource, ProviderReadings};

impl DeploymentState {
    /// Adds the result of reading an entry. Entries whose resource the stack does not own do not count. Protection matters only
    /// for live entries: a pending create may have created nothing, and a pending delete is to be deleted.
    pub(crate) fn add_reading(&mut self, (id, entry): (EntryId, &ResourceState), exists: bool) {
        let Some(provider) = entry.provider.as_ref().filter(|_| is_managed(entry)) else { return };
        let is_live = !entry.delete && self.ledger.unread_creates().all(|(unread, _)| unread != id);
        let reconfigured = self.live(&provider.urn).and_then(|(_, provider)| provider.modified);
        let is_older = entry.modified.max(entry.created).is_some_and(|changed| Some(changed) < reconfigured);
        let new = || ProviderReadings {
            providers: vec![provider.urn.clone()],
            configuration: 0,
            read: 0,
            missing: Vec::new(),
            is_reconfigured: true,
        };
        let readings = self.readings.entry(provider.urn.clone()).or_insert_with(new);
        readings.read += 1;
        if !exists {
            readings.missing.push(MissingResource { urn: entry.urn.clone(), protect: entry.protect && is_live });
            readings.is_reconfigured &= is_older;
        }
    }

    /// Returns the results of the reads so far, by provider. The order does not depend on which reply came first.
    pub(crate) fn readings(&self) -> Vec<ProviderReadings> {
        let mut readings: Vec<ProviderReadings> = Vec::new();
        // Without a missing resource nobody compares providers.
        let compares = self.readings.values().any(|found| !found.missing.is_empty());
        for found in self.readings.values() {
            let is_same =
                |other: &&ProviderReadings| self.are_configured_alike(&found.providers[0], &other.providers[0]);
            let same = readings.iter().find(|other| compares && is_same(other));
            let configuration = same.map_or(readings.len(), |same| same.configuration);
            readings.push(ProviderReadings { configuration, ..found.clone() });
        }
        readings.iter_mut().for_each(|found| found.missing.sort_by(|one, other| one.urn.cmp(&other.urn)));
        readings
    }

    /// Returns whether two provider resources have one package and equal configurations.
    fn are_configured_alike(&self, provider: &Urn, other: &Urn) -> bool {
        let reference = |urn: &Urn| self.live(urn).and_then(|(_, entry)| entry.as_provider_reference());
        reference(provider).zip(reference(other)).is_some_and(|(ours, theirs)| self.is_same_provider(&ours, &theirs))
    }

    /// Marks the refresh as refused: nothing of it is recorded or counted.
    pub(crate) fn refuse_refresh(&mut self) {
        self.is_refresh_refused = true;
        self.counts.clear();
    }

    pub(crate) fn is_refresh_refused(&self) -> bool {
        self.is_refresh_refused
    }
}
