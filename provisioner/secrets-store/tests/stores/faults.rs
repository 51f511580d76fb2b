//! Errors of the disk between the steps of a write, as a process that is killed there leaves them.

use std::fs;

use bridge::fs::faults::{Errno, Fault};
use secrets_store::edit::Edit;
use secrets_store::reveal::Reveal;

use crate::Case;

/// Shows: secrets.md#confirmations "after a crash it is the old one or the new one"
#[test]
fn interrupted_write_leaves_the_old_store_or_the_new_one() {
    let mut at = 1;
    loop {
        let case = Case::open("three-recipients");
        let keys = case.keys("default");
        Reveal::prepare(&case.file(), &keys).unwrap().write().unwrap();
        let before = case.text();
        fs::write(case.root().join("new"), "text").unwrap();
        let edit = Edit::add(&case.file(), "new", &keys).unwrap();
        let fault = Fault { folder: case.root().to_owned(), at, error: Errno::IO, lasts: true }.inject();
        let committed = edit.commit();
        let calls = fault.failed();
        drop(fault);
        let after = case.text();
        let is_new = case.text_of("new", &keys).unwrap().is_some();
        assert!(is_new || after == before, "half a store after call {at}: {calls:?}");
        if is_new {
            let ignored = fs::read_to_string(case.root().join(".gitignore")).unwrap();
            assert!(ignored.ends_with("\nnew\n"), "the text of a file in the store is ignored by git");
        }
        let is_left = |name: &str| name.starts_with(".tmp-");
        let names = [".", ".sc", ".sc/.tmp"].into_iter().flat_map(|folder| {
            let entries = fs::read_dir(case.root().join(folder)).into_iter().flatten();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(names.filter(|name| is_left(name)).count(), 0, "after call {at}");
        if committed.is_ok() {
            assert!(calls.is_empty() && is_new && at > 8, "{at}");
            return;
        }
        at += 1;
    }
}
