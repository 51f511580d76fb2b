//! Texts of the messages that the engine emits.

use std::error::Error;

use bridge::error::Hint as _;
use bridge::message_text::MessageText;
use bridge::provider::{CheckFailure, ErrorDetails, Method, ProviderError};
use bridge::shell::{operand, option};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{ResourceState, StateError};

use crate::decisions::decision::Refusal;
use crate::decisions::deletions::Undeletable;
use crate::decisions::imports::ImportFailure;
use crate::events::{Message, Severity, StepOp};
use crate::step::{Step, StepError};

/// Hint for a pending create, whose outcome is unknown.
pub(crate) const UNKNOWN_CREATION: &str = "it may exist without being recorded: if it does, give its id to the next `sc provision` or \
     `sc refresh`, which ask for it on a terminal,\nor with --import-pending-creates NAME=ID; if it does not exist, give \
     --clear-pending-creates";

/// Hint for a creation that is refused, because the resource may exist.
const MAY_EXIST: &str = "if it exists, give its id with --import-pending-creates NAME=ID; if it does not, give \
     --clear-pending-creates;\n`pendingCreates: recreate` in `provisioner.config` creates it again without a question";

/// Hint for a replacement whose outcome is unknown, while the old resource exists. A second resource cannot be imported
/// under the name of a recorded one. A provider that reuses the id of the old one has made no second resource.
pub(crate) const UNKNOWN_REPLACEMENT: &str = "a second resource may exist without being recorded: if it does, and has another id, \
     delete it at its provider;\n--clear-pending-creates removes the pending create";

/// Hint for a message that is larger than a limit, in a call without effect.
const MESSAGE_LIMIT: &str = "the author of the plugin can raise its limit on messages to the 400 MiB of sc, as Pulumi's SDKs do, or return \
     less";

/// Hint for an Update or a Delete whose outcome is unknown.
const UNKNOWN_CHANGE: &str =
    "the outcome is unknown; the next refresh reads the resource, and the next run continues from its state";

/// Returns the message of an error with its causes, and with the details of the error of a provider.
pub(crate) fn error_message(error: &(dyn Error + 'static)) -> Message {
    Message { details: error_details(error), ..Message::new(Severity::Error, MessageText::chain(error)) }
}

/// Returns the class and the details of the error of a provider, also in a failed step; `None` for another error.
pub(crate) fn error_details(error: &(dyn Error + 'static)) -> Option<Box<ErrorDetails>> {
    let of_step = || match error.downcast_ref::<StepError>()? {
        StepError::Provider(error) => Some(error),
        StepError::State(_)
        | StepError::Host(_)
        | StepError::Failed(_)
        | StepError::MayExist
        | StepError::NotDeleted { .. } => None,
    };
    let error = error.downcast_ref::<ProviderError>().or_else(of_step)?;
    Some(Box::new(error.details()))
}

/// Returns the message about the failure of a step. In a preview, nothing was sent that changes something.
pub(crate) fn step_message(step: &Step, error: &StepError, is_preview: bool) -> Message {
    let mut message = error_message(error);
    if let StepError::Provider(error) = error {
        message.plugin = Some(package_of(&step.urn));
        message.hint = if is_preview { preview_hint(error) } else { hint(step, error) };
    }
    if let StepError::Host(error) = error {
        message.hint = error.hint();
    }
    if let StepError::State(StateError::Secrets(error)) = error {
        message.hint = error.hint();
    }
    if let StepError::NotDeleted { reason, .. } = error {
        message.hint = Some(undeletable_hint(&step.urn, *reason));
    }
    if matches!(error, StepError::MayExist) {
        message.hint = Some(MAY_EXIST.into());
    }
    message
}

/// Returns the error of a delete step whose entry cannot be deleted.
pub(crate) fn not_deleted_error(urn: &Urn, reason: Undeletable) -> StepError {
    let text = match reason {
        Undeletable::Protected => protected_from_deletion(urn),
        reason => undeletable_text("it", reason),
    };
    StepError::NotDeleted { reason, text }
}

/// Returns the reason that a resource cannot be deleted, as a sentence about `name`.
pub(crate) fn undeletable_text(name: &str, reason: Undeletable) -> MessageText {
    match reason {
        Undeletable::Protected => MessageText::new(format_args!("{name} is protected")),
        Undeletable::HasDeleteHooks => {
            MessageText::new(format_args!("{name} has delete hooks, which only its program can run"))
        }
        Undeletable::WithoutProvider => {
            MessageText::new(format_args!("{name} is recorded without a provider, so it cannot be deleted"))
        }
    }
}

/// Returns the hint for a resource that cannot be deleted.
pub(crate) fn undeletable_hint(urn: &Urn, reason: Undeletable) -> MessageText {
    match reason {
        Undeletable::Protected => MessageText::new(format_args!(
            "run `sc state unprotect {}`, or set `protect: false` in server.yaml and provision, then delete it",
            operand(urn.name())
        )),
        Undeletable::HasDeleteHooks => {
            "delete it with `pulumi` and the program that defines the hooks, or provision it once without \
                                deleting or replacing it: resources of server.yaml have no hooks"
                .into()
        }
        Undeletable::WithoutProvider => MessageText::new(format_args!(
            "delete it by other means, and remove it from the state with `sc state rm {}`",
            operand(urn.name())
        )),
    }
}

/// Returns the message about the update of a resource whose initialization failed; `None` if its entry has no
/// initialization errors.
pub(crate) fn not_initialized(old: &ResourceState) -> Option<Message> {
    let errors = old.init_errors.join("; ");
    let text =
        MessageText::new(format_args!("it exists, but its initialization has failed: it is updated again ({errors})"));
    (!old.init_errors.is_empty()).then(|| Message::new(Severity::Info, text))
}

/// Returns the package of the type of a resource.
pub(crate) fn package_of(urn: &Urn) -> String {
    pulumi_proto::urn::TypeToken::new(urn.type_token()).package().to_owned()
}

/// Returns the warning about a plugin that does not implement Read.
pub(crate) fn missing_read(package: &str) -> Message {
    let text =
        "it does not implement Read: a refresh keeps its resources as they are recorded, whatever has become of them";
    // Each phase of a run that refreshes reports it.
    Message { plugin: Some(package.to_owned()), repeated: true, ..Message::new(Severity::Warning, text) }
}

/// Returns the hint for an entry that could not be read. `can_be_skipped`: the run goes on without the reading if the user
/// leaves the refresh out.
pub(crate) fn reading_hint(error: &StepError, can_be_skipped: bool) -> Option<MessageText> {
    let StepError::Provider(error) = error else { return None };
    match error {
        error if error.exceeds_message_limit() && can_be_skipped => Some(
            "`--skip-refresh` (`-R`) leaves the refresh out: the run goes on with the recorded state, which may be stale".into(),
        ),
        error if error.exceeds_message_limit() => Some(MESSAGE_LIMIT.into()),
        // Only a pending create is read in vain: other entries stay as they are recorded.
        ProviderError::Unimplemented { method: Method::Read } => Some(
            "sc cannot record it without Read: delete it at its provider, and remove the pending create with \
             `sc refresh --clear-pending-creates`"
                .into(),
        ),
        _ => None,
    }
}

/// Returns the hint for a call of a preview, which has no effect, whatever became of it.
fn preview_hint(error: &ProviderError) -> Option<MessageText> {
    let has_exited = matches!(error, ProviderError::PluginExited { .. });
    error_hint(error).filter(|_| !has_exited).map(MessageText::from)
}

fn hint(step: &Step, error: &ProviderError) -> Option<MessageText> {
    let is_lost = |method| error.lost_reply(method).is_some();
    let text = match step.op {
        StepOp::Create | StepOp::CreateReplacement if is_lost(Method::Create) => {
            return Some(lost_create(step, error.id_in_lost_reply()));
        }
        StepOp::Update if is_lost(Method::Update) => UNKNOWN_CHANGE,
        StepOp::Delete | StepOp::DeleteReplaced if is_lost(Method::Delete) => UNKNOWN_CHANGE,
        StepOp::Import | StepOp::ImportReplacement if error.exceeds_message_limit() => MESSAGE_LIMIT,
        StepOp::Import | StepOp::ImportReplacement if is_lost(Method::Read) => {
            "nothing was changed or recorded: import the resource again"
        }
        _ => return error_hint(error).map(MessageText::from),
    };
    Some(text.into())
}

/// Returns the hint for the error of a call without effect, or of a partial failure, if there is one.
fn error_hint(error: &ProviderError) -> Option<&'static str> {
    Some(match error {
        ProviderError::PluginExited { .. } => {
            "the resource was not changed: run the command again once the plugin no longer exits"
        }
        ProviderError::Partial { .. } => {
            "the resource exists and is recorded; the next run updates it until its initialization succeeds"
        }
        error if error.exceeds_message_limit() => MESSAGE_LIMIT,
        ProviderError::MissingConfig(_) => "add the missing keys to the plugin's `config`",
        ProviderError::Failed { .. }
        | ProviderError::InvalidInputs { .. }
        | ProviderError::Unimplemented { .. }
        | ProviderError::ReplyLost { .. } => return None,
    })
}

/// Returns the hint for a pending create, whose outcome is unknown. `id` is the id of the resource, if it is known.
fn lost_create(step: &Step, id: Option<&ResourceId>) -> MessageText {
    // After a delete before the replacement, the created resource is the only one.
    let has_other = step.op == StepOp::CreateReplacement && !step.delete_before_replace;
    match id {
        Some(id) => MessageText::new(format_args!(
            "it has the id {:?}, and is pending: the next run reads it and records it",
            id.as_str()
        )),
        None if has_other => UNKNOWN_REPLACEMENT.into(),
        None => UNKNOWN_CREATION.into(),
    }
}

pub(crate) fn rejected_input(urn: &Urn, failure: &CheckFailure) -> Message {
    let mut message = Message::rejected_input(failure);
    message.plugin = Some(pulumi_proto::urn::TypeToken::new(urn.type_token()).package().to_owned());
    message
}

/// Returns the message of a registration that is refused.
pub(crate) fn refusal(urn: &Urn, refusal: Refusal) -> Message {
    let (text, hint) = match refusal {
        Refusal::Protected => (
            MessageText::new(format_args!("{} would be replaced, and is protected", urn.name())),
            "remove `protect` from the resource, or undo the change that replaces it",
        ),
        Refusal::ImportMismatch => (
            MessageText::new(format_args!(
                "{} is imported, and the existing resource would have to be replaced to match",
                urn.name()
            )),
            "make the properties match the existing resource, or remove `import` from the resource",
        ),
        Refusal::UnknownTrigger => (
            MessageText::new(format_args!("the replacement trigger of {} is not known", urn.name())),
            "use a value that is known",
        ),
    };
    let mut message = Message::new(Severity::Error, text);
    message.hint = Some(hint.into());
    message
}

/// Returns the reason that a protected resource is not deleted.
pub(crate) fn protected_from_deletion(urn: &Urn) -> MessageText {
    MessageText::new(format_args!("{} is protected and cannot be deleted", urn.name()))
}

/// Returns the reason that a read or an import failed: the resource does not exist.
pub(crate) fn does_not_exist(urn: &Urn, id: Option<&ResourceId>) -> MessageText {
    MessageText::new(format_args!("{} {:?} does not exist", urn.type_token(), ResourceId::text(id)))
}

pub(crate) fn import_failure(planned: &ResourceState, reason: ImportFailure) -> MessageText {
    match reason {
        ImportFailure::Missing => does_not_exist(&planned.urn, planned.id.as_ref()),
        ImportFailure::WithoutInputs => MessageText::new(format_args!(
            "the provider cannot import resources of type {}: it read no inputs",
            planned.type_token
        )),
    }
}

/// Returns the message of an import that would replace a protected resource by another one.
pub(crate) fn import_over_protected(old: &ResourceState) -> Message {
    let (name, id) = (old.urn.name(), old.id_text());
    let text = MessageText::new(format_args!(
        "the imported resource would replace {id:?}, which is recorded as {name} and protected"
    ));
    let mut message = Message::new(Severity::Error, text);
    message.hint = Some("remove `protect` from the resource, or import under another name".into());
    message
}

/// Returns the reason that a recorded resource cannot be imported.
pub(crate) fn already_recorded(urn: &Urn, id: Option<&ResourceId>) -> MessageText {
    MessageText::new(format_args!("{} is recorded already, with the id {:?}", urn.name(), ResourceId::text(id)))
}

/// Returns the reason that a resource of another entry cannot be imported.
pub(crate) fn owned_by_other(id: Option<&ResourceId>, owner: &Urn) -> MessageText {
    MessageText::new(format_args!(
        "{:?} is recorded already, as {owner}; to rename that entry, use `aliases` or `sc state rename`",
        ResourceId::text(id)
    ))
}

/// Returns the warning about an entry whose resource is not deleted, because another entry names it, too.
pub(crate) fn shared_resource(entry: &ResourceState, keeper: &ResourceState, is_certain: bool, stack: &str) -> Message {
    let (name, id, other) = (entry.urn.name(), entry.id_text(), &keeper.urn);
    let (replaced, new) = if entry.urn == *other { ("the replaced ", "the new ") } else { ("", "") };
    let new_name = other.name();
    let text = if is_certain {
        MessageText::new(format_args!(
            "{id:?} is not deleted: {replaced}{name} and {new}{new_name} ({other}) are this one resource"
        ))
    } else {
        MessageText::new(format_args!(
            "{id:?} is not deleted: {replaced}{name} and {new}{new_name} ({other}) may be this one resource, and the provider did not \
             say whether they are"
        ))
    };
    let mut message = Message::new(Severity::Warning, text);
    message.hint = Some(if keeper.external {
        MessageText::new(format_args!("{} keeps reading it; to delete it, use the tools of its provider", other.name()))
    } else {
        MessageText::new(format_args!(
            "{} keeps it; to delete it, run `sc destroy {} {}`",
            other.name(),
            option("-s", stack),
            option("--target", other.as_str())
        ))
    });
    message
}

/// Returns the warning about a resource that `--replace` names and that is not replaced.
pub(crate) fn unreplaced(reason: &str, hint: Option<MessageText>) -> Message {
    let text = MessageText::new(format_args!("not replaced despite --replace: {reason}"));
    Message { hint, repeated: true, ..Message::new(Severity::Warning, text) }
}
