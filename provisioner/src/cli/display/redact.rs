//! Masking of secrets in the texts of events, such as errors of providers that quote responses of a cloud API.
//!
//! Property values are not texts: they are masked by their type ([`super::value`]), unless `--show-secrets` was given.
//! Texts are always masked.

use std::borrow::Cow;

use bridge::error::shorten_to;
use engine::events::Event;
use engine::masking::SecretMasker;

/// Number of characters of a message or an error. Plugins may send megabytes.
pub(super) const TEXT_CHARACTERS: usize = 16_000;

/// Masks secrets in the texts of an event, and shortens very long messages and errors.
pub(crate) fn redact(masker: &SecretMasker, event: &mut Event) {
    match event {
        Event::StepFailed(_, failure) => mask_and_shorten(masker, &mut failure.message),
        Event::Message(message) => {
            mask_and_shorten(masker, &mut message.text);
            message.hint.iter_mut().for_each(|hint| masker.mask_in_place(hint));
            message.property.iter_mut().for_each(|property| masker.mask_in_place(property));
        }
        Event::Download(download) => masker.mask_in_place(&mut download.name),
        Event::StepStarted(_)
        | Event::StepSucceeded(..)
        | Event::OutputsRegistered(_)
        | Event::PhaseStarted(_)
        | Event::PhaseEnded(_)
        | Event::Unrecorded(_) => {}
    }
}

/// Masks a text, and shortens it only then: a masker does not find a secret that is cut in its middle.
fn mask_and_shorten(masker: &SecretMasker, text: &mut String) {
    masker.mask_in_place(text);
    if let Cow::Owned(shortened) = shorten_to(text, TEXT_CHARACTERS) {
        *text = shortened;
    }
}
