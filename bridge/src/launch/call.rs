//! gRPC over a connection: one request, and the messages that answer it.
//!
//! The frames are those of gRPC over HTTP/2; what a status says is read by tonic.

use std::marker::PhantomData;

use h2::RecvStream;
use prost::Message;
use prost::bytes::{Buf as _, BufMut as _, BytesMut};
use tonic::codegen::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, TE, USER_AGENT};
use tonic::codegen::http::{HeaderMap, Method, Request, StatusCode, Uri, Version, uri};
use tonic::{Code, Status};

use super::Connection;

/// The largest message, in either direction: what Pulumi's own SDKs allow.
pub const MAX_MESSAGE: usize = 400 * 1024 * 1024;

/// In front of each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// A remote procedure.
pub trait Procedure {
    /// Where it is: `/package.Service/Name`.
    const PATH: &'static str;
    /// What it takes.
    type Request: Message;
    /// What it answers.
    type Reply: Message + Default;
}

impl Connection {
    /// Calls a procedure that answers once.
    ///
    /// # Errors
    /// The status that it answered; one with a source where the call or the connection broke off.
    pub async fn call<P: Procedure>(&self, request: &P::Request) -> Result<P::Reply, Status> {
        let mut answers = self.call_streaming::<P>(request).await?;
        let Some(reply) = answers.next().await? else { return Err(Status::internal("no message in the answer")) };
        match answers.next().await? {
            None => Ok(reply),
            Some(_) => Err(Status::internal("more than one message in the answer")),
        }
    }

    /// Calls a procedure that answers with a stream of messages.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub async fn call_streaming<P: Procedure>(&self, request: &P::Request) -> Result<Answers<P::Reply>, Status> {
        let body = framed(request)?;
        let response = self.send(head(P::PATH)?, body.freeze()).await.map_err(Status::from_error)?;
        let response = response.await.map_err(broken_off)?;
        // An answer without messages has its status in front.
        match Status::from_header_map(response.headers()) {
            Some(status) if status.code() != Code::Ok => Err(status),
            _ if response.status() != StatusCode::OK => Err(refused(response.status())),
            status => Ok(Answers {
                stream: response.into_body(),
                buffer: BytesMut::new(),
                ended: status.is_some(),
                of: PhantomData,
            }),
        }
    }
}

/// The messages of an answer.
pub struct Answers<M> {
    stream: RecvStream,
    /// What came and was not read yet.
    buffer: BytesMut,
    ended: bool,
    of: PhantomData<fn() -> M>,
}

impl<M: Message + Default> Answers<M> {
    /// The next message; `None` once the procedure has ended well.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub async fn next(&mut self) -> Result<Option<M>, Status> {
        loop {
            if let Some(message) = self.message()? {
                return Ok(Some(message));
            }
            if self.ended {
                return Ok(None);
            }
            match self.stream.data().await {
                Some(data) => {
                    let data = data.map_err(broken_off)?;
                    self.stream.flow_control().release_capacity(data.len()).map_err(broken_off)?;
                    self.buffer.extend_from_slice(&data);
                }
                None => {
                    let trailers = self.stream.trailers().await.map_err(broken_off)?;
                    ended_well(trailers.as_ref(), &self.buffer)?;
                    self.ended = true;
                }
            }
        }
    }

    /// A message, if all of it is there.
    fn message(&mut self) -> Result<Option<M>, Status> {
        let Some((prefix, rest)) = self.buffer.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let [compressed, length @ ..] = *prefix;
        if compressed != 0 {
            return Err(Status::internal("the answer is compressed, which nobody asked for"));
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

/// The head of a request. Nobody is behind the name: there is but one at the other end.
fn head(path: &'static str) -> Result<Request<()>, Status> {
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

fn framed(message: &impl Message) -> Result<BytesMut, Status> {
    let length = message.encoded_len();
    if length > MAX_MESSAGE {
        return Err(Status::out_of_range(format!("a message of {length} bytes is larger than {MAX_MESSAGE}")));
    }
    let mut framed = BytesMut::with_capacity(PREFIX + length);
    framed.put_u8(0);
    // It was just seen to fit.
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode(&mut framed).map_err(|error| Status::internal(error.to_string()))?;
    Ok(framed)
}

fn ended_well(trailers: Option<&HeaderMap>, rest: &[u8]) -> Result<(), Status> {
    match trailers.and_then(Status::from_header_map) {
        Some(status) if status.code() != Code::Ok => Err(status),
        Some(_) if rest.is_empty() => Ok(()),
        Some(_) => Err(Status::internal("the answer ended in the middle of a message")),
        None => Err(Status::unknown("the answer ended without a status")),
    }
}

fn broken_off(error: h2::Error) -> Status {
    Status::from_error(error.into())
}

/// The status that stands for an answer that is not one of gRPC.
fn refused(status: StatusCode) -> Status {
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
    Status::new(code, format!("the answer is one of HTTP: {status}"))
}
