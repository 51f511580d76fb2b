//! Migration of the state of a stack: from the state storage that server.yaml names to the one at a URL.

use config::{CloudAccount, SecretText, Stack, StateStorage};
use state::{LockSettings, LockWait, StackAccess, StackMigration};
use tokio_util::sync::CancellationToken;

use super::remote_store::masked_url;
use super::setup_error::UnsupportedTarget;
use super::{SetupError, Stacks};

impl Stacks {
    /// Returns the migration of a stack, with its access, to the state storage at a URL, which has the form of a path in
    /// server.yaml. The target is opened with the credentials that the URL or the environment has; those in server.yaml are
    /// for the source. A folder is private if that of the source is. Completes or undoes a rename that was interrupted in the
    /// target.
    ///
    /// # Errors
    /// [`SetupError::UnsupportedTarget`], and the errors of [`Stacks::open_access`] for the target.
    pub async fn migration(
        &self,
        stack: &Stack,
        source: StackAccess,
        target_url: &str,
    ) -> Result<StackMigration, SetupError> {
        let storage = target_storage(target_url, &stack.provisioner.state_storage)?;
        let mut target_stack = stack.clone();
        target_stack.provisioner.state_storage = storage;
        let (store, journals) = self.open_store(&target_stack).await?;
        // A lock in the target is not awaited: it may be that of the source, if both are the same store by different names.
        let (lost, wait) = (CancellationToken::new(), LockWait::default());
        let locks = LockSettings { lost, wait, ..source.locks.clone() };
        let target = StackAccess { store, journals, locks, ..source.clone() };
        if let Some(rename) = state::resume_rename(&target, &self.holder()).await.map_err(SetupError::Rename)? {
            target.store.finish_rename(rename).await.map_err(SetupError::Rename)?;
        }
        let source_url = match &stack.provisioner.state_storage {
            StateStorage::FileSystem { url, .. } => masked_url(url),
            StateStorage::Remote { url, .. } => masked_url(url.expose()),
        };
        Ok(StackMigration { source, target, source_url, target_url: masked_url(target_url) })
    }
}

/// Returns the state storage at a URL, beside the one that server.yaml names.
fn target_storage(url: &str, source: &StateStorage) -> Result<StateStorage, SetupError> {
    let (span, private) = match source {
        StateStorage::FileSystem { span, private, .. } => (*span, *private),
        StateStorage::Remote { span, .. } => (*span, false),
    };
    let unsupported = |reason| Err(SetupError::UnsupportedTarget { url: masked_url(url), reason });
    match url.split_once("://") {
        _ if url.contains("${") => unsupported(UnsupportedTarget::Placeholder),
        Some(("file", _)) => Ok(StateStorage::FileSystem { url: url.to_owned(), span, private }),
        Some(("s3" | "gs" | "postgres", _)) => {
            let (url, account) = (SecretText::new(url), CloudAccount::Environment);
            Ok(StateStorage::Remote { url, span, account, new_bucket: None })
        }
        Some(("azblob", _)) => unsupported(UnsupportedTarget::Azure),
        Some(("http" | "https", _)) => unsupported(UnsupportedTarget::Service),
        Some(_) | None => unsupported(UnsupportedTarget::Scheme),
    }
}
