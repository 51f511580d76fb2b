//! Parameters of Pulumi's bridge of any Terraform provider: which provider its arguments, or a value of the state, mean.

use serde::Deserialize;

use super::{PluginValueError, TerraformProvider, TerraformProviderSource, WantedVersion};
use crate::json;

/// Options of the bridge that are followed by a value, and those that are not.
const WITH_VALUE: [&str; 5] = ["--include", "--exclude", "--provider-name", "--upstreamRepoPath", "--indexDocOutDir"];
const WITHOUT_VALUE: [&str; 1] = ["--fullDocs"];

/// Arguments of the bridge that name a provider of a registry: `[HOST/]NAMESPACE/NAME [VERSION]`, with options among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerraformParameters {
    /// The provider, and its wanted version: the highest one without a version.
    pub source: TerraformProviderSource,
    arguments: Vec<String>,
    provider_at: usize,
    version_at: Option<usize>,
}

impl TerraformParameters {
    /// Reads arguments. Returns `None` if they name a provider on this machine, by a path that begins with `.` or `/`.
    ///
    /// # Errors
    /// [`PluginValueError::TerraformParameters`]; the errors of [`TerraformProvider`] and of [`WantedVersion::of_terraform`].
    pub fn parse(arguments: &[String]) -> Result<Option<Self>, PluginValueError> {
        let refused = |reason: &str| PluginValueError::TerraformParameters { reason: reason.to_owned() };
        let positions = positions(arguments)?;
        let (provider_at, version_at) = match positions[..] {
            [provider] => (provider, None),
            [provider, version] => (provider, Some(version)),
            [] => return Err(refused("the provider is missing: [HOST/]NAMESPACE/NAME")),
            _ => return Err(refused("expected a provider and its version at most, beside options")),
        };
        let provider = &arguments[provider_at];
        if provider.starts_with(['.', '/']) {
            return match version_at {
                None => Ok(None),
                Some(_) => Err(refused("a provider on this machine has no version")),
            };
        }
        let version = WantedVersion::of_terraform(version_at.map_or("", |at| &arguments[at]))?;
        let source = TerraformProviderSource::new(provider.parse()?, version);
        Ok(Some(Self { source, arguments: arguments.to_vec(), provider_at, version_at }))
    }

    /// Returns the arguments with the whole address of the provider and an exact version, so that the bridge has nothing to choose.
    pub fn resolved(&self, version: &str) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        arguments[self.provider_at] = self.source.provider.to_string();
        match self.version_at {
            Some(at) => version.clone_into(&mut arguments[at]),
            None => arguments.insert(self.provider_at + 1, version.to_owned()),
        }
        arguments
    }
}

/// Returns the places of the arguments that are neither options nor their values.
fn positions(arguments: &[String]) -> Result<Vec<usize>, PluginValueError> {
    let mut found = Vec::new();
    let mut rest = arguments.iter().enumerate();
    while let Some((at, argument)) = rest.next() {
        if argument == "--" {
            found.extend(rest.by_ref().map(|(at, _)| at));
        } else if !argument.starts_with('-') || argument == "-" {
            found.push(at);
        } else if WITH_VALUE.contains(&argument.as_str()) {
            rest.next();
        } else {
            let name = argument.split('=').next().unwrap_or_default();
            let has_value = argument.contains('=') && WITH_VALUE.contains(&name);
            if !has_value && !WITHOUT_VALUE.contains(&name) {
                let reason = format!("the option {name} is not known");
                return Err(PluginValueError::TerraformParameters { reason });
            }
        }
    }
    Ok(found)
}

/// Value of parameters, as the state records it. Its other fields are about resources.
#[derive(Deserialize)]
struct ValueText {
    remote: Option<RemoteText>,
    local: Option<LocalText>,
}

#[derive(Deserialize)]
struct RemoteText {
    url: String,
    version: String,
}

#[derive(Deserialize)]
struct LocalText {
    #[serde(rename = "path")]
    _path: String,
}

/// Returns the provider that a value of the state means; `None` for a provider on the machine that has written it.
///
/// # Errors
/// [`PluginValueError::TerraformParameters`]; the errors of [`TerraformProvider`] and of [`WantedVersion::of_terraform`].
pub fn terraform_provider_of_value(value: &[u8]) -> Result<Option<TerraformProviderSource>, PluginValueError> {
    let refused = |reason: String| PluginValueError::TerraformParameters { reason };
    let value: ValueText =
        json::from_slice(value).map_err(|error| refused(format!("the value in the state cannot be read: {error}")))?;
    match value {
        ValueText { remote: Some(RemoteText { url, version }), local: None } => {
            let provider: TerraformProvider = url.parse()?;
            if version.is_empty() {
                return Err(refused("the value in the state has no version".to_owned()));
            }
            Ok(Some(TerraformProviderSource::new(provider, WantedVersion::of_terraform(&version)?)))
        }
        ValueText { remote: None, local: Some(_) } => Ok(None),
        _ => Err(refused("the value in the state has to have either \"remote\" or \"local\"".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(|argument| (*argument).to_owned()).collect()
    }

    fn words(source: &TerraformProviderSource) -> String {
        format!("{} {}", source.provider, source.version)
    }

    /// Shows: plugins.md#terraform-providers "the highest version that is not a pre-release"
    #[test]
    fn arguments_name_a_provider_and_perhaps_a_version() {
        for (arguments, expected, resolved) in [
            (&["acme/reef"][..], "registry.opentofu.org/acme/reef latest", "registry.opentofu.org/acme/reef 1.2.3"),
            (&["acme/reef", ""], "registry.opentofu.org/acme/reef latest", "registry.opentofu.org/acme/reef 1.2.3"),
            (
                &["acme/reef", "0.27.1"],
                "registry.opentofu.org/acme/reef 0.27.1",
                "registry.opentofu.org/acme/reef 1.2.3",
            ),
            (&["tf.example/acme/reef", "~> 1.2"], "tf.example/acme/reef ~> 1.2", "tf.example/acme/reef 1.2.3"),
            (
                &["--include", "reef_fish", "acme/reef", "--provider-name=lake", ">= 1, < 2", "--fullDocs"],
                "registry.opentofu.org/acme/reef >= 1, < 2",
                "--include reef_fish registry.opentofu.org/acme/reef --provider-name=lake 1.2.3 --fullDocs",
            ),
            (
                &["--", "acme/reef"],
                "registry.opentofu.org/acme/reef latest",
                "-- registry.opentofu.org/acme/reef 1.2.3",
            ),
        ] {
            let parameters = TerraformParameters::parse(&texts(arguments)).unwrap().unwrap();
            assert_eq!(words(&parameters.source), expected, "{arguments:?}");
            assert_eq!(parameters.resolved("1.2.3").join(" "), resolved, "{arguments:?}");
        }
        for local in [&["./bin/terraform-provider-reef"][..], &["/opt/terraform-provider-reef", "--include=reef_fish"]]
        {
            assert_eq!(TerraformParameters::parse(&texts(local)), Ok(None), "{local:?}");
        }
    }

    #[test]
    fn arguments_that_the_bridge_refuses_are_mistakes() {
        for (arguments, reason) in [
            (&[][..], "the provider is missing"),
            (&["--include", "acme/reef"], "the provider is missing"),
            (&["acme/reef", "1.0.0", "x"], "a provider and its version at most"),
            (&["./reef", "1.0.0"], "a provider on this machine has no version"),
            (&["acme/reef", "--help"], "the option --help is not known"),
            (&["acme/reef", "--docs=yes"], "the option --docs is not known"),
            (&["reef"], "its namespace is missing"),
            (&["acme/reef", "latest"], "invalid version"),
            (&["acme/reef", "!= 1.0"], "cannot be excluded"),
        ] {
            let error = TerraformParameters::parse(&texts(arguments)).unwrap_err().to_string();
            assert!(error.contains(reason), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn value_of_the_state_names_a_provider_and_an_exact_version() {
        let remote = r#"{"remote":{"url":"registry.opentofu.org/acme/reef","version":"0.27.1"},"includes":["a"]}"#;
        let source = terraform_provider_of_value(remote.as_bytes()).unwrap().unwrap();
        assert_eq!(words(&source), "registry.opentofu.org/acme/reef 0.27.1");
        assert_eq!(terraform_provider_of_value(br#"{"local":{"path":"./reef"}}"#), Ok(None));
        for bad in [
            "",
            "{}",
            "[]",
            r#"{"remote":{"url":"acme/reef"}}"#,
            r#"{"remote":{"url":"acme/reef","version":""}}"#,
            r#"{"remote":{"url":"../reef/x","version":"1.0.0"}}"#,
            r#"{"remote":{"url":"acme/reef","version":"1.0.0"},"local":{"path":"x"}}"#,
        ] {
            assert!(terraform_provider_of_value(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
