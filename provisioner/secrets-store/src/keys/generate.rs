//! New key pairs, as the Go program makes them: RSA with 2048 bits.

use getrandom::SysRng;
use rsa::pkcs1::{EncodeRsaPrivateKey as _, LineEnding};
use rsa::traits::PublicKeyParts as _;
use ssh_key::Mpint;
use ssh_key::public::{KeyData, RsaPublicKey};
use zeroize::Zeroizing;

use super::error::KeyError;

const BITS: usize = 2048;

/// A new key pair.
pub struct KeyPair {
    /// The private key, as PEM of PKCS#1.
    pub private: Zeroizing<String>,
    /// The public key, as a line in the format of OpenSSH.
    pub public: String,
}

/// Shows no private key.
impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPair").field("public", &self.public).finish_non_exhaustive()
    }
}

impl KeyPair {
    /// Generates a key pair.
    ///
    /// # Errors
    /// [`KeyError::InvalidRsa`] if the system has no random bytes.
    pub fn generate() -> Result<Self, KeyError> {
        let key = rsa::PrivateKey::new(&mut SysRng, BITS).map_err(|_| KeyError::InvalidRsa)?;
        let private = key.to_pkcs1_pem(LineEnding::LF).map_err(|_| KeyError::InvalidRsa)?;
        let number = |bytes: Box<[u8]>| Mpint::from_positive_bytes(&bytes);
        let public = RsaPublicKey::new(
            number(key.e().to_be_bytes_trimmed_vartime()),
            number(key.n().to_be_bytes_trimmed_vartime()),
        );
        let public = public.map(|public| ssh_key::PublicKey::from(KeyData::Rsa(public)));
        let public = public.and_then(|public| public.to_openssh()).map_err(|_| KeyError::InvalidRsa)?;
        Ok(Self { private, public })
    }
}
