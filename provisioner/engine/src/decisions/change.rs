//! Changes of a resource, from the reply to a Diff or from its inputs (docs/spec/engine-semantics.md#2.9;
//! docs/spec/provider-protocol.md#7).

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::provider::{DiffChanges, DiffKind, DiffReply, PropertyDiff};
use pulumi_proto::property::path::{Element, PropertyPath};
use pulumi_proto::property::{PropertyMap, PropertyValue};

use state::ResourceState;

use super::ignore_changes;

/// Pseudo property that `replaceOnChanges` may name to replace a resource that failed to initialize.
const INIT_ERROR_KEY: &str = "#initerror";

/// Changes of a resource, and whether they replace it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Change {
    /// True if anything has changed.
    pub(crate) changed: bool,
    /// Properties that replace the resource. Callers also check `changed`, except after a change of the provider.
    pub(crate) replace_keys: Vec<String>,
    /// Top-level names of changed properties.
    pub(crate) diffs: Vec<String>,
    /// Changes by property path, if known.
    pub(crate) detailed: BTreeMap<String, PropertyDiff>,
    /// True if the provider requires that the old resource is deleted first.
    pub(crate) delete_before_replace: bool,
}

impl Change {
    /// Creates a replacement for reasons that need no call of a provider.
    pub(crate) fn replacement(keys: &[String]) -> Self {
        Self { changed: true, replace_keys: keys.to_vec(), ..Self::default() }
    }

    pub(crate) fn replaces(&self) -> bool {
        !self.replace_keys.is_empty() || self.detailed.values().any(|diff| diff.kind.is_replace())
    }

    /// Returns the change of a resource by the reply to its Diff. If the reply leaves open whether anything has
    /// changed, compares the inputs, except those that `ignoreChanges` names.
    pub(crate) fn from_diff(
        reply: &DiffReply,
        old: &ResourceState,
        news: &Arc<PropertyMap>,
        ignore_changes: &[String],
    ) -> Self {
        match reply.changes {
            DiffChanges::Unknown => {
                let (news, _) = ignore_changes::reset_paths(ignore_changes, &old.inputs, news);
                Self::from_comparison(reply, &old.inputs, &news)
            }
            DiffChanges::None | DiffChanges::Some => Self::from_reply(reply),
        }
    }

    /// Returns the change of a provider resource by the reply to its DiffConfig. If the reply leaves open whether
    /// anything has changed, compares the recorded outputs with the inputs.
    pub(crate) fn from_diff_config(reply: &DiffReply, old: &ResourceState, news: &PropertyMap) -> Self {
        match reply.changes {
            DiffChanges::Unknown => {
                let mut news = news.clone();
                news.remove(crate::goal::INTERNAL_KEY);
                Self::from_comparison(reply, &old.outputs, &news)
            }
            DiffChanges::None | DiffChanges::Some => Self::from_reply(reply),
        }
    }

    /// Returns the change of a resource whose provider was exchanged, by the reply to the DiffConfig of the new
    /// provider. Callers only use [`Change::replaces`].
    pub(crate) fn from_provider_change(reply: &DiffReply) -> Self {
        Self::from_reply(reply)
    }

    /// Returns the change of a component, by its inputs alone.
    pub(crate) fn from_inputs(olds: &PropertyMap, news: &PropertyMap) -> Self {
        let (diffs, detailed) = compare(olds, news);
        Self { changed: !diffs.is_empty(), diffs, detailed, ..Self::default() }
    }

    fn from_reply(reply: &DiffReply) -> Self {
        Self {
            changed: reply.changes == DiffChanges::Some,
            replace_keys: reply.replaces.clone(),
            diffs: reply.diffs.clone(),
            detailed: reply.detailed_diff.clone().unwrap_or_default(),
            delete_before_replace: reply.delete_before_replace,
        }
    }

    fn from_comparison(reply: &DiffReply, olds: &PropertyMap, news: &PropertyMap) -> Self {
        let (diffs, detailed) = compare(&without_wrappers(olds), &without_wrappers(news));
        Self {
            changed: !diffs.is_empty(),
            replace_keys: reply.replaces.clone(),
            diffs,
            detailed,
            delete_before_replace: reply.delete_before_replace,
        }
    }

    /// Turns changes below the paths of `replaceOnChanges` into replacements.
    pub(crate) fn apply_replace_on_changes(&mut self, paths: &[String], has_init_errors: bool) {
        if paths.is_empty() {
            return;
        }
        let paths: Vec<PropertyPath> = paths.iter().filter_map(|path| path.parse().ok()).collect();
        let covers = |text: &str| {
            text.parse::<PropertyPath>().is_ok_and(|path| paths.iter().any(|covering| covering.contains(&path)))
        };
        for (path, diff) in &mut self.detailed {
            if covers(path) {
                diff.kind = diff.kind.as_replace();
            }
        }
        for key in &self.diffs {
            if covers(key) && !self.replace_keys.contains(key) {
                self.replace_keys.push(key.clone());
            }
        }
        if has_init_errors && covers(INIT_ERROR_KEY) {
            self.changed = true;
            self.replace_keys.push(INIT_ERROR_KEY.to_owned());
        }
    }
}

/// Returns properties without secret marks and other wrappers.
pub(crate) fn without_wrappers(properties: &PropertyMap) -> PropertyMap {
    properties.iter().map(|(key, value)| (key.clone(), value.without_wrappers())).collect()
}

/// Returns the top-level names that differ, and all differences by their paths.
pub(crate) fn compare(olds: &PropertyMap, news: &PropertyMap) -> (Vec<String>, BTreeMap<String, PropertyDiff>) {
    let mut detailed = BTreeMap::new();
    let mut keys = Vec::new();
    let names: std::collections::BTreeSet<&String> = olds.keys().chain(news.keys()).collect();
    for name in names {
        let before = detailed.len();
        compare_values(&mut vec![Element::Key(name.clone())], olds.get(name), news.get(name), &mut detailed);
        if detailed.len() > before {
            keys.push(name.clone());
        }
    }
    (keys, detailed)
}

fn compare_values(
    path: &mut Vec<Element>,
    old: Option<&PropertyValue>,
    new: Option<&PropertyValue>,
    detailed: &mut BTreeMap<String, PropertyDiff>,
) {
    let mut child = |element: Element, old: Option<&PropertyValue>, new: Option<&PropertyValue>| {
        path.push(element);
        compare_values(path, old, new, detailed);
        path.pop();
    };
    let present = |value: Option<&PropertyValue>| value.is_some_and(|value| *value != PropertyValue::Null);
    let kind = match (old, new) {
        (Some(PropertyValue::Map(old)), Some(PropertyValue::Map(new))) => {
            for (key, value) in old {
                child(Element::Key(key.clone()), Some(value), new.get(key));
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                child(Element::Key(key.clone()), None, Some(value));
            }
            return;
        }
        (Some(PropertyValue::List(old)), Some(PropertyValue::List(new))) => {
            for index in 0..old.len().max(new.len()) {
                child(Element::Index(index), old.get(index), new.get(index));
            }
            return;
        }
        (Some(old), Some(new)) if old.same_as(new) => return,
        _ => match (present(old), present(new)) {
            (false, false) => return,
            (false, true) => DiffKind::Add,
            (true, false) => DiffKind::Delete,
            (true, true) => DiffKind::Update,
        },
    };
    detailed.insert(PropertyPath::from(path.clone()).to_string(), PropertyDiff { kind, input_diff: true });
}
