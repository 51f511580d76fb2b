//! Result of a step, and record of a call that failed: without effect, or with an unknown one because its reply is lost ([`LostReply`]).

use std::sync::Arc;

use bridge::provider::{LostReply, Method, ProviderError};
use jiff::Timestamp;
use state::{Effect, Entry, OperationId, OperationKind, ResourceState, StateError};

use crate::context::Context;
use crate::deployment_state::DeploymentState;
use crate::step::StepError;

/// Operation of a step that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct BegunOperation<'a> {
    id: OperationId,
    kind: OperationKind,
    /// State that the operation was to reach.
    planned: &'a ResourceState,
}

impl<'a> BegunOperation<'a> {
    /// Records that an operation is about to begin, and waits until that is durable.
    ///
    /// # Errors
    /// [`StateError`] if the record cannot be written. The operation must not begin then.
    pub(super) async fn begin(
        ctx: &Context,
        kind: OperationKind,
        planned: &'a Arc<ResourceState>,
    ) -> Result<Self, StateError> {
        let (id, receipt) = ctx.records.begin(kind, planned).await?;
        ctx.records.confirm_begin(id, receipt).await?;
        Ok(Self { id, kind, planned })
    }

    pub(super) fn id(&self) -> OperationId {
        self.id
    }
}

/// Returns the way in which the reply to the call of an operation is lost; `None` if the operation has no effect.
fn lost_reply(kind: OperationKind, error: &StepError) -> Option<LostReply> {
    let method = match kind {
        OperationKind::Creating => Method::Create,
        OperationKind::Updating => Method::Update,
        OperationKind::Deleting => Method::Delete,
        OperationKind::Importing => Method::Read,
        OperationKind::Reading => return None,
    };
    match error {
        StepError::Provider(error) => error.lost_reply(method),
        StepError::Host(_)
        | StepError::Failed(_)
        | StepError::MayExist
        | StepError::NotDeleted { .. }
        | StepError::State(_) => None,
    }
}

/// Records a failed call. The operation ends, or stays pending if the reply is lost. A pending create keeps the id that
/// could be read. `effects` are those of the views.
///
/// # Errors
/// [`StateError`] if a record cannot be written.
pub(super) async fn record(
    ctx: &Context,
    operation: Option<BegunOperation<'_>>,
    error: &StepError,
    effects: impl FnOnce(&DeploymentState) -> Vec<Effect>,
) -> Result<(), StateError> {
    let Some(operation) = operation else { return ctx.records.change(effects).await };
    if lost_reply(operation.kind, error).is_none() {
        return ctx.records.end(Some(operation.id), effects).await;
    }
    ctx.records.change(effects).await?;
    let id = match error {
        StepError::Provider(error) if operation.kind == OperationKind::Creating => error.id_in_lost_reply(),
        _ => None,
    };
    let Some(id) = id else { return Ok(()) };
    let created = Some(Timestamp::now());
    let resource = ResourceState { id: Some(id.clone()), created, modified: created, ..operation.planned.clone() };
    ctx.records.record_pending_id(operation.id, operation.kind, Arc::new(resource)).await
}

/// Result of a step.
#[derive(Debug)]
pub(super) struct StepResult {
    /// Entry that the step made or confirmed.
    pub(super) new: Option<Entry>,
    /// Partial failure: the provider could not initialize the resource. `new` is recorded nevertheless, and the step
    /// fails with this error.
    pub(super) partial: Option<ProviderError>,
}

/// Numbers a new entry, and masks secrets in its errors of initialization.
pub(super) fn new_entry(ctx: &Context, mut state: ResourceState) -> Entry {
    ctx.mask_init_errors(&mut state);
    (ctx.state().ledger_mut().new_entry(), Arc::new(state))
}
