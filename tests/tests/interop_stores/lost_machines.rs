//! Machines that are lost: `sc`, its plugins and its whole disk vanish at random moments, and another machine goes on without a
//! human.
//!
//! By default a few moments are tested on each store; `SC_LOST_MACHINES=100` loses as many on each, with a hundred resources and a
//! slower store. `SC_SEED` repeats a run.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Output};
use std::time::Duration;

use serde_json::{Value, json};
use tests::azurite::Azurite;
use tests::gcs_server::GcsServer;
use tests::processes::kill_with_variable;
use tests::store_proxy::{Fault, StoreProxy};

use crate::life::Repository;
use crate::{postgres, s3};

/// End of the ids of resources that were not created by a run.
const IMPORTED: &str = "-imported";
/// Faults of a store that a run survives, or ends with an error.
const FAULTS: [Fault; 5] = [Fault::BUSY, Fault::CutBefore, Fault::CutAfter, Fault::CutReply, Fault::Overtaken];

/// Size of a test.
#[derive(Clone, Copy, Debug)]
struct Scale {
    machines: u64,
    /// Resources of each version of the stack.
    resources: usize,
    /// Time that each request to the store takes.
    delay: Duration,
}

impl Scale {
    fn from_environment() -> Self {
        match std::env::var("SC_LOST_MACHINES") {
            Ok(machines) => {
                let machines = machines.parse().unwrap();
                Self { machines, resources: 100, delay: Duration::from_millis(50) }
            }
            Err(_) => Self { machines: 6, resources: 24, delay: Duration::from_millis(5) },
        }
    }

    /// Returns the number of resources that each version lacks and has in addition.
    fn moved(self) -> usize {
        self.resources / 4
    }

    /// Returns the number of resources in each layer, which depends on the one before.
    fn layer(self) -> usize {
        self.resources / 6 + 1
    }
}

/// Random numbers, the same for a seed.
struct Random(Cell<u64>);

impl Random {
    fn below(&self, limit: usize) -> usize {
        let next = self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.set(next);
        usize::try_from(next >> 33).unwrap() % limit
    }

    fn one_of<T: Copy>(&self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// Machines that are lost one after the other, beside a store and a cloud that stay.
struct Fleet<'a> {
    machine: Repository,
    proxy: &'a StoreProxy,
    scale: Scale,
    random: Random,
    version: usize,
    /// Creations that were pending and had happened.
    settled: usize,
}

/// Run that was lost.
struct LostRun {
    /// Moment, for messages.
    moment: String,
    /// Largest number of creations that may be pending.
    pending: usize,
}

/// Content of a state.
struct Recorded {
    ids: BTreeSet<String>,
    /// Names of the resources that are neither deleted nor being replaced.
    live: BTreeSet<String>,
    /// Names of the pending creates.
    pending: BTreeSet<String>,
}

impl<'a> Fleet<'a> {
    fn new(machine: Repository, proxy: &'a StoreProxy, scale: Scale, seed: u64) -> Self {
        fs::create_dir(machine.path("rec/ledger")).unwrap();
        let random = Random(Cell::new(seed));
        let fleet = Self { machine, proxy, scale, random, version: 0, settled: 0 };
        fleet.write();
        fleet.machine.sc(0, "provision -S -R");
        fleet
    }

    /// Writes the version: compared with the one before, resources are created, updated, replaced in both orders, imported and
    /// deleted, plain ones and some with secrets.
    fn write(&self) {
        let first = self.version * self.scale.moved();
        let mut lines = String::new();
        for number in first..first + self.scale.resources {
            let mut config = format!("v: '{}'", (number + self.version) / 5);
            if let Some(below) = number.checked_sub(self.scale.layer()).filter(|below| *below >= first) {
                write!(config, ", of: '${{resource:thing{below}.cid}}'").unwrap();
            }
            let options = match number % 8 {
                kind @ (0 | 1) => {
                    write!(config, ", k: '{}'", (number + self.version) / 7).unwrap();
                    if kind == 0 { String::new() } else { "deleteBeforeReplace: true".to_owned() }
                }
                2 => "additionalSecretOutputs: [cid]".to_owned(),
                3 if number >= self.scale.resources => {
                    let id = format!("thing{number}--prod{IMPORTED}");
                    // The resource exists before the run that imports it.
                    fs::write(self.machine.path("rec/ledger").join(&id), "").unwrap();
                    format!("import: {id}")
                }
                _ => String::new(),
            };
            let thing =
                format!("thing{number}: {{ type: rec:index:Thing, config: {{ {config} }}, options: {{ {options} }} }}");
            writeln!(lines, "        {thing}").unwrap();
        }
        self.machine.write_resources(&lines);
    }

    /// Starts a run that is lost at a random moment: when the provider receives a call, or has handled it, or when the store
    /// receives a request, or has handled it. The store may have faults before.
    fn lose_run(&self) -> LostRun {
        let parallel = self.random.one_of(&[1, 4, 16]);
        let mode = self.random.one_of(&["intents", "intents", "sync"]);
        let arguments = match self.random.below(8) {
            0 => {
                let drift = json!({ "drift": { "v": "drifted" } });
                let name = |number: usize| format!("thing{}--prod", self.version * self.scale.moved() + number);
                let resources: serde_json::Map<_, _> = (0..8).map(|number| (name(number), drift.clone())).collect();
                self.machine.script(&json!({ "resources": resources }));
                "refresh --yes"
            }
            1 => "destroy --parent --yes",
            _ => "provision -S -R",
        };
        let arguments = format!("{arguments} --parallel {parallel} --journal {mode}");
        let mut command = self.machine.command(&arguments);
        command.env("SC_LOCK_LEASE_SECONDS", "3");
        self.proxy.forget_requests();
        let mut moment = arguments;
        if self.random.below(3) == 0 {
            let (number, fault) = (self.random.below(40), self.random.one_of(&FAULTS));
            self.proxy.fail_at(number, fault);
            write!(moment, ", {fault:?} at request {number}").unwrap();
        }
        let is_before = self.random.below(2) == 0;
        let status = if self.random.below(2) == 0 {
            let number = 6 + self.random.below(2 * self.scale.resources);
            let at = format!("{number}:{}", if is_before { "before" } else { "after" });
            write!(moment, ", lost at call {at}").unwrap();
            let Output { status, .. } = command.env("REC_KILL", at).output().unwrap();
            status
        } else {
            let fault = if is_before { Fault::HeldBefore } else { Fault::HeldAfter };
            let number = 8 + self.random.below(24 + self.scale.resources / 4);
            write!(moment, ", lost at request {number}, {fault:?}").unwrap();
            self.proxy.fail_at(number, fault);
            let mut run: Child = command.spawn().unwrap();
            if self.proxy.wait_until_held(|| run.try_wait().unwrap().is_some()) {
                run.kill().unwrap();
            }
            run.wait().unwrap()
        };
        let pending = if mode == "sync" { parallel } else { 2 * parallel };
        LostRun { moment: format!("{moment}: {status}"), pending }
    }

    /// Loses the machine with its disk. The next one has the cloud and the store, and now and then another host name.
    fn replace_machine(&mut self) {
        kill_with_variable("HOME", &self.machine.path("home"));
        self.proxy.wait_until_free();
        self.proxy.recover();
        self.proxy.set_delay(self.scale.delay);
        let next = self.machine.elsewhere();
        let next = if self.random.below(4) == 0 { next.on_host(&format!("reef-{}", self.version)) } else { next };
        fs::remove_dir_all(next.path("rec")).unwrap();
        fs::rename(self.machine.path("rec"), next.path("rec")).unwrap();
        self.machine = next;
        self.machine.script(&json!({}));
        self.write();
    }

    /// Checks that each existing resource is recorded or is a pending create, and that a created one is not created again.
    fn check(&mut self, LostRun { moment, pending: limit }: &LostRun) {
        let Recorded { ids, live, pending } = self.recorded();
        let existing = self.existing();
        let unrecorded: Vec<&String> =
            existing.iter().filter(|id| !ids.contains(*id) && !id.ends_with(IMPORTED)).collect();
        let lost: Vec<_> = unrecorded.iter().filter(|id| !pending.contains(name(id))).collect();
        assert!(lost.is_empty(), "{moment}: {lost:?} are in no state; pending: {pending:?}");
        assert!(pending.len() <= *limit, "{moment}: {} pending creates", pending.len());
        self.settled += unrecorded.len();
        let (mut imports, mut accept) = (String::new(), "");
        for id in unrecorded {
            // The pending creates are settled from what the provider knows: imported, or deleted if the resource that was to be
            // replaced is still there.
            if live.contains(name(id)) {
                fs::remove_file(self.machine.path("rec/ledger").join(id)).unwrap();
                // What comes late from the lost machine may name it once more.
                accept = " --accept-missing";
            } else {
                write!(imports, " --import-pending-creates {}={id}", name(id)).unwrap();
            }
        }
        self.machine.sc(0, &format!("refresh --yes --lock-timeout 60s{imports} --clear-pending-creates{accept}"));
        self.machine.sc(0, &format!("provision -S -R --yes{accept}"));
        self.machine.sc(0, &format!("refresh --yes{accept}"));
        self.machine.expect(0, "provision -S -R --expect-no-changes", "unchanged");
        let Recorded { ids, pending, .. } = self.recorded();
        assert_eq!((&ids, pending.len()), (&self.existing(), 0), "{moment}");
        assert_eq!(ids.len(), self.scale.resources, "{moment}: {ids:?}");
    }

    /// Returns the ids of the existing resources.
    fn existing(&self) -> BTreeSet<String> {
        let names = fs::read_dir(self.machine.path("rec/ledger")).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Returns what the state has, with the journal of the lost run.
    fn recorded(&self) -> Recorded {
        let Output { status, stdout, stderr } = self.machine.command("stack export").output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        let exported: Value = serde_json::from_slice(&stdout).unwrap();
        let list = |key: &str| exported["deployment"][key].as_array().cloned().unwrap_or_default();
        let urn_name = |resource: &Value| resource["urn"].as_str().unwrap().rsplit("::").next().unwrap().to_owned();
        let is_thing = |resource: &Value| resource["type"] == "rec:index:Thing";
        let things: Vec<Value> = list("resources").into_iter().filter(is_thing).collect();
        let is_live = |thing: &&Value| thing["delete"] != true && thing["pendingReplacement"] != true;
        let creating = list("pending_operations").into_iter().filter(|pending| pending["type"] == "creating");
        Recorded {
            ids: things.iter().map(|thing| thing["id"].as_str().unwrap().to_owned()).collect(),
            live: things.iter().filter(is_live).map(urn_name).collect(),
            pending: creating.map(|pending| urn_name(&pending["resource"])).collect(),
        }
    }
}

/// Returns the name of the resource in an id of the provider.
fn name(id: &str) -> &str {
    id.rsplit_once('-').unwrap().0
}

fn lose_machines(store: &str, machine: Repository, proxy: &StoreProxy) {
    let scale = Scale::from_environment();
    let seed = std::env::var("SC_SEED").map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    println!("{store}: SC_SEED={seed}");
    // Each store has other moments.
    let of_store = store.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let mut fleet = Fleet::new(machine, proxy, scale, of_store);
    for _ in 0..scale.machines {
        fleet.version += 1;
        fleet.write();
        let mut lost = fleet.lose_run();
        lost.moment = format!("{store}, SC_SEED={seed}, version {}: {}", fleet.version, lost.moment);
        fleet.replace_machine();
        fleet.check(&lost);
        println!("{}", lost.moment);
    }
    println!("{store}: {} machines lost; {} creations were pending and had happened", scale.machines, fleet.settled);
}

/// Shows: state.md#stores "Whichever machine looks next finds what the run had recorded"
/// Shows: state.md#stores "no resource: each one is in the state or is a pending create, by name"
/// Shows: state.md#stores "only what was under way is pending"
/// Shows: state.md#stores "at most twice as many creations as `--parallel` are pending after a loss"
#[test]
fn machines_lost_beside_s3() {
    let server = s3::with_bucket("reef");
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    lose_machines("S3", Repository::in_s3(&proxy.url()), &proxy);
}

/// Shows: state.md#stores "Whichever machine looks next finds what the run had recorded"
/// Shows: state.md#stores "no resource: each one is in the state or is a pending create, by name"
/// Shows: state.md#stores "only what was under way is pending"
/// Shows: state.md#stores "at most twice as many creations as `--parallel` are pending after a loss"
#[test]
fn machines_lost_beside_postgres() {
    let server = postgres::start(&[]);
    let proxy = StoreProxy::in_front_of_postgres(server.port()).unwrap();
    lose_machines("PostgreSQL", Repository::in_postgres(proxy.port()), &proxy);
}

/// Shows: state.md#stores "Whichever machine looks next finds what the run had recorded"
/// Shows: state.md#stores "no resource: each one is in the state or is a pending create, by name"
/// Shows: state.md#stores "only what was under way is pending"
/// Shows: state.md#stores "at most twice as many creations as `--parallel` are pending after a loss"
#[tokio::test(flavor = "multi_thread")]
async fn machines_lost_beside_google_cloud_storage() {
    let server = GcsServer::start(None).await.unwrap();
    let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
    let lose = move || lose_machines("GCS", Repository::in_google_cloud_storage(&proxy.url()), &proxy);
    tokio::task::spawn_blocking(lose).await.unwrap();
}

/// Shows: state.md#stores "Whichever machine looks next finds what the run had recorded"
/// Shows: state.md#stores "no resource: each one is in the state or is a pending create, by name"
/// Shows: state.md#stores "only what was under way is pending"
/// Shows: state.md#stores "at most twice as many creations as `--parallel` are pending after a loss"
#[test]
fn machines_lost_beside_azure() {
    let server = Azurite::start("reef").unwrap();
    let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
    lose_machines("Azure", Repository::in_azure(&proxy.host()), &proxy);
}
