//! gRPC calls over a connection: one request message, and one or more reply messages.
//!
//! Frames and headers are those of gRPC over HTTP/2. tonic parses the status.

use std::marker::PhantomData;

use h2::RecvStream;
use prost::Message;
use prost::bytes::{Buf as _, BufMut as _, BytesMut};
use tonic::codegen::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, TE, USER_AGENT};
use tonic::codegen::http::{HeaderMap, Method, Request, StatusCode, Uri, Version, uri};
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

impl Connection {
    /// Calls a procedure that replies with one message.
    ///
    /// # Errors
    /// Status of the reply. A status with a source if the call was reset or the connection was lost.
    pub async fn call<P: Procedure>(&self, request: &P::Request) -> Result<P::Reply, Status> {
        let mut replies = self.call_streaming::<P>(request).await?;
        let Some(reply) = replies.next().await? else { return Err(Status::internal("the reply has no message")) };
        match replies.next().await? {
            None => Ok(reply),
            Some(_) => Err(Status::internal("the reply has more than one message")),
        }
    }

    /// Calls a procedure that replies with a stream of messages.
    ///
    /// # Errors
    /// Same as [`Connection::call`].
    pub async fn call_streaming<P: Procedure>(&self, request: &P::Request) -> Result<ReplyStream<P::Reply>, Status> {
        let body = encode_frame(request)?;
        let response = self.send(request_head(P::PATH)?, body.freeze()).await.map_err(Status::from_error)?;
        let response = response.await.map_err(lost_connection)?;
        // A reply without messages has its status in the headers.
        match Status::from_header_map(response.headers()) {
            Some(status) if status.code() != Code::Ok => Err(status),
            _ if response.status() != StatusCode::OK => Err(status_of_http(response.status())),
            status => Ok(ReplyStream {
                stream: response.into_body(),
                buffer: BytesMut::new(),
                ended: status.is_some(),
                of: PhantomData,
            }),
        }
    }
}

/// Reply messages of a call.
pub struct ReplyStream<M> {
    stream: RecvStream,
    /// Received bytes that are not decoded yet.
    buffer: BytesMut,
    ended: bool,
    of: PhantomData<fn() -> M>,
}

impl<M: Message + Default> ReplyStream<M> {
    /// Returns the next message; `None` once the procedure has ended successfully.
    ///
    /// # Errors
    /// Same as [`Connection::call`].
    pub async fn next(&mut self) -> Result<Option<M>, Status> {
        loop {
            if let Some(message) = self.decode_message()? {
                return Ok(Some(message));
            }
            if self.ended {
                return Ok(None);
            }
            match self.stream.data().await {
                Some(data) => {
                    let data = data.map_err(lost_connection)?;
                    self.stream.flow_control().release_capacity(data.len()).map_err(lost_connection)?;
                    self.buffer.extend_from_slice(&data);
                }
                None => {
                    let trailers = self.stream.trailers().await.map_err(lost_connection)?;
                    check_end(trailers.as_ref(), &self.buffer)?;
                    self.ended = true;
                }
            }
        }
    }

    /// Decodes the next message in the buffer; `None` if it is incomplete.
    fn decode_message(&mut self) -> Result<Option<M>, Status> {
        let Some((prefix, rest)) = self.buffer.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let [compressed, length @ ..] = *prefix;
        if compressed != 0 {
            return Err(Status::internal("the reply is compressed, which was not requested"));
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_MESSAGE {
            return Err(Status::out_of_range(format!("a message of {length} bytes is larger than {MAX_MESSAGE}")));
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let message = M::decode(message).map_err(|error| Status::internal(error.to_string()))?;
        self.buffer.advance(PREFIX + length);
        Ok(Some(message))
    }
}

/// Returns the head of a request. The authority is a placeholder: the connection is local.
fn request_head(path: &'static str) -> Result<Request<()>, Status> {
    let mut head = Request::new(());
    *head.method_mut() = Method::POST;
    *head.version_mut() = Version::HTTP_2;
    let mut parts = uri::Parts::default();
    parts.scheme = Some(uri::Scheme::HTTP);
    parts.authority = Some(uri::Authority::from_static("127.0.0.1"));
    parts.path_and_query = Some(uri::PathAndQuery::from_static(path));
    *head.uri_mut() = Uri::from_parts(parts).map_err(|error| Status::internal(error.to_string()))?;
    let headers: [(HeaderName, &str); 3] =
        [(TE, "trailers"), (CONTENT_TYPE, "application/grpc"), (USER_AGENT, concat!("sc/", env!("CARGO_PKG_VERSION")))];
    head.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    Ok(head)
}

fn encode_frame(message: &impl Message) -> Result<BytesMut, Status> {
    let length = message.encoded_len();
    if length > MAX_MESSAGE {
        return Err(Status::out_of_range(format!("a message of {length} bytes is larger than {MAX_MESSAGE}")));
    }
    let mut framed = BytesMut::with_capacity(PREFIX + length);
    framed.put_u8(0);
    // The length is at most MAX_MESSAGE, so the conversion does not fail.
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode(&mut framed).map_err(|error| Status::internal(error.to_string()))?;
    Ok(framed)
}

/// Checks the status in the trailers and that no partial message is left in `rest`.
fn check_end(trailers: Option<&HeaderMap>, rest: &[u8]) -> Result<(), Status> {
    match trailers.and_then(Status::from_header_map) {
        Some(status) if status.code() != Code::Ok => Err(status),
        Some(_) if rest.is_empty() => Ok(()),
        Some(_) => Err(Status::internal("the reply ended in the middle of a message")),
        None => Err(Status::unknown("the reply ended without a status")),
    }
}

fn lost_connection(error: h2::Error) -> Status {
    Status::from_error(error.into())
}

/// Returns the gRPC status for an HTTP status of a reply that is not gRPC.
fn status_of_http(status: StatusCode) -> Status {
    let code = match status {
        StatusCode::BAD_REQUEST => Code::Internal,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
        _ => Code::Unknown,
    };
    Status::new(code, format!("the reply is not gRPC but HTTP status {status}"))
}
