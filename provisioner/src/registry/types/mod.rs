//! Types of the product, as which the `config` of each resource is read.
//!
//! Enters: a resolved `config`. Leaves: a typed one, or its mistakes; [`product`], the table that `config` reads stacks
//! against. Never here: the engine, or the registrations of a type ([`super::provision`]).

mod aws;
mod gcp;
mod templates;

use config::types::{CoreType, TypeTable};

pub use aws::{AwsAccount, CorsConfig, S3BucketConfig};
pub use gcp::GcpBucketConfig;

/// Returns the table of all core types and types of templates.
pub fn product() -> TypeTable {
    TypeTable::new([CoreType::of::<S3BucketConfig>(), CoreType::of::<GcpBucketConfig>()])
        .with_templates(templates::all())
}
