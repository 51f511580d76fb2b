//! Places that packages of plugins are from, and the patterns by which a policy names them (docs/plugins.md#policy).

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use url::Url;

use super::{DeclaredBy, GitSource, GithubReleaseSource, PluginConfig, PluginSource, PluginValueError, Transport};

/// Word for files and folders of this machine.
const LOCAL: &str = "local";
/// Word for the folders of plugins of this machine.
const INSTALLED: &str = "installed";
/// Part of a pattern that stands for one part of a place.
const ONE: &str = "*";
/// Part of a pattern that stands for any number of parts of a place.
const ANY: &str = "**";

/// Place that the package of a plugin is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginPlace {
    /// File or folder of this machine, also a git repository in one.
    Local,
    /// Folder of plugins of this machine, or that of the `pulumi` command line.
    Installed,
    /// Repository, as `HOST/PATH`: without a scheme, a user and `.git`, with the port of the host unless it is the usual one.
    Repository(String),
    /// Address that programs may read differently, such as one with `..` or an escape. No pattern fits it.
    Ambiguous(String),
}

impl PluginPlace {
    /// Returns the place of a plugin.
    pub fn of(plugin: &PluginConfig) -> Self {
        match (&plugin.declared_by, &plugin.source) {
            // Wherever this machine has it: its digest is that of the release.
            (DeclaredBy::Program { repository }, _) => Self::Repository(format!("github.com/{repository}")),
            (DeclaredBy::Stack, PluginSource::Local(_)) => Self::Local,
            (DeclaredBy::Stack, PluginSource::Installed(_)) => Self::Installed,
            (DeclaredBy::Stack, PluginSource::GithubRelease(source)) => Self::of_release(source),
            (DeclaredBy::Stack, PluginSource::Git(source)) => Self::of_git(source),
        }
    }

    /// Returns the place of a release. Another API than that of the repository is where the assets come from.
    fn of_release(source: &GithubReleaseSource) -> Self {
        let written = source.repository.as_str();
        let (of_repository, name) = match written.strip_prefix("https://") {
            None => (Some("github.com".to_owned()), written),
            Some(rest) => (host_of(written), rest.split_once('/').map_or("", |(_, name)| name)),
        };
        let host = match source.api_url.as_deref().filter(|_| !source.is_mirror) {
            None => of_repository,
            Some(api) => host_of(api).map(|host| {
                let path = authority_and_path(api).1.trim_end_matches('/');
                if ["", "/api/v3"].contains(&path) { host } else { host + path }
            }),
        };
        let host = host.map(|host| match host.as_str() {
            "api.github.com" | "www.github.com" => "github.com".to_owned(),
            _ => host,
        });
        Self::repository(host.as_deref(), name, written)
    }

    /// Returns the place of a git repository.
    pub fn of_git(source: &GitSource) -> Self {
        let url = source.url.as_str();
        match Transport::of(url) {
            Some(Transport::File) => Self::Local,
            Some(_) if url.contains("://") => {
                Self::repository(host_of(url).as_deref(), authority_and_path(url).1.trim_start_matches('/'), url)
            }
            Some(_) => match ssh_parts(url) {
                Some((host, path)) => Self::repository(Some(&host), path.trim_start_matches('/'), url),
                None => Self::ambiguous(url),
            },
            None => Self::ambiguous(url),
        }
    }

    /// Returns the place of a path on a host; an ambiguous one unless each part of the path is one to each reader.
    fn repository(host: Option<&str>, path: &str, written: &str) -> Self {
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && !"%?#\\*".contains(c);
        let is_part = |part: &str| !["", ".", ".."].contains(&part) && part.chars().all(is_plain);
        match host.map(|host| format!("{host}/{path}")) {
            Some(place) if place.split('/').all(is_part) => Self::Repository(place),
            _ => Self::ambiguous(written),
        }
    }

    fn ambiguous(written: &str) -> Self {
        let (scheme, rest) = written.split_once("://").unwrap_or(("", written));
        // A password may have any character.
        let shown = rest.rsplit('@').next().unwrap_or_default();
        Self::Ambiguous(if scheme.is_empty() { shown.to_owned() } else { format!("{scheme}://{shown}") })
    }
}

/// Returns the host of a URL in lower case, with its port unless it is the usual one of the scheme.
fn host_of(url: &str) -> Option<String> {
    // Programs read these characters differently.
    if url.chars().any(|c| c == '\\' || c.is_control() || c.is_whitespace()) {
        return None;
    }
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.to_ascii_lowercase();
    let usual = match url.scheme() {
        "git" => 9418,
        "ssh" | "git+ssh" | "ssh+git" => 22,
        _ => 0,
    };
    Some(url.port().filter(|port| *port != usual).map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}

/// Returns what is between the scheme of a URL and its path, and the path as it is written, with a query and a fragment.
fn authority_and_path(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

/// Returns host and path of `USER@HOST:PATH`, in which the host may be in brackets: an address of IPv6, or one with a port.
fn ssh_parts(address: &str) -> Option<(String, &str)> {
    let (head, path) = match address.split_once("]:") {
        Some((head, path)) if head.contains('[') => (head, path),
        _ => address.split_once(':')?,
    };
    let host = head.rsplit_once('@').map_or(head, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(inner) if inner.parse::<Ipv6Addr>().is_ok() => format!("[{inner}]"),
        Some(inner) => inner.strip_suffix(":22").unwrap_or(inner).to_owned(),
        None => host.to_owned(),
    };
    Some((host.to_ascii_lowercase(), path))
}

impl fmt::Display for PluginPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str(LOCAL),
            Self::Installed => f.write_str(INSTALLED),
            Self::Repository(place) | Self::Ambiguous(place) => f.write_str(place),
        }
    }
}

/// Pattern of places: `local`, `installed`, or parts joined by slashes, of which `*` stands for one part and `**` for any number of parts:
/// `github.com/pulumi/*`, `git.corp.example/**`. `**` alone stands for each place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacePattern(String);

impl PlacePattern {
    /// Returns whether a place is one of the pattern.
    pub fn matches(&self, place: &PluginPlace) -> bool {
        match place {
            PluginPlace::Local => [LOCAL, ANY].contains(&self.0.as_str()),
            PluginPlace::Installed => [INSTALLED, ANY].contains(&self.0.as_str()),
            PluginPlace::Repository(place) => {
                let pattern: Vec<&str> = self.0.split('/').collect();
                let parts: Vec<&str> = place.split('/').collect();
                ![LOCAL, INSTALLED].contains(&self.0.as_str()) && fits(&pattern, &parts)
            }
            PluginPlace::Ambiguous(_) => false,
        }
    }
}

fn fits(pattern: &[&str], parts: &[&str]) -> bool {
    match (pattern, parts) {
        ([], []) => true,
        ([first, rest @ ..], _) if *first == ANY => (0..=parts.len()).any(|count| fits(rest, &parts[count..])),
        ([first, pattern @ ..], [part, parts @ ..]) => (*first == ONE || first == part) && fits(pattern, parts),
        _ => false,
    }
}

impl FromStr for PlacePattern {
    type Err = PluginValueError;

    fn from_str(text: &str) -> Result<Self, PluginValueError> {
        let refused = |reason| Err(PluginValueError::Place { text: text.to_owned(), reason });
        if [LOCAL, INSTALLED, ANY].contains(&text) {
            return Ok(Self(text.to_owned()));
        }
        if text.contains("://") || text.contains('@') {
            return refused("a place has neither a scheme nor a user");
        }
        if !text.contains('/') {
            return refused("a place is `local`, `installed`, or a host and a path such as github.com/pulumi/*");
        }
        if text.matches(ANY).count() > 4 {
            return refused("it has more than four times `**`");
        }
        for part in text.split('/') {
            if ["", ".", ".."].contains(&part) {
                return refused("a part between slashes is empty, `.` or `..`");
            }
            if part.contains('*') && ![ONE, ANY].contains(&part) {
                return refused("`*` and `**` are whole parts between slashes");
            }
        }
        let (host, path) = text.split_once('/').unwrap_or((text, ""));
        Ok(Self(format!("{}/{}", host.to_ascii_lowercase(), path.strip_suffix(".git").unwrap_or(path))))
    }
}

impl fmt::Display for PlacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{LocalSource, WantedVersion};

    fn git(url: &str) -> PluginPlace {
        PluginPlace::of_git(&GitSource {
            url: url.into(),
            version: WantedVersion::Named("main".into()),
            subdir: Default::default(),
            platform: None,
            checksum: None,
            token: None,
            insecure: false,
            build: None,
        })
    }

    fn release(repository: &str, api_url: Option<&str>) -> GithubReleaseSource {
        let release = GithubReleaseSource::new(repository.into(), WantedVersion::Named("v1.0.0".into()));
        GithubReleaseSource { api_url: api_url.map(Into::into), ..release }
    }

    /// Shows: plugins.md#policy "Of a git repository it is `HOST/PATH`, without scheme, user and `.git`"
    #[test]
    fn place_of_a_git_repository_has_neither_scheme_nor_user() {
        for (url, place) in [
            ("https://git.corp.example/team/reef.git", "git.corp.example/team/reef"),
            ("https://me:word@GIT.corp.example/team/reef/", "git.corp.example/team/reef"),
            ("https://git.corp.example:443/reef", "git.corp.example/reef"),
            ("https://git.corp.example:8443/reef", "git.corp.example:8443/reef"),
            ("ssh://git@git.corp.example:22/team/reef", "git.corp.example/team/reef"),
            ("ssh://git@git.corp.example:2222/team/reef", "git.corp.example:2222/team/reef"),
            ("git@Git.corp.example:team/reef.git", "git.corp.example/team/reef"),
            ("git.corp.example:/srv/reef", "git.corp.example/srv/reef"),
            ("git@[git.corp.example:2222]:team/reef", "git.corp.example:2222/team/reef"),
            ("[::1]:team/reef", "[::1]/team/reef"),
            ("git://git.corp.example/reef", "git.corp.example/reef"),
        ] {
            assert_eq!(git(url), PluginPlace::Repository(place.into()), "{url}");
        }
        for url in ["/srv/reef", "../reef", "file:///srv/reef", "a/b:c"] {
            assert_eq!(git(url), PluginPlace::Local, "{url}");
        }
    }

    #[test]
    fn address_that_programs_may_read_differently_fits_no_pattern() {
        for url in [
            "https://git.corp.example/team/../evil/reef",
            "https://git.corp.example/team/%2e%2e/evil/reef",
            "https://git.corp.example/team//reef",
            "https://git.corp.example/team/reef?x=/evil",
            "https://git.corp.example/team/reef#x",
            "https://git.corp.example\\@evil.example/team/reef",
            "https://git.corp.example/",
            "ssh://git@git.corp.example/team/./reef",
            "git@git.corp.example:team/../evil",
            "git@git.corp.example:team/*",
            "ext::sh -c git.corp.example/team/reef",
        ] {
            let place = git(url);
            assert!(matches!(place, PluginPlace::Ambiguous(_)), "{url}: {place}");
            for pattern in ["**", "git.corp.example/**", "git.corp.example/team/*"] {
                assert!(!pattern.parse::<PlacePattern>().unwrap().matches(&place), "{url} {pattern}");
            }
        }
        assert_eq!(git("https://me:word@git.example/a/../b").to_string(), "https://git.example/a/../b");
    }

    /// Shows: plugins.md#policy "of a release `HOST/OWNER/NAME`, where `HOST` is `github.com`, or that of `apiUrl`"
    #[test]
    fn place_of_a_release_is_where_its_assets_come_from() {
        for (repository, api, place) in [
            ("pulumi/pulumi-random", None, "github.com/pulumi/pulumi-random"),
            ("https://github.com/pulumi/pulumi-random.git", None, "github.com/pulumi/pulumi-random"),
            ("https://www.github.com/pulumi/pulumi-random", None, "github.com/pulumi/pulumi-random"),
            ("https://GHE.corp.example/acme/reef", None, "ghe.corp.example/acme/reef"),
            ("pulumi/x", Some("https://api.github.com"), "github.com/pulumi/x"),
            ("pulumi/x", Some("https://ghe.corp.example/api/v3/"), "ghe.corp.example/pulumi/x"),
            ("pulumi/x", Some("https://evil.example/"), "evil.example/pulumi/x"),
            ("https://github.com/pulumi/x", Some("https://evil.example:99/api"), "evil.example:99/api/pulumi/x"),
        ] {
            let found = PluginPlace::of_release(&release(repository, api));
            assert_eq!(found, PluginPlace::Repository(place.into()), "{repository} {api:?}");
        }
        // The mirror is one of the user, not of the declaration.
        let mirror = GithubReleaseSource { is_mirror: true, ..release("pulumi/x", Some("https://mirror.example")) };
        assert_eq!(PluginPlace::of_release(&mirror).to_string(), "github.com/pulumi/x");
        for (repository, api) in
            [("https://github.com/a/../b", None), ("a/b", Some("https://evil.example\\@github.com"))]
        {
            assert!(matches!(PluginPlace::of_release(&release(repository, api)), PluginPlace::Ambiguous(_)));
        }
    }

    #[test]
    fn package_of_a_core_type_is_from_its_repository_wherever_this_machine_has_it() {
        let source = PluginSource::Local(LocalSource::new("/home/me/.pulumi/plugins/x"));
        let mut plugin = PluginConfig::new("aws".parse().unwrap(), source);
        assert_eq!(PluginPlace::of(&plugin), PluginPlace::Local);
        plugin.declared_by = DeclaredBy::Program { repository: "pulumi/pulumi-aws".into() };
        assert_eq!(PluginPlace::of(&plugin).to_string(), "github.com/pulumi/pulumi-aws");
    }

    /// Shows: plugins.md#policy "`*` stands for one part between slashes, `**` for any number"
    #[test]
    fn pattern_is_compared_part_by_part() {
        for (pattern, inside, outside) in [
            (
                "github.com/pulumi/*",
                &["github.com/pulumi/x"][..],
                &[
                    "github.com/pulumi",
                    "github.com/pulumi/x/y",
                    "github.com/evil/x",
                    "evil.example/github.com/pulumi/x",
                ][..],
            ),
            (
                "git.corp.example/**",
                &["git.corp.example/x", "git.corp.example/a/b/c"],
                &["git.corp.example.evil.example/x", "git.corp.example:99/x"],
            ),
            (
                "GitHub.com/pulumi/pulumi-random.git",
                &["github.com/pulumi/pulumi-random"],
                &["github.com/pulumi/pulumi-random2"],
            ),
            ("*/acme/*", &["git.example/acme/x"], &["git.example/x"]),
            ("git.example/**/reef", &["git.example/reef", "git.example/a/b/reef"], &["git.example/reef/x"]),
            ("**", &["git.example/x"], &[]),
            ("local", &[], &["local/x", "local"]),
        ] {
            let parsed: PlacePattern = pattern.parse().unwrap();
            let matches = |place: &&str| parsed.matches(&PluginPlace::Repository((*place).to_owned()));
            inside.iter().for_each(|place| assert!(matches(place), "{pattern} {place}"));
            outside.iter().for_each(|place| assert!(!matches(place), "{pattern} {place}"));
            assert_eq!(parsed.matches(&PluginPlace::Local), ["local", "**"].contains(&pattern), "{pattern}");
        }
    }

    #[test]
    fn pattern_that_means_nothing_is_refused() {
        for text in [
            "",
            "Local",
            "*",
            "github.com",
            "https://github.com/pulumi/*",
            "git@h:a/b",
            "github.com//x",
            "github.com/../x",
            "github.com/pulumi/pulumi-*",
            "*.example/x",
            "a/**b",
            "a/**/**/**/**/**",
        ] {
            assert!(matches!(text.parse::<PlacePattern>(), Err(PluginValueError::Place { .. })), "{text}");
        }
    }
}
