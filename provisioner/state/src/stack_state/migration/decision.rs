//! Decision whether a migration may replace the checkpoint of its target.

use crate::store::{MigrationDirection, MigrationMark, StoredCheckpoint};

/// Checkpoint of the target before a migration.
#[derive(Debug)]
pub(super) enum TargetCheckpoint {
    /// No checkpoint.
    Missing,
    /// Checkpoint that moves: an earlier attempt has written it.
    Equal,
    /// Checkpoint with which the stack moved away from the target: the migration keeps it as a backup.
    Kept(StoredCheckpoint),
    /// Checkpoint of any earlier attempt, before the stack was changed in the source.
    Outdated(StoredCheckpoint),
}

/// Returns what the checkpoint of the target is, with its mark; `None` if a migration must not replace it.
pub(super) fn find_target_checkpoint(
    mark: Option<&MigrationMark>,
    found: Option<&StoredCheckpoint>,
    moving: &str,
) -> Option<TargetCheckpoint> {
    let Some(found) = found else { return Some(TargetCheckpoint::Missing) };
    let digest = found.revision.digest().as_str();
    if digest == moving {
        return Some(TargetCheckpoint::Equal);
    }
    let mark = mark?;
    match mark.direction {
        MigrationDirection::To if digest == mark.digest => Some(TargetCheckpoint::Kept(found.clone())),
        MigrationDirection::From if Some(digest) == mark.replaces.as_deref() => {
            Some(TargetCheckpoint::Kept(found.clone()))
        }
        MigrationDirection::From
            if digest == mark.digest || mark.outdated.iter().any(|outdated| outdated == digest) =>
        {
            Some(TargetCheckpoint::Outdated(found.clone()))
        }
        MigrationDirection::To | MigrationDirection::From | MigrationDirection::Renamed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::digest;
    use crate::store::compliance::mark;

    #[test]
    fn migration_replaces_only_what_a_migration_has_left() {
        let moved_away = |text| Some(MigrationMark { digest: digest(text), ..mark(MigrationDirection::To) });
        let arriving = |text, replaced: Option<&str>| {
            let replaces = replaced.map(digest);
            Some(MigrationMark { digest: digest(text), replaces, ..mark(MigrationDirection::From) })
        };
        let arriving_again = |text, outdated: &str| {
            let outdated = vec![digest(outdated)];
            Some(MigrationMark { digest: digest(text), outdated, ..mark(MigrationDirection::From) })
        };
        let table = [
            (None, None, "missing"),
            (None, Some("new"), "equal"),
            (None, Some("other"), "refused"),
            (moved_away("old"), None, "missing"),
            (moved_away("old"), Some("old"), "kept"),
            (moved_away("old"), Some("new"), "equal"),
            (moved_away("old"), Some("other"), "refused"),
            (arriving("new", None), None, "missing"),
            (arriving("new", None), Some("new"), "equal"),
            (arriving("new", None), Some("other"), "refused"),
            (arriving("earlier", None), Some("earlier"), "outdated"),
            (arriving("earlier", Some("old")), Some("old"), "kept"),
            (arriving("earlier", Some("old")), Some("earlier"), "outdated"),
            (arriving("earlier", Some("old")), Some("other"), "refused"),
            (arriving_again("earlier", "first"), Some("first"), "outdated"),
            (arriving_again("earlier", "first"), Some("earlier"), "outdated"),
            (arriving_again("earlier", "first"), Some("other"), "refused"),
        ];
        for (mark, found, expected) in table {
            let found = found.map(|text| StoredCheckpoint::of_text(text.to_owned()));
            let decided = match find_target_checkpoint(mark.as_ref(), found.as_ref(), &digest("new")) {
                None => "refused",
                Some(TargetCheckpoint::Missing) => "missing",
                Some(TargetCheckpoint::Equal) => "equal",
                Some(TargetCheckpoint::Kept(_)) => "kept",
                Some(TargetCheckpoint::Outdated(_)) => "outdated",
            };
            assert_eq!(decided, expected, "{mark:?} {found:?}");
        }
    }
}
