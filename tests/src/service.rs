//! Parts that the providers of the harness share: replies, property maps on the wire, the parts of a URN, and a
//! connection in memory.

use std::sync::Arc;

use bridge::provider::Provider;
use bridge::provider::grpc::GrpcProvider;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::wire::{Bag, DecodeOptions, EncodeOptions, decode, encode};
use tonic::{Response, Status};

use crate::channel::{GrpcService, connect_in_memory};

/// Result of a service's method.
pub type Reply<T> = Result<Response<T>, Status>;

/// Decodes properties of a request: unknown values, secrets and all other kinds that the wire supports.
///
/// # Errors
///
/// Returns `InvalidArgument` if the message is malformed.
pub fn decode_properties(properties: Option<Bag>) -> Result<PropertyMap, Status> {
    decode(&properties.unwrap_or_default(), &DecodeOptions::EVERYTHING)
        .map_err(|error| Status::invalid_argument(error.to_string()))
}

/// Encodes properties of a reply, each kind of value in its own form.
///
/// # Errors
///
/// Returns `Internal` if a value cannot be encoded.
pub fn encode_properties(properties: &PropertyMap) -> Result<Bag, Status> {
    encode(properties, &EncodeOptions::EVERYTHING).map_err(|error| Status::internal(error.to_string()))
}

/// Returns the type and the name in a URN, without the types of parents.
pub fn type_and_name(urn: &str) -> (&str, &str) {
    let mut parts = urn.rsplit("::");
    let name = parts.next().unwrap_or_default();
    let token = parts.next().unwrap_or_default();
    (token.rsplit('$').next().unwrap_or_default(), name)
}

/// Serves a provider in a task of the current runtime, and returns its client.
pub fn start_in_memory(service: impl GrpcService, package: &str, version: Option<String>) -> Arc<dyn Provider> {
    Arc::new(GrpcProvider::new(connect_in_memory(service), package, None, version, None))
}
