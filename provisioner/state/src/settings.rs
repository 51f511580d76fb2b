//! Stack file `Pulumi.<stack>.yaml`: settings that Pulumi's command line keeps beside a project
//! (docs/spec/state-and-secrets.md#6.2).
//!
//! The file is read if it exists. Only a change of the secrets manager edits it: [`SettingsEdit`](super::SettingsEdit).

use std::collections::BTreeMap;

use bridge::error::shorten;
use bridge::yaml::{self, YamlError};

use super::format::ConfigValue;
use super::secrets::{Crypter, SecretsError, describe_cloud};
use super::snapshot::SecretsDescription;

/// Settings of a stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackSettings {
    /// Secrets manager of the stack, if the file names one.
    pub secrets: Option<SecretsDescription>,
    /// Configuration by key, `namespace:name`.
    pub config: BTreeMap<String, ConfigValue>,
}

/// Reason why the settings of a stack are invalid.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file is not YAML, or has the wrong shape.
    #[error("it is not a stack file")]
    Malformed(#[source] YamlError),
    /// A key has too many parts, or an empty one.
    #[error("{:?} is not a configuration key (expected NAMESPACE:NAME)", shorten(.0))]
    Key(String),
    /// A value has no counterpart in JSON.
    #[error("the value of {:?} cannot be used", shorten(.0))]
    Value(String),
}

#[derive(serde::Deserialize)]
struct StoredSettings {
    secretsprovider: Option<String>,
    encryptedkey: Option<String>,
    encryptionsalt: Option<String>,
    config: Option<BTreeMap<String, serde_yaml::Value>>,
}

impl StackSettings {
    /// Reads the text of the file. Keys without a namespace belong to the project.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn parse(text: &str, project: &str) -> Result<Self, SettingsError> {
        let text = text.trim_start_matches('\u{feff}');
        let stored: Option<StoredSettings> = yaml::from_str(text).map_err(SettingsError::Malformed)?;
        let Some(mut stored) = stored else { return Ok(Self::default()) };
        let mut config = BTreeMap::new();
        for (key, value) in stored.config.take().unwrap_or_default() {
            let value = to_json(value).ok_or_else(|| SettingsError::Value(key.clone()))?;
            config.insert(full_key(&key, project)?, ConfigValue(value));
        }
        Ok(Self { secrets: stored.secrets(), config })
    }
}

impl StoredSettings {
    fn secrets(self) -> Option<SecretsDescription> {
        let provider = self.secretsprovider.unwrap_or_default();
        if !["", "passphrase", "default"].contains(&provider.as_str()) {
            return Some(describe_cloud(&provider, &self.encryptedkey.unwrap_or_default()));
        }
        let salt = self.encryptionsalt?;
        Some(SecretsDescription { kind: "passphrase".to_owned(), state: serde_json::json!({ "salt": salt }) })
    }
}

impl ConfigValue {
    /// Returns `true` if the value is secret or contains a secret at any depth.
    pub fn is_secret(&self) -> bool {
        fn has_secret(value: &serde_json::Value) -> bool {
            match value {
                serde_json::Value::Object(members) => {
                    secure_ciphertext(value).is_some() || members.values().any(has_secret)
                }
                serde_json::Value::Array(items) => items.iter().any(has_secret),
                _ => false,
            }
        }
        has_secret(&self.0)
    }

    /// Returns the value as a program receives it: a string verbatim, any other value in compact JSON, secrets
    /// decrypted.
    ///
    /// # Errors
    /// [`SecretsError`] if a secret cannot be decrypted, [`SecretsError::KeyNeeded`] without a key.
    pub fn program_text(&self, crypter: Option<&dyn Crypter>) -> Result<String, SecretsError> {
        Ok(match decrypt_secrets(&self.0, crypter)? {
            serde_json::Value::String(text) => text,
            value => super::format::compact_json(&value),
        })
    }
}

/// Returns the ciphertext of a value that is secret as a whole.
fn secure_ciphertext(value: &serde_json::Value) -> Option<&str> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.get("secure")?.as_str()
}

/// Returns the ciphertexts of the secrets in a value.
pub(super) fn ciphertexts(value: &ConfigValue) -> Vec<String> {
    fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
        match (secure_ciphertext(value), value) {
            (Some(ciphertext), _) => found.push(ciphertext.to_owned()),
            (None, serde_json::Value::Object(members)) => members.values().for_each(|value| collect(value, found)),
            (None, serde_json::Value::Array(items)) => items.iter().for_each(|value| collect(value, found)),
            (None, _) => {}
        }
    }
    let mut found = Vec::new();
    collect(&value.0, &mut found);
    found
}

/// Returns the value with its secrets decrypted and its members sorted.
fn decrypt_secrets(
    value: &serde_json::Value,
    crypter: Option<&dyn Crypter>,
) -> Result<serde_json::Value, SecretsError> {
    if let Some(ciphertext) = secure_ciphertext(value) {
        return Ok(crypter.ok_or(SecretsError::KeyNeeded)?.decrypt(ciphertext)?.into());
    }
    Ok(match value {
        serde_json::Value::Array(items) => {
            items.iter().map(|item| decrypt_secrets(item, crypter)).collect::<Result<Vec<_>, _>>()?.into()
        }
        serde_json::Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().collect();
            let members = sorted.into_iter().map(|(name, value)| Ok((name.clone(), decrypt_secrets(value, crypter)?)));
            serde_json::Value::Object(members.collect::<Result<_, SecretsError>>()?)
        }
        other => other.clone(),
    })
}

fn full_key(key: &str, project: &str) -> Result<String, SettingsError> {
    let parts: Vec<&str> = key.split(':').collect();
    let (namespace, name) = match parts[..] {
        [name] => (project, name),
        [namespace, name] | [namespace, "config", name] => (namespace, name),
        _ => return Err(SettingsError::Key(key.to_owned())),
    };
    if namespace.is_empty() || name.is_empty() {
        return Err(SettingsError::Key(key.to_owned()));
    }
    Ok(format!("{namespace}:{name}"))
}

/// Converts a value to JSON; `None` if it has no counterpart. A null at the top becomes the empty string.
fn to_json(value: serde_yaml::Value) -> Option<serde_json::Value> {
    if value.is_null() {
        return Some(String::new().into());
    }
    nested_to_json(value)
}

fn nested_to_json(value: serde_yaml::Value) -> Option<serde_json::Value> {
    Some(match value {
        serde_yaml::Value::Null => serde_json::Value::Null,
        serde_yaml::Value::Bool(value) => value.into(),
        serde_yaml::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => serde_json::Number::from_f64(number.as_f64()?)?.into(),
        },
        serde_yaml::Value::String(text) => text.into(),
        serde_yaml::Value::Sequence(items) => items.into_iter().map(nested_to_json).collect::<Option<Vec<_>>>()?.into(),
        serde_yaml::Value::Mapping(members) => {
            let members = members.into_iter().map(|(name, value)| match name {
                serde_yaml::Value::String(name) => Some((name, nested_to_json(value)?)),
                _ => None,
            });
            serde_json::Value::Object(members.collect::<Option<_>>()?)
        }
        serde_yaml::Value::Tagged(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> BTreeMap<String, ConfigValue> {
        StackSettings::parse(&format!("config:\n  {text}\n"), "reef").unwrap().config
    }

    #[test]
    fn keys_without_a_namespace_belong_to_the_project() {
        for key in ["size", "reef:size", "reef:config:size"] {
            let found: Vec<_> = config(&format!("{key}: 1")).into_keys().collect();
            assert_eq!(found, ["reef:size"]);
        }
        for key in ["a:b:c", "\":b\"", "\"a:\""] {
            assert!(StackSettings::parse(&format!("config: {{{key}: 1}}"), "reef").is_err(), "{key}");
        }
    }

    #[test]
    fn config_strings_are_verbatim_and_other_values_are_json() {
        let cases = [
            ("a <b>", "a <b>"),
            ("\"5\"", "5"),
            ("2.50", "2.5"),
            ("true", "true"),
            ("", ""),
            ("[1, null, \"<\"]", "[1,null,\"\\u003c\"]"),
            ("{b: 1, a: x}", "{\"a\":\"x\",\"b\":1}"),
        ];
        for (yaml, expected) in cases {
            assert_eq!(config(&format!("k: {yaml}"))["reef:k"].program_text(None).unwrap(), expected);
        }
    }

    #[test]
    fn value_with_a_nested_secret_is_secret() {
        let config = config("k: {deep: [{secure: v1:x}]}");
        assert!(config["reef:k"].is_secret());
        assert_eq!(config["reef:k"].program_text(None), Err(SecretsError::KeyNeeded));
    }

    #[test]
    fn secrets_manager_is_read_from_the_file() {
        let parse = |text| StackSettings::parse(text, "reef").unwrap().secrets;
        assert_eq!(parse("\u{feff}encryptionsalt: v1:x:y").unwrap().kind, "passphrase");
        assert_eq!(parse("secretsprovider: awskms://k\nencryptedkey: abc").unwrap().kind, "cloud");
        assert_eq!(parse(""), None);
    }
}
