//! Stores in containers of Azure Blob Storage.
//!
//! Input: a URL with Pulumi's parameters, the environment. Output: the objects of the container. Excluded: the layout of a store.

mod account;
mod connection_string;
mod container;
mod credentials;
mod explain;
mod open;
mod requests;
mod url;

pub use account::AzblobSettingsError;
pub use open::{AzblobError, open_azblob};
pub use url::{AzblobUrl, AzblobUrlError};
