//! The table of the provider protocol, section 5.4: what is sent in which bag of which call.

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

use crate::probe::{PROVIDER, Probe};
use crate::{ALL, bag, urn};

/// One of everything that travels in more than one way.
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

/// How each member travelled, by its first letter: upper case as something special, lower case as a plain value; the
/// asset is `A` with its contents and `a` without; `-` is not there.
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

/// Makes every call with every bag full and returns `call.bag shape` for each.
async fn table(capabilities: Capabilities, preview: bool) -> Vec<String> {
    let probe = Probe::default();
    let provider = probe.provider(Some(capabilities));
    probe.answers("Create", rpc::CreateResponse { id: "1".into(), ..Default::default() });
    let olds = Arc::new(everything());
    let news = if preview { Arc::new(everything()) } else { known() };
    let mut rows = Vec::new();
    let mut row = |name: &str, bag: Option<Bag>| rows.push(format!("{name} {}", shape(bag)));

    provider
        .check_config(CheckConfigRequest { urn: PROVIDER.parse().unwrap(), olds: olds.clone(), news: olds.clone() })
        .await
        .unwrap();
    let sent: rpc::CheckRequest = probe.last("CheckConfig");
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
    let sent: rpc::DiffRequest = probe.last("DiffConfig");
    row("DiffConfig.olds", sent.olds);
    row("DiffConfig.news", sent.news);
    row("DiffConfig.old_inputs", sent.old_inputs);

    let request = ConfigureRequest { urn: PROVIDER.parse().unwrap(), id: "1".into(), inputs: known() };
    provider.configure(request).await.unwrap();
    row("Configure.args", probe.last::<rpc::ConfigureRequest>("Configure").args);

    let request = CheckRequest {
        urn: urn(),
        olds: olds.clone(),
        news: news.clone(),
        random_seed: [1; 32],
        autonaming: None,
        preview,
    };
    provider.check(request).await.unwrap();
    let sent: rpc::CheckRequest = probe.last("Check");
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
    let sent: rpc::DiffRequest = probe.last("Diff");
    row("Diff.olds", sent.olds);
    row("Diff.old_inputs", sent.old_inputs);
    row("Diff.news", sent.news);

    create(&provider, news.clone(), preview).await.unwrap();
    row("Create.properties", probe.last::<rpc::CreateRequest>("Create").properties);

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
    let sent: rpc::UpdateRequest = probe.last("Update");
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
    let sent: rpc::ReadRequest = probe.last("Read");
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
    let sent: rpc::DeleteRequest = probe.last("Delete");
    row("Delete.properties", sent.properties);
    row("Delete.old_inputs", sent.old_inputs);

    provider.invoke(InvokeRequest { token: "f".into(), arguments: olds.clone(), preview }).await.unwrap();
    row("Invoke.args", probe.last::<rpc::InvokeRequest>("Invoke").args);

    let request = CallRequest {
        run: run_info(preview),
        token: "m".into(),
        arguments: olds.clone(),
        argument_dependencies: Default::default(),
    };
    provider.call(request).await.unwrap();
    row("Call.args", probe.last::<rpc::CallRequest>("Call").args);

    if capabilities.accept_secrets {
        probe.answers("Construct", rpc::ConstructResponse { urn: urn().to_string(), ..Default::default() });
        provider.construct(construct(olds, preview)).await.unwrap();
        row("Construct.inputs", probe.last::<rpc::ConstructRequest>("Construct").inputs);
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
async fn in_a_preview_a_provider_that_takes_everything_gets_this() {
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
async fn for_real_a_provider_that_takes_nothing_gets_this() {
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
async fn an_unknown_is_never_sent_for_real_and_nothing_is_called() {
    let probe = Probe::default();
    let error = create(&probe.provider(Some(ALL)), Arc::new(everything()), false).await.unwrap_err();
    assert_eq!(error.to_string(), "property unknown: unexpected unknown value");
    assert!(!error.is_indeterminate());
    assert_eq!(probe.methods(), [""; 0]);
}

#[tokio::test]
async fn a_replacement_trigger_travels_whole_in_a_preview() {
    let probe = Probe::default();
    probe.answers("Construct", rpc::ConstructResponse { urn: urn().to_string(), ..Default::default() });
    let mut request = construct(Arc::default(), true);
    request.options.replacement_trigger = Some(PropertyValue::secret(PropertyValue::UNKNOWN));
    probe.provider(Some(ALL)).construct(request).await.unwrap();
    let trigger = probe.last::<rpc::ConstructRequest>("Construct").replacement_trigger.unwrap().open().unwrap();
    assert_eq!(letter("secret", Some(&trigger)), "S");
}

#[tokio::test]
async fn bytes_go_only_to_who_takes_them() {
    let probe = Probe::default();
    probe.answers("Create", rpc::CreateResponse { id: "1".into(), ..Default::default() });
    let inputs = Arc::new(bag([("b", PropertyValue::Bytes(vec![0xff]))]));
    create(&probe.provider(Some(ALL)), inputs.clone(), false).await.unwrap();
    let sent = probe.last::<rpc::CreateRequest>("Create").properties.unwrap().open().unwrap();
    let Some(Kind::StructValue(object)) = &sent.fields["b"].kind else { panic!("{sent:?}") };
    assert_eq!(object.fields[SIGNATURE_KEY].kind, Some(Kind::StringValue(BYTES_SIGNATURE.into())));

    let provider = probe.provider(Some(Capabilities { accept_byte_strings: false, ..ALL }));
    let error = create(&provider, inputs, false).await.unwrap_err();
    assert!(error.to_string().starts_with("property b: the string is not UTF-8"), "{error}");
}

#[tokio::test]
async fn a_component_needs_a_provider_that_takes_secrets() {
    let probe = Probe::default();
    let error = probe.provider(Some(Capabilities::default())).construct(construct(Arc::default(), false)).await;
    assert!(matches!(error, Err(ProviderError::Failed { indeterminate: false, .. })));
    assert_eq!(probe.methods(), [""; 0]);
}

#[tokio::test]
async fn an_import_sends_an_empty_state_and_no_inputs() {
    let probe = Probe::default();
    let request = ReadRequest {
        urn: urn(),
        id: ResourceId::new("x"),
        outputs: None,
        inputs: None,
        timeout: Some(std::time::Duration::from_millis(2500)),
        views: Views::default(),
    };
    probe.provider(Some(ALL)).read(request).await.unwrap();
    let sent: rpc::ReadRequest = probe.last("Read");
    assert_eq!((sent.properties, sent.inputs, sent.timeout), (Some(Bag::default()), None, 2.5));
    assert_eq!((sent.urn, sent.name, sent.r#type), (urn().to_string(), "a".into(), "rec:index:Thing".into()));
}

#[tokio::test]
async fn empty_bags_are_sent() {
    let probe = Probe::default();
    let provider = probe.provider(Some(ALL));
    let request = CheckRequest {
        urn: urn(),
        olds: Arc::default(),
        news: Arc::default(),
        random_seed: [7; 32],
        autonaming: None,
        preview: false,
    };
    provider.check(request).await.unwrap();
    let sent: rpc::CheckRequest = probe.last("Check");
    assert_eq!((sent.olds, sent.news), (Some(Bag::default()), Some(Bag::default())));
    assert_eq!((sent.random_seed, sent.autonaming), (vec![7; 32], None));
}
