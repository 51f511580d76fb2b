//! States that Pulumi's command line wrote (`tests/goldens/state`): read, compared with what is known of them, and written
//! back to the byte.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod case;
mod config;
mod export;
mod history;
mod import;
mod refusals;

use case::Case;

#[tokio::test]
async fn init() {
    Case::open("init").check().await;
}

#[tokio::test]
async fn up() {
    Case::open("up").check().await;
}

#[tokio::test]
async fn unversioned() {
    Case::open("unversioned").check().await;
}

#[tokio::test]
async fn secrets() {
    Case::open("secrets").check().await;
}

#[tokio::test]
async fn gzip() {
    Case::open("gzip").check().await;
}

/// From gzip to none to zstd: what was kept is of all three kinds.
#[tokio::test]
async fn compression_switched() {
    Case::open("compression-switched").check().await;
}

#[tokio::test]
async fn legacy() {
    Case::open("legacy").accepted().check().await;
}

#[tokio::test]
async fn config() {
    Case::open("config").check().await;
}

#[tokio::test]
async fn assets() {
    Case::open("assets").check().await;
}

#[tokio::test]
async fn values() {
    Case::open("values").check().await;
}

#[tokio::test]
async fn references() {
    Case::open("references").check().await;
}

#[tokio::test]
async fn options() {
    Case::open("options").check().await;
}

#[tokio::test]
async fn version_4() {
    Case::open("version-4").check().await;
}

#[tokio::test]
async fn features() {
    Case::open("features").check().await;
}

#[tokio::test]
async fn pending_delete() {
    Case::open("pending-delete").check().await;
}

#[tokio::test]
async fn init_errors() {
    Case::open("init-errors").check().await;
}

#[tokio::test]
async fn killed() {
    Case::open("killed").check().await;
}

#[tokio::test]
async fn provider() {
    Case::open("provider").check().await;
}

#[tokio::test]
async fn read_and_imported() {
    Case::open("read-and-imported").check().await;
}

#[tokio::test]
async fn two_stacks() {
    Case::open("two-stacks").check().await;
}

#[tokio::test]
async fn renamed() {
    Case::open("renamed").check().await;
}

#[tokio::test]
async fn new_passphrase() {
    Case::open("new-passphrase").check().await;
}

/// Its checkpoint came from `stack import`, which escapes for HTML: it reads, and is written as any other.
#[tokio::test]
async fn imported() {
    Case::open("imported").written_back_differs().check().await;
}
