//! Pages of a listing, within limits: a store may never end one.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use state::store::{ListedNames, ListingTooLong};
use tokio::time::Instant;

/// Maximum number of pages. Most stores send 1,000 names in a page.
const MAX_PAGES: usize = 10_000;
/// Limit of the time for all pages.
const TIME_LIMIT: Duration = Duration::from_secs(5 * 60);

/// A listing that is given up. `Display` says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EndlessListing {
    /// Listing with too many names.
    #[error(transparent)]
    TooLong(#[from] ListingTooLong),
    /// A page names one as its next that was received already.
    #[error(
        "the listing does not end: after {0} pages, the store names a page as the next one that it has sent before"
    )]
    Repeated(usize),
    /// Listing with too many pages.
    #[error("the listing does not end: it has more than {MAX_PAGES} pages")]
    Pages,
    /// Listing that takes too long.
    #[error("the listing does not end: its pages have taken more than {} minutes", TIME_LIMIT.as_secs() / 60)]
    Time,
}

/// Pages of a listing that were received so far.
pub(super) struct Pages {
    names: ListedNames,
    count: usize,
    end: Instant,
    hasher: RandomState,
    /// Hashes of the tokens of the pages: a token may be long.
    tokens: HashSet<u64>,
}

impl Pages {
    /// Begins a listing.
    pub(super) fn begin() -> Self {
        let (names, hasher) = (ListedNames::default(), RandomState::new());
        Self { names, count: 0, end: Instant::now() + TIME_LIMIT, hasher, tokens: HashSet::new() }
    }

    /// Counts a name.
    pub(super) fn add_name(&mut self, name: &str) -> Result<(), EndlessListing> {
        Ok(self.names.add(name)?)
    }

    /// Returns the token of the next page, or `None` after the last page.
    pub(super) fn next(&mut self, token: Option<String>) -> Result<Option<String>, EndlessListing> {
        // Some stores send an empty token with the last page.
        let Some(token) = token.filter(|token| !token.is_empty()) else { return Ok(None) };
        self.count += 1;
        if !self.tokens.insert(self.hasher.hash_one(&token)) {
            return Err(EndlessListing::Repeated(self.count));
        }
        if self.count >= MAX_PAGES {
            return Err(EndlessListing::Pages);
        }
        if Instant::now() >= self.end {
            return Err(EndlessListing::Time);
        }
        Ok(Some(token))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// Returns the number of pages that are requested, and the reason why the next one is not.
    async fn requested(token: impl Fn(usize) -> String, each: Duration) -> (usize, EndlessListing) {
        let mut pages = Pages::begin();
        for count in 1.. {
            advance(each).await;
            match pages.next(Some(token(count))) {
                Ok(next) => assert_eq!(next, Some(token(count))),
                Err(reason) => return (count, reason),
            }
        }
        unreachable!("the pages do not end")
    }

    /// Shows: state.md#stores "What a store sends is limited"
    /// Shows: state.md#stores "the pages of a listing in a bucket | 10,000"
    #[tokio::test(start_paused = true)]
    async fn listing_that_does_not_end_is_given_up() {
        let numbered = |count: usize| count.to_string();
        assert_eq!(requested(|_| "same".to_owned(), Duration::ZERO).await, (2, EndlessListing::Repeated(2)));
        assert_eq!(requested(|count| (count % 3).to_string(), Duration::ZERO).await, (4, EndlessListing::Repeated(4)));
        assert_eq!(requested(numbered, Duration::ZERO).await, (MAX_PAGES, EndlessListing::Pages));
        assert_eq!(requested(numbered, Duration::from_secs(1)).await, (300, EndlessListing::Time));
    }

    #[tokio::test]
    async fn last_page_has_no_token_or_an_empty_one() {
        let mut pages = Pages::begin();
        assert_eq!(pages.next(Some("a".to_owned())), Ok(Some("a".to_owned())));
        assert_eq!(pages.next(None), Ok(None));
        assert_eq!(pages.next(Some(String::new())), Ok(None));
    }
}
