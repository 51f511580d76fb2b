//! Files that a stack reads, as far as its configuration names them: those whose changes may change a run.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bridge::install::LockKey;
use bridge::plugin::PluginSource;
use config::Stack;

use super::key_stack::key_stack;
use super::plugin_settings::PluginSettings;
use super::settings_file::settings_file;
use super::stacks::Stacks;

/// Files that a stack reads. Those of the stacks that come before it are not repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackReads {
    /// The stack.
    pub stack: String,
    /// Files and folders, from the root of the repository. A folder stands for all that is below it. A path that a link leads to stands
    /// beside that of the link.
    pub paths: BTreeSet<PathBuf>,
    /// Absolute paths outside of the repository.
    pub outside: BTreeSet<PathBuf>,
    /// Paths of the files that it may read from the store of the secrets, as the store lists them.
    pub stored: BTreeSet<String>,
    /// Declarations of its plugins, as the lock file knows them.
    pub lock_keys: Vec<LockKey>,
    /// Places of packages that it uses without a declaration, as the lock file knows them.
    pub lock_places: BTreeSet<String>,
}

impl StackReads {
    /// Adds a path, which starts at the root unless it is absolute.
    fn add(&mut self, root: &Path, path: &Path) {
        let absolute = lexically_normal(&root.join(path));
        let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let linked = absolute.canonicalize().unwrap_or_else(|_| absolute.clone());
        let below = [absolute.strip_prefix(root), linked.strip_prefix(&real_root)];
        let below: Vec<PathBuf> = below.into_iter().flatten().map(Path::to_owned).collect();
        if below.is_empty() {
            self.outside.insert(absolute);
        }
        self.paths.extend(below);
    }
}

impl Stacks {
    /// Returns the files that a stack reads. `plugins` tells how the lock file knows its plugins; without it that is left out.
    pub fn reads(&self, stack: &Arc<Stack>, profile: &str, plugins: Option<&PluginSettings>) -> StackReads {
        let root = &self.repository.root;
        let mut reads = StackReads { stack: stack.name.clone(), ..StackReads::default() };
        let own = stack.base_name();
        let profile = PathBuf::from(format!(".sc/cfg.{profile}.yaml"));
        let mut secret_files = vec![profile.clone()];
        reads.add(root, &profile);
        for name in std::iter::once(own).chain(self.read_for(own)) {
            let folder = self.stacks_folder.join(name);
            secret_files.push(folder.join("secrets.yaml"));
            reads.add(root, &folder);
        }
        let keys = key_stack(stack).map(|key| key.name.clone());
        for name in std::iter::once(stack.name.clone()).chain(keys) {
            reads.add(root, &settings_file(root, &name));
        }
        for plugin in stack.plugins.iter().filter(|declared| declared.plugin.enabled) {
            if let PluginSource::Local(local) = &plugin.plugin.source {
                reads.add(root, &local.path);
            }
        }
        let program = self.program(stack);
        for path in program.asset_paths() {
            reads.add(root, Path::new(&path));
        }
        let relative = |path: &PathBuf| Some(path.strip_prefix(root).unwrap_or(path).to_str()?.to_owned());
        reads.stored = secret_files.iter().filter_map(relative).collect();
        if let Some(settings) = plugins {
            let declared = stack.plugins.iter().map(|declared| &declared.plugin);
            let keys = declared.flat_map(|plugin| settings.lock_keys(plugin));
            reads.lock_keys = keys.collect();
            let undeclared = program.undeclared_packages().into_iter();
            let place = |repository: String| format!("github-release github.com/{repository}");
            reads.lock_places = undeclared.map(|found| place(found.package.repository())).collect();
        }
        reads
    }

    /// Returns the stacks without resources whose files a stack reads: it inherits from them, and they have no server.yaml.
    fn read_for<'s>(&'s self, stack: &str) -> BTreeSet<&'s str> {
        let is_loaded = |name: &str| self.stacks.iter().any(|stack| stack.name == name);
        let mut waiting = vec![stack];
        let mut found = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            for link in self.inheritance.iter().filter(|link| link.stack == name) {
                if !is_loaded(&link.from) && found.insert(link.from.as_str()) {
                    waiting.push(&link.from);
                }
            }
        }
        found
    }
}

/// Resolves `.` and `..` in an absolute path, without links.
fn lexically_normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_start_at_the_root_and_links_are_followed_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("repository");
        std::fs::create_dir_all(root.join("shared/site")).unwrap();
        symlink("shared/site", root.join("site")).unwrap();
        symlink(folder.path(), root.join("out")).unwrap();
        let read = |path: &str| {
            let mut reads = StackReads::default();
            reads.add(&root, &PathBuf::from(path.replace("ROOT", root.to_str().unwrap())));
            let shown = |paths: BTreeSet<PathBuf>| {
                paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
            };
            (shown(reads.paths), shown(reads.outside).replace(folder.path().to_str().unwrap(), "FOLDER"))
        };
        for (path, below, outside) in [
            ("a/./b/../c", "a/c", ""),
            ("ROOT/a", "a", ""),
            (".", "", ""),
            ("site", "shared/site site", ""),
            ("site/index.html", "site/index.html", ""),
            ("../repository/a", "a", ""),
            ("../b", "", "FOLDER/b"),
            // A link that leads out of the repository is a file of it.
            ("out", "out", ""),
        ] {
            assert_eq!(read(path), (below.to_owned(), outside.to_owned()), "{path}");
        }
    }
}
