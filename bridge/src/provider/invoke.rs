//! Request and reply of Invoke.

use std::sync::Arc;

use pulumi_proto::property::PropertyMap;

use super::check::CheckFailure;

/// Input of Invoke.
#[derive(Clone, Debug)]
pub struct InvokeRequest {
    /// Token of the function.
    pub token: String,
    /// Its arguments; unknown ones are left out on the wire.
    pub arguments: Arc<PropertyMap>,
    /// Whether this is a preview.
    pub preview: bool,
}

/// Answer of Invoke.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvokeReply {
    /// The result, where there are no failures.
    pub result: PropertyMap,
    /// Arguments that were refused.
    pub failures: Vec<CheckFailure>,
}
