//! Decoding of replies.

use std::sync::Arc;

use bridge::provider::{
    Autonaming, Capabilities, CheckRequest, CreateRequest, DiffChanges, DiffKind, DiffReply, DiffRequest,
    InvokeRequest, ListReply, ListRequest, LostReply, Method, Provider, ReadRequest, SchemaRequest, UpdateRequest,
    Views,
};
use pulumi_proto::property::wire::{EncodeOptions, encode};
use pulumi_proto::property::{Asset, AssetContent, PropertyMap, PropertyValue, UNKNOWN_STRING};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::rpc;
use tonic::Status;

use super::recording_provider::RecordingProvider;
use super::{ALL, bag, secret, shared, texts, urn};

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
async fn secrets_are_marked_again_in_replies_of_a_provider_that_does_not_accept_secrets() {
    let recorder = RecordingProvider::default();
    let sent = shared([("a", secret("1")), ("b", "2".into())]);
    let back = Some(texts([("a", "1"), ("b", "2"), ("c", "3")]));
    let marked = bag([("a", secret("1")), ("b", "2".into()), ("c", "3".into())]);
    recorder
        .reply_with("Check", rpc::CheckResponse { inputs: back.clone(), failures: vec![] })
        .reply_with("Create", rpc::CreateResponse { id: "i".into(), properties: back.clone(), ..Default::default() })
        .reply_with("Update", rpc::UpdateResponse { properties: back.clone(), ..Default::default() })
        .reply_with(
            "Read",
            rpc::ReadResponse { id: "i".into(), properties: back.clone(), inputs: back.clone(), ..Default::default() },
        )
        .reply_with("Invoke", rpc::InvokeResponse { r#return: Some(texts([("r", "1")])), failures: vec![] });
    let provider = recorder.provider(Some(NONE));
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
    assert!(recorder.last_request::<rpc::InvokeRequest>("Invoke").preview);

    // A provider that accepts secrets marks them itself.
    let provider = recorder.provider(Some(ALL));
    assert_eq!(provider.create(create(sent, false)).await.unwrap().outputs["a"], "1".into());
    assert_eq!(provider.invoke(invoke).await.unwrap().result["r"], "1".into());
}

#[tokio::test]
async fn missing_bags_count_as_empty_except_in_read() {
    let recorder = RecordingProvider::default();
    recorder.reply_with("Create", rpc::CreateResponse { id: "i".into(), ..Default::default() });
    let provider = recorder.provider(Some(ALL));
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
    recorder
        .reply_with("Read", rpc::ReadResponse { id: "j".into(), properties: Some(texts([])), ..Default::default() });
    let reply = provider.read(read).await.unwrap();
    assert_eq!((reply.id, reply.outputs, reply.inputs), (ResourceId::new("j"), Some(bag([])), None));
}

#[tokio::test]
async fn unknown_values_are_accepted_in_a_preview_only() {
    let recorder = RecordingProvider::default();
    let unknown = Some(texts([("a", UNKNOWN_STRING)]));
    recorder
        .reply_with("Check", rpc::CheckResponse { inputs: unknown.clone(), failures: vec![] })
        .reply_with("Create", rpc::CreateResponse { id: "i".into(), properties: unknown.clone(), ..Default::default() })
        .reply_with("Invoke", rpc::InvokeResponse { r#return: unknown, failures: vec![] });
    let provider = recorder.provider(Some(ALL));
    let expected = bag([("a", PropertyValue::UNKNOWN)]);
    assert_eq!(provider.check(check(Arc::default(), true)).await.unwrap().inputs, expected);
    assert_eq!(provider.create(create(Arc::default(), true)).await.unwrap().outputs, expected);
    let error = provider.create(create(Arc::default(), false)).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider's reply to Create is not valid: property a: unexpected unknown value");
    assert!(error.is_indeterminate());
    assert!(provider.check(check(Arc::default(), false)).await.is_err());
    let invoke = InvokeRequest { token: "f".into(), arguments: Arc::default(), preview: true };
    assert!(provider.invoke(invoke).await.is_err());
}

#[tokio::test]
async fn created_resource_without_id_is_an_error_except_in_a_preview() {
    let recorder = RecordingProvider::default();
    let provider = recorder.provider(Some(ALL));
    assert_eq!(provider.create(create(Arc::default(), true)).await.unwrap().id, None);
    let error = provider.create(create(Arc::default(), false)).await.unwrap_err();
    assert_eq!((error.lost_reply(Method::Create), error.is_indeterminate()), (Some(LostReply::NoId), true));
}

#[tokio::test]
async fn content_of_an_asset_returned_as_a_hash_is_restored() {
    let recorder = RecordingProvider::default();
    let asset = |content| PropertyValue::Asset(Asset { hash: Some("ab".into()), content });
    let as_hash = shared([("a", asset(AssetContent::Elided))]);
    let elided = encode(&as_hash, &EncodeOptions::EVERYTHING).unwrap();
    let reply = rpc::ReadResponse {
        id: "i".into(),
        properties: Some(elided.clone()),
        inputs: Some(elided),
        ..Default::default()
    };
    recorder.reply_with("Read", reply);
    let inputs = shared([("a", asset(AssetContent::Path("p".into())))]);
    let read = ReadRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        outputs: Some(inputs.clone()),
        inputs: Some(inputs),
        timeout: None,
        views: Views::default(),
    };
    let reply = recorder.provider(Some(ALL)).read(read).await.unwrap();
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
async fn diff_reply_is_decoded() {
    let recorder = RecordingProvider::default();
    let provider = recorder.provider(Some(ALL));
    // The Node server returns an empty reply for a provider without `diff`.
    assert_eq!(provider.diff(diff()).await.unwrap(), DiffReply::default());
    assert_eq!(recorder.last_request::<rpc::DiffRequest>("Diff").ignore_changes, ["a.b"]);

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
    recorder.reply_with("Diff", wire.clone());
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
    recorder.reply_with("Diff", wire.clone());
    assert_eq!(provider.diff(diff()).await.unwrap().detailed_diff, None);
    wire.changes = 3;
    recorder.reply_with("Diff", wire);
    let error = provider.diff(diff()).await.unwrap_err();
    assert_eq!(error.lost_reply(Method::Diff), Some(LostReply::InvalidField));
}

#[tokio::test]
async fn autonaming_is_sent_only_to_a_provider_that_supports_it() {
    let recorder = RecordingProvider::default();
    recorder.provider(Some(ALL)).check(check(Arc::default(), false)).await.unwrap();
    let sent = recorder.last_request::<rpc::CheckRequest>("Check").autonaming.unwrap();
    assert_eq!((sent.proposed_name.as_str(), sent.mode), ("x", 1));
    recorder.provider(Some(NONE)).check(check(Arc::default(), false)).await.unwrap();
    assert_eq!(recorder.last_request::<rpc::CheckRequest>("Check").autonaming, None);
}

#[tokio::test]
async fn failures_of_check_and_invoke_are_returned_in_the_reply() {
    let recorder = RecordingProvider::default();
    let failures = vec![rpc::CheckFailure { property: "a.b".into(), reason: "no".into() }];
    recorder
        .reply_with("Check", rpc::CheckResponse { inputs: None, failures: failures.clone() })
        .reply_with("Invoke", rpc::InvokeResponse { r#return: None, failures });
    let provider = recorder.provider(Some(ALL));
    let reply = provider.check(check(Arc::default(), false)).await.unwrap();
    assert_eq!((reply.failures[0].property.as_deref(), reply.failures[0].reason.as_str()), (Some("a.b"), "no"));
    let invoke = InvokeRequest { token: "f".into(), arguments: Arc::default(), preview: false };
    assert_eq!(provider.invoke(invoke).await.unwrap().failures, reply.failures);
}

#[tokio::test]
async fn empty_and_unimplemented_schemas_are_none() {
    let recorder = RecordingProvider::default();
    let provider = recorder.provider(None);
    for (schema, expected) in [("{}", None), (" {\n} ", None), (r#"{"name":"x"}"#, Some(r#"{"name":"x"}"#.to_owned()))]
    {
        recorder.reply_with("GetSchema", rpc::GetSchemaResponse { schema: schema.into() });
        assert_eq!(provider.schema(SchemaRequest::default()).await.unwrap(), expected);
    }
    recorder.fail_with("GetSchema", Status::unimplemented(""));
    assert_eq!(provider.schema(SchemaRequest::default()).await.unwrap(), None);
}

#[tokio::test]
async fn list_returns_a_page() {
    let recorder = RecordingProvider::default();
    let continuation = rpc::list_response::Continuation { continuation_token: "next".into() };
    let response = Some(rpc::list_response::Response::Continuation(continuation));
    recorder.reply_with("List", rpc::ListResponse { response });
    let ListReply::Page { results, continuation_token } =
        recorder.provider(Some(ALL)).list(ListRequest::default()).await.unwrap()
    else {
        panic!("no page")
    };
    assert_eq!((results.len(), results[1].id.as_str(), continuation_token.as_deref()), (2, "b", Some("next")));
}

#[tokio::test]
async fn empty_and_unimplemented_mappings_are_none() {
    let recorder = RecordingProvider::default();
    let provider = recorder.provider(None);
    assert_eq!(provider.mapping("terraform", "").await.unwrap(), None);
    recorder.fail_with("GetMapping", Status::unimplemented(""));
    assert_eq!(provider.mapping("terraform", "").await.unwrap(), None);
    assert_eq!(provider.mappings("terraform").await.unwrap(), None);
}
