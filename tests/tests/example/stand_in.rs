//! Clouds that say yes: a provider for every package of the example, in this process.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::{BootRequest, HostError, ProviderHost};
use bridge::provider::Provider;
use bridge::provider::grpc::GrpcProvider;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use pulumi_proto::property::wire::Bag;
use pulumi_proto::rpc;
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use tonic::{Request, Response, Status};

/// Boots a stand-in for whatever is asked.
#[derive(Debug)]
pub(crate) struct StandIns;

#[async_trait]
impl ProviderHost for StandIns {
    async fn boot(&self, request: &BootRequest) -> Result<Arc<dyn Provider>, HostError> {
        let version = request.version.clone().unwrap_or_default();
        let channel = tests::channel::in_memory(ResourceProviderServer::new(StandIn));
        Ok(Arc::new(GrpcProvider::new(channel, &request.package, None, version, None)))
    }
}

/// Takes all inputs, and adds what its kind of resource is known for.
struct StandIn;

type Answer<T> = Result<Response<T>, Status>;

/// What is in a bag.
fn opened(bag: Option<Bag>) -> Result<Struct, Status> {
    bag.unwrap_or_default().open().map_err(|error| Status::invalid_argument(error.to_string()))
}

/// The id and the further outputs of a new resource.
fn made(urn: &str, inputs: &Struct) -> (String, Vec<(&'static str, String)>) {
    let name = urn.rsplit("::").next().unwrap_or_default();
    let token = urn.split("::").nth(2).unwrap_or_default();
    let token = token.rsplit('$').next().unwrap_or_default();
    match token {
        "aws:s3/bucket:Bucket" => {
            let bucket = match inputs.fields.get("bucket").and_then(|value| value.kind.as_ref()) {
                Some(Kind::StringValue(bucket)) => bucket.clone(),
                _ => String::new(),
            };
            let arn = format!("arn:aws:s3:::{bucket}");
            (bucket, vec![("arn", arn), ("region", "eu-north-1".to_owned())])
        }
        "aws:iam/user:User" => {
            let id = format!("{name}-0001");
            (id.clone(), vec![("arn", format!("arn:aws:iam::0:user/{id}")), ("name", id)])
        }
        "aws:iam/accessKey:AccessKey" => {
            ("KEY0001".to_owned(), vec![("secret", "hush".to_owned()), ("sesSmtpPasswordV4", "hush, too".to_owned())])
        }
        "tls:index/privateKey:PrivateKey" => {
            ("key".to_owned(), vec![("privateKeyPem", "pem".to_owned()), ("privateKeyPemPkcs8", "pem 8".to_owned())])
        }
        "tls:index/selfSignedCert:SelfSignedCert" => ("cert".to_owned(), vec![("certPem", "cert pem".to_owned())]),
        "files:random:Password" => ("password".to_owned(), vec![("result", "correct horse".to_owned())]),
        _ => (format!("{name}-id"), Vec::new()),
    }
}

#[tonic::async_trait]
impl ResourceProvider for StandIn {
    async fn check_config(&self, request: Request<rpc::CheckRequest>) -> Answer<rpc::CheckResponse> {
        Ok(Response::new(rpc::CheckResponse { inputs: request.into_inner().news, failures: Vec::new() }))
    }

    async fn diff_config(&self, request: Request<rpc::DiffRequest>) -> Answer<rpc::DiffResponse> {
        self.diff(request).await
    }

    async fn configure(&self, _: Request<rpc::ConfigureRequest>) -> Answer<rpc::ConfigureResponse> {
        let answer = rpc::ConfigureResponse {
            accept_secrets: true,
            supports_preview: true,
            ..rpc::ConfigureResponse::default()
        };
        Ok(Response::new(answer))
    }

    async fn check(&self, request: Request<rpc::CheckRequest>) -> Answer<rpc::CheckResponse> {
        self.check_config(request).await
    }

    async fn diff(&self, request: Request<rpc::DiffRequest>) -> Answer<rpc::DiffResponse> {
        let request = request.into_inner();
        let changes = if request.old_inputs == request.news { DiffChanges::DiffNone } else { DiffChanges::DiffSome };
        Ok(Response::new(rpc::DiffResponse { changes: changes.into(), ..rpc::DiffResponse::default() }))
    }

    async fn create(&self, request: Request<rpc::CreateRequest>) -> Answer<rpc::CreateResponse> {
        let request = request.into_inner();
        let mut properties = opened(request.properties)?;
        let (id, outputs) = made(&request.urn, &properties);
        if request.preview {
            return Ok(Response::new(rpc::CreateResponse {
                properties: Some(properties.into()),
                ..Default::default()
            }));
        }
        let text = |text| Value { kind: Some(Kind::StringValue(text)) };
        properties.fields.extend(outputs.into_iter().map(|(name, value)| (name.to_owned(), text(value))));
        Ok(Response::new(rpc::CreateResponse { id, properties: Some(properties.into()), ..Default::default() }))
    }

    async fn delete(&self, _: Request<rpc::DeleteRequest>) -> Answer<()> {
        Ok(Response::new(()))
    }

    async fn cancel(&self, _: Request<()>) -> Answer<()> {
        Ok(Response::new(()))
    }
}
