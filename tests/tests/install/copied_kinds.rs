//! Tests of copies of other kinds than releases: files of commits, and Terraform providers.

use std::fs;
use std::path::{Path, PathBuf};

use bridge::error::chain;
use bridge::install::{GitRepositories, LockRule, PackageCopies, PackageSource, TerraformProviders};
use bridge::plugin::{PluginConfig, PluginName, PluginNames, PluginSource, TerraformProviderSource};
use tests::terraform_registry::TerraformRegistry;

use super::copies::{machine_with, serve};
use super::git::{Repository, serve_over_http};
use super::terraform::{install as install_provider, provider_source, signed_registry};
use super::{Machine, git_source, plugin, run, run_program};

/// Returns a machine with the lock file of another one, which must not change.
fn with_lock_of(machine: &Machine, copies: PackageCopies, is_offline: bool) -> Machine {
    let mut other = machine_with(copies);
    fs::create_dir_all(other.path("repo/.sc")).unwrap();
    fs::copy(machine.path("repo/.sc/sc.lock"), other.path("repo/.sc/sc.lock")).unwrap();
    (other.lock_rule, other.is_offline) = (LockRule::Locked, is_offline);
    other
}

/// Returns the only file below a folder with an ending.
fn only_file(folder: &Path, ending: &str) -> PathBuf {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for member in fs::read_dir(folder).unwrap() {
            let path = member.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Copies what the lock file of a machine has of a git repository, and returns whether the copy was there.
async fn mirror_commit(machine: &Machine, plugin: &PluginConfig, folder: &Path) -> bool {
    let PluginSource::Git(source) = &plugin.source else { panic!("another source") };
    let repositories = GitRepositories::new(machine.settings());
    let key = repositories.lock_key(plugin.names(), source).unwrap().unwrap();
    let locked = machine.installer().lock.find(&key).unwrap().unwrap();
    let copied = repositories.mirror(plugin.names(), source, locked, &[], folder, &machine.events).await;
    let copied = copied.unwrap().unwrap();
    assert_eq!(copied.len(), 1);
    copied[0].is_kept
}

/// Shows: plugins.md#folders-of-plugins-and-mirrors "The files of a commit are compared with the digest of the tree that is locked"
#[tokio::test]
async fn files_of_a_commit_are_taken_from_a_folder_else_from_a_mirror() {
    let repository = Repository::new();
    repository.commit("one");
    repository.git(&["tag", "v1.0.0"]);
    let root = tempfile::tempdir().unwrap();
    let bare = root.path().join("acme/reef.git");
    repository.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let server = serve_over_http(root.path().to_owned(), None).await;
    let reef = |wanted: &str| plugin(git_source(&format!("{}/acme/reef.git", server.url()), wanted));
    let first = machine_with(PackageCopies::default());
    assert_eq!(run(&first.install(&reef("v1.0.0")).await.unwrap()).await, "one");
    let folder = first.path("copies");
    assert!(!mirror_commit(&first, &reef("v1.0.0"), &folder).await);
    assert!(mirror_commit(&first, &reef("v1.0.0"), &folder).await, "it is not written again");
    let (asked, files) = (server.requests().len(), serve(&folder).await);
    for (copies, is_offline) in [
        (PackageCopies { folders: vec![folder.clone()], mirror: None }, true),
        (PackageCopies { folders: Vec::new(), mirror: Some(files.url()) }, false),
    ] {
        let machine = with_lock_of(&first, copies.clone(), is_offline);
        assert_eq!(run(&machine.install(&reef("v1.0.0")).await.unwrap()).await, "one");
        // Without a lock file, the index says which commit a range is.
        let machine = machine_with(copies.clone());
        assert_eq!(run(&machine.install(&reef("^1")).await.unwrap()).await, "one");
        assert!(fs::read_to_string(machine.path("repo/.sc/sc.lock")).unwrap().contains("tag: v1.0.0"));
    }
    assert_eq!(server.requests().len(), asked, "the repository was not asked");
    // The copy has other files.
    let archive = only_file(&folder, ".tar.gz");
    let other = Repository::new();
    other.commit("two");
    other.git(&["archive", "--format=tar.gz", "--output", archive.to_str().unwrap(), "HEAD"]);
    let copies = PackageCopies { folders: vec![folder.clone()], mirror: None };
    let machine = with_lock_of(&first, copies, true);
    let refused = machine.refusal(&reef("v1.0.0")).await;
    assert!(refused.starts_with("what ") && refused.contains("cannot be used: "), "{refused}");
    machine.assert_empty();
    assert!(!mirror_commit(&first, &reef("v1.0.0"), &folder).await, "a damaged copy is replaced");
}

/// Copies what the lock file of a machine has of a Terraform provider, and returns the names of the files.
async fn mirror_provider(machine: &Machine, source: &TerraformProviderSource, folder: &Path) -> Vec<String> {
    let name: PluginName = "reef".parse().unwrap();
    let names = PluginNames { plugin: &name, package: &name, accepts_only_program: false };
    let providers = TerraformProviders::new(machine.settings());
    let key = providers.lock_key(names, source).unwrap().unwrap();
    let locked = machine.installer().lock.find(&key).unwrap().unwrap();
    let copied = providers.mirror(names, source, locked, &[], folder, &machine.events).await.unwrap().unwrap();
    copied.iter().map(|asset| asset.path.strip_prefix(folder).unwrap().display().to_string()).collect()
}

async fn words(machine: &Machine, source: &TerraformProviderSource) -> String {
    run_program(install_provider(machine, source).await.unwrap().program(), &[]).await
}

/// Shows: plugins.md#terraform-providers "A provider is taken from [folders of plugins and mirrors](#folders-of-plugins-and-mirrors) first"
#[tokio::test]
async fn terraform_provider_is_taken_from_a_folder_else_from_a_mirror() {
    let (registry, _) = signed_registry().await;
    let (first, source) = (machine_with(PackageCopies::default()), provider_source(&registry, "~> 1.1"));
    assert_eq!(words(&first, &source).await, "1.2.0");
    let folder = first.path("copies");
    let place = "tf.example/acme/reef/1.2.0/terraform-provider-reef_1.2.0_";
    let names = [format!("{place}linux_amd64.zip"), format!("{place}darwin_arm64.zip")];
    let mut copied = mirror_provider(&first, &source, &folder).await;
    copied.sort_by_key(|name| !name.contains("linux"));
    assert_eq!(copied, names, "for all platforms that are locked");
    let (asked, files) = (registry.requests().len(), serve(&folder).await);
    for (copies, is_offline) in [
        (PackageCopies { folders: vec![folder.clone()], mirror: None }, true),
        (PackageCopies { folders: Vec::new(), mirror: Some(files.url()) }, false),
    ] {
        let machine = with_lock_of(&first, copies.clone(), is_offline);
        assert_eq!(words(&machine, &source).await, "1.2.0");
        // Without a lock file, the index counts, and the digest is the word of the copy.
        let machine = Machine { is_offline, ..machine_with(copies) };
        assert_eq!(words(&machine, &source).await, "1.2.0");
        let lock = fs::read_to_string(machine.path("repo/.sc/sc.lock")).unwrap();
        assert!(lock.contains("by: fetched") && !lock.contains("signer"), "{lock}");
    }
    assert_eq!(registry.requests().len(), asked, "the registry was not asked");
    assert_signed_is_not_replaced(&registry, &first, &folder).await;
    fs::copy(folder.join(&names[1]), folder.join(&names[0])).unwrap();
    let machine = with_lock_of(&first, PackageCopies { folders: vec![folder.clone()], mirror: None }, true);
    let refused = chain(&install_provider(&machine, &source).await.unwrap_err());
    assert!(refused.starts_with("what ") && refused.contains("cannot be used: "), "{refused}");
}

/// A version of a copy does not take the place of one that is signed.
async fn assert_signed_is_not_replaced(registry: &TerraformRegistry, first: &Machine, folder: &Path) {
    let copies = PackageCopies { folders: vec![folder.to_owned()], mirror: None };
    let mut machine = with_lock_of(first, copies, true);
    machine.lock_rule = LockRule::Add;
    let lock = fs::read_to_string(machine.path("repo/.sc/sc.lock")).unwrap();
    assert!(lock.contains("by: signed"), "{lock}");
    assert_eq!(words(&machine, &provider_source(registry, "1.2.0")).await, "1.2.0");
    let lock = fs::read_to_string(machine.path("repo/.sc/sc.lock")).unwrap();
    assert!(lock.contains("by: signed") && !lock.contains("by: fetched"), "{lock}");
}
