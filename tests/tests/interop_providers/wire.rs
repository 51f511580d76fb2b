//! Tests of every call to the providers, each a process of our host.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::{PluginHost, ProviderHost as _, ProviderRequest};
use bridge::provider::{
    Capabilities, CheckConfigRequest, CheckRequest, ConfigureRequest, CreateRequest, DeleteRequest, DiffChanges,
    DiffConfigRequest, DiffKind, DiffReply, DiffRequest, ListRequest, Method, PropertyDiff, Provider, ProviderError,
    ReadRequest, SchemaRequest, UpdateRequest, Views,
};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use rustix::process::{Pid, test_kill_process};
use serde_json::json;
use tempfile::TempDir;
use tests::sdk_providers::{Call, ProviderHome, Sdk, SecretForm};

/// Provider in its own process.
struct RunningProvider {
    host: PluginHost,
    provider: Arc<dyn Provider>,
    home: ProviderHome,
    _folder: TempDir,
}

impl RunningProvider {
    async fn start(sdk: Sdk) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plugin_folder = folder.path().join("plugin");
        let plugin = tokio::task::spawn_blocking(move || sdk.install(&plugin_folder)).await.unwrap();
        let home = ProviderHome::create(folder.path().join("home"));
        let variables = [("PEER_HOME", home.folder().as_os_str().to_owned())];
        let host = plugin.host(sdk.package(), &variables).await.unwrap();
        let request =
            ProviderRequest { package: sdk.package().into(), name: "main".into(), ..ProviderRequest::default() };
        let provider = host.start_provider(&request).await.unwrap();
        Self { host, provider, home, _folder: folder }
    }
}

fn urn(sdk: Sdk, of: &str, name: &str) -> Urn {
    let of = of.replace("PKG", sdk.package());
    format!("urn:pulumi:dev::t::{of}::{name}").parse().unwrap()
}

fn bag<const N: usize>(members: [(&str, PropertyValue); N]) -> Arc<PropertyMap> {
    Arc::new(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn secret(value: &str) -> PropertyValue {
    PropertyValue::secret(value.into())
}

/// Returns the outputs for these inputs, with the secret marked as it was sent.
fn with_output(inputs: &PropertyMap, out: PropertyValue) -> PropertyMap {
    let mut outputs = inputs.clone();
    outputs.insert("out".to_owned(), out);
    outputs
}

/// Makes all calls of the protocol.
pub(crate) async fn run_all_calls(sdk: Sdk) {
    let running = RunningProvider::start(sdk).await;
    let provider = &*running.provider;
    before_configure(sdk, provider).await;

    let resource_urn = urn(sdk, "PKG:index:Thing", "a");
    let inputs = bag([("v", "1".into()), ("k", "a".into()), ("secret", secret("hush"))]);
    check(sdk, provider, &resource_urn, &inputs).await;
    if sdk.supports_previews() {
        preview(provider, &resource_urn).await;
    }

    let request = CreateRequest {
        urn: resource_urn.clone(),
        inputs: inputs.clone(),
        timeout: None,
        preview: false,
        views: Views::default(),
    };
    let created = provider.create(request).await.unwrap();
    let id = ResourceId::text(created.id.as_ref());
    assert_eq!(running.home.resources(), [(id.to_owned(), json!({"v": "1", "k": "a", "secret": "hush"}))]);
    assert_eq!(created.outputs, with_output(&inputs, "made of 1".into()));
    let outputs = Arc::new(created.outputs);

    let diff = async |news: &Arc<PropertyMap>| {
        let request = DiffRequest {
            urn: resource_urn.clone(),
            id: created.id.clone(),
            olds: outputs.clone(),
            old_inputs: inputs.clone(),
            news: news.clone(),
            ignore_changes: vec![],
            allow_unknowns: false,
        };
        provider.diff(request).await.unwrap()
    };
    let updated = bag([("v", "2".into()), ("k", "a".into()), ("secret", secret("hush"))]);
    let replaced = bag([("v", "1".into()), ("k", "b".into()), ("secret", secret("hush"))]);
    let another_secret = bag([("v", "1".into()), ("k", "a".into()), ("secret", secret("sh"))]);
    assert_eq!(diff(&inputs).await, expected_diff(sdk, None));
    assert_eq!(diff(&updated).await, expected_diff(sdk, Some(("v", DiffKind::Update))));
    assert_eq!(diff(&replaced).await, expected_diff(sdk, Some(("k", DiffKind::UpdateReplace))));
    assert_eq!(diff(&another_secret).await, expected_diff(sdk, Some(("secret", DiffKind::Update))));

    let request = UpdateRequest {
        urn: resource_urn.clone(),
        id: created.id.clone(),
        olds: outputs.clone(),
        old_inputs: inputs.clone(),
        news: updated.clone(),
        timeout: None,
        ignore_changes: vec![],
        preview: false,
        views: Views::default(),
    };
    let update = provider.update(request).await.unwrap();
    assert_eq!(update.outputs, with_output(&updated, "made of 2".into()));

    let read = async |outputs: Option<PropertyMap>, inputs: Option<&Arc<PropertyMap>>| {
        let (outputs, inputs) = (outputs.map(Arc::new), inputs.cloned());
        let request = ReadRequest {
            urn: resource_urn.clone(),
            id: created.id.clone(),
            outputs,
            inputs,
            timeout: None,
            views: Views::default(),
        };
        provider.read(request).await.unwrap()
    };
    running.home.change(id, &json!({"v": "3", "k": "a", "secret": "hush"}));
    let live = bag([("v", "3".into()), ("k", "a".into()), ("secret", secret("hush"))]);
    let drifted = read(Some(update.outputs.clone()), Some(&updated)).await;
    assert_eq!(drifted.id, created.id);
    assert_eq!(drifted.inputs.as_ref(), Some(&*live));
    assert_eq!(drifted.outputs, Some(with_output(&live, "made of 3".into())));
    // An import has no recorded outputs, so only the provider can mark secrets.
    let imported = read(None, None).await;
    assert_eq!(imported.outputs.unwrap()["v"], PropertyValue::from("3"));

    let request = DeleteRequest {
        urn: resource_urn.clone(),
        id: created.id.clone(),
        outputs: Arc::new(update.outputs.clone()),
        old_inputs: updated.clone(),
        timeout: None,
        views: Views::default(),
    };
    provider.delete(request.clone()).await.unwrap();
    assert_eq!(running.home.resources(), []);
    let missing = read(Some(update.outputs.clone()), Some(&updated)).await;
    assert!(missing.id.is_none(), "{missing:?}");
    let error = provider.delete(request).await.unwrap_err();
    assert!(matches!(error, ProviderError::Failed { method: Method::Delete, indeterminate: true, .. }), "{error:?}");

    let error =
        provider.list(ListRequest { token: resource_urn.type_token().to_owned(), ..ListRequest::default() }).await;
    assert!(matches!(error, Err(ProviderError::Unimplemented { .. })), "{error:?}");
    let mut calls = running.home.calls();
    // Another process, which checks configurations, has received no other call.
    calls.retain(|call| call.call != "Handshake");
    let pid = calls[0].pid;
    assert!(calls.iter().all(|call| call.pid == pid), "{calls:?}");
    assert!(is_alive(pid));
    running.host.close().await;
    assert!(!is_alive(pid));
    let secrets: Vec<_> =
        calls.iter().filter(|call| call.secret != SecretForm::Absent).map(|call| call.secret).collect();
    assert!(secrets.len() >= 9 && secrets.iter().all(|form| *form == sdk.secret_form()), "{secrets:?}");
}

fn is_alive(pid: i32) -> bool {
    test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
}

/// Makes all calls that are allowed before Configure, and Configure.
async fn before_configure(sdk: Sdk, provider: &dyn Provider) {
    let before = provider.capabilities();
    let had_handshake = before != Capabilities::default();
    assert_eq!(had_handshake, sdk == Sdk::Go);
    assert_eq!(provider.version(), Some("1.0.0"));
    let schema = provider.schema(SchemaRequest::default()).await.unwrap().unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&schema).unwrap()["name"], sdk.package());
    assert_eq!(provider.mappings("terraform").await.unwrap(), None);
    assert_eq!(provider.mapping("terraform", "").await.unwrap(), None);

    let settings = urn(sdk, "pulumi:providers:PKG", "main");
    let config = bag([("region", "reef".into()), ("token", secret("t0ken"))]);
    let request = CheckConfigRequest { urn: settings.clone(), olds: Arc::default(), news: config.clone() };
    assert_eq!(provider.check_config(request).await.unwrap().inputs, *config);
    let request = DiffConfigRequest {
        urn: settings.clone(),
        olds: config.clone(),
        old_inputs: config.clone(),
        news: config.clone(),
        ignore_changes: vec![],
    };
    let diff = provider.diff_config(request).await.unwrap();
    assert_eq!(diff.changes, if sdk == Sdk::Go { DiffChanges::None } else { DiffChanges::Unknown });

    let request = ConfigureRequest { urn: settings, id: "1".into(), inputs: config };
    provider.configure(request).await.unwrap();
    let capabilities = provider.capabilities();
    assert_eq!(
        (capabilities.accept_secrets, capabilities.supports_preview),
        (sdk.secret_form() == SecretForm::Wrapped, sdk.supports_previews())
    );
}

async fn check(sdk: Sdk, provider: &dyn Provider, resource_urn: &Urn, inputs: &Arc<PropertyMap>) {
    let request = |news: &Arc<PropertyMap>| CheckRequest {
        urn: resource_urn.clone(),
        olds: Arc::default(),
        news: news.clone(),
        random_seed: [7; 32],
        autonaming: None,
        preview: false,
    };
    let reply = provider.check(request(inputs)).await.unwrap();
    assert_eq!((reply.inputs, reply.failures), ((**inputs).clone(), vec![]), "{sdk:?}");
    let failures = provider.check(request(&bag([("k", "a".into())]))).await.unwrap().failures;
    let failures: Vec<_> = failures.iter().map(|f| (f.property.as_deref(), f.reason.as_str())).collect();
    assert_eq!(failures, [(Some("v"), "missing required input v")]);
}

/// Checks that unknown inputs of a preview are returned as unknown.
async fn preview(provider: &dyn Provider, resource_urn: &Urn) {
    let inputs = bag([("v", PropertyValue::UNKNOWN), ("k", "a".into()), ("secret", secret("hush"))]);
    let request = CreateRequest {
        urn: resource_urn.clone(),
        inputs: inputs.clone(),
        timeout: None,
        preview: true,
        views: Views::default(),
    };
    let previewed = provider.create(request).await.unwrap();
    assert_eq!((previewed.id, previewed.outputs), (None, with_output(&inputs, PropertyValue::UNKNOWN)));
}

fn expected_diff(sdk: Sdk, change: Option<(&str, DiffKind)>) -> DiffReply {
    let names: Vec<String> = change.iter().map(|(name, _)| (*name).to_owned()).collect();
    let replaces = change.filter(|(_, kind)| kind.is_replace()).map(|(name, _)| name.to_owned());
    let detailed_diff: BTreeMap<_, _> = change
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), PropertyDiff { kind: *kind, input_diff: false }))
        .collect();
    // Node's SDK only returns whether there are changes, and the replacing properties.
    let details = sdk != Sdk::Node;
    DiffReply {
        changes: if change.is_some() { DiffChanges::Some } else { DiffChanges::None },
        replaces: replaces.into_iter().collect(),
        diffs: if details { names } else { vec![] },
        detailed_diff: details.then_some(detailed_diff),
        ..DiffReply::default()
    }
}

/// Checks that fifty Creates of 100 ms run in the provider at once.
pub(crate) async fn run_fifty_creates_concurrently(sdk: Sdk) {
    let running = RunningProvider::start(sdk).await;
    let settings = urn(sdk, "pulumi:providers:PKG", "main");
    let request = ConfigureRequest { urn: settings, id: "1".into(), inputs: Arc::default() };
    running.provider.configure(request).await.unwrap();
    let create = |number: u32| {
        let resource_urn = urn(sdk, "PKG:index:Thing", &format!("t{number}"));
        let inputs = bag([("v", "1".into()), ("k", "a".into()), ("delay", 100.0.into())]);
        running.provider.create(CreateRequest {
            urn: resource_urn,
            inputs,
            timeout: None,
            preview: false,
            views: Views::default(),
        })
    };
    for reply in futures_util::future::join_all((0..50).map(create)).await {
        reply.unwrap();
    }
    let creates: Vec<Call> = running.home.calls().into_iter().filter(|call| call.call == "Create").collect();
    crate::operations::assert_overlap(&creates);
    running.host.close().await;
}

/// Checks a configuration in two leases, of which the second one serves with the configured process of the first one.
pub(crate) async fn second_lease_has_equal_replies_and_the_configured_process(sdk: Sdk) {
    let running = RunningProvider::start(sdk).await;
    let provider_urn = urn(sdk, "pulumi:providers:PKG", "main");
    let inputs = bag([("region", "north".into()), ("token", secret("t0ken"))]);
    let replies = async |provider: &dyn Provider| {
        let mut replies = Vec::new();
        for news in [inputs.clone(), bag([]), bag([("region", "south".into())])] {
            let request = CheckConfigRequest { urn: provider_urn.clone(), olds: Arc::default(), news: news.clone() };
            let checked = provider.check_config(request).await;
            let request = DiffConfigRequest {
                urn: provider_urn.clone(),
                olds: inputs.clone(),
                old_inputs: inputs.clone(),
                news,
                ignore_changes: Vec::new(),
            };
            let diff = provider.diff_config(request).await;
            replies.push(format!("{checked:?} {diff:?}"));
        }
        replies
    };
    let of_new_process = replies(&*running.provider).await;
    let configuration = ConfigureRequest { urn: provider_urn.clone(), id: "1".into(), inputs: inputs.clone() };
    running.provider.configure(configuration.clone()).await.unwrap();
    check(sdk, &*running.provider, &urn(sdk, "PKG:index:Thing", "a"), &bag([("v", "1".into())])).await;
    running.provider.close().await;

    let request = ProviderRequest { package: sdk.package().into(), name: "main".into(), ..ProviderRequest::default() };
    let again = running.host.start_provider(&request).await.unwrap();
    assert_eq!(replies(&*again).await, of_new_process);
    again.configure(configuration).await.unwrap();
    check(sdk, &*again, &urn(sdk, "PKG:index:Thing", "a"), &bag([("v", "1".into())])).await;
    let configurations = running.home.calls().iter().filter(|call| call.call == "Configure").count();
    // Node's server replies to Configure itself, and does not call the provider.
    let expected = usize::from(sdk != Sdk::Node);
    assert_eq!(configurations, expected, "the second lease has the process of the first one");
    running.host.close().await;
}
