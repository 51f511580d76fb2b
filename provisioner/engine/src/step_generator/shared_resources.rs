//! Entries that name one actual resource, as their provider confirms it.

use std::sync::Arc;

use bridge::provider::{ReadRequest, Views};
use pulumi_proto::property::PropertyMap;
use state::{Entry, ResourceState};

use crate::context::Context;
use crate::decisions::identity::{differing_outputs, shows_other};

/// Other entry that names the actual resource of an entry.
pub(crate) struct SharingEntry {
    pub(crate) entry: Entry,
    /// False if the provider could not be asked: the entries may as well name two resources.
    pub(crate) is_certain: bool,
}

/// Returns the other entries that name the actual resource of an entry. If their outputs differ, the provider is asked
/// whether the id identifies a resource: two random integers may have one id by chance.
pub(crate) async fn others_of_same_resource(ctx: &Context, entry: &Entry) -> Vec<SharingEntry> {
    let candidates = ctx.state().others_of_same_resource(entry);
    let mut others = Vec::new();
    for other in candidates {
        let is_equal = differing_outputs(&entry.1.outputs, &other.1.outputs).is_empty();
        let is_shared = if is_equal { Some(true) } else { is_taken_over(ctx, &entry.1, &other.1).await };
        if is_shared != Some(false) {
            others.push(SharingEntry { entry: other, is_certain: is_shared.is_some() });
        }
    }
    others
}

/// Returns whether the resource of an entry has become that of another one: it has a value of the other entry, or the
/// provider finds it by the id alone. A provider that reads nothing returns what it was sent. `None` if it cannot be asked, or finds
/// nothing: it may lack access, and a resource that is gone needs no Delete. If it finds the resource with the recorded state, and
/// not with the id alone, the id is only a part of what identifies the resource.
async fn is_taken_over(ctx: &Context, entry: &ResourceState, other: &ResourceState) -> Option<bool> {
    let recorded = (Arc::clone(&entry.outputs), Arc::clone(&entry.inputs));
    let outputs = read(ctx, entry, Some(recorded)).await?;
    Some(shows_other(&outputs, entry, other) || read(ctx, entry, None).await.is_some())
}

/// Reads the outputs of the resource of an entry. `None` if the provider fails, or finds nothing.
async fn read(
    ctx: &Context,
    entry: &ResourceState,
    recorded: Option<(Arc<PropertyMap>, Arc<PropertyMap>)>,
) -> Option<PropertyMap> {
    let instance = ctx.load_instance(entry.provider.as_ref()?).await.ok()?;
    let provider = instance.ready().await.ok()??;
    let (outputs, inputs) = recorded.unzip();
    let timeout = entry.custom_timeouts.durations().read;
    let (urn, id) = (entry.urn.clone(), entry.id.clone());
    let request = ReadRequest { urn, id, outputs, inputs, timeout, views: Views::default() };
    provider.read(request).await.ok()?.outputs
}
