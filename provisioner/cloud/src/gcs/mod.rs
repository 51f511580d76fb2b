//! Stores in buckets of Google Cloud Storage.
//!
//! Input: a URL with Pulumi's parameters, credentials of the configuration, the environment. Output: the objects of the
//! bucket. Excluded: the layout of a store.

mod anonymous;
mod credentials;
mod explain;
mod open;
mod url;

pub use open::{GcsError, open_gcs};
pub use url::{GcsUrl, GcsUrlError};
