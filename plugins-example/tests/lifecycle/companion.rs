//! The service beside the provider.

use pulumi_proto::plugin_v1::health_check_response::Status as Health;
use pulumi_proto::plugin_v1::{CleanupRequest, ComputeProcessorsRequest, HealthCheckRequest, InitializeRequest};
use pulumi_proto::property::PropertyValue;
use tonic::Code;

use super::host::{Host, bag, wire};
use super::{FILE, PASSWORD};

#[tokio::test]
async fn it_is_initialized_once_and_forgets_at_cleanup() {
    let mut host = Host::configured().await;
    let request = InitializeRequest {
        config_file: wire(&bag([("project", "tidepool".into()), ("stack", "aquarium".into())])),
        secrets: [("token".to_owned(), "hunter2".to_owned())].into(),
        ..Default::default()
    };
    let answer = host.companion.initialize(request.clone()).await.unwrap().into_inner();
    assert_eq!((answer.name.as_str(), answer.version.as_str()), ("files", env!("CARGO_PKG_VERSION")));
    assert_eq!(host.companion.initialize(request).await.unwrap_err().code(), Code::FailedPrecondition);
    let health = host.companion.health_check(HealthCheckRequest {}).await.unwrap().into_inner();
    assert_eq!((health.status(), health.message.as_str()), (Health::Serving, "ready for stack aquarium of tidepool"));
    host.companion.cleanup(CleanupRequest {}).await.unwrap();
    let health = host.companion.health_check(HealthCheckRequest {}).await.unwrap().into_inner();
    assert_eq!(health.message, "");
    assert!(!host.logged().concat().contains("hunter2"));
}

#[tokio::test]
async fn it_is_unwell_without_a_root() {
    let mut host = Host::started().await;
    let health = host.companion.health_check(HealthCheckRequest {}).await.unwrap().into_inner();
    assert_eq!(health.status(), Health::NotServing);
    host.configure(true).await.unwrap();
    std::fs::write(&host.root, "a file").unwrap();
    let health = host.companion.health_check(HealthCheckRequest {}).await.unwrap().into_inner();
    assert_eq!(health.status(), Health::NotServing);
    assert!(health.message.ends_with("is not a folder"), "{}", health.message);
}

#[tokio::test]
async fn programs_see_places_and_passwords_as_variables() {
    let mut host = Host::configured().await;
    let mut ask = async |kind: &str, name: &str, outputs| {
        let request = ComputeProcessorsRequest {
            resource_type: kind.into(),
            resource_name: name.into(),
            environment: "production".into(),
            outputs: wire(&outputs),
        };
        host.companion.compute_processors(request).await.map(|answer| answer.into_inner())
    };
    let secret = PropertyValue::secret("hunter2".into());
    let answer = ask(PASSWORD, "admin-password", bag([("length", 24.0.into()), ("result", secret)])).await.unwrap();
    let [variable] = answer.variables.as_slice() else { panic!("{:?}", answer.variables) };
    assert_eq!((variable.name.as_str(), variable.value.as_str()), ("ADMIN_PASSWORD_PASSWORD", "hunter2"));
    assert!(variable.secret);
    assert_eq!(answer.values.iter().map(|value| value.name.as_str()).collect::<Vec<_>>(), ["length", "result"]);

    let outputs = bag([("path", "a/b".into()), ("sha256", PropertyValue::UNKNOWN)]);
    let answer = ask(FILE, "index", outputs).await.unwrap();
    let [variable] = answer.variables.as_slice() else { panic!("{:?}", answer.variables) };
    assert_eq!((variable.name.as_str(), variable.secret), ("INDEX_PATH", false));
    assert_eq!(variable.value, host.root.join("a/b").to_str().unwrap());

    assert_eq!(ask("tls:index:Key", "key", bag([])).await.unwrap_err().code(), Code::InvalidArgument);
}
