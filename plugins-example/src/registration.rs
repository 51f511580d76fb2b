//! Registration at the host, for a plugin with `protocol: register`.

use std::time::Duration;

use pulumi_proto::host_v1::host_client::HostClient;
use pulumi_proto::host_v1::register_request::Address;
use pulumi_proto::host_v1::{DeregisterRequest, RegisterRequest};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::{PACKAGE, VERSION};

/// Time limit for the message that the plugin ends. The host may have ended before.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Registration of this plugin.
pub struct Registration {
    host: HostClient<Channel>,
    id: String,
}

impl Registration {
    /// Registers the plugin, which listens at `port`, at the host with a Unix socket.
    ///
    /// # Errors
    /// The status with which the host refuses the registration, or that of a host that cannot be called.
    pub async fn begin(socket: &str, token: String, port: u16) -> Result<Self, Status> {
        let endpoint = Endpoint::from_shared(format!("unix:{socket}"));
        let endpoint = endpoint.map_err(|error| Status::invalid_argument(error.to_string()))?;
        let mut host = HostClient::new(endpoint.connect_lazy());
        let request = RegisterRequest {
            token,
            name: PACKAGE.to_owned(),
            version: VERSION.to_owned(),
            protocol_versions: vec!["1.0".to_owned()],
            address: Some(Address::Port(port.into())),
        };
        let registered = host.register(request).await?.into_inner();
        Ok(Self { host, id: registered.registration_id })
    }

    /// Reports that the plugin ends.
    pub async fn end(mut self) {
        let request = DeregisterRequest { registration_id: self.id };
        tokio::time::timeout(TIMEOUT, self.host.deregister(request)).await.ok();
    }
}
