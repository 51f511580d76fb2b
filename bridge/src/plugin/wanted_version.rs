//! Wanted versions of plugins, as `source.version` declares them: a name, the latest release, or a range.

use std::fmt;

use semver::VersionReq;

use super::{PluginValueError, PluginVersion};

/// Name of the newest release. Only releases have it: in a git repository it is a tag or a branch.
const LATEST: &str = "latest";
/// First characters of a comparator of a range.
const OPERATORS: [char; 5] = ['^', '~', '=', '>', '<'];

/// Wanted version of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedVersion {
    /// Name that is taken as written: the tag of a release; a tag, a branch or a commit of a git repository.
    Named(String),
    /// Newest release that is neither a draft nor a pre-release.
    Latest,
    /// Highest version in a range.
    Range(TagRange),
}

impl WantedVersion {
    /// Returns the version that `source.version` of a release declares.
    ///
    /// # Errors
    /// [`PluginValueError::TagRange`].
    pub fn of_release(text: &str) -> Result<Self, PluginValueError> {
        if text == LATEST { Ok(Self::Latest) } else { Self::of_git(text) }
    }

    /// Returns the version that `source.version` of a git repository declares.
    ///
    /// # Errors
    /// [`PluginValueError::TagRange`].
    pub fn of_git(text: &str) -> Result<Self, PluginValueError> {
        Ok(TagRange::parse(text)?.map_or_else(|| Self::Named(text.to_owned()), Self::Range))
    }

    /// Returns the version that a constraint of Terraform states: `1.2.3`, `~> 1.2`, `>= 1.0, < 2`. An empty one is the highest version. The
    /// comparators mean what they mean in Cargo; `~> 1.2` is `>=1.2, <2`, and `~> 1.2.3` is `~1.2.3`.
    ///
    /// # Errors
    /// [`PluginValueError::TagRange`], [`PluginValueError::Version`].
    pub fn of_terraform(text: &str) -> Result<Self, PluginValueError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::Latest);
        }
        if let Some(range) = TagRange::of_terraform(text)? {
            return Ok(Self::Range(range));
        }
        text.parse::<PluginVersion>()?;
        Ok(Self::Named(text.to_owned()))
    }

    /// Returns the text that declares it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Latest => LATEST,
            Self::Range(range) => &range.text,
        }
    }

    /// Returns the version that the name states, without a question to the source. `None` for a name that is not a semantic version,
    /// for the latest release and for a range.
    pub fn stated(&self) -> Option<PluginVersion> {
        match self {
            Self::Named(name) => name.parse().ok(),
            Self::Latest | Self::Range(_) => None,
        }
    }

    /// Returns whether a tag is known to be wanted: it has the name, or is in the range. No tag is known to be the latest.
    pub fn accepts(&self, tag: &str) -> bool {
        match self {
            Self::Named(name) => name == tag,
            Self::Latest => false,
            Self::Range(range) => range.version_in(tag).is_some(),
        }
    }
}

impl fmt::Display for WantedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Range of versions over tags, as Cargo means it: `^1.2`, `~1.4`, `=1.2.3`, `>=1, <2`. A prefix that ends with a slash limits it to the
/// tags that begin with the prefix: `reef/^1.2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRange {
    text: String,
    prefix: String,
    requirement: VersionReq,
}

impl TagRange {
    /// Returns the range that a text states; `None` if it does not begin with an operator, so that it is a name.
    ///
    /// # Errors
    /// [`PluginValueError::TagRange`].
    pub fn parse(text: &str) -> Result<Option<Self>, PluginValueError> {
        let (prefix, comparators) =
            text.rsplit_once('/').map_or(("", text), |(_, last)| text.split_at(text.len() - last.len()));
        if !comparators.starts_with(OPERATORS) {
            return Ok(None);
        }
        let requirement = VersionReq::parse(comparators)
            .map_err(|error| PluginValueError::TagRange { text: text.to_owned(), reason: error.to_string() })?;
        Ok(Some(Self { text: text.to_owned(), prefix: prefix.to_owned(), requirement }))
    }

    /// Returns the range that a constraint of Terraform states; `None` if it does not begin with an operator.
    fn of_terraform(text: &str) -> Result<Option<Self>, PluginValueError> {
        let refused = |reason: String| PluginValueError::TagRange { text: text.to_owned(), reason };
        if text.contains("!=") {
            return Err(refused("a version cannot be excluded; name the versions that are wanted".to_owned()));
        }
        if !text.starts_with(OPERATORS) {
            return Ok(None);
        }
        let comparators: Option<Vec<String>> =
            text.split(',').map(|text| comparator_of_terraform(text.trim())).collect();
        let comparators =
            comparators.ok_or_else(|| refused("`~>` is followed by a version, such as 1.2".to_owned()))?;
        let requirement = VersionReq::parse(&comparators.join(",")).map_err(|error| refused(error.to_string()))?;
        Ok(Some(Self { text: text.to_owned(), prefix: String::new(), requirement }))
    }

    /// Returns the version of a tag that is in the range: the prefix, perhaps a `v`, and a version of three numbers. A pre-release is in
    /// the range only if one of its comparators names a pre-release of the same three numbers.
    pub fn version_in(&self, tag: &str) -> Option<PluginVersion> {
        self.version_of(tag).filter(|version| self.contains(version))
    }

    /// Returns whether a version is in the range.
    pub fn contains(&self, version: &PluginVersion) -> bool {
        self.requirement.matches(version.as_semver())
    }

    /// Returns the version of a tag that the range looks at, whether it is in the range or not.
    pub fn version_of(&self, tag: &str) -> Option<PluginVersion> {
        let rest = tag.strip_prefix(self.prefix.as_str())?;
        let bare = rest.strip_prefix('v').unwrap_or(rest);
        // A tag such as `v1` often follows the newest release of its major version.
        semver::Version::parse(bare).ok().map(PluginVersion::from)
    }
}

/// Returns a comparator of Terraform as one of Cargo, or two.
fn comparator_of_terraform(text: &str) -> Option<String> {
    let Some(version) = text.strip_prefix("~>") else { return Some(text.to_owned()) };
    let version = version.trim_start();
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    if numbers.matches('.').count() >= 2 {
        return Some(format!("~{version}"));
    }
    let major: u64 = numbers.split('.').next()?.parse().ok()?;
    Some(format!(">={version},<{}", major.checked_add(1)?))
}

/// Returns the version of a tag, with any prefix that ends with a slash; `None` if it has none of three numbers.
pub fn tag_version(tag: &str) -> Option<PluginVersion> {
    let last = tag.rsplit('/').next().unwrap_or(tag);
    semver::Version::parse(last.strip_prefix('v').unwrap_or(last)).ok().map(PluginVersion::from)
}

impl fmt::Display for TagRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> TagRange {
        TagRange::parse(text).unwrap().unwrap()
    }

    /// Shows: plugins.md#versions "Without an operator it is a name, which is taken as written"
    #[test]
    fn text_without_an_operator_is_a_name() {
        for text in ["v1.2.3", "1.x", "main", "0.27", "feature/x", "reef/v1.2.3", "1.2.3", "a^b", "*", "1.2.*"] {
            assert_eq!(WantedVersion::of_release(text).unwrap(), WantedVersion::Named(text.to_owned()), "{text}");
        }
        assert_eq!(WantedVersion::of_release("latest").unwrap(), WantedVersion::Latest);
        assert_eq!(WantedVersion::of_git("latest").unwrap(), WantedVersion::Named("latest".to_owned()));
    }

    /// Shows: plugins.md#versions "with the meaning that they have in Cargo"
    /// Shows: plugins.md#versions "A pre-release is in a range only if the range names one of the same three numbers"
    #[test]
    fn tag_is_in_a_range_as_in_cargo() {
        for (text, inside, outside) in [
            (
                "^1.2",
                &["v1.2.0", "1.9.9", "v1.2.0+build"][..],
                &["v1.1.9", "v2.0.0", "v1.3.0-rc.1", "v1", "v1.4", "x"][..],
            ),
            ("^0.3", &["v0.3.7"], &["v0.4.0"]),
            ("~1.4", &["v1.4.9"], &["v1.5.0"]),
            ("=1.2.3", &["v1.2.3"], &["v1.2.4"]),
            ("=1.2", &["v1.2.9"], &["v1.3.0"]),
            (">=1, <2", &["v1.0.0", "v1.99.0"], &["v2.0.0", "v0.9.0"]),
            (">=1.0.0-rc.1, <2", &["v1.0.0-rc.2", "v1.0.0"], &["v1.1.0-rc.1", "v1.0.0-beta"]),
            ("reef/^1.2", &["reef/v1.3.0", "reef/1.3.0"], &["v1.3.0", "lake/v1.3.0", "reef/sub/v1.3.0"]),
            ("a/b/^1.2", &["a/b/v1.3.0"], &["b/v1.3.0"]),
            ("^1.2", &["v1.3.0"], &["reef/v1.3.0"]),
        ] {
            let range = range(text);
            inside.iter().for_each(|tag| assert!(range.version_in(tag).is_some(), "{text} {tag}"));
            outside.iter().for_each(|tag| assert!(range.version_in(tag).is_none(), "{text} {tag}"));
        }
    }

    #[test]
    fn range_that_cannot_be_read_is_refused_with_the_reason() {
        for text in ["^", "^v1.2", "^1.2.3.4", ">=1 <2", "~main", "reef/^x", "^1 || ^2"] {
            let error = WantedVersion::of_git(text).unwrap_err();
            assert!(matches!(&error, PluginValueError::TagRange { .. }), "{text}: {error}");
        }
    }

    /// Shows: plugins.md#terraform-providers "a version, or a range as Terraform or Cargo writes it"
    #[test]
    fn constraint_of_terraform_is_a_version_or_a_range() {
        for (text, inside, outside) in [
            ("~> 1.2", &["1.2.0", "1.9.0"][..], &["1.1.9", "2.0.0"][..]),
            ("~> 0.2", &["0.2.0", "0.9.0"], &["1.0.0"]),
            ("~>1.2.3", &["1.2.3", "1.2.9"], &["1.2.2", "1.3.0"]),
            ("~> 1", &["1.0.0", "1.9.0"], &["2.0.0"]),
            ("<4.0.5,>4.0.3", &["4.0.4"], &["4.0.3", "4.0.5"]),
            (">= 1.0 , ~> 1.2.3", &["1.2.4"], &["1.3.0", "1.2.4-rc.1"]),
            ("= 1.2.3", &["1.2.3"], &["1.2.4"]),
            ("^0.3", &["0.3.7"], &["0.4.0"]),
        ] {
            let WantedVersion::Range(range) = WantedVersion::of_terraform(text).unwrap() else { panic!("{text}") };
            inside.iter().for_each(|version| assert!(range.version_in(version).is_some(), "{text} {version}"));
            outside.iter().for_each(|version| assert!(range.version_in(version).is_none(), "{text} {version}"));
        }
        assert_eq!(WantedVersion::of_terraform(" "), Ok(WantedVersion::Latest));
        assert_eq!(WantedVersion::of_terraform("0.27"), Ok(WantedVersion::Named("0.27".to_owned())));
        for bad in
            ["latest", "main", "!= 1.2", ">1, != 1.2", "~>", "~> x", "~> 99999999999999999999", "1.2, <2", "^1 || ^2"]
        {
            assert!(WantedVersion::of_terraform(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_a_name_states_its_version() {
        for (text, stated) in
            [("v1.2.3", Some("1.2.3")), ("1.2", Some("1.2.0")), ("main", None), ("^1.2", None), ("latest", None)]
        {
            let wanted = WantedVersion::of_release(text).unwrap();
            assert_eq!(wanted.stated().map(|version| version.to_string()).as_deref(), stated, "{text}");
        }
    }

    #[test]
    fn tag_is_accepted_by_its_name_and_by_a_range() {
        for (wanted, tag, accepted) in [
            ("v1.2.3", "v1.2.3", true),
            ("v1.2.3", "1.2.3", false),
            ("^1", "v1.2.3", true),
            ("^2", "v1.2.3", false),
            ("latest", "v1.2.3", false),
        ] {
            assert_eq!(WantedVersion::of_release(wanted).unwrap().accepts(tag), accepted, "{wanted} {tag}");
        }
    }
}
