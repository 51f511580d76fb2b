//! Access to the state of one stack.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::StateError;
use crate::format::ConfigValue;
use crate::journal;
use crate::secrets::Keyring;
use crate::snapshot::SecretsDescription;
use crate::store::{StackReference, StateStore};

/// Everything that is needed to get at the state of a stack.
#[derive(Clone)]
pub struct StackAccess {
    /// Where states are kept.
    pub store: Arc<dyn StateStore>,
    /// Which stack.
    pub stack: StackReference,
    /// The keys that the user gave.
    pub keyring: Arc<Keyring>,
    /// The secrets manager that the stack file names; without, that of the state is used, or a new one.
    pub configured_secrets: Option<SecretsDescription>,
    /// The configuration that the stack file holds, by key (`namespace:name`): for the history.
    pub config: BTreeMap<String, ConfigValue>,
    /// The folder beside whose `.pulumi` journals are kept: the store's own, or a local one.
    pub journals: PathBuf,
    /// The version that manifests are to name, with a leading `v`.
    pub engine_version: String,
}

impl StackAccess {
    /// Whether a run has left a journal, or is writing one.
    ///
    /// # Errors
    /// [`StateError`] if its folder cannot be read.
    pub fn has_journal(&self) -> Result<bool, StateError> {
        Ok(!journal::left_behind(&self.journals, &self.stack)?.is_empty())
    }
}
