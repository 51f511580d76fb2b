//! Limits of a listing: a store that never ends one must not take all memory.

/// Maximum number of names of a listing.
pub const MAX_NAMES: usize = 1_000_000;
/// Maximum length of all names of a listing together, in bytes.
pub const MAX_NAME_BYTES: usize = 256 << 20;

/// A listing has too many names, or too long ones. `Display` says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingTooLong {
    /// The listing has more names than [`MAX_NAMES`].
    #[error(
        "the listing has more than {MAX_NAMES} names: use a store or a prefix of its own for the states, or remove old backups \
         and history"
    )]
    Names,
    /// The names of the listing are longer than [`MAX_NAME_BYTES`].
    #[error("the names of the listing have more than {} MiB: use a store or a prefix of its own for the states", MAX_NAME_BYTES >> 20)]
    Bytes,
}

/// Names of a listing that were received so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListedNames {
    count: usize,
    bytes: usize,
}

impl ListedNames {
    /// Counts a name.
    ///
    /// # Errors
    /// [`ListingTooLong`] once a limit is exceeded.
    pub fn add(&mut self, name: &str) -> Result<(), ListingTooLong> {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(name.len());
        match (self.count > MAX_NAMES, self.bytes > MAX_NAME_BYTES) {
            (true, _) => Err(ListingTooLong::Names),
            (false, true) => Err(ListingTooLong::Bytes),
            (false, false) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of names of a length that are accepted, and the reason why the next one is not.
    fn accepted(length: usize) -> (usize, ListingTooLong) {
        let (mut names, name) = (ListedNames::default(), "x".repeat(length));
        let mut count = 0;
        loop {
            match names.add(&name) {
                Ok(()) => count += 1,
                Err(reason) => break (count, reason),
            }
        }
    }

    #[test]
    fn number_and_length_of_names_are_limited() {
        assert_eq!(accepted(1), (MAX_NAMES, ListingTooLong::Names));
        assert_eq!(accepted(0), (MAX_NAMES, ListingTooLong::Names));
        assert_eq!(accepted(1 << 20), (256, ListingTooLong::Bytes));
    }
}
