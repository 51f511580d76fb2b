//! The handshake line of a go-plugin server (docs/spec/plugin-hosts.md#A.2).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;

use super::super::PluginAddress;
use super::super::socket_folder::is_usable_socket_path;
use crate::error::{CUT, cut};

/// Length up to which the library takes the sixth field for empty.
const NO_CERTIFICATE: usize = 50;

/// Parsed handshake line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HandshakeLine {
    /// Address at which the plugin listens.
    pub(super) address: PluginAddress,
    /// Version of the application protocol.
    pub(super) version: u32,
    /// Certificate of the plugin in base64; empty if it printed none.
    pub(super) certificate: String,
}

impl HandshakeLine {
    /// Returns whether the plugin printed a certificate, which means that it serves TLS.
    pub(super) fn has_certificate(&self) -> bool {
        self.certificate.len() > NO_CERTIFICATE
    }
}

/// Reason why the plugin of a handshake line is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The first field is another version than 1.
    #[error("its core protocol has version {0}, sc supports version 1")]
    CoreVersion(i64),
    /// The second field is not a number.
    #[error("its protocol version {0:?} is not a number")]
    VersionSyntax(String),
    /// The plugin has none of the declared versions.
    #[error("it serves protocol version {found}, but goPlugin.versions declares {declared}")]
    Version {
        /// Version of the plugin.
        found: i64,
        /// Declared versions, separated by commas.
        declared: String,
    },
    /// The third field is not a network.
    #[error("its network {0:?} is neither unix nor tcp")]
    Network(String),
    /// The fourth field is not an address of this machine.
    #[error("its address {0:?} is neither a loopback address with a port nor an absolute path of less than 108 bytes")]
    Address(String),
    /// The fifth field is not `grpc`.
    #[error("it speaks {0:?}, not gRPC")]
    Protocol(String),
    /// The sixth field is not a certificate.
    #[error("the certificate in its handshake line is not base64 without padding")]
    Certificate,
    /// The plugin printed no certificate although TLS was requested.
    #[error("it offers no TLS, which goPlugin.tls requests")]
    CertificateMissing,
}

/// Parses a line. Returns `None` if it is not a handshake line: it has fewer than four fields, or the first one is not a
/// number. The fields are checked in their order.
pub(super) fn parse(line: &str, versions: &[u32], tls: bool) -> Option<Result<HandshakeLine, HandshakeError>> {
    if line.ends_with(CUT) {
        return None;
    }
    let fields: Vec<&str> = line.trim().split('|').collect();
    let [core, version, network, address, ..] = fields[..] else { return None };
    let core = core.parse().ok()?;
    Some(check(core, version, network, address, fields.get(4..).unwrap_or_default(), versions, tls))
}

fn check(
    core: i64,
    version: &str,
    network: &str,
    address: &str,
    rest: &[&str],
    versions: &[u32],
    tls: bool,
) -> Result<HandshakeLine, HandshakeError> {
    if core != 1 {
        return Err(HandshakeError::CoreVersion(core));
    }
    let version: i64 = version.parse().map_err(|_| HandshakeError::VersionSyntax(cut(version, 100).into_owned()))?;
    let Some(version) = versions.iter().copied().find(|offered| i64::from(*offered) == version) else {
        return Err(HandshakeError::Version { found: version, declared: join(versions) });
    };
    let shown = || HandshakeError::Address(cut(address, 200).into_owned());
    let address = match network {
        "unix" => unix_address(address).ok_or_else(shown)?,
        "tcp" => tcp_address(address).ok_or_else(shown)?,
        _ => return Err(HandshakeError::Network(cut(network, 100).into_owned())),
    };
    // A plugin from before gRPC prints no fifth field.
    let protocol = rest.first().copied().unwrap_or("netrpc");
    if protocol != "grpc" {
        return Err(HandshakeError::Protocol(cut(protocol, 100).into_owned()));
    }
    let certificate = rest.get(1).copied().unwrap_or_default();
    if tls {
        if certificate.len() <= NO_CERTIFICATE {
            return Err(HandshakeError::CertificateMissing);
        }
        BASE64_STANDARD_NO_PAD.decode(certificate).map_err(|_| HandshakeError::Certificate)?;
    }
    Ok(HandshakeLine { address, version, certificate: certificate.to_owned() })
}

/// Returns the versions, separated by commas.
pub(super) fn join(versions: &[u32]) -> String {
    versions.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn unix_address(path: &str) -> Option<PluginAddress> {
    is_usable_socket_path(path).then(|| PluginAddress::Unix(PathBuf::from(path)))
}

fn tcp_address(address: &str) -> Option<PluginAddress> {
    let (host, port) = address.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    let host = match host {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        host => host.trim_start_matches('[').trim_end_matches(']').parse().ok()?,
    };
    host.is_loopback().then(|| PluginAddress::Tcp(SocketAddr::new(host, port)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    /// Returns the text of a recording: a string, or a list of strings and repetitions.
    fn text(value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().map(text).collect(),
            part => part["repeat"].as_str().unwrap().repeat(part["times"].as_u64().unwrap() as usize),
        }
    }

    /// Returns the verdict of the first handshake line of an output.
    fn verdict(stdout: &str, host: &Value) -> &'static str {
        let versions: Vec<u32> =
            host["versions"].as_array().unwrap().iter().map(|version| version.as_u64().unwrap() as u32).collect();
        let tls = host["mtls"].as_bool().unwrap();
        let parsed = stdout.lines().take(super::super::MAX_JUNK_LINES + 1).find_map(|line| parse(line, &versions, tls));
        match parsed {
            None => "unrecognized",
            Some(Ok(line)) => match super::super::super::HostIdentity::generate() {
                Ok(identity) if tls && identity.with_plugin_certificate(&line.certificate).is_err() => "certificate",
                _ => "ok",
            },
            Some(Err(error)) => match error {
                HandshakeError::CoreVersion(_) => "core-version",
                HandshakeError::VersionSyntax(_) => "app-syntax",
                HandshakeError::Version { .. } => "app-version",
                HandshakeError::Network(_) => "network",
                HandshakeError::Address(_) => "address",
                HandshakeError::Protocol(_) => "protocol",
                HandshakeError::Certificate => "certificate",
                HandshakeError::CertificateMissing => "certificate-missing",
            },
        }
    }

    fn recordings() -> Vec<Value> {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens/go-plugin");
        let folders = [Some(own.to_owned()), std::env::var("SC_GO_PLUGIN_GOLDENS").ok()];
        let files = folders.into_iter().flatten().map(|folder| format!("{folder}/handshakes.json"));
        files.map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()).collect()
    }

    #[test]
    fn recorded_lines_have_their_verdicts() {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for recording in recordings() {
            let real = recording["real"].as_array().unwrap().iter().map(|case| (case, &case["line"], &case["verdict"]));
            let lines = recording["lines"].as_array().unwrap().iter();
            let lines = lines.map(|case| (case, &case["stdout"], case.get("ours").unwrap_or(&case["go"])));
            for (case, line, expected) in real.chain(lines) {
                let has_negative_version =
                    case["host"]["versions"].as_array().unwrap().iter().any(|version| version.as_u64().is_none());
                // The end of the output and the limit on the start are not those of a line; declared versions are not
                // negative. The multiplexed broker is never requested, so its field is not read.
                let expected = match expected.as_str().unwrap() {
                    "mux-unsupported" | "mux-syntax" => "ok",
                    verdict => verdict,
                };
                let allows_grpc = case["host"]["protocols"].as_array().unwrap().iter().any(|kind| kind == "grpc");
                if ["no-line", "timeout"].contains(&expected) || has_negative_version || !allows_grpc {
                    continue;
                }
                assert_eq!(verdict(&text(line), &case["host"]), expected, "{}", case["name"]);
                *counts.entry(expected.to_owned()).or_default() += 1;
            }
        }
        assert!(counts["ok"] > 60 && counts["address"] > 9 && counts["certificate-missing"] > 1, "{counts:?}");
    }
}
