//! Tests of downloads: broken connections, servers that ask to wait, and several at the same time.

use std::sync::Arc;

use bridge::install::FetchEvent;
use tests::http::Response;
use tests::releases::{ReleaseServer, sha256};

use super::release::{REPOSITORY, archive, server};
use super::{Machine, asset_name, plugin, release_source, run};

#[tokio::test]
async fn interrupted_download_is_retried_and_leaves_no_files() {
    let (machine, server) = (Machine::new(), server().await);
    let archive_bytes = archive("one");
    let half = Response {
        content_length: Some(archive_bytes.len()),
        ..Response::new(200, &archive_bytes[..archive_bytes.len() / 2])
    };
    server.override_response("/assets/0", half);
    let plugin_config = plugin(release_source(&server.api_url(), "v1.2.0"));
    let error = machine.refusal(&plugin_config).await;
    assert!(error.starts_with(&format!("cannot fetch {} from 127.0.0.1: ", asset_name("1.2.0"))), "{error}");
    assert_eq!(server.requests().iter().filter(|request| request.path.contains("/assets/")).count(), 4);
    assert_eq!(machine.take_events().last(), Some(&FetchEvent::Ended { complete: false }));
    machine.assert_empty();
    // The second half of the asset is missing, which only the release's size shows.
    server.override_response(
        "/assets/0",
        Response { content_length: None, ..Response::new(200, &archive_bytes[..archive_bytes.len() / 2]) },
    );
    let lengths = (archive_bytes.len(), archive_bytes.len() / 2);
    assert_eq!(
        machine.refusal(&plugin_config).await,
        format!("{} should have {} bytes, but 127.0.0.1 sent {}", asset_name("1.2.0"), lengths.0, lengths.1)
    );
    machine.assert_empty();
    // The asset has another length than the release states.
    server.override_response("/assets/0", Response::new(200, [archive_bytes.as_slice(), b"x"].concat()));
    let lengths = (archive_bytes.len(), archive_bytes.len() + 1);
    assert_eq!(
        machine.refusal(&plugin_config).await,
        format!("{} should have {} bytes, but 127.0.0.1 sent {}", asset_name("1.2.0"), lengths.0, lengths.1)
    );
    machine.assert_empty();
    server.clear_overrides();
    assert_eq!(run(&machine.install(&plugin_config).await.unwrap()).await, "one");
}

/// Shows: plugins.md#slow-downloads "A download whose connection breaks goes on where it broke"
#[tokio::test]
async fn broken_download_goes_on_where_it_broke() {
    let (machine, server) = (Machine::new(), server().await);
    let bytes = archive("one");
    let tag = format!("\"{}\"", sha256(&bytes));
    let broken = |length: usize| {
        let part = Response::new(200, &bytes[..length]).with("ETag", &tag);
        Response { content_length: Some(bytes.len()), ..part }
    };
    server.override_once("/assets/0", broken(20));
    let rest = Response::new(206, &bytes[20..40]).with("ETag", &tag);
    let rest = rest.with("Content-Range", format!("bytes 20-{}/{}", bytes.len() - 1, bytes.len()));
    server.override_once("/assets/0", Response { content_length: Some(bytes.len() - 20), ..rest });
    let source = release_source(&server.api_url(), "v1.2.0");
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "one");
    let requests = server.requests();
    let ranges: Vec<_> = requests
        .iter()
        .filter(|request| request.path.contains("/assets/"))
        .map(|request| request.header("range"))
        .collect();
    assert_eq!(ranges, [None, Some("bytes=20-"), Some("bytes=40-")]);
    assert!(
        requests.iter().all(|request| request.header("range").is_none() || request.header("if-range") == Some(&tag))
    );
}

#[tokio::test]
async fn broken_download_of_content_that_has_changed_begins_again() {
    let (machine, server) = (Machine::new(), server().await);
    let bytes = archive("one");
    for part in [
        // The content had another tag, so that the server sends all of it.
        Response::new(200, &b"x".repeat(20)[..]).with("ETag", "\"other\""),
        // Without a tag, nothing tells that the content is the same.
        Response::new(200, &b"x".repeat(20)[..]),
    ] {
        server.override_once("/assets/0", Response { content_length: Some(bytes.len()), ..part });
        let machine = Machine::new();
        let source = release_source(&server.api_url(), "v1.2.0");
        assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "one");
    }
    // A part that was not asked for is not used.
    let tag = format!("\"{}\"", sha256(&bytes));
    let part = Response::new(200, &bytes[..20]).with("ETag", &tag);
    server.override_once("/assets/0", Response { content_length: Some(bytes.len()), ..part });
    let other =
        Response::new(206, &bytes[10..]).with("Content-Range", format!("bytes 10-{}/{}", bytes.len() - 1, bytes.len()));
    server.override_once("/assets/0", other);
    let source = release_source(&server.api_url(), "v1.2.0");
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "one");
}

/// Shows: plugins.md#slow-downloads "Eight downloads at most run at the same time"
#[tokio::test]
async fn eight_assets_are_downloaded_at_the_same_time() {
    let gate: tests::http::Gate = Arc::new(tokio::sync::Semaphore::new(0));
    let server = ReleaseServer::start().await.unwrap();
    for number in 0..10 {
        let archive = archive(&format!("{number}"));
        server.publish(REPOSITORY, &format!("v1.{number}.0"), &[(&asset_name(&format!("1.{number}.0")), &archive)]);
        let response = Response { gate: Some((1, Arc::clone(&gate))), ..Response::new(200, archive) };
        server.override_response(&format!("/assets/{}", number * 100), response);
    }
    let machine = Machine::new();
    let plugins: Vec<_> =
        (0..10).map(|number| plugin(release_source(&server.api_url(), &format!("v1.{number}.0")))).collect();
    let install = futures_util::future::join_all(plugins.iter().map(|plugin| machine.install(plugin)));
    let downloads = || server.requests().iter().filter(|request| request.path.contains("/assets/")).count();
    let watch = async {
        while downloads() < 8 {
            tokio::task::yield_now().await;
        }
        // Whatever else could begin has the time to begin.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let seen = downloads();
        gate.add_permits(10);
        seen
    };
    let (installed, seen) = tokio::join!(install, watch);
    assert!(installed.into_iter().all(|package| package.is_ok()));
    // Another test of this process may hold one of them.
    assert!(seen <= 8, "{seen}");
}

/// Shows: plugins.md#slow-downloads "waits for as long as the server asks, up to a minute"
#[tokio::test]
async fn request_is_repeated_after_the_time_for_which_the_server_asks() {
    let (machine, server) = (Machine::new(), server().await);
    let later = |status, seconds| Response::new(status, r#"{"message": "slow down"}"#).with("Retry-After", seconds);
    for (path, status) in [("/releases/tags/", 429), ("/releases/tags/", 403), ("/assets/0", 503), ("/assets/0", 429)] {
        server.override_once(path, later(status, 0));
    }
    let source = release_source(&server.api_url(), "v1.2.0");
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "one");
    assert_eq!(server.requests().len(), 6);
    server.override_response("/releases/tags/", later(429, 600));
    let error = machine.refusal(&plugin(release_source(&server.api_url(), "v1.3.0"))).await;
    assert!(error.starts_with("127.0.0.1 accepts no more requests until "), "{error}");
    assert!(error.ends_with(" (in 10 min): slow down"), "{error}");
    assert_eq!(server.requests().len(), 7, "it is too long to wait");
}
