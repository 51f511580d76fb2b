//! The functions: calls without side effects.

mod function;
mod read_file;

use tonic::Status;

use function::Function;

/// All functions of this plugin.
pub(crate) const FUNCTIONS: [&dyn Function; 1] = [&read_file::ReadFile];

/// Returns the function of a token.
///
/// # Errors
/// INVALID_ARGUMENT if there is none.
pub(crate) fn find(token: &str) -> Result<&'static dyn Function, Status> {
    FUNCTIONS
        .into_iter()
        .find(|function| function.token() == token)
        .ok_or_else(|| Status::invalid_argument(format!("there is no function {token}")))
}
