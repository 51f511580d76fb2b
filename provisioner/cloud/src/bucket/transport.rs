//! Reasons why there is no reply of a store, or none that can be used.

use std::error::Error;
use std::io;
use std::time::Duration;

use object_store::client::HttpError;

/// Reason why there is no reply, no whole one, or none of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransportFailure {
    /// A deadline has passed.
    #[error("{host} did not reply within {} s", .limit.as_secs())]
    NoReply {
        /// Host with its port.
        host: String,
        /// The deadline.
        limit: Duration,
    },
    /// A content came too slowly.
    #[error("{}", too_slow(host, *speed, *window, *is_whole))]
    TooSlow {
        /// Host with its port.
        host: String,
        /// Lowest speed in bytes per second.
        speed: u64,
        /// Time over which the speed is averaged.
        window: Duration,
        /// The time for the whole content is over.
        is_whole: bool,
    },
    /// A reply has more bytes than any reply of a store.
    #[error("{host} sent more than {limit} bytes in reply")]
    TooLong {
        /// Host with its port.
        host: String,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// A reply with success is none of a store.
    #[error("{host} did not reply as a store of objects does: {reason}")]
    NoStore {
        /// Host with its port.
        host: String,
        /// Description of the reply.
        reason: String,
    },
    /// The certificate of the host is not trusted.
    #[error("the certificate of {host} is not trusted: {reason}")]
    Certificate {
        /// Host with its port.
        host: String,
        /// Words of the TLS implementation.
        reason: String,
    },
    /// The name of the host has no address.
    #[error("the name of {host} cannot be resolved: {reason}")]
    Name {
        /// Host with its port.
        host: String,
        /// Words of the resolver.
        reason: String,
    },
    /// Any other failure of the connection.
    #[error("the connection to {host} failed: {reason}")]
    Connection {
        /// Host with its port.
        host: String,
        /// Words of the client.
        reason: String,
    },
}

impl TransportFailure {
    /// Describes an error of the client.
    pub(super) fn of(error: &HttpError, host: String) -> Self {
        let mut reason = error.to_string();
        let mut is_name = false;
        let mut current: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(cause) = current {
            if let Some(tls @ rustls::Error::InvalidCertificate(_)) = tls_error(cause) {
                return Self::Certificate { host, reason: tls.to_string() };
            }
            reason = cause.to_string();
            is_name |= reason.contains("dns error");
            current = cause.source();
        }
        if is_name { Self::Name { host, reason } } else { Self::Connection { host, reason } }
    }
}

fn too_slow(host: &str, speed: u64, window: Duration, is_whole: bool) -> String {
    if is_whole {
        format!("{host} did not send the whole reply in time")
    } else {
        format!("{host} sent less than {speed} bytes per second for {} s", window.as_secs())
    }
}

/// Returns the error of TLS in an I/O error: it is not part of the chain.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => tls_error(io.get_ref()?),
        None => error.downcast_ref(),
    }
}
