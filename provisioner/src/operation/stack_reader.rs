//! Stacks that are read again, with values that are known only after the first reading.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use config::diagnostics::{Diagnostic, SourceFiles};
use config::types::TypeTable;
use config::{
    FunctionResults, KnownValues, ProcessContext, Profile, Repository, Stack, StackDocuments, StackOutputs, Workspace,
};

use crate::registry::recipes;

/// Sources of stacks, with the values that became known.
#[derive(Debug)]
pub(super) struct StackReader {
    pub(super) repository: Repository,
    pub(super) profile: Profile,
    /// Folder of the stacks, in place of that of the profile.
    pub(super) stacks_dir: Option<PathBuf>,
    pub(super) process_context: ProcessContext,
    pub(super) sources: Arc<SourceFiles>,
    /// Documents of the stacks, if one needs such values.
    pub(super) documents: Mutex<Option<StackDocuments>>,
    /// Outputs of stacks that are known so far.
    pub(super) outputs: tokio::sync::Mutex<StackOutputs>,
}

impl StackReader {
    /// Returns the workspace that the stacks were read from.
    pub(super) fn workspace<'s>(&'s self, types: &'s TypeTable) -> Workspace<'s> {
        Workspace {
            repository: &self.repository,
            profile: &self.profile,
            stacks_dir: self.stacks_dir.as_deref(),
            process_context: &self.process_context,
            types,
        }
    }

    /// Reads a stack again, with the outputs that are known, and with the results of functions, once they are called.
    ///
    /// # Errors
    /// The diagnostics of the stack, if there is an error among them.
    pub(super) async fn read(&self, stack: &str, functions: Option<FunctionResults>) -> Result<Stack, Vec<Diagnostic>> {
        let values = KnownValues { outputs: self.outputs.lock().await.clone(), functions };
        let types = recipes::built_in_types();
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(documents) = documents.as_mut() else { return Err(Vec::new()) };
        self.workspace(&types).read_with_values(documents, stack, &values, &self.sources)
    }
}
