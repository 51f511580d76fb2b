//! Tests of the package cache: it is complete, shared, and verified at each start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use bridge::install::FetchEvent;
use tests::releases::{Entry, ReleaseServer, tar_gz};

use super::{Machine, asset, plugin, released, run, script, write};

async fn server() -> ReleaseServer {
    let server = ReleaseServer::start().await.unwrap();
    let archive = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script("hello")))]).unwrap();
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&asset("1.0.0"), &archive)]);
    server.publish("acme/pulumi-reef", "v1.0.1", &[(&asset("1.0.1"), &archive)]);
    server
}

#[tokio::test]
async fn nobody_else_can_look_into_it() {
    let (machine, server) = (Machine::new(), server().await);
    // Another user may have created the folder.
    fs::create_dir(machine.path("cache")).unwrap();
    machine.install(&plugin(released(&server.api_url(), "v1.0.0"))).await.unwrap();
    assert_eq!(fs::metadata(machine.path("cache")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(machine.names("work"), Vec::<String>::new());
}

#[tokio::test]
async fn the_same_files_are_kept_once() {
    let (machine, server) = (Machine::new(), server().await);
    for version in ["v1.0.0", "v1.0.1"] {
        machine.install(&plugin(released(&server.api_url(), version))).await.unwrap();
    }
    assert_eq!((machine.names("packages").len(), machine.names("names").len()), (1, 2));
}

#[tokio::test]
async fn what_was_changed_is_not_run_but_fetched_again() {
    let (machine, server) = (Machine::new(), server().await);
    let wanted = plugin(released(&server.api_url(), "v1.0.0"));
    let alter: [&dyn Fn(&std::path::Path); 5] = [
        &|folder| fs::set_permissions(folder.join("pulumi-resource-reef"), fs::Permissions::from_mode(0o400)).unwrap(),
        &|folder| write(&folder.join("pulumi-resource-reef"), &script("evil"), 0o755),
        &|folder| write(&folder.join("pulumi-resource-reef"), b"", 0o755),
        &|folder| write(&folder.join("PulumiPlugin.yaml"), b"runtime: python", 0o644),
        &|folder| fs::remove_file(folder.join("pulumi-resource-reef")).unwrap(),
    ];
    for alter in alter {
        let folder = machine.install(&wanted).await.unwrap().folder().to_owned();
        machine.told();
        alter(&folder);
        assert_eq!(run(&machine.install(&wanted).await.unwrap()).await, "hello");
        assert_eq!(machine.warnings(), ["the package in the cache is not what was put there; it is fetched again"]);
    }
    // Without the server, an altered package does not run.
    let folder = machine.install(&wanted).await.unwrap().folder().to_owned();
    drop(server);
    write(&folder.join("pulumi-resource-reef"), &script("evil"), 0o755);
    assert!(machine.refusal(&wanted).await.starts_with("cannot fetch"));
}

#[tokio::test]
async fn a_name_that_cannot_be_read_is_asked_for_again() {
    let (machine, server) = (Machine::new(), server().await);
    let wanted = plugin(released(&server.api_url(), "v1.0.0"));
    machine.install(&wanted).await.unwrap();
    let [name] = machine.names("names").try_into().unwrap();
    for text in ["", "{", "[]", r#"{"of": "something else", "revision": "", "package": ""}"#] {
        fs::write(machine.path("cache/names").join(&name), text).unwrap();
        assert_eq!(run(&machine.install(&wanted).await.unwrap()).await, "hello");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_at_once_fetch_it_once() {
    let (machine, server) = (Arc::new(Machine::new()), server().await);
    let wanted = Arc::new(plugin(released(&server.api_url(), "v1.0.0")));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (machine, wanted) = (machine.clone(), wanted.clone());
        all.spawn(async move { run(&machine.install(&wanted).await.unwrap()).await });
    }
    assert_eq!(all.join_all().await, vec!["hello"; 20]);
    assert_eq!(server.requests().iter().filter(|request| request.path.contains("/assets/")).count(), 1);
    let started = |event: &FetchEvent| matches!(event, FetchEvent::Started { .. });
    assert_eq!(machine.told().iter().filter(|event| started(event)).count(), 1);
}
