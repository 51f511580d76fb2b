//! Secretness of the values of resources: a value is secret at each path where the goal or the record has a secret, even
//! if a provider returned it as a plain value (docs/engine.md, docs/spec/engine-semantics.md#7).

use std::ops::Deref;
use std::sync::Arc;

use bridge::provider::Alias;
use hashbrown::HashMap;
use pulumi_proto::property::secretness::copy_value_secretness;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use state::ResourceState;

use crate::goal::Goal;

/// Inputs of a goal, with the result of one search for secrets in them, which all steps of the resource use. Empty without a goal.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoalInputs {
    properties: Arc<PropertyMap>,
    contain_secrets: bool,
    /// Recorded entry of the resource, if it was searched, too, and contains no secret.
    recorded_without_secrets: Option<Arc<ResourceState>>,
}

impl GoalInputs {
    /// Searches inputs for secrets, once for all steps.
    pub(crate) fn new(properties: Arc<PropertyMap>) -> Self {
        Self { contain_secrets: contain_secrets(&properties), properties, recorded_without_secrets: None }
    }

    /// Searches the recorded entry of the resource for secrets.
    pub(crate) fn search_recorded(&mut self, recorded: Option<&Arc<ResourceState>>) {
        let has_none = |old: &&Arc<ResourceState>| !contain_secrets(&old.inputs) && !contain_secrets(&old.outputs);
        self.recorded_without_secrets = recorded.filter(has_none).cloned();
    }

    /// Returns whether the inputs, or the properties of the recorded entry, contain a secret.
    fn contain_secrets_with(&self, recorded: Option<&ResourceState>) -> bool {
        let was_searched = |old: &ResourceState| {
            self.recorded_without_secrets.as_deref().is_some_and(|known| std::ptr::eq(known, old))
        };
        let contains = |old: &ResourceState| contain_secrets(&old.inputs) || contain_secrets(&old.outputs);
        self.contain_secrets || recorded.is_some_and(|old| !was_searched(old) && contains(old))
    }
}

impl Deref for GoalInputs {
    type Target = PropertyMap;

    fn deref(&self) -> &PropertyMap {
        &self.properties
    }
}

/// Marks the values of a resource that must be secret: those that are secret in the inputs of its goal, or in its
/// recorded entry, and the outputs that `additionalSecretOutputs` names. An output is secret with the input of its path,
/// too. `goal` is empty if no goal is known.
///
/// A path that the goal has without a secret is no secret in the inputs any more, nor in the outputs that were secret
/// with it: the program has made the value public.
pub(crate) fn mark_secrets(state: &mut ResourceState, goal: &GoalInputs, recorded: Option<&ResourceState>) {
    let none = PropertyMap::new();
    let (old_inputs, old_outputs) = recorded.map_or((&none, &none), |old| (&*old.inputs, &*old.outputs));
    // Most resources have no secrets: their properties stay shared with other entries.
    let are_known = goal.contain_secrets_with(recorded);
    if are_known {
        mark_inputs(Arc::make_mut(&mut state.inputs), goal, recorded);
    }
    if are_known || contain_secrets(&state.inputs) {
        let (inputs, outputs) = (&state.inputs, Arc::make_mut(&mut state.outputs));
        mark(outputs, inputs);
        mark(outputs, goal);
        mark_where_missing(outputs, old_inputs, &[inputs]);
        mark_unless_public(outputs, old_outputs, old_inputs, inputs);
    }
    // The output `id` cannot be marked as secret by name.
    let named = state.additional_secret_outputs.iter().filter(|key| *key != "id");
    let plain = |key: &&String| state.outputs.get(*key).is_some_and(|value| !value.is_secret());
    let named: Vec<String> = named.filter(plain).cloned().collect();
    for key in named {
        if let Some(value) = Arc::make_mut(&mut state.outputs).get_mut(&key) {
            *value = PropertyValue::secret(std::mem::replace(value, PropertyValue::Null));
        }
    }
}

/// Returns a recorded entry with the values marked that are secret in the inputs of its goal; the same `Arc` if there are
/// none.
pub(crate) fn with_secrets_of(goal: &GoalInputs, recorded: &Arc<ResourceState>) -> Arc<ResourceState> {
    if !goal.contain_secrets {
        return Arc::clone(recorded);
    }
    let mut marked = (**recorded).clone();
    mark_secrets(&mut marked, goal, Some(recorded));
    if marked == **recorded { Arc::clone(recorded) } else { Arc::new(marked) }
}

/// Secrets of the resources of a program that has not registered them yet.
#[derive(Default)]
pub(crate) struct ProgramSecrets(HashMap<ResourceKey, Arc<ResourceSecrets>>);

/// Secrets in the goal of a resource.
pub(crate) struct ResourceSecrets {
    /// Inputs that contain secrets, without the other members of maps.
    pub(crate) inputs: GoalInputs,
    /// Names of secret outputs.
    pub(crate) outputs: Vec<String>,
}

/// Name of a resource, and the last part of its type in lower case: the program may write a type shorter than the state.
type ResourceKey = (String, String);

impl ProgramSecrets {
    /// Returns the secrets of goals, by the identities that the resources have and had.
    pub(crate) fn of(goals: &[Goal]) -> Self {
        let mut found = HashMap::new();
        for goal in goals {
            let (inputs, outputs) = (only_secrets(&goal.inputs), goal.additional_secret_outputs.clone());
            if inputs.is_empty() && outputs.is_empty() {
                continue;
            }
            let secrets = Arc::new(ResourceSecrets { inputs: GoalInputs::new(Arc::new(inputs)), outputs });
            let own = (goal.name.as_str(), goal.type_token.as_str());
            let former = goal.aliases.iter().map(|alias| match alias {
                Alias::Urn(urn) => (urn.name(), urn.type_token()),
                Alias::Spec { name, type_token, .. } => {
                    (name.as_deref().unwrap_or(own.0), type_token.as_deref().unwrap_or(own.1))
                }
            });
            for (name, type_token) in former.chain([own]) {
                found.insert(resource_key(name, type_token), Arc::clone(&secrets));
            }
        }
        Self(found)
    }

    /// Returns the secrets of a recorded resource.
    pub(crate) fn of_resource(&self, urn: &Urn) -> Option<&ResourceSecrets> {
        self.0.get(&resource_key(urn.name(), urn.type_token())).map(AsRef::as_ref)
    }
}

fn resource_key(name: &str, type_token: &str) -> ResourceKey {
    let last = type_token.rsplit(':').next().unwrap_or_default();
    (name.to_owned(), last.to_ascii_lowercase())
}

/// Returns the values that contain secrets, without the other members of maps.
pub(crate) fn only_secrets(values: &PropertyMap) -> PropertyMap {
    let secret = values.iter().filter(|(_, value)| value.contains_secrets());
    let member = |(key, value): (&String, &PropertyValue)| match value {
        PropertyValue::Map(members) => (key.clone(), PropertyValue::Map(only_secrets(members))),
        value => (key.clone(), value.clone()),
    };
    secret.map(member).collect()
}

/// Marks inputs that a provider returned as secret where those of the goal are, and where the recorded ones are and the
/// goal has none. A path that neither of them has is secret if the recorded output is.
pub(crate) fn mark_inputs(inputs: &mut PropertyMap, goal: &GoalInputs, recorded: Option<&ResourceState>) {
    if !goal.contain_secrets_with(recorded) {
        return;
    }
    mark(inputs, goal);
    if let Some(old) = recorded {
        mark_where_missing(inputs, &old.inputs, &[goal]);
        mark_where_missing(inputs, &old.outputs, &[goal, &old.inputs]);
    }
}

/// Marks values as secret where the known ones with the same path are.
pub(crate) fn mark(values: &mut PropertyMap, known: &PropertyMap) {
    for (key, known) in known {
        if let Some(value) = values.get_mut(key) {
            mark_value(value, known);
        }
    }
}

/// Returns whether properties contain a secret at any depth.
fn contain_secrets(properties: &PropertyMap) -> bool {
    properties.values().any(PropertyValue::contains_secrets)
}

/// Marks a value as secret where the known one is. A list that is equal gets the secrets of the known one, another list is
/// secret as a whole: its items may have moved.
fn mark_value(value: &mut PropertyValue, known: &PropertyValue) {
    if let (PropertyValue::Map(values), PropertyValue::Map(known)) = (&mut *value, known) {
        mark(values, known);
        return;
    }
    let is_list = matches!(known, PropertyValue::List(_)) && known.contains_secrets();
    if is_list && !value.contains_secrets() && known.without_wrappers() == *value {
        *value = known.clone().without_outputs();
    } else {
        copy_value_secretness(known, value);
    }
}

/// Marks values as secret where the known ones are, at the paths that none of the others has.
fn mark_where_missing(values: &mut PropertyMap, known: &PropertyMap, others: &[&PropertyMap]) {
    for (key, known) in known {
        let Some(value) = values.get_mut(key) else { continue };
        let with_key: Vec<&PropertyValue> = others.iter().filter_map(|other| other.get(key)).collect();
        let maps: Vec<&PropertyMap> = with_key.iter().filter_map(|other| other.as_map()).collect();
        match (value, known) {
            (value, known) if with_key.is_empty() => mark_value(value, known),
            (PropertyValue::Map(values), PropertyValue::Map(known)) if maps.len() == with_key.len() => {
                mark_where_missing(values, known, &maps);
            }
            _ => {}
        }
    }
}

/// Marks outputs as secret where the recorded ones are, except at paths of inputs that were secret and are no longer.
fn mark_unless_public(
    values: &mut PropertyMap,
    known: &PropertyMap,
    old_inputs: &PropertyMap,
    new_inputs: &PropertyMap,
) {
    for (key, known) in known {
        let Some(value) = values.get_mut(key) else { continue };
        let old = old_inputs.get(key).filter(|old| old.contains_secrets());
        match (value, known, old, new_inputs.get(key)) {
            (
                PropertyValue::Map(values),
                PropertyValue::Map(known),
                Some(PropertyValue::Map(old)),
                Some(PropertyValue::Map(new)),
            ) => mark_unless_public(values, known, old, new),
            (_, _, Some(_), Some(new)) if !new.contains_secrets() => {}
            (value, known, _, _) => mark_value(value, known),
        }
    }
}
