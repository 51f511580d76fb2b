//! Edit of a stack file for another secrets manager, which keeps everything else: comments, order, spelling.

use std::collections::BTreeMap;

use bridge::yaml;

use super::format::ConfigValue;
use super::secrets::{Crypter, SecretsError};
use super::settings::{SettingsError, StackSettings, ciphertexts};
use super::snapshot::SecretsDescription;

/// Keys of the file that describe the secrets manager.
const KEYS: [&str; 3] = ["secretsprovider", "encryptedkey", "encryptionsalt"];

/// Reason why a stack file cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum SettingsEditError {
    /// The file is invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A secret in the file cannot be decrypted, or not be encrypted anew.
    #[error("a secret in the configuration cannot be encrypted anew")]
    Secrets(#[from] SecretsError),
    /// The file is written in a way that a change of single lines cannot preserve.
    #[error("it is not written as pulumi writes it: use `pulumi stack change-secrets-provider`")]
    Layout,
}

/// Secrets managers before and after an edit.
#[derive(Clone, Copy)]
pub struct SettingsEdit<'a> {
    /// Key of the secrets in the file; `None` if the file names no manager.
    pub from: Option<&'a dyn Crypter>,
    /// Key to encrypt the secrets with.
    pub to: &'a dyn Crypter,
    /// Manager that the file names afterwards.
    pub description: &'a SecretsDescription,
}

impl SettingsEdit<'_> {
    /// Returns the text of the file with the manager and the secrets replaced.
    ///
    /// # Errors
    /// [`SettingsEditError`].
    pub fn apply(&self, text: &str, project: &str) -> Result<String, SettingsEditError> {
        let before = StackSettings::parse(text, project)?;
        let mut edited = text.to_owned();
        for ciphertext in before.config.values().flat_map(ciphertexts) {
            let plaintext = self.from.ok_or(SecretsError::KeyNeeded)?.decrypt(&ciphertext)?;
            if !edited.contains(&ciphertext) {
                return Err(SettingsEditError::Layout);
            }
            edited = edited.replace(&ciphertext, &self.to.encrypt(&plaintext)?);
        }
        let edited = self.replace_manager(&edited);
        let after = StackSettings::parse(&edited, project).map_err(|_| SettingsEditError::Layout)?;
        let is_complete = after.secrets.as_ref() == Some(self.description)
            && self.plaintexts(&before, self.from)? == self.plaintexts(&after, Some(self.to))?
            && self.others(text) == self.others(&edited);
        if is_complete { Ok(edited) } else { Err(SettingsEditError::Layout) }
    }

    /// Replaces the lines of the manager, or begins the file with them.
    fn replace_manager(&self, text: &str) -> String {
        let member = |name: &str| self.description.state.get(name).and_then(serde_json::Value::as_str);
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut lines = String::new();
        for (key, value) in KEYS.into_iter().zip([member("url"), member("encryptedkey"), member("salt")]) {
            if let Some(value) = value {
                lines += &format!("{key}: {}\n", quoted(value));
            }
        }
        let is_of_manager = |line: &str| line.split_once(':').is_some_and(|(key, _)| KEYS.contains(&key));
        let (text, mark) = match text.strip_prefix('\u{feff}') {
            Some(rest) => (rest, "\u{feff}"),
            None => (text, ""),
        };
        let mut rest: Vec<&str> = text.split_inclusive('\n').collect();
        let first = rest.iter().position(|line| is_of_manager(line));
        rest.retain(|line| !is_of_manager(line));
        let place = first.unwrap_or_else(|| usize::from(rest.first().is_some_and(|line| line.trim_end() == "---")));
        let (head, tail) = rest.split_at(place.min(rest.len()));
        [mark, &head.concat(), &lines, &tail.concat()].concat()
    }

    fn plaintexts(
        &self,
        settings: &StackSettings,
        crypter: Option<&dyn Crypter>,
    ) -> Result<BTreeMap<String, (String, bool)>, SecretsError> {
        let plain = |(key, value): (&String, &ConfigValue)| {
            Ok((key.clone(), (value.program_text(crypter)?, value.is_secret())))
        };
        settings.config.iter().map(plain).collect()
    }

    /// Returns the members of the file beside its manager and its configuration.
    fn others(&self, text: &str) -> Option<BTreeMap<String, serde_yaml::Value>> {
        let mut members: BTreeMap<String, serde_yaml::Value> =
            yaml::from_str::<Option<_>>(text.trim_start_matches('\u{feff}')).ok()?.unwrap_or_default();
        members.retain(|key, _| !KEYS.contains(&key.as_str()) && key != "config");
        Some(members)
    }
}

#[cfg(test)]
mod tests {
    use super::super::secrets::{MarkerManager, SecretsManager as _};
    use super::*;

    async fn edited(text: &str, state: serde_json::Value) -> Result<String, SettingsEditError> {
        let [old, new] = ["old", "new"].map(MarkerManager::new);
        let [old, new] = [old.crypter().await.unwrap(), new.crypter().await.unwrap()];
        let kind = if state.get("salt").is_some() { "passphrase" } else { "cloud" };
        let description = SecretsDescription { kind: kind.to_owned(), state };
        let edit = SettingsEdit { from: Some(&*old), to: &*new, description: &description };
        edit.apply(text, "reef")
    }

    #[tokio::test]
    async fn manager_and_secrets_are_replaced_and_the_rest_is_kept() {
        let key = serde_json::json!({ "url": "awskms://alias/reef?region=r&a=b", "encryptedkey": "AAAA" });
        let cases = [
            (
                "# ours\nencryptionsalt: v1:salt\nconfig:\n  reef:motto:\n    secure: old:0:otter # secret\n  reef:deep: {a: [{secure: 'old:1:x'}], n: 2.50}\n",
                key.clone(),
                "# ours\nsecretsprovider: \"awskms://alias/reef?region=r&a=b\"\nencryptedkey: \"AAAA\"\nconfig:\n  reef:motto:\n    secure: new:1:otter # secret\n  reef:deep: {a: [{secure: 'new:0:x'}], n: 2.50}\n",
            ),
            (
                "config: {a: 1}\nsecretsprovider: awskms://k\nencryptedkey: BBBB\n",
                serde_json::json!({ "salt": "v1:other" }),
                "config: {a: 1}\nencryptionsalt: \"v1:other\"\n",
            ),
            ("", serde_json::json!({ "salt": "s" }), "encryptionsalt: \"s\"\n"),
            (
                "\u{feff}---\nconfig:\n  a: b",
                serde_json::json!({ "salt": "s" }),
                "\u{feff}---\nencryptionsalt: \"s\"\nconfig:\n  a: b",
            ),
        ];
        for (text, state, expected) in cases {
            assert_eq!(edited(text, state).await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn file_in_another_layout_is_refused() {
        let salt = || serde_json::json!({ "salt": "s" });
        for text in [
            "{encryptionsalt: s, config: {}}",
            "encryptionsalt: >-\n  v1:salt\nconfig: {}\n",
            "config:\n  a: {secure: \"old:0:\\x61\"}\n",
        ] {
            let refused = edited(text, salt()).await;
            assert!(matches!(refused, Err(SettingsEditError::Layout)), "{text}: {refused:?}");
        }
        let other_key = edited("config:\n  a: {secure: 'other:0:x'}\n", salt()).await;
        assert!(matches!(other_key, Err(SettingsEditError::Secrets(SecretsError::Decrypt))));
    }
}
