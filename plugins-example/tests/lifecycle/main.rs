//! The plugin as an engine meets it: over the wire, call by call.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod companion;
mod host;
mod process;
mod schema;

use std::fs;

use host::{Host, bag, ours, shown, urn, wire};
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
async fn it_says_what_it_can_twice_the_same() {
    let mut host = Host::started().await;
    let hello = ProviderHandshakeRequest { engine_address: "127.0.0.1:1".into(), ..Default::default() };
    let shaken = host.provider.handshake(hello).await.unwrap().into_inner();
    assert!(shaken.accept_secrets && shaken.accept_resources && shaken.accept_outputs);
    assert!(!shaken.supports_autonaming_configuration && !shaken.accepts_byte_string);
    let configured = host.configure(true).await.unwrap();
    assert!(configured.accept_secrets && configured.accept_resources && configured.accept_outputs);
    assert!(configured.supports_preview && !configured.supports_autonaming_configuration);
    let info = host.provider.get_plugin_info(()).await.unwrap().into_inner();
    assert_eq!(info.version, env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn a_file_lives_from_check_to_delete() {
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
    let updated = ours(updated.properties);
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
async fn bad_inputs_are_refused_property_by_property() {
    let mut host = Host::configured().await;
    let path_reason = "path: the path must stay below the root of the plugin: it may not contain \"..\"";
    let cases: [(&str, PropertyMap, &[&str]); 10] = [
        (FILE, bag([]), &["path: a string is required, and missing", "content: a string is required, and missing"]),
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
            &["path: a path cannot be secret: it becomes the id, which is shown and stored in clear"],
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
async fn diff_says_what_replaces_and_in_which_order() {
    let mut host = Host::configured().await;
    let old = file("a", "x");
    assert_eq!(host.diff(FILE, &old, &old).await.changes(), DiffChanges::DiffNone);

    let elsewhere = host.diff(FILE, &old, &file("b", "y")).await;
    assert_eq!((elsewhere.changes(), elsewhere.replaces.as_slice()), (DiffChanges::DiffSome, &["path".to_owned()][..]));
    assert_eq!(elsewhere.diffs, ["path", "content"]);
    assert!(elsewhere.has_detailed_diff && !elsewhere.delete_before_replace);
    assert_eq!(elsewhere.detailed_diff["path"], PropertyDiff { kind: Kind::UpdateReplace.into(), input_diff: true });

    // Only the user could make a replacement of this one: into the same place, so that the old one must go first.
    let in_place = host.diff(FILE, &old, &file("a", PropertyValue::UNKNOWN)).await;
    assert_eq!(in_place.detailed_diff["content"], PropertyDiff { kind: Kind::Update.into(), input_diff: true });
    assert!(in_place.replaces.is_empty() && in_place.delete_before_replace);
    assert_eq!(in_place.stables, ["path"]);
}

#[tokio::test]
async fn a_diff_without_old_inputs_takes_them_from_the_outputs() {
    let mut host = Host::configured().await;
    let inputs = file("a", "x");
    let (id, outputs) = host.create(FILE, &inputs).await.unwrap();
    let request = DiffRequest { id, urn: urn(FILE), olds: wire(&outputs), news: wire(&inputs), ..Default::default() };
    assert_eq!(host.provider.diff(request.clone()).await.unwrap().into_inner().changes(), DiffChanges::DiffNone);

    let ignored = DiffRequest { news: wire(&file("a", "y")), ignore_changes: vec!["content".into()], ..request };
    assert_eq!(host.provider.diff(ignored).await.unwrap().into_inner().changes(), DiffChanges::DiffNone);
}

#[tokio::test]
async fn a_preview_has_no_effects_and_tells_what_it_cannot_know() {
    let mut host = Host::configured().await;
    let news = host.check(FILE, &file("a", PropertyValue::UNKNOWN)).await.unwrap();
    let foretold = host.preview(FILE, &news).await;
    assert!(foretold["sha256"].contains_unknowns() && foretold["size"].contains_unknowns());
    assert_eq!(foretold["path"], "a".into());
    assert!(host.preview(PASSWORD, &bag([("length", 24.0.into())])).await["result"].contains_unknowns());
    assert!(!host.root.exists());

    let status = host.create(FILE, &news).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "unknowns belong to previews");
}

#[tokio::test]
async fn the_preview_of_an_update_keeps_a_password_that_stays() {
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
    assert_eq!(ours(kept.properties)["result"], outputs["result"]);
    let drawn = host.provider.update(request(false)).await.unwrap().into_inner();
    assert!(ours(drawn.properties)["result"].contains_unknowns());
}

#[tokio::test]
async fn secrets_come_back_as_secrets_and_are_never_logged() {
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
async fn an_engine_that_takes_no_secrets_gets_none_marked() {
    let mut host = Host::started().await;
    host.configure(false).await.unwrap();
    let (_, outputs) = host.create(PASSWORD, &bag([("length", 8.0.into()), ("special", false.into())])).await.unwrap();
    assert!(outputs["result"].as_str().is_some_and(|result| result.len() == 8));
}

#[tokio::test]
async fn a_path_can_be_imported_and_a_missing_one_is_not_there() {
    let mut host = Host::configured().await;
    fs::create_dir_all(&host.root).unwrap();
    fs::write(host.root.join("a"), "theirs").unwrap();
    let (inputs, outputs) = host.read(FILE, "a", None).await.unwrap();
    assert_eq!((&inputs["path"], &inputs["content"]), (&"a".into(), &"theirs".into()));
    assert!(inputs.contains_key("mode") && outputs.contains_key("sha256"));
    assert_eq!(host.read(FILE, "b", None).await, None);
    assert_eq!(host.read(DIRECTORY, "a", None).await, None);
}

#[tokio::test]
async fn contents_beyond_what_grpc_takes_by_default_pass() {
    let mut host = Host::configured().await;
    let content = "x".repeat(9 * 1024 * 1024);
    let (_, outputs) = host.create(FILE, &file("a", content.as_str())).await.unwrap();
    assert_eq!(outputs["size"], (content.len() as f64).into());
}

#[tokio::test]
async fn the_configuration_has_a_default_and_another_root_replaces_everything() {
    let mut host = Host::started().await;
    let provider = "pulumi:providers:files";
    let check = |news: PropertyMap| CheckRequest { urn: urn(provider), news: wire(&news), ..Default::default() };
    let news = bag([("version", "0.1.0".into())]);
    let answer = host.provider.check_config(check(news.clone())).await.unwrap().into_inner();
    let checked = ours(answer.inputs);
    assert_eq!(checked, bag([("root", ".".into()), ("version", "0.1.0".into())]));
    let bad = bag([("root", "".into()), ("rooot", "x".into())]);
    let answer = host.provider.check_config(check(bad)).await.unwrap().into_inner();
    assert_eq!(
        shown(answer.failures),
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
async fn nothing_works_before_configure_and_configure_comes_once() {
    let mut host = Host::started().await;
    assert_eq!(host.create(FILE, &file("a", "x")).await.unwrap_err().code(), Code::FailedPrecondition);
    host.configure(true).await.unwrap();
    assert_eq!(host.configure(true).await.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn the_function_reads_files_and_says_which_argument_is_wrong() {
    let mut host = Host::configured().await;
    fs::create_dir_all(&host.root).unwrap();
    fs::write(host.root.join("a"), "hello").unwrap();
    let invoke = |path: PropertyValue| InvokeRequest {
        tok: "files:fs:readFile".into(),
        args: wire(&bag([("path", path)])),
        ..Default::default()
    };
    let answer = host.provider.invoke(invoke("a".into())).await.unwrap().into_inner();
    assert_eq!(ours(answer.r#return), bag([("content", "hello".into())]));
    let answer = host.provider.invoke(invoke(PropertyValue::secret("a".into()))).await.unwrap().into_inner();
    assert!(ours(answer.r#return)["content"].is_secret());
    for (path, reason) in [("b", "there is no file of this path"), ("../a", "the path must stay below the root")] {
        let answer = host.provider.invoke(invoke(path.into())).await.unwrap().into_inner();
        let failures = shown(answer.failures);
        assert!(failures.concat().starts_with(&format!("path: {reason}")), "{failures:?}");
    }
    let unknown = InvokeRequest { tok: "files:fs:writeFile".into(), ..Default::default() };
    assert_eq!(host.provider.invoke(unknown).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn requests_that_contradict_themselves_are_refused() {
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
async fn what_it_does_not_have_is_unimplemented() {
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
async fn after_cancel_nothing_new_is_started() {
    let mut host = Host::configured().await;
    host.provider.cancel(()).await.unwrap();
    let status = host.create(FILE, &file("a", "x")).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "a code that means: unchanged");
    assert!(!host.root.exists());
}
