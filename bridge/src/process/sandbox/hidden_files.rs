//! Files that a strict sandbox hides, although they are below a folder that it lets through. Landlock cannot take a file out of a
//! folder: where such a folder may have hidden files, its entries are let through one by one.
//!
//! A pattern is an absolute path. `*` stands for any text in a name, once, and the case of ASCII letters does not count:
//! `/repo/.sc/stacks/*/secrets.yaml`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Character of a pattern that stands for any text.
const ANY: char = '*';

/// Hidden files, as they are found behind all links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenFiles {
    /// Real paths of folders, each with the pattern of the names in it that are hidden.
    names: Vec<(PathBuf, OsString)>,
    /// Real paths of the folders in which a hidden file is, or can appear.
    folders: BTreeSet<PathBuf>,
}

impl HiddenFiles {
    /// Finds the folders that have, or can have, files of these patterns.
    pub fn find(patterns: &[PathBuf]) -> Self {
        let mut hidden = Self::default();
        for pattern in patterns {
            let (Some(parent), Some(name)) = (pattern.parent(), pattern.file_name()) else { continue };
            for folder in hidden.find_folders(parent) {
                for target in links(&folder, name) {
                    if let (Some(parent), Some(name)) = (target.parent(), target.file_name()) {
                        hidden.add(parent.to_owned(), name);
                    }
                }
                hidden.add(folder, name);
            }
        }
        hidden
    }

    fn add(&mut self, folder: PathBuf, name: &OsStr) {
        self.folders.insert(folder.clone());
        self.names.push((folder, name.to_owned()));
    }

    /// Returns the real paths of the existing folders with a pattern. Those in which a further one can appear are noted.
    fn find_folders(&mut self, pattern: &Path) -> Vec<PathBuf> {
        let mut found = vec![PathBuf::from("/")];
        for component in pattern.components() {
            let Component::Normal(name) = component else { continue };
            let mut below = Vec::new();
            for folder in found {
                let next = if has_any(name) {
                    self.folders.insert(folder.clone());
                    entries(&folder, name).filter_map(|entry| entry.canonicalize().ok()).collect()
                } else {
                    Vec::from_iter(folder.join(name).canonicalize())
                };
                if next.is_empty() {
                    self.folders.insert(folder);
                }
                below.extend(next.into_iter().filter(|path| path.is_dir()));
            }
            found = below;
        }
        found
    }

    /// Returns whether a file with this real path is hidden, or a folder above it.
    pub fn hides(&self, path: &Path) -> bool {
        path.ancestors().any(|path| match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => self.hides_name(folder, name),
            _ => false,
        })
    }

    fn hides_name(&self, folder: &Path, name: &OsStr) -> bool {
        self.names.iter().any(|(hidden_in, pattern)| hidden_in == folder && matches(pattern, name))
    }

    /// Returns whether a hidden file can be below a folder with this real path.
    pub(super) fn can_be_below(&self, folder: &Path) -> bool {
        self.folders.iter().any(|hidden_in| hidden_in.starts_with(folder))
    }

    /// Returns the files and folders below a folder with this real path which have no hidden files below them, without links:
    /// their targets have places of their own.
    pub(super) fn visible_below(&self, folder: &Path) -> Vec<PathBuf> {
        let mut visible = Vec::new();
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                if is_link || self.hides_name(&folder, &entry.file_name()) {
                    continue;
                }
                let is_open = entry.path().is_dir() && self.can_be_below(&entry.path());
                if is_open { &mut open } else { &mut visible }.push(entry.path());
            }
        }
        visible
    }
}

/// Returns the paths of the entries of a folder whose names match.
fn entries(folder: &Path, pattern: &OsStr) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(move |entry| matches(pattern, &entry.file_name())).map(|entry| entry.path())
}

/// Returns the real paths to which the links of a folder lead whose names match.
fn links(folder: &Path, pattern: &OsStr) -> Vec<PathBuf> {
    let links = entries(folder, pattern).filter(|path| path.is_symlink());
    links.filter_map(|path| path.canonicalize().ok()).collect()
}

fn has_any(pattern: &OsStr) -> bool {
    pattern.to_string_lossy().contains(ANY)
}

fn matches(pattern: &OsStr, name: &OsStr) -> bool {
    let lower = |text: &OsStr| text.to_string_lossy().to_ascii_lowercase();
    let (pattern, name) = (lower(pattern), lower(name));
    match pattern.split_once(ANY) {
        Some((start, end)) => name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn name_matches_its_pattern_without_regard_to_case() {
        for (pattern, name, expected) in [
            ("cfg.*.yaml", "cfg.default.yaml", true),
            ("cfg.*.yaml", "CFG.a.b.Yaml", true),
            ("cfg.*.yaml", "cfg.yaml", false),
            ("cfg.*.yaml", "cfg.yaml.template", false),
            ("secrets.yaml", "Secrets.yaml", true),
            ("*", "x", true),
        ] {
            assert_eq!(matches(pattern.as_ref(), name.as_ref()), expected, "{pattern} {name}");
        }
    }

    /// Shows: hosting.md#secret-files "A plugin with `strict` reads them only if `readable` or `writable` names them"
    /// Shows: hosting.md#secret-files "so `sc` allows the entries beside them one by one at the start of the plugin"
    #[test]
    fn entries_beside_hidden_files_are_visible_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["src/a", ".sc/cfg.x.yaml", ".sc/other", ".sc/stacks/a/secrets.yaml", ".sc/stacks/a/server.yaml"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "").unwrap();
        }
        fs::create_dir_all(root.join(".sc/stacks/new")).unwrap();
        fs::create_dir_all(root.join("kept")).unwrap();
        fs::write(root.join("kept/token"), "").unwrap();
        fs::write(root.join("kept/rest"), "").unwrap();
        symlink(root.join("kept/token"), root.join(".sc/stacks/new/secrets.yaml")).unwrap();
        symlink(root.join(".sc"), root.join("link")).unwrap();
        let patterns = [".sc/cfg.*.yaml", ".sc/secrets.yaml", ".sc/stacks/*/secrets.yaml"].map(|path| root.join(path));
        let hidden = HiddenFiles::find(&patterns);
        assert!(hidden.can_be_below(&root) && hidden.can_be_below(&root.join(".sc/stacks/new")));
        assert!(!hidden.can_be_below(&root.join("src")));
        let mut visible = hidden.visible_below(&root);
        visible.sort();
        let expected = [".sc/other", ".sc/stacks/a/server.yaml", "kept/rest", "src"].map(|path| root.join(path));
        assert_eq!(visible, expected);
        for (path, expected) in [
            (".sc/cfg.later.yaml", true),
            (".sc/secrets.yaml", true),
            (".sc/secrets.yaml/below", true),
            (".sc/stacks/a/secrets.yaml", true),
            ("kept/token", true),
            (".sc/stacks/a/server.yaml", false),
            ("src/secrets.yaml", false),
        ] {
            assert_eq!(hidden.hides(&root.join(path)), expected, "{path}");
        }
    }

    /// Shows: hosting.md#secret-files "A plugin with `strict` reads them only if `readable` or `writable` names them"
    /// Shows: hosting.md#secret-files "so `sc` allows the entries beside them one by one at the start of the plugin"
    #[test]
    fn folder_in_which_hidden_files_can_appear_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("stacks")).unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        for (pattern, expected) in [
            (".sc/secrets.yaml", &["src", "stacks"][..]),
            ("stacks/*/secrets.yaml", &["src"]),
            ("stacks/a/secrets.yaml", &["src"]),
        ] {
            let hidden = HiddenFiles::find(&[root.join(pattern)]);
            assert!(hidden.can_be_below(&root), "{pattern}");
            let mut visible = hidden.visible_below(&root);
            visible.sort();
            let expected: Vec<PathBuf> = expected.iter().map(|path| root.join(path)).collect();
            assert_eq!(visible, expected, "{pattern}");
        }
        assert!(!HiddenFiles::find(&[]).can_be_below(&root));
    }
}
