//! Random texts that prove a right: tokens, and numbers of registrations.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;

/// Random bytes of a token.
const BYTES: usize = 32;

/// Random text of 64 hexadecimal digits. `Debug` does not show it.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// Returns a new token.
    ///
    /// # Errors
    /// Returns an error if the system has no random bytes.
    pub(super) fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hex::encode(bytes)))
    }

    /// Returns whether a text is the token. The time of the comparison does not depend on the text, except for its length.
    pub(super) fn is(&self, text: &str) -> bool {
        verify_slices_are_equal(self.0.as_bytes(), text.as_bytes()).is_ok()
    }

    /// Returns the text of the token.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_only_its_own_text_and_is_not_shown() {
        let token = Token::generate().unwrap();
        assert_eq!(token.expose().len(), 64);
        let text = String::from(token.expose());
        assert!(token.is(&text));
        for other in ["", &token.expose()[..63], Token::generate().unwrap().expose()] {
            assert!(!token.is(other), "{other}");
        }
        assert_eq!(format!("{token:?}"), "[secret]");
    }
}
