//! Limit on the resources that a run deletes, those that it replaces among them.
//!
//! A preview does not know the outputs of resources that are not created yet, so a run may replace more than its preview has
//! shown. The limit is checked before anything is changed for a resource: before the steps of a replacement, and before the first
//! deletion of resources that are no longer registered.

use std::collections::BTreeSet;

use bridge::message_text::MessageText;
use pulumi_proto::urn::Urn;

use crate::context::Context;
use crate::entry::Entry;
use crate::events::{Message, Severity};

/// Resources that a run may delete or replace, as [`crate::events::Deletions`] counts them.
#[derive(Clone, Debug)]
pub enum DeletionLimit {
    /// A number of resources.
    Count {
        /// Greatest number.
        count: usize,
        /// What sets the number, as the end of a sentence: `--max-deletes 2 allows`.
        origin: MessageText,
        /// What the user can do if the run would delete more.
        hint: MessageText,
    },
    /// The resources that the preview has shown as deleted or replaced, by their recorded URNs.
    Shown(BTreeSet<Urn>),
}

impl Context {
    /// Adds entries to those that the run is going to delete.
    ///
    /// # Errors
    /// The message that the limit does not allow this. `deleted` says of what, at the start of the sentence. None of the entries may
    /// be deleted then.
    pub(crate) fn claim_deletions<'e>(
        &self,
        deleted: impl FnOnce() -> MessageText,
        entries: impl Iterator<Item = &'e Entry>,
    ) -> Result<(), Box<Message>> {
        let Some(limit) = &self.options.deletion_limit else { return Ok(()) };
        let Some(refused) = self.state().claim_deletions(entries, limit) else { return Ok(()) };
        let (text, hint) = match limit {
            DeletionLimit::Count { origin, hint, .. } => {
                let text = format_args!("{}: the run would delete or replace more resources than {origin}", deleted());
                (MessageText::new(text), hint.clone())
            }
            DeletionLimit::Shown(_) => (
                MessageText::new(format_args!(
                    "{}: the preview has not shown that {} is deleted or replaced",
                    deleted(),
                    refused.name()
                )),
                "run the command again: its preview knows what this one did not know".into(),
            ),
        };
        Err(Box::new(Message { hint: Some(hint), ..Message::new(Severity::Error, text) }))
    }
}
