//! What a provider's diff means (engine semantics, section 2.9; provider protocol, section 7).

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::provider::{DiffChanges, DiffKind, DiffReply, PropertyDiff};
use pulumi_proto::property::path::{Element, PropertyPath};
use pulumi_proto::property::{PropertyMap, PropertyValue};

use state::ResourceState;

use super::ignore_changes;

/// The pseudo property that `replaceOnChanges` may name to replace what did not come up.
const INIT_ERROR_KEY: &str = "#initerror";

/// What changed, and what that asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Change {
    /// Whether anything changed.
    pub(crate) changed: bool,
    /// Why it is to be replaced; counts only where something changed.
    pub(crate) replace_keys: Vec<String>,
    /// Changed properties.
    pub(crate) diffs: Vec<String>,
    /// Changes by path, where known.
    pub(crate) detailed: BTreeMap<String, PropertyDiff>,
    /// The provider wants the old one to go first.
    pub(crate) delete_before_replace: bool,
}

impl Change {
    /// A replacement that no provider was asked about.
    pub(crate) fn replacing(keys: &[String]) -> Self {
        Self { changed: true, replace_keys: keys.to_vec(), ..Self::default() }
    }

    /// Whether it asks for replacement.
    pub(crate) fn replaces(&self) -> bool {
        !self.replace_keys.is_empty() || self.detailed.values().any(|diff| diff.kind.is_replace())
    }

    /// What the Diff of a resource says.
    pub(crate) fn of_resource(
        reply: &DiffReply,
        old: &ResourceState,
        news: &Arc<PropertyMap>,
        ignore_changes: &[String],
    ) -> Self {
        match reply.changes {
            DiffChanges::Unknown => {
                let (news, _) = ignore_changes::reset(ignore_changes, &old.inputs, news);
                Self::unsaid(reply, &old.inputs, &news)
            }
            DiffChanges::None | DiffChanges::Some => Self::said(reply),
        }
    }

    /// What the DiffConfig of a provider resource says: without a word of its own, any difference is an update.
    pub(crate) fn of_provider(reply: &DiffReply, old: &ResourceState, news: &PropertyMap) -> Self {
        match reply.changes {
            DiffChanges::Unknown => {
                let mut news = news.clone();
                news.remove(crate::provider_inputs::INTERNAL_KEY);
                Self::unsaid(reply, &old.outputs, &news)
            }
            DiffChanges::None | DiffChanges::Some => Self::said(reply),
        }
    }

    /// What the DiffConfig of a provider says about taking over from another one: only a replacement counts.
    pub(crate) fn of_provider_swap(reply: &DiffReply) -> Self {
        Self::said(reply)
    }

    /// What a difference of inputs says where nobody is asked.
    pub(crate) fn of_inputs(olds: &PropertyMap, news: &PropertyMap) -> Self {
        let (diffs, detailed) = compare(olds, news);
        Self { changed: !diffs.is_empty(), diffs, detailed, ..Self::default() }
    }

    fn said(reply: &DiffReply) -> Self {
        Self {
            changed: reply.changes == DiffChanges::Some,
            replace_keys: reply.replaces.clone(),
            diffs: reply.diffs.clone(),
            detailed: reply.detailed_diff.clone().unwrap_or_default(),
            delete_before_replace: reply.delete_before_replace,
        }
    }

    fn unsaid(reply: &DiffReply, olds: &PropertyMap, news: &PropertyMap) -> Self {
        let (diffs, detailed) = compare(&plain(olds), &plain(news));
        Self {
            changed: !diffs.is_empty(),
            replace_keys: reply.replaces.clone(),
            diffs,
            detailed,
            delete_before_replace: reply.delete_before_replace,
        }
    }

    /// Lets the user's paths turn changes into replacements.
    pub(crate) fn replace_on(&mut self, paths: &[String], has_init_errors: bool) {
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

fn plain(properties: &PropertyMap) -> PropertyMap {
    properties.iter().map(|(key, value)| (key.clone(), value.without_wrappers())).collect()
}

/// The top-level names that differ, and every difference by its path.
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
