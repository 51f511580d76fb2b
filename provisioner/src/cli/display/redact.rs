//! Masking of secrets in events: in texts, such as errors of providers that quote responses of a cloud API, and in the
//! names and paths of properties.
//!
//! Property values are not texts: they are masked by their type ([`super::value`]), unless `--show-secrets` was given.
//! A value that equals a secret counts as a secret. The names of properties are masked unless `--show-secrets` was given.
//! Texts are always masked.

use std::sync::Arc;

use bridge::error::shorten_to;
use bridge::message_text::MessageText;
use engine::events::{Event, StepInfo};
use engine::masking::SecretMasker;
use pulumi_proto::property::PropertyMap;
use state::ResourceState;

use super::long_texts::{TEXT_BYTES, TEXT_CHARACTERS, cut_text, mask_and_shorten};
use super::shown_names::ShownNames;
use super::value::Secrets;

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

/// Masks secrets for one display, or for one list of resources.
pub(crate) struct Redactor<'m> {
    masker: &'m SecretMasker,
    /// Names of properties; `None`: they are shown as they are, because the user gave `--show-secrets`.
    names: Option<ShownNames>,
}

impl<'m> Redactor<'m> {
    pub(crate) fn new(masker: &'m SecretMasker, secrets: Secrets) -> Self {
        Self { masker, names: (secrets == Secrets::Masked).then(ShownNames::default) }
    }

    /// Masks secrets in the texts and names of an event, and shortens very long texts. Marks the values that equal a secret.
    pub(crate) fn redact(&mut self, event: &mut Event) {
        let masker = self.masker;
        match event {
            Event::StepStarted(info) | Event::StepSucceeded(info, _) | Event::StepFailed(info, _) => self.step(info),
            Event::OutputsRegistered(resource) => self.resource(resource),
            Event::RegistrationStarted(_)
            | Event::RegistrationDecided(_)
            | Event::RetryScheduled(_)
            | Event::Message(_)
            | Event::PhaseStarted(_)
            | Event::PhaseEnded(_)
            | Event::Download(_)
            | Event::Activity(_)
            | Event::PhaseTotal(_)
            | Event::Unrecorded(_) => {}
        }
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

    /// Redacts the entries of a step, and the paths of its changes.
    fn step(&mut self, info: &mut Arc<StepInfo>) {
        self.update_names();
        let is_same = matches!((&info.old, &info.new), (Some(old), Some(new)) if Arc::ptr_eq(old, new));
        let old = info.old.as_deref().and_then(|old| self.shown(old));
        let new = if is_same { old.clone() } else { info.new.as_deref().and_then(|new| self.shown(new)) };
        if let Some(names) = &mut self.names
            && !(info.replace_keys.is_empty() && info.diffs.is_empty() && info.detailed_diff.is_empty())
        {
            let info = Arc::make_mut(info);
            let (old, new) = (info.old.clone(), info.new.clone());
            let none = PropertyMap::new();
            let properties =
                (old.as_ref().map_or(&none, |old| &*old.outputs), new.as_ref().map_or(&none, |new| &*new.inputs));
            names.paths(self.masker, info.replace_keys.iter_mut().chain(&mut info.diffs), properties);
            names.keys(self.masker, &mut info.detailed_diff, properties);
        }
        if old.is_some() || new.is_some() {
            let info = Arc::make_mut(info);
            info.old = old.or(info.old.take());
            info.new = new.or(info.new.take());
        }
    }

    /// Redacts the names and values of a resource.
    pub(crate) fn resource(&mut self, resource: &mut Arc<ResourceState>) {
        self.update_names();
        if let Some(shown) = self.shown(resource) {
            *resource = shown;
        }
    }

    /// Redacts names and values.
    pub(crate) fn properties(&mut self, properties: &mut PropertyMap) {
        if let Some(marked) = self.masker.mark_equal_values(properties) {
            *properties = marked;
        }
        self.update_names();
        let shown = self.names.as_mut().and_then(|names| names.properties(self.masker, properties));
        if let Some(shown) = shown {
            *properties = shown;
        }
    }

    fn update_names(&mut self) {
        if let Some(names) = &mut self.names {
            names.update(self.masker);
        }
    }

    /// Returns a resource without secrets in its names, paths and values; `None` if it has none.
    fn shown(&mut self, resource: &ResourceState) -> Option<Arc<ResourceState>> {
        let marked = self.masker.mark_equal_values_of(resource);
        let Some(names) = &mut self.names else { return marked };
        let resource = marked.as_deref().unwrap_or(resource);
        let inputs = names.properties(self.masker, &resource.inputs);
        let outputs = names.properties(self.masker, &resource.outputs);
        let mut lists = [
            resource.ignore_changes.clone(),
            resource.hide_diff.clone(),
            resource.replace_on_changes.clone(),
            resource.additional_secret_outputs.clone(),
        ];
        let properties = (&*resource.outputs, &*resource.inputs);
        let has_secret_path = names.paths(self.masker, lists.iter_mut().flatten(), properties);
        if inputs.is_none() && outputs.is_none() && !has_secret_path {
            return marked;
        }
        let mut shown = resource.clone();
        shown.inputs = inputs.map_or(shown.inputs, Arc::new);
        shown.outputs = outputs.map_or(shown.outputs, Arc::new);
        [shown.ignore_changes, shown.hide_diff, shown.replace_on_changes, shown.additional_secret_outputs] = lists;
        Some(Arc::new(shown))
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
        | Event::Activity(_)
        | Event::PhaseTotal(_)
        | Event::Unrecorded(_) => {}
    }
}
