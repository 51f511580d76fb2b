//! Package as an input of schemas.

use schemas::PackageSchemas;

/// Package that plugins of a stack serve.
#[derive(Clone, Debug)]
pub struct Package {
    /// Name of the package, the prefix of its types.
    pub name: String,
    /// Schemas of the package; `None` if its plugin has none, so that all its types are accepted.
    pub schemas: Option<PackageSchemas>,
}
