//! A package as an input of schemas.

use schemas::PackageSchemas;

/// A package that plugins of a stack serve.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its name, the prefix of its types.
    pub name: String,
    /// Its schemas; `None` where its plugin has none, so that nothing is known of its types.
    pub schemas: Option<PackageSchemas>,
}
