//! Tests of the pool with instances that are no processes: single situations, and generated interleavings.
//!
//! `POOL_CASES` is the number of generated cases, `POOL_SEED` the seed of the first one; a failure names its seed.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::*;

/// State of a fake process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    Running,
    Exited,
    Ended,
}

/// Fake process, which a test ends or lets exit.
struct Fake {
    number: usize,
    life: watch::Sender<Life>,
    /// Number of users at this moment.
    users: AtomicUsize,
    /// Number of instances that were dropped while they ran.
    lost: Arc<AtomicUsize>,
}

impl Fake {
    fn new(number: usize, lost: Arc<AtomicUsize>) -> Self {
        Self { number, life: watch::Sender::new(Life::Running), users: AtomicUsize::new(0), lost }
    }

    fn life(&self) -> Life {
        *self.life.borrow()
    }

    /// Begins a use, which must be the only one.
    fn begin_use(&self) {
        assert_eq!(self.users.fetch_add(1, Ordering::SeqCst), 0, "instance {} has two users", self.number);
    }

    fn end_use(&self) {
        assert_eq!(self.users.fetch_sub(1, Ordering::SeqCst), 1);
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if self.life() == Life::Running {
            self.lost.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Pooled for Fake {
    fn is_alive(&self) -> bool {
        self.life() == Life::Running
    }

    fn exited(&self) -> BoxFuture<'static, ()> {
        let mut life = self.life.subscribe();
        Box::pin(async move { drop(life.wait_for(|life| *life != Life::Running).await) })
    }

    fn end(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.life.send_replace(Life::Ended);
        })
    }
}

type TestPool = Pool<&'static str, Fake, &'static str>;

fn started(number: usize) -> BoxFuture<'static, Result<Fake, &'static str>> {
    Box::pin(async move { Ok(Fake::new(number, Arc::default())) })
}

async fn lease(pool: &TestPool, group: &GroupId, number: usize) -> Arc<Fake> {
    pool.lease_started(group, || started(number)).await.unwrap_or_else(|_| panic!("instance {number} starts"))
}

/// Lets all tasks run until they wait.
async fn run_tasks() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn idle_instance_with_the_highest_rank_is_leased_and_of_several_the_last_one() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    assert_eq!((&pool.group("a"), &pool.group("b") == group), (group, false));
    let instances = [lease(&pool, group, 1).await, lease(&pool, group, 2).await, lease(&pool, group, 3).await];
    for instance in instances {
        pool.give_back(group, instance, true).await;
    }
    let rank = |instance: &Fake| (instance.number < 3).then_some(0);
    assert_eq!(pool.lease_idle(group, rank).unwrap().number, 2);
    assert_eq!(pool.lease_idle(group, |instance| Some(10 - instance.number)).unwrap().number, 1);
    assert!(pool.lease_idle(&pool.group("b"), |_| Some(0)).is_none(), "another group has other instances");
}

#[tokio::test]
async fn instance_that_is_not_kept_or_has_exited_ends() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    let [unkept, exited] = [lease(&pool, group, 1).await, lease(&pool, group, 2).await];
    pool.give_back(group, Arc::clone(&unkept), false).await;
    exited.life.send_replace(Life::Exited);
    pool.give_back(group, Arc::clone(&exited), true).await;
    assert_eq!((unkept.life(), exited.life(), pool.idle_count()), (Life::Ended, Life::Ended, 0));
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): the death of an instance is seen only at the next use.
#[tokio::test]
async fn idle_instance_that_exits_is_gone_at_once() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    let instance = lease(&pool, group, 1).await;
    pool.give_back(group, Arc::clone(&instance), true).await;
    instance.life.send_replace(Life::Exited);
    assert!(pool.lease_idle(group, |_| Some(0)).is_none(), "even before it was removed");
    run_tasks().await;
    assert_eq!((pool.idle_count(), instance.life()), (0, Life::Ended));
    assert_eq!(lease(&pool, group, 2).await.number, 2);
}

/// Shows: hosting.md#what-is-kept-when "both start at the same time, and the run waits for one of them"
/// Shows: hosting.md#what-is-kept-when "A second one that fails does not fail the run."
#[tokio::test]
async fn starts_ahead_fill_the_group_and_their_failures_reach_no_caller_that_another_start_serves() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    let (sender, gate) = watch::channel(false);
    let begun = Arc::new(AtomicUsize::new(0));
    // The first start waits, the second one fails at once.
    let start = || -> BoxFuture<'static, Result<Fake, &'static str>> {
        let (number, mut gate) = (begun.fetch_add(1, Ordering::SeqCst), gate.clone());
        Box::pin(async move {
            if number == 1 {
                return Err("no licence");
            }
            gate.wait_for(|is_open| *is_open).await.ok();
            Ok(Fake::new(number, Arc::default()))
        })
    };
    pool.start_ahead(group, 2, start);
    pool.start_ahead(group, 2, start);
    let mut leased = Box::pin(pool.lease_started(group, || panic!("a start is in progress")));
    tokio::select! {
        biased;
        _ = &mut leased => panic!("the failure is that of another start"),
        () = run_tasks() => {}
    }
    sender.send_replace(true);
    assert_eq!((leased.await.map(|instance| instance.number), begun.load(Ordering::SeqCst)), (Ok(0), 2));
    pool.start_ahead(group, 1, start);
    run_tasks().await;
    assert_eq!((pool.idle_count(), begun.load(Ordering::SeqCst)), (1, 3), "one is leased, so another one is idle");
    pool.start_ahead(group, 1, start);
    assert_eq!(begun.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn start_ahead_that_fails_is_repeated_for_its_caller_if_another_one_has_succeeded() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    let fail = || -> BoxFuture<'static, Result<Fake, &'static str>> { Box::pin(async { Err("no") }) };
    pool.start_ahead(group, 1, fail);
    let first = pool.lease_started(group, || panic!("nothing shows that a start can succeed")).await;
    assert_eq!(first.err(), Some(NotStarted::Failed("no")));
    let _leased = lease(&pool, group, 1).await;
    pool.start_ahead(group, 1, fail);
    assert_eq!(lease(&pool, group, 2).await.number, 2);
    let failed = pool.lease_started(group, fail).await;
    assert_eq!(failed.err(), Some(NotStarted::Failed("no")), "it is the start of the caller itself");
}

/// Shows: hosting.md#what-is-kept-when "The start of an instance continues if the phase that requested it is gone"
#[tokio::test]
async fn start_continues_without_its_caller_and_the_next_caller_gets_its_instance() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    let (sender, gate) = oneshot::channel::<()>();
    let start = move || -> BoxFuture<'static, Result<Fake, &'static str>> {
        Box::pin(async move {
            gate.await.ok();
            Ok(Fake::new(1, Arc::default()))
        })
    };
    let caller = pool.lease_started(group, start);
    assert!(futures_util::FutureExt::now_or_never(caller).is_none(), "the caller stops waiting");
    let second = pool.lease_started(group, || unreachable!("the first start serves the second caller"));
    let (instance, ()) = tokio::join!(second, async { sender.send(()).unwrap() });
    assert_eq!(instance.ok().unwrap().number, 1);
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): a failed start is remembered.
#[tokio::test]
async fn failed_start_fails_its_caller_and_the_next_call_starts_again() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    let failed = pool.lease_started(group, || Box::pin(async { Err("no") })).await;
    assert_eq!(failed.err(), Some(NotStarted::Failed("no")));
    assert_eq!(lease(&pool, group, 2).await.number, 2);
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): the end of the pool misses what is starting, or cannot
/// cancel it.
///
/// Shows: hosting.md#what-is-kept-when "it stops what is starting, ends all instances, and waits until no process is
///   left"
#[tokio::test]
async fn close_stops_starts_and_ends_idle_and_leased_instances() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    let [idle, leased] = [lease(&pool, group, 1).await, lease(&pool, group, 2).await];
    let mut life_of_idle = idle.life.subscribe();
    pool.give_back(group, idle, true).await;
    let starting = pool.lease_started(group, || Box::pin(std::future::pending()));
    let (result, ()) = tokio::join!(starting, pool.close());
    assert_eq!(result.err(), Some(NotStarted::Closed));
    assert_eq!((*life_of_idle.borrow_and_update(), leased.life()), (Life::Ended, Life::Ended));
    pool.give_back(group, leased, true).await;
    assert_eq!(pool.idle_count(), 0, "a closed pool keeps no instance");
    let late = pool.lease_started(group, || unreachable!("a closed pool starts no instance")).await;
    assert_eq!(late.err(), Some(NotStarted::Closed));
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): the first request after a death fails; a dead instance
/// in use hinders the next start.
#[tokio::test]
async fn leased_instance_that_is_dead_does_not_hinder_the_next_start() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    let dead = lease(&pool, group, 1).await;
    dead.life.send_replace(Life::Exited);
    run_tasks().await;
    let next = lease(&pool, group, 2).await;
    assert_eq!((next.number, next.life()), (2, Life::Running), "the first request after the death gets an instance");
    pool.give_back(group, next, true).await;
    pool.give_back(group, dead, true).await;
    assert_eq!(pool.lease_idle(group, |_| Some(0)).unwrap().number, 2);
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): the removal of an instance hits its successor of the
/// same name.
#[tokio::test]
async fn exit_of_an_instance_leaves_the_others_of_its_group() {
    let pool = TestPool::new();
    let group = &pool.group("a");
    let [old, new] = [lease(&pool, group, 1).await, lease(&pool, group, 2).await];
    for instance in [&old, &new] {
        pool.give_back(group, Arc::clone(instance), true).await;
    }
    old.life.send_replace(Life::Exited);
    run_tasks().await;
    assert_eq!((old.life(), new.life(), pool.idle_count()), (Life::Ended, Life::Running, 1));
}

#[tokio::test]
async fn groups_that_nothing_uses_are_forgotten() {
    let pool = TestPool::new();
    let count = || pool.0.lock().groups.len();
    let (kept, over) = (pool.group("a"), pool.group("b"));
    for (group, number) in [(&kept, 1), (&over, 2)] {
        let instance = lease(&pool, group, number).await;
        pool.give_back(group, instance, true).await;
    }
    pool.end_idle(|instance| instance.number == 2).await;
    assert_eq!(count(), 2, "both ids are in use");
    drop((kept, over));
    pool.end_idle(|_| false).await;
    assert_eq!(count(), 1, "the group with an instance is kept");
    assert_eq!(pool.lease_idle(&pool.group("a"), |_| Some(0)).unwrap().number, 1);
    let again = &pool.group("b");
    assert_eq!(lease(&pool, again, 3).await.number, 3);
}

/// Generator of numbers (SplitMix64), for reproducible cases.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }
}

/// End of a start.
enum Outcome {
    Instance { number: usize, lost: Arc<AtomicUsize> },
    Failure,
}

/// Case of generated steps on one pool.
struct Case {
    pool: TestPool,
    numbers: Numbers,
    /// Starts that wait for their outcome.
    starts: Arc<Mutex<Vec<oneshot::Sender<Outcome>>>>,
    started: usize,
    lost: Arc<AtomicUsize>,
    /// All instances that were leased at any time.
    all: Vec<Weak<Fake>>,
    callers: Vec<JoinHandle<Option<Arc<Fake>>>>,
    leased: Vec<(GroupId, Arc<Fake>)>,
    groups_of_callers: Vec<GroupId>,
}

impl Case {
    fn pick<T>(numbers: &mut Numbers, from: &mut Vec<T>) -> Option<T> {
        if from.is_empty() { None } else { Some(from.swap_remove(numbers.below(from.len()))) }
    }

    fn boot(&mut self) {
        let group = self.pool.group(["a", "b"][self.numbers.below(2)]);
        if let Some(instance) = self.pool.lease_idle(&group, |_| Some(0)) {
            instance.begin_use();
            self.leased.push((group, instance));
            return;
        }
        let (pool, starts) = (self.pool.clone(), Arc::clone(&self.starts));
        let start = move || -> BoxFuture<'static, Result<Fake, &'static str>> {
            let (sender, outcome) = oneshot::channel();
            starts.lock().unwrap().push(sender);
            Box::pin(async move {
                match outcome.await {
                    Ok(Outcome::Instance { number, lost }) => Ok(Fake::new(number, lost)),
                    Ok(Outcome::Failure) | Err(_) => Err("no"),
                }
            })
        };
        self.groups_of_callers.push(group.clone());
        self.callers.push(tokio::spawn(async move { pool.lease_started(&group, start).await.ok() }));
    }

    async fn step(&mut self) {
        match self.numbers.below(11) {
            0..=2 => self.boot(),
            3 | 4 => {
                let start = Self::pick(&mut self.numbers, &mut self.starts.lock().unwrap());
                if let Some(start) = start {
                    self.started += 1;
                    start.send(Outcome::Instance { number: self.started, lost: Arc::clone(&self.lost) }).ok();
                }
            }
            5 => {
                let start = Self::pick(&mut self.numbers, &mut self.starts.lock().unwrap());
                start.map(|start| start.send(Outcome::Failure).ok());
            }
            6 => {
                // A caller stops waiting, perhaps after its instance has arrived.
                if !self.callers.is_empty() {
                    let index = self.numbers.below(self.callers.len());
                    if !self.callers[index].is_finished() {
                        self.groups_of_callers.swap_remove(index);
                        self.callers.swap_remove(index).abort();
                    }
                }
            }
            7 | 8 => {
                if let Some((group, instance)) = Self::pick(&mut self.numbers, &mut self.leased) {
                    instance.end_use();
                    let keep = self.numbers.below(4) > 0;
                    let given_back = self.pool.give_back(&group, instance, keep);
                    if self.numbers.below(2) == 0 {
                        given_back.await;
                    }
                }
            }
            9 => self.pool.end_idle(|instance| instance.number % 3 == 0).await,
            _ => {
                let index = self.numbers.below(self.all.len().max(1));
                if let Some(instance) = self.all.get(index).and_then(Weak::upgrade) {
                    instance.life.send_if_modified(|life| std::mem::replace(life, Life::Exited) == Life::Running);
                }
            }
        }
        for _ in 0..self.numbers.below(4) {
            tokio::task::yield_now().await;
        }
        self.collect().await;
    }

    /// Takes the instances that have arrived at their callers.
    async fn collect(&mut self) {
        let mut index = 0;
        while index < self.callers.len() {
            if !self.callers[index].is_finished() {
                index += 1;
                continue;
            }
            let group = self.groups_of_callers.swap_remove(index);
            if let Ok(Some(instance)) = self.callers.swap_remove(index).await {
                instance.begin_use();
                self.all.push(Arc::downgrade(&instance));
                self.leased.push((group, instance));
            }
        }
    }

    async fn run(mut self) {
        for _ in 0..self.numbers.below(60) {
            self.step().await;
        }
        let watched: Vec<_> = self.leased.iter().map(|(_, instance)| Arc::clone(instance)).collect();
        let returns = self.leased.split_off(self.leased.len() / 2);
        let return_late = async {
            for (group, instance) in returns {
                self.pool.give_back(&group, instance, true).await;
            }
        };
        // Starts that never end must not keep the pool from closing.
        let close = async { tokio::join!(self.pool.close(), return_late) };
        tokio::time::timeout(std::time::Duration::from_secs(20), close).await.expect("the pool closes");
        for instance in watched {
            assert_ne!(instance.life(), Life::Running, "instance {} is left", instance.number);
        }
        assert!(self.all.iter().filter_map(Weak::upgrade).all(|instance| instance.life() != Life::Running));
        assert_eq!(self.lost.load(Ordering::SeqCst), 0, "instances were dropped while they ran");
        assert_eq!(self.pool.idle_count(), 0);
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Shows: hosting.md#what-is-kept-when "it stops what is starting, ends all instances, and waits until no process is
///   left"
#[tokio::test]
async fn no_interleaving_shares_or_leaves_an_instance() {
    let (first, cases) = (setting("POOL_SEED", 1), setting("POOL_CASES", 500));
    for seed in first..first + cases {
        let case = Case {
            pool: TestPool::new(),
            numbers: Numbers(seed),
            starts: Arc::default(),
            started: 0,
            lost: Arc::default(),
            all: Vec::new(),
            callers: Vec::new(),
            leased: Vec::new(),
            groups_of_callers: Vec::new(),
        };
        let result = tokio::spawn(case.run()).await;
        result.unwrap_or_else(|error| panic!("POOL_SEED={seed}: {error}"));
    }
}
