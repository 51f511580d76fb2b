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
    #[serde(default)]
    undeclared: bool,
    package: Option<String>,
    tag: Option<String>,
    commit: Option<String>,
    tree: Option<String>,
    released: Option<String>,
    signer: Option<String>,
    #[serde(default)]
    platforms: BTreeMap<String, AssetText>,
    entry: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AssetText {
    asset: String,
    size: Option<u64>,
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
                let signers = first.signer.as_ref().zip(second.signer.as_ref());
                if signers.is_some_and(|(first, second)| first != second) {
                    self.notes
                        .push(format!("{name}: the sides have other signers of {}: it is resolved again", first.tag));
                    return;
                }
                if first.assets.iter().any(differs) {
                    self.notes.push(format!(
                        "{name}: both sides have {}, with other digests: it is resolved again",
                        first.tag
                    ));
                    return;
                }
                first.assets.extend(second.assets);
                first.signer = first.signer.or(second.signer);
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
        let Self { source, wanted, asset, undeclared, package, tag, commit, tree, released, signer, platforms, entry } =
            self;
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
                ResolvedPackage::Release(ResolvedRelease { tag, released, package, signer, assets })
            }
            (None, None) => return Err(refused("it has neither a tag nor a commit")),
        };
        let read = LockEntry { source, wanted, asset, resolved, is_undeclared: undeclared };
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
    let LockEntry { source, wanted, asset, resolved, is_undeclared } = entry;
    let undeclared = if *is_undeclared { "  undeclared: true\n" } else { "" };
    let mut text = format!("- source: {}\n{undeclared}", scalar(source));
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
        ResolvedPackage::Release(ResolvedRelease { tag, released, package, signer, assets }) => {
            line("package", package.as_deref());
            line("tag", Some(tag));
            line("released", released.as_deref());
            line("signer", signer.as_deref());
            text += "  platforms:\n";
            for (platform, ResolvedAsset { name, size, digest }) in assets {
                let Some((digest, origin)) = digest else { continue };
                let (name, digest, by) = (scalar(name), digest.to_hex(), origin.as_str());
                let size = size.map(|size| format!("size: {size}, ")).unwrap_or_default();
                writeln!(text, "    {platform}: {{ asset: {name}, {size}sha256: {digest}, by: {by} }}")
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
mod tests;
