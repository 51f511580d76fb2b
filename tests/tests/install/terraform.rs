//! Tests of Terraform providers: the version that is resolved, what is locked and by whom it is signed, and where it is placed.

use std::fs;

use bridge::error::{Hint as _, chain};
use bridge::install::{
    FetchEvent, InstallError, Installer, LOCK_FILE, LockRule, TerraformError, TerraformProviderFolder,
    TerraformProviders,
};
use bridge::plugin::{PluginName, PluginNames, TerraformProviderSource, WantedVersion};
use bridge::process::{HostEnvironment, Spawner};
use bridge::source::Credentials;
use tests::releases::sha256;
use tests::terraform_registry::{AuthorKey, TerraformRegistry, provider_archive};

use super::{Machine, run_program, script};

/// Provider of the tests, in a registry on this machine.
pub(crate) const PROVIDER: &str = "acme/reef";

/// Returns the source of the provider for a constraint.
pub(crate) fn provider_source(registry: &TerraformRegistry, wanted: &str) -> TerraformProviderSource {
    let provider = format!("tf.example/{PROVIDER}").parse().unwrap();
    TerraformProviderSource {
        platform: Some("linux-amd64".parse().unwrap()),
        registry_url: Some(registry.url()),
        ..TerraformProviderSource::new(provider, WantedVersion::of_terraform(wanted).unwrap())
    }
}

fn archive(version: &str, words: &str) -> Vec<u8> {
    let program = format!("terraform-provider-reef_v{version}");
    provider_archive(&[("LICENSE", 0o644, b"free"), (&program, 0o755, &script(words))]).unwrap()
}

/// Publishes a version of the provider, whose program prints a text, for two platforms.
pub(crate) fn publish_provider(registry: &TerraformRegistry, version: &str, words: &str) {
    let (amd64, arm64) = (archive(version, words), archive(version, &format!("{words} on arm64")));
    registry.publish(PROVIDER, version, &[("linux_amd64", &amd64), ("darwin_arm64", &arm64)]);
}

/// Returns a registry with some versions, all signed by a key.
pub(crate) async fn signed_registry() -> (TerraformRegistry, AuthorKey) {
    let (registry, key) = (TerraformRegistry::start().await.unwrap(), AuthorKey::generate().unwrap());
    registry.sign_with(Some(&key)).unwrap();
    for version in ["0.9.0", "1.1.0", "1.2.0", "2.0.0-rc.1"] {
        publish_provider(&registry, version, version);
    }
    (registry, key)
}

/// Installs the provider for the plugin `reef`.
pub(crate) async fn install(
    machine: &Machine,
    source: &TerraformProviderSource,
) -> Result<TerraformProviderFolder, InstallError> {
    let name: PluginName = "reef".parse().unwrap();
    let names = PluginNames { plugin: &name, package: &name, accepts_only_program: false };
    machine.installer().install(&TerraformProviders::new(machine.settings()), names, source).await
}

/// Resolves the provider again, as `sc plugin update` does.
async fn update(
    machine: &Machine,
    source: &TerraformProviderSource,
    accepts_replaced: bool,
) -> Result<String, InstallError> {
    let name: PluginName = "reef".parse().unwrap();
    let names = PluginNames { plugin: &name, package: &name, accepts_only_program: false };
    let installer = Installer { updates: true, accepts_replaced, ..machine.installer() };
    let providers = TerraformProviders::new(machine.settings());
    let change = installer.lock(&providers, names, source, source).await?.unwrap();
    Ok(change.after.revision().to_owned())
}

async fn words(machine: &Machine, source: &TerraformProviderSource) -> String {
    run_program(install(machine, source).await.unwrap().program(), &[]).await
}

pub(crate) fn locking() -> Machine {
    Machine { lock_rule: LockRule::Add, ..Machine::new() }
}

fn lock_text(machine: &Machine) -> String {
    fs::read_to_string(machine.path("repo").join(LOCK_FILE)).unwrap_or_default()
}

/// Returns a machine with the lock file of another one, and an empty cache.
fn other_machine(machine: &Machine) -> Machine {
    let other = Machine { lock_rule: LockRule::Locked, ..Machine::new() };
    fs::create_dir_all(other.path("repo/.sc")).unwrap();
    fs::write(other.path("repo").join(LOCK_FILE), lock_text(machine)).unwrap();
    other
}

fn paths(registry: &TerraformRegistry) -> Vec<String> {
    registry.requests().into_iter().map(|request| request.path).collect()
}

/// Shows: plugins.md#terraform-providers "the highest version that is not a pre-release"
#[tokio::test]
async fn version_is_the_highest_that_is_wanted() {
    let (registry, _) = signed_registry().await;
    for (wanted, expected) in [
        ("", "1.2.0"),
        ("1.1.0", "1.1.0"),
        ("1.1", "1.1.0"),
        ("~> 1.0", "1.2.0"),
        ("< 1.2", "1.1.0"),
        ("<1.0", "0.9.0"),
        (">= 2.0.0-rc.1", "2.0.0-rc.1"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
    ] {
        assert_eq!(words(&Machine::new(), &provider_source(&registry, wanted)).await, expected, "{wanted}");
    }
    let machine = Machine::new();
    let error = install(&machine, &provider_source(&registry, "~> 3.0")).await.unwrap_err();
    let expected =
        r#"tf.example/acme/reef at 127.0.0.1 has no release for version "~> 3.0": the highest version is 2.0.0-rc.1"#;
    assert_eq!(error.to_string(), expected);
    machine.assert_empty();
}

#[tokio::test]
async fn version_without_the_platform_is_passed_over_and_told() {
    let (registry, _) = signed_registry().await;
    registry.publish(PROVIDER, "1.3.0", &[("darwin_arm64", &archive("1.3.0", "x"))]);
    let machine = Machine::new();
    assert_eq!(words(&machine, &provider_source(&registry, "")).await, "1.2.0");
    let note = "1.3.0 of tf.example/acme/reef is passed over: it has no archive for linux-amd64";
    assert!(machine.take_events().contains(&FetchEvent::Note(note.to_owned())));
    let error = install(&machine, &provider_source(&registry, "1.3.0")).await.unwrap_err();
    assert!(error.to_string().ends_with("it has no archive for linux-amd64"), "{error}");
}

/// Shows: plugins.md#terraform-providers "with the digests of all platforms and the fingerprint of the key"
#[tokio::test]
async fn lock_file_has_all_platforms_and_the_signer() {
    let ((registry, key), machine) = (signed_registry().await, locking());
    let source = provider_source(&registry, "~> 1.0");
    assert_eq!(words(&machine, &source).await, "1.2.0");
    let (amd64, arm64) = (sha256(&archive("1.2.0", "1.2.0")), sha256(&archive("1.2.0", "1.2.0 on arm64")));
    let lines: Vec<String> = lock_text(&machine).lines().skip(4).map(str::to_owned).collect();
    let asset = |platform: &str, digest: &str| {
        let file = format!("terraform-provider-reef_1.2.0_{}.zip", platform.replace('-', "_"));
        format!("    {platform}: {{ asset: {file}, sha256: {digest}, by: signed }}")
    };
    assert_eq!(
        lines[..lines.len() - 1],
        [
            "- source: terraform tf.example/acme/reef".to_owned(),
            "  wanted: \"~> 1.0\"".to_owned(),
            "  tag: 1.2.0".to_owned(),
            format!("  signer: {}", key.fingerprint()),
            "  platforms:".to_owned(),
            asset("linux-amd64", &amd64),
            asset("darwin-arm64", &arm64),
        ]
    );
    // One request for the checksums of all platforms, and one for the archive of this one.
    let files: Vec<String> = paths(&registry).into_iter().filter(|path| path.starts_with("/files/")).collect();
    let folder = "/files/acme/reef/1.2.0/";
    let expected = ["SHA256SUMS", "SHA256SUMS.sig", "terraform-provider-reef_1.2.0_linux_amd64.zip"];
    assert_eq!(files, expected.map(|file| format!("{folder}{file}")));
    publish_provider(&registry, "1.3.0", "1.3.0");
    assert_eq!(words(&machine, &source).await, "1.2.0");
}

/// Shows: plugins.md#the-lock-file "What is locked and in the cache needs no network"
#[tokio::test]
async fn warm_cache_asks_nobody_and_another_machine_only_for_the_archive() {
    let ((registry, _), mut machine) = (signed_registry().await, locking());
    let source = provider_source(&registry, "~> 1.0");
    assert_eq!(words(&machine, &source).await, "1.2.0");
    let before = registry.requests().len();
    let other = other_machine(&machine);
    assert_eq!(words(&other, &source).await, "1.2.0");
    assert_eq!(
        paths(&registry)[before..],
        [
            "/.well-known/terraform.json",
            "/v1/providers/acme/reef/1.2.0/download/linux/amd64",
            "/files/acme/reef/1.2.0/terraform-provider-reef_1.2.0_linux_amd64.zip",
        ]
    );
    machine.is_offline = true;
    drop(registry);
    assert_eq!(words(&machine, &source).await, "1.2.0");
    let empty = Machine { is_offline: true, ..other_machine(&machine) };
    let error = install(&empty, &source).await.unwrap_err();
    assert!(matches!(error, InstallError::Offline), "{error}");
}

#[tokio::test]
async fn provider_is_placed_where_the_bridge_looks() {
    let ((registry, _), machine) = (signed_registry().await, locking());
    let provider = install(&machine, &provider_source(&registry, "1.2.0")).await.unwrap();
    let place = provider.place(&machine.path("bridge")).unwrap();
    assert!(place.ends_with("tf.example/acme/reef/1.2.0/linux_amd64"), "{}", place.display());
    assert_eq!(run_program(&place.join("terraform-provider-reef_v1.2.0"), &[]).await, "1.2.0");
    assert_eq!(provider.digest().map(|digest| digest.to_hex()), Some(sha256(&archive("1.2.0", "1.2.0"))));
    // The fingerprint of the package is as it was: nothing is hashed or fetched again.
    let before = registry.requests().len();
    assert_eq!(words(&machine, &provider_source(&registry, "1.2.0")).await, "1.2.0");
    assert_eq!((registry.requests().len(), machine.warnings()), (before, Vec::new()));
}

/// Shows: plugins.md#terraform-providers "An update that another key has signed, or none, is asked about on a terminal; elsewhere it is refused"
#[tokio::test]
async fn update_by_another_key_or_none_is_refused_unless_its_plugin_is_named() {
    for has_key in [true, false] {
        let ((registry, key), machine) = (signed_registry().await, locking());
        let source = provider_source(&registry, "~> 1.0");
        assert_eq!(words(&machine, &source).await, "1.2.0");
        let other = AuthorKey::generate().unwrap();
        publish_provider(&registry, "1.3.0", "1.3.0");
        registry.sign_with(has_key.then_some(&other)).unwrap();
        let before = lock_text(&machine);
        let by = if has_key { format!("by {}", other.fingerprint()) } else { "by nobody".to_owned() };
        let expected = format!(
            "1.3.0 of terraform tf.example/acme/reef is signed {by}, but the lock file records the signer {}",
            key.fingerprint()
        );
        let error = update(&machine, &source, false).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().unwrap().to_string().contains("`sc plugin update NAME`"));
        // A changed declaration, which no entry fits, is no way around it.
        let changed = provider_source(&registry, "~> 1.3");
        assert_eq!(install(&machine, &changed).await.unwrap_err().to_string(), expected);
        assert_eq!(lock_text(&machine), before);
        // What is locked goes on.
        assert_eq!(words(&machine, &source).await, "1.2.0");
        machine.take_events();
        assert_eq!(update(&machine, &source, true).await.unwrap(), "1.3.0");
        assert_eq!(machine.warnings(), [format!("{expected}; it is accepted, since its plugin is named")]);
        assert_eq!(lock_text(&machine).contains(&format!("signer: {}", other.fingerprint())), has_key);
        assert_eq!(lock_text(&machine).matches("by: sums").count(), if has_key { 0 } else { 2 });
    }
}

#[tokio::test]
async fn same_version_by_another_key_is_refused_and_a_first_signature_is_recorded() {
    let ((registry, key), machine) = (signed_registry().await, locking());
    let source = provider_source(&registry, "1.2.0");
    registry.sign_with(None).unwrap();
    assert_eq!(words(&machine, &source).await, "1.2.0");
    assert_eq!(lock_text(&machine).matches("by: sums").count(), 2, "{}", lock_text(&machine));
    registry.sign_with(Some(&key)).unwrap();
    assert_eq!(update(&machine, &source, false).await.unwrap(), "1.2.0");
    let signed = lock_text(&machine);
    assert!(signed.contains(&format!("signer: {}", key.fingerprint())) && !signed.contains("by: sums"), "{signed}");
    registry.sign_with(Some(&AuthorKey::generate().unwrap())).unwrap();
    let error = update(&machine, &source, false).await.unwrap_err();
    let is_other_signer = |error: &TerraformError| matches!(error, TerraformError::OtherSigner { .. });
    assert!(matches!(&error, InstallError::Terraform(error) if is_other_signer(error)), "{error}");
    assert_eq!(lock_text(&machine), signed);
}

#[tokio::test]
async fn replaced_archive_is_refused_although_its_author_has_signed_it() {
    let ((registry, _), machine) = (signed_registry().await, locking());
    let source = provider_source(&registry, "~> 1.0");
    assert_eq!(words(&machine, &source).await, "1.2.0");
    publish_provider(&registry, "1.2.0", "other");
    let other = other_machine(&machine);
    let error = install(&other, &source).await.unwrap_err();
    let text = chain(&error);
    assert!(matches!(error, InstallError::LockMismatch(_)) && text.contains("from a signed checksum file"), "{text}");
    other.assert_empty();
    let error = update(&machine, &source, false).await.unwrap_err();
    assert!(matches!(error, InstallError::Replaced { .. }), "{error}");
    assert_eq!(words(&machine, &source).await, "1.2.0");
}

fn credentials(variables: &[(String, &str)]) -> Credentials {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    Credentials::new(HostEnvironment::new(variables), Spawner::unsupervised(), |_| ())
}

/// Shows: plugins.md#credentials "The addresses of archives, checksums and signatures get none"
#[tokio::test]
async fn token_is_sent_to_the_service_and_not_for_files() {
    let (registry, _) = signed_registry().await;
    let variable = format!("TF_TOKEN_{}", registry.host().replace('.', "_"));
    registry.require_token("s3cret");
    let machine = Machine::new();
    let error = install(&machine, &provider_source(&registry, "")).await.unwrap_err();
    let hint = format!("check the spelling; a private registry needs a token in {variable}");
    assert_eq!(error.hint().unwrap().to_string(), hint);
    let machine = Machine { credentials: credentials(&[(variable, "s3cret")]), ..Machine::new() };
    assert_eq!(words(&machine, &provider_source(&registry, "")).await, "1.2.0");
    let requests = registry.requests();
    assert!(requests.iter().any(|request| request.path.starts_with("/files/")));
    for request in requests.iter().filter(|request| request.path.starts_with("/files/")) {
        assert_eq!(request.header("authorization"), None, "{}", request.path);
    }
}

#[tokio::test]
async fn stale_token_breaks_no_public_provider() {
    let (registry, _) = signed_registry().await;
    let variable = format!("TF_TOKEN_{}", registry.host().replace('.', "_"));
    let machine = Machine { credentials: credentials(&[(variable.clone(), "stale")]), ..Machine::new() };
    assert_eq!(words(&machine, &provider_source(&registry, "")).await, "1.2.0");
    assert_eq!(machine.warnings(), [format!("127.0.0.1 refuses the token of {variable} (401): it is left out")]);
}
