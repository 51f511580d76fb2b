//! Download of an asset: goes on where a broken connection has ended.

use backon::{BackoffBuilder as _, ExponentialBuilder};
use reqwest::StatusCode;
use reqwest::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE,
};
use tokio::sync::Semaphore;

use super::error::FetchError;
use super::request::{ApiClient, RequestTarget, Response, adjust, next_bytes, report};
use crate::fs::FileError;
use crate::speed::SpeedWindow;

/// Largest length of an asset whose length nobody tells, in bytes.
const MAX_LENGTH: u64 = 8 << 30;
/// Number of downloads of this process at the same time.
const PARALLEL: usize = 8;
static DOWNLOADS: Semaphore = Semaphore::const_new(PARALLEL);

/// Download of an asset.
pub(super) struct Transfer<'a> {
    pub(super) api: &'a ApiClient,
    pub(super) start: RequestTarget<'a>,
    /// Name of the asset, for messages.
    pub(super) item: &'a str,
    /// Length in bytes. `None` if it is what the server announces.
    pub(super) size: Option<u64>,
}

/// Bytes that have arrived, and what tells whether the server still has the same content.
#[derive(Default)]
struct Progress {
    received: u64,
    validator: Option<HeaderValue>,
}

impl Transfer<'_> {
    /// Downloads the asset. Repeats a request after a transient error, from where it ended if the server still has the same content.
    /// The number of tries without any progress is limited.
    pub(super) async fn run(
        self,
        policy: ExponentialBuilder,
        mut sink: impl FnMut(&[u8]) -> Result<(), FileError> + Send,
    ) -> Result<(), FetchError> {
        let _permit = DOWNLOADS.acquire().await;
        let mut progress = Progress::default();
        let (mut pauses, mut best) = (policy.build(), 0);
        loop {
            let Err(error) = self.attempt(&mut progress, &mut sink).await else { return Ok(()) };
            if !error.is_transient() {
                return Err(error);
            }
            // What arrives again is no progress.
            if progress.received > best {
                (pauses, best) = (policy.build(), progress.received);
            }
            let Some(pause) = adjust(&error, pauses.next()) else { return Err(error) };
            report(&error, pause);
            // The time for which the server asks, else one that grows with each try.
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(
        &self,
        progress: &mut Progress,
        sink: &mut (impl FnMut(&[u8]) -> Result<(), FileError> + Send),
    ) -> Result<(), FetchError> {
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/octet-stream"))]);
        if let Some(validator) = progress.validator.clone().filter(|_| progress.received > 0) {
            let range = HeaderValue::from_str(&format!("bytes={}-", progress.received));
            headers.extend(range.into_iter().map(|range| (RANGE, range)));
            headers.insert(IF_RANGE, validator);
        }
        let mut window = SpeedWindow::start();
        let response = self.api.get(self.start.clone(), &headers, &mut window).await;
        if let Err(FetchError::UnexpectedStatus { status: 416, .. }) = response {
            // The server has no such part any more.
            *progress = Progress::default();
            return Err(self.length_mismatch(self.size.unwrap_or_default(), 0));
        }
        let Response { status, headers, mut body, .. } = response?;
        let first = if status == StatusCode::PARTIAL_CONTENT { first_byte(&headers).unwrap_or(u64::MAX) } else { 0 };
        if first != 0 && first != progress.received {
            // Not what was asked for: the next try starts from the beginning.
            *progress = Progress::default();
            return Err(self.length_mismatch(self.size.unwrap_or_default(), 0));
        }
        if first == 0 {
            sink(&[])?;
            *progress = Progress { received: 0, validator: validator(&headers) };
        }
        let announced: Option<u64> = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let announced = announced.map(|announced| progress.received.saturating_add(announced));
        if let (Some(announced), Some(size)) = (announced, self.size)
            && announced != size
        {
            return Err(self.length_mismatch(size, announced));
        }
        let size = self.size.or(announced);
        // A length that only the server announces is no reason to fill the disk.
        let limit = self.size.unwrap_or(announced.unwrap_or(MAX_LENGTH).min(MAX_LENGTH));
        loop {
            let next = next_bytes(&mut body, &mut window).await;
            let Some(bytes) = next.map_err(|error| self.api.body_error(self.item, error))? else { break };
            let received = progress.received + bytes.len() as u64;
            if received > limit {
                *progress = Progress::default();
                return Err(self.length_mismatch(limit, received));
            }
            sink(&bytes)?;
            progress.received = received;
        }
        match size {
            Some(size) if size != progress.received => Err(self.length_mismatch(size, progress.received)),
            _ => Ok(()),
        }
    }

    fn length_mismatch(&self, expected: u64, received: u64) -> FetchError {
        let (item, host) = (self.item.to_owned(), self.api.host());
        FetchError::LengthMismatch { item, host, expected, received }
    }
}

/// Returns the first byte of a part: `Content-Range: bytes 7-9/10`.
fn first_byte(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
    range.split_once('-')?.0.trim().parse().ok()
}

/// Returns what tells whether content is the same: a strong tag, else the time of its last change.
fn validator(headers: &HeaderMap) -> Option<HeaderValue> {
    let tag = headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    tag.or_else(|| headers.get(LAST_MODIFIED)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair =
            |(name, value): &(&'static str, &'static str)| (name.parse().unwrap(), HeaderValue::from_static(value));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn part_begins_at_the_byte_of_its_range() {
        for (range, first) in [("bytes 7-9/10", Some(7)), ("bytes 0-9/*", Some(0)), ("bytes */10", None), ("7-9", None)]
        {
            assert_eq!(first_byte(&headers(&[("content-range", range)])), first, "{range}");
        }
        assert_eq!(first_byte(&HeaderMap::new()), None);
    }

    #[test]
    fn content_is_recognized_by_a_strong_tag_or_its_time() {
        let time = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (pairs, expected) in [
            (&[("etag", "\"a\""), ("last-modified", time)][..], Some("\"a\"")),
            (&[("etag", "W/\"a\""), ("last-modified", time)], Some(time)),
            (&[("etag", "W/\"a\"")], None),
            (&[], None),
        ] {
            assert_eq!(validator(&headers(pairs)).map(|value| value.to_str().unwrap().to_owned()).as_deref(), expected);
        }
    }
}
