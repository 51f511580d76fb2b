//! The vocabulary of the wire: generated client and server code of `pulumirpc`, and the values that travel over it.
//!
//! Never here: I/O, clocks, randomness, tasks.

#![warn(missing_docs)]

pub mod duration;
pub mod plugin_v1;
pub mod property;
pub mod resource_id;
pub mod rpc;
pub mod urn;

/// The descriptors of everything in `proto/`, imports included, without comments: a serialized
/// `google.protobuf.FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Generated code of the package `google.rpc`: the status that carries error details (provider protocol, section 6.1).
pub mod google_rpc {
    #![allow(missing_docs, unreachable_pub, rust_2018_idioms, clippy::all, reason = "generated")]
    tonic::include_proto!("google.rpc");
}
