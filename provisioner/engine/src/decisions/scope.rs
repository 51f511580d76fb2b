//! Scope of a run: targets and excludes (docs/spec/engine-semantics.md#2.16).

use std::collections::BTreeSet;

use hashbrown::HashSet;
use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};

use state::{Entry, EntryId, ResourceState};

/// Resources that a run may change. Without targets and excludes, it may change all of them.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Only these resources are in scope. Targets take precedence over excludes.
    pub targets: Vec<UrnPattern>,
    /// All resources but these are in scope.
    pub excludes: Vec<UrnPattern>,
    /// True if dependents of targets are in scope, too.
    pub target_dependents: bool,
    /// True if dependents of excluded resources are excluded, too.
    pub exclude_dependents: bool,
}

/// Pattern that selects resources. A pattern of URNs matches URNs: `*` matches any text within a part between colons,
/// `**` matches any text. `TYPE::NAME` matches the type and the name of a resource. Any other pattern matches names of
/// resources, and `*` matches any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrnPattern {
    text: String,
    subject: Subject,
}

/// Part of a URN that a pattern is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Urn,
    TypeAndName,
    Name,
}

impl UrnPattern {
    /// Creates a pattern from any text. A text that begins with `urn:`, or contains `::` and a star, matches URNs. The run
    /// reports an exclude, or a pattern without stars, that matches no resource.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let subject = match (text.starts_with("urn:"), text.contains("::")) {
            (true, _) => Subject::Urn,
            (false, true) if text.contains('*') => Subject::Urn,
            (false, true) => Subject::TypeAndName,
            (false, false) => Subject::Name,
        };
        Self { text, subject }
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern has no stars, so that a resource must match it.
    pub fn is_literal(&self) -> bool {
        !self.text.contains('*')
    }

    pub fn matches(&self, urn: &Urn) -> bool {
        match self.subject {
            Subject::Name => self.matches_name(urn.name()),
            Subject::TypeAndName => {
                self.text.strip_prefix(urn.type_token()).and_then(|rest| rest.strip_prefix("::")) == Some(urn.name())
            }
            Subject::Urn if self.is_literal() => self.text == urn.as_str(),
            Subject::Urn => glob(self.text.as_bytes(), urn.as_str().as_bytes()),
        }
    }

    /// Returns whether the pattern is one of names, and matches this name.
    pub fn matches_name(&self, name: &str) -> bool {
        match self.subject {
            Subject::Urn | Subject::TypeAndName => false,
            Subject::Name if self.is_literal() => self.text == name,
            // Names have no parts between colons, so a single star matches any text.
            Subject::Name => glob(self.text.replace('*', "**").as_bytes(), name.as_bytes()),
        }
    }
}

/// Returns the names, among those of the resources of a stack, that a key stands for: `KEY` for `KEY--ENV` in each environment, or
/// `ENV/KEY`. The name of a resource, which takes precedence over a key, is not considered.
pub fn names_of_key<'n>(key: &str, names: impl Iterator<Item = &'n str> + Clone) -> BTreeSet<&'n str> {
    let is_of_key = |name: &&str| name.rsplit_once("--").is_some_and(|(own, _)| own == key);
    let found: BTreeSet<&str> = names.clone().filter(is_of_key).collect();
    if !found.is_empty() {
        return found;
    }
    let in_environment = key.split_once('/').map(|(environment, key)| format!("{key}--{environment}"));
    names.filter(|name| in_environment.as_deref() == Some(name)).collect()
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
    /// Returns the scope without patterns that must match one of these URNs and do not, for a run that precedes the one
    /// that creates the resources. Returns `None` if the scope has targets and none of them is left.
    pub fn restricted_to<'u>(&self, urns: impl Iterator<Item = &'u Urn> + Clone) -> Option<Self> {
        let retained = |patterns: &[UrnPattern]| -> Vec<UrnPattern> {
            let can_match =
                |pattern: &&UrnPattern| !pattern.is_literal() || urns.clone().any(|urn| pattern.matches(urn));
            patterns.iter().filter(can_match).cloned().collect()
        };
        let scope = Self { targets: retained(&self.targets), excludes: retained(&self.excludes), ..*self };
        (self.targets.is_empty() || !scope.targets.is_empty()).then_some(scope)
    }

    /// Returns whether all resources are in scope.
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.targets.is_empty() && self.excludes.is_empty()
    }

    /// Returns whether only targets are in scope.
    pub(crate) fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    pub(crate) fn is_target(&self, urn: &Urn) -> bool {
        self.targets.iter().any(|pattern| pattern.matches(urn))
    }

    pub(crate) fn is_excluded(&self, urn: &Urn) -> bool {
        self.excludes.iter().any(|pattern| pattern.matches(urn))
    }

    /// Returns whether the targets forbid the deletion of a resource that depends on one of them.
    pub(crate) fn is_deletion_refused(&self, urn: &Urn) -> bool {
        self.has_targets() && !self.target_dependents && !self.is_target(urn)
    }

    /// Returns the targets in a snapshot, with their direct and indirect dependents.
    pub(crate) fn targeted_entries<'a>(&self, snapshot: &'a [Entry]) -> TargetedEntries<'a> {
        let mut targeted = TargetedEntries { allowed: HashSet::new(), roots: Vec::new() };
        let mut urns: HashSet<&Urn> = HashSet::new();
        for entry in snapshot {
            let (id, state) = entry;
            let is_target = self.is_target(&state.urn);
            if is_target || state.provider_and_dependencies().any(|urn| urns.contains(urn)) {
                urns.insert(&state.urn);
                targeted.allowed.insert(*id);
                if !state.delete {
                    targeted.roots.push(entry);
                }
            }
        }
        targeted
    }

    /// Returns whether a resource is in scope. `marked` collects the URNs that targets or excludes name, and their
    /// dependents if the options include these. The caller must pass resources after their dependencies. Root stacks
    /// and providers are always in scope.
    pub(crate) fn can_touch(&self, state: &ResourceState, marked: &mut HashSet<Urn>) -> bool {
        let is_marked = self.is_marked(state, state.provider_and_dependencies(), marked);
        if is_marked {
            marked.insert(state.urn.clone());
        }
        let always = state.is_provider() || state.type_token.as_str() == ROOT_STACK_TYPE;
        always || is_marked == self.has_targets()
    }

    /// Returns whether an entry is in scope for a refresh that reads with the recorded provider. Root stacks and
    /// providers have no special treatment, and the provider of a resource is not one of its dependencies. `marked` is
    /// as in [`Scope::can_touch`].
    pub(crate) fn can_read(&self, state: &ResourceState, marked: &mut HashSet<Urn>) -> bool {
        let is_marked = self.is_marked(state, state.all_dependencies(), marked);
        if is_marked {
            marked.insert(state.urn.clone());
        }
        is_marked == self.has_targets()
    }

    /// Returns whether the recorded entry of a registration is in scope for a refresh that runs the program. Root
    /// stacks and providers have no special treatment. `marked` is as in [`Scope::can_touch`].
    pub(crate) fn can_read_registered(&self, state: &ResourceState, marked: &HashSet<Urn>) -> bool {
        self.is_marked(state, state.provider_and_dependencies(), marked) == self.has_targets()
    }

    fn is_marked<'s>(
        &self,
        state: &ResourceState,
        mut dependencies: impl Iterator<Item = &'s Urn>,
        marked: &HashSet<Urn>,
    ) -> bool {
        let is_named = |urn: &Urn| if self.has_targets() { self.is_target(urn) } else { self.is_excluded(urn) };
        let include_dependents = if self.has_targets() { self.target_dependents } else { self.exclude_dependents };
        is_named(&state.urn) || (include_dependents && dependencies.any(|urn| marked.contains(urn) || is_named(urn)))
    }
}

/// Targets in a snapshot, with their dependents.
#[derive(Debug)]
pub(crate) struct TargetedEntries<'a> {
    /// Targets, and their direct and indirect dependents.
    pub(crate) allowed: HashSet<EntryId>,
    /// Live entries among them. Diff decides whether their dependents are deleted with them, as in a replacement.
    pub(crate) roots: Vec<&'a Entry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_within_a_part_and_double_star_across_parts() {
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
            ("d:e:F::one", true),
            ("a:b:C::one", false),
            ("d:e:F::", false),
            ("F::one", false),
        ] {
            assert_eq!(UrnPattern::new(pattern).matches(&urn), expected, "{pattern}");
        }
    }

    #[test]
    fn key_stands_for_the_names_that_it_has_in_environments() {
        let names = ["web--prod", "web--test", "a--b--prod", "log--prod", "x/y--prod"];
        let table: [(&str, &[&str]); 7] = [
            ("web", &["web--prod", "web--test"]),
            ("test/web", &["web--test"]),
            ("log", &["log--prod"]),
            ("a--b", &["a--b--prod"]),
            ("a", &[]),
            ("dev/web", &[]),
            ("x/y", &["x/y--prod"]),
        ];
        for (key, expected) in table {
            assert_eq!(names_of_key(key, names.into_iter()).into_iter().collect::<Vec<_>>(), expected, "{key}");
        }
    }
}
