//! Request and reply of Invoke.

use std::sync::Arc;

use pulumi_proto::property::PropertyMap;

use super::check::CheckFailure;

/// Input of Invoke.
#[derive(Clone, Debug)]
pub struct InvokeRequest {
    /// Token of the function.
    pub token: String,
    /// Arguments of the function. Unknown arguments are not sent.
    pub arguments: Arc<PropertyMap>,
    /// True in a preview.
    pub preview: bool,
}

/// Reply of Invoke.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvokeReply {
    /// Result of the function; empty if there are failures.
    pub result: PropertyMap,
    /// Invalid arguments.
    pub failures: Vec<CheckFailure>,
}
