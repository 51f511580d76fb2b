//! Creations that a run has recorded late: after another run had taken its journal over, or behind a gap in the store.
//!
//! A run that was stopped past its lease, or cut off from the store, still receives replies to calls that were under way. What
//! they have created exists, and no checkpoint has it: it becomes a pending create with its id, which the next run reads.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use crate::journal::{Creations, StoredJournal};
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;
use crate::state_edit::{LateTreatment, record_late};

/// Creations that a run has recorded late.
#[derive(Debug)]
pub(super) struct LateCreations {
    run: String,
    path: PathBuf,
    states: Vec<Arc<ResourceState>>,
}

/// Treatment of resources that runs have recorded late. `Display` says so, a line for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateReport {
    /// Resources that are pending creates with their ids from now on.
    pub adopted: Vec<(Urn, ResourceId)>,
    /// Resources that are not recorded, because the state has another one in their place.
    pub conflicts: Vec<LateConflict>,
}

/// Resource that a run has created late, although the state has another one of its URN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateConflict {
    /// Name of the resource in the state.
    pub urn: Urn,
    /// Id of the resource that was created late.
    pub id: ResourceId,
    /// Id of the resource that the state has.
    pub recorded: ResourceId,
    /// Id of the run that has created it.
    pub run: String,
    /// Journal of the run.
    pub journal: PathBuf,
}

/// Result of the search for creations that came late.
#[derive(Debug, Default)]
pub(super) struct Late {
    pub(super) report: LateReport,
    /// State with the adopted creations; `None` if nothing was adopted.
    pub(super) snapshot: Option<Snapshot>,
    /// Runs with late creations, with their journals.
    runs: BTreeMap<String, PathBuf>,
}

impl LateCreations {
    /// Returns the late creations of a journal; `None` if it has none.
    pub(super) fn new(stored: &StoredJournal, creations: Creations) -> Option<Self> {
        Self::of(stored, creations.created.into_iter().chain(creations.creating).collect())
    }

    /// Returns creations of a journal; `None` if there are none.
    pub(super) fn of(stored: &StoredJournal, states: Vec<Arc<ResourceState>>) -> Option<Self> {
        let (run, path) = (stored.run.clone(), stored.path());
        (!states.is_empty()).then_some(Self { run, path, states })
    }
}

impl Late {
    /// Adds late creations to a state, as far as it lacks them.
    pub(super) fn new(late: Vec<LateCreations>, snapshot: &Snapshot) -> Self {
        let mut found = Self::default();
        if late.is_empty() {
            return found;
        }
        let mut snapshot = snapshot.clone();
        for LateCreations { run, path, states } in late {
            for state in &states {
                let Some(id) = state.id.clone() else { continue };
                match record_late(&mut snapshot, state) {
                    LateTreatment::Recorded => {}
                    LateTreatment::PendingCreate => found.report.adopted.push((state.urn.clone(), id)),
                    LateTreatment::OtherId(recorded) => {
                        let (urn, run, journal) = (state.urn.clone(), run.clone(), path.clone());
                        found.report.conflicts.push(LateConflict { urn, id, recorded, run, journal });
                    }
                }
            }
            found.runs.insert(run, path);
        }
        found.snapshot = Some(snapshot).filter(|_| !found.report.adopted.is_empty());
        found
    }

    /// Returns the journal of a run whose creations the state lacks.
    pub(super) fn unsettled_journal(&self) -> Option<&Path> {
        let conflict = self.report.conflicts.first().map(|conflict| conflict.journal.as_path());
        let adopted = self.runs.values().next().filter(|_| self.snapshot.is_some()).map(PathBuf::as_path);
        conflict.or(adopted)
    }

    /// Returns `true` if the objects of a run stay until the state with the adopted creations is saved.
    pub(super) fn has_run(&self, run: &str) -> bool {
        self.runs.contains_key(run)
    }

    /// Returns `true` if the objects of a run stay, because not all that it has created is in the state.
    pub(super) fn has_conflict(&self, run: &str) -> bool {
        self.report.conflicts.iter().any(|conflict| conflict.run == run)
    }
}

impl LateReport {
    /// Returns `true` if there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.adopted.is_empty() && self.conflicts.is_empty()
    }
}

impl fmt::Display for LateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.adopted.iter().map(|(urn, id)| {
            format!(
                "{} was created as {id} by a run that was taken over: it is a pending create, which is read next",
                urn.name()
            )
        });
        let conflicts = self.conflicts.iter().map(|LateConflict { urn, id, recorded, run, .. }| {
            format!(
                "{} exists twice: the state has {recorded}, and run {run}, which was taken over, has created {id}. Find out which of \
                 the two is needed, delete the other one, then run `sc state journal discard {run}`",
                urn.name()
            )
        });
        let first = lines.next();
        let all: Vec<String> = first.into_iter().chain(lines).chain(conflicts).collect();
        f.write_str(&all.join("\n"))
    }
}
