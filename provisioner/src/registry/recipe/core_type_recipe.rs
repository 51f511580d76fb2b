//! Recipe of a core type, with its `config`, and the table of all.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use config::types::{CoreConfig, CoreType, TypeTable, decode};
use futures_util::future::BoxFuture;

use super::core_resource::{CoreResource, RecipeError, RecipeResult};
use super::graph::Recipe;
use super::interpreter::interpret;
use super::outline::Outline;
use super::resolved::ResolvedValue;
use super::resource_names::ResourceNames;
use crate::registry::packages::Package;
use config::tree::{InterpolatedString, Node};
use config::values::evaluate_text;
use pulumi_proto::property::PropertyValue;

/// Function that adds to a recipe what a core type registers for a `config` at a place.
pub type BuildRecipe<C> = for<'r> fn(&'r C, &'r ResourceNames<'r>, &mut Recipe<'r>);

/// Recipe of a core type.
#[derive(Clone)]
#[must_use]
pub struct CoreTypeRecipe {
    core_type: CoreType,
    packages: &'static [Package],
    /// Packages that only some `config`s need.
    optional: &'static [Package],
    is_registrar: bool,
    register: Arc<dyn RegisterRecipe>,
}

impl CoreTypeRecipe {
    /// Creates the recipe of a type with the packages that it uses.
    pub fn of<C: CoreConfig + Send + Sync + 'static>(packages: &'static [Package], build: BuildRecipe<C>) -> Self {
        let core_type = CoreType::of::<C>();
        Self { core_type, packages, optional: &[], is_registrar: false, register: Arc::new(build) }
    }

    /// Adds packages that only some `config`s need: those for which the recipe has a provider from the beginning.
    pub fn with_optional(self, optional: &'static [Package]) -> Self {
        Self { optional, ..self }
    }

    /// Makes the type one of registrars.
    pub fn for_registrars(self) -> Self {
        Self { is_registrar: true, ..self }
    }

    /// Passes the recipe for a `config` to a function. Texts with references are unknown. An invalid `config` has no recipe.
    pub(in crate::registry) fn inspect(
        &self,
        config: &Node,
        place: ResourceNames<'_>,
        visit: &mut dyn FnMut(Recipe<'_>),
    ) {
        self.register.inspect(config, place, visit);
    }

    /// Returns the packages that a `config` needs, and the types and names of what the recipe for it registers, as far as they are
    /// known before a run. An invalid `config` needs the packages that all need.
    pub fn packages_and_names(&self, config: &Node, place: ResourceNames<'_>) -> (Vec<Package>, Vec<(String, String)>) {
        let (mut used, mut names) = (Vec::new(), Vec::new());
        self.inspect(config, place, &mut |recipe| {
            used.extend(recipe.packages());
            names = recipe.names();
        });
        let optional = self.optional.iter().filter(|package| used.contains(package));
        (self.packages.iter().chain(optional).copied().collect(), names)
    }

    /// Returns what the recipe for a `config` registers, as far as it is known before a run.
    pub fn outline(&self, config: &Node, place: ResourceNames<'_>) -> Vec<Outline> {
        let mut outline = Vec::new();
        self.inspect(config, place, &mut |recipe| outline = recipe.outline());
        outline
    }

    /// Registers all resources of a core resource.
    ///
    /// # Errors
    /// [`RecipeError`] if some of them are not registered.
    pub async fn register(&self, core: CoreResource<'_>) -> Result<RecipeResult, RecipeError> {
        self.register.register(core).await
    }
}

/// Recipe whose type of `config` is hidden.
trait RegisterRecipe: Send + Sync {
    fn inspect(&self, config: &Node, place: ResourceNames<'_>, visit: &mut dyn FnMut(Recipe<'_>));

    fn register<'r>(&'r self, core: CoreResource<'r>) -> BoxFuture<'r, Result<RecipeResult, RecipeError>>;
}

impl<C: CoreConfig + Send + Sync> RegisterRecipe for BuildRecipe<C> {
    fn inspect(&self, config: &Node, place: ResourceNames<'_>, visit: &mut dyn FnMut(Recipe<'_>)) {
        // With a default in the place of an unknown value, the recipe would be another one.
        let decoded = decode::<C>(config, &mut Vec::new()).filter(|decoded| !decoded.has_unknown_values);
        let Some(decoded) = decoded else { return };
        let value = |text: &InterpolatedString| match evaluate_text(text, &mut |_| Ok(PropertyValue::UNKNOWN)) {
            Ok(value) => ResolvedValue::known(value),
            Err(_) => ResolvedValue::unknown(),
        };
        let mut recipe = Recipe::new(place, decoded.texts().map(|(text, span)| (value(text), span)).collect(), false);
        self(&decoded.config, &place, &mut recipe);
        visit(recipe);
    }

    fn register<'r>(&'r self, core: CoreResource<'r>) -> BoxFuture<'r, Result<RecipeResult, RecipeError>> {
        Box::pin(async move {
            let mut diagnostics = Vec::new();
            // Errors are reported when the file is read, so none is expected here.
            let decoded = decode::<C>(core.config, &mut diagnostics).ok_or_else(|| match diagnostics.pop() {
                Some(diagnostic) => RecipeError::Diagnostic(diagnostic.into()),
                None => RecipeError::Failed,
            })?;
            let texts = decoded.texts().map(|(text, span)| Ok(((core.resolve_text)(text)?, span)));
            let texts = texts.collect::<Result<Vec<_>, RecipeError>>()?;
            let mut recipe = Recipe::new(core.place, texts, core.registrar.is_preview());
            self(&decoded.config, &core.place, &mut recipe);
            interpret(recipe, &core).await
        })
    }
}

/// Recipes by the name of their core type.
#[derive(Clone, Default)]
pub struct RecipeTable(BTreeMap<&'static str, CoreTypeRecipe>);

impl RecipeTable {
    /// Creates a table of recipes.
    pub fn new(recipes: impl IntoIterator<Item = CoreTypeRecipe>) -> Self {
        Self(recipes.into_iter().map(|recipe| (recipe.core_type.name(), recipe)).collect())
    }

    /// The recipe of a core type.
    pub fn get(&self, name: &str) -> Option<&CoreTypeRecipe> {
        self.0.get(name)
    }

    /// Returns the names of the core types, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied()
    }

    /// Returns the packages that some `config`s need, some of them several times.
    pub(in crate::registry) fn packages(&self) -> impl Iterator<Item = Package> {
        self.0.values().flat_map(|recipe| recipe.packages.iter().chain(recipe.optional).copied())
    }

    /// Returns the types of the `config`s, for reading files.
    pub fn types(&self) -> TypeTable {
        let types = |is_registrar| {
            let recipes = self.0.values().filter(move |recipe| recipe.is_registrar == is_registrar);
            recipes.map(|recipe| recipe.core_type)
        };
        TypeTable::new(types(false)).with_registrars(types(true))
    }

    /// Returns the types of the `config`s, sorted by name.
    pub fn core_types(&self) -> impl Iterator<Item = CoreType> + '_ {
        self.0.values().map(|recipe| recipe.core_type)
    }
}

impl fmt::Debug for RecipeTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
