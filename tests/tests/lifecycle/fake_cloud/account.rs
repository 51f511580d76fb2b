//! Accounts of the fake cloud. Each has objects of its own: one id in two accounts is two objects.

use pulumi_proto::property::PropertyMap;
use state::{ResourceState, Snapshot};

/// Account that the configuration of a provider selects.
///
/// Only the keys that end with `Account` select it. Other keys do not, whether DiffConfig replaces the provider for them or
/// not: a rotated token opens the same account, and the resources of a renamed provider stay where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Account(Vec<String>);

impl Account {
    /// Returns the account that a configuration selects.
    pub(super) fn of_configuration(configuration: &PropertyMap) -> Self {
        let selecting = configuration.iter().filter(|(key, _)| key.ends_with("Account"));
        Self(selecting.map(|(key, value)| format!("{key}={:?}", value.without_wrappers())).collect())
    }

    /// Returns the account of a resource: that of its recorded provider.
    pub(super) fn of_entry(snapshot: &Snapshot, entry: &ResourceState) -> Self {
        let is_provider = |other: &&std::sync::Arc<ResourceState>| {
            entry.provider.is_some() && other.as_provider_reference() == entry.provider
        };
        let provider = snapshot.resources.iter().find(is_provider);
        provider.map(|provider| Self::of_configuration(&provider.inputs)).unwrap_or_default()
    }
}

/// Object of the cloud: an id in an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Object {
    pub(crate) id: String,
    /// Account that has the object; `None`: every account has access to it.
    pub(crate) account: Option<Account>,
}

impl std::fmt::Display for Account {
    /// Writes `@key=value` for each key; nothing for the account of a configuration without such a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|selection| write!(f, "@{selection}"))
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.id)?;
        self.account.iter().try_for_each(|account| write!(f, "{account}"))
    }
}
