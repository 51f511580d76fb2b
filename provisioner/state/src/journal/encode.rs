//! Writes records as lines of a journal.

use super::closing::Closing;
use super::dto::{BeginDto, EffectDto, EndDto, EntryDto, LineDto, ResourceEntryDto};
use crate::format::{Encryption, ResourceDto, SecretEncryption, append_line};
use crate::record::{Effect, Record, Subject};
use crate::resource::ResourceState;
use crate::secrets::{Crypter, SecretsError};
use crate::snapshot::OperationKind;

/// Appends the line of a record. `ended` is the kind of the operation that it ends, if the line says so.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be encrypted; the end of the buffer then contains a part of the line.
pub(super) fn write_record(
    out: &mut Vec<u8>,
    record: &Record,
    ended: Option<OperationKind>,
    crypter: Option<&dyn Crypter>,
) -> Result<(), SecretsError> {
    let encryption = Encryption::new(crypter.map_or(SecretEncryption::NoKey, SecretEncryption::WithKey));
    append_line(out, &line_dto(record, ended, &encryption)).map_err(|error| encryption.take_cause(error))
}

/// Appends the line that begins a phase.
pub(super) fn write_phase(out: &mut Vec<u8>) {
    append_plain_line(out, &LineDto::Phase {});
}

/// Appends the line that ends a journal.
pub(super) fn write_close(out: &mut Vec<u8>, closing: &Closing) {
    append_plain_line(out, &LineDto::Close(closing.to_dto()));
}

/// Appends a line without resources.
fn append_plain_line(out: &mut Vec<u8>, line: &WrittenLine<'_, '_>) {
    append_line(out, line).expect("only a secret can fail to be written");
}

type WrittenLine<'r, 'e> = LineDto<'r, ResourceDto<'r, 'e>>;

fn line_dto<'r, 'e>(
    record: &'r Record,
    ended: Option<OperationKind>,
    encryption: &'r Encryption<'e>,
) -> WrittenLine<'r, 'e> {
    let resource = |state: &'r ResourceState| ResourceDto::new(state, encryption);
    let effects = |effects: &'r [Effect]| effects.iter().map(|effect| effect_dto(effect, encryption)).collect();
    match record {
        Record::Begin { operation, kind, subject } => {
            let (resource, entry) = match subject {
                Subject::Resource(state) => (Some(resource(state)), None),
                Subject::Entry(entry) => (None, Some(entry.0)),
            };
            LineDto::Begin(BeginDto { operation: operation.0, kind: kind.as_str().into(), resource, entry })
        }
        Record::End { operation, effects: made } => {
            let kind = ended.map(|kind| kind.as_str().into());
            LineDto::End(EndDto { operation: operation.0, kind, effects: effects(made) })
        }
        Record::Change(changes) => LineDto::Change(effects(changes)),
    }
}

fn effect_dto<'r, 'e>(effect: &'r Effect, encryption: &'r Encryption<'e>) -> EffectDto<ResourceDto<'r, 'e>> {
    match effect {
        Effect::Add(entry, state) => {
            EffectDto::Add(ResourceEntryDto { entry: entry.0, resource: ResourceDto::new(state, encryption) })
        }
        Effect::Rewrite(entry, state) => {
            EffectDto::Rewrite(ResourceEntryDto { entry: entry.0, resource: ResourceDto::new(state, encryption) })
        }
        Effect::Remove(entry) => EffectDto::Remove(EntryDto { entry: entry.0 }),
        Effect::Keep(entry) => EffectDto::Keep(EntryDto { entry: entry.0 }),
        Effect::DropInheritedPending => EffectDto::DropInheritedPending {},
    }
}
