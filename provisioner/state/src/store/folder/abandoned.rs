//! Temporary files that a killed process has left.

use std::fs;
use std::path::Path;
use std::sync::PoisonError;
use std::time::SystemTime;

use bridge::fs::{RANDOM_CHARACTERS, TemporaryFiles, calls, is_day_old};

use super::files::Folder;

impl Folder {
    /// Removes the abandoned temporary files of a folder in the background, once for each folder. Must be called within a
    /// tokio runtime.
    pub(super) fn remove_abandoned_once(&self, folder: &Path) {
        let is_first = self.cleaned.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
        if is_first {
            let folder = folder.to_owned();
            drop(tokio::task::spawn_blocking(move || remove_abandoned(&folder, SystemTime::now())));
        }
    }
}

/// Removes the abandoned temporary files of a folder: those that no process is writing, and those of locks and of earlier
/// versions once they are a day old. A file that cannot be removed stays.
fn remove_abandoned(folder: &Path, now: SystemTime) {
    drop(TemporaryFiles::begin(folder));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| !kind.is_dir());
        let path = entry.path();
        if is_file && entry.file_name().to_str().is_some_and(is_temporary) && is_day_old(&path, now) {
            calls::remove_file(&path).ok();
        }
    }
}

/// Returns `true` if only this program gives such a name to a file: `.tmp-` and a UUID or six characters, or `.lock-` and
/// a UUID. Sidecars have the suffix `.attrs`.
fn is_temporary(name: &str) -> bool {
    let bare = name.strip_suffix(".attrs").unwrap_or(name);
    let is_uuid = |text: &str| text.len() == uuid::fmt::Hyphenated::LENGTH && uuid::Uuid::parse_str(text).is_ok();
    let is_random = |text: &str| {
        text.len() == RANDOM_CHARACTERS && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) && bare == name
    };
    match (bare.strip_prefix(".tmp-"), bare.strip_prefix(".lock-")) {
        (Some(rest), _) => is_uuid(rest) || is_random(rest),
        (None, Some(rest)) => is_uuid(rest),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// Shows: state.md#files "it removes the temporary files (`.tmp-sc-…`) of killed ones"
    #[test]
    fn temporary_files_of_killed_processes_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let uuid = uuid::Uuid::new_v4().to_string();
        let temporary = [
            format!(".pulumi/.lock-{uuid}"),
            ".pulumi/stacks/reef/.tmp-a1B2c3".to_owned(),
            format!(".pulumi/stacks/reef/.tmp-{uuid}"),
            format!(".pulumi/history/reef/dev/.tmp-{uuid}.attrs"),
            format!(".pulumi/backups/reef/dev/.tmp-{uuid}"),
        ];
        let others = [
            ".pulumi/stacks/reef/dev.json",
            ".pulumi/stacks/reef/.tmp-notes",
            ".pulumi/stacks/reef/.tmp-a1B2c3.attrs",
            ".pulumi/history/reef/dev/tmp-a1B2c3",
        ];
        let paths = |names: &[String]| names.iter().map(|name| root.path().join(name)).collect::<Vec<_>>();
        let (temporary, others) = (paths(&temporary), paths(&others.map(str::to_owned)));
        for path in temporary.iter().chain(&others) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let killed =
            [".pulumi/stacks/reef/.tmp-sc-a1B2c3".to_owned(), format!(".pulumi/history/reef/dev/.tmp-sc-{uuid}")];
        let killed = paths(&killed);
        killed.iter().for_each(|path| fs::write(path, "").unwrap());
        let now = SystemTime::now();
        let remaining = || temporary.iter().filter(|path| path.exists()).count();
        let folders = [".pulumi", ".pulumi/stacks/reef", ".pulumi/history/reef/dev", ".pulumi/backups/reef/dev"];
        let remove_all = |now| folders.iter().for_each(|folder| remove_abandoned(&root.path().join(folder), now));
        remove_all(now);
        assert_eq!(remaining(), temporary.len(), "their processes may run");
        assert!(killed.iter().all(|path| !path.exists()), "no process is writing");
        remove_all(now + Duration::from_secs(24 * 60 * 60 + 60));
        assert_eq!(remaining(), 0);
        assert!(others.iter().all(|path| path.exists()));
    }
}
