//! TLS of servers with an authority of their own.

use std::io;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Returns the certificate of an issuer in PEM, and the TLS of a server with a certificate of it for these hosts.
pub(crate) fn certificates(hosts: &[&str]) -> io::Result<(String, TlsAcceptor)> {
    let key = || KeyPair::generate().map_err(io::Error::other);
    let (issuer_key, key) = (key()?, key()?);
    let mut issuer = CertificateParams::new(Vec::<String>::new()).map_err(io::Error::other)?;
    issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    issuer.distinguished_name.push(DnType::CommonName, "Issuer of the reef");
    let pem = issuer.self_signed(&issuer_key).map_err(io::Error::other)?.pem();
    let issuer = Issuer::new(issuer, issuer_key);
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let certificate = CertificateParams::new(hosts).map_err(io::Error::other)?;
    let certificate = certificate.signed_by(&key, &issuer).map_err(io::Error::other)?;
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    Ok((pem, TlsAcceptor::from(Arc::new(config.map_err(io::Error::other)?))))
}
