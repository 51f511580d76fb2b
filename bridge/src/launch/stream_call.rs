//! gRPC calls whose requests and replies are both streams: requests are sent at any time, replies are read at any time.
//!
//! A message is given to the connection piece by piece, as the windows of HTTP/2 allow, so that a peer that does not
//! read makes the sender wait instead of filling the memory.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use h2::client::ResponseFuture;
use h2::{Reason, SendStream};
use prost::Message;
use prost::bytes::Bytes;
use tonic::Status;

use super::Connection;
use super::call::{CallError, Procedure, ReplyStream, encode_frame, request_head};

/// Error of a request message that was not sent completely.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The call has ended or the connection was lost. [`StreamedReplies::next`] returns the reason.
    #[error("the call has ended")]
    Ended,
    /// The message cannot be encoded, or is larger than [`MAX_MESSAGE`](super::MAX_MESSAGE). The call continues.
    #[error("{}", .0.message())]
    Refused(Status),
}

impl Connection {
    /// Calls a procedure with a stream of request messages, which replies with a stream of messages. Returns once the
    /// head of the request is handed to the connection; the server may reply before the first message.
    ///
    /// # Errors
    /// [`CallError::NotSent`]; the call has no effect.
    ///
    /// # Cancellation
    /// Dropping the replies cancels the call, even if the requests are kept. Dropping the requests only ends them.
    pub async fn call_bidirectional<P: Procedure>(
        &self,
    ) -> Result<(RequestStream<P::Request>, StreamedReplies<P::Reply>), CallError> {
        let opened = self.open(request_head(P::PATH)?).await;
        let (response, stream) = opened.map_err(|error| CallError::NotSent(Status::from_error(error)))?;
        let body = Body(Arc::new(Mutex::new(stream)));
        let requests = RequestStream { body: body.clone(), unsent: Bytes::new(), has_ended: false, of: PhantomData };
        Ok((requests, StreamedReplies { state: ReplyState::Awaited(response), body }))
    }
}

/// Body of the request, shared by both directions so that either can reset the call.
#[derive(Clone)]
struct Body(Arc<Mutex<SendStream<Bytes>>>);

impl Body {
    /// Returns the stream. A panic of another thread does not leave it in an invalid state: each use is one call of h2.
    fn lock(&self) -> MutexGuard<'_, SendStream<Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_send(&self, unsent: &mut Bytes, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let mut stream = self.lock();
        while !unsent.is_empty() {
            stream.reserve_capacity(unsent.len());
            // `poll_capacity` reports an increase only, so capacity that is left is used first.
            let granted = match stream.capacity() {
                0 => match ready!(stream.poll_capacity(cx)) {
                    Some(Ok(granted)) => granted,
                    Some(Err(_)) | None => return Poll::Ready(Err(SendError::Ended)),
                },
                left => left,
            };
            let piece = unsent.split_to(granted.min(unsent.len()));
            stream.send_data(piece, false).map_err(|_| SendError::Ended)?;
        }
        Poll::Ready(Ok(()))
    }
}

/// Request messages of a call. Dropping it ends the requests, as [`RequestStream::finish`] does; if a message was sent
/// in part, dropping it cancels the call.
pub struct RequestStream<M> {
    body: Body,
    /// Bytes of the last message that are not handed to the connection yet.
    unsent: Bytes,
    has_ended: bool,
    of: PhantomData<fn(M)>,
}

impl<M: Message> RequestStream<M> {
    /// Sends a message. Waits while the windows of the peer are full.
    ///
    /// # Errors
    /// [`SendError`].
    ///
    /// # Cancellation
    /// The rest of the message is sent before the next message.
    pub async fn send(&mut self, message: &M) -> Result<(), SendError> {
        let frame = encode_frame(message).map_err(|error| match error {
            CallError::NotSent(status) | CallError::Status(status) => SendError::Refused(status),
            CallError::Lost { loss, .. } => SendError::Refused(Status::internal(loss.to_string())),
        })?;
        self.send_rest().await?;
        self.unsent = frame.freeze();
        self.send_rest().await
    }

    /// Ends the requests. The replies go on.
    ///
    /// # Errors
    /// [`SendError::Ended`] if the call has ended before.
    pub async fn finish(mut self) -> Result<(), SendError> {
        self.send_rest().await?;
        self.has_ended = true;
        self.body.lock().send_data(Bytes::new(), true).map_err(|_| SendError::Ended)
    }

    async fn send_rest(&mut self) -> Result<(), SendError> {
        let Self { body, unsent, .. } = self;
        poll_fn(|cx| body.poll_send(unsent, cx)).await
    }
}

impl<M> Drop for RequestStream<M> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let mut stream = self.body.lock();
        if self.unsent.is_empty() {
            // Fails only if the call has ended.
            stream.send_data(Bytes::new(), true).unwrap_or_default();
        } else {
            stream.send_reset(Reason::CANCEL);
        }
    }
}

/// Reply messages of a call whose requests are a stream. Dropping it before the end of the replies cancels the call.
pub struct StreamedReplies<M> {
    state: ReplyState<M>,
    body: Body,
}

enum ReplyState<M> {
    /// The head of the response has not arrived: a server may send it with its first message only.
    Awaited(ResponseFuture),
    Receiving(ReplyStream<M>),
    Ended,
}

impl<M: Message + Default> StreamedReplies<M> {
    /// Returns the next message; `None` once the procedure has ended successfully. After an error, or the end, returns
    /// `None`.
    ///
    /// # Errors
    /// [`CallError`].
    ///
    /// # Cancellation
    /// No message is lost: the next call continues.
    pub async fn next(&mut self) -> Result<Option<M>, CallError> {
        loop {
            let next = match &mut self.state {
                ReplyState::Awaited(response) => match ReplyStream::of_response(response.await) {
                    Ok(replies) => {
                        self.state = ReplyState::Receiving(replies);
                        continue;
                    }
                    Err(error) => Err(error),
                },
                ReplyState::Receiving(replies) => replies.next().await,
                ReplyState::Ended => return Ok(None),
            };
            if !matches!(next, Ok(Some(_))) {
                self.state = ReplyState::Ended;
            }
            return next;
        }
    }
}

impl<M> Drop for StreamedReplies<M> {
    fn drop(&mut self) {
        // Has no effect on a call of which both directions have ended.
        self.body.lock().send_reset(Reason::CANCEL);
    }
}
