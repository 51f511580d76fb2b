//! Table of the core types' registrations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use config::types::CoreConfig as _;

use super::core_resource::Provision;
use super::{aws, gcp};
use crate::registry::types::{GcpBucketConfig, S3BucketConfig};

/// Registrations of each core type, by its name.
#[derive(Clone, Default)]
pub struct ProvisionTable(BTreeMap<&'static str, Arc<dyn Provision>>);

impl ProvisionTable {
    /// Returns the table of the product's types, with the names of [`crate::registry::types::product`].
    pub fn product() -> Self {
        Self::new([
            (S3BucketConfig::TYPE, Arc::new(aws::S3Bucket) as Arc<dyn Provision>),
            (GcpBucketConfig::TYPE, Arc::new(gcp::GcpBucket)),
        ])
    }

    /// Creates a table of the given types.
    pub fn new(types: impl IntoIterator<Item = (&'static str, Arc<dyn Provision>)>) -> Self {
        Self(types.into_iter().collect())
    }

    /// Returns the registrations of a type.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Provision>> {
        self.0.get(name)
    }

    /// Returns the names of the types, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied()
    }
}

impl fmt::Debug for ProvisionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::types;

    #[test]
    fn both_halves_of_the_map_have_the_same_names() {
        let types = types::product();
        assert_eq!(ProvisionTable::product().names().collect::<Vec<_>>(), types.names().collect::<Vec<_>>());
    }
}
