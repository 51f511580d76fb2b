//! Length: the one file that whoever publishes the program edits.
//!
//! Addresses of the project. Whoever publishes the program fills them in here, and nowhere else: help, `sc --version` and reports of bugs
//! take them from this file, and leave out what is empty.

/// Repository of the source code.
pub(crate) const REPOSITORY: &str = "";
/// Page of the releases.
pub(crate) const RELEASES: &str = "";
/// Page on which bugs are reported.
pub(crate) const ISSUES: &str = "";

/// Returns a line for each address that is filled in.
pub(crate) fn lines() -> String {
    let named = [("repository", REPOSITORY), ("releases", RELEASES), ("issues", ISSUES)];
    let filled = named.into_iter().filter(|(_, address)| !address.is_empty());
    filled.map(|(name, address)| format!("{name}: {address}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_empty_or_urls() {
        for address in [REPOSITORY, RELEASES, ISSUES] {
            assert!(address.is_empty() || address.starts_with("https://"), "{address}");
        }
        assert_eq!(
            lines().lines().count(),
            [REPOSITORY, RELEASES, ISSUES].iter().filter(|text| !text.is_empty()).count()
        );
    }
}
