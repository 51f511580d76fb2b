//! Dependents that are replaced together with a resource that is deleted first (docs/spec/engine-semantics.md#2.12).

use std::sync::Arc;

use bridge::provider::{DiffConfigRequest, DiffRequest, Method, ProviderError};
use pulumi_proto::property::PropertyValue;
use state::{Entry, ResourceState};

use crate::context::Context;
use crate::decisions::change::Change;
use crate::decisions::dependent_replacements::{DependentReplacement, DependentWalk, WalkResult};
use crate::goal::visible;
use crate::providers::not_started;

/// Entries that a walk over dependents skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkippedEntries {
    /// Entries that this run has decided on, under their loaded or a new URN, and entries that it has removed.
    Decided,
    /// Same as [`SkippedEntries::Decided`], but entries that a registration has taken over under a new URN only if
    /// their recorded URN is decided.
    DecidedByUrn,
}

/// Returns the entries that must be deleted before the root: its dependents in the order of the snapshot, then those
/// whose `replaceWith` or `deletedWith` names it. Calls Diff for the dependents. `root` is as it was loaded.
///
/// # Errors
/// [`ProviderError`] of the first provider that cannot reply.
pub(crate) async fn find_dependent_replacements(
    ctx: &Arc<Context>,
    root: &Entry,
    skipped: SkippedEntries,
) -> Result<Vec<DependentReplacement>, ProviderError> {
    let mut walk = {
        let state = ctx.state();
        DependentWalk::new(root, state.loaded_entries(), |(id, resource)| match skipped {
            SkippedEntries::DecidedByUrn if state.is_taken_over(&resource.urn) => {
                state.is_decided_by_urn(&resource.urn)
            }
            SkippedEntries::Decided | SkippedEntries::DecidedByUrn => {
                state.is_decided(&resource.urn) || state.ledger().get(*id).is_none()
            }
        })
    };
    let mut found = loop {
        match walk.next() {
            WalkResult::CallDiff { entry, keys } => {
                let would_replace = would_replace(ctx, &entry.1, &keys).await?;
                walk.record_reply(would_replace);
            }
            WalkResult::Done(found) => break found,
        }
    };
    let state = ctx.state();
    let named_in_options = state.loaded_entries().iter().filter_map(|(id, resource)| {
        let key = if resource.replace_with.contains(&root.1.urn) {
            "replaceWith"
        } else if resource.deleted_with.as_ref() == Some(&root.1.urn) {
            "deletedWith"
        } else {
            return None;
        };
        let is_undecided = resource.custom && !state.is_decided(&resource.urn) && state.ledger().get(*id).is_some();
        is_undecided.then(|| DependentReplacement { entry: (*id, Arc::clone(resource)), keys: vec![key.to_owned()] })
    });
    found.extend(named_in_options.collect::<Vec<_>>());
    Ok(found)
}

/// Returns whether a resource would be replaced if these inputs became unknown. Calls Diff in previews and in real
/// runs.
async fn would_replace(ctx: &Context, resource: &ResourceState, keys: &[String]) -> Result<bool, ProviderError> {
    let mut news = (*resource.inputs).clone();
    for key in keys {
        news.insert(key.clone(), PropertyValue::UNKNOWN);
    }
    let news = Arc::new(news);
    let host_error = |error| not_started(Method::Diff, error);
    let reply = match (&resource.provider, resource.as_provider_reference()) {
        (Some(reference), _) => {
            let instance = match ctx.load_instance(reference).await {
                // The entry is deleted already, and its provider may be deleted, too.
                Err(_) if resource.pending_replacement => return Ok(false),
                loaded => loaded.map_err(host_error)?,
            };
            let Some(provider) = instance.ready().await? else { return Ok(false) };
            let request = DiffRequest {
                urn: resource.urn.clone(),
                id: resource.id.clone(),
                olds: Arc::clone(&resource.outputs),
                old_inputs: Arc::clone(&resource.inputs),
                news: Arc::clone(&news),
                ignore_changes: resource.ignore_changes.clone(),
                allow_unknowns: true,
            };
            provider.diff(request).await?
        }
        (None, Some(reference)) => {
            // Configure is sent first, as by Pulumi, which calls DiffConfig on the same instance. If it fails, so do the calls
            // of the resources of the provider.
            let instance = ctx.load_instance(&reference).await.map_err(host_error)?;
            drop(instance.ready().await);
            let request = DiffConfigRequest {
                urn: resource.urn.clone(),
                olds: Arc::clone(&resource.outputs),
                old_inputs: Arc::new(visible(&resource.inputs)),
                news: Arc::new(visible(&news)),
                ignore_changes: resource.ignore_changes.clone(),
            };
            ctx.providers.diff_config(&reference, &resource.inputs, request).await?
        }
        (None, None) => return Ok(false),
    };
    let mut change = Change::from_diff(&reply, resource, &news, &resource.ignore_changes);
    change.apply_replace_on_changes(&resource.replace_on_changes, !resource.init_errors.is_empty());
    Ok(change.changed && change.replaces())
}
