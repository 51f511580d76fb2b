//! Table of all core types and types of templates.

use std::collections::BTreeMap;

use super::core_type::CoreType;
use super::template_type::TemplateType;

/// Types that a stack can use without a plugin: core types by name, and types of templates.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    core: BTreeMap<&'static str, CoreType>,
    templates: Vec<TemplateType>,
}

impl TypeTable {
    /// Returns a table of these core types, without templates.
    pub fn new(core: impl IntoIterator<Item = CoreType>) -> Self {
        Self { core: core.into_iter().map(|core| (core.name(), core)).collect(), templates: Vec::new() }
    }

    /// Adds types of templates. Messages list them in this order.
    #[must_use]
    pub fn with_templates(mut self, templates: impl IntoIterator<Item = TemplateType>) -> Self {
        self.templates.extend(templates);
        self
    }

    /// Returns a core type by name.
    pub fn get(&self, name: &str) -> Option<&CoreType> {
        self.core.get(name)
    }

    /// Returns all core types, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &CoreType> {
        self.core.values()
    }

    /// Returns the names of the core types, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.core.keys().copied()
    }

    /// Returns all types of templates, in the order in which they were added.
    pub fn templates(&self) -> &[TemplateType] {
        &self.templates
    }

    /// Returns a type of templates by name.
    pub fn template(&self, name: &str) -> Option<&TemplateType> {
        self.templates.iter().find(|template| template.name() == name)
    }
}
