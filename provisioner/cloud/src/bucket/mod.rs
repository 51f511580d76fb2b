//! Objects in a bucket: what the stores of Amazon, of Google and of Azure have in common.
//!
//! Input: a client of `object_store`, and the words of its service. Output: an implementation of
//! [`state::store::Objects`]. Excluded: URLs, credentials, regions.
//!
//! Each request and each reply is limited in time and size ([`LimitedConnector`]), and is repeated for a minute where that is
//! safe; a reply that no store sends is an error ([`expected`]). What a store replies to a failed request is reduced to what a message may show ([`Reply`]): the whole text may contain credentials.

mod connector;
mod expected;
mod failure;
mod objects;
mod paced;
mod pages;
mod reply;
mod transport;

pub(crate) use connector::{LimitedConnector, RETRY_BUDGET, retry_config};
pub(crate) use failure::Failure;
pub(crate) use objects::parse_prefix;
pub(crate) use objects::{Bucket, BucketService};
pub(crate) use reply::Reply;
pub(crate) use transport::TransportFailure;
