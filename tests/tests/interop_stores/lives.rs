//! Stores behind `sc` and behind the interface of a store.

use std::sync::Arc;

use state::store::{Objects, StateStore, StoreOptions, compliance};
use tests::azurite::Azurite;
use tests::gcs_server::GcsServer;

use crate::life::{Repository, lead_a_whole_life};
use crate::{azblob, postgres, s3};

/// Runs the compliance tests of stores, whose second contender sees what the first one has written.
async fn check_compliance(objects: Arc<dyn Objects>) {
    compliance::run(&StateStore::open(objects, StoreOptions::default()).await.unwrap()).await;
}

#[test]
fn stack_in_a_folder_has_a_whole_life() {
    let folder = tempfile::tempdir().unwrap();
    let storage = format!("{{ type: fs, config: {{ path: \"file://{}\" }} }}", folder.path().display());
    lead_a_whole_life(&Repository::new(&storage, &[]));
}

#[tokio::test]
async fn store_in_s3_is_compliant() {
    let server = s3::with_bucket("reef");
    check_compliance(s3::open(&server, "reef/team").await).await;
}

/// Shows: state.md#stores "All commands work on each store."
#[test]
fn stack_in_s3_has_a_whole_life() {
    let server = s3::with_bucket("reef");
    lead_a_whole_life(&Repository::in_s3(server.url()));
}

#[tokio::test]
async fn store_in_postgres_is_compliant() {
    let server = postgres::start(&[]);
    check_compliance(Arc::new(postgres::open(&postgres::url(&server, "ada", "reef", "sslmode=disable")))).await;
}

/// Shows: state.md#stores "All commands work on each store."
#[test]
fn stack_in_postgres_has_a_whole_life() {
    let server = postgres::start(&[]);
    lead_a_whole_life(&Repository::in_postgres(server.port()));
}

/// Shows: state.md#stores "All commands work on each store."
#[tokio::test(flavor = "multi_thread")]
async fn stack_in_google_cloud_storage_has_a_whole_life() {
    let server = GcsServer::start(None).await.unwrap();
    let host = server.url();
    let life = tokio::task::spawn_blocking(move || lead_a_whole_life(&Repository::in_google_cloud_storage(&host)));
    life.await.unwrap();
}

#[tokio::test]
async fn store_in_azure_is_compliant() {
    let server = Azurite::start("reef").unwrap();
    check_compliance(azblob::open(&server, "reef/team")).await;
}

/// Shows: state.md#stores "All commands work on each store."
#[test]
fn stack_in_azure_has_a_whole_life() {
    let server = Azurite::start("reef").unwrap();
    lead_a_whole_life(&Repository::in_azure(server.host()));
}
