//! Generated interleavings of machines on one stack in a store: a run is stopped past its lease, or goes on although its lock was
//! removed, another machine takes its journal over, and calls of both take place at any time.
//!
//! The cloud is the set of resources that calls have created. A call takes place only once the record that announces it may be
//! relied on, as in the engine. Whatever the order, the next run knows each resource.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pulumi_proto::urn::Urn;
use state::format::UpdateKind;
use state::store::{Fault, MemoryObjects};
use state::{
    Effect, EntryId, JournalRecorder, Ledger, OperationId, OperationKind, Record, ResourceState, StackState,
    StateRecorder as _, Subject,
};

use crate::fixture::update;
use crate::store_journal::Machine;
use crate::world::{Host, NAMES, Random, Takeover, World, open, provider_urn, with_id};

/// Runs as many interleavings as `SC_INTERLEAVINGS` requests, starting with the seed `SC_SEED`. A failure shows the seed last.
///
/// Shows: state.md#stores "Several machines at once cannot harm each other"
#[test]
fn resources_of_all_machines_are_known_whatever_the_order_of_their_requests() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let count = if number("SC_SEED").is_some() { 1 } else { 60 };
    let (first, count) = (number("SC_SEED").unwrap_or(1), number("SC_INTERLEAVINGS").unwrap_or(count));
    for seed in first..first + count {
        println!("SC_SEED={seed}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(interleave(seed));
    }
}

async fn interleave(seed: u64) {
    let world = World::new(seed);
    let mut hosts = Vec::new();
    for name in ["amber", "birch", "cedar", "dune", "last", "other"] {
        hosts.push(Host { machine: Machine::new(&world.objects).await, name });
    }
    let base = hosts[0].process(&world).open(Takeover::Cancel).await.unwrap();
    base.close(world.base(), Some(&update())).await.unwrap();

    let mut stopped = Run::start(&world, &hosts[0], Takeover::Cancel, None).await.unwrap();
    stopped.steps(10).await;
    stopped.is_undisturbed = false;
    let is_active = world.one_in(3);
    if world.one_in(2) {
        hold_segments(&stopped.objects, world.below(1 << 20) as u64);
        stopped.steps(4).await;
    }
    if !is_active {
        stopped.stop();
    }
    for host in &hosts[1..=1 + world.below(2)] {
        let takeover = *world.pick(if is_active { &[Takeover::Cancel] } else { &Takeover::ALL });
        let lost_after = world.one_in(2).then(|| world.below(60));
        let taking = Run::start(&world, host, takeover, lost_after);
        let taken = if is_active { tokio::join!(taking, stopped.steps(8)).0 } else { taking.await };
        world.deliver_some();
        if let Some(mut taken) = taken {
            taken.steps(6).await;
            taken.end_or_lose().await;
        }
        world.deliver_some();
    }
    stopped.resume();
    stopped.steps(8).await;
    stopped.end_or_lose().await;
    if world.one_in(2) {
        // The machine of the stopped run may be the one that comes next. A machine that is lost at a request does not come back.
        let (host, lost_after) = match world.below(4) {
            0 | 1 => (&hosts[0], None),
            2 => (&hosts[3], None),
            _ => (&hosts[3], Some(world.below(60))),
        };
        if let Some(mut third) = Run::start(&world, host, Takeover::Cancel, lost_after).await {
            third.steps(4).await;
            third.end_or_lose().await;
        }
    }
    world.objects.deliver_held();
    world.remember_stored().await;
    // A machine that comes back may have lines on its disk that the store never had.
    for [first, second] in [[4, 5], [0, 0]] {
        let [before, after] = [world.inspect(&hosts[first]).await, world.inspect(&hosts[second]).await];
        assert_eq!(before.0.resources, after.0.resources);
        assert_eq!(before.0.pending_operations, after.0.pending_operations);
        assert_eq!(before.1, after.1);
    }
}

/// Holds some writes of segments of a machine. Its client repeats them.
fn hold_segments(objects: &MemoryObjects, seed: u64) {
    let mut random = Random(seed);
    objects.set_faults(move |request| {
        let is_segment = request.operation == "write" && request.key.starts_with(".sc/journal/");
        if is_segment && random.below(2) == 0 { Fault::Held } else { Fault::None }
    });
}

/// Run of a machine.
struct Run<'w> {
    world: &'w World,
    objects: MemoryObjects,
    state: StackState,
    recorder: JournalRecorder,
    ledger: Ledger,
    calls: Vec<Call>,
    /// Resources whose Create has lost its reply.
    unknown: BTreeSet<Urn>,
    /// Ends that the store has not acknowledged.
    unacknowledged: Vec<Ended>,
    /// `true` as long as the run has the lock, and the store receives each request.
    is_undisturbed: bool,
}

/// Call of a provider.
struct Call {
    operation: OperationId,
    change: Change,
    /// Result, once the call took place: `Ok` with the id of a created resource.
    outcome: Option<Result<String, ()>>,
}

#[derive(Clone)]
enum Change {
    /// Create, and the entry that is replaced.
    Create(Arc<ResourceState>, Option<EntryId>),
    Update(EntryId, Arc<ResourceState>),
    Delete(EntryId, Arc<ResourceState>),
}

/// Resource, by its id, whose creation or deletion a line has.
enum Ended {
    Creation(String),
    Deletion(String),
}

impl<'w> Run<'w> {
    /// Opens the stack. Returns `None` if the process ends meanwhile.
    async fn start(world: &'w World, host: &Host, takeover: Takeover, lost_after: Option<usize>) -> Option<Self> {
        let (objects, state) = open(world, host, takeover, lost_after).await?;
        let mut run = Self::new(world, objects, state);
        run.is_undisturbed = lost_after.is_none();
        run.recorder.wait_for_secrets().await.unwrap();
        let provider = run.ledger.entries_of(&provider_urn()).next().unwrap().0;
        let kept = Record::Change(vec![Effect::Keep(provider)]);
        run.ledger.apply(&kept);
        run.recorder.defer(kept);
        run.read_pending().await;
        Some(run)
    }

    fn new(world: &'w World, objects: MemoryObjects, state: StackState) -> Self {
        let (recorder, ledger) = (state.recorder(UpdateKind::Update), Ledger::new(state.snapshot().clone()));
        let (calls, unknown, unacknowledged) = (Vec::new(), BTreeSet::new(), Vec::new());
        Self { world, objects, state, recorder, ledger, calls, unknown, unacknowledged, is_undisturbed: true }
    }

    /// Stops the process for longer than its lease: nothing is sent.
    fn stop(&self) {
        self.objects.set_faults(|_| Fault::NotReached);
        self.recorder.lease().unwrap().expire();
    }

    fn resume(&self) {
        self.objects.set_faults(|_| Fault::None);
    }

    /// Reads the resources whose Create has lost its reply, except for the id, as the engine does before all decisions.
    async fn read_pending(&mut self) {
        let pending: Vec<_> =
            self.ledger.unread_creates().map(|(entry, create)| (entry, create.resource.clone())).collect();
        for (entry, state) in pending {
            let exists = self.world.cloud.borrow().existing.contains_key(state.id_text());
            let live = self.ledger.get(entry).unwrap();
            let effect = if exists { Effect::Rewrite(entry, Arc::clone(live)) } else { Effect::Remove(entry) };
            self.append(Record::Change(vec![effect])).await;
        }
    }

    /// Takes a random number of steps.
    async fn steps(&mut self, limit: usize) {
        for _ in 0..self.world.below(limit + 1) {
            tokio::time::sleep(Duration::from_millis(self.world.below(20) as u64)).await;
            match self.world.below(9) {
                0..4 => self.begin().await,
                4..6 => self.call(),
                6..8 => self.end().await,
                // All lines follow within a second.
                _ => {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    if self.is_undisturbed {
                        self.acknowledge();
                    }
                }
            }
        }
    }

    /// Appends a record. Returns `true` if what it announces may begin.
    async fn append(&mut self, record: Record) -> bool {
        let receipt = self.recorder.append(&record).unwrap();
        self.ledger.apply(&record);
        if receipt.is_complete() {
            return true;
        }
        let is_durable = receipt.wait().await.is_ok();
        if is_durable {
            self.acknowledge();
        }
        is_durable && self.recorder.lease().unwrap().confirm().await.is_ok()
    }

    /// Remembers that the next run has all ends so far.
    fn acknowledge(&mut self) {
        let mut cloud = self.world.cloud.borrow_mut();
        for ended in self.unacknowledged.drain(..) {
            match ended {
                Ended::Creation(id) => cloud.recorded.insert(id),
                Ended::Deletion(id) => cloud.deleted.insert(id),
            };
        }
    }

    /// Begins a random operation, if the lock is held for certain.
    async fn begin(&mut self) {
        if self.recorder.lease().unwrap().confirm().await.is_err() {
            return;
        }
        let Some(change) = self.choose() else { return };
        let (kind, subject) = match &change {
            Change::Create(state, _) => (OperationKind::Creating, Subject::Resource(Arc::clone(state))),
            Change::Update(_, state) => (OperationKind::Updating, Subject::Resource(Arc::clone(state))),
            Change::Delete(entry, _) => (OperationKind::Deleting, Subject::Entry(*entry)),
        };
        let operation = self.ledger.new_operation();
        if self.append(Record::Begin { operation, kind, subject }).await {
            self.calls.push(Call { operation, change, outcome: None });
        } else {
            self.append(Record::End { operation, effects: Vec::new() }).await;
        }
    }

    fn choose(&self) -> Option<Change> {
        let is_busy = |urn: &Urn| self.unknown.contains(urn) || self.calls.iter().any(|call| call.change.urn() == urn);
        let described = self.world.described(NAMES[self.world.below(NAMES.len())]);
        if is_busy(&described.urn) {
            return None;
        }
        let entries: Vec<_> = self.ledger.entries_of(&described.urn).collect();
        let Some((entry, state)) = entries.get(self.world.below(entries.len().max(1))) else {
            return Some(Change::Create(described, None));
        };
        match self.world.below(4) {
            0 | 1 if state.delete => Some(Change::Delete(*entry, Arc::clone(state))),
            0 => Some(Change::Create(described, Some(*entry))),
            1 => Some(Change::Update(
                *entry,
                Arc::new(ResourceState { protect: !state.protect, ..ResourceState::clone(state) }),
            )),
            _ => Some(Change::Delete(*entry, Arc::clone(state))),
        }
    }

    /// Lets a call that has begun take place.
    fn call(&mut self) {
        let Some(call) = self.calls.iter_mut().find(|call| call.outcome.is_none()) else { return };
        let outcome = if self.world.one_in(5) { Err(()) } else { Ok(()) };
        call.outcome = Some(outcome.map(|()| match &call.change {
            Change::Create(state, _) => self.world.create(&state.urn),
            Change::Update(_, state) => state.id_text().to_owned(),
            Change::Delete(_, state) => {
                self.world.cloud.borrow_mut().existing.remove(state.id_text());
                state.id_text().to_owned()
            }
        }));
    }

    /// Receives the reply to a call that took place, unless it is lost.
    async fn end(&mut self) {
        let Some(index) = self.calls.iter().position(|call| call.outcome.is_some()) else { return };
        let Call { operation, change, outcome } = self.calls.remove(index);
        let reply = self.world.below(8);
        let record = match (outcome.unwrap(), change) {
            (_, change) if reply == 0 => {
                self.unknown.insert(change.urn().clone());
                return;
            }
            (Err(()), _) => Record::End { operation, effects: Vec::new() },
            (Ok(id), Change::Create(state, _)) if reply == 1 => {
                self.unknown.insert(state.urn.clone());
                let subject = Subject::Resource(with_id(&state, &id));
                self.unacknowledged.push(Ended::Creation(id));
                Record::Begin { operation, kind: OperationKind::Creating, subject }
            }
            (Ok(id), Change::Create(state, replaced)) => {
                let mut effects = vec![Effect::Add(self.ledger.new_entry(), with_id(&state, &id))];
                if let Some((entry, old)) = replaced.and_then(|entry| Some((entry, self.ledger.get(entry)?))) {
                    effects.push(Effect::Rewrite(entry, Arc::new(ResourceState { delete: true, ..(**old).clone() })));
                }
                self.unacknowledged.push(Ended::Creation(id));
                Record::End { operation, effects }
            }
            (Ok(_), Change::Update(entry, state)) => {
                let add = Effect::Add(self.ledger.new_entry(), state);
                Record::End { operation, effects: vec![Effect::Remove(entry), add] }
            }
            (Ok(id), Change::Delete(entry, _)) => {
                self.unacknowledged.push(Ended::Deletion(id));
                Record::End { operation, effects: vec![Effect::Remove(entry)] }
            }
        };
        self.append(record).await;
    }

    /// Ends the run after all calls, or loses its machine.
    async fn end_or_lose(mut self) {
        if self.world.one_in(3) {
            self.objects.set_faults(|_| Fault::NotReached);
            // A request that was sent arrives nevertheless.
            while self.calls.iter().any(|call| call.outcome.is_none()) {
                self.call();
            }
            return;
        }
        while !self.calls.is_empty() {
            self.call();
            self.end().await;
        }
        let Self { state, ledger, world, unacknowledged, .. } = self;
        let closed = state.close(ledger.snapshot(), Some(&update())).await;
        if closed.is_ok() {
            let mut cloud = world.cloud.borrow_mut();
            cloud.deleted.extend(unacknowledged.into_iter().filter_map(|ended| match ended {
                Ended::Deletion(id) => Some(id),
                Ended::Creation(_) => None,
            }));
        }
        world.remember_stored().await;
    }
}

impl Change {
    fn urn(&self) -> &Urn {
        match self {
            Self::Create(state, _) | Self::Update(_, state) | Self::Delete(_, state) => &state.urn,
        }
    }
}
