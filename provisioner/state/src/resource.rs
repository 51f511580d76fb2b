//! Recorded state of one resource.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pulumi_proto::duration::{self, Timeouts};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};
use serde::{Deserialize, Serialize};

/// Entry of a snapshot: the record of one physical resource.
///
/// A URN may have several entries, of which at most one is not marked [`ResourceState::delete`]. `docs/state.md`
/// describes the members; the engine preserves those that it does not use.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceState {
    /// URN of the resource.
    pub urn: Urn,
    /// Type of the resource, equal to the last type in the URN.
    pub type_token: TypeToken,
    /// `true` for a custom resource, which a provider manages; `false` for a component.
    pub custom: bool,
    /// Pending delete: a replacement exists, and this resource is still to be deleted.
    pub delete: bool,
    /// Id from the provider; `None` for components and during a pending create. A provider resource has a UUID.
    pub id: Option<ResourceId>,
    /// Checked inputs.
    pub inputs: Arc<PropertyMap>,
    /// Outputs.
    pub outputs: Arc<PropertyMap>,
    /// Parent resource.
    pub parent: Option<Urn>,
    /// Protected from deletion.
    pub protect: bool,
    /// Tainted: replaced by the next update.
    pub taint: bool,
    /// External: read, not managed.
    pub external: bool,
    /// Dependencies.
    pub dependencies: Vec<Urn>,
    /// Initialization errors; empty if the resource was initialized.
    pub init_errors: Vec<String>,
    /// Reference to its provider resource; `None` for components and provider resources.
    pub provider: Option<ProviderReference>,
    /// Dependencies by input property.
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Pending replacement: deleted before its replacement, which is still to be created.
    pub pending_replacement: bool,
    /// Names of outputs that are secret.
    pub additional_secret_outputs: Vec<String>,
    /// Former URNs; only in states of old versions.
    pub aliases: Vec<Urn>,
    /// Custom timeouts of operations.
    pub custom_timeouts: CustomTimeouts,
    /// Id of the `import` option; `None` for a resource that the program did not import.
    pub import_id: Option<ResourceId>,
    /// Retained on delete: removed from the state without a Delete.
    pub retain_on_delete: bool,
    /// Resource whose deletion deletes this one, without a Delete of its own.
    pub deleted_with: Option<Urn>,
    /// Resources whose replacement replaces this one.
    pub replace_with: Vec<Urn>,
    /// Time of creation or import.
    pub created: Option<Timestamp>,
    /// Time of the last change.
    pub modified: Option<Timestamp>,
    /// Source position of the registration; informational.
    pub source_position: Option<String>,
    /// Source positions of the stack frames of the registration; informational.
    pub stack_trace: Vec<Option<String>>,
    /// Property paths whose changes are ignored.
    pub ignore_changes: Vec<String>,
    /// Property paths whose changes are not shown.
    pub hide_diff: Vec<String>,
    /// Property paths whose changes replace the resource.
    pub replace_on_changes: Vec<String>,
    /// Value whose change replaces the resource; null if there is none.
    pub replacement_trigger: PropertyValue,
    /// The provider requires a Read before each update.
    pub refresh_before_update: bool,
    /// Resource that this entry is a view of.
    pub view_of: Option<Urn>,
    /// Names of resource hooks by hook kind.
    pub resource_hooks: BTreeMap<String, Vec<String>>,
    /// Key into the snapshot's extensions.
    pub extension_ref: Option<String>,
    /// Id of the snippet that the resource belongs to.
    pub snippet_id: Option<String>,
}

/// Custom timeouts of operations as they are recorded, in seconds.
///
/// A recorded number that is not a valid [`Duration`] (negative, too large, or not a whole number of nanoseconds) is
/// preserved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CustomTimeouts {
    create: Option<Timeout>,
    update: Option<Timeout>,
    delete: Option<Timeout>,
    read: Option<Timeout>,
}

impl CustomTimeouts {
    /// Converts recorded numbers of seconds. An absent number and 0 set no limit.
    pub(crate) fn from_seconds(by_operation: TimeoutSeconds) -> Self {
        let timeout = |seconds: Option<f64>| seconds.and_then(Timeout::from_seconds);
        Self {
            create: timeout(by_operation.create),
            update: timeout(by_operation.update),
            delete: timeout(by_operation.delete),
            read: timeout(by_operation.read),
        }
    }

    /// Returns the numbers of seconds to record.
    pub(crate) fn seconds(&self) -> TimeoutSeconds {
        let seconds = |timeout: Option<Timeout>| timeout.map(Timeout::seconds);
        TimeoutSeconds {
            create: seconds(self.create),
            update: seconds(self.update),
            delete: seconds(self.delete),
            read: seconds(self.read),
        }
    }

    /// Returns the limits that apply. A recorded number that cannot be rounded to a [`Duration`], such as a negative
    /// one, sets no limit.
    pub fn durations(&self) -> Timeouts {
        let duration = |timeout: Option<Timeout>| timeout.and_then(Timeout::duration);
        Timeouts {
            create: duration(self.create),
            update: duration(self.update),
            delete: duration(self.delete),
            read: duration(self.read),
        }
    }
}

impl From<Timeouts> for CustomTimeouts {
    fn from(timeouts: Timeouts) -> Self {
        let seconds = |timeout: Option<Duration>| timeout.map(|timeout| timeout.as_secs_f64());
        Self::from_seconds(TimeoutSeconds {
            create: seconds(timeouts.create),
            update: seconds(timeouts.update),
            delete: seconds(timeouts.delete),
            read: seconds(timeouts.read),
        })
    }
}

/// Timeouts of operations in seconds, as files contain them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct TimeoutSeconds {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) create: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) update: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delete: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read: Option<f64>,
}

impl TimeoutSeconds {
    /// Returns `true` if no operation has a timeout.
    pub(crate) fn is_empty(&self) -> bool {
        [self.create, self.update, self.delete, self.read].iter().all(Option::is_none)
    }
}

/// The recorded timeout of one operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Timeout {
    /// A number of seconds that converts to a duration and back without loss.
    Exact(Duration),
    /// Any other number of seconds except 0.
    Other(f64),
}

impl Timeout {
    fn from_seconds(seconds: f64) -> Option<Self> {
        let exact = duration::from_seconds(seconds).filter(|duration| duration.as_secs_f64() == seconds);
        match exact {
            Some(duration) => Some(Self::Exact(duration)),
            None => (seconds != 0.0).then_some(Self::Other(seconds)),
        }
    }

    fn seconds(self) -> f64 {
        match self {
            Self::Exact(duration) => duration.as_secs_f64(),
            Self::Other(seconds) => seconds,
        }
    }

    fn duration(self) -> Option<Duration> {
        match self {
            Self::Exact(duration) => Some(duration),
            Self::Other(seconds) => duration::from_seconds(seconds),
        }
    }
}

impl ResourceState {
    /// Returns `true` if the resource has hooks that run before or after its deletion.
    pub fn has_delete_hooks(&self) -> bool {
        let mut hooks = ["BeforeDelete", "AfterDelete"].into_iter().filter_map(|kind| self.resource_hooks.get(kind));
        hooks.any(|names| !names.is_empty())
    }

    /// Returns the id as states and messages contain it: the empty string if there is none.
    pub fn id_text(&self) -> &str {
        ResourceId::text(self.id.as_ref())
    }

    /// Returns an entry with the URN, its type and `custom`. All other members have default values.
    pub fn new(urn: Urn, custom: bool) -> Self {
        Self {
            type_token: TypeToken::new(urn.type_token()),
            urn,
            custom,
            delete: false,
            id: None,
            inputs: Arc::default(),
            outputs: Arc::default(),
            parent: None,
            protect: false,
            taint: false,
            external: false,
            dependencies: Vec::new(),
            init_errors: Vec::new(),
            provider: None,
            property_dependencies: BTreeMap::new(),
            pending_replacement: false,
            additional_secret_outputs: Vec::new(),
            aliases: Vec::new(),
            custom_timeouts: CustomTimeouts::default(),
            import_id: None,
            retain_on_delete: false,
            deleted_with: None,
            replace_with: Vec::new(),
            created: None,
            modified: None,
            source_position: None,
            stack_trace: Vec::new(),
            ignore_changes: Vec::new(),
            hide_diff: Vec::new(),
            replace_on_changes: Vec::new(),
            replacement_trigger: PropertyValue::Null,
            refresh_before_update: false,
            view_of: None,
            resource_hooks: BTreeMap::new(),
            extension_ref: None,
            snippet_id: None,
        }
    }

    /// `true` for a provider resource.
    pub fn is_provider(&self) -> bool {
        self.type_token.is_provider()
    }

    /// Returns `true` for a default provider, which the engine registers by itself.
    pub fn is_default_provider(&self) -> bool {
        self.is_provider() && self.urn.name().starts_with("default")
    }

    /// Returns the reference by which other entries refer to this provider resource; `None` for other resources.
    pub fn as_provider_reference(&self) -> Option<ProviderReference> {
        self.is_provider().then(|| ProviderReference::new(self.urn.clone(), self.id.as_ref()))
    }
}

/// Ids of resources that have none.
const PLACEHOLDERS: [&str; 2] = ["-", "none"];

/// Returns whether an id can identify a resource of a type: it is neither empty nor a placeholder nor the name of the
/// type.
pub fn can_identify(id: &ResourceId, type_token: &TypeToken) -> bool {
    let (id, token) = (id.as_str(), type_token.as_str());
    let name = token.rsplit([':', '/']).next().unwrap_or_default();
    !id.is_empty() && !PLACEHOLDERS.iter().chain([&name, &token]).any(|other| id.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(seconds: f64) -> CustomTimeouts {
        CustomTimeouts::from_seconds(TimeoutSeconds { create: Some(seconds), update: None, delete: None, read: None })
    }

    #[test]
    fn recorded_timeouts_keep_their_numbers() {
        for seconds in [0.1, 1.0, 90.5, 3_661.123_456_789, 1e-12, 0.123_456_789_123, -5.0, 1e300] {
            assert_eq!(create(seconds).seconds().create, Some(seconds));
        }
        for none in [0.0, -0.0] {
            assert_eq!(create(none), CustomTimeouts::default());
        }
    }

    #[test]
    fn seconds_without_a_valid_duration_set_no_limit() {
        assert_eq!(create(90.5).durations().create, Some(Duration::from_millis(90_500)));
        assert_eq!(create(0.123_456_789_123).durations().create, Some(Duration::from_nanos(123_456_789)));
        for none in [1e-12, -5.0, 1e300, f64::NAN] {
            assert_eq!(create(none).durations(), Timeouts::default(), "{none}");
        }
    }

    #[test]
    fn timeout_of_zero_is_not_recorded() {
        let zero = Timeouts { create: Some(Duration::ZERO), ..Timeouts::default() };
        assert_eq!(CustomTimeouts::from(zero), CustomTimeouts::default());
    }

    #[test]
    fn placeholder_or_name_of_type_identifies_no_resource() {
        let password = TypeToken::new("random:index/randomPassword:RandomPassword");
        let table = [
            ("a-1", true),
            ("7", true),
            ("-", false),
            ("none", false),
            ("None", false),
            ("RandomPassword", false),
            ("randompassword", false),
            ("random:index/randomPassword:RandomPassword", false),
        ];
        for (id, expected) in table {
            assert_eq!(can_identify(&ResourceId::new(id).unwrap(), &password), expected, "{id}");
        }
    }
}
