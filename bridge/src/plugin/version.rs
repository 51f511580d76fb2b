//! Versions of plugins.

use std::fmt;
use std::str::FromStr;

use super::PluginValueError;

/// Semantic version. Parses `1.2.3`, `v1.2.3`, `v1.2` and `1`; displays `1.2.3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginVersion(semver::Version);

impl PluginVersion {
    /// Returns the version of Pulumi's engine with which this engine is compatible.
    pub fn of_pulumi() -> Self {
        Self(semver::Version::new(3, 260, 0))
    }

    /// The version as a [`semver::Version`].
    pub fn as_semver(&self) -> &semver::Version {
        &self.0
    }
}

impl From<semver::Version> for PluginVersion {
    fn from(version: semver::Version) -> Self {
        Self(version)
    }
}

impl FromStr for PluginVersion {
    type Err = PluginValueError;

    fn from_str(text: &str) -> Result<Self, PluginValueError> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let (numbers, rest) = bare.split_at(bare.find(['-', '+']).unwrap_or(bare.len()));
        let missing = 2usize.saturating_sub(numbers.matches('.').count());
        let completed = format!("{numbers}{}{rest}", ".0".repeat(missing));
        semver::Version::parse(&completed).map(Self).map_err(|_| PluginValueError::Version(text.to_owned()))
    }
}

impl fmt::Display for PluginVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_with_leading_v_and_missing_parts() {
        for (text, version) in [
            ("1.2.3", "1.2.3"),
            ("v5.2.2", "5.2.2"),
            ("v1.2", "1.2.0"),
            ("7", "7.0.0"),
            ("1.2.3-rc.1+build.5", "1.2.3-rc.1+build.5"),
            ("v2-beta", "2.0.0-beta"),
            ("0.0.0-xabc123", "0.0.0-xabc123"),
        ] {
            assert_eq!(text.parse::<PluginVersion>().unwrap().to_string(), version, "{text}");
        }
        for bad in ["", "v", "latest", "1.2.3.4", "1..2", "01.2.3", "vv1.2.3", "-1.0.0"] {
            assert_eq!(bad.parse::<PluginVersion>(), Err(PluginValueError::Version(bad.into())));
        }
    }

    #[test]
    fn release_is_newer_than_its_candidates() {
        let version = |text: &str| text.parse::<PluginVersion>().unwrap();
        assert!(version("v1.0.0-rc.1") < version("1.0.0"));
        assert!(version("1.9.0") < version("1.10.0"));
    }
}
