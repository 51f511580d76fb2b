//! What a gRPC status means (provider protocol, section 6): the details first, then the code.

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

/// The error that a status is. `partial` decodes what a call that can fail in part says of its resource; `None` for
/// the other calls.
pub(super) fn from_status(method: Method, status: &Status, partial: Option<&Decoder>) -> ProviderError {
    let mut message = status.message().to_owned();
    let mut partial_failure = None;
    let mut refused_inputs = None;
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
            Detail::RefusedInputs(errors) => refused_inputs = Some(errors),
            Detail::Cause(_) => {}
        }
    }
    if let Some((decoder, failed)) = partial_failure {
        return partial_error(decoder, failed, message);
    }
    if let Some(errors) = refused_inputs {
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

/// Whether a status was made on this side because the call or the whole connection broke off: a status that was sent has no source.
pub(super) fn is_lost_connection(status: &Status) -> bool {
    status.source().is_some()
}

/// The error of a call that broke off although the plugin's process lives. What was sent may have arrived.
pub(super) fn lost_connection(method: Method, status: Status) -> ProviderError {
    let (message, source) = ("the plugin broke off the call".to_owned(), Some(cause(BrokenCall(status))));
    ProviderError::Failed { method, message, indeterminate: true, source }
}

/// A call that broke off, or a connection that was not made: the status that was made of it on this side, in the words of
/// what happened instead of those of gRPC.
#[derive(Debug)]
pub(super) struct BrokenCall(pub(super) Status);

impl fmt::Display for BrokenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message())
    }
}

impl Error for BrokenCall {
    /// Returns the first cause that adds anything to the message: tonic repeats causes in it, or calls them all "transport
    /// error".
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
    let decoded = |bag: Option<Bag>| decoder.optional(bag);
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
    RefusedInputs(rpc::InputPropertiesError),
    Cause(rpc::ErrorCause),
}

/// The details that we know. What cannot be read is passed over: the status itself still says something.
fn details(status: &Status) -> Vec<Detail> {
    let bytes = status.details();
    if bytes.is_empty() {
        return Vec::new();
    }
    google_rpc::Status::decode(bytes)
        .map(|status| status.details.iter().filter_map(detail).collect())
        .unwrap_or_default()
}

/// By the name of the message alone: what stands before the last `/` differs between SDKs.
fn detail(any: &Any) -> Option<Detail> {
    let bytes = any.value.as_slice();
    match any.type_url.rsplit('/').next()? {
        "pulumirpc.ErrorResourceInitFailed" => rpc::ErrorResourceInitFailed::decode(bytes).ok().map(Detail::InitFailed),
        "pulumirpc.ConfigureErrorMissingKeys" => {
            rpc::ConfigureErrorMissingKeys::decode(bytes).ok().map(Detail::MissingKeys)
        }
        "pulumirpc.InputPropertiesError" => rpc::InputPropertiesError::decode(bytes).ok().map(Detail::RefusedInputs),
        "pulumirpc.ErrorCause" => rpc::ErrorCause::decode(bytes).ok().map(Detail::Cause),
        _ => None,
    }
}

/// The error of a call that was not answered in time.
pub(super) fn too_slow(method: Method, limit: Duration) -> ProviderError {
    let message = format!("the plugin has not answered {method} within {} s", limit.as_secs_f32());
    ProviderError::Failed { method, message, indeterminate: true, source: None }
}

/// `None` for a method that the plugin does not have.
pub(super) fn unless_unimplemented<T>(reply: Result<T, ProviderError>) -> Result<Option<T>, ProviderError> {
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
    fn a_broken_call_names_each_of_its_causes_once() {
        let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
        let wrapped = io::Error::other(reset());
        for (status, words) in [
            (Status::from_error(reset().into()), "connection reset"),
            (Status::from_error(wrapped.into()), "connection reset"),
            (Status::unknown(""), ""),
        ] {
            let error = lost_connection(Method::Read, status);
            assert!(error.is_indeterminate());
            assert_eq!(
                chain(&error).trim_start_matches("the plugin broke off the call").trim_start_matches(": "),
                words
            );
        }
    }
}
