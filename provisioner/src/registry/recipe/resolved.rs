//! Values with their dependencies, and inputs of registrations.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{TypeToken, Urn};

use crate::registry::sdk::SdkResource;
use engine::Goal;

/// Value with its dependencies.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedValue {
    /// Value; may be unknown in a preview, or if its resource was skipped.
    pub value: PropertyValue,
    /// URNs of the resources whose outputs the value contains.
    pub dependencies: Vec<Urn>,
}

impl ResolvedValue {
    /// Returns a value without dependencies.
    pub fn known(value: impl Into<PropertyValue>) -> Self {
        Self { value: value.into(), dependencies: Vec::new() }
    }

    /// Marks the value as secret.
    pub fn secret(self) -> Self {
        Self { value: PropertyValue::secret(self.value), ..self }
    }

    /// Returns the text, if it is known. The caller must keep a secret text secret.
    pub fn exposed_text(&self) -> Option<&str> {
        exposed_text(&self.value)
    }

    /// Returns a text, a whole number as text, or an empty text for a null; `None` for an unknown value.
    pub(super) fn as_part_of_text(&self) -> Option<Cow<'_, str>> {
        let value = if let PropertyValue::Secret(secret) = &self.value { secret.expose() } else { &self.value };
        match value {
            PropertyValue::Null => Some(Cow::Borrowed("")),
            PropertyValue::Number(number) if number.fract() == 0.0 => Some(Cow::Owned(format!("{number:.0}"))),
            _ => self.exposed_text().map(Cow::Borrowed),
        }
    }

    /// Returns a value that is not known yet, without dependencies.
    pub fn unknown() -> Self {
        Self::known(PropertyValue::UNKNOWN)
    }

    /// Returns a text of a map by its key; an empty one if it is missing.
    pub(super) fn member(self, key: &str) -> Self {
        let (map, is_secret) = match self.value {
            PropertyValue::Secret(secret) => (secret.into_exposed(), true),
            value => (value, false),
        };
        let value = match map {
            PropertyValue::Map(mut map) => map.remove(key).unwrap_or_else(|| "".into()),
            PropertyValue::Unknown(_) => PropertyValue::UNKNOWN,
            _ => "".into(),
        };
        let member = Self { value, ..self };
        if is_secret { member.secret() } else { member }
    }

    /// Returns a text that `make` builds from other texts: unknown if one of them is unknown, secret if one of them
    /// contains a secret. A null is an empty text, as in SDKs.
    ///
    /// # Errors
    /// Returns the error of `make`.
    pub(super) fn from_texts(
        sources: &[Self],
        make: impl FnOnce(&[&str]) -> Result<String, String>,
    ) -> Result<Self, String> {
        let texts: Option<Vec<Cow<'_, str>>> = sources.iter().map(Self::as_part_of_text).collect();
        let value = match texts {
            Some(texts) => PropertyValue::String(make(&texts.iter().map(|text| &**text).collect::<Vec<_>>())?),
            None => PropertyValue::UNKNOWN,
        };
        let secret = sources.iter().any(|source| source.value.contains_secrets());
        Ok(Self {
            value: if secret { PropertyValue::secret(value) } else { value },
            dependencies: distinct(sources.iter().flat_map(|source| source.dependencies.clone()).collect()),
        })
    }
}

/// Returns a text that may be secret; `None` for another value.
pub(super) fn exposed_text(value: &PropertyValue) -> Option<&str> {
    match value {
        PropertyValue::Secret(secret) => secret.expose().as_str(),
        value => value.as_str(),
    }
}

/// Inputs of one resource.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Inputs {
    values: PropertyMap,
    dependencies: BTreeMap<String, Vec<Urn>>,
}

impl Inputs {
    /// Sets a property. A null value is omitted from the inputs, but its dependencies are kept.
    pub fn set(mut self, name: &str, resolved: ResolvedValue) -> Self {
        if resolved.value != PropertyValue::Null {
            self.values.insert(name.to_owned(), resolved.value);
        }
        self.dependencies.insert(name.to_owned(), distinct(resolved.dependencies));
        self
    }

    /// Sets a property without dependencies.
    pub fn plain(self, name: &str, value: impl Into<PropertyValue>) -> Self {
        self.set(name, ResolvedValue::known(value))
    }

    /// Returns the inputs as the SDK of the package sends them: with the constants that it adds, and marked secrets. An unknown
    /// value is not marked.
    pub(super) fn completed(mut self, added: &SdkResource) -> Self {
        for (name, constant) in &added.defaults {
            self.values.entry(name.clone()).or_insert_with(|| constant.into());
            self.dependencies.entry(name.clone()).or_default();
        }
        for name in &added.secret_inputs {
            if let Some(value) = self.values.get_mut(name).filter(|value| !matches!(value, PropertyValue::Unknown(_))) {
                *value = secret_as_a_whole(std::mem::replace(value, PropertyValue::Null));
            }
        }
        self
    }

    /// Returns the dependencies of all properties.
    pub(super) fn dependencies(&self) -> impl Iterator<Item = &Urn> {
        self.dependencies.values().flatten()
    }

    /// Removes unknown values, but keeps their dependencies.
    pub(super) fn without_unknowns(mut self) -> Self {
        let values = self.values.into_iter().map(|(name, value)| (name, without_unknowns(value)));
        self.values = values.filter(|(_, value)| *value != PropertyValue::Null).collect();
        self
    }

    pub(super) fn values(&self) -> &PropertyMap {
        &self.values
    }

    /// Returns the values without their dependencies.
    pub(super) fn into_values(self) -> PropertyMap {
        self.values
    }

    /// Returns the goal of a custom resource. The goal has the dependencies of its inputs, and `depends_on`.
    pub fn into_goal(self, type_token: TypeToken, name: &str, depends_on: &[Urn]) -> Goal {
        let mut goal = Goal::custom(type_token, name, self.values);
        goal.dependencies = distinct(self.dependencies.values().flatten().chain(depends_on).cloned().collect());
        goal.property_dependencies = self.dependencies;
        goal
    }
}

/// Marks a value as secret, and none of its parts, as SDKs do.
pub(super) fn secret_as_a_whole(value: PropertyValue) -> PropertyValue {
    fn exposed(value: PropertyValue) -> PropertyValue {
        match value {
            PropertyValue::Secret(secret) => exposed(secret.into_exposed()),
            PropertyValue::List(items) => PropertyValue::List(items.into_iter().map(exposed).collect()),
            PropertyValue::Map(map) => {
                PropertyValue::Map(map.into_iter().map(|(key, value)| (key, exposed(value))).collect())
            }
            value => value,
        }
    }
    PropertyValue::secret(exposed(value))
}

/// Removes unknown parts from a value, as SDKs do outside of previews, where only outputs of skipped resources are
/// unknown.
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

/// Removes duplicates. Each URN stays at its first position.
pub(crate) fn distinct(urns: Vec<Urn>) -> Vec<Urn> {
    let mut seen = std::collections::BTreeSet::new();
    urns.into_iter().filter(|urn| seen.insert(urn.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::sdk;

    fn completed(token: &str, inputs: Inputs) -> Goal {
        let inputs = inputs.completed(sdk::resource(token).unwrap());
        inputs.into_goal(TypeToken::new(token), "name", &[])
    }

    #[test]
    fn sdk_sets_constants_unless_they_are_set() {
        let token = "aws:ec2/securityGroup:SecurityGroup";
        let goal = completed(token, Inputs::default().plain("name", "db"));
        assert_eq!(goal.inputs["description"], "Managed by Pulumi".into());
        assert_eq!(goal.property_dependencies["description"], []);
        let goal = completed(token, Inputs::default().plain("description", "of the database"));
        assert_eq!(goal.inputs["description"], "of the database".into());
    }

    #[test]
    fn sdk_marks_secrets_once_and_adds_none() {
        let token = "aws:rds/instance:Instance";
        let secret = PropertyValue::secret("p".into());
        for password in [ResolvedValue::known("p"), ResolvedValue::known("p").secret()] {
            assert_eq!(completed(token, Inputs::default().set("password", password)).inputs["password"], secret);
        }
        assert!(completed(token, Inputs::default()).inputs.is_empty());
    }
}
