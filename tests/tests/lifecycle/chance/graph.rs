//! Random graphs: the resources of a stack in two versions, and their programs.

use std::time::Duration;

use proptest::prelude::*;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use crate::program::{Thing, get, group, provider, remote, thing};
use crate::world::{FRESH, PARTS, VAGUE};

/// Resources of a stack in two versions.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) spots: Vec<Spot>,
    /// Configuration of the providers `p` and `q`: its key (`v` updates, `k` replaces, `d` replaces and deletes first),
    /// and its values in both versions.
    providers: [(&'static str, [u8; 2]); 2],
    /// True if `p` has another name in the second version, with an alias.
    provider_renamed: bool,
    /// True if dependencies are reversed in the second version.
    reversed: bool,
}

/// Resource in two versions. The kind of a resource never changes, but it may be read in one version and managed in the
/// other.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    kind: Kind,
    before: Form,
    /// Form in the second version; `None`: that of the first.
    after: Option<Form>,
    heir: Heir,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Thing,
    Group,
    Remote,
}

/// Alias with which the program refers to the resource's URN in the other version.
#[derive(Clone, Copy, Debug)]
enum Heir {
    Urn,
    Spec,
    Unsaid,
}

/// Resource in one version.
#[derive(Clone, Debug)]
struct Form {
    absent: bool,
    /// Key of the input; `value` is its value.
    key: &'static str,
    value: u8,
    /// References, each with its kind. Numbers select spots before this one, modulo their count.
    edges: Vec<(u8, Edge)>,
    parent: Option<u8>,
    by: Option<&'static str>,
    renamed: bool,
    retyped: bool,
    options: Vec<Choice>,
}

#[derive(Clone, Copy, Debug)]
enum Edge {
    Input(&'static str),
    After,
    ReplaceWith,
    DeletedWith,
}

/// Option of a resource.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Protect,
    Retain,
    Import,
    /// The resource is read: an existing one, or one that the stack itself created.
    Get {
        own: bool,
    },
    IgnoreChanges,
    ReplaceOnChanges(&'static str),
    Trigger(u8),
    DeleteFirst(bool),
    Secret,
    Timeouts,
    Fresh,
    Vague,
    Version,
    /// Parts that the provider shows as views.
    Parts(&'static [&'static str]),
}

fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("v"), Just("k"), Just("d")]
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        Just(Choice::Timeouts),
        Just(Choice::Secret),
        Just(Choice::Vague),
        Just(Choice::Fresh),
        Just(Choice::Version),
        prop_oneof![Just(&["x"][..]), Just(&["x", "y"][..]), Just(&["y"][..])].prop_map(Choice::Parts),
        Just(Choice::IgnoreChanges),
        prop_oneof![Just("v"), Just("v1"), Just("*")].prop_map(Choice::ReplaceOnChanges),
        (0..2u8).prop_map(Choice::Trigger),
        any::<bool>().prop_map(Choice::DeleteFirst),
        Just(Choice::Retain),
        Just(Choice::Protect),
        Just(Choice::Import),
        any::<bool>().prop_map(|own| Choice::Get { own }),
    ]
}

fn form() -> impl Strategy<Value = Form> {
    let edge = prop_oneof![
        6 => prop_oneof![Just("v1"), Just("k1"), Just("d1")].prop_map(Edge::Input),
        4 => Just(Edge::After),
        2 => Just(Edge::ReplaceWith),
        2 => Just(Edge::DeletedWith),
    ];
    let options = prop_oneof![3 => Just(0), 2 => Just(1), 1 => Just(2)];
    (
        (prop::bool::weighted(0.15), key(), 0..3u8, prop::collection::vec((any::<u8>(), edge), 0..3)),
        (prop::option::weighted(0.2, any::<u8>()), prop::option::weighted(0.25, prop_oneof![Just("p"), Just("q")])),
        (prop::bool::weighted(0.15), prop::bool::weighted(0.07)),
        options.prop_flat_map(|many| prop::collection::vec(choice(), many)),
    )
        .prop_map(|((absent, key, value, edges), (parent, by), (renamed, retyped), options)| Form {
            absent,
            key,
            value,
            edges,
            parent,
            by,
            renamed,
            retyped,
            options,
        })
}

fn spot() -> impl Strategy<Value = Spot> {
    let kind = prop_oneof![20 => Just(Kind::Thing), 3 => Just(Kind::Group), 1 => Just(Kind::Remote)];
    let heir = prop_oneof![4 => Just(Heir::Urn), 4 => Just(Heir::Spec), 1 => Just(Heir::Unsaid)];
    (kind, form(), prop::option::weighted(0.6, form()), heir).prop_map(|(kind, before, after, heir)| Spot {
        kind,
        before,
        after,
        heir,
    })
}

/// Generates mostly small graphs: a failure with forty resources also occurs with four.
pub(super) fn graph() -> impl Strategy<Value = Graph> {
    let spots = prop_oneof![
        8 => prop::collection::vec(spot(), 1..=4),
        11 => prop::collection::vec(spot(), 3..=8),
        1 => prop::collection::vec(spot(), 9..=40),
    ];
    let provider = || (key(), [0..2u8, 0..2u8]);
    (spots, [provider(), provider()], prop::bool::weighted(0.1), prop::bool::weighted(0.1)).prop_map(
        |(spots, providers, provider_renamed, reversed)| Graph { spots, providers, provider_renamed, reversed },
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
pub(super) enum Temper {
    /// No restriction, so that the cloud or the engine may refuse parts. Each act has ids of its own to import: a
    /// resource that is imported again while its first entry is pending deletion is deleted, as the program requested.
    Wild { act: usize },
    /// No parts that the cloud or the engine may refuse: no protection, no imports, no reads of resources that may be
    /// missing.
    Calm,
}

/// Returns the default name of a spot, which is never that of a provider.
pub(super) fn name(spot: usize) -> String {
    let letters = "abcdefghijklmnorstuvwxyz";
    let at = spot % letters.len();
    let letter = &letters[at..=at];
    if spot < letters.len() { letter.to_owned() } else { format!("z{letter}") }
}

/// Returns the ids of the resources that an act can import.
pub(super) fn importable(graph: &Graph, act: usize) -> impl Iterator<Item = String> {
    (0..graph.spots.len()).map(move |spot| format!("found-{}-{act}", name(spot)))
}

/// Returns the ids of the resources that can be read.
pub(super) fn readable(graph: &Graph) -> impl Iterator<Item = String> {
    (0..graph.spots.len()).map(|spot| format!("there-{}", name(spot)))
}

impl Graph {
    fn form(&self, spot: usize, version: Version) -> &Form {
        let Spot { before, after, .. } = &self.spots[spot];
        if version == Version::After { after.as_ref().unwrap_or(before) } else { before }
    }

    fn name(&self, spot: usize, version: Version) -> String {
        let renamed = self.form(spot, version).renamed;
        if renamed { format!("{}2", name(spot)) } else { name(spot) }
    }

    fn is_there(&self, spot: usize, version: Version) -> bool {
        !self.form(spot, version).absent
    }

    /// Returns the spot that a number selects: one before the given spot, or after it if the graph is reversed.
    fn target(&self, spot: usize, number: u8, version: Version) -> Option<usize> {
        let number = usize::from(number);
        let target = if self.reversed && version == Version::After {
            let behind = self.spots.len() - spot - 1;
            (behind > 0).then(|| spot + 1 + number % behind)
        } else {
            (spot > 0).then(|| number % spot)
        };
        target.filter(|target| self.is_there(*target, version))
    }

    fn parent(&self, spot: usize, version: Version) -> Option<usize> {
        let parent = self.target(spot, self.form(spot, version).parent?, version)?;
        let is_read = self.form(parent, version).options.iter().any(|option| matches!(option, Choice::Get { .. }));
        (!is_read || self.spots[parent].kind != Kind::Thing).then_some(parent)
    }

    fn plain(&self, spot: usize, version: Version) -> Thing {
        let name = self.name(spot, version);
        let made = match self.spots[spot].kind {
            Kind::Thing => thing(&name),
            Kind::Group => group(&name),
            Kind::Remote => return remote(&name),
        };
        if self.form(spot, version).retyped { made.of_type("OtherThing") } else { made }
    }

    fn urn(&self, spot: usize, version: Version) -> Urn {
        let parent = self.parent(spot, version).map(|parent| self.urn(parent, version));
        self.plain(spot, version).urn_within(parent.as_ref())
    }

    fn provider_name(&self, name: &'static str, version: Version) -> &'static str {
        if name == "p" && self.provider_renamed && version == Version::After { "p2" } else { name }
    }

    /// Returns the program of a version.
    pub(super) fn program(&self, version: Version, temper: Temper) -> Vec<Thing> {
        let providers = ["p", "q"].iter().zip(&self.providers).map(|(name, (key, values))| {
            let made = provider(self.provider_name(name, version)).with(key, f64::from(values[version as usize]));
            if *name == "p" && self.provider_renamed {
                made.was(self.provider_name(name, version.other()))
            } else {
                made
            }
        });
        let spots = (0..self.spots.len()).filter(|spot| self.is_there(*spot, version));
        providers.chain(spots.map(|spot| self.thing(spot, version, temper))).collect()
    }

    fn thing(&self, spot: usize, version: Version, temper: Temper) -> Thing {
        let (form, kind) = (self.form(spot, version), self.spots[spot].kind);
        let mut made = self.plain(spot, version);
        if kind == Kind::Thing
            && let Some(Choice::Get { own }) = form.options.iter().find(|option| matches!(option, Choice::Get { .. }))
        {
            let name = self.name(spot, version);
            let id = if *own && temper != Temper::Calm {
                format!("{name}-1")
            } else {
                format!("there-{}", self::name(spot))
            };
            made = get(&name, &id).of_type(if form.retyped { "OtherThing" } else { "Thing" });
            for (number, edge) in &form.edges {
                let target = self.target(spot, *number, version).filter(|_| !matches!(edge, Edge::DeletedWith));
                made = target.into_iter().fold(made, |made, target| made.after(&self.name(target, version)));
            }
            return form.by.into_iter().fold(made, |made, by| made.by(self.provider_name(by, version)));
        }
        let value = PropertyValue::from(f64::from(form.value));
        let secret = form.options.iter().any(|option| matches!(option, Choice::Secret));
        made = made.with(form.key, if secret { PropertyValue::secret(value) } else { value });
        for (number, edge) in &form.edges {
            let Some(target) = self.target(spot, *number, version) else { continue };
            let target_name = self.name(target, version);
            let groups = kind != Kind::Thing || self.spots[target].kind != Kind::Thing;
            made = match edge {
                Edge::Input(key) if !groups => made.of(key, &target_name),
                Edge::ReplaceWith if kind == Kind::Thing => made.replace_with(&target_name),
                Edge::DeletedWith if kind != Kind::Remote => made.deleted_with(&target_name),
                Edge::Input(_) | Edge::After | Edge::ReplaceWith | Edge::DeletedWith => made.after(&target_name),
            };
        }
        let parent = self.parent(spot, version);
        made = parent.into_iter().fold(made, |made, parent| made.within(&self.name(parent, version)));
        if kind == Kind::Thing {
            made = form.by.into_iter().fold(made, |made, by| made.by(self.provider_name(by, version)));
        }
        made = self.with_heirloom(made, spot, version);
        if kind == Kind::Remote {
            return made;
        }
        let calm = temper == Temper::Calm;
        form.options.iter().fold(made, |made, option| match option {
            Choice::Protect | Choice::Import if calm => made,
            Choice::Protect => made.but_marked("protected", |goal| goal.protect = Some(true)),
            Choice::Retain => made.but_marked("retained", |goal| goal.retain_on_delete = Some(true)),
            _ if kind == Kind::Group => made,
            Choice::Import => {
                let act = if let Temper::Wild { act } = temper { act } else { 0 };
                let id = format!("found-{}-{act}", name(spot));
                made.but_marked(&format!("imports {id}"), move |goal| goal.import_id = ResourceId::new(id.as_str()))
            }
            Choice::Parts(parts) => {
                let of_this = parts.iter().map(|part| format!("{}.{part}", name(spot)));
                made.with(PARTS, of_this.collect::<Vec<_>>().join(","))
            }
            option => self.with(made, form, *option),
        })
    }

    fn with(&self, made: Thing, form: &Form, option: Choice) -> Thing {
        let key = form.key;
        match option {
            Choice::Protect | Choice::Retain | Choice::Import | Choice::Get { .. } | Choice::Parts(_) => made,
            Choice::IgnoreChanges => {
                made.but_marked("ignores changes", move |goal| goal.ignore_changes = vec![key.to_owned()])
            }
            Choice::ReplaceOnChanges(path) => made.but_marked(&format!("replaces on {path}"), move |goal| {
                goal.replace_on_changes = vec![path.to_owned()];
            }),
            Choice::Trigger(trigger) => made.but_marked(&format!("trigger {trigger}"), move |goal| {
                goal.replacement_trigger = Some(f64::from(trigger).into());
            }),
            Choice::DeleteFirst(first) => made.but_marked(&format!("delete first: {first}"), move |goal| {
                goal.delete_before_replace = Some(first);
            }),
            Choice::Secret => made.but_marked("secret", move |goal| {
                goal.additional_secret_outputs = vec![key.to_owned(), "id".to_owned()]
            }),
            Choice::Timeouts => {
                made.but_marked("timeouts", |goal| goal.custom_timeouts.create = Some(Duration::from_secs(60)))
            }
            Choice::Fresh => made.with(FRESH, true),
            Choice::Vague => made.with(VAGUE, true),
            Choice::Version => made.but_marked("version 1.1.0", |goal| goal.version = Some("1.1.0".to_owned())),
        }
    }

    /// Adds an alias for the URN in the other version.
    fn with_heirloom(&self, made: Thing, spot: usize, version: Version) -> Thing {
        let other = version.other();
        let was = self.urn(spot, other);
        if was == self.urn(spot, version) {
            return made;
        }
        match self.spots[spot].heir {
            Heir::Urn => made.was_urn(was),
            Heir::Spec => {
                let parent = self.parent(spot, other).map(|parent| self.urn(parent, other));
                let type_name = if self.form(spot, other).retyped { "OtherThing" } else { "Thing" };
                made.was_all(&self.name(spot, other), type_name, parent)
            }
            Heir::Unsaid => made,
        }
    }
}
