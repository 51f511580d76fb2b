//! Providers on the official SDKs, started and driven as a run would. Needs `python3`, `node`, `npm` and their package
//! registries: `cargo test -p bridge --features test-sdks`.

#![cfg(feature = "test-sdks")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bridge::host::{
    BootRequest, DeclaredPlugin, HostError, HostEvent, HostEvents, HostSettings, PluginHost, ProviderHost, Sources,
};
use bridge::plugin::{Checksum, LocalSource, PluginConfig, PluginSource, Sha256Digest};
use bridge::process::{Spawner, Supervisor};
use bridge::provider::grpc::{Limits, PluginInit};
use bridge::provider::{
    CheckConfigRequest, CheckRequest, ConfigureRequest, CreateRequest, DeleteRequest, DiffChanges, DiffRequest,
    InvokeRequest, Provider, ProviderError, ReadRequest, UpdateRequest,
};
use bridge::source::{HostEnvironment, LocalPackages};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;

struct Deaf;

impl HostEvents for Deaf {
    fn emit(&self, _: HostEvent) {}
}

/// A copy of a fixture, kept with its dependencies between runs; what follows a hyphen tells copies apart.
fn plugin_folder(sdk: &str) -> PathBuf {
    let fixture = sdk.split('-').next().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks").join(fixture);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(sdk);
    fs::create_dir_all(&folder).unwrap();
    for file in fs::read_dir(fixture).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    folder
}

async fn load(folder: &Path, checksum: Option<Sha256Digest>) -> Result<PluginHost, HostError> {
    let environment = HostEnvironment::new(std::env::vars_os());
    let supervisor = Supervisor::start(env!("CARGO_BIN_EXE_bridge-supervised").as_ref()).unwrap();
    let spawner = Spawner::supervised(Arc::new(supervisor));
    let local = LocalPackages {
        root: folder.to_owned(),
        work: folder.with_extension("work"),
        environment: environment.clone(),
        spawner: spawner.clone(),
    };
    let settings = HostSettings {
        project: "t".into(),
        directory: folder.to_owned(),
        environment,
        spawner,
        sources: Sources { local: Some(Arc::new(local)), ..Sources::default() },
        limits: Limits::default(),
        events: Arc::new(Deaf),
    };
    let source = PluginSource::Local(LocalSource { path: ".".into(), checksum: checksum.map(Checksum::One) });
    let config = PluginConfig::new("keeper".parse().unwrap(), source);
    PluginHost::load(settings, vec![DeclaredPlugin { config, init: PluginInit::default() }]).await
}

/// Runs what the message of a plugin without its dependencies says, and loads it then.
async fn load_after_advice(folder: &Path) -> PluginHost {
    if let Err(error) = load(folder, None).await {
        let (_, command) = error.message.split_once("To get it: ").expect("the message says what to run");
        assert!(Command::new("sh").args(["-c", command]).output().unwrap().status.success(), "{command}");
    }
    load(folder, None).await.unwrap()
}

fn bag<const N: usize>(members: [(&str, PropertyValue); N]) -> Arc<PropertyMap> {
    Arc::new(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// The life of a resource. Node's SDK answers no inputs when asked for what nobody knows yet.
async fn live(provider: &dyn Provider, answers_inputs_on_import: bool) {
    assert_eq!(provider.version(), "1.2.3");
    let provider_urn: Urn = "urn:pulumi:dev::t::pulumi:providers:keeper::keeper".parse().unwrap();
    let config = bag([("key", PropertyValue::secret("k".into()))]);
    let check_config = CheckConfigRequest { urn: provider_urn.clone(), olds: Arc::default(), news: config.clone() };
    assert_eq!(provider.check_config(check_config).await.unwrap().inputs, *config);
    let configure = ConfigureRequest { urn: provider_urn, id: "1".into(), inputs: config };
    provider.configure(configure).await.unwrap();
    assert!(provider.capabilities().accept_secrets);

    let urn: Urn = "urn:pulumi:dev::t::keeper:index:Thing::a".parse().unwrap();
    let inputs = bag([("text", "x".into()), ("hidden", PropertyValue::secret("s".into()))]);
    let check = CheckRequest {
        urn: urn.clone(),
        olds: Arc::default(),
        news: inputs.clone(),
        random_seed: [1; 32],
        autonaming: None,
        preview: false,
    };
    assert_eq!(provider.check(check).await.unwrap().inputs, *inputs);
    let create = |inputs| CreateRequest { urn: urn.clone(), inputs, timeout: 0.0, preview: false };
    let created = provider.create(create(inputs.clone())).await.unwrap();
    assert_eq!((created.id.as_str(), &created.outputs), ("kept", &*inputs));
    let failed = provider.create(create(bag([("fail", true.into())]))).await.unwrap_err();
    assert!(matches!(failed, ProviderError::Failed { .. }) && failed.to_string().contains("the keeper refuses"));

    let news = bag([("text", "y".into())]);
    let diff = DiffRequest {
        urn: urn.clone(),
        id: "kept".into(),
        olds: inputs.clone(),
        old_inputs: inputs.clone(),
        news: news.clone(),
        ignore_changes: vec![],
        allow_unknowns: false,
    };
    let diff = provider.diff(diff).await.unwrap();
    assert_eq!((diff.changes, diff.replaces), (DiffChanges::Some, vec!["text".to_owned()]));
    let update = UpdateRequest {
        urn: urn.clone(),
        id: "kept".into(),
        olds: inputs.clone(),
        old_inputs: inputs.clone(),
        news: news.clone(),
        timeout: 0.0,
        ignore_changes: vec![],
        preview: false,
    };
    assert_eq!(provider.update(update).await.unwrap().outputs, *news);

    let read = |known: Option<Arc<PropertyMap>>| ReadRequest {
        urn: urn.clone(),
        id: "kept".into(),
        outputs: known.clone(),
        inputs: known,
        timeout: 0.0,
    };
    assert_eq!(provider.read(read(Some(inputs.clone()))).await.unwrap().outputs.as_ref(), Some(&*inputs));
    let imported = provider.read(read(None)).await.unwrap();
    assert_eq!((imported.id.as_str(), imported.inputs.is_some()), ("kept", answers_inputs_on_import));
    let invoke = InvokeRequest { token: "keeper:index:get".into(), arguments: inputs.clone(), preview: false };
    assert_eq!(provider.invoke(invoke).await.unwrap().result, *inputs);
    let delete = DeleteRequest { urn, id: "kept".into(), outputs: inputs.clone(), old_inputs: inputs, timeout: 0.0 };
    provider.delete(delete).await.unwrap();
    assert_eq!(provider.mapping("terraform", "").await.unwrap(), None);
}

async fn live_with(sdk: &str, answers_inputs_on_import: bool) {
    let host = load_after_advice(&plugin_folder(sdk)).await;
    let request = BootRequest { package: "keeper".into(), name: "keeper".into(), ..BootRequest::default() };
    let provider = host.boot(&request).await.unwrap();
    live(&*provider, answers_inputs_on_import).await;
    host.close().await;
    assert!(matches!(provider.cancel().await, Err(ProviderError::Died { .. })));
}

#[tokio::test]
async fn a_provider_on_the_python_sdk_lives_from_configure_to_delete() {
    live_with("python", true).await;
}

#[tokio::test]
async fn a_provider_on_the_node_sdk_lives_from_configure_to_delete() {
    live_with("nodejs", false).await;
}

#[tokio::test]
async fn a_checked_folder_runs_with_its_virtual_environment() {
    let folder = plugin_folder("python-checked");
    load_after_advice(&folder).await.close().await;
    let wrong = Sha256Digest::from_bytes([0; 32]);
    let message = load(&folder, Some(wrong)).await.unwrap_err().message;
    let (_, found) = message.split_once(", got ").expect("the message says the digest");
    let host = load(&folder, Some(found.parse().unwrap())).await.unwrap();
    let request = BootRequest { package: "keeper".into(), name: "keeper".into(), ..BootRequest::default() };
    live(&*host.boot(&request).await.unwrap(), true).await;
    host.close().await;
}
