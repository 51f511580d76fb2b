//! Encoding of each property map of each call: the table of docs/spec/provider-protocol.md#5.4.

use std::sync::Arc;

use bridge::provider::grpc::GrpcProvider;
use bridge::provider::{
    CallRequest, Capabilities, CheckConfigRequest, CheckRequest, ConfigureRequest, ConstructRequest, CreateRequest,
    DeleteRequest, DiffConfigRequest, DiffRequest, InvokeRequest, Provider, ProviderError, ReadRequest,
    ResourceOptions, RunInfo, UpdateRequest, Views,
};
use prost_types::Value;
use prost_types::value::Kind;
use pulumi_proto::property::wire::Bag;
use pulumi_proto::property::{
    ASSET_SIGNATURE, Asset, AssetContent, BYTES_SIGNATURE, OUTPUT_SIGNATURE, OutputValue, PropertyMap, PropertyValue,
    RESOURCE_SIGNATURE, ResourceReference, SECRET_SIGNATURE, SIGNATURE_KEY, UNKNOWN_STRING,
};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::rpc;

use super::recording_provider::{PROVIDER, RecordingProvider};
use super::{ALL, bag, urn};

/// Returns one value of each kind whose encoding depends on the call.
fn everything() -> PropertyMap {
    let reference = ResourceReference { urn: urn(), id: Some(ReferenceId::from("id-1")), package_version: None };
    let output = OutputValue { value: Some("o".into()), secret: false, dependencies: vec![urn()] };
    bag([
        ("asset", PropertyValue::Asset(Asset { hash: Some("ab".into()), content: AssetContent::Text("t".into()) })),
        ("output", PropertyValue::Output(Box::new(output))),
        ("ref", PropertyValue::Resource(reference)),
        ("secret", PropertyValue::secret("s".into())),
        ("unknown", PropertyValue::UNKNOWN),
    ])
}

fn known() -> Arc<PropertyMap> {
    let mut bag = everything();
    bag.remove("unknown");
    Arc::new(bag)
}

/// Describes how each property is encoded, by its first letter: upper case for a tagged object, lower case for a plain
/// value, `-` for a missing property. An asset is `A` with its content and `a` without.
fn shape(bag: Option<Bag>) -> String {
    let bag = bag.expect("every bag is sent").open().unwrap();
    ["asset", "output", "ref", "secret", "unknown"].map(|key| letter(key, bag.fields.get(key))).concat()
}

fn letter(key: &str, value: Option<&Value>) -> String {
    let Some(value) = value.and_then(|value| value.kind.as_ref()) else { return "-".into() };
    let plain = key[..1].to_owned();
    let special = plain.to_uppercase();
    let object = match value {
        Kind::StringValue(text) if text == UNKNOWN_STRING => return special,
        Kind::StringValue(text) => {
            assert_eq!(text, if key == "ref" { "id-1" } else { &plain });
            return plain;
        }
        Kind::StructValue(object) => object,
        other => panic!("{key}: {other:?}"),
    };
    let Some(Kind::StringValue(signature)) = &object.fields[SIGNATURE_KEY].kind else { panic!("{key}") };
    let expected = match key {
        "asset" => ASSET_SIGNATURE,
        "output" => OUTPUT_SIGNATURE,
        "ref" => RESOURCE_SIGNATURE,
        _ => SECRET_SIGNATURE,
    };
    assert_eq!(signature, expected, "{key}");
    if key == "asset" && !object.fields.contains_key("text") { plain } else { special }
}

fn run_info(dry_run: bool) -> RunInfo {
    RunInfo { project: "t".into(), stack: "dev".into(), dry_run, ..RunInfo::default() }
}

/// Makes all calls with all kinds of values in each property map, and returns `call.map shape` for each map.
async fn table(capabilities: Capabilities, preview: bool) -> Vec<String> {
    let recorder = RecordingProvider::default();
    let provider = recorder.provider(Some(capabilities));
    recorder.reply_with("Create", rpc::CreateResponse { id: "1".into(), ..Default::default() });
    let olds = Arc::new(everything());
    let news = if preview { Arc::new(everything()) } else { known() };
    let mut rows = Vec::new();
    let mut row = |name: &str, bag: Option<Bag>| rows.push(format!("{name} {}", shape(bag)));

    provider
        .check_config(CheckConfigRequest { urn: PROVIDER.parse().unwrap(), olds: olds.clone(), news: olds.clone() })
        .await
        .unwrap();
    let sent: rpc::CheckRequest = recorder.last_request("CheckConfig");
    row("CheckConfig.olds", sent.olds);
    row("CheckConfig.news", sent.news);

    let request = DiffConfigRequest {
        urn: PROVIDER.parse().unwrap(),
        olds: olds.clone(),
        old_inputs: olds.clone(),
        news: olds.clone(),
        ignore_changes: vec![],
    };
    provider.diff_config(request).await.unwrap();
    let sent: rpc::DiffRequest = recorder.last_request("DiffConfig");
    row("DiffConfig.olds", sent.olds);
    row("DiffConfig.news", sent.news);
    row("DiffConfig.old_inputs", sent.old_inputs);

    let request = ConfigureRequest { urn: PROVIDER.parse().unwrap(), id: "1".into(), inputs: known() };
    provider.configure(request).await.unwrap();
    row("Configure.args", recorder.last_request::<rpc::ConfigureRequest>("Configure").args);

    let request = CheckRequest {
        urn: urn(),
        olds: olds.clone(),
        news: news.clone(),
        random_seed: [1; 32],
        autonaming: None,
        preview,
    };
    provider.check(request).await.unwrap();
    let sent: rpc::CheckRequest = recorder.last_request("Check");
    row("Check.olds", sent.olds);
    row("Check.news", sent.news);

    let request = DiffRequest {
        urn: urn(),
        id: ResourceId::new("1"),
        olds: olds.clone(),
        old_inputs: olds.clone(),
        news: news.clone(),
        ignore_changes: vec![],
        allow_unknowns: preview,
    };
    provider.diff(request).await.unwrap();
    let sent: rpc::DiffRequest = recorder.last_request("Diff");
    row("Diff.olds", sent.olds);
    row("Diff.old_inputs", sent.old_inputs);
    row("Diff.news", sent.news);

    create(&provider, news.clone(), preview).await.unwrap();
    row("Create.properties", recorder.last_request::<rpc::CreateRequest>("Create").properties);

    let request = UpdateRequest {
        urn: urn(),
        id: ResourceId::new("1"),
        olds: olds.clone(),
        old_inputs: olds.clone(),
        news: news.clone(),
        timeout: None,
        ignore_changes: vec![],
        preview,
        views: Views::default(),
    };
    provider.update(request).await.unwrap();
    let sent: rpc::UpdateRequest = recorder.last_request("Update");
    row("Update.olds", sent.olds);
    row("Update.old_inputs", sent.old_inputs);
    row("Update.news", sent.news);

    let request = ReadRequest {
        urn: urn(),
        id: ResourceId::new("1"),
        outputs: Some(olds.clone()),
        inputs: Some(olds.clone()),
        timeout: None,
        views: Views::default(),
    };
    provider.read(request).await.unwrap();
    let sent: rpc::ReadRequest = recorder.last_request("Read");
    row("Read.properties", sent.properties);
    row("Read.inputs", sent.inputs);

    let request = DeleteRequest {
        urn: urn(),
        id: ResourceId::new("1"),
        outputs: olds.clone(),
        old_inputs: olds.clone(),
        timeout: None,
        views: Views::default(),
    };
    provider.delete(request).await.unwrap();
    let sent: rpc::DeleteRequest = recorder.last_request("Delete");
    row("Delete.properties", sent.properties);
    row("Delete.old_inputs", sent.old_inputs);

    provider.invoke(InvokeRequest { token: "f".into(), arguments: olds.clone(), preview }).await.unwrap();
    row("Invoke.args", recorder.last_request::<rpc::InvokeRequest>("Invoke").args);

    let request = CallRequest {
        run: run_info(preview),
        token: "m".into(),
        arguments: olds.clone(),
        argument_dependencies: Default::default(),
    };
    provider.call(request).await.unwrap();
    row("Call.args", recorder.last_request::<rpc::CallRequest>("Call").args);

    if capabilities.accept_secrets {
        recorder.reply_with("Construct", rpc::ConstructResponse { urn: urn().to_string(), ..Default::default() });
        provider.construct(construct(olds, preview)).await.unwrap();
        row("Construct.inputs", recorder.last_request::<rpc::ConstructRequest>("Construct").inputs);
    }
    rows
}

fn construct(inputs: Arc<PropertyMap>, preview: bool) -> ConstructRequest {
    ConstructRequest {
        run: run_info(preview),
        type_token: "rec:index:Component".into(),
        name: "c".into(),
        parent: None,
        inputs,
        input_dependencies: Default::default(),
        providers: Default::default(),
        dependencies: vec![],
        options: ResourceOptions::default(),
    }
}

async fn create(provider: &GrpcProvider, inputs: Arc<PropertyMap>, preview: bool) -> Result<(), ProviderError> {
    provider
        .create(CreateRequest { urn: urn(), inputs, timeout: None, preview, views: Views::default() })
        .await
        .map(drop)
}

#[tokio::test]
async fn bags_in_a_preview_for_a_provider_with_all_capabilities() {
    assert_eq!(
        table(ALL, true).await,
        [
            "CheckConfig.olds AorsU",
            "CheckConfig.news AorsU",
            "DiffConfig.olds AorsU",
            "DiffConfig.news AorsU",
            "DiffConfig.old_inputs AorsU",
            "Configure.args AoRS-",
            "Check.olds AoRSU",
            "Check.news AoRSU",
            "Diff.olds aoRSU",
            "Diff.old_inputs aoRSU",
            "Diff.news aoRSU",
            "Create.properties AoRSU",
            "Update.olds aoRS-",
            "Update.old_inputs aoRS-",
            "Update.news AoRSU",
            "Read.properties aoRS-",
            "Read.inputs aoRS-",
            "Delete.properties aoRS-",
            "Delete.old_inputs aoRS-",
            "Invoke.args AoRS-",
            "Call.args AORSU",
            "Construct.inputs AORSU",
        ]
    );
}

#[tokio::test]
async fn bags_outside_a_preview_for_a_provider_without_capabilities() {
    assert_eq!(
        table(Capabilities::default(), false).await,
        [
            "CheckConfig.olds AorsU",
            "CheckConfig.news AorsU",
            "DiffConfig.olds AorsU",
            "DiffConfig.news AorsU",
            "DiffConfig.old_inputs AorsU",
            "Configure.args AoRS-",
            "Check.olds Aors-",
            "Check.news Aors-",
            "Diff.olds aors-",
            "Diff.old_inputs aors-",
            "Diff.news aors-",
            "Create.properties Aors-",
            "Update.olds aors-",
            "Update.old_inputs aors-",
            "Update.news Aors-",
            "Read.properties aors-",
            "Read.inputs aors-",
            "Delete.properties aors-",
            "Delete.old_inputs aors-",
            "Invoke.args Aors-",
            "Call.args AoRSU",
        ]
    );
}

#[tokio::test]
async fn unknown_input_outside_a_preview_is_an_error_without_a_call() {
    let recorder = RecordingProvider::default();
    let error = create(&recorder.provider(Some(ALL)), Arc::new(everything()), false).await.unwrap_err();
    assert_eq!(error.to_string(), "property unknown: unexpected unknown value");
    assert!(!error.is_indeterminate());
    assert_eq!(recorder.methods(), [""; 0]);
}

#[tokio::test]
async fn replacement_trigger_keeps_secrets_and_unknowns_in_a_preview() {
    let recorder = RecordingProvider::default();
    recorder.reply_with("Construct", rpc::ConstructResponse { urn: urn().to_string(), ..Default::default() });
    let mut request = construct(Arc::default(), true);
    request.options.replacement_trigger = Some(PropertyValue::secret(PropertyValue::UNKNOWN));
    recorder.provider(Some(ALL)).construct(request).await.unwrap();
    let trigger =
        recorder.last_request::<rpc::ConstructRequest>("Construct").replacement_trigger.unwrap().open().unwrap();
    assert_eq!(letter("secret", Some(&trigger)), "S");
}

#[tokio::test]
async fn bytes_are_sent_only_to_a_provider_that_accepts_them() {
    let recorder = RecordingProvider::default();
    recorder.reply_with("Create", rpc::CreateResponse { id: "1".into(), ..Default::default() });
    let inputs = Arc::new(bag([("b", PropertyValue::Bytes(vec![0xff]))]));
    create(&recorder.provider(Some(ALL)), inputs.clone(), false).await.unwrap();
    let sent = recorder.last_request::<rpc::CreateRequest>("Create").properties.unwrap().open().unwrap();
    let Some(Kind::StructValue(object)) = &sent.fields["b"].kind else { panic!("{sent:?}") };
    assert_eq!(object.fields[SIGNATURE_KEY].kind, Some(Kind::StringValue(BYTES_SIGNATURE.into())));

    let provider = recorder.provider(Some(Capabilities { accept_byte_strings: false, ..ALL }));
    let error = create(&provider, inputs, false).await.unwrap_err();
    assert!(error.to_string().starts_with("property b: the string is not UTF-8"), "{error}");
}

#[tokio::test]
async fn construct_requires_a_provider_that_accepts_secrets() {
    let recorder = RecordingProvider::default();
    let error = recorder.provider(Some(Capabilities::default())).construct(construct(Arc::default(), false)).await;
    assert!(matches!(error, Err(ProviderError::Failed { indeterminate: false, .. })));
    assert_eq!(recorder.methods(), [""; 0]);
}

/// Shows: plugin-authoring.md#calls "A request without `inputs` and `properties` is an import by id"
#[tokio::test]
async fn import_sends_empty_properties_and_no_inputs() {
    let recorder = RecordingProvider::default();
    let request = ReadRequest {
        urn: urn(),
        id: ResourceId::new("x"),
        outputs: None,
        inputs: None,
        timeout: Some(std::time::Duration::from_millis(2500)),
        views: Views::default(),
    };
    recorder.provider(Some(ALL)).read(request).await.unwrap();
    let sent: rpc::ReadRequest = recorder.last_request("Read");
    assert_eq!((sent.properties, sent.inputs, sent.timeout), (Some(Bag::default()), None, 2.5));
    assert_eq!((sent.urn, sent.name, sent.r#type), (urn().to_string(), "a".into(), "rec:index:Thing".into()));
}

#[tokio::test]
async fn empty_bags_are_sent() {
    let recorder = RecordingProvider::default();
    let provider = recorder.provider(Some(ALL));
    let request = CheckRequest {
        urn: urn(),
        olds: Arc::default(),
        news: Arc::default(),
        random_seed: [7; 32],
        autonaming: None,
        preview: false,
    };
    provider.check(request).await.unwrap();
    let sent: rpc::CheckRequest = recorder.last_request("Check");
    assert_eq!((sent.olds, sent.news), (Some(Bag::default()), Some(Bag::default())));
    assert_eq!((sent.random_seed, sent.autonaming), (vec![7; 32], None));
}
