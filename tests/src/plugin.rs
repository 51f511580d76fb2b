//! Plugin process of a provider: prints its port and serves until it receives a signal.
//!
//! With `REC_KILL=17:before` it kills its parent process when it receives the 17th call, before handling it; with
//! `after`, after handling it and before replying. With `17:before:plugin` or `17:after:plugin` it kills itself.

use std::convert::Infallible;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use rustix::process::{Resource, Rlimit, Signal, getpid, getppid, getrlimit, kill_process, setrlimit};

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;

use crate::channel::Served;

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Returns an error if there is no free port, or standard output is closed.
pub async fn serve(service: impl Served) -> Result<(), Box<dyn std::error::Error>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    // A limit on the size of files is meant for the parent process only.
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, ..limit })?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let service = Deadly { inner: service, moment: Moment::of_environment(), calls: Arc::default() };
    let serve = tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming);
    // The end is not graceful, as a hanging call would delay it for ever.
    tokio::select! {
        served = serve => served?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Call at which a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    call: u64,
    before: bool,
    victim: Victim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Starter,
    Plugin,
}

impl Moment {
    fn of_environment() -> Option<Self> {
        let text = std::env::var("REC_KILL").ok()?;
        let (call, when) = text.split_once(':')?;
        let (when, victim) = match when.split_once(':') {
            Some((when, "plugin")) => (when, Victim::Plugin),
            _ => (when, Victim::Starter),
        };
        Some(Self { call: call.parse().ok()?, before: when == "before", victim })
    }
}

/// Service that kills a process at a call.
#[derive(Clone)]
struct Deadly<S> {
    inner: S,
    moment: Option<Moment>,
    calls: Arc<AtomicU64>,
}

impl<S: NamedService> NamedService for Deadly<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Deadly<S>
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
        let moment = self.moment.filter(|moment| moment.call == call);
        if let Some(moment) = moment.filter(|moment| moment.before) {
            moment.victim.kill();
            return Box::pin(std::future::pending());
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let Some(moment) = moment {
                moment.victim.kill();
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}

impl Victim {
    fn kill(self) {
        let victim = match self {
            Self::Starter => getppid(),
            Self::Plugin => Some(getpid()),
        };
        if let Some(victim) = victim {
            kill_process(victim, Signal::KILL).expect("the victim is there, and ours");
        }
    }
}
