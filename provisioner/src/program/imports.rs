//! Import of an existing resource that a stack declares.

use std::sync::Arc;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{TypeToken, Urn};

use super::{goals, positions};
use config::diagnostics::closest;
use config::{Resource, ResourceImplementation, Stack, values};
use engine::{ImportGoal, ImportProvider};

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
    /// The resource is of a core type, which registers several resources.
    #[error("{name} is of the core type {type_name}, which registers several resources")]
    CoreType {
        /// Name that the user gave.
        name: String,
        /// Core type of the resource.
        type_name: String,
    },
}

/// Returns the import goal of a plugin resource, by its name in the state.
pub(super) fn find_import(stack: &Stack, name: &str, id: &ResourceId) -> Result<ImportGoal, ImportLookupError> {
    let named = stack.resources().map(|(environment, resource)| {
        let name = goals::resource_name(resource, &environment.name);
        (name, resource)
    });
    let named: Vec<_> = named.collect();
    let Some((index, (_, resource))) = named.iter().enumerate().find(|(_, (known, _))| known == name) else {
        let similar = closest(name, named.iter().map(|(known, _)| known.as_str())).map(str::to_owned);
        return Err(ImportLookupError::Unknown { stack: stack.name.clone(), name: name.to_owned(), similar });
    };
    match &resource.implementation {
        ResourceImplementation::Core { type_name } => {
            Err(ImportLookupError::CoreType { name: name.to_owned(), type_name: type_name.as_str().to_owned() })
        }
        ResourceImplementation::Plugin { type_text, plugin } => {
            let root = Urn::root_stack(&stack.name, &stack.project);
            let provider = goals::provider(&stack.plugins[*plugin], *plugin, &root);
            Ok(ImportGoal {
                type_token: TypeToken::new(type_text),
                name: name.to_owned(),
                id: id.clone(),
                parent: None,
                provider: ImportProvider::Declared(Box::new(provider)),
                protect: resource.options.protect.unwrap_or_default(),
                aliases: resource.options.aliases.iter().map(goals::alias).collect(),
                inputs: Arc::new(constant_inputs(resource)),
                additional_secret_outputs: resource.options.additional_secret_outputs.clone(),
                source: Some(positions::resource_ref(stack.plugins.len(), index)),
            })
        }
    }
}

/// Returns the inputs that do not depend on other resources.
fn constant_inputs(resource: &Resource) -> PropertyMap {
    match values::evaluate_constant(&resource.config) {
        PropertyValue::Map(inputs) => inputs.into_iter().filter(|(_, value)| !value.contains_unknowns()).collect(),
        _ => PropertyMap::new(),
    }
}
