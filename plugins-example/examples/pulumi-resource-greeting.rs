//! Minimal provider in Rust.

use std::error::Error;
use std::io::Write as _;

use pulumi_proto::property::wire::{Bag, DecodeOptions, EncodeOptions, decode, encode};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use pulumi_proto::rpc::{
    CheckFailure, CheckRequest, CheckResponse, ConfigureRequest, ConfigureResponse, CreateRequest, CreateResponse,
    DeleteRequest, DiffRequest, DiffResponse, PluginInfo, ReadRequest, ReadResponse, UpdateRequest, UpdateResponse,
};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

const MAX_MESSAGE: usize = 400 * 1024 * 1024;

/// Provider of one resource type. Calls without an implementation return UNIMPLEMENTED.
struct Greeting;

#[tonic::async_trait]
impl ResourceProvider for Greeting {
    async fn get_plugin_info(&self, _: Request<()>) -> Result<Response<PluginInfo>, Status> {
        Ok(Response::new(PluginInfo { version: "0.1.0".to_owned() }))
    }

    async fn configure(&self, _: Request<ConfigureRequest>) -> Result<Response<ConfigureResponse>, Status> {
        Ok(Response::new(ConfigureResponse { supports_preview: true, ..Default::default() }))
    }

    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let news = inputs(request.into_inner().news)?;
        let mut failures = Vec::new();
        if !matches!(news.get("name"), Some(PropertyValue::String(_) | PropertyValue::Unknown(_))) {
            failures.push(CheckFailure { property: "name".to_owned(), reason: "a string is required".to_owned() });
        }
        Ok(Response::new(CheckResponse { inputs: wire(&news)?, failures }))
    }

    async fn diff(&self, request: Request<DiffRequest>) -> Result<Response<DiffResponse>, Status> {
        let request = request.into_inner();
        let same = inputs(request.old_inputs)? == inputs(request.news)?;
        let changes = if same { DiffChanges::DiffNone } else { DiffChanges::DiffSome };
        Ok(Response::new(DiffResponse { changes: changes.into(), ..Default::default() }))
    }

    async fn create(&self, request: Request<CreateRequest>) -> Result<Response<CreateResponse>, Status> {
        let properties = wire(&outputs(inputs(request.into_inner().properties)?))?;
        Ok(Response::new(CreateResponse { id: "greeting".to_owned(), properties, ..Default::default() }))
    }

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<ReadResponse>, Status> {
        let ReadRequest { id, inputs, properties, .. } = request.into_inner();
        Ok(Response::new(ReadResponse { id, inputs, properties, ..Default::default() }))
    }

    async fn update(&self, request: Request<UpdateRequest>) -> Result<Response<UpdateResponse>, Status> {
        let properties = wire(&outputs(inputs(request.into_inner().news)?))?;
        Ok(Response::new(UpdateResponse { properties, ..Default::default() }))
    }

    async fn delete(&self, _: Request<DeleteRequest>) -> Result<Response<()>, Status> {
        Ok(Response::new(()))
    }
}

/// Returns the outputs for inputs. An unknown name makes the text unknown.
fn outputs(mut inputs: PropertyMap) -> PropertyMap {
    let text = match inputs.get("name") {
        Some(PropertyValue::String(name)) => format!("Hello, {name}!").into(),
        _ => PropertyValue::UNKNOWN,
    };
    inputs.insert("text".to_owned(), text);
    inputs
}

fn inputs(bag: Option<Bag>) -> Result<PropertyMap, Status> {
    decode(&bag.unwrap_or_default(), &DecodeOptions::EVERYTHING)
        .map_err(|error| Status::invalid_argument(error.to_string()))
}

fn wire(bag: &PropertyMap) -> Result<Option<Bag>, Status> {
    encode(bag, &EncodeOptions::EVERYTHING).map(Some).map_err(|error| Status::internal(error.to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;

    let service = ResourceProviderServer::new(Greeting)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    Server::builder()
        .add_service(service)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener), interrupted)
        .await?;
    Ok(())
}
