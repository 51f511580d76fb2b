//! Inputs under construction: values together with the resources they came from.

use std::collections::BTreeMap;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{TypeToken, Urn};

use crate::deployment::Goal;

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

/// Each once, in the order of their first appearance.
fn distinct(urns: Vec<Urn>) -> Vec<Urn> {
    let mut seen = std::collections::BTreeSet::new();
    urns.into_iter().filter(|urn| seen.insert(urn.clone())).collect()
}
