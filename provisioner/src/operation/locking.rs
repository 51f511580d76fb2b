//! Lock of the stack of a run.

use state::store::StoreError;
use state::{StackState, StateError};

use super::{OperationError, StackRun};

impl StackRun {
    /// Locks the stack and loads its state. Waits if another run has the lock, for the time in the settings of the access.
    ///
    /// # Errors
    /// [`OperationError::State`] if the stack is still locked then, or the state cannot be loaded;
    /// [`OperationError::Stopped`] if the user stopped the operation.
    pub(super) async fn lock_and_load(&self) -> Result<StackState, OperationError> {
        match StackState::open(self.access.clone(), &self.holder).await {
            Err(StateError::Store(StoreError::Locked { .. })) if self.signals.stop.is_cancelled() => {
                Err(OperationError::Stopped)
            }
            opened => Ok(opened?),
        }
    }
}
