//! Keeps secrets out of what others say: texts that a run knows to be secret are masked in messages.
//!
//! Values are masked by their type ([`super::value`]); this is for the words of providers, who put into an error
//! whatever their cloud answered.

use std::collections::BTreeSet;

use engine::events::{Event, StepInfo};
use pulumi_proto::property::PropertyValue;
use state::ResourceState;

use super::value::{SECRET, secret_texts};

/// Shorter texts turn up by chance in every other sentence; masking them would say what they are.
const SHORTEST: usize = 4;

/// The secret texts of a run.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// By length, the longest last, so that a secret within another one does not spoil it.
    texts: BTreeSet<(usize, String)>,
}

impl Redactor {
    /// The event without known secrets in its words. Learns from the values the event holds.
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
