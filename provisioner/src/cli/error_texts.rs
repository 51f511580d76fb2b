//! Printed form of errors: the message, the causes, and the hints, which lie beside the errors ([`Hint`]).

use std::error::Error;
use std::path::Path;

use bridge::error::{Hint, text_of_masked};
use bridge::message_text::MessageText;
use engine::masking::SecretMasker;
use provisioner::operation::{OperationError, SetupError};
use secrets_store::SecretsStoreError;
use state::format::FormatError;
use state::secrets::SecretsError;
use state::store::StoreError;
use state::{StateError, UnrecordedChange};

use super::causes::{downcast, error_of_store};
use super::display::{ErrorTexts, Line, Palette};
use super::exit::CliError;
use super::{lock_process, migrated};

/// Hints of the errors that a chain of causes may have. An error whose variant is transparent stands for the error in it,
/// which the chain skips.
const HINTS: [fn(&(dyn Error + 'static)) -> Option<MessageText>; 8] = [
    hint_of::<CliError>,
    hint_of::<SecretsStoreError>,
    hint_of::<SetupError>,
    hint_of::<OperationError>,
    hint_of::<StateError>,
    hint_of::<SecretsError>,
    hint_of::<StoreError>,
    hint_of::<FormatError>,
];

fn hint_of<E: Hint + Error + 'static>(cause: &(dyn Error + 'static)) -> Option<MessageText> {
    downcast::<E>(cause)?.hint()
}

/// Returns the hint for a cause, if there is one. Two errors of a store have theirs here: whether the process of a lock runs,
/// and the lines of server.yaml for another store, are not for a library to say.
fn hint(cause: &(dyn Error + 'static)) -> Option<MessageText> {
    match error_of_store(cause) {
        Some(StoreError::Locked { stack, holders }) => Some(lock_process::hint(stack.stack(), holders)),
        Some(StoreError::Migrated { stack, mark, mark_location }) => Some(migrated::hint(stack, mark, mark_location)),
        _ => HINTS.iter().find_map(|hint| hint(cause)),
    }
}

/// Returns the first hint for an error and its causes.
pub(crate) fn first_hint(error: &(dyn Error + 'static)) -> Option<MessageText> {
    hint(error).or_else(|| first_hint(error.source()?))
}

/// Returns the texts of an error. Secrets are masked.
pub(crate) fn error_texts(error: &anyhow::Error, masker: &SecretMasker) -> ErrorTexts {
    let mask = |text: &MessageText| masker.mask_message(text);
    let text = |error: &(dyn Error + 'static)| text_of_masked(error, mask);
    let message = text(error.as_ref());
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain().skip(1).map(text) {
        // Each fact is shown once.
        if !cause.is_empty() && ![&message].into_iter().chain(&causes).any(|shown| shown.contains(&cause)) {
            causes.push(cause);
        }
    }
    ErrorTexts { message, causes, hints: error.chain().filter_map(hint).map(|hint| mask(&hint)).collect() }
}

/// Returns the lines of an error: its message, its causes, its hints.
pub(crate) fn error_lines(texts: &ErrorTexts) -> Vec<Line> {
    let head = Line::new().styled(Palette::ERROR, "error").styled(Palette::BOLD, ":").text(" ");
    let mut lines = paragraph(head, "  ", &texts.message);
    for cause in &texts.causes {
        let head = Line::plain("  ").styled(Palette::ERROR, "caused by").styled(Palette::BOLD, ":").text(" ");
        lines.extend(paragraph(head, "    ", cause));
    }
    lines.extend(texts.hints.iter().flat_map(|hint| hint_lines(hint)));
    lines
}

fn hint_lines(hint: &str) -> Vec<Line> {
    let head = Line::plain("  ").styled(Palette::HINT, "hint").styled(Palette::BOLD, ":").text(" ");
    paragraph(head, "    ", hint)
}

/// Returns the lines about a journal that a run left without an attempt to save its state.
pub(crate) fn kept_journal_lines(journal: &Path) -> Vec<Line> {
    let text = format!("the state was not saved; the changes of the run are kept in the journal {}", journal.display());
    let mut lines = warning_lines(&text);
    lines.extend(hint_lines(
        "run `sc refresh` on this machine: it takes over the lock, and merges the journal into the state",
    ));
    lines
}

/// Returns the lines about changes that are recorded nowhere: one line `URN = id` each, not indented.
pub(crate) fn unrecorded_lines(changes: &[UnrecordedChange]) -> Vec<Line> {
    let head = Line::new().styled(Palette::ERROR, "error").styled(Palette::BOLD, ":").text(" ");
    let count = if changes.len() == 1 { "a change is".to_owned() } else { format!("{} changes are", changes.len()) };
    let mut lines = paragraph(head, "  ", &format!("{count} recorded neither in the state nor in a journal:"));
    lines.extend(changes.iter().map(|change| Line::plain(change.to_string())));
    lines
}

pub(crate) fn warning_lines(text: &str) -> Vec<Line> {
    let head = Line::new().styled(Palette::WARNING, "warning").styled(Palette::BOLD, ":").text(" ");
    paragraph(head, "  ", text)
}

/// Returns the lines of a message, as the display of a run has them.
pub(crate) fn info_lines(text: &str) -> Vec<Line> {
    paragraph(Line::new().styled(Palette::BOLD, "info").styled(Palette::BOLD, ":").text(" "), "  ", text)
}

fn paragraph(head: Line, indent: &str, text: &str) -> Vec<Line> {
    let mut text = text.trim_end().lines();
    let first = head.text(text.next().unwrap_or_default());
    std::iter::once(first).chain(text.map(|line| Line::plain(indent).text(line))).collect()
}

#[cfg(test)]
mod tests;
