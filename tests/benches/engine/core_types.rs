//! Measurement of resources of core types: against the same registrations written as resources of plugins, and of provider
//! resources that share a process, against one process for each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tests::binaries;

use crate::command::{CREATE, FOLDER, NO_OP, Repository, server_text};
use crate::figures::{current_memory_of, median, verdict};

/// Provider of all packages, which accepts what the SDK packages accept.
const CLOUD: &str = env!("CARGO_BIN_EXE_pulumi-resource-cloud");
/// Packages of the measured types.
const PACKAGES: [&str; 3] = ["aws", "mongodbatlas", "random"];
/// Limit of the time of a run without changes, as a ratio.
const NO_OP_LIMIT: f64 = 1.2;
/// Limit of the processes of provider resources with equal inputs: one that checks configurations, and one that serves.
const PROCESSES_LIMIT: usize = 2;
/// Interval at which the processes of a run are counted.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// Measures everything, and prints it.
pub(crate) fn compare(is_quick: bool, scratch: &Path) -> anyhow::Result<()> {
    let (rounds, buckets, clusters, sharing) = if is_quick { (1, 3, 2, 3) } else { (15, 200, 50, 30) };
    println!("{rounds} rounds in turns, medians\n\n| figure | limit | measured | |\n|---|---|---|---|");
    no_op(rounds, buckets, clusters, scratch)?;
    shared_processes(rounds, sharing, scratch)
}

/// Compares a run without changes of core types with one of the same registrations as resources of plugins, all but the
/// provider resources.
fn no_op(rounds: usize, buckets: usize, clusters: usize, scratch: &Path) -> anyhow::Result<()> {
    let mut of_core = repository(&PACKAGES, "run", s3_buckets(buckets).chain(mongodb_atlas(clusters)), scratch)?;
    of_core.run(&CREATE)?;
    let (providers, resources) = registrations(of_core.path())?;
    let registered = resources.len();
    let mut of_plugins = repository(&PACKAGES, "run", resources.into_iter(), scratch)?;
    of_plugins.run(&CREATE)?;
    let mut times: [Vec<f64>; 2] = Default::default();
    for round in 0..rounds {
        for turn in 0..times.len() {
            let kind = (turn + round) % times.len();
            times[kind].push(if kind == 0 { &mut of_core } else { &mut of_plugins }.run(&NO_OP)?);
        }
    }
    let ratio = median(times[0].iter().zip(&times[1]).map(|(core, plugins)| core / plugins));
    let [core, plugins] = times.map(|times| median(times) * 1e3);
    println!(
        "| no-op of {buckets} `s3-bucket` and {clusters} `mongodb-atlas` ({registered} registrations and {providers} provider \
         resources), against the registrations as resources of plugins | {NO_OP_LIMIT} | {core:.0} ms to {plugins:.0} ms: \
         {ratio:.2} | {} |",
        verdict(ratio <= NO_OP_LIMIT)
    );
    Ok(())
}

/// Compares a creation on one account whose provider resources share a process with one process for each.
fn shared_processes(rounds: usize, buckets: usize, scratch: &Path) -> anyhow::Result<()> {
    let mut times: [Vec<f64>; 2] = Default::default();
    let mut peaks = [Peak::default(), Peak::default()];
    for round in 0..rounds {
        for turn in 0..times.len() {
            let kind = (turn + round) % times.len();
            let keep = ["run", "never"][kind];
            let mut repository = repository(&["aws"], keep, s3_buckets(buckets), scratch)?;
            let (done, stop) = channel();
            let watch = thread::spawn(move || watch(&stop));
            times[kind].push(repository.run(&CREATE)?);
            drop(done);
            let peak = watch.join().unwrap_or_default();
            peaks[kind] = Peak {
                processes: peaks[kind].processes.max(peak.processes),
                memory: peaks[kind].memory.max(peak.memory),
            };
        }
    }
    let [shared, apart] = times.map(|times| median(times) * 1e3);
    let mebibytes = |peak: &Peak| peak.memory as f64 / f64::from(1 << 20);
    println!(
        "| processes of the package for {buckets} `s3-bucket` on one account, shared and apart | {PROCESSES_LIMIT} | {} and {} | \
         {} |\n| … their memory | reported | {:.0} MiB and {:.0} MiB | |\n| … create, from start to exit | reported | {shared:.0} \
         ms and {apart:.0} ms: {:.2} | |",
        peaks[0].processes,
        peaks[1].processes,
        verdict(peaks[0].processes <= PROCESSES_LIMIT),
        mebibytes(&peaks[0]),
        mebibytes(&peaks[1]),
        shared / apart,
    );
    Ok(())
}

/// Name of a resource, and its entry in server.yaml.
type Resource = (String, Value);

fn s3_buckets(count: usize) -> impl Iterator<Item = Resource> {
    (0..count)
        .map(|at| (format!("media-{at}"), json!({ "type": "s3-bucket", "config": { "credentials": "${auth:reef}" } })))
}

fn mongodb_atlas(count: usize) -> impl Iterator<Item = Resource> {
    (0..count).map(|at| {
        let config = json!({
            "publicKey": "k1", "privateKey": "k2", "orgId": "org-3", "instanceSize": "M10", "region": "EU_NORTH_1",
            "cloudProvider": "AWS", "admins": ["anna"], "backup": { "every": "12h", "retention": "168h" },
        });
        (format!("documents-{at}"), json!({ "type": "mongodb-atlas", "config": config }))
    })
}

/// Creates a repository with these packages as plugins, and an account of AWS.
fn repository(
    packages: &[&str],
    keep: &str,
    resources: impl Iterator<Item = Resource>,
    scratch: &Path,
) -> anyhow::Result<Repository> {
    let plugins: String = packages
        .iter()
        .map(|name| format!("  - {{ name: {name}, source: {{ type: local, path: {CLOUD} }}, keep: {keep} }}\n"))
        .collect();
    let repository = Repository::with_server(binaries::sc()?, &server_text(FOLDER, &plugins, resources), scratch)?;
    let account =
        "{ type: aws-token, config: { account: '0042', accessKey: AK, secretAccessKey: S-K, region: eu-north-1 } }";
    fs::write(
        repository.path().join(".sc/stacks/dev/secrets.yaml"),
        format!("auth:\n  reef: {account}\nvalues:\n  password: low-tide\n"),
    )?;
    Ok(repository)
}

/// Returns the number of provider resources in the state, and all other resources: with their inputs, as far as they are outputs
/// of others as references to them, with their secrets and their further dependencies.
fn registrations(repository: &Path) -> anyhow::Result<(usize, Vec<Resource>)> {
    let state = fs::read(repository.join("state/.pulumi/stacks/bench/dev.json"))?;
    let state: Value = serde_json::from_slice(&state)?;
    let resources = state["checkpoint"]["latest"]["resources"].as_array().context("the state has resources")?;
    let urn = |resource: &Value| resource["urn"].as_str().unwrap_or_default().to_owned();
    let is_provider =
        |resource: &&Value| resource["type"].as_str().is_some_and(|r#type| r#type.starts_with("pulumi:providers:"));
    let providers = resources.iter().filter(is_provider).count();
    let others: Vec<&Value> =
        resources.iter().filter(|resource| resource["custom"] == true && !is_provider(resource)).collect();
    let known: BTreeMap<String, (String, &Value)> =
        others.iter().enumerate().map(|(index, resource)| (urn(resource), (format!("r{index}"), *resource))).collect();
    let named = |urns: &Value| -> Vec<&(String, &Value)> {
        urns.as_array().into_iter().flatten().filter_map(|urn| known.get(urn.as_str()?)).collect()
    };
    let entry = |resource: &&Value| {
        let of_inputs = &resource["propertyDependencies"];
        let inputs = resource["inputs"].as_object().into_iter().flatten();
        let config: Value =
            inputs.map(|(key, value)| (key.clone(), written(value.clone(), &named(&of_inputs[key])))).collect();
        let is_in_inputs =
            |(name, _): &&&(String, &Value)| config.to_string().contains(&format!("${{resource:{name}."));
        let further = named(&resource["dependencies"]);
        let depends_on: Vec<&String> =
            further.iter().filter(|other| !is_in_inputs(other)).map(|(name, _)| name).collect();
        let secrets = resource.get("additionalSecretOutputs").cloned().unwrap_or_else(|| json!([]));
        let options = json!({ "dependsOn": depends_on, "additionalSecretOutputs": secrets });
        (known[&urn(resource)].0.clone(), json!({ "type": resource["type"], "config": config, "options": options }))
    };
    Ok((providers, others.iter().map(entry).collect()))
}

/// Returns an input as it is written in server.yaml. The first output of `dependencies` that a text contains is a reference to it,
/// and a secret, which the state has encrypted, is one of secrets.yaml.
fn written(value: Value, dependencies: &[&(String, &Value)]) -> Value {
    match value {
        Value::Object(members) if members.contains_key("ciphertext") => "${secret:password}".into(),
        Value::Object(members) => members.into_iter().map(|(key, value)| (key, written(value, dependencies))).collect(),
        Value::Array(items) => items.into_iter().map(|item| written(item, dependencies)).collect(),
        Value::String(text) => {
            let outputs = dependencies.iter().flat_map(|(name, resource)| {
                let id = resource["id"].as_str().map(|id| (name, "id", id));
                let outputs = resource["outputs"].as_object().into_iter().flatten();
                id.into_iter()
                    .chain(outputs.filter_map(move |(key, value)| Some((name, key.as_str(), value.as_str()?))))
            });
            let contained = outputs.filter(|(_, _, output)| !output.is_empty() && text.contains(output));
            match contained.max_by_key(|(_, _, output)| output.len()) {
                Some((name, key, output)) => text.replacen(output, &format!("${{resource:{name}.{key}}}"), 1).into(),
                None => text.into(),
            }
        }
        value => value,
    }
}

/// Processes of the provider at one time, and their memory in bytes.
#[derive(Default)]
struct Peak {
    processes: usize,
    memory: u64,
}

/// Counts the processes of the provider until the channel is closed, and returns the most of each.
fn watch(stop: &Receiver<()>) -> Peak {
    let mut peak = Peak::default();
    while stop.recv_timeout(SAMPLE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let processes: Vec<u64> = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(memory).collect();
        peak.processes = peak.processes.max(processes.len());
        peak.memory = peak.memory.max(processes.iter().sum());
    }
    peak
}

/// Returns the resident memory of a process in bytes, if it is one of the provider.
fn memory(process: fs::DirEntry) -> Option<u64> {
    let is_provider = fs::read_link(process.path().join("exe")).ok()? == Path::new(CLOUD);
    is_provider.then(|| current_memory_of(&process.file_name().to_string_lossy()))
}
