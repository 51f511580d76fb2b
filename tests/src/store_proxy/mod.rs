//! Proxy in front of a store: counts and delays the requests, and fails some of them.
//!
//! Input: the address of a store that speaks HTTP (S3, Google Cloud Storage) or the protocol of PostgreSQL without TLS.
//! Output: an address to use instead, and the requests. Each HTTP connection to it carries one request; the headers and the
//! content of a request are forwarded unchanged, so that signatures stay valid. It runs on a thread of its own, so that tests
//! with and without a runtime, and benchmarks, can use it.

mod exchange;
mod forward;
mod http_mode;
mod postgres_mode;
mod rules;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use exchange::{Exchange, round_trips};
pub use rules::{Conditions, Fault};

use rules::{Rules, Shared};

/// Protocol of a store.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Http,
    Postgres,
}

/// Running proxy. It ends when it is dropped.
#[derive(Debug)]
pub struct StoreProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Dropped to end the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StoreProxy {
    /// Starts a proxy in front of a store that speaks HTTP, such as `http://127.0.0.1:5000`.
    ///
    /// # Errors
    /// Returns an error if the URL has another form, or no port is free.
    pub fn in_front_of(url: &str) -> io::Result<Self> {
        let address = url.strip_prefix("http://").and_then(|rest| rest.trim_end_matches('/').parse().ok());
        let address = address.ok_or_else(|| io::Error::other(format!("{url} is no http://ADDRESS:PORT")))?;
        Self::start(address, Protocol::Http)
    }

    /// Starts a proxy in front of PostgreSQL on a port of 127.0.0.1. Clients must not use TLS. A request is a query or the
    /// messages up to a Sync.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub fn in_front_of_postgres(port: u16) -> io::Result<Self> {
        Self::start(SocketAddr::from(([127, 0, 0, 1], port)), Protocol::Postgres)
    }

    fn start(store: SocketAddr, protocol: Protocol) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared::new(store));
        let (end, ended) = oneshot::channel();
        let of_thread = Arc::clone(&shared);
        let serve = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(serve(client, Arc::clone(&of_thread), protocol));
            }
        };
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve => {}
                    _ = ended => {}
                }
            });
        });
        Ok(Self { address, shared, end: Some(end), thread: Some(thread) })
    }

    /// Returns the address and the port of the proxy.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns the URL of a proxy of HTTP: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Delays each request by this time from now on. Concurrent requests are delayed concurrently.
    pub fn set_delay(&self, delay: Duration) {
        self.shared.change(|rules| rules.delay = delay);
    }

    /// Adds a fault for the next request that has none yet.
    pub fn fail_next(&self, fault: Fault) {
        self.shared.change(|rules| rules.next.push_back(fault));
    }

    /// Sets the fault of the request with a number, counted from 0 since the last [`forget_requests`](Self::forget_requests).
    pub fn fail_at(&self, number: usize, fault: Fault) {
        self.shared.change(|rules| rules.at.extend([(number, fault)]));
    }

    /// Replies that the store is busy to this number of requests.
    pub fn throttle(&self, requests: usize) {
        self.shared.change(|rules| rules.next.extend(std::iter::repeat_n(Fault::BUSY, requests)));
    }

    /// Sets the fault of all requests from a number on that have no other.
    pub fn fail_from(&self, number: usize, fault: Fault) {
        self.shared.change(|rules| rules.from = Some((number, fault)));
    }

    /// Removes all rules but the delay, and lets the requests that are held go on.
    pub fn recover(&self) {
        self.shared.change(|rules| *rules = Rules { delay: rules.delay, ..Rules::default() });
    }

    /// Adds seconds to the times in the replies of a bucket: its clock is ahead of the clock of this machine.
    pub fn shift_clock(&self, seconds: i64) {
        self.shared.change(|rules| rules.clock_shift = seconds);
    }

    /// Refuses requests whose time is more than a quarter of an hour away from the clock of the store, as Amazon does.
    pub fn check_request_times(&self) {
        self.shared.change(|rules| rules.checks_times = true);
    }

    /// Sets who checks the conditions of writes.
    pub fn set_conditions(&self, conditions: Conditions) {
        self.shared.change(|rules| rules.conditions = conditions);
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Exchange> {
        self.shared.requests()
    }

    /// Removes the requests so far from the record, and counts from 0 again.
    pub fn forget_requests(&self) {
        self.shared.forget();
    }

    /// Waits until a request is held, and returns true; false once `is_over` returns true before.
    pub fn wait_until_held(&self, is_over: impl FnMut() -> bool) -> bool {
        self.shared.wait_until_held(is_over)
    }

    /// Waits until no request is held any more, such as after the end of its client.
    pub fn wait_until_free(&self) {
        self.shared.wait_until_free();
    }
}

impl Drop for StoreProxy {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed; the requests that failed make the test fail.
            drop(thread.join());
        }
    }
}

async fn serve(client: TcpStream, shared: Arc<Shared>, protocol: Protocol) {
    // Either side may close the connection; the error is ignored.
    drop(match protocol {
        Protocol::Http => http_mode::serve(client, &shared).await,
        Protocol::Postgres => postgres_mode::serve(client, &shared).await,
    });
}
