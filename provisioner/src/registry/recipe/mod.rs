//! Recipes: what a core type registers, as a value.
//!
//! A recipe is a graph of resources, components, functions, reads and effects, which a pure function makes of a typed `config`. Its inputs are JSON
//! with holes ([`Hole`]): ids and outputs of other nodes, texts that are made of them, and texts of the user with their
//! secrets and references. The interpreter registers any recipe, through the same [`Registrar`](engine::Registrar) as
//! plugin resources: each node as soon as what it refers to is registered.
//!
//! Input: one resource of a stack, whose dependencies are registered. Output: registrations; values that other resources
//! can reference; stack outputs. Excluded: validation of a `config` ([`super::types`]), order of resources.

mod core_resource;
mod core_type_recipe;
mod effects;
mod graph;
mod hole;
mod interpreter;
mod node;
mod outline;
mod resolved;
mod resource_names;
mod shared_registrations;
#[cfg(test)]
pub(super) mod tests;
mod values;

pub use core_resource::{CoreResource, RecipeError, RecipeResult};
pub use core_type_recipe::{BuildRecipe, CoreTypeRecipe, RecipeTable};
pub use effects::{Effects, GoogleApi};
pub use graph::Recipe;
pub use hole::{Handle, Hole, secret};
pub use interpreter::conflict;
pub use node::{Node, Provider};
pub use outline::Outline;
pub use resolved::{Inputs, ResolvedValue};
pub(crate) use resolved::{distinct, without_unknowns};
pub use resource_names::{ResourceNames, decode_base64, go_json, trim_hash, trim_middle};
pub use shared_registrations::SharedRegistrations;
