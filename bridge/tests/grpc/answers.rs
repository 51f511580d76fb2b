//! What comes of the answers.

use std::sync::Arc;

use bridge::provider::{
    Autonaming, Capabilities, CheckRequest, CreateRequest, DiffChanges, DiffKind, DiffReply, DiffRequest,
    InvokeRequest, ListReply, ListRequest, Method, Provider, ProviderError, ReadRequest, SchemaRequest, UpdateRequest,
    Views,
};
use pulumi_proto::property::wire::{EncodeOptions, encode};
use pulumi_proto::property::{Asset, AssetContent, PropertyMap, PropertyValue, UNKNOWN_STRING};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::rpc;
use tonic::Status;

use crate::probe::Probe;
use crate::{ALL, bag, secret, shared, texts, urn};

const NONE: Capabilities = Capabilities {
    accept_secrets: false,
    accept_resources: false,
    accept_outputs: false,
    accept_byte_strings: false,
    supports_preview: false,
    supports_autonaming: false,
};

fn check(news: Arc<PropertyMap>, preview: bool) -> CheckRequest {
    CheckRequest {
        urn: urn(),
        olds: Arc::default(),
        news,
        random_seed: [0; 32],
        autonaming: Some(Autonaming::Enforce("x".into())),
        preview,
    }
}

fn create(inputs: Arc<PropertyMap>, preview: bool) -> CreateRequest {
    CreateRequest { urn: urn(), inputs, timeout: None, preview, views: Views::default() }
}

#[tokio::test]
async fn who_takes_no_secrets_gets_them_marked_again_in_what_comes_back() {
    let probe = Probe::default();
    let sent = shared([("a", secret("1")), ("b", "2".into())]);
    let back = Some(texts([("a", "1"), ("b", "2"), ("c", "3")]));
    let marked = bag([("a", secret("1")), ("b", "2".into()), ("c", "3".into())]);
    probe
        .answers("Check", rpc::CheckResponse { inputs: back.clone(), failures: vec![] })
        .answers("Create", rpc::CreateResponse { id: "i".into(), properties: back.clone(), ..Default::default() })
        .answers("Update", rpc::UpdateResponse { properties: back.clone(), ..Default::default() })
        .answers(
            "Read",
            rpc::ReadResponse { id: "i".into(), properties: back.clone(), inputs: back.clone(), ..Default::default() },
        )
        .answers("Invoke", rpc::InvokeResponse { r#return: Some(texts([("r", "1")])), failures: vec![] });
    let provider = probe.provider(Some(NONE));
    assert_eq!(provider.check(check(sent.clone(), false)).await.unwrap().inputs, marked);
    assert_eq!(provider.create(create(sent.clone(), false)).await.unwrap().outputs, marked);
    let update = UpdateRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        olds: Arc::default(),
        old_inputs: Arc::default(),
        news: sent.clone(),
        timeout: None,
        ignore_changes: vec![],
        preview: false,
        views: Views::default(),
    };
    assert_eq!(provider.update(update).await.unwrap().outputs, marked);
    let read = ReadRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        outputs: Some(sent.clone()),
        inputs: Some(shared([("b", secret("2"))])),
        timeout: None,
        views: Views::default(),
    };
    let read = provider.read(read).await.unwrap();
    assert_eq!(read.outputs, Some(marked));
    assert_eq!(read.inputs, Some(bag([("a", "1".into()), ("b", secret("2")), ("c", "3".into())])));
    let invoke = InvokeRequest { token: "f".into(), arguments: sent.clone(), preview: true };
    assert_eq!(provider.invoke(invoke.clone()).await.unwrap().result, bag([("r", secret("1"))]));
    assert!(probe.last::<rpc::InvokeRequest>("Invoke").preview);

    // Who takes them marks them itself.
    let provider = probe.provider(Some(ALL));
    assert_eq!(provider.create(create(sent, false)).await.unwrap().outputs["a"], "1".into());
    assert_eq!(provider.invoke(invoke).await.unwrap().result["r"], "1".into());
}

#[tokio::test]
async fn absent_bags_are_empty_except_where_they_say_that_something_is_gone() {
    let probe = Probe::default();
    probe.answers("Create", rpc::CreateResponse { id: "i".into(), ..Default::default() });
    let provider = probe.provider(Some(ALL));
    assert_eq!(provider.check(check(Arc::default(), false)).await.unwrap(), Default::default());
    assert_eq!(provider.create(create(Arc::default(), false)).await.unwrap().outputs, bag([]));
    let read = ReadRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        outputs: Some(Arc::default()),
        inputs: None,
        timeout: None,
        views: Views::default(),
    };
    assert_eq!(provider.read(read.clone()).await.unwrap(), Default::default());
    probe.answers("Read", rpc::ReadResponse { id: "j".into(), properties: Some(texts([])), ..Default::default() });
    let reply = provider.read(read).await.unwrap();
    assert_eq!((reply.id, reply.outputs, reply.inputs), (ResourceId::new("j"), Some(bag([])), None));
}

#[tokio::test]
async fn an_unknown_is_an_answer_only_in_a_preview() {
    let probe = Probe::default();
    let unknown = Some(texts([("a", UNKNOWN_STRING)]));
    probe
        .answers("Check", rpc::CheckResponse { inputs: unknown.clone(), failures: vec![] })
        .answers("Create", rpc::CreateResponse { id: "i".into(), properties: unknown.clone(), ..Default::default() })
        .answers("Invoke", rpc::InvokeResponse { r#return: unknown, failures: vec![] });
    let provider = probe.provider(Some(ALL));
    let expected = bag([("a", PropertyValue::UNKNOWN)]);
    assert_eq!(provider.check(check(Arc::default(), true)).await.unwrap().inputs, expected);
    assert_eq!(provider.create(create(Arc::default(), true)).await.unwrap().outputs, expected);
    let error = provider.create(create(Arc::default(), false)).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider's answer to Create is not valid: property a: unexpected unknown value");
    assert!(error.is_indeterminate());
    assert!(provider.check(check(Arc::default(), false)).await.is_err());
    let invoke = InvokeRequest { token: "f".into(), arguments: Arc::default(), preview: true };
    assert!(provider.invoke(invoke).await.is_err());
}

#[tokio::test]
async fn a_created_resource_has_an_id_except_in_a_preview() {
    let probe = Probe::default();
    let provider = probe.provider(Some(ALL));
    assert_eq!(provider.create(create(Arc::default(), true)).await.unwrap().id, None);
    let error = provider.create(create(Arc::default(), false)).await.unwrap_err();
    assert!(
        matches!(&error, ProviderError::Protocol { method: Method::Create, .. }) && error.is_indeterminate(),
        "{error}"
    );
}

#[tokio::test]
async fn an_asset_that_comes_back_as_a_hash_gets_its_contents_again() {
    let probe = Probe::default();
    let asset = |content| PropertyValue::Asset(Asset { hash: Some("ab".into()), content });
    let as_hash = shared([("a", asset(AssetContent::Elided))]);
    let elided = encode(&as_hash, &EncodeOptions::EVERYTHING).unwrap();
    let reply = rpc::ReadResponse {
        id: "i".into(),
        properties: Some(elided.clone()),
        inputs: Some(elided),
        ..Default::default()
    };
    probe.answers("Read", reply);
    let inputs = shared([("a", asset(AssetContent::Path("p".into())))]);
    let read = ReadRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        outputs: Some(inputs.clone()),
        inputs: Some(inputs),
        timeout: None,
        views: Views::default(),
    };
    let reply = probe.provider(Some(ALL)).read(read).await.unwrap();
    for bag in [reply.outputs.unwrap(), reply.inputs.unwrap()] {
        let PropertyValue::Asset(asset) = &bag["a"] else { panic!("{bag:?}") };
        assert_eq!(asset.content, AssetContent::Path("p".into()));
    }
}

fn diff() -> DiffRequest {
    DiffRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        olds: Arc::default(),
        old_inputs: Arc::default(),
        news: Arc::default(),
        ignore_changes: vec!["a.b".into()],
        allow_unknowns: false,
    }
}

#[tokio::test]
async fn a_diff_is_passed_on_as_it_is() {
    let probe = Probe::default();
    let provider = probe.provider(Some(ALL));
    // Node without `diff` answers nothing at all.
    assert_eq!(provider.diff(diff()).await.unwrap(), DiffReply::default());
    assert_eq!(probe.last::<rpc::DiffRequest>("Diff").ignore_changes, ["a.b"]);

    let entry = |kind, input_diff| rpc::PropertyDiff { kind, input_diff };
    let mut wire = rpc::DiffResponse {
        replaces: vec!["a".into(), "a".into()],
        stables: vec!["s".into()],
        delete_before_replace: true,
        changes: 2,
        diffs: vec!["a.b".into()],
        detailed_diff: [("a".into(), entry(3, true)), ("z".into(), entry(99, false))].into(),
        has_detailed_diff: true,
    };
    probe.answers("Diff", wire.clone());
    let reply = provider.diff(diff()).await.unwrap();
    assert_eq!((reply.changes, reply.delete_before_replace), (DiffChanges::Some, true));
    assert_eq!(
        (reply.replaces, reply.stables, reply.diffs),
        (wire.replaces.clone(), wire.stables.clone(), wire.diffs.clone())
    );
    let detailed = reply.detailed_diff.unwrap();
    assert_eq!((detailed["a"].kind, detailed["a"].input_diff), (DiffKind::DeleteReplace, true));
    assert_eq!(detailed["z"].kind, DiffKind::Update);

    wire.has_detailed_diff = false;
    probe.answers("Diff", wire.clone());
    assert_eq!(provider.diff(diff()).await.unwrap().detailed_diff, None);
    wire.changes = 3;
    probe.answers("Diff", wire);
    assert!(matches!(provider.diff(diff()).await, Err(ProviderError::Protocol { .. })));
}

#[tokio::test]
async fn autonaming_goes_only_to_who_takes_it() {
    let probe = Probe::default();
    probe.provider(Some(ALL)).check(check(Arc::default(), false)).await.unwrap();
    let sent = probe.last::<rpc::CheckRequest>("Check").autonaming.unwrap();
    assert_eq!((sent.proposed_name.as_str(), sent.mode), ("x", 1));
    probe.provider(Some(NONE)).check(check(Arc::default(), false)).await.unwrap();
    assert_eq!(probe.last::<rpc::CheckRequest>("Check").autonaming, None);
}

#[tokio::test]
async fn failures_of_a_check_and_an_invoke_are_answers() {
    let probe = Probe::default();
    let failures = vec![rpc::CheckFailure { property: "a.b".into(), reason: "no".into() }];
    probe
        .answers("Check", rpc::CheckResponse { inputs: None, failures: failures.clone() })
        .answers("Invoke", rpc::InvokeResponse { r#return: None, failures });
    let provider = probe.provider(Some(ALL));
    let reply = provider.check(check(Arc::default(), false)).await.unwrap();
    assert_eq!((reply.failures[0].property.as_deref(), reply.failures[0].reason.as_str()), (Some("a.b"), "no"));
    let invoke = InvokeRequest { token: "f".into(), arguments: Arc::default(), preview: false };
    assert_eq!(provider.invoke(invoke).await.unwrap().failures, reply.failures);
}

#[tokio::test]
async fn no_schema_is_told_in_two_ways() {
    let probe = Probe::default();
    let provider = probe.provider(None);
    for (answer, expected) in [("{}", None), (" {\n} ", None), (r#"{"name":"x"}"#, Some(r#"{"name":"x"}"#.to_owned()))]
    {
        probe.answers("GetSchema", rpc::GetSchemaResponse { schema: answer.into() });
        assert_eq!(provider.schema(SchemaRequest::default()).await.unwrap(), expected);
    }
    probe.fails("GetSchema", Status::unimplemented(""));
    assert_eq!(provider.schema(SchemaRequest::default()).await.unwrap(), None);
}

#[tokio::test]
async fn a_list_is_a_page() {
    let probe = Probe::default();
    let continuation = rpc::list_response::Continuation { continuation_token: "next".into() };
    let response = Some(rpc::list_response::Response::Continuation(continuation));
    probe.answers("List", rpc::ListResponse { response });
    let ListReply::Page { results, continuation_token } =
        probe.provider(Some(ALL)).list(ListRequest::default()).await.unwrap()
    else {
        panic!("no page")
    };
    assert_eq!((results.len(), results[1].id.as_str(), continuation_token.as_deref()), (2, "b", Some("next")));
}

#[tokio::test]
async fn no_mapping_is_told_in_two_ways() {
    let probe = Probe::default();
    let provider = probe.provider(None);
    assert_eq!(provider.mapping("terraform", "").await.unwrap(), None);
    probe.fails("GetMapping", Status::unimplemented(""));
    assert_eq!(provider.mapping("terraform", "").await.unwrap(), None);
    assert_eq!(provider.mappings("terraform").await.unwrap(), None);
}
