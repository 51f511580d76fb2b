//! Values of the placeholder namespaces (docs/spec/simple-container.md#3.2), references to resources excepted.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;

use super::syntax::{FUNCTION, NAMESPACES, Placeholder};
use crate::process_context::{ProcessContext, Repository};
use crate::secret_text::SecretText;
use crate::secrets::Secrets;
use crate::stack_outputs::ReadableStacks;

/// Sources of the values of a stack's placeholders.
#[derive(Clone, Copy)]
pub(crate) struct Namespaces<'a> {
    /// Name of the stack.
    pub(crate) stack: &'a str,
    /// The Pulumi project.
    pub(crate) project: &'a str,
    /// Variables of the stack.
    pub(crate) variables: &'a BTreeMap<String, String>,
    /// Secrets of the stack.
    pub(crate) secrets: &'a Secrets,
    /// Environment, time and account of the process.
    pub(crate) process_context: &'a ProcessContext,
    /// The repository.
    pub(crate) repository: &'a Repository,
    /// Stacks whose outputs may be read.
    pub(crate) stacks: ReadableStacks<'a>,
    /// Treatment of values that another process may have.
    pub(crate) missing: MissingValues,
}

/// Treatment of values of `env`, `secret` and `auth` that this process does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MissingValues {
    /// An unset variable is an empty text, with a warning. A missing secret is an error.
    #[default]
    Reported,
    /// Each that another process may have counts as unknown.
    Unknown,
    /// Each is an error.
    Rejected,
}

/// Value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlaceholderValue {
    /// A text that may be displayed.
    Public(String),
    /// A secret text.
    Secret(SecretText),
    /// An environment variable that is not set, without a default: an empty text.
    Unset,
    /// A text that may be displayed and that this process does not have.
    Unknown,
    /// A secret text that this process does not have.
    UnknownSecret,
    /// An output of a resource, or a result of a function, which exists only in a run.
    Reference,
    /// The namespace exists but has no such path.
    Missing,
    /// The namespace does not exist.
    UnknownNamespace,
}

/// Names of the secrets and auth entries that placeholders used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsedSecrets {
    /// Keys of `values`.
    pub(crate) secrets: BTreeSet<String>,
    /// Names of `auth` entries.
    pub(crate) auth: BTreeSet<String>,
}

pub(super) const GIT: [&str; 6] = ["root", "commit.short", "commit.full", "branch", "branch.clean", "branch.raw"];
const DATE: [&str; 11] =
    ["time", "dateOnly", "timestamp", "iso8601", "rfc3339", "year", "month", "day", "hour", "minute", "second"];
const USER: [&str; 5] = ["home", "homeDir", "username", "id", "name"];

impl Namespaces<'_> {
    /// Looks up a placeholder. The default applies only in namespaces that support defaults.
    pub(crate) fn lookup(&self, placeholder: &Placeholder<'_>, used: &mut UsedSecrets) -> PlaceholderValue {
        let default = || placeholder.default.map(str::to_owned);
        let Some(path) = placeholder.path else { return self.value_without_path(placeholder.namespace) };
        let public = |value: Option<String>| value.map_or(PlaceholderValue::Missing, PlaceholderValue::Public);
        match placeholder.namespace {
            "env" => {
                let value = self.process_context.environment.get(path);
                let text = value.filter(|value| !value.is_empty()).cloned().or_else(default);
                match (text, self.missing) {
                    (Some(text), _) => PlaceholderValue::Public(text),
                    (None, MissingValues::Unknown) if !path.is_empty() => PlaceholderValue::Unknown,
                    // CI sets the variables of a fork's pull request to empty texts.
                    (None, MissingValues::Rejected) => PlaceholderValue::Unset,
                    (None, _) => value.cloned().map_or(PlaceholderValue::Unset, PlaceholderValue::Public),
                }
            }
            "secret" => match self.secrets.values.get(path) {
                Some(value) => {
                    used.secrets.insert(path.to_owned());
                    PlaceholderValue::Secret(value.clone())
                }
                None if self.may_have_secrets() && !path.is_empty() => PlaceholderValue::UnknownSecret,
                None => PlaceholderValue::Missing,
            },
            "auth" => self.lookup_auth(path, used),
            "var" => public(self.variables.get(path).cloned()),
            "stack" => public((path == "name").then(|| self.stack.to_owned())),
            "project" => public((path == "root").then(|| self.repository.root.display().to_string())),
            "git" => public(self.lookup_git(path)),
            "date" => public(self.lookup_date(path).or_else(default)),
            "user" => public(self.lookup_user(path)),
            "resource" | FUNCTION => PlaceholderValue::Reference,
            _ => default().map_or(PlaceholderValue::UnknownNamespace, PlaceholderValue::Public),
        }
    }

    /// Returns whether a `file://` URL begins with the path of the repository, and that path has a character which has a
    /// meaning of its own in the URL. Placeholders insert the path as it is.
    pub(crate) fn root_has_reserved(&self, url: &str, reserved: char) -> bool {
        let root = self.repository.root.display().to_string();
        root.contains(reserved) && url.strip_prefix("file://").is_some_and(|path| path.starts_with(&root))
    }

    /// Returns the paths of a namespace, for suggestions.
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

    fn value_without_path(&self, namespace: &str) -> PlaceholderValue {
        if NAMESPACES.contains(&namespace) { PlaceholderValue::Missing } else { PlaceholderValue::UnknownNamespace }
    }

    /// Looks up `<name>` or `<name>.projectId`. A name cannot contain a dot.
    fn lookup_auth(&self, path: &str, used: &mut UsedSecrets) -> PlaceholderValue {
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
                PlaceholderValue::Secret(text)
            }
            None if self.may_have_secrets() && !name.is_empty() && matches!(property, None | Some("projectId")) => {
                PlaceholderValue::UnknownSecret
            }
            None => PlaceholderValue::Missing,
        }
    }

    /// Returns whether another process may have secrets of the stack that this one did not read, and a check counts them as met.
    pub(crate) fn may_have_secrets(&self) -> bool {
        self.missing == MissingValues::Unknown && (self.secrets.is_withheld || self.secrets.is_incomplete)
    }

    fn lookup_git(&self, path: &str) -> Option<String> {
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

    fn lookup_date(&self, path: &str) -> Option<String> {
        let time_zone = self.process_context.time_zone.clone().unwrap_or_else(TimeZone::system);
        let now = self.process_context.now.to_zoned(time_zone);
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

    fn lookup_user(&self, path: &str) -> Option<String> {
        let account = self.process_context.account.as_ref()?;
        match path {
            "home" | "homeDir" => Some(account.home.display().to_string()),
            "username" => Some(account.username.clone()),
            "id" => Some(account.id.clone()),
            "name" => Some(account.name.clone()),
            _ => None,
        }
    }
}
