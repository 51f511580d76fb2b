//! Masking of secrets in the texts of events, such as errors of providers that quote responses of a cloud API.
//!
//! Property values are not texts: they are masked by their type ([`super::value`]), unless `--show-secrets` was given.
//! A value that equals a secret counts as a secret. Texts are always masked.

use std::borrow::Cow;
use std::sync::Arc;

use bridge::error::shorten_to;
use bridge::message_text::MessageText;
use engine::events::Event;
use engine::masking::SecretMasker;
use state::ResourceState;

/// Number of characters of a message or an error that are shown. Plugins may send megabytes.
pub(super) const TEXT_CHARACTERS: usize = 16_000;
/// Number of bytes of a text that are masked, as the time and the memory for it grow with the text. There are more of
/// them than [`TEXT_CHARACTERS`] have, and than are removed at the end of a text that is cut.
pub(super) const TEXT_BYTES: usize = TEXT_CHARACTERS * 4 + 1_000;
/// Mark at the end of a text of which only the beginning is shown.
const CUT_MARK: &str = " … (the rest is not shown)";

/// Cuts the texts of an event, before it waits for the display, so that it takes little memory.
pub(super) fn cut(event: &mut Event) {
    each_text(event, |text| match text {
        Text::Message(text) if text.len() > TEXT_BYTES => {
            let mut whole = std::mem::take(text).into_string();
            cut_text(&mut whole);
            *text = whole.into();
        }
        Text::Message(_) => {}
        Text::Outside(text) => {
            cut_text(text);
        }
    });
}

/// Masks secrets in the texts of an event, and shortens very long ones. Marks the values that equal a secret.
pub(crate) fn redact(masker: &SecretMasker, event: &mut Event) {
    mark_equal_values(masker, event);
    each_text(event, |text| match text {
        Text::Message(text) if text.len() > TEXT_BYTES => {
            let mut whole = std::mem::take(text).into_string();
            mask_and_shorten(masker, &mut whole);
            *text = whole.into();
        }
        Text::Message(text) => {
            let masked = masker.mask_message(text);
            *text = shorten_to(&masked, TEXT_CHARACTERS).into_owned().into();
        }
        Text::Outside(text) => mask_and_shorten(masker, text),
    });
}

/// Marks the values of resources that equal a secret.
fn mark_equal_values(masker: &SecretMasker, event: &mut Event) {
    match event {
        Event::StepStarted(info) | Event::StepSucceeded(info, _) | Event::StepFailed(info, _) => {
            let marked = |state: &Option<Arc<ResourceState>>| masker.mark_equal_values_of(state.as_deref()?);
            let (old, new) = (marked(&info.old), marked(&info.new));
            if old.is_some() || new.is_some() {
                let info = Arc::make_mut(info);
                info.old = old.or(info.old.take());
                info.new = new.or(info.new.take());
            }
        }
        Event::OutputsRegistered(resource) => {
            if let Some(marked) = masker.mark_equal_values_of(resource) {
                *resource = marked;
            }
        }
        Event::RegistrationStarted(_)
        | Event::RegistrationDecided(_)
        | Event::RetryScheduled(_)
        | Event::Message(_)
        | Event::PhaseStarted(_)
        | Event::PhaseEnded(_)
        | Event::Download(_)
        | Event::Unrecorded(_) => {}
    }
}

/// Text of an event.
enum Text<'e> {
    /// Text of a message, whose constants stay.
    Message(&'e mut MessageText),
    /// Text of another program, all of which is masked.
    Outside(&'e mut String),
}

/// Calls `edit` with each text of an event that another program may have written.
fn each_text(event: &mut Event, mut edit: impl FnMut(Text<'_>)) {
    match event {
        Event::StepFailed(_, failure) => {
            edit(Text::Message(&mut failure.message));
            let texts = failure.details.iter_mut().flat_map(|details| details.texts_mut());
            texts.for_each(|text| edit(Text::Outside(text)));
        }
        Event::Message(message) => {
            edit(Text::Message(&mut message.text));
            message.hint.iter_mut().for_each(|hint| edit(Text::Message(hint)));
            let texts = message.details.iter_mut().flat_map(|details| details.texts_mut());
            texts.chain(&mut message.property).for_each(|text| edit(Text::Outside(text)));
        }
        Event::RetryScheduled(retry) => {
            edit(Text::Message(&mut retry.message));
            retry.details.texts_mut().for_each(|text| edit(Text::Outside(text)));
        }
        Event::Download(download) => edit(Text::Outside(&mut download.name)),
        Event::RegistrationStarted(_)
        | Event::RegistrationDecided(_)
        | Event::StepStarted(_)
        | Event::StepSucceeded(..)
        | Event::OutputsRegistered(_)
        | Event::PhaseStarted(_)
        | Event::PhaseEnded(_)
        | Event::Unrecorded(_) => {}
    }
}

/// Cuts a text of more than [`TEXT_BYTES`] bytes after the character at that place, so that it still has more bytes.
/// Returns whether it has more.
fn cut_text(text: &mut String) -> bool {
    if text.len() <= TEXT_BYTES {
        return false;
    }
    let end = (TEXT_BYTES + 1..).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    text.truncate(end);
    text.shrink_to_fit();
    true
}

/// Masks a text, and shortens it only then: a masker does not find a secret that is cut in its middle. Of a text that is
/// too long to be masked, the beginning is masked, without a secret that continues behind it.
fn mask_and_shorten(masker: &SecretMasker, text: &mut String) {
    if cut_text(text) {
        *text = masker.mask_beginning(text);
        if let Some((end, _)) = text.char_indices().nth(TEXT_CHARACTERS) {
            text.truncate(end);
        }
        text.push_str(CUT_MARK);
        return;
    }
    masker.mask_in_place(text);
    if let Cow::Owned(shortened) = shorten_to(text, TEXT_CHARACTERS) {
        *text = shortened;
    }
}
