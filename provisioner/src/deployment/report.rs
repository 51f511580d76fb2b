//! What the engine says, in its own words.

use bridge::provider::{CheckFailure, ProviderError};
use pulumi_proto::urn::Urn;

use crate::events::{Message, Severity};
use crate::state::{OperationKind, ResourceState, StateError};

use super::decide::Refusal;
use super::decide::deletes::Undeletable;
use super::decide::existing::NotTaken;
use super::step::{Step, StepError};

/// What to do about a creation of which nobody knows what came.
const UNKNOWN_CREATION: &str = "it may exist without being recorded: look for it, and say what its id is \
     (`sc refresh` asks, and takes it with --import-pending-creates);\n`sc refresh --clear-pending-creates` forgets that \
     it was begun";

/// The message of a step that failed.
pub(super) fn step_message(step: &Step, error: &StepError) -> Message {
    let mut message = Message::new(Severity::Error, chain(error));
    if let StepError::Provider(error) = error {
        message.plugin = Some(package_of(&step.urn));
        message.hint = match error {
            ProviderError::Partial { .. } if !step.leaves_something(error) => {
                "the provider gave no id, so nothing is recorded: look whether something was left behind".to_owned()
            }
            error => hint(error),
        };
    }
    if let StepError::Host(error) = error {
        message.hint.clone_from(&error.hint);
    }
    if let StepError::State(StateError::Secrets(error)) = error {
        message.hint = error.hint().unwrap_or_default().to_owned();
    }
    if let StepError::NotDeleted { why, .. } = error {
        message.hint = undeletable_hint(&step.urn, *why);
    }
    message
}

/// Why something is not deleted.
pub(super) fn not_deleted(urn: &Urn, why: Undeletable) -> StepError {
    let text = match why {
        Undeletable::Protected => protected_from_deletion(urn),
        why => undeletable("it", why),
    };
    StepError::NotDeleted { why, text }
}

/// The same in words.
pub(super) fn undeletable(whose: &str, why: Undeletable) -> String {
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
pub(super) fn undeletable_hint(urn: &Urn, why: Undeletable) -> String {
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
pub(super) fn package_of(urn: &Urn) -> String {
    pulumi_proto::urn::TypeToken::new(urn.type_token()).package().to_owned()
}

fn hint(error: &ProviderError) -> String {
    match error {
        ProviderError::Died { method: "Create", reached: true, .. } => UNKNOWN_CREATION.to_owned(),
        ProviderError::Died { method: "Update" | "Delete", reached: true, .. } => {
            "what became of it is not known; the next refresh reads it, and the next run goes on from there".to_owned()
        }
        ProviderError::Died { .. } => {
            "nothing was done to it: once the plugin stays alive, run the command once more".to_owned()
        }
        ProviderError::Partial { .. } => {
            "the resource exists and is recorded; the next run updates it until it comes up".to_owned()
        }
        ProviderError::MissingConfig(_) => "add the missing keys to the plugin's `config`".to_owned(),
        ProviderError::Failed { .. }
        | ProviderError::InvalidInputs { .. }
        | ProviderError::Unimplemented { .. }
        | ProviderError::Protocol { .. } => String::new(),
    }
}

/// An error with its causes, each said once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The message of inputs that were refused.
pub(super) fn refused_input(urn: &Urn, failure: &CheckFailure) -> Message {
    let text = if failure.property.is_empty() {
        failure.reason.clone()
    } else {
        format!("property {}: {}", failure.property, failure.reason)
    };
    let mut message = Message::new(Severity::Error, text);
    message.property.clone_from(&failure.property);
    message.plugin = Some(pulumi_proto::urn::TypeToken::new(urn.type_token()).package().to_owned());
    message
}

/// The message of a registration that cannot be.
pub(super) fn refusal(urn: &Urn, refusal: Refusal) -> Message {
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
    message.hint = hint.to_owned();
    message
}

/// Why a protected resource stays.
pub(super) fn protected_from_deletion(urn: &Urn) -> String {
    format!("{} is protected and cannot be deleted", urn.name())
}

/// Why a read or an import found nothing.
pub(super) fn does_not_exist(urn: &Urn, id: &str) -> String {
    format!("{} {id:?} does not exist", urn.type_token())
}

/// Why what is to be imported was not taken over.
pub(super) fn not_taken(wanted: &ResourceState, why: NotTaken) -> String {
    match why {
        NotTaken::Missing => does_not_exist(&wanted.urn, &wanted.id),
        NotTaken::WithoutInputs => {
            format!("the provider cannot import resources of type {}: it read no inputs", wanted.type_token)
        }
    }
}

/// Why what exists already cannot be imported.
pub(super) fn is_recorded(urn: &Urn, id: &str) -> String {
    format!("{} is recorded already, with the id {id:?}", urn.name())
}

/// What an earlier run left behind.
pub(crate) fn interrupted(urn: &Urn, kind: OperationKind) -> Message {
    let text = format!("an earlier run was interrupted while {} it", kind.as_str());
    let mut message = Message::new(Severity::Warning, text);
    message.urn = Some(urn.clone());
    message.hint = match kind {
        OperationKind::Creating => UNKNOWN_CREATION,
        OperationKind::Updating | OperationKind::Deleting | OperationKind::Reading | OperationKind::Importing => {
            "what is recorded of it may be from before; a refresh reads what became of it"
        }
    }
    .to_owned();
    message
}
