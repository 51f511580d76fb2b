//! Masking of secrets in the texts of events, such as errors of providers that quote responses of a cloud API.
//!
//! Property values are not texts: they are masked by their type ([`super::value`]), unless `--show-secrets` was given.
//! Texts are always masked.

use engine::events::Event;
use engine::masking::SecretMasker;

/// Masks secrets in the texts of an event.
pub(crate) fn redact(masker: &SecretMasker, event: &mut Event) {
    match event {
        Event::StepFailed(_, failure) => masker.mask_in_place(&mut failure.message),
        Event::Message(message) => {
            masker.mask_in_place(&mut message.text);
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
