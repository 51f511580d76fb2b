//! Identity of actual resources: whether two entries name the same one.
//!
//! Some types have ids that identify nothing: every password of the package `random` has the id `none`, and two random
//! integers may be equal.

use std::collections::BTreeSet;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use state::{ResourceState, can_identify};

/// Returns the ids under which an entry names its resource: its own id, and the one under which it was imported, which
/// may be another spelling.
pub(crate) fn ids(entry: &ResourceState) -> impl Iterator<Item = &ResourceId> + Clone {
    entry.id.iter().chain(&entry.import_id).filter(|id| can_identify(id, &entry.type_token))
}

/// Returns whether an entry names an actual resource of a plugin. The resource of a pending replacement does not exist.
pub(crate) fn names_resource(entry: &ResourceState) -> bool {
    entry.custom && !entry.is_provider() && entry.view_of.is_none() && !entry.pending_replacement
}

/// Returns whether two entries whose providers have the same configuration name the same resource by their ids.
pub(crate) fn have_same_id(entry: &ResourceState, other: &ResourceState) -> bool {
    entry.type_token == other.type_token && ids(entry).any(|id| ids(other).any(|other| other == id))
}

/// Number of live entries with one id from which on the id identifies nothing.
const TOO_MANY: usize = 3;

/// Returns whether so many live entries had an id when the run began that it identifies nothing.
pub(crate) fn is_shared_by_many(live_entries: usize) -> bool {
    live_entries >= TOO_MANY
}

/// Returns the names of the outputs in which two entries differ. Secret outputs are left out: a provider may issue
/// another secret at each read.
pub(crate) fn differing_outputs<'o>(outputs: &'o PropertyMap, others: &'o PropertyMap) -> BTreeSet<&'o String> {
    let value = |outputs: &'o PropertyMap, name: &String| outputs.get(name).unwrap_or(&PropertyValue::Null);
    let differs = |name: &&String| {
        let (ours, theirs) = (value(outputs, name), value(others, name));
        !ours.contains_secrets() && !theirs.contains_secrets() && !ours.same_as(theirs)
    };
    outputs.keys().chain(others.keys()).filter(differs).collect()
}

/// Returns whether the outputs that were just read for an entry show that its resource has become that of another
/// entry: it has a value of the other entry where both entries differ.
pub(crate) fn shows_other(read: &PropertyMap, entry: &ResourceState, other: &ResourceState) -> bool {
    let has_value = |name: &&String| match (read.get(*name), other.outputs.get(*name)) {
        (Some(read), Some(other)) => read.same_as(other),
        (read, other) => read.is_none() && other.is_none(),
    };
    differing_outputs(&entry.outputs, &other.outputs).iter().any(has_value)
}
