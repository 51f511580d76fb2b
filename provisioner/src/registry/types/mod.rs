//! Types for the `config` of each core type of `sc`.
//!
//! Input: a resolved `config`. Output: a typed `config` or its errors. Excluded: the engine, and the registrations of a type
//! ([`super::recipes`]).

pub mod aws;
pub mod aws_sqs;
pub mod caddy;
pub mod cloudflare;
mod duration;
pub mod gcp;
pub mod gcp_data;
pub mod gcp_registry;
pub mod gke;
pub mod helm;
pub mod keys;
pub mod mongodb;
mod unused;
