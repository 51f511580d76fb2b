//! States of Pulumi's command line (`tests/goldens/state`): read, compared with the known values, and written back as
//! the same bytes.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod case;
mod catalog;
mod config;
mod export;
mod history;
mod import;
mod refusals;

use case::Case;

/// Defines a test for each case, named after its folder; an option of the case follows after the colon.
macro_rules! cases {
    ($($(#[$doc:meta])* $name:ident $(: $option:ident)?,)*) => {
        $(
            $(#[$doc])*
            #[tokio::test]
            async fn $name() {
                Case::open(&folder(stringify!($name)))$(.$option())?.check().await;
            }
        )*

        const CASES: &[&str] = &[$(stringify!($name)),*];
    };
}

cases! {
    assets,
    cloud,
    compression_switched,
    config,
    exported,
    features,
    gzip,
    // Its checkpoint comes from `pulumi stack import`, which escapes for HTML; it is written back without the escapes.
    imported: allow_different_encoding,
    init,
    init_errors,
    killed,
    legacy: accept_legacy,
    new_passphrase,
    options,
    pending_delete,
    provider,
    read_and_imported,
    references,
    renamed,
    secrets,
    two_stacks,
    unversioned,
    /// Shows: state.md#state "A checkpoint that `sc` loads and saves without a change has the same bytes"
    up,
    values,
    version_4,
}

fn folder(case: &str) -> String {
    case.replace('_', "-")
}

#[test]
fn every_case_has_a_test() {
    let folders = std::fs::read_dir(Case::root()).unwrap().map(|entry| entry.unwrap());
    let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut folders: Vec<_> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    folders.sort();
    let mut tested: Vec<_> = CASES.iter().map(|case| folder(case)).collect();
    tested.sort();
    assert_eq!(tested, folders);
}
