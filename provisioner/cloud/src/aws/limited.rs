//! Replies of the services of AWS, limited in size. The SDK limits their time.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use http_body_util::Limited;

/// Maximum size of a reply. Credentials, profiles and data keys are small.
const MAX_REPLY: usize = 4 << 20;

/// Client whose replies fail once they have more than [`MAX_REPLY`] bytes.
#[derive(Debug)]
pub(super) struct LimitedClient(pub(super) SharedHttpClient);

#[derive(Debug)]
struct LimitedConnector(SharedHttpConnector);

impl HttpClient for LimitedClient {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(LimitedConnector(self.0.http_connector(settings, components)))
    }
}

impl HttpConnector for LimitedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let response = self.0.call(request);
        HttpConnectorFuture::new(async move {
            let limited = |body| SdkBody::from_body_1_x(Limited::new(body, MAX_REPLY));
            Ok(response.await?.map(limited))
        })
    }
}
