//! The recorded state of one resource.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pulumi_proto::duration::{self, Timeouts};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};
use serde::{Deserialize, Serialize};

/// One entry of a snapshot: the record of one physical resource.
///
/// A URN may have several entries, of which at most one is not marked [`ResourceState::delete`]. What a member means
/// is said in `docs/state.md`; the engine keeps even those it has no use for.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceState {
    /// Identity of the goal the entry stands for.
    pub urn: Urn,
    /// The last type in the URN.
    pub type_token: TypeToken,
    /// Managed by a plugin; components are not.
    pub custom: bool,
    /// Superseded, awaiting deletion.
    pub delete: bool,
    /// Id that the provider gave; `None` for components, and while a creation is pending. Of a provider resource: a UUID.
    pub id: Option<ResourceId>,
    /// Checked inputs.
    pub inputs: Arc<PropertyMap>,
    /// Outputs.
    pub outputs: Arc<PropertyMap>,
    /// Parent.
    pub parent: Option<Urn>,
    /// Refuse deletion.
    pub protect: bool,
    /// Replace at the next update.
    pub taint: bool,
    /// Read, not owned.
    pub external: bool,
    /// Everything it depends on.
    pub dependencies: Vec<Urn>,
    /// Why it did not come up; empty if it did.
    pub init_errors: Vec<String>,
    /// The provider resource that serves it; components and provider resources have none.
    pub provider: Option<ProviderReference>,
    /// Input name to the URNs it came from.
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Deleted before its replacement, which is still owed.
    pub pending_replacement: bool,
    /// Outputs to keep secret.
    pub additional_secret_outputs: Vec<String>,
    /// Old URNs; only in files of long ago.
    pub aliases: Vec<Urn>,
    /// How long operations may take.
    pub custom_timeouts: CustomTimeouts,
    /// Id of the import option; `None` for a resource that was not imported by the program.
    pub import_id: Option<ResourceId>,
    /// Forget instead of deleting.
    pub retain_on_delete: bool,
    /// Gone with that resource, without a call.
    pub deleted_with: Option<Urn>,
    /// Replaced when one of these is.
    pub replace_with: Vec<Urn>,
    /// When it was created or imported.
    pub created: Option<Timestamp>,
    /// When it was last changed.
    pub modified: Option<Timestamp>,
    /// Position in the program that registered it; informational.
    pub source_position: Option<String>,
    /// Positions of the frames of the program that registered it; informational.
    pub stack_trace: Vec<Option<String>>,
    /// Paths whose changes do not count.
    pub ignore_changes: Vec<String>,
    /// Paths whose changes are not shown.
    pub hide_diff: Vec<String>,
    /// Paths whose changes replace.
    pub replace_on_changes: Vec<String>,
    /// Replace when this changes; null without.
    pub replacement_trigger: PropertyValue,
    /// The provider wants a Read before each update.
    pub refresh_before_update: bool,
    /// The resource this entry is a view of.
    pub view_of: Option<Urn>,
    /// Hook kind to hook names.
    pub resource_hooks: BTreeMap<String, Vec<String>>,
    /// Key into the snapshot's extensions.
    pub extension_ref: Option<String>,
    /// Id of the snippet that it belongs to.
    pub snippet_id: Option<String>,
}

/// How long operations may take, as it is recorded: in seconds.
///
/// A recorded number that is no [`Duration`] (negative, too large, or not a whole number of nanoseconds) is kept as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CustomTimeouts {
    create: Option<Timeout>,
    update: Option<Timeout>,
    delete: Option<Timeout>,
    read: Option<Timeout>,
}

impl CustomTimeouts {
    /// Reads recorded numbers of seconds. An absent number and 0 set no limit.
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

    /// Returns the limits that apply. A recorded number that no [`Duration`] comes near, such as a negative one, sets none.
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

/// Timeouts of operations as files hold them.
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
    /// Whether no operation has a number.
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
    /// Whether something of its program is to be called before or after its deletion.
    pub fn has_delete_hooks(&self) -> bool {
        let mut hooks = ["BeforeDelete", "AfterDelete"].into_iter().filter_map(|kind| self.resource_hooks.get(kind));
        hooks.any(|names| !names.is_empty())
    }

    /// Returns the id as states and messages hold it: the empty text for none.
    pub fn id_text(&self) -> &str {
        ResourceId::text(self.id.as_ref())
    }

    /// An entry with nothing but its identity.
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

    /// Every URN that it refers to, its provider left out: parent, dependencies, property dependencies, `deletedWith`,
    /// `replaceWith`.
    pub fn references(&self) -> impl Iterator<Item = &Urn> {
        self.parent
            .iter()
            .chain(&self.dependencies)
            .chain(self.property_dependencies.values().flatten())
            .chain(&self.deleted_with)
            .chain(&self.replace_with)
    }

    /// Returns the URN of its provider resource, then [`ResourceState::references`].
    pub fn provider_and_references(&self) -> impl Iterator<Item = &Urn> {
        self.provider.iter().map(|provider| &provider.urn).chain(self.references())
    }

    /// Whether this is a provider resource.
    pub fn is_provider(&self) -> bool {
        self.type_token.is_provider()
    }

    /// Whether this is a default provider: one that the engine registered by itself.
    pub fn is_default_provider(&self) -> bool {
        self.is_provider() && self.urn.name().starts_with("default")
    }

    /// The reference by which other entries name this provider resource.
    pub fn as_provider_reference(&self) -> Option<ProviderReference> {
        self.is_provider().then(|| ProviderReference::new(self.urn.clone(), self.id.as_ref()))
    }
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
    fn numbers_that_are_no_duration_set_no_limit() {
        assert_eq!(create(90.5).durations().create, Some(Duration::from_millis(90_500)));
        assert_eq!(create(0.123_456_789_123).durations().create, Some(Duration::from_nanos(123_456_789)));
        for none in [1e-12, -5.0, 1e300, f64::NAN] {
            assert_eq!(create(none).durations(), Timeouts::default(), "{none}");
        }
    }

    #[test]
    fn a_timeout_of_zero_is_not_recorded() {
        let zero = Timeouts { create: Some(Duration::ZERO), ..Timeouts::default() };
        assert_eq!(CustomTimeouts::from(zero), CustomTimeouts::default());
    }
}
