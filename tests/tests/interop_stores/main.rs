//! Tests of the stores in buckets and databases against servers from public registries.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests panic at the first failure, and print counts"
)]

mod azblob;
mod bad_inputs;
mod contenders;
mod crash_points;
mod durability;
mod faults;
mod life;
mod lives;
mod lost_machines;
mod migrations;
mod objects;
mod postgres;
mod pulumi_reader;
mod requests;
mod s3;
mod stopped_runs;
mod versions;
