//! Stacks whose files have changed since a commit, and those that depend on them. A pure decision: git is asked by the caller.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use bridge::install::{LOCK_FILE, LockDifference};
use secrets_store::STORE_PATH;
use secrets_store::store::Store;

use super::stack_graph::{StackEdge, StackGraph};
use super::stack_reads::StackReads;

/// Difference between two contents of a file of which a stack reads a part.
#[derive(Clone, Debug, Default)]
pub enum FileDifference<T> {
    /// There is none.
    #[default]
    None,
    /// Both contents can be read, and each stack compares its part.
    Parts(T),
    /// Contents of which one cannot be read, so that each stack may read what differs.
    Whole,
}

/// Differences between a commit and the work tree.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Files that were changed, added or removed, from the root of the repository. A repository in it is one path.
    pub paths: BTreeSet<PathBuf>,
    /// Difference of the lock file.
    pub lock: FileDifference<LockDifference>,
    /// Difference of the store of the secrets, old and new.
    pub store: FileDifference<(Store, Store)>,
}

/// Reason why a stack is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionReason {
    /// Files of its own have changed: those, from the root of the repository.
    Files(Vec<PathBuf>),
    /// Selected stacks that it depends on.
    Dependencies(Vec<StackEdge>),
}

/// Returns the stacks that changes concern, and all that depend on them, each with the reason.
pub fn changed_stacks(
    reads: &[StackReads],
    changes: &Changes,
    graph: &StackGraph,
) -> BTreeMap<String, SelectionReason> {
    let changed = |reads: &StackReads| (reads.stack.clone(), changed_files(reads, changes));
    let mut selected: BTreeMap<String, SelectionReason> = reads
        .iter()
        .map(changed)
        .filter(|(_, files)| !files.is_empty())
        .map(|(stack, files)| (stack, SelectionReason::Files(files.into_iter().collect())))
        .collect();
    let with_dependents: BTreeSet<&str> = graph.with_dependents(selected.keys().map(String::as_str));
    let dependents = with_dependents.iter().filter(|stack| !selected.contains_key(**stack)).map(|stack| {
        let edges = graph.dependencies(stack).filter(|edge| with_dependents.contains(edge.before.as_str()));
        ((*stack).to_owned(), SelectionReason::Dependencies(edges.cloned().collect()))
    });
    let dependents: Vec<_> = dependents.collect();
    selected.extend(dependents);
    selected
}

/// Returns the changed files that a stack reads.
fn changed_files(reads: &StackReads, changes: &Changes) -> BTreeSet<PathBuf> {
    let mut files: BTreeSet<PathBuf> = reads.paths.iter().flat_map(|path| concerned(path, &changes.paths)).collect();
    let lock = match &changes.lock {
        FileDifference::None => false,
        FileDifference::Parts(difference) => {
            difference.concerns_undeclared()
                || reads.lock_keys.iter().any(|key| difference.concerns(key))
                || reads.lock_places.iter().any(|place| difference.concerns_place(place))
        }
        FileDifference::Whole => true,
    };
    let store = match &changes.store {
        FileDifference::None => false,
        FileDifference::Parts((old, new)) => reads.stored.iter().any(|path| is_secret_changed(old, new, path)),
        FileDifference::Whole => true,
    };
    files.extend(
        [(lock, LOCK_FILE), (store, STORE_PATH)].into_iter().filter(|(is, _)| *is).map(|(_, path)| path.into()),
    );
    files
}

/// Returns the changed files at or below a path, and those above it: a repository in this one is a single path.
fn concerned(path: &Path, changed: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let from = (Bound::Included(path.to_owned()), Bound::Unbounded);
    let below = changed.range(from).take_while(|found| found.starts_with(path));
    let above = path.ancestors().skip(1).filter_map(|ancestor| changed.get(ancestor));
    below.chain(above).cloned().collect()
}

/// Returns whether a file of a store has changed, as far as that can be told without a key. Another recipient is no change: what the others
/// have stays as it is. A recipient who has another ciphertext may have another content.
fn is_secret_changed(old: &Store, new: &Store, path: &str) -> bool {
    let is_listed = |store: &Store| store.files.iter().any(|known| known == path);
    if is_listed(old) != is_listed(new) {
        return true;
    }
    let recipients = old.recipients().iter().map(|recipient| &recipient.key);
    let pairs =
        recipients.filter(|key| new.entries(key).is_some()).map(|key| (old.entry(key, path), new.entry(key, path)));
    let pairs: Vec<_> = pairs.collect();
    let is_other = |(old, new): &(Option<_>, Option<_>)| old != new;
    (is_listed(new) && pairs.is_empty()) || pairs.iter().any(is_other)
}

#[cfg(test)]
mod tests {
    use super::super::stack_graph::EdgeReason;
    use super::*;

    fn reads(stack: &str, paths: &[&str]) -> StackReads {
        let own = format!(".sc/stacks/{stack}");
        let paths = paths.iter().map(PathBuf::from).chain([PathBuf::from(&own)]).collect();
        let stored = [format!("{own}/secrets.yaml")].into();
        StackReads { stack: stack.to_owned(), paths, stored, ..StackReads::default() }
    }

    /// Returns the selected stacks with the reasons.
    fn selected(changes: &Changes) -> String {
        let edge = |stack: &str, before: &str, reason| StackEdge {
            before: before.to_owned(),
            stack: stack.to_owned(),
            reason,
            span: None,
        };
        let edges = [edge("app", "net", EdgeReason::Output), edge("edge", "app", EdgeReason::Inherits)];
        let stacks = [
            reads("net", &["plugins/net"]),
            reads("app", &["site/a.html", "lib/sub"]),
            reads("edge", &[]),
            reads("x", &[]),
        ];
        let graph = StackGraph::new(stacks.iter().map(|reads| reads.stack.clone()), edges);
        let shown = changed_stacks(&stacks, changes, &graph).into_iter().map(|(stack, reason)| match reason {
            SelectionReason::Files(files) => {
                format!(
                    "{stack}: {}",
                    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ")
                )
            }
            SelectionReason::Dependencies(edges) => {
                format!("{stack} {}", edges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn stacks_with_changed_files_and_their_dependents_are_selected() {
        for (paths, expected) in [
            (&[][..], ""),
            (&["README.md", ".sc/stacks/xy/server.yaml", "site/a.html.bak", "plugins/network"], ""),
            (&[".sc/stacks/x/server.yaml", ".sc/stacks/x/a/b"], "x: .sc/stacks/x/a/b .sc/stacks/x/server.yaml"),
            (&["plugins/net/main.py"], "app reads outputs of net; edge inherits from app; net: plugins/net/main.py"),
            (&["site/a.html"], "app: site/a.html; edge inherits from app"),
            // A repository in this one, which has the folder that the stack reads.
            (&["lib"], "app: lib; edge inherits from app"),
            (
                &[".sc/stacks/edge/x", "plugins/net"],
                "app reads outputs of net; edge: .sc/stacks/edge/x; net: plugins/net",
            ),
        ] {
            let paths = paths.iter().map(PathBuf::from).collect();
            assert_eq!(selected(&Changes { paths, ..Changes::default() }), expected);
        }
    }

    #[test]
    fn file_that_cannot_be_compared_concerns_all_stacks() {
        let whole = Changes { lock: FileDifference::Whole, ..Changes::default() };
        assert_eq!(selected(&whole), "app: .sc/sc.lock; edge: .sc/sc.lock; net: .sc/sc.lock; x: .sc/sc.lock");
        let whole = Changes { store: FileDifference::Whole, ..Changes::default() };
        assert!(selected(&whole).ends_with("x: .sc/secrets.yaml"));
    }

    /// Returns a store of two files, with the ciphertexts of each recipient.
    fn store(recipients: &[(&str, &str, &str)]) -> Store {
        let mut text =
            "registry:\n  files: [.sc/stacks/net/secrets.yaml, .sc/stacks/x/secrets.yaml]\nsecrets:\n".to_owned();
        for (key, net, x) in recipients {
            text.push_str(&format!("  ssh-ed25519 {key}:\n    secrets:\n"));
            for (stack, cipher) in [("net", net), ("x", x)] {
                text.push_str(&format!(
                    "    - {{ path: .sc/stacks/{stack}/secrets.yaml, encryptedData: [{cipher}] }}\n"
                ));
            }
        }
        Store::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn stack_is_selected_if_the_store_has_another_content_of_its_secrets() {
        let old = store(&[("A", "n1", "x1"), ("B", "n2", "x2")]);
        for (new, expected) in [
            (store(&[("A", "n1", "x1"), ("B", "n2", "x2")]), ""),
            (store(&[("A", "n1", "x3"), ("B", "n2", "x4")]), "x: .sc/secrets.yaml"),
            // A recipient more, and one less.
            (store(&[("A", "n1", "x1"), ("B", "n2", "x2"), ("C", "n3", "x3")]), ""),
            (store(&[("B", "n2", "x2")]), ""),
            // Nothing can be compared.
            (
                store(&[("C", "n1", "x1")]),
                "app reads outputs of net; edge inherits from app; net: .sc/secrets.yaml; x: .sc/secrets.yaml",
            ),
            (
                Store::default(),
                "app reads outputs of net; edge inherits from app; net: .sc/secrets.yaml; x: .sc/secrets.yaml",
            ),
        ] {
            let store = FileDifference::Parts((old.clone(), new));
            assert_eq!(selected(&Changes { store, ..Changes::default() }), expected);
        }
    }
}
