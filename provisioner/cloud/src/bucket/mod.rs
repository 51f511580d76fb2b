//! Objects in a bucket: what the stores of Amazon and of Google have in common.
//!
//! Input: a client of `object_store`, and the words of its service. Output: an implementation of
//! [`state::store::Objects`]. Excluded: URLs, credentials, regions.
//!
//! Each request has deadlines ([`LimitedConnector`]) and is repeated for a minute where that is safe. What a store replies
//! to a failed request is reduced to what a message may show ([`Reply`]): the whole text may contain credentials.

mod connector;
mod failure;
mod objects;
mod prefix;
mod reply;

pub(crate) use connector::{LimitedConnector, TransportFailure, retry_config};
pub(crate) use failure::Failure;
pub(crate) use objects::{Bucket, BucketService};
pub(crate) use prefix::parse_prefix;
pub(crate) use reply::Reply;
