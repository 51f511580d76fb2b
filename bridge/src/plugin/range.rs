//! Ranges of versions, in the grammar of `RequirePulumiVersion` (docs/spec/provider-protocol.md#2.1).

use std::str::FromStr;

use semver::Version;

use super::{PluginValueError, PluginVersion};

/// Range of versions: comparators such as `>=3.5.0` joined by space (all must match), groups of them joined by `||`
/// (one must match). Operators: `=`, `==`, `!`, `!=`, `<`, `<=`, `>`, `>=`, or none for equality. `3.x` matches any
/// version 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRange(Vec<Vec<Comparator>>);

/// Comparator: an operator applied to the versions from `first` (inclusive) to `after` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparator {
    operator: Operator,
    first: Version,
    /// First version after those that match `3.x`. `None` if the version has no wildcard.
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
    /// True if a version is in the range.
    pub fn matches(&self, version: &PluginVersion) -> bool {
        self.0.iter().any(|all| all.iter().all(|comparator| comparator.matches(version.as_semver())))
    }
}

impl FromStr for VersionRange {
    type Err = PluginValueError;

    fn from_str(text: &str) -> Result<Self, PluginValueError> {
        let groups: Option<Vec<_>> = text.split("||").map(parse_group).collect();
        groups.map(Self).ok_or_else(|| PluginValueError::Range(text.to_owned()))
    }
}

/// Parses comparators joined by space. An operator may be separated from its version by space.
fn parse_group(text: &str) -> Option<Vec<Comparator>> {
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
        let (first, after) = parse_bounds(version)?;
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

/// Parses a version with an optional wildcard. Returns the first matching version, and with a wildcard the first
/// version after the matching ones.
fn parse_bounds(text: &str) -> Option<(Version, Option<Version>)> {
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
    fn range_matches_versions_by_its_comparators() {
        let cases: [(&str, &[&str], &[&str]); 11] = [
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
        for (range, inside, outside) in cases {
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
    fn invalid_range_is_refused() {
        for bad in ["", "||", ">=", "latest", ">=3.0.0 ||", "~1.0.0", "=!1.0.0", "*", "3.x.1.2", "a.x"] {
            assert_eq!(bad.parse::<VersionRange>(), Err(PluginValueError::Range(bad.into())));
        }
    }
}
