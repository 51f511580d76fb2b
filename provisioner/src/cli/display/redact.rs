//! Redaction of messages: masks the texts that a run knows to be secret.
//!
//! Values are masked by their type ([`super::value`]); this module is for texts of providers, which may quote replies
//! of their cloud in an error.

use std::collections::BTreeSet;

use engine::events::{Event, StepInfo};
use pulumi_proto::property::PropertyValue;
use state::ResourceState;

use super::value::{SECRET, secret_texts};

/// Length in bytes below which a text is not masked: shorter texts occur by chance in messages, and masking them would
/// reveal them.
const SHORTEST: usize = 4;

/// Secret texts of a run.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// Texts by length. Masking starts with the longest, so that it leaves no part of a secret that contains another
    /// one.
    texts: BTreeSet<(usize, String)>,
}

impl Redactor {
    /// Returns the event with known secrets masked in its texts, after adding the secrets in its values.
    pub(crate) fn clean(&mut self, mut event: Event) -> Event {
        match &mut event {
            Event::StepStarted(info) | Event::StepSucceeded(info, _) => self.learn_step(info),
            Event::StepFailed(info, failure) => {
                self.learn_step(info);
                self.mask(&mut failure.message);
            }
            Event::OutputsRegistered(state) => self.learn(state),
            Event::SecretsTold(values) => self.learn_values(values.values()),
            Event::Message(message) => {
                self.mask(&mut message.text);
                message.hint.iter_mut().for_each(|hint| self.mask(hint));
                message.property.iter_mut().for_each(|property| self.mask(property));
            }
            Event::PhaseStarted(_) | Event::PhaseEnded(_) | Event::Download(_) => {}
        }
        event
    }

    fn learn_step(&mut self, info: &StepInfo) {
        info.old.iter().chain(&info.new).for_each(|state| self.learn(state));
    }

    fn learn(&mut self, state: &ResourceState) {
        self.learn_values(state.inputs.values().chain(state.outputs.values()));
    }

    fn learn_values<'a>(&mut self, values: impl Iterator<Item = &'a PropertyValue>) {
        let mut found = Vec::new();
        values.for_each(|value| secret_texts(value, &mut found));
        for text in found {
            let text = text.trim();
            if text.len() >= SHORTEST {
                self.texts.insert((text.len(), text.to_owned()));
            }
        }
    }

    fn mask(&self, words: &mut String) {
        for (_, text) in self.texts.iter().rev() {
            if words.contains(text.as_str()) {
                *words = words.replace(text.as_str(), SECRET);
            }
        }
    }
}
