//! Kills `sc` at each boundary of a call (before the plugin handles it; after it, but before the reply) and at each
//! record of the journal. Also kills the plugin at each boundary, and limits the size of files as on a full disk. The
//! state must contain all existing resources, the next run must succeed, and no process may be left running.
//!
//! By default only some moments are tested; `SC_CRASH_EVERY=1` tests all. `SC_CRASH_RANDOM=500` kills a run of two
//! hundred resources at 500 moments; `SC_CRASH_SEED` selects the first.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;

use crate::crashes::RECREATES;
use crate::repository::{CommandOutput, Repository, Sections, in_shell};

/// Scripted plugin that can kill `sc`.
const REC: &str = "- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR, REC_KILL] }";

/// Returns the declarations of `count` resources of each kind: created, updated, replaced in both orders, and deleted.
fn things(run: Run, count: usize) -> String {
    let mut lines = Vec::new();
    let mut thing = |name: String, config: String, options: &str| {
        lines.push(format!("{name}: {{ type: rec:index:Thing, config: {{ {config} }}, options: {{ {options} }} }}"));
    };
    let value = if run == Run::First { 1 } else { 2 };
    for n in 0..count {
        let of = |kind: &str| if n == 0 { "0".to_owned() } else { format!("'${{resource:{kind}{}.cid}}'", n - 1) };
        thing(format!("changed{n}"), format!("v: {value}, of: {}", of("changed")), "");
        thing(format!("replaced{n}"), format!("k: {value}, of: {}", of("changed")), "");
        thing(format!("recreated{n}"), format!("k: {value}, of: {}", of("replaced")), "deleteBeforeReplace: true");
        match run {
            Run::First => thing(format!("old{n}"), format!("v: 1, of: {}", of("old")), ""),
            Run::Second => thing(format!("new{n}"), format!("v: 1, of: {}", of("new")), ""),
        }
    }
    lines.join("\n")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    First,
    Second,
}

/// Returns a provisioned repository whose next run has all kinds of steps.
fn prepared(count: usize) -> Repository {
    let resources = things(Run::First, count);
    let repository =
        Repository::new(Sections { plugins: REC, resources: &resources, outputs: "" }).with_setting(RECREATES);
    std::fs::create_dir(repository.path("rec/ledger")).unwrap();
    repository.expect_exit(0, "provision -S");
    repository.write_sections(Sections { plugins: REC, resources: &things(Run::Second, count), outputs: "" });
    repository
}

/// Returns the ids of the existing resources, from the plugin's ledger.
fn ledger(repository: &Repository) -> BTreeSet<String> {
    repository.names("rec/ledger").iter().map(|path| path.rsplit('/').next().unwrap().to_owned()).collect()
}

/// Returns the recorded ids, and the names of the pending creates.
fn recorded(repository: &Repository) -> (BTreeSet<String>, BTreeSet<String>) {
    let exported = repository.start("stack export").wait();
    let exported: Value = serde_json::from_str(&exported.stdout).unwrap_or_else(|_| panic!("{}", exported.stderr));
    let deployment = &exported["deployment"];
    let list = |key: &str| deployment[key].as_array().into_iter().flatten();
    let is_thing = |resource: &&Value| resource["type"] == "rec:index:Thing";
    let ids = list("resources").filter(is_thing).map(|resource| resource["id"].as_str().unwrap().to_owned());
    let creating = list("pending_operations").filter(|pending| pending["type"] == "creating");
    let name = |pending: &Value| pending["resource"]["urn"].as_str().unwrap().rsplit("::").next().unwrap().to_owned();
    (ids.collect(), creating.map(name).collect())
}

/// Moment at which a process is killed, or another fault.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// `sc` is killed when the plugin receives the call with this number.
    Before(usize),
    /// `sc` is killed when the plugin has handled the call with this number, before its reply.
    After(usize),
    /// `sc` is killed as soon as the journal has this number of records.
    Record(usize),
    /// The plugin is killed when it receives the call with this number.
    PluginBefore(usize),
    /// The plugin is killed when it has handled the call with this number, before its reply.
    PluginAfter(usize),
    /// `sc` is killed as with `Before`, while other runs try to start.
    AmongConcurrentRuns(usize),
    /// Files cannot grow beyond this number of blocks of 512 bytes.
    FullDisk(usize),
}

/// Runs `sc` until the moment, or until its end if that is earlier.
fn run_until(repository: &Repository, moment: Moment) -> CommandOutput {
    let mut command = repository.command("provision -S -R --parallel 4");
    let (call, when) = match moment {
        Moment::Before(call) | Moment::AmongConcurrentRuns(call) => (call, "before"),
        Moment::After(call) => (call, "after"),
        Moment::PluginBefore(call) => (call, "before:plugin"),
        Moment::PluginAfter(call) => (call, "after:plugin"),
        Moment::Record(_) | Moment::FullDisk(_) => (0, "never"),
    };
    if let Moment::FullDisk(blocks) = moment {
        // Writing more fails.
        command = in_shell(&format!("trap '' XFSZ; ulimit -S -f {blocks}"), &command);
    }
    command.env("REC_KILL", format!("{call}:{when}"));
    let mut running = repository.start_command(command);
    let written = || -> usize {
        let journals = repository.files("backend/.sc/journal").into_values();
        journals.map(|bytes| bytes.iter().filter(|byte| **byte == b'\n').count()).sum()
    };
    if let Moment::AmongConcurrentRuns(_) = moment {
        while written() == 0 && !running.has_ended() {
            std::thread::yield_now();
        }
        let mut concurrent_runs = Vec::new();
        while !running.has_ended() {
            concurrent_runs.push(repository.start("provision -S -R").wait_for_command());
        }
        let ended = running.wait();
        // A concurrent run may start after a run that succeeded, but not after a run that was killed.
        let begun = concurrent_runs.iter().position(|run| run.status != "exit 4");
        let after = begun.is_none_or(|place| ended.status == "exit 0" && place + 1 == concurrent_runs.len());
        assert!(after, "{moment:?}: {} beside {}", concurrent_runs[begun.unwrap_or_default()].status, ended.status);
        return ended;
    }
    if let Moment::Record(count) = moment {
        while written() < count && !running.has_ended() {
            std::thread::yield_now();
        }
        // The process id stays assigned until the process is waited for.
        if !running.has_ended() {
            running.signal(Signal::KILL);
        }
    }
    running.wait()
}

/// Kills `sc` at a moment, and checks the runs after it. Returns false if the run has no such moment.
fn check(prepared: &Repository, moment: Moment) -> bool {
    // On a busy machine the run may end before the test sees the records.
    let tries = if matches!(moment, Moment::Record(_)) { 5 } else { 1 };
    (0..tries).any(|_| check_once(prepared, moment))
}

/// Makes one attempt of [`check`]. Returns false if the run ended before the moment.
fn check_once(prepared: &Repository, moment: Moment) -> bool {
    let repository = prepared.copy();
    let ended = run_until(&repository, moment);
    if ended.status == "exit 0" {
        return false;
    }
    let at = format!("{moment:?}");
    match moment {
        Moment::Before(_) | Moment::After(_) | Moment::Record(_) | Moment::AmongConcurrentRuns(_) => {
            assert_eq!(ended.status, "killed by signal 9", "{at}")
        }
        Moment::PluginBefore(_) | Moment::PluginAfter(_) | Moment::FullDisk(_) => {
            assert_eq!(ended.status, "exit 1", "{at}: {}", ended.stderr);
            assert!(ended.stderr.contains("error"), "{at}: {}", ended.stderr);
            assert_eq!(repository.processes(), [], "{at}");
        }
    }

    let existing = ledger(&repository);
    let (ids, creating) = recorded(&repository);
    let name = |id: &str| id.rsplit_once('-').unwrap().0.to_owned();
    let unrecorded: Vec<&String> =
        existing.iter().filter(|id| !ids.contains(*id) && !creating.contains(&name(id))).collect();
    assert!(unrecorded.is_empty(), "{at}: {unrecorded:?} are not recorded");

    if repository.is_locked() {
        repository.expect_exit(0, "cancel --yes");
    }
    repository.expect_exit(0, "provision -S -R");
    repository.expect_exit(0, "provision -S -R --expect-no-changes");
    let (ids, _) = recorded(&repository);
    let existing = ledger(&repository);
    let lost: Vec<&String> = ids.difference(&existing).collect();
    assert!(lost.is_empty(), "{at}: {lost:?} do not exist");
    // A resource that was created without a recorded reply may exist twice; it must be a pending create.
    let duplicates: Vec<&String> = existing.difference(&ids).filter(|id| !creating.contains(&name(id))).collect();
    assert!(duplicates.is_empty(), "{at}: {duplicates:?} are not recorded");
    true
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn check_all(moment: fn(usize) -> Moment) {
    let every = number("SC_CRASH_EVERY").unwrap_or(61);
    let prepared = prepared(8);
    let moments = (1..).step_by(every).take_while(|at| check(&prepared, moment(*at))).count();
    assert!(moments * every > 100, "{moments} moments");
}

#[test]
fn sc_killed_before_a_call() {
    check_all(Moment::Before);
}

/// Shows: state.md#the-process-ended "No resource is lost, whenever the process ends"
/// Shows: state.md#stores "nothing that another process of this machine does not find"
#[test]
fn sc_killed_after_a_call() {
    check_all(Moment::After);
}

#[test]
fn sc_killed_at_a_journal_record() {
    check_all(Moment::Record);
}

#[test]
fn plugin_killed_before_a_call() {
    check_all(Moment::PluginBefore);
}

#[test]
fn plugin_killed_after_a_call() {
    check_all(Moment::PluginAfter);
}

#[test]
fn sc_killed_while_other_runs_try_to_start() {
    check_all(Moment::AmongConcurrentRuns);
}

#[test]
fn disk_full_from_a_file_size_on() {
    let prepared = prepared(8);
    // The sizes start at 0 and end at a size that is sufficient for the journal and the state.
    let every = if number("SC_CRASH_EVERY").is_some() { 1 } else { 37 };
    let moments = (0..).step_by(every).take_while(|blocks| check(&prepared, Moment::FullDisk(*blocks))).count();
    assert!(moments * every > 37, "{moments} sizes");
    // A single block is less than the first line of the journal and more than a record.
    assert!(check(&prepared, Moment::FullDisk(1)));
}

#[test]
fn two_hundred_resources_killed_at_random_moments() {
    let (times, seed) = (number("SC_CRASH_RANDOM").unwrap_or(2), number("SC_CRASH_SEED").unwrap_or(7));
    let prepared = prepared(40);
    for at in seed..seed + times {
        // The moments are not ordered, but equal for equal seeds.
        let place = at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let moment = [Moment::Before, Moment::After, Moment::Record][at % 3](1 + place % 500);
        assert!(check(&prepared, moment), "{moment:?} is after the end of the run");
    }
}
