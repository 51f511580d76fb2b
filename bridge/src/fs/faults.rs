//! Errors of the disk that tests inject. Exists in builds with debug assertions only.
//!
//! A test gives its folder and the number of the call that is to fail; calls elsewhere are not affected, so tests can
//! run concurrently.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file_call::FileCall;

pub use rustix::io::Errno;

/// Injected error.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Folder below which calls are counted and fail.
    pub folder: PathBuf,
    /// Number of the first call that fails, from 1; 0 if none fails.
    pub at: usize,
    /// Error of the call. A call that cannot have this error is not counted.
    pub error: Errno,
    /// True if all later calls fail as well.
    pub lasts: bool,
}

/// Fault that is injected until it is dropped.
#[derive(Debug)]
pub struct InjectedFault(Arc<Mutex<Active>>);

#[derive(Debug)]
struct Active {
    fault: Fault,
    calls: usize,
    failed: Vec<(FileCall, PathBuf)>,
}

static ACTIVE: Mutex<Vec<Arc<Mutex<Active>>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fault {
    /// Injects the fault.
    pub fn inject(self) -> InjectedFault {
        let active = Arc::new(Mutex::new(Active { fault: self, calls: 0, failed: Vec::new() }));
        lock(&ACTIVE).push(Arc::clone(&active));
        InjectedFault(active)
    }
}

impl InjectedFault {
    /// Returns the number of calls that can have the error.
    pub fn calls(&self) -> usize {
        lock(&self.0).calls
    }

    /// Returns the calls that failed, with their paths.
    pub fn failed(&self) -> Vec<(FileCall, PathBuf)> {
        lock(&self.0).failed.clone()
    }
}

impl Drop for InjectedFault {
    fn drop(&mut self) {
        lock(&ACTIVE).retain(|active| !Arc::ptr_eq(active, &self.0));
    }
}

/// Returns the injected error of a call, if it has one.
pub(super) fn check(call: FileCall, path: &Path) -> io::Result<()> {
    for active in lock(&ACTIVE).iter() {
        let mut active = lock(active);
        if !path.starts_with(&active.fault.folder) || !can_have(call, active.fault.error) {
            continue;
        }
        active.calls += 1;
        let (calls, at) = (active.calls, active.fault.at);
        if at > 0 && (calls == at || active.fault.lasts && calls > at) {
            active.failed.push((call, path.to_owned()));
            return Err(active.fault.error.into());
        }
    }
    Ok(())
}

/// Returns whether the operating system can return the error for a call.
fn can_have(call: FileCall, error: Errno) -> bool {
    match error {
        Errno::MFILE => call == FileCall::Open,
        Errno::NOSPC => !matches!(call, FileCall::Remove | FileCall::Truncate),
        Errno::ROFS => !matches!(call, FileCall::Write | FileCall::Sync | FileCall::Truncate),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::calls::{remove_file, rename};
    use super::*;

    #[test]
    fn fault_fails_calls_from_its_number_on_in_its_folder_only() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::create_dir(&a).unwrap();
        let fault = Fault { folder: a.clone(), at: 2, error: Errno::IO, lasts: false };
        let injected = fault.clone().inject();
        let errors =
            || [&a, &a, &b, &a].map(|folder| remove_file(&folder.join("x")).unwrap_err().raw_os_error().unwrap());
        assert_eq!(errors(), [2, Errno::IO.raw_os_error(), 2, 2]);
        assert_eq!((injected.calls(), injected.failed()), (3, vec![(FileCall::Remove, a.join("x"))]));
        drop(injected);
        let injected = Fault { lasts: true, ..fault }.inject();
        assert_eq!(errors(), [2, Errno::IO.raw_os_error(), 2, Errno::IO.raw_os_error()]);
        drop(injected);
        let full = Fault { folder: a.clone(), at: 1, error: Errno::NOSPC, lasts: true }.inject();
        assert_eq!(errors(), [2; 4]);
        assert_eq!(rename(&b, &a.join("x")).unwrap_err().raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
        assert_eq!(full.calls(), 1);
    }
}
