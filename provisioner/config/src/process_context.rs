//! Environment, time and account of the process, which the binary passes in, and the git repository.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::files;

/// Environment, time and account of the process. Only the binary reads them from the system; libraries receive this
/// value.
#[derive(Clone)]
pub struct ProcessContext {
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// The time at which the run began.
    pub now: Timestamp,
    /// The time zone of dates. `None`: that of the system, which takes milliseconds to find out.
    pub time_zone: Option<TimeZone>,
    /// The user who runs the process, from the account database; `None` if there is no entry.
    pub account: Option<Account>,
}

/// An entry of the account database.
#[derive(Clone, Debug)]
pub struct Account {
    /// Home folder.
    pub home: PathBuf,
    /// Login name.
    pub username: String,
    /// Numeric id.
    pub id: String,
    /// Full name.
    pub name: String,
}

/// Shows only the names of variables, because the values may hold tokens.
impl fmt::Debug for ProcessContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessContext")
            .field("environment", &self.environment.keys().collect::<Vec<_>>())
            .field("now", &self.now)
            .field("time_zone", &self.time_zone)
            .field("account", &self.account)
            .finish()
    }
}

/// Root folder of the project, which contains `.sc`, and its git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The work tree of the innermost git repository that contains the folder, else the folder itself.
    pub root: PathBuf,
    /// The git repository; `None` outside of one.
    pub git: Option<Git>,
}

/// Error of [`Repository::check_owner`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} belongs to user {owner}", path.display())]
pub struct ForeignOwner {
    /// The file or folder.
    pub path: PathBuf,
    /// User id of its owner.
    pub owner: u32,
}

/// A git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Git {
    /// The checked-out commit; `None` before the first commit.
    pub head: Option<Head>,
}

/// The checked-out commit and branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Full hash of the commit.
    pub commit: String,
    /// The branch. If HEAD is detached: a local branch at the same commit.
    pub branch: Option<String>,
}

impl Repository {
    /// Finds the repository by walking up from a folder to the first `.git`. Creates no repository if there is none.
    pub fn discover(from: &Path) -> Self {
        let found = from.ancestors().find_map(|folder| Some((folder, find_git_folder(&folder.join(".git"))?)));
        match found {
            Some((root, git)) => Self { root: root.to_owned(), git: Some(Git { head: read_head(&git) }) },
            None => Self { root: from.to_owned(), git: None },
        }
    }

    /// Checks that the root, `.git` and `.sc` belong to users in `trusted`, by their ids. Any user may have created the
    /// `.git` of a parent folder such as `/tmp`, and the files in `.sc` name programs to run. Permissions are not
    /// checked: the members of a group may share a repository.
    ///
    /// # Errors
    /// [`ForeignOwner`] of the first path that belongs to another user.
    pub fn check_owner(&self, trusted: &[u32]) -> Result<(), ForeignOwner> {
        for path in [self.root.clone(), self.root.join(".git"), self.root.join(".sc")] {
            if let Some(owner) = files::owners(&path).find(|owner| !trusted.contains(owner)) {
                return Err(ForeignOwner { path, owner });
            }
        }
        Ok(())
    }

    /// Returns the folder of git, which all work trees of a clone share; `None` outside of a repository.
    pub fn git_folder(&self) -> Option<PathBuf> {
        find_git_folder(&self.root.join(".git")).map(|git| common_folder(&git))
    }

    /// Returns the names of local branches, of branches of other repositories (`origin/main`), and of tags; none outside of a repository.
    pub fn revisions(&self) -> Vec<String> {
        let refs = |git: &PathBuf| {
            let kinds = ["refs/heads", "refs/remotes", "refs/tags"].into_iter();
            kinds.flat_map(|kind| read_refs(git, kind).into_keys()).collect()
        };
        self.git_folder().as_ref().map(refs).unwrap_or_default()
    }

    /// Returns a path for display: relative to the root if it is below the root, else unchanged.
    pub fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

/// Returns the git folder: `.git` itself, or the folder that the file `.git` of a linked work tree or submodule names.
fn find_git_folder(path: &Path) -> Option<PathBuf> {
    if files::is_folder(path) {
        return Some(path.to_owned());
    }
    let pointer = files::read_optional(path)?;
    let target = pointer.trim().strip_prefix("gitdir:")?.trim();
    Some(path.parent()?.join(target))
}

/// Returns the folder with the references of a git folder, which may be that of a linked work tree.
fn common_folder(git: &Path) -> PathBuf {
    match files::read_optional(&git.join("commondir")) {
        Some(common) => git.join(common.trim()),
        None => git.to_owned(),
    }
}

fn read_head(git: &Path) -> Option<Head> {
    let common = common_folder(git);
    let head = files::read_optional(&git.join("HEAD"))?;
    match head.trim().strip_prefix("ref:") {
        Some(name) => {
            let name = name.trim();
            let commit = resolve_ref(git, &common, name)?;
            Some(Head { commit, branch: name.strip_prefix("refs/heads/").map(str::to_owned) })
        }
        None => {
            let commit = parse_object_id(&head)?;
            let branch = read_local_branches(&common).into_iter().find(|(_, at)| *at == commit).map(|(name, _)| name);
            Some(Head { commit, branch })
        }
    }
}

fn resolve_ref(git: &Path, common: &Path, name: &str) -> Option<String> {
    let loose = [git, common].into_iter().find_map(|folder| files::read_optional(&folder.join(name)));
    match loose {
        Some(text) => parse_object_id(&text),
        None => read_packed_refs(common).into_iter().find(|(packed, _)| packed == name).map(|(_, id)| id),
    }
}

/// Returns the commits of the local branches, by name.
fn read_local_branches(common: &Path) -> BTreeMap<String, String> {
    read_refs(common, "refs/heads")
}

/// Returns the ids of the references below a folder of references, by the rest of their names.
fn read_refs(common: &Path, below: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = read_packed_refs(common)
        .into_iter()
        .filter_map(|(name, id)| Some((name.strip_prefix(below)?.strip_prefix('/')?.to_owned(), id)))
        .collect();
    let root = common.join(below);
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for path in files::list_paths(&folder) {
            if files::is_folder(&path) {
                folders.push(path);
            } else if let Some(id) = files::read_optional(&path).as_deref().and_then(parse_object_id)
                && let Ok(name) = path.strip_prefix(&root)
            {
                found.insert(name.to_string_lossy().replace('\\', "/"), id);
            }
        }
    }
    found
}

fn read_packed_refs(common: &Path) -> Vec<(String, String)> {
    let text = files::read_optional(&common.join("packed-refs")).unwrap_or_default();
    let refs = text.lines().filter(|line| !line.starts_with(['#', '^'])).filter_map(|line| line.split_once(' '));
    refs.map(|(id, name)| (name.trim().to_owned(), id.to_owned())).collect()
}

fn parse_object_id(text: &str) -> Option<String> {
    let id = text.trim();
    (id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const COMMIT: &str = "39d4ed90bb9c4e9b9eab986b92dbed25733b7cbf";

    /// Creates a repository with these files and discovers it from a folder below its root.
    fn repository(files: &[(&str, &str)]) -> (tempfile::TempDir, Repository) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let inside = folder.path().join("a/b");
        fs::create_dir_all(&inside).unwrap();
        let repository = Repository::discover(&inside);
        (folder, repository)
    }

    fn head_of(repository: &Repository) -> (&str, Option<&str>) {
        let head = repository.git.as_ref().unwrap().head.as_ref().unwrap();
        (head.commit.as_str(), head.branch.as_deref())
    }

    #[test]
    fn enclosing_work_tree_is_root_and_its_branch_is_read() {
        let (folder, found) = repository(&[(".git/HEAD", "ref: refs/heads/f/x\n"), (".git/refs/heads/f/x", COMMIT)]);
        assert_eq!(found.root, folder.path());
        assert_eq!(head_of(&found), (COMMIT, Some("f/x")));
    }

    #[test]
    fn packed_branch_and_detached_head_are_found() {
        let packed = format!("# pack-refs\n{COMMIT} refs/heads/main\n");
        let (_folder, found) = repository(&[(".git/HEAD", "ref: refs/heads/main"), (".git/packed-refs", &packed)]);
        assert_eq!(head_of(&found), (COMMIT, Some("main")));
        let (_folder, found) = repository(&[(".git/HEAD", COMMIT), (".git/refs/heads/a/main", COMMIT)]);
        assert_eq!(head_of(&found), (COMMIT, Some("a/main")));
    }

    #[test]
    fn names_of_branches_and_tags_are_listed() {
        let packed = format!("# pack-refs\n{COMMIT} refs/heads/main\n{COMMIT} refs/tags/v1\n^{COMMIT}\n");
        let (_folder, found) = repository(&[
            (".git/HEAD", "ref: refs/heads/main"),
            (".git/packed-refs", &packed),
            (".git/refs/heads/f/x", COMMIT),
            (".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n"),
            (".git/refs/remotes/origin/main", COMMIT),
        ]);
        assert_eq!(found.revisions(), ["f/x", "main", "origin/main", "v1"]);
        assert_eq!(Repository { root: found.root.join("a"), git: None }.revisions(), [""; 0]);
    }

    #[test]
    fn linked_work_tree_reads_branch_from_common_folder() {
        let (_folder, found) = repository(&[
            (".git", "gitdir: store/worktrees/w\n"),
            ("store/worktrees/w/HEAD", "ref: refs/heads/w"),
            ("store/worktrees/w/commondir", "../.."),
            ("store/refs/heads/w", COMMIT),
        ]);
        assert_eq!(head_of(&found), (COMMIT, Some("w")));
    }

    /// Shows: security.md#the-repository "refuses a repository whose root, `.git` or `.sc` belongs to neither you nor
    ///   root"
    #[test]
    fn repository_of_other_users_is_refused() {
        let (folder, found) = repository(&[(".git/HEAD", ""), (".sc/cfg.default.yaml", "")]);
        let owner = files::owners(folder.path()).next().unwrap();
        assert_eq!(found.check_owner(&[owner + 1, owner]), Ok(()));
        assert_eq!(found.check_owner(&[owner + 1]), Err(ForeignOwner { path: folder.path().to_owned(), owner }));
        // Without a repository, the files of the folder itself are checked; missing ones have no owner.
        let outside = Repository { root: folder.path().join("a/b"), git: None };
        assert_eq!(outside.check_owner(&[owner]), Ok(()));
    }

    #[test]
    fn repository_without_commits_has_no_head() {
        let (_folder, found) = repository(&[(".git/HEAD", "ref: refs/heads/main")]);
        assert_eq!(found.git, Some(Git { head: None }));
    }
}
