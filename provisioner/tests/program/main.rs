//! Stacks as programs: what is registered, in which order, with which references.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod fake;

mod buckets;
mod core_types;
mod example;
mod failures;
mod recorded;
mod references;
mod schemas;
