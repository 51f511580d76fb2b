//! The lock file of a repository on the disk: read once, changed under a lock, written whole.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};

use super::lock_file::{LockEntry, LockFile, LockFileError};
use super::{InstallError, LockKey, run_blocking};
use crate::fs::{
    Access, FileError, MAX_DOCUMENT_BYTES, create_folders, place_below, read_if_exists, utf8, write_atomically,
};
use crate::plugin::{DigestOrigin, Platform, ResolvedPackage};

/// Path of the lock file in a repository.
pub const LOCK_FILE: &str = ".sc/sc.lock";

/// Rule for what a command may do with the lock file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockRule {
    /// No lock file is read or written.
    #[default]
    Off,
    /// Missing entries are added.
    Add,
    /// A missing entry is an error, since the user has asked for it.
    Locked,
    /// A missing entry is an error, since this is a pipeline.
    LockedInPipeline,
    /// Missing entries are resolved, and nothing is written: a pipeline without a lock file.
    ReadOnly,
}

/// Lock file of a repository, for the plugins of a command. Clones share what was read.
#[derive(Clone, Debug, Default)]
pub struct PackageLock {
    repository: PathBuf,
    rule: LockRule,
    /// Declarations of all stacks; `None` if not all of them were read.
    declared: Option<Arc<Declared>>,
    read: Arc<Mutex<Option<Arc<LockFile>>>>,
    is_missing_told: Arc<AtomicBool>,
}

/// Declarations of the stacks of a repository.
#[derive(Debug)]
struct Declared {
    keys: Vec<LockKey>,
    /// Sources that are used without a declaration, in one version each.
    undeclared_sources: Vec<String>,
}

impl Declared {
    fn has(&self, entry: &LockEntry) -> bool {
        entry.is_undeclared
            || self.undeclared_sources.contains(&entry.source)
            || self.keys.iter().any(|key| entry.is_exactly(key))
    }
}

/// Package that the lock file has for a declaration.
#[derive(Clone, Debug)]
pub(super) struct LockedPackage {
    pub(super) package: ResolvedPackage,
    /// False if it is that of an entry for another wanted version.
    pub(super) is_exact: bool,
}

/// Way in which a package is added to the lock file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Adding {
    /// True if it takes the place of another content of the same declaration.
    pub(super) replaces: bool,
    /// True if no stack declares it.
    pub(super) is_undeclared: bool,
}

/// Result of adding a package to the lock file.
#[derive(Debug)]
pub(super) enum Added {
    /// The package is in the file, whose text has changed.
    Written,
    /// The package was in the file.
    Unchanged,
    /// Another run has added another package for the same declaration.
    Other,
}

impl PackageLock {
    /// Returns the lock file of a repository.
    pub fn new(repository: &Path, rule: LockRule) -> Self {
        Self {
            repository: repository.to_owned(),
            rule,
            declared: None,
            read: Arc::default(),
            is_missing_told: Arc::default(),
        }
    }

    /// Sets the declarations of all stacks of the repository, so that an entry whose declaration has changed is not kept.
    /// `undeclared_sources` are used without a declaration, in one version each.
    #[must_use]
    pub fn with_declared(
        self,
        keys: impl IntoIterator<Item = LockKey>,
        undeclared_sources: impl IntoIterator<Item = String>,
    ) -> Self {
        let (keys, undeclared_sources) = (keys.into_iter().collect(), undeclared_sources.into_iter().collect());
        Self { declared: Some(Arc::new(Declared { keys, undeclared_sources })), ..self }
    }

    /// Sets what may be done with the file.
    #[must_use]
    pub fn with_rule(self, rule: LockRule) -> Self {
        Self { rule, ..self }
    }

    /// Returns what may be done with the file.
    pub fn rule(&self) -> LockRule {
        self.rule
    }

    /// Returns true if it is called for the first time: that there is no file is told once.
    pub(super) fn is_first_missing(&self) -> bool {
        !self.is_missing_told.swap(true, Ordering::Relaxed)
    }

    /// Returns the version that the lock file records for a declaration, in the meaning of [`ResolvedPackage::revision`]; `None` if it has
    /// none.
    ///
    /// # Errors
    /// [`InstallError::LockFile`].
    pub fn find(&self, key: &LockKey) -> Result<Option<ResolvedPackage>, InstallError> {
        Ok(self.find_entry(key)?.map(|found| found.package))
    }

    /// Returns the same as [`PackageLock::find`], and whether it is recorded for exactly this declaration.
    ///
    /// # Errors
    /// [`InstallError::LockFile`].
    pub fn find_exact(&self, key: &LockKey) -> Result<Option<(ResolvedPackage, bool)>, InstallError> {
        Ok(self.find_entry(key)?.map(|found| (found.package, found.is_exact)))
    }

    pub(super) fn find_entry(&self, key: &LockKey) -> Result<Option<LockedPackage>, InstallError> {
        if matches!(self.rule, LockRule::Off) {
            return Ok(None);
        }
        let found = self.content()?;
        let found = found.find(key);
        Ok(found.map(|found| LockedPackage { package: found.entry.resolved.clone(), is_exact: found.is_exact }))
    }

    /// Reads the file again, and returns what it has for a declaration now.
    pub(super) fn find_recorded_meanwhile(&self, key: &LockKey) -> Result<Option<LockedPackage>, InstallError> {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.find_entry(key)
    }

    /// Returns the strongest evidence that is recorded for the place and the asset of a declaration, and a platform, in other versions.
    pub(super) fn evidence_for(
        &self,
        key: &LockKey,
        platform: Platform,
        tag: &str,
    ) -> Result<Option<DigestOrigin>, InstallError> {
        Ok(self.content()?.evidence_for(key, platform, tag))
    }

    /// Returns the signer that is recorded for the place and the asset of a declaration, up to the version of a tag.
    pub(super) fn signer_for(&self, key: &LockKey, tag: &str) -> Result<Option<String>, InstallError> {
        Ok(self.content()?.signer_for(key, tag).map(str::to_owned))
    }

    fn content(&self) -> Result<Arc<LockFile>, InstallError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(content) = &*read {
            return Ok(Arc::clone(content));
        }
        let content = Arc::new(self.parse()?);
        *read = Some(Arc::clone(&content));
        Ok(content)
    }

    fn parse(&self) -> Result<LockFile, InstallError> {
        LockFile::parse(&self.text()?).map_err(|error| self.refused(error))
    }

    fn text(&self) -> Result<String, InstallError> {
        let place = self.place()?;
        let content = read_if_exists(&place, MAX_DOCUMENT_BYTES)?.unwrap_or_default();
        Ok(utf8(content).map_err(FileError::of("read", &place))?)
    }

    /// Returns the path of the file. A link in the repository must not lead out of it.
    fn place(&self) -> Result<PathBuf, InstallError> {
        Ok(place_below(&self.repository, Path::new(LOCK_FILE))?)
    }

    fn refused(&self, error: LockFileError) -> InstallError {
        InstallError::LockFile { path: self.repository.join(LOCK_FILE), source: error }
    }

    /// Adds a package for a declaration. What another run has added since the file was read stays. `replaces`: the package takes the
    /// place of the recorded one.
    pub(super) async fn add(
        &self,
        key: LockKey,
        package: ResolvedPackage,
        adding: Adding,
    ) -> Result<Added, InstallError> {
        self.change(move |lock, declared| add(lock, declared, &key, package, adding)).await
    }

    /// Changes the file: waits for other runs that change it, reads it again, and writes it whole.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut LockFile, Option<&Declared>) -> T + Send + 'static,
    ) -> Result<T, InstallError> {
        let lock = self.clone();
        run_blocking(move || {
            let _held = lock.hold()?;
            let before = lock.text()?;
            let mut content = LockFile::parse(&before).map_err(|error| lock.refused(error))?;
            let result = change(&mut content, lock.declared.as_deref());
            lock.write(&before, content)?;
            Ok(result)
        })
        .await
    }

    /// Takes the lock of the root of the repository, so that one run at a time changes the file: for the time of a read and a write at most.
    /// The folder of the file has another lock, which the writer of its temporary file takes meanwhile. A file system without locks has
    /// none.
    fn hold(&self) -> Result<Option<File>, InstallError> {
        let place = self.place()?;
        create_folders(place.parent().unwrap_or(&place))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.repository, flags, Mode::empty()).map_err(io::Error::from);
        let root = File::from(opened.map_err(FileError::of("open", &self.repository))?);
        Ok(root.lock().is_ok().then_some(root))
    }

    fn write(&self, before: &str, content: LockFile) -> Result<(), InstallError> {
        let text = content.to_text();
        if text != before && !(before.is_empty() && content.entries().is_empty()) {
            let place = self.place()?;
            write_atomically(&place, text.as_bytes(), Access::Shared)?;
        }
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(content));
        Ok(())
    }

    /// Repairs the file after a merge: takes both sides, and of two entries of one declaration the one with the higher tag. Returns what was
    /// decided, in words.
    ///
    /// # Errors
    /// [`InstallError::LockFile`] if it cannot be repaired; [`InstallError::Path`].
    pub async fn repair(&self) -> Result<Vec<String>, InstallError> {
        let lock = self.clone();
        run_blocking(move || {
            let _held = lock.hold()?;
            let before = lock.text()?;
            let repaired = LockFile::repair(&before).map_err(|error| lock.refused(error))?;
            if !repaired.notes.is_empty() || repaired.lock != LockFile::default() {
                lock.write(&before, repaired.lock)?;
            }
            Ok(repaired.notes)
        })
        .await
    }

    /// Removes the entries that no stack declares, if all stacks were read. Returns their names.
    ///
    /// # Errors
    /// [`InstallError::LockFile`], [`InstallError::Path`].
    pub async fn remove_undeclared(&self) -> Result<Vec<String>, InstallError> {
        if self.undeclared()?.is_empty() {
            return Ok(Vec::new());
        }
        self.change(remove_undeclared).await
    }

    /// Returns the releases that only the state or a component needs: host and path of each repository, with its tag and its package.
    ///
    /// # Errors
    /// [`InstallError::LockFile`].
    pub fn undeclared_releases(&self) -> Result<Vec<(String, String, Option<String>)>, InstallError> {
        if self.rule == LockRule::Off {
            return Ok(Vec::new());
        }
        let content = self.content()?;
        let release = |entry: &LockEntry| {
            let place = entry.source.strip_prefix("github-release ").filter(|_| entry.is_undeclared)?;
            let ResolvedPackage::Release(release) = &entry.resolved else { return None };
            Some((place.to_owned(), release.tag.clone(), release.package.clone()))
        };
        Ok(content.entries().iter().filter_map(release).collect())
    }

    /// Returns the names of the entries that no stack declares; none if not all stacks were read.
    ///
    /// # Errors
    /// [`InstallError::LockFile`].
    pub fn undeclared(&self) -> Result<Vec<String>, InstallError> {
        let Some(declared) = self.declared.as_deref().filter(|_| self.rule != LockRule::Off) else {
            return Ok(Vec::new());
        };
        let content = self.content()?;
        Ok(content.entries().iter().filter(|entry| !declared.has(entry)).map(LockEntry::name).collect())
    }
}

/// Adds a package for a declaration: see [`PackageLock::add`].
fn add(
    lock: &mut LockFile,
    declared: Option<&Declared>,
    key: &LockKey,
    mut package: ResolvedPackage,
    Adding { replaces, is_undeclared }: Adding,
) -> Added {
    let found = lock.find(key).map(|found| (found.entry.clone(), found.is_exact));
    if let Some((entry, true)) = found {
        match merged(&entry.resolved, &package) {
            None if !replaces => return Added::Other,
            None => {}
            Some(both) if both == entry.resolved && (is_undeclared || !entry.is_undeclared) => return Added::Unchanged,
            Some(both) => package = both,
        }
    }
    if let Some(declared) = declared
        && declared.undeclared_sources.contains(&key.source)
        && !declared.keys.contains(key)
    {
        // It is used in one version without a declaration.
        let is_declared = |entry: &LockEntry| declared.keys.iter().any(|key| entry.is_exactly(key));
        lock.retain(|entry| entry.source != key.source || is_declared(entry));
    }
    if is_undeclared {
        lock.put_undeclared(key, package);
        return Added::Written;
    }
    lock.put(key, package);
    // An entry that no stack declares goes with the next change, unless a declaration that has none yet will find it.
    let Some(declared) = declared else { return Added::Written };
    let waiting: Vec<&LockKey> =
        declared.keys.iter().filter(|key| !lock.entries().iter().any(|entry| entry.is_exactly(key))).collect();
    lock.retain(|entry| {
        declared.has(entry) || entry.is_exactly(key) || waiting.iter().any(|waiting| entry.may_serve(waiting))
    });
    Added::Written
}

fn remove_undeclared(lock: &mut LockFile, declared: Option<&Declared>) -> Vec<String> {
    let Some(declared) = declared else { return Vec::new() };
    let removed = lock.entries().iter().filter(|entry| !declared.has(entry)).map(LockEntry::name).collect();
    lock.retain(|entry| declared.has(entry));
    removed
}

/// Returns what is recorded, with what was found beside it; `None` if they are not the same release or commit with the same digests and the
/// same signer. A digest that was signed since takes the place of one that was not.
pub(super) fn merged(recorded: &ResolvedPackage, found: &ResolvedPackage) -> Option<ResolvedPackage> {
    match (recorded, found) {
        (ResolvedPackage::Release(recorded), ResolvedPackage::Release(found)) if recorded.tag == found.tag => {
            let mut both = recorded.clone();
            match (&recorded.signer, &found.signer) {
                (Some(recorded), Some(found)) if recorded != found => return None,
                (recorded, found) => both.signer = recorded.clone().or_else(|| found.clone()),
            }
            for (platform, asset) in &found.assets {
                match recorded.assets.get(platform).map(|known| known.digest.map(|(digest, _)| digest)) {
                    None => drop(both.assets.insert(*platform, asset.clone())),
                    Some(digest) if digest == asset.digest.map(|(digest, _)| digest) => {
                        if matches!(asset.digest, Some((_, DigestOrigin::Signed))) {
                            both.assets.insert(*platform, asset.clone());
                        }
                    }
                    Some(_) => return None,
                }
            }
            Some(ResolvedPackage::Release(both))
        }
        (recorded, found) => (recorded == found).then(|| recorded.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{ResolvedRelease, WantedVersion};

    fn key(place: &str, wanted: &str) -> LockKey {
        LockKey {
            source: format!("github-release github.com/{place}"),
            wanted: WantedVersion::of_release(wanted).unwrap(),
            asset: None,
            package: "reef".parse().unwrap(),
        }
    }

    fn release(tag: &str) -> ResolvedPackage {
        ResolvedPackage::Release(ResolvedRelease { tag: tag.to_owned(), ..ResolvedRelease::default() })
    }

    fn names(lock: &LockFile) -> Vec<String> {
        lock.entries().iter().map(|entry| format!("{} {}", entry.name(), entry.tag().unwrap())).collect()
    }

    #[test]
    fn writer_of_the_file_does_not_wait_for_the_lock_that_its_change_holds() {
        let repository = tempfile::tempdir().unwrap();
        let lock = PackageLock::new(repository.path(), LockRule::Add);
        let held = lock.hold().unwrap();
        assert!(held.is_some());
        let folder = File::open(repository.path().join(".sc")).unwrap();
        assert!(folder.try_lock_shared().is_ok(), "it waits until it gives up");
        assert!(File::open(repository.path()).unwrap().try_lock().is_err(), "two runs change the file at once");
    }

    #[test]
    fn entry_stays_until_the_changed_declaration_that_it_fits_has_its_own() {
        let mut lock = LockFile::default();
        lock.put(&key("acme/reef", "^1"), release("v1.2.0"));
        lock.put(&key("acme/gone", "^1"), release("v1.0.0"));
        let keys = vec![key("acme/reef", "^1.1"), key("acme/lake", "^2")];
        let declared = Declared { keys, undeclared_sources: Vec::new() };
        add(&mut lock, Some(&declared), &key("acme/lake", "^2"), release("v2.0.0"), Adding::default());
        let lake = "github-release github.com/acme/lake ^2 v2.0.0";
        assert_eq!(names(&lock), [lake, "github-release github.com/acme/reef ^1 v1.2.0"]);
        add(&mut lock, Some(&declared), &key("acme/reef", "^1.1"), release("v1.2.0"), Adding::default());
        assert_eq!(names(&lock), [lake, "github-release github.com/acme/reef ^1.1 v1.2.0"]);
    }

    #[test]
    fn source_without_a_declaration_has_one_version_beside_those_that_are_declared() {
        let random = "pulumi/pulumi-random";
        let undeclared_sources = vec![format!("github-release github.com/{random}")];
        let declared = Declared { keys: vec![key(random, "^4.16")], undeclared_sources };
        let mut lock = LockFile::default();
        for (wanted, tag) in [("v4.20.0", "v4.20.0"), ("^4.16", "v4.19.0"), ("v4.21.0", "v4.21.0")] {
            add(&mut lock, Some(&declared), &key(random, wanted), release(tag), Adding::default());
        }
        let place = format!("github-release github.com/{random}");
        assert_eq!(names(&lock), [format!("{place} ^4.16 v4.19.0"), format!("{place} v4.21.0 v4.21.0")]);
    }
}
