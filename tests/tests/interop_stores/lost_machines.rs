//! Machines that are lost: `sc`, its plugins and its whole disk vanish at random moments, and another machine goes on without a
//! human.
//!
//! By default a few moments are tested on each store; `SC_LOST_MACHINES=100` tests as many. `SC_SEED` repeats a run.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Output};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::azurite::Azurite;
use tests::gcs_server::GcsServer;
use tests::processes::{kill_with_variable, wait_until};
use tests::store_proxy::{Fault, StoreProxy};

use crate::life::Repository;
use crate::{postgres, s3};

/// Resources of each version of the stack.
const SIZE: usize = 24;
/// Resources that each version lacks and has in addition.
const MOVED: usize = 6;
/// Time that each request to the store takes.
const DELAY: Duration = Duration::from_millis(5);

/// Random numbers, the same for a seed.
struct Random(Cell<u64>);

impl Random {
    fn below(&self, limit: u64) -> u64 {
        let next = self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.set(next);
        (next >> 33) % limit
    }
}

/// Machines that are lost one after the other, beside a store and a cloud that stay.
struct Fleet<'a> {
    machine: Repository,
    proxy: &'a StoreProxy,
    random: Random,
    version: usize,
    /// Creations that were pending and had happened.
    settled: usize,
}

impl<'a> Fleet<'a> {
    fn new(machine: Repository, proxy: &'a StoreProxy, seed: u64) -> Self {
        fs::create_dir(machine.path("rec/ledger")).unwrap();
        let fleet = Self { machine, proxy, random: Random(Cell::new(seed)), version: 0, settled: 0 };
        fleet.write();
        fleet.machine.sc(0, "provision -S -R");
        fleet
    }

    /// Writes the version: some resources are created, some deleted, some updated.
    fn write(&self) {
        let first = self.version * MOVED;
        let things: Vec<(String, String)> = (first..first + SIZE)
            .map(|number| (format!("thing{number}"), ((number + self.version) / 5).to_string()))
            .collect();
        let things: Vec<(&str, &str)> = things.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.machine.write_things(&things);
    }

    /// Starts a run that is lost at a random moment: when the provider receives a call, or has handled it, or when the store
    /// receives a request, or has handled it. Returns what is known about the moment.
    fn lose_run(&self) -> String {
        let parallel = [1, 4, 16][usize::try_from(self.random.below(3)).unwrap()];
        let mut command = self.machine.command(&format!("provision -S -R --parallel {parallel}"));
        let (number, is_before) = (self.random.below(60), self.random.below(2) == 0);
        self.proxy.forget_requests();
        if self.random.below(2) == 0 {
            let moment = format!("{}:{}", 6 + number, if is_before { "before" } else { "after" });
            let Output { status, .. } = command.env("REC_KILL", &moment).output().unwrap();
            return format!("call {moment}, --parallel {parallel}: {status}");
        }
        let fault = if is_before { Fault::HeldBefore } else { Fault::HeldAfter };
        let number = 8 + usize::try_from(number).unwrap() / 2;
        self.proxy.fail_at(number, fault);
        let mut run: Child = command.spawn().unwrap();
        if self.proxy.wait_until_held(|| run.try_wait().unwrap().is_some()) {
            run.kill().unwrap();
        }
        let status = run.wait().unwrap();
        format!("{fault:?} at request {number}, --parallel {parallel}: {status}")
    }

    /// Loses the machine with its disk. The next one has the cloud and the store.
    fn replace_machine(&mut self) {
        kill_with_variable("HOME", &self.machine.path("home"));
        self.proxy.wait_until_free();
        self.proxy.recover();
        self.proxy.set_delay(DELAY);
        let next = self.machine.elsewhere();
        fs::remove_dir_all(next.path("rec")).unwrap();
        fs::rename(self.machine.path("rec"), next.path("rec")).unwrap();
        self.machine = next;
        self.write();
    }

    /// Checks that each existing resource is recorded or is a pending create, and that a created one is not created again.
    fn check(&mut self, moment: &str) {
        let (recorded, pending) = self.recorded();
        let existing = self.existing();
        let is_named = |id: &&String| recorded.contains(*id) || pending.contains(name(id));
        let lost: Vec<_> = existing.iter().filter(|id| !is_named(id)).collect();
        assert!(lost.is_empty(), "{moment}: {lost:?} are in no state; pending: {pending:?}");
        // The pending creates are settled from what the provider knows.
        let found: Vec<&String> = existing.iter().filter(|id| !recorded.contains(*id)).collect();
        self.settled += found.len();
        let imports: String = found.iter().map(|id| format!(" --import-pending-creates {}={id}", name(id))).collect();
        self.machine.sc(0, &format!("refresh --yes{imports} --clear-pending-creates"));
        self.machine.sc(0, "provision -S -R --yes");
        self.machine.expect(0, "provision -S -R --expect-no-changes", "unchanged");
        let (recorded, pending) = self.recorded();
        assert_eq!((&recorded, pending.len()), (&self.existing(), 0), "{moment}");
        assert_eq!(recorded.len(), SIZE, "{moment}: {recorded:?}");
    }

    /// Returns the ids of the existing resources.
    fn existing(&self) -> BTreeSet<String> {
        let names = fs::read_dir(self.machine.path("rec/ledger")).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Returns the recorded ids, and the names of the pending creates.
    fn recorded(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let exported: Value = serde_json::from_str(&self.machine.sc(0, "stack export")).unwrap();
        let list = |key: &str| exported["deployment"][key].as_array().cloned().unwrap_or_default();
        let is_thing = |resource: &Value| resource["type"] == "rec:index:Thing";
        let ids = list("resources").into_iter().filter(is_thing);
        let creating = list("pending_operations").into_iter().filter(|pending| pending["type"] == "creating");
        let urn_name =
            |pending: Value| pending["resource"]["urn"].as_str().unwrap().rsplit("::").next().unwrap().to_owned();
        (ids.map(|resource| resource["id"].as_str().unwrap().to_owned()).collect(), creating.map(urn_name).collect())
    }
}

/// Returns the name of the resource in an id of the provider.
fn name(id: &str) -> &str {
    id.rsplit_once('-').unwrap().0
}

fn lose_machines(machine: Repository, proxy: &StoreProxy) {
    let count: usize = std::env::var("SC_LOST_MACHINES").map_or(6, |count| count.parse().unwrap());
    let seed = std::env::var("SC_SEED").map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    println!("SC_SEED={seed}");
    let mut fleet = Fleet::new(machine, proxy, seed);
    for _ in 0..count {
        fleet.version += 1;
        fleet.write();
        let moment = format!("SC_SEED={seed}, version {}: {}", fleet.version, fleet.lose_run());
        fleet.replace_machine();
        fleet.check(&moment);
        println!("{moment}");
    }
    println!("{count} machines lost; {} creations were pending and had happened", fleet.settled);
}

/// Stops a run in the middle of a Create for longer than its lease, lets another machine take over, and lets the run go on.
fn stop_past_the_lease(machine: &Repository) {
    fs::create_dir(machine.path("rec/ledger")).unwrap();
    let things = [("first", "1"), ("second", "${resource:first.cid}")];
    machine.write_things(&things);
    machine.script(&json!({ "provider": { "createDelay": 1500 } }));
    let mut command = machine.command("provision -S -R --parallel 1");
    command.env("SC_LOCK_LEASE_SECONDS", "3");
    let ledger = machine.path("rec/ledger");
    let existing = || fs::read_dir(&ledger).unwrap().count();
    // The provider names the second resource, and creates it some time later.
    let is_named = || fs::read_to_string(machine.path("rec/ids.json")).is_ok_and(|ids| ids.contains("second--prod"));
    let mut run = machine.start_until(&mut command, "the second resource is named", is_named);
    kill_process(Pid::from_child(&run), Signal::STOP).unwrap();
    wait_until("the second resource exists", || existing() == 2);

    let other = machine.elsewhere();
    fs::remove_dir_all(other.path("rec")).unwrap();
    std::os::unix::fs::symlink(machine.path("rec"), other.path("rec")).unwrap();
    other.write_things(&things);
    let refreshed = other.sc(0, "refresh --yes --lock-timeout 60s");
    assert!(refreshed.contains("took over the lock"), "{refreshed}");
    assert!(refreshed.contains("creating second--prod"), "{refreshed}");

    kill_process(Pid::from_child(&run), Signal::CONT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(4));
    let shown = other.sc(0, "state ls");
    assert!(shown.contains("was created as second--prod-1 by a run that was taken over"), "{shown}");
    let calls = machine.calls().len();
    other.sc(0, "provision -S -R");
    other.expect(0, "provision -S -R --expect-no-changes", "unchanged");
    let creates = machine.calls().split_off(calls).into_iter().filter(|call| call["rpc"] == "Create").count();
    assert_eq!((creates, existing()), (0, 2), "nothing is created a second time");
    // The machine of the run finds nothing to do either.
    machine.expect(0, "provision -S -R --expect-no-changes", "unchanged");
}

/// Shows: state.md#two-machines "If the state lacks the resource, it becomes a pending create with its id"
#[test]
fn run_stopped_past_its_lease_reports_what_it_has_created_beside_s3() {
    let server = s3::with_bucket("reef");
    stop_past_the_lease(&Repository::in_s3(server.url()));
}

/// Shows: state.md#two-machines "If the state lacks the resource, it becomes a pending create with its id"
#[test]
fn run_stopped_past_its_lease_reports_what_it_has_created_beside_postgres() {
    let server = postgres::start(&[]);
    stop_past_the_lease(&Repository::in_postgres(server.port()));
}

/// Shows: state.md#stores "Whichever machine looks next finds what the run had recorded"
#[test]
fn machines_lost_beside_s3() {
    let server = s3::with_bucket("reef");
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    lose_machines(Repository::in_s3(&proxy.url()), &proxy);
}

/// Shows: state.md#stores "Whichever machine looks next finds what the run had recorded"
#[test]
fn machines_lost_beside_postgres() {
    let server = postgres::start(&[]);
    let proxy = StoreProxy::in_front_of_postgres(server.port()).unwrap();
    lose_machines(Repository::in_postgres(proxy.port()), &proxy);
}

/// Shows: state.md#stores "Whichever machine looks next finds what the run had recorded"
#[tokio::test(flavor = "multi_thread")]
async fn machines_lost_beside_google_cloud_storage() {
    let server = GcsServer::start(None).await.unwrap();
    let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
    let lose = move || lose_machines(Repository::in_google_cloud_storage(&proxy.url()), &proxy);
    tokio::task::spawn_blocking(lose).await.unwrap();
}

/// Shows: state.md#stores "Whichever machine looks next finds what the run had recorded"
#[test]
fn machines_lost_beside_azure() {
    let server = Azurite::start("reef").unwrap();
    let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
    lose_machines(Repository::in_azure(&proxy.host()), &proxy);
}
