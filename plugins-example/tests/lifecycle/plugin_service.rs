//! Tests of the service `simplecontainer.plugin.v1`.

use pulumi_proto::plugin_v1::health_check_response::Status as Health;
use pulumi_proto::plugin_v1::{CleanupRequest, ComputeProcessorsRequest, HealthCheckRequest, InitializeRequest};
use pulumi_proto::property::PropertyValue;
use tonic::Code;

use super::host::{Host, bag, wire};
use super::{FILE, PASSWORD};

#[tokio::test]
async fn plugin_is_initialized_once_until_cleanup() {
    let mut host = Host::configured().await;
    let request = InitializeRequest {
        config_file: wire(&bag([("project", "tidepool".into()), ("stack", "aquarium".into())])),
        secrets: [("token".to_owned(), "hunter2".to_owned())].into(),
        ..Default::default()
    };
    let response = host.plugin_service.initialize(request.clone()).await.unwrap().into_inner();
    assert_eq!((response.name.as_str(), response.version.as_str()), ("files", env!("CARGO_PKG_VERSION")));
    assert_eq!(host.plugin_service.initialize(request).await.unwrap_err().code(), Code::FailedPrecondition);
    let health = host.plugin_service.health_check(HealthCheckRequest {}).await.unwrap().into_inner();
    assert_eq!((health.status(), health.message.as_str()), (Health::Serving, "ready for stack aquarium of tidepool"));
    host.plugin_service.cleanup(CleanupRequest {}).await.unwrap();
    let health = host.plugin_service.health_check(HealthCheckRequest {}).await.unwrap().into_inner();
    assert_eq!(health.message, "");
    assert!(!host.logged().concat().contains("hunter2"));
}

#[tokio::test]
async fn plugin_without_a_root_is_not_serving() {
    let mut host = Host::started().await;
    let health = host.plugin_service.health_check(HealthCheckRequest {}).await.unwrap().into_inner();
    assert_eq!(health.status(), Health::NotServing);
    host.configure(true).await.unwrap();
    std::fs::write(&host.root, "a file").unwrap();
    let health = host.plugin_service.health_check(HealthCheckRequest {}).await.unwrap().into_inner();
    assert_eq!(health.status(), Health::NotServing);
    assert!(health.message.ends_with("is not a folder"), "{}", health.message);
}

#[tokio::test]
async fn outputs_are_returned_as_environment_variables() {
    let mut host = Host::configured().await;
    let mut compute = async |kind: &str, name: &str, outputs| {
        let request = ComputeProcessorsRequest {
            resource_type: kind.into(),
            resource_name: name.into(),
            environment: "production".into(),
            outputs: wire(&outputs),
        };
        host.plugin_service.compute_processors(request).await.map(|response| response.into_inner())
    };
    let secret = PropertyValue::secret("hunter2".into());
    let response =
        compute(PASSWORD, "admin-password", bag([("length", 24.0.into()), ("result", secret)])).await.unwrap();
    let [variable] = response.variables.as_slice() else { panic!("{:?}", response.variables) };
    assert_eq!((variable.name.as_str(), variable.value.as_str()), ("ADMIN_PASSWORD_PASSWORD", "hunter2"));
    assert!(variable.secret);
    assert_eq!(response.values.iter().map(|value| value.name.as_str()).collect::<Vec<_>>(), ["length", "result"]);

    let outputs = bag([("path", "a/b".into()), ("sha256", PropertyValue::UNKNOWN)]);
    let response = compute(FILE, "index", outputs).await.unwrap();
    let [variable] = response.variables.as_slice() else { panic!("{:?}", response.variables) };
    assert_eq!((variable.name.as_str(), variable.secret), ("INDEX_PATH", false));
    assert_eq!(variable.value, host.root.join("a/b").to_str().unwrap());

    assert_eq!(compute("tls:index:Key", "key", bag([])).await.unwrap_err().code(), Code::InvalidArgument);
}
