//! Store of objects that holds the state of a repository instead of a folder in it.

use std::future::Future;
use std::sync::Arc;

use state::store::{Durability, Objects, WriteCondition};
use tokio::runtime::{Builder, Runtime};

/// Largest object that is read.
const LIMIT: u64 = 64 * 1024 * 1024;

/// Store of objects that `sc` and `pulumi` find by its URL.
#[derive(Clone)]
pub struct RemoteStore {
    /// URL, which both programs take.
    pub url: String,
    /// Variables that programs need to open the store, such as credentials.
    pub variables: Vec<(String, String)>,
    objects: Arc<dyn Objects>,
    /// Runtime of the client.
    runtime: Arc<Runtime>,
}

impl RemoteStore {
    /// Creates the store with its client.
    pub fn open(url: String, variables: &[(&str, &str)], client: impl Future<Output = Arc<dyn Objects>>) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let objects = runtime.block_on(client);
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { url, variables, objects, runtime: Arc::new(runtime) }
    }

    /// Returns all objects, by key. Those that a running program removes meanwhile are skipped.
    pub fn read_all(&self) -> Vec<(String, Vec<u8>)> {
        self.runtime.block_on(async {
            let mut objects = Vec::new();
            for listed in self.objects.list_all("").await.unwrap() {
                if let Some(object) = self.objects.read(&listed.name, LIMIT).await.unwrap() {
                    objects.push((listed.name, object.content));
                }
            }
            objects
        })
    }

    /// Writes an object, whatever it was before.
    pub fn write(&self, key: &str, content: Vec<u8>) {
        let written = self.objects.write(key, content.into(), &WriteCondition::None, Durability::Immediate);
        self.runtime.block_on(written).unwrap();
    }
}
