//! Selection of the stacks that have changed since a commit (`--changed-since`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bridge::fs::{MAX_DOCUMENT_BYTES, read_if_exists};
use bridge::host::PluginPool;
use bridge::install::{LOCK_FILE, LockDifference};
use bridge::message_text::MessageText;
use bridge::process::Spawner;
use bridge::shell::option;
use provisioner::operation::{
    Changes, FileDifference, PluginSettings, SelectionReason, StackEdge, StackReads, Stacks, changed_stacks,
};
use secrets_store::STORE_PATH;
use secrets_store::store::Store;

use super::args::{ChangedSinceArgs, GlobalArgs};
use super::exit::CliError;
use super::git::Git;
use super::git_changes::{ChangedFile, GitChanges, changes_since};
use super::stacks::profile_name;
use super::ui::Ui;

/// Number of changed files that a line names.
const MAX_SHOWN: usize = 2;
/// Number of characters of a commit that messages show.
const SHORT_ID: usize = 10;

/// Requests only those of the requested stacks that have changed since the revision of the command line, and those that depend on them;
/// all if it has none. Prints which, and returns the reasons by stack.
///
/// # Errors
/// The stacks are not in a git repository, the revision does not exist, or it has no merge base with HEAD here.
pub(crate) async fn select_changed(
    ui: &Ui,
    global: &GlobalArgs,
    args: &ChangedSinceArgs,
    stacks: &mut Stacks,
) -> anyhow::Result<BTreeMap<String, SelectionReason>> {
    let Some(revision) = &args.changed_since else { return Ok(BTreeMap::new()) };
    let root = stacks.repository.root.clone();
    let folder = check_folder(stacks)?;
    let git = Git::find(&root).ok_or_else(|| {
        CliError::failed("--changed-since needs the program git, which is not on PATH", "install git")
    })?;
    let git = git.of_work_tree();
    let GitChanges { base, files } = changes_since(&git, revision).await?;
    let changes = Changes {
        paths: files.iter().map(|file| file.path.clone()).collect(),
        lock: lock_difference(&git, &root, &base, &files).await?,
        store: store_difference(&git, &root, &base, &files).await?,
    };
    let plugins = match changes.lock {
        FileDifference::Parts(_) => Some(PluginSettings::new(stacks, Spawner::unsupervised(), PluginPool::new())?),
        FileDifference::None | FileDifference::Whole => None,
    };
    let profile = profile_name(global);
    let reads: Vec<StackReads> =
        stacks.stacks.iter().map(|stack| stacks.reads(stack, profile, plugins.as_ref())).collect();
    let mut reasons = changed_stacks(&reads, &changes, &stacks.graph);
    let candidates: BTreeSet<String> = stacks.requested().map(|stack| stack.name.clone()).collect();
    reasons.retain(|stack, _| candidates.contains(stack));
    stacks.retain_requested(|name| reasons.contains_key(name));
    for removed in removed_stacks(&folder, &files).filter(|name| !stacks.stacks_folder.join(name).exists()) {
        ui.output.warn(format_args!(
            "the stack {removed} was removed since {}: its resources stay as they are; to delete them, restore its folder and run `sc destroy {}`",
            short(&base),
            option("-s", &removed)
        ));
    }
    ui.output.inform(summary(revision, &base, candidates.len(), stacks, &reasons));
    let outside: BTreeSet<&PathBuf> =
        reads.iter().filter(|reads| candidates.contains(&reads.stack)).flat_map(|reads| &reads.outside).collect();
    if !outside.is_empty() {
        let outside: Vec<String> = outside.iter().map(|path| path.display().to_string()).collect();
        ui.output.inform(format_args!("not compared, as outside of the repository: {}", outside.join(", ")));
    }
    Ok(reasons)
}

/// Returns the folder of the stacks, from the root of the repository.
fn check_folder(stacks: &Stacks) -> Result<PathBuf, CliError> {
    let root = &stacks.repository.root;
    if stacks.repository.git.is_none() {
        let message =
            format_args!("{} is not in a git repository, which --changed-since compares with", root.display());
        return Err(CliError::failed(message, "run `git init` and commit the stacks, or name stacks with -s"));
    }
    let folder = &stacks.stacks_folder;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let inside = folder.strip_prefix(root).map(Path::to_owned).or_else(|_| {
        let (folder, root) = (real(folder), real(root));
        folder.strip_prefix(root).map(Path::to_owned)
    });
    inside.map_err(|_| {
        let message = format_args!("the folder of the stacks, {}, is not in the git repository", folder.display());
        CliError::failed(message, "name stacks with -s, without --changed-since")
    })
}

/// Returns the old and the new text of a file, if it has changed; `None` for one that cannot be read.
async fn texts(
    git: &Git,
    root: &Path,
    base: &str,
    files: &[ChangedFile],
    path: &str,
) -> anyhow::Result<Option<(String, Option<String>)>> {
    if !files.iter().any(|file| file.path == Path::new(path)) {
        return Ok(None);
    }
    let old = git.file_of(base, path).await?.unwrap_or_default();
    let new = read_if_exists(&root.join(path), MAX_DOCUMENT_BYTES).ok().map(Option::unwrap_or_default);
    Ok(Some((old, new.and_then(|bytes| String::from_utf8(bytes).ok()))))
}

async fn lock_difference(
    git: &Git,
    root: &Path,
    base: &str,
    files: &[ChangedFile],
) -> anyhow::Result<FileDifference<LockDifference>> {
    Ok(match texts(git, root, base, files, LOCK_FILE).await? {
        None => FileDifference::None,
        Some((old, new)) => new
            .and_then(|new| LockDifference::between(&old, &new).ok())
            .map_or(FileDifference::Whole, FileDifference::Parts),
    })
}

async fn store_difference(
    git: &Git,
    root: &Path,
    base: &str,
    files: &[ChangedFile],
) -> anyhow::Result<FileDifference<(Store, Store)>> {
    // A file that is missing is an empty store.
    let parse = |text: &str| if text.trim().is_empty() { Some(Store::default()) } else { Store::parse(text).ok() };
    Ok(match texts(git, root, base, files, STORE_PATH).await? {
        None => FileDifference::None,
        Some((old, new)) => {
            new.and_then(|new| Some((parse(&old)?, parse(&new)?))).map_or(FileDifference::Whole, FileDifference::Parts)
        }
    })
}

/// Returns the names of the stacks whose server.yaml the commit has and the work tree does not.
fn removed_stacks<'f>(folder: &'f Path, files: &'f [ChangedFile]) -> impl Iterator<Item = String> + use<'f> {
    files.iter().filter(|file| file.is_removed).filter_map(move |file| {
        let stack = file.path.parent().filter(|_| file.path.ends_with("server.yaml"))?;
        let name = stack.file_name().filter(|_| stack.parent() == Some(folder))?;
        Some(name.to_str()?.to_owned())
    })
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT_ID).unwrap_or(commit)
}

/// Says which stacks are selected, a line for each.
fn summary(
    revision: &str,
    base: &str,
    candidates: usize,
    stacks: &Stacks,
    reasons: &BTreeMap<String, SelectionReason>,
) -> MessageText {
    let base = short(base);
    if reasons.is_empty() {
        let none = if candidates == 1 { "the stack has not" } else { "no stack has" };
        return MessageText::new(format_args!("{none} changed since {base} (the merge base of HEAD with {revision})"));
    }
    let stacks_of = if candidates == 1 { "stack" } else { "stacks" };
    let line = |(stack, reason): (&str, &SelectionReason)| format!("\n{stack}: {}", reason_text(reason));
    let selected = stacks.requested().filter_map(|stack| Some((stack.name.as_str(), reasons.get(&stack.name)?)));
    let lines: String = selected.map(line).collect();
    let count = reasons.len();
    MessageText::new(format_args!(
        "selected {count} of {candidates} {stacks_of}, by what has changed since {base} (the merge base of HEAD with {revision}):{lines}"
    ))
}

fn reason_text(reason: &SelectionReason) -> String {
    match reason {
        SelectionReason::Files(files) => {
            let shown: Vec<String> = files.iter().take(MAX_SHOWN).map(|file| file.display().to_string()).collect();
            match files.len().saturating_sub(MAX_SHOWN) {
                0 => shown.join(", "),
                1 => format!("{} and 1 more file", shown.join(", ")),
                more => format!("{} and {more} more files", shown.join(", ")),
            }
        }
        SelectionReason::Dependencies(edges) => edges.iter().map(StackEdge::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_files_are_named_and_the_others_counted() {
        let files =
            |count: usize| SelectionReason::Files((0..count).map(|at| PathBuf::from(format!("f{at}"))).collect());
        for (count, expected) in
            [(1, "f0"), (2, "f0, f1"), (3, "f0, f1 and 1 more file"), (9, "f0, f1 and 7 more files")]
        {
            assert_eq!(reason_text(&files(count)), expected);
        }
    }

    #[test]
    fn stack_whose_server_yaml_is_gone_was_removed() {
        let file = |path: &str, is_removed| ChangedFile { path: path.into(), is_removed };
        let files = [
            file(".sc/stacks/a/server.yaml", true),
            file(".sc/stacks/b/server.yaml", false),
            file(".sc/stacks/c/x/server.yaml", true),
            file(".sc/stacks/d/note.txt", true),
            file("other/e/server.yaml", true),
        ];
        let removed = |folder: &str| removed_stacks(Path::new(folder), &files).collect::<Vec<_>>();
        assert_eq!((removed(".sc/stacks"), removed("other")), (vec!["a".to_owned()], vec!["e".to_owned()]));
    }
}
