//! HTTP/1.1 server with faults on demand: wrong lengths, bodies that stop early, bodies that wait.
//!
//! Input: the response to each request. Output: an address, and the received requests. Each connection carries one
//! request.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// Received request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Method, such as `GET`.
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Headers by lower-case name.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Response to a request.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Headers beside `Content-Length` and `Connection`.
    pub headers: Vec<(String, String)>,
    /// Bytes that are sent.
    pub body: Vec<u8>,
    /// Value of `Content-Length`; `None`: no such header, the body ends with the connection.
    pub content_length: Option<usize>,
    /// Number of bytes of the body after which the rest waits for the gate.
    pub gate: Option<(usize, Gate)>,
}

/// Gate that lets a response through for each permit that is added.
pub type Gate = Arc<tokio::sync::Semaphore>;

impl Response {
    /// Creates a response with a body.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self { status, headers: Vec::new(), content_length: Some(body.len()), body, gate: None }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;
type Handler = Arc<dyn Fn(Request) -> ResponseFuture + Send + Sync>;

/// Running server. It ends when it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    scheme: &'static str,
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    task: AbortHandle,
}

impl HttpServer {
    /// Starts a server on a free port of the loopback interface.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start<F: Future<Output = Response> + Send + 'static>(
        handler: impl Fn(Request) -> F + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_with(handler, None).await
    }

    /// Starts a server as [`HttpServer::start`] does, with TLS.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub(crate) async fn start_tls<F: Future<Output = Response> + Send + 'static>(
        handler: impl Fn(Request) -> F + Send + Sync + 'static,
        acceptor: TlsAcceptor,
    ) -> io::Result<Self> {
        Self::start_with(handler, Some(acceptor)).await
    }

    async fn start_with<F: Future<Output = Response> + Send + 'static>(
        handler: impl Fn(Request) -> F + Send + Sync + 'static,
        acceptor: Option<TlsAcceptor>,
    ) -> io::Result<Self> {
        let handler: Handler = Arc::new(move |request| Box::pin(handler(request)));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let log = Arc::clone(&requests);
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        let serve = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (handler, log, acceptor) = (Arc::clone(&handler), Arc::clone(&log), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(stream, handler, log).await,
                        // A client that does not trust the certificate ends the connection.
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(stream, handler, log).await;
                            }
                        }
                    }
                });
            }
        };
        Ok(Self { scheme, address, requests, task: tokio::spawn(serve).abort_handle() })
    }

    /// Returns the base URL: `http://127.0.0.1:PORT`, or `https://…` with TLS.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Returns the requests received so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, handler: Handler, log: Arc<Mutex<Vec<Request>>>) {
    let mut stream = BufReader::new(stream);
    let Ok(request) = read(&mut stream).await else { return };
    log.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
    let response = handler(request).await;
    // The client may have closed the connection; the error is ignored.
    drop(write(&mut stream, response).await);
}

/// Reads a request; its method is empty if the client sends none. Confirms that it expects the content.
pub(crate) async fn read<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut BufReader<S>) -> io::Result<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut request = Request {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        ..Request::default()
    };
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    if request.header("expect").is_some_and(|expected| expected.eq_ignore_ascii_case("100-continue")) {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    if request.header("transfer-encoding").is_some_and(|encoding| encoding == "chunked") {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size).await?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk).await?;
            request.body.extend(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = request.header("content-length").and_then(|length| length.parse().ok()) {
        request.body = vec![0; length];
        stream.read_exact(&mut request.body).await?;
    }
    Ok(request)
}

/// Writes a response, and ends the connection.
pub(crate) async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufReader<S>,
    response: Response,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", response.status);
    head += &response.content_length.map_or_else(String::new, |length| format!("Content-Length: {length}\r\n"));
    for (name, value) in &response.headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes()).await?;
    let (free, gate) = response.gate.map_or((response.body.len(), None), |(free, gate)| (free, Some(gate)));
    stream.write_all(&response.body[..free]).await?;
    stream.flush().await?;
    if let Some(gate) = gate {
        gate.acquire().await.map_err(io::Error::other)?.forget();
        stream.write_all(&response.body[free..]).await?;
    }
    stream.flush().await?;
    stream.shutdown().await
}
