//! Stores in buckets of Google Cloud Storage.
//!
//! Input: a URL with Pulumi's parameters, credentials of the configuration, the environment. Output: the objects of the
//! bucket; a bucket that is created. Excluded: the layout of a store.

mod create;
mod credentials;
mod explain;
mod open;
mod url;

pub use create::{CreateBucketError, NewBucket, create_bucket};
pub use open::{GcsError, open_gcs};
pub use url::{GcsUrl, GcsUrlError};
