//! Cloud in memory, and the provider that manages it.
//!
//! Enters: calls that a test wants to fail or to hold. Leaves: the received calls, and violations of an engine's
//! promises to providers: configured once, closed once, nothing changed in a preview, nothing deleted twice.

mod instance;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bridge::host::{BootRequest, HostError, ProviderHost};
use bridge::provider::{CallRequest, CheckRequest, ConstructRequest, ParameterizeRequest, Provider};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use state::{OperationKind, PendingOperation, ResourceState, Snapshot};
use tokio_util::sync::CancellationToken;

use self::instance::Instance;

/// Name of an input with which the provider's Diff is unknown.
pub(crate) const VAGUE: &str = "vague";
/// Name of an input with which the provider requests a refresh before each update.
pub(crate) const FRESH: &str = "fresh";
/// Name of an input with the parts of a thing, `x,y`, which the provider shows as views.
pub(crate) const PARTS: &str = "parts";
/// Name of an input with which an update replaces the parts; with `first`, the new ones are created first.
pub(crate) const RENEWAL: &str = "renewal";

/// Failure of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goes {
    /// The call fails without an effect.
    Wrong,
    /// The call takes effect, but the resource fails to initialise.
    HalfWell,
    /// The plugin crashes.
    Down,
    /// The call takes effect, and the plugin crashes before it replies.
    Lost,
    /// The resource is missing: Read finds none, and Create fails in part without an id.
    Gone,
}

/// Call that the provider received.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Verb of the call: `create`, `delete`, and so on.
    pub(crate) verb: &'static str,
    /// Name of the resource.
    pub(crate) name: String,
    /// Id of the resource; empty if it has none.
    pub(crate) id: String,
    /// Number of the called instance.
    pub(crate) instance: usize,
    /// Time of the start, counted in starts and ends of calls; `ended`: time of the end.
    pub(crate) began: usize,
    pub(crate) ended: Option<usize>,
    /// True if a Delete succeeded.
    pub(crate) well: bool,
    /// New inputs in the request.
    pub(crate) news: PropertyMap,
}

impl Call {
    /// Returns the call as text: `create a`, `delete a-1`.
    pub(crate) fn said(&self) -> String {
        match self.verb {
            "delete" | "update" | "read" => format!("{} {}", self.verb, self.id),
            verb => format!("{verb} {}", self.name),
        }
    }
}

/// Existing resources by id, with their inputs if these are known.
type Holdings = Arc<BTreeMap<String, Option<PropertyMap>>>;

/// State of the cloud at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moment {
    existing: Holdings,
    vanished: BTreeSet<String>,
    at_large: BTreeSet<String>,
}

/// Cloud in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    clock: usize,
    calls: Vec<Call>,
    script: BTreeMap<String, Goes>,
    holds: BTreeMap<String, Held>,
    instances: Vec<InstanceBook>,
    existing: Holdings,
    made: BTreeMap<String, usize>,
    /// Ids of resources that disappeared without a successful Delete.
    vanished: BTreeSet<String>,
    /// Ids of existing resources that no state has to contain: never imported, released by the program, or lost with a
    /// run.
    at_large: BTreeSet<String>,
    /// Ids of resources that were created with their recorded inputs, as the program did not register them.
    unasked: BTreeSet<String>,
    /// Inputs that Read finds changed, by id.
    drift: BTreeMap<String, PropertyMap>,
    faults: Vec<String>,
    forgiving: bool,
    restless: bool,
    invoke_refused: bool,
    checked: Vec<CheckRequest>,
    constructed: Vec<ConstructRequest>,
    booted: Vec<BootRequest>,
    parameterized: Vec<ParameterizeRequest>,
    called: Vec<(String, CallRequest)>,
    stop_after: Vec<(usize, CancellationToken)>,
}

#[derive(Debug, Default)]
struct InstanceBook {
    name: String,
    configured: usize,
    cancelled: usize,
    closed: usize,
}

#[derive(Clone, Debug, Default)]
struct Held {
    reached: CancellationToken,
    released: CancellationToken,
}

/// Call that waits until the test releases it.
#[derive(Clone, Debug)]
pub(crate) struct Hold(Held);

impl Hold {
    /// Waits until the call has started.
    pub(crate) async fn reached(&self) {
        self.0.reached.cancelled().await;
    }

    /// Returns whether the call has started.
    pub(crate) fn is_reached(&self) -> bool {
        self.0.reached.is_cancelled()
    }

    /// Lets the call continue.
    pub(crate) fn release(&self) {
        self.0.released.cancel();
    }
}

/// Yields until all tasks that can continue have done so.
pub(crate) async fn calm() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

impl World {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call fail: `create a`, `delete a-1`, `checkconfig p`.
    pub(crate) fn when(&self, call: &str, goes: Goes) -> &Self {
        self.inner().script.insert(call.to_owned(), goes);
        self
    }

    /// Returns the requests of Check.
    pub(crate) fn checked(&self) -> Vec<CheckRequest> {
        self.inner().checked.clone()
    }

    /// Returns the requests of Construct.
    pub(crate) fn constructed(&self) -> Vec<ConstructRequest> {
        self.inner().constructed.clone()
    }

    /// Returns the requests to start plugins.
    pub(crate) fn booted(&self) -> Vec<BootRequest> {
        self.inner().booted.clone()
    }

    /// Returns the requests of Parameterize.
    pub(crate) fn parameterized(&self) -> Vec<ParameterizeRequest> {
        self.inner().parameterized.clone()
    }

    /// Returns the requests of Call, each with the name of the called provider resource.
    pub(crate) fn called(&self) -> Vec<(String, CallRequest)> {
        self.inner().called.clone()
    }

    /// Removes all failures.
    pub(crate) fn mend(&self) -> &Self {
        self.inner().script.clear();
        self
    }

    /// Makes a call wait.
    pub(crate) fn hold(&self, call: &str) -> Hold {
        let held = Held::default();
        self.inner().holds.insert(call.to_owned(), held.clone());
        Hold(held)
    }

    /// Makes Read find other inputs.
    pub(crate) fn drift(&self, id: &str, inputs: PropertyMap) {
        self.inner().drift.insert(id.to_owned(), inputs);
    }

    /// Makes functions refuse their arguments.
    pub(crate) fn refuse_invokes(&self) {
        self.inner().invoke_refused = true;
    }

    /// Accepts deletes and updates of missing resources, as the state is from another world.
    pub(crate) fn forgive(&self) {
        self.inner().forgiving = true;
    }

    /// Makes calls yield for a number of times that depends on their names.
    pub(crate) fn be_restless(&self) {
        self.inner().restless = true;
    }

    /// Cancels a token once a number of further calls have started.
    pub(crate) fn pull_after(&self, calls: usize, signal: CancellationToken) {
        let mut inner = self.inner();
        let at = inner.calls.len() + calls;
        inner.stop_after.push((at, signal));
    }

    /// Removes all failures and signals.
    pub(crate) fn calm_down(&self) {
        let mut inner = self.inner();
        inner.script.clear();
        inner.stop_after.clear();
    }

    /// Adds a resource, unless it exists.
    pub(crate) fn add(&self, id: &str) {
        let inner = &mut *self.inner();
        Arc::make_mut(&mut inner.existing).entry(id.to_owned()).or_insert(None);
        inner.at_large.insert(id.to_owned());
    }

    /// Removes a resource outside of the provider.
    pub(crate) fn vanish(&self, id: &str) {
        self.inner().vanish(id);
    }

    /// Returns the ids of the existing resources.
    pub(crate) fn existing(&self) -> BTreeSet<String> {
        self.inner().existing.keys().cloned().collect()
    }

    /// Returns the present state of the cloud.
    pub(crate) fn moment(&self) -> Moment {
        let Inner { existing, vanished, at_large, .. } = &*self.inner();
        Moment { existing: Arc::clone(existing), vanished: vanished.clone(), at_large: at_large.clone() }
    }

    /// Creates a world in the state of a moment.
    pub(crate) fn fork(&self, moment: &Moment) -> Self {
        let inner = self.inner();
        let Moment { existing, vanished, at_large } = moment.clone();
        let (made, unasked) = (inner.made.clone(), inner.unasked.clone());
        let fork = Inner { existing, vanished, at_large, made, unasked, restless: inner.restless, ..Inner::default() };
        Self(Arc::new(Mutex::new(fork)))
    }

    /// Accounts for a run that ended early: resources of pending creations may exist without an entry, and resources of
    /// other pending operations may be missing.
    pub(crate) fn reckon(&self, state: &Snapshot) {
        let inner = &mut *self.inner();
        let known: BTreeSet<&str> = state.resources.iter().map(|state| state.id_text()).collect();
        for PendingOperation { resource, kind } in &state.pending_operations {
            let lost = inner.existing.keys().filter(|id| may_be_of(id, resource) && !known.contains(id.as_str()));
            match kind {
                OperationKind::Creating => inner.at_large.extend(lost.cloned()),
                _ if !inner.existing.contains_key(resource.id_text()) => {
                    inner.vanished.insert(resource.id_text().to_owned());
                }
                _ => {}
            }
        }
    }

    /// Stores the ids of resources that were created with their recorded inputs.
    pub(crate) fn note_unasked<'c>(&self, ids: impl Iterator<Item = &'c String>) {
        self.inner().unasked.extend(ids.cloned());
    }

    /// Returns the ids of resources that were created with their recorded inputs.
    pub(crate) fn unasked(&self) -> BTreeSet<String> {
        self.inner().unasked.clone()
    }

    /// Returns the ids of resources that disappeared without a successful Delete.
    pub(crate) fn vanished(&self) -> BTreeSet<String> {
        self.inner().vanished.clone()
    }

    /// Returns the ids of resources that no state has to contain.
    pub(crate) fn at_large(&self) -> BTreeSet<String> {
        self.inner().at_large.clone()
    }

    /// Compares the existing resources with a state and the one before it. Returns the resources without an entry, a
    /// pending creation or a release by the program. An entry with a pending replacement has no existing resource.
    pub(crate) fn lost(&self, before: &Snapshot, after: &Snapshot) -> Vec<String> {
        let Inner { existing, at_large, forgiving, .. } = &mut *self.inner();
        if *forgiving {
            return Vec::new();
        }
        let standing = after.resources.iter().filter(|state| !state.pending_replacement);
        let known: BTreeSet<&str> = standing.map(|state| state.id_text()).collect();
        at_large.retain(|id| !known.contains(id.as_str()));
        let (mut lost, mut let_go) = (Vec::new(), Vec::new());
        for id in existing.keys().filter(|id| !known.contains(id.as_str()) && !at_large.contains(*id)) {
            let creating = |pending: &PendingOperation| {
                pending.kind == OperationKind::Creating && may_be_of(id, &pending.resource)
            };
            match before.resources.iter().find(|state| state.id_text() == id) {
                Some(entry) if entry.external || entry.retain_on_delete || entry.deleted_with.is_some() => {
                    let_go.push(id.clone());
                }
                None if after.pending_operations.iter().any(creating) => {}
                Some(_) | None => lost.push(id.clone()),
            }
        }
        at_large.extend(let_go);
        lost
    }

    /// Returns all calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.inner().calls.clone()
    }

    /// Returns the number of equal calls in all runs.
    pub(crate) fn count(&self, said: &str) -> usize {
        self.inner().calls.iter().filter(|call| call.said() == said).count()
    }

    /// Returns the number of started instances of a provider resource.
    pub(crate) fn boots(&self, name: &str) -> usize {
        self.inner().instances.iter().filter(|instance| instance.name == name).count()
    }

    /// Returns the number of closed instances.
    pub(crate) fn closed(&self) -> usize {
        self.inner().instances.iter().filter(|instance| instance.closed > 0).count()
    }

    /// Returns the number of instances of a provider resource that received Cancel.
    pub(crate) fn cancelled(&self, name: &str) -> usize {
        self.inner().instances.iter().filter(|instance| instance.name == name && instance.cancelled > 0).count()
    }

    /// Returns the violations of promises, after the end of a run.
    pub(crate) fn faults(&self) -> Vec<String> {
        let inner = self.inner();
        let mut faults = inner.faults.clone();
        for (number, instance) in inner.instances.iter().enumerate() {
            if instance.closed == 0 {
                faults.push(format!("instance {number} of {} was not closed", instance.name));
            }
        }
        faults
    }

    fn fault(&self, text: String) {
        self.inner().faults.push(text);
    }
}

/// Returns whether an id may be that of a resource.
fn may_be_of(id: &str, resource: &ResourceState) -> bool {
    id.rsplit_once('-').is_some_and(|(name, _)| name == resource.urn.name())
}

impl Inner {
    fn vanish(&mut self, id: &str) {
        if Arc::make_mut(&mut self.existing).remove(id).is_some() {
            self.vanished.insert(id.to_owned());
        }
    }
}

#[async_trait]
impl ProviderHost for World {
    async fn boot(&self, request: &BootRequest) -> Result<Arc<dyn Provider>, HostError> {
        let key = format!("boot {}", request.name);
        let (number, goes) = {
            let mut inner = self.inner();
            inner.booted.push(request.clone());
            inner.instances.push(InstanceBook { name: request.name.clone(), ..InstanceBook::default() });
            (inner.instances.len() - 1, inner.script.get(&key).copied())
        };
        if goes.is_some() {
            self.inner().instances[number].closed = 1;
            return Err(HostError::new(format!("{} cannot be started", request.name)));
        }
        Ok(Arc::new(Instance { world: self.clone(), number }))
    }
}

/// Returns a property map of strings.
pub(crate) fn map(members: &[(&str, &str)]) -> PropertyMap {
    members.iter().map(|(key, value)| ((*key).to_owned(), PropertyValue::from(*value))).collect()
}
