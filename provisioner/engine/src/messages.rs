//! What the engine says, in its own words.

use std::borrow::Cow;
use std::error::Error;

use bridge::error::{Hint as _, chain};
use bridge::provider::{CheckFailure, Method, ProviderError};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{OperationKind, ResourceState, StateError};

use crate::decisions::deletions::Undeletable;
use crate::decisions::imports::NotTaken;
use crate::decisions::registration::Refusal;
use crate::events::{Message, Severity};
use crate::step::{Step, StepError};

/// What to do about a creation of which nobody knows what came.
const UNKNOWN_CREATION: &str = "it may exist without being recorded: look for it, and say what its id is \
     (`sc refresh` asks, and takes it with --import-pending-creates);\n`sc refresh --clear-pending-creates` forgets that \
     it was begun";

/// Returns the message of an error with its causes.
pub(crate) fn of_error(error: &(dyn Error + 'static)) -> Message {
    Message::new(Severity::Error, chain(error))
}

/// The message of a step that failed.
pub(crate) fn step_message(step: &Step, error: &StepError) -> Message {
    let mut message = of_error(error);
    if let StepError::Provider(error) = error {
        message.plugin = Some(package_of(&step.urn));
        message.hint = match error {
            ProviderError::Partial { .. } if !step.records_failure(error) => {
                Some("the provider gave no id, so nothing is recorded: look whether something was left behind")
            }
            error => hint(error),
        }
        .map(str::to_owned);
    }
    if let StepError::Host(error) = error {
        message.hint = error.hint().map(Cow::into_owned);
    }
    if let StepError::State(StateError::Secrets(error)) = error {
        message.hint = error.hint().map(Cow::into_owned);
    }
    if let StepError::NotDeleted { why, .. } = error {
        message.hint = Some(undeletable_hint(&step.urn, *why));
    }
    message
}

/// Why something is not deleted.
pub(crate) fn not_deleted(urn: &Urn, why: Undeletable) -> StepError {
    let text = match why {
        Undeletable::Protected => protected_from_deletion(urn),
        why => undeletable("it", why),
    };
    StepError::NotDeleted { why, text }
}

/// The same in words.
pub(crate) fn undeletable(whose: &str, why: Undeletable) -> String {
    match why {
        Undeletable::Protected => format!("{whose} is protected"),
        Undeletable::Hooked => {
            format!("{whose} has hooks that are to run with its deletion, which only its program has")
        }
        Undeletable::Unserved => {
            format!("{whose} is recorded without a provider, so nobody can be asked to delete it")
        }
    }
}

/// What to do about it.
pub(crate) fn undeletable_hint(urn: &Urn, why: Undeletable) -> String {
    match why {
        Undeletable::Protected => "take `protect` off the resource and provision once more before it goes".to_owned(),
        Undeletable::Hooked => {
            "let `pulumi` do it, with the program that has them, or provision it once without deleting \
                                or replacing it: what server.yaml describes has no hooks"
                .to_owned()
        }
        Undeletable::Unserved => {
            format!("delete it by other means, and forget it with `sc state rm {}`", urn.name())
        }
    }
}

/// Whose type a resource has.
pub(crate) fn package_of(urn: &Urn) -> String {
    pulumi_proto::urn::TypeToken::new(urn.type_token()).package().to_owned()
}

/// Returns what to do about the error of a provider.
fn hint(error: &ProviderError) -> Option<&'static str> {
    Some(match error {
        ProviderError::Died { method: Method::Create, reached: true, .. } => UNKNOWN_CREATION,
        ProviderError::Died { method: Method::Update | Method::Delete, reached: true, .. } => {
            "what became of it is not known; the next refresh reads it, and the next run goes on from there"
        }
        ProviderError::Died { .. } => "nothing was done to it: once the plugin stays alive, run the command once more",
        ProviderError::Partial { .. } => {
            "the resource exists and is recorded; the next run updates it until it comes up"
        }
        ProviderError::MissingConfig(_) => "add the missing keys to the plugin's `config`",
        ProviderError::Failed { .. }
        | ProviderError::InvalidInputs { .. }
        | ProviderError::Unimplemented { .. }
        | ProviderError::Protocol { .. } => return None,
    })
}

/// The message of inputs that were refused.
pub(crate) fn refused_input(urn: &Urn, failure: &CheckFailure) -> Message {
    let text = match &failure.property {
        None => failure.reason.clone(),
        Some(property) => format!("property {property}: {}", failure.reason),
    };
    let mut message = Message::new(Severity::Error, text);
    message.property.clone_from(&failure.property);
    message.plugin = Some(pulumi_proto::urn::TypeToken::new(urn.type_token()).package().to_owned());
    message
}

/// The message of a registration that cannot be.
pub(crate) fn refusal(urn: &Urn, refusal: Refusal) -> Message {
    let (text, hint) = match refusal {
        Refusal::Protected => (
            format!("{} would be replaced, and is protected", urn.name()),
            "take `protect` off the resource, or undo the change that replaces it",
        ),
        Refusal::ImportMismatch => (
            format!("{} was imported, and what exists would have to be replaced to match", urn.name()),
            "make the properties say what exists, or take `import` off the resource",
        ),
        Refusal::UnknownTrigger => {
            (format!("the replacement trigger of {} is not known", urn.name()), "use a value that is known")
        }
    };
    let mut message = Message::new(Severity::Error, text);
    message.hint = Some(hint.to_owned());
    message
}

/// Why a protected resource stays.
pub(crate) fn protected_from_deletion(urn: &Urn) -> String {
    format!("{} is protected and cannot be deleted", urn.name())
}

/// Why a read or an import found nothing.
pub(crate) fn does_not_exist(urn: &Urn, id: Option<&ResourceId>) -> String {
    format!("{} {:?} does not exist", urn.type_token(), ResourceId::text(id))
}

/// Why what is to be imported was not taken over.
pub(crate) fn not_taken(wanted: &ResourceState, why: NotTaken) -> String {
    match why {
        NotTaken::Missing => does_not_exist(&wanted.urn, wanted.id.as_ref()),
        NotTaken::WithoutInputs => {
            format!("the provider cannot import resources of type {}: it read no inputs", wanted.type_token)
        }
    }
}

/// Why what exists already cannot be imported.
pub(crate) fn is_recorded(urn: &Urn, id: Option<&ResourceId>) -> String {
    format!("{} is recorded already, with the id {:?}", urn.name(), ResourceId::text(id))
}

/// What an earlier run left behind.
pub fn interrupted(urn: &Urn, kind: OperationKind) -> Message {
    let text = format!("an earlier run was interrupted while {} it", kind.as_str());
    let mut message = Message::new(Severity::Warning, text);
    message.urn = Some(urn.clone());
    let hint = match kind {
        OperationKind::Creating => UNKNOWN_CREATION,
        OperationKind::Updating | OperationKind::Deleting | OperationKind::Reading | OperationKind::Importing => {
            "what is recorded of it may be from before; a refresh reads what became of it"
        }
    };
    message.hint = Some(hint.to_owned());
    message
}
