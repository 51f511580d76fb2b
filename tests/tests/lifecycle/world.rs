//! A cloud in memory, and the provider that manages it.
//!
//! Enters: what a test wants to go wrong, and what it wants to hold up. Leaves: the calls, and the faults: promises that
//! an engine owes to providers whatever the test is about (configured once, closed once, nothing changed in a preview,
//! nothing deleted twice).

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

/// An input with which the provider cannot say what a difference comes to.
pub(crate) const VAGUE: &str = "vague";
/// An input with which the provider wants to be read before each update.
pub(crate) const FRESH: &str = "fresh";
/// An input that names parts of a thing, `x,y`, which the provider shows as views.
pub(crate) const PARTS: &str = "parts";
/// An input with which the provider replaces the parts when it updates the thing: the new ones first with `first`.
pub(crate) const RENEWAL: &str = "renewal";

/// How a call goes, if not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goes {
    /// It fails, and nothing happened.
    Wrong,
    /// It is done, and what came of it does not come up.
    HalfWell,
    /// The plugin dies.
    Down,
    /// It is done, and the plugin dies before it can say so.
    Lost,
    /// Nothing is there: Read finds none, and Create fails in part without an id.
    Gone,
}

/// A call as it went.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// `create`, `delete`, …
    pub(crate) verb: &'static str,
    /// The resource's name.
    pub(crate) name: String,
    /// Its id, where it has one.
    pub(crate) id: String,
    /// Which instance was asked.
    pub(crate) instance: usize,
    /// When it began and ended, in calls.
    pub(crate) began: usize,
    pub(crate) ended: Option<usize>,
    /// It came to a good end.
    pub(crate) well: bool,
    /// What was sent as the new inputs.
    pub(crate) news: PropertyMap,
}

impl Call {
    /// `create a`, `delete a-1`.
    pub(crate) fn said(&self) -> String {
        match self.verb {
            "delete" | "update" | "read" => format!("{} {}", self.verb, self.id),
            verb => format!("{verb} {}", self.name),
        }
    }
}

/// What there is: by id, with the inputs where they are known.
type Holdings = Arc<BTreeMap<String, Option<PropertyMap>>>;

/// What there is at a moment, and what is known of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moment {
    existing: Holdings,
    vanished: BTreeSet<String>,
    at_large: BTreeSet<String>,
}

/// A cloud in memory.
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
    /// Ids of what went without a Delete that was answered: nobody can know.
    vanished: BTreeSet<String>,
    /// Ids of what there is and no state has to know of: never taken over, let go by the program, lost with a run.
    at_large: BTreeSet<String>,
    /// Ids of what was made with inputs that were recorded, for nobody named it.
    unasked: BTreeSet<String>,
    /// What Read finds changed, by id.
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

/// A call that waits until the test lets it go on.
#[derive(Clone, Debug)]
pub(crate) struct Hold(Held);

impl Hold {
    /// Waits until the call has begun.
    pub(crate) async fn reached(&self) {
        self.0.reached.cancelled().await;
    }

    /// Whether the call has begun.
    pub(crate) fn is_reached(&self) -> bool {
        self.0.reached.is_cancelled()
    }

    /// Lets it go on.
    pub(crate) fn release(&self) {
        self.0.released.cancel();
    }
}

/// Lets everything that can go on go on.
pub(crate) async fn calm() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

impl World {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call go wrong: `create a`, `delete a-1`, `checkconfig p`.
    pub(crate) fn when(&self, call: &str, goes: Goes) -> &Self {
        self.inner().script.insert(call.to_owned(), goes);
        self
    }

    /// The inputs that it was asked about.
    pub(crate) fn checked(&self) -> Vec<CheckRequest> {
        self.inner().checked.clone()
    }

    /// What its plugin was asked to construct.
    pub(crate) fn constructed(&self) -> Vec<ConstructRequest> {
        self.inner().constructed.clone()
    }

    /// The plugins that were wanted.
    pub(crate) fn booted(&self) -> Vec<BootRequest> {
        self.inner().booted.clone()
    }

    /// What plugins of many packages were told to serve.
    pub(crate) fn parameterized(&self) -> Vec<ParameterizeRequest> {
        self.inner().parameterized.clone()
    }

    /// The methods that its plugin was asked for, and by the instance of which provider resource.
    pub(crate) fn called(&self) -> Vec<(String, CallRequest)> {
        self.inner().called.clone()
    }

    /// Forgets what was to go wrong.
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

    /// Makes a Read find something else.
    pub(crate) fn drift(&self, id: &str, inputs: PropertyMap) {
        self.inner().drift.insert(id.to_owned(), inputs);
    }

    /// Makes functions refuse their arguments.
    pub(crate) fn refuse_invokes(&self) {
        self.inner().invoke_refused = true;
    }

    /// Deletes of what is not there are no faults: the state did not come from this world.
    pub(crate) fn forgive(&self) {
        self.inner().forgiving = true;
    }

    /// Calls take turns in an order that hangs on their names.
    pub(crate) fn be_restless(&self) {
        self.inner().restless = true;
    }

    /// Pulls a signal when so many calls more have begun.
    pub(crate) fn pull_after(&self, calls: usize, signal: CancellationToken) {
        let mut inner = self.inner();
        let at = inner.calls.len() + calls;
        inner.stop_after.push((at, signal));
    }

    /// Forgets what was to go wrong and which signal was to be pulled.
    pub(crate) fn calm_down(&self) {
        let mut inner = self.inner();
        inner.script.clear();
        inner.stop_after.clear();
    }

    /// Puts something there, if it is not.
    pub(crate) fn add(&self, id: &str) {
        let inner = &mut *self.inner();
        Arc::make_mut(&mut inner.existing).entry(id.to_owned()).or_insert(None);
        inner.at_large.insert(id.to_owned());
    }

    /// Takes something away behind everybody's back.
    pub(crate) fn vanish(&self, id: &str) {
        self.inner().vanish(id);
    }

    /// Ids of what there is.
    pub(crate) fn existing(&self) -> BTreeSet<String> {
        self.inner().existing.keys().cloned().collect()
    }

    /// What there is now.
    pub(crate) fn moment(&self) -> Moment {
        let Inner { existing, vanished, at_large, .. } = &*self.inner();
        Moment { existing: Arc::clone(existing), vanished: vanished.clone(), at_large: at_large.clone() }
    }

    /// Another world that went the same way up to a moment.
    pub(crate) fn fork(&self, moment: &Moment) -> Self {
        let inner = self.inner();
        let Moment { existing, vanished, at_large } = moment.clone();
        let (made, unasked) = (inner.made.clone(), inner.unasked.clone());
        let fork = Inner { existing, vanished, at_large, made, unasked, restless: inner.restless, ..Inner::default() };
        Self(Arc::new(Mutex::new(fork)))
    }

    /// Takes a run that ended early for what it is: what it was making may be there without anybody knowing, and what it
    /// was deleting may be gone.
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

    /// Remembers what was made with inputs that were recorded.
    pub(crate) fn note_unasked<'c>(&self, ids: impl Iterator<Item = &'c String>) {
        self.inner().unasked.extend(ids.cloned());
    }

    /// Ids of what was made with inputs that were recorded.
    pub(crate) fn unasked(&self) -> BTreeSet<String> {
        self.inner().unasked.clone()
    }

    /// Ids of what went without a Delete that was answered.
    pub(crate) fn vanished(&self) -> BTreeSet<String> {
        self.inner().vanished.clone()
    }

    /// Ids of what no state has to know of.
    pub(crate) fn at_large(&self) -> BTreeSet<String> {
        self.inner().at_large.clone()
    }

    /// Holds what there is against a state and the one before it. Returns what is in neither the state nor under way, and
    /// was not let go either. An entry that awaits its replacement says that its thing is gone.
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

    /// All calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.inner().calls.clone()
    }

    /// How often a call was made, in all runs.
    pub(crate) fn count(&self, said: &str) -> usize {
        self.inner().calls.iter().filter(|call| call.said() == said).count()
    }

    /// How often instances of a provider resource were started.
    pub(crate) fn boots(&self, name: &str) -> usize {
        self.inner().instances.iter().filter(|instance| instance.name == name).count()
    }

    /// How many instances were cancelled by a call of its own, and how many closed.
    pub(crate) fn closed(&self) -> usize {
        self.inner().instances.iter().filter(|instance| instance.closed > 0).count()
    }

    /// How many instances of a provider resource were asked to come to an end.
    pub(crate) fn cancelled(&self, name: &str) -> usize {
        self.inner().instances.iter().filter(|instance| instance.name == name && instance.cancelled > 0).count()
    }

    /// Broken promises, once a run has ended.
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

/// Whether a resource may have been given an id.
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

/// A map of strings.
pub(crate) fn map(members: &[(&str, &str)]) -> PropertyMap {
    members.iter().map(|(key, value)| ((*key).to_owned(), PropertyValue::from(*value))).collect()
}
