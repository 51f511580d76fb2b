//! What a gRPC status means (provider protocol, section 6): the details first, then the code.

use std::time::Duration;

use prost::Message as _;
use prost_types::Any;
use pulumi_proto::property::wire::Bag;
use pulumi_proto::{google_rpc, rpc};
use tonic::{Code, Status};

use super::bags::Decoder;
use crate::provider::{CheckFailure, PartialFailure, ProviderError};

/// The error that a status is. `partial` decodes what a call that can fail in part says of its resource; `None` for
/// the other calls.
pub(super) fn from_status(method: &'static str, status: &Status, partial: Option<&Decoder>) -> ProviderError {
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
        let failure = |error: rpc::input_properties_error::PropertyError| CheckFailure {
            property: error.property_path,
            reason: error.reason,
        };
        return ProviderError::InvalidInputs { message, failures: errors.errors.into_iter().map(failure).collect() };
    }
    match status.code() {
        Code::Unimplemented => ProviderError::Unimplemented { method },
        code => {
            let indeterminate = matches!(code, Code::Unknown | Code::Internal | Code::DataLoss);
            let message = if message.is_empty() { code.description().to_owned() } else { message };
            ProviderError::Failed { method, message, indeterminate }
        }
    }
}

/// Whether a status was made on this side because the call or the whole connection broke off: a status that was sent has no source.
pub(super) fn is_lost_connection(status: &Status) -> bool {
    std::error::Error::source(status).is_some()
}

/// The error of a call that broke off although the plugin's process lives. What was sent may have arrived.
pub(super) fn lost_connection(method: &'static str, status: &Status) -> ProviderError {
    let message = format!("the plugin broke off the call: {}", in_words(status));
    ProviderError::Failed { method, message, indeterminate: true }
}

/// What happened to a call that broke off: the causes say more than the status does.
pub(super) fn in_words(status: &Status) -> String {
    let mut words = vec![status.message().to_owned()];
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let text = error.to_string();
        // tonic's own name for anything of the kind.
        if text != "transport error" && !words.iter().any(|known| known.contains(&text)) {
            words.push(text);
        }
        cause = error.source();
    }
    words.retain(|words| !words.is_empty());
    words.join(": ")
}

fn partial_error(decoder: &Decoder, failed: rpc::ErrorResourceInitFailed, message: String) -> ProviderError {
    let decoded = |bag: Option<Bag>| decoder.optional(bag);
    let failure = decoded(failed.properties).and_then(|outputs| {
        Ok(PartialFailure {
            id: failed.id,
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
pub(super) fn too_slow(method: &'static str, limit: Duration) -> ProviderError {
    let message = format!("the plugin has not answered {method} within {} s", limit.as_secs_f32());
    ProviderError::Failed { method, message, indeterminate: true }
}

/// `None` for a method that the plugin does not have.
pub(super) fn unless_unimplemented<T>(reply: Result<T, ProviderError>) -> Result<Option<T>, ProviderError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ProviderError::Unimplemented { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
