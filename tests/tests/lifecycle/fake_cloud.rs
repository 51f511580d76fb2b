//! Fake cloud in memory, and the provider that manages it.
//!
//! Input: calls that a test makes fail or holds. Output: the received calls, and violations of the engine's
//! guarantees to providers: one Configure and one close for each instance, no change in a preview, no second Delete.

mod account;
mod instance;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bridge::host::{HostError, ProviderHost, ProviderRequest};
use bridge::provider::{CallRequest, CheckRequest, ConstructRequest, LostReply, ParameterizeRequest, Provider};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use state::{OperationKind, PendingOperation, ResourceState, Snapshot};
use tokio_util::sync::CancellationToken;

use self::account::Account;
pub(crate) use self::account::Object;
use self::instance::Instance;
pub(crate) use self::instance::keeps_id;
use crate::program::ProgramResource;

/// Name of an input with which the provider's Diff is unknown.
pub(crate) const UNKNOWN_DIFF: &str = "unknownDiff";
/// Name of an input with which the provider requests a refresh before each update.
pub(crate) const REFRESH_BEFORE_UPDATE: &str = "refreshBeforeUpdate";
/// Name of an input with the names of a resource's views, `x,y`, which the provider publishes.
pub(crate) const VIEWS: &str = "views";
/// Name of an input with which an update replaces the views; with `first`, the new views are created first.
pub(crate) const REPLACE_VIEWS: &str = "replaceViews";
/// Name of an input that Check returns as a secret.
pub(crate) const CHECKED_SECRET: &str = "checkedSecret";
/// Name of an input that Construct returns as a secret in the state of the component.
pub(crate) const CONSTRUCTED_SECRET: &str = "constructedSecret";

/// Name of an input with the id that Create gives the resource. If the account has an object with the id, Create takes it
/// over, as many APIs do that set an object by its name.
pub(crate) const NAMED: &str = "named";
/// Beginning of another spelling of each id, which Read understands. Read returns the id without it.
pub(crate) const SPELLING: &str = "https://";

/// Failure of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// The call fails without an effect.
    Error,
    /// A number of attempts fail without an effect, and the plugin asks to repeat the call after some seconds.
    Busy {
        /// Number of attempts.
        attempts: usize,
        /// Time that the plugin names.
        seconds: u64,
    },
    /// The call takes effect, but the resource fails to initialise.
    Partial,
    /// The plugin crashes.
    Crash,
    /// The call takes effect, and its reply is lost in this way.
    Lost(LostReply),
    /// The provider does not implement the call.
    Unimplemented,
    /// Read finds no resource; the resource no longer exists.
    Missing,
    /// Create fails partially and returns no id.
    PartialWithoutId,
    /// Parameterize returns the name of another package.
    OtherPackage,
}

/// Call that the provider received.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Verb of the call: `create`, `delete`, and so on.
    pub(crate) verb: &'static str,
    /// Name and type of the resource.
    pub(crate) name: String,
    pub(crate) type_token: String,
    /// Id of the resource; empty if it has none.
    pub(crate) id: String,
    /// Object of the id, in the account of the called instance.
    pub(crate) object: Object,
    /// Number of the called instance.
    pub(crate) instance: usize,
    /// Time of the start, counted in starts and ends of calls; `ended`: time of the end.
    pub(crate) started: usize,
    pub(crate) ended: Option<usize>,
    /// True if a Create, Update or Delete succeeded.
    pub(crate) succeeded: bool,
    /// True if the call failed without an effect, and the plugin asked to repeat it.
    pub(crate) is_busy: bool,
    /// New inputs in the request.
    pub(crate) news: PropertyMap,
}

impl Call {
    /// Returns the call as text: `create a`, `delete a-1`.
    pub(crate) fn text(&self) -> String {
        match self.verb {
            "delete" | "update" | "read" => format!("{} {}", self.verb, self.id),
            verb => format!("{verb} {}", self.name),
        }
    }
}

/// Existing objects, with their inputs if these are known.
type ExistingObjects = Arc<BTreeMap<Object, Option<PropertyMap>>>;

/// State of the cloud at a point in time.
#[derive(Clone, Debug, Default)]
pub(crate) struct CloudState {
    existing: ExistingObjects,
    vanished: BTreeSet<Object>,
    unmanaged: BTreeSet<Object>,
    released_by_one: BTreeSet<Object>,
}

/// Cloud in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeCloud(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    clock: usize,
    calls: Vec<Call>,
    failures: BTreeMap<String, CallFailure>,
    /// Calls that fail on an instance whose configuration has a value: verb, key and value.
    refused: Vec<(&'static str, &'static str, &'static str)>,
    holds: BTreeMap<String, HoldTokens>,
    instances: Vec<InstanceRecord>,
    existing: ExistingObjects,
    id_counters: BTreeMap<String, usize>,
    /// Ids of objects that were added outside of the provider, and to which every account has access.
    added: BTreeSet<String>,
    /// True if ids contain the account, and each account has access to the objects of the others.
    has_global_ids: bool,
    /// True if an id is only a part of what a Read needs.
    finds_nothing_by_id: bool,
    /// Accounts of created objects with global ids.
    owners: BTreeMap<String, Account>,
    /// Objects that disappeared without a successful Delete.
    vanished: BTreeSet<Object>,
    /// Existing objects that no state has to contain: never imported, released by the program, or lost with a run.
    unmanaged: BTreeSet<Object>,
    /// Objects that an entry has released while another one named them.
    released_by_one: BTreeSet<Object>,
    /// Ids of resources that were created from their recorded inputs, without a Check.
    created_unchecked: BTreeSet<String>,
    /// Changed inputs that Read returns, by id.
    drift: BTreeMap<String, PropertyMap>,
    /// Number of calls for resources whose reply was lost.
    lost_replies: usize,
    violations: Vec<String>,
    allows_missing: bool,
    varies_timing: bool,
    rejects_invokes: bool,
    /// True if Delete fails for a resource whose id is an input of another one that exists.
    refuses_deletes_in_use: bool,
    /// True if each Read answers that the resource does not exist.
    is_blind: bool,
    returns_plain_values: bool,
    can_repeat_mutations: bool,
    checked: Vec<CheckRequest>,
    constructed: Vec<ConstructRequest>,
    booted: Vec<ProviderRequest>,
    parameterized: Vec<ParameterizeRequest>,
    called: Vec<(String, CallRequest)>,
    cancellations: Vec<(usize, CancellationToken)>,
}

#[derive(Debug, Default)]
struct InstanceRecord {
    name: String,
    account: Account,
    configured: usize,
    configuration: PropertyMap,
    cancelled: usize,
    closed: usize,
}

#[derive(Clone, Debug, Default)]
struct HoldTokens {
    reached: CancellationToken,
    released: CancellationToken,
}

/// Call that waits until the test releases it.
#[derive(Clone, Debug)]
pub(crate) struct Hold(HoldTokens);

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

/// Yields 200 times, so that all tasks that can continue have done so.
pub(crate) async fn yield_until_idle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

impl FakeCloud {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call fail: `create a`, `delete a-1`, `checkconfig p`.
    pub(crate) fn fail(&self, call: &str, failure: CallFailure) -> &Self {
        self.inner().failures.insert(call.to_owned(), failure);
        self
    }

    /// Makes the calls of a verb fail on each instance whose configuration has a value.
    pub(crate) fn refuse(&self, verb: &'static str, key: &'static str, value: &'static str) {
        self.inner().refused.push((verb, key, value));
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
    pub(crate) fn booted(&self) -> Vec<ProviderRequest> {
        self.inner().booted.clone()
    }

    /// Returns the configuration of the instance that received a call.
    pub(crate) fn configuration_of(&self, call: &Call) -> PropertyMap {
        self.inner().instances[call.instance].configuration.clone()
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
    pub(crate) fn clear_failures(&self) -> &Self {
        self.inner().failures.clear();
        self.inner().is_blind = false;
        self
    }

    /// Makes a call wait.
    pub(crate) fn hold(&self, call: &str) -> Hold {
        let held = HoldTokens::default();
        self.inner().holds.insert(call.to_owned(), held.clone());
        Hold(held)
    }

    /// Makes Read return changed inputs.
    pub(crate) fn drift(&self, id: &str, inputs: PropertyMap) {
        self.inner().drift.insert(id.to_owned(), inputs);
    }

    /// Declares that a mutation that failed as busy had no effect.
    pub(crate) fn allow_repeated_mutations(&self) -> &Self {
        self.inner().can_repeat_mutations = true;
        self
    }

    /// Makes each Read answer that the resource does not exist, as with credentials without rights.
    pub(crate) fn blind(&self) -> &Self {
        self.inner().is_blind = true;
        self
    }

    /// Makes Invoke return a check failure.
    pub(crate) fn reject_invokes(&self) {
        self.inner().rejects_invokes = true;
    }

    /// Makes ids contain the account. Each account has access to the objects of the others, except in an import.
    pub(crate) fn use_global_ids(&self) {
        self.inner().has_global_ids = true;
    }

    /// Makes Read find a resource with its recorded state only.
    pub(crate) fn find_nothing_by_id(&self) {
        self.inner().finds_nothing_by_id = true;
    }

    /// Makes Delete fail for a resource whose id is an input of another one that exists.
    pub(crate) fn refuse_deletes_in_use(&self) {
        self.inner().refuses_deletes_in_use = true;
    }

    /// Makes the provider return plain values instead of secrets, although it accepts secrets.
    pub(crate) fn return_plain_values(&self) -> &Self {
        self.inner().returns_plain_values = true;
        self
    }

    /// Returns properties as the provider returns them.
    fn returned(&self, properties: PropertyMap) -> PropertyMap {
        if !self.inner().returns_plain_values {
            return properties;
        }
        properties.into_iter().map(|(key, value)| (key, value.without_wrappers())).collect()
    }

    /// Accepts deletes and updates of missing resources, as the state is that of another cloud.
    pub(crate) fn allow_missing_resources(&self) {
        self.inner().allows_missing = true;
    }

    /// Makes calls yield for a number of times that depends on their names.
    pub(crate) fn vary_timing(&self) {
        self.inner().varies_timing = true;
    }

    /// Cancels a token once a number of further calls have started.
    pub(crate) fn cancel_after(&self, calls: usize, signal: CancellationToken) {
        let mut inner = self.inner();
        let at = inner.calls.len() + calls;
        inner.cancellations.push((at, signal));
    }

    /// Removes all failures and signals.
    pub(crate) fn clear_failures_and_signals(&self) {
        let mut inner = self.inner();
        inner.failures.clear();
        inner.is_blind = false;
        inner.cancellations.clear();
    }

    /// Adds an object to which every account has access, unless it exists.
    pub(crate) fn add(&self, id: &str) {
        let inner = &mut *self.inner();
        let object = Object { id: id.to_owned(), account: None };
        inner.added.insert(id.to_owned());
        Arc::make_mut(&mut inner.existing).entry(object.clone()).or_insert(None);
        inner.unmanaged.insert(object);
    }

    /// Removes the objects with an id outside of the provider.
    pub(crate) fn vanish(&self, id: &str) {
        let inner = &mut *self.inner();
        let objects: Vec<Object> = inner.existing.keys().filter(|object| object.id == id).cloned().collect();
        objects.iter().for_each(|object| inner.vanish(object));
    }

    /// Returns the ids of the existing objects.
    pub(crate) fn existing(&self) -> BTreeSet<String> {
        self.inner().existing.keys().map(|object| object.id.clone()).collect()
    }

    /// Returns the object that an entry of a state names.
    pub(crate) fn object_of(&self, snapshot: &Snapshot, entry: &ResourceState) -> Object {
        self.inner().object_of(snapshot, entry)
    }

    /// Returns whether an object exists, or disappeared without a successful Delete.
    pub(crate) fn has_or_lost(&self, object: &Object) -> bool {
        let inner = self.inner();
        inner.existing.contains_key(object) || inner.vanished.contains(object)
    }

    /// Returns the existing objects that a state has to contain.
    pub(crate) fn managed(&self) -> Vec<String> {
        let inner = self.inner();
        inner.existing.keys().filter(|object| !inner.unmanaged.contains(*object)).map(Object::to_string).collect()
    }

    /// Returns the current state of the cloud.
    pub(crate) fn state(&self) -> CloudState {
        let Inner { existing, vanished, unmanaged, released_by_one, .. } = &*self.inner();
        let (vanished, unmanaged, released_by_one) = (vanished.clone(), unmanaged.clone(), released_by_one.clone());
        CloudState { existing: Arc::clone(existing), vanished, unmanaged, released_by_one }
    }

    /// Creates another cloud in a state of this one.
    pub(crate) fn fork(&self, cloud_state: &CloudState) -> Self {
        let inner = self.inner();
        let CloudState { existing, vanished, unmanaged, released_by_one } = cloud_state.clone();
        let (id_counters, created_unchecked) = (inner.id_counters.clone(), inner.created_unchecked.clone());
        let (added, owners) = (inner.added.clone(), inner.owners.clone());
        let fork = Inner {
            existing,
            vanished,
            unmanaged,
            released_by_one,
            id_counters,
            added,
            owners,
            created_unchecked,
            has_global_ids: inner.has_global_ids,
            finds_nothing_by_id: inner.finds_nothing_by_id,
            varies_timing: inner.varies_timing,
            returns_plain_values: inner.returns_plain_values,
            ..Inner::default()
        };
        Self(Arc::new(Mutex::new(fork)))
    }

    /// Accounts for an interrupted run: resources of pending creates may exist without an entry, and resources of
    /// other pending operations may be missing.
    pub(crate) fn account_for_interruption(&self, state: &Snapshot) {
        let inner = &mut *self.inner();
        let with_id = state.pending_operations.iter().filter(|operation| operation.is_create_with_id());
        let with_id = with_id.map(|operation| &operation.resource);
        // An entry with a pending replacement has no existing object.
        let entries = state.resources.iter().filter(|entry| !entry.pending_replacement);
        let known = entries.chain(with_id).map(|entry| inner.object_of(state, entry));
        let known: BTreeSet<Object> = known.collect();
        for PendingOperation { resource, kind } in &state.pending_operations {
            let object = inner.object_of(state, resource);
            let lost = inner.existing.keys().filter(|object| may_be_of(object, resource) && !known.contains(*object));
            match kind {
                OperationKind::Creating => inner.unmanaged.extend(lost.cloned()),
                _ if !inner.existing.contains_key(&object) => {
                    inner.vanished.insert(object);
                }
                _ => {}
            }
        }
    }

    /// Stores the ids of resources that were created from their recorded inputs, without a Check.
    pub(crate) fn record_created_unchecked<'c>(&self, ids: impl Iterator<Item = &'c String>) {
        self.inner().created_unchecked.extend(ids.cloned());
    }

    /// Returns the ids of resources that were created from their recorded inputs, without a Check.
    pub(crate) fn created_unchecked(&self) -> BTreeSet<String> {
        self.inner().created_unchecked.clone()
    }

    /// Compares the existing objects with a state and the one before it. Returns the objects without an entry, a pending
    /// create or a release by the program, which retains the `retained`. An entry with a pending replacement has no
    /// existing object.
    pub(crate) fn lost_resources(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        retained: &[ProgramResource],
    ) -> Vec<String> {
        let inner = &mut *self.inner();
        if inner.allows_missing {
            return Vec::new();
        }
        let owned = after.resources.iter().filter(|entry| !entry.pending_replacement);
        let known: BTreeSet<Object> = owned.map(|entry| inner.object_of(after, entry)).collect();
        inner.unmanaged.retain(|object| !known.contains(object));
        // A resource that is retained before its replacement has an entry with a pending replacement.
        let is_old_of_retained =
            |entry: &ResourceState| entry.delete && retained.iter().any(|resource| resource.may_have_been(&entry.urn));
        let is_released = |entry: &Arc<ResourceState>| {
            let is_released = entry.external || entry.retain_on_delete || entry.deleted_with.is_some();
            is_released || is_old_of_retained(entry)
        };
        let is_removed = |entry: &&Arc<ResourceState>| {
            !after.resources.iter().any(|other| (&other.urn, &other.id) == (&entry.urn, &entry.id))
        };
        let removed = before.resources.iter().filter(|entry| is_released(entry)).filter(is_removed);
        let removed: Vec<Object> = removed.map(|entry| inner.object_of(before, entry)).collect();
        inner.released_by_one.extend(removed.into_iter().filter(|object| known.contains(object)));
        let (mut lost, mut released) = (Vec::new(), Vec::new());
        for object in
            inner.existing.keys().filter(|object| !known.contains(*object) && !inner.unmanaged.contains(*object))
        {
            let creating = |pending: &PendingOperation| {
                pending.kind == OperationKind::Creating && may_be_of(object, &pending.resource)
            };
            let named = |state: &Snapshot| {
                state.resources.iter().find(|entry| inner.object_of(state, entry) == *object).cloned()
            };
            match named(before) {
                entry if entry.iter().chain(&named(after)).any(is_released) => released.push(object.clone()),
                Some(_) if inner.released_by_one.contains(object) => released.push(object.clone()),
                // A Create may give the name of an object that was deleted before its replacement to the new one.
                entry
                    if entry.as_ref().is_none_or(|entry| entry.pending_replacement)
                        && after.pending_operations.iter().any(creating) => {}
                Some(_) | None => lost.push(object.to_string()),
            }
        }
        inner.unmanaged.extend(released);
        lost
    }

    /// Returns all calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.inner().calls.clone()
    }

    /// Returns the number of creates of a resource.
    pub(crate) fn creates_of(&self, urn: &pulumi_proto::urn::Urn) -> usize {
        let is_create = |call: &&Call| call.verb == "create" && call.name == urn.name();
        self.inner().calls.iter().filter(is_create).filter(|call| call.type_token == urn.type_token()).count()
    }

    /// Returns the number of equal calls in all runs.
    pub(crate) fn call_count(&self, text: &str) -> usize {
        self.inner().calls.iter().filter(|call| call.text() == text).count()
    }

    /// Returns the number of calls for resources whose reply was lost.
    pub(crate) fn lost_replies(&self) -> usize {
        self.inner().lost_replies
    }

    /// Returns the number of started instances of a provider resource.
    pub(crate) fn boot_count(&self, name: &str) -> usize {
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

    /// Returns the violations of guarantees, after the end of a run.
    pub(crate) fn violations(&self) -> Vec<String> {
        let inner = self.inner();
        let mut violations = inner.violations.clone();
        for (number, instance) in inner.instances.iter().enumerate() {
            if instance.closed == 0 {
                violations.push(format!("instance {number} of {} was not closed", instance.name));
            }
        }
        violations
    }

    fn add_violation(&self, text: String) {
        self.inner().violations.push(text);
    }
}

/// Returns whether an object may be that of a resource.
fn may_be_of(object: &Object, resource: &ResourceState) -> bool {
    let named = resource.inputs.get(NAMED).and_then(PropertyValue::as_str);
    named.is_some_and(|named| object.id.strip_prefix(named).is_some_and(|account| !account.starts_with('-')))
        || object.id.rsplit_once('-').is_some_and(|(name, _)| name == resource.urn.name())
}

impl Inner {
    /// Returns the object with an id, as an account names it.
    fn object(&self, id: &str, account: &Account) -> Object {
        let account = (!self.has_global_ids && !self.added.contains(id)).then(|| account.clone());
        Object { id: id.to_owned(), account }
    }

    fn object_of(&self, snapshot: &Snapshot, entry: &ResourceState) -> Object {
        self.object(entry.id_text(), &Account::of_entry(snapshot, entry))
    }

    /// Returns whether the id of an object is an input of another one that exists.
    fn is_in_use(&self, object: &Object) -> bool {
        let others = self.existing.iter().filter(|(other, _)| *other != object);
        let mut inputs = others.filter_map(|(_, inputs)| inputs.as_ref()).flat_map(PropertyMap::values);
        inputs.any(|value| matches!(value.without_wrappers(), PropertyValue::String(text) if *text == *object.id))
    }

    fn vanish(&mut self, object: &Object) {
        if Arc::make_mut(&mut self.existing).remove(object).is_some() {
            self.vanished.insert(object.clone());
        }
    }
}

#[async_trait]
impl ProviderHost for FakeCloud {
    async fn start_provider(&self, request: &ProviderRequest) -> Result<Arc<dyn Provider>, HostError> {
        let key = format!("boot {}", request.name);
        let (number, failure) = {
            let mut inner = self.inner();
            inner.booted.push(request.clone());
            inner.instances.push(InstanceRecord { name: request.name.clone(), ..InstanceRecord::default() });
            (inner.instances.len() - 1, inner.failures.get(&key).copied())
        };
        if failure.is_some() {
            self.inner().instances[number].closed = 1;
            return Err(HostError::new(format!("{} cannot be started", request.name)));
        }
        Ok(Arc::new(Instance { cloud: self.clone(), number }))
    }
}

/// Returns a property map of strings.
pub(crate) fn map(members: &[(&str, &str)]) -> PropertyMap {
    members.iter().map(|(key, value)| ((*key).to_owned(), PropertyValue::from(*value))).collect()
}
