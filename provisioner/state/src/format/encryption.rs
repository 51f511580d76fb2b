//! Encryption of the secrets of a text while it is written.

use std::cell::RefCell;

use crate::secrets::{Crypter, ReusePass, SecretsError};

/// Form in which the secrets of a text are written.
pub(crate) enum SecretEncryption<'a> {
    /// No key is available: a secret is an error.
    NoKey,
    /// Plaintext in place of a ciphertext, for secrets nested in a secret: the outer one is encrypted as a whole.
    Nested,
    /// Plaintext, marked as such, for `pulumi stack export --show-secrets`.
    Plaintext,
    /// Ciphertext, encrypted anew with the key.
    WithKey(&'a dyn Crypter),
    /// Loaded ciphertext if the secret is unchanged, else encrypted anew if there is a key.
    Reuse(ReusePass<'a>, Option<&'a dyn Crypter>),
}

impl SecretEncryption<'_> {
    fn encrypt(&mut self, plaintext: String) -> Result<StoredSecret, SecretsError> {
        let ciphertext = match self {
            Self::NoKey => return Err(SecretsError::KeyNeeded),
            Self::Plaintext => return Ok(StoredSecret::Plaintext(plaintext)),
            Self::Nested => plaintext,
            Self::WithKey(crypter) => crypter.encrypt(&plaintext)?,
            Self::Reuse(pass, crypter) => match (pass.take(&plaintext), crypter) {
                (Some(ciphertext), _) => (*ciphertext).to_owned(),
                (None, Some(crypter)) => crypter.encrypt(&plaintext)?,
                (None, None) => return Err(SecretsError::KeyNeeded),
            },
        };
        Ok(StoredSecret::Ciphertext(ciphertext))
    }

    /// Returns the form of the secrets that are nested in a secret.
    fn for_nested(&self) -> SecretEncryption<'static> {
        match self {
            Self::Plaintext => SecretEncryption::Plaintext,
            Self::NoKey | Self::Nested | Self::WithKey(_) | Self::Reuse(..) => SecretEncryption::Nested,
        }
    }
}

/// Secret as a text contains it.
pub(super) enum StoredSecret {
    Ciphertext(String),
    Plaintext(String),
}

impl StoredSecret {
    /// Returns the member of the tagged object that contains the secret.
    pub(super) fn member(&self) -> (&'static str, &str) {
        match self {
            Self::Ciphertext(text) => ("ciphertext", text),
            Self::Plaintext(text) => ("plaintext", text),
        }
    }
}

/// Encryption of the secrets in one text. Serializers get shared references and can only return their own error type,
/// so both fields are cells.
pub(crate) struct Encryption<'a> {
    mode: RefCell<SecretEncryption<'a>>,
    failure: RefCell<Option<SecretsError>>,
}

impl<'a> Encryption<'a> {
    pub(crate) fn new(mode: SecretEncryption<'a>) -> Self {
        Self { mode: RefCell::new(mode), failure: RefCell::default() }
    }

    /// Returns the encryption of the secrets that are nested in a secret.
    pub(super) fn for_nested(&self) -> Encryption<'static> {
        Encryption::new(self.mode.borrow().for_nested())
    }

    /// Encrypts a secret, or returns its plaintext, depending on the mode.
    ///
    /// # Errors
    /// The cause is kept for [`Encryption::take_cause`].
    pub(super) fn encrypt<E: serde::ser::Error>(&self, plaintext: String) -> Result<StoredSecret, E> {
        self.mode.borrow_mut().encrypt(plaintext).map_err(|failure| {
            let error = E::custom(&failure);
            *self.failure.borrow_mut() = Some(failure);
            error
        })
    }

    /// Returns the cause of a failed write, which is always an error of [`Encryption::encrypt`]: nothing else can fail
    /// while a text is written.
    pub(crate) fn take_cause(&self, error: serde_json::Error) -> SecretsError {
        let failure = self.failure.borrow_mut().take();
        failure.unwrap_or_else(|| unreachable!("only encryption fails while a text is written: {error}"))
    }
}
