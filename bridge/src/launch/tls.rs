//! Mutual TLS with one-time certificates, as go-plugin's AutoMTLS: each side makes a certificate when a plugin starts,
//! and accepts that of the other side only (docs/spec/plugin-hosts.md#A.6).
//!
//! The host passes its certificate as PEM in `PLUGIN_CLIENT_CERT`; the plugin prints its own in its handshake line. The
//! same certificates protect the connections of the broker, in both directions.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ServerConfig};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// Name in the certificates of both sides.
const SERVER_NAME: &str = "localhost";

/// Name of HTTP/2 in the negotiation of the application protocol. Servers of grpc-go 1.67 and newer close a connection
/// that has not negotiated it.
const ALPN_HTTP2: &[u8] = b"h2";

/// Error of a certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate of the host can be made.
    #[error("cannot make a certificate")]
    NotGenerated(#[from] rcgen::Error),
    /// The certificate and the key of the host cannot be used.
    #[error("cannot use the certificate of the host")]
    NotUsable(#[from] Error),
    /// The plugin printed no certificate, or its text is no certificate in base64. Plain text is never used instead.
    #[error("the handshake line has no certificate ({0}), so the connection cannot be encrypted")]
    NoCertificate(&'static str),
}

/// Certificate and key of the host, made for one start of a plugin.
pub struct HostIdentity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    pem: String,
}

impl HostIdentity {
    /// Makes a key on the curve P-256 and a certificate for `localhost`, for clients and servers. The certificate is not
    /// that of an authority: a go-plugin server would accept every certificate that an authority signs.
    ///
    /// # Errors
    /// [`TlsError::NotGenerated`].
    pub fn generate() -> Result<Self, TlsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut parameters = CertificateParams::new([SERVER_NAME.to_owned()])?;
        parameters.distinguished_name.push(DnType::CommonName, SERVER_NAME);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyAgreement];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = parameters.self_signed(&key)?;
        let pem = certificate.pem();
        Ok(Self { certificate: certificate.into(), key: PrivatePkcs8KeyDer::from(key.serialize_der()), pem })
    }

    /// Returns the certificate as PEM, the value of `PLUGIN_CLIENT_CERT`. Contains no secret.
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// Returns the TLS of the connections to the plugin with the certificate in the sixth field of its handshake line:
    /// base64 without padding of its DER.
    ///
    /// # Errors
    /// [`TlsError::NoCertificate`] if the field is empty or not base64 of a DER sequence.
    pub fn with_plugin_certificate(&self, field: &str) -> Result<MutualTls, TlsError> {
        if field.is_empty() {
            return Err(TlsError::NoCertificate("its sixth field is empty"));
        }
        // Releases of the library before 1.0 padded the text.
        let decoded = BASE64_STANDARD_NO_PAD.decode(field.trim_end_matches('='));
        let der = decoded.map_err(|_| TlsError::NoCertificate("its sixth field is not base64"))?;
        let pinned = Arc::new(Pinned::new(CertificateDer::from(der))?);
        MutualTls::new(self, &pinned)
    }
}

impl fmt::Debug for HostIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostIdentity").field("pem", &self.pem).finish_non_exhaustive()
    }
}

/// TLS between the host and one plugin, in both directions: each side proves that it has the key of its one-time
/// certificate. Clones share the settings.
#[derive(Clone)]
pub struct MutualTls {
    connector: TlsConnector,
    acceptor: TlsAcceptor,
}

impl MutualTls {
    fn new(host: &HostIdentity, plugin: &Arc<Pinned>) -> Result<Self, TlsError> {
        let chain = || vec![host.certificate.clone()];
        let key = || PrivateKeyDer::from(host.key.clone_key());
        let versions = &[&rustls::version::TLS13, &rustls::version::TLS12];

        let client = ClientConfig::builder_with_provider(Arc::clone(&plugin.provider));
        let client = client.with_protocol_versions(versions)?.dangerous();
        let client = client.with_custom_certificate_verifier(Arc::clone(plugin) as Arc<dyn ServerCertVerifier>);
        let mut client = client.with_client_auth_cert(chain(), key())?;
        client.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
        // A resumed session would not show the certificate again.
        client.resumption = Resumption::disabled();

        let server = ServerConfig::builder_with_provider(Arc::clone(&plugin.provider));
        let server = server.with_protocol_versions(versions)?;
        let server = server.with_client_cert_verifier(Arc::clone(plugin) as Arc<dyn ClientCertVerifier>);
        let mut server = server.with_single_cert(chain(), key())?;
        server.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Self { connector: Arc::new(client).into(), acceptor: Arc::new(server).into() })
    }

    /// Encrypts a connection that the host has opened to the plugin.
    ///
    /// # Errors
    /// Returns an error if the other end does not prove that it has the key of the plugin's certificate. With TLS 1.3, a
    /// plugin that refuses the certificate of the host does so after the handshake: the first read returns the error.
    pub async fn connect<S>(&self, stream: S) -> io::Result<EncryptedStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
        let stream = self.connector.connect(name, stream).await.map_err(failed_handshake)?;
        Ok(EncryptedStream { stream: stream.into(), has_received: false })
    }

    /// Encrypts a connection that the plugin has opened to a server of the host.
    ///
    /// # Errors
    /// Returns an error if the other end presents no certificate or another one than the plugin's.
    pub async fn accept<S>(&self, stream: S) -> io::Result<EncryptedStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let stream = self.acceptor.accept(stream).await?;
        Ok(EncryptedStream { stream: stream.into(), has_received: false })
    }
}

impl fmt::Debug for MutualTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutualTls").finish_non_exhaustive()
    }
}

/// Returns the error of a TLS handshake of a client, with what was attempted.
fn failed_handshake(error: io::Error) -> io::Error {
    let text = match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(CertificateError::Other(OtherError(reason)))) => {
            format!("the plugin is not used: {reason}")
        }
        _ => format!("the TLS handshake with the plugin failed: {error}"),
    };
    io::Error::new(error.kind(), text)
}

/// Encrypted connection. A connection that ends before its first byte is an error with its probable reasons, because a
/// go-plugin server that refuses a connection logs nothing.
pub struct EncryptedStream<S> {
    stream: TlsStream<S>,
    has_received: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        if self.has_received || buffer.remaining() == 0 && buffer.filled().len() == before {
            return Poll::Ready(read);
        }
        match read {
            Ok(()) if buffer.filled().len() > before => {
                self.has_received = true;
                Poll::Ready(Ok(()))
            }
            Ok(()) => Poll::Ready(Err(closed_before_first_byte(None))),
            Err(error) => Poll::Ready(Err(closed_before_first_byte(Some(&error)))),
        }
    }
}

impl<S> EncryptedStream<S> {
    /// Returns the result of a write. One that fails before the first byte has arrived counts as written: the next read
    /// returns the reason, and HTTP/2 would replace the error of a write by one without reason.
    fn written<T>(&self, result: Poll<io::Result<T>>, all: T) -> Poll<io::Result<T>> {
        if self.has_received { result } else { result.map(|written| Ok(written.unwrap_or(all))) }
    }
}

fn closed_before_first_byte(cause: Option<&io::Error>) -> io::Error {
    let cause = cause.map(|error| format!(" ({error})")).unwrap_or_default();
    let text = "the connection was closed before the first byte: certificate refused or no ALPN";
    io::Error::new(io::ErrorKind::ConnectionAborted, format!("{text}{cause}"))
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(result, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.written(result, slices.iter().map(|slice| slice.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(result, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Verifier of the plugin's certificate. Accepts that certificate byte for byte, and no other: its authority and its
/// validity have no meaning, because the plugin has made it for this start. The handshake is verified: its signature
/// must be that of the key in the certificate.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

/// Reason why a certificate is not accepted.
#[derive(Debug, thiserror::Error)]
#[error("it presents another certificate than the one in its handshake line")]
struct AnotherCertificate;

impl Pinned {
    fn new(certificate: CertificateDer<'static>) -> Result<Self, TlsError> {
        // The parser of rustls finds a text that is base64 but no certificate.
        let parsed = rustls::server::ParsedCertificate::try_from(&certificate);
        parsed.map_err(|_| TlsError::NoCertificate("its sixth field is not an X.509 certificate"))?;
        Ok(Self { certificate, provider: Arc::new(aws_lc_rs::default_provider()) })
    }

    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        if *presented == self.certificate {
            return Ok(());
        }
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(AnotherCertificate)))))
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
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

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(self)
    }
}
