//! Table of all core types, types of registrars, types of keys and types of templates.

use std::collections::BTreeMap;

use super::core_type::{CoreType, TypeOrigin};
use super::template_type::TemplateType;

/// Types of `auth`.
const AUTH_TYPES: [&str; 4] = ["pulumi-token", "aws-token", "gcp-service-account", "kubernetes"];
/// Types of `secrets`.
pub(crate) const SECRETS_TYPES: [&str; 2] = ["aws-secrets-manager", "gcp-secrets-manager"];
/// Types of `cicd`.
pub(crate) const CICD_TYPES: [&str; 1] = ["github-actions"];

/// Types that a stack can use without a plugin: core types, types of registrars and types of keys by name, and types of
/// templates. Also the names of types that only Simple Container has.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    core: BTreeMap<&'static str, CoreType>,
    registrars: BTreeMap<&'static str, CoreType>,
    keys: BTreeMap<&'static str, CoreType>,
    unsupported: Vec<&'static str>,
    templates: Vec<TemplateType>,
}

impl TypeTable {
    /// Returns a table of these core types, without registrars, keys and templates.
    pub fn new(core: impl IntoIterator<Item = CoreType>) -> Self {
        Self { core: by_name(core), ..Self::default() }
    }

    /// Adds types of registrars.
    #[must_use]
    pub fn with_registrars(self, registrars: impl IntoIterator<Item = CoreType>) -> Self {
        Self { registrars: by_name(registrars), ..self }
    }

    /// Adds types of secrets providers whose keys a run creates. They are no types of resources.
    #[must_use]
    pub fn with_keys(self, keys: impl IntoIterator<Item = CoreType>) -> Self {
        Self { keys: by_name(keys), ..self }
    }

    /// Adds the names of resource types that Simple Container has and `sc` has not.
    #[must_use]
    pub fn with_unsupported(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.unsupported.extend(names);
        self
    }

    /// Adds types of templates. Messages list them in this order.
    #[must_use]
    pub fn with_templates(mut self, templates: impl IntoIterator<Item = TemplateType>) -> Self {
        self.templates.extend(templates);
        self
    }

    /// A core type by name.
    pub fn get(&self, name: &str) -> Option<&CoreType> {
        self.core.get(name)
    }

    /// A type of keys by name.
    pub fn key_type(&self, name: &str) -> Option<&CoreType> {
        self.keys.get(name)
    }

    /// Returns all core types, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &CoreType> {
        self.core.values()
    }

    /// Returns the names of the core types, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.core.keys().copied()
    }

    /// Returns the names of resource types that Simple Container has and `sc` has not.
    pub fn unsupported(&self) -> &[&'static str] {
        &self.unsupported
    }

    /// Returns the names of all types that blocks other than resources may have. As in Go, one namespace holds the types of
    /// `auth`, `secrets`, `cicd`, resources, registrars and templates (docs/spec/simple-container.md#2.2, #7.1), so each of these
    /// blocks accepts any type of the namespace.
    pub fn block_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        let blocks = AUTH_TYPES.into_iter().chain(SECRETS_TYPES).chain(CICD_TYPES);
        blocks.chain(self.simple_container_names()).chain(self.templates().iter().map(TemplateType::name))
    }

    /// Returns the names of the types of Simple Container for resources and registrars, supported ones or not.
    fn simple_container_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        let is_own = |core: &&CoreType| core.origin() == TypeOrigin::Own;
        let known = self.iter().chain(self.registrars()).filter(move |core| !is_own(core)).map(CoreType::name);
        known.chain(self.unsupported.iter().copied())
    }

    /// A type of registrars by name.
    pub fn registrar(&self, name: &str) -> Option<&CoreType> {
        self.registrars.get(name)
    }

    /// Returns all types of registrars, sorted by name.
    pub fn registrars(&self) -> impl Iterator<Item = &CoreType> {
        self.registrars.values()
    }

    /// Returns all types of templates, in the order in which they were added.
    pub fn templates(&self) -> &[TemplateType] {
        &self.templates
    }

    /// A type of templates by name.
    pub fn template(&self, name: &str) -> Option<&TemplateType> {
        self.templates.iter().find(|template| template.name() == name)
    }
}

fn by_name(types: impl IntoIterator<Item = CoreType>) -> BTreeMap<&'static str, CoreType> {
    types.into_iter().map(|core| (core.name(), core)).collect()
}
