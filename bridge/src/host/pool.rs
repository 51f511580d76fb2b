//! Pool of instances that are started once and leased to one user at a time (docs/hosting.md).
//!
//! ```text
//! starting ──► idle ◄──► leased ──► ending
//!     └──► failed          └──► failed: it exited
//! ```
//! Starts and ends are tasks of the pool: they continue if their caller stops waiting. An instance whose caller is gone by
//! the end of its start becomes idle. The pool knows instances only by [`Pooled`], and does not select them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Instance of a pool.
pub(super) trait Pooled: Send + Sync + 'static {
    /// Returns whether it can still be used.
    fn is_alive(&self) -> bool;
    /// Waits until it has exited. The future does not keep the instance.
    fn exited(&self) -> BoxFuture<'static, ()>;
    /// Ends it: see [`Pool::give_back`]. Called at most once at a time; a second call returns at once.
    fn end(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// Reason why there is no instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotStarted<E> {
    /// The start failed.
    Failed(E),
    /// The pool is closed, or was closed during the start.
    Closed,
}

/// Pool. Clones share it. Dropping the last clone drops idle instances, and stops starts.
pub(super) struct Pool<K, I, E>(Arc<Shared<K, I, E>>);

/// Instances that can replace each other, except for their configuration. Cheap to compare. The pool forgets a group that
/// has no instance once all its ids are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupId(Arc<u64>);

impl GroupId {
    /// Returns whether only the pool has this id.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

struct Shared<K, I, E> {
    state: Mutex<State<K, I, E>>,
    closing: CancellationToken,
    tasks: TaskTracker,
    /// Runtime of the tasks, known from the first start on: an instance may be given back by code outside of it.
    runtime: OnceLock<Handle>,
}

struct State<K, I, E> {
    ids: HashMap<K, GroupId>,
    groups: HashMap<u64, Group<I, E>>,
    /// Number of groups that were created.
    created: u64,
    /// All instances that may run, for the end of the pool.
    running: Vec<Weak<I>>,
    is_closed: bool,
}

struct Group<I, E> {
    /// Instances that nobody uses. The last one was given back last.
    idle: Vec<Arc<I>>,
    /// Number of starts that have not ended.
    starting: usize,
    /// True once a start has succeeded.
    has_started: bool,
    /// Callers that wait for an instance, in their order. A caller that stopped waiting has dropped its receiver.
    waiting: VecDeque<oneshot::Sender<Result<Arc<I>, NotStarted<E>>>>,
}

impl<K, I, E> Clone for Pool<K, I, E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, I, E> Drop for Shared<K, I, E> {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

impl<K: Hash + Eq + Send + 'static, I: Pooled, E: Send + 'static> Pool<K, I, E> {
    /// Creates an empty pool.
    pub(super) fn new() -> Self {
        let (ids, groups) = (HashMap::new(), HashMap::new());
        let state = State { ids, groups, created: 0, running: Vec::new(), is_closed: false };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: OnceLock::new(),
        }))
    }

    /// Returns the group of the instances with a key.
    pub(super) fn group(&self, key: K) -> GroupId {
        let mut state = self.0.lock();
        let State { ids, groups, created, .. } = &mut *state;
        let create = || {
            *created += 1;
            groups.insert(
                *created,
                Group { idle: Vec::new(), starting: 0, has_started: false, waiting: VecDeque::new() },
            );
            GroupId(Arc::new(*created))
        };
        ids.entry(key).or_insert_with(create).clone()
    }

    /// Leases the idle instance with the highest rank, of several the one that was given back last. Returns `None` if no
    /// instance has a rank.
    pub(super) fn lease_idle<R: Ord>(&self, group: &GroupId, rank: impl Fn(&I) -> Option<R>) -> Option<Arc<I>> {
        let mut state = self.0.lock();
        let idle = &mut state.groups.get_mut(&*group.0)?.idle;
        let ranked = idle.iter().enumerate().filter(|(_, instance)| instance.is_alive());
        let best = ranked.filter_map(|(index, instance)| Some((rank(instance)?, index))).max()?;
        Some(idle.remove(best.1))
    }

    /// Leases an instance that is started now, or one whose start was requested by a caller that is gone, or ahead. If such a
    /// start fails although another one of the group has succeeded, the instance is started once more.
    ///
    /// # Errors
    /// [`NotStarted`]. The next call starts another instance.
    ///
    /// # Cancellation
    /// The start continues.
    pub(super) async fn lease_started(
        &self,
        group: &GroupId,
        start: impl FnOnce() -> BoxFuture<'static, Result<I, E>>,
    ) -> Result<Arc<I>, NotStarted<E>> {
        let mut start = Some(start);
        loop {
            let arrived = self.wait_for_start(group, &mut start).await;
            let is_repeated =
                start.is_some() && matches!(arrived, Err(NotStarted::Failed(_))) && self.has_started(group);
            if !is_repeated {
                return arrived;
            }
        }
    }

    /// Waits for the next instance of a group. Takes `start` and calls it if the starts in progress serve other callers.
    async fn wait_for_start(
        &self,
        group: &GroupId,
        start: &mut Option<impl FnOnce() -> BoxFuture<'static, Result<I, E>>>,
    ) -> Result<Arc<I>, NotStarted<E>> {
        let (sender, mut receiver) = oneshot::channel();
        {
            let mut state = self.0.lock();
            if state.is_closed {
                return Err(NotStarted::Closed);
            }
            let Some(of_group) = state.groups.get_mut(&*group.0) else { return Err(NotStarted::Closed) };
            of_group.waiting.retain(|waiting| !waiting.is_closed());
            of_group.waiting.push_back(sender);
            if of_group.starting < of_group.waiting.len()
                && let Some(start) = start.take()
            {
                of_group.starting += 1;
                self.spawn_start(group.clone(), start());
            }
        }
        // An instance that arrives while the caller stops waiting must not be lost.
        let unclaimed = Unclaimed { pool: self, group, receiver: &mut receiver };
        let arrived = (&mut *unclaimed.receiver).await;
        arrived.unwrap_or(Err(NotStarted::Closed))
    }

    fn has_started(&self, group: &GroupId) -> bool {
        self.0.lock().groups.get(&*group.0).is_some_and(|of_group| of_group.has_started)
    }

    /// Starts instances until `count` of a group are idle or starting, and does not wait for them. A failed start is dropped if
    /// another start can serve every caller that waits.
    pub(super) fn start_ahead(
        &self,
        group: &GroupId,
        count: usize,
        start: impl Fn() -> BoxFuture<'static, Result<I, E>>,
    ) {
        let mut state = self.0.lock();
        if state.is_closed {
            return;
        }
        let Some(of_group) = state.groups.get_mut(&*group.0) else { return };
        while of_group.idle.len() + of_group.starting < count {
            of_group.starting += 1;
            self.spawn_start(group.clone(), start());
        }
    }

    fn spawn_start(&self, group: GroupId, start: BoxFuture<'static, Result<I, E>>) {
        let (shared, closing) = (Arc::downgrade(&self.0), self.0.closing.clone());
        self.0.runtime.get_or_init(Handle::current);
        self.0.spawn(async move {
            let started = tokio::select! {
                started = start => started.map(Arc::new).map_err(NotStarted::Failed),
                // Dropping the start kills its process.
                () = closing.cancelled() => Err(NotStarted::Closed),
            };
            let Some(shared) = shared.upgrade() else { return };
            if let Some(late) = shared.started(&group, started) {
                late.end().await;
            }
        });
    }

    /// Gives a leased instance back. If `keep` is true and it is alive, it becomes idle. Otherwise it ends; the returned
    /// future waits for its end.
    ///
    /// # Cancellation
    /// The end continues.
    pub(super) fn give_back(
        &self,
        group: &GroupId,
        instance: Arc<I>,
        keep: bool,
    ) -> impl Future<Output = ()> + use<K, I, E> {
        let refused = self.0.keep_or_refuse(group, instance, keep);
        let ending = refused.and_then(|instance| self.0.spawn(instance.end()));
        async move {
            if let Some(ending) = ending {
                // A task of the pool ends early only with its runtime, which drops the instance.
                ending.await.unwrap_or_default();
            }
        }
    }

    /// Ends the idle instances of all groups that `is_over` selects, and waits for their end. Forgets the groups that nothing
    /// uses.
    pub(super) async fn end_idle(&self, is_over: impl Fn(&I) -> bool) {
        let mut over = Vec::new();
        {
            let mut state = self.0.lock();
            for group in state.groups.values_mut() {
                over.extend(group.idle.extract_if(.., |instance| is_over(instance)));
            }
            state.forget_unused();
        }
        let ends: Vec<_> = over.into_iter().filter_map(|instance| self.0.spawn(instance.end())).collect();
        futures_util::future::join_all(ends).await;
    }

    /// Closes the pool: stops all starts, ends all instances, also leased ones, and returns once none is left. Starts no
    /// further instance.
    pub(super) async fn close(&self) {
        let running: Vec<_> = {
            let mut state = self.0.lock();
            state.is_closed = true;
            let running = std::mem::take(&mut state.running).iter().filter_map(Weak::upgrade).collect();
            state.groups.values_mut().for_each(|group| group.idle.clear());
            running
        };
        self.0.closing.cancel();
        running.into_iter().for_each(|instance: Arc<I>| drop(self.0.spawn(instance.end())));
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Returns the number of idle instances.
    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        self.0.lock().groups.values().map(|group| group.idle.len()).sum()
    }
}

impl<K: Hash + Eq, I, E> State<K, I, E> {
    /// Forgets the groups that have no instance, and that nothing can use again: their keys may never come back.
    fn forget_unused(&mut self) {
        let Self { ids, groups, .. } = self;
        ids.retain(|_, id| {
            let is_empty = groups.get(&*id.0).is_none_or(|group| group.idle.is_empty() && group.starting == 0);
            let is_forgotten = id.is_unused() && is_empty;
            if is_forgotten {
                groups.remove(&*id.0);
            }
            !is_forgotten
        });
    }
}

impl<K: Send + 'static, I: Pooled, E: Send + 'static> Shared<K, I, E> {
    fn lock(&self) -> MutexGuard<'_, State<K, I, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task of the pool. Without a runtime there is no instance.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Option<JoinHandle<()>> {
        self.runtime.get().map(|runtime| self.tasks.spawn_on(task, runtime))
    }

    /// Passes the result of a start to the first caller that still waits. Returns an instance that has to end, because the
    /// pool is closed.
    fn started(self: &Arc<Self>, group: &GroupId, started: Result<Arc<I>, NotStarted<E>>) -> Option<Arc<I>> {
        let mut state = self.lock();
        let (mut started, late) = match started {
            Ok(instance) if state.is_closed => (Err(NotStarted::Closed), Some(instance)),
            started => (started, None),
        };
        if let Ok(instance) = &started {
            state.running.retain(|running| running.strong_count() > 0);
            state.running.push(Arc::downgrade(instance));
            self.watch(group, instance);
        }
        let of_group = state.groups.get_mut(&*group.0)?;
        of_group.starting -= 1;
        of_group.has_started |= started.is_ok();
        of_group.waiting.retain(|waiting| !waiting.is_closed());
        if matches!(started, Err(NotStarted::Failed(_))) && of_group.starting >= of_group.waiting.len() {
            // Another start serves the callers, or nothing waits for this one.
            return late;
        }
        while let Some(caller) = of_group.waiting.pop_front() {
            match caller.send(started) {
                Ok(()) => return late,
                Err(unsent) => started = unsent,
            }
        }
        if let Ok(instance) = started {
            of_group.idle.push(instance);
        }
        late
    }

    /// Removes an instance from the idle ones as soon as it exits. One that is leased is found when it is given back.
    fn watch(self: &Arc<Self>, group: &GroupId, instance: &Arc<I>) {
        let (exited, shared) = (instance.exited(), Arc::downgrade(self));
        let (instance, closing) = (Arc::downgrade(instance), self.closing.clone());
        let group = group.clone();
        self.spawn(async move {
            tokio::select! {
                () = exited => {}
                () = closing.cancelled() => return,
            }
            let Some(idle) = shared.upgrade().and_then(|shared| shared.take_idle(&group, &instance)) else { return };
            idle.end().await;
        });
    }

    /// Removes an instance from the idle ones, if it is one of them.
    fn take_idle(&self, group: &GroupId, instance: &Weak<I>) -> Option<Arc<I>> {
        let mut state = self.lock();
        let idle = &mut state.groups.get_mut(&*group.0)?.idle;
        let index = idle.iter().position(|idle| std::ptr::eq(Arc::as_ptr(idle), instance.as_ptr()))?;
        Some(idle.remove(index))
    }

    /// Makes an instance idle. Returns it if it cannot be kept.
    fn keep_or_refuse(&self, group: &GroupId, instance: Arc<I>, keep: bool) -> Option<Arc<I>> {
        let mut state = self.lock();
        if !keep || state.is_closed || !instance.is_alive() {
            return Some(instance);
        }
        match state.groups.get_mut(&*group.0) {
            Some(group) => {
                group.idle.push(instance);
                None
            }
            None => Some(instance),
        }
    }
}

/// Wait of a caller. If it is dropped after an instance has arrived, the instance becomes idle.
struct Unclaimed<'a, K: Hash + Eq + Send + 'static, I: Pooled, E: Send + 'static> {
    pool: &'a Pool<K, I, E>,
    group: &'a GroupId,
    receiver: &'a mut oneshot::Receiver<Result<Arc<I>, NotStarted<E>>>,
}

impl<K: Hash + Eq + Send + 'static, I: Pooled, E: Send + 'static> Drop for Unclaimed<'_, K, I, E> {
    fn drop(&mut self) {
        self.receiver.close();
        if let Ok(Ok(instance)) = self.receiver.try_recv() {
            drop(self.pool.give_back(self.group, instance, true));
        }
    }
}

impl<K, I, E> fmt::Debug for Pool<K, I, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
