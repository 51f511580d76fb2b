//! Registration of the test plugin at its host, and the faults of it.

use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;

use pulumi_proto::host_v1::host_client::HostClient;
use pulumi_proto::host_v1::register_request::Address;
use pulumi_proto::host_v1::{DeregisterRequest, RegisterRequest};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::server::{Router, TcpIncoming};
use tonic::transport::{Channel, Endpoint};

use crate::Provider;

/// Registration of a plugin.
struct Registration {
    host: HostClient<Channel>,
    id: String,
}

/// Socket at which a plugin serves.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

fn value<'f>(faults: &'f [String], name: &str) -> Option<&'f str> {
    faults.iter().find_map(|fault| fault.strip_prefix(name)?.strip_prefix('='))
}

impl Registration {
    /// Opens a socket and registers it. Exits with the message of the host if it refuses.
    async fn begin(faults: &[String]) -> (Listener, Self) {
        let host = std::env::var("SC_PLUGIN_HOST").unwrap();
        let (listener, address) = match value(faults, "socket") {
            Some(path) => {
                let listener = StdUnixListener::bind(path).unwrap();
                listener.set_nonblocking(true).unwrap();
                let address = Address::UnixSocket(path.to_owned());
                (Listener::Unix(UnixListener::from_std(listener).unwrap()), address)
            }
            None => {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let port = listener.local_addr().unwrap().port().into();
                (Listener::Tcp(listener), Address::Port(port))
            }
        };
        let address = match (value(faults, "register port"), value(faults, "register socket")) {
            (Some(port), _) => Some(Address::Port(port.parse().unwrap())),
            (_, Some(path)) => Some(Address::UnixSocket(path.to_owned())),
            _ if faults.iter().any(|fault| fault == "register no address") => None,
            _ => Some(address),
        };
        let token = std::env::var("SC_PLUGIN_TOKEN").unwrap();
        let request = RegisterRequest {
            token: value(faults, "register token").map_or(token, str::to_owned),
            name: value(faults, "register name").unwrap_or("x").to_owned(),
            version: value(faults, "register version").unwrap_or("1.2.3").to_owned(),
            protocol_versions: vec![value(faults, "register protocol").unwrap_or("1.0").to_owned()],
            address,
        };
        let mut host = HostClient::new(Endpoint::from_shared(format!("unix:{host}")).unwrap().connect_lazy());
        let registered = match host.register(request.clone()).await {
            Ok(registered) => registered.into_inner(),
            Err(status) => {
                eprintln!("{:?}: {}", status.code(), status.message());
                std::process::exit(5);
            }
        };
        assert_eq!(registered.protocol_version, "1.0");
        if faults.iter().any(|fault| fault == "register twice") {
            let status = host.register(request).await.unwrap_err();
            println!("{:?}: {}", status.code(), status.message());
        }
        (listener, Self { host, id: registered.registration_id })
    }

    /// Deregisters the plugin.
    async fn end(&mut self) {
        self.host.deregister(DeregisterRequest { registration_id: self.id.clone() }).await.unwrap();
        let unknown = DeregisterRequest { registration_id: "x".to_owned() };
        assert_eq!(self.host.deregister(unknown).await.unwrap_err().code(), tonic::Code::NotFound);
    }
}

/// Registers a plugin, and serves until SIGTERM. Once it has deregistered, SIGTERM ends it with calls in flight.
pub(crate) async fn serve(server: Router, provider: Provider) {
    let (listener, mut registration) = Registration::begin(&provider.faults).await;
    let of_deregistered = Arc::clone(&provider.deregistered);
    let (stop, stopped) = oneshot::channel::<()>();
    let ends = async { drop(stopped.await) };
    let served = async {
        match listener {
            Listener::Tcp(listener) => server.serve_with_incoming_shutdown(TcpIncoming::from(listener), ends).await,
            Listener::Unix(listener) => {
                server.serve_with_incoming_shutdown(UnixListenerStream::new(listener), ends).await
            }
        }
    };
    let ending = async {
        tokio::select! {
            () = terminated() => {
                provider.record_call("SIGTERM");
                registration.end().await;
                drop(stop);
                std::future::pending().await
            }
            () = of_deregistered.notified() => {
                registration.end().await;
                terminated().await;
            }
        }
    };
    tokio::select! {
        served = served => served.unwrap(),
        () = ending => {}
    }
}

async fn terminated() {
    signal(SignalKind::terminate()).unwrap().recv().await;
}
