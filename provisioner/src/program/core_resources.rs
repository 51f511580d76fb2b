//! Inspection of the core resources of a stack: what they need and would register, as far as it is known before a run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::registry::recipe::{CoreTypeRecipe, Outline, Package, Place, RecipeTable, conflict};
use config::diagnostics::Diagnostic;
use config::{Resource, ResourceImplementation, Stack};

/// Packages and conflicts of the core resources of a stack.
#[derive(Clone, Debug, Default)]
pub(super) struct CoreResources {
    /// Packages that the resources at indices of [`Stack::declarations`] need, in the order of the file.
    pub(super) packages: Vec<(usize, Package)>,
    /// An error for each core resource that would register a resource of the same type and name as an earlier one, but with
    /// other inputs or another provider.
    pub(super) conflicts: Vec<Diagnostic>,
}

impl CoreResources {
    /// Inspects the recipes of a stack. It takes about as long as a run needs to make them.
    pub(super) fn inspect(stack: &Stack, core: &RecipeTable) -> Self {
        let declared: Vec<_> =
            stack.declarations().map(|(environment, it)| CoreResource::of(stack, core, environment, it)).collect();
        let mut first: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut outlines = Outlines::default();
        let mut inspected = Self::default();
        for (index, resource) in declared.iter().enumerate() {
            let Some(resource) = resource else { continue };
            let (packages, names) = resource.recipe.packages_and_names(&resource.resource.config, resource.place);
            inspected.packages.extend(packages.into_iter().map(|package| (index, package)));
            let mut found = None;
            for name in names {
                match first.entry(name) {
                    Entry::Vacant(entry) => drop(entry.insert(index)),
                    Entry::Occupied(entry) => {
                        let Some(other) = declared.get(*entry.get()).and_then(Option::as_ref) else { continue };
                        let both = [(*entry.get(), other), (index, resource)];
                        let mut of_both = both.into_iter().flat_map(|(index, it)| outlines.of(index, it, entry.key()));
                        let one = of_both.next();
                        if of_both.any(|other| Some(other) != one) {
                            let ((token, name), span) = (entry.key(), resource.resource.key_span);
                            found.get_or_insert_with(|| conflict(token, name, span, other.resource.key_span));
                        }
                    }
                }
            }
            inspected.conflicts.extend(found);
        }
        inspected
    }
}

/// Core resource with its recipe.
struct CoreResource<'s> {
    recipe: &'s CoreTypeRecipe,
    place: Place<'s>,
    resource: &'s Resource,
}

impl<'s> CoreResource<'s> {
    fn of(stack: &'s Stack, core: &'s RecipeTable, environment: &'s str, resource: &'s Resource) -> Option<Self> {
        let ResourceImplementation::Core { type_name } = &resource.implementation else { return None };
        Some(Self {
            recipe: core.get(type_name)?,
            place: Place::new(stack, environment, type_name, resource),
            resource,
        })
    }
}

/// Outlines of the core resources that have a name in common with another one, by index.
#[derive(Default)]
struct Outlines(BTreeMap<usize, Vec<Outline>>);

impl Outlines {
    /// Returns the outlines of the registrations of a resource with a type and a name.
    fn of(&mut self, index: usize, resource: &CoreResource<'_>, (token, name): &(String, String)) -> Vec<Outline> {
        let outline = || resource.recipe.outline(&resource.resource.config, resource.place);
        let outlines = self.0.entry(index).or_insert_with(outline);
        outlines.iter().filter(|outline| outline.token == *token && outline.name == *name).cloned().collect()
    }
}
