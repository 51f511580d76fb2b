//! Import of an existing resource that a stack declares.

use std::sync::Arc;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{TypeToken, Urn};

use super::assets::has_asset;
use super::{goals, positions};
use bridge::error::closest_resource;
use config::{Resource, ResourceImplementation, Stack, values};
use engine::{ImportGoal, ImportProvider, names_of_key};

/// Error of a lookup of the resource to import.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportLookupError {
    /// The stack declares no resource with the name.
    #[error("the stack {stack} declares no resource {name}")]
    Unknown {
        /// Name of the stack.
        stack: String,
        /// Name that the user gave.
        name: String,
        /// Similar name of a declared resource, if there is one.
        similar: Option<String>,
    },
    /// The name is a key that several resources have.
    #[error("{} resources match {name}: {}", names.len(), names.join(", "))]
    Several {
        /// Name that the user gave.
        name: String,
        /// Names of the resources.
        names: Vec<String>,
    },
    /// The resource is of a core type, which registers several resources.
    #[error("{name} is of the core type {type_name}, which registers several resources")]
    CoreType {
        /// Name that the user gave.
        name: String,
        /// Core type of the resource.
        type_name: String,
    },
}

/// Returns the import goal of a plugin resource, by its name in the state, by `TYPE::NAME`, by its key or by `ENV/KEY`.
pub(super) fn find_import(stack: &Stack, name: &str, id: &ResourceId) -> Result<ImportGoal, ImportLookupError> {
    let named = stack.resources().map(|(environment, resource)| {
        let name = goals::resource_name(resource, &environment.name);
        (name, resource)
    });
    let named: Vec<_> = named.collect();
    let is_selected = |(known, resource): &(String, &Resource)| {
        known == name
            || type_text(resource).is_some_and(|token| name.strip_prefix(token) == Some(&format!("::{known}")))
    };
    let names = || named.iter().map(|(known, _)| known.as_str());
    let of_key: Vec<&str> =
        if named.iter().any(is_selected) { Vec::new() } else { names_of_key(name, names()).into_iter().collect() };
    let is_selected = |found: &(String, &Resource)| is_selected(found) || of_key == [found.0.as_str()];
    let Some((index, (name, resource))) = named.iter().enumerate().find(|(_, found)| is_selected(found)) else {
        if of_key.len() > 1 {
            let names = of_key.into_iter().map(str::to_owned).collect();
            return Err(ImportLookupError::Several { name: name.to_owned(), names });
        }
        let similar = closest_resource(name, &names().collect::<Vec<_>>()).map(str::to_owned);
        return Err(ImportLookupError::Unknown { stack: stack.name.clone(), name: name.to_owned(), similar });
    };
    match &resource.implementation {
        ResourceImplementation::Core { type_name } => {
            Err(ImportLookupError::CoreType { name: name.clone(), type_name: type_name.as_str().to_owned() })
        }
        ResourceImplementation::Plugin { type_text, plugin } => {
            let root = Urn::root_stack(&stack.name, &stack.project);
            let provider = goals::provider(&stack.plugins[*plugin], *plugin, &root, None);
            Ok(ImportGoal {
                type_token: TypeToken::new(type_text),
                name: name.clone(),
                id: id.clone(),
                parent: None,
                provider: ImportProvider::Declared(Box::new(provider)),
                protect: resource.options.protect.unwrap_or_default(),
                aliases: resource.options.aliases.iter().map(goals::alias).collect(),
                inputs: Arc::new(constant_inputs(resource)),
                additional_secret_outputs: goals::texts(&resource.options.additional_secret_outputs),
                source: Some(positions::resource_ref(stack.plugins.len(), index)),
            })
        }
    }
}

/// Returns the type of a plugin's resource as the file has it.
fn type_text(resource: &Resource) -> Option<&str> {
    match &resource.implementation {
        ResourceImplementation::Core { .. } => None,
        ResourceImplementation::Plugin { type_text, .. } => Some(type_text),
    }
}

/// Returns the inputs that do not depend on other resources.
fn constant_inputs(resource: &Resource) -> PropertyMap {
    match values::evaluate_constant(&resource.config) {
        PropertyValue::Map(inputs) => {
            // An asset has no hash before a run.
            let is_constant = |value: &PropertyValue| !value.contains_unknowns() && !has_asset(value);
            inputs.into_iter().filter(|(_, value)| is_constant(value)).collect()
        }
        _ => PropertyMap::new(),
    }
}
