//! Lines of a journal to records.

use std::sync::Arc;

use serde::de::Error as _;
use serde_json::value::RawValue;

use super::dto::{EffectDto, EntryDto, LineDto};
use crate::format::{FormatError, Opening, operation_kind, read_resource};
use crate::record::{Effect, EntryId, OperationId, Record, Subject};
use crate::resource::ResourceState;
use crate::secrets::{CiphertextReuse, Crypter};

/// What a line after the first says.
pub(super) enum Line {
    /// Something happened.
    Record(Record),
    /// From here on entries and operations are numbered anew.
    Phase,
    /// The run ended, and is about to save the checkpoint with this digest.
    Close(String),
}

/// Reads the line of a record.
///
/// # Errors
/// [`FormatError`], as for a checkpoint.
pub(super) fn read(text: &str, crypter: Option<&dyn Crypter>) -> Result<Line, FormatError> {
    let mut reader = Reader { crypter, reuse: CiphertextReuse::default() };
    Ok(match serde_json::from_str::<LineDto<'_, &RawValue>>(text).map_err(FormatError::Malformed)? {
        LineDto::Begin(begin) => {
            let subject = match (begin.resource, begin.entry) {
                (Some(resource), None) => Subject::Resource(reader.resource(resource)?),
                (None, Some(entry)) => Subject::Entry(EntryId(entry)),
                _ => {
                    let error = "an operation is on a resource or on an entry";
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
            Line::Record(Record::Begin { operation: OperationId(begin.operation), kind, subject })
        }
        LineDto::End(end) => {
            Line::Record(Record::End { operation: OperationId(end.operation), effects: reader.effects(end.effects)? })
        }
        LineDto::Change(effects) => Line::Record(Record::Change(reader.effects(effects)?)),
        LineDto::Phase {} => Line::Phase,
        LineDto::Close(digest) => Line::Close(digest.into_owned()),
    })
}

struct Reader<'a> {
    crypter: Option<&'a dyn Crypter>,
    /// Sealed texts of a journal are not written again.
    reuse: CiphertextReuse,
}

impl Reader<'_> {
    fn resource(&mut self, raw: &RawValue) -> Result<Arc<ResourceState>, FormatError> {
        let opening = match self.crypter {
            Some(crypter) => Opening::With(crypter, &mut self.reuse),
            None => Opening::Impossible,
        };
        read_resource(raw.get(), opening).map(Arc::new)
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
