//! Tests of mutual TLS with one-time certificates, against servers and clients that verify as go-plugin does.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use bridge::launch::{CallError, Connection, EncryptedStream, HostIdentity, Loss, MutualTls, Procedure, TlsError};
use pulumi_proto::go_plugin::Empty;
use pulumi_proto::go_plugin::grpc_controller_server::{GrpcController, GrpcControllerServer};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P521_SHA512,
};
use rustls::client::ClientConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::{RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::recordings::recordings;

struct Shutdown;

impl Procedure for Shutdown {
    const PATH: &'static str = "/plugin.GRPCController/Shutdown";
    type Request = Empty;
    type Reply = Empty;
}

struct Controller;

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }
}

/// Certificate of a plugin and its key.
struct PluginIdentity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl PluginIdentity {
    /// Makes a certificate of the kind that go-plugin makes: a self-signed authority for localhost.
    fn on(curve: &'static rcgen::SignatureAlgorithm) -> Self {
        let key = KeyPair::generate_for(curve).unwrap();
        Self { certificate: Self::parameters().self_signed(&key).unwrap().into(), key }
    }

    fn parameters() -> CertificateParams {
        let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, "localhost");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters
    }

    /// Makes another certificate, which this one has signed.
    fn leaf(&self) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512).unwrap();
        let issuing = Self::parameters();
        let issuer = Issuer::from_params(&issuing, &self.key);
        Self {
            certificate: CertificateParams::new(["localhost".to_owned()])
                .unwrap()
                .signed_by(&key, &issuer)
                .unwrap()
                .into(),
            key,
        }
    }

    /// Returns the sixth field of the handshake line.
    fn field(&self) -> String {
        BASE64_STANDARD_NO_PAD.encode(&self.certificate)
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }

    /// Returns the TLS of a plugin with `PLUGIN_CLIENT_CERT`: it accepts what chains to the certificate of the host.
    fn acceptor(&self, host_pem: &str, version: &'static SupportedProtocolVersion, alpn: &[&str]) -> TlsAcceptor {
        let provider = Arc::new(default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(host_pem)), Arc::clone(&provider));
        let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
        let config = config.with_client_cert_verifier(verifier.build().unwrap());
        let mut config = config.with_single_cert(vec![self.certificate.clone()], self.key()).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config).into()
    }
}

fn roots(pem: &str) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    roots
}

const TLS13: &SupportedProtocolVersion = &rustls::version::TLS13;
const TLS12: &SupportedProtocolVersion = &rustls::version::TLS12;

/// Behaviour of a plugin on a new connection.
#[derive(Clone)]
enum Plugin {
    /// Serves gRPC behind TLS. Closes the connection after the handshake unless HTTP/2 was negotiated, as grpc-go does.
    Tls(TlsAcceptor),
    /// Serves gRPC without TLS.
    Plain,
}

impl Plugin {
    async fn serve(self, stream: DuplexStream) {
        match self {
            Self::Tls(acceptor) => {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    let (mut near, far) = tokio::io::duplex(1 << 16);
                    tokio::spawn(serve_grpc(far));
                    tokio::io::copy_bidirectional(&mut stream, &mut near).await.ok();
                }
            }
            Self::Plain => serve_grpc(stream).await,
        }
    }
}

async fn serve_grpc(stream: DuplexStream) {
    use futures_util::StreamExt as _;
    let incoming = futures_util::stream::iter([Ok::<_, io::Error>(stream)]).chain(futures_util::stream::pending());
    Server::builder().add_service(GrpcControllerServer::new(Controller)).serve_with_incoming(incoming).await.unwrap();
}

/// Calls a procedure of a plugin. Returns `ok`, or the whole text of the error.
async fn call(plugin: Plugin, tls: Option<MutualTls>) -> String {
    let connection = Connection::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(plugin.clone().serve(far));
        let tls = tls.clone();
        async move {
            Ok::<Box<dyn Duplex>, io::Error>(match tls {
                Some(tls) => Box::new(tls.connect(near).await?),
                None => Box::new(near),
            })
        }
    });
    match connection.call::<Shutdown>(&Empty {}).await {
        Ok(Empty {}) => "ok".to_owned(),
        Err(CallError::NotSent(status) | CallError::Lost { loss: Loss::Connection(status), .. }) => {
            format!("{}: {:?}", status.message(), std::error::Error::source(&status))
        }
        Err(error) => error.to_string(),
    }
}

trait Duplex: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Duplex for S {}

/// Calls a plugin with the certificate that it printed.
async fn call_tls(
    version: &'static SupportedProtocolVersion,
    alpn: &[&str],
    curve: &'static rcgen::SignatureAlgorithm,
) -> String {
    let (host, plugin) = (HostIdentity::generate().unwrap(), PluginIdentity::on(curve));
    let tls = host.with_plugin_certificate(&plugin.field()).unwrap();
    call(Plugin::Tls(plugin.acceptor(host.certificate_pem(), version, alpn)), Some(tls)).await
}

#[tokio::test]
async fn plugin_with_its_certificate_is_called_with_each_version_and_curve() {
    for version in [TLS13, TLS12] {
        for curve in [&PKCS_ECDSA_P521_SHA512, &PKCS_ECDSA_P256_SHA256] {
            assert_eq!(call_tls(version, &["h2"], curve).await, "ok", "{version:?} {curve:?}");
        }
    }
}

#[tokio::test]
async fn plugin_with_another_certificate_or_key_is_refused() {
    let host = HostIdentity::generate().unwrap();
    let (printed, presented) =
        (PluginIdentity::on(&PKCS_ECDSA_P521_SHA512), PluginIdentity::on(&PKCS_ECDSA_P521_SHA512));
    let tls = host.with_plugin_certificate(&printed.field()).unwrap();
    for version in [TLS13, TLS12] {
        let impostor = Plugin::Tls(presented.acceptor(host.certificate_pem(), version, &["h2"]));
        let error = call(impostor, Some(tls.clone())).await;
        assert!(error.contains("it presents another certificate than the one in its handshake line"), "{error}");

        // The certificate is public; without its key, the signature of the handshake cannot be made.
        let resolver = WithoutKey { certificate: printed.certificate.clone(), key: presented.key() };
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[version])
            .unwrap();
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![b"h2".to_vec()];
        let error = call(Plugin::Tls(Arc::new(config).into()), Some(tls.clone())).await;
        assert!(error.contains("BadSignature"), "{error}");
    }
}

/// Presents a certificate, and signs with another key.
#[derive(Debug)]
struct WithoutKey {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl rustls::server::ResolvesServerCert for WithoutKey {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&self.key).unwrap();
        Some(Arc::new(rustls::sign::CertifiedKey::new(vec![self.certificate.clone()], key)))
    }
}

#[tokio::test]
async fn refused_certificate_of_the_host_is_reported_with_the_reason() {
    let (host, other) = (HostIdentity::generate().unwrap(), HostIdentity::generate().unwrap());
    let plugin = PluginIdentity::on(&PKCS_ECDSA_P521_SHA512);
    let tls = host.with_plugin_certificate(&plugin.field()).unwrap();
    let refuses = plugin.acceptor(other.certificate_pem(), TLS13, &["h2"]);
    let error = call(Plugin::Tls(refuses), Some(tls)).await;
    let expected = "the connection was closed before the first byte: certificate refused or no ALPN";
    assert!(error.contains(expected), "{error}");
}

#[tokio::test]
async fn tls_and_plain_text_are_never_mixed() {
    let (host, plugin) = (HostIdentity::generate().unwrap(), PluginIdentity::on(&PKCS_ECDSA_P521_SHA512));
    let tls = host.with_plugin_certificate(&plugin.field()).unwrap();
    let error = call(Plugin::Plain, Some(tls)).await;
    assert!(error.contains("the TLS handshake with the plugin failed"), "{error}");
    let encrypted = Plugin::Tls(plugin.acceptor(host.certificate_pem(), TLS13, &["h2"]));
    assert_ne!(call(encrypted, None).await, "ok");
}

#[test]
fn field_without_a_certificate_is_refused() {
    let host = HostIdentity::generate().unwrap();
    let table = [
        ("", "its sixth field is empty"),
        ("no base64!", "its sixth field is not base64"),
        ("bm8gY2VydGlmaWNhdGU", "its sixth field is not an X.509 certificate"),
    ];
    for (field, reason) in table {
        match host.with_plugin_certificate(field) {
            Err(TlsError::NoCertificate(found)) => assert_eq!(found, reason),
            other => panic!("{field:?}: {other:?}"),
        }
    }
    let padded = base64::prelude::BASE64_STANDARD.encode(&PluginIdentity::on(&PKCS_ECDSA_P521_SHA512).certificate);
    host.with_plugin_certificate(&padded).unwrap();
}

/// Connects to a server of the host as a plugin does: it demands the certificate of the host, valid for localhost.
async fn connect_to_host(
    server: &MutualTls,
    host_pem: &str,
    identity: Option<&PluginIdentity>,
    version: &'static SupportedProtocolVersion,
) -> Result<(), String> {
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
    let config = config.with_root_certificates(roots(host_pem));
    let mut config = match identity {
        Some(plugin) => config.with_client_auth_cert(vec![plugin.certificate.clone()], plugin.key()).unwrap(),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (near, far) = tokio::io::duplex(1 << 16);
    let name = ServerName::try_from("localhost").unwrap();
    let client = async {
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, near).await.map_err(|e| e.to_string())?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err("missing selected ALPN property".to_owned());
        }
        stream.write_all(b"x").await.map_err(|error| error.to_string())?;
        stream.read_exact(&mut [0]).await.map(drop).map_err(|error| error.to_string())
    };
    let host = async {
        let mut stream: EncryptedStream<_> = server.accept(far).await?;
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        stream.write_all(&byte).await?;
        stream.flush().await
    };
    tokio::join!(client, host).0
}

#[tokio::test]
async fn server_of_the_host_demands_the_certificate_of_the_plugin() {
    let host = HostIdentity::generate().unwrap();
    let (plugin, other) = (PluginIdentity::on(&PKCS_ECDSA_P521_SHA512), PluginIdentity::on(&PKCS_ECDSA_P521_SHA512));
    let tls = host.with_plugin_certificate(&plugin.field()).unwrap();
    for version in [TLS13, TLS12] {
        let pem = host.certificate_pem();
        assert_eq!(connect_to_host(&tls, pem, Some(&plugin), version).await, Ok(()));
        connect_to_host(&tls, pem, Some(&other), version).await.unwrap_err();
        connect_to_host(&tls, pem, None, version).await.unwrap_err();
    }
}

#[tokio::test]
async fn recorded_outcomes_of_tls_hold() {
    let mut checked = 0;
    for recording in recordings("certificates.json") {
        for case in recording["tls"].as_array().unwrap() {
            let (name, outcome) = (case["case"].as_str().unwrap(), case["outcome"].as_str().unwrap());
            let p521 = &PKCS_ECDSA_P521_SHA512;
            let (host, plugin) = (HostIdentity::generate().unwrap(), PluginIdentity::on(p521));
            let tls = host.with_plugin_certificate(&plugin.field()).unwrap();
            let acceptor = |host: &HostIdentity, version| plugin.acceptor(host.certificate_pem(), version, &["h2"]);
            let found = match name {
                "TLS 1.3" => call_tls(TLS13, &["h2"], p521).await,
                "TLS 1.2 only" => call_tls(TLS12, &["h2"], p521).await,
                "plain HTTP/2 to a TLS plugin" => call(Plugin::Tls(acceptor(&host, TLS13)), None).await,
                "TLS to a plain plugin" => call(Plugin::Plain, Some(tls)).await,
                "refused client certificate, TLS 1.3" => {
                    call(Plugin::Tls(acceptor(&HostIdentity::generate().unwrap(), TLS13)), Some(tls)).await
                }
                "plugin with an own TLS provider, AutoMTLS asked" => {
                    // Its sixth field is empty.
                    host.with_plugin_certificate("").map(|_| "ok".to_owned()).unwrap_or_else(|error| error.to_string())
                }
                // The host always offers HTTP/2; a plugin without it closes the connection as in the recording.
                "ALPN http/1.1 only, plugin with grpc-go 1.83" => call_tls(TLS13, &["http/1.1"], p521).await,
                "no ALPN, plugin with grpc-go 1.83" => call_tls(TLS13, &[], p521).await,
                _ => continue,
            };
            checked += 1;
            assert_eq!(found == "ok", outcome.starts_with("works"), "{name}: {outcome}; found {found}");
        }
        let server = &recording["server_certificate"];
        assert_eq!(
            (&server["curve"], &server["ca"], &server["san"][0]),
            (&"secp521r1".into(), &true.into(), &"localhost".into())
        );
    }
    assert!(checked >= 8, "{checked} cases were recognised");
}

/// Certificates of the other end as recorded. A plugin of Go accepts what chains to the certificate of its host; the host
/// accepts, at its own servers, the certificate of the plugin alone.
#[tokio::test]
async fn server_of_the_host_accepts_none_of_the_recorded_certificates_but_the_one_of_the_plugin() {
    let host = HostIdentity::generate().unwrap();
    let mut checked = 0;
    for recording in recordings("certificates.json") {
        for case in recording["host_certificate"].as_array().unwrap() {
            let p521 = &PKCS_ECDSA_P521_SHA512;
            let plugin = PluginIdentity::on(p521);
            let tls = host.with_plugin_certificate(&plugin.field()).unwrap();
            let (presented, version, is_accepted) = match case["certificate"].as_str().unwrap() {
                "P-521, CA (Go's own kind)" => (Some(plugin), TLS13, true),
                "another self-signed one of the same subject" => (Some(PluginIdentity::on(p521)), TLS13, false),
                "a leaf signed by the host certificate (CA)" => (Some(plugin.leaf()), TLS13, false),
                "none presented, TLS 1.3" => (None, TLS13, false),
                "none presented, TLS 1.2" => (None, TLS12, false),
                _ => continue,
            };
            let found = connect_to_host(&tls, host.certificate_pem(), presented.as_ref(), version).await;
            assert_eq!(found.is_ok(), is_accepted, "{}: {found:?}", case["certificate"]);
            checked += 1;
        }
    }
    assert!(checked >= 5, "{checked} cases were recognised");
}

#[test]
fn certificates_in_recorded_lines_are_pinned() {
    let mut found = 0;
    for recording in recordings("handshakes.json") {
        for case in recording["real"].as_array().unwrap() {
            let line = case["line"].as_str().unwrap_or_default();
            let field = line.trim().split('|').nth(5).unwrap_or_default();
            if field.len() > 50 {
                HostIdentity::generate().unwrap().with_plugin_certificate(field).unwrap();
                found += 1;
            }
        }
    }
    assert!(found > 0, "the recordings have certificates");
}
