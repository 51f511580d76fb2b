//! How the secrets of a text are encrypted while it is written.

use std::cell::RefCell;

use crate::secrets::{Crypter, ReusePass, SecretsError};

/// How the secrets of a text are sealed.
pub(crate) enum Sealing<'a> {
    /// There is no key: a secret is an error.
    Impossible,
    /// Not at all, for the whole text is going to be.
    Clear,
    /// Not at all, for somebody is to see them.
    Shown,
    /// Each afresh.
    Fresh(&'a dyn Crypter),
    /// As loaded where nothing changed, else afresh (where there is a key).
    Reusing(ReusePass<'a>, Option<&'a dyn Crypter>),
}

impl Sealing<'_> {
    fn seal(&mut self, plaintext: String) -> Result<StoredSecret, SecretsError> {
        let ciphertext = match self {
            Self::Impossible => return Err(SecretsError::KeyNeeded),
            Self::Shown => return Ok(StoredSecret::Plaintext(plaintext)),
            Self::Clear => plaintext,
            Self::Fresh(crypter) => crypter.encrypt(&plaintext)?,
            Self::Reusing(pass, crypter) => match (pass.take(&plaintext), crypter) {
                (Some(ciphertext), _) => (*ciphertext).to_owned(),
                (None, Some(crypter)) => crypter.encrypt(&plaintext)?,
                (None, None) => return Err(SecretsError::KeyNeeded),
            },
        };
        Ok(StoredSecret::Ciphertext(ciphertext))
    }

    /// How the secrets in a secret are sealed.
    fn inside(&self) -> Sealing<'static> {
        match self {
            Self::Shown => Sealing::Shown,
            Self::Impossible | Self::Clear | Self::Fresh(_) | Self::Reusing(..) => Sealing::Clear,
        }
    }
}

/// A secret as a text holds it.
pub(super) enum StoredSecret {
    Ciphertext(String),
    Plaintext(String),
}

impl StoredSecret {
    /// Returns the member of the tagged object that holds the secret.
    pub(super) fn member(&self) -> (&'static str, &str) {
        match self {
            Self::Ciphertext(text) => ("ciphertext", text),
            Self::Plaintext(text) => ("plaintext", text),
        }
    }
}

/// The encryption of the secrets in one text. Serializers get shared references only, and no error but their own.
pub(crate) struct Encryption<'a> {
    sealing: RefCell<Sealing<'a>>,
    failure: RefCell<Option<SecretsError>>,
}

impl<'a> Encryption<'a> {
    pub(crate) fn new(sealing: Sealing<'a>) -> Self {
        Self { sealing: RefCell::new(sealing), failure: RefCell::default() }
    }

    /// Returns the encryption of secrets within a secret.
    pub(super) fn inside(&self) -> Encryption<'static> {
        Encryption::new(self.sealing.borrow().inside())
    }

    /// Encrypts a secret, or leaves it as it is.
    ///
    /// # Errors
    /// The reason is kept for [`Encryption::cause`].
    pub(super) fn seal<E: serde::ser::Error>(&self, plaintext: String) -> Result<StoredSecret, E> {
        self.sealing.borrow_mut().seal(plaintext).map_err(|failure| {
            let error = E::custom(&failure);
            *self.failure.borrow_mut() = Some(failure);
            error
        })
    }

    /// Returns why a text could not be written: nothing else can fail.
    pub(crate) fn cause(&self, error: serde_json::Error) -> SecretsError {
        let failure = self.failure.borrow_mut().take();
        failure.unwrap_or_else(|| unreachable!("only encryption fails while a text is written: {error}"))
    }
}
