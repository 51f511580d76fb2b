//! Limit on the resources that a run deletes, those that it replaces among them.
//!
//! A preview does not know the outputs of resources that are not created yet, so a run may replace more than its preview has
//! shown. The limit is checked before anything is changed for a resource: before the steps of a replacement, and before the first
//! deletion of resources that are no longer registered.

use bridge::message_text::MessageText;

use crate::context::Context;
use crate::entry::Entry;
use crate::events::{Message, Severity};

/// Greatest number of resources that a run may delete or replace, as [`crate::events::Deletions`] counts them.
#[derive(Clone, Debug)]
pub struct DeletionLimit {
    /// Number of resources.
    pub count: usize,
    /// What sets the number, as the end of a sentence: `--max-deletes 2 allows`.
    pub origin: MessageText,
    /// What the user can do if the run would delete more.
    pub hint: MessageText,
}

impl Context {
    /// Adds entries to those that the run is going to delete.
    ///
    /// # Errors
    /// The message that there would be more than the limit allows. `deleted` says of what, at the start of the sentence. None of the
    /// entries may be deleted then.
    pub(crate) fn claim_deletions<'e>(
        &self,
        deleted: impl FnOnce() -> MessageText,
        entries: impl Iterator<Item = &'e Entry>,
    ) -> Result<(), Box<Message>> {
        let Some(limit) = &self.options.deletion_limit else { return Ok(()) };
        if self.state().claim_deletions(entries, limit.count) {
            return Ok(());
        }
        let text = MessageText::new(format_args!(
            "{}: the run would delete or replace more resources than {}",
            deleted(),
            limit.origin
        ));
        Err(Box::new(Message { hint: Some(limit.hint.clone()), ..Message::new(Severity::Error, text) }))
    }
}
