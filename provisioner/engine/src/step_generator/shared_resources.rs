//! Entries that name one actual resource, as their provider confirms it.

use std::sync::Arc;

use bridge::provider::{ReadRequest, Views};
use pulumi_proto::property::PropertyMap;
use state::ResourceState;

use crate::context::Context;
use crate::decisions::identity::{differing_outputs, shows_other};
use crate::entry::Entry;

/// Returns the other entries that name the actual resource of an entry. If their outputs differ, the provider is asked
/// whether the id identifies a resource: two random integers may have one id by chance.
pub(crate) async fn others_of_same_resource(ctx: &Context, entry: &Entry) -> Vec<Entry> {
    let candidates = ctx.state().others_of_same_resource(entry);
    let mut others = Vec::new();
    for other in candidates {
        let is_equal = differing_outputs(&entry.1.outputs, &other.1.outputs).is_empty();
        if is_equal || is_taken_over(ctx, &entry.1, &other.1).await {
            others.push(other);
        }
    }
    others
}

/// Returns whether the resource of an entry has become that of another one: it has a value of the other entry, or the
/// provider finds it by the id alone. A provider that reads nothing returns what it was sent.
async fn is_taken_over(ctx: &Context, entry: &ResourceState, other: &ResourceState) -> bool {
    let recorded = (Arc::clone(&entry.outputs), Arc::clone(&entry.inputs));
    read(ctx, entry, Some(recorded)).await.is_some_and(|outputs| shows_other(&outputs, entry, other))
        || read(ctx, entry, None).await.is_some()
}

/// Returns the outputs of the resource of an entry; `None` if it does not exist, or cannot be read.
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
