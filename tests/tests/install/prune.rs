//! Tests of the removal of packages from the cache.

use std::fs::File;
use std::time::{Duration, SystemTime};

use bridge::install::{PruneRules, PrunedPackage, prune_cache};
use tests::releases::ReleaseServer;

use super::release::{archive, server};
use super::{Machine, asset_name, plugin, release_source, run};

const DAY: Duration = Duration::from_secs(86_400);

/// Machine whose cache has packages that were used some days ago.
struct Cache {
    machine: Machine,
    server: ReleaseServer,
}

impl Cache {
    /// Installs a package for each number of days.
    async fn new(days: &[u32]) -> Self {
        let (machine, server) = (Machine::new(), server().await);
        for (number, days) in days.iter().enumerate() {
            let version = format!("3.{number}.0");
            server.publish("acme/pulumi-reef", &format!("v{version}"), &[(&asset_name(&version), &archive(&version))]);
            let before = machine.names("uses");
            machine.install(&plugin(release_source(&server.api_url(), &format!("v{version}")))).await.unwrap();
            let mark = machine.names("uses").into_iter().find(|name| !before.contains(name)).unwrap();
            let mark = File::options().write(true).open(machine.path("cache/uses").join(mark)).unwrap();
            mark.set_modified(SystemTime::now() - DAY * *days).unwrap();
        }
        Self { machine, server }
    }

    async fn prune(&self, rules: PruneRules) -> Vec<PrunedPackage> {
        prune_cache(&self.machine.path("cache"), rules).await.unwrap()
    }

    fn count(&self) -> [usize; 5] {
        ["packages", "names", "fingerprints", "downloads", "uses"].map(|folder| self.machine.names(folder).len())
    }
}

fn tags(pruned: &[PrunedPackage]) -> Vec<&str> {
    pruned.iter().map(|package| package.sources[0].rsplit(' ').next().unwrap()).collect()
}

/// Shows: plugins.md#the-cache "removes packages that were not used for this time"
#[tokio::test]
async fn package_that_was_not_used_is_removed_with_all_that_belongs_to_it() {
    let cache = Cache::new(&[40, 10, 50]).await;
    let rules = PruneRules { older_than: Some(DAY * 30), ..PruneRules::default() };
    let planned = cache.prune(PruneRules { is_dry_run: true, ..rules }).await;
    assert_eq!((tags(&planned), cache.count()), (vec!["v3.2.0", "v3.0.0"], [3; 5]));
    let pruned = cache.prune(rules).await;
    assert_eq!((tags(&pruned), cache.count()), (vec!["v3.2.0", "v3.0.0"], [1; 5]));
    assert_eq!(cache.prune(rules).await.len(), 0);
    // It is fetched again, and the other one is still there.
    let downloads = || cache.server.requests().iter().filter(|request| request.path.contains("/assets/")).count();
    let before = downloads();
    for (version, expected) in [("3.1.0", before), ("3.0.0", before + 1)] {
        let source = release_source(&cache.server.api_url(), &format!("v{version}"));
        assert_eq!(run(&cache.machine.install(&plugin(source)).await.unwrap()).await, version);
        assert_eq!(downloads(), expected, "{version}");
    }
}

/// Shows: plugins.md#the-cache "those that were not used for the longest time, until the rest is small enough"
#[tokio::test]
async fn cache_is_made_as_small_as_is_asked_for() {
    let cache = Cache::new(&[1, 3, 2]).await;
    let all = cache.prune(PruneRules { max_size: Some(0), is_dry_run: true, ..PruneRules::default() }).await;
    assert_eq!(tags(&all), ["v3.1.0", "v3.2.0", "v3.0.0"]);
    let rest: u64 = all[1..].iter().map(|package| package.size).sum();
    let pruned = cache.prune(PruneRules { max_size: Some(rest), ..PruneRules::default() }).await;
    assert_eq!((tags(&pruned), cache.count()), (vec!["v3.1.0"], [2; 5]));
}

/// Shows: plugins.md#the-cache "A package that a process uses stays"
#[tokio::test]
async fn package_in_use_stays() {
    let cache = Cache::new(&[40]).await;
    let source = release_source(&cache.server.api_url(), "v3.0.0");
    let package = cache.machine.install(&plugin(source)).await.unwrap();
    let rules = PruneRules { max_size: Some(0), ..PruneRules::default() };
    let pruned = cache.prune(rules).await;
    assert!(pruned[0].is_in_use && cache.count() == [1; 5], "{pruned:?}");
    assert_eq!(run(&package).await, "3.0.0");
    drop(package);
    assert!(!cache.prune(rules).await[0].is_in_use);
    assert_eq!(cache.count(), [0; 5]);
}

#[tokio::test]
async fn cache_that_does_not_exist_has_nothing_to_remove() {
    let machine = Machine::new();
    let pruned = prune_cache(&machine.path("cache"), PruneRules { max_size: Some(0), ..PruneRules::default() }).await;
    assert!(pruned.unwrap().is_empty());
}
