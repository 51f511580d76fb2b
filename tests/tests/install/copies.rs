//! Tests of folders of plugins and mirrors: asked before the place of a plugin, held to the lock file, and needed by `installed`.

use std::fs;
use std::path::Path;

use bridge::install::{GithubReleases, InstallError, LockRule, PackageCopies, PackageSource};
use bridge::plugin::{InstalledSource, PluginConfig, PluginSource, WantedVersion};
use tests::http::{HttpServer, Request, Response};
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};

use super::{Machine, asset_name, checksum, plugin, release_source, run, script, write};

fn archive(words: &str) -> Vec<u8> {
    tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script(words)))]).unwrap()
}

/// Returns the folder of copies of a server of a test.
fn place(server: &ReleaseServer) -> String {
    format!("{}/acme/pulumi-reef", server.api_url().split_once("://").unwrap().1)
}

/// Machine without a way to the place of the plugin, except for its address.
pub(super) fn machine_with(copies: PackageCopies) -> Machine {
    Machine { copies, lock_rule: LockRule::Add, ..Machine::new() }
}

/// Serves the files of a folder.
pub(super) async fn serve(folder: &Path) -> HttpServer {
    let folder = folder.to_owned();
    let respond = move |request: Request| {
        let path = folder.join(request.path.trim_start_matches('/').replace("%3A", ":"));
        std::future::ready(fs::read(path).map_or_else(|_| Response::new(404, "none"), |file| Response::new(200, file)))
    };
    HttpServer::start(respond).await.unwrap()
}

async fn locked_server(tags: &[&str]) -> (ReleaseServer, Machine) {
    let server = ReleaseServer::start().await.unwrap();
    server.add_digests();
    for tag in tags {
        server.publish("acme/pulumi-reef", tag, &[(&asset_name(&tag[1..]), &archive(tag))]);
    }
    (server, machine_with(PackageCopies::default()))
}

/// Copies what the lock file of a machine has into a folder, as `sc plugin mirror` does.
async fn mirror(machine: &Machine, plugin: &PluginConfig, folder: &Path) -> Vec<(String, bool)> {
    let PluginSource::GithubRelease(source) = &plugin.source else { panic!("another source") };
    let releases = GithubReleases::new(machine.settings());
    let key = releases.lock_key(plugin.names(), source).unwrap().unwrap();
    let locked = machine.installer().lock.find(&key).unwrap().unwrap();
    let copied = releases.mirror(plugin.names(), source, locked, &[], folder, &machine.events).await.unwrap().unwrap();
    let name = |path: &Path| path.strip_prefix(folder).unwrap().display().to_string();
    copied.iter().map(|asset| (name(&asset.path), asset.is_kept)).collect()
}

/// Shows: plugins.md#folders-of-plugins-and-mirrors "What they have is held to the lock file"
#[tokio::test]
async fn locked_package_is_taken_from_a_folder_else_from_a_mirror() {
    let (server, first) = locked_server(&["v1.0.0"]).await;
    let reef = plugin(release_source(&server.api_url(), "v1.0.0"));
    first.install(&reef).await.unwrap();
    let folder = first.path("copies");
    let file = format!("{}/v1.0.0/{}", place(&server), asset_name("1.0.0"));
    assert_eq!(mirror(&first, &reef, &folder).await, [(file.clone(), false)]);
    assert_eq!(mirror(&first, &reef, &folder).await, [(file.clone(), true)], "what is there is not downloaded again");
    server.remove_releases();
    let (requests, static_server) = (server.requests().len(), serve(&folder).await);
    for (copies, is_offline) in [
        (PackageCopies { folders: vec!["/nowhere".into(), folder.clone()], mirror: None }, true),
        (PackageCopies { folders: Vec::new(), mirror: Some(static_server.url()) }, false),
    ] {
        let mut machine = machine_with(copies);
        fs::create_dir_all(machine.path("repo/.sc")).unwrap();
        fs::copy(first.path("repo/.sc/sc.lock"), machine.path("repo/.sc/sc.lock")).unwrap();
        (machine.lock_rule, machine.is_offline) = (LockRule::Locked, is_offline);
        let package = machine.install(&reef).await.unwrap();
        assert_eq!(run(&package).await, "v1.0.0");
        // The copy has other bytes.
        let machine = Machine { copies: machine.copies.clone(), lock_rule: LockRule::Locked, ..Machine::new() };
        fs::create_dir_all(machine.path("repo/.sc")).unwrap();
        fs::copy(first.path("repo/.sc/sc.lock"), machine.path("repo/.sc/sc.lock")).unwrap();
        let content = fs::read(folder.join(&file)).unwrap();
        let mut other = archive("v6.6.6");
        other.resize(content.len(), 0);
        fs::write(folder.join(&file), other).unwrap();
        let refused = machine.refusal(&reef).await;
        assert!(refused.starts_with("what ") && refused.contains("cannot be used: "), "{refused}");
        assert!(refused.contains("checksum mismatch") || refused.contains("lock"), "{refused}");
        machine.assert_empty();
        fs::write(folder.join(&file), content).unwrap();
    }
    assert_eq!(server.requests().len(), requests, "the place was not asked");
}

/// Shows: plugins.md#folders-of-plugins-and-mirrors "Ranges and `latest` are resolved by it"
#[tokio::test]
async fn range_is_resolved_by_the_index_of_a_mirror() {
    let (server, first) = locked_server(&["v1.0.0", "v1.1.0", "v2.0.0"]).await;
    let folder = first.path("copies");
    for tag in ["v1.0.0", "v1.1.0", "v2.0.0"] {
        let reef = plugin(release_source(&server.api_url(), tag));
        first.install(&reef).await.unwrap();
        mirror(&first, &reef, &folder).await;
    }
    server.remove_releases();
    let static_server = serve(&folder).await;
    let requests = server.requests().len();
    for copies in [
        PackageCopies { folders: vec![folder.clone()], mirror: None },
        PackageCopies { folders: Vec::new(), mirror: Some(static_server.url()) },
    ] {
        for (wanted, expected) in [("^1", "v1.1.0"), ("latest", "v2.0.0"), ("~1.0", "v1.0.0"), ("v1.1.0", "v1.1.0")] {
            let machine = machine_with(copies.clone());
            let package = machine.install(&plugin(release_source(&server.api_url(), wanted))).await.unwrap();
            assert_eq!(run(&package).await, expected, "{wanted} {copies:?}");
            let lock = fs::read_to_string(machine.path("repo/.sc/sc.lock")).unwrap();
            assert!(lock.contains(&format!("tag: {expected}")) && lock.contains("by: fetched"), "{lock}");
        }
    }
    assert_eq!(server.requests().len(), requests);
    // What nobody has is asked of the place.
    let machine = machine_with(PackageCopies { folders: vec![folder], mirror: Some(static_server.url()) });
    machine.install(&plugin(release_source(&server.api_url(), "^3"))).await.unwrap_err();
    assert!(server.requests().len() > requests);
}

/// Shows: plugins.md#folders-of-plugins-and-mirrors "without an index, it has what is locked or written out"
#[tokio::test]
async fn mirror_without_an_index_has_what_is_written_out() {
    let (server, _) = locked_server(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join(place(&server)).join("v1.0.0").join(asset_name("1.0.0")), &archive("mirrored"), 0o644);
    let static_server = serve(folder.path()).await;
    let machine = machine_with(PackageCopies { folders: Vec::new(), mirror: Some(static_server.url()) });
    let package = machine.install(&plugin(release_source(&server.api_url(), "v1.0.0"))).await.unwrap();
    assert_eq!(run(&package).await, "mirrored");
    assert_eq!(server.requests().len(), 0);
    write(&folder.path().join(place(&server)).join("index.json"), b"<html>", 0o644);
    let machine = machine_with(PackageCopies { folders: Vec::new(), mirror: Some(static_server.url()) });
    let refused = machine.refusal(&plugin(release_source(&server.api_url(), "^1"))).await;
    assert!(refused.contains("is not an index of plugins"), "{refused}");
}

fn installed(path: &str, version: Option<&str>) -> PluginConfig {
    let version = version.map(|version| WantedVersion::of_release(version).unwrap());
    let source = InstalledSource { path: path.into(), version, checksum: None };
    PluginConfig::new("reef".parse().unwrap(), PluginSource::Installed(source))
}

/// Shows: plugins.md#installed "the highest version that fits in the first folder that has one"
#[tokio::test]
async fn installed_plugin_is_found_in_each_form() {
    let mut machine = Machine::new();
    machine.is_offline = true;
    let (first, second) = (machine.path("first"), machine.path("second"));
    machine.copies.folders = vec![first.clone(), second.clone()];
    write(&first.join("acme/reef/1.0.0/pulumi-resource-reef"), &script("1.0.0"), 0o755);
    write(&first.join("acme/reef/1.2.0/linux_amd64/plugin"), &script("1.2.0"), 0o755);
    write(&first.join("acme/reef/2.0.0-rc.1/plugin"), &script("2.0.0-rc.1"), 0o755);
    write(&first.join("providers/git.example/acme/reef/v1.5.0/plugin"), &script("1.5.0"), 0o755);
    write(&second.join("acme/reef/v3.0.0").join(asset_name("3.0.0")), &archive("3.0.0"), 0o644);
    write(&machine.path("pulumi/resource-reef-v4.0.0/pulumi-resource-reef"), &script("4.0.0"), 0o755);
    for (path, wanted, expected) in [
        ("acme/reef", None, "1.2.0"),
        ("acme/reef", Some("^1"), "1.2.0"),
        ("acme/reef", Some("1.0.0"), "1.0.0"),
        ("acme/reef", Some("v1.0.0"), "1.0.0"),
        ("acme/reef", Some("^2.0.0-rc.0"), "2.0.0-rc.1"),
        ("acme/reef", Some("^3"), "3.0.0"),
        ("acme/reef", Some("^4"), "4.0.0"),
        ("acme/pulumi-reef", None, "4.0.0"),
        ("git.example/acme/reef", None, "1.5.0"),
    ] {
        let package = machine.install(&installed(path, wanted)).await.unwrap();
        assert_eq!(run(&package).await, expected, "{path} {wanted:?}");
        assert_eq!(package.version().unwrap().to_string(), expected);
    }
    let refused = machine.refusal(&installed("acme/reef", Some("^5"))).await;
    assert!(refused.starts_with("acme/reef ^5 is not installed: searched in "), "{refused}");
}

/// Shows: plugins.md#installed "A folder that another account can change is refused"
#[tokio::test]
async fn installed_plugin_is_pinned_and_must_be_safe() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut machine = Machine::new();
    machine.copies.folders = vec![machine.path("plugins")];
    let program = machine.path("plugins/acme/reef/1.0.0/pulumi-resource-reef");
    write(&program, &script("1.0.0"), 0o755);
    let pinned = |digest: &str| {
        let source = InstalledSource { path: "acme/reef".into(), version: None, checksum: checksum(digest) };
        PluginConfig::new("reef".parse().unwrap(), PluginSource::Installed(source))
    };
    let digest = sha256(&script("1.0.0"));
    machine.install(&pinned(&digest)).await.unwrap();
    let refused = machine.refusal(&pinned(&"0".repeat(64))).await;
    assert!(refused.contains("checksum mismatch"), "{refused}");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).unwrap();
    let error = machine.install(&installed("acme/reef", None)).await.unwrap_err();
    assert!(matches!(error, InstallError::Trust(_)), "{error}");
}
