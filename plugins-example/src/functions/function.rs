//! The trait of a function.
//!
//! Excluded: implementations. Each function has its own file, and [`super`] lists them.
//!
//! Length: each function imports it.

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc::CheckFailure;
use tonic::Status;

use crate::property::Property;
use crate::root::CallContext;

/// A function. Its call may block, because it runs on a thread of its own.
pub(crate) trait Function: Send + Sync {
    /// Returns the function's token, `package:module:name`.
    fn token(&self) -> &'static str;
    /// Returns the description for the schema: sentences, in Markdown.
    fn description(&self) -> &'static str;
    /// Returns the table of arguments.
    fn arguments(&self) -> &'static [Property];
    /// Returns the table of results.
    fn results(&self) -> &'static [Property];
    /// Returns the argument without secret wrappers, normalized, or the reason why it is invalid. The value has the
    /// type that the table declares.
    fn check(&self, name: &str, value: &PropertyValue) -> Result<PropertyValue, String>;
    /// Returns the results for checked arguments, or the failure of the argument that names something missing or
    /// unreadable.
    fn call(&self, ctx: &CallContext, arguments: &PropertyMap) -> Result<Result<PropertyMap, CheckFailure>, Status>;
}
