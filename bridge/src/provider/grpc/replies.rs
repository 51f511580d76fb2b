//! Conversions between generated messages and our own types that several calls share.

use pulumi_proto::property::PropertyMap;
use pulumi_proto::rpc;
use pulumi_proto::urn::{TypeToken, Urn};

use super::bags::restore_secrets;
use super::errors::none_if_unimplemented;
use crate::provider::{
    Autonaming, Capabilities, CheckFailure, DiffChanges, DiffKind, DiffReply, LostReply, Method, PropertyDiff,
    ProviderError,
};

/// Returns true if CheckConfig or DiffConfig failed because the provider does not implement it. The providers
/// `pulumi-nodejs` and `kubernetes` report that with another code.
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

/// Returns the schema in the reply of GetSchema; `None` if the plugin has none. The Python server reports a missing
/// method with another code, so its message is compared. Other servers return `{}`.
pub(super) fn schema_text(
    reply: Result<rpc::GetSchemaResponse, ProviderError>,
) -> Result<Option<String>, ProviderError> {
    let text = match reply {
        Err(ProviderError::Failed { message, .. }) if is_unimplemented_message(&message) => return Ok(None),
        reply => none_if_unimplemented(reply)?.map(|reply| reply.schema),
    };
    Ok(text.filter(|text| !text.chars().all(|c| c.is_whitespace() || c == '{' || c == '}')))
}

/// Replaces the error by which Pulumi's Python server reports that a provider does not implement Read: it has another code, so
/// its message is compared.
pub(super) fn with_unimplemented_read(error: ProviderError) -> ProviderError {
    match error {
        ProviderError::Failed { message, .. } if message.contains("The method 'read' is not implemented") => {
            ProviderError::Unimplemented { method: Method::Read }
        }
        error => error,
    }
}

fn is_unimplemented_message(message: &str) -> bool {
    let message = message.to_lowercase();
    ["not implemented", "notimplemented", "unimplemented"].iter().any(|words| message.contains(words))
}

/// Returns the error with the secrets in the state of a partial failure marked as secret again.
pub(super) fn with_secrets_marked(
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
            let reason = format!("{} is not a kind of change", reply.changes);
            return Err(ProviderError::invalid_reply(method, LostReply::InvalidField, reason));
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
        // An unsupported kind counts as an update.
        Ok(Kind::Update) | Err(_) => DiffKind::Update,
    };
    PropertyDiff { kind, input_diff: diff.input_diff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_that_the_python_server_does_not_implement_is_recognized_by_its_words() {
        let failed = |message: &str| ProviderError::Failed {
            method: Method::Read,
            message: message.to_owned(),
            indeterminate: true,
            source: None,
            details: None,
        };
        let read = "Unexpected <class 'NotImplementedError'>: The method 'read' is not implemented";
        let is_unimplemented = |message| {
            matches!(with_unimplemented_read(failed(message)), ProviderError::Unimplemented { method: Method::Read })
        };
        assert!(is_unimplemented(read));
        assert!(!is_unimplemented("reading is not implemented for this region"));
    }
}
