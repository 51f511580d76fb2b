//! Graph of a recipe: the resources that a core type registers, and the functions that it calls, as values.

use std::collections::BTreeMap;

use config::diagnostics::{Code, Diagnostic, Span};
use config::types::{FreeValue, TextHandle};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;
use serde_json::Value;

use super::effects::GoogleApi;
use super::hole::{Handle, Hole, HoleSource, Nulls, Template};
use super::node::{Node, NodeKind, Provider};
use super::resolved::{ResolvedValue, distinct};
use super::resource_names::ResourceNames;
use crate::registry::packages::Package;

/// Resources, functions and exports of one core resource, which a function of its type adds in the order in which they
/// start where several could. The function is pure: the same `config` leads to the same recipe.
#[derive(Default)]
pub struct Recipe<'r> {
    place: ResourceNames<'r>,
    /// Texts of the `config` with their positions, by index of their handle.
    config_texts: Vec<(ResolvedValue, Span)>,
    pub(super) nodes: Vec<Node>,
    /// Effects that all nodes added later wait for.
    effects: Vec<Handle>,
    is_preview: bool,
    pub(super) values: Vec<ResolvedValue>,
    pub(super) texts: Vec<Text<'r>>,
    pub(super) continuations: Vec<Continuation<'r>>,
    /// Outputs of the stack.
    pub(super) exports: Vec<(String, Template)>,
    /// Values for references of other resources.
    pub(super) outputs: Vec<(String, Template)>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Function that makes a text of others, or says what is wrong with them.
type MakeText<'r> = dyn Fn(&[&str]) -> Result<String, String> + Send + Sync + 'r;

/// Function that adds to a recipe what needs values.
type Continue<'r> = dyn FnOnce(&[ResolvedValue], &mut Recipe<'r>) + Send + Sync + 'r;

/// Text that is made of other values.
pub(super) struct Text<'r> {
    pub(super) parts: Vec<Hole>,
    pub(super) make: Box<MakeText<'r>>,
}

/// Part of a recipe that needs values.
pub(super) struct Continuation<'r> {
    pub(super) values: Vec<Hole>,
    pub(super) build: Box<Continue<'r>>,
}

impl<'r> Recipe<'r> {
    pub(super) fn new(place: ResourceNames<'r>, config_texts: Vec<(ResolvedValue, Span)>, is_preview: bool) -> Self {
        Self { place, config_texts, is_preview, ..Self::default() }
    }

    /// Returns whether the run is a preview, in which the outputs of new and changed resources are unknown.
    pub fn is_preview(&self) -> bool {
        self.is_preview
    }

    /// Adds the provider of the resources of the core resource, with its inputs.
    pub fn provider(&mut self, package: Package, inputs: Value) -> Provider {
        self.named_provider(package, &self.place.provider_name(), inputs)
    }

    /// Adds another provider, with its name.
    pub fn named_provider(&mut self, package: Package, name: &str, inputs: Value) -> Provider {
        Provider::of(self.add(Node::provider(package, name, inputs)), package)
    }

    /// Adds a node. It waits for the effects that were added before it.
    pub fn add(&mut self, mut node: Node) -> Handle {
        let nulls = if node.kind == NodeKind::ComponentOutputs { Nulls::Keep } else { Nulls::LeaveOut };
        node.templates = self.members(&std::mem::take(&mut node.inputs), nulls).collect();
        node.after.extend(&self.effects);
        self.nodes.push(node);
        Handle(self.nodes.len() - 1)
    }

    /// Registers the members of an object as the outputs of a component.
    pub fn component_outputs(&mut self, component: Handle, outputs: Value) {
        self.add(Node::component_outputs(component, outputs));
    }

    /// Switches on an API of Google before anything that is added later. The account of `provider` does it.
    pub fn enable_google_api(&mut self, provider: Provider, api: GoogleApi) {
        let effect = self.add(Node::google_api(provider, api));
        self.effects.push(effect);
    }

    /// Returns a text that `make` makes of other texts. It is unknown as long as one of them is, and secret if one of
    /// them is.
    pub fn text<const N: usize>(
        &mut self,
        parts: [Hole; N],
        make: impl Fn([&str; N]) -> String + Send + Sync + 'r,
    ) -> Hole {
        self.try_text(parts, move |texts| Ok(make(texts)))
    }

    /// Returns a text as [`Recipe::text`]. An error of `make`, which says what is wrong with the parts, ends the recipe.
    pub fn try_text<const N: usize>(
        &mut self,
        parts: [Hole; N],
        make: impl Fn([&str; N]) -> Result<String, String> + Send + Sync + 'r,
    ) -> Hole {
        let make =
            move |texts: &[&str]| make(std::array::from_fn(|index| texts.get(index).copied().unwrap_or_default()));
        self.texts.push(Text { parts: parts.into(), make: Box::new(make) });
        Hole { source: HoleSource::Text(self.texts.len() - 1), secret: false }
    }

    /// Adds what `build` adds once a value is known. Nothing is added in a preview that leaves the value unknown.
    pub fn then(&mut self, value: Hole, build: impl FnOnce(&PropertyValue, &mut Self) + Send + Sync + 'r) {
        self.then_all(vec![value], move |values, r| {
            if let [ResolvedValue { value, .. }] = values {
                build(value, r);
            }
        });
    }

    fn then_all(&mut self, values: Vec<Hole>, build: impl FnOnce(&[ResolvedValue], &mut Self) + Send + Sync + 'r) {
        self.continuations.push(Continuation { values, build: Box::new(build) });
    }

    /// Adds what `build` adds once several texts are known. It must keep a secret text secret.
    pub fn then_texts<const N: usize>(
        &mut self,
        texts: [Hole; N],
        build: impl FnOnce([&str; N], &mut Self) + Send + Sync + 'r,
    ) {
        self.then_all(texts.into(), move |values, r| {
            let texts: Vec<_> = values.iter().map(|value| value.as_part_of_text().unwrap_or_default()).collect();
            build(std::array::from_fn(|index| texts.get(index).map_or("", |text| text)), r);
        });
    }

    /// Returns the packages of the nodes.
    pub(super) fn packages(&self) -> impl Iterator<Item = Package> {
        self.nodes.iter().filter_map(|node| node.package)
    }

    /// Exports the members of an object as outputs of the stack, as `<base>-<member>`. A later export replaces an earlier
    /// one of the same name.
    pub fn export(&mut self, base: &str, values: Value) {
        let values = self.members(&values, Nulls::LeaveOut);
        self.exports.extend(values.map(|(suffix, value)| (format!("{base}-{suffix}"), value)));
    }

    /// Exports an output of the stack.
    pub fn export_as(&mut self, name: &str, value: Value) {
        let values = self.members(&Value::Object([(name.to_owned(), value)].into_iter().collect()), Nulls::LeaveOut);
        self.exports.extend(values);
    }

    /// Publishes the members of an object for `${resource:KEY.…}`.
    pub fn publish(&mut self, values: Value) {
        let values = self.members(&values, Nulls::LeaveOut);
        self.outputs.extend(values);
    }

    /// Returns a text of the `config`; `None` if it is missing or empty.
    pub fn non_empty(&self, handle: Option<TextHandle>) -> Option<TextHandle> {
        handle.filter(|handle| self.config_text(*handle).exposed_text() != Some(""))
    }

    /// Returns a text of the `config`, with its secrets and references.
    pub fn config_text(&self, handle: TextHandle) -> &ResolvedValue {
        &self.config_texts[handle.index()].0
    }

    /// Returns a text of the `config`, or the default for a missing or an empty one.
    pub fn text_or(&mut self, handle: Option<TextHandle>, default: &str) -> Hole {
        let text = match self.non_empty(handle) {
            Some(handle) => self.config_text(handle).clone(),
            None => ResolvedValue::known(default),
        };
        self.value(text)
    }

    /// Returns a text of the `config`, which may be empty; `None` if it is missing.
    pub fn given(&mut self, handle: Option<TextHandle>) -> Option<Hole> {
        handle.map(|handle| self.text_or(Some(handle), ""))
    }

    /// Returns a text of the `config` for the id of an import, where it has to be known; empty if it is missing. Reports an
    /// error at a text that is not known yet.
    pub fn known(&mut self, handle: Option<TextHandle>) -> String {
        let Some(handle) = handle else { return String::new() };
        if let Some(text) = self.config_text(handle).exposed_text() {
            return text.to_owned();
        }
        let summary = "the value has to be known before the existing resource is imported";
        self.reject(handle, |span| {
            let error = Diagnostic::error(Code("core-type"), span, summary);
            error.help("write the value itself, or provision the resource that it refers to first")
        });
        String::new()
    }

    /// Returns a value of the `config` as a hole, with the secrets and references of its texts. Null members of mappings are
    /// left out, as SDKs do.
    pub fn free_value(&mut self, value: &FreeValue) -> Hole {
        let mut dependencies = Vec::new();
        let value = self.property_value(value, &mut dependencies);
        self.value(ResolvedValue { value, dependencies: distinct(dependencies) })
    }

    fn property_value(&self, value: &FreeValue, dependencies: &mut Vec<Urn>) -> PropertyValue {
        match value {
            FreeValue::Null => PropertyValue::Null,
            FreeValue::Bool(value) => (*value).into(),
            FreeValue::Number(value) => PropertyValue::Number(*value),
            FreeValue::Text(handle) => {
                let text = self.config_text(*handle);
                dependencies.extend(text.dependencies.iter().cloned());
                text.value.clone()
            }
            FreeValue::List(items) => {
                PropertyValue::List(items.iter().map(|item| self.property_value(item, dependencies)).collect())
            }
            FreeValue::Map(members) => {
                let members = members.iter().filter(|(_, value)| **value != FreeValue::Null);
                let members = members.map(|(key, value)| (key.clone(), self.property_value(value, dependencies)));
                PropertyValue::Map(members.collect())
            }
        }
    }

    /// Returns a known value, with its secrecy and its dependencies, as a hole.
    pub fn value(&mut self, value: ResolvedValue) -> Hole {
        self.values.push(value);
        Hole { source: HoleSource::Value(self.values.len() - 1), secret: false }
    }

    /// Returns the text of a value of the `config` or a default, if it is known. The caller must keep a secret text secret.
    pub fn known_text(&self, hole: &Hole) -> Option<&str> {
        match hole.source {
            HoleSource::Value(index) => self.values[index].exposed_text(),
            _ => None,
        }
    }

    /// Reports an error at a text of the `config`. Nothing of the recipe is registered then.
    pub fn reject(&mut self, handle: TextHandle, error: impl FnOnce(Span) -> Diagnostic) {
        let span = self.config_texts[handle.index()].1;
        self.diagnostics.push(error(span));
    }

    /// Reads the members of an object of JSON with holes.
    fn members(&mut self, object: &Value, nulls: Nulls) -> impl Iterator<Item = (String, Template)> + use<> {
        let template = Template::read(object, nulls, &mut |handle| {
            let text = self.config_text(handle).clone();
            match text.exposed_text() {
                Some("") => Template::Known(PropertyValue::Null),
                _ => Template::Hole(self.value(text)),
            }
        });
        let members = if let Template::Map(members) = template { members } else { BTreeMap::new() };
        members.into_iter()
    }

    /// Returns the value of a hole. `computed` returns that of an id or an output.
    ///
    /// # Errors
    /// Returns the error of a text that cannot be made of its parts.
    pub(super) fn resolve(
        &self,
        hole: &Hole,
        computed: &dyn Fn(&HoleSource) -> ResolvedValue,
    ) -> Result<ResolvedValue, String> {
        let resolved = self.resolve_source(&hole.source, computed)?;
        Ok(if hole.secret { resolved.secret() } else { resolved })
    }

    fn resolve_source(
        &self,
        source: &HoleSource,
        computed: &dyn Fn(&HoleSource) -> ResolvedValue,
    ) -> Result<ResolvedValue, String> {
        Ok(match source {
            HoleSource::Value(index) => self.values[*index].clone(),
            HoleSource::Text(index) => {
                let text = &self.texts[*index];
                let parts = text.parts.iter().map(|part| self.resolve(part, computed));
                ResolvedValue::from_texts(&parts.collect::<Result<Vec<_>, _>>()?, &text.make)?
            }
            HoleSource::Member(map, key) => self.resolve_source(map, computed)?.member(key),
            source => computed(source),
        })
    }

    /// Returns the nodes that have to be registered before a node.
    pub(super) fn dependencies(&self, node: &Node) -> Vec<Handle> {
        let mut holes: Vec<&Hole> = node.read_id.iter().collect();
        node.templates.iter().for_each(|(_, template)| template.collect_holes(&mut holes));
        let in_inputs = holes.into_iter().flat_map(|hole| self.nodes_of(&hole.source));
        let providers = node.providers.iter().map(|(_, handle)| *handle);
        let in_options =
            node.provider.into_iter().chain(providers).chain(node.parent).chain(node.after.iter().copied());
        in_inputs.chain(in_options).collect()
    }

    /// Returns the nodes that the source of a hole needs.
    pub(super) fn nodes_of(&self, source: &HoleSource) -> Vec<Handle> {
        match source {
            HoleSource::Id(handle) | HoleSource::Output(handle, _) | HoleSource::Reference(handle) => vec![*handle],
            HoleSource::Value(_) => Vec::new(),
            HoleSource::Text(index) => {
                self.texts[*index].parts.iter().flat_map(|part| self.nodes_of(&part.source)).collect()
            }
            HoleSource::Member(map, _) => self.nodes_of(map),
        }
    }
}
