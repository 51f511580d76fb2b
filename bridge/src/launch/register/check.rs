//! Check of a registration: package, version, protocol and address.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use pulumi_proto::host_v1::RegisterRequest;
use pulumi_proto::host_v1::register_request::Address;

use super::super::PluginAddress;
use super::super::socket::listens_at_ipv6;
use super::super::socket_folder::is_usable_socket_path;
use super::error::{RegistrationError, SUPPORTED_VERSION};
use super::group::ProcessGroup;
use crate::error::cut;
use crate::peer::{Listening, listening, unix_listener};
use crate::plugin::PluginVersion;

/// Returns the address of a registration with the declared version and a supported protocol, without a look at the system.
///
/// # Errors
/// [`RegistrationError`] of the first field that is refused: protocol version, version, address.
pub(super) fn check_fields(
    request: &RegisterRequest,
    declared: Option<&PluginVersion>,
) -> Result<PluginAddress, RegistrationError> {
    if !request.protocol_versions.iter().any(|version| version == SUPPORTED_VERSION) {
        let shown = request.protocol_versions.iter().take(10).map(|version| cut(version, 20).into_owned());
        return Err(RegistrationError::ProtocolVersion(shown.collect()));
    }
    check_version(&request.version, declared)?;
    match &request.address {
        None => Err(RegistrationError::NoAddress),
        Some(Address::Port(port)) => match u16::try_from(*port) {
            Ok(port) if port != 0 => Ok(PluginAddress::Tcp((Ipv4Addr::LOCALHOST, port).into())),
            Ok(_) | Err(_) => Err(RegistrationError::InvalidPort(*port)),
        },
        Some(Address::UnixSocket(path)) if is_usable_socket_path(path) => Ok(PluginAddress::Unix(PathBuf::from(path))),
        Some(Address::UnixSocket(path)) => Err(RegistrationError::InvalidPath(cut(path, 200).into_owned())),
    }
}

fn check_version(registered: &str, declared: Option<&PluginVersion>) -> Result<(), RegistrationError> {
    if registered.is_empty() {
        return Ok(());
    }
    let shown = || cut(registered, 100).into_owned();
    let found: PluginVersion = registered.parse().map_err(|_| RegistrationError::VersionSyntax(shown()))?;
    match declared {
        Some(declared) if *declared != found => {
            Err(RegistrationError::OtherVersion { expected: declared.to_string(), found: shown() })
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that an address belongs to the account of this process, and that one of the processes listens there.
///
/// # Errors
/// [`RegistrationError`].
pub(super) async fn check_owner(address: &PluginAddress, groups: Vec<ProcessGroup>) -> Result<(), RegistrationError> {
    match address {
        PluginAddress::Tcp(address) => {
            let address = *address;
            let checked = tokio::task::spawn_blocking(move || check_port(address, &groups)).await;
            match checked {
                Ok(Err(RegistrationError::NotListening(port))) if listens_at_ipv6(port).await => {
                    Err(RegistrationError::ListensAtIpv6(port))
                }
                Ok(checked) => checked,
                // The check was not carried out, because the runtime ends: the address is not used any more.
                Err(_) => Err(RegistrationError::NoAddress),
            }
        }
        PluginAddress::Unix(path) => {
            check_socket(path)?;
            match unix_listener(path).await {
                Err(_) => Err(RegistrationError::ClosedSocket(path.clone())),
                Ok(Some(process)) if is_other(&groups, process) => Err(RegistrationError::OtherSocket(path.clone())),
                Ok(_) => Ok(()),
            }
        }
    }
}

/// Returns whether a process belongs to none of the groups. One that has exited, or that the system does not show, does not
/// count: it may have left the socket to another one.
fn is_other(groups: &[ProcessGroup], process: i32) -> bool {
    ProcessGroup::of_member(process).is_some() && !contain(groups, process)
}

fn contain(groups: &[ProcessGroup], process: i32) -> bool {
    groups.iter().any(|group| group.contains(process))
}

/// Checks that one of the processes listens at a port. Blocks for milliseconds.
fn check_port(address: SocketAddr, groups: &[ProcessGroup]) -> Result<(), RegistrationError> {
    let port = address.port();
    match listening(address, |process| contain(groups, process)) {
        Listening::Selected => Ok(()),
        Listening::Other => Err(RegistrationError::OtherProcess(port)),
        Listening::Foreign { uid } => Err(RegistrationError::ForeignPort { port, uid }),
        Listening::None => Err(RegistrationError::NotListening(port)),
    }
}

/// Checks that a path leads to a socket of this account.
fn check_socket(path: &Path) -> Result<(), RegistrationError> {
    let metadata = std::fs::symlink_metadata(path).ok().filter(|metadata| metadata.file_type().is_socket());
    let Some(metadata) = metadata else { return Err(RegistrationError::NoSocket(path.to_owned())) };
    let uid = metadata.uid();
    if uid == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(RegistrationError::ForeignSocket { path: path.to_owned(), uid })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn request(protocol: &[&str], version: &str, address: Option<Address>) -> RegisterRequest {
        let protocol_versions = protocol.iter().map(|version| (*version).to_owned()).collect();
        RegisterRequest { protocol_versions, version: version.to_owned(), address, ..Default::default() }
    }

    #[test]
    fn fields_are_refused_in_their_order() {
        let declared: PluginVersion = "1.2.0".parse().unwrap();
        let socket = |path: &str| Some(Address::UnixSocket(path.to_owned()));
        let long = format!("/{}", "x".repeat(107));
        let table = [
            (request(&[], "x", None), "it supports no version, but"),
            (request(&["2.0", "3.1"], "x", None), "it supports version 2.0, 3.1, but"),
            (request(&["1.0"], "x", None), "which is no version"),
            (request(&["1.0"], "1.2.1", None), "the version 1.2.1, but 1.2.0 is declared"),
            (request(&["1.0"], "v1.2.0", None), "neither a port nor a Unix socket"),
            (request(&["1.0"], "", Some(Address::Port(0))), "the port 0, which"),
            (request(&["1.0"], "", Some(Address::Port(65536))), "the port 65536, which"),
            (request(&["1.0"], "", socket("tmp/x")), "\"tmp/x\", which is not an absolute path"),
            (request(&["1.0"], "", socket("")), "which is not an absolute path"),
            (request(&["1.0"], "", socket(&long)), "of less than 108 bytes"),
        ];
        for (request, expected) in table {
            let error = check_fields(&request, Some(&declared)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}: {expected}");
        }
        let usable = [
            (request(&["2.0", "1.0"], "1.2.0", Some(Address::Port(65535))), "127.0.0.1:65535"),
            (request(&["1.0"], "", socket(&long[..107])), &long[..107]),
        ];
        for (request, expected) in usable {
            assert_eq!(check_fields(&request, Some(&declared)).unwrap().to_string(), expected);
        }
        assert!(check_fields(&request(&["1.0"], "7.0.0", Some(Address::Port(1))), None).is_ok());
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn socket_belongs_to_one_of_the_processes() {
        let folder = tempfile::tempdir().unwrap();
        let (file, socket) = (folder.path().join("file"), folder.path().join("socket"));
        std::fs::write(&file, "").unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink(&socket, folder.path().join("link")).unwrap();
        let own = ProcessGroup::of_member(i32::try_from(std::process::id()).unwrap()).unwrap();
        let other = ProcessGroup::of_leader(i32::MAX);
        let check = async |path: &Path, groups: &[ProcessGroup]| {
            check_owner(&PluginAddress::Unix(path.to_owned()), groups.to_vec()).await
        };
        assert_eq!(check(&socket, &[other, own]).await, Ok(()));
        assert_eq!(check(&socket, &[other]).await, Err(RegistrationError::OtherSocket(socket.clone())));
        for path in [file, folder.path().join("none"), folder.path().join("link")] {
            assert_eq!(check(&path, &[own]).await, Err(RegistrationError::NoSocket(path.clone())));
        }
        drop(listener);
        assert_eq!(check(&socket, &[own]).await, Err(RegistrationError::ClosedSocket(socket.clone())));
    }

    /// Shows: hosting.md#plugins-that-register-themselves "the process that registers or another one of its process
    ///   group, or of that of the program that `sc` has started, must listen there"
    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn port_belongs_to_one_of_the_processes() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = PluginAddress::Tcp(listener.local_addr().unwrap());
        let port = listener.local_addr().unwrap().port();
        let own = ProcessGroup::of_member(i32::try_from(std::process::id()).unwrap()).unwrap();
        let other = ProcessGroup::of_leader(i32::MAX);
        assert_eq!(check_owner(&address, vec![other, own]).await, Ok(()));
        assert_eq!(check_owner(&address, vec![other]).await, Err(RegistrationError::OtherProcess(port)));
        drop(listener);
        assert_eq!(check_owner(&address, vec![own]).await, Err(RegistrationError::NotListening(port)));
    }
}
