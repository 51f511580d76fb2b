//! Access tokens of Microsoft Entra ID, for all services of Azure: the sources of Azure's `DefaultAzureCredential`, in its order.
//!
//! Input: the environment of the program, and the scope of the tokens. Output: access tokens, renewed before they expire.
//! Excluded: keys and signatures of single services.

mod chain;
mod cli;
mod entra;
mod failure;
mod managed_identity;
mod settings;
mod token;

pub use chain::AzureCredentials;
pub use failure::AzureTokenFailure;
pub(crate) use settings::value;
