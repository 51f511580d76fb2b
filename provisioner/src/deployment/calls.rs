//! What steps ask providers: Create, Update, Delete and Read (engine semantics, section 1.3).

use std::sync::Arc;

use bridge::provider::{
    CreateRequest, DeleteRequest, PartialFailure, ProviderError, ReadReply, ReadRequest, UpdateRequest, Views,
};
use pulumi_proto::property::{PropertyMap, UNKNOWN_STRING};
use pulumi_proto::urn::{ProviderReference, Urn};

use crate::state::ResourceState;

use super::engine::Engine;
use super::providers::{Instance, visible};
use super::step::{Actor, Step, StepError};
use super::views::ViewLog;

impl Engine {
    /// Asks for the resource, or makes the provider instance, that a step creates; completes the entry.
    pub(super) async fn create(
        &self,
        step: &Step,
        new: &mut ResourceState,
        views: &Arc<ViewLog>,
    ) -> Result<(), StepError> {
        match &step.actor {
            Actor::Nobody => Ok(()),
            Actor::Missing(error) => Err(StepError::Host(error.clone())),
            Actor::Parked(provider) => {
                new.id = if self.preview() { UNKNOWN_STRING.to_owned() } else { uuid::Uuid::new_v4().to_string() };
                new.outputs = Arc::new(visible(&new.inputs));
                let reference = ProviderReference::new(new.urn.clone(), new.id.as_str());
                let instance =
                    Instance::configure(Arc::clone(provider), new.urn.clone(), new.id.clone(), &new.inputs, &self.jobs);
                self.providers.adopt(reference, instance);
                Ok(())
            }
            Actor::Instance(instance) => {
                let Some(provider) = instance.ready().await? else { return Ok(()) };
                if self.preview() && !provider.capabilities().supports_preview {
                    new.outputs = Arc::clone(&new.inputs);
                    return Ok(());
                }
                let request = CreateRequest {
                    urn: new.urn.clone(),
                    inputs: Arc::clone(&new.inputs),
                    timeout: new.custom_timeouts.create,
                    preview: self.preview(),
                    views: views.views(),
                };
                let reply = provider.create(request).await?;
                if reply.id.is_empty() && !self.preview() {
                    return Err(StepError::Refused(
                        "the provider reported success but gave no id; the resource may exist all the same".into(),
                    ));
                }
                new.id = reply.id;
                new.outputs = Arc::new(reply.outputs);
                new.refresh_before_update = reply.refresh_before_update;
                Ok(())
            }
        }
    }

    /// Asks for the change of a step; completes the entry.
    pub(super) async fn update(
        self: &Arc<Self>,
        step: &Step,
        old: &ResourceState,
        new: &mut ResourceState,
        views: &Arc<ViewLog>,
    ) -> Result<(), StepError> {
        match &step.actor {
            // A component keeps what it said last until it says something else.
            Actor::Nobody => {
                new.outputs = Arc::clone(&old.outputs);
                Ok(())
            }
            Actor::Missing(error) => Err(StepError::Host(error.clone())),
            Actor::Parked(provider) => {
                new.outputs = Arc::new(visible(&new.inputs));
                let instance =
                    Instance::configure(Arc::clone(provider), new.urn.clone(), new.id.clone(), &new.inputs, &self.jobs);
                let reference = ProviderReference::new(new.urn.clone(), new.id.as_str());
                if let Some(before) = self.providers.adopt(reference, instance) {
                    self.retire(before);
                }
                Ok(())
            }
            Actor::Instance(instance) => {
                let Some(provider) = instance.ready().await? else {
                    new.outputs = Arc::default();
                    return Ok(());
                };
                if self.preview() && !provider.capabilities().supports_preview {
                    new.outputs = Arc::clone(&new.inputs);
                    return Ok(());
                }
                let request = UpdateRequest {
                    urn: new.urn.clone(),
                    id: old.id.clone(),
                    olds: Arc::clone(&old.outputs),
                    old_inputs: Arc::clone(&old.inputs),
                    news: Arc::clone(&new.inputs),
                    timeout: new.custom_timeouts.update,
                    ignore_changes: new.ignore_changes.clone(),
                    preview: self.preview(),
                    views: views.views(),
                };
                let reply = provider.update(request).await?;
                new.outputs = Arc::new(reply.outputs);
                new.refresh_before_update = reply.refresh_before_update;
                Ok(())
            }
        }
    }
}

/// Deletes what an entry stands for.
pub(super) async fn delete(instance: &Instance, old: &ResourceState, views: Views) -> Result<(), ProviderError> {
    let Some(provider) = instance.ready().await? else { return Ok(()) };
    let request = DeleteRequest {
        urn: old.urn.clone(),
        id: old.id.clone(),
        outputs: Arc::clone(&old.outputs),
        old_inputs: Arc::clone(&old.inputs),
        timeout: old.custom_timeouts.delete,
        views,
    };
    provider.delete(request).await
}

/// What a Read said; a resource that did not come up is a reading, too.
pub(super) struct Reading {
    pub(super) reply: ReadReply,
    pub(super) failure: Option<(ProviderError, PartialFailure)>,
}

/// Reads a resource; `None` where the provider's configuration is not known.
pub(super) async fn read(
    instance: &Instance,
    urn: &Urn,
    id: &str,
    outputs: Option<Arc<PropertyMap>>,
    inputs: Option<Arc<PropertyMap>>,
    timeout: f64,
    views: Views,
) -> Result<Option<Reading>, ProviderError> {
    let Some(provider) = instance.ready().await? else { return Ok(None) };
    let request = ReadRequest { urn: urn.clone(), id: id.to_owned(), outputs, inputs, timeout, views };
    match provider.read(request).await {
        Ok(reply) => Ok(Some(Reading { reply, failure: None })),
        Err(error) => match &error {
            ProviderError::Partial { failure, .. } => {
                let failure = (**failure).clone();
                let reply = ReadReply {
                    id: failure.id.clone(),
                    outputs: Some(failure.outputs.clone()),
                    inputs: failure.inputs.clone(),
                    refresh_before_update: failure.refresh_before_update,
                };
                Ok(Some(Reading { reply, failure: Some((error, failure)) }))
            }
            _ => Err(error),
        },
    }
}
