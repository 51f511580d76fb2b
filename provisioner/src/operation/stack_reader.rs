//! Stacks that are read again, with values that are known only after the first reading.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use config::diagnostics::{Diagnostic, SourceFiles};
use config::types::TypeTable;
use config::{FunctionResults, KnownValues, ProcessContext, Profile, Repository, Stack, StackDocuments, Workspace};
use pulumi_proto::property::PropertyMap;

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
    pub(super) outputs: tokio::sync::Mutex<BTreeMap<OutputSource, Arc<PropertyMap>>>,
}

/// Stack whose outputs others read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OutputSource {
    /// A stack of the repository.
    Stack(String),
    /// An entry of `references`, whose name counts in one stack alone.
    Reference {
        /// Stack that has the entry.
        reader: String,
        /// Name of the entry.
        name: String,
    },
}

impl OutputSource {
    /// Returns what a stack reads with a name of its placeholders.
    pub(super) fn of(reader: &Stack, name: &str) -> Self {
        let name = name.to_owned();
        if reader.references.iter().any(|reference| reference.name == name) {
            Self::Reference { reader: reader.name.clone(), name }
        } else {
            Self::Stack(name)
        }
    }
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
    pub(super) async fn read(
        &self,
        stack: &Stack,
        functions: Option<FunctionResults>,
    ) -> Result<Stack, Vec<Diagnostic>> {
        let known = self.outputs.lock().await;
        let outputs = stack.outputs_read.iter().filter_map(|read| {
            let outputs = known.get(&OutputSource::of(stack, &read.stack))?;
            Some((read.stack.clone(), Arc::clone(outputs)))
        });
        let values = KnownValues { outputs: outputs.collect(), functions };
        drop(known);
        let types = recipes::built_in_types();
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(documents) = documents.as_mut() else { return Err(Vec::new()) };
        self.workspace(&types).read_with_values(documents, &stack.name, &values, &self.sources)
    }
}
