//! What failed calls mean (provider protocol, section 6).

use pulumi_proto::resource_id::ResourceId;
use std::sync::Arc;
use std::time::Duration;

use bridge::process::{Process, ProcessSpec, Spawner};
use bridge::provider::grpc::GrpcProvider;
use bridge::provider::{
    Capabilities, CreateRequest, DeleteRequest, Method, PartialFailure, Provider, ProviderError, ReadRequest, Views,
};
use prost::Message;
use prost_types::Any;
use pulumi_proto::{google_rpc, rpc};
use tokio::signal::unix::{SignalKind, signal};
use tonic::{Code, Status};

use crate::probe::Probe;
use crate::{ALL, bag, secret, shared, texts, urn};

/// A status with one detail.
pub(crate) fn status(code: Code, message: &str, name: &str, detail: &impl Message) -> Status {
    let any = Any { type_url: format!("type.googleapis.com/pulumirpc.{name}"), value: detail.encode_to_vec() };
    let other = Any { type_url: "example.org/unheard.of".into(), value: vec![1, 2, 3] };
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

#[tokio::test]
async fn the_code_says_whether_the_resource_may_have_been_touched() {
    for (code, indeterminate) in [
        (Code::Unknown, true),
        (Code::Internal, true),
        (Code::DataLoss, true),
        (Code::InvalidArgument, false),
        (Code::Unavailable, false),
        (Code::ResourceExhausted, false),
        (Code::Cancelled, false),
    ] {
        let probe = Probe::default();
        probe.fails("Create", Status::new(code, "no"));
        match probe.provider(Some(ALL)).create(create()).await.unwrap_err() {
            ProviderError::Failed { method: Method::Create, message, indeterminate: found, .. } => {
                assert_eq!((message.as_str(), found), ("no", indeterminate), "{code:?}");
            }
            other => panic!("{code:?}: {other:?}"),
        }
    }
    let probe = Probe::default();
    probe.fails("Delete", Status::unimplemented("no"));
    let error = probe.provider(Some(ALL)).delete(delete()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unimplemented { method: Method::Delete }));
}

#[tokio::test]
async fn a_partial_failure_is_one_whatever_the_code_and_its_secrets_are_marked_again() {
    let detail = rpc::ErrorResourceInitFailed {
        id: "i".into(),
        properties: Some(texts([("a", "1")])),
        reasons: vec!["not ready".into()],
        inputs: None,
        refresh_before_update: true,
    };
    for code in [Code::Unknown, Code::FailedPrecondition] {
        let probe = Probe::default();
        let failed = status(code, "it did not come up", "ErrorResourceInitFailed", &detail);
        probe.fails("Create", failed.clone()).fails("Delete", failed);
        let provider = probe.provider(Some(Capabilities::default()));
        let error = provider.create(create()).await.unwrap_err();
        let ProviderError::Partial { message, failure } = error else { panic!("{error:?}") };
        assert_eq!(message, "it did not come up");
        let expected = PartialFailure {
            id: ResourceId::new("i"),
            outputs: bag([("a", secret("1"))]),
            inputs: None,
            reasons: vec!["not ready".into()],
            refresh_before_update: true,
        };
        assert_eq!(*failure, expected);
        // There is no partial form of a deletion.
        assert!(matches!(provider.delete(delete()).await, Err(ProviderError::Failed { .. })));
    }
}

#[tokio::test]
async fn a_partial_failure_may_be_large() {
    let text = "x".repeat(1 << 20);
    let detail = rpc::ErrorResourceInitFailed {
        id: "i".into(),
        properties: Some(texts([("big", &text)])),
        ..Default::default()
    };
    let probe = Probe::default();
    probe.fails("Create", status(Code::Unknown, "no", "ErrorResourceInitFailed", &detail));
    let error = probe.provider(Some(ALL)).create(create()).await.unwrap_err();
    let ProviderError::Partial { failure, .. } = error else { panic!("{error:?}") };
    assert_eq!(failure.outputs["big"], text.into());
}

#[tokio::test]
async fn a_read_may_fail_in_part_with_inputs() {
    let detail =
        rpc::ErrorResourceInitFailed { id: "i".into(), inputs: Some(texts([("a", "1")])), ..Default::default() };
    let probe = Probe::default();
    probe.fails("Read", status(Code::Unknown, "no", "ErrorResourceInitFailed", &detail));
    let read = ReadRequest {
        urn: urn(),
        id: ResourceId::new("i"),
        outputs: None,
        inputs: None,
        timeout: None,
        views: Views::default(),
    };
    let error = probe.provider(Some(ALL)).read(read).await.unwrap_err();
    let ProviderError::Partial { failure, .. } = error else { panic!("{error:?}") };
    assert_eq!(failure.inputs, Some(bag([("a", "1".into())])));
}

#[tokio::test]
async fn a_cause_is_part_of_the_message() {
    let probe = Probe::default();
    let cause = rpc::ErrorCause { message: "disk full".into(), stack_trace: "at …".into() };
    probe.fails("Create", status(Code::Unknown, "cannot write", "ErrorCause", &cause));
    let error = probe.provider(Some(ALL)).create(create()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot write: disk full");
}

#[tokio::test]
async fn refused_inputs_of_a_call_are_told_one_by_one() {
    let probe = Probe::default();
    let refused = rpc::input_properties_error::PropertyError { property_path: "a.b".into(), reason: "too long".into() };
    let detail = rpc::InputPropertiesError { errors: vec![refused] };
    probe.fails("Call", status(Code::InvalidArgument, "bad inputs", "InputPropertiesError", &detail));
    let request = bridge::provider::CallRequest {
        run: Default::default(),
        token: "m".into(),
        arguments: Arc::default(),
        argument_dependencies: Default::default(),
    };
    let error = probe.provider(Some(ALL)).call(request).await.unwrap_err();
    let ProviderError::InvalidInputs { message, failures } = error else { panic!("{error:?}") };
    assert_eq!(
        (message.as_str(), failures[0].property.as_deref(), failures[0].reason.as_str()),
        ("bad inputs", Some("a.b"), "too long")
    );
}

fn process(script: &str) -> Arc<Process> {
    let spec = ProcessSpec {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        directory: "/".into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
    };
    Arc::new(Spawner::unsupervised().spawn(&spec, Arc::new(())).unwrap())
}

fn with_process(probe: &Probe, process: &Arc<Process>) -> GrpcProvider {
    GrpcProvider::new(probe.channel(), "rec", Some(ALL), None, Some(process.clone()))
}

#[tokio::test]
async fn calls_in_flight_die_with_the_process_and_so_does_each_later_one() {
    let probe = Probe::default();
    probe.hangs("Create");
    // A shell that was made where SIGINT is ignored, as a background job is, could not trap it.
    let _interrupts = signal(SignalKind::interrupt()).unwrap();
    let process = process("trap 'echo panic: boom >&2; exit 2' INT; echo up; sleep 60 & wait");
    process.first_line().await;
    let provider = with_process(&probe, &process);
    let (one, two, ()) = tokio::join!(provider.create(create()), provider.create(create()), async {
        while probe.methods().len() < 2 {
            tokio::task::yield_now().await;
        }
        process.stop(Duration::from_secs(10)).await;
    });
    for error in [one.unwrap_err(), two.unwrap_err()] {
        assert!(error.is_indeterminate());
        assert_eq!(
            error.to_string(),
            "the plugin rec ended during Create (exit status 2). Its last words:\n  panic: boom"
        );
    }
    let later = provider.delete(delete()).await.unwrap_err();
    assert!(matches!(later, ProviderError::Died { method: Method::Delete, .. }));
    assert_eq!(probe.methods(), ["Create", "Create"]);
}

#[tokio::test]
async fn an_error_of_a_living_process_is_just_an_error() {
    let probe = Probe::default();
    probe.fails("Create", Status::unavailable("the cloud is down"));
    let process = process("while :; do sleep 1; done");
    let error = with_process(&probe, &process).create(create()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Failed { indeterminate: false, .. }), "{error:?}");
}
