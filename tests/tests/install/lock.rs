//! Tests of the lock file: what a repository has decided is what every machine runs.

use std::fs;

use bridge::error::Hint as _;
use bridge::install::{
    FetchEvent, GitRepositories, GithubReleases, InstallError, Installer, LOCK_FILE, LockRule, PackageSource as _,
};
use bridge::plugin::{GithubReleaseSource, PluginConfig, PluginSource};
use futures_util::future::join_all;
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};

use super::git::Repository;
use super::{Machine, asset_name, checksum, git_source, plugin, release_source, run, script};

const REPOSITORY: &str = "acme/pulumi-reef";

fn archive(words: &str) -> Vec<u8> {
    tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script(words)))]).unwrap()
}

fn asset_of(version: &str, platform: &str) -> String {
    format!("pulumi-resource-reef-v{version}-{platform}.tar.gz")
}

async fn server() -> ReleaseServer {
    let server = ReleaseServer::start().await.unwrap();
    server.add_digests();
    publish(&server, "1.2.0");
    server
}

fn publish(server: &ReleaseServer, version: &str) {
    let (amd64, arm64) = (archive(version), archive(&format!("{version} on arm64")));
    server.publish(
        REPOSITORY,
        &format!("v{version}"),
        &[(&asset_of(version, "linux-amd64"), &amd64), (&asset_of(version, "linux-arm64"), &arm64)],
    );
}

/// Returns a machine with the lock file of another one, and an empty cache.
fn other_machine(machine: &Machine, lock_rule: LockRule) -> Machine {
    let other = Machine { lock_rule, ..Machine::new() };
    fs::create_dir_all(other.path("repo/.sc")).unwrap();
    fs::write(other.path("repo").join(LOCK_FILE), lock_text(machine)).unwrap();
    other
}

fn machine() -> Machine {
    Machine { lock_rule: LockRule::Add, ..Machine::new() }
}

fn lock_text(machine: &Machine) -> String {
    fs::read_to_string(machine.path("repo").join(LOCK_FILE)).unwrap_or_default()
}

/// Returns the text of a lock file without the port of the server, and what depends on it.
fn normalized(text: &str) -> String {
    let line = |line: &str| match (line.split_once("127.0.0.1:"), line.split_once("  entry: ")) {
        (Some((before, rest)), _) => format!("{before}HOST/{}", rest.split_once('/').unwrap().1),
        (None, Some(_)) => "  entry: DIGEST".to_owned(),
        (None, None) => line.to_owned(),
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

async fn words(machine: &Machine, plugin: &PluginConfig) -> String {
    run(&machine.install(plugin).await.unwrap()).await
}

/// Shows: plugins.md#the-lock-file "All platforms of a release are recorded at once"
#[tokio::test]
async fn first_run_records_what_every_later_one_uses() {
    let (machine, server) = (machine(), server().await);
    let range = plugin(release_source(&server.api_url(), "^1"));
    assert_eq!(words(&machine, &range).await, "1.2.0");
    insta::assert_snapshot!(normalized(&lock_text(&machine)), @r"
    # Which packages the plugins of server.yaml are. Written by sc: commit it, and do not edit it.
    # `sc plugin update` changes a version, and `sc plugin lock` repairs the file after a merge.
    version: 1
    packages:
    - source: github-release HOST/api/v3/acme/pulumi-reef
      wanted: ^1
      package: reef
      tag: v1.2.0
      platforms:
        linux-amd64: { asset: pulumi-resource-reef-v1.2.0-linux-amd64.tar.gz, size: 126, sha256: e4d1af7dbac6111e4110cefcfbf53e87a736d6559c1a7c83a0d6083abd0597ba, by: published }
        linux-arm64: { asset: pulumi-resource-reef-v1.2.0-linux-arm64.tar.gz, size: 135, sha256: 6602968cf30099bd46dd8eb31a1d3af45c2c4aa074de9f04918ad5feea11361e, by: published }
      entry: DIGEST
    ");
    let notes: Vec<_> =
        machine.take_events().into_iter().filter(|event| matches!(event, FetchEvent::Note(_))).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    publish(&server, "1.3.0");
    assert_eq!(words(&machine, &range).await, "1.2.0");
    let other = other_machine(&machine, LockRule::LockedInPipeline);
    assert_eq!(words(&other, &range).await, "1.2.0");
    assert_eq!(lock_text(&other), lock_text(&machine));
    assert_eq!(machine.take_events(), []);
}

/// Shows: plugins.md#the-lock-file "What is locked and in the cache needs no network"
#[tokio::test]
async fn locked_package_in_the_cache_asks_nobody() {
    let (machine, server) = (machine(), server().await);
    let plugins = ["^1", "latest", "v1.2.0"].map(|wanted| plugin(release_source(&server.api_url(), wanted)));
    for plugin in &plugins {
        assert_eq!(words(&machine, plugin).await, "1.2.0");
    }
    let requests = server.requests().len();
    for plugin in &plugins {
        assert_eq!(words(&machine, plugin).await, "1.2.0");
    }
    assert_eq!(server.requests().len(), requests);
    drop(server);
    machine.take_events();
    for plugin in &plugins {
        assert_eq!(words(&machine, plugin).await, "1.2.0");
    }
    assert_eq!(machine.take_events(), []);
}

/// Shows: plugins.md#the-lock-file "stacks agree on one version unless their ranges forbid it"
#[tokio::test]
async fn other_range_takes_the_recorded_version_that_fits() {
    let (machine, server) = (machine(), server().await);
    let wants = |wanted: &str| plugin(release_source(&server.api_url(), wanted));
    assert_eq!(words(&machine, &wants("^1")).await, "1.2.0");
    publish(&server, "1.3.0");
    for (wanted, expected) in
        [(">=1.1, <2", "1.2.0"), ("v1.2.0", "1.2.0"), ("^1.3", "1.3.0"), ("~1", "1.3.0"), ("^1", "1.2.0")]
    {
        assert_eq!(words(&machine, &wants(wanted)).await, expected, "{wanted}");
    }
    // What fits is only copied, which `--locked` permits.
    let other = other_machine(&machine, LockRule::Locked);
    assert_eq!(words(&other, &wants("~1.2")).await, "1.2.0");
    assert_eq!(lock_text(&other), lock_text(&machine));
}

/// Shows: plugins.md#the-lock-file "`--locked` fails where an entry is missing"
#[tokio::test]
async fn missing_entry_is_refused_before_any_request_where_the_file_must_not_change() {
    let (machine, server) = (machine(), server().await);
    let wants = |wanted: &str| plugin(release_source(&server.api_url(), wanted));
    assert_eq!(words(&machine, &wants("^1")).await, "1.2.0");
    let requests = server.requests().len();
    for (rule, who) in [(LockRule::Locked, "--locked"), (LockRule::LockedInPipeline, "a pipeline")] {
        let other = other_machine(&machine, rule);
        let error = other.install(&wants("^2")).await.unwrap_err();
        let text = error.to_string();
        assert!(text.ends_with(&format!("^2 is not in the lock file, which {who} must not change")), "{text}");
        assert_eq!(error.hint().unwrap().to_string(), "run `sc plugin lock` on your machine, and commit the lock file");
        other.assert_empty();
    }
    assert_eq!(server.requests().len(), requests);
}

#[tokio::test]
async fn pipeline_without_a_lock_file_warns_once_and_writes_none() {
    let (machine, server) = (Machine { lock_rule: LockRule::ReadOnly, ..Machine::new() }, server().await);
    assert_eq!(words(&machine, &plugin(release_source(&server.api_url(), "v1.2.0"))).await, "1.2.0");
    let [warning] = machine.warnings().try_into().unwrap();
    assert!(warning.starts_with("the repository has no .sc/sc.lock, and a pipeline writes none"), "{warning}");
    assert_eq!(lock_text(&machine), "");
}

/// Shows: plugins.md#the-lock-file "an asset that was replaced"
#[tokio::test]
async fn replaced_asset_is_refused_with_who_has_stated_the_recorded_digest() {
    let (machine, server) = (machine(), server().await);
    server.set_published("v1.2.0", "2026-11-02T10:00:00Z");
    let range = plugin(release_source(&server.api_url(), "^1"));
    assert_eq!(words(&machine, &range).await, "1.2.0");
    server.replace_asset("v1.2.0", &asset_name("1.2.0"), &archive("other"));
    let downloads =
        |server: &ReleaseServer| server.requests().iter().filter(|request| request.path.contains("/assets/")).count();
    let before = downloads(&server);
    let other = other_machine(&machine, LockRule::Locked);
    let error = other.install(&range).await.unwrap_err();
    assert_eq!(downloads(&server), before, "what is refused is not downloaded");
    let text = bridge::error::chain(&error)
        .replace(&sha256(&archive("1.2.0")), "RECORDED")
        .replace(&sha256(&archive("other")), "FOUND");
    insta::assert_snapshot!(text, @"checksum mismatch: pulumi-resource-reef-v1.2.0-linux-amd64.tar.gz of v1.2.0 for linux-amd64 is not the one of the lock file: expected sha256:RECORDED (published by the server when it was locked, released 2026-11-02T10:00:00Z), got sha256:FOUND");
    insta::assert_snapshot!(error.hint().unwrap(), @"its author has replaced it, or it was changed on its way: ask the author which one is right; `sc plugin update NAME` with the name of the plugin accepts it");
    other.assert_empty();
    // The machine that has it goes on.
    assert_eq!(words(&machine, &range).await, "1.2.0");
}

#[tokio::test]
async fn release_that_was_deleted_is_reported() {
    let (machine, server) = (machine(), server().await);
    let range = plugin(release_source(&server.api_url(), "^1"));
    assert_eq!(words(&machine, &range).await, "1.2.0");
    server.remove_release("v1.2.0");
    assert_eq!(words(&machine, &range).await, "1.2.0");
    let other = other_machine(&machine, LockRule::Locked);
    let error = other.refusal(&range).await;
    assert!(error.starts_with("release v1.2.0 of acme/pulumi-reef not found at 127.0.0.1"), "{error}");
    other.assert_empty();
}

/// Shows: plugins.md#the-lock-file "A `checksum` in server.yaml must hold beside it"
#[tokio::test]
async fn declared_checksum_holds_beside_the_lock_file() {
    let (machine, server) = (machine(), server().await);
    let source = release_source(&server.api_url(), "v1.2.0");
    assert_eq!(words(&machine, &plugin(source.clone())).await, "1.2.0");
    let right = GithubReleaseSource { checksum: checksum(&sha256(&archive("1.2.0"))), ..source.clone() };
    let wrong = GithubReleaseSource { checksum: checksum(&sha256(&archive("other"))), ..source };
    assert_eq!(words(&machine, &plugin(right)).await, "1.2.0");
    let error = machine.install(&plugin(wrong)).await.unwrap_err();
    assert!(matches!(error, InstallError::ChecksumMismatch { .. }), "{error}");
}

/// Shows: plugins.md#the-lock-file "`fetched`: the first download is trusted"
#[tokio::test]
async fn digest_is_that_of_the_first_download_where_none_is_published() {
    let (machine, server) = (machine(), ReleaseServer::start().await.unwrap());
    publish(&server, "1.2.0");
    let range = plugin(release_source(&server.api_url(), "^1"));
    assert_eq!(words(&machine, &range).await, "1.2.0");
    let text = lock_text(&machine);
    assert!(text.contains("linux-amd64:") && text.contains("by: fetched") && !text.contains("linux-arm64:"), "{text}");
    // Another platform is asked for, and added, where the file may change.
    let mut arm64 = release_source(&server.api_url(), "^1");
    arm64.platform = Some("linux-arm64".parse().unwrap());
    let arm64 = plugin(arm64);
    let locked = other_machine(&machine, LockRule::Locked);
    let error = locked.install(&arm64).await.unwrap_err();
    assert!(matches!(error, InstallError::PlatformNotLocked { .. }), "{error}");
    assert_eq!(words(&machine, &arm64).await, "1.2.0 on arm64");
    assert_eq!(lock_text(&machine).matches("by: fetched").count(), 2);
    server.replace_asset("v1.2.0", &asset_name("1.2.0"), &archive("other"));
    let other = other_machine(&machine, LockRule::Add);
    let error = other.install(&range).await.unwrap_err();
    assert!(matches!(error, InstallError::LockMismatch(_)), "{error}");
    other.assert_empty();
}

/// Shows: plugins.md#the-lock-file "`sums`: a checksum file of the release"
#[tokio::test]
async fn digests_of_a_checksum_file_are_recorded_for_all_platforms() {
    let (machine, server) = (machine(), ReleaseServer::start().await.unwrap());
    let (amd64, arm64) = (archive("one"), archive("two"));
    let names = [asset_of("1.2.0", "linux-amd64"), asset_of("1.2.0", "darwin-arm64")];
    let sums = format!("{}  {}\n{} *{}\n", sha256(&amd64), names[0], sha256(&arm64), names[1]);
    let assets: [(&str, &[u8]); 3] =
        [(&names[0], &amd64), (&names[1], &arm64), ("reef_1.2.0_SHA256SUMS", sums.as_bytes())];
    server.publish(REPOSITORY, "v1.2.0", &assets);
    assert_eq!(words(&machine, &plugin(release_source(&server.api_url(), "^1"))).await, "one");
    let text = lock_text(&machine);
    assert_eq!((text.matches("by: sums").count(), text.contains("darwin-arm64:")), (2, true), "{text}");
    // The file and the asset disagree.
    server.publish(
        REPOSITORY,
        "v1.3.0",
        &[
            (&asset_name("1.3.0"), &amd64),
            ("SHA256SUMS", format!("{}  {}", sha256(b"x"), asset_name("1.3.0")).as_bytes()),
        ],
    );
    let error = machine.install(&plugin(release_source(&server.api_url(), "^1.3"))).await.unwrap_err();
    assert!(matches!(error, InstallError::PublishedMismatch { .. }), "{error}");
    assert_eq!(lock_text(&machine), text);
}

/// Shows: plugins.md#the-lock-file "An entry with digests that are published never becomes `fetched`"
#[tokio::test]
async fn release_without_digests_does_not_follow_one_with_them() {
    let (machine, server) = (machine(), server().await);
    let wants = |wanted: &str| plugin(release_source(&server.api_url(), wanted));
    assert_eq!(words(&machine, &wants("^1")).await, "1.2.0");
    let text = lock_text(&machine);
    let unpublished = ReleaseServer::start().await.unwrap();
    publish(&unpublished, "1.3.0");
    // The same place, whose server has stopped to publish digests.
    let port =
        |server: &ReleaseServer| server.api_url().split(':').nth(2).unwrap().split('/').next().unwrap().to_owned();
    let moved = text.replace(&port(&server), &port(&unpublished));
    let entry = |text: &str| text.lines().find(|line| line.starts_with("  entry")).unwrap().to_owned();
    let lines: String = moved
        .lines()
        .skip_while(|line| !line.starts_with("- "))
        .take_while(|line| !line.starts_with("  entry"))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let moved = moved.replace(&entry(&moved), &format!("  entry: {}", &sha256(lines.as_bytes())[..16]));
    fs::write(machine.path("repo").join(LOCK_FILE), &moved).unwrap();
    let error = machine.install(&plugin(release_source(&unpublished.api_url(), "^1.3"))).await.unwrap_err();
    assert!(matches!(error, InstallError::WeakerEvidence { .. }), "{error}");
    assert_eq!(lock_text(&machine), moved);
}

#[tokio::test]
async fn update_records_the_newest_version() {
    let (machine, server) = (machine(), server().await);
    let source = release_source(&server.api_url(), "^1");
    let range = plugin(source.clone());
    assert_eq!(words(&machine, &range).await, "1.2.0");
    publish(&server, "1.3.0");
    let releases = GithubReleases::new(machine.settings());
    let lock = async |updates: bool, resolved_as: &GithubReleaseSource| {
        let installer = Installer { updates, ..machine.installer() };
        let change = installer.lock(&releases, range.names(), &source, resolved_as).await.unwrap().unwrap();
        (change.before.unwrap().revision().to_owned(), change.after.revision().to_owned(), change.is_change)
    };
    let change = |before: &str, after: &str, is_change| (before.to_owned(), after.to_owned(), is_change);
    assert_eq!(lock(false, &source).await, change("v1.2.0", "v1.2.0", false));
    assert_eq!(lock(true, &source).await, change("v1.2.0", "v1.3.0", true));
    assert_eq!(words(&machine, &range).await, "1.3.0");
    assert_eq!(lock(true, &source).await, change("v1.3.0", "v1.3.0", false));
    let back = release_source(&server.api_url(), "v1.2.0");
    assert_eq!(lock(true, &back).await, change("v1.3.0", "v1.2.0", true));
    // A replaced asset is accepted only if that is asked for.
    server.replace_asset("v1.2.0", &asset_of("1.2.0", "linux-amd64"), &archive("other"));
    let fresh = GithubReleases::new(machine.settings());
    let installer = Installer { updates: true, ..machine.installer() };
    let error = installer.lock(&fresh, range.names(), &source, &back).await.unwrap_err();
    assert!(matches!(&error, InstallError::Replaced { .. }), "{error}");
    let before = lock_text(&machine);
    let installer = Installer { accepts_replaced: true, ..installer };
    assert!(installer.lock(&fresh, range.names(), &source, &back).await.unwrap().unwrap().is_change);
    assert_ne!(lock_text(&machine), before);
    assert_eq!(lock_text(&machine).matches("- source").count(), 1);
}

/// Shows: plugins.md#the-lock-file "`git`: the commit, and the digest of its tree"
#[tokio::test]
async fn commit_of_a_branch_and_of_a_moved_tag_is_kept() {
    let (machine, repository) = (machine(), Repository::new());
    repository.commit("one");
    repository.git(&["tag", "v1.0.0"]);
    let plugins = ["main", "v1.0.0", "^1"].map(|wanted| plugin(git_source(&repository.url(), wanted)));
    for plugin in &plugins {
        assert_eq!(words(&machine, plugin).await, "one");
    }
    let text = lock_text(&machine);
    assert_eq!((text.matches("  commit: ").count(), text.matches("  tree: ").count()), (3, 3), "{text}");
    repository.commit("two");
    repository.git(&["tag", "--force", "v1.0.0"]);
    repository.git(&["tag", "v1.1.0"]);
    let other = other_machine(&machine, LockRule::Locked);
    for plugin in &plugins {
        assert_eq!(words(&machine, plugin).await, "one");
        assert_eq!(words(&other, plugin).await, "one");
    }
    assert_eq!(lock_text(&machine), text);
}

/// Shows: plugins.md#the-lock-file "Two `sc` at once lose neither entry"
#[tokio::test]
async fn concurrent_runs_agree_on_one_version_and_lose_no_entry() {
    let (machine, server) = (machine(), server().await);
    let range = plugin(release_source(&server.api_url(), "^1"));
    let others: Vec<_> = (0..6)
        .map(|number| {
            plugin(GithubReleaseSource {
                asset: Some(asset_of("{version}", "{os}-{arch}")),
                ..release_source(&server.api_url(), &format!("^1.{}", number % 2))
            })
        })
        .collect();
    let of_range = join_all((0..20).map(|_| machine.install(&range)));
    let (of_range, of_others) =
        futures_util::join!(of_range, join_all(others.iter().map(|plugin| machine.install(plugin))));
    for package in of_range.into_iter().chain(of_others) {
        assert_eq!(run(&package.unwrap()).await, "1.2.0");
    }
    assert_eq!(lock_text(&machine).matches("- source").count(), 3);
    let downloads = server.requests().iter().filter(|request| request.path.contains("/assets/")).count();
    assert_eq!(downloads, 1);
}

/// Shows: plugins.md#the-lock-file "a file that a merge has left is refused"
#[tokio::test]
async fn lock_file_that_cannot_be_used_is_refused_and_left_as_it_is() {
    let (machine, server) = (machine(), server().await);
    let range = plugin(release_source(&server.api_url(), "^1"));
    assert_eq!(words(&machine, &range).await, "1.2.0");
    let text = lock_text(&machine);
    for (changed, expected) in [
        (text.replace("version: 1", "version: 9"), "its version is 9, and this sc reads version 1"),
        (text.replace("- source", "<<<<<<< HEAD\n- source"), "line 5 is the mark of a merge that is not resolved"),
        (text.replace("tag: v1.2.0", "tag: v1.3.0"), "at line 5 is not as sc has written it"),
        ("packages: [".to_owned(), "at line"),
    ] {
        let other = Machine { lock_rule: LockRule::Add, ..Machine::new() };
        fs::create_dir_all(other.path("repo/.sc")).unwrap();
        fs::write(other.path("repo").join(LOCK_FILE), &changed).unwrap();
        let error = other.refusal(&range).await;
        assert!(error.starts_with("cannot use ") && error.contains(expected), "{error}");
        assert_eq!(lock_text(&other), changed);
        other.assert_empty();
    }
}

/// Shows: plugins.md#the-lock-file "`--offline` opens no connection for a package"
#[tokio::test]
async fn offline_takes_what_is_on_this_machine_only() {
    let (mut machine, server) = (machine(), server().await);
    machine.is_offline = true;
    let range = plugin(release_source(&server.api_url(), "^1"));
    let error = machine.install(&range).await.unwrap_err();
    assert!(matches!(error, InstallError::Offline), "{error}");
    assert_eq!(server.requests().len(), 0);
    machine.is_offline = false;
    assert_eq!(words(&machine, &range).await, "1.2.0");
    let requests = server.requests().len();
    machine.is_offline = true;
    assert_eq!(words(&machine, &range).await, "1.2.0");
    // It is locked, and not in the cache of another machine.
    let mut other = other_machine(&machine, LockRule::Locked);
    other.is_offline = true;
    let error = other.install(&range).await.unwrap_err();
    assert!(matches!(error, InstallError::Offline), "{error}");
    assert_eq!(server.requests().len(), requests);
}

/// A release may have the digest of one platform only.
#[tokio::test]
async fn entry_with_digests_of_two_origins_is_used_and_copied() {
    let (machine, server) = (machine(), ReleaseServer::start().await.unwrap());
    let (amd64, arm64) = (archive("one"), archive("two"));
    let names = [asset_of("1.2.0", "linux-amd64"), asset_of("1.2.0", "linux-arm64")];
    let sums = format!("{}  {}\n", sha256(&arm64), names[1]);
    let own = format!("{}.sha256", names[1]);
    server.publish(REPOSITORY, "v1.2.0", &[(&names[0], &amd64), (&names[1], &arm64), (&own, sums.as_bytes())]);
    assert_eq!(words(&machine, &plugin(release_source(&server.api_url(), "^1"))).await, "one");
    let text = lock_text(&machine);
    assert!(text.contains("by: sums") && text.contains("by: fetched"), "{text}");
    assert_eq!(words(&machine, &plugin(release_source(&server.api_url(), "~1.2"))).await, "one");
    assert_eq!(lock_text(&machine).matches("- source").count(), 2);
}

#[tokio::test]
async fn plugins_of_one_release_have_an_entry_each() {
    let (machine, server) = (machine(), ReleaseServer::start().await.unwrap());
    server.add_digests();
    publish(&server, "1.2.0");
    let source = release_source(&server.api_url(), "^1");
    assert_eq!(words(&machine, &plugin(source.clone())).await, "1.2.0");
    let lake = tar_gz(&[("pulumi-resource-lake", Entry::File(0o755, &script("lake")))]).unwrap();
    let name = asset_name("1.3.0").replace("reef", "lake");
    server.publish(REPOSITORY, "v1.3.0", &[(&asset_name("1.3.0"), &archive("1.3.0")), (&name, &lake)]);
    let of_lake = PluginConfig::new("lake".parse().unwrap(), PluginSource::GithubRelease(source.clone()));
    assert_eq!(words(&machine, &of_lake).await, "lake");
    assert_eq!(words(&machine, &plugin(source)).await, "1.2.0");
    assert_eq!(lock_text(&machine).matches("- source").count(), 2);
}

/// Shows: plugins.md#the-lock-file "A git repository below the root of the repository stands in it by its path from there"
#[tokio::test]
async fn address_in_the_lock_file_is_that_of_every_machine_and_has_no_token() {
    let machine = machine();
    let key = |url: &str| {
        let source = git_source(url, "main");
        let key = GitRepositories::new(machine.settings()).lock_key(plugin(source.clone()).names(), &source);
        key.unwrap().unwrap().source
    };
    let below = machine.path("repo/plugins/reef");
    for (url, expected) in [
        (format!("file://{}", below.display()), "git ./plugins/reef"),
        (below.display().to_string(), "git ./plugins/reef"),
        ("../reef".to_owned(), "git ../reef"),
        ("https://me:word@git.example/reef.git?access_token=t0ken#x".to_owned(), "git https://git.example/reef.git"),
        ("git@git.example:acme/reef.git".to_owned(), "git git@git.example:acme/reef.git"),
    ] {
        assert_eq!(key(&url), expected);
    }
}

/// Shows: plugins.md#the-lock-file "what was last fetched for the declaration is used, and is not locked"
#[tokio::test]
async fn last_known_package_is_used_and_not_locked_without_its_place() {
    let (mut machine, repository) = (Machine::new(), Repository::new());
    repository.commit("one");
    repository.git(&["tag", "v1.0.0"]);
    let tag = plugin(git_source(&repository.url(), "v1.0.0"));
    assert_eq!(words(&machine, &tag).await, "one");
    drop(repository);
    machine.lock_rule = LockRule::Add;
    assert_eq!(words(&machine, &tag).await, "one");
    let warnings = machine.warnings();
    assert!(warnings.last().unwrap().contains("is not added to .sc/sc.lock"), "{warnings:?}");
    assert_eq!(lock_text(&machine), "");
}
