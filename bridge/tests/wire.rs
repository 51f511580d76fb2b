//! Tests of the wire to plugins, each with the other side in the process of the test.

#[path = "broker/main.rs"]
mod broker;
mod connection;
#[path = "grpc/main.rs"]
mod grpc;
mod recordings;
mod streams;
mod tls;
