//! Plugin process of a provider: prints its port and serves until it receives a signal.
//!
//! With `REC_KILL=17:before` it kills its parent process when it receives the 17th call, before handling it; with
//! `after`, after handling it and before replying. With `17:before:plugin` or `17:after:plugin` it kills itself.
//!
//! With `REC_CONNECT=500` it opens 500 connections to the engine service and keeps them.

use std::convert::Infallible;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, kill_process, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;

use crate::channel::GrpcService;

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Returns an error if there is no free port, or standard output is closed.
pub async fn serve(service: impl GrpcService) -> Result<(), Box<dyn std::error::Error>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    // A limit on the size of files is meant for the parent process only.
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, ..limit })?;
    let _connections = open_connections().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let service = KillingService { inner: service, kill_point: KillPoint::from_environment(), calls: Arc::default() };
    let serve = tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming);
    // The end is not graceful, as a hanging call would delay it for ever.
    tokio::select! {
        served = serve => served?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Opens the connections that `REC_CONNECT` asks for, to the engine service that the first argument names.
async fn open_connections() -> Result<Vec<TcpStream>, Box<dyn std::error::Error>> {
    let count = std::env::var("REC_CONNECT").map_or(Ok(0), |count| count.parse())?;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(TcpStream::connect(std::env::args().nth(1).unwrap_or_default()).await?);
    }
    Ok(connections)
}

/// Call at which a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KillPoint {
    call: u64,
    before: bool,
    target: KillTarget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillTarget {
    Starter,
    Plugin,
}

impl KillPoint {
    fn from_environment() -> Option<Self> {
        let text = std::env::var("REC_KILL").ok()?;
        let (call, when) = text.split_once(':')?;
        let (when, target) = match when.split_once(':') {
            Some((when, "plugin")) => (when, KillTarget::Plugin),
            _ => (when, KillTarget::Starter),
        };
        Some(Self { call: call.parse().ok()?, before: when == "before", target })
    }
}

/// Service that kills a process at a call.
#[derive(Clone)]
struct KillingService<S> {
    inner: S,
    kill_point: Option<KillPoint>,
    calls: Arc<AtomicU64>,
}

impl<S: NamedService> NamedService for KillingService<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for KillingService<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let kill_point = self.kill_point.filter(|kill_point| kill_point.call == call);
        if let Some(kill_point) = kill_point.filter(|kill_point| kill_point.before) {
            kill_point.target.kill();
            return Box::pin(std::future::pending());
        }
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await;
            if let Some(kill_point) = kill_point {
                kill_point.target.kill();
                std::future::pending::<()>().await;
            }
            response
        })
    }
}

impl KillTarget {
    fn kill(self) {
        let target = match self {
            Self::Starter => getppid().and_then(starter),
            Self::Plugin => Some(getpid()),
        };
        if let Some(target) = target {
            kill_process(target, Signal::KILL).expect("the process exists and is ours");
        }
    }
}

/// Returns the program that has started this plugin: `sc`, the parent of its supervisor, or the parent itself.
fn starter(parent: Pid) -> Option<Pid> {
    let read = |file| std::fs::read_to_string(format!("/proc/{}/{file}", parent.as_raw_nonzero())).ok();
    if read("comm")?.trim_end() != "supervisor" {
        return Some(parent);
    }
    Pid::from_raw(read("stat")?.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?)
}
