//! Requests without credentials: the client sends an empty token with writes, which the service refuses.

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService};

use crate::bucket::LimitedConnector;

/// Connector whose requests have no credentials.
#[derive(Debug)]
pub(super) struct AnonymousConnector(pub(super) LimitedConnector);

impl HttpConnector for AnonymousConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(AnonymousService(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct AnonymousService(HttpClient);

#[async_trait]
impl HttpService for AnonymousService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        request.headers_mut().remove(AUTHORIZATION);
        self.0.execute(request).await
    }
}
