//! Installation of a declared plugin: resolve and fetch, with the lock file between them.
//!
//! ```text
//! declaration ─► lock file ─► (a package that is locked) ─────────────┐
//!                    │ missing                                        ├─► fetch ─► verified package
//!                    └─► resolve ─► (what its place names now) ───────┘      └─► lock file
//! ```

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use super::cache_key::CacheKey;
use super::package_cache::{Lock, PackageCache};
use super::package_lock::{Added, Adding, LockedPackage, merged};
use super::{
    Decision, FetchEvent, FetchEvents, InstallError, LOCK_FILE, LastResolved, LockKey, LockRule, PackageLock,
    PackageSource, TerraformError,
};
use crate::error::chain;
use crate::fs::FileError;
use crate::plugin::{DigestOrigin, Platform, PluginNames, PolicyRefusal, ResolvedPackage};

/// Number of times that a package is decided on, if other runs decide on another one at the same time.
const MAX_DECISIONS: usize = 4;

/// Record of a declaration in the lock file, now and before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockChange {
    /// The declaration.
    pub key: LockKey,
    /// Package that was recorded for it, or for another wanted version that fits it.
    pub before: Option<ResolvedPackage>,
    /// Package that is recorded now, or would be recorded, if the file must not change.
    pub after: ResolvedPackage,
    /// True if the text of the file changes.
    pub is_change: bool,
}

/// Installer of the declared plugins of a repository.
#[derive(Clone)]
pub struct Installer<'i> {
    /// Lock file.
    pub lock: PackageLock,
    /// Folder of the cache, with the lock under which the lock file is changed.
    pub cache: PathBuf,
    /// True if no stack declares what is installed, so that its entry in the lock file says so.
    pub is_undeclared: bool,
    /// True if what the lock file has is resolved again, and replaced.
    pub updates: bool,
    /// True if an update may record another content of the same tag.
    pub accepts_replaced: bool,
    /// Asked whether a package may have another signer than the recorded one; `None`: it may not.
    pub signer_approval: Option<Arc<dyn SignerApproval>>,
    /// Refusal of a build, if the policy allows none.
    pub build_refusal: Option<Box<PolicyRefusal>>,
    /// Receiver of events.
    pub events: &'i dyn FetchEvents,
}

/// Decides about packages that another key has signed than the recorded one, or none.
#[async_trait]
pub trait SignerApproval: Send + Sync + fmt::Debug {
    /// Returns whether such a package may be recorded. `change` says which one it is, and names both keys.
    async fn accept(&self, change: &str) -> bool;
}

impl<'i> Installer<'i> {
    /// Returns an installer without a lock file.
    pub fn new(events: &'i dyn FetchEvents) -> Self {
        Self {
            lock: PackageLock::default(),
            cache: PathBuf::new(),
            is_undeclared: false,
            updates: false,
            accepts_replaced: false,
            signer_approval: None,
            build_refusal: None,
            events,
        }
    }

    /// Returns the verified package of a declared plugin: that of the lock file, else the one that its place names now, which is
    /// added to the lock file. Without a lock file, a tag or a commit that is on this machine needs no question to its place. If the
    /// place cannot be reached, the last known package is used, with a warning.
    ///
    /// # Errors
    /// [`InstallError`]. No file of the package has been executed then, and refused files are removed.
    ///
    /// # Cancellation
    /// Unfinished files are removed.
    pub async fn install<S: PackageSource + ?Sized>(
        &self,
        source: &S,
        names: PluginNames<'_>,
        declared: &S::Declared,
    ) -> Result<S::Package, InstallError> {
        let key = source.lock_key(names, declared)?;
        let Some(key) = key.filter(|_| self.lock.rule() != LockRule::Off) else {
            let package = self.decide(source, names, declared, true).await?.package;
            let decision = self.decision(package, false);
            return Ok(source.fetch(names, declared, decision, self.events).await?.0);
        };
        for _ in 0..MAX_DECISIONS {
            if let Some(package) = self.install_locked(source, names, declared, &key).await? {
                return Ok(package);
            }
        }
        Err(InstallError::LockContention)
    }

    /// Returns the package of a declaration that the lock file may have; `None` if another run has decided on another one meanwhile.
    async fn install_locked<S: PackageSource + ?Sized>(
        &self,
        source: &S,
        names: PluginNames<'_>,
        declared: &S::Declared,
        key: &LockKey,
    ) -> Result<Option<S::Package>, InstallError> {
        let mut recorded = self.lock.find_entry(key)?;
        let (mut resolving, mut is_answered) = (None, true);
        if recorded.is_none() {
            self.check_may_resolve(key)?;
            resolving = self.hold_resolution(key).await;
            recorded = self.lock.find_recorded_meanwhile(key)?;
        }
        let decision = match &recorded {
            Some(LockedPackage { package, .. }) => {
                let package = self.with_platform(source, names, declared, key, package.clone()).await?;
                self.decision(package, true)
            }
            None => {
                let is_known_enough = self.lock.rule() == LockRule::ReadOnly;
                let decided = self.decide(source, names, declared, is_known_enough).await?;
                is_answered = decided.is_answered;
                self.decision(decided.package, false)
            }
        };
        let (package, found) = source.fetch(names, declared, decision, self.events).await?;
        let found = found.recorded();
        let is_recorded = recorded.is_some_and(|recorded| recorded.is_exact && recorded.package == found);
        if self.lock.rule() != LockRule::Add || is_recorded {
            return Ok(Some(package));
        }
        if !is_answered || !source.is_complete(names, declared, &found) {
            let text = format!("{} is not added to {LOCK_FILE}, since its place cannot be asked now", found.revision());
            self.events.emit(FetchEvent::Warning(text));
            return Ok(Some(package));
        }
        self.check_signer(key, None, &found).await?;
        self.check_evidence(key, &found)?;
        let adding = Adding { replaces: false, is_undeclared: self.is_undeclared };
        let added = match self.lock.add(key.clone(), found.clone(), adding).await {
            Ok(added) => added,
            Err(InstallError::Path(error)) if is_read_only(&error) => {
                // The package is verified, and the repository is not this command's to change.
                let text = format!("{} is not recorded: {}", found.revision(), chain(&error));
                self.events.emit(FetchEvent::Warning(text));
                return Ok(Some(package));
            }
            Err(error) => return Err(error),
        };
        let added = match added {
            Added::Written => {
                let (wanted, revision) = (key.wanted.as_str(), found.revision());
                let text = if wanted == revision {
                    format!("version {wanted} is recorded in {LOCK_FILE}")
                } else {
                    format!("version {wanted} is {revision}, recorded in {LOCK_FILE}")
                };
                self.events.emit(FetchEvent::Note(text));
                Ok(Some(package))
            }
            Added::Unchanged => Ok(Some(package)),
            Added::Other => Ok(None),
        };
        drop(resolving);
        added
    }

    /// Records what a declaration means in the lock file, unless the file must not change. Downloads the package only if its digest is
    /// not published. `resolved_as` is the declaration, or that of a version to which it is set. Returns `None` for a source that is not
    /// locked.
    ///
    /// # Errors
    /// [`InstallError`]. The lock file is as it was.
    pub async fn lock<S: PackageSource + ?Sized>(
        &self,
        source: &S,
        names: PluginNames<'_>,
        declared: &S::Declared,
        resolved_as: &S::Declared,
    ) -> Result<Option<LockChange>, InstallError> {
        let Some(key) = source.lock_key(names, declared)? else { return Ok(None) };
        let recorded = self.lock.find_entry(&key)?;
        let (before, is_exact) = match recorded {
            Some(LockedPackage { package, is_exact }) => (Some(package), is_exact),
            None => (None, false),
        };
        let mut after = match before.clone().filter(|_| !self.updates) {
            Some(package) if source.is_complete(names, declared, &package) => package,
            Some(package) => source.complete(names, declared, package, self.events).await?,
            None => source.resolve(names, resolved_as, self.events).await?,
        };
        if !source.is_complete(names, declared, &after) {
            let decision = self.decision(after, before.is_some() && !self.updates);
            after = source.fetch(names, declared, decision, self.events).await?.1;
        }
        let mut after = after.recorded();
        if before.as_ref() != Some(&after) {
            self.check_signer(&key, before.as_ref(), &after).await?;
        }
        if let Some(before) = &before
            && before.tag() == after.tag()
        {
            match merged(before, &after) {
                // What other platforms have stays.
                Some(both) => after = both,
                None if self.accepts_replaced || before.tag().is_none() => {}
                None => {
                    return Err(InstallError::Replaced { name: format!("{} of {}", before.revision(), key.source) });
                }
            }
        }
        if before.as_ref() != Some(&after) {
            self.check_evidence(&key, &after)?;
        }
        let mut change = LockChange { is_change: !is_exact || before.as_ref() != Some(&after), key, before, after };
        if change.is_change && self.lock.rule() == LockRule::Add {
            let adding = Adding { replaces: self.updates, is_undeclared: self.is_undeclared };
            let added = self.lock.add(change.key.clone(), change.after.clone(), adding).await?;
            if let Added::Other = added {
                return Err(InstallError::LockContention);
            }
            change.is_change = matches!(added, Added::Written);
        }
        Ok(Some(change))
    }

    /// Returns what the lock file has for a declaration, before anything is asked.
    ///
    /// # Errors
    /// [`InstallError::NotLocked`] if it has to have the declaration, and does not; [`InstallError::LockFile`].
    pub fn locked<S: PackageSource + ?Sized>(
        &self,
        source: &S,
        names: PluginNames<'_>,
        declared: &S::Declared,
    ) -> Result<Option<ResolvedPackage>, InstallError> {
        let Some(key) = source.lock_key(names, declared)? else { return Ok(None) };
        let found = self.lock.find(&key)?;
        if found.is_none() && matches!(self.lock.rule(), LockRule::Locked | LockRule::LockedInPipeline) {
            self.check_may_resolve(&key)?;
        }
        Ok(found)
    }

    fn decision(&self, package: ResolvedPackage, is_locked: bool) -> Decision {
        Decision { package, build_refusal: self.build_refusal.clone(), is_locked }
    }

    /// Takes the lock of a declaration: of several runs, one asks the place, and the others read what it has recorded. Without a cache that
    /// can be written, each asks.
    async fn hold_resolution(&self, key: &LockKey) -> Option<Lock> {
        if self.lock.rule() != LockRule::Add {
            return None;
        }
        let asset = key.asset.as_deref().unwrap_or_default();
        let held = CacheKey::new(["resolve", &key.source, key.wanted.as_str(), asset]);
        let cache = PackageCache::new(self.cache.clone());
        cache.lock(&held, || self.events.emit(FetchEvent::Waiting)).await.ok()
    }

    /// Returns an error if the lock file has to have a declaration.
    fn check_may_resolve(&self, key: &LockKey) -> Result<(), InstallError> {
        let LockKey { source, wanted, .. } = key;
        match self.lock.rule() {
            LockRule::Off | LockRule::Add => Ok(()),
            LockRule::ReadOnly => {
                if self.lock.is_first_missing() {
                    let text = format!(
                        "the repository has no {LOCK_FILE}, and a pipeline writes none: commit the file that `sc plugin lock` writes"
                    );
                    self.events.emit(FetchEvent::Warning(text));
                }
                Ok(())
            }
            rule @ (LockRule::Locked | LockRule::LockedInPipeline) => Err(InstallError::NotLocked {
                name: format!("{source} {wanted}"),
                is_pipeline: rule == LockRule::LockedInPipeline,
            }),
        }
    }

    /// Returns what a declaration means: what this machine has for a tag or a commit, if that is enough, else what its place names now.
    async fn decide<S: PackageSource + ?Sized>(
        &self,
        source: &S,
        names: PluginNames<'_>,
        declared: &S::Declared,
        is_known_enough: bool,
    ) -> Result<Decided, InstallError> {
        let last = source.last_resolved(names, declared).await?;
        match last {
            Some(LastResolved { package, is_fixed: true }) if is_known_enough => {
                Ok(Decided { package, is_answered: false })
            }
            last => match source.resolve(names, declared, self.events).await {
                Ok(package) => Ok(Decided { package, is_answered: true }),
                Err(error) => {
                    // A tag and a commit that this machine has need no place.
                    let known = last.filter(|last| last.is_fixed || error.is_unreachable());
                    let Some(LastResolved { package, is_fixed }) = known else { return Err(error) };
                    if !is_fixed || !error.is_unreachable() {
                        let text = format!("{error}; {}, the last known one, is used", package.revision());
                        self.events.emit(FetchEvent::Warning(text));
                    }
                    Ok(Decided { package, is_answered: false })
                }
            },
        }
    }

    /// Returns a locked package with the asset of the platform: one that the lock file does not have is asked for.
    async fn with_platform<S: PackageSource + ?Sized>(
        &self,
        source: &S,
        names: PluginNames<'_>,
        declared: &S::Declared,
        key: &LockKey,
        package: ResolvedPackage,
    ) -> Result<ResolvedPackage, InstallError> {
        if source.is_complete(names, declared, &package) {
            return Ok(package);
        }
        match self.lock.rule() {
            LockRule::Locked | LockRule::LockedInPipeline => {
                let LockKey { source, wanted, .. } = key;
                Err(InstallError::PlatformNotLocked {
                    name: format!("{source} {wanted}"),
                    platform: Platform::current(),
                })
            }
            _ => source.complete(names, declared, package, self.events).await,
        }
    }

    /// Returns an error if a package is signed by another key than the one that it replaces, or than an earlier version, unless that is approved; a
    /// warning if the user has named it.
    async fn check_signer(
        &self,
        key: &LockKey,
        before: Option<&ResolvedPackage>,
        found: &ResolvedPackage,
    ) -> Result<(), InstallError> {
        let ResolvedPackage::Release(release) = found else { return Ok(()) };
        let replaced = match before {
            Some(ResolvedPackage::Release(before)) => before.signer.clone(),
            _ => None,
        };
        let known = replaced.map_or_else(|| self.lock.signer_for(key, &release.tag), |signer| Ok(Some(signer)))?;
        let Some(recorded) = known.filter(|known| release.signer.as_ref() != Some(known)) else { return Ok(()) };
        let name = format!("{} of {}", release.tag, key.source);
        let error = TerraformError::OtherSigner { name, recorded, found: release.signer.clone() };
        if !self.accepts_replaced {
            let is_accepted = match &self.signer_approval {
                Some(approval) => approval.accept(&error.to_string()).await,
                None => false,
            };
            return if is_accepted { Ok(()) } else { Err(error.into()) };
        }
        self.events.emit(FetchEvent::Warning(format!("{error}; it is accepted, since its plugin is named")));
        Ok(())
    }

    /// Returns an error if a package that was only fetched takes the place of one that was verified, in another version.
    fn check_evidence(&self, key: &LockKey, found: &ResolvedPackage) -> Result<(), InstallError> {
        let ResolvedPackage::Release(release) = found else { return Ok(()) };
        for (platform, asset) in &release.assets {
            let is_fetched = matches!(asset.digest, Some((_, DigestOrigin::Fetched)));
            let recorded = self.lock.evidence_for(key, *platform, &release.tag)?;
            if let Some(recorded) = recorded.filter(|recorded| is_fetched && *recorded != DigestOrigin::Fetched) {
                let asset = format!("{} of {}", asset.name, release.tag);
                return Err(InstallError::WeakerEvidence { asset, recorded, name: key.source.clone() });
            }
        }
        Ok(())
    }
}

/// Package that a declaration means, without an entry of the lock file.
struct Decided {
    package: ResolvedPackage,
    /// True if its place has said so now.
    is_answered: bool,
}

/// Returns whether a file cannot be written since its file system or its permissions do not allow it.
fn is_read_only(error: &FileError) -> bool {
    matches!(error.source.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}
