//! In-process fake provider for every package of the example.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::{HostError, ProviderHost, ProviderRequest};
use bridge::provider::Provider;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc;
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use tests::service::{Reply, decode_properties, encode_properties, start_in_memory, type_and_name};
use tonic::{Request, Response};

/// Host that starts a fake provider for any package.
#[derive(Debug)]
pub(crate) struct FakeProviderHost;

#[async_trait]
impl ProviderHost for FakeProviderHost {
    async fn start_provider(&self, request: &ProviderRequest) -> Result<Arc<dyn Provider>, HostError> {
        Ok(start_in_memory(ResourceProviderServer::new(FakeProvider), &request.package, request.version.clone()))
    }
}

/// Fake provider that accepts all inputs and adds typical outputs of each type.
struct FakeProvider;

/// Returns the id of a new resource, and its outputs that are not inputs.
fn create_outputs(urn: &str, inputs: &PropertyMap) -> (String, Vec<(&'static str, String)>) {
    let (token, name) = type_and_name(urn);
    match token {
        "aws:s3/bucket:Bucket" => {
            let bucket = inputs.get("bucket").and_then(PropertyValue::as_str).unwrap_or_default().to_owned();
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
impl ResourceProvider for FakeProvider {
    async fn check_config(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        Ok(Response::new(rpc::CheckResponse { inputs: request.into_inner().news, failures: Vec::new() }))
    }

    async fn diff_config(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        self.diff(request).await
    }

    async fn configure(&self, _: Request<rpc::ConfigureRequest>) -> Reply<rpc::ConfigureResponse> {
        let response = rpc::ConfigureResponse {
            accept_secrets: true,
            supports_preview: true,
            ..rpc::ConfigureResponse::default()
        };
        Ok(Response::new(response))
    }

    async fn check(&self, request: Request<rpc::CheckRequest>) -> Reply<rpc::CheckResponse> {
        self.check_config(request).await
    }

    async fn diff(&self, request: Request<rpc::DiffRequest>) -> Reply<rpc::DiffResponse> {
        let request = request.into_inner();
        let changes = if request.old_inputs == request.news { DiffChanges::DiffNone } else { DiffChanges::DiffSome };
        Ok(Response::new(rpc::DiffResponse { changes: changes.into(), ..rpc::DiffResponse::default() }))
    }

    async fn create(&self, request: Request<rpc::CreateRequest>) -> Reply<rpc::CreateResponse> {
        let request = request.into_inner();
        if request.preview {
            return Ok(Response::new(rpc::CreateResponse { properties: request.properties, ..Default::default() }));
        }
        let mut properties = decode_properties(request.properties)?;
        let (id, outputs) = create_outputs(&request.urn, &properties);
        properties.extend(outputs.into_iter().map(|(name, value)| (name.to_owned(), value.as_str().into())));
        let properties = Some(encode_properties(&properties)?);
        Ok(Response::new(rpc::CreateResponse { id, properties, ..Default::default() }))
    }

    async fn delete(&self, _: Request<rpc::DeleteRequest>) -> Reply<()> {
        Ok(Response::new(()))
    }

    async fn cancel(&self, _: Request<()>) -> Reply<()> {
        Ok(Response::new(()))
    }
}
