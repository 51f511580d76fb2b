//! gRPC calls over a connection: one request message, and one or more reply messages.
//!
//! Frames and headers are those of gRPC over HTTP/2. tonic parses the status.

use std::fmt::Display;
use std::marker::PhantomData;

use h2::RecvStream;
use prost::bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::{DecodeError, Message};
use tonic::codegen::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, TE, USER_AGENT};
use tonic::codegen::http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version, uri};
use tonic::{Code, Status};

use super::Connection;

/// Maximum size of a message in bytes, in both directions: the limit of Pulumi's SDKs.
pub const MAX_MESSAGE: usize = 400 * 1024 * 1024;

/// Length of the prefix of each message in bytes: one byte for the compression flag, four for the length.
const PREFIX: usize = 5;

/// Remote procedure.
pub trait Procedure {
    /// Path of the procedure: `/package.Service/Name`.
    const PATH: &'static str;
    /// Request message.
    type Request: Message;
    /// Reply message.
    type Reply: Message + Default;
}

/// Error of a call.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The request was not sent, so the call has no effect.
    #[error("{}", .0.message())]
    NotSent(Status),
    /// The procedure returned an error.
    #[error("{}", .0.message())]
    Status(Status),
    /// The request was sent, and its reply is lost or cannot be decoded.
    #[error("{loss}")]
    Lost {
        /// Reason of the loss.
        loss: Loss,
        /// Received bytes of the reply message. They may be incomplete or malformed.
        received: Bytes,
    },
}

/// Reason why the reply to a call is lost.
#[derive(Debug, thiserror::Error)]
pub enum Loss {
    /// The call was reset, or the connection was lost. The status has a source.
    #[error("{}", .0.message())]
    Connection(Status),
    /// The reply is not gRPC with one message, or ended early.
    #[error("{0}")]
    NotGrpc(String),
    /// The message is larger than [`MAX_MESSAGE`].
    #[error("{}", too_large(*.0))]
    TooLarge(usize),
    /// The message cannot be decoded.
    #[error("{0}")]
    Undecodable(DecodeError),
}

impl From<Loss> for CallError {
    /// Returns the error of a reply of which no message was received.
    fn from(loss: Loss) -> Self {
        Self::Lost { loss, received: Bytes::new() }
    }
}

impl Connection {
    /// Calls a procedure that replies with one message.
    ///
    /// # Errors
    /// [`CallError`], which distinguishes a call without effect from one whose effect is unknown.
    pub async fn call<P: Procedure>(&self, request: &P::Request) -> Result<P::Reply, CallError> {
        let mut replies = self.call_streaming::<P>(request).await?;
        let Some(reply) = replies.next().await? else { return Err(replies.not_grpc("the reply has no message")) };
        match replies.next().await? {
            None => Ok(reply),
            Some(_) => Err(replies.not_grpc("the reply has more than one message")),
        }
    }

    /// Calls a procedure that replies with a stream of messages.
    ///
    /// # Errors
    /// Same as [`Connection::call`].
    pub async fn call_streaming<P: Procedure>(&self, request: &P::Request) -> Result<ReplyStream<P::Reply>, CallError> {
        let body = encode_frame(request)?;
        let response = self.send(request_head(P::PATH)?, body.freeze()).await;
        let response = response.map_err(|error| CallError::NotSent(Status::from_error(error)))?;
        ReplyStream::of_response(response.await)
    }
}

/// Reply messages of a call.
pub struct ReplyStream<M> {
    stream: RecvStream,
    /// Received bytes: the last decoded message, if there is one, then those that are not decoded yet.
    buffer: BytesMut,
    /// Length of the last decoded message in the buffer, with its prefix; 0 if there is none.
    decoded: usize,
    ended: bool,
    of: PhantomData<fn() -> M>,
}

impl<M: Message + Default> ReplyStream<M> {
    /// Returns the replies of a call, from the head of its response.
    pub(super) fn of_response(response: Result<Response<RecvStream>, h2::Error>) -> Result<Self, CallError> {
        let response = response.map_err(lost_connection)?;
        // A reply without messages has its status in the headers.
        match Status::from_header_map(response.headers()) {
            Some(status) if status.code() != Code::Ok => Err(CallError::Status(status)),
            _ if response.status() != StatusCode::OK => Err(error_of_http(response.status())),
            status => Ok(Self {
                stream: response.into_body(),
                buffer: BytesMut::new(),
                decoded: 0,
                ended: status.is_some(),
                of: PhantomData,
            }),
        }
    }

    /// Returns the next message; `None` once the procedure has ended successfully.
    ///
    /// # Errors
    /// Same as [`Connection::call`].
    pub async fn next(&mut self) -> Result<Option<M>, CallError> {
        loop {
            if let Some(message) = self.decode_message()? {
                return Ok(Some(message));
            }
            if self.ended {
                return Ok(None);
            }
            if let Err(error) = self.receive().await {
                return Err(match error {
                    CallError::Lost { loss, .. } => self.lost(loss),
                    error => error,
                });
            }
        }
    }

    /// Receives further bytes, or the end of the reply.
    async fn receive(&mut self) -> Result<(), CallError> {
        match self.stream.data().await {
            Some(data) => {
                let data = data.map_err(lost_connection)?;
                self.stream.flow_control().release_capacity(data.len()).map_err(lost_connection)?;
                self.buffer.extend_from_slice(&data);
            }
            None => {
                let trailers = self.stream.trailers().await.map_err(lost_connection)?;
                check_end(trailers.as_ref(), self.buffer.len() == self.decoded)?;
                self.ended = true;
            }
        }
        Ok(())
    }

    /// Decodes the next message in the buffer; `None` if it is incomplete.
    fn decode_message(&mut self) -> Result<Option<M>, CallError> {
        let undecoded = self.buffer.get(self.decoded..).unwrap_or_default();
        let Some((prefix, rest)) = undecoded.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let [compressed, length @ ..] = *prefix;
        if compressed != 0 {
            return Err(Loss::NotGrpc("the reply is compressed, which was not requested".to_owned()).into());
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_MESSAGE {
            return Err(self.lost(Loss::TooLarge(length)));
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        match M::decode(message) {
            Ok(message) => {
                self.buffer.advance(self.decoded);
                self.decoded = PREFIX + length;
                Ok(Some(message))
            }
            Err(error) => Err(self.lost(Loss::Undecodable(error))),
        }
    }

    fn not_grpc(&self, reason: &str) -> CallError {
        self.lost(Loss::NotGrpc(reason.to_owned()))
    }

    /// Returns the error of a lost reply, with the bytes of the message that was received last.
    fn lost(&self, loss: Loss) -> CallError {
        let end = if self.decoded == 0 { self.buffer.len() } else { self.decoded };
        let received = self.buffer.get(PREFIX..end).unwrap_or_default();
        CallError::Lost { loss, received: Bytes::copy_from_slice(received) }
    }
}

/// Returns the head of a request. The authority is a placeholder: the connection is local.
pub(super) fn request_head(path: &'static str) -> Result<Request<()>, CallError> {
    let mut head = Request::new(());
    *head.method_mut() = Method::POST;
    *head.version_mut() = Version::HTTP_2;
    let mut parts = uri::Parts::default();
    parts.scheme = Some(uri::Scheme::HTTP);
    parts.authority = Some(uri::Authority::from_static("127.0.0.1"));
    parts.path_and_query = Some(uri::PathAndQuery::from_static(path));
    *head.uri_mut() = Uri::from_parts(parts).map_err(not_encodable)?;
    let headers: [(HeaderName, &str); 3] =
        [(TE, "trailers"), (CONTENT_TYPE, "application/grpc"), (USER_AGENT, concat!("sc/", env!("CARGO_PKG_VERSION")))];
    head.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    Ok(head)
}

pub(super) fn encode_frame(message: &impl Message) -> Result<BytesMut, CallError> {
    let length = message.encoded_len();
    if length > MAX_MESSAGE {
        return Err(CallError::NotSent(Status::out_of_range(too_large(length))));
    }
    let mut framed = BytesMut::with_capacity(PREFIX + length);
    framed.put_u8(0);
    // The length is at most MAX_MESSAGE, so the conversion does not fail.
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode(&mut framed).map_err(not_encodable)?;
    Ok(framed)
}

fn not_encodable(error: impl Display) -> CallError {
    CallError::NotSent(Status::internal(error.to_string()))
}

fn too_large(length: usize) -> String {
    format!("a message of {length} bytes is larger than {MAX_MESSAGE}")
}

/// Checks the status in the trailers, and that the last message is complete.
fn check_end(trailers: Option<&HeaderMap>, is_complete: bool) -> Result<(), CallError> {
    match trailers.and_then(Status::from_header_map) {
        Some(status) if status.code() != Code::Ok => Err(CallError::Status(status)),
        Some(_) if is_complete => Ok(()),
        Some(_) => Err(Loss::NotGrpc("the reply ended in the middle of a message".to_owned()).into()),
        None => Err(Loss::NotGrpc("the reply ended without a status".to_owned()).into()),
    }
}

fn lost_connection(error: h2::Error) -> CallError {
    Loss::Connection(Status::from_error(error.into())).into()
}

/// Returns the error for an HTTP status of a reply that is not gRPC. A request that was refused has no effect; the
/// effect of any other is unknown.
fn error_of_http(status: StatusCode) -> CallError {
    let text = format!("the reply is not gRPC but HTTP status {status}");
    let code = match status {
        StatusCode::BAD_REQUEST => Code::Internal,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        _ => return Loss::NotGrpc(text).into(),
    };
    CallError::Status(Status::new(code, text))
}
