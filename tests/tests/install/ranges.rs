//! Tests of versions that are not written out: ranges and `latest`, and what they pass over.

use std::time::Duration;

use bridge::error::Hint as _;
use bridge::install::FetchEvent;
use bridge::plugin::GithubReleaseSource;
use jiff::Timestamp;
use tests::releases::{Entry, ReleaseServer, tar_gz};

use super::git::Repository;
use super::{Machine, asset_name, git_source, plugin, release_source, run, script};

const REPOSITORY: &str = "acme/pulumi-reef";

fn archive(words: &str) -> Vec<u8> {
    tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script(words)))]).unwrap()
}

/// Returns a server with a release of each version, whose plugin prints its version.
async fn server(versions: &[&str]) -> ReleaseServer {
    let server = ReleaseServer::start().await.unwrap();
    for version in versions {
        publish(&server, version, &format!("v{version}"));
    }
    server
}

fn publish(server: &ReleaseServer, version: &str, tag: &str) {
    server.publish(REPOSITORY, tag, &[(&asset_name(version), &archive(version))]);
}

fn ago(hours: i64) -> String {
    let second = Timestamp::now().as_second() - 3_600 * hours;
    Timestamp::from_second(second).unwrap().to_string()
}

fn notes(machine: &Machine) -> Vec<String> {
    let note = |event| match event {
        FetchEvent::Note(text) => Some(text),
        _ => None,
    };
    machine.take_events().into_iter().filter_map(note).collect()
}

/// Returns the version that a range means.
async fn found(server: &ReleaseServer, wanted: &str) -> String {
    let machine = Machine::new();
    let package = machine.install(&plugin(release_source(&server.api_url(), wanted))).await;
    match package {
        Ok(package) => run(&package).await,
        Err(error) => bridge::error::chain(&error),
    }
}

/// Shows: plugins.md#versions "The highest version counts"
/// Shows: plugins.md#versions "Drafts are never used"
#[tokio::test]
async fn highest_release_in_the_range_is_used() {
    let server = server(&["1.2.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "2.0.0", "2.1.0-rc.1", "1.11.0", "1.12.0"]).await;
    server.set_draft("v1.11.0");
    server.set_prerelease("v1.12.0");
    server.set_prerelease("v2.1.0-rc.1");
    publish(&server, "1.4.0", "reef/v1.4.0");
    publish(&server, "1.5.0", "lake/v1.5.0");
    for (wanted, expected) in [
        ("^1.2", "1.10.0"),
        ("~1.9", "1.9.0"),
        ("=1.2.0", "1.2.0"),
        (">=1, <3", "2.0.0"),
        (">=2.1.0-rc.0", "2.1.0-rc.1"),
        ("^2.0.0-rc.1", "2.0.0"),
        ("reef/^1", "1.4.0"),
    ] {
        assert_eq!(found(&server, wanted).await, expected, "{wanted}");
    }
}

#[tokio::test]
async fn version_of_a_range_is_that_of_its_tag() {
    let server = server(&["1.2.0"]).await;
    publish(&server, "1.4.0", "reef/v1.4.0");
    for (wanted, expected) in [("^1", "1.2.0"), ("reef/^1", "1.4.0"), ("latest", "")] {
        let package = Machine::new().install(&plugin(release_source(&server.api_url(), wanted))).await.unwrap();
        assert_eq!(package.version().map(ToString::to_string).unwrap_or_default(), expected, "{wanted}");
    }
}

/// Servers shorten pages, and not all of them link to the next one.
#[tokio::test]
async fn all_pages_of_releases_are_read() {
    let versions: Vec<String> = (0..64).map(|patch| format!("1.0.{patch}")).collect();
    let mut all = vec!["1.9.0"];
    all.extend(versions.iter().map(String::as_str));
    let server = server(&all).await;
    for (size, links, requests) in [(100, true, 2), (100, false, 2), (30, true, 3), (30, false, 3)] {
        server.set_page(size, links);
        let before = server.requests().len();
        assert_eq!(found(&server, "^1").await, "1.9.0", "{size} {links}");
        let lists = server.requests()[before..].iter().filter(|request| request.path.contains("per_page")).count();
        assert_eq!(lists, requests, "{size} {links}");
    }
}

/// Shows: plugins.md#versions "A release younger than `source.minimumAge` is passed over"
#[tokio::test]
async fn young_release_is_passed_over_and_told() {
    let server = server(&["1.1.0", "1.2.0", "1.3.0"]).await;
    server.set_published("v1.1.0", &ago(24 * 30));
    server.set_published("v1.2.0", &ago(25));
    server.set_published("v1.3.0", &ago(5));
    let machine = Machine::new();
    for wanted in ["^1", "latest"] {
        let source = release_source(&server.api_url(), wanted);
        assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "1.2.0", "{wanted}");
        let expected = "v1.3.0 of acme/pulumi-reef is passed over: it was published 5 hours ago, and source.minimumAge is 24 hours";
        assert_eq!(notes(&machine), [expected], "{wanted}");
    }
    for (wanted, minimum_age, expected) in [
        ("^1", Duration::ZERO, "1.3.0"),
        ("latest", Duration::ZERO, "1.3.0"),
        ("^1", Duration::from_secs(26 * 3_600), "1.1.0"),
        ("v1.3.0", Duration::from_secs(26 * 3_600), "1.3.0"),
    ] {
        let source = GithubReleaseSource { minimum_age, ..release_source(&server.api_url(), wanted) };
        let machine = Machine::new();
        assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, expected, "{wanted}");
    }
}

#[tokio::test]
async fn release_before_a_young_latest_one_is_below_it_and_of_the_same_plugin() {
    let server = server(&["2.0.0", "1.5.0"]).await;
    publish(&server, "1.5.9", "lake/v1.5.9");
    publish(&server, "1.5.1", "v1.5.1");
    server.set_published("v1.5.1", &ago(3));
    assert_eq!(found(&server, "latest").await, "1.5.0");
}

#[tokio::test]
async fn release_without_the_platform_is_passed_over_and_told() {
    let server = server(&["1.1.0"]).await;
    server.publish(REPOSITORY, "v1.2.0", &[("pulumi-resource-reef-v1.2.0-darwin-arm64.tar.gz", b"")]);
    let machine = Machine::new();
    let source = release_source(&server.api_url(), "^1");
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "1.1.0");
    assert_eq!(notes(&machine), ["v1.2.0 of acme/pulumi-reef is passed over: it has no asset for linux-amd64"]);
}

#[tokio::test]
async fn range_that_nothing_fits_is_reported_with_the_reason() {
    let server = server(&["1.1.0", "2.0.0-rc.1"]).await;
    server.publish(REPOSITORY, "v3.0.0", &[("notes.txt", b"")]);
    server.set_published("v1.1.0", &ago(1));
    for (wanted, reason, hint) in [
        ("^4", "the highest version is 3.0.0", "a pre-release fits only if the range names one"),
        ("^2", "the highest version is 3.0.0", "a pre-release fits only if the range names one"),
        ("^1", "1 in the range are younger than 24 hours", "source.minimumAge sets the age"),
        ("^3", "1 in the range have no asset for linux-amd64", "a range is written as in Cargo"),
        (">=1", "1 in the range are younger than 24 hours, and 1 have no asset for linux-amd64", "minimumAge"),
        ("lake/^1", "none has a tag of three numbers, such as v1.2.3", "a range is written as in Cargo"),
    ] {
        let machine = Machine::new();
        let error = machine.install(&plugin(release_source(&server.api_url(), wanted))).await.unwrap_err();
        let expected = format!("acme/pulumi-reef at 127.0.0.1 has no release for version {wanted:?}: {reason}");
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().unwrap().to_string().contains(hint), "{wanted}");
        machine.assert_empty();
    }
}

/// Shows: plugins.md#versions "A range of `git` takes the tags of the repository"
#[tokio::test]
async fn range_of_git_takes_tags() {
    let (machine, repository) = (Machine::new(), Repository::new());
    for (words, tag) in
        [("one", "v1.1.0"), ("two", "v1.2.0"), ("pre", "v1.3.0-rc.1"), ("other", "sdk/v1.9.0"), ("three", "v2.0.0")]
    {
        repository.commit(words);
        repository.git(&["tag", tag]);
    }
    for (wanted, words, version) in [("^1", "two", "1.2.0"), (">=1", "three", "2.0.0"), ("sdk/^1", "other", "1.9.0")] {
        let package = machine.install(&plugin(git_source(&repository.url(), wanted))).await.unwrap();
        assert_eq!((run(&package).await.as_str(), package.version().unwrap().to_string().as_str()), (words, version));
    }
    let error = machine.refusal(&plugin(git_source(&repository.url(), "^3"))).await;
    assert!(error.ends_with(r#"has no tag for version "^3": the highest version is 2.0.0"#), "{error}");
    // Another tag is in the range now.
    repository.commit("four");
    repository.git(&["tag", "v1.4.0"]);
    let range = plugin(git_source(&repository.url(), "^1"));
    assert_eq!(run(&machine.install(&range).await.unwrap()).await, "four");
}
