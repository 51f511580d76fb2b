//! Differences between two contents of the lock file, such as those of two commits.

use super::{LockEntry, LockFile, LockFileError, LockKey};

/// Two contents of the lock file, which are compared for each declaration.
#[derive(Clone, Debug)]
pub struct LockDifference {
    old: LockFile,
    new: LockFile,
}

impl LockDifference {
    /// Reads both texts. An empty one has no entries.
    ///
    /// # Errors
    /// [`LockFileError`] of the first text that cannot be read.
    pub fn between(old: &str, new: &str) -> Result<Self, LockFileError> {
        Ok(Self { old: LockFile::parse(old)?, new: LockFile::parse(new)? })
    }

    /// Returns whether a run finds another package for a declaration.
    pub fn concerns(&self, key: &LockKey) -> bool {
        let package = |lock: &LockFile| lock.find(key).map(|found| found.entry.resolved.clone());
        package(&self.old) != package(&self.new)
    }

    /// Returns whether the entries of a place differ, such as those of a package that is used without a declaration.
    pub fn concerns_place(&self, source: &str) -> bool {
        self.has_other(|entry| entry.source == source)
    }

    /// Returns whether the entries differ that no stack declares: the state or a component needs them, of which the files tell
    /// nothing.
    pub fn concerns_undeclared(&self) -> bool {
        self.has_other(|entry| entry.is_undeclared)
    }

    fn has_other(&self, is_meant: impl Fn(&LockEntry) -> bool) -> bool {
        let meant =
            |lock: &LockFile| lock.entries().iter().filter(|entry| is_meant(entry)).cloned().collect::<Vec<_>>();
        meant(&self.old) != meant(&self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{key, release};
    use super::*;

    fn text(entries: &[(&str, &str)], undeclared: Option<&str>) -> String {
        let mut lock = LockFile::default();
        entries.iter().for_each(|(wanted, tag)| lock.put(&key(wanted), release(tag)));
        if let Some(tag) = undeclared {
            let place = "github-release github.com/acme/lake".to_owned();
            lock.put_undeclared(&LockKey { source: place, ..key(tag) }, release(tag));
        }
        lock.to_text()
    }

    #[test]
    fn declaration_is_concerned_by_another_package_for_it() {
        let difference_of = |old: &[(&str, &str)], new: &[(&str, &str)]| {
            let difference = LockDifference::between(&text(old, None), &text(new, None)).unwrap();
            assert!(!difference.concerns_undeclared());
            difference.concerns(&key("^1"))
        };
        let first = ("^1", "v1.2.0");
        assert!(!difference_of(&[first], &[first]));
        assert!(difference_of(&[first], &[("^1", "v1.3.0")]));
        assert!(difference_of(&[], &[first]));
        // Entries of other declarations of the same place.
        assert!(!difference_of(&[first, ("^2", "v2.0.0")], &[first, ("^2", "v2.1.0")]));
        assert!(!difference_of(&[first], &[first, ("v1.3.0", "v1.3.0")]));
        // Another entry has the package that the declaration gets.
        assert!(!difference_of(&[first], &[("~1.2", "v1.2.0")]));
    }

    #[test]
    fn entries_without_a_declaration_are_compared_by_themselves_and_by_place() {
        let (old, new) = (text(&[("^1", "v1.2.0")], Some("v1.0.0")), text(&[("^1", "v1.2.0")], Some("v1.1.0")));
        let difference = LockDifference::between(&old, &new).unwrap();
        assert!(difference.concerns_undeclared() && !difference.concerns(&key("^1")));
        assert!(difference.concerns_place("github-release github.com/acme/lake"));
        assert!(!difference.concerns_place("github-release github.com/acme/reef"));
        assert!(LockDifference::between("", "").is_ok_and(|same| !same.concerns_undeclared()));
        assert!(LockDifference::between("", "version: 2\n").is_err());
    }
}
