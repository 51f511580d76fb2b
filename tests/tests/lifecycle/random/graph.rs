//! Random graphs: the resources of a stack in two versions, and their programs.

use std::time::Duration;

use proptest::prelude::*;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use crate::fake_cloud::{NAMED, REFRESH_BEFORE_UPDATE, SPELLING, UNKNOWN_DIFF, VIEWS};
use crate::invariants::secret_text;
use crate::program::{ProgramResource, component, get, provider, remote_component, resource};

/// Resources of a stack in two versions.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) resources: Vec<GraphResource>,
    /// Accounts of the providers `p` and `q`: the key, and its values in both versions. Another account replaces the
    /// provider, with `d` before the new one is created.
    providers: [(&'static str, [u8; 2]); 2],
    /// Tokens of the providers in both versions. Another token updates the providers.
    tokens: [u8; 2],
    /// True if `p` has another name in the second version, with an alias.
    provider_renamed: bool,
    /// False if no resource takes an existing one of its name or its id over.
    pub(super) has_names: bool,
    /// True if dependencies are reversed in the second version.
    reversed: bool,
}

/// Resource in two versions. The kind of a resource never changes, but it may be read in one version and managed in the
/// other.
#[derive(Clone, Debug)]
pub(super) struct GraphResource {
    kind: Kind,
    before: Definition,
    /// Definition in the second version; `None`: that of the first.
    after: Option<Definition>,
    alias_form: AliasForm,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Custom,
    Component,
    RemoteComponent,
}

/// Alias with which the program refers to the resource's URN in the other version.
#[derive(Clone, Copy, Debug)]
enum AliasForm {
    Urn,
    Spec,
    Missing,
}

/// Resource in one version.
#[derive(Clone, Debug)]
struct Definition {
    absent: bool,
    /// Key of the input; `value` is its value.
    key: &'static str,
    value: u8,
    /// References, each with its kind. Numbers select resources before this one, modulo their count.
    edges: Vec<(u8, Edge)>,
    parent: Option<u8>,
    provider: Option<&'static str>,
    renamed: bool,
    retyped: bool,
    options: Vec<ResourceOption>,
}

#[derive(Clone, Copy, Debug)]
enum Edge {
    Input(&'static str),
    DependsOn,
    ReplaceWith,
    DeletedWith,
}

/// Option of a resource.
#[derive(Clone, Copy, Debug)]
enum ResourceOption {
    Protect,
    RetainOnDelete,
    /// The resource is imported: one that was found, or one that the stack itself created; by another spelling of its id.
    Import {
        own: bool,
        spelled: bool,
    },
    /// Create takes an existing resource of the same name over.
    Named,
    /// The resource is read: an existing one, or one that the stack itself created.
    Get {
        own: bool,
    },
    IgnoreChanges,
    ReplaceOnChanges(&'static str),
    Trigger(u8),
    DeleteBeforeReplace(bool),
    Secret,
    Timeouts,
    RefreshBeforeUpdate,
    UnknownDiff,
    Version,
    /// Views that the provider publishes, by name.
    Views(&'static [&'static str]),
}

fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("v"), Just("k"), Just("d")]
}

fn resource_option() -> impl Strategy<Value = ResourceOption> {
    prop_oneof![
        Just(ResourceOption::Timeouts),
        Just(ResourceOption::Secret),
        Just(ResourceOption::UnknownDiff),
        Just(ResourceOption::RefreshBeforeUpdate),
        Just(ResourceOption::Version),
        prop_oneof![Just(&["x"][..]), Just(&["x", "y"][..]), Just(&["y"][..])].prop_map(ResourceOption::Views),
        Just(ResourceOption::IgnoreChanges),
        prop_oneof![Just("v"), Just("v1"), Just("*")].prop_map(ResourceOption::ReplaceOnChanges),
        (0..2u8).prop_map(ResourceOption::Trigger),
        any::<bool>().prop_map(ResourceOption::DeleteBeforeReplace),
        Just(ResourceOption::RetainOnDelete),
        Just(ResourceOption::Protect),
        any::<[bool; 2]>().prop_map(|[own, spelled]| ResourceOption::Import { own, spelled }),
        Just(ResourceOption::Named),
        any::<bool>().prop_map(|own| ResourceOption::Get { own }),
    ]
}

fn definition() -> impl Strategy<Value = Definition> {
    let edge = prop_oneof![
        6 => prop_oneof![Just("v1"), Just("k1"), Just("d1")].prop_map(Edge::Input),
        4 => Just(Edge::DependsOn),
        2 => Just(Edge::ReplaceWith),
        2 => Just(Edge::DeletedWith),
    ];
    let options = prop_oneof![3 => Just(0), 2 => Just(1), 1 => Just(2)];
    (
        (prop::bool::weighted(0.15), key(), 0..3u8, prop::collection::vec((any::<u8>(), edge), 0..3)),
        (prop::option::weighted(0.2, any::<u8>()), prop::option::weighted(0.25, prop_oneof![Just("p"), Just("q")])),
        (prop::bool::weighted(0.15), prop::bool::weighted(0.07)),
        options.prop_flat_map(|many| prop::collection::vec(resource_option(), many)),
    )
        .prop_map(|((absent, key, value, edges), (parent, provider), (renamed, retyped), options)| Definition {
            absent,
            key,
            value,
            edges,
            parent,
            provider,
            renamed,
            retyped,
            options,
        })
}

fn graph_resource() -> impl Strategy<Value = GraphResource> {
    let kind = prop_oneof![20 => Just(Kind::Custom), 3 => Just(Kind::Component), 1 => Just(Kind::RemoteComponent)];
    let alias_form = prop_oneof![4 => Just(AliasForm::Urn), 4 => Just(AliasForm::Spec), 1 => Just(AliasForm::Missing)];
    (kind, definition(), prop::option::weighted(0.6, definition()), alias_form)
        .prop_map(|(kind, before, after, alias_form)| GraphResource { kind, before, after, alias_form })
}

/// Generates mostly small graphs: a failure with forty resources also occurs with four.
pub(super) fn graph() -> impl Strategy<Value = Graph> {
    let resources = prop_oneof![
        8 => prop::collection::vec(graph_resource(), 1..=4),
        11 => prop::collection::vec(graph_resource(), 3..=8),
        1 => prop::collection::vec(graph_resource(), 9..=40),
    ];
    let key = || prop_oneof![Just("kAccount"), Just("dAccount")];
    let provider = || (key(), [0..2u8, 0..2u8]);
    let providers = ([provider(), provider()], [0..2u8, 0..2u8]);
    (resources, providers, prop::bool::weighted(0.1), prop::bool::weighted(0.1)).prop_map(
        |(resources, (providers, tokens), provider_renamed, reversed)| Graph {
            resources,
            providers,
            tokens,
            provider_renamed,
            has_names: true,
            reversed,
        },
    )
}

/// Version of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Before,
    After,
}

impl Version {
    fn other(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }
}

/// Restriction of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restriction {
    /// No restriction, so that the cloud or the engine may reject resources. Each run has its own ids to import: a
    /// resource that is imported again while its first entry is pending deletion is deleted, as the program requested.
    Unrestricted { run: usize },
    /// No options that the cloud or the engine may reject: no protection, no imports, no reads of resources that may be
    /// missing.
    AlwaysAccepted,
}

/// Returns the default name of a resource, which is never that of a provider.
pub(super) fn name(index: usize) -> String {
    let letters = "abcdefghijklmnorstuvwxyz";
    let at = index % letters.len();
    let letter = &letters[at..=at];
    if index < letters.len() { letter.to_owned() } else { format!("z{letter}") }
}

/// Returns the ids of the resources that a run can import.
pub(super) fn importable(graph: &Graph, run: usize) -> impl Iterator<Item = String> {
    (0..graph.resources.len()).map(move |index| format!("found-{}-{run}", name(index)))
}

/// Returns the ids of the resources that can be read.
pub(super) fn readable(graph: &Graph) -> impl Iterator<Item = String> {
    (0..graph.resources.len()).map(|index| format!("there-{}", name(index)))
}

impl Graph {
    fn definition(&self, index: usize, version: Version) -> &Definition {
        let GraphResource { before, after, .. } = &self.resources[index];
        if version == Version::After { after.as_ref().unwrap_or(before) } else { before }
    }

    fn name(&self, index: usize, version: Version) -> String {
        let renamed = self.definition(index, version).renamed;
        if renamed { format!("{}2", name(index)) } else { name(index) }
    }

    fn is_present(&self, index: usize, version: Version) -> bool {
        !self.definition(index, version).absent
    }

    /// Returns whether a resource may be read or imported under the id that it was created with. An id of one type names no
    /// object of another type.
    fn can_name_own(&self, index: usize) -> bool {
        let is_retyped = |version| self.definition(index, version).retyped;
        self.has_names && is_retyped(Version::Before) == is_retyped(Version::After)
    }

    /// Returns the resource that a number selects: one before the given resource, or after it if the graph is reversed.
    fn target(&self, index: usize, number: u8, version: Version) -> Option<usize> {
        let number = usize::from(number);
        let target = if self.reversed && version == Version::After {
            let following = self.resources.len() - index - 1;
            (following > 0).then(|| index + 1 + number % following)
        } else {
            (index > 0).then(|| number % index)
        };
        target.filter(|target| self.is_present(*target, version))
    }

    fn parent(&self, index: usize, version: Version) -> Option<usize> {
        let parent = self.target(index, self.definition(index, version).parent?, version)?;
        let is_read =
            self.definition(parent, version).options.iter().any(|option| matches!(option, ResourceOption::Get { .. }));
        (!is_read || self.resources[parent].kind != Kind::Custom).then_some(parent)
    }

    fn bare_resource(&self, index: usize, version: Version) -> ProgramResource {
        let name = self.name(index, version);
        let resource = match self.resources[index].kind {
            Kind::Custom => resource(&name),
            Kind::Component => component(&name),
            Kind::RemoteComponent => return remote_component(&name),
        };
        if self.definition(index, version).retyped { resource.of_type("OtherThing") } else { resource }
    }

    fn urn(&self, index: usize, version: Version) -> Urn {
        let parent = self.parent(index, version).map(|parent| self.urn(parent, version));
        self.bare_resource(index, version).urn_within(parent.as_ref())
    }

    fn provider_name(&self, name: &'static str, version: Version) -> &'static str {
        if name == "p" && self.provider_renamed && version == Version::After { "p2" } else { name }
    }

    /// Returns whether a resource has one of both providers.
    pub(super) fn uses_providers(&self) -> bool {
        let definitions = self.resources.iter().flat_map(|resource| resource.after.iter().chain([&resource.before]));
        definitions.into_iter().any(|definition| definition.provider.is_some())
    }

    /// Returns whether both providers may have one account. The engine takes them for providers of two accounts once only
    /// their tokens differ, so then they have none.
    fn share_account(&self) -> bool {
        let [(key, values), (other, others)] = &self.providers;
        key == other && values.iter().any(|value| others.contains(value))
    }

    /// Returns the program of a version.
    pub(super) fn program(&self, version: Version, restriction: Restriction) -> Vec<ProgramResource> {
        let providers = ["p", "q"].iter().zip(&self.providers).map(|(name, (key, values))| {
            let is_renamed = *name == "p" && self.provider_renamed;
            // The resources of a renamed provider stay as they are, as in Pulumi, so its account stays, too.
            let value = values[if is_renamed { Version::Before } else { version } as usize];
            let resource = provider(self.provider_name(name, version)).input(key, f64::from(value));
            let token = (!self.share_account()).then(|| f64::from(self.tokens[version as usize]));
            let resource = token.into_iter().fold(resource, |resource, token| resource.input("vToken", token));
            if is_renamed { resource.alias(self.provider_name(name, version.other())) } else { resource }
        });
        let resources = (0..self.resources.len()).filter(|index| self.is_present(*index, version));
        providers.chain(resources.map(|index| self.resource(index, version, restriction))).collect()
    }

    fn resource(&self, index: usize, version: Version, restriction: Restriction) -> ProgramResource {
        let (definition, kind) = (self.definition(index, version), self.resources[index].kind);
        let mut resource = self.bare_resource(index, version);
        if kind == Kind::Custom
            && let Some(ResourceOption::Get { own }) =
                definition.options.iter().find(|option| matches!(option, ResourceOption::Get { .. }))
        {
            let name = self.name(index, version);
            let id = if *own && self.can_name_own(index) && restriction != Restriction::AlwaysAccepted {
                format!("{name}-1")
            } else {
                format!("there-{}", self::name(index))
            };
            resource = get(&name, &id).of_type(if definition.retyped { "OtherThing" } else { "Thing" });
            for (number, edge) in &definition.edges {
                let target = self.target(index, *number, version).filter(|_| !matches!(edge, Edge::DeletedWith));
                resource = target
                    .into_iter()
                    .fold(resource, |resource, target| resource.depends_on(&self.name(target, version)));
            }
            return definition
                .provider
                .into_iter()
                .fold(resource, |resource, provider| resource.provider(self.provider_name(provider, version)));
        }
        let value = PropertyValue::from(f64::from(definition.value));
        let secret = definition.options.iter().any(|option| matches!(option, ResourceOption::Secret));
        resource = resource.input(definition.key, if secret { PropertyValue::secret(value) } else { value });
        for (number, edge) in &definition.edges {
            let Some(target) = self.target(index, *number, version) else { continue };
            let target_name = self.name(target, version);
            let has_component = kind != Kind::Custom || self.resources[target].kind != Kind::Custom;
            resource = match edge {
                Edge::Input(key) if !has_component => resource.input_from(key, &target_name),
                Edge::ReplaceWith if kind == Kind::Custom => resource.replace_with(&target_name),
                Edge::DeletedWith if kind != Kind::RemoteComponent => resource.deleted_with(&target_name),
                Edge::Input(_) | Edge::DependsOn | Edge::ReplaceWith | Edge::DeletedWith => {
                    resource.depends_on(&target_name)
                }
            };
        }
        let parent = self.parent(index, version);
        resource = parent.into_iter().fold(resource, |resource, parent| resource.parent(&self.name(parent, version)));
        if kind == Kind::Custom {
            resource = definition
                .provider
                .into_iter()
                .fold(resource, |resource, provider| resource.provider(self.provider_name(provider, version)));
        }
        resource = self.with_alias(resource, index, version);
        if kind == Kind::RemoteComponent {
            return resource;
        }
        let is_restricted = restriction == Restriction::AlwaysAccepted;
        definition.options.iter().fold(resource, |resource, option| match option {
            ResourceOption::Protect | ResourceOption::Import { .. } if is_restricted => resource,
            ResourceOption::Protect => resource.edit_goal_as("protected", |goal| goal.protect = Some(true)),
            ResourceOption::RetainOnDelete => {
                resource.edit_goal_as("retained", |goal| goal.retain_on_delete = Some(true))
            }
            _ if kind == Kind::Component => resource,
            ResourceOption::Import { own, spelled } => {
                let run = if let Restriction::Unrestricted { run } = restriction { run } else { 0 };
                let is_own = *own && self.can_name_own(index);
                let id = if is_own { format!("{}-1", name(index)) } else { format!("found-{}-{run}", name(index)) };
                let id = format!("{}{id}", if *spelled { SPELLING } else { "" });
                resource
                    .edit_goal_as(&format!("imports {id}"), move |goal| goal.import_id = ResourceId::new(id.as_str()))
            }
            ResourceOption::Views(views) => {
                let names = views.iter().map(|view| format!("{}.{view}", name(index)));
                resource.input(VIEWS, names.collect::<Vec<_>>().join(","))
            }
            option => self.with_option(resource, index, definition, *option),
        })
    }

    fn with_option(
        &self,
        resource: ProgramResource,
        index: usize,
        definition: &Definition,
        option: ResourceOption,
    ) -> ProgramResource {
        let key = definition.key;
        match option {
            ResourceOption::Protect
            | ResourceOption::RetainOnDelete
            | ResourceOption::Import { .. }
            | ResourceOption::Get { .. }
            | ResourceOption::Views(_) => resource,
            ResourceOption::IgnoreChanges => {
                resource.edit_goal_as("ignores changes", move |goal| goal.ignore_changes = vec![key.to_owned()])
            }
            ResourceOption::ReplaceOnChanges(path) => {
                resource.edit_goal_as(&format!("replaces on {path}"), move |goal| {
                    goal.replace_on_changes = vec![path.to_owned()];
                })
            }
            ResourceOption::Trigger(trigger) => resource.edit_goal_as(&format!("trigger {trigger}"), move |goal| {
                goal.replacement_trigger = Some(f64::from(trigger).into());
            }),
            ResourceOption::DeleteBeforeReplace(first) => {
                resource.edit_goal_as(&format!("delete first: {first}"), move |goal| {
                    goal.delete_before_replace = Some(first);
                })
            }
            ResourceOption::Secret => {
                let token = || PropertyValue::secret(secret_text("token").into());
                let nested = PropertyMap::from([("token".to_owned(), token()), ("plain".to_owned(), "x".into())]);
                let resource = resource.input("token", token()).input("vMap", nested).input("vList", vec![token()]);
                resource.edit_goal_as("secret", move |goal| {
                    goal.additional_secret_outputs = vec![key.to_owned(), "id".to_owned()];
                })
            }
            ResourceOption::Timeouts => {
                resource.edit_goal_as("timeouts", |goal| goal.custom_timeouts.create = Some(Duration::from_secs(60)))
            }
            ResourceOption::Named if !self.has_names => resource,
            ResourceOption::Named => resource.input(NAMED, format!("named-{}", name(index))),
            ResourceOption::RefreshBeforeUpdate => resource.input(REFRESH_BEFORE_UPDATE, true),
            ResourceOption::UnknownDiff => resource.input(UNKNOWN_DIFF, true),
            ResourceOption::Version => {
                resource.edit_goal_as("version 1.1.0", |goal| goal.version = Some("1.1.0".to_owned()))
            }
        }
    }

    /// Adds an alias for the URN in the other version.
    fn with_alias(&self, resource: ProgramResource, index: usize, version: Version) -> ProgramResource {
        let other = version.other();
        let other_urn = self.urn(index, other);
        if other_urn == self.urn(index, version) {
            return resource;
        }
        match self.resources[index].alias_form {
            AliasForm::Urn => resource.alias_urn(other_urn),
            AliasForm::Spec => {
                let parent = self.parent(index, other).map(|parent| self.urn(parent, other));
                let type_name = if self.definition(index, other).retyped { "OtherThing" } else { "Thing" };
                resource.alias_spec(&self.name(index, other), type_name, parent)
            }
            AliasForm::Missing => resource,
        }
    }
}
