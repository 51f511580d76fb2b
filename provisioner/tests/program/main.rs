//! Tests of programs: their registrations, the order of these, and their references.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod fake;

mod buckets;
mod core_types;
mod example;
mod failures;
mod recorded;
mod references;
mod schemas;
