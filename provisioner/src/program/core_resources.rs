//! Inspection of the core resources of a stack: what they need and would register, as far as it is known before a run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::registry::packages::Package;
use crate::registry::recipe::{CoreTypeRecipe, Outline, RecipeTable, ResourceNames, conflict};
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
        let declared = stack.declarations().map(|(environment, it)| CoreResource::of(stack, core, environment, it));
        let mut registrations = Registrations { declared: declared.collect(), ..Registrations::default() };
        let mut inspected = Self::default();
        for index in 0..registrations.declared.len() {
            let Some(resource) = registrations.declared[index] else { continue };
            let (packages, names) = resource.recipe.packages_and_names(&resource.resource.config, resource.place);
            inspected.packages.extend(packages.into_iter().map(|package| (index, package)));
            // Each name is added, also after the first conflict.
            let conflicts: Vec<Diagnostic> =
                names.into_iter().filter_map(|name| registrations.add(index, resource, name)).collect();
            inspected.conflicts.extend(conflicts.into_iter().next());
        }
        inspected
    }
}

/// Registrations of the core resources that were inspected.
#[derive(Default)]
struct Registrations<'s> {
    /// All resources, by index of [`Stack::declarations`]; `None` for those of plugins.
    declared: Vec<Option<CoreResource<'s>>>,
    /// First resource that registers a type and a name.
    first: BTreeMap<(String, String), usize>,
    /// Outlines of the resources that have a type and a name in common with another one.
    outlines: BTreeMap<usize, Vec<Outline>>,
}

impl<'s> Registrations<'s> {
    /// Adds a registration of a resource. Returns an error if an earlier one has the same type and name and differs.
    fn add(&mut self, index: usize, resource: CoreResource<'s>, name: (String, String)) -> Option<Diagnostic> {
        let first = match self.first.entry(name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(index);
                return None;
            }
            Entry::Occupied(entry) => *entry.get(),
        };
        let other = self.declared[first]?;
        let outlines = [self.outlines_of(first, other, &name), self.outlines_of(index, resource, &name)].concat();
        let differs = outlines.windows(2).any(|pair| pair[0] != pair[1]);
        differs.then(|| {
            let place = |core: CoreResource<'_>| (core.resource.key_span, core.place.in_words());
            conflict(&name.0, &name.1, place(resource), place(other))
        })
    }

    fn outlines_of(&mut self, index: usize, resource: CoreResource<'s>, name: &(String, String)) -> Vec<Outline> {
        let outline = || resource.recipe.outline(&resource.resource.config, resource.place);
        let outlines = self.outlines.entry(index).or_insert_with(outline);
        outlines.iter().filter(|outline| outline.token == name.0 && outline.name == name.1).cloned().collect()
    }
}

/// Core resource with its recipe.
#[derive(Clone, Copy)]
struct CoreResource<'s> {
    recipe: &'s CoreTypeRecipe,
    place: ResourceNames<'s>,
    resource: &'s Resource,
}

impl<'s> CoreResource<'s> {
    fn of(stack: &'s Stack, core: &'s RecipeTable, environment: &'s str, resource: &'s Resource) -> Option<Self> {
        let ResourceImplementation::Core { type_name } = &resource.implementation else { return None };
        Some(Self {
            recipe: core.get(type_name)?,
            place: ResourceNames::new(stack, environment, type_name, resource),
            resource,
        })
    }
}
