//! The keys of a profile (docs/spec/simple-container.md#1.2), read when they are needed.

use std::cell::OnceCell;
use std::fmt;
use std::path::{Path, PathBuf};

use bridge::fs::{FileError, MAX_DOCUMENT_BYTES, read_regular, utf8};
use zeroize::Zeroizing;

use super::error::KeyError;
use super::private::PrivateKey;
use super::public::{PublicKey, Recipient};

/// File of the accounts of the machine, in which the home folder of another user is looked up.
const ACCOUNTS: &str = "/etc/passwd";

/// Fields of a profile about its keys. Empty fields are `None`.
#[derive(Clone, Default)]
pub struct KeyConfig {
    /// Root of the repository, at which relative paths start.
    pub root: PathBuf,
    /// Home folder of the user, for paths that begin with `~/`.
    pub home: Option<PathBuf>,
    /// `privateKeyPath`
    pub private_key_path: Option<String>,
    /// `publicKeyPath`
    pub public_key_path: Option<String>,
    /// `privateKey`
    pub private_key: Option<Zeroizing<String>>,
    /// `publicKey`
    pub public_key: Option<String>,
    /// `privateKeyPassword`
    pub passphrase: Option<Zeroizing<String>>,
}

/// Shows no secrets.
impl fmt::Debug for KeyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyConfig")
            .field("private_key_path", &self.private_key_path)
            .field("public_key_path", &self.public_key_path)
            .field("public_key", &self.public_key)
            .finish_non_exhaustive()
    }
}

/// The keys of a profile. Each is read once, when it is needed first.
#[derive(Debug)]
pub struct OwnKeys {
    config: KeyConfig,
    public: OnceCell<PublicKey>,
    private: OnceCell<PrivateKey>,
}

impl OwnKeys {
    /// Takes the keys of a profile, and reads none.
    pub fn new(config: KeyConfig) -> Self {
        Self { config, public: OnceCell::new(), private: OnceCell::new() }
    }

    /// Returns the same keys with a passphrase, which the user was asked for.
    #[must_use]
    pub fn with_passphrase(&self, passphrase: Zeroizing<String>) -> Self {
        Self::new(KeyConfig { passphrase: Some(passphrase), ..self.config.clone() })
    }

    /// Returns the public key. An inline key precedes that of a file, which must exist nevertheless.
    ///
    /// # Errors
    /// [`KeyError`]. The key may be one that no cipher is known for.
    pub fn public(&self) -> Result<&PublicKey, KeyError> {
        if let Some(known) = self.public.get() {
            return Ok(known);
        }
        let file = self.config.public_key_path.as_deref().map(|path| self.read("publicKeyPath", path)).transpose()?;
        let inline = self.config.public_key.as_deref();
        let text = inline.or(file.as_ref().map(|text| text.as_str())).ok_or(KeyError::NoPublic)?;
        let key = PublicKey::of_line(text);
        if key.as_str().is_empty() {
            return Err(KeyError::NoPublic);
        }
        Ok(self.public.get_or_init(|| key))
    }

    /// Returns whether the profile has a private key.
    pub fn has_private(&self) -> bool {
        self.config.private_key.is_some() || self.config.private_key_path.is_some()
    }

    /// Returns the private key, which belongs to the public key of the profile.
    ///
    /// # Errors
    /// [`KeyError`]: [`KeyError::PassphraseMissing`] if a passphrase is needed and the profile has none.
    pub fn private(&self) -> Result<&PrivateKey, KeyError> {
        if let Some(known) = self.private.get() {
            return Ok(known);
        }
        let config = &self.config;
        let (text, name) = match (&config.private_key, &config.private_key_path) {
            (Some(_), Some(_)) => return Err(KeyError::BothPrivate),
            (None, None) => return Err(KeyError::NoPrivate),
            (Some(text), None) => (text.clone(), "`privateKey` of the profile".to_owned()),
            (None, Some(path)) => {
                (self.read("privateKeyPath", path)?, format!("the private key {}", self.locate(path)?.display()))
            }
        };
        let key = PrivateKey::parse(&text, self.passphrase(), &name)?;
        if !is_same_key(&key.recipient()?, &self.public()?.recipient()?) {
            return Err(KeyError::Mismatch { name });
        }
        Ok(self.private.get_or_init(|| key))
    }

    /// Checks that the profile does not name a private key twice, without reading one.
    ///
    /// # Errors
    /// [`KeyError::BothPrivate`].
    pub fn check(&self) -> Result<(), KeyError> {
        match (&self.config.private_key, &self.config.private_key_path) {
            (Some(_), Some(_)) => Err(KeyError::BothPrivate),
            _ => Ok(()),
        }
    }

    /// Returns the home folder of the user, in which paths that begin with `~/` start.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.config.home.as_deref()
    }

    /// Returns the passphrase of the private key, if the profile has one.
    pub(crate) fn passphrase(&self) -> Option<&str> {
        self.config.passphrase.as_ref().map(|passphrase| passphrase.as_str())
    }

    /// Returns the file of the private key; `None` if the profile names none, or one in an unknown home folder.
    pub(crate) fn private_key_file(&self) -> Option<PathBuf> {
        self.locate(self.config.private_key_path.as_deref()?).ok()
    }

    fn read(&self, field: &'static str, path: &str) -> Result<Zeroizing<String>, KeyError> {
        let file = self.locate(path)?;
        let text = read_regular(&file, MAX_DOCUMENT_BYTES).and_then(utf8).map_err(FileError::of("read", &file));
        text.map(Zeroizing::new).map_err(|source| KeyError::File { field, source })
    }

    fn locate(&self, path: &str) -> Result<PathBuf, KeyError> {
        key_file(&self.config.root, self.home(), path)
    }
}

/// Returns the file of a path in a profile: `~/` and `~user/` are home folders, a relative path starts at the root.
///
/// # Errors
/// [`KeyError::NoHome`].
pub(crate) fn key_file(root: &Path, home: Option<&Path>, path: &str) -> Result<PathBuf, KeyError> {
    let no_home = || KeyError::NoHome(path.to_owned());
    let Some(rest) = path.strip_prefix('~') else { return Ok(root.join(path)) };
    match rest.split_once('/') {
        Some(("", rest)) => Ok(home.ok_or_else(no_home)?.join(rest)),
        Some((user, rest)) => Ok(home_of(user).ok_or_else(no_home)?.join(rest)),
        None => Ok(root.join(path)),
    }
}

/// Returns the home folder of a user of the machine.
fn home_of(user: &str) -> Option<PathBuf> {
    let accounts = read_regular(Path::new(ACCOUNTS), MAX_DOCUMENT_BYTES).and_then(utf8).ok()?;
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == user).then(|| fields.nth(4).map(PathBuf::from))?
    })
}

fn is_same_key(a: &Recipient, b: &Recipient) -> bool {
    match (a, b) {
        (Recipient::Rsa(a), Recipient::Rsa(b)) => a == b,
        (Recipient::Ed25519 { key: a, .. }, Recipient::Ed25519 { key: b, .. }) => a == b,
        _ => false,
    }
}
