//! Stores in buckets of Amazon S3, and of services with its interface.
//!
//! Input: a URL with Pulumi's parameters, keys of the configuration, the environment. Output: the objects of the bucket.
//! Excluded: the layout of a store.

mod credentials;
mod endpoint;
mod explain;
mod open;
mod url;

pub use open::{S3Error, open_s3};
pub use url::{S3Encryption, S3Url, S3UrlError};
