//! Generated code of the package `plugin`: the services of HashiCorp's go-plugin, as defined in `proto/hashicorp`.
//!
//! Length: generated code.

#![allow(missing_docs, unreachable_pub, rust_2018_idioms, clippy::all, reason = "generated")]

tonic::include_proto!("plugin");
