//! Keys in key management services, which encrypt the data keys of states (docs/spec/state-and-secrets.md#5.4).
//!
//! Input: Pulumi's URL of a key, keys and credentials of the configuration, and the environment of the program. Output:
//! an implementation of [`state::secrets::KeyService`]. Excluded: data keys and secrets themselves.

mod aws;
mod azure;
mod google;
mod services;
mod url;
mod vault;

use async_trait::async_trait;
use state::secrets::{KeyFailure, KeyFailureKind, KeyService};
use zeroize::Zeroizing;

use self::services::failure;

pub use services::KeyServices;

#[async_trait]
impl KeyService for KeyServices {
    async fn encrypt(&self, url: &str, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        match url::scheme(url) {
            "awskms" => aws::Key::open(self, url).await?.encrypt(data_key).await,
            "gcpkms" => google::Key::open(self, url).await?.encrypt(data_key).await,
            "azurekeyvault" => azure::Key::open(self, url).await?.encrypt(data_key).await,
            "hashivault" => vault::Key::open(self, url)?.encrypt(data_key).await,
            _ => Err(unsupported(url)),
        }
    }

    async fn decrypt(&self, url: &str, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
        match url::scheme(url) {
            "awskms" => aws::Key::open(self, url).await?.decrypt(encrypted).await,
            "gcpkms" => google::Key::open(self, url).await?.decrypt(encrypted).await,
            "azurekeyvault" => azure::Key::open(self, url).await?.decrypt(encrypted).await,
            "hashivault" => vault::Key::open(self, url)?.decrypt(encrypted).await,
            _ => Err(unsupported(url)),
        }
    }
}

fn unsupported(url: &str) -> KeyFailure {
    failure(KeyFailureKind::Url, format!("the scheme {:?} is not supported", url::scheme(url)))
}
