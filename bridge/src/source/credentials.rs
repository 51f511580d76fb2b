//! Credentials that are found around a command: in its environment, and in the files of GitHub's command line and of netrc.
//!
//! Each belongs to a host. A credential that was refused is left out for the rest of the command.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;

use super::netrc;
use crate::fs::{MAX_DOCUMENT_BYTES, read_if_exists};
use crate::plugin::SourceToken;
use crate::process::{FirstLine, HostEnvironment, ProcessSandbox, ProcessSpec, Spawner};
use crate::yaml;

/// Host of GitHub, whose API has another one.
const GITHUB: &str = "github.com";
const GITHUB_API: &str = "api.github.com";
/// Time limit of `gh auth token`, which may ask a keyring.
const GH_TIMEOUT: Duration = Duration::from_secs(10);
/// Variables that `gh` inherits.
const GH_VARIABLES: [&str; 7] =
    ["PATH", "HOME", "USER", "GH_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Credential of a host, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Name for messages, such as `GITHUB_TOKEN`.
    pub name: String,
    /// The token.
    pub token: SourceToken,
}

/// Search for credentials. Clones share what was found and refused.
#[derive(Clone, Default)]
pub struct Credentials {
    shared: Arc<Shared>,
}

/// Receiver of each token that is found.
type ReceiveToken = Box<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct Shared {
    environment: HostEnvironment,
    /// Spawner of `gh`; `None`: it is not asked.
    spawner: Option<Spawner>,
    /// Receives each token that is found, so that it is masked.
    found: Option<ReceiveToken>,
    by_host: tokio::sync::Mutex<BTreeMap<String, Vec<Credential>>>,
    /// Hosts, repositories (`None` is all of the host) and names of the credentials that were refused.
    refused: Mutex<BTreeSet<(String, Option<String>, String)>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// Entry of a host in `hosts.yml`.
#[derive(Deserialize)]
struct GhHost {
    oauth_token: Option<String>,
}

impl Credentials {
    /// Returns the search in an environment. `found` receives each token, so that it is masked in all output.
    pub fn new(environment: HostEnvironment, spawner: Spawner, found: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let found: ReceiveToken = Box::new(found);
        let shared = Shared { environment, spawner: Some(spawner), found: Some(found), ..Shared::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the first credential of the host of a request about a repository that was not refused: `host`, with its port unless that is
    /// the usual one.
    pub async fn find(&self, host: &str, repository: &str) -> Option<Credential> {
        let host = if host == GITHUB_API { GITHUB } else { host };
        let mut by_host = self.shared.by_host.lock().await;
        if !by_host.contains_key(host) {
            let found = self.search(host).await;
            if let Some(report) = &self.shared.found {
                found.iter().for_each(|credential| report(credential.token.expose()));
            }
            by_host.insert(host.to_owned(), found);
        }
        let refused = self.refused();
        let is_refused = |repository: Option<&str>, name: &str| {
            refused.contains(&(host.to_owned(), repository.map(str::to_owned), name.to_owned()))
        };
        let is_usable = |credential: &&Credential| {
            !is_refused(None, &credential.name) && !is_refused(Some(repository), &credential.name)
        };
        by_host.get(host)?.iter().find(is_usable).cloned()
    }

    /// Returns the token for a registry of Terraform providers, as Terraform finds it in `TF_TOKEN_HOST`, unless it was refused: `host`, with its
    /// port unless that is the usual one.
    pub fn of_registry(&self, host: &str) -> Option<Credential> {
        let name = registry_variable(host);
        let found = credential(&name, self.variable(&name)?.to_owned())?;
        if let Some(report) = &self.shared.found {
            report(found.token.expose());
        }
        let is_refused = self.refused().contains(&(host.to_owned(), None, name));
        (!is_refused).then_some(found)
    }

    /// Leaves a credential of a host out from now on, for a repository or for all. Returns true if it was not left out before.
    pub fn refuse(&self, host: &str, repository: Option<&str>, name: &str) -> bool {
        let host = if host == GITHUB_API { GITHUB } else { host };
        self.refused().insert((host.to_owned(), repository.map(str::to_owned), name.to_owned()))
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, BTreeSet<(String, Option<String>, String)>> {
        self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.shared.environment.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    async fn search(&self, host: &str) -> Vec<Credential> {
        let mut found: Vec<Credential> = self.of_variables(host).collect();
        match self.of_gh(host) {
            Some(Some(token)) => found.extend(credential("the file hosts.yml of gh", token)),
            // The token is in a keyring.
            Some(None) => found.extend(self.of_gh_command(host).await),
            None => {}
        }
        let name = host.split(':').next().unwrap_or(host);
        let file = self.variable("NETRC").map(PathBuf::from).or_else(|| Some(self.home()?.join(".netrc")));
        let text = file.and_then(|file| text_of(&file)).unwrap_or_default();
        let of_netrc =
            netrc::password(&text, name).or_else(|| (name == GITHUB).then(|| netrc::password(&text, GITHUB_API))?);
        found.extend(of_netrc.and_then(|password| credential("netrc", password)));
        found
    }

    /// Returns the credentials in variables: those of GitHub, or those of the server that `GH_HOST` names.
    fn of_variables(&self, host: &str) -> impl Iterator<Item = Credential> {
        let names: &[&str] = match host {
            GITHUB => &["GH_TOKEN", "GITHUB_TOKEN"],
            other if self.variable("GH_HOST") == Some(other) => &["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"],
            _ => &[],
        };
        // On a runner of GitHub Enterprise, the token is for another server.
        let api = self.variable("GITHUB_API_URL").map_or("", |url| url.trim_end_matches('/'));
        let is_for_github = matches!(api, "" | "https://api.github.com");
        let is_used = move |name: &&&str| **name != "GITHUB_TOKEN" || is_for_github;
        names.iter().filter(is_used).filter_map(|name| credential(name, self.variable(name)?.to_owned()))
    }

    fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }

    /// Returns what the file of GitHub's command line has for a host; `None` if it does not name the host, and no token if that is in a
    /// keyring.
    fn of_gh(&self, host: &str) -> Option<Option<String>> {
        let folder = match (self.variable("GH_CONFIG_DIR"), self.variable("XDG_CONFIG_HOME")) {
            (Some(folder), _) => PathBuf::from(folder),
            (None, Some(folder)) => Path::new(folder).join("gh"),
            (None, None) => self.home()?.join(".config/gh"),
        };
        let hosts: BTreeMap<String, GhHost> = yaml::from_str(&text_of(&folder.join("hosts.yml"))?).ok()?;
        hosts.into_iter().find(|(name, _)| name == host).map(|(_, of_host)| of_host.oauth_token)
    }

    /// Asks `gh auth token`.
    async fn of_gh_command(&self, host: &str) -> Option<Credential> {
        let program = self.shared.environment.find_program("gh")?;
        let mut environment: Vec<(OsString, OsString)> = self.shared.environment.select(GH_VARIABLES).collect();
        environment.push(("GH_NO_UPDATE_NOTIFIER".into(), "1".into()));
        let spec = ProcessSpec {
            program,
            arguments: ["auth", "token", "--hostname", host].map(OsString::from).to_vec(),
            directory: "/".into(),
            environment,
            sandbox: ProcessSandbox::None,
        };
        let process = self.shared.spawner.as_ref()?.spawn(&spec, Arc::new(())).ok()?;
        let status = tokio::time::timeout(GH_TIMEOUT, process.wait_for_exit()).await.ok()?;
        process.wait_for_output_end().await;
        match process.first_line().await {
            FirstLine::Line(line) if status.success() => credential("gh auth token", line),
            _ => None,
        }
    }
}

/// Returns the name of the variable that has the token for a registry. In names of variables, a dot is `_`, and a hyphen is `__`.
pub fn registry_variable(host: &str) -> String {
    format!("TF_TOKEN_{}", host.replace('-', "__").replace('.', "_"))
}

fn credential(name: &str, token: String) -> Option<Credential> {
    Some(Credential { name: name.to_owned(), token: SourceToken::new(token.trim().to_owned())? })
}

/// Returns the text of a file; `None` if it cannot be read, which counts as if it were not there.
fn text_of(path: &Path) -> Option<String> {
    String::from_utf8(read_if_exists(path, MAX_DOCUMENT_BYTES).ok()??).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Returns the names of the credentials of a host, in their order.
    async fn names(variables: &[(&str, &str)], home: &Path, host: &str) -> Vec<String> {
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let home = [(OsString::from("HOME"), home.into())];
        let environment = HostEnvironment::new(variables.chain(home));
        let credentials = Credentials::new(environment, Spawner::unsupervised(), |_| ());
        let mut found = Vec::new();
        while let Some(credential) = credentials.find(host, "acme/reef").await {
            credentials.refuse(host, None, &credential.name);
            found.push(format!("{} {}", credential.name, credential.token.expose()));
        }
        found
    }

    /// Shows: plugins.md#credentials "The first one counts"
    #[tokio::test]
    async fn variables_precede_gh_and_gh_precedes_netrc() {
        let home = tempfile::tempdir().unwrap();
        let variables = [("GH_TOKEN", "one"), ("GITHUB_TOKEN", "two")];
        fs::create_dir_all(home.path().join(".config/gh")).unwrap();
        fs::write(home.path().join(".config/gh/hosts.yml"), "github.com:\n    user: me\n    oauth_token: three\n")
            .unwrap();
        fs::write(home.path().join(".netrc"), "machine github.com login me password four\n").unwrap();
        let all = ["GH_TOKEN one", "GITHUB_TOKEN two", "the file hosts.yml of gh three", "netrc four"];
        assert_eq!(names(&variables, home.path(), "github.com").await, all);
        assert_eq!(names(&variables, home.path(), "api.github.com").await, all);
        assert_eq!(names(&[("GH_TOKEN", "")], home.path(), "github.com").await, all[2..]);
    }

    /// Shows: plugins.md#credentials "A credential is for its host alone"
    #[tokio::test]
    async fn credential_is_for_its_host_alone() {
        let home = tempfile::tempdir().unwrap();
        let variables = [
            ("GH_TOKEN", "one"),
            ("GITHUB_TOKEN", "two"),
            ("GH_HOST", "git.reef.example"),
            ("GH_ENTERPRISE_TOKEN", "three"),
            ("GITHUB_ENTERPRISE_TOKEN", "four"),
        ];
        fs::write(home.path().join(".netrc"), "default login me password any\nmachine other.example password five\n")
            .unwrap();
        for (host, expected) in [
            ("github.com", &["GH_TOKEN one", "GITHUB_TOKEN two"][..]),
            ("git.reef.example", &["GH_ENTERPRISE_TOKEN three", "GITHUB_ENTERPRISE_TOKEN four"]),
            ("other.example", &["netrc five"]),
            ("github.com.example", &[]),
            ("evil.example", &[]),
        ] {
            assert_eq!(names(&variables, home.path(), host).await, expected, "{host}");
        }
        let enterprise = [("GITHUB_TOKEN", "two"), ("GITHUB_API_URL", "https://git.reef.example/api/v3")];
        assert_eq!(names(&enterprise, home.path(), "github.com").await, [""; 0]);
    }

    /// Shows: plugins.md#credentials "`TF_TOKEN_HOST`, in which a dot of the host is `_` and a hyphen is `__`"
    #[test]
    fn token_of_a_registry_is_in_the_variable_of_its_host() {
        let variables = [("TF_TOKEN_tf__reef_example", "one"), ("GH_TOKEN", "two"), ("TF_TOKEN_empty", "")];
        let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let found = Arc::new(Mutex::new(Vec::new()));
        let report = Arc::clone(&found);
        let report = move |token: &str| report.lock().unwrap().push(token.to_owned());
        let credentials = Credentials::new(HostEnvironment::new(variables), Spawner::unsupervised(), report);
        let credential = credentials.of_registry("tf-reef.example").unwrap();
        assert_eq!((credential.name.as_str(), credential.token.expose()), ("TF_TOKEN_tf__reef_example", "one"));
        assert_eq!(*found.lock().unwrap(), ["one"]);
        for host in ["github.com", "reef.example", "tf-reef.example:8443", "empty"] {
            assert_eq!(credentials.of_registry(host), None, "{host}");
        }
        assert!(credentials.refuse("tf-reef.example", None, &credential.name));
        assert_eq!(credentials.of_registry("tf-reef.example"), None);
    }

    #[tokio::test]
    async fn credential_that_one_repository_refuses_is_used_for_others() {
        let home = tempfile::tempdir().unwrap();
        let variables =
            [(OsString::from("GH_TOKEN"), OsString::from("one")), (OsString::from("HOME"), home.path().into())];
        let credentials = Credentials::new(HostEnvironment::new(variables), Spawner::unsupervised(), |_| ());
        assert!(credentials.refuse("api.github.com", Some("acme/reef"), "GH_TOKEN"));
        assert_eq!(credentials.find("api.github.com", "acme/reef").await, None);
        assert_eq!(credentials.find("api.github.com", "acme/lake").await.unwrap().name, "GH_TOKEN");
        assert!(!credentials.refuse("github.com", Some("acme/reef"), "GH_TOKEN"));
    }

    #[tokio::test]
    async fn token_in_a_keyring_is_asked_of_gh_for_hosts_that_it_knows() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("gh")).unwrap();
        fs::write(home.path().join("gh/hosts.yml"), "git.reef.example:\n    user: me\n").unwrap();
        let program = home.path().join("bin/gh");
        fs::create_dir(home.path().join("bin")).unwrap();
        fs::write(&program, "#!/bin/sh\necho \"$@\" >> $HOME/calls\necho hidden\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", home.path().join("bin").display());
        let folder = home.path().join("gh").display().to_string();
        let variables = [("PATH", path.as_str()), ("GH_CONFIG_DIR", folder.as_str())];
        assert_eq!(names(&variables, home.path(), "git.reef.example").await, ["gh auth token hidden"]);
        assert_eq!(names(&variables, home.path(), "github.com").await, [""; 0]);
        assert_eq!(fs::read_to_string(home.path().join("calls")).unwrap(), "auth token --hostname git.reef.example\n");
    }
}
