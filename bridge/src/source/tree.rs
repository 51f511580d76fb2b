//! What the tree of a commit may hold, and the count of what it does hold.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::process::{OutputSink, OutputStream};

/// What a tree may hold at most.
#[derive(Clone, Copy, Debug)]
pub struct TreeLimits {
    /// Files, folders and links.
    pub entries: usize,
    /// Bytes in all files together.
    pub bytes: u64,
    /// Bytes in a path.
    pub path_length: usize,
    /// Parts of a path.
    pub path_depth: usize,
}

/// Counts what `git ls-tree -r -t -l` lists.
#[derive(Debug)]
pub(super) struct Tally {
    limits: TreeLimits,
    count: Mutex<Count>,
    /// Told once a limit is passed.
    pub(super) over: Notify,
}

#[derive(Debug, Default)]
struct Count {
    entries: usize,
    bytes: u64,
    /// The first limit that was passed.
    excess: Option<&'static str>,
}

impl Tally {
    pub(super) fn new(limits: TreeLimits) -> Self {
        Self { limits, count: Mutex::default(), over: Notify::new() }
    }

    /// Returns the first limit that was passed, in words.
    pub(super) fn excess(&self) -> Option<&'static str> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner).excess
    }
}

impl OutputSink for Tally {
    fn line(&self, stream: OutputStream, line: &str) {
        if stream != OutputStream::Stdout {
            return;
        }
        // Mode, kind, id, size, a tab, the path. What is no file has no size.
        let (about, path) = line.split_once('\t').unwrap_or((line, ""));
        let size = about.split_whitespace().nth(3).and_then(|size| size.parse().ok()).unwrap_or(0);
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        count.entries += 1;
        count.bytes = count.bytes.saturating_add(size);
        let passed = [
            (count.entries > self.limits.entries, "no plugin has so many files"),
            (count.bytes > self.limits.bytes, "no plugin has so many bytes"),
            (path.len() > self.limits.path_length, "no plugin has such long paths"),
            (path.split('/').count() > self.limits.path_depth, "no plugin has so many folders in each other"),
        ];
        if let Some((_, reason)) = passed.into_iter().find(|(passed, _)| *passed) {
            count.excess.get_or_insert(reason);
            self.over.notify_one();
        }
    }
}
