//! Refresh: makes the state match the world.

use std::sync::Arc;

use bridge::host::PluginHost;
use jiff::Timestamp;

use crate::events::{Event, Message, Operation, Severity};
use crate::state::format::UpdateKind;
use crate::state::{OperationKind, Recovered};

use super::deploy::Effect;
use super::provision::history;
use super::{OperationError, Report, StackRun};

/// What else a refresh does.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefreshOptions {
    /// Forget creations that earlier runs began and did not end.
    pub clear_pending_creates: bool,
}

/// Reads everything that is recorded, and records what there is.
///
/// # Errors
/// As [`super::provision()`].
///
/// # Cancellation
/// As [`super::provision()`].
pub async fn refresh(run: &StackRun, options: RefreshOptions) -> Result<Report, OperationError> {
    run.without_program(Operation::Refresh, UpdateKind::Refresh, false, options).await
}

impl StackRun {
    /// An operation that has no program, under the lock.
    pub(super) async fn without_program(
        &self,
        operation: Operation,
        kind: UpdateKind,
        refresh: bool,
        options: RefreshOptions,
    ) -> Result<Report, OperationError> {
        let host = self.load_plugins().await?;
        let outcome = self.without_program_on(&host, operation, kind, refresh, options).await;
        host.close().await;
        outcome
    }

    async fn without_program_on(
        &self,
        host: &Arc<PluginHost>,
        operation: Operation,
        kind: UpdateKind,
        refresh: bool,
        options: RefreshOptions,
    ) -> Result<Report, OperationError> {
        let started = Timestamp::now().as_second();
        let state = self.open(host).await?;
        let mut snapshot = state.snapshot().clone();
        if options.clear_pending_creates {
            snapshot.pending_operations.retain(|operation| operation.kind != OperationKind::Creating);
        }
        let effect = Effect::Real(state.recorder());
        let report = self.deploy(host, operation, refresh, snapshot, effect).await;
        state.close(report.snapshot.clone(), Some(&history(kind, started, &report))).await?;
        Ok(report)
    }

    /// Tells what a run that died had done, and what it left begun.
    pub(super) fn tell_recovery(&self, recovered: Option<&Recovered>) {
        if let Some(recovered) = recovered {
            self.events.emit(Event::Message(Message::new(Severity::Warning, recovery_text(recovered))));
        }
    }
}

/// What is told of a run that died.
pub fn recovery_text(recovered: &Recovered) -> String {
    let mut text = format!("a run that was begun {} died; what it did is taken from its journal", recovered.started);
    if !recovered.pending.is_empty() {
        text.push_str("\nit did not come to the end of:");
    }
    for (kind, urn) in &recovered.pending {
        text.push_str(&format!("\n{} {} ({})", kind.as_str(), urn.name(), urn.type_token()));
    }
    text
}
