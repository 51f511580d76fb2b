//! Detached OpenPGP signatures of checksum files: which of the keys that a registry names has made one.
//!
//! Excluded: whether a key is to be trusted. The lock file records its fingerprint, and another one is refused.

use pgp::composed::{Deserializable as _, DetachedSignature, SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{Signature, SignatureType};
use pgp::types::KeyDetails as _;

/// Greatest number of signatures in a file, and of keys, that are read.
const MAX_SIGNATURES: usize = 16;
const MAX_KEYS: usize = 64;

/// Reason why no key has signed a checksum file.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The registry names keys, but no signature.
    #[error("the registry names keys of the author, but no signature")]
    Missing,
    /// The signature is malformed.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// A key is malformed.
    #[error("a key that the registry names cannot be read: {0}")]
    UnreadableKey(String),
    /// The signature is of other content, or of another key.
    #[error("it is made by none of the keys that the registry names ({}), or for another content", .0.join(", "))]
    OtherKey(Vec<String>),
}

/// Returns the fingerprint of the key that has signed a content, in upper case: that of the primary key, if one of its subkeys has signed.
/// `keys` have armor. A key that its owner has revoked signs nothing; one that has expired does, since what it has signed stays signed.
///
/// # Errors
/// [`SignatureError`].
pub(super) fn signer(content: &[u8], signature: &[u8], keys: &[String]) -> Result<String, SignatureError> {
    let unreadable = |error: pgp::errors::Error| SignatureError::Unreadable(error.to_string());
    let (signatures, _) = DetachedSignature::from_reader_many(signature).map_err(unreadable)?;
    let signatures: Vec<DetachedSignature> =
        signatures.take(MAX_SIGNATURES).collect::<Result<_, _>>().map_err(unreadable)?;
    let unreadable = |error: pgp::errors::Error| SignatureError::UnreadableKey(error.to_string());
    let mut named = Vec::new();
    for armored in keys {
        let (found, _) = SignedPublicKey::from_string_many(armored).map_err(unreadable)?;
        for key in found.take(MAX_KEYS) {
            let key = key.map_err(unreadable)?;
            let fingerprint = format!("{:X}", key.primary_key.fingerprint());
            if !is_revoked(&key) && signatures.iter().any(|signature| has_made(&key, signature, content)) {
                return Ok(fingerprint);
            }
            named.push(fingerprint);
        }
    }
    Err(SignatureError::OtherKey(named))
}

fn is_revoked(key: &SignedPublicKey) -> bool {
    let is_valid = |signature: &Signature| {
        signature.typ() == Some(SignatureType::KeyRevocation) && signature.verify_key(&key.primary_key).is_ok()
    };
    key.details.revocation_signatures.iter().any(is_valid)
}

/// Returns whether a signature of a content is made by a key, or by one of its subkeys.
fn has_made(key: &SignedPublicKey, signature: &DetachedSignature, content: &[u8]) -> bool {
    let is_strong =
        |algorithm| !matches!(algorithm, HashAlgorithm::Md5 | HashAlgorithm::Sha1 | HashAlgorithm::Ripemd160);
    // A signature over a text would be valid for other bytes as well.
    if signature.signature.typ() != Some(SignatureType::Binary)
        || !signature.signature.hash_alg().is_some_and(is_strong)
    {
        return false;
    }
    let by_subkey =
        |subkey: &SignedPublicSubKey| may_sign(key, subkey) && signature.verify(&subkey.key, content).is_ok();
    signature.verify(&key.primary_key, content).is_ok() || key.public_subkeys.iter().any(by_subkey)
}

/// Returns whether a subkey signs for a key: both say so, and the subkey is not revoked.
fn may_sign(key: &SignedPublicKey, subkey: &SignedPublicSubKey) -> bool {
    let is_by_primary = |signature: &&Signature| signature.verify_subkey_binding(&key.primary_key, &subkey.key).is_ok();
    let is_revocation = |signature: &Signature| signature.typ() == Some(SignatureType::SubkeyRevocation);
    let mut binds = false;
    for signature in subkey.signatures.iter().filter(is_by_primary) {
        if is_revocation(signature) {
            return false;
        }
        let agrees = |back: &Signature| back.verify_primary_key_binding(&subkey.key, &key.primary_key).is_ok();
        binds |= signature.key_flags().sign() && signature.embedded_signature().is_some_and(agrees);
    }
    binds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key of GnuPG that certifies only, with a subkey that signs.
    const KEY: &str = "\
-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaw2m6hYJKwYBBAHaRw8BAQdANxh4LQC8ZZKw1YHzDzLkShDAgzzfpxC44HiO
9FESx/i0GFJlZWYgPHJlZWZAcmVlZi5leGFtcGxlPoiQBBMWCAA4FiEE+EUYq5Ar
20pGQfoHSEHjCGjvpNkFAmsNpuoCGwEFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AA
CgkQSEHjCGjvpNmKuAEAtYKUOh2xACSIgbIoJ++gvdfWFuvrpUDHVhHxe5UNWIEA
/2hWqfc0OSPgJ17U6rKhPcgHhwxhtSu7C4SLj6+VSk0IuDMEaw2m6hYJKwYBBAHa
Rw8BAQdA9pbTYFQGArKDBFTOoidBXoEkG/7Q1wBdylMJyFy0V/iI7wQYFggAIBYh
BPhFGKuQK9tKRkH6B0hB4who76TZBQJrDabqAhsCAIEJEEhB4who76TZdiAEGRYI
AB0WIQQViN3U7+mydpuvlNc8mAz9gGIDWwUCaw2m6gAKCRA8mAz9gGIDW11bAP9G
QeSUB7Dcu2W5rrUjHtQBx6EvomKb9/XLlGOuP6qPqgD/a3bFmNkTNzJFor/qvpMY
vyj2gulWTzTi8SnTUifGlQDP+gD9FLrgT9cNRgD8i9CkxdIhvd1nvNiLjMpFsVls
6blEGtQBANtzIcJSKv9Td8nY5YeuIHz+upRbfCV0KryivWRdXCAN
=QXKn
-----END PGP PUBLIC KEY BLOCK-----
";
    const FINGERPRINT: &str = "F84518AB902BDB4A4641FA074841E30868EFA4D9";
    const CONTENT: &[u8] = b"sums\n";
    const SIGNATURE: &str = "\
-----BEGIN PGP SIGNATURE-----

iHUEABYIAB0WIQQViN3U7+mydpuvlNc8mAz9gGIDWwUCaw2m6gAKCRA8mAz9gGID
Wz+aAP0b6h/eU7XVovoUpdVGJJmsH6lslsU/aZgfuPmJRyradwEAjgnKd1guFacV
ijwCs+PO51VBNNoYDikM6NkqMoOkZAI=
=/7iI
-----END PGP SIGNATURE-----
";

    /// Returns the bytes below the armor.
    fn binary(armored: &str) -> Vec<u8> {
        use base64::Engine as _;
        let lines = armored.lines().filter(|line| !line.is_empty() && !line.starts_with(['-', '=']));
        base64::engine::general_purpose::STANDARD.decode(lines.collect::<String>()).unwrap()
    }

    #[test]
    fn signature_of_a_subkey_is_that_of_its_key() {
        let keys = [KEY.to_owned()];
        for signature in [SIGNATURE.as_bytes(), &binary(SIGNATURE)] {
            assert_eq!(signer(CONTENT, signature, &keys).unwrap(), FINGERPRINT);
        }
        let error = signer(b"other", SIGNATURE.as_bytes(), &keys).unwrap_err();
        assert!(matches!(&error, SignatureError::OtherKey(keys) if keys == &[FINGERPRINT]), "{error}");
        assert!(matches!(signer(CONTENT, SIGNATURE.as_bytes(), &[]), Err(SignatureError::OtherKey(_))));
        for bad in [&b""[..], b"x", b"<html>", KEY.as_bytes()] {
            assert!(signer(CONTENT, bad, &keys).is_err());
        }
        for bad in ["", "x", SIGNATURE] {
            let keys = [bad.to_owned()];
            let error = signer(CONTENT, SIGNATURE.as_bytes(), &keys).unwrap_err();
            assert!(matches!(error, SignatureError::UnreadableKey(_)), "{bad}: {error}");
        }
    }

    /// Mutates a signature and a key: nothing makes the reader panic, and no other key is found. Runs more cases with `FUZZ_CASES`.
    #[test]
    fn mutated_signature_and_key_verify_nothing_else() {
        let cases: u64 = std::env::var("FUZZ_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(400);
        for seed in 0..cases {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |below: usize| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                usize::try_from(state % below.max(1) as u64).unwrap()
            };
            let (mut signature, mut key) = (binary(SIGNATURE), KEY.as_bytes().to_vec());
            let mutated = if next(2) == 0 { &mut signature } else { &mut key };
            for _ in 0..=next(3) {
                let at = next(mutated.len());
                match next(4) {
                    0 if !mutated.is_empty() => mutated[at] ^= u8::try_from(1 << next(8)).unwrap(),
                    1 if !mutated.is_empty() => drop(mutated.remove(at)),
                    2 => mutated.insert(at, u8::try_from(next(256)).unwrap()),
                    _ => mutated.truncate(at),
                }
            }
            let key = String::from_utf8_lossy(&key).into_owned();
            let found = signer(CONTENT, &signature, &[key]);
            assert!(found.as_ref().map_or(true, |found| found == FINGERPRINT), "seed {seed}: {found:?}");
        }
    }
}
