//! The broker of a go-plugin server, not multiplexed: both sides announce further servers on one stream, each with a
//! number (docs/spec/plugin-hosts.md#A.10).
//!
//! The stream is opened right after the connection and held to the end: the first one that ends closes the broker of the
//! plugin for the life of its process. A message of the plugin serves one dial and is kept for five seconds; a dial waits
//! as long for its message.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pulumi_proto::go_plugin::ConnInfo;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Connection;
use super::call::{CallError, Procedure};
use super::socket::{PluginAddress, dial};
use super::stream_call::{RequestStream, StreamedReplies};
use super::tls::MutualTls;

/// Time for which a dial waits for its message, and a message for its dial.
const WAIT: Duration = Duration::from_secs(5);

/// Largest number of messages of the plugin that wait for a dial. A further one is dropped.
const MAX_MESSAGES: usize = 1024;

/// Number of messages to the plugin that wait while it reads none.
const OUTGOING: usize = 16;

struct StartStream;

impl Procedure for StartStream {
    const PATH: &'static str = "/plugin.GRPCBroker/StartStream";
    type Request = ConnInfo;
    type Reply = ConnInfo;
}

/// Error of the broker.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The plugin has not announced the service in time.
    #[error("the plugin has not announced its service {id} within {} s", WAIT.as_secs())]
    NotAnnounced {
        /// Number of the service.
        id: u32,
    },
    /// The plugin has announced an address that is not used.
    #[error("the plugin has announced its service {id} at {network:?} {address:?}, {reason}")]
    Address {
        /// Number of the service.
        id: u32,
        /// Network as announced.
        network: String,
        /// Address as announced.
        address: String,
        /// Reason why it is not used.
        reason: &'static str,
    },
    /// The stream of the broker has ended: the plugin has exited, or does not serve the broker.
    #[error("the broker of the plugin is closed")]
    Closed,
}

/// Broker of one plugin. Clones share it; the stream ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Broker(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    outgoing: mpsc::Sender<ConnInfo>,
    waiting: Arc<Mutex<Waiting>>,
    next_id: AtomicU32,
    folder: PathBuf,
    tls: Option<MutualTls>,
    /// Connection that carries the stream: dropping its last clone would close it.
    _connection: Connection,
    /// Task that moves the messages. Aborted when the broker is dropped.
    _driver: JoinSet<()>,
}

impl Broker {
    /// Opens the stream of the broker. `folder` is the private folder of the sockets of the host; `tls` protects the
    /// brokered connections, as it does that to the plugin.
    ///
    /// # Errors
    /// [`CallError::NotSent`] if the plugin is not connected. A plugin without the service is noticed later: its broker
    /// is closed.
    pub async fn open(connection: &Connection, folder: &Path, tls: Option<MutualTls>) -> Result<Self, CallError> {
        let (requests, replies) = connection.call_bidirectional::<StartStream>().await?;
        let (outgoing, messages) = mpsc::channel(OUTGOING);
        let waiting = Arc::<Mutex<Waiting>>::default();
        let mut driver = JoinSet::new();
        driver.spawn(drive(requests, replies, messages, Arc::clone(&waiting)));
        Ok(Self(Arc::new(Shared {
            outgoing,
            waiting,
            next_id: AtomicU32::new(1),
            folder: folder.to_owned(),
            tls,
            _connection: connection.clone(),
            _driver: driver,
        })))
    }

    /// Returns the next number for a service of the host, counted from 1. The plugin counts its own.
    pub fn next_id(&self) -> u32 {
        self.0.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the private folder of the sockets of the host.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Returns the TLS of brokered connections; `None` if they are plain.
    pub fn tls(&self) -> Option<&MutualTls> {
        self.0.tls.as_ref()
    }

    /// Announces a server of the host at a Unix socket to the plugin.
    ///
    /// # Errors
    /// [`BrokerError::Closed`].
    pub async fn announce(&self, id: u32, socket: &Path) -> Result<(), BrokerError> {
        let address = socket.display().to_string();
        let message = ConnInfo { service_id: id, network: "unix".to_owned(), address, knock: None };
        self.0.outgoing.send(message).await.map_err(|_| BrokerError::Closed)
    }

    /// Returns a connection to a service that the plugin offers. Waits at most five seconds for its announcement, which
    /// serves one dial. The connection is opened on first use, and again after it was lost.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub async fn dial(&self, id: u32) -> Result<Connection, BrokerError> {
        let announced = self.waiting().take(id);
        let message = match announced {
            Taken::Message(message) => message,
            Taken::Wait(receiver) => match tokio::time::timeout(WAIT, receiver).await {
                Ok(Ok(message)) => message,
                Ok(Err(_)) => return Err(BrokerError::Closed),
                Err(_) => return Err(BrokerError::NotAnnounced { id }),
            },
            Taken::Closed => return Err(BrokerError::Closed),
        };
        let address = brokered_address(message)?;
        let (tls, waiting) = (self.0.tls.clone(), Arc::clone(&self.0.waiting));
        Ok(Connection::of_boxed(move || {
            let (address, tls) = (address.clone(), tls.clone());
            // The plugin has exited: another process may listen at the address.
            let is_closed = lock(&waiting).is_closed;
            async move {
                if is_closed { Err(io::ErrorKind::NotConnected.into()) } else { dial(&address, tls.as_ref()).await }
            }
        }))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.0.waiting)
    }
}

/// Returns the state. Each change of it is complete before a call that could panic.
fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves the messages in both directions until the stream ends.
async fn drive(
    mut requests: RequestStream<ConnInfo>,
    mut replies: StreamedReplies<ConnInfo>,
    mut messages: mpsc::Receiver<ConnInfo>,
    waiting: Arc<Mutex<Waiting>>,
) {
    let send = async {
        while let Some(message) = messages.recv().await {
            if requests.send(&message).await.is_err() {
                break;
            }
        }
        // The requests are not dropped before the replies end: that would end the stream.
        std::future::pending::<()>().await;
    };
    let receive = async {
        while let Ok(Some(message)) = replies.next().await {
            lock(&waiting).announced(message, Instant::now());
        }
    };
    tokio::select! {
        () = send => {}
        () = receive => {}
    }
    lock(&waiting).close();
}

/// Messages that wait for their dial, and dials that wait for their message.
#[derive(Debug, Default)]
struct Waiting {
    messages: HashMap<u32, (ConnInfo, Instant)>,
    dials: HashMap<u32, VecDeque<oneshot::Sender<ConnInfo>>>,
    is_closed: bool,
}

enum Taken {
    Message(ConnInfo),
    Wait(oneshot::Receiver<ConnInfo>),
    Closed,
}

impl Waiting {
    /// Gives a message to the dial that waits longest, or keeps it. A further message for the same number is dropped, as
    /// Go's library does.
    fn announced(&mut self, mut message: ConnInfo, now: Instant) {
        // Only multiplexed brokers knock, which the host has not offered.
        if message.knock.is_some() {
            return;
        }
        let id = message.service_id;
        if let Some(mut dials) = self.dials.remove(&id) {
            while let Some(dial) = dials.pop_front() {
                match dial.send(message) {
                    Ok(()) => {
                        if !dials.is_empty() {
                            self.dials.insert(id, dials);
                        }
                        return;
                    }
                    // The dial has timed out.
                    Err(returned) => message = returned,
                }
            }
        }
        self.messages.retain(|_, (_, expiry)| *expiry > now);
        if self.messages.len() < MAX_MESSAGES {
            self.messages.entry(id).or_insert((message, now + WAIT));
        }
    }

    fn take(&mut self, id: u32) -> Taken {
        match self.messages.remove(&id) {
            Some((message, expiry)) if expiry > Instant::now() => return Taken::Message(message),
            _ if self.is_closed => return Taken::Closed,
            _ => {}
        }
        let dials = self.dials.entry(id).or_default();
        // Dials that have timed out do not accumulate.
        dials.retain(|dial| !dial.is_closed());
        let (sender, receiver) = oneshot::channel();
        dials.push_back(sender);
        Taken::Wait(receiver)
    }

    /// Ends all dials that wait.
    fn close(&mut self) {
        self.is_closed = true;
        self.dials.clear();
    }
}

/// Returns the address in a message: an absolute path, or a port of the loopback interface.
fn brokered_address(message: ConnInfo) -> Result<PluginAddress, BrokerError> {
    let parsed = match message.network.as_str() {
        "unix" if Path::new(&message.address).is_absolute() => Ok(PluginAddress::Unix(message.address.clone().into())),
        "unix" => Err("which is no absolute path"),
        "tcp" => match message.address.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() && address.port() != 0 => Ok(PluginAddress::Tcp(address)),
            _ => Err("which is no address of the loopback interface"),
        },
        _ => Err("which is an unknown network"),
    };
    parsed.map_err(|reason| BrokerError::Address {
        id: message.service_id,
        network: message.network,
        address: message.address,
        reason,
    })
}
