//! Hints for failures of key management services.

use super::key_service::KeyFailureKind;

/// Returns the next step after a failure of the service of a key, which the URL of the key names.
pub(super) fn key_hint(url: &str, kind: KeyFailureKind) -> Option<&'static str> {
    if url.starts_with("hashivault://") {
        return vault_hint(kind).or_else(|| general_hint(kind));
    }
    general_hint(kind)
}

fn general_hint(kind: KeyFailureKind) -> Option<&'static str> {
    Some(match kind {
        KeyFailureKind::Url => {
            "write `awskms://ID?region=REGION`, `awskms://alias/NAME?region=REGION`, `awskms:///ARN?region=REGION`, \
             `gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K`, `azurekeyvault://VAULT.vault.azure.net/keys/NAME` or \
             `hashivault://NAME`"
        }
        KeyFailureKind::UnknownKey => "check the id, the account, project or vault, and the region of the key",
        KeyFailureKind::OtherRegion => "write the region of the key in its URL: `?region=REGION`",
        KeyFailureKind::Disabled => "enable the key, or cancel its deletion; the secrets cannot be read without it",
        KeyFailureKind::Denied => {
            "the account needs kms:Encrypt and kms:Decrypt, the role roles/cloudkms.cryptoKeyEncrypterDecrypter, or in Azure the \
             role `Key Vault Crypto User`; AWS also refuses a data key that was encrypted in another region"
        }
        KeyFailureKind::OtherKey => {
            "check the region, the account, the version and the `context_` parameters of the key's URL; `sc stack restore` returns \
             to a state with the earlier key"
        }
        KeyFailureKind::Credentials => {
            "log in again, or set the credentials of the secrets provider in server.yaml; those of Azure are variables of the \
             environment, such as AZURE_CLIENT_ID"
        }
        KeyFailureKind::Unreachable => "check the network, the region and the `endpoint` of the key's URL",
        KeyFailureKind::NoClients => {
            "use a build with the feature `cloud`, which is on by default, or protect the secrets by a passphrase"
        }
        KeyFailureKind::Sealed | KeyFailureKind::Other => return None,
    })
}

/// Returns the hint for a failure of HashiCorp Vault, in the words of its own program.
fn vault_hint(kind: KeyFailureKind) -> Option<&'static str> {
    Some(match kind {
        KeyFailureKind::Url => {
            "write `hashivault://NAME`, or `hashivault://NAME?engine=PATH` if the transit engine is not at `transit`"
        }
        KeyFailureKind::UnknownKey => {
            "check the name of the key, the `?engine=PATH` of its URL, and VAULT_NAMESPACE; a key that was deleted is only in backups \
             of Vault"
        }
        KeyFailureKind::Disabled => {
            "lower `min_decryption_version` of the key; `sc stack change-secrets-provider` then encrypts the data key with its newest \
             version"
        }
        KeyFailureKind::Denied => {
            "the policy of the token needs `update` on ENGINE/encrypt/NAME and ENGINE/decrypt/NAME; Vault replies the same if the key \
             or the engine does not exist: check the URL of the key, and VAULT_NAMESPACE"
        }
        KeyFailureKind::OtherKey => {
            "check the name of the key and the `?engine=PATH` of its URL; `sc stack restore` returns to a state with the earlier key"
        }
        KeyFailureKind::Credentials => {
            "log in again with `vault login`, and set VAULT_ADDR and VAULT_TOKEN, or VAULT_SERVER_URL and VAULT_SERVER_TOKEN"
        }
        KeyFailureKind::Unreachable => "check the network, and VAULT_ADDR or VAULT_SERVER_URL",
        KeyFailureKind::Sealed => "unseal it with `vault operator unseal`, and run the command again",
        KeyFailureKind::Other => "check VAULT_ADDR, and that the engine of the key is one of the type `transit`",
        KeyFailureKind::OtherRegion | KeyFailureKind::NoClients => return None,
    })
}
