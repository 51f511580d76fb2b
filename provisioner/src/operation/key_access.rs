//! Key of a stack that a run creates: its program, and its URL in the state of its stack.

use config::Stack;
use pulumi_proto::urn::ROOT_STACK_TYPE;
use state::store::StateStore;
use state::{JournalFolders, Snapshot, StackView};

use super::key_stack::{key_name, key_stack};
use super::{SetupError, Stacks};
use crate::program::Program;

impl Stacks {
    /// Returns the programs of the keys that the requested stacks ask for.
    pub fn key_programs(&self) -> Vec<Program> {
        self.requested().filter_map(|stack| key_stack(stack)).map(|key| self.program(&key)).collect()
    }

    /// Returns the URL of the key that a stack asks for: an output of the stack of the key, in the same store. Reads it without
    /// a key. `None` if the key has not been created, or if the run that creates it has not ended properly.
    pub(super) async fn key_url(
        &self,
        stack: &Stack,
        store: &StateStore,
        journals: &JournalFolders,
    ) -> Result<Option<String>, SetupError> {
        let Some(key) = key_stack(stack) else { return Ok(None) };
        let access = self.stack_access(&key, store.clone(), journals.clone(), None)?;
        let view = StackView::open_without_secrets(&access).await;
        let view = view.map_err(|source| SetupError::KeyStack { stack: key.name.clone(), source: Box::new(source) })?;
        let snapshot = view.snapshot.filter(|_| view.recovered.is_none());
        Ok(snapshot.and_then(|snapshot| url_in(&snapshot, &key_name(stack))))
    }
}

/// Returns the URL of a key among the outputs of its stack.
fn url_in(snapshot: &Snapshot, output: &str) -> Option<String> {
    let root = snapshot.resources.iter().find(|resource| resource.urn.type_token() == ROOT_STACK_TYPE)?;
    root.outputs.get(output)?.as_str().filter(|url| !url.is_empty()).map(str::to_owned)
}
