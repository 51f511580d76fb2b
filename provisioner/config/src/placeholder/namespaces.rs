//! What each namespace of the first pass knows (simple-container §3.2).

use std::collections::{BTreeMap, BTreeSet};

use super::syntax::Placeholder;
use crate::secret_text::SecretText;
use crate::secrets::Secrets;
use crate::surroundings::{Repository, Surroundings};

/// Everything that placeholders of one stack can name.
#[derive(Clone, Copy)]
pub(crate) struct Namespaces<'a> {
    /// Name of the stack.
    pub(crate) stack: &'a str,
    /// Its variables.
    pub(crate) variables: &'a BTreeMap<String, String>,
    /// Its secrets.
    pub(crate) secrets: &'a Secrets,
    /// The process around us.
    pub(crate) surroundings: &'a Surroundings,
    /// The repository.
    pub(crate) repository: &'a Repository,
}

/// What a placeholder stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A text that may be shown.
    Public(String),
    /// A text that must be kept secret.
    Secret(SecretText),
    /// An output of a resource; not known in this pass.
    Reference,
    /// The namespace exists and does not know the path.
    Missing,
    /// No such namespace.
    UnknownNamespace,
}

/// Names of secrets and auth entries that placeholders used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Keys of `values`.
    pub(crate) secrets: BTreeSet<String>,
    /// Names of `auth` entries.
    pub(crate) auth: BTreeSet<String>,
}

/// All namespaces, for suggestions.
pub(super) const NAMESPACES: [&str; 10] =
    ["env", "secret", "auth", "var", "stack", "git", "project", "date", "user", "resource"];

pub(super) const GIT: [&str; 6] = ["root", "commit.short", "commit.full", "branch", "branch.clean", "branch.raw"];
const DATE: [&str; 11] =
    ["time", "dateOnly", "timestamp", "iso8601", "rfc3339", "year", "month", "day", "hour", "minute", "second"];
const USER: [&str; 5] = ["home", "homeDir", "username", "id", "name"];

impl Namespaces<'_> {
    /// Looks a placeholder up. Defaults count only where the namespace honours them.
    pub(crate) fn find(&self, placeholder: &Placeholder<'_>, used: &mut Used) -> Found {
        let default = || placeholder.default.map(str::to_owned);
        let Some(path) = placeholder.path else { return self.without_path(placeholder.namespace) };
        let public = |value: Option<String>| value.map_or(Found::Missing, Found::Public);
        match placeholder.namespace {
            "env" => {
                let value = self.surroundings.environment.get(path).filter(|value| !value.is_empty()).cloned();
                Found::Public(value.or_else(default).unwrap_or_default())
            }
            "secret" => match self.secrets.values.get(path) {
                Some(value) => {
                    used.secrets.insert(path.to_owned());
                    Found::Secret(value.clone())
                }
                None => Found::Missing,
            },
            "auth" => self.auth(path, used),
            "var" => public(self.variables.get(path).cloned()),
            "stack" => public((path == "name").then(|| self.stack.to_owned())),
            "project" => public((path == "root").then(|| self.repository.root.display().to_string())),
            "git" => public(self.git(path)),
            "date" => public(self.date(path).or_else(default)),
            "user" => public(self.user(path)),
            // A default of a reference counts at once, as in the Go program.
            "resource" => default().map_or(Found::Reference, Found::Public),
            _ => default().map_or(Found::UnknownNamespace, Found::Public),
        }
    }

    /// What could have been meant, for suggestions.
    pub(crate) fn candidates(&self, namespace: &str) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        match namespace {
            "secret" => self.secrets.values.keys().cloned().collect(),
            "auth" => self.secrets.auth.keys().cloned().collect(),
            "var" => self.variables.keys().cloned().collect(),
            "stack" => owned(&["name"]),
            "project" => owned(&["root"]),
            "git" => owned(&GIT),
            "date" => owned(&DATE),
            "user" => owned(&USER),
            _ => Vec::new(),
        }
    }

    fn without_path(&self, namespace: &str) -> Found {
        if NAMESPACES.contains(&namespace) { Found::Missing } else { Found::UnknownNamespace }
    }

    /// `<name>` or `<name>.projectId`; a name cannot hold a dot.
    fn auth(&self, path: &str, used: &mut Used) -> Found {
        let (name, property) = match path.split_once('.') {
            Some((name, property)) => (name, Some(property)),
            None => (path, None),
        };
        let text = self.secrets.auth.get(name).and_then(|auth| match property {
            None => Some(auth.credentials()),
            Some("projectId") => Some(auth.project_id()),
            Some(_) => None,
        });
        match text {
            Some(text) => {
                used.auth.insert(name.to_owned());
                Found::Secret(text)
            }
            None => Found::Missing,
        }
    }

    fn git(&self, path: &str) -> Option<String> {
        let git = self.repository.git.as_ref()?;
        if path == "root" {
            return Some(self.repository.root.display().to_string());
        }
        let head = git.head.as_ref()?;
        match path {
            "commit.short" => head.commit.get(..7).map(str::to_owned),
            "commit.full" => Some(head.commit.clone()),
            "branch.raw" => head.branch.clone(),
            "branch" | "branch.clean" => head.branch.as_ref().map(|branch| branch.replace('/', "-")),
            _ => None,
        }
    }

    fn date(&self, path: &str) -> Option<String> {
        let now = &self.surroundings.now;
        let format = match path {
            "time" => "%Y-%m-%dT%H:%M:%S",
            "dateOnly" => "%Y-%m-%d",
            "timestamp" => return Some(now.timestamp().as_second().to_string()),
            "iso8601" | "rfc3339" if now.offset().is_zero() => "%Y-%m-%dT%H:%M:%SZ",
            "iso8601" | "rfc3339" => "%Y-%m-%dT%H:%M:%S%:z",
            "year" => "%Y",
            "month" => "%m",
            "day" => "%d",
            "hour" => "%H",
            "minute" => "%M",
            "second" => "%S",
            _ => return None,
        };
        Some(now.strftime(format).to_string())
    }

    fn user(&self, path: &str) -> Option<String> {
        let account = self.surroundings.account.as_ref()?;
        match path {
            "home" | "homeDir" => Some(account.home.display().to_string()),
            "username" => Some(account.username.clone()),
            "id" => Some(account.id.clone()),
            "name" => Some(account.name.clone()),
            _ => None,
        }
    }
}
