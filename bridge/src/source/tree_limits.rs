//! Size limits for the tree of a commit.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::process::{OutputSink, OutputStream};

/// Maximum size of a tree.
#[derive(Clone, Copy, Debug)]
pub struct TreeLimits {
    /// Number of files, folders and links.
    pub entries: usize,
    /// Total size of all files, in bytes.
    pub bytes: u64,
    /// Length of a path, in bytes.
    pub path_length: usize,
    /// Number of components of a path.
    pub path_depth: usize,
}

/// Counts the entries that `git ls-tree -r -t -l` lists.
#[derive(Debug)]
pub(super) struct TreeCounter {
    limits: TreeLimits,
    count: Mutex<Count>,
    /// Notified when a limit is exceeded.
    pub(super) limit_exceeded: Notify,
}

#[derive(Debug, Default)]
struct Count {
    entries: usize,
    bytes: u64,
    /// First exceeded limit, in words.
    exceeded_limit: Option<&'static str>,
}

impl TreeCounter {
    pub(super) fn new(limits: TreeLimits) -> Self {
        Self { limits, count: Mutex::default(), limit_exceeded: Notify::new() }
    }

    /// Returns the first exceeded limit, in words.
    pub(super) fn exceeded_limit(&self) -> Option<&'static str> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner).exceeded_limit
    }
}

impl OutputSink for TreeCounter {
    fn line(&self, stream: OutputStream, line: &str) {
        if stream != OutputStream::Stdout {
            return;
        }
        // Mode, kind, id, size, a tab, the path. Only files have a size.
        let (about, path) = line.split_once('\t').unwrap_or((line, ""));
        let size = about.split_whitespace().nth(3).and_then(|size| size.parse().ok()).unwrap_or(0);
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        count.entries += 1;
        count.bytes = count.bytes.saturating_add(size);
        let limits = [
            (count.entries > self.limits.entries, "it has too many files"),
            (count.bytes > self.limits.bytes, "it has too many bytes"),
            (path.len() > self.limits.path_length, "one of its paths is too long"),
            (path.split('/').count() > self.limits.path_depth, "one of its paths has too many components"),
        ];
        if let Some((_, reason)) = limits.into_iter().find(|(is_exceeded, _)| *is_exceeded) {
            count.exceeded_limit.get_or_insert(reason);
            self.limit_exceeded.notify_one();
        }
    }
}
