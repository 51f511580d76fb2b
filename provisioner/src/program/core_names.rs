//! Check that core resources do not register different resources under one name, before a run changes anything.

use std::collections::BTreeMap;

use crate::registry::recipe::{Outline, Place, RecipeTable, conflict};
use config::diagnostics::Diagnostic;
use config::{Resource, ResourceImplementation, Stack};

/// Returns an error for each core resource that would register a resource of the same type and name as an earlier one, but
/// with other inputs or another provider.
pub(super) fn check(stack: &Stack, core: &RecipeTable) -> Vec<Diagnostic> {
    let mut first: BTreeMap<(String, String), (Outline, &Resource)> = BTreeMap::new();
    let mut conflicts = Vec::new();
    for (environment, resource) in stack.declarations() {
        let ResourceImplementation::Core { type_name } = &resource.implementation else { continue };
        let Some(recipe) = core.get(type_name) else { continue };
        let place = Place::new(stack, environment, type_name, resource);
        let mut found = None;
        for outline in recipe.outline(&resource.config, place) {
            let key = (outline.token.clone(), outline.name.clone());
            match first.get(&key) {
                Some((earlier, other)) if *earlier != outline => {
                    found.get_or_insert_with(|| conflict(&key.0, &key.1, resource.key_span, other.key_span));
                }
                Some(_) => {}
                None => drop(first.insert(key, (outline, resource))),
            }
        }
        conflicts.extend(found);
    }
    conflicts
}
