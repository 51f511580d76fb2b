//! Clients of the stores and keys that are not on this machine. Both implementations have the same functions; the feature
//! `cloud` chooses one of them, and nothing else depends on it.

#[cfg(feature = "cloud")]
mod clients;
#[cfg(not(feature = "cloud"))]
mod refusals;

#[cfg(feature = "cloud")]
pub(super) use clients::{create_bucket, effects, key_service, objects};
#[cfg(not(feature = "cloud"))]
pub(super) use refusals::{create_bucket, effects, key_service, objects};
