//! `PulumiPlugin.yaml`, the manifest of a plugin that is a folder of files for a language runtime
//! (docs/spec/provider-protocol.md#1.2).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::shorten;
use crate::yaml::{self, YamlError};

/// Error of a plugin manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The text is not YAML, or a field has the wrong type.
    #[error("not a plugin manifest")]
    Malformed(#[source] YamlError),
    /// The runtime is not supported.
    #[error("runtime {:?} is not supported (supported: nodejs, python, go); publish the plugin as one executable", shorten(.0))]
    UnsupportedRuntime(String),
}

/// Content of a `PulumiPlugin.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginManifest {
    /// Runtime of the plugin.
    pub runtime: PluginRuntime,
    /// Required range of Pulumi versions, in the grammar of `RequirePulumiVersion`.
    pub required_pulumi_version: Option<String>,
}

/// Runtime of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginRuntime {
    /// `node` with the main file of the package.
    Nodejs,
    /// `python` of a virtual environment, or on PATH.
    Python {
        /// Folder of the virtual environment, relative to the manifest.
        virtualenv: Option<String>,
    },
    /// Program built from Go.
    Go {
        /// Path of the built program, relative to the manifest.
        binary: Option<String>,
    },
}

impl PluginManifest {
    /// Name of the file.
    pub const FILE_NAME: &str = "PulumiPlugin.yaml";

    /// Parses a manifest.
    ///
    /// # Errors
    /// [`ManifestError`] if the text is malformed or the runtime is not supported.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let file: ManifestFile = yaml::from_str(text).map_err(ManifestError::Malformed)?;
        let (name, mut options) = match file.runtime {
            RuntimeEntry::Name(name) => (name, BTreeMap::new()),
            RuntimeEntry::WithOptions { name, options } => (name, options),
        };
        let mut option = |key: &str| match options.remove(key) {
            Some(serde_yaml::Value::String(text)) if !text.is_empty() => Some(text),
            _ => None,
        };
        let runtime = match name.as_str() {
            "nodejs" => PluginRuntime::Nodejs,
            "python" => PluginRuntime::Python { virtualenv: option("virtualenv") },
            "go" => PluginRuntime::Go { binary: option("binary") },
            _ => return Err(ManifestError::UnsupportedRuntime(name)),
        };
        Ok(Self { runtime, required_pulumi_version: file.required_pulumi_version.filter(|range| !range.is_empty()) })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestFile {
    runtime: RuntimeEntry,
    required_pulumi_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RuntimeEntry {
    Name(String),
    WithOptions {
        name: String,
        #[serde(default)]
        options: BTreeMap<String, serde_yaml::Value>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime(text: &str) -> PluginRuntime {
        PluginManifest::parse(text).unwrap().runtime
    }

    #[test]
    fn runtime_is_parsed_with_and_without_options() {
        assert_eq!(runtime("runtime: nodejs"), PluginRuntime::Nodejs);
        assert_eq!(runtime("runtime: python"), PluginRuntime::Python { virtualenv: None });
        assert_eq!(
            runtime("runtime: {name: python, options: {virtualenv: venv, toolchain: pip}}"),
            PluginRuntime::Python { virtualenv: Some("venv".into()) }
        );
        assert_eq!(
            runtime("{runtime: {name: go}, template: {description: x}, packages: {}}"),
            PluginRuntime::Go { binary: None }
        );
        assert_eq!(
            runtime("runtime: {name: go, options: {binary: bin/x}}"),
            PluginRuntime::Go { binary: Some("bin/x".into()) }
        );
    }

    #[test]
    fn manifest_without_a_supported_runtime_is_refused() {
        assert!(
            matches!(PluginManifest::parse("runtime: dotnet"), Err(ManifestError::UnsupportedRuntime(name)) if name == "dotnet")
        );
        for bad in ["", "template: {}", "- a", "runtime: [go]", "runtime: {options: {}}"] {
            assert!(matches!(PluginManifest::parse(bad), Err(ManifestError::Malformed(_))), "{bad}");
        }
    }
}
