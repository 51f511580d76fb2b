//! Temporary files that a killed process has left.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bridge::fs::calls;

use super::super::layout;
use super::super::reference::StackReference;
use super::folder::{Folder, list};

/// Age from which a temporary file is abandoned. A process renames or removes its file within moments; it may run on
/// another machine, so its process id says nothing.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// Number of random characters in the name of a file that `bridge::fs::write_atomically` creates.
const RANDOM_CHARACTERS: usize = 6;

impl Folder {
    /// Removes the abandoned temporary files in the folders of a stack. A file that cannot be removed stays.
    pub(super) fn remove_abandoned(&self, stack: &StackReference, now: SystemTime) {
        let folders = [
            layout::ROOT.to_owned(),
            self.layout.checkpoints(stack),
            self.layout.history(stack),
            self.layout.backups(stack),
        ];
        for folder in folders.map(|folder| self.path_of(&folder)) {
            let entries = list(&folder).unwrap_or_default();
            let temporary = entries.into_iter().filter(|entry| !entry.is_folder && is_temporary(&entry.name));
            for path in temporary.map(|entry| folder.join(entry.name)).filter(|path| is_abandoned(path, now)) {
                calls::remove_file(&path).ok();
            }
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

fn is_abandoned(path: &Path, now: SystemTime) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age > ABANDONED_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::compliance::stack;
    use crate::store::tests::file_store;

    #[tokio::test]
    async fn temporary_files_of_killed_processes_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let store = file_store(root.path()).await.unwrap();
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
        let now = SystemTime::now();
        let remaining = || temporary.iter().filter(|path| path.exists()).count();
        store.folder.remove_abandoned(&stack("dev"), now);
        assert_eq!(remaining(), temporary.len(), "their processes may run");
        store.folder.remove_abandoned(&stack("dev"), now + ABANDONED_AFTER + Duration::from_secs(60));
        assert_eq!(remaining(), 0);
        assert!(others.iter().all(|path| path.exists()));
    }
}
