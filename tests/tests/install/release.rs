//! Tests of releases: the choice of the asset, the receivers of the token, and faults of servers.

use std::sync::Arc;

use bridge::install::FetchEvent;
use bridge::plugin::{Checksum, Platform};
use tests::http::{HttpServer, Request, Response};
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};

use super::{Machine, asset, checksum, plugin, released, run, script, token};

const REPOSITORY: &str = "acme/pulumi-reef";

fn archive(words: &str) -> Vec<u8> {
    tar_gz(&[
        ("./", Entry::Folder),
        ("README.md", Entry::File(0o644, b"read me")),
        ("pulumi-resource-reef", Entry::File(0o755, &script(words))),
    ])
    .unwrap()
}

async fn server() -> ReleaseServer {
    let server = ReleaseServer::start().await.unwrap();
    server.publish(REPOSITORY, "v1.2.0", &[(&asset("1.2.0"), &archive("one")), ("notes.txt", b"")]);
    server.publish(REPOSITORY, "v1.3.0", &[(&asset("1.3.0"), &archive("two"))]);
    server
}

#[tokio::test]
async fn the_asset_of_a_tag_is_installed_and_needs_no_network_afterwards() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin = plugin(released(&server.api_url(), "v1.2.0"));
    let package = machine.install(&plugin).await.unwrap();
    assert_eq!(run(&package).await, "one");
    assert_eq!(package.revision(), Some("v1.2.0"));
    assert_eq!(package.version().unwrap().to_string(), "1.2.0");
    assert_eq!(package.digest().unwrap().to_hex(), sha256(&archive("one")));
    let bytes = Some(archive("one").len() as u64);
    let told = machine.told();
    assert_eq!(told.first(), Some(&FetchEvent::Started { what: asset("1.2.0"), bytes }));
    assert_eq!(told.last(), Some(&FetchEvent::Ended { complete: true }));
    drop(server);
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "one");
    assert_eq!(machine.told(), []);
}

#[tokio::test]
async fn latest_is_asked_for_each_time_and_is_the_last_known_one_where_nobody_answers() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin = plugin(released(&server.api_url(), "latest"));
    let package = machine.install(&plugin).await.unwrap();
    assert_eq!((run(&package).await.as_str(), package.revision()), ("two", Some("v1.3.0")));
    server.publish(REPOSITORY, "v1.4.0", &[(&asset("1.4.0"), &archive("three"))]);
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "three");
    assert_eq!(machine.warnings(), Vec::<String>::new());
    drop(server);
    let package = machine.install(&plugin).await.unwrap();
    assert_eq!((run(&package).await.as_str(), package.revision()), ("three", Some("v1.4.0")));
    let [warning] = machine.warnings().try_into().unwrap();
    assert!(warning.ends_with("v1.4.0, the latest release when that was last known, is used"), "{warning}");
}

#[tokio::test]
async fn an_asset_of_another_name_is_a_pattern() {
    let (machine, server) = (Machine::new(), server().await);
    server.publish(REPOSITORY, "nightly/v2.0.0", &[("reef_2.0.0_linux_amd64", &script("plain"))]);
    let mut source = released(&server.api_url(), "nightly/v2.0.0");
    source.asset = Some("reef_{version}_{os}_{arch}".into());
    // A plain executable is installed unchanged.
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "plain");
}

#[tokio::test]
async fn a_configuration_of_a_package_finds_the_asset_of_the_package() {
    let (machine, server) = (Machine::new(), server().await);
    let mut plugin = plugin(released(&server.api_url(), "v1.2.0"));
    plugin.name = "reef-east".parse().unwrap();
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "one");
}

#[tokio::test]
async fn a_checksum_is_that_of_the_asset_or_of_the_executable() {
    let server = server().await;
    for digest in [sha256(&archive("one")), sha256(&script("one"))] {
        let machine = Machine::new();
        let mut source = released(&server.api_url(), "v1.2.0");
        source.checksum = checksum(&digest);
        let plugin = plugin(source);
        for _ in 0..2 {
            let package = machine.install(&plugin).await.unwrap();
            assert_eq!((run(&package).await.as_str(), package.digest().unwrap().to_hex()), ("one", digest.clone()));
        }
    }
}

#[tokio::test]
async fn a_wrong_checksum_leaves_nothing_and_takes_nothing_from_others() {
    let (machine, server) = (Machine::new(), server().await);
    let mut source = released(&server.api_url(), "v1.2.0");
    let wrong = "0".repeat(64);
    let expected = format!("checksum mismatch: expected sha256:{wrong}, got sha256:{}", sha256(&archive("one")));
    source.checksum = checksum(&wrong);
    assert_eq!(machine.refusal(&plugin(source.clone())).await, expected);
    machine.assert_empty();
    source.checksum = None;
    let other = machine.install(&plugin(source.clone())).await.unwrap();
    source.checksum = checksum(&wrong);
    assert_eq!(machine.refusal(&plugin(source)).await, expected);
    assert_eq!(run(&other).await, "one", "it may be running");
}

#[tokio::test]
async fn a_pinned_executable_is_the_one_that_runs() {
    let server = ReleaseServer::start().await.unwrap();
    let name = asset("1.0.0");
    let genuine = ("pulumi-resource-reef", Entry::File(0o755, &script("genuine")[..]));
    let evil = script("evil");
    let manifest: &[_] = &[
        genuine,
        ("PulumiPlugin.yaml", Entry::File(0o644, b"runtime: python")),
        ("__main__.py", Entry::File(0o644, &evil)),
    ];
    let another: &[_] = &[genuine, ("pulumi-resource-reef-east", Entry::File(0o755, &evil))];
    for entries in [manifest, another] {
        let machine = Machine::new();
        server.withdraw();
        server.publish(REPOSITORY, "v1.0.0", &[(&name, &tar_gz(entries).unwrap())]);
        let mut source = released(&server.api_url(), "v1.0.0");
        source.checksum = checksum(&sha256(&script("genuine")));
        let mut plugin = plugin(source);
        plugin.name = "reef-east".parse().unwrap();
        assert!(machine.refusal(&plugin).await.starts_with("checksum mismatch"));
        machine.assert_empty();
    }
}

#[tokio::test]
async fn a_release_that_is_tagged_latest_is_not_taken_for_the_last_known_one() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin = plugin(released(&server.api_url(), "latest"));
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "two");
    server.publish(REPOSITORY, "latest", &[("pulumi-resource-reef-vlatest-linux-amd64.tar.gz", &archive("rolling"))]);
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "rolling");
}

#[tokio::test]
async fn a_platform_without_a_digest_is_refused_before_anybody_is_asked() {
    let (machine, server) = (Machine::new(), server().await);
    let mut source = released(&server.api_url(), "v1.2.0");
    let darwin: Platform = "darwin-arm64".parse().unwrap();
    source.checksum = Some(Checksum::ByPlatform([(darwin, "0".repeat(64).parse().unwrap())].into()));
    assert_eq!(machine.refusal(&plugin(source)).await, "no checksum is declared for platform linux-amd64");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn the_digest_that_the_server_publishes_is_held_against_the_bytes() {
    let (machine, server) = (Machine::new(), server().await);
    server.say_digests();
    let other = archive("twX");
    server.answer("/assets/0", Response::new(200, other.clone()));
    assert_eq!(other.len(), archive("one").len(), "so that only the digest differs");
    let error = machine.refusal(&plugin(released(&server.api_url(), "v1.2.0"))).await;
    assert!(error.starts_with("checksum mismatch"), "{error}");
    machine.assert_empty();
}

#[tokio::test]
async fn a_token_goes_to_the_api_and_to_nobody_else() {
    let (machine, server) = (Machine::new(), server().await);
    server.redirect_downloads();
    let mut source = released(&server.api_url(), "v1.2.0");
    source.token = token("t0ken");
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "one");
    let authorized = |request: &Request| request.header("authorization").map(str::to_owned);
    let api: Vec<_> = server.requests().iter().map(authorized).collect();
    assert_eq!(api, vec![Some("Bearer t0ken".to_owned()); 2]);
    let storage: Vec<_> = server.storage_requests().iter().map(authorized).collect();
    assert_eq!(storage, [None]);
    assert!(server.storage_requests()[0].headers.iter().all(|(_, value)| !value.contains("t0ken")));
}

#[tokio::test]
async fn what_is_stored_beside_the_api_is_fetched_without_a_token() {
    let (machine, server) = (Machine::new(), server().await);
    server.answer("/assets/0", Response::new(302, "").with("Location", "/storage/one"));
    server.answer("/storage/one", Response::new(200, archive("one")));
    let mut source = released(&server.api_url(), "v1.2.0");
    source.token = token("t0ken");
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "one");
    let stored = server.requests().into_iter().find(|request| request.path == "/storage/one").unwrap();
    assert_eq!(stored.header("authorization"), None);
}

#[tokio::test]
async fn a_token_that_was_left_behind_is_not_shown_again() {
    // The redirects go from the API to another host, there to another path, and back to the API.
    let server = Arc::new(server().await);
    let back = format!("{}/repos/acme/pulumi-reef/releases/assets/1", server.api_url());
    let elsewhere = HttpServer::start(move |request: Request| {
        let location = if request.path == "/first" { "/second".to_owned() } else { back.clone() };
        async move { Response::new(302, "").with("Location", location) }
    });
    let elsewhere = elsewhere.await.unwrap();
    server.answer("/assets/0", Response::new(307, "").with("Location", format!("{}/first", elsewhere.url())));
    let machine = Machine::new();
    let mut source = released(&server.api_url(), "v1.2.0");
    source.token = token("t0ken");
    // The installation fails because of the asset's length; the test is about the headers.
    machine.refusal(&plugin(source)).await;
    let shown: Vec<_> = elsewhere
        .requests()
        .iter()
        .map(|request| (request.path.clone(), request.header("authorization").is_some()))
        .collect();
    assert_eq!(shown[..2], [("/first".to_owned(), false), ("/second".to_owned(), false)]);
    let returned = server.requests().into_iter().find(|request| request.path.ends_with("/assets/1")).unwrap();
    assert_eq!(returned.header("authorization"), None);
}

#[tokio::test]
async fn what_is_not_there_is_said_with_what_is() {
    let (machine, server) = (Machine::new(), server().await);
    let url = server.api_url();
    let refusal = async |source| machine.refusal(&plugin(source)).await;
    assert_eq!(
        refusal(released(&url, "v9.9.9")).await,
        "release v9.9.9 of acme/pulumi-reef not found at 127.0.0.1 (asked without a token)"
    );
    let mut source = released(&url, "v1.2.0");
    source.platform = Some("darwin-arm64".parse().unwrap());
    assert_eq!(
        refusal(source).await,
        "release acme/pulumi-reef v1.2.0 has no asset pulumi-resource-reef-v1.2.0-darwin-arm64.tar.gz; it has \
         pulumi-resource-reef-v1.2.0-linux-amd64.tar.gz, notes.txt"
    );
    server.publish(REPOSITORY, "v5.0.0", &[]);
    assert!(refusal(released(&url, "v5.0.0")).await.ends_with("; it has none at all"));
    server.publish(REPOSITORY, "v6.0.0", &[(&asset("6.0.0"), &tar_gz(&[("x", Entry::File(0o755, b"x"))]).unwrap())]);
    assert_eq!(
        refusal(released(&url, "v6.0.0")).await,
        "pulumi-resource-reef-v6.0.0-linux-amd64.tar.gz holds neither pulumi-resource-reef nor PulumiPlugin.yaml"
    );
    machine.assert_empty();
}

#[tokio::test]
async fn every_way_to_be_refused_says_who_and_why() {
    let (machine, server) = (Machine::new(), server().await);
    let limit =
        |status| Response::new(status, r#"{"message": "API rate limit exceeded"}"#).with("x-ratelimit-remaining", 0);
    let table = [
        (
            Response::new(401, r#"{"message": "Bad credentials"}"#),
            "127.0.0.1 refuses access to release v1.2.0 of acme/pulumi-reef (401): Bad credentials",
        ),
        (
            Response::new(403, r#"{"message": "Resource not accessible"}"#),
            "127.0.0.1 refuses access to release v1.2.0 of acme/pulumi-reef (403): Resource not accessible",
        ),
        (
            limit(403).with("x-ratelimit-reset", 1_700_000_000),
            "127.0.0.1 takes no more requests until 22:13:20 UTC (in 0 min): API rate limit exceeded",
        ),
        (limit(429), "127.0.0.1 takes no more requests: API rate limit exceeded"),
        (
            Response::new(502, "<html>\n<b>Bad gateway</b>"),
            "127.0.0.1 answered 502 when asked for release v1.2.0 of acme/pulumi-reef: <html>",
        ),
        (
            Response::new(200, "{}"),
            "127.0.0.1 answered 200 when asked for release v1.2.0 of acme/pulumi-reef: not a release: missing \
             field `tag_name` at line 1 column 2",
        ),
        (
            // A redirect to itself never ends.
            Response::new(302, "").with("Location", "/api/v3/repos/acme/pulumi-reef/releases/tags/v1.2.0"),
            "cannot fetch release v1.2.0 of acme/pulumi-reef from 127.0.0.1: it redirects too often",
        ),
    ];
    for (response, expected) in table {
        server.answer("/releases/tags/", response);
        assert_eq!(machine.refusal(&plugin(released(&server.api_url(), "v1.2.0"))).await, expected);
    }
    machine.assert_empty();
}

#[tokio::test]
async fn a_download_that_breaks_is_tried_again_and_leaves_nothing() {
    let (machine, server) = (Machine::new(), server().await);
    let whole = archive("one");
    let half = Response { claimed: Some(whole.len()), ..Response::new(200, &whole[..whole.len() / 2]) };
    server.answer("/assets/0", half);
    let wanted = plugin(released(&server.api_url(), "v1.2.0"));
    let error = machine.refusal(&wanted).await;
    assert!(error.starts_with(&format!("cannot fetch {} from 127.0.0.1: ", asset("1.2.0"))), "{error}");
    assert_eq!(server.requests().iter().filter(|request| request.path.contains("/assets/")).count(), 4);
    assert_eq!(machine.told().last(), Some(&FetchEvent::Ended { complete: false }));
    machine.assert_empty();
    // The second half of the asset is missing, which only the release's size shows.
    server.answer("/assets/0", Response { claimed: None, ..Response::new(200, &whole[..whole.len() / 2]) });
    let lengths = (whole.len(), whole.len() / 2);
    assert_eq!(
        machine.refusal(&wanted).await,
        format!("{} should have {} bytes, and {} arrived from 127.0.0.1", asset("1.2.0"), lengths.0, lengths.1)
    );
    machine.assert_empty();
    // The asset has another length than the release states.
    server.answer("/assets/0", Response::new(200, [whole.as_slice(), b"x"].concat()));
    let lengths = (whole.len(), whole.len() + 1);
    assert_eq!(
        machine.refusal(&wanted).await,
        format!("{} should have {} bytes, and {} arrived from 127.0.0.1", asset("1.2.0"), lengths.0, lengths.1)
    );
    machine.assert_empty();
    server.behave();
    assert_eq!(run(&machine.install(&wanted).await.unwrap()).await, "one");
}

#[tokio::test]
async fn without_network_and_without_cache_the_host_is_named() {
    let machine = Machine::new();
    let url = ReleaseServer::start().await.unwrap().api_url();
    let error = machine.refusal(&plugin(released(&url, "v1.2.0"))).await;
    let beginning = "cannot fetch release v1.2.0 of acme/pulumi-reef from 127.0.0.1: ";
    assert!(error.starts_with(beginning) && error.contains("Connection refused"), "{error}");
    machine.assert_empty();
}

#[tokio::test]
async fn addresses_that_would_give_a_token_away_are_refused() {
    let machine = Machine::new();
    let refusal = async |api: &str, text: &str| {
        let mut source = released(api, "v1.2.0");
        source.token = token(text);
        machine.refusal(&plugin(source)).await
    };
    assert_eq!(
        refusal("http://reef.example/api", "t0ken").await,
        "cannot use the token for reef.example: it would be sent in plain text"
    );
    assert_eq!(
        refusal("https://reef.example/api", "two\nlines").await,
        "cannot use the token for reef.example: it holds characters that no token has"
    );
}
