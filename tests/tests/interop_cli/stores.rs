//! Stores in which the tests keep states: folders, buckets of `moto` and of the stand-in of Google Cloud Storage, containers of
//! `azurite`, tables of PostgreSQL.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use cloud::azblob::{AzblobUrl, open_azblob};
use cloud::gcs::{GcsUrl, open_gcs};
use cloud::postgres::{PostgresObjects, PostgresUrl};
use cloud::s3::{S3Url, open_s3};
use state::store::{Objects, OutageReport};
use tests::azurite::{self, Azurite};
use tests::gcs_server::GcsServer;
use tests::moto::MotoServer;
use tests::postgres_server::PostgresServer;
use tests::sdk_providers::{RemoteStore, Repository, Sdk};
use tokio::runtime::{Builder, Runtime};

/// Variables that both programs need for all services of `moto`.
pub(crate) const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "test")];

/// Servers of all tests, each started with the first test that needs it. They end when this is dropped.
#[derive(Default)]
pub(crate) struct Servers {
    moto: OnceLock<MotoServer>,
    azurite: OnceLock<Azurite>,
    google: OnceLock<(GcsServer, Runtime)>,
    postgres: OnceLock<PostgresServer>,
    /// Number of remote stores so far.
    stores: AtomicUsize,
}

/// Kind of a store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Folder of the repository.
    Folder,
    /// Prefix of a bucket that keeps all versions of its objects.
    S3,
    /// Prefix of a container in Azure Blob Storage.
    Azure,
    /// Prefix of a bucket in the stand-in of Google Cloud Storage.
    Google,
    /// Table in PostgreSQL.
    Postgres,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Folder, Self::S3, Self::Azure, Self::Google, Self::Postgres];

    /// Returns the end of the names of tests.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Folder => "",
            Self::S3 => "_in_s3",
            Self::Azure => "_in_azure",
            Self::Google => "_in_gcs_stand_in",
            Self::Postgres => "_in_postgres",
        }
    }
}

/// Kind of the stores of a test, with the servers.
#[derive(Clone, Copy)]
pub(crate) struct Stores<'s> {
    pub(crate) servers: &'s Servers,
    pub(crate) kind: Kind,
}

impl<'s> Stores<'s> {
    /// Returns a new repository, whose state is in a new store.
    pub(crate) fn repository(self) -> Repository {
        let repository = Repository::new(&[Sdk::Go]);
        match self.kind {
            Kind::Folder => repository,
            Kind::S3 => repository.with_remote_store(self.bucket()),
            Kind::Azure => repository.with_remote_store(self.container()),
            Kind::Google => repository.with_remote_store(self.google_bucket()),
            Kind::Postgres => repository.with_remote_store(self.table()),
        }
    }

    /// Creates a key in AWS KMS, and returns its URL. Both programs need [`KEYS`].
    pub(crate) fn new_key(self) -> String {
        let moto = self.moto();
        let id = moto.python("print(client('kms').create_key()['KeyMetadata']['KeyId'])").unwrap();
        format!("awskms://{}?region=us-east-1&endpoint={}", id.trim(), moto.url())
    }

    fn bucket(self) -> RemoteStore {
        let (moto, name) = (self.moto(), self.new_name());
        let versions = "VersioningConfiguration={'Status': 'Enabled'}";
        let create = format!(
            "client('s3').create_bucket(Bucket={name:?})\nclient('s3').put_bucket_versioning(Bucket={name:?}, {versions})"
        );
        moto.python(&create).unwrap();
        let url = format!("s3://{name}/team/a?endpoint={}&s3ForcePathStyle=true&region=us-east-1", moto.url());
        let environment = KEYS.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let parsed = S3Url::parse(&url, &environment).unwrap();
        RemoteStore::open(url, &KEYS, async move {
            open_s3(&parsed, None, &environment, None, OutageReport::default()).await.unwrap()
        })
    }

    fn container(self) -> RemoteStore {
        let server = self.servers.azurite.get_or_init(|| Azurite::start("first").unwrap());
        let name = self.new_name();
        server.node(&format!("await service.getContainerClient({name:?}).create()")).unwrap();
        let url = format!("azblob://{name}/team/a?domain={}&protocol=http", server.host());
        let keys = [("AZURE_STORAGE_ACCOUNT", azurite::ACCOUNT), ("AZURE_STORAGE_KEY", azurite::KEY)];
        let environment = keys.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let parsed = AzblobUrl::parse(&url).unwrap();
        RemoteStore::open(
            url,
            &keys,
            async move { open_azblob(&parsed, &environment, OutageReport::default()).unwrap() },
        )
    }

    fn google_bucket(self) -> RemoteStore {
        let (server, _) = self.servers.google.get_or_init(|| {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            (runtime.block_on(GcsServer::start_open()).unwrap(), runtime)
        });
        let (url, host) = (format!("gs://reef/{}", self.new_name()), server.url().replace("http://", ""));
        // `pulumi` demands a token, also with an emulator.
        let keys = [("STORAGE_EMULATOR_HOST", host.as_str()), ("GOOGLE_OAUTH_ACCESS_TOKEN", "kelp")];
        let environment = keys.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let parsed = GcsUrl::parse(&url).unwrap();
        RemoteStore::open(url, &keys, async move {
            open_gcs(&parsed, None, &environment, None, OutageReport::default()).unwrap()
        })
    }

    fn table(self) -> RemoteStore {
        let server = self.servers.postgres.get_or_init(|| {
            let server = PostgresServer::start(&[]).unwrap();
            server.sql("postgres", "CREATE ROLE ada LOGIN PASSWORD 'kelp'").unwrap();
            server.sql("postgres", "CREATE DATABASE tide OWNER ada").unwrap();
            server
        });
        let (port, name) = (server.port(), self.new_name());
        let url = format!("postgres://ada:kelp@localhost:{port}/tide?table={name}&sslmode=disable");
        let parsed = PostgresUrl::parse(&url, &BTreeMap::new(), None).unwrap();
        RemoteStore::open(url, &[], async move {
            Arc::new(PostgresObjects::new(parsed, OutageReport::default())) as Arc<dyn Objects>
        })
    }

    fn moto(self) -> &'s MotoServer {
        self.servers.moto.get_or_init(|| MotoServer::start().unwrap())
    }

    /// Returns the name of a bucket, container or table that no other test has.
    fn new_name(self) -> String {
        let number = self.servers.stores.fetch_add(1, Ordering::Relaxed) + 1;
        format!("tide{number}")
    }
}
