//! Tests of Handshake, CheckConfig, DiffConfig, Configure and Initialize.

use std::time::Duration;

use bridge::provider::grpc::{AuthEntry, HostInfo, Limits, PluginInit, handshake};
use bridge::provider::{
    Capabilities, CheckConfigRequest, ConfigureRequest, DiffChanges, DiffConfigRequest, Method, Provider, ProviderError,
};
use prost::Message as _;
use prost_types::Any;
use pulumi_proto::plugin_v1 as v1;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::{google_rpc, rpc};
use tonic::{Code, Status};

use super::recording_provider::{PROVIDER, RecordingProvider};
use super::{ALL, bag, secret, shared, texts};

fn configure(inputs: impl Into<std::sync::Arc<pulumi_proto::property::PropertyMap>>) -> ConfigureRequest {
    ConfigureRequest { urn: PROVIDER.parse().unwrap(), id: "42".into(), inputs: inputs.into() }
}

fn host_info() -> HostInfo<'static> {
    HostInfo {
        engine_address: "127.0.0.1:1",
        program_folder: Some(std::path::Path::new("/plugins/rec")),
        status_tokens: None,
    }
}

#[tokio::test]
async fn handshake_sends_host_information_and_returns_capabilities() {
    let recorder = RecordingProvider::default();
    recorder.reply_with(
        "Handshake",
        rpc::ProviderHandshakeResponse { accept_secrets: true, accepts_byte_string: true, ..Default::default() },
    );
    recorder.reply_with("GetPluginInfo", rpc::PluginInfo { version: "v1.2".into() });
    let provider = handshake(recorder.connection(), "rec", None, host_info(), Limits::default()).await.unwrap();

    let expected =
        Capabilities { accept_secrets: true, accept_byte_strings: true, supports_preview: true, ..Default::default() };
    assert_eq!((provider.capabilities(), provider.version()), (expected, Some("v1.2")));
    let sent: rpc::ProviderHandshakeRequest = recorder.last_request("Handshake");
    assert_eq!(
        sent,
        rpc::ProviderHandshakeRequest {
            engine_address: "127.0.0.1:1".into(),
            root_directory: Some("/plugins/rec".into()),
            program_directory: Some("/plugins/rec".into()),
            configure_with_urn: true,
            supports_refresh_before_update: true,
            invoke_with_preview: true,
            accepts_byte_string: true,
            ..Default::default()
        }
    );
    // Capabilities in the reply of Configure are ignored after a handshake.
    provider.configure(configure(bag([]))).await.unwrap();
    assert_eq!(provider.capabilities(), expected);
}

#[tokio::test]
async fn capabilities_come_from_configure_without_handshake() {
    let recorder = RecordingProvider::default();
    recorder.fail_with("Handshake", Status::unimplemented("")).reply_with(
        "Configure",
        rpc::ConfigureResponse {
            accept_secrets: true,
            supports_preview: true,
            accept_resources: true,
            accept_outputs: true,
            supports_autonaming_configuration: true,
        },
    );
    let provider = handshake(recorder.connection(), "rec", None, host_info(), Limits::default()).await.unwrap();
    assert_eq!(provider.capabilities(), Capabilities::default());
    provider.configure(configure(bag([]))).await.unwrap();
    assert_eq!(provider.capabilities(), Capabilities { accept_byte_strings: false, ..ALL });
}

#[tokio::test]
async fn failed_handshake_and_invalid_version_are_errors() {
    let recorder = RecordingProvider::default();
    recorder.fail_with("Handshake", Status::permission_denied("not you"));
    let error = handshake(recorder.connection(), "rec", None, host_info(), Limits::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "not you");

    let recorder = RecordingProvider::default();
    recorder.reply_with("GetPluginInfo", rpc::PluginInfo { version: "newest".into() });
    let error = handshake(recorder.connection(), "rec", None, host_info(), Limits::default()).await.unwrap_err();
    assert_eq!(error.to_string(), r#"the provider's reply to GetPluginInfo is not valid: "newest" is not a version"#);
}

#[tokio::test]
async fn configuration_is_sent_as_args_and_variables_and_only_once() {
    let recorder = RecordingProvider::default();
    let provider = recorder.provider(None);
    let inputs =
        shared([("region", "eu".into()), ("retries", 3.0.into()), ("token", secret("x")), ("version", "1.0.0".into())]);
    provider.configure(configure(inputs.clone())).await.unwrap();
    let sent: rpc::ConfigureRequest = recorder.last_request("Configure");
    let variables: Vec<_> = sent.variables.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(variables, ["rec:config:region=eu", "rec:config:retries=3", "rec:config:token=x"]);
    assert_eq!(
        sent.args.unwrap().open().unwrap().fields.into_keys().collect::<Vec<_>>(),
        ["region", "retries", "token", "version"]
    );
    assert!(sent.accept_secrets && sent.accept_resources && sent.sends_old_inputs && sent.sends_old_inputs_to_delete);
    assert_eq!(
        (sent.id.as_deref(), sent.urn.as_deref(), sent.name.as_deref(), sent.r#type.as_deref()),
        (Some("42"), Some(PROVIDER), Some("main"), Some("pulumi:providers:rec"))
    );

    assert!(provider.configure(configure(inputs)).await.is_err());
    assert_eq!(recorder.methods(), ["Configure"]);
}

/// Shows: plugin-authoring.md#calls "is called once per process, or again if it fails with `RetryInfo`"
#[tokio::test]
async fn configure_that_failed_can_be_repeated_only_with_retry_info() {
    for (name, repeats) in [("RetryInfo", true), ("ErrorInfo", false)] {
        let detail = Any { type_url: format!("type.googleapis.com/google.rpc.{name}"), value: Vec::new() };
        let code = Code::Unavailable;
        let details =
            google_rpc::Status { code: code.into(), message: String::new(), details: vec![detail] }.encode_to_vec();
        let recorder = RecordingProvider::default();
        recorder.fail_with("Configure", Status::with_details(code, "not yet", details.into()));
        let provider = recorder.provider(None);
        provider.configure(configure(bag([]))).await.unwrap_err();
        recorder.reply_with("Configure", rpc::ConfigureResponse::default());
        assert_eq!(provider.configure(configure(bag([]))).await.is_ok(), repeats, "{name}");
        // A successful one is never repeated.
        assert!(provider.configure(configure(bag([]))).await.is_err());
    }
}

#[tokio::test]
async fn missing_keys_are_reported_independent_of_the_code() {
    let recorder = RecordingProvider::default();
    let missing =
        rpc::configure_error_missing_keys::MissingKey { name: "rec:region".into(), description: "where".into() };
    let detail = rpc::ConfigureErrorMissingKeys { missing_keys: vec![missing] };
    recorder.fail_with(
        "Configure",
        super::failures::status(Code::InvalidArgument, "no", "ConfigureErrorMissingKeys", &detail),
    );
    let error = recorder.provider(None).configure(configure(bag([]))).await.unwrap_err();
    assert_eq!(error.to_string(), "missing configuration: rec:region (where)");
}

#[tokio::test]
async fn configure_fails_after_its_limit() {
    let recorder = RecordingProvider::default();
    recorder.hang_in("Configure");
    let limits = Limits { configure: Duration::from_millis(20), ..Limits::default() };
    let error = recorder.provider(None).with_limits(limits).configure(configure(bag([]))).await.unwrap_err();
    assert_eq!(error.to_string(), "the plugin has not replied to Configure within 0.02 s");
}

#[tokio::test]
async fn check_config_marks_secrets_again_independent_of_the_capabilities() {
    let recorder = RecordingProvider::default();
    recorder.reply_with(
        "CheckConfig",
        rpc::CheckResponse { inputs: Some(texts([("a", "1"), ("b", "2")])), failures: vec![] },
    );
    let request = CheckConfigRequest {
        urn: PROVIDER.parse().unwrap(),
        olds: Default::default(),
        news: shared([("a", secret("1")), ("b", "2".into())]),
    };
    let reply = recorder.provider(Some(ALL)).check_config(request).await.unwrap();
    assert_eq!(reply.inputs, bag([("a", secret("1")), ("b", "2".into())]));
}

#[tokio::test]
async fn unimplemented_check_config_accepts_and_unimplemented_diff_config_is_unknown() {
    let table: [(&str, &'static str, Status, bool); 8] = [
        ("rec", "CheckConfig", Status::unimplemented("no"), true),
        ("rec", "CheckConfig", Status::internal("no"), false),
        ("pulumi-nodejs", "CheckConfig", Status::internal("no"), true),
        ("kubernetes", "CheckConfig", Status::unknown("rpc error: code = Unimplemented"), true),
        ("kubernetes", "CheckConfig", Status::unknown("failed"), false),
        ("rec", "CheckConfig", Status::unknown("rpc error: code = Unimplemented"), false),
        (
            "kubernetes",
            "DiffConfig",
            Status::unknown("json: cannot unmarshal string into Go value of type struct {}"),
            true,
        ),
        ("rec", "DiffConfig", Status::unimplemented(""), true),
    ];
    for (package, method, status, accepted) in table {
        let recorder = RecordingProvider::default();
        recorder.fail_with(method, status.clone());
        let provider = recorder.provider(None);
        let urn: pulumi_proto::urn::Urn = format!("urn:pulumi:dev::t::pulumi:providers:{package}::p").parse().unwrap();
        let news = shared([("a", secret("1"))]);
        if method == "CheckConfig" {
            let request = CheckConfigRequest { urn, olds: Default::default(), news: news.clone() };
            let reply = provider.check_config(request).await;
            assert_eq!(reply.as_ref().is_ok_and(|reply| reply.inputs == *news), accepted, "{package} {status:?}");
        } else {
            let request = DiffConfigRequest {
                urn,
                olds: Default::default(),
                old_inputs: Default::default(),
                news,
                ignore_changes: vec![],
            };
            let reply = provider.diff_config(request).await;
            assert_eq!(
                reply.is_ok_and(|reply| reply.changes == DiffChanges::Unknown),
                accepted,
                "{package} {status:?}"
            );
        }
    }
}

fn init() -> PluginInit {
    PluginInit {
        project: "t".into(),
        stack: "dev".into(),
        secrets: [("token".into(), "s3cr3t".into())].into(),
        auth: [("main".into(), AuthEntry { kind: "aws-token".into(), config: bag([("key", "k".into())]) })].into(),
        config: bag([("password", secret("p")), ("later", PropertyValue::UNKNOWN)]),
    }
}

fn serving() -> v1::HealthCheckResponse {
    v1::HealthCheckResponse { status: v1::health_check_response::Status::Serving.into(), message: String::new() }
}

/// Shows: plugin-authoring.md#beside-the-provider "once, right after Configure: receives the project"
/// Shows: plugin-authoring.md#beside-the-provider "once, right after `Initialize`: if the plugin does not report that
///   it is serving"
/// Shows: plugin-authoring.md#beside-the-provider "once, when the plugin is closed, after all other calls"
#[tokio::test]
async fn plugin_is_initialized_once_after_configure_and_cleaned_up_on_close() {
    let recorder = RecordingProvider::initializable();
    recorder.reply_with("HealthCheck", serving());
    let provider = recorder.provider(None);
    provider.set_init(init());
    provider.configure(configure(bag([]))).await.unwrap();
    provider.close().await;
    provider.close().await;
    assert_eq!(recorder.methods(), ["Configure", "Initialize", "HealthCheck", "Cleanup", "Cancel", "Cancel"]);

    let sent: v1::InitializeRequest = recorder.last_request("Initialize");
    assert_eq!(sent.config_file, Some(texts([("project", "t"), ("stack", "dev")])));
    assert_eq!(sent.secrets["token"], "s3cr3t");
    assert_eq!(sent.auth["main"], v1::AuthConfig { r#type: "aws-token".into(), config: Some(texts([("key", "k")])) });
    assert_eq!(sent.plugin_config, Some(texts([("password", "p")])));
}

/// Shows: plugin-authoring.md#beside-the-provider "All its calls are optional."
#[tokio::test]
async fn plugin_without_the_plugin_service_is_configured() {
    let recorder = RecordingProvider::default();
    let provider = recorder.provider(None);
    provider.set_init(init());
    provider.configure(configure(bag([]))).await.unwrap();
    provider.close().await;
    assert_eq!(recorder.methods(), ["Configure", "Cancel"]);
}

/// Shows: plugin-authoring.md#beside-the-provider "if the plugin does not report that it is serving, `sc` does not use
///   it"
#[tokio::test]
async fn configure_fails_if_initialize_fails_or_the_plugin_is_not_serving() {
    let recorder = RecordingProvider::initializable();
    recorder.fail_with("Initialize", Status::unknown("no such account"));
    let provider = recorder.provider(None);
    provider.set_init(init());
    let error = provider.configure(configure(bag([]))).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to initialize plugin rec: no such account");

    let recorder = RecordingProvider::initializable();
    let not_serving = v1::health_check_response::Status::NotServing.into();
    recorder.reply_with("HealthCheck", v1::HealthCheckResponse { status: not_serving, message: "no disk".into() });
    let provider = recorder.provider(None);
    provider.set_init(init());
    let error = provider.configure(configure(bag([]))).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to initialize plugin rec: no disk");
    assert!(matches!(error, ProviderError::Failed { method: Method::HealthCheck, indeterminate: false, .. }));
}

#[tokio::test]
async fn unimplemented_cancel_is_not_an_error() {
    let recorder = RecordingProvider::default();
    recorder.fail_with("Cancel", Status::unimplemented(""));
    recorder.provider(None).cancel().await.unwrap();
    recorder.fail_with("Cancel", Status::unknown("no"));
    assert!(recorder.provider(None).cancel().await.is_err());
}
