//! Stored form of the lines of a journal after the first.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Line of a journal. `R` is the form of its resources: [`ResourceDto`](crate::format::ResourceDto) when written, the
/// raw JSON text when read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "R: Deserialize<'de>"))]
pub(super) enum LineDto<'a, R> {
    #[serde(borrow)]
    Begin(BeginDto<'a, R>),
    #[serde(borrow)]
    End(EndDto<'a, R>),
    Change(Vec<EffectDto<R>>),
    Phase {},
    #[serde(borrow)]
    Close(CloseDto<'a>),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum CloseDto<'a> {
    Checkpoint(Cow<'a, str>),
    WithHistory { checkpoint: Cow<'a, str>, history: HistoryDto<'a> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HistoryDto<'a> {
    /// Time of the entry, RFC 3339.
    pub(super) time: Cow<'a, str>,
    /// Text of the entry.
    pub(super) update: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
pub(super) struct BeginDto<'a, R> {
    pub(super) operation: u64,
    #[serde(borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entry: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
pub(super) struct EndDto<'a, R> {
    pub(super) operation: u64,
    /// Kind of the operation, in a line that may have to be read without the one that begins the operation.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) effects: Vec<EffectDto<R>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "R: Deserialize<'de>"))]
pub(super) enum EffectDto<R> {
    Add(ResourceEntryDto<R>),
    Rewrite(ResourceEntryDto<R>),
    Remove(EntryDto),
    Keep(EntryDto),
    DropInheritedPending {},
}

#[derive(Serialize, Deserialize)]
pub(super) struct EntryDto {
    pub(super) entry: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
pub(super) struct ResourceEntryDto<R> {
    pub(super) entry: u64,
    pub(super) resource: R,
}
