//! States that Pulumi's command line wrote (`tests/goldens/state`): read, compared with what is known of them, and written
//! back to the byte.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod case;
mod catalog;
mod config;
mod export;
mod history;
mod import;
mod refusals;

use case::Case;

/// A test for each case, named as its folder; after the colon what is special about it.
macro_rules! cases {
    ($($name:ident $(: $special:ident)?,)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                Case::open(&folder(stringify!($name)))$(.$special())?.check().await;
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
    // Its checkpoint came from `stack import`, which escapes for HTML: it reads, and is written as any other.
    imported: written_back_differs,
    init,
    init_errors,
    killed,
    legacy: accepted,
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
    up,
    values,
    version_4,
}

fn folder(case: &str) -> String {
    case.replace('_', "-")
}

#[test]
fn every_case_has_its_test() {
    let folders = std::fs::read_dir(Case::root()).unwrap().map(|entry| entry.unwrap());
    let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut folders: Vec<_> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    folders.sort();
    let mut tested: Vec<_> = CASES.iter().map(|case| folder(case)).collect();
    tested.sort();
    assert_eq!(tested, folders);
}
