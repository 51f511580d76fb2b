//! Number of requests of whole commands, and of round trips until a plugin is called.

use tests::azurite::Azurite;
use tests::store_proxy::{StoreProxy, round_trips};

use crate::life::Repository;
use crate::{postgres, s3};

/// Largest number of requests of a run without changes.
const UNCHANGED_LIMIT: usize = 18;
/// Largest number of round trips before the first call about a resource.
const ROUND_TRIP_LIMIT: usize = 7;
/// Call of the plugin that is the first one about a resource, after those that start and configure it. The plugin kills the run
/// before it records this call.
const FIRST_RESOURCE_CALL: &str = "6:before";

/// Provisions stacks of two sizes, and checks how many requests a run without changes sends.
fn check_counts(repository: &Repository, proxy: &StoreProxy) {
    let mut counts = Vec::new();
    for size in [5, 300] {
        let names: Vec<_> = (0..size).map(|number| format!("thing{number}")).collect();
        let things: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
        repository.write_things(&things);
        repository.expect(0, "provision -S", "created");
        for arguments in ["provision --expect-no-changes", "provision -S --expect-no-changes"] {
            proxy.forget_requests();
            repository.expect(0, arguments, "unchanged");
            let requests = proxy.requests();
            let count = requests.len();
            println!("sc {arguments}, {size} resources: {count} requests, {} round trips", round_trips(&requests));
            assert!(count <= UNCHANGED_LIMIT, "{count} requests: {requests:#?}");
            counts.push((arguments, count));
        }
    }
    let (small, large) = counts.split_at(2);
    assert_eq!(small, large, "the number of requests depends on the number of resources");

    // The plugin ends the run when it receives the first call about a resource.
    repository.write_things(&[("first", "1"), ("second", "1"), ("third", "1")]);
    proxy.forget_requests();
    let output = repository.command("provision -S").env("REC_KILL", FIRST_RESOURCE_CALL).output().unwrap();
    assert_eq!(output.status.code(), None);
    let requests = proxy.requests();
    let count = round_trips(&requests);
    println!("first call about a resource: after {count} round trips of {} requests", requests.len());
    assert!(count <= ROUND_TRIP_LIMIT, "{count} round trips: {requests:#?}");
}

/// Shows: state.md#stores "A run without changes sends at most 18 requests to the store"
/// Shows: state.md#stores "the first call about a resource comes after at most seven round trips"
#[test]
fn run_without_changes_sends_few_requests_to_s3() {
    let server = s3::with_bucket("reef");
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    check_counts(&Repository::in_s3(&proxy.url()), &proxy);
}

/// Shows: state.md#stores "A run without changes sends at most 18 requests to the store"
/// Shows: state.md#stores "the first call about a resource comes after at most seven round trips"
#[test]
fn run_without_changes_sends_few_requests_to_postgres() {
    let server = postgres::start(&[]);
    let proxy = StoreProxy::in_front_of_postgres(server.port()).unwrap();
    check_counts(&Repository::in_postgres(proxy.port()), &proxy);
}

/// Shows: state.md#stores "A run without changes sends at most 18 requests to the store"
/// Shows: state.md#stores "the first call about a resource comes after at most seven round trips"
#[test]
fn run_without_changes_sends_few_requests_to_azure() {
    let server = Azurite::start("reef").unwrap();
    let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
    check_counts(&Repository::in_azure(&proxy.host()), &proxy);
}
