//! Tests of the stores in buckets, and of other clients of clouds, with servers of the test, which fail on demand.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod aws_chain;
mod aws_keys;
mod azblob;
mod azure_credentials;
mod gcs;
mod gcs_buckets;
mod google_apis;
mod limits;
#[path = "../interop_stores/objects.rs"]
mod objects;
mod outages;
mod postgres;
mod s3;
mod s3_credentials;
