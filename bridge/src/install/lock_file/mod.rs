//! The lock file of a repository, `.sc/sc.lock`: which package each declared source means.
//!
//! Input: a text. Output: entries, and the text that they are written as. Excluded: files, and decisions about what is recorded.

mod conflict;
mod difference;
mod text;

use std::cmp::Ordering;

use crate::plugin::{DigestOrigin, Platform, PluginName, ResolvedPackage, WantedVersion, tag_version};

pub use difference::LockDifference;
pub use text::LockFileError;

/// Source of a plugin, as the lock file knows it: without the name of the plugin, its platform and credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockKey {
    /// Kind and place: `github-release github.com/acme/reef`, `git https://git.example/reef.git`.
    pub source: String,
    /// Wanted version.
    pub wanted: WantedVersion,
    /// Declared pattern of the name of the asset.
    pub asset: Option<String>,
    /// Package of the plugin: a release may have the assets of several.
    pub package: PluginName,
}

/// Entry of the lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockEntry {
    /// Kind and place.
    pub(super) source: String,
    /// Wanted version, as it is declared.
    pub(super) wanted: String,
    /// Declared pattern of the name of the asset.
    pub(super) asset: Option<String>,
    /// Package that the declaration means.
    pub(super) resolved: ResolvedPackage,
    /// True if no stack declares it: the state or a component needs it, which the files of the stacks do not tell.
    pub(super) is_undeclared: bool,
}

/// Entry for a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundEntry<'l> {
    pub(super) entry: &'l LockEntry,
    /// False if the entry is for another wanted version, and its tag fits this one.
    pub(super) is_exact: bool,
}

/// Content of the lock file, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LockFile {
    entries: Vec<LockEntry>,
}

impl LockEntry {
    /// Returns the entry of a declaration.
    pub(super) fn new(key: &LockKey, resolved: ResolvedPackage) -> Self {
        let LockKey { source, wanted, asset, .. } = key.clone();
        Self { source, wanted: wanted.to_string(), asset, resolved, is_undeclared: false }
    }

    /// Returns its name in messages.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.source, self.wanted)
    }

    /// Returns the package whose asset it has, if its release has those of several plugins.
    fn package(&self) -> Option<&str> {
        match &self.resolved {
            ResolvedPackage::Release(release) => release.package.as_deref(),
            ResolvedPackage::Local | ResolvedPackage::Commit(_) => None,
        }
    }

    /// Returns the tag; `None` for a branch and for a commit.
    pub(super) fn tag(&self) -> Option<&str> {
        self.resolved.tag()
    }

    /// Returns whether it is for the place and the asset of a declaration.
    fn is_of(&self, key: &LockKey) -> bool {
        let is_package = self.package().is_none_or(|package| package == key.package.as_str());
        self.source == key.source && self.asset == key.asset && is_package
    }

    /// Returns whether it is the entry of a declaration.
    pub(super) fn is_exactly(&self, key: &LockKey) -> bool {
        self.wanted == key.wanted.as_str() && self.is_of(key)
    }

    /// Returns whether it is for the place of a declaration, which accepts its version.
    pub(super) fn may_serve(&self, key: &LockKey) -> bool {
        self.is_of(key) && self.fits(key)
    }

    /// Returns whether a declaration accepts its version.
    fn fits(&self, key: &LockKey) -> bool {
        let is_id = |commit: &str| {
            let id = key.wanted.as_str();
            id.len() >= 7 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) && commit.starts_with(id)
        };
        let is_commit = matches!(&self.resolved, ResolvedPackage::Commit(commit) if is_id(&commit.commit));
        is_commit || self.tag().is_some_and(|tag| key.wanted.accepts(tag))
    }

    fn order(&self, other: &Self) -> Ordering {
        let parts = |entry: &Self| {
            (entry.source.clone(), entry.asset.clone(), entry.package().map(str::to_owned), entry.wanted.clone())
        };
        parts(self).cmp(&parts(other))
    }
}

impl LockFile {
    /// Returns its entries.
    pub(super) fn entries(&self) -> &[LockEntry] {
        &self.entries
    }

    /// Returns the entry of a declaration, else the one of the same place and asset with the highest version that fits.
    pub(super) fn find(&self, key: &LockKey) -> Option<FoundEntry<'_>> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.is_exactly(key)) {
            return Some(FoundEntry { entry, is_exact: true });
        }
        let version = |entry: &LockEntry| match (&key.wanted, entry.tag()) {
            (WantedVersion::Range(range), Some(tag)) => range.version_of(tag),
            _ => None,
        };
        let fitting = self.entries.iter().filter(|entry| entry.is_of(key) && entry.fits(key));
        let entry = fitting.max_by(|a, b| version(a).cmp(&version(b)))?;
        Some(FoundEntry { entry, is_exact: false })
    }

    /// Returns the strongest evidence that is recorded for the place and the asset of a declaration, and a platform, in versions below that of a
    /// tag: older releases often have no digests.
    pub(super) fn evidence_for(&self, key: &LockKey, platform: Platform, tag: &str) -> Option<DigestOrigin> {
        let of_platform = |entry: &LockEntry| match &entry.resolved {
            ResolvedPackage::Release(release)
                if release.tag != tag && tag_version(&release.tag) <= tag_version(tag) =>
            {
                Some(release.assets.get(&platform)?.digest?.1)
            }
            _ => None,
        };
        self.entries.iter().filter(|entry| entry.is_of(key)).filter_map(of_platform).min()
    }

    /// Returns the signer that is recorded for the place and the asset of a declaration: that of the highest version up to that of a tag. Older
    /// versions may have had another one.
    pub(super) fn signer_for(&self, key: &LockKey, tag: &str) -> Option<&str> {
        let signed = |entry: &LockEntry| match &entry.resolved {
            ResolvedPackage::Release(release) => release.signer.is_some(),
            ResolvedPackage::Local | ResolvedPackage::Commit(_) => false,
        };
        let version = |entry: &LockEntry| tag_version(entry.tag()?);
        let entries = self.entries.iter().filter(|entry| entry.is_of(key) && signed(entry));
        let found = entries.filter(|entry| version(entry) <= tag_version(tag));
        match &found.max_by_key(|entry| version(entry))?.resolved {
            ResolvedPackage::Release(release) => release.signer.as_deref(),
            ResolvedPackage::Local | ResolvedPackage::Commit(_) => None,
        }
    }

    /// Adds the entry of a declaration, in place of the one that it has.
    pub(super) fn put(&mut self, key: &LockKey, resolved: ResolvedPackage) {
        self.entries.retain(|entry| !entry.is_exactly(key));
        self.insert(LockEntry::new(key, resolved));
    }

    /// Puts an entry for what no stack declares, in place of another version of it.
    pub(super) fn put_undeclared(&mut self, key: &LockKey, resolved: ResolvedPackage) {
        let is_replaced =
            |entry: &LockEntry| entry.is_exactly(key) || (entry.is_undeclared && entry.source == key.source);
        self.entries.retain(|entry| !is_replaced(entry));
        self.insert(LockEntry { is_undeclared: true, ..LockEntry::new(key, resolved) });
    }

    fn insert(&mut self, entry: LockEntry) {
        let at = self.entries.partition_point(|other| other.order(&entry).is_lt());
        self.entries.insert(at, entry);
    }

    /// Keeps the entries for which `is_kept` returns true.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&LockEntry) -> bool) {
        self.entries.retain(is_kept);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plugin::{ResolvedAsset, ResolvedCommit, ResolvedRelease, Sha256Digest};

    pub(super) fn key(wanted: &str) -> LockKey {
        LockKey {
            source: "github-release github.com/acme/reef".to_owned(),
            wanted: WantedVersion::of_release(wanted).unwrap(),
            asset: None,
            package: "reef".parse().unwrap(),
        }
    }

    pub(super) fn release(tag: &str) -> ResolvedPackage {
        let digest = Some((Sha256Digest::of(tag), DigestOrigin::Published));
        let asset = ResolvedAsset { name: format!("reef-{tag}.tar.gz"), size: Some(7), digest };
        let assets = BTreeMap::from([("linux-amd64".parse().unwrap(), asset)]);
        ResolvedPackage::Release(ResolvedRelease { tag: tag.to_owned(), assets, ..ResolvedRelease::default() })
    }

    fn lock(entries: &[(&str, &str)]) -> LockFile {
        let mut lock = LockFile::default();
        entries.iter().for_each(|(wanted, tag)| lock.put(&key(wanted), release(tag)));
        lock
    }

    /// Shows: plugins.md#the-lock-file "an entry of the same place and asset whose tag fits"
    #[test]
    fn declaration_finds_its_entry_or_one_that_fits() {
        for (entries, wanted, expected) in [
            (&[("^1", "v1.2.0")][..], "^1", Some(("v1.2.0", true))),
            (&[("^1", "v1.2.0")], "^1.1", Some(("v1.2.0", false))),
            (&[("^1", "v1.2.0")], "v1.2.0", Some(("v1.2.0", false))),
            (&[("^1", "v1.2.0")], "^2", None),
            // What the latest release is, only its place knows.
            (&[("^1", "v1.2.0")], "latest", None),
            (&[("latest", "v2.0.0")], "latest", Some(("v2.0.0", true))),
            (&[("^1.9", "v1.9.0"), ("~1.10", "v1.10.0"), ("^2", "v2.0.0")], ">=1, <2", Some(("v1.10.0", false))),
            (&[], "^1", None),
        ] {
            let lock = lock(entries);
            let found = lock.find(&key(wanted)).map(|found| (found.entry.tag().unwrap(), found.is_exact));
            assert_eq!(found, expected, "{wanted}");
        }
    }

    #[test]
    fn entry_of_another_place_asset_or_package_is_not_found() {
        let lock = lock(&[("^1", "v1.2.0")]);
        let mut of_several = LockFile::default();
        let ResolvedPackage::Release(named) = release("v1.2.0") else { unreachable!() };
        let named = ResolvedRelease { package: Some("lake".to_owned()), ..named };
        of_several.put(&key("^1"), ResolvedPackage::Release(named));
        assert_eq!(lock.find(&LockKey { source: "github-release github.com/acme/lake".to_owned(), ..key("^1") }), None);
        assert_eq!(lock.find(&LockKey { asset: Some("reef-{os}".to_owned()), ..key("^1") }), None);
        assert!(lock.find(&LockKey { package: "lake".parse().unwrap(), ..key("^1") }).is_some());
        assert_eq!(of_several.find(&key("^1")), None);
        assert!(of_several.find(&LockKey { package: "lake".parse().unwrap(), ..key("^1") }).is_some());
    }

    /// Shows: plugins.md#plugins-that-no-stack-declares "Its entry in the lock file says `undeclared: true`"
    #[test]
    fn entry_without_a_declaration_is_one_of_its_place_and_survives_its_text() {
        let mut lock = lock(&[("^1", "v1.2.0")]);
        for tag in ["v1.0.0", "v1.1.0"] {
            lock.put_undeclared(&key(tag), release(tag));
        }
        let entries: Vec<_> = lock.entries().iter().map(|entry| (entry.tag().unwrap(), entry.is_undeclared)).collect();
        assert_eq!(entries, [("v1.2.0", false), ("v1.1.0", true)]);
        let text = lock.to_text();
        assert!(text.contains("  undeclared: true\n"), "{text}");
        assert_eq!(LockFile::parse(&text).unwrap(), lock);
        lock.put(&key("v1.1.0"), release("v1.1.0"));
        assert!(lock.entries().iter().all(|entry| !entry.is_undeclared), "a stack declares it");
    }

    #[test]
    fn evidence_is_that_of_earlier_versions() {
        let (lock, platform) = (lock(&[("^2", "v2.0.0")]), "linux-amd64".parse().unwrap());
        let evidence = |tag: &str| lock.evidence_for(&key("^1"), platform, tag);
        assert_eq!(evidence("v2.1.0"), Some(DigestOrigin::Published));
        // Older releases often have no digests.
        assert_eq!((evidence("v1.0.0"), evidence("v2.0.0")), (None, None));
        assert_eq!(lock.evidence_for(&key("^1"), "linux-arm64".parse().unwrap(), "v2.1.0"), None);
    }

    #[test]
    fn signer_is_that_of_the_highest_version_up_to_the_new_one() {
        let mut lock = LockFile::default();
        for (wanted, tag, signer) in [("^1", "1.0.0", Some("A")), ("^2", "2.0.0", Some("B")), ("^3", "3.0.0", None)] {
            let ResolvedPackage::Release(release) = release(tag) else { unreachable!() };
            let signer = signer.map(str::to_owned);
            lock.put(&key(wanted), ResolvedPackage::Release(ResolvedRelease { signer, ..release }));
        }
        for (tag, expected) in [("0.9.0", None), ("1.1.0", Some("A")), ("2.0.0", Some("B")), ("4.0.0", Some("B"))] {
            assert_eq!(lock.signer_for(&key("*"), tag), expected, "{tag}");
        }
        let other = LockKey { source: "github-release github.com/acme/lake".to_owned(), ..key("*") };
        assert_eq!(lock.signer_for(&other, "4.0.0"), None);
    }

    #[test]
    fn commit_fits_its_id_and_its_tag() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let git = |wanted: &str| LockKey {
            source: "git https://git.example/reef.git".to_owned(),
            wanted: WantedVersion::of_git(wanted).unwrap(),
            ..key("x")
        };
        let commit = |tag: Option<&str>| {
            let (tag, commit) = (tag.map(str::to_owned), id.to_owned());
            ResolvedPackage::Commit(ResolvedCommit { tag, commit, tree: Some(Sha256Digest::of("")) })
        };
        let mut lock = LockFile::default();
        lock.put(&git("main"), commit(None));
        lock.put(&git("^1"), commit(Some("v1.2.0")));
        for (wanted, is_found) in [
            ("main", true),
            ("v1.2.0", true),
            ("~1.2", true),
            ("0123456", true),
            (id, true),
            ("012345", false),
            ("next", false),
        ] {
            assert_eq!(lock.find(&git(wanted)).is_some(), is_found, "{wanted}");
        }
    }
}
