//! Contents of replies that are received within limits of size, speed and time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bridge::speed::{MIN_SPEED, SpeedWindow};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use object_store::client::{HttpError, HttpErrorKind, HttpResponseBody};
use tokio::time::{Instant, Sleep, sleep_until};

use super::transport::TransportFailure;

/// Content of an object, which fails if it comes too slowly, or has not come whole at a time.
#[derive(Debug)]
pub(super) struct PacedBody {
    body: HttpResponseBody,
    host: String,
    window: SpeedWindow,
    length: Duration,
    end: Instant,
    deadline: Pin<Box<Sleep>>,
}

impl PacedBody {
    /// Wraps a content that is to come within a time, and of which [`MIN_SPEED`] bytes are to come per second on average over
    /// any `window`.
    pub(super) fn new(body: HttpResponseBody, host: String, window: Duration, limit: Duration) -> Self {
        let (length, window, end) = (window, SpeedWindow::of(window), Instant::now() + limit);
        let deadline = Box::pin(sleep_until(window.deadline().min(end)));
        Self { body, host, window, length, end, deadline }
    }
}

impl Body for PacedBody {
    type Data = <HttpResponseBody as Body>::Data;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.window.record(frame.data_ref().map_or(0, |data| data.len()));
            let deadline = self.window.deadline().min(self.end);
            self.deadline.as_mut().reset(deadline);
        } else if polled.is_pending() && self.deadline.as_mut().poll(context).is_ready() {
            let failure = TransportFailure::TooSlow {
                host: self.host.clone(),
                speed: MIN_SPEED,
                window: self.length,
                is_whole: Instant::now() >= self.end,
            };
            return Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Timeout, failure))));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Receives a content whole; `None` if it has more than `limit` bytes.
pub(super) async fn receive_whole(mut body: HttpResponseBody, limit: usize) -> Result<Option<Vec<u8>>, HttpError> {
    let mut content = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if content.len() + data.len() > limit {
            return Ok(None);
        }
        content.extend_from_slice(&data);
    }
    Ok(Some(content))
}

/// Receives the beginning of a content, of at most `limit` bytes.
pub(super) async fn receive_beginning(mut body: HttpResponseBody, limit: usize) -> Result<Vec<u8>, HttpError> {
    let mut content = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        content.extend_from_slice(&data);
        if content.len() >= limit {
            content.truncate(limit);
            break;
        }
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;
    use tokio::time::sleep;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(30);

    /// Returns a content that sends a part each second, for some seconds.
    fn dripping(part: &'static str, seconds: u32) -> HttpResponseBody {
        let parts = stream::unfold(0, move |sent| async move {
            sleep(Duration::from_secs(1)).await;
            (sent < seconds).then(|| (Ok::<_, HttpError>(Frame::data(part.into())), sent + 1))
        });
        HttpResponseBody::new(StreamBody::new(Box::pin(parts)))
    }

    /// Returns the number of received bytes, or the failure, and the time in seconds.
    async fn receive(body: HttpResponseBody, limit: u64) -> (Result<usize, String>, u64) {
        let began = Instant::now();
        let body = PacedBody::new(body, "host:1".to_owned(), WINDOW, Duration::from_secs(limit));
        let received = HttpResponseBody::new(body).bytes().await;
        let received = received.map(|bytes| bytes.len());
        let text = |error: HttpError| std::error::Error::source(&error).map_or_else(String::new, ToString::to_string);
        (received.map_err(text), began.elapsed().as_secs())
    }

    /// Shows: state.md#stores "What a store sends is limited"
    /// Shows: state.md#stores "the speed of an object's content | 1 KiB/s, averaged over 30 s"
    #[tokio::test(start_paused = true)]
    async fn content_has_a_lowest_speed_and_a_time_for_the_whole() {
        const PART: &str = match std::str::from_utf8(&[b'x'; 2048]) {
            Ok(part) => part,
            Err(_) => "",
        };
        let slow = "host:1 sent less than 1024 bytes per second for 30 s".to_owned();
        assert_eq!(receive(dripping("x", 10_000), 1000).await, (Err(slow.clone()), 30));
        assert_eq!(receive(dripping("x", 5), 1000).await, (Ok(5), 6));
        assert_eq!(receive(dripping(PART, 100), 1000).await, (Ok(204_800), 101));
        let late = "host:1 did not send the whole reply in time".to_owned();
        assert_eq!(receive(dripping(PART, 100), 50).await, (Err(late), 50));
        // Nothing at all, after a fast beginning.
        let silent = stream::iter([Ok::<_, HttpError>(Frame::data(PART.into()))]);
        let silent = stream::StreamExt::chain(silent, stream::pending());
        let silent = HttpResponseBody::new(StreamBody::new(Box::pin(silent)));
        assert_eq!(receive(silent, 1000).await, (Err(slow), 30));
    }

    #[tokio::test(start_paused = true)]
    async fn endless_content_is_not_kept() {
        assert_eq!(receive_whole(dripping("xx", 5), 10).await.unwrap(), Some(b"xxxxxxxxxx".to_vec()));
        assert_eq!(receive_whole(dripping("xx", u32::MAX), 9).await.unwrap(), None);
        assert_eq!(receive_beginning(dripping("xx", u32::MAX), 3).await.unwrap(), b"xxx");
    }
}
