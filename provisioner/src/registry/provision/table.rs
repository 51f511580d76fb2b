//! Table of the implementations of core types.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use config::types::CoreConfig as _;

use super::core_resource::Provision;
use super::{aws, gcp};
use crate::registry::types::{GcpBucketConfig, S3BucketConfig};

/// Implementations by the name of their core type.
#[derive(Clone, Default)]
pub struct ProvisionTable(BTreeMap<&'static str, Arc<dyn Provision>>);

impl ProvisionTable {
    /// Returns the implementations of all core types in [`crate::registry::types::built_in_types`].
    pub fn built_in() -> Self {
        Self::new([
            (S3BucketConfig::TYPE, Arc::new(aws::S3Bucket) as Arc<dyn Provision>),
            (GcpBucketConfig::TYPE, Arc::new(gcp::GcpBucket)),
        ])
    }

    /// Creates a table of the given core types.
    pub fn new(types: impl IntoIterator<Item = (&'static str, Arc<dyn Provision>)>) -> Self {
        Self(types.into_iter().collect())
    }

    /// Returns the implementation of a core type.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Provision>> {
        self.0.get(name)
    }

    /// Returns the names of the core types, sorted.
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
    fn core_types_and_their_implementations_have_same_names() {
        let types = types::built_in_types();
        assert_eq!(ProvisionTable::built_in().names().collect::<Vec<_>>(), types.names().collect::<Vec<_>>());
    }
}
