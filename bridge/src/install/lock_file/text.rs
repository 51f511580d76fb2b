//! Text of the lock file: YAML, one line for each platform, so that a line-based merge keeps the lines of both sides.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use super::conflict::{has_markers, sides};
use super::{LockEntry, LockFile};
use crate::plugin::{
    DigestOrigin, Platform, ResolvedAsset, ResolvedCommit, ResolvedPackage, ResolvedRelease, Sha256Digest, tag_version,
};
use crate::yaml::{self, YamlError};

/// Version of the format.
const VERSION: u64 = 1;
/// First lines.
const HEAD: &str = "\
# Which packages the plugins of server.yaml are. Written by sc: commit it, and do not edit it.
# `sc plugin update` changes a version, and `sc plugin lock` repairs the file after a merge.
";
/// Number of hexadecimal digits of the digest of an entry: it finds mistakes, not attackers.
const ENTRY_DIGITS: usize = 16;

/// Reason why the text of a lock file is refused.
#[derive(Debug, thiserror::Error)]
pub enum LockFileError {
    /// A merge has left its marks.
    #[error("line {line} is the mark of a merge that is not resolved")]
    Conflict {
        /// Line, from 1.
        line: usize,
    },
    /// A later version of this program has written it.
    #[error("its version is {found}, and this sc reads version {VERSION}")]
    LaterVersion {
        /// Version of the format.
        found: u64,
    },
    /// The text is not YAML, or has another shape.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// An entry is not as it was written.
    #[error("the entry {name:?} at line {line} is not as sc has written it")]
    Mixed {
        /// Source and wanted version.
        name: String,
        /// Line, from 1.
        line: usize,
    },
    /// An entry has a value that cannot be used.
    #[error("the entry {name:?} at line {line}: {reason}")]
    Entry {
        /// Source and wanted version.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Reason, in words.
        reason: String,
    },
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "version")]
    _version: u64,
    #[serde(default)]
    packages: Vec<EntryText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryText {
    source: String,
    wanted: String,
    asset: Option<String>,
    package: Option<String>,
    tag: Option<String>,
    commit: Option<String>,
    tree: Option<String>,
    released: Option<String>,
    #[serde(default)]
    platforms: BTreeMap<String, AssetText>,
    entry: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AssetText {
    asset: String,
    size: u64,
    sha256: String,
    by: String,
}

/// Content of a text that may have been left by a merge.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::install) struct Repaired {
    pub(in crate::install) lock: LockFile,
    /// Decisions, and entries that are left out, in words.
    pub(in crate::install) notes: Vec<String>,
}

impl LockFile {
    /// Reads a text. An empty one has no entries.
    ///
    /// # Errors
    /// [`LockFileError`].
    pub(in crate::install) fn parse(text: &str) -> Result<Self, LockFileError> {
        let mut lock = Self::default();
        for entry in read_entries(text)? {
            lock.insert(entry?);
        }
        Ok(lock)
    }

    /// Reads a text that a merge may have left: with its marks, both sides are taken, and of two entries of one declaration the one with
    /// the higher tag. An entry that is not as it was written is left out.
    ///
    /// # Errors
    /// [`LockFileError`] if a side is not a lock file.
    pub(in crate::install) fn repair(text: &str) -> Result<Repaired, LockFileError> {
        let Some([ours, theirs]) = sides(text) else { return lenient(text) };
        let (ours, theirs) = (lenient(&ours)?, lenient(&theirs)?);
        let mut repaired = Repaired { lock: ours.lock, notes: ours.notes };
        for note in theirs.notes {
            if !repaired.notes.contains(&note) {
                repaired.notes.push(note);
            }
        }
        for entry in theirs.lock.entries {
            repaired.add(entry);
        }
        Ok(repaired)
    }

    /// Returns the text of the file.
    pub(in crate::install) fn to_text(&self) -> String {
        let mut text = format!("{HEAD}version: {VERSION}\npackages:\n");
        for entry in &self.entries {
            let lines = lines_of(entry);
            writeln!(text, "{lines}  entry: {}", digest_of(&lines)).expect("a text takes all lines");
        }
        text
    }
}

impl Repaired {
    fn add(&mut self, entry: LockEntry) {
        let is_same = |other: &&LockEntry| other.order(&entry).is_eq();
        let Some(other) = self.lock.entries.iter().find(is_same).cloned() else { return self.lock.insert(entry) };
        if other == entry {
            return;
        }
        self.lock.entries.retain(|kept| kept.order(&entry).is_ne());
        let version = |entry: &LockEntry| tag_version(entry.tag()?);
        let (name, first, second) = (entry.name(), other.resolved.clone(), entry.resolved.clone());
        let chosen = match (first, second) {
            (ResolvedPackage::Release(mut first), ResolvedPackage::Release(second)) if first.tag == second.tag => {
                let differs = |(platform, asset): (&Platform, &ResolvedAsset)| {
                    second.assets.get(platform).is_some_and(|other| other != asset)
                };
                if first.assets.iter().any(differs) {
                    self.notes.push(format!(
                        "{name}: both sides have {}, with other digests: it is resolved again",
                        first.tag
                    ));
                    return;
                }
                first.assets.extend(second.assets);
                self.notes.push(format!("{name}: the platforms of both sides are taken"));
                LockEntry { resolved: ResolvedPackage::Release(first), ..entry }
            }
            _ if version(&other).is_none() && version(&entry).is_none() => {
                self.notes.push(format!("{name}: the sides differ, and none is higher: it is resolved again"));
                return;
            }
            _ => {
                let chosen = if version(&other) >= version(&entry) { other } else { entry };
                self.notes.push(format!("{name}: {} is taken, the higher of both sides", chosen.resolved.revision()));
                chosen
            }
        };
        self.lock.insert(chosen);
    }
}

fn lenient(text: &str) -> Result<Repaired, LockFileError> {
    let mut repaired = Repaired::default();
    for entry in read_entries(text)? {
        match entry {
            Ok(entry) => repaired.add(entry),
            Err(error) => repaired.notes.push(format!("{error}: it is resolved again")),
        }
    }
    Ok(repaired)
}

/// Returns the entries of a text, and the errors of those that are not as they were written.
fn read_entries(text: &str) -> Result<Vec<Result<LockEntry, LockFileError>>, LockFileError> {
    if let Some(line) = has_markers(text) {
        return Err(LockFileError::Conflict { line });
    }
    if text.lines().all(|line| line.trim().is_empty() || line.starts_with('#')) {
        return Ok(Vec::new());
    }
    let VersionOnly { version } = yaml::from_str(text)?;
    if version != VERSION {
        return Err(LockFileError::LaterVersion { found: version });
    }
    let document: Document = yaml::from_str(text)?;
    let is_entry =
        |line: &str| line.trim_start().strip_prefix('-').is_some_and(|rest| rest.trim_start().starts_with("source:"));
    let mut lines = text.lines().enumerate().filter(|(_, line)| is_entry(line)).map(|(at, _)| at + 1);
    Ok(document.packages.into_iter().map(|entry| entry.read(lines.next().unwrap_or(1))).collect())
}

impl EntryText {
    fn read(self, line: usize) -> Result<LockEntry, LockFileError> {
        let Self { source, wanted, asset, package, tag, commit, tree, released, platforms, entry } = self;
        let name = format!("{source} {wanted}");
        let refused = |reason: &str| LockFileError::Entry { name: name.clone(), line, reason: reason.to_owned() };
        let resolved = match (tag, commit) {
            (tag, Some(commit)) => {
                let tree = tree.map(|tree| tree.parse().map_err(|_| refused("`tree` is not a digest"))).transpose()?;
                ResolvedPackage::Commit(ResolvedCommit { tag, commit, tree })
            }
            (Some(tag), None) => {
                let asset = |(platform, asset): (String, AssetText)| {
                    let platform: Platform = platform.parse().map_err(|_| refused("a platform is not known"))?;
                    Ok((platform, asset.read().ok_or_else(|| refused("an asset cannot be read"))?))
                };
                let assets = platforms.into_iter().map(asset).collect::<Result<_, LockFileError>>()?;
                ResolvedPackage::Release(ResolvedRelease { tag, released, package, assets })
            }
            (None, None) => return Err(refused("it has neither a tag nor a commit")),
        };
        let read = LockEntry { source, wanted, asset, resolved };
        if digest_of(&lines_of(&read)) == entry { Ok(read) } else { Err(LockFileError::Mixed { name, line }) }
    }
}

impl AssetText {
    fn read(self) -> Option<ResolvedAsset> {
        let digest = (self.sha256.parse().ok()?, DigestOrigin::of_word(&self.by)?);
        Some(ResolvedAsset { name: self.asset, size: self.size, digest: Some(digest) })
    }
}

fn digest_of(lines: &str) -> String {
    let mut digits = Sha256Digest::of(lines).to_hex();
    digits.truncate(ENTRY_DIGITS);
    digits
}

/// Returns the lines of an entry without its digest.
fn lines_of(entry: &LockEntry) -> String {
    let LockEntry { source, wanted, asset, resolved } = entry;
    let mut text = format!("- source: {}\n", scalar(source));
    let mut line = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            writeln!(text, "  {key}: {}", scalar(value)).expect("a text takes all lines");
        }
    };
    line("wanted", Some(wanted));
    line("asset", asset.as_deref());
    match resolved {
        ResolvedPackage::Local => {}
        ResolvedPackage::Commit(ResolvedCommit { tag, commit, tree }) => {
            line("tag", tag.as_deref());
            line("commit", Some(commit));
            line("tree", tree.map(Sha256Digest::to_hex).as_deref());
        }
        ResolvedPackage::Release(ResolvedRelease { tag, released, package, assets }) => {
            line("package", package.as_deref());
            line("tag", Some(tag));
            line("released", released.as_deref());
            text += "  platforms:\n";
            for (platform, ResolvedAsset { name, size, digest }) in assets {
                let Some((digest, origin)) = digest else { continue };
                let (name, digest, by) = (scalar(name), digest.to_hex(), origin.as_str());
                writeln!(text, "    {platform}: {{ asset: {name}, size: {size}, sha256: {digest}, by: {by} }}")
                    .expect("a text takes all lines");
            }
        }
    }
    text
}

/// Returns a text as a scalar, with quotes if it could be read as something else.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/+^~@:- ".contains(c);
    let is_first = |c: char| c.is_ascii_alphanumeric() || "^/.".contains(c);
    let is_other_type = text.parse::<f64>().is_ok()
        || ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    let is_safe = text.starts_with(is_first)
        && text.chars().all(is_plain)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !is_other_type;
    if is_safe { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{key, release};
    use super::super::{LockKey, WantedVersion};
    use super::*;

    fn lock(entries: &[(&str, &str)]) -> LockFile {
        let mut lock = LockFile::default();
        entries.iter().for_each(|(wanted, tag)| lock.put(&key(wanted), release(tag)));
        lock
    }

    const TEXT: &str = "\
# Which packages the plugins of server.yaml are. Written by sc: commit it, and do not edit it.
# `sc plugin update` changes a version, and `sc plugin lock` repairs the file after a merge.
version: 1
packages:
- source: \"git ../reef: a #1\"
  wanted: \"1.10\"
  tag: \"1.10\"
  commit: 0123456789abcdef0123456789abcdef01234567
  tree: dc9c5edb8b2d479e697b4b0b8ab874f32b325138598ce9e7b759eb8292110622
  entry: 57adefbe0868136e
- source: github-release github.com/acme/reef
  wanted: \">=1, <2\"
  tag: v1.2.0
  platforms:
    linux-amd64: { asset: reef-v1.2.0.tar.gz, size: 7, sha256: 34bd659feb530efab079c898eb496cfabe7dfa512811185f24ff115b0263ccff, by: published }
  entry: 08246a065e5f7ada
";

    fn with_commit() -> LockFile {
        let mut lock = lock(&[(">=1, <2", "v1.2.0")]);
        let git = LockKey {
            source: "git ../reef: a #1".to_owned(),
            wanted: WantedVersion::of_git("1.10").unwrap(),
            ..key("x")
        };
        let commit = "0123456789abcdef0123456789abcdef01234567".to_owned();
        let tree = Some(Sha256Digest::of("tree"));
        lock.put(&git, ResolvedPackage::Commit(ResolvedCommit { tag: Some("1.10".to_owned()), commit, tree }));
        lock
    }

    #[test]
    fn text_has_a_line_for_each_platform_and_is_read_again() {
        let text = with_commit().to_text();
        assert_eq!(text, TEXT);
        assert_eq!(LockFile::parse(&text).unwrap(), with_commit());
        for empty in ["", "# a comment\n\n", "version: 1\n", "version: 1\npackages: []\n"] {
            assert_eq!(LockFile::parse(empty).unwrap(), LockFile::default(), "{empty:?}");
        }
    }

    #[test]
    fn other_line_ends_and_another_layout_are_read() {
        let text = with_commit().to_text();
        let json = serde_json::to_string(&yaml::from_str::<serde_yaml::Value>(&text).unwrap()).unwrap();
        for text in [text.replace('\n', "\r\n"), text.replace("\n  ", "\n    ").replace("\n- ", "\n  - "), json] {
            assert_eq!(LockFile::parse(&text).unwrap(), with_commit(), "{text}");
        }
    }

    #[test]
    fn entry_of_another_writer_is_refused_by_name() {
        let text = with_commit().to_text();
        let error = |text: &str| LockFile::parse(text).unwrap_err().to_string();
        for (from, to) in [
            ("size: 7", "size: 8"),
            ("tag: v1.2.0", "tag: v1.3.0"),
            ("linux-amd64:", "linux-arm64:"),
            ("by: published", "by: fetched"),
            ("wanted: \">=1, <2\"", "wanted: \">=1, <3\""),
        ] {
            assert!(text.contains(from), "{from}");
            let found = error(&text.replace(from, to));
            assert!(found.contains("is not as sc has written it") && found.contains("github.com/acme/reef"), "{found}");
        }
        let reef = "the entry \"github-release github.com/acme/reef >=1, <2\" at line 11";
        for (text, expected) in [
            (text.replace("size: 7", "size: 8"), format!("{reef} is not as sc has written it")),
            (text.replace("by: published", "by: hearsay"), format!("{reef}: an asset cannot be read")),
            (
                text.replace("version: 1\n", "version: 1\n<<<<<<< ours\n"),
                "line 4 is the mark of a merge that is not resolved".to_owned(),
            ),
            ("version: 2\nnew: true\n".to_owned(), "its version is 2, and this sc reads version 1".to_owned()),
        ] {
            assert_eq!(error(&text), expected);
        }
        for other in ["version: 1\npackages: {}\n", "a: [", "version: 1\nother: x\n", "[]", "version: x\n"] {
            assert!(matches!(LockFile::parse(other), Err(LockFileError::Yaml(_))), "{other}");
        }
    }

    fn conflict(ours: &str, theirs: &str) -> String {
        let (head, body) = ours.split_at(ours.find("- source").unwrap());
        let theirs = &theirs[theirs.find("- source").unwrap()..];
        format!("{head}<<<<<<< HEAD\n{body}||||||| base\n- source: x\n=======\n{theirs}>>>>>>> next\n")
    }

    /// Shows: plugins.md#the-lock-file "takes both sides, and of two entries of one declaration the one with the higher tag"
    #[test]
    fn both_sides_of_a_merge_are_taken_and_the_higher_tag() {
        let ours = lock(&[("^1", "v1.2.0"), ("v3.0.0", "v3.0.0")]);
        let theirs = lock(&[("^1", "v1.10.0"), ("^2", "v2.0.0"), ("v3.0.0", "v3.0.0")]);
        let repaired = LockFile::repair(&conflict(&ours.to_text(), &theirs.to_text())).unwrap();
        assert_eq!(repaired.lock, lock(&[("^1", "v1.10.0"), ("^2", "v2.0.0"), ("v3.0.0", "v3.0.0")]));
        assert_eq!(
            repaired.notes,
            ["github-release github.com/acme/reef ^1: v1.10.0 is taken, the higher of both sides"]
        );
    }

    #[test]
    fn platforms_of_both_sides_are_taken_unless_their_digests_differ() {
        let of_platform = |platform: &str, size| {
            let ResolvedPackage::Release(mut release) = release("v1.2.0") else { unreachable!() };
            let (_, asset) = release.assets.pop_first().unwrap();
            release.assets.insert(platform.parse().unwrap(), ResolvedAsset { size, ..asset });
            let mut lock = LockFile::default();
            lock.put(&key("^1"), ResolvedPackage::Release(release));
            lock.to_text()
        };
        let repaired =
            LockFile::repair(&conflict(&of_platform("linux-amd64", 7), &of_platform("darwin-arm64", 7))).unwrap();
        let ResolvedPackage::Release(both) = &repaired.lock.entries[0].resolved else { unreachable!() };
        assert_eq!(both.assets.len(), 2);
        let repaired =
            LockFile::repair(&conflict(&of_platform("linux-amd64", 7), &of_platform("linux-amd64", 8))).unwrap();
        assert_eq!(repaired.lock, LockFile::default());
        assert!(repaired.notes[0].ends_with("with other digests: it is resolved again"), "{:?}", repaired.notes);
    }

    #[test]
    fn mixed_entry_is_left_out_by_a_repair() {
        let text = lock(&[("^1", "v1.2.0"), ("^2", "v2.0.0")]).to_text().replacen("tag: v1.2.0", "tag: v1.3.0", 1);
        let repaired = LockFile::repair(&text).unwrap();
        assert_eq!(repaired.lock, lock(&[("^2", "v2.0.0")]));
        assert!(
            repaired.notes[0].ends_with("is not as sc has written it: it is resolved again"),
            "{:?}",
            repaired.notes
        );
    }

    /// Mutates the text of a lock file: no text makes the reader panic, and what it accepts is what was written. Runs more cases with
    /// `FUZZ_CASES`.
    #[test]
    fn mutated_text_is_refused_or_means_what_was_written() {
        let cases: u64 = std::env::var("FUZZ_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(3_000);
        let (original, text) = (with_commit(), with_commit().to_text().into_bytes());
        let entries = original.entries().to_vec();
        for seed in 0..cases {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |below: usize| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                usize::try_from(state % below as u64).unwrap()
            };
            let mut mutated = text.clone();
            for _ in 0..=next(4) {
                if mutated.is_empty() {
                    break;
                }
                let at = next(mutated.len());
                match next(4) {
                    0 => mutated[at] = u8::try_from(next(128)).unwrap(),
                    1 => drop(mutated.remove(at)),
                    2 => mutated.insert(at, b"\n:{}-<=> \"'#&*!"[next(15)]),
                    _ => mutated.truncate(at.max(1)),
                }
            }
            let mutated = String::from_utf8_lossy(&mutated);
            let parsed = LockFile::parse(&mutated);
            let repaired = LockFile::repair(&mutated).map(|repaired| repaired.lock);
            for read in [parsed, repaired].into_iter().flatten() {
                let is_written = |entry: &LockEntry| entries.contains(entry);
                assert!(read.entries().iter().all(is_written), "seed {seed}: {mutated}");
            }
        }
    }
}
