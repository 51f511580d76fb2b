//! Graph of a recipe: the resources that a core type registers, and the functions that it calls, as values.

use std::collections::BTreeMap;

use config::diagnostics::{Diagnostic, Span};
use config::types::TextHandle;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use serde_json::Value;

use super::core_resource::Package;
use super::hole::{Handle, Hole, HoleSource, Template};
use super::place::Place;
use super::resolved::ResolvedValue;

/// Resources, functions and exports of one core resource, which a function of its type adds in the order in which they
/// start where several could. The function is pure: the same `config` leads to the same recipe.
pub struct Recipe<'r> {
    place: Place<'r>,
    /// Texts of the `config` with their positions, by index of their handle.
    config_texts: Vec<(ResolvedValue, Span)>,
    pub(super) nodes: Vec<Node>,
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

/// Function that adds to a recipe what needs a value.
type Continue<'r> = dyn FnOnce(&PropertyValue, &mut Recipe<'r>) + Send + Sync + 'r;

/// Text that is made of other values.
pub(super) struct Text<'r> {
    pub(super) parts: Vec<Hole>,
    pub(super) make: Box<MakeText<'r>>,
}

/// Part of a recipe that needs a value.
pub(super) struct Continuation<'r> {
    pub(super) value: Hole,
    pub(super) build: Box<Continue<'r>>,
}

/// Effect of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// Registers a provider.
    Provider,
    /// Registers a custom resource.
    Resource,
    /// Calls a function. It has no name.
    Function,
}

/// Node of the graph. Methods set its options.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) kind: NodeKind,
    pub(super) token: String,
    pub(super) name: String,
    pub(super) package: Package,
    pub(super) inputs: Value,
    /// Inputs with holes, once the node is added.
    pub(super) templates: Vec<(String, Template)>,
    pub(super) provider: Option<Handle>,
    pub(super) after: Vec<Handle>,
    pub(super) ignore_changes: Vec<String>,
    pub(super) import_id: Option<ResourceId>,
}

impl Node {
    fn new(kind: NodeKind, token: &str, name: &str, package: Package, inputs: Value) -> Self {
        Self {
            kind,
            token: token.to_owned(),
            name: name.to_owned(),
            package,
            inputs,
            templates: Vec::new(),
            provider: None,
            after: Vec::new(),
            ignore_changes: Vec::new(),
            import_id: None,
        }
    }

    /// Makes the resource depend on others.
    #[must_use]
    pub fn after(mut self, others: impl IntoIterator<Item = Handle>) -> Self {
        self.after.extend(others);
        self
    }

    /// Ignores changes of inputs.
    #[must_use]
    pub fn ignore_changes<'p>(mut self, paths: impl IntoIterator<Item = &'p str>) -> Self {
        self.ignore_changes.extend(paths.into_iter().map(str::to_owned));
        self
    }

    /// Imports the existing resource with this id.
    #[must_use]
    pub fn import(mut self, id: &str) -> Self {
        self.import_id = ResourceId::new(id);
        self
    }

    /// Returns the handles of the nodes that have to be registered first.
    pub(super) fn dependencies(&self, recipe: &Recipe<'_>) -> Vec<Handle> {
        let mut holes = Vec::new();
        self.templates.iter().for_each(|(_, template)| template.collect_holes(&mut holes));
        let in_inputs = holes.into_iter().flat_map(|hole| recipe.sources(hole));
        in_inputs.chain(self.provider).chain(self.after.iter().copied()).collect()
    }
}

/// Provider of the resources and functions of a recipe.
#[derive(Clone, Copy, Debug)]
pub struct Provider {
    handle: Handle,
    package: Package,
}

impl Provider {
    /// Returns the node of a custom resource with its token, its name and its inputs.
    pub fn resource(self, token: &str, name: &str, inputs: Value) -> Node {
        Node { provider: Some(self.handle), ..Node::new(NodeKind::Resource, token, name, self.package, inputs) }
    }

    /// Returns the node of a call of a function with its token and its arguments.
    pub fn function(self, token: &str, arguments: Value) -> Node {
        Node { provider: Some(self.handle), ..Node::new(NodeKind::Function, token, "", self.package, arguments) }
    }
}

impl<'r> Recipe<'r> {
    pub(super) fn new(place: Place<'r>, config_texts: Vec<(ResolvedValue, Span)>) -> Self {
        Self {
            place,
            config_texts,
            nodes: Vec::new(),
            values: Vec::new(),
            texts: Vec::new(),
            continuations: Vec::new(),
            exports: Vec::new(),
            outputs: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    /// Adds the provider of the resources of the core resource, with its inputs.
    pub fn provider(&mut self, package: Package, inputs: Value) -> Provider {
        let token = format!("pulumi:providers:{}", package.name);
        let node = Node::new(NodeKind::Provider, &token, &self.place.provider_name(), package, inputs);
        Provider { handle: self.add(node), package }
    }

    /// Adds a node.
    pub fn add(&mut self, mut node: Node) -> Handle {
        node.templates = self.members(&std::mem::take(&mut node.inputs)).collect();
        self.nodes.push(node);
        Handle(self.nodes.len() - 1)
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
        self.continuations.push(Continuation { value, build: Box::new(build) });
    }

    /// Exports the members of an object as outputs of the stack, as `<base>-<member>`.
    pub fn export(&mut self, base: &str, values: Value) {
        let values = self.members(&values);
        self.exports.extend(values.map(|(suffix, value)| (format!("{base}-{suffix}"), value)));
    }

    /// Publishes the members of an object for `${resource:KEY.…}`.
    pub fn publish(&mut self, values: Value) {
        let values = self.members(&values);
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
    fn members(&mut self, object: &Value) -> impl Iterator<Item = (String, Template)> + use<> {
        let template = Template::read(object, &mut |handle| {
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
        let resolved = match &hole.source {
            HoleSource::Value(index) => self.values[*index].clone(),
            HoleSource::Text(index) => {
                let text = &self.texts[*index];
                let parts = text.parts.iter().map(|part| self.resolve(part, computed));
                ResolvedValue::from_texts(&parts.collect::<Result<Vec<_>, _>>()?, &text.make)?
            }
            source => computed(source),
        };
        Ok(if hole.secret { resolved.secret() } else { resolved })
    }

    /// Returns the nodes that a hole needs.
    pub(super) fn sources(&self, hole: &Hole) -> Vec<Handle> {
        match &hole.source {
            HoleSource::Id(handle) | HoleSource::Output(handle, _) => vec![*handle],
            HoleSource::Value(_) => Vec::new(),
            HoleSource::Text(index) => self.texts[*index].parts.iter().flat_map(|part| self.sources(part)).collect(),
        }
    }
}
