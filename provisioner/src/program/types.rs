//! Types of plugin resources: the texts in the files, and what the schemas of the packages have.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::{NestedObjects, ObjectInfo, PackageTypes, TypeInfo, expand_index_module};
use config::{Resource, ResourceImplementation, Stack};
use pulumi_proto::urn::TypeToken;

/// Type of a plugin resource, or a function, whose arguments are the inputs and whose results are the outputs.
#[derive(Debug)]
pub(super) struct ResolvedType {
    /// Token of the type in the schema; without a schema of the type, the text of the file.
    pub(super) token: String,
    /// Information from the schema; `None` without a schema of the type.
    pub(super) info: Option<TypeInfo>,
    /// Text to write instead of that of the file, which has the type in another case.
    pub(super) right_case: Option<String>,
    /// Types under which the resource may be recorded: the former types of the schema, and the text of the file.
    pub(super) former_types: Vec<String>,
    /// Types of the package, which have the object types of the properties.
    types: PackageTypes,
}

impl ResolvedType {
    /// Resolves a text by the schema of its package, if there is one.
    pub(super) fn new(text: &str, types: Option<&PackageTypes>) -> Self {
        let expanded = expand_index_module(text).into_owned();
        let resolved = types.and_then(|types| types.resolve(text));
        let in_other_case = match resolved {
            Some(_) => None,
            None => types.and_then(|types| types.resolve_in_any_case(text)),
        };
        let token = resolved.or(in_other_case).map_or_else(|| expanded.clone(), str::to_owned);
        let right_case = in_other_case.map(|token| TypeToken::new(token).short_form().into_owned());
        let info = types.and_then(|types| types.get(&token)).map(Cow::into_owned);
        let mut former_types = info.as_ref().map(|info| info.former_types.clone()).unwrap_or_default();
        // Earlier versions recorded the text of the file, if the plugin accepted it.
        if expanded != token && !former_types.contains(&expanded) {
            former_types.push(expanded);
        }
        Self { token, info, right_case, former_types, types: types.cloned().unwrap_or_default() }
    }

    /// Resolves the text of a function by the schema of its package, if there is one.
    pub(super) fn of_function(text: &str, types: Option<&PackageTypes>) -> Self {
        let resolved = types.and_then(|types| types.resolve_function(text));
        let in_other_case = match resolved {
            Some(_) => None,
            None => types.and_then(|types| types.resolve_function_in_any_case(text)),
        };
        let token = resolved.or(in_other_case).map_or_else(|| expand_index_module(text).into_owned(), str::to_owned);
        let right_case = in_other_case.map(|token| TypeToken::new(token).short_form().into_owned());
        let info = types.and_then(|types| types.function(&token)).map(Cow::into_owned);
        Self { token, info, right_case, former_types: Vec::new(), types: types.cloned().unwrap_or_default() }
    }

    /// Returns an object type of the package.
    pub(super) fn object(&self, token: &str) -> Option<Cow<'_, ObjectInfo>> {
        self.types.object(token)
    }

    /// Returns whether the schema has the part of an output at a path of which only the first `found` steps have values. A
    /// list has no items, and a map no members, but those that the provider returned. A part of a missing value counts if
    /// the schema does not describe it.
    pub(super) fn has_missing_output(&self, path: &[String], found: usize) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let Some(mut nested) = self.info.as_ref().and_then(|info| info.outputs.get(first)).cloned() else {
            return false;
        };
        for (number, step) in (1..).zip(rest) {
            nested = match nested {
                None => return found < number,
                Some(NestedObjects::Object(token)) => {
                    let Some(object) = self.object(&token) else { return found < number };
                    let Some(property) = object.properties.get(step) else { return false };
                    property.nested.clone()
                }
                Some(NestedObjects::List(_) | NestedObjects::Map(_)) if found == number => return false,
                Some(NestedObjects::List(_)) if step.parse::<usize>().is_err() => return false,
                Some(NestedObjects::List(values) | NestedObjects::Map(values)) => Some(*values),
            };
        }
        true
    }

    /// Returns true if the schema says that the type is a component.
    pub(super) fn is_component(&self) -> bool {
        self.info.as_ref().is_some_and(|info| info.is_component)
    }
}

/// Resolves the types of the plugin resources of a stack, in the order of [`Stack::resources`]; `None` for a core resource.
/// `types` are the types of the packages, by name of the plugin.
pub(super) fn resolve_all(stack: &Stack, types: &BTreeMap<String, PackageTypes>) -> Vec<Option<Arc<ResolvedType>>> {
    let mut resolver = TypeResolver::new(stack, types);
    let resolve = |(_, resource): (_, &Resource)| match &resource.implementation {
        ResourceImplementation::Plugin { type_text, plugin } => Some(resolver.resolve(*plugin, type_text)),
        ResourceImplementation::Core { .. } => None,
    };
    stack.resources().map(resolve).collect()
}

/// Resolves the functions of a stack, in the order of [`Stack::functions`].
pub(super) fn resolve_functions(stack: &Stack, types: &BTreeMap<String, PackageTypes>) -> Vec<Arc<ResolvedType>> {
    let mut resolver = TypeResolver::new(stack, types);
    let functions = stack.functions.iter();
    functions.map(|function| resolver.resolve_function(function.plugin, &function.token_text)).collect()
}

/// Resolver of the types of a stack. Resources of one type share the result.
pub(super) struct TypeResolver<'s> {
    stack: &'s Stack,
    types: &'s BTreeMap<String, PackageTypes>,
    resolved: BTreeMap<(usize, String), Arc<ResolvedType>>,
    functions: BTreeMap<(usize, String), Arc<ResolvedType>>,
}

impl<'s> TypeResolver<'s> {
    /// Creates a resolver. `types` are the types of the packages, by name of the plugin.
    pub(super) fn new(stack: &'s Stack, types: &'s BTreeMap<String, PackageTypes>) -> Self {
        Self { stack, types, resolved: BTreeMap::new(), functions: BTreeMap::new() }
    }

    /// Resolves a type, given the index of its plugin and its text in server.yaml.
    pub(super) fn resolve(&mut self, plugin: usize, type_text: &str) -> Arc<ResolvedType> {
        let types = self.types_of(plugin);
        let known = self.resolved.entry((plugin, type_text.to_owned()));
        Arc::clone(known.or_insert_with(|| ResolvedType::new(type_text, types).into()))
    }

    /// Resolves a function, given the index of its plugin and its text in server.yaml.
    pub(super) fn resolve_function(&mut self, plugin: usize, text: &str) -> Arc<ResolvedType> {
        let types = self.types_of(plugin);
        let known = self.functions.entry((plugin, text.to_owned()));
        Arc::clone(known.or_insert_with(|| ResolvedType::of_function(text, types).into()))
    }

    /// Returns the types of the package of a plugin.
    fn types_of(&self, plugin: usize) -> Option<&'s PackageTypes> {
        self.stack.plugins.get(plugin).and_then(|declared| self.types.get(declared.name()))
    }
}
