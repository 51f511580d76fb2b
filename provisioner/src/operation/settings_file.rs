//! Settings file of a stack, `Pulumi.<stack>.yaml` at the root of the repository.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bridge::fs::{MAX_DOCUMENT_BYTES, read_regular, utf8};
use config::Stack;
use state::StackSettings;
use state::store::StackReference;

use super::SetupError;

/// Returns the path of the settings file of a stack, `Pulumi.<stack>.yaml`.
pub fn settings_file(root: &Path, stack: &str) -> PathBuf {
    root.join(format!("Pulumi.{stack}.yaml"))
}

/// Renames the settings file of a stack, if there is one.
///
/// # Errors
/// [`SetupError`] if the file of the new name exists already, or the file cannot be renamed.
#[expect(clippy::disallowed_methods, reason = "a rename does not write the file")]
pub fn move_settings(root: &Path, from: &StackReference, to: &StackReference) -> Result<(), SetupError> {
    check_settings(root, from, to)?;
    let [old, new] = [from, to].map(|stack| settings_file(root, stack.stack()));
    if old == new || !old.exists() {
        return Ok(());
    }
    std::fs::rename(&old, &new).map_err(|source| SetupError::SettingsNotMoved { old, source })
}

/// Checks that a rename does not overwrite the settings file of the new name.
///
/// # Errors
/// [`SetupError::SettingsExist`] if it would.
pub fn check_settings(root: &Path, from: &StackReference, to: &StackReference) -> Result<(), SetupError> {
    let [old, new] = [from, to].map(|stack| settings_file(root, stack.stack()));
    if old == new || !old.exists() || !new.exists() {
        return Ok(());
    }
    Err(SetupError::SettingsExist { old, new })
}

/// Reads the settings of a stack; a missing file has default settings.
pub(super) fn read_settings(root: &Path, stack: &Stack) -> Result<StackSettings, SetupError> {
    let path = settings_file(root, &stack.name);
    match read_regular(&path, MAX_DOCUMENT_BYTES).and_then(utf8) {
        Ok(text) => {
            StackSettings::parse(&text, &stack.project).map_err(|source| SetupError::InvalidSettings { path, source })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(StackSettings::default()),
        Err(source) => Err(SetupError::UnreadableSettings { path, source }),
    }
}
