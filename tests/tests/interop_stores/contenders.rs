//! Contenders for the lock of one stack: clients of the same store, and processes.

use std::future::Future;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cloud::gcs::{GcsUrl, open_gcs};
use futures_util::future::join_all;
use serde_json::Value;
use state::store::{
    LockHolder, LockInfo, LockLease, Objects, OutageReport, StackReference, StateStore, StoreError, StoreOptions,
};
use tests::azurite::Azurite;
use tests::gcs_server::GcsServer;

use crate::life::Repository;

use crate::{azblob, postgres, s3};

/// Number of clients.
const CLIENTS: u32 = 20;
/// Number of processes.
const PROCESSES: usize = 8;

/// Lets clients contend until each of them has had the lock once, and checks that no two have it at a time.
async fn check_clients<F: Future<Output = Arc<dyn Objects>>>(open: impl Fn() -> F) {
    let stack = StackReference::new("reef", "dev").unwrap();
    let (holders, failures) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let contend = async |number: u32| {
        // Each client has connections of its own, as a process has.
        let store = StateStore::open(open().await, StoreOptions::default()).await.unwrap();
        let (username, hostname) = ("ada".to_owned(), format!("host{number}"));
        let lease = Some(LockLease::new(LockLease::DURATION));
        let holder = LockHolder { pid: number, username, hostname, process: None, lease };
        let mut attempts = 0;
        let lock = loop {
            match store.lock(&stack, &holder).await {
                Ok(lock) => break lock,
                Err(StoreError::Locked { .. }) => failures.fetch_add(1, Ordering::Relaxed),
                Err(error) => panic!("{error:?}"),
            };
            attempts += 1;
            // A store reports no change. Contenders that wait equally long would keep meeting.
            tokio::time::sleep(Duration::from_millis(u64::from((number * 37 + attempts * 101) % 400))).await;
        };
        assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0, "another client has the lock");
        let others = store.locks(&stack).await.unwrap();
        let is_own = |lock: &LockInfo| lock.holder.as_ref().is_some_and(|(found, _)| found.hostname == holder.hostname);
        assert!(others.iter().any(is_own));
        store.renew(&lock).await.unwrap();
        assert_eq!(holders.fetch_sub(1, Ordering::Relaxed), 1, "another client took the lock");
        store.unlock(lock).await.unwrap();
    };
    join_all((1..=CLIENTS).map(contend)).await;
    assert!(failures.into_inner() > 0, "no client has waited");
    let store = StateStore::open(open().await, StoreOptions::default()).await.unwrap();
    assert_eq!(store.locks(&stack).await.unwrap(), []);
}

/// Shows: state.md#a-run "Of many commands that wait, each gets the lock, and one at a time."
#[tokio::test]
async fn twenty_clients_lock_a_stack_in_s3_one_after_another() {
    let server = s3::with_bucket("reef");
    check_clients(|| s3::open(&server, "reef/team")).await;
}

/// Shows: state.md#a-run "Of many commands that wait, each gets the lock, and one at a time."
#[tokio::test]
async fn twenty_clients_lock_a_stack_in_postgres_one_after_another() {
    let server = postgres::start(&[]);
    let url = postgres::url(&server, "ada", "reef", "sslmode=disable");
    check_clients(|| async { Arc::new(postgres::open(&url)) as Arc<dyn Objects> }).await;
}

/// Shows: state.md#a-run "Of many commands that wait, each gets the lock, and one at a time."
#[tokio::test(flavor = "multi_thread")]
async fn twenty_clients_lock_a_stack_in_google_cloud_storage_one_after_another() {
    let server = GcsServer::start(None).await.unwrap();
    let environment = [("STORAGE_EMULATOR_HOST".to_owned(), server.url())].into();
    let url = GcsUrl::parse("gs://reef/team").unwrap();
    check_clients(|| async { open_gcs(&url, None, &environment, None, OutageReport::default()).unwrap() }).await;
}

/// Shows: state.md#a-run "Of many commands that wait, each gets the lock, and one at a time."
#[tokio::test]
async fn twenty_clients_lock_a_stack_in_azure_one_after_another() {
    let server = Azurite::start("reef").unwrap();
    check_clients(|| async { azblob::open(&server, "reef/team") }).await;
}

/// Starts processes that provision the same stack. All of them succeed, one after another, and one creates the resource.
fn check_processes(repository: &Repository) {
    repository.write_things(&[("a", "1")]);
    let start = |_| repository.command("provision -S --lock-timeout 5m").spawn().unwrap();
    let processes: Vec<_> = (0..PROCESSES).map(start).collect();
    let outputs: Vec<Output> = processes.into_iter().map(|process| process.wait_with_output().unwrap()).collect();
    let printed = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    for output in &outputs {
        assert!(output.status.success(), "{}", printed(output));
    }
    assert!(outputs.iter().any(|output| printed(output).contains("waiting for the lock of")), "no process has waited");

    // Each process of the plugin numbers its calls. Calls of runs at the same time would lie between each other.
    let calls = repository.calls();
    let of_resource = |call: &&Value| call["request"]["urn"].as_str().is_some_and(|urn| urn.ends_with("::a--prod"));
    let mut runs: Vec<Vec<(u64, String)>> = Vec::new();
    for call in calls.iter().filter(of_resource) {
        let (number, name) = (call["seq"].as_u64().unwrap(), call["rpc"].as_str().unwrap().to_owned());
        match runs.last_mut().filter(|run| run.last().is_some_and(|(last, _)| *last < number)) {
            Some(run) => run.push((number, name)),
            None => runs.push(vec![(number, name)]),
        }
    }
    let names: Vec<Vec<&str>> = runs.iter().map(|run| run.iter().map(|(_, name)| name.as_str()).collect()).collect();
    let mut expected = vec![vec!["Read", "Diff", "Check", "Diff"]; PROCESSES];
    expected[0] = vec!["Check", "Create"];
    assert_eq!(names, expected);
}

/// Shows: state.md#a-run "Of many commands that wait, each gets the lock, and one at a time."
#[test]
fn eight_processes_provision_a_stack_in_s3_one_after_another() {
    let server = s3::with_bucket("reef");
    check_processes(&Repository::in_s3(server.url()));
}

/// Shows: state.md#a-run "Of many commands that wait, each gets the lock, and one at a time."
#[test]
fn eight_processes_provision_a_stack_in_postgres_one_after_another() {
    let server = postgres::start(&[]);
    check_processes(&Repository::in_postgres(server.port()));
}

/// Shows: state.md#a-run "Of many commands that wait, each gets the lock, and one at a time."
#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_provision_a_stack_in_google_cloud_storage_one_after_another() {
    let server = GcsServer::start(None).await.unwrap();
    let host = server.url();
    let check = move || check_processes(&Repository::in_google_cloud_storage(&host));
    tokio::task::spawn_blocking(check).await.unwrap();
}

/// Shows: state.md#a-run "Of many commands that wait, each gets the lock, and one at a time."
#[test]
fn eight_processes_provision_a_stack_in_azure_one_after_another() {
    let server = Azurite::start("reef").unwrap();
    check_processes(&Repository::in_azure(server.host()));
}
