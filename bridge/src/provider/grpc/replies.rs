//! Generated messages and our own types, where they are small and the same for several calls.

use pulumi_proto::property::PropertyMap;
use pulumi_proto::rpc;
use pulumi_proto::urn::{TypeToken, Urn};

use super::bags::restore_secrets;
use super::errors::unless_unimplemented;
use crate::provider::{
    Autonaming, Capabilities, CheckFailure, DiffChanges, DiffKind, DiffReply, Method, PropertyDiff, ProviderError,
};

/// Whether CheckConfig or DiffConfig failed because there is none. Two providers say that in words of their own.
pub(super) fn is_unimplemented_config(urn: &Urn, error: &ProviderError) -> bool {
    match error {
        ProviderError::Unimplemented { .. } => true,
        ProviderError::Failed { method, message, indeterminate: true, .. } => {
            match TypeToken::new(urn.type_token()).provider_package() {
                Some("pulumi-nodejs") => true,
                Some("kubernetes") => {
                    message.contains("Unimplemented")
                        || (*method == Method::DiffConfig
                            && message.contains("cannot unmarshal string into Go value of type struct"))
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// The schema that a plugin says it has. Python's server has a code of its own for a method that a provider leaves out, so
/// that only its words say so; others have no more than `{}` to say.
pub(super) fn schema_text(
    reply: Result<rpc::GetSchemaResponse, ProviderError>,
) -> Result<Option<String>, ProviderError> {
    let text = match reply {
        Err(ProviderError::Failed { message, .. }) if says_unimplemented(&message) => return Ok(None),
        reply => unless_unimplemented(reply)?.map(|reply| reply.schema),
    };
    Ok(text.filter(|text| !text.chars().all(|c| c.is_whitespace() || c == '{' || c == '}')))
}

fn says_unimplemented(message: &str) -> bool {
    let message = message.to_lowercase();
    ["not implemented", "notimplemented", "unimplemented"].iter().any(|words| message.contains(words))
}

/// The error of a call on a resource, with the secrets of what it says of that resource marked again.
pub(super) fn restored(
    mut error: ProviderError,
    capabilities: Capabilities,
    sent_inputs: &PropertyMap,
    sent_outputs: &PropertyMap,
) -> ProviderError {
    if let ProviderError::Partial { failure, .. } = &mut error {
        restore_secrets(capabilities, sent_outputs, &mut failure.outputs);
        if let Some(inputs) = &mut failure.inputs {
            restore_secrets(capabilities, sent_inputs, inputs);
        }
    }
    error
}

pub(super) fn failures(failures: Vec<rpc::CheckFailure>) -> Vec<CheckFailure> {
    let failure = |failure: rpc::CheckFailure| CheckFailure::new(failure.property, failure.reason);
    failures.into_iter().map(failure).collect()
}

pub(super) fn autonaming(autonaming: Autonaming) -> rpc::check_request::AutonamingOptions {
    use rpc::check_request::AutonamingOptions;
    use rpc::check_request::autonaming_options::Mode;
    let (proposed_name, mode) = match autonaming {
        Autonaming::Propose(name) => (name, Mode::Propose),
        Autonaming::Enforce(name) => (name, Mode::Enforce),
        Autonaming::Disable => (String::new(), Mode::Disable),
    };
    AutonamingOptions { proposed_name, mode: mode.into() }
}

pub(super) fn diff_reply(method: Method, reply: rpc::DiffResponse) -> Result<DiffReply, ProviderError> {
    use rpc::diff_response::DiffChanges as Wire;
    let changes = match Wire::try_from(reply.changes) {
        Ok(Wire::DiffUnknown) => DiffChanges::Unknown,
        Ok(Wire::DiffNone) => DiffChanges::None,
        Ok(Wire::DiffSome) => DiffChanges::Some,
        Err(_) => {
            let reason = format!("{} is no kind of change", reply.changes);
            return Err(ProviderError::Protocol { method, reason });
        }
    };
    let entry = |(path, diff): (String, rpc::PropertyDiff)| (path, property_diff(diff));
    Ok(DiffReply {
        changes,
        replaces: reply.replaces,
        stables: reply.stables,
        diffs: reply.diffs,
        delete_before_replace: reply.delete_before_replace,
        detailed_diff: reply.has_detailed_diff.then(|| reply.detailed_diff.into_iter().map(entry).collect()),
    })
}

pub(super) fn property_diff(diff: rpc::PropertyDiff) -> PropertyDiff {
    use rpc::property_diff::Kind;
    let kind = match Kind::try_from(diff.kind) {
        Ok(Kind::Add) => DiffKind::Add,
        Ok(Kind::AddReplace) => DiffKind::AddReplace,
        Ok(Kind::Delete) => DiffKind::Delete,
        Ok(Kind::DeleteReplace) => DiffKind::DeleteReplace,
        Ok(Kind::UpdateReplace) => DiffKind::UpdateReplace,
        // What nobody knows counts as a change in place.
        Ok(Kind::Update) | Err(_) => DiffKind::Update,
    };
    PropertyDiff { kind, input_diff: diff.input_diff }
}
