//! Ranges of versions, in the grammar of `RequirePulumiVersion` (provider protocol, section 2.1).

use std::str::FromStr;

use semver::Version;

use super::{PluginValueError, PluginVersion};

/// Which versions are wanted: comparators such as `>=3.5.0` joined by space (all must hold), groups of them joined by
/// `||` (one must). Comparators: `=`, `==`, `!`, `!=`, `<`, `<=`, `>`, `>=`, or none for equality; `3.x` is any 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRange(Vec<Vec<Comparator>>);

/// A comparator: the versions from `first` on and before `after`, or what an operator makes of these two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparator {
    operator: Operator,
    first: Version,
    /// The first version that `3.x` no longer means; `None` where exactly `first` is meant.
    after: Option<Version>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl VersionRange {
    /// Whether a version is within the range.
    pub fn matches(&self, version: &PluginVersion) -> bool {
        self.0.iter().any(|all| all.iter().all(|comparator| comparator.matches(version.as_semver())))
    }
}

impl FromStr for VersionRange {
    type Err = PluginValueError;

    fn from_str(text: &str) -> Result<Self, PluginValueError> {
        let groups: Option<Vec<_>> = text.split("||").map(group).collect();
        groups.map(Self).ok_or_else(|| PluginValueError::Range(text.to_owned()))
    }
}

/// Comparators joined by space. An operator may stand apart from its version.
fn group(text: &str) -> Option<Vec<Comparator>> {
    let mut comparators = Vec::new();
    let mut pending = String::new();
    for word in text.split_whitespace() {
        pending.push_str(word);
        if !word.ends_with(is_operator) {
            comparators.push(Comparator::parse(&std::mem::take(&mut pending))?);
        }
    }
    (pending.is_empty() && !comparators.is_empty()).then_some(comparators)
}

fn is_operator(c: char) -> bool {
    "=!<>".contains(c)
}

impl Comparator {
    fn parse(text: &str) -> Option<Self> {
        let (operator, version) = text.split_at(text.find(|c| !is_operator(c))?);
        let operator = match operator {
            "" | "=" | "==" => Operator::Equal,
            "!" | "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            _ => return None,
        };
        let (first, after) = bounds(version)?;
        Some(Self { operator, first, after })
    }

    fn matches(&self, version: &Version) -> bool {
        let beyond = match &self.after {
            Some(after) => version >= after,
            None => version.cmp_precedence(&self.first).is_gt(),
        };
        let before = version.cmp_precedence(&self.first).is_lt();
        match self.operator {
            Operator::Equal => !before && !beyond,
            Operator::NotEqual => before || beyond,
            Operator::Less => before,
            Operator::LessOrEqual => !beyond,
            Operator::Greater => beyond,
            Operator::GreaterOrEqual => !before,
        }
    }
}

/// The first version that a text means, and the first that it does not, if it ends in a wildcard.
fn bounds(text: &str) -> Option<(Version, Option<Version>)> {
    let parts: Vec<&str> = text.split('.').collect();
    let Some(wild) = parts.iter().position(|part| matches!(*part, "x" | "X" | "*")) else {
        return Some((text.parse::<PluginVersion>().ok()?.as_semver().clone(), None));
    };
    if parts.len() > 3 {
        return None;
    }
    let number = |part: &&str| part.parse::<u64>().ok();
    match parts.get(..wild)? {
        [] => None,
        [major] => {
            let major = number(major)?;
            Some((Version::new(major, 0, 0), Some(Version::new(major + 1, 0, 0))))
        }
        [major, minor] => {
            let (major, minor) = (number(major)?, number(minor)?);
            Some((Version::new(major, minor, 0), Some(Version::new(major, minor + 1, 0))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_it_says() {
        let table: [(&str, &[&str], &[&str]); 11] = [
            (">=3.5.0 !3.7.7", &["3.5.0", "3.260.0"], &["3.4.9", "3.7.7"]),
            ("<2.0.0 || >=3.0.0", &["1.9.9", "3.0.0"], &["2.0.0", "2.9.0"]),
            ("3.x", &["3.0.0", "3.260.0"], &["2.9.9", "4.0.0"]),
            ("3.260.x", &["3.260.0", "3.260.9"], &["3.261.0"]),
            ("!=3.1.0", &["3.1.1"], &["3.1.0"]),
            ("1.0.0", &["1.0.0", "v1.0.0"], &["1.0.1"]),
            ("==1.0.0", &["1.0.0"], &["0.9.0"]),
            ("> 3.0.0 <= 4.0.0", &["3.0.1", "4.0.0"], &["3.0.0", "4.0.1"]),
            (">3.x", &["4.0.0"], &["3.9.9"]),
            ("<=3.x", &["3.9.9", "1.0.0"], &["4.0.0"]),
            ("v3.1", &["3.1.0"], &["3.1.1"]),
        ];
        for (range, inside, outside) in table {
            let parsed: VersionRange = range.parse().unwrap();
            for version in inside {
                assert!(parsed.matches(&version.parse().unwrap()), "{version} in {range}");
            }
            for version in outside {
                assert!(!parsed.matches(&version.parse().unwrap()), "{version} not in {range}");
            }
        }
    }

    #[test]
    fn nonsense_is_no_range() {
        for bad in ["", "||", ">=", "latest", ">=3.0.0 ||", "~1.0.0", "=!1.0.0", "*", "3.x.1.2", "a.x"] {
            assert_eq!(bad.parse::<VersionRange>(), Err(PluginValueError::Range(bad.into())));
        }
    }
}
