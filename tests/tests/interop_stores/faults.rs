//! Runs through a store that is slow, busy or cut off.
//!
//! By default only some requests are tested; `SC_CRASH_EVERY=1` tests all.

use std::time::Duration;

use tests::azurite::Azurite;
use tests::gcs_server::GcsServer;
use tests::store_proxy::{Conditions, Exchange, Fault, StoreProxy};

use crate::life::Repository;
use crate::versions::{CHANGE, Versions};
use crate::{postgres, s3};

/// More requests than a run sends.
const MANY: usize = 200;

/// Fails every other request, so that each one that is repeated has failed once, and checks that the run succeeds.
fn check_repeated(versions: &Versions, proxy: &StoreProxy, fault: Fault) {
    versions.change();
    proxy.forget_requests();
    (0..MANY).step_by(2).for_each(|number| proxy.fail_at(number, fault));
    let printed = versions.repository.sc(0, CHANGE);
    let requests = proxy.requests().len();
    println!("{fault:?} at every other request: {requests} requests");
    assert!(requests > 20, "{requests} requests: {printed}");
    proxy.recover();
    versions.check_recorded(&format!("{fault:?}"));
    versions.check_next_run(&format!("{fault:?}"));
}

/// Fails one request of a run, which must succeed or fail with an error; the next run goes on. Returns false if the run has no
/// such request.
fn check_once(versions: &Versions, proxy: &StoreProxy, number: usize, fault: Fault) -> bool {
    let at = format!("{fault:?} at request {number}");
    versions.change();
    proxy.forget_requests();
    proxy.fail_at(number, fault);
    let output = versions.repository.command(CHANGE).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    let is_hit = proxy.requests().len() > number;
    proxy.recover();
    match output.status.code() {
        Some(0) => {}
        Some(1) if is_hit && printed.contains("error: ") => println!("{at}: {printed}"),
        code => panic!("{at}: {code:?}: {printed}"),
    }
    versions.check_recorded(&at);
    versions.check_next_run(&at);
    is_hit
}

/// Way in which a store refuses requests, and a part of the error.
struct Refusal {
    fault: Fault,
    words: &'static str,
}

/// Refuses all requests from a number on, and checks that the run fails and loses nothing. Returns false if the run has no such
/// request.
fn check_refused(versions: &Versions, proxy: &StoreProxy, number: usize, refusal: &Refusal) -> bool {
    let at = format!("{:?} from request {number} on", refusal.fault);
    versions.change();
    proxy.forget_requests();
    proxy.fail_from(number, refusal.fault);
    let output = versions.repository.command(CHANGE).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    let is_write = |exchange: &Exchange| matches!(&*exchange.method, "PUT" | "POST");
    let is_met = |exchange: &Exchange| is_write(exchange) || !matches!(refusal.fault, Fault::WriteRefused(..));
    let is_hit = proxy.requests().iter().skip(number).any(is_met);
    proxy.recover();
    assert_eq!(output.status.code(), Some(i32::from(is_hit)), "{at}: {printed}");
    assert!(!is_hit || printed.contains(refusal.words), "{at}: {printed}");
    versions.check_recorded(&at);
    versions.check_next_run(&at);
    is_hit
}

fn step() -> usize {
    std::env::var("SC_CRASH_EVERY").map_or(7, |every| every.parse().unwrap())
}

/// Checks each request, or some of them, until a run has none with the number.
fn check_numbers(first: usize, check: impl Fn(usize) -> bool) {
    let count = (first..).step_by(step()).take_while(|number| check(*number)).count();
    assert!(count * step() > 8, "only {count} requests");
}

fn check_bucket(repository: Repository, proxy: &StoreProxy, refusals: &[Refusal]) {
    let versions = Versions::new(repository);
    proxy.set_delay(Duration::from_millis(20));
    for fault in [Fault::CutBefore, Fault::CutAfter, Fault::CutReply, Fault::BUSY] {
        check_repeated(&versions, proxy, fault);
    }
    proxy.set_delay(Duration::ZERO);
    check_numbers(1, |number| check_once(&versions, proxy, number, Fault::Overtaken));
    for refusal in refusals {
        check_numbers(4, |number| check_refused(&versions, proxy, number, refusal));
    }
}

/// Shows: state.md#stores "A run with a store that is slow, busy or cut off succeeds, or fails with an error, and loses
///   nothing."
#[test]
fn run_goes_through_faults_of_s3_and_loses_nothing() {
    let server = s3::with_bucket("reef");
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    proxy.set_conditions(Conditions::Proxy);
    let expired = Refusal { fault: Fault::Refused(400, "ExpiredToken"), words: "have expired (ExpiredToken" };
    let full = Refusal { fault: Fault::WriteRefused(403, "QuotaExceeded"), words: "QuotaExceeded" };
    check_bucket(Repository::in_s3(&proxy.url()), &proxy, &[expired, full]);
}

/// Shows: state.md#stores "A run with a store that is slow, busy or cut off succeeds, or fails with an error, and loses
///   nothing."
#[tokio::test(flavor = "multi_thread")]
async fn run_goes_through_faults_of_google_cloud_storage_and_loses_nothing() {
    let server = GcsServer::start(None).await.unwrap();
    let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
    let check = move || {
        let versions = Versions::new(Repository::in_google_cloud_storage(&proxy.url()));
        for fault in [Fault::CutBefore, Fault::CutAfter, Fault::CutReply, Fault::BUSY] {
            check_repeated(&versions, &proxy, fault);
        }
    };
    tokio::task::spawn_blocking(check).await.unwrap();
}

/// Shows: state.md#stores "A run with a store that is slow, busy or cut off succeeds, or fails with an error, and loses
///   nothing."
#[test]
fn run_goes_through_faults_of_azure_and_loses_nothing() {
    let server = Azurite::start("reef").unwrap();
    let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
    let expired = "InvalidAuthenticationInfo";
    let expired = Refusal { fault: Fault::Refused(401, expired), words: "or have expired, or the clock" };
    // A shared access signature whose time is over.
    let ended = Refusal { fault: Fault::Refused(403, "AuthenticationFailed"), words: "AuthenticationFailed" };
    check_bucket(Repository::in_azure(&proxy.host()), &proxy, &[expired, ended]);
}

/// A conditional write whose reply is lost is not repeated, so a run may fail.
///
/// Shows: state.md#stores "A run with a store that is slow, busy or cut off succeeds, or fails with an error, and loses
///   nothing."
#[test]
fn run_goes_through_cut_connections_to_postgres_and_loses_nothing() {
    let server = postgres::start(&[]);
    let proxy = StoreProxy::in_front_of_postgres(server.port()).unwrap();
    let versions = Versions::new(Repository::in_postgres(proxy.port()));
    proxy.set_delay(Duration::from_millis(20));
    for (first, fault) in [Fault::CutBefore, Fault::CutAfter, Fault::CutReply].into_iter().enumerate() {
        check_numbers(2 * first + 1, |number| check_once(&versions, &proxy, number, fault));
    }
}
