//! Parameters of a plugin that serves one of several packages (docs/spec/provider-protocol.md#3.5).

use super::{PluginName, PluginSource};

/// Parameters with which a plugin serves another package than its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Arguments of Parameterize, as they are written; at least one.
    pub arguments: Vec<String>,
    /// Package that the plugin serves without parameters, by which its files are named. A guess: only the plugin knows it.
    pub base: PluginName,
}

impl Parameters {
    /// Creates the parameters of a plugin from a source. Its repository has the name of the base package, else `package`
    /// counts, the one that the plugin serves with them.
    pub fn new(arguments: Vec<String>, source: &PluginSource, package: &PluginName) -> Self {
        let repository = match source {
            PluginSource::Local(_) => None,
            PluginSource::GithubRelease(release) => Some(&release.repository),
            PluginSource::Git(git) => Some(&git.url),
            PluginSource::Installed(installed) => Some(&installed.path),
        };
        let base = repository.and_then(|repository| package_of(repository));
        Self { arguments, base: base.unwrap_or_else(|| package.clone()) }
    }
}

/// Returns the package by which Pulumi would name a repository: `reef` for `acme/pulumi-reef` and for `…/reef.git`.
fn package_of(repository: &str) -> Option<PluginName> {
    let last = repository.trim_end_matches('/').rsplit(['/', ':']).next()?;
    let last = last.strip_suffix(".git").unwrap_or(last);
    last.strip_prefix("pulumi-").unwrap_or(last).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_names_the_base_package() {
        for (repository, package) in [
            ("pulumi/pulumi-terraform-provider", Some("terraform-provider")),
            ("https://git.example/acme/reef/", Some("reef")),
            ("git@git.example:pulumi-reef.git", Some("reef")),
            ("https://git.example/acme/Reef", None),
            ("pulumi/pulumi", None),
            ("", None),
        ] {
            assert_eq!(package_of(repository).as_ref().map(PluginName::as_str), package, "{repository}");
        }
    }
}
