//! The types of the product: how the `config` of each reads.
//!
//! Enters: a resolved `config`. Leaves: a typed one, or its mistakes; [`product`], the table that `config` reads stacks
//! against. Never here: the engine, or what a type registers ([`super::provision`]).

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
