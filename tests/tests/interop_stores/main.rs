//! Tests of the stores in buckets and databases against servers from public registries.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod life;
mod lives;
mod objects;
mod postgres;
mod s3;
