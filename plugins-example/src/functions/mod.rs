//! The functions: questions that change nothing.

mod read_file;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc::CheckFailure;
use tonic::Status;

use crate::property::Property;
use crate::resources::Context;

/// Every function this plugin serves.
pub(crate) const FUNCTIONS: [&dyn Function; 1] = [&read_file::ReadFile];

/// A function. Its call may block; it has a thread to itself.
pub(crate) trait Function: Send + Sync {
    /// The function's token, `package:module:name`.
    fn token(&self) -> &'static str;
    /// For the schema: sentences, in Markdown.
    fn description(&self) -> &'static str;
    /// The arguments.
    fn arguments(&self) -> &'static [Property];
    /// What it answers.
    fn results(&self) -> &'static [Property];
    /// The argument to work with, out of all secrets, or why it cannot be. It has the right type.
    fn check(&self, name: &str, value: &PropertyValue) -> Result<PropertyValue, String>;
    /// Answers, for checked arguments; or tells which of them leads nowhere.
    fn call(&self, ctx: &Context, arguments: &PropertyMap) -> Result<Result<PropertyMap, CheckFailure>, Status>;
}

/// The function of a token.
///
/// # Errors
/// INVALID_ARGUMENT if there is none.
pub(crate) fn find(token: &str) -> Result<&'static dyn Function, Status> {
    FUNCTIONS
        .into_iter()
        .find(|function| function.token() == token)
        .ok_or_else(|| Status::invalid_argument(format!("there is no function {token}")))
}
