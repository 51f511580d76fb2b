//! Store, machines and cloud of a generated interleaving.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, Urn};
use state::store::{Fault, LockHolder, LockLease, MemoryObjects, Objects as _, StateStore, StoreError, StoreOptions};
use state::{JournalMode, LockSettings, OperationKind, ResourceState, Snapshot, StackAccess, StackState, StateError};

use crate::fixture::{begun, holder, resource, secret_resource};
use crate::store_journal::{Machine, segments};

pub(crate) const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const LEASE: Duration = LockLease::DURATION;

/// Pseudo-random numbers: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

/// Store, and what the calls of all machines have created.
pub(crate) struct World {
    pub(crate) objects: MemoryObjects,
    pub(crate) random: RefCell<Random>,
    pub(crate) mode: JournalMode,
    pub(crate) cloud: RefCell<Cloud>,
}

#[derive(Default)]
pub(crate) struct Cloud {
    /// Resources that exist, by their ids.
    pub(crate) existing: BTreeMap<String, Urn>,
    /// Ids of all resources that have ever existed.
    pub(crate) created: BTreeSet<String>,
    /// Ids of resources whose creation had ended with a line that the store has acknowledged.
    pub(crate) recorded: BTreeSet<String>,
    /// Ids of resources whose deletion had ended with a line that the store has acknowledged before it was sealed.
    pub(crate) deleted: BTreeSet<String>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let random = RefCell::new(Random(seed));
        let world =
            Self { objects: MemoryObjects::default(), random, mode: JournalMode::Intents, cloud: <_>::default() };
        // The clock of the store is that of no machine.
        world.objects.move_clock(SignedDuration::from_hours(world.below(3) as i64 - 1));
        let mode = *world.pick(&[JournalMode::Intents, JournalMode::Sync]);
        Self { mode, ..world }
    }

    pub(crate) fn below(&self, limit: usize) -> usize {
        self.random.borrow_mut().below(limit)
    }

    pub(crate) fn one_in(&self, number: usize) -> bool {
        self.below(number) == 0
    }

    pub(crate) fn pick<'t, T>(&self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    /// Returns the state before the interleaving: a provider and some of the resources.
    pub(crate) fn base(&self) -> Snapshot {
        let provider = ResourceState { id: ResourceId::new("p"), ..ResourceState::new(provider_urn(), true) };
        let existing = NAMES.iter().filter(|_| self.one_in(2)).map(|name| {
            let state = self.described(name);
            with_id(&state, &self.create(&state.urn))
        });
        Snapshot { resources: [Arc::new(provider)].into_iter().chain(existing).collect(), ..Snapshot::default() }
    }

    /// Returns a resource that does not exist yet.
    pub(crate) fn described(&self, name: &str) -> Arc<ResourceState> {
        let state = if self.one_in(2) { secret_resource(name) } else { resource(name) };
        let provider = Some(ProviderReference::new(provider_urn(), "p"));
        begun(&ResourceState { provider, ..ResourceState::clone(&state) })
    }

    /// Creates a resource, and returns its id.
    pub(crate) fn create(&self, urn: &Urn) -> String {
        let mut cloud = self.cloud.borrow_mut();
        let id = format!("{}-{}", urn.name(), cloud.created.len());
        cloud.created.insert(id.clone());
        cloud.existing.insert(id.clone(), urn.clone());
        id
    }

    pub(crate) fn deliver_some(&self) {
        if self.one_in(2) {
            self.objects.deliver_held();
        }
    }

    /// Remembers the creations in the segments that the store has.
    pub(crate) async fn remember_stored(&self) {
        for key in segments(&self.objects).await {
            let object = self.objects.read(&key, 1 << 20).await.unwrap().unwrap();
            let text = String::from_utf8(object.content).unwrap();
            let mut cloud = self.cloud.borrow_mut();
            let Cloud { created, recorded, .. } = &mut *cloud;
            recorded.extend(created.iter().filter(|id| text.contains(&format!("\"{id}\""))).cloned());
        }
    }

    /// Opens the stack on a machine, and checks its state.
    pub(crate) async fn inspect(&self, host: &Host) -> (Snapshot, Vec<String>) {
        let (_, state) = open(self, host, Takeover::Cancel, None).await.unwrap();
        let checked = self.check(&state);
        state.release().await.unwrap();
        checked
    }

    /// Checks a state against the cloud. Returns it with the ids of the resources that the report of late creations names.
    pub(crate) fn check(&self, state: &StackState) -> (Snapshot, Vec<String>) {
        let snapshot = state.snapshot();
        let creates = snapshot.pending_operations.iter().filter(|pending| pending.kind == OperationKind::Creating);
        let (known, unknown): (Vec<_>, Vec<_>) =
            creates.map(|pending| &pending.resource).partition(|resource| resource.id.is_some());
        let entries = snapshot.resources.iter().filter(|entry| !entry.is_provider());
        let recorded: BTreeSet<String> = entries.map(|entry| entry.id_text().to_owned()).collect();
        let ids: BTreeSet<String> =
            known.iter().map(|state| state.id_text().to_owned()).chain(recorded.iter().cloned()).collect();
        let conflicts: Vec<String> = state.late().conflicts.iter().map(|late| late.id.as_str().to_owned()).collect();
        let cloud = self.cloud.borrow();
        for (id, urn) in &cloud.existing {
            let is_pending = unknown.iter().any(|resource| resource.urn == *urn) && !cloud.recorded.contains(id);
            assert!(ids.contains(id) || conflicts.contains(id) || is_pending, "{id} is lost: {ids:?} {unknown:?}");
        }
        assert!(ids.is_subset(&cloud.created), "adopted without a creation: {ids:?} {:?}", cloud.created);
        // A pending create with an id is read before it counts: a late line on the disk of a machine that comes back may announce
        // what another machine has deleted since.
        assert!(recorded.is_disjoint(&cloud.deleted), "deleted before: {recorded:?} {:?}", cloud.deleted);
        (snapshot.clone(), conflicts)
    }
}

pub(crate) fn provider_urn() -> Urn {
    Urn::new("dev", "reef", None, "pulumi:providers:t", "default")
}

pub(crate) fn with_id(state: &ResourceState, id: &str) -> Arc<ResourceState> {
    Arc::new(ResourceState { id: ResourceId::new(id), ..state.clone() })
}

/// Machine with its disk.
pub(crate) struct Host {
    pub(crate) machine: Machine,
    pub(crate) name: &'static str,
}

/// Process on a machine, with a connection to the store of its own.
pub(crate) struct Process<'h> {
    pub(crate) host: &'h Host,
    pub(crate) objects: MemoryObjects,
    pub(crate) mode: JournalMode,
}

/// Reason why a lock of another run is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takeover {
    Cancel,
    Lease,
    Ended,
}

impl Takeover {
    pub(crate) const ALL: [Self; 3] = [Self::Cancel, Self::Lease, Self::Ended];
}

impl Host {
    pub(crate) fn process<'h>(&'h self, world: &World) -> Process<'h> {
        let latency = Duration::from_millis(world.below(6) as u64);
        let objects = world.objects.clone().with_own_faults().with_latency(latency);
        Process { host: self, objects, mode: world.mode }
    }
}

impl Process<'_> {
    pub(crate) async fn open(&self, takeover: Takeover) -> Result<StackState, StateError> {
        match takeover {
            Takeover::Cancel => self.host.machine.break_locks().await,
            Takeover::Lease => self.objects.move_clock(SignedDuration::try_from(2 * LEASE).unwrap()),
            Takeover::Ended => {}
        }
        let has_ended = if takeover == Takeover::Ended { |_: &_| true } else { |_: &_| false };
        let access = StackAccess {
            store: StateStore::open(Arc::new(self.objects.clone()), StoreOptions::default()).await?,
            locks: LockSettings { has_ended, ..LockSettings::default() },
            journal_mode: self.mode,
            ..self.host.machine.access.clone()
        };
        let holder = LockHolder { hostname: self.host.name.to_owned(), lease: Some(LockLease::new(LEASE)), ..holder() };
        StackState::open(access, &holder).await
    }
}

/// Opens the stack on a machine. Returns `None` if the process ends meanwhile, with the request after `lost_after` others.
pub(crate) async fn open(
    world: &World,
    host: &Host,
    mut takeover: Takeover,
    lost_after: Option<usize>,
) -> Option<(MemoryObjects, StackState)> {
    world.remember_stored().await;
    let process = host.process(world);
    let is_lost = Arc::new(AtomicBool::new(false));
    if let Some(lost_after) = lost_after {
        let (lost, mut requests) = (Arc::clone(&is_lost), 0);
        process.objects.set_faults(move |_| {
            requests += 1;
            lost.fetch_or(requests > lost_after, Ordering::Relaxed);
            if requests > lost_after { Fault::NotReached } else { Fault::None }
        });
    }
    for _ in 0..4 {
        match process.open(takeover).await {
            Ok(state) => return Some((process.objects, state)),
            Err(_) if is_lost.load(Ordering::Relaxed) => return None,
            // A run that could not save has left its lock, and the journal of an active run grows.
            Err(StateError::Store(StoreError::Locked { .. }) | StateError::JournalChanged { .. }) => {
                takeover = Takeover::Cancel;
            }
            Err(error) => panic!("{takeover:?}: {}", bridge::error::chain(&error)),
        }
    }
    panic!("the stack stays locked")
}
