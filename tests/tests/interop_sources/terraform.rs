//! Tests of Pulumi's bridge of any Terraform provider, with its own test provider, and with one whose calls fail: `sc` resolves, locks, verifies and
//! places them, and provisions with them.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tests::sdk_providers;
use tests::sdks::go_package_program;
use tests::terraform_registry::{AuthorKey, TerraformRegistry, provider_archive};

pub(crate) const MODULE: &str = "github.com/pulumi/pulumi-terraform-bridge/v3/dynamic";
/// Test provider of the bridge, on the framework of plugins (protocol 6).
pub(crate) const PROVIDER: &str = "acme/pfprovider";

/// Provider of the module of this suite: see `bridge/failing.go`.
const FAILING: &str = "acme/failing";

pub(crate) fn program(package: &str, link_flags: &str) -> Vec<u8> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_sources/bridge");
    fs::read(go_package_program(package, &sources, link_flags).unwrap()).unwrap()
}

/// Starts a registry whose versions of a provider are signed.
pub(crate) async fn registry(provider: &str, program: &[u8], versions: &[&str]) -> (TerraformRegistry, AuthorKey) {
    let (registry, key) = (TerraformRegistry::start_tls().await.unwrap(), AuthorKey::generate().unwrap());
    registry.sign_with(Some(&key)).unwrap();
    for version in versions {
        let name = provider.replace("acme/", "terraform-provider-");
        let archive = provider_archive(&[(&format!("{name}_v{version}"), 0o755, program)]).unwrap();
        let platform = bridge::plugin::Platform::current().unwrap().to_string().replace('-', "_");
        registry.publish(provider, version, &[(&platform, &archive)]);
    }
    (registry, key)
}

/// Returns a repository with the bridge, whose `sc` trusts the registry.
pub(crate) fn bridge_repository(registry: Option<&TerraformRegistry>) -> sdk_providers::Repository {
    let mut repository = sdk_providers::Repository::new(&[]);
    if let Some(registry) = registry {
        let authority = registry.authority().unwrap().display().to_string();
        repository = repository.with_variable("SSL_CERT_FILE", &authority);
    }
    write_program(&repository, "pulumi-resource-terraform-provider", &program(MODULE, ""));
    repository
}

pub(crate) fn write_program(repository: &sdk_providers::Repository, name: &str, program: &[u8]) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = repository.folder().join("plugins").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Returns the entry of the bridge with parameters. It gets no port in its sandbox.
fn entry(name: &str, parameters: &[&str], config: &Value) -> Value {
    json!([{
        "name": name, "source": { "type": "local", "path": "plugins/pulumi-resource-terraform-provider" },
        "parameters": parameters, "config": config, "sandbox": "strict", "ports": [],
    }])
}

pub(crate) fn declare(
    repository: &sdk_providers::Repository,
    registry: &TerraformRegistry,
    version: &str,
    endpoint: &str,
) {
    let parameters = [&format!("{}/{PROVIDER}", registry.host()), version];
    let plugins = entry("pfprovider", &parameters, &json!({ "endpoint": endpoint }));
    // The only values that the provider accepts.
    let config = json!({
        "attrStringRequired": "s", "attrBoolRequired": true, "attrIntRequired": 64, "attrNumberRequired": 12.3456,
        "attrStringDefaultOverridden": "overridden",
    });
    let resource = json!({ "type": "pfprovider:index:Primitive", "config": config });
    let outputs = json!({ "computed": "${resource:main/a.attrIntComputed}" });
    repository.declare_sections(&plugins, &json!({ "a": resource }), &outputs);
}

pub(crate) fn provider(repository: &sdk_providers::Repository) -> Value {
    let resources = repository.state()["deployment"]["resources"].as_array().unwrap().clone();
    resources.into_iter().find(|resource| resource["type"] == "pulumi:providers:pfprovider").unwrap()
}

/// Shows: plugins.md#terraform-providers "the bridge opens no connection"
#[tokio::test(flavor = "multi_thread")]
async fn terraform_provider_lives_without_a_connection_of_the_bridge() {
    let pfprovider = program(&format!("{MODULE}/test/pfprovider"), "");
    let (registry, key) = registry(PROVIDER, &pfprovider, &["1.0.0", "1.1.0"]).await;
    tokio::task::spawn_blocking(move || {
        let repository = bridge_repository(Some(&registry));
        declare(&repository, &registry, "~> 1.0.0", "north");
        repository.provision();
        assert_eq!(repository.outputs(&[])["computed"], 128);
        let lock = repository.read_file(".sc/sc.lock");
        assert!(lock.contains("by: signed") && lock.contains(&key.fingerprint()), "{lock}");
        let recorded = provider(&repository);
        let value = recorded["inputs"]["__internal"]["parameterization"].as_str().unwrap();
        let value: Value = serde_json::from_slice(&BASE64.decode(value).unwrap()).unwrap();
        assert_eq!(value["remote"]["url"], format!("{}/{PROVIDER}", registry.host()));
        assert_eq!(value["remote"]["version"], "1.0.0");
        assert_eq!(recorded["inputs"]["version"], "1.0.0");
        assert_eq!(recorded["inputs"]["__internal"]["name"], "terraform-provider");

        let requests = registry.requests().len();
        repository.run_successfully(&["provision", "--expect-no-changes", "--offline"]);
        declare(&repository, &registry, "~> 1.0.0", "south");
        repository.run_successfully(&["provision", "--yes", "--offline"]);
        repository.run_successfully(&["refresh", "--yes", "--offline"]);
        assert_eq!(registry.requests().len(), requests);
        declare(&repository, &registry, "~> 1.0", "south");
        repository.run_successfully(&["provision", "--yes"]);
        assert_eq!(provider(&repository)["inputs"]["version"], "1.0.0", "what is locked still fits");
        repository.run_successfully(&["destroy", "--parent", "--yes", "--offline"]);
    })
    .await
    .unwrap();
}

/// Writes server.yaml with the resource `a` of the failing provider, if it has a value.
fn declare_thing(repository: &sdk_providers::Repository, parameters: &[&str], config: &Value, value: Option<&str>) {
    let mut resources = json!({});
    if let Some(value) = value {
        resources["a"] = json!({ "type": "failing:index:Thing", "config": { "value": value } });
    }
    repository.declare_sections(&entry("failing", parameters, config), &resources, &json!({}));
}

/// The test providers of the bridge for protocol 5 have no resource that can be created.
#[tokio::test(flavor = "multi_thread")]
async fn terraform_provider_of_protocol_5_lives_as_well() {
    let failing = program("bridge", "-X main.protocol=5");
    let (registry, _) = registry(FAILING, &failing, &["1.0.0"]).await;
    tokio::task::spawn_blocking(move || {
        let repository = bridge_repository(Some(&registry));
        let address = format!("{}/{FAILING}", registry.host());
        for value in ["x", "y"] {
            declare_thing(&repository, &[&address, "^1"], &json!({}), Some(value));
            repository.provision();
            assert_eq!(repository.entry("a")["inputs"], json!({ "value": value }));
            assert_eq!(repository.id("a"), "thing-1");
        }
        repository.run_successfully(&["refresh", "--yes", "--offline"]);
        repository.run_successfully(&["provision", "--expect-no-changes", "--locked", "--offline"]);
        declare_thing(&repository, &[&address, "^1"], &json!({}), None);
        repository.run_successfully(&["provision", "--yes"]);
        assert_eq!(repository.entries("a"), [json!(null); 0]);
        repository.run_successfully(&["destroy", "--parent", "--yes"]);
    })
    .await
    .unwrap();
}

/// Shows: plugins.md#terraform-providers "Of the gRPC errors of a Terraform provider, it passes on"
#[test]
fn errors_of_calls_end_as_the_bridge_lets_them() {
    const UNAVAILABLE: u32 = 14;
    // Without a refresh, whose reads would fail.
    const UPDATE: [&str; 4] = ["provision", "--yes", "-S", "-R"];
    let repository = bridge_repository(None);
    let provider = write_program(&repository, "terraform-provider-failing", &program("bridge", ""));
    let parameters = [provider.to_str().unwrap()];
    let declare = |fails: &str, value| declare_thing(&repository, &parameters, &json!({ "fails": fails }), value);
    for code in 1..=16 {
        declare(&format!("apply {code}"), Some("x"));
        let (exit, output) = repository.run(&UPDATE);
        let reason = if code == UNAVAILABLE { "the reef does not answer" } else { "DecodePropertyMap" };
        assert!(exit == 1 && output.contains(reason), "Create, {code}: {output}");
        assert_eq!(repository.entries("a"), [json!(null); 0], "{code}");
    }
    for code in [13, UNAVAILABLE] {
        let is_kept = code == UNAVAILABLE;
        declare("", Some("x"));
        repository.run_successfully(&UPDATE);
        for call in ["apply", "plan"] {
            declare(&format!("{call} {code}"), Some("y"));
            assert_eq!(repository.run(&UPDATE).0, 1, "{call} {code}");
            assert_eq!(repository.entry("a")["inputs"], json!({ "value": "x" }), "{call} {code}");
        }
        declare(&format!("read {code}"), Some("x"));
        repository.run_successfully(&UPDATE);
        assert_eq!(repository.run(&["refresh", "--yes"]).0 != 0, is_kept, "Read, {code}");
        assert_eq!(repository.entries("a").is_empty(), !is_kept, "Read, {code}");
        declare("", Some("x"));
        repository.run_successfully(&UPDATE);
        declare(&format!("apply {code}"), None);
        assert_eq!(repository.run(&UPDATE).0 != 0, is_kept, "Delete, {code}");
        assert_eq!(repository.entries("a").is_empty(), !is_kept, "Delete, {code}");
    }
}
