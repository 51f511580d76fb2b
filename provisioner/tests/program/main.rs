//! Tests of programs: registrations, their order, and references.
#![expect(clippy::unwrap_used, reason = "a test panics at the first failure")]

mod fake;

mod assets;
mod atlas;
mod buckets;
mod caddy;
mod collected_goals;
mod core_types;
mod defaults;
mod domains;
mod example;
mod failures;
mod functions;
mod gcp_types;
mod helm;
mod missing_outputs;
mod option_check;
mod output_check;
mod own_types;
mod packages;
mod recorded;
mod references;
mod schemas;
mod type_check;
mod written_texts;
