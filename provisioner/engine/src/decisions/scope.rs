//! Which resources a run may touch: targets and excludes (engine semantics, section 2.16).

use hashbrown::HashSet;
use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};

use state::{EntryId, ResourceState};

use crate::entry::Entry;

/// What the user said about which resources to touch. Nothing said: all of them.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Touch only these; they win over excludes.
    pub targets: Vec<UrnPattern>,
    /// Touch all but these.
    pub excludes: Vec<UrnPattern>,
    /// Also what depends on a target.
    pub target_dependents: bool,
    /// Neither what depends on an excluded one.
    pub exclude_dependents: bool,
}

/// What a user calls resources: a URN or a pattern of URNs, in which `*` stands for anything within a part between
/// colons and `**` for anything at all; or the name of a resource, in which `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrnPattern {
    text: String,
    /// It is held against names.
    is_name: bool,
}

impl UrnPattern {
    /// Takes any text: what matches nothing is reported by the run. What begins as a URN, or has parts as one, is held
    /// against URNs.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let is_name = !text.starts_with("urn:") && !text.contains("::");
        Self { text, is_name }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it stands for nothing but itself, so that it must be there.
    pub fn is_literal(&self) -> bool {
        !self.text.contains('*')
    }

    /// Whether a URN matches.
    pub fn matches(&self, urn: &Urn) -> bool {
        let subject = if self.is_name { urn.name() } else { urn.as_str() };
        if self.is_literal() {
            return self.text == subject;
        }
        // Names have no parts that a star could stay within.
        let text = if self.is_name { self.text.replace('*', "**") } else { self.text.clone() };
        glob(text.as_bytes(), subject.as_bytes())
    }
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=text.len()).any(|skip| glob(rest, &text[skip..])),
        [b'*', rest @ ..] => {
            let part = text.iter().position(|byte| *byte == b':').unwrap_or(text.len());
            (0..=part).any(|skip| glob(rest, &text[skip..]))
        }
        [first, rest @ ..] => text.first() == Some(first) && glob(rest, &text[1..]),
    }
}

impl Scope {
    /// The same without what must be there and is not: for a run that comes before the one that makes it. `None`: only
    /// such things were to be touched.
    pub fn among<'u>(&self, urns: impl Iterator<Item = &'u Urn> + Clone) -> Option<Self> {
        let known = |patterns: &[UrnPattern]| -> Vec<UrnPattern> {
            let is_there =
                |pattern: &&UrnPattern| !pattern.is_literal() || urns.clone().any(|urn| pattern.matches(urn));
            patterns.iter().filter(is_there).cloned().collect()
        };
        let scope = Self { targets: known(&self.targets), excludes: known(&self.excludes), ..*self };
        (self.targets.is_empty() || !scope.targets.is_empty()).then_some(scope)
    }

    /// Whether everything may be touched.
    pub(crate) fn is_everything(&self) -> bool {
        self.targets.is_empty() && self.excludes.is_empty()
    }

    /// Whether only targets may be touched.
    pub(crate) fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Whether a URN is named as a target.
    pub(crate) fn targets(&self, urn: &Urn) -> bool {
        self.targets.iter().any(|pattern| pattern.matches(urn))
    }

    /// Whether a URN is named as excluded.
    pub(crate) fn excludes(&self, urn: &Urn) -> bool {
        self.excludes.iter().any(|pattern| pattern.matches(urn))
    }

    /// Whether targets keep something from being deleted although it hangs on one of them.
    pub(crate) fn spares(&self, urn: &Urn) -> bool {
        self.has_targets() && !self.target_dependents && !self.targets(urn)
    }

    /// What deleting the targets takes along, as far as the snapshot tells.
    pub(crate) fn reach<'a>(&self, snapshot: &'a [Entry]) -> Reach<'a> {
        let mut reach = Reach { allowed: HashSet::new(), roots: Vec::new() };
        let mut urns: HashSet<&Urn> = HashSet::new();
        for entry in snapshot {
            let (id, state) = entry;
            let named = self.targets(&state.urn);
            if named || state.provider_and_references().any(|urn| urns.contains(urn)) {
                urns.insert(&state.urn);
                reach.allowed.insert(*id);
                if !state.delete {
                    reach.roots.push(entry);
                }
            }
        }
        reach
    }

    /// Whether a resource may be touched. `marked` remembers who was named, or hangs on somebody who was: with targets
    /// those that may be touched, with excludes those that may not. Ask in an order in which dependencies come first.
    pub(crate) fn admits(&self, state: &ResourceState, marked: &mut HashSet<Urn>) -> bool {
        let is_marked = self.marks(state, state.provider_and_references(), marked);
        if is_marked {
            marked.insert(state.urn.clone());
        }
        let always = state.is_provider() || state.type_token.as_str() == ROOT_STACK_TYPE;
        always || is_marked == self.has_targets()
    }

    /// Whether an entry may be read before anything else: nothing is without having been named, and who serves it does not
    /// matter. `marked` as above.
    pub(crate) fn admits_reading(&self, state: &ResourceState, marked: &mut HashSet<Urn>) -> bool {
        let is_marked = self.marks(state, state.references(), marked);
        if is_marked {
            marked.insert(state.urn.clone());
        }
        is_marked == self.has_targets()
    }

    /// Whether the entry of a registration may be read: nothing is without having been named, either. `marked` as above.
    pub(crate) fn admits_rereading(&self, state: &ResourceState, marked: &HashSet<Urn>) -> bool {
        self.marks(state, state.provider_and_references(), marked) == self.has_targets()
    }

    fn marks<'s>(
        &self,
        state: &ResourceState,
        mut hangs_on: impl Iterator<Item = &'s Urn>,
        marked: &HashSet<Urn>,
    ) -> bool {
        let names = |urn: &Urn| if self.has_targets() { self.targets(urn) } else { self.excludes(urn) };
        let follow = if self.has_targets() { self.target_dependents } else { self.exclude_dependents };
        names(&state.urn) || (follow && hangs_on.any(|urn| marked.contains(urn) || names(urn)))
    }
}

/// What deleting targets comes to.
#[derive(Debug)]
pub(crate) struct Reach<'a> {
    /// The targets and everything that hangs on them, however loosely.
    pub(crate) allowed: HashSet<EntryId>,
    /// Whose dependents are to be asked whether they can live without them, as in a replacement.
    pub(crate) roots: Vec<&'a Entry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_within_a_part_and_double_stars_cross_them() {
        let urn: Urn = "urn:pulumi:dev::p::a:b:C$d:e:F::one".parse().unwrap();
        for (pattern, expected) in [
            ("urn:pulumi:dev::p::a:b:C$d:e:F::one", true),
            ("**::one", true),
            ("urn:pulumi:dev::p::a:b:C$d:e:F::*", true),
            ("urn:pulumi:*::p::**", true),
            ("*::one", false),
            ("urn:pulumi:*::one", false),
            ("**one*", true),
            ("**two", false),
            ("one", true),
            ("o*", true),
            ("*", true),
            ("on", false),
            ("o**", true),
            ("urn:*one", false),
            ("b", false),
        ] {
            assert_eq!(UrnPattern::new(pattern).matches(&urn), expected, "{pattern}");
        }
    }
}
