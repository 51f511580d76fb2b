//! Measurement of the program with its state in a bucket: the time that a slow store adds, the number of requests, the
//! round trips before the first call to a provider, and Pulumi on the same store.
//!
//! The store is the stand-in of S3 ([`tests::s3_server`]), in this process, behind the client of `sc`.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tests::binaries;
use tests::s3_server::S3Server;
use tokio::runtime::{Builder, Runtime};

use crate::command::{CREATE, DESTROY, FOLDER, NO_OP, Repository};
use crate::figures::{median, verdict};
use crate::pulumi::{self, Checkpoints, Project, RemoteBackend, UP};
use crate::workload::{Shape, Workload};

/// Time of each request.
const DELAY: Duration = Duration::from_millis(50);
/// Limit of the time that the slow store adds to a creation whose journal is on the machine alone, in seconds.
const ADDED_LIMIT: f64 = 1.0;
/// Limit of the requests of a run without changes.
const REQUESTS_LIMIT: usize = 17;
/// Limit of the round trips before the first call to a provider.
const ROUND_TRIPS_LIMIT: f64 = 7.0;
/// The same where something is created, whose announcement is one more.
const CREATION_ROUND_TRIPS_LIMIT: f64 = 8.0;
/// Least ratio of the time of Pulumi to that of a creation that waits for all lines of its journal.
const SYNC_RATIO: f64 = 20.0;
/// Environment variable with the number of resources that Pulumi creates.
const PULUMI_RESOURCES: &str = "PULUMI_RESOURCES";
/// Credentials, which the stand-in does not verify.
const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "test")];
/// Calls that describe a provider, and depend on no state.
const DESCRIPTIONS: [&str; 4] = ["Handshake", "GetPluginInfo", "GetSchema", "Attach"];
/// Time between two looks at the recorded calls.
const POLL: Duration = Duration::from_millis(1);

/// Measures everything, and prints it.
pub(crate) fn compare(is_quick: bool, scratch: &Path) -> anyhow::Result<()> {
    let bench = Bench { runtime: Builder::new_multi_thread().worker_threads(1).enable_all().build()?, scratch };
    let rounds = if is_quick { 1 } else { 5 };
    println!("{rounds} rounds in turns, medians\n\n| figure | limit | measured | |\n|---|---|---|---|");
    bench.added_time(if is_quick { 20 } else { 1_000 }, rounds)?;
    bench.journal_modes(if is_quick { 100 } else { 1_000 }, rounds)?;
    for resources in if is_quick { &[1, 20][..] } else { &[1, 1_000, 10_000] } {
        bench.requests(*resources)?;
    }
    bench.round_trips(rounds)?;
    if !pulumi::can_be_built() {
        println!("\ngo, which builds pulumi, is not on PATH, so pulumi is not compared");
        return Ok(());
    }
    let resources = match std::env::var(PULUMI_RESOURCES) {
        Ok(text) => text.parse().with_context(|| format!("{PULUMI_RESOURCES} is not a number: {text}"))?,
        Err(_) if is_quick => 5,
        Err(_) => 100,
    };
    bench.against_pulumi(resources)
}

struct Bench<'s> {
    runtime: Runtime,
    scratch: &'s Path,
}

impl Bench<'_> {
    fn server(&self, delay: Duration) -> anyhow::Result<S3Server> {
        Ok(self.runtime.block_on(S3Server::start(delay))?)
    }

    fn repository(&self, resources: usize, storage: &str) -> anyhow::Result<Repository> {
        let workload = Workload { resources, shape: Shape::Layers };
        Ok(Repository::create(binaries::sc()?, workload, storage, self.scratch)?.with_environment(&KEYS))
    }

    /// Compares a creation on a slow store with one in a folder.
    fn added_time(&self, resources: usize, rounds: usize) -> anyhow::Result<()> {
        let mut times: [Vec<f64>; 2] = Default::default();
        for round in 0..rounds {
            for turn in 0..times.len() {
                let kind = (turn + round) % times.len();
                let server = self.server(DELAY)?;
                let storage = if kind == 0 { FOLDER.to_owned() } else { in_bucket(&server) };
                let create = [&CREATE[..], &["--journal", "local"]].concat();
                times[kind].push(self.repository(resources, &storage)?.run(&create)?);
            }
        }
        let [folder, slow] = times.map(median);
        let added = slow - folder;
        println!(
            "| create {resources} with `--journal local`, {} ms for each request, against `file://` | at most {ADDED_LIMIT} s more | {:.0} ms to \
             {:.0} ms: {:.0} ms more | {} |",
            DELAY.as_millis(),
            slow * 1e3,
            folder * 1e3,
            added * 1e3,
            verdict(added <= ADDED_LIMIT)
        );
        Ok(())
    }

    /// Compares creations that wait for the journal in the store with those whose journal is on the machine alone.
    fn journal_modes(&self, resources: usize, rounds: usize) -> anyhow::Result<()> {
        let cases = [
            (Shape::Layers, 16, 0, 2.5),
            (Shape::Independent, 16, 0, 2.0),
            (Shape::Layers, 128, 0, 1.3),
            (Shape::Independent, 128, 0, 0.6),
            (Shape::Layers, 16, 100, 1.2),
        ];
        for (shape, parallel, call, limit) in cases {
            let mut times: [Vec<f64>; 3] = Default::default();
            for round in 0..rounds {
                for turn in 0..times.len() {
                    let kind = (turn + round) % times.len();
                    let mode = ["local", "intents", "sync"][kind];
                    let create = [&CREATE[..], &["--journal", mode]].concat();
                    times[kind].push(self.slow_creation(Workload { resources, shape }, parallel, call, &create)?);
                }
            }
            let [local, intents, sync] = times.map(median);
            let shape = if shape == Shape::Layers { "in layers of 50" } else { "independent" };
            println!(
                "| create {resources}, {shape}, `--parallel {parallel}`, {} ms for each request, {call} ms for each Create: `intents` \
                 against `local` | at most {limit} s more | {:.0} ms to {:.0} ms: {:.0} ms more; `sync` {:.0} ms more | {} |",
                DELAY.as_millis(),
                intents * 1e3,
                local * 1e3,
                (intents - local) * 1e3,
                (sync - local) * 1e3,
                verdict(intents - local <= limit)
            );
        }
        Ok(())
    }

    /// Creates resources beside a slow store, each by a call that takes a time in milliseconds.
    fn slow_creation(&self, workload: Workload, parallel: usize, call: u64, create: &[&str]) -> anyhow::Result<f64> {
        let server = self.server(DELAY)?;
        let repository = Repository::create(binaries::sc()?, workload, &in_bucket(&server), self.scratch)?;
        let mut repository = repository.with_environment(&KEYS).with_parallel(parallel);
        if call > 0 {
            let calls = repository.path().join("calls");
            fs::create_dir(&calls)?;
            fs::write(
                calls.join("script.json"),
                serde_json::json!({ "provider": { "createDelay": call } }).to_string(),
            )?;
            let folder = calls.to_str().context("the path of the scratch folder is no text")?.to_owned();
            repository = repository.with_environment(&[("REC_DIR", &folder)]);
        }
        repository.run(create)
    }

    /// Counts the requests of commands on a stack.
    fn requests(&self, resources: usize) -> anyhow::Result<()> {
        let server = self.server(Duration::ZERO)?;
        let mut repository = self.repository(resources, &in_bucket(&server))?;
        let mut sent = 0;
        let mut counts = Vec::new();
        let commands =
            [&CREATE[..], &NO_OP, &["provision", "--expect-no-changes"], &["preview", "--expect-no-changes"], &DESTROY];
        for command in commands {
            repository.run(command)?;
            let all = server.requests().len();
            counts.push(all - sent);
            sent = all;
        }
        let [create, no_op, with_refresh, preview, destroy] = counts[..] else { return Ok(()) };
        let most = no_op.max(with_refresh);
        println!(
            "| requests of a no-op of {resources} | {REQUESTS_LIMIT} | {no_op}; with refresh and preview {with_refresh}; preview \
             alone {preview}; create {create}; destroy {destroy} | {} |",
            verdict(most <= REQUESTS_LIMIT)
        );
        Ok(())
    }

    /// Compares the time until the first call to a provider on a slow store and on a fast one.
    fn round_trips(&self, rounds: usize) -> anyhow::Result<()> {
        // A store in which another stack exists already has its metadata.
        let runs = [
            ("no-op", &NO_OP[..], true),
            ("no-op with refresh and preview", &["provision", "--expect-no-changes"], true),
            ("create", &CREATE, true),
            ("create in a new store", &CREATE, false),
        ];
        for (name, command, is_in_use) in runs {
            let mut times: [Vec<f64>; 2] = Default::default();
            for _ in 0..rounds {
                for (delay, times) in [Duration::ZERO, DELAY].into_iter().zip(&mut times) {
                    let server = self.server(delay)?;
                    if is_in_use {
                        let mut other = self.repository(1, &in_bucket(&server))?;
                        // It has the name of the stack and other resources.
                        fs::write(other.path().join(".sc/cfg.default.yaml"), "projectName: other\n")?;
                        let server_yaml = other.path().join(".sc/stacks/dev/server.yaml");
                        let text = fs::read_to_string(&server_yaml)?.replace("thing-", "other-");
                        fs::write(&server_yaml, text)?;
                        other.run(&CREATE)?;
                    }
                    let storage = in_bucket(&server);
                    let repository = self.repository(1, &storage)?;
                    let calls = repository.path().join("calls");
                    fs::create_dir(&calls)?;
                    let folder = calls.to_str().context("the path of the scratch folder is no text")?.to_owned();
                    let mut repository = repository.with_environment(&[("REC_DIR", &folder)]);
                    if command != CREATE {
                        repository.run(&CREATE)?;
                    }
                    times.push(time_of_first_call(&repository, command, &calls.join("calls.jsonl"))?);
                }
            }
            let [fast, slow] = times.map(median);
            let trips = (slow - fast) / DELAY.as_secs_f64();
            // The time of a run varies by less than half a round trip. The first run of a store creates its metadata, too.
            let (limit, result) = match is_in_use {
                true if command == CREATE => {
                    (CREATION_ROUND_TRIPS_LIMIT.to_string(), verdict(trips < CREATION_ROUND_TRIPS_LIMIT + 0.5))
                }
                true => (ROUND_TRIPS_LIMIT.to_string(), verdict(trips < ROUND_TRIPS_LIMIT + 0.5)),
                false => ("reported".to_owned(), ""),
            };
            println!(
                "| round trips before the first call to a provider: {name} | {limit} | {:.0} ms to {:.0} ms: {trips:.1} | \
                 {result} |",
                slow * 1e3,
                fast * 1e3,
            );
        }
        Ok(())
    }

    /// Compares a creation and a run without changes with those of Pulumi.
    fn against_pulumi(&self, resources: usize) -> anyhow::Result<()> {
        let server = self.server(DELAY)?;
        let mut repository = self.repository(resources, &in_bucket(&server))?;
        let ours = [repository.run(&CREATE)?, repository.run(&NO_OP)?, repository.run(&DESTROY)?];
        let other_server = self.server(DELAY)?;
        let sync = [&CREATE[..], &["--journal", "sync"]].concat();
        let sync = self.repository(resources, &in_bucket(&other_server))?.run(&sync)?;
        println!("\n{resources} resources in layers, {} ms for each request, one round\n", DELAY.as_millis());
        println!("| | `sc` | `pulumi` | ratio | without checkpoints | ratio |\n|---|---|---|---|---|---|");
        let mut theirs = Vec::new();
        let mut requests = Vec::new();
        for checkpoints in [Checkpoints::Each, Checkpoints::Last] {
            let server = self.server(DELAY)?;
            let url = format!(
                "s3://reef?endpoint={}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1",
                server.url().trim_start_matches("http://")
            );
            let backend = RemoteBackend { url: &url, environment: &KEYS };
            let workload = Workload { resources, shape: Shape::Layers };
            let mut project = Project::create(workload, checkpoints, Some(backend), self.scratch)?;
            let before = server.requests().len();
            let create = project.run(&UP)?;
            requests.push(server.requests().len() - before);
            let no_op = project.run(&[&UP[..], &["--expect-no-changes"]].concat())?;
            let destroy = project.run(&["destroy", "--yes", "--skip-preview"])?;
            theirs.push([create, no_op, destroy]);
        }
        for (index, name) in ["create", "no-op", "destroy"].into_iter().enumerate() {
            let (sc, each, last) = (ours[index], theirs[0][index], theirs[1][index]);
            println!(
                "| {name} | {:.0} ms | {each:.1} s | {:.0} | {last:.1} s | {:.1} |",
                sc * 1e3,
                each / sc,
                last / sc
            );
        }
        let ratio = theirs[0][0] / sync;
        println!(
            "| create with `--journal sync` | {:.0} ms | {:.1} s | {ratio:.0}, at least {SYNC_RATIO}: {} | | |",
            sync * 1e3,
            theirs[0][0],
            verdict(ratio >= SYNC_RATIO)
        );
        println!("\nrequests of `pulumi` to create: {}, without checkpoints {}", requests[0], requests[1]);
        Ok(())
    }
}

/// Runs a command, and returns the time from its start to the first call to a provider that depends on the state.
fn time_of_first_call(repository: &Repository, command: &[&str], calls: &Path) -> anyhow::Result<f64> {
    // The calls of the commands before.
    fs::write(calls, "")?;
    let output = fs::File::create(repository.path().join("output"))?;
    let mut command = repository.command(command);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let started = Instant::now();
    let mut child = command.spawn()?;
    let mut first = None;
    let status = loop {
        let recorded = fs::read_to_string(calls).unwrap_or_default();
        if first.is_none() && recorded.lines().any(is_call_that_needs_the_state) {
            first = Some(started.elapsed().as_secs_f64());
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(POLL);
    };
    ensure!(status.success(), "{command:?}: {status}\n{}", fs::read_to_string(repository.path().join("output"))?);
    first.context("no call was recorded")
}

fn is_call_that_needs_the_state(line: &str) -> bool {
    let call: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    call["rpc"].as_str().is_some_and(|rpc| !DESCRIPTIONS.contains(&rpc))
}

/// Returns the entry of `state-storage` for the bucket of a server.
fn in_bucket(server: &S3Server) -> String {
    let url = format!("s3://reef/team?endpoint={}&s3ForcePathStyle=true&region=us-east-1", server.url());
    format!("{{ type: fs, config: {{ path: '{url}' }} }}")
}
