//! The service with which plugins register themselves: `simplecontainer.host.v1` (docs/spec/plugin-hosts.md#C.3).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::stream::{Stream, StreamExt as _};
use pulumi_proto::host_v1::host_server::{Host, HostServer};
use pulumi_proto::host_v1::{DeregisterRequest, DeregisterResponse, RegisterRequest, RegisterResponse};
use tokio::net::{UnixListener, UnixStream};
use tonic::service::Routes;
use tonic::{Request, Response, Status, async_trait};

use super::connection_guard::{Caller, ConnectionGuard, GuardedConnection};
use super::endpoint::{RunningServer, opened};
use crate::fs::ScratchFolder;
use crate::launch::{PluginRegistrations, RegistrationError, create_socket_folder};

/// Name of the socket in its folder.
const SOCKET: &str = "host";
/// Limit on the size of a request in bytes: names, versions and a path.
const MAX_REQUEST: usize = 64 * 1024;

/// Socket at which plugins register, in a private folder. Dropping it stops the service and removes the folder.
#[derive(Debug)]
pub(super) struct RegistrationEndpoint {
    registrations: PluginRegistrations,
    _server: RunningServer,
    _folder: ScratchFolder,
}

impl RegistrationEndpoint {
    /// Opens the socket in the first folder in which its path is short enough. `guard` decides which connections are
    /// accepted, and has the limit on calls.
    ///
    /// # Errors
    /// Returns an error if there is no such folder, or the socket cannot be opened.
    pub(super) fn open(folders: &[PathBuf], guard: Arc<ConnectionGuard>) -> io::Result<Self> {
        let folder = create_socket_folder(folders).map_err(io::Error::other)?;
        let path = folder.path().join(SOCKET);
        let connections = connections(UnixListener::bind(&path)?, Arc::clone(&guard));
        let registrations = PluginRegistrations::new(path);
        let service = HostServer::new(Service(registrations.clone())).max_decoding_message_size(MAX_REQUEST);
        let server = RunningServer::start(Routes::new(service), guard.limits().calls, connections);
        Ok(Self { registrations, _server: server, _folder: folder })
    }

    /// Returns the registrations that are expected at the socket.
    pub(super) fn registrations(&self) -> &PluginRegistrations {
        &self.registrations
    }
}

/// Returns the connections of processes of this account. Never ends.
fn connections(
    listener: UnixListener,
    guard: Arc<ConnectionGuard>,
) -> impl Stream<Item = io::Result<GuardedConnection<UnixStream>>> {
    let opened = opened(listener, |listener| Box::pin(async { Ok(listener.accept().await?.0) }));
    opened.filter_map(move |stream| {
        let admitted = guard.admit_unix(&stream);
        let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let connection = admitted.map(|permit| Ok(GuardedConnection::new(stream, permit).with_process(process)));
        std::future::ready(connection)
    })
}

struct Service(PluginRegistrations);

#[async_trait]
impl Host for Service {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<RegisterResponse>, Status> {
        let process = request.extensions().get::<Caller>().and_then(|caller| caller.process);
        self.0.register(request.into_inner(), process).await.map(Response::new).map_err(|error| status(&error))
    }

    async fn deregister(&self, request: Request<DeregisterRequest>) -> Result<Response<DeregisterResponse>, Status> {
        if self.0.deregister(&request.into_inner().registration_id) {
            Ok(Response::new(DeregisterResponse {}))
        } else {
            Err(Status::not_found("there is no registration with this number"))
        }
    }
}

/// Returns the status of a refused registration, with the codes of `Host.Register`.
fn status(error: &RegistrationError) -> Status {
    use RegistrationError as Error;
    let message = error.to_string();
    match error {
        Error::UnknownToken => Status::unauthenticated(message),
        Error::UsedToken { .. } | Error::SecondRegistration { .. } => Status::already_exists(message),
        Error::TooLate { .. } => Status::deadline_exceeded(message),
        Error::VersionSyntax(_) | Error::NoAddress | Error::InvalidPort(_) | Error::InvalidPath(_) => {
            Status::invalid_argument(message)
        }
        Error::OtherPlugin { .. }
        | Error::OtherName { .. }
        | Error::OtherVersion { .. }
        | Error::ProtocolVersion(_) => Status::failed_precondition(message),
        Error::NotListening(_)
        | Error::ListensAtIpv6(_)
        | Error::ForeignPort { .. }
        | Error::OtherProcess(_)
        | Error::NoSocket(_)
        | Error::ClosedSocket(_)
        | Error::OtherSocket(_)
        | Error::ForeignSocket { .. } => Status::permission_denied(message),
    }
}
