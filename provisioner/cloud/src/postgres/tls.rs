//! TLS of a connection: which certificates a server may have, as github.com/lib/pq decides it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::fs::{FileError, read_if_exists, read_named};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls::{SupportedProtocolVersion, version};
use rustls_platform_verifier::Verifier;

use super::parameters::{Parameter, Parameters};
use super::url_error::PostgresUrlError;

/// Limit of a file with certificates.
const FILE_LIMIT: u64 = 16 * 1024 * 1024;
/// Name of the protocol in a handshake that was not negotiated before.
const ALPN: &[u8] = b"postgresql";

/// Use of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SslMode {
    /// Never.
    Disable,
    /// If the server refuses a connection without it.
    Allow,
    /// If the server offers it.
    Prefer,
    /// Always; the certificate is not verified unless there is a root certificate.
    Require,
    /// Always, and an authority has signed the certificate.
    VerifyCa,
    /// Always, and the certificate is that of the host.
    VerifyFull,
}

/// Settings of TLS.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub(super) mode: SslMode,
    /// Starts the handshake without negotiation (PostgreSQL 17 and newer).
    pub(super) is_direct: bool,
    pub(super) sends_name: bool,
    roots: Roots,
    certificate: Option<Pem>,
    key: Option<Pem>,
    versions: Vec<&'static SupportedProtocolVersion>,
}

/// Authorities whose certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Roots {
    /// Certificates of a file or of the URL.
    Named(Pem),
    /// Certificates of a file in the home folder, if it exists.
    Home(PathBuf),
    /// Certificates that the operating system trusts.
    Platform,
}

/// Certificates or a key.
#[derive(Clone, PartialEq, Eq)]
enum Pem {
    File(PathBuf),
    /// File in the home folder, which may be missing.
    HomeFile(PathBuf),
    Inline(String),
}

/// Extent of the verification of a server's certificate.
#[derive(Debug, PartialEq, Eq)]
enum Verification {
    /// Possession of the key only: who controls the network can read the connection.
    Signature,
    /// An authority of the list has signed it.
    Chain,
    /// An authority has signed it for the host.
    Full,
}

/// Reason why the settings of TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{0} contains no {1} in PEM format")]
    Pem(String, &'static str),
    #[error("{0} can be read by other users: allow it to its owner only (chmod 600)")]
    OpenKey(PathBuf),
    #[error("cannot use the settings of TLS")]
    Rustls(#[from] Error),
}

impl TlsSettings {
    /// Takes the parameters of TLS. A Unix socket has no TLS.
    pub(super) fn take(
        parameters: &mut Parameters,
        home: Option<&Path>,
        is_socket: bool,
    ) -> Result<Self, PostgresUrlError> {
        let modes = [
            ("disable", SslMode::Disable),
            ("allow", SslMode::Allow),
            ("prefer", SslMode::Prefer),
            ("require", SslMode::Require),
            ("verify-ca", SslMode::VerifyCa),
            ("verify-full", SslMode::VerifyFull),
        ];
        let mode = parameters.take_word("sslmode", &modes)?;
        let negotiations = [("postgres", false), ("direct", true)];
        let is_direct = parameters.take_word("sslnegotiation", &negotiations)?.unwrap_or(false);
        let sends_name = parameters.take_bool("sslsni")?.unwrap_or(true);
        let is_inline = parameters.take_bool("sslinline")?.unwrap_or(false);
        let versions = versions(parameters)?;
        let folder = home.map(|home| home.join(".postgresql"));
        let in_home = |name: &str| folder.as_ref().map(|folder| folder.join(name));
        let pem = |value: String| if is_inline { Pem::Inline(value) } else { Pem::File(PathBuf::from(value)) };
        let home_pem = |name: &str| in_home(name).filter(|_| !is_inline).map(Pem::HomeFile);
        let certificate = parameters.take_text("sslcert").map(pem).or_else(|| home_pem("postgresql.crt"));
        let key = parameters.take_text("sslkey").map(pem).or_else(|| home_pem("postgresql.key"));

        let root = parameters.take("sslrootcert");
        let is_system = root.as_ref().is_some_and(|root| root.value == "system" && !is_inline);
        let default_mode = if is_system { SslMode::VerifyFull } else { SslMode::Require };
        let roots = match root {
            Some(root) if is_system => {
                if mode.is_some_and(|mode| mode != SslMode::VerifyFull) {
                    return Err(root.refuse("a file unless sslmode is verify-full".to_owned()));
                }
                Roots::Platform
            }
            Some(root) => Roots::Named(pem(root.value)),
            // Without sslmode, the driver does not look for this file.
            None => in_home("root.crt").filter(|_| mode.is_some() && !is_inline).map_or(Roots::Platform, Roots::Home),
        };
        let mode = if is_socket { SslMode::Disable } else { mode.unwrap_or(default_mode) };
        if is_direct && matches!(mode, SslMode::Disable | SslMode::Allow | SslMode::Prefer) && !is_socket {
            let hint = "use it with sslmode=require, verify-ca or verify-full";
            return Err(PostgresUrlError::Unsupported { setting: "sslnegotiation=direct".to_owned(), hint });
        }
        Ok(Self { mode, is_direct, sends_name, roots, certificate, key, versions })
    }

    /// Returns the configuration of a client. Reads the files.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(super) fn client_config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let roots = self.roots.read()?;
        let verifier: Arc<dyn ServerCertVerifier> = match (verification(self.mode, roots.is_some()), roots) {
            (Verification::Full, None) => Arc::new(Verifier::new(Arc::clone(&provider))?),
            (verification, roots) => Arc::new(ListVerifier::new(verification, roots.unwrap_or_default(), &provider)?),
        };
        let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&self.versions)?;
        let config = config.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match self.identity()? {
            Some((chain, key)) => config.with_client_auth_cert(chain, key)?,
            None => config.with_no_client_auth(),
        };
        config.enable_sni = self.sends_name;
        if self.is_direct {
            config.alpn_protocols = vec![ALPN.to_vec()];
        }
        Ok(config)
    }

    /// Returns the certificate of the client and its key.
    fn identity(&self) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, TlsError> {
        let Some(certificate) = &self.certificate else { return Ok(None) };
        let Some(content) = certificate.read()? else { return Ok(None) };
        let chain = certificates(&content, certificate)?;
        let missing = || TlsError::Pem("sslkey".to_owned(), "private key");
        let key = self.key.as_ref().ok_or_else(missing)?;
        key.check_access()?;
        let content = key.read()?.ok_or_else(missing)?;
        let parsed = PrivateKeyDer::from_pem_slice(&content);
        Ok(Some((chain, parsed.map_err(|_| TlsError::Pem(key.to_string(), "private key"))?)))
    }
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings").field("mode", &self.mode).field("roots", &self.roots).finish_non_exhaustive()
    }
}

/// Returns how a certificate is verified. Without a list of authorities, `verify-ca` verifies the host as well: everybody
/// can get a certificate of an authority that the operating system trusts.
fn verification(mode: SslMode, has_roots: bool) -> Verification {
    match mode {
        SslMode::Disable | SslMode::Allow | SslMode::Prefer | SslMode::Require if has_roots => Verification::Chain,
        SslMode::Disable | SslMode::Allow | SslMode::Prefer | SslMode::Require => Verification::Signature,
        SslMode::VerifyCa if has_roots => Verification::Chain,
        SslMode::VerifyCa | SslMode::VerifyFull => Verification::Full,
    }
}

fn versions(parameters: &mut Parameters) -> Result<Vec<&'static SupportedProtocolVersion>, PostgresUrlError> {
    // Versions before 1.2 are not offered, which a lower minimum allows.
    let minima = [("TLSv1.0", 2), ("TLSv1.1", 2), ("TLSv1.2", 2), ("TLSv1.3", 3)];
    let minimum = parameters.take_word("ssl_min_protocol_version", &minima)?.unwrap_or(2);
    let maximum = parameters.take_word("ssl_max_protocol_version", &[("TLSv1.2", 2), ("TLSv1.3", 3)])?.unwrap_or(3);
    let all = [(2, &version::TLS12), (3, &version::TLS13)];
    let versions: Vec<_> =
        all.into_iter().filter(|(minor, _)| (minimum..=maximum).contains(minor)).map(|(_, version)| version).collect();
    if versions.is_empty() {
        let parameter = Parameter { value: "TLSv1.2".to_owned(), setting: "ssl_max_protocol_version" };
        return Err(parameter.refuse("at least ssl_min_protocol_version".to_owned()));
    }
    Ok(versions)
}

impl Roots {
    /// Returns the certificates of the authorities; `None` if they are those of the operating system.
    fn read(&self) -> Result<Option<Vec<CertificateDer<'static>>>, TlsError> {
        let pem = match self {
            Self::Named(pem) => pem.clone(),
            Self::Home(path) => Pem::HomeFile(path.clone()),
            Self::Platform => return Ok(None),
        };
        let content = pem.read()?;
        content.map(|content| certificates(&content, &pem)).transpose()
    }
}

fn certificates(content: &[u8], pem: &Pem) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let list = CertificateDer::pem_slice_iter(content).collect::<Result<Vec<_>, _>>();
    list.ok().filter(|list| !list.is_empty()).ok_or_else(|| TlsError::Pem(pem.to_string(), "certificate"))
}

impl Pem {
    fn read(&self) -> Result<Option<Vec<u8>>, FileError> {
        match self {
            Self::File(path) => read_named(path, FILE_LIMIT).map(Some),
            Self::HomeFile(path) => read_if_exists(path, FILE_LIMIT),
            Self::Inline(text) => Ok(Some(text.clone().into_bytes())),
        }
    }

    /// Refuses the file of a private key that other users can read; root may share one with its group.
    #[cfg(unix)]
    fn check_access(&self) -> Result<(), TlsError> {
        use std::os::unix::fs::MetadataExt as _;
        let (Self::File(path) | Self::HomeFile(path)) = self else { return Ok(()) };
        let metadata = path.metadata().map_err(FileError::of("read", path))?;
        let allowed = if metadata.uid() == 0 { 0o640 } else { 0o600 };
        if metadata.mode() & 0o777 & !allowed == 0 { Ok(()) } else { Err(TlsError::OpenKey(path.clone())) }
    }

    #[cfg(not(unix))]
    fn check_access(&self) -> Result<(), TlsError> {
        Ok(())
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) | Self::HomeFile(path) => write!(f, "{}", path.display()),
            Self::Inline(_) => f.write_str("the URL (sslinline)"),
        }
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Verifier that knows the authorities, or verifies only that the server has the key of its certificate.
#[derive(Debug)]
struct ListVerifier {
    verification: Verification,
    list: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
    provider: CryptoProvider,
}

impl ListVerifier {
    fn new(
        verification: Verification,
        list: Vec<CertificateDer<'static>>,
        provider: &CryptoProvider,
    ) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in &list {
            roots.add(certificate.clone())?;
        }
        Ok(Self { verification, list, roots, provider: provider.clone() })
    }

    /// Verifies that an authority has signed a certificate, or that it is itself in the list: a server that has signed
    /// its certificate itself is its own authority, which the library does not accept.
    fn verify_chain(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let verified = verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms);
        match verified {
            // The time is verified before the use as a server.
            Err(Error::InvalidCertificate(CertificateError::Other(_))) if self.list.contains(certificate) => Ok(()),
            verified => verified,
        }
    }
}

impl ServerCertVerifier for ListVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.verification {
            Verification::Signature => {}
            Verification::Chain => self.verify_chain(certificate, intermediates, now)?,
            Verification::Full => {
                self.verify_chain(certificate, intermediates, now)?;
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns whether a failed handshake is due to the certificate or the protocol, and not to the network.
pub(super) fn is_tls_error(error: &(dyn std::error::Error + 'static)) -> bool {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<Error>() || inner.is_some_and(|inner| inner.is::<Error>())
}
