//! Package that a plugin serves after Parameterize, as its provider resource records it (docs/spec/provider-protocol.md#8.3).

use crate::provider::{ParameterizeRequest, SchemaRequest};

/// Package that a plugin serves after Parameterize.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subpackage {
    /// Name of the package: the first part of its types.
    pub name: String,
    /// Version of the package, a semantic version.
    pub version: String,
    /// Name of the package that the plugin serves without parameters.
    pub base_name: String,
    /// Version of the plugin; `None`: any.
    pub base_version: Option<String>,
    /// Opaque value of the parameters, with which later instances are started.
    pub value: Vec<u8>,
}

impl Subpackage {
    /// Returns the request that makes an instance serve the package.
    pub fn request(&self) -> ParameterizeRequest {
        ParameterizeRequest::Value {
            name: self.name.clone(),
            version: Some(self.version.clone()),
            value: self.value.clone(),
        }
    }

    /// Returns the request for the schema of the package.
    pub(super) fn schema_request(&self) -> SchemaRequest {
        SchemaRequest { subpackage_name: Some(self.name.clone()), subpackage_version: Some(self.version.clone()) }
    }
}
