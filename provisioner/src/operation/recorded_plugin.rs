//! Plugins as the provider resources of a state describe them.

use std::collections::BTreeMap;

use bridge::plugin::{GithubReleaseSource, PluginConfig, PluginSource, PluginVersion, WantedVersion};
use engine::{INTERNAL_KEY, VERSION_KEY};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::TypeToken;
use state::Snapshot;

/// Scheme of a download URL that names releases.
const RELEASES: &str = "github://";
/// Host of the API of GitHub in such a URL.
const GITHUB_API: &str = "api.github.com";

/// Plugin that only recorded resources need.
#[derive(Clone, Debug)]
pub struct RecordedPlugin {
    /// The plugin, as its provider resource describes it.
    pub plugin: PluginConfig,
    /// Version in the state.
    pub version: PluginVersion,
    /// Repository with its releases.
    pub repository: String,
}

impl RecordedPlugin {
    /// Returns the name of the plugin, which is that of its package.
    pub(super) fn name(&self) -> String {
        self.plugin.name.to_string()
    }
}

/// Returns the plugins that the provider resources of a state describe, each in its highest version. One that serves several packages,
/// one without a version, and one that is not a release, is left out.
pub(super) fn recorded_plugins(snapshot: &Snapshot) -> Vec<RecordedPlugin> {
    let mut highest: BTreeMap<String, RecordedPlugin> = BTreeMap::new();
    for resource in &snapshot.resources {
        let token = TypeToken::new(resource.urn.type_token());
        let Some(found) = token.provider_package().and_then(|package| recorded_plugin(package, &resource.inputs))
        else {
            continue;
        };
        let known = highest.get(&found.name());
        if known.is_none_or(|known| known.version < found.version) {
            highest.insert(found.name(), found);
        }
    }
    highest.into_values().collect()
}

fn recorded_plugin(package: &str, inputs: &PropertyMap) -> Option<RecordedPlugin> {
    // Old states hold these keys at the root.
    let internal = inputs.get(INTERNAL_KEY).and_then(PropertyValue::as_map).unwrap_or(inputs);
    let text = |map: &PropertyMap, key: &str| map.get(key).and_then(PropertyValue::as_str).map(str::to_owned);
    if internal.get("parameterization").is_some() {
        return None;
    }
    let version: PluginVersion = text(inputs, VERSION_KEY)?.parse().ok()?;
    let repository = repository(package, text(internal, "pluginDownloadURL").as_deref())?;
    let wanted = WantedVersion::Named(format!("v{version}"));
    let source = PluginSource::GithubRelease(GithubReleaseSource::new(repository.clone(), wanted));
    Some(RecordedPlugin { plugin: PluginConfig::new(package.parse().ok()?, source), version, repository })
}

/// Returns the repository with the releases of a package, as its download URL names it: `github://HOST/OWNER[/NAME]`. Without a URL it is
/// Pulumi's. `None` for another kind of URL.
fn repository(package: &str, url: Option<&str>) -> Option<String> {
    let Some(url) = url.filter(|url| !url.is_empty()) else { return Some(format!("pulumi/pulumi-{package}")) };
    let rest = url.strip_prefix(RELEASES)?.trim_end_matches('/');
    let parts: Vec<&str> = rest.split('/').collect();
    let (host, path) = match parts[..] {
        [host, owner] => (host, format!("{owner}/pulumi-{package}")),
        [host, owner, name] => (host, format!("{owner}/{name}")),
        _ => return None,
    };
    Some(if host == GITHUB_API { path } else { format!("https://{host}/{path}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: plugins.md#plugins-that-no-stack-declares "from the release that the state names: `github://HOST/OWNER[/NAME]`"
    #[test]
    fn repository_is_that_of_the_download_url() {
        for (url, expected) in [
            (None, Some("pulumi/pulumi-reef")),
            (Some(""), Some("pulumi/pulumi-reef")),
            (Some("github://api.github.com/acme"), Some("acme/pulumi-reef")),
            (Some("github://api.github.com/acme/reef/"), Some("acme/reef")),
            (Some("github://git.example/acme/reef"), Some("https://git.example/acme/reef")),
            (Some("github://api.github.com"), None),
            (Some("https://example.com/plugins"), None),
            (Some("gitlab://gitlab.com/1"), None),
        ] {
            assert_eq!(repository("reef", url).as_deref(), expected, "{url:?}");
        }
    }

    #[test]
    fn plugin_is_in_the_version_of_its_provider_resource() {
        let inputs = |pairs: &[(&str, &str)]| {
            let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), PropertyValue::from(*value));
            pairs.iter().map(pair).collect::<PropertyMap>()
        };
        let found = |pairs: &[(&str, &str)]| {
            recorded_plugin("reef", &inputs(pairs)).map(|found| format!("{} {}", found.repository, found.version))
        };
        assert_eq!(found(&[("version", "1.2.3")]).as_deref(), Some("pulumi/pulumi-reef 1.2.3"));
        let of_url = found(&[("version", "1.2.3"), ("pluginDownloadURL", "github://api.github.com/acme")]);
        assert_eq!(of_url.as_deref(), Some("acme/pulumi-reef 1.2.3"));
        assert_eq!(found(&[]), None, "without a version");
        assert_eq!(found(&[("version", "1.2.3"), ("parameterization", "e30=")]), None, "one of several packages");
    }
}
