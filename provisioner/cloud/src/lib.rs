//! Clients of clouds and databases: stores of states in buckets and tables, and keys in key management services.
//!
//! Input: the URL of a store or of a key, and the environment of the program. Output: implementations of
//! [`state::store::Objects`] and of the keys of [`state::secrets`]. Excluded: the layout of a store, locks, what a
//! secret means.

pub mod aws;
pub mod azblob;
pub mod azure;
mod bucket;
pub mod gcs;
pub mod google;
mod json_client;
pub mod kms;
pub mod postgres;
pub mod s3;
