//! Decrypted configuration of a stack.

use engine::ConfigEntry;
use state::StackAccess;
use state::secrets::SecretsError;

/// Returns the configuration of the stack file (`Pulumi.<stack>.yaml`), with decrypted secrets.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be decrypted. A configuration without secrets needs no key.
pub(super) async fn decrypt_config(access: &StackAccess) -> Result<Vec<ConfigEntry>, SecretsError> {
    let crypter = match &access.configured_secrets {
        Some(description) if access.config.values().any(|value| value.is_secret()) => {
            Some(access.keyring.manager(description)?.crypter().await?)
        }
        _ => None,
    };
    let entry = |(key, value): (&String, &state::format::ConfigValue)| {
        let (namespace, name) = key.split_once(':').unwrap_or(("", key));
        Ok(ConfigEntry {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            value: value.program_text(crypter.as_deref())?,
            secret: value.is_secret(),
        })
    };
    access.config.iter().map(entry).collect()
}
