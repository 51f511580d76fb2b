//! Package whose types are part of the schemas.

use schemas::PackageSchemas;

/// Package that plugins of a stack serve.
#[derive(Clone, Debug)]
pub struct Package {
    /// Name of the package, the first part of its type tokens.
    pub name: String,
    /// Schemas of the package; `None` if its plugin has none, so that all its types are accepted.
    pub schemas: Option<PackageSchemas>,
}
