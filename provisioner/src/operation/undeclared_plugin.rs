//! Plugins that no stack declares, as the provider resources of a state and components describe them.

use std::collections::{BTreeMap, BTreeSet};

use bridge::plugin::{GithubReleaseSource, PluginConfig, PluginSource, PluginVersion, WantedVersion};
use engine::{INTERNAL_KEY, VERSION_KEY};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::TypeToken;
use state::Snapshot;

/// Scheme of a download URL that names releases.
const RELEASES: &str = "github://";
/// Host of the API of GitHub in such a URL.
const GITHUB_API: &str = "api.github.com";

/// Plugin, or Terraform provider, that is needed and that no stack declares.
#[derive(Clone, Debug)]
pub struct UndeclaredDownload {
    /// Sentence that says what needs it: `a component needs`.
    pub needed_by: &'static str,
    /// Kind, name, version and place, in words: `the plugin random 4.16.0, a release of pulumi/pulumi-random`.
    pub item: String,
}

/// Plugin that no stack declares, as a provider resource or a component describes it.
#[derive(Clone, Debug)]
pub(super) struct UndeclaredPlugin {
    /// The plugin. Its name is that of its package.
    pub(super) plugin: PluginConfig,
    pub(super) version: PluginVersion,
    /// Repository with its releases.
    repository: String,
    /// Packages in whose provider resources it is.
    pub(super) packages: BTreeSet<String>,
}

impl UndeclaredPlugin {
    /// Describes a plugin by the name of its package, its version and its download URL. `None` without a version, and for a place that is no
    /// repository with releases.
    pub(super) fn new(package: &str, version: Option<&str>, download_url: Option<&str>) -> Option<Self> {
        let version: PluginVersion = version?.parse().ok()?;
        let repository = repository(package, download_url)?;
        let wanted = WantedVersion::Named(format!("v{version}"));
        let source = PluginSource::GithubRelease(GithubReleaseSource::new(repository.clone(), wanted));
        let plugin = PluginConfig { is_undeclared: true, ..PluginConfig::new(package.parse().ok()?, source) };
        Some(Self { plugin, version, repository, packages: BTreeSet::from([package.to_owned()]) })
    }

    /// Describes the plugin of a provider resource with these inputs. One that serves several packages is named beside its parameters.
    fn of_provider(package: &str, inputs: &PropertyMap) -> Option<Self> {
        // Old states hold these keys at the root.
        let internal = inputs.get(INTERNAL_KEY).and_then(PropertyValue::as_map).unwrap_or(inputs);
        let text = |map: &PropertyMap, key: &str| map.get(key).and_then(PropertyValue::as_str).map(str::to_owned);
        let url = text(internal, "pluginDownloadURL");
        let (name, version) = match internal.get("parameterization") {
            Some(_) => (text(internal, "name")?, text(internal, VERSION_KEY)),
            None => (package.to_owned(), text(inputs, VERSION_KEY)),
        };
        let found = Self::new(&name, version.as_deref(), url.as_deref())?;
        Some(Self { packages: BTreeSet::from([package.to_owned()]), ..found })
    }

    /// Returns what it is, in words.
    pub(super) fn words(&self) -> String {
        let Self { plugin, version, repository, .. } = self;
        format!("the plugin {} {version}, a release of {repository}", plugin.name)
    }
}

/// Returns the plugins that the provider resources of a state describe, each in its highest version. One without a version, and one that
/// is not a release, is left out.
pub(super) fn recorded_plugins(snapshot: &Snapshot) -> Vec<UndeclaredPlugin> {
    let mut highest: BTreeMap<String, UndeclaredPlugin> = BTreeMap::new();
    for resource in &snapshot.resources {
        let token = TypeToken::new(resource.urn.type_token());
        let found =
            token.provider_package().and_then(|package| UndeclaredPlugin::of_provider(package, &resource.inputs));
        let Some(mut found) = found else { continue };
        let name = found.plugin.name.to_string();
        if let Some(mut known) = highest.remove(&name) {
            let packages: BTreeSet<String> = known.packages.iter().chain(&found.packages).cloned().collect();
            if known.version >= found.version {
                std::mem::swap(&mut known, &mut found);
            }
            found.packages = packages;
        }
        highest.insert(name, found);
    }
    highest.into_values().collect()
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
            let found = UndeclaredPlugin::of_provider("reef", &inputs(pairs));
            found.map(|found| format!("{} for {:?}", found.words(), found.packages))
        };
        let reef = |place: &str| Some(format!("the plugin reef 1.2.3, a release of {place} for {{\"reef\"}}"));
        assert_eq!(found(&[("version", "1.2.3")]), reef("pulumi/pulumi-reef"));
        let of_url = found(&[("version", "1.2.3"), ("pluginDownloadURL", "github://api.github.com/acme")]);
        assert_eq!(of_url, reef("acme/pulumi-reef"));
        assert_eq!(found(&[]), None, "without a version");
        let parameters = [("name", "many"), ("version", "1.2.3"), ("parameterization", "e30=")];
        let mut of_many = inputs(&[("version", "7.0.0")]);
        of_many.insert(INTERNAL_KEY.to_owned(), inputs(&parameters).into());
        let of_many = UndeclaredPlugin::of_provider("reef", &of_many).unwrap();
        assert_eq!(of_many.words(), "the plugin many 1.2.3, a release of pulumi/pulumi-many");
        assert_eq!(of_many.packages, BTreeSet::from(["reef".to_owned()]));
    }
}
