//! Types for the `config` of each core type and template type of `sc`.
//!
//! Input: a resolved `config`. Output: a typed `config` or its errors; [`built_in_types`], the table of all types.
//! Excluded: the engine, and the registrations of a type ([`super::provision`]).

mod aws;
mod gcp;
mod templates;

use config::types::{CoreType, TypeTable};

pub use aws::{AwsAccount, CorsConfig, S3BucketConfig};
pub use gcp::GcpBucketConfig;

/// Returns the table of all core types and types of templates.
pub fn built_in_types() -> TypeTable {
    TypeTable::new([CoreType::of::<S3BucketConfig>(), CoreType::of::<GcpBucketConfig>()])
        .with_templates(templates::all())
}
