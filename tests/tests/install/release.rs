//! Tests of releases: the choice of the asset, the receivers of the token, and faults of servers.

use std::ffi::OsString;
use std::fs;
use std::sync::Arc;

use bridge::error::Hint as _;
use bridge::install::{FetchEvent, GithubReleases, InstallError, PackageSource as _};
use bridge::plugin::{Checksum, GithubReleaseSource, Platform};
use bridge::process::{HostEnvironment, Spawner};
use bridge::source::Credentials;
use tests::http::{HttpServer, Request, Response};
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};

use super::{Machine, asset_name, checksum, plugin, release_source, run, script, token};

pub(super) const REPOSITORY: &str = "acme/pulumi-reef";

pub(super) fn archive(words: &str) -> Vec<u8> {
    tar_gz(&[
        ("./", Entry::Folder),
        ("README.md", Entry::File(0o644, b"read me")),
        ("pulumi-resource-reef", Entry::File(0o755, &script(words))),
    ])
    .unwrap()
}

pub(super) async fn server() -> ReleaseServer {
    let server = ReleaseServer::start().await.unwrap();
    server.publish(REPOSITORY, "v1.2.0", &[(&asset_name("1.2.0"), &archive("one")), ("notes.txt", b"")]);
    server.publish(REPOSITORY, "v1.3.0", &[(&asset_name("1.3.0"), &archive("two"))]);
    server
}

/// Shows: plugins.md#the-cache "A tag or a commit that is in the cache needs no network."
#[tokio::test]
async fn asset_of_a_cached_tag_needs_no_network() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin = plugin(release_source(&server.api_url(), "v1.2.0"));
    let package = machine.install(&plugin).await.unwrap();
    assert_eq!(run(&package).await, "one");
    assert_eq!(package.revision(), Some("v1.2.0"));
    assert_eq!(package.version().unwrap().to_string(), "1.2.0");
    assert_eq!(package.digest().unwrap().to_hex(), sha256(&archive("one")));
    let bytes = Some(archive("one").len() as u64);
    let events = machine.take_events();
    assert_eq!(events.first(), Some(&FetchEvent::Started { name: asset_name("1.2.0"), bytes }));
    assert_eq!(events.last(), Some(&FetchEvent::Ended { complete: true }));
    drop(server);
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "one");
    assert_eq!(machine.take_events(), []);
}

/// Shows: plugins.md#the-cache "If the server does not respond, the last known one is used, with a warning."
#[tokio::test]
async fn latest_falls_back_to_the_last_known_release_without_network() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin = plugin(release_source(&server.api_url(), "latest"));
    let package = machine.install(&plugin).await.unwrap();
    assert_eq!((run(&package).await.as_str(), package.revision()), ("two", Some("v1.3.0")));
    server.publish(REPOSITORY, "v1.4.0", &[(&asset_name("1.4.0"), &archive("three"))]);
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "three");
    assert_eq!(machine.warnings(), Vec::<String>::new());
    drop(server);
    let package = machine.install(&plugin).await.unwrap();
    assert_eq!((run(&package).await.as_str(), package.revision()), ("three", Some("v1.4.0")));
    let [warning] = machine.warnings().try_into().unwrap();
    assert!(warning.ends_with("v1.4.0, the last known one, is used"), "{warning}");
}

#[tokio::test]
async fn asset_name_pattern_is_expanded() {
    let (machine, server) = (Machine::new(), server().await);
    server.publish(REPOSITORY, "nightly/v2.0.0", &[("reef_2.0.0_linux_amd64", &script("plain"))]);
    let mut source = release_source(&server.api_url(), "nightly/v2.0.0");
    source.asset = Some("reef_{version}_{os}_{arch}".into());
    // A plain executable is installed unchanged.
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "plain");
}

#[tokio::test]
async fn asset_with_the_name_of_the_package_is_found() {
    let (machine, server) = (Machine::new(), server().await);
    let mut plugin = plugin(release_source(&server.api_url(), "v1.2.0"));
    plugin.name = "reef-east".parse().unwrap();
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "one");
}

/// Shows: plugins.md#what-is-checked "the asset, or the executable in it; either may match"
#[tokio::test]
async fn checksum_of_the_asset_or_the_executable_is_accepted() {
    let server = server().await;
    for digest in [sha256(&archive("one")), sha256(&script("one"))] {
        let machine = Machine::new();
        let mut source = release_source(&server.api_url(), "v1.2.0");
        source.checksum = checksum(&digest);
        let plugin = plugin(source);
        for _ in 0..2 {
            let package = machine.install(&plugin).await.unwrap();
            assert_eq!((run(&package).await.as_str(), package.digest().unwrap().to_hex()), ("one", digest.clone()));
        }
    }
}

#[tokio::test]
async fn wrong_checksum_stores_nothing_and_keeps_the_cached_package() {
    let (machine, server) = (Machine::new(), server().await);
    let mut source = release_source(&server.api_url(), "v1.2.0");
    let wrong = "0".repeat(64);
    let expected = format!("checksum mismatch: expected sha256:{wrong}, got sha256:{}", sha256(&archive("one")));
    source.checksum = checksum(&wrong);
    assert_eq!(machine.refusal(&plugin(source.clone())).await, expected);
    machine.assert_empty();
    source.checksum = None;
    let other = machine.install(&plugin(source.clone())).await.unwrap();
    source.checksum = checksum(&wrong);
    assert_eq!(machine.refusal(&plugin(source)).await, expected);
    assert_eq!(run(&other).await, "one", "the cached package may be running");
}

#[tokio::test]
async fn pinned_executable_cannot_be_replaced_by_another_file() {
    let server = ReleaseServer::start().await.unwrap();
    let name = asset_name("1.0.0");
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
        server.remove_releases();
        server.publish(REPOSITORY, "v1.0.0", &[(&name, &tar_gz(entries).unwrap())]);
        let mut source = release_source(&server.api_url(), "v1.0.0");
        source.checksum = checksum(&sha256(&script("genuine")));
        let mut plugin = plugin(source);
        plugin.name = "reef-east".parse().unwrap();
        assert!(machine.refusal(&plugin).await.starts_with("checksum mismatch"));
        machine.assert_empty();
    }
}

#[tokio::test]
async fn tag_named_latest_has_its_own_cache_key() {
    let (machine, server) = (Machine::new(), server().await);
    let plugin = plugin(release_source(&server.api_url(), "latest"));
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "two");
    server.publish(REPOSITORY, "latest", &[("pulumi-resource-reef-vlatest-linux-amd64.tar.gz", &archive("rolling"))]);
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "rolling");
}

/// Shows: plugins.md#what-is-checked "If `checksum` is a map without the current platform, the plugin is refused."
#[tokio::test]
async fn platform_without_a_digest_is_refused_before_any_request() {
    let (machine, server) = (Machine::new(), server().await);
    let mut source = release_source(&server.api_url(), "v1.2.0");
    let darwin: Platform = "darwin-arm64".parse().unwrap();
    source.checksum = Some(Checksum::ByPlatform([(darwin, "0".repeat(64).parse().unwrap())].into()));
    assert_eq!(machine.refusal(&plugin(source)).await, "no checksum is declared for platform linux-amd64");
    assert!(server.requests().is_empty());
}

/// Shows: plugins.md#what-is-checked "and with the checksum that is published for it"
#[tokio::test]
async fn published_digest_is_verified() {
    let (machine, server) = (Machine::new(), server().await);
    server.add_digests();
    let other = archive("twX");
    server.override_response("/assets/0", Response::new(200, other.clone()));
    assert_eq!(other.len(), archive("one").len(), "so that only the digest differs");
    let error = machine.install(&plugin(release_source(&server.api_url(), "v1.2.0"))).await.unwrap_err();
    let (published, found) = (sha256(&archive("one")), sha256(&other));
    assert_eq!(
        error.to_string(),
        format!(
            "checksum mismatch: 127.0.0.1 publishes sha256:{published} for {}, but the download has sha256:{found}",
            asset_name("1.2.0")
        )
    );
    assert!(!advises_to_declare(&error), "{error}");
    machine.assert_empty();
}

fn advises_to_declare(error: &InstallError) -> bool {
    error.hint().is_some_and(|hint| hint.into_string().contains("declare"))
}

/// Shows: plugins.md#what-is-checked "If the release publishes another checksum than that of the download, the hint never asks
///   to declare it."
#[tokio::test]
async fn download_that_differs_from_what_its_release_publishes_is_not_to_be_declared() {
    let wrong = "0".repeat(64);
    let (one, name) = (sha256(&archive("one")), asset_name("1.2.0"));
    let good = format!("{one}  {name}\n");
    let other = format!("{}  {name}\n", "1".repeat(64));
    // The checksum files of the release, whether GitHub has digests, and whether the hint asks to declare the checksum.
    for (file, text, has_digests, declares) in [
        ("notes.txt", "", false, true),
        ("notes.txt", "", true, true),
        ("reef_1.2.0_checksums.txt", &*good, false, true),
        ("reef_1.2.0_checksums.txt", &*other, false, false),
        ("SHA256SUMS", &*other, false, false),
        (&*format!("{name}.sha256"), &*"1".repeat(64), false, false),
        ("SHA256SUMS", "<html>", false, true),
        ("SHA256SUMS", &*other, true, true),
    ] {
        let (machine, server) = (Machine::new(), ReleaseServer::start().await.unwrap());
        server.publish(REPOSITORY, "v1.2.0", &[(&name, &archive("one")), (file, text.as_bytes())]);
        if has_digests {
            server.add_digests();
        }
        let mut source = release_source(&server.api_url(), "v1.2.0");
        source.checksum = checksum(&wrong);
        let error = machine.install(&plugin(source)).await.unwrap_err();
        let suffix =
            if declares { String::new() } else { format!("; the release publishes sha256:{}", "1".repeat(64)) };
        assert_eq!(error.to_string(), format!("checksum mismatch: expected sha256:{wrong}, got sha256:{one}{suffix}"));
        assert_eq!(advises_to_declare(&error), declares, "{file}: {error}");
        machine.assert_empty();
    }
}

/// Shows: plugins.md#packages-of-core-types "The download is verified by the digest that GitHub publishes. An asset
///   without a digest is refused."
#[tokio::test]
async fn asset_without_a_digest_is_refused_where_one_is_required() {
    let (machine, server) = (Machine::new(), server().await);
    let source = GithubReleaseSource { requires_digest: true, ..release_source(&server.api_url(), "v1.2.0") };
    let pinned = GithubReleaseSource { checksum: checksum(&sha256(&archive("one"))), ..source.clone() };
    let plugin = plugin(source.clone());
    let releases = GithubReleases::new(machine.settings());
    let error = machine.refusal(&plugin).await;
    assert_eq!(error, format!("no digest of {} is published, so that it cannot be verified", asset_name("1.2.0")));
    assert_eq!(server.requests().len(), 1, "the asset is not downloaded");
    machine.assert_empty();
    assert_eq!(releases.known_digest(plugin.names(), &source).await.unwrap(), None);
    server.add_digests();
    assert_eq!(run(&machine.install(&plugin).await.unwrap()).await, "one");
    assert_eq!(
        releases.known_digest(plugin.names(), &source).await.unwrap().unwrap().to_hex(),
        sha256(&archive("one"))
    );
    assert_eq!(run(&machine.install(&super::plugin(pinned)).await.unwrap()).await, "one");
    fs::remove_dir_all(machine.path("cache/packages")).unwrap();
    assert_eq!(releases.known_digest(plugin.names(), &source).await.unwrap(), None);
}

#[tokio::test]
async fn token_is_sent_to_the_api_only() {
    let (machine, server) = (Machine::new(), server().await);
    server.redirect_downloads();
    let mut source = release_source(&server.api_url(), "v1.2.0");
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
async fn file_outside_the_api_path_is_fetched_without_a_token() {
    let (machine, server) = (Machine::new(), server().await);
    server.override_response("/assets/0", Response::new(302, "").with("Location", "/storage/one"));
    server.override_response("/storage/one", Response::new(200, archive("one")));
    let mut source = release_source(&server.api_url(), "v1.2.0");
    source.token = token("t0ken");
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "one");
    let stored = server.requests().into_iter().find(|request| request.path == "/storage/one").unwrap();
    assert_eq!(stored.header("authorization"), None);
}

/// Shows: plugins.md#credentials "It is sent to no other host, not even after a redirect"
#[tokio::test]
async fn token_is_not_sent_again_after_a_redirect_away() {
    // The redirects go from the API to another host, there to another path, and back to the API.
    let server = Arc::new(server().await);
    let back = format!("{}/repos/acme/pulumi-reef/releases/assets/1", server.api_url());
    let redirecting_host = HttpServer::start(move |request: Request| {
        let location = if request.path == "/first" { "/second".to_owned() } else { back.clone() };
        async move { Response::new(302, "").with("Location", location) }
    });
    let redirecting_host = redirecting_host.await.unwrap();
    server.override_response(
        "/assets/0",
        Response::new(307, "").with("Location", format!("{}/first", redirecting_host.url())),
    );
    let machine = Machine::new();
    let mut source = release_source(&server.api_url(), "v1.2.0");
    source.token = token("t0ken");
    // The installation fails because of the asset's length; the test is about the headers.
    machine.refusal(&plugin(source)).await;
    let requests_with_token: Vec<_> = redirecting_host
        .requests()
        .iter()
        .map(|request| (request.path.clone(), request.header("authorization").is_some()))
        .collect();
    assert_eq!(requests_with_token[..2], [("/first".to_owned(), false), ("/second".to_owned(), false)]);
    let returned = server.requests().into_iter().find(|request| request.path.ends_with("/assets/1")).unwrap();
    assert_eq!(returned.header("authorization"), None);
}

#[tokio::test]
async fn missing_release_or_asset_is_reported_with_the_available_assets() {
    let (machine, server) = (Machine::new(), server().await);
    let url = server.api_url();
    let refusal = async |source| machine.refusal(&plugin(source)).await;
    assert_eq!(
        refusal(release_source(&url, "v9.9.9")).await,
        "release v9.9.9 of acme/pulumi-reef not found at 127.0.0.1 (no token was sent)"
    );
    let mut source = release_source(&url, "v1.2.0");
    source.platform = Some("darwin-arm64".parse().unwrap());
    assert_eq!(
        refusal(source).await,
        "release acme/pulumi-reef v1.2.0 has no asset pulumi-resource-reef-v1.2.0-darwin-arm64.tar.gz; it has \
         pulumi-resource-reef-v1.2.0-linux-amd64.tar.gz, notes.txt"
    );
    server.publish(REPOSITORY, "v5.0.0", &[]);
    assert!(refusal(release_source(&url, "v5.0.0")).await.ends_with("; it has no assets"));
    server.publish(
        REPOSITORY,
        "v6.0.0",
        &[(&asset_name("6.0.0"), &tar_gz(&[("x", Entry::File(0o755, b"x"))]).unwrap())],
    );
    assert_eq!(
        refusal(release_source(&url, "v6.0.0")).await,
        "pulumi-resource-reef-v6.0.0-linux-amd64.tar.gz holds neither pulumi-resource-reef nor PulumiPlugin.yaml; it holds x"
    );
    machine.assert_empty();
}

#[tokio::test]
async fn archive_without_the_program_lists_its_first_files() {
    let (machine, server) = (Machine::new(), server().await);
    let names: Vec<String> = (0..9).map(|file| format!("doc/{file}.md")).collect();
    let mut entries: Vec<_> = names.iter().map(|name| (name.as_str(), Entry::File(0o644, b""))).collect();
    entries.push(("bin/pulumi-resource-reef", Entry::File(0o755, b"#!/bin/sh\n")));
    server.publish(REPOSITORY, "v7.0.0", &[(&asset_name("7.0.0"), &tar_gz(&entries).unwrap())]);
    let error = machine.install(&plugin(release_source(&server.api_url(), "v7.0.0"))).await.unwrap_err();
    let expected = "; it holds bin/pulumi-resource-reef, doc/0.md, doc/1.md, doc/2.md, doc/3.md, doc/4.md, doc/5.md, \
                    doc/6.md and 2 more";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert_eq!(
        error.hint().unwrap().into_string(),
        "the executable has to be at the root of the archive, not at bin/pulumi-resource-reef"
    );
}

/// Shows: plugins.md#what-is-checked "nor one whose upload is not complete"
#[tokio::test]
async fn asset_whose_upload_is_not_complete_is_not_downloaded() {
    let (machine, server) = (Machine::new(), server().await);
    let source = release_source(&server.api_url(), "v1.2.0");
    server.set_state(&asset_name("1.2.0"), "starter");
    let expected = format!(
        "the upload of {} to the release is not complete: its state is \"starter\", not \"uploaded\"",
        asset_name("1.2.0")
    );
    assert_eq!(machine.refusal(&plugin(source.clone())).await, expected);
    assert_eq!(server.requests().len(), 1, "the asset is not downloaded");
    let releases = GithubReleases::new(machine.settings());
    let size = releases.download_size(plugin(source.clone()).names(), &source).await;
    assert_eq!(size.unwrap_err().to_string(), expected);
    machine.assert_empty();
    server.set_state(&asset_name("1.2.0"), "uploaded");
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "one");
}

#[tokio::test]
async fn refused_request_is_reported_with_host_and_reason() {
    let (machine, server) = (Machine::new(), server().await);
    let limit =
        |status| Response::new(status, r#"{"message": "API rate limit exceeded"}"#).with("x-ratelimit-remaining", 0);
    let cases = [
        (
            Response::new(401, r#"{"message": "Bad credentials"}"#),
            "127.0.0.1 refuses access to release v1.2.0 of acme/pulumi-reef (401; no token was sent): Bad credentials",
        ),
        (
            Response::new(403, r#"{"message": "Resource not accessible"}"#),
            "127.0.0.1 refuses access to release v1.2.0 of acme/pulumi-reef (403; no token was sent): Resource not accessible",
        ),
        (
            limit(403).with("x-ratelimit-reset", 1_700_000_000),
            "127.0.0.1 accepts no more requests: API rate limit exceeded",
        ),
        (limit(429), "127.0.0.1 accepts no more requests: API rate limit exceeded"),
        (
            Response::new(502, "<html>\n<b>Bad gateway</b>"),
            "127.0.0.1 returned status 502 for release v1.2.0 of acme/pulumi-reef: <html>",
        ),
        (
            Response::new(200, "{}"),
            "127.0.0.1 returned status 200 for release v1.2.0 of acme/pulumi-reef: not a release: missing \
             field `tag_name` at line 1 column 2",
        ),
        (
            // A redirect to itself never ends.
            Response::new(302, "").with("Location", "/api/v3/repos/acme/pulumi-reef/releases/tags/v1.2.0"),
            "cannot fetch release v1.2.0 of acme/pulumi-reef from 127.0.0.1: it redirects too often",
        ),
    ];
    for (response, expected) in cases {
        server.override_response("/releases/tags/", response);
        assert_eq!(machine.refusal(&plugin(release_source(&server.api_url(), "v1.2.0"))).await, expected);
    }
    machine.assert_empty();
}

#[tokio::test]
async fn unreachable_host_is_reported_without_a_cached_package() {
    let machine = Machine::new();
    let url = ReleaseServer::start().await.unwrap().api_url();
    let error = machine.refusal(&plugin(release_source(&url, "v1.2.0"))).await;
    let beginning = "cannot fetch release v1.2.0 of acme/pulumi-reef from 127.0.0.1: ";
    assert!(error.starts_with(beginning) && error.contains("Connection refused"), "{error}");
    machine.assert_empty();
}

#[tokio::test]
async fn address_that_would_leak_a_token_is_refused() {
    let machine = Machine::new();
    let refusal = async |api: &str, text: &str| {
        let mut source = release_source(api, "v1.2.0");
        source.token = token(text);
        source.insecure = true;
        machine.refusal(&plugin(source)).await
    };
    assert_eq!(
        refusal("http://reef.example/api", "t0ken").await,
        "cannot use the token for reef.example: it would be sent in plain text"
    );
    assert_eq!(
        refusal("https://reef.example/api", "two\nlines").await,
        "cannot use the token for reef.example: it contains invalid characters"
    );
}

/// Returns a machine with these credentials for the host of a server.
fn machine_with(server: &ReleaseServer, variables: &[(&str, &str)]) -> Machine {
    let authority = server.api_url().split('/').nth(2).unwrap().to_owned();
    let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let variables = variables.chain([(OsString::from("GH_HOST"), OsString::from(authority))]);
    let credentials = Credentials::new(HostEnvironment::new(variables), Spawner::unsupervised(), |_| ());
    Machine { credentials, ..Machine::new() }
}

fn sent(server: &ReleaseServer) -> Vec<Option<String>> {
    server.requests().iter().map(|request| request.header("authorization").map(str::to_owned)).collect()
}

/// Shows: plugins.md#credentials "A release without `source.token` is asked for with a credential that is found"
#[tokio::test]
async fn credential_of_the_host_is_sent_unless_a_token_is_declared() {
    let server = server().await;
    let machine = machine_with(&server, &[("GH_ENTERPRISE_TOKEN", "found"), ("GITHUB_TOKEN", "of-github")]);
    let source = release_source(&server.api_url(), "v1.2.0");
    machine.install(&plugin(source.clone())).await.unwrap();
    assert!(sent(&server).iter().all(|sent| sent.as_deref() == Some("Bearer found")), "{:?}", sent(&server));
    let (machine, before) = (machine_with(&server, &[("GH_ENTERPRISE_TOKEN", "found")]), sent(&server).len());
    machine.install(&plugin(GithubReleaseSource { token: token("declared"), ..source.clone() })).await.unwrap();
    assert!(sent(&server)[before..].iter().all(|sent| sent.as_deref() == Some("Bearer declared")));
    // The credentials of another host are not for this one.
    let (machine, before) = (machine_with(&server, &[("GITHUB_TOKEN", "of-github")]), sent(&server).len());
    machine.install(&plugin(source)).await.unwrap();
    assert!(sent(&server)[before..].iter().all(Option::is_none));
}

/// Shows: plugins.md#credentials "stale token breaks no public download"
#[tokio::test]
async fn stale_credential_is_left_out_once_and_told() {
    let server = server().await;
    server.refuse_token("stale");
    let variables = [("GH_ENTERPRISE_TOKEN", "stale"), ("GITHUB_ENTERPRISE_TOKEN", "fresh")];
    for (count, expected) in [(1, None), (2, Some("Bearer fresh"))] {
        let machine = machine_with(&server, &variables[..count]);
        let before = sent(&server).len();
        for version in ["v1.2.0", "v1.3.0"] {
            machine.install(&plugin(release_source(&server.api_url(), version))).await.unwrap();
        }
        let sent = &sent(&server)[before..];
        assert_eq!(sent[0].as_deref(), Some("Bearer stale"));
        assert!(sent[1..].iter().all(|sent| sent.as_deref() == expected), "{sent:?}");
        assert_eq!(machine.warnings(), ["127.0.0.1 refuses the token of GH_ENTERPRISE_TOKEN (401): it is left out"]);
    }
    // Plugins that are installed at the same time have all found it.
    let machine = machine_with(&server, &variables[..1]);
    let plugins = ["v1.2.0", "v1.3.0"].map(|version| plugin(release_source(&server.api_url(), version)));
    let installed = futures_util::future::join_all(plugins.iter().map(|plugin| machine.install(plugin))).await;
    assert!(installed.iter().all(Result::is_ok), "{installed:?}");
    assert_eq!(machine.warnings().len(), 1);
    // A token that was declared is not left out.
    let source = GithubReleaseSource { token: token("stale"), ..release_source(&server.api_url(), "v1.2.0") };
    let error = Machine::new().refusal(&plugin(source)).await;
    assert!(error.contains("(401; with the token of source.token): Bad credentials"), "{error}");
}
