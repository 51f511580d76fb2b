//! Secret texts, which are never displayed.
//!
//! Length: the readers of all sections have secret texts.

use std::fmt;

/// A secret text. `Debug` shows `[secret]`; only [`SecretText::expose`] returns the text.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Marks a text as secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the plain text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
