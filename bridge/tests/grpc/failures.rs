//! Errors of failed calls (docs/spec/provider-protocol.md#6).

use pulumi_proto::resource_id::ResourceId;
use std::sync::Arc;
use std::time::Duration;

use bridge::process::{Process, ProcessSandbox, ProcessSpec, Spawner};
use bridge::provider::grpc::GrpcProvider;
use bridge::provider::{
    Capabilities, CreateRequest, DeleteRequest, ErrorClass, ErrorDetails, Method, PartialFailure, Provider,
    ProviderError, ReadRequest, Views,
};
use prost::Message;
use prost_types::Any;
use pulumi_proto::{google_rpc, rpc};
use tokio::signal::unix::{SignalKind, signal};
use tonic::{Code, Status};

use super::recording_provider::RecordingProvider;
use super::{ALL, bag, secret, shared, texts, urn};

/// Returns a status with a supported detail and an unknown one.
pub(crate) fn status(code: Code, message: &str, name: &str, detail: &impl Message) -> Status {
    let any = Any { type_url: format!("type.googleapis.com/pulumirpc.{name}"), value: detail.encode_to_vec() };
    let other = Any { type_url: "example.org/unknown".into(), value: vec![1, 2, 3] };
    let details = google_rpc::Status { code: code.into(), message: message.into(), details: vec![other, any] };
    Status::with_details(code, message, details.encode_to_vec().into())
}

fn create() -> CreateRequest {
    CreateRequest {
        urn: urn(),
        inputs: shared([("a", secret("1"))]),
        timeout: None,
        preview: false,
        views: Views::default(),
    }
}

fn delete() -> DeleteRequest {
    DeleteRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        outputs: Arc::default(),
        old_inputs: Arc::default(),
        timeout: None,
        views: Views::default(),
    }
}

/// Shows: plugin-authoring.md#calls "UNKNOWN, INTERNAL and DATA_LOSS mean that the resource may have changed. Every
///   other code means that nothing has changed."
#[tokio::test]
async fn status_code_decides_whether_the_error_is_indeterminate() {
    for (code, indeterminate) in [
        (Code::Unknown, true),
        (Code::Internal, true),
        (Code::DataLoss, true),
        (Code::InvalidArgument, false),
        (Code::Unavailable, false),
        (Code::ResourceExhausted, false),
        (Code::Cancelled, false),
    ] {
        let recorder = RecordingProvider::default();
        recorder.fail_with("Create", Status::new(code, "no"));
        match recorder.provider(Some(ALL)).create(create()).await.unwrap_err() {
            ProviderError::Failed { method: Method::Create, message, indeterminate: found, .. } => {
                assert_eq!((message.as_str(), found), ("no", indeterminate), "{code:?}");
            }
            other => panic!("{code:?}: {other:?}"),
        }
    }
    let recorder = RecordingProvider::default();
    recorder.fail_with("Delete", Status::unimplemented("no"));
    let error = recorder.provider(Some(ALL)).delete(delete()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unimplemented { method: Method::Delete }));
}

#[tokio::test]
async fn partial_failure_is_independent_of_the_code_and_its_secrets_are_marked_again() {
    let detail = rpc::ErrorResourceInitFailed {
        id: "i".into(),
        properties: Some(texts([("a", "1")])),
        reasons: vec!["not ready".into()],
        inputs: None,
        refresh_before_update: true,
    };
    for (code, class) in [(Code::Unknown, ErrorClass::Unexpected), (Code::FailedPrecondition, ErrorClass::Conflict)] {
        let recorder = RecordingProvider::default();
        let failed = status(code, "it is not ready", "ErrorResourceInitFailed", &detail);
        recorder.fail_with("Create", failed.clone()).fail_with("Delete", failed);
        let provider = recorder.provider(Some(Capabilities::default()));
        let error = provider.create(create()).await.unwrap_err();
        let ProviderError::Partial { message, failure } = error else { panic!("{error:?}") };
        assert_eq!(message, "it is not ready");
        let expected = PartialFailure {
            id: ResourceId::new("i"),
            outputs: bag([("a", secret("1"))]),
            inputs: None,
            reasons: vec!["not ready".into()],
            refresh_before_update: true,
            details: Some(Box::new(ErrorDetails::new(class))),
        };
        assert_eq!(*failure, expected);
        // Delete cannot fail partially.
        assert!(matches!(provider.delete(delete()).await, Err(ProviderError::Failed { .. })));
    }
}

#[tokio::test]
async fn partial_failure_may_be_large() {
    let text = "x".repeat(1 << 20);
    let detail = rpc::ErrorResourceInitFailed {
        id: "i".into(),
        properties: Some(texts([("big", &text)])),
        ..Default::default()
    };
    let recorder = RecordingProvider::default();
    recorder.fail_with("Create", status(Code::Unknown, "no", "ErrorResourceInitFailed", &detail));
    let error = recorder.provider(Some(ALL)).create(create()).await.unwrap_err();
    let ProviderError::Partial { failure, .. } = error else { panic!("{error:?}") };
    assert_eq!(failure.outputs["big"], text.into());
}

#[tokio::test]
async fn partial_failure_of_read_has_inputs() {
    let detail =
        rpc::ErrorResourceInitFailed { id: "i".into(), inputs: Some(texts([("a", "1")])), ..Default::default() };
    let recorder = RecordingProvider::default();
    recorder.fail_with("Read", status(Code::Unknown, "no", "ErrorResourceInitFailed", &detail));
    let read = ReadRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        outputs: None,
        inputs: None,
        timeout: None,
        views: Views::default(),
    };
    let error = recorder.provider(Some(ALL)).read(read).await.unwrap_err();
    let ProviderError::Partial { failure, .. } = error else { panic!("{error:?}") };
    assert_eq!(failure.inputs, Some(bag([("a", "1".into())])));
}

#[tokio::test]
async fn error_message_contains_the_cause() {
    let recorder = RecordingProvider::default();
    let cause = rpc::ErrorCause { message: "disk full".into(), stack_trace: "at …".into() };
    recorder.fail_with("Create", status(Code::Unknown, "cannot write", "ErrorCause", &cause));
    let error = recorder.provider(Some(ALL)).create(create()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot write: disk full");
}

#[tokio::test]
async fn invalid_inputs_of_a_call_are_returned() {
    let recorder = RecordingProvider::default();
    let invalid = rpc::input_properties_error::PropertyError { property_path: "a.b".into(), reason: "too long".into() };
    let detail = rpc::InputPropertiesError { errors: vec![invalid] };
    recorder.fail_with("Call", status(Code::InvalidArgument, "invalid inputs", "InputPropertiesError", &detail));
    let request = bridge::provider::CallRequest {
        run: Default::default(),
        token: "m".into(),
        arguments: Arc::default(),
        argument_dependencies: Default::default(),
    };
    let error = recorder.provider(Some(ALL)).call(request).await.unwrap_err();
    let ProviderError::InvalidInputs { message, failures } = error else { panic!("{error:?}") };
    assert_eq!(
        (message.as_str(), failures[0].property.as_deref(), failures[0].reason.as_str()),
        ("invalid inputs", Some("a.b"), "too long")
    );
}

fn process(script: &str) -> Arc<Process> {
    let spec = ProcessSpec {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        directory: "/".into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        sandbox: ProcessSandbox::None,
    };
    Arc::new(Spawner::unsupervised().spawn(&spec, Arc::new(())).unwrap())
}

fn with_process(recorder: &RecordingProvider, process: &Arc<Process>) -> GrpcProvider {
    GrpcProvider::new(recorder.connection(), "rec", Some(ALL), None, Some(process.clone()))
}

#[tokio::test]
async fn calls_in_flight_and_later_calls_fail_after_the_exit_of_the_process() {
    let recorder = RecordingProvider::default();
    recorder.hang_in("Create");
    // A shell started with SIGINT ignored, as in a background job, cannot trap it.
    let _interrupts = signal(SignalKind::interrupt()).unwrap();
    let process = process("trap 'echo panic: boom >&2; exit 2' INT; echo up; sleep 60 & wait");
    process.first_line().await;
    let provider = with_process(&recorder, &process);
    let (one, two, ()) = tokio::join!(provider.create(create()), provider.create(create()), async {
        while recorder.methods().len() < 2 {
            tokio::task::yield_now().await;
        }
        process.stop(Duration::from_secs(10)).await;
    });
    for error in [one.unwrap_err(), two.unwrap_err()] {
        assert!(error.is_indeterminate());
        assert_eq!(
            error.to_string(),
            "the plugin rec exited during Create (exit status 2). Its last output:\n  panic: boom"
        );
    }
    let later = provider.delete(delete()).await.unwrap_err();
    assert!(matches!(later, ProviderError::PluginExited { method: Method::Delete, .. }));
    assert_eq!(recorder.methods(), ["Create", "Create"]);
}

#[tokio::test]
async fn error_of_a_running_plugin_is_not_a_plugin_exit() {
    let recorder = RecordingProvider::default();
    recorder.fail_with("Create", Status::unavailable("the cloud is down"));
    let process = process("while :; do sleep 1; done");
    let error = with_process(&recorder, &process).create(create()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Failed { indeterminate: false, .. }), "{error:?}");
}
