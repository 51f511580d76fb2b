//! Refresh: makes the state match the world.

use std::sync::Arc;

use bridge::host::PluginHost;
use jiff::Timestamp;

use crate::events::{Event, Message, Operation, Severity};
use crate::state::format::UpdateKind;
use crate::state::{Recovered, StackState};

use super::deploy::Effect;
use super::provision::history;
use super::{OperationError, Report, StackRun};

/// Reads everything that is recorded, and records what there is.
///
/// # Errors
/// As [`super::provision()`].
///
/// # Cancellation
/// As [`super::provision()`].
pub async fn refresh(run: &StackRun) -> Result<Report, OperationError> {
    run.without_program(Operation::Refresh, UpdateKind::Refresh, false).await
}

impl StackRun {
    /// An operation that has no program, under the lock.
    pub(super) async fn without_program(
        &self,
        operation: Operation,
        kind: UpdateKind,
        refresh: bool,
    ) -> Result<Report, OperationError> {
        let host = self.load_plugins().await?;
        let outcome = self.without_program_on(&host, operation, kind, refresh).await;
        host.close().await;
        outcome
    }

    async fn without_program_on(
        &self,
        host: &Arc<PluginHost>,
        operation: Operation,
        kind: UpdateKind,
        refresh: bool,
    ) -> Result<Report, OperationError> {
        let started = Timestamp::now().as_second();
        let state = StackState::open(self.access.clone(), &self.holder).await?;
        self.tell_recovery(state.recovered());
        let effect = Effect::Real(state.recorder());
        let report = self.deploy(host, operation, refresh, state.snapshot().clone(), effect).await;
        state.close(report.snapshot.clone(), Some(&history(kind, started, &report))).await?;
        Ok(report)
    }

    /// Tells what a run that died had done, and what it left begun.
    pub(super) fn tell_recovery(&self, recovered: Option<&Recovered>) {
        if let Some(recovered) = recovered {
            let mut message = Message::new(Severity::Warning, recovery_text(recovered));
            message.hint = "what was begun and is not known to have ended is looked at again".to_owned();
            self.events.emit(Event::Message(message));
        }
    }
}

fn recovery_text(recovered: &Recovered) -> String {
    let mut text = format!("recovered {} records of a run that died (begun {})", recovered.records, recovered.started);
    for (kind, urn) in &recovered.pending {
        text.push_str(&format!("\n{} {} was interrupted", kind.as_str(), urn.name()));
    }
    text
}
