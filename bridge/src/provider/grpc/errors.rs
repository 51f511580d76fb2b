//! Conversion of the error of a call to a [`ProviderError`]: a gRPC status by its details, else by its code
//! (docs/spec/provider-protocol.md#6); a lost reply with the id that it contains.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message as _};
use prost_types::Any;
use pulumi_proto::property::wire::Bag;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::{google_rpc, rpc};
use tonic::{Code, Status};

use super::bags::Decoder;
use super::error_details::error_details;
use crate::error::cause;
use crate::launch::{CallError, Loss, MAX_MESSAGE};
use crate::provider::message_limit::{Bytes, MessageLimit, Refused};
use crate::provider::{CheckFailure, ErrorClass, ErrorDetails, LostReply, Method, PartialFailure, ProviderError};

/// Maximum number of bytes of an id that a message quotes.
const MAX_QUOTED_ID: usize = 200;
/// Message about a request that was not sent.
const NOT_SENT: &str = "the request was not sent to the plugin";
/// Message about a call that was lost although the process of the plugin runs.
const LOST_CONNECTION: &str = "the connection to the plugin was lost during the call";

/// Returns the error of a call. `partial` is as in [`from_status`].
pub(super) fn from_call_error(method: Method, error: CallError, partial: Option<&Decoder>) -> ProviderError {
    let (loss, received) = match error {
        CallError::Status(status) => return from_status(method, &status, partial),
        CallError::NotSent(status) => {
            let (message, source) = (NOT_SENT.to_owned(), Some(cause(LostCall(status))));
            return ProviderError::Failed {
                method,
                message,
                indeterminate: false,
                source,
                details: class(ErrorClass::Unavailable),
            };
        }
        CallError::Lost { loss, received } => (loss, received),
    };
    let error = match loss {
        Loss::Connection(status) => {
            let (message, source) = (LOST_CONNECTION.to_owned(), Some(cause(LostCall(status))));
            ProviderError::ReplyLost { method, lost: LostReply::ConnectionLost, message, id: None, source }
        }
        Loss::NotGrpc(reason) => ProviderError::invalid_reply(method, LostReply::NotGrpc, reason),
        Loss::TooLarge(length) => too_large(
            method,
            format!(
                "the provider's reply to {method} has {}, and sc accepts at most {}",
                Bytes(length as u64),
                Bytes(MAX_MESSAGE as u64)
            ),
        ),
        Loss::Undecodable(error) => ProviderError::invalid_reply(method, LostReply::Undecodable, error),
    };
    match method {
        // The id is the first field of these replies.
        Method::Create | Method::Read => with_id_in(error, &received),
        _ => error,
    }
}

/// Adds the id in an encoded reply or detail to a lost reply. An id that is not UTF-8 cannot be recorded, because states
/// are JSON, so the message quotes it.
fn with_id_in(error: ProviderError, received: &[u8]) -> ProviderError {
    let Some(id) = id_in(received) else { return error };
    match std::str::from_utf8(id) {
        Ok(text) => error.with_id(ResourceId::new(text)),
        Err(_) => {
            let quoted = id[..id.len().min(MAX_QUOTED_ID)].escape_ascii();
            error.map_message(|message| {
                format!(
                    "{message}; the id of the resource is \"{quoted}\", which is not UTF-8: it can be neither recorded nor \
                     imported, so delete the resource at its provider"
                )
            })
        }
    }
}

/// Returns the id in an encoded reply or detail that may be incomplete or malformed: its field 1.
fn id_in(mut message: &[u8]) -> Option<&[u8]> {
    let mut id = None;
    while let Ok((tag, wire_type)) = encoding::decode_key(&mut message) {
        if (tag, wire_type) == (1, WireType::LengthDelimited) {
            let length = usize::try_from(encoding::decode_varint(&mut message).ok()?).ok()?;
            let Some((text, rest)) = message.split_at_checked(length) else { break };
            id = Some(text).filter(|text| !text.is_empty());
            message = rest;
        } else if encoding::skip_field(wire_type, tag, &mut message, DecodeContext::default()).is_err() {
            break;
        }
    }
    id
}

/// Returns the error for a status. `partial` decodes the state of the resource in a partial failure; `None` for calls
/// that cannot fail partially.
pub(super) fn from_status(method: Method, status: &Status, partial: Option<&Decoder>) -> ProviderError {
    let mut message = status.message().to_owned();
    let mut partial_failure = None;
    let mut invalid_inputs = None;
    let (pulumi_details, details) = match details(status) {
        Ok(details) => details,
        Err(UndecodableDetail { received, error }) if partial.is_some() => {
            let reason = format_args!("{error} in: {message}");
            return with_id_in(ProviderError::invalid_reply(method, LostReply::Undecodable, reason), &received);
        }
        // A call that cannot fail partially has no detail that matters to the resource.
        Err(_) => Default::default(),
    };
    for detail in pulumi_details {
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
        return partial_error(decoder, failed, message, error_details(status.code(), &details));
    }
    if let Some(errors) = invalid_inputs {
        let failure =
            |error: rpc::input_properties_error::PropertyError| CheckFailure::new(error.property_path, error.reason);
        return ProviderError::InvalidInputs { message, failures: errors.errors.into_iter().map(failure).collect() };
    }
    let is_limit = matches!(status.code(), Code::ResourceExhausted | Code::OutOfRange);
    if let Some(limit) = MessageLimit::in_message(&message).filter(|_| is_limit) {
        let (part, own) = (if limit.refused == Refused::Reply { "reply to" } else { "request of" }, Bytes(limit.bytes));
        let accepted = Bytes(MAX_MESSAGE as u64);
        message =
            format!("the {part} {method} exceeds the plugin's own limit of {own}; that of sc is {accepted}: {message}");
        if limit.refused == Refused::Reply {
            return too_large(method, message);
        }
    }
    match status.code() {
        Code::Unimplemented => ProviderError::Unimplemented { method },
        code => {
            let indeterminate = matches!(code, Code::Unknown | Code::Internal | Code::DataLoss);
            let message = if message.is_empty() { code.description().to_owned() } else { message };
            let details = Some(Box::new(error_details(code, &details)));
            ProviderError::Failed { method, message, indeterminate, source: None, details }
        }
    }
}

/// Returns the error of a reply that exceeds a limit. The call had its effect.
fn too_large(method: Method, message: String) -> ProviderError {
    ProviderError::ReplyLost { method, lost: LostReply::TooLarge, message, id: None, source: None }
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

fn partial_error(
    decoder: &Decoder,
    failed: rpc::ErrorResourceInitFailed,
    message: String,
    details: ErrorDetails,
) -> ProviderError {
    let decoded = |bag: Option<Bag>| decoder.decode_optional_bag(bag);
    let id = ResourceId::new(failed.id);
    let failure = decoded(failed.properties).and_then(|outputs| {
        Ok(PartialFailure {
            id: id.clone(),
            outputs: outputs.unwrap_or_default(),
            inputs: decoded(failed.inputs)?,
            reasons: failed.reasons,
            refresh_before_update: failed.refresh_before_update,
            details: Some(Box::new(details)),
        })
    });
    match failure {
        Ok(failure) => ProviderError::Partial { message, failure: Box::new(failure) },
        Err(error) => error.map_message(|reason| format!("{message}: {reason}")).with_id(id),
    }
}

enum Detail {
    InitFailed(rpc::ErrorResourceInitFailed),
    MissingKeys(rpc::ConfigureErrorMissingKeys),
    InvalidInputs(rpc::InputPropertiesError),
    Cause(rpc::ErrorCause),
}

/// Detail of a status that cannot be decoded although it may describe a resource that exists.
struct UndecodableDetail {
    received: Vec<u8>,
    error: DecodeError,
}

impl From<DecodeError> for UndecodableDetail {
    fn from(error: DecodeError) -> Self {
        Self { received: Vec::new(), error }
    }
}

fn class(class: ErrorClass) -> Option<Box<ErrorDetails>> {
    Some(Box::new(ErrorDetails::new(class)))
}

/// Returns the details of Pulumi in a status, and all details.
fn details(status: &Status) -> Result<(Vec<Detail>, Vec<Any>), UndecodableDetail> {
    let bytes = status.details();
    if bytes.is_empty() {
        return Ok(Default::default());
    }
    let details = google_rpc::Status::decode(bytes)?.details;
    let of_pulumi = details.iter().filter_map(|any| detail(any).transpose()).collect::<Result<_, _>>()?;
    Ok((of_pulumi, details))
}

/// Decodes a detail; `None` if it is not supported. Only the name after the last `/` of the type URL is compared: the
/// part before it differs between SDKs. Skips details that cannot be decoded if they do not describe a resource: the
/// message of the status remains.
fn detail(any: &Any) -> Result<Option<Detail>, UndecodableDetail> {
    let bytes = any.value.as_slice();
    Ok(match any.type_url.rsplit('/').next().unwrap_or_default() {
        "pulumirpc.ErrorResourceInitFailed" => {
            let failed = rpc::ErrorResourceInitFailed::decode(bytes);
            Some(Detail::InitFailed(failed.map_err(|error| UndecodableDetail { received: bytes.to_vec(), error })?))
        }
        "pulumirpc.ConfigureErrorMissingKeys" => {
            rpc::ConfigureErrorMissingKeys::decode(bytes).ok().map(Detail::MissingKeys)
        }
        "pulumirpc.InputPropertiesError" => rpc::InputPropertiesError::decode(bytes).ok().map(Detail::InvalidInputs),
        "pulumirpc.ErrorCause" => rpc::ErrorCause::decode(bytes).ok().map(Detail::Cause),
        _ => None,
    })
}

/// Returns the error of a call without reply within its limit.
pub(super) fn timed_out(method: Method, limit: Duration) -> ProviderError {
    let message = format!("the plugin has not replied to {method} within {} s", limit.as_secs_f32());
    ProviderError::Failed { method, message, indeterminate: true, source: None, details: class(ErrorClass::Transient) }
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

    /// Shows: hosting.md#limits-on-messages "the reply counts as lost"
    #[test]
    fn limit_of_the_plugin_on_messages_is_named_and_a_reply_that_exceeds_it_is_lost() {
        let error = |code, message: &str| from_status(Method::Create, &Status::new(code, message), None);
        let sent = "grpc: trying to send message larger than max (5242880 vs. 4194304)";
        let received = "grpc: received message larger than max (5242880 vs. 4194304)";
        let text = |part: &str, message: &str| {
            format!(
                "the {part} Create exceeds the plugin's own limit of 4194304 bytes (4 MiB); that of sc is 419430400 bytes (400 \
                 MiB): {message}"
            )
        };
        let lost = error(Code::ResourceExhausted, sent);
        assert_eq!(lost.to_string(), text("reply to", sent));
        assert_eq!(lost.lost_reply(Method::Create), Some(LostReply::TooLarge));
        let refused = error(Code::ResourceExhausted, received);
        assert_eq!(refused.to_string(), text("request of", received));
        assert!(!refused.is_indeterminate() && refused.lost_reply(Method::Create).is_none());
        assert!(refused.exceeds_message_limit() && lost.exceeds_message_limit());
        let other = error(Code::ResourceExhausted, "quota");
        assert!(!other.exceeds_message_limit() && other.lost_reply(Method::Create).is_none(), "{other}");
        let length = MAX_MESSAGE + 1;
        let ours = from_call_error(Method::Read, Loss::TooLarge(length).into(), None);
        assert_eq!(
            ours.to_string(),
            "the provider's reply to Read has 419430401 bytes, and sc accepts at most 419430400 bytes (400 MiB)"
        );
    }

    #[test]
    fn error_of_a_lost_call_contains_each_cause_once() {
        let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
        let wrapped = io::Error::other(reset());
        for (status, words) in [
            (Status::from_error(reset().into()), "connection reset"),
            (Status::from_error(wrapped.into()), "connection reset"),
            (Status::unknown(""), ""),
        ] {
            let error = from_call_error(Method::Read, Loss::Connection(status).into(), None);
            assert_eq!(error.lost_reply(Method::Read), Some(LostReply::ConnectionLost));
            assert_eq!(chain(&error).trim_start_matches(LOST_CONNECTION).trim_start_matches(": "), words);
        }
    }
}
