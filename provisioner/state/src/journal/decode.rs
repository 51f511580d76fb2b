//! Parses the lines of a journal into records.

use std::sync::Arc;

use serde::de::Error as _;
use serde_json::value::RawValue;

use super::closing::Closing;
use super::dto::{CloseDto, EffectDto, EntryDto, LineDto};
use crate::format::{FormatError, SecretDecryption, operation_kind, read_resource};
use crate::record::{Effect, EntryId, OperationId, Record, Subject};
use crate::resource::ResourceState;
use crate::secrets::{CiphertextReuse, Crypter};
use crate::snapshot::OperationKind;

/// Content of a line after the first.
pub(super) enum Line {
    /// A record, with the kind of the operation that it ends, if the line says so.
    Record(Record, Option<OperationKind>),
    /// Start of a phase: the following records number entries and operations from 0 again.
    Phase,
    /// The end of the run.
    Close(Closing),
}

/// Reads a line after the first.
///
/// # Errors
/// [`FormatError`] if the line is malformed or a secret in it cannot be decrypted.
pub(super) fn read_line(text: &str, crypter: Option<&dyn Crypter>) -> Result<Line, FormatError> {
    let mut reader = Reader { crypter, reuse: CiphertextReuse::default() };
    Ok(match serde_json::from_str::<LineDto<'_, &RawValue>>(text).map_err(FormatError::Malformed)? {
        LineDto::Begin(begin) => {
            let subject = match (begin.resource, begin.entry) {
                (Some(resource), None) => Subject::Resource(reader.resource(resource)?),
                (None, Some(entry)) => Subject::Entry(EntryId(entry)),
                _ => {
                    let error = "an operation must have either a resource or an entry";
                    return Err(FormatError::Malformed(serde_json::Error::custom(error)));
                }
            };
            let Some(kind) = operation_kind(&begin.kind) else {
                let resource = match subject {
                    Subject::Resource(resource) => resource.urn.to_string(),
                    Subject::Entry(EntryId(entry)) => format!("entry {entry}"),
                };
                return Err(FormatError::OperationKind { resource, kind: begin.kind.into_owned() });
            };
            Line::Record(Record::Begin { operation: OperationId(begin.operation), kind, subject }, None)
        }
        LineDto::End(end) => {
            let ended = end.kind.as_deref().and_then(operation_kind);
            let (operation, effects) = (OperationId(end.operation), reader.effects(end.effects)?);
            Line::Record(Record::End { operation, effects }, ended)
        }
        LineDto::Change(effects) => Line::Record(Record::Change(reader.effects(effects)?), None),
        LineDto::Phase {} => Line::Phase,
        LineDto::Close(closing) => Line::Close(closing_of(closing)?),
    })
}

/// Reads a line that closes a journal; `None` for another line.
///
/// # Errors
/// [`FormatError`] if the line is malformed.
pub(super) fn read_closing(text: &str) -> Result<Option<Closing>, FormatError> {
    match serde_json::from_str::<LineDto<'_, &RawValue>>(text).map_err(FormatError::Malformed)? {
        LineDto::Close(closing) => closing_of(closing).map(Some),
        _ => Ok(None),
    }
}

fn closing_of(closing: CloseDto<'_>) -> Result<Closing, FormatError> {
    closing.try_into().map_err(|error| FormatError::Malformed(serde_json::Error::custom(error)))
}

struct Reader<'a> {
    crypter: Option<&'a dyn Crypter>,
    /// Required by the decoder; ciphertexts of a journal are never written again.
    reuse: CiphertextReuse,
}

impl Reader<'_> {
    fn resource(&mut self, raw: &RawValue) -> Result<Arc<ResourceState>, FormatError> {
        let decryption = match self.crypter {
            Some(crypter) => SecretDecryption::WithKey(crypter, &mut self.reuse),
            None => SecretDecryption::NoKey,
        };
        read_resource(raw.get(), decryption).map(Arc::new)
    }

    fn effects(&mut self, effects: Vec<EffectDto<&RawValue>>) -> Result<Vec<Effect>, FormatError> {
        let read = effects.into_iter().map(|effect| {
            Ok(match effect {
                EffectDto::Add(add) => Effect::Add(EntryId(add.entry), self.resource(add.resource)?),
                EffectDto::Rewrite(rewrite) => {
                    Effect::Rewrite(EntryId(rewrite.entry), self.resource(rewrite.resource)?)
                }
                EffectDto::Remove(EntryDto { entry }) => Effect::Remove(EntryId(entry)),
                EffectDto::Keep(EntryDto { entry }) => Effect::Keep(EntryId(entry)),
                EffectDto::DropInheritedPending {} => Effect::DropInheritedPending,
            })
        });
        read.collect()
    }
}
