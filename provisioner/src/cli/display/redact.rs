//! Redaction of messages: masks the secret values of a run in texts.
//!
//! Values are masked by their type ([`super::value`]); this module is for texts of providers, such as errors that quote
//! responses of a cloud API.

use std::collections::BTreeSet;

use engine::events::{Event, StepInfo};
use pulumi_proto::property::PropertyValue;
use state::ResourceState;

use super::value::{SECRET, collect_secret_texts};

/// Length in bytes below which a text is not masked: shorter texts occur by chance in messages, and masking them would
/// reveal them.
const MIN_SECRET_LENGTH: usize = 4;

/// Secret texts of a run.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// Texts by length. Masking starts with the longest, so that it leaves no part of a secret that contains another
    /// one.
    texts: BTreeSet<(usize, String)>,
}

impl Redactor {
    /// Returns the event with known secrets masked in its texts, after adding the secrets in its values.
    pub(crate) fn redact(&mut self, mut event: Event) -> Event {
        match &mut event {
            Event::StepStarted(info) | Event::StepSucceeded(info, _) => self.add_step(info),
            Event::StepFailed(info, failure) => {
                self.add_step(info);
                self.mask(&mut failure.message);
            }
            Event::OutputsRegistered(state) => self.add_state(state),
            Event::SecretsSent(values) => self.add_values(values.values()),
            Event::Message(message) => {
                self.mask(&mut message.text);
                message.hint.iter_mut().for_each(|hint| self.mask(hint));
                message.property.iter_mut().for_each(|property| self.mask(property));
            }
            Event::PhaseStarted(_) | Event::PhaseEnded(_) | Event::Download(_) => {}
        }
        event
    }

    fn add_step(&mut self, info: &StepInfo) {
        info.old.iter().chain(&info.new).for_each(|state| self.add_state(state));
    }

    fn add_state(&mut self, state: &ResourceState) {
        self.add_values(state.inputs.values().chain(state.outputs.values()));
    }

    fn add_values<'a>(&mut self, values: impl Iterator<Item = &'a PropertyValue>) {
        let mut found = Vec::new();
        values.for_each(|value| collect_secret_texts(value, &mut found));
        for text in found {
            let text = text.trim();
            if text.len() >= MIN_SECRET_LENGTH {
                self.texts.insert((text.len(), text.to_owned()));
            }
        }
    }

    fn mask(&self, text: &mut String) {
        for (_, secret) in self.texts.iter().rev() {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), SECRET);
            }
        }
    }
}
