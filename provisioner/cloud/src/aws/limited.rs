//! HTTP client below the SDK: the one that the other services of this crate have, and replies limited in size.
//!
//! The SDK has one of its own, which takes as long to build as reqwest.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use http_body_util::Limited;
use reqwest::redirect::Policy;
use reqwest::{Body, Certificate, Client};
use tokio::time::timeout;

/// Maximum size of a reply. Credentials, profiles and data keys are small.
const MAX_REPLY: usize = 4 << 20;

/// Client whose replies fail once they have more than [`MAX_REPLY`] bytes. It uses no proxy, and follows no redirections.
#[derive(Debug)]
pub(super) struct LimitedClient {
    /// Certificates that are trusted beside those of the platform.
    certificates: Vec<Certificate>,
    /// A client for each limit of the time until there is a connection.
    clients: Mutex<Vec<(Option<Duration>, Client)>>,
}

impl LimitedClient {
    /// Creates a client that trusts certificates (PEM) beside those of the platform.
    ///
    /// # Errors
    /// Returns an error if they are malformed or the machine does not allow a client.
    pub(super) fn trusting(bundle: Option<&[u8]>) -> reqwest::Result<Self> {
        let certificates = bundle.map(Certificate::from_pem_bundle).transpose()?.unwrap_or_default();
        let created = Self { certificates, clients: Mutex::default() };
        created.client(None)?;
        Ok(created)
    }

    fn client(&self, connect_limit: Option<Duration>) -> reqwest::Result<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(limit, _)| *limit == connect_limit) {
            return Ok(client.clone());
        }
        let builder = Client::builder().no_proxy().redirect(Policy::none());
        let mut builder = builder.tls_certs_merge(self.certificates.iter().cloned());
        if let Some(limit) = connect_limit {
            builder = builder.connect_timeout(limit);
        }
        let client = builder.build()?;
        clients.push((connect_limit, client.clone()));
        Ok(client)
    }
}

impl HttpClient for LimitedClient {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        let client = self.client(settings.connect_timeout()).map_err(|error| error.to_string());
        SharedHttpConnector::new(LimitedConnector { client, limit: settings.read_timeout() })
    }
}

#[derive(Debug)]
struct LimitedConnector {
    client: Result<Client, String>,
    /// Limit of the time until there is a reply.
    limit: Option<Duration>,
}

impl HttpConnector for LimitedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (client, limit) = (self.client.clone(), self.limit);
        HttpConnectorFuture::new(async move {
            let client = client.map_err(|error| ConnectorError::user(error.into()))?;
            let reply = send(&client, request);
            match limit {
                None => reply.await,
                Some(limit) => match timeout(limit, reply).await {
                    Ok(reply) => reply,
                    Err(_) => Err(ConnectorError::timeout(format!("no reply within {limit:?}").into())),
                },
            }
        })
    }
}

async fn send(client: &Client, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
    let request = request.map(Body::wrap).try_into().map_err(failed)?;
    let reply = http::Response::<Body>::from(client.execute(request).await.map_err(failed)?);
    let reply = reply.map(|body| SdkBody::from_body_1_x(Limited::new(body, MAX_REPLY)));
    HttpResponse::try_from(reply).map_err(|error| ConnectorError::other(error.into(), None))
}

/// Returns an error as the SDK decides by it whether a request is repeated.
fn failed(error: reqwest::Error) -> ConnectorError {
    let error = error.without_url();
    match (error.is_timeout(), error.is_builder()) {
        (true, _) => ConnectorError::timeout(error.into()),
        (_, true) => ConnectorError::user(error.into()),
        _ => ConnectorError::io(error.into()),
    }
}
