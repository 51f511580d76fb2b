//! Kills `sc` at its requests to the store: before the store receives one, and after it has processed one, without a reply.
//! The state must contain all existing resources, and the next run must succeed.
//!
//! By default only some requests are tested; `SC_CRASH_EVERY=1` tests all.

use tests::azurite::Azurite;
use tests::gcs_server::GcsServer;
use tests::store_proxy::{Fault, StoreProxy};

use crate::life::Repository;
use crate::versions::{CHANGE, Versions};
use crate::{postgres, s3};

/// Kills a run at a request. Returns false if the run has no such request.
fn check(versions: &Versions, proxy: &StoreProxy, number: usize, fault: Fault) -> bool {
    let at = format!("{fault:?} at request {number}");
    versions.change();
    proxy.forget_requests();
    proxy.fail_at(number, fault);
    let mut run = versions.repository.command(CHANGE).spawn().unwrap();
    if !proxy.wait_until_held(|| run.try_wait().unwrap().is_some()) {
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{at}: {}", String::from_utf8_lossy(&output.stderr));
        proxy.recover();
        return false;
    }
    run.kill().unwrap();
    assert_eq!(run.wait().unwrap().code(), None, "{at}");
    proxy.wait_until_free();
    proxy.recover();
    versions.check_recorded(&at);
    versions.check_next_run(&at);
    true
}

fn check_all(repository: Repository, proxy: &StoreProxy) {
    let every = std::env::var("SC_CRASH_EVERY").map_or(5, |every| every.parse().unwrap());
    let versions = Versions::new(repository);
    for (fault, first) in [(Fault::HeldBefore, every / 2), (Fault::HeldAfter, 0)] {
        let numbers = (first..).step_by(every).take_while(|number| check(&versions, proxy, *number, fault));
        let count = numbers.count();
        println!("{fault:?}: {count} requests, every {every}");
        assert!(count * every > 10, "{fault:?}: only {count} requests");
    }
}

/// Shows: state.md#the-process-ended "No resource is lost, whenever the process ends, also at any request to a store."
#[test]
fn sc_killed_at_a_request_to_s3() {
    let server = s3::with_bucket("reef");
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    check_all(Repository::in_s3(&proxy.url()), &proxy);
}

/// Shows: state.md#the-process-ended "No resource is lost, whenever the process ends, also at any request to a store."
#[test]
fn sc_killed_at_a_request_to_postgres() {
    let server = postgres::start(&[]);
    let proxy = StoreProxy::in_front_of_postgres(server.port()).unwrap();
    check_all(Repository::in_postgres(proxy.port()), &proxy);
}

/// Shows: state.md#the-process-ended "No resource is lost, whenever the process ends, also at any request to a store."
#[tokio::test(flavor = "multi_thread")]
async fn sc_killed_at_a_request_to_google_cloud_storage() {
    let server = GcsServer::start(None).await.unwrap();
    let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
    let check = move || check_all(Repository::in_google_cloud_storage(&proxy.url()), &proxy);
    tokio::task::spawn_blocking(check).await.unwrap();
}

/// Shows: state.md#the-process-ended "No resource is lost, whenever the process ends, also at any request to a store."
#[test]
fn sc_killed_at_a_request_to_azure() {
    let server = Azurite::start("reef").unwrap();
    let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
    check_all(Repository::in_azure(&proxy.host()), &proxy);
}
