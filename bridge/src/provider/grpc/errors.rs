//! Conversion of a gRPC status to a [`ProviderError`] (docs/spec/provider-protocol.md#6): by its details, else by its
//! code.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use prost::Message as _;
use prost_types::Any;
use pulumi_proto::property::wire::Bag;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::{google_rpc, rpc};
use tonic::{Code, Status};

use super::bags::Decoder;
use crate::error::cause;
use crate::provider::{CheckFailure, Method, PartialFailure, ProviderError};

/// Message about a call that was lost although the process of the plugin runs.
const LOST_CONNECTION: &str = "the connection to the plugin was lost during the call";

/// Returns the error for a status. `partial` decodes the state of the resource in a partial failure; `None` for calls
/// that cannot fail partially.
pub(super) fn from_status(method: Method, status: &Status, partial: Option<&Decoder>) -> ProviderError {
    let mut message = status.message().to_owned();
    let mut partial_failure = None;
    let mut invalid_inputs = None;
    for detail in details(status) {
        match detail {
            Detail::Cause(cause) if !cause.message.is_empty() => {
                message = if message.is_empty() { cause.message } else { format!("{message}: {}", cause.message) };
            }
            Detail::InitFailed(failed) => partial_failure = partial.map(|decoder| (decoder, failed)),
            Detail::MissingKeys(missing) => {
                let keys = missing.missing_keys.into_iter().map(|key| (key.name, key.description)).collect();
                return ProviderError::MissingConfig(keys);
            }
            Detail::InvalidInputs(errors) => invalid_inputs = Some(errors),
            Detail::Cause(_) => {}
        }
    }
    if let Some((decoder, failed)) = partial_failure {
        return partial_error(decoder, failed, message);
    }
    if let Some(errors) = invalid_inputs {
        let failure =
            |error: rpc::input_properties_error::PropertyError| CheckFailure::new(error.property_path, error.reason);
        return ProviderError::InvalidInputs { message, failures: errors.errors.into_iter().map(failure).collect() };
    }
    match status.code() {
        Code::Unimplemented => ProviderError::Unimplemented { method },
        code => {
            let indeterminate = matches!(code, Code::Unknown | Code::Internal | Code::DataLoss);
            let message = if message.is_empty() { code.description().to_owned() } else { message };
            ProviderError::Failed { method, message, indeterminate, source: None }
        }
    }
}

/// Returns true if the status was made on the side of `sc` because the call or the connection was lost. A status from
/// the plugin has no source.
pub(super) fn is_lost_connection(status: &Status) -> bool {
    status.source().is_some()
}

/// Returns the error of a call that was lost although the process of the plugin runs. The plugin may have received the
/// request.
pub(super) fn lost_connection(method: Method, status: Status) -> ProviderError {
    let (message, source) = (LOST_CONNECTION.to_owned(), Some(cause(LostCall(status))));
    ProviderError::Failed { method, message, indeterminate: true, source }
}

/// Status of a lost call, of a failed connection attempt, or of the last Handshake that failed as unavailable. Displays
/// as the message of the status without its gRPC code.
#[derive(Debug)]
pub(super) struct LostCall(pub(super) Status);

impl fmt::Display for LostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message())
    }
}

impl Error for LostCall {
    /// Returns the first cause whose text is not in the message. tonic repeats causes in the message, or reports each
    /// as "transport error".
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let mut next = self.0.source();
        while let Some(error) = next {
            let text = error.to_string();
            if text != "transport error" && !self.0.message().contains(&text) {
                return next;
            }
            next = error.source();
        }
        None
    }
}

fn partial_error(decoder: &Decoder, failed: rpc::ErrorResourceInitFailed, message: String) -> ProviderError {
    let decoded = |bag: Option<Bag>| decoder.decode_optional_bag(bag);
    let failure = decoded(failed.properties).and_then(|outputs| {
        Ok(PartialFailure {
            id: ResourceId::new(failed.id),
            outputs: outputs.unwrap_or_default(),
            inputs: decoded(failed.inputs)?,
            reasons: failed.reasons,
            refresh_before_update: failed.refresh_before_update,
        })
    });
    match failure {
        Ok(failure) => ProviderError::Partial { message, failure: Box::new(failure) },
        Err(error) => error,
    }
}

enum Detail {
    InitFailed(rpc::ErrorResourceInitFailed),
    MissingKeys(rpc::ConfigureErrorMissingKeys),
    InvalidInputs(rpc::InputPropertiesError),
    Cause(rpc::ErrorCause),
}

/// Returns the supported details of a status. Skips details that cannot be decoded: the message of the status remains.
fn details(status: &Status) -> Vec<Detail> {
    let bytes = status.details();
    if bytes.is_empty() {
        return Vec::new();
    }
    google_rpc::Status::decode(bytes)
        .map(|status| status.details.iter().filter_map(detail).collect())
        .unwrap_or_default()
}

/// Decodes a detail; `None` if it is not supported. Only the name after the last `/` of the type URL is compared: the
/// part before it differs between SDKs.
fn detail(any: &Any) -> Option<Detail> {
    let bytes = any.value.as_slice();
    match any.type_url.rsplit('/').next()? {
        "pulumirpc.ErrorResourceInitFailed" => rpc::ErrorResourceInitFailed::decode(bytes).ok().map(Detail::InitFailed),
        "pulumirpc.ConfigureErrorMissingKeys" => {
            rpc::ConfigureErrorMissingKeys::decode(bytes).ok().map(Detail::MissingKeys)
        }
        "pulumirpc.InputPropertiesError" => rpc::InputPropertiesError::decode(bytes).ok().map(Detail::InvalidInputs),
        "pulumirpc.ErrorCause" => rpc::ErrorCause::decode(bytes).ok().map(Detail::Cause),
        _ => None,
    }
}

/// Returns the error of a call without reply within its limit.
pub(super) fn timed_out(method: Method, limit: Duration) -> ProviderError {
    let message = format!("the plugin has not replied to {method} within {} s", limit.as_secs_f32());
    ProviderError::Failed { method, message, indeterminate: true, source: None }
}

/// Returns `None` for the error of a method that the plugin does not implement.
pub(super) fn none_if_unimplemented<T>(reply: Result<T, ProviderError>) -> Result<Option<T>, ProviderError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ProviderError::Unimplemented { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::error::chain;

    #[test]
    fn error_of_a_lost_call_contains_each_cause_once() {
        let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
        let wrapped = io::Error::other(reset());
        for (status, words) in [
            (Status::from_error(reset().into()), "connection reset"),
            (Status::from_error(wrapped.into()), "connection reset"),
            (Status::unknown(""), ""),
        ] {
            let error = lost_connection(Method::Read, status);
            assert!(error.is_indeterminate());
            assert_eq!(chain(&error).trim_start_matches(LOST_CONNECTION).trim_start_matches(": "), words);
        }
    }
}
