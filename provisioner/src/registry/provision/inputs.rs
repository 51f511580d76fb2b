//! Inputs under construction: values together with the resources they came from.

use std::collections::BTreeMap;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{TypeToken, Urn};

use engine::Goal;

/// A value and the resources it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The value; unknown in a preview, or where its resource was skipped.
    pub value: PropertyValue,
    /// The resources it came from.
    pub dependencies: Vec<Urn>,
}

impl Resolved {
    /// A value that comes from no resource.
    pub fn known(value: impl Into<PropertyValue>) -> Self {
        Self { value: value.into(), dependencies: Vec::new() }
    }

    /// The same, marked secret.
    #[must_use]
    pub fn secret(self) -> Self {
        Self { value: PropertyValue::secret(self.value), ..self }
    }

    /// The text, if it is known. What is secret about it is up to the caller.
    pub fn exposed_text(&self) -> Option<&str> {
        match &self.value {
            PropertyValue::Secret(secret) => secret.expose().as_str(),
            value => value.as_str(),
        }
    }

    /// A text made of others: unknown as long as one of them is, secret if one of them is.
    pub fn made_of<const N: usize>(sources: [&Self; N], make: impl FnOnce([&str; N]) -> String) -> Self {
        let texts = sources.map(|source| source.exposed_text());
        let value = match texts.iter().all(Option::is_some) {
            true => PropertyValue::String(make(texts.map(Option::unwrap_or_default))),
            false => PropertyValue::UNKNOWN,
        };
        let secret = sources.iter().any(|source| source.value.contains_secrets());
        Self {
            value: if secret { PropertyValue::secret(value) } else { value },
            dependencies: distinct(sources.iter().flat_map(|source| source.dependencies.clone()).collect()),
        }
    }
}

/// Inputs of one resource.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    values: PropertyMap,
    dependencies: BTreeMap<String, Vec<Urn>>,
}

impl Inputs {
    /// Sets a property. A null leaves it out, but the property still has an entry of where it came from.
    #[must_use]
    pub fn set(mut self, name: &str, resolved: Resolved) -> Self {
        if resolved.value != PropertyValue::Null {
            self.values.insert(name.to_owned(), resolved.value);
        }
        self.dependencies.insert(name.to_owned(), distinct(resolved.dependencies));
        self
    }

    /// Sets a property that comes from no resource.
    #[must_use]
    pub fn plain(self, name: &str, value: impl Into<PropertyValue>) -> Self {
        self.set(name, Resolved::known(value))
    }

    /// The goal of a custom resource: it depends on all that its inputs came from, and on these.
    pub fn into_goal(self, type_token: TypeToken, name: &str, depends_on: &[Urn]) -> Goal {
        let mut goal = Goal::custom(type_token, name, self.values);
        goal.dependencies = distinct(self.dependencies.values().flatten().chain(depends_on).cloned().collect());
        goal.property_dependencies = self.dependencies;
        goal
    }
}

/// A value as it is outside of a preview. Only what was skipped is unknown there: it is left out, as SDKs do.
pub(crate) fn without_unknowns(value: PropertyValue) -> PropertyValue {
    match value {
        PropertyValue::Unknown(_) => PropertyValue::Null,
        PropertyValue::List(items) => PropertyValue::List(items.into_iter().map(without_unknowns).collect()),
        PropertyValue::Map(map) => PropertyValue::Map(
            map.into_iter()
                .filter(|(_, value)| !matches!(value, PropertyValue::Unknown(_)))
                .map(|(key, value)| (key, without_unknowns(value)))
                .collect(),
        ),
        PropertyValue::Secret(secret) if secret.expose().contains_unknowns() => {
            match without_unknowns(secret.into_exposed()) {
                PropertyValue::Null => PropertyValue::Null,
                value => PropertyValue::secret(value),
            }
        }
        value => value,
    }
}

/// Each once, in the order of their first appearance.
pub(super) fn distinct(urns: Vec<Urn>) -> Vec<Urn> {
    let mut seen = std::collections::BTreeSet::new();
    urns.into_iter().filter(|urn| seen.insert(urn.clone())).collect()
}
