//! Keys to the secrets of a stack: its passphrase, or its key in a key management service.

use std::path::Path;
use std::sync::Arc;

use bridge::fs::{MAX_DOCUMENT_BYTES, read_named, utf8};
use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic, finish};
use config::{SecretsProvider, Stack};
use pulumi_proto::urn::ROOT_STACK_TYPE;
use state::secrets::{Keyring, Passphrase, Provider, SecretsError};
use state::store::{StackReference, StateStore};
use state::{JournalFolders, SecretsChange, Snapshot, StackAccess, StackView};

use super::key_stack::{key_name, key_stack};
use super::{SetupError, Stacks, clouds};
use crate::program::Program;

/// Environment variables for the passphrase if the configuration has none (docs/spec/state-and-secrets.md#5): the text,
/// or the path of a file that contains it.
const PASSPHRASE: &str = "PULUMI_CONFIG_PASSPHRASE";
const PASSPHRASE_FILE: &str = "PULUMI_CONFIG_PASSPHRASE_FILE";
/// Passphrase of the stacks of keys without one in the environment (docs/spec/simple-container.md#6.4). Known to everyone.
const KEY_STACK_PASSPHRASE: &str = "simple-container.com";
/// Environment variable for a key in place of the configured one.
const SUBSTITUTE: &str = "PULUMI_CLOUD_SECRET_OVERRIDE";

/// Code of errors about the passphrase of a stack.
const PASSPHRASE_CODE: Code = Code("passphrase");
/// Code of errors about the key of a stack in a key management service.
const KEY_CODE: Code = Code("key");
const MISSING_PASSPHRASE: &str = "the state needs a passphrase, and none was given";

impl Stacks {
    /// Returns an error for each requested stack without a passphrase. Call it before a run that records changes. Reads no
    /// passphrase file, and uses no key.
    pub fn check_passphrases(&self) -> Vec<Diagnostic> {
        let environment = &self.process_context.environment;
        let is_in_environment = environment.contains_key(PASSPHRASE)
            || environment.get(PASSPHRASE_FILE).is_some_and(|file| !file.is_empty());
        if is_in_environment {
            return Vec::new();
        }
        let missing = |stack: &Arc<Stack>| {
            if stack.key_of.is_some() {
                return None;
            }
            let SecretsProvider::Passphrase { passphrase: None, span } = &stack.provisioner.secrets_provider else {
                return None;
            };
            Some(Diagnostic::error(PASSPHRASE_CODE, *span, MISSING_PASSPHRASE).help(format_args!(
                "set `passPhrase` of the secrets provider, or the environment variable {PASSPHRASE} or {PASSPHRASE_FILE}"
            )))
        };
        let mut found: Vec<Diagnostic> = self.requested().filter_map(missing).collect();
        // Several stacks may inherit one secrets provider.
        finish(&mut found);
        found
    }

    /// Returns the keys of a stack. Derives and requests none. `key_url` is the URL of the key that a run has created for it.
    pub(super) fn keyring(
        &self,
        stack: &Stack,
        name: &StackReference,
        key_url: Option<String>,
    ) -> Result<Keyring, SetupError> {
        let environment = &self.process_context.environment;
        let secrets_provider = &stack.provisioner.secrets_provider;
        let provider = match secrets_provider {
            SecretsProvider::Passphrase { .. } => Some(Provider::Passphrase),
            SecretsProvider::Key { url, .. } => Some(Provider::Key { url: url.clone() }),
            SecretsProvider::ProvisionedKey(_) => key_url.map(|url| Provider::Key { url }),
        };
        let substitute = environment.get(SUBSTITUTE).filter(|url| !url.is_empty()).cloned();
        let service = clouds::key_service(secrets_provider.account(), &self.process_context);
        let keyring = Keyring::new(self.passphrase(stack)?)
            .with_key_service(service, &name.to_string())
            .with_substitute(substitute);
        Ok(match provider {
            Some(provider) => keyring.with_provider(provider),
            None => keyring.awaiting_key(),
        })
    }

    /// Returns the passphrase: that of the configuration, else of the environment, else of the file named in the
    /// environment. Adds the last two to the masked secrets; that of the configuration is masked already. The stack of a key
    /// has that of the environment, else a default.
    fn passphrase(&self, stack: &Stack) -> Result<Option<Passphrase>, SetupError> {
        if let Some(passphrase) = stack.provisioner.secrets_provider.passphrase() {
            return Ok(Some(Passphrase::new(passphrase.expose())));
        }
        let known = |passphrase: &str| {
            self.masker.add_text(passphrase);
            Ok(Some(Passphrase::new(passphrase)))
        };
        let environment = &self.process_context.environment;
        if stack.key_of.is_some() && environment.get(PASSPHRASE).is_none_or(String::is_empty) {
            return Ok(Some(Passphrase::new(KEY_STACK_PASSPHRASE)));
        }
        if let Some(passphrase) = environment.get(PASSPHRASE) {
            return known(passphrase);
        }
        let Some(file) = environment.get(PASSPHRASE_FILE).filter(|file| !file.is_empty()) else {
            return Ok(None);
        };
        let path = Path::new(file);
        let text = read_named(path, MAX_DOCUMENT_BYTES).map_err(|error| error.source).and_then(utf8);
        let unreadable =
            |source| SetupError::PassphraseFile { variable: PASSPHRASE_FILE, path: path.to_owned(), source };
        known(text.map_err(unreadable)?.trim())
    }

    /// Returns the programs of the keys that the requested stacks ask for.
    pub fn key_programs(&self) -> Vec<Program> {
        self.requested().filter_map(|stack| key_stack(stack)).map(|key| self.program(&key)).collect()
    }

    /// Returns the URL of the key that a stack asks for: an output of the stack of the key, in the same store. Reads it without
    /// a key. `None` if the key has not been created, or if the run that creates it has not ended properly.
    pub(super) async fn key_url(
        &self,
        stack: &Stack,
        store: &StateStore,
        journals: &JournalFolders,
    ) -> Result<Option<String>, SetupError> {
        let Some(key) = key_stack(stack) else { return Ok(None) };
        let access = self.stack_access(&key, store.clone(), journals.clone(), None)?;
        let view = StackView::open_without_secrets(&access).await;
        let view = view.map_err(|source| SetupError::KeyStack { stack: key.name.clone(), source: Box::new(source) })?;
        let snapshot = view.snapshot.filter(|_| view.recovered.is_none());
        Ok(snapshot.and_then(|snapshot| url_in(&snapshot, &key_name(stack))))
    }
}

/// Returns the error at the secrets provider of a stack, if its passphrase or its key is the reason of an error.
pub fn secrets_diagnostic(stack: &Stack, error: &SecretsError) -> Option<Diagnostic> {
    let provider = &stack.provisioner.secrets_provider;
    let (code, summary) = match (error, provider) {
        (SecretsError::NoPassphrase, SecretsProvider::Passphrase { .. }) => (PASSPHRASE_CODE, MISSING_PASSPHRASE),
        (SecretsError::NoPassphrase, SecretsProvider::Key { .. } | SecretsProvider::ProvisionedKey(_)) => {
            let summary = "the state is protected by a passphrase so far, and none was given";
            let help =
                MessageText::new(format_args!("set {PASSPHRASE} or {PASSPHRASE_FILE} until the state has this key"));
            return Some(Diagnostic::error(PASSPHRASE_CODE, provider.span(), summary).help(help));
        }
        (SecretsError::WrongPassphrase, SecretsProvider::Passphrase { .. }) => {
            (PASSPHRASE_CODE, "the state has another passphrase")
        }
        (SecretsError::Key(error), SecretsProvider::Key { url, .. }) if error.url == *url => {
            (KEY_CODE, "this key cannot be used")
        }
        (SecretsError::Key(_), SecretsProvider::ProvisionedKey(_)) => (KEY_CODE, "this key cannot be used"),
        (SecretsError::KeyNotCreated, SecretsProvider::ProvisionedKey(_)) => {
            (KEY_CODE, "this key has not been created yet")
        }
        _ => return None,
    };
    Some(Diagnostic::error(code, provider.span(), summary))
}

/// Returns the message about a state that is encrypted anew with another secrets provider.
pub fn secrets_change_text(access: &StackAccess, change: &SecretsChange) -> MessageText {
    let name = |description| Provider::of(description).map_or_else(|| "another service".to_owned(), |p| p.to_string());
    let (from, to) = (name(&change.from), name(&change.to));
    let settings = format!("Pulumi.{}.yaml", access.stack.stack());
    let reason = match (&access.configured_secrets, access.keyring.provider()) {
        _ if from == to => MessageText::new(format_args!("with the data of {settings}")),
        (_, Some(chosen)) if Some(chosen) == Provider::of(&change.to).as_ref() => "as server.yaml names it".into(),
        (Some(configured), _) if Provider::of(configured) == Provider::of(&change.to) => {
            MessageText::new(format_args!("as {settings} names it"))
        }
        _ => MessageText::new(format_args!("as {SUBSTITUTE} names it")),
    };
    MessageText::new(format_args!(
        "the secrets of {} are encrypted anew: with {to}, {reason}; so far with {from}, as its earlier copies still are",
        access.stack
    ))
}

/// Returns the warning about a stack file that names another secrets provider than server.yaml.
pub(super) fn other_provider_text(access: &StackAccess) -> Option<MessageText> {
    let (chosen, configured) = (access.keyring.provider()?, Provider::of(access.configured_secrets.as_ref()?)?);
    if *chosen == configured {
        return None;
    }
    let settings = format!("Pulumi.{}.yaml", access.stack.stack());
    Some(MessageText::new(format_args!(
        "{settings} names {configured} for the secrets, and server.yaml {chosen}: the state has that of {settings} until \
         `sc stack change-secrets-provider` changes both"
    )))
}

/// Returns the URL of a key among the outputs of its stack.
fn url_in(snapshot: &Snapshot, output: &str) -> Option<String> {
    let root = snapshot.resources.iter().find(|resource| resource.urn.type_token() == ROOT_STACK_TYPE)?;
    root.outputs.get(output)?.as_str().filter(|url| !url.is_empty()).map(str::to_owned)
}
