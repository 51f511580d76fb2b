//! Promises of every source of packages: the same checks for releases, git repositories, Terraform providers and local packages.

use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bridge::install::{
    Decision, GitRepositories, GithubReleases, InstallError, LocalPackages, PackageSource, TerraformProviderFolder,
    TerraformProviders, Verification, VerifiedPackage,
};
use bridge::plugin::{
    DigestOrigin, LocalSource, PluginName, PluginNames, ResolvedCommit, ResolvedPackage, ResolvedRelease, Sha256Digest,
};
use bridge::process::Spawner;
use tests::releases::{Entry, ReleaseServer, tar_gz};
use tests::terraform_registry::{AuthorKey, TerraformRegistry};

use super::git::Repository;
use super::terraform::{provider_source, publish_provider};
use super::{Machine, asset_name, git_source, release_source, run_program, script, write};

/// Source with a place whose content the test changes.
struct Case<S: PackageSource> {
    source: S,
    declared: S::Declared,
    /// Publishes a later version of the plugin, which prints a text.
    publish: Box<dyn Fn(&str)>,
    /// Removes the place.
    close: Box<dyn FnOnce()>,
    /// True if the files are used where they are.
    is_in_place: bool,
}

/// Package whose program prints a text.
trait Program {
    /// Returns the path of the program.
    fn program(&self) -> &Path;
}

impl Program for VerifiedPackage {
    fn program(&self) -> &Path {
        VerifiedPackage::program(self)
    }
}

impl Program for TerraformProviderFolder {
    fn program(&self) -> &Path {
        TerraformProviderFolder::program(self)
    }
}

async fn words(package: &impl Program) -> String {
    run_program(package.program(), &[]).await
}

async fn release_case(machine: &Machine) -> Case<GithubReleases> {
    let server = Arc::new(ReleaseServer::start().await.unwrap());
    server.add_digests();
    let declared = release_source(&server.api_url(), "^1");
    let (place, count) = (Arc::clone(&server), std::cell::Cell::new(0));
    let publish = move |words: &str| {
        count.set(count.get() + 1);
        let version = format!("1.{}.0", count.get());
        let archive = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script(words)))]).unwrap();
        place.publish("acme/pulumi-reef", &format!("v{version}"), &[(&asset_name(&version), &archive)]);
    };
    let close = move || server.override_response("/", tests::http::Response::new(404, "{}"));
    let source = GithubReleases::new(machine.settings());
    Case { source, declared, publish: Box::new(publish), close: Box::new(close), is_in_place: false }
}

fn git_case(machine: &Machine) -> Case<GitRepositories> {
    let repository = Arc::new(Repository::new());
    let declared = git_source(&repository.url(), "main");
    let place = Arc::clone(&repository);
    let publish = move |words: &str| drop(place.commit(words));
    let close = move || fs::rename(repository.path(), repository.path().with_extension("gone")).unwrap();
    let source = GitRepositories::new(machine.settings());
    Case { source, declared, publish: Box::new(publish), close: Box::new(close), is_in_place: false }
}

fn local_case(machine: &Machine) -> Case<LocalPackages> {
    let program = machine.path("repo/pulumi-resource-reef");
    let publish = move |words: &str| write(&program, &script(words), 0o755);
    let settings = machine.settings();
    let source = LocalPackages {
        root: settings.root,
        cache: settings.folder,
        environment: settings.environment,
        spawner: Spawner::unsupervised(),
        verification: Verification::default(),
        is_offline: false,
    };
    let declared = LocalSource::new("pulumi-resource-reef");
    Case { source, declared, publish: Box::new(publish), close: Box::new(|| ()), is_in_place: true }
}

async fn terraform_case(machine: &Machine) -> Case<TerraformProviders> {
    let registry = Arc::new(TerraformRegistry::start().await.unwrap());
    registry.sign_with(Some(&AuthorKey::generate().unwrap())).unwrap();
    let declared = provider_source(&registry, "~> 1.0");
    let (place, count) = (Arc::clone(&registry), std::cell::Cell::new(0));
    let publish = move |words: &str| {
        count.set(count.get() + 1);
        publish_provider(&place, &format!("1.{}.0", count.get()), words);
    };
    let close = move || registry.override_response("/", tests::http::Response::new(404, "{}"));
    let source = TerraformProviders::new(machine.settings());
    Case { source, declared, publish: Box::new(publish), close: Box::new(close), is_in_place: false }
}

/// Returns what was decided with a digest that nothing has.
fn with_other_digest(package: &ResolvedPackage) -> ResolvedPackage {
    let other = Sha256Digest::of("other");
    match package.clone() {
        ResolvedPackage::Local => ResolvedPackage::Local,
        ResolvedPackage::Commit(commit) => ResolvedPackage::Commit(ResolvedCommit { tree: Some(other), ..commit }),
        ResolvedPackage::Release(mut release) => {
            release.assets.values_mut().for_each(|asset| asset.digest = Some((other, DigestOrigin::Published)));
            ResolvedPackage::Release(release)
        }
    }
}

async fn check<S: PackageSource>(machine: &Machine, case: Case<S>)
where
    S::Declared: Debug,
    S::Package: Program + Debug,
{
    let Case { source, declared, publish, close, is_in_place } = case;
    let name: PluginName = "reef".parse().unwrap();
    let names = PluginNames { plugin: &name, package: &name, accepts_only_program: false };
    let fetch = async |package: &ResolvedPackage| {
        let decision = Decision { package: package.clone(), build_refusal: None, is_locked: true };
        source.fetch(names, &declared, decision, &machine.events).await
    };
    publish("one");
    let is_known = source.last_resolved(names, &declared).await.unwrap().is_some();
    assert_eq!(is_known, is_in_place, "{declared:?}");

    // Resolved twice, it is the same.
    let first = source.resolve(names, &declared, &machine.events).await.unwrap();
    assert_eq!(source.resolve(names, &declared, &machine.events).await.unwrap(), first);

    // A digest that nothing has is refused, and leaves nothing.
    if !is_in_place {
        let error = fetch(&with_other_digest(&first)).await.unwrap_err();
        assert!(matches!(&error, InstallError::LockMismatch(_)), "{error}");
        machine.assert_empty();
    }

    // What is fetched is complete, and fetched again without the place.
    let (package, found) = fetch(&first).await.unwrap();
    assert_eq!(words(&package).await, "one");
    assert!(source.is_complete(names, &declared, &found), "{found:?}");
    assert_eq!(source.complete(names, &declared, found.clone(), &machine.events).await.unwrap(), found);
    let last = source.last_resolved(names, &declared).await.unwrap().unwrap();
    assert_eq!(last.package.revision(), found.revision());
    assert_eq!(source.lock_key(names, &declared).unwrap().is_some(), !is_in_place);

    // The place moves on: a new resolution follows, and the decision does not.
    publish("two");
    let second = source.resolve(names, &declared, &machine.events).await.unwrap();
    assert_eq!(second == first, is_in_place);
    assert_eq!(words(&fetch(&second).await.unwrap().0).await, "two");
    let expected = if is_in_place { "two" } else { "one" };
    assert_eq!(words(&fetch(&found).await.unwrap().0).await, expected);
    close();
    assert_eq!(words(&fetch(&found).await.unwrap().0).await, expected);

    // A decision about another kind of source is refused.
    let other = match found {
        ResolvedPackage::Release(_) => {
            ResolvedPackage::Commit(ResolvedCommit { tag: None, commit: String::new(), tree: None })
        }
        _ => ResolvedPackage::Release(ResolvedRelease::default()),
    };
    assert_eq!(matches!(fetch(&other).await, Err(InstallError::OtherKind)), !is_in_place);
}

#[tokio::test]
async fn releases_comply() {
    let machine = Machine::new();
    let case = release_case(&machine).await;
    check(&machine, case).await;
}

#[tokio::test]
async fn terraform_providers_comply() {
    let machine = Machine::new();
    let case = terraform_case(&machine).await;
    check(&machine, case).await;
}

#[tokio::test]
async fn git_repositories_comply() {
    let machine = Machine::new();
    check(&machine, git_case(&machine)).await;
}

#[tokio::test]
async fn local_packages_comply() {
    let machine = Machine::new();
    check(&machine, local_case(&machine)).await;
}
