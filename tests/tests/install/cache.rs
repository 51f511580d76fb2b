//! Tests of the package cache: it is complete, shared, and verified at each start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use bridge::install::FetchEvent;
use tests::releases::{Entry, ReleaseServer, tar_gz};

use super::{Machine, asset_name, plugin, release_source, run, script, write};

async fn server() -> ReleaseServer {
    let server = ReleaseServer::start().await.unwrap();
    let archive = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script("hello")))]).unwrap();
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&asset_name("1.0.0"), &archive)]);
    server.publish("acme/pulumi-reef", "v1.0.1", &[(&asset_name("1.0.1"), &archive)]);
    server
}

#[tokio::test]
async fn cache_folder_is_private() {
    let (machine, server) = (Machine::new(), server().await);
    // Another user may have created the folder.
    fs::create_dir(machine.path("cache")).unwrap();
    machine.install(&plugin(release_source(&server.api_url(), "v1.0.0"))).await.unwrap();
    assert_eq!(fs::metadata(machine.path("cache")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(machine.names("work"), Vec::<String>::new());
}

#[tokio::test]
async fn identical_packages_are_stored_once() {
    let (machine, server) = (Machine::new(), server().await);
    for version in ["v1.0.0", "v1.0.1"] {
        machine.install(&plugin(release_source(&server.api_url(), version))).await.unwrap();
    }
    assert_eq!((machine.names("packages").len(), machine.names("names").len()), (1, 2));
}

#[tokio::test]
async fn altered_package_is_fetched_again() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin_config = plugin(release_source(&server.api_url(), "v1.0.0"));
    let alterations: [&dyn Fn(&std::path::Path); 5] = [
        &|folder| fs::set_permissions(folder.join("pulumi-resource-reef"), fs::Permissions::from_mode(0o400)).unwrap(),
        &|folder| write(&folder.join("pulumi-resource-reef"), &script("evil"), 0o755),
        &|folder| write(&folder.join("pulumi-resource-reef"), b"", 0o755),
        &|folder| write(&folder.join("PulumiPlugin.yaml"), b"runtime: python", 0o644),
        &|folder| fs::remove_file(folder.join("pulumi-resource-reef")).unwrap(),
    ];
    for alteration in alterations {
        let folder = machine.install(&plugin_config).await.unwrap().folder().to_owned();
        machine.take_events();
        alteration(&folder);
        assert_eq!(run(&machine.install(&plugin_config).await.unwrap()).await, "hello");
        assert_eq!(machine.warnings(), ["the package in the cache is damaged; it is fetched again"]);
    }
    // Without the server, an altered package does not run.
    let folder = machine.install(&plugin_config).await.unwrap().folder().to_owned();
    drop(server);
    write(&folder.join("pulumi-resource-reef"), &script("evil"), 0o755);
    assert!(machine.refusal(&plugin_config).await.starts_with("cannot fetch"));
}

#[tokio::test]
async fn malformed_cache_record_is_ignored() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin_config = plugin(release_source(&server.api_url(), "v1.0.0"));
    machine.install(&plugin_config).await.unwrap();
    let [name] = machine.names("names").try_into().unwrap();
    for text in ["", "{", "[]", r#"{"of": "something else", "revision": "", "package": ""}"#] {
        fs::write(machine.path("cache/names").join(&name), text).unwrap();
        assert_eq!(run(&machine.install(&plugin_config).await.unwrap()).await, "hello");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_installs_fetch_the_package_once() {
    let (machine, server) = (Arc::new(Machine::new()), server().await);
    let plugin_config = Arc::new(plugin(release_source(&server.api_url(), "v1.0.0")));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (machine, plugin_config) = (machine.clone(), plugin_config.clone());
        all.spawn(async move { run(&machine.install(&plugin_config).await.unwrap()).await });
    }
    assert_eq!(all.join_all().await, vec!["hello"; 20]);
    assert_eq!(server.requests().iter().filter(|request| request.path.contains("/assets/")).count(), 1);
    let started = |event: &FetchEvent| matches!(event, FetchEvent::Started { .. });
    assert_eq!(machine.take_events().iter().filter(|event| started(event)).count(), 1);
}
