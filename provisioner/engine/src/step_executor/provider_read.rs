//! Calls of Read. A partial failure counts as a reply: the resource exists, and its initialization failed.

use std::sync::Arc;
use std::time::Duration;

use bridge::provider::{PartialFailure, ProviderError, ReadReply, ReadRequest, Views};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use crate::providers::Instance;

/// Reply to Read. `failure` is the partial failure if the initialization of the resource failed.
pub(crate) struct Reading {
    pub(crate) reply: ReadReply,
    pub(crate) failure: Option<(ProviderError, PartialFailure)>,
}

/// Calls Read of a provider. Returns `None` without a call if the configuration of the provider is not known.
///
/// # Errors
/// [`ProviderError`] of Read, unless the failure is partial.
pub(crate) async fn read(
    instance: &Instance,
    urn: &Urn,
    id: Option<&ResourceId>,
    outputs: Option<Arc<PropertyMap>>,
    inputs: Option<Arc<PropertyMap>>,
    timeout: Option<Duration>,
    views: Views,
) -> Result<Option<Reading>, ProviderError> {
    let Some(provider) = instance.ready().await? else { return Ok(None) };
    let request = ReadRequest { urn: urn.clone(), id: id.cloned(), outputs, inputs, timeout, views };
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
