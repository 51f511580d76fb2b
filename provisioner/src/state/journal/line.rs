//! One line of a journal: a record to text and back.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

use crate::state::format::{FormatError, Opening, ResourceWriter, Sealing, operation_kind, read_resource};
use crate::state::ledger::{Effect, EntryId, OperationId, Record, Subject};
use crate::state::resource::ResourceState;
use crate::state::secrets::{CiphertextReuse, Crypter, SecretsError};

/// Appends the line of a record.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be sealed; the text is then to be thrown away.
pub(super) fn write(out: &mut String, record: &Record, crypter: Option<&dyn Crypter>) -> Result<(), SecretsError> {
    let sealing = crypter.map_or(Sealing::Impossible, Sealing::Fresh);
    let mut writer = Writer { out, resources: ResourceWriter::new(sealing) };
    match record {
        Record::Begin { operation, kind, subject } => {
            writer.push("{\"begin\":{\"operation\":", operation.0);
            writer.out.push_str(",\"kind\":\"");
            writer.out.push_str(kind.as_str());
            writer.out.push('"');
            match subject {
                Subject::Resource(resource) => {
                    writer.out.push_str(",\"resource\":");
                    writer.resources.resource(writer.out, resource)?;
                }
                Subject::Entry(entry) => writer.push(",\"entry\":", entry.0),
            }
            writer.out.push_str("}}");
        }
        Record::End { operation, effects } => {
            writer.push("{\"end\":{\"operation\":", operation.0);
            writer.out.push_str(",\"effects\":");
            writer.effects(effects)?;
            writer.out.push_str("}}");
        }
        Record::Change(effects) => {
            writer.out.push_str("{\"change\":");
            writer.effects(effects)?;
            writer.out.push('}');
        }
    }
    out.push('\n');
    Ok(())
}

/// Appends the line that begins a phase.
pub(super) fn write_phase(out: &mut String) {
    out.push_str("{\"phase\":{}}\n");
}

struct Writer<'o, 'a> {
    out: &'o mut String,
    resources: ResourceWriter<'a>,
}

impl Writer<'_, '_> {
    fn push(&mut self, text: &str, number: u64) {
        self.out.push_str(text);
        self.out.push_str(&number.to_string());
    }

    fn effects(&mut self, effects: &[Effect]) -> Result<(), SecretsError> {
        self.out.push('[');
        for (index, effect) in effects.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.effect(effect)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn effect(&mut self, effect: &Effect) -> Result<(), SecretsError> {
        match effect {
            Effect::Add(entry, state) => return self.entry_with_state("{\"add\":{\"entry\":", *entry, state),
            Effect::Rewrite(entry, state) => return self.entry_with_state("{\"rewrite\":{\"entry\":", *entry, state),
            Effect::Remove(entry) => self.push("{\"remove\":{\"entry\":", entry.0),
            Effect::Keep(entry) => self.push("{\"keep\":{\"entry\":", entry.0),
            Effect::DropInheritedPending => self.out.push_str("{\"dropInheritedPending\":{"),
        }
        self.out.push_str("}}");
        Ok(())
    }

    fn entry_with_state(&mut self, text: &str, entry: EntryId, state: &ResourceState) -> Result<(), SecretsError> {
        self.push(text, entry.0);
        self.out.push_str(",\"resource\":");
        self.resources.resource(self.out, state)?;
        self.out.push_str("}}");
        Ok(())
    }
}

/// What a line after the first says.
pub(super) enum Line {
    /// Something happened.
    Record(Record),
    /// From here on entries and operations are numbered anew.
    Phase,
    /// The run ended, and is about to save the checkpoint with this digest.
    Close(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum StoredLine<'a> {
    #[serde(borrow)]
    Begin(StoredBegin<'a>),
    #[serde(borrow)]
    End(StoredEnd<'a>),
    #[serde(borrow)]
    Change(Vec<StoredEffect<'a>>),
    Phase {},
    Close(String),
}

#[derive(Deserialize)]
struct StoredBegin<'a> {
    operation: u64,
    kind: String,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
    entry: Option<u64>,
}

#[derive(Deserialize)]
struct StoredEnd<'a> {
    operation: u64,
    #[serde(borrow)]
    effects: Vec<StoredEffect<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum StoredEffect<'a> {
    #[serde(borrow)]
    Add(EntryWithState<'a>),
    #[serde(borrow)]
    Rewrite(EntryWithState<'a>),
    Remove(Entry),
    Keep(Entry),
    DropInheritedPending {},
}

#[derive(Deserialize)]
struct Entry {
    entry: u64,
}

#[derive(Deserialize)]
struct EntryWithState<'a> {
    entry: u64,
    #[serde(borrow)]
    resource: &'a RawValue,
}

/// Reads the line of a record.
///
/// # Errors
/// [`FormatError`], as for a checkpoint.
pub(super) fn read(text: &str, crypter: Option<&dyn Crypter>) -> Result<Line, FormatError> {
    let mut reader = Reader { crypter, reuse: CiphertextReuse::default() };
    Ok(match serde_json::from_str(text).map_err(FormatError::Malformed)? {
        StoredLine::Begin(begin) => {
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
                return Err(FormatError::OperationKind { resource, kind: begin.kind });
            };
            Line::Record(Record::Begin { operation: OperationId(begin.operation), kind, subject })
        }
        StoredLine::End(end) => {
            Line::Record(Record::End { operation: OperationId(end.operation), effects: reader.effects(end.effects)? })
        }
        StoredLine::Change(effects) => Line::Record(Record::Change(reader.effects(effects)?)),
        StoredLine::Phase {} => Line::Phase,
        StoredLine::Close(digest) => Line::Close(digest),
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

    fn effects(&mut self, effects: Vec<StoredEffect<'_>>) -> Result<Vec<Effect>, FormatError> {
        let read = effects.into_iter().map(|effect| {
            Ok(match effect {
                StoredEffect::Add(add) => Effect::Add(EntryId(add.entry), self.resource(add.resource)?),
                StoredEffect::Rewrite(rewrite) => {
                    Effect::Rewrite(EntryId(rewrite.entry), self.resource(rewrite.resource)?)
                }
                StoredEffect::Remove(Entry { entry }) => Effect::Remove(EntryId(entry)),
                StoredEffect::Keep(Entry { entry }) => Effect::Keep(EntryId(entry)),
                StoredEffect::DropInheritedPending {} => Effect::DropInheritedPending,
            })
        });
        read.collect()
    }
}
