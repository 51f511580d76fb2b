//! Objects in memory, with faults on demand. Compiled for tests only (`testing` in `Cargo.toml`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

use super::objects::{
    Durability, Effect, ListedObject, ObjectError, ObjectErrorKind, ObjectVersion, Objects, StoredObject,
    WriteCondition, WriteError,
};

/// Objects in memory that check every condition of a write. Clones share them.
#[derive(Clone)]
pub struct MemoryObjects {
    shared: Arc<Mutex<Shared>>,
    faults: Arc<Mutex<Option<Faults>>>,
    latency: Duration,
    location: String,
}

impl Default for MemoryObjects {
    fn default() -> Self {
        Self::at("memory://objects")
    }
}

/// Received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Operation, such as `write`.
    pub operation: &'static str,
    /// Key of the object, or folder.
    pub key: String,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is carried out, and replied to.
    None,
    /// The request is carried out, and its reply is lost.
    LostReply,
    /// The request does not arrive.
    NotReached,
    /// The store does not allow the request.
    Denied,
    /// A write arrives later, with [`MemoryObjects::deliver_held`], and its reply is lost. Another request does not arrive.
    Held,
}

type Faults = Box<dyn FnMut(&Request) -> Fault + Send>;

#[derive(Default)]
struct Shared {
    objects: BTreeMap<String, StoredObject>,
    writes: u64,
    modified: Timestamp,
    requests: Vec<Request>,
    held: Vec<HeldWrite>,
    /// Time by which the clock of the store differs from that of this machine.
    clock_offset: SignedDuration,
}

/// Write that arrives later than it was sent.
#[derive(Clone)]
struct HeldWrite {
    key: String,
    content: Bytes,
    condition: WriteCondition,
}

impl MemoryObjects {
    /// Creates a store at a location.
    pub fn at(location: &str) -> Self {
        let location = location.to_owned();
        Self { shared: Arc::default(), faults: Arc::default(), latency: Duration::ZERO, location }
    }

    /// Lets each request take this time.
    #[must_use]
    pub fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Returns the same objects with faults of their own, as another machine sees them.
    #[must_use]
    pub fn with_own_faults(self) -> Self {
        Self { faults: Arc::default(), ..self }
    }

    /// Calls a function with each request, which decides what happens to it.
    pub fn set_faults(&self, faults: impl FnMut(&Request) -> Fault + Send + 'static) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(faults));
    }

    /// Carries out the writes that were held, in their order, and returns the keys of those whose conditions were met.
    pub fn deliver_held(&self) -> Vec<String> {
        let mut shared = self.shared();
        let held = std::mem::take(&mut shared.held);
        let written = held.into_iter().filter(|write| shared.write(write).is_some());
        written.map(|write| write.key).collect()
    }

    /// Moves the clock of the store, which no machine has.
    pub fn move_clock(&self, by: SignedDuration) {
        self.shared().clock_offset += by;
    }

    /// Returns the requests since the last call.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared().requests)
    }

    /// The keys.
    pub fn keys(&self) -> Vec<String> {
        self.shared().objects.keys().cloned().collect()
    }

    /// Writes an object as another program does, without a fault.
    pub fn put(&self, key: &str, content: &str) {
        self.shared().put(key, content.as_bytes().to_vec());
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn request<T>(
        &self,
        operation: &'static str,
        key: &str,
        work: impl FnOnce(&mut Shared) -> T + Send,
    ) -> Result<T, ObjectError> {
        self.request_or_hold(operation, key, None, work).await
    }

    /// Sends a request. `held` is what arrives later if the request is held.
    async fn request_or_hold<T>(
        &self,
        operation: &'static str,
        key: &str,
        held: Option<HeldWrite>,
        work: impl FnOnce(&mut Shared) -> T + Send,
    ) -> Result<T, ObjectError> {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let request = Request { operation, key: key.to_owned() };
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = faults.as_mut().map_or(Fault::None, |faults| faults(&request));
        let mut shared = self.shared();
        shared.requests.push(request);
        if fault == Fault::Held {
            shared.held.extend(held);
        }
        let result = matches!(fault, Fault::None | Fault::LostReply).then(|| work(&mut shared));
        let (kind, source) = match fault {
            Fault::Denied => (ObjectErrorKind::Denied, "access denied"),
            _ => (ObjectErrorKind::Unreachable, "the connection was closed"),
        };
        result.filter(|_| fault == Fault::None).ok_or_else(|| ObjectError {
            operation,
            location: format!("{}/{key}", self.location()),
            kind,
            effect: kind.effect(),
            source: source.into(),
        })
    }
}

impl Shared {
    fn put(&mut self, key: &str, content: Vec<u8>) -> ObjectVersion {
        self.writes += 1;
        // No two objects of a test are equally new.
        self.modified = (Timestamp::now() + self.clock_offset).max(self.modified + Duration::from_millis(1));
        let version = ObjectVersion { tag: None, generation: Some(self.writes.to_string()) };
        let object = StoredObject { content, version: version.clone(), modified: self.modified };
        self.objects.insert(key.to_owned(), object);
        version
    }

    /// Writes an object, if the condition is met.
    fn write(&mut self, write: &HeldWrite) -> Option<ObjectVersion> {
        let HeldWrite { key, content, condition } = write;
        let is_met = match (condition, self.objects.get(key)) {
            (WriteCondition::None, _) | (WriteCondition::Missing, None) => true,
            (WriteCondition::Unchanged(version), Some(found)) => found.version == *version,
            (WriteCondition::Missing, Some(_)) | (WriteCondition::Unchanged(_), None) => false,
        };
        is_met.then(|| self.put(key, content.to_vec()))
    }

    fn list(&self, folder: &str) -> Vec<ListedObject> {
        let prefix = format!("{folder}/");
        let listed = |(key, object): (&String, &StoredObject)| {
            let name = key.strip_prefix(&prefix)?.to_owned();
            Some(ListedObject { name, modified: object.modified })
        };
        self.objects.iter().filter_map(listed).collect()
    }
}

#[async_trait]
impl Objects for MemoryObjects {
    fn location(&self) -> String {
        self.location.clone()
    }

    async fn read(&self, key: &str, limit: u64) -> Result<Option<StoredObject>, ObjectError> {
        let object = self.request("read", key, |shared| shared.objects.get(key).cloned()).await?;
        match object {
            Some(object) if object.content.len() as u64 > limit => Err(ObjectError {
                operation: "read",
                location: format!("{}/{key}", self.location()),
                kind: ObjectErrorKind::TooLarge,
                effect: Effect::None,
                source: format!("it has more than {limit} bytes").into(),
            }),
            object => Ok(object),
        }
    }

    async fn write(
        &self,
        key: &str,
        content: Bytes,
        condition: &WriteCondition,
        _: Durability,
    ) -> Result<ObjectVersion, WriteError> {
        let write = HeldWrite { key: key.to_owned(), content, condition: condition.clone() };
        let written = self.request_or_hold("write", key, Some(write.clone()), |shared| shared.write(&write));
        written.await?.ok_or(WriteError::Condition)
    }

    async fn copy(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        let copy = |shared: &mut Shared| {
            let content = shared.objects.get(from).map(|object| object.content.clone());
            content.map(|content| shared.put(to, content)).is_some()
        };
        self.request("copy", from, copy).await
    }

    async fn remove(&self, key: &str) -> Result<(), ObjectError> {
        self.request("remove", key, |shared| shared.objects.remove(key)).await.map(drop)
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        let mut listed = self.request("list", folder, |shared| shared.list(folder)).await?;
        listed.retain(|object| !object.name.contains('/'));
        Ok(listed)
    }

    async fn list_all(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        self.request("list", folder, |shared| shared.list(folder)).await
    }
}
