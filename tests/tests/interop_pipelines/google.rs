//! Stand-ins of Google: tokens and the Service Usage API, where all APIs are off at first; its storage and its keys.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver};

use tests::gcs_server::GcsServer;
use tests::google_kms::{GoogleKms, TOKEN};
use tests::http::{HttpServer, Response};
use tokio::runtime::Runtime;

/// Operation of the Service Usage API that has ended.
pub(crate) const DONE: &str = r#"{"name":"operations/a","done":true}"#;
/// Operation of the Service Usage API that is in progress.
pub(crate) const IN_PROGRESS: &str = r#"{"name":"operations/a"}"#;
/// Operation of the Service Usage API that has failed.
pub(crate) const REFUSED: &str =
    r#"{"name":"operations/a","done":true,"error":{"code":7,"message":"Permission denied to enable service"}}"#;
/// Key that protects the states.
pub(crate) const KEY: &str = "projects/tide-7/locations/europe-north1/keyRings/reef/cryptoKeys/states";

/// Running servers.
pub(crate) struct Google {
    apis: HttpServer,
    storage: GcsServer,
    keys: GoogleKms,
    /// Receives a message for each API that is about to be switched on.
    pub(crate) enabled: Receiver<()>,
    _runtime: Runtime,
}

impl Google {
    /// Starts the servers. `operation`: reply to a request that switches an API on.
    pub(crate) fn start(operation: &'static str) -> Self {
        let (sender, enabled) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let apis = runtime.block_on(HttpServer::start(move |request| {
            let reply = match request.path.as_str() {
                "/token" => format!(r#"{{"access_token":"{TOKEN}","expires_in":3600,"token_type":"Bearer"}}"#),
                path if path.ends_with(":enable") => {
                    sender.send(()).unwrap_or_default();
                    operation.to_owned()
                }
                path if path.ends_with("/operations/a") => operation.to_owned(),
                _ => r#"{"state":"DISABLED"}"#.to_owned(),
            };
            async move { Response::new(200, reply).with("Content-Type", "application/json") }
        }));
        let storage = runtime.block_on(GcsServer::start(Some(TOKEN))).unwrap();
        let keys = runtime.block_on(GoogleKms::start(&[KEY])).unwrap();
        Self { apis: apis.unwrap(), storage, keys, enabled, _runtime: runtime }
    }

    /// Returns the variables that lead `sc` to the servers.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE", self.apis.url()),
            ("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS", self.keys.url()),
            ("STORAGE_EMULATOR_HOST", self.storage.url()),
        ]
    }

    /// Returns an account whose tokens are from the server.
    pub(crate) fn account(&self) -> String {
        format!(
            r#"{{"type":"authorized_user","client_id":"id","client_secret":"low-tide-7","refresh_token":"low-tide-8","token_uri":"{}/token"}}"#,
            self.apis.url()
        )
    }

    /// Returns the APIs that were switched on.
    pub(crate) fn apis(&self) -> BTreeSet<String> {
        let requests = self.apis.requests();
        let enabled = requests.iter().filter_map(|request| request.path.strip_suffix(":enable"));
        enabled.map(|path| path.trim_start_matches("/v1/projects/tide-7/services/").to_owned()).collect()
    }

    /// Returns whether the storage has the state of the stack `reef`.
    pub(crate) fn has_state(&self) -> bool {
        self.storage.object(".pulumi/stacks/tank/reef.json").is_some()
    }

    /// Returns the methods of the key that were called since the previous call of this function.
    pub(crate) fn take_key_methods(&self) -> BTreeSet<String> {
        self.keys.take_methods().into_iter().collect()
    }
}
