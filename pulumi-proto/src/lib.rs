//! Types of the plugin protocol: generated client and server code of `pulumirpc` and of go-plugin's
//! services, and property values.
//!
//! Excluded: I/O, clocks, randomness, tasks.

#![warn(missing_docs)]

pub mod duration;
pub mod go_plugin;
pub mod host_v1;
pub mod plugin_v1;
pub mod property;
pub mod resource_id;
pub mod rpc;
pub mod urn;

/// Serialized `google.protobuf.FileDescriptorSet` of all files in `proto/` and their imports, without comments.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Generated code of the package `google.rpc`: the status with error details (docs/spec/provider-protocol.md#6.1).
pub mod google_rpc {
    #![allow(missing_docs, unreachable_pub, rust_2018_idioms, clippy::all, reason = "generated")]
    tonic::include_proto!("google.rpc");
}
