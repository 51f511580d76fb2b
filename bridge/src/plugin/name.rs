//! Names of plugins.

use std::fmt;
use std::str::FromStr;

use super::PluginValueError;

/// Name that is reserved for the engine, which owns the types `pulumi:…`.
const RESERVED: &str = "pulumi";

/// Name of a plugin: `^[a-z][a-z0-9-]*$`, not `pulumi`. Its executable is `pulumi-resource-<name>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginName(String);

impl PluginName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the file name of the plugin's executable (docs/spec/provider-protocol.md#1.1).
    pub fn executable(&self) -> String {
        format!("pulumi-resource-{}", self.0)
    }
}

impl FromStr for PluginName {
    type Err = PluginValueError;

    fn from_str(text: &str) -> Result<Self, PluginValueError> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !text.starts_with(|c: char| c.is_ascii_lowercase()) || !text.chars().all(allowed) {
            return Err(PluginValueError::Name(text.to_owned()));
        }
        if text == RESERVED {
            return Err(PluginValueError::ReservedName(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_must_be_lower_case_and_start_with_a_letter() {
        for good in ["files", "a", "x1", "pulumi-nodejs", "a-"] {
            assert_eq!(good.parse::<PluginName>().unwrap().as_str(), good);
        }
        for bad in ["", "1a", "-a", "Files", "a_b", "a.b", "a/b", "ä", "a b", "a\n"] {
            assert_eq!(bad.parse::<PluginName>(), Err(PluginValueError::Name(bad.into())));
        }
    }

    #[test]
    fn name_pulumi_is_reserved() {
        assert_eq!("pulumi".parse::<PluginName>(), Err(PluginValueError::ReservedName("pulumi".into())));
    }
}
