//! Generated code of the package `pulumirpc`: messages, clients and servers, as defined in `proto/pulumi`.
//!
//! Messages are not validated: fields may be absent and enum values may be unknown. One of the enums is named `Result`,
//! so this module must not be imported with `*`. `Debug` shows secrets.
//!
//! Length: generated code.

#![allow(missing_docs, unreachable_pub, rust_2018_idioms, clippy::all, reason = "generated")]

tonic::include_proto!("pulumirpc");
