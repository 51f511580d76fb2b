//! Tests of the plugin over gRPC.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod host;
mod plugin_service;
mod process;
mod schema;

use std::fs;

use host::{Host, bag, decode_bag, describe, urn, wire};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::property_diff::Kind;
use pulumi_proto::rpc::{
    CallRequest, CheckRequest, ConstructRequest, DiffRequest, GetMappingRequest, GetMappingsRequest, InvokeRequest,
    ListRequest, ParameterizeRequest, PropertyDiff, ProviderHandshakeRequest, UpdateRequest,
};
use tonic::Code;

const DIRECTORY: &str = "files:fs:Directory";
const FILE: &str = "files:fs:File";
const PASSWORD: &str = "files:random:Password";

fn file(path: &str, content: impl Into<PropertyValue>) -> PropertyMap {
    bag([("path", path.into()), ("content", content.into()), ("mode", "0644".into())])
}

#[tokio::test]
async fn handshake_and_configure_report_the_same_features() {
    let mut host = Host::started().await;
    let handshake_request = ProviderHandshakeRequest { engine_address: "127.0.0.1:1".into(), ..Default::default() };
    let handshake = host.provider.handshake(handshake_request).await.unwrap().into_inner();
    assert!(handshake.accept_secrets && handshake.accept_resources && handshake.accept_outputs);
    assert!(!handshake.supports_autonaming_configuration && !handshake.accepts_byte_string);
    let configured = host.configure(true).await.unwrap();
    assert!(configured.accept_secrets && configured.accept_resources && configured.accept_outputs);
    assert!(configured.supports_preview && !configured.supports_autonaming_configuration);
    let info = host.provider.get_plugin_info(()).await.unwrap().into_inner();
    assert_eq!(info.version, env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn file_passes_through_check_create_read_update_and_delete() {
    let mut host = Host::configured().await;
    let checked = host.check(FILE, &bag([("path", "./a".into()), ("content", "one".into())])).await.unwrap();
    assert_eq!(checked, file("a", "one"));
    let (id, outputs) = host.create(FILE, &checked).await.unwrap();
    assert_eq!((id.as_str(), &outputs["size"]), ("a", &3.0.into()));
    assert_eq!(host.read(FILE, &id, Some((&checked, &outputs))).await, Some((checked.clone(), outputs.clone())));

    let news = file("a", "two, longer");
    let request = UpdateRequest {
        id: id.clone(),
        urn: urn(FILE),
        olds: wire(&outputs),
        old_inputs: wire(&checked),
        news: wire(&news),
        ..Default::default()
    };
    let updated = host.provider.update(request).await.unwrap().into_inner();
    let updated = decode_bag(updated.properties);
    assert_eq!(fs::read_to_string(host.root.join("a")).unwrap(), "two, longer");
    assert_eq!((updated.len(), &updated["size"]), (5, &11.0.into()));

    host.delete(FILE, &id).await.unwrap();
    assert!(!host.root.join("a").exists());
    host.delete(FILE, &id).await.unwrap();
    assert_eq!(host.read(FILE, &id, Some((&news, &updated))).await, None);
    assert_eq!(
        host.logged(),
        [
            "Debug configured",
            "Debug created",
            "Debug read",
            "Debug updated",
            "Debug deleted",
            "Debug deleted",
            "Debug read: not there",
        ]
    );
}

#[tokio::test]
async fn check_reports_a_failure_for_each_invalid_property() {
    let mut host = Host::configured().await;
    let path_reason = "path: the path must stay below the root of the plugin: it may not contain \"..\"";
    let cases: [(&str, PropertyMap, &[&str]); 10] = [
        (FILE, bag([]), &["path: a string is required but missing", "content: a string is required but missing"]),
        (FILE, file("../a", "x"), &[path_reason]),
        (FILE, file("a/../../b", "x"), &[path_reason]),
        (FILE, file("/etc/passwd", "x"), &["path: the path must be relative to the root of the plugin, not absolute"]),
        (FILE, file("a", 12.0), &["content: a string is expected, not a number (quote it to make it a string)"]),
        (
            DIRECTORY,
            bag([("path", "a".into()), ("mode", "rwxr-xr-x".into()), ("owner", "me".into())]),
            &[
                "mode: a mode is octal digits such as \"0750\", and the owner must be able to read, write and enter",
                "owner: files:fs:Directory has no such property; it has path and mode",
            ],
        ),
        (
            DIRECTORY,
            bag([("path", PropertyValue::secret("a".into()))]),
            &["path: a path cannot be secret: it becomes the id, which is shown and stored in plain text"],
        ),
        (PASSWORD, bag([("length", 7.0.into())]), &["length: a password has 8 to 128 characters"]),
        (PASSWORD, bag([("length", "24".into())]), &["length: an integer is expected, not a string"]),
        (
            PASSWORD,
            bag([("length", 8.5.into()), ("special", "yes".into())]),
            &["length: an integer is expected, not a fraction", "special: a boolean is expected, not a string"],
        ),
    ];
    for (kind, inputs, expected) in cases {
        assert_eq!(host.check(kind, &inputs).await.unwrap_err(), expected, "{kind} {inputs:?}");
    }
}

#[tokio::test]
async fn diff_reports_replacements_and_delete_before_replace() {
    let mut host = Host::configured().await;
    let old = file("a", "x");
    assert_eq!(host.diff(FILE, &old, &old).await.changes(), DiffChanges::DiffNone);

    let moved = host.diff(FILE, &old, &file("b", "y")).await;
    assert_eq!((moved.changes(), moved.replaces.as_slice()), (DiffChanges::DiffSome, &["path".to_owned()][..]));
    assert_eq!(moved.diffs, ["path", "content"]);
    assert!(moved.has_detailed_diff && !moved.delete_before_replace);
    assert_eq!(moved.detailed_diff["path"], PropertyDiff { kind: Kind::UpdateReplace.into(), input_diff: true });

    // Only the user can request a replacement here. It keeps the location, so the old resource must be deleted first.
    let in_place = host.diff(FILE, &old, &file("a", PropertyValue::UNKNOWN)).await;
    assert_eq!(in_place.detailed_diff["content"], PropertyDiff { kind: Kind::Update.into(), input_diff: true });
    assert!(in_place.replaces.is_empty() && in_place.delete_before_replace);
    assert_eq!(in_place.stables, ["path"]);
}

#[tokio::test]
async fn diff_without_old_inputs_uses_the_outputs() {
    let mut host = Host::configured().await;
    let inputs = file("a", "x");
    let (id, outputs) = host.create(FILE, &inputs).await.unwrap();
    let request = DiffRequest { id, urn: urn(FILE), olds: wire(&outputs), news: wire(&inputs), ..Default::default() };
    assert_eq!(host.provider.diff(request.clone()).await.unwrap().into_inner().changes(), DiffChanges::DiffNone);

    let ignored = DiffRequest { news: wire(&file("a", "y")), ignore_changes: vec!["content".into()], ..request };
    assert_eq!(host.provider.diff(ignored).await.unwrap().into_inner().changes(), DiffChanges::DiffNone);
}

#[tokio::test]
async fn preview_has_no_effects_and_returns_unknowns() {
    let mut host = Host::configured().await;
    let news = host.check(FILE, &file("a", PropertyValue::UNKNOWN)).await.unwrap();
    let previewed = host.preview(FILE, &news).await;
    assert!(previewed["sha256"].contains_unknowns() && previewed["size"].contains_unknowns());
    assert_eq!(previewed["path"], "a".into());
    assert!(host.preview(PASSWORD, &bag([("length", 24.0.into())])).await["result"].contains_unknowns());
    assert!(!host.root.exists());

    let status = host.create(FILE, &news).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "unknowns belong to previews");
}

#[tokio::test]
async fn preview_of_an_update_keeps_an_unchanged_password() {
    let mut host = Host::configured().await;
    let inputs = bag([("length", 24.0.into()), ("special", true.into())]);
    let (id, outputs) = host.create(PASSWORD, &inputs).await.unwrap();
    let request = |special: bool| UpdateRequest {
        id: id.clone(),
        urn: urn(PASSWORD),
        olds: wire(&outputs),
        old_inputs: wire(&inputs),
        news: wire(&bag([("length", 24.0.into()), ("special", special.into())])),
        preview: true,
        ..Default::default()
    };
    let kept = host.provider.update(request(true)).await.unwrap().into_inner();
    assert_eq!(decode_bag(kept.properties)["result"], outputs["result"]);
    let generated = host.provider.update(request(false)).await.unwrap().into_inner();
    assert!(decode_bag(generated.properties)["result"].contains_unknowns());
}

#[tokio::test]
async fn secrets_are_returned_as_secrets_and_never_logged() {
    let mut host = Host::configured().await;
    let news = host.check(FILE, &file("a", PropertyValue::secret("hunter2".into()))).await.unwrap();
    assert!(news["content"].is_secret());
    let (_, outputs) = host.create(FILE, &news).await.unwrap();
    assert!(["content", "sha256", "size"].iter().all(|name| outputs[*name].is_secret()), "{outputs:?}");
    let (inputs, _) = host.read(FILE, "a", Some((&news, &outputs))).await.unwrap();
    assert!(inputs["content"].is_secret());
    assert_eq!(fs::read_to_string(host.root.join("a")).unwrap(), "hunter2");

    let failures = host.check(FILE, &file("a", PropertyValue::secret(42.0.into()))).await.unwrap_err();
    assert!(!failures.concat().contains("42"), "{failures:?}");
    assert!(!host.logged().concat().contains("hunter2"));
}

#[tokio::test]
async fn engine_without_secret_support_receives_plain_values() {
    let mut host = Host::started().await;
    host.configure(false).await.unwrap();
    let (_, outputs) = host.create(PASSWORD, &bag([("length", 8.0.into()), ("special", false.into())])).await.unwrap();
    assert!(outputs["result"].as_str().is_some_and(|result| result.len() == 8));
}

#[tokio::test]
async fn existing_path_is_imported_and_missing_path_is_not_found() {
    let mut host = Host::configured().await;
    fs::create_dir_all(&host.root).unwrap();
    fs::write(host.root.join("a"), "theirs").unwrap();
    let (inputs, outputs) = host.read(FILE, "a", None).await.unwrap();
    assert_eq!((&inputs["path"], &inputs["content"]), (&"a".into(), &"theirs".into()));
    assert!(inputs.contains_key("mode") && outputs.contains_key("sha256"));
    assert_eq!(host.read(FILE, "b", None).await, None);
    assert_eq!(host.read(DIRECTORY, "a", None).await, None);
}

/// Shows: plugin-authoring.md#what-a-process-has-to-do "Accept and send messages of up to 400 MiB."
#[tokio::test]
async fn content_above_the_default_grpc_limit_is_accepted() {
    let mut host = Host::configured().await;
    let content = "x".repeat(9 * 1024 * 1024);
    let (_, outputs) = host.create(FILE, &file("a", content.as_str())).await.unwrap();
    assert_eq!(outputs["size"], (content.len() as f64).into());
}

#[tokio::test]
async fn configuration_has_a_default_and_change_of_root_replaces_the_provider() {
    let mut host = Host::started().await;
    let provider = "pulumi:providers:files";
    let check = |news: PropertyMap| CheckRequest { urn: urn(provider), news: wire(&news), ..Default::default() };
    let news = bag([("version", "0.1.0".into())]);
    let response = host.provider.check_config(check(news.clone())).await.unwrap().into_inner();
    let checked = decode_bag(response.inputs);
    assert_eq!(checked, bag([("root", ".".into()), ("version", "0.1.0".into())]));
    let bad = bag([("root", "".into()), ("rooot", "x".into())]);
    let response = host.provider.check_config(check(bad)).await.unwrap().into_inner();
    assert_eq!(
        describe(response.failures),
        [
            "rooot: the configuration of files has no such property; it has root and version",
            "root: the root must name a folder; \".\" is the working directory of the plugin",
        ]
    );

    let diff = |news: PropertyMap| DiffRequest {
        urn: urn(provider),
        olds: wire(&checked),
        old_inputs: wire(&checked),
        news: wire(&news),
        ..Default::default()
    };
    let same = host.provider.diff_config(diff(checked.clone())).await.unwrap().into_inner();
    assert_eq!(same.changes(), DiffChanges::DiffNone);
    let newer = bag([("root", ".".into()), ("version", "0.2.0".into())]);
    let newer = host.provider.diff_config(diff(newer)).await.unwrap().into_inner();
    assert_eq!((newer.changes(), newer.replaces.len()), (DiffChanges::DiffSome, 0));
    let moved = host.provider.diff_config(diff(bag([("root", "site".into())]))).await.unwrap().into_inner();
    assert_eq!(moved.replaces, ["root"]);
}

#[tokio::test]
async fn create_fails_before_configure_and_second_configure_fails() {
    let mut host = Host::started().await;
    assert_eq!(host.create(FILE, &file("a", "x")).await.unwrap_err().code(), Code::FailedPrecondition);
    host.configure(true).await.unwrap();
    assert_eq!(host.configure(true).await.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn function_reads_a_file_and_reports_invalid_arguments() {
    let mut host = Host::configured().await;
    fs::create_dir_all(&host.root).unwrap();
    fs::write(host.root.join("a"), "hello").unwrap();
    let invoke = |path: PropertyValue| InvokeRequest {
        tok: "files:fs:readFile".into(),
        args: wire(&bag([("path", path)])),
        ..Default::default()
    };
    let response = host.provider.invoke(invoke("a".into())).await.unwrap().into_inner();
    assert_eq!(decode_bag(response.r#return), bag([("content", "hello".into())]));
    let response = host.provider.invoke(invoke(PropertyValue::secret("a".into()))).await.unwrap().into_inner();
    assert!(decode_bag(response.r#return)["content"].is_secret());
    for (path, reason) in [("b", "there is no file of this path"), ("../a", "the path must stay below the root")] {
        let response = host.provider.invoke(invoke(path.into())).await.unwrap().into_inner();
        let failures = describe(response.failures);
        assert!(failures.concat().starts_with(&format!("path: {reason}")), "{failures:?}");
    }
    let unknown = InvokeRequest { tok: "files:fs:writeFile".into(), ..Default::default() };
    assert_eq!(host.provider.invoke(unknown).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn inconsistent_request_is_refused() {
    let mut host = Host::configured().await;
    let requests = [
        CheckRequest { urn: "nonsense".into(), ..Default::default() },
        CheckRequest { urn: urn("files:fs:Link"), ..Default::default() },
        CheckRequest { urn: urn(FILE), name: "other".into(), ..Default::default() },
        CheckRequest { urn: urn(FILE), r#type: DIRECTORY.into(), ..Default::default() },
    ];
    for request in requests {
        assert_eq!(host.provider.check(request).await.unwrap_err().code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn unsupported_calls_return_unimplemented() {
    let mut host = Host::configured().await;
    let client = &mut host.provider;
    let codes = [
        client.call(CallRequest::default()).await.unwrap_err().code(),
        client.construct(ConstructRequest::default()).await.unwrap_err().code(),
        client.parameterize(ParameterizeRequest::default()).await.unwrap_err().code(),
        client.list(ListRequest::default()).await.unwrap_err().code(),
        client.get_mapping(GetMappingRequest::default()).await.unwrap_err().code(),
        client.get_mappings(GetMappingsRequest::default()).await.unwrap_err().code(),
    ];
    assert_eq!(codes, [Code::Unimplemented; 6]);
}

#[tokio::test]
async fn create_after_cancel_is_aborted() {
    let mut host = Host::configured().await;
    host.provider.cancel(()).await.unwrap();
    let status = host.create(FILE, &file("a", "x")).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "a code that means: unchanged");
    assert!(!host.root.exists());
}
