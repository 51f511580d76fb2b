//! Generated code of the package `pulumirpc`: messages, clients and servers, as defined in `proto/pulumi`.
//!
//! Absent bags, kinds outside an enum and the like arrive here as they were sent; what they mean is not decided here.
//! One of the enums is named `Result`: never import everything of this module at once. `Debug` shows secrets.

#![allow(missing_docs, unreachable_pub, rust_2018_idioms, clippy::all, reason = "generated")]

tonic::include_proto!("pulumirpc");
