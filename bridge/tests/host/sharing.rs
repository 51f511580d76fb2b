//! Instances that provider resources with equal inputs share.

use std::sync::Arc;

use bridge::host::PluginHost;
use bridge::plugin::Keep;
use bridge::provider::{ConfigureRequest, ParameterizeRequest, Provider};
use futures_util::future::join_all;
use pulumi_proto::property::PropertyMap;
use rustix::process::Pid;

use crate::TestRepository;
use crate::leases::{check, check_config, configuration, configured, count, kill_leased, lease, repository, starts};

/// Repository with the plugin `x`, whose provider resources share instances.
fn sharing(faults: &[&str]) -> TestRepository {
    let mut repository = repository(false, faults);
    repository.share_instances();
    repository
}

fn of_zone(name: &str, zone: &str) -> ConfigureRequest {
    configuration(name, "1", PropertyMap::from([("zone".to_owned(), zone.into())]))
}

/// Leases an instance for the provider resource of a request, checks its inputs, configures it, and calls it.
async fn used(host: &PluginHost, request: ConfigureRequest) -> Arc<dyn Provider> {
    let provider = lease(host, request.urn.name()).await;
    check_config(&*provider, request.urn.name()).await;
    provider.configure(request).await.unwrap();
    check(&*provider).await;
    provider
}

/// Returns how many processes were started, and how often Configure was called.
fn counts(repository: &TestRepository) -> (usize, usize) {
    (starts(repository).len(), count(repository, "Configure"))
}

/// Shows: hosting.md#shared-instances "therefore share an instance if their inputs are equal"
/// Shows: hosting.md#shared-instances "In the state they stay apart"
/// Shows: hosting.md#what-is-kept-when "CheckConfig and DiffConfig reach only an instance that has had no Configure"
#[tokio::test]
async fn provider_resources_with_equal_inputs_share_a_process_that_is_configured_once() {
    let repository = sharing(&[]);
    let host = repository.load().await.unwrap();
    let names: Vec<String> = (0..30).map(|number| format!("p{number}")).collect();
    let leases = join_all(names.iter().map(|name| used(&host, of_zone(name, "n")))).await;
    assert_eq!(counts(&repository), (2, 1));
    let mut calls = repository.calls_of_processes("x");
    calls.iter_mut().for_each(Vec::dedup);
    assert_eq!(calls, [vec!["CheckConfig"], vec!["Configure", "Check"]], "one process checks, the other one serves");
    assert_eq!((count(&repository, "CheckConfig"), count(&repository, "Check")), (30, 30), "each is checked");
    let (last, others) = leases.split_last().unwrap();
    join_all(others.iter().map(|lease| lease.close())).await;
    check(&**last).await;
    last.close().await;
    assert_eq!(count(&repository, "Cancel"), 0, "the process is kept for the next phase");

    used(&host, configuration("p0", "2", PropertyMap::from([("zone".to_owned(), "n".into())]))).await.close().await;
    assert_eq!(counts(&repository), (2, 1), "the next phase, which has an id for the provider resource");
    host.close().await;
    assert_eq!((count(&repository, "Cleanup"), count(&repository, "Cancel")), (1, 2));
}

/// Shows: hosting.md#shared-instances "therefore share an instance if their inputs are equal"
/// Shows: hosting.md#shared-instances "In the state they stay apart"
#[tokio::test]
async fn each_configuration_has_a_process() {
    let repository = sharing(&[]);
    let host = repository.load().await.unwrap();
    for _ in 0..2 {
        let requests = ["n", "s", "n", "s", "e", "n"].into_iter().enumerate();
        let leases = join_all(requests.map(|(number, zone)| used(&host, of_zone(&format!("p{number}"), zone)))).await;
        assert_eq!(counts(&repository), (4, 3), "with one to check configurations, also in the second phase");
        join_all(leases.iter().map(|lease| lease.close())).await;
    }
    host.close().await;
}

#[tokio::test]
async fn provider_resources_do_not_share_a_process_unless_the_plugin_allows_it() {
    for (shares, keep) in [(false, Keep::Run), (true, Keep::Never)] {
        let mut repository = if shares { sharing(&[]) } else { repository(false, &[]) };
        repository.last_plugin().keep = keep;
        let host = repository.load().await.unwrap();
        let leases = join_all(["p", "q"].map(|name| configured(&host, of_zone(name, "n")))).await;
        assert_eq!(counts(&repository).1, 2, "{shares}, {keep:?}");
        join_all(leases.iter().map(|lease| lease.close())).await;
        host.close().await;
    }
}

#[tokio::test]
async fn package_of_many_is_not_shared() {
    let repository = sharing(&[]);
    let host = repository.load().await.unwrap();
    let (own, shared) = (lease(&host, "p").await, lease(&host, "q").await);
    own.parameterize(ParameterizeRequest::Arguments(vec!["y".into()])).await.unwrap_err();
    check_config(&*shared, "q").await;
    assert_eq!(starts(&repository).len(), 2);
    host.close().await;
}

#[tokio::test]
async fn all_that_wait_for_a_configure_get_its_error_and_the_next_one_gets_another_process() {
    let repository = sharing(&["fail the first Configure"]);
    let host = repository.load().await.unwrap();
    let leases = join_all(["p", "q", "r"].map(|name| lease(&host, name))).await;
    let results = join_all(leases.iter().map(|lease| lease.configure(of_zone("p", "n")))).await;
    for result in results {
        let message = result.unwrap_err().to_string();
        assert!(message.contains("no quota"), "{message}");
    }
    assert_eq!(counts(&repository), (1, 1));
    let next = used(&host, of_zone("s", "n")).await;
    assert_eq!(counts(&repository), (3, 2));
    join_all(leases.iter().chain([&next]).map(|lease| lease.close())).await;
    host.close().await;
}

#[tokio::test]
async fn process_is_cancelled_once_for_all_its_leases() {
    let repository = sharing(&[]);
    let host = repository.load().await.unwrap();
    let leases = join_all(["p", "q", "r"].map(|name| used(&host, of_zone(name, "n")))).await;
    for result in join_all(leases.iter().map(|lease| lease.cancel())).await {
        result.unwrap();
    }
    assert_eq!(count(&repository, "Cancel"), 1);
    let other = used(&host, of_zone("s", "n")).await;
    assert_eq!(counts(&repository), (3, 2), "a cancelled process gets no further lease");
    join_all(leases.iter().chain([&other]).map(|lease| lease.close())).await;
    host.close().await;
}

#[tokio::test]
async fn dead_process_is_not_shared_further() {
    let repository = sharing(&[]);
    let host = repository.load().await.unwrap();
    let dead = used(&host, of_zone("p", "n")).await;
    // The first process has checked the configuration.
    let serving = Pid::from_raw(starts(&repository)[1]).unwrap();
    kill_leased(serving, &*dead).await;
    let next = used(&host, of_zone("q", "n")).await;
    assert_eq!(starts(&repository).len(), 3);
    dead.close().await;
    check(&*next).await;
    next.close().await;
    host.close().await;
}
