//! Requests to services of AWS with the protocol AWS JSON 1.1.
//!
//! The runtime of the SDK signs, limits and repeats them, as it does for the SDK's own clients. The crate of such a client
//! has all operations of its service, which take long to build.

use std::fmt;

use aws_config::{Region, SdkConfig};
use aws_runtime::auth::SigV4OperationSigningConfig;
use aws_runtime::auth::sigv4::{SCHEME_ID, SigV4AuthScheme};
use aws_runtime::retries::classifiers::AwsErrorCodeClassifier;
use aws_runtime::service_clock_skew::{ServiceClockSkewClassifier, ServiceClockSkewInterceptor};
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime::client::retries::classifiers::{HttpStatusCodeClassifier, TransientErrorClassifier};
use aws_smithy_runtime::client::stalled_stream_protection::StalledStreamProtectionInterceptor;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::auth::static_resolver::StaticAuthSchemeOptionResolver;
use aws_smithy_runtime_api::client::auth::{AuthSchemeOptionResolverParams, SharedAuthSchemeOptionResolver};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
use aws_smithy_runtime_api::client::runtime_plugin::StaticRuntimePlugin;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::Layer;
use aws_smithy_types::error::ErrorMetadata;
use aws_types::SigningName;
use aws_types::region::SigningRegion;
use serde_json::Value;

/// Reason why a request has no result. The error of the service has no code if the reply has none, and the status of
/// success if the reply cannot be parsed.
pub(crate) type JsonError = SdkError<ErrorMetadata, HttpResponse>;

/// Client of one service.
#[derive(Debug)]
pub(crate) struct JsonClient(Operation<Request, Content, ErrorMetadata>);

#[derive(Debug)]
struct Request {
    target: &'static str,
    content: Content,
}

/// Content of a request or a reply, which may be secret.
struct Content(Value);

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[content]")
    }
}

impl JsonClient {
    /// Creates the client of a service, by the name of the service in signatures, at an endpoint. Sends no request.
    pub(crate) fn new(config: &SdkConfig, service: &'static str, region: &Region, endpoint: &str) -> Self {
        let operation = Operation::builder()
            .service_name(service)
            .operation_name("request")
            .endpoint_url(endpoint)
            .interceptor(StalledStreamProtectionInterceptor::default())
            .interceptor(ServiceClockSkewInterceptor::new())
            .retry_classifier(TransientErrorClassifier::<ErrorMetadata>::new())
            .retry_classifier(AwsErrorCodeClassifier::<ErrorMetadata>::new())
            .retry_classifier(ServiceClockSkewClassifier::<ErrorMetadata>::new())
            .retry_classifier(HttpStatusCodeClassifier::default())
            .serializer(serialize)
            .deserializer(deserialize)
            .runtime_plugin(settings(config))
            .runtime_plugin(signature(config, service, region));
        Self(operation.build())
    }

    /// Sends a request to a target, such as `TrentService.Encrypt`, until it has a reply that is final.
    ///
    /// # Errors
    /// [`JsonError`].
    pub(crate) async fn send(&self, target: &'static str, content: Value) -> Result<Value, JsonError> {
        let reply = self.0.invoke(Request { target, content: Content(content) }).await?;
        Ok(reply.0)
    }
}

/// Returns the transport, the limits and the repetitions of a configuration.
fn settings(config: &SdkConfig) -> StaticRuntimePlugin {
    let mut layer = Layer::new("settings");
    layer.store_or_unset(config.retry_config().cloned());
    layer.store_or_unset(config.timeout_config().cloned());
    layer.store_or_unset(config.stalled_stream_protection());
    let components = RuntimeComponentsBuilder::new("settings")
        .with_http_client(config.http_client())
        .with_sleep_impl(config.sleep_impl())
        .with_time_source(config.time_source())
        .with_identity_cache(config.identity_cache());
    StaticRuntimePlugin::new().with_config(layer.freeze()).with_runtime_components(components)
}

/// Returns what signs requests with the credentials of a configuration.
fn signature(config: &SdkConfig, service: &'static str, region: &Region) -> StaticRuntimePlugin {
    let mut layer = Layer::new("signature");
    layer.store_put(AuthSchemeOptionResolverParams::new(()));
    layer.store_put(SigV4OperationSigningConfig::default());
    layer.store_put(SigningName::from_static(service));
    layer.store_put(SigningRegion::from(region.clone()));
    let schemes = SharedAuthSchemeOptionResolver::new(StaticAuthSchemeOptionResolver::new(vec![SCHEME_ID]));
    let mut components = RuntimeComponentsBuilder::new("signature")
        .with_auth_scheme_option_resolver(Some(schemes))
        .with_auth_scheme(SigV4AuthScheme::new());
    if let Some(provider) = config.credentials_provider() {
        components.set_identity_resolver(SCHEME_ID, provider);
    }
    StaticRuntimePlugin::new().with_config(layer.freeze()).with_runtime_components(components)
}

fn serialize(Request { target, content }: Request) -> Result<HttpRequest, BoxError> {
    let request = http::Request::post("/")
        .header(http::header::CONTENT_TYPE, "application/x-amz-json-1.1")
        .header(http::header::USER_AGENT, "sc")
        .header("x-amz-target", target)
        .body(SdkBody::from(content.0.to_string()))?;
    Ok(request.try_into()?)
}

fn deserialize(reply: &HttpResponse) -> Result<Content, OrchestratorError<ErrorMetadata>> {
    let content = reply.body().bytes().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let content = content.filter(Value::is_object);
    match content {
        Some(content) if reply.status().is_success() => Ok(Content(content)),
        content => Err(OrchestratorError::operation(error(reply, &content.unwrap_or_default()))),
    }
}

/// Returns the code and the words of the service. The code may have a namespace before it, and a URL after it.
fn error(reply: &HttpResponse, content: &Value) -> ErrorMetadata {
    let text = |names: &[&str]| names.iter().find_map(|name| content.get(name)?.as_str());
    let mut error = ErrorMetadata::builder();
    if let Some(code) = reply.headers().get("x-amzn-errortype").or_else(|| text(&["code", "__type"])) {
        let code = code.split_once(':').map_or(code, |(code, _)| code);
        error = error.code(code.split_once('#').map_or(code, |(_, code)| code));
    }
    if let Some(message) = text(&["message", "Message", "errorMessage"]) {
        error = error.message(message);
    }
    error.build()
}
