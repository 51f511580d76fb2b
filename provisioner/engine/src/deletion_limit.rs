//! Limit on the resources that a run deletes, those that it replaces among them.
//!
//! A preview does not know the outputs of resources that are not created yet, so a run may replace more than its preview has
//! shown. The limit is checked before anything is changed for a resource: before the steps of a replacement, and before the first
//! deletion of resources that are no longer registered.

use std::collections::BTreeSet;

use bridge::message_text::MessageText;
use pulumi_proto::urn::Urn;

use crate::events::{Message, Severity};

/// Resources that a run may delete or replace, as [`crate::events::Deletions`] counts them.
#[derive(Clone, Debug)]
pub enum DeletionLimit {
    /// A number of resources.
    Count {
        /// Greatest number.
        count: usize,
        /// Setting of the number, as the end of a sentence: `--max-deletes 2 allows`.
        origin: MessageText,
        /// Advice to the user if the run would delete more.
        hint: MessageText,
    },
    /// The resources that the preview has shown as deleted or replaced, by their recorded URNs.
    Shown(BTreeSet<Urn>),
}

impl DeletionLimit {
    /// Returns the error that the limit does not allow a deletion. `deleted` is the start of the sentence, `refused` the resource.
    pub(crate) fn refusal(&self, deleted: MessageText, refused: &Urn) -> Message {
        let (text, hint) = match self {
            Self::Count { origin, hint, .. } => {
                let text = format_args!("{deleted}: the run would delete or replace more resources than {origin}");
                (MessageText::new(text), hint.clone())
            }
            Self::Shown(_) => (
                MessageText::new(format_args!(
                    "{deleted}: the preview has not shown that {} is deleted or replaced",
                    refused.name()
                )),
                "run the command again: its preview shows what this preview could not know".into(),
            ),
        };
        Message { hint: Some(hint), ..Message::new(Severity::Error, text) }
    }
}
