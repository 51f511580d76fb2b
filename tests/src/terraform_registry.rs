//! Registry of Terraform providers: service discovery, versions, archives, checksums, and signatures by keys that are made for a test.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pgp::composed::{
    ArmorOptions, DetachedSignature, EncryptionCaps, KeyType, SecretKeyParamsBuilder, SignedSecretKey,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::ser::Serialize as _;
use pgp::types::{KeyDetails as _, Password};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::http::{HttpServer, Request, Response};
use crate::releases::sha256;
use crate::tls::certificates;

/// Key of an author, which signs checksum files.
#[derive(Clone, Debug)]
pub struct AuthorKey {
    secret: SignedSecretKey,
}

impl AuthorKey {
    /// Generates a key.
    ///
    /// # Errors
    /// Returns the errors of the library.
    pub fn generate() -> io::Result<Self> {
        let mut parameters = SecretKeyParamsBuilder::default();
        parameters
            .key_type(KeyType::Ed25519Legacy)
            .can_certify(true)
            .can_sign(true)
            .can_encrypt(EncryptionCaps::None)
            .primary_user_id("Reef <reef@reef.example>".into());
        let parameters = parameters.build().map_err(io::Error::other)?;
        let secret = parameters.generate(rand::thread_rng()).map_err(io::Error::other)?;
        Ok(Self { secret })
    }

    /// Returns the fingerprint, in upper case.
    pub fn fingerprint(&self) -> String {
        format!("{:X}", self.secret.fingerprint())
    }

    /// Returns the public key, with armor.
    ///
    /// # Errors
    /// Returns the errors of the library.
    pub fn public(&self) -> io::Result<String> {
        self.secret.to_public_key().to_armored_string(ArmorOptions::default()).map_err(io::Error::other)
    }

    /// Returns the detached signature of a content.
    ///
    /// # Errors
    /// Returns the errors of the library.
    pub fn sign(&self, content: &[u8]) -> io::Result<Vec<u8>> {
        let (key, password, hash) = (&self.secret.primary_key, Password::empty(), HashAlgorithm::Sha256);
        let signature = DetachedSignature::sign_binary_data(rand::thread_rng(), key, &password, hash, content);
        signature.and_then(|signature| signature.to_bytes()).map_err(io::Error::other)
    }
}

/// Function that changes an answer.
type Change = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Registry. It ends when it is dropped.
#[derive(Debug)]
pub struct TerraformRegistry {
    server: HttpServer,
    served: Arc<Mutex<Served>>,
    authority: Option<tempfile::NamedTempFile>,
}

#[derive(Default)]
struct Served {
    /// Archives by platform (`linux_amd64`), by version, by provider (`acme/reef`).
    providers: BTreeMap<String, BTreeMap<String, BTreeMap<String, Vec<u8>>>>,
    /// Public keys that the registry names.
    keys: Vec<String>,
    /// Key that signs the checksum files.
    signer: Option<AuthorKey>,
    /// Changes of the answers whose path contains a text.
    changes: Vec<(String, Change)>,
    /// Overriding responses, by a part of the path.
    overrides: BTreeMap<String, Response>,
    /// Token without which the service answers 401.
    token: Option<String>,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("providers", &self.providers.keys()).finish_non_exhaustive()
    }
}

impl TerraformRegistry {
    /// Starts a registry without providers.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start() -> io::Result<Self> {
        let served: Arc<Mutex<Served>> = Arc::default();
        let server = HttpServer::start(handler(&served)).await?;
        Ok(Self { server, served, authority: None })
    }

    /// Starts a registry with TLS, whose certificate is that of an authority of its own: see [`TerraformRegistry::authority`].
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start_tls() -> io::Result<Self> {
        let served: Arc<Mutex<Served>> = Arc::default();
        let (issuer, acceptor) = certificates(&["127.0.0.1"])?;
        let authority = tempfile::NamedTempFile::new()?;
        std::fs::write(authority.path(), issuer)?;
        let server = HttpServer::start_tls(handler(&served), acceptor).await?;
        Ok(Self { server, served, authority: Some(authority) })
    }

    /// Returns the file with the certificate of the authority, in PEM.
    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_ref().map(tempfile::NamedTempFile::path)
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the host with its port, the first part of the addresses of its providers.
    pub fn host(&self) -> String {
        let url = self.url();
        url.split_once("://").map_or("", |(_, host)| host).to_owned()
    }

    /// Publishes a version of a provider (`acme/reef`) with the archives of platforms (`linux_amd64`).
    pub fn publish(&self, provider: &str, version: &str, archives: &[(&str, &[u8])]) {
        let archives = archives.iter().map(|(platform, bytes)| ((*platform).to_owned(), bytes.to_vec())).collect();
        self.lock().providers.entry(provider.to_owned()).or_default().insert(version.to_owned(), archives);
    }

    /// Signs all checksum files with a key, and names it; `None`: with none.
    ///
    /// # Errors
    /// Returns the errors of [`AuthorKey::public`].
    pub fn sign_with(&self, key: Option<&AuthorKey>) -> io::Result<()> {
        let keys = key.map(AuthorKey::public).transpose()?.into_iter().collect();
        let mut served = self.lock();
        (served.keys, served.signer) = (keys, key.cloned());
        Ok(())
    }

    /// Names these public keys, whichever signs.
    pub fn name_keys(&self, keys: &[String]) {
        self.lock().keys = keys.to_vec();
    }

    /// Returns the checksum file of a version of a provider, if it is published.
    pub fn sums(&self, provider: &str, version: &str) -> Option<String> {
        let (_, name) = provider.split_once('/')?;
        Some(sums_of(name, version, self.lock().providers.get(provider)?.get(version)?))
    }

    /// Changes the answers in JSON whose path contains a text.
    pub fn change(&self, path: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.lock().changes.push((path.to_owned(), Arc::new(change)));
    }

    /// Overrides the response to every request whose path contains a text.
    pub fn override_response(&self, path: &str, response: Response) {
        self.lock().overrides.insert(path.to_owned(), response);
    }

    /// Removes all changes and overriding responses.
    pub fn clear(&self) {
        let mut served = self.lock();
        served.changes.clear();
        served.overrides.clear();
    }

    /// Answers requests to the service only with a token.
    pub fn require_token(&self, token: &str) {
        self.lock().token = Some(format!("Bearer {token}"));
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn handler(
    served: &Arc<Mutex<Served>>,
) -> impl Fn(Request) -> std::future::Ready<Response> + Send + Sync + 'static + use<> {
    let served = Arc::clone(served);
    move |request| std::future::ready(respond(&served.lock().unwrap_or_else(PoisonError::into_inner), &request))
}

fn respond(served: &Served, request: &Request) -> Response {
    let path = request.path.as_str();
    if let Some((_, response)) = served.overrides.iter().find(|(part, _)| path.contains(part.as_str())) {
        return response.clone();
    }
    if let Some(file) = path.strip_prefix("/files/") {
        return respond_file(served, file).unwrap_or_else(not_found);
    }
    let sent = request.header("authorization");
    let is_refused = match &served.token {
        Some(token) => sent != Some(token),
        None => sent.is_some_and(|sent| sent.contains("stale")),
    };
    if is_refused {
        return Response::new(401, r#"{"errors":["Unauthorized"]}"#);
    }
    let answer = match path {
        "/.well-known/terraform.json" => Some(json!({ "providers.v1": "/v1/providers/" })),
        _ => path.strip_prefix("/v1/providers/").and_then(|path| answer(served, path)),
    };
    let Some(mut answer) = answer else { return not_found() };
    for (_, change) in served.changes.iter().filter(|(part, _)| path.contains(part.as_str())) {
        change(&mut answer);
    }
    Response::new(200, answer.to_string()).with("Content-Type", "application/json")
}

fn not_found() -> Response {
    Response::new(404, r#"{"errors":["Not Found"]}"#)
}

/// Returns the answer to `NAMESPACE/NAME/versions` or `NAMESPACE/NAME/VERSION/download/OS/ARCH`.
fn answer(served: &Served, path: &str) -> Option<Value> {
    let parts: Vec<&str> = path.split('/').collect();
    let (provider, name) = (parts.get(..2)?.join("/"), *parts.get(1)?);
    let versions = served.providers.get(&provider)?;
    match parts[2..] {
        ["versions"] => {
            let platform = |platform: &String| {
                let (os, arch) = platform.split_once('_').unwrap_or_default();
                json!({ "os": os, "arch": arch })
            };
            let version = |(version, archives): (&String, &BTreeMap<String, Vec<u8>>)| {
                let platforms: Vec<Value> = archives.keys().map(platform).collect();
                json!({ "version": version, "protocols": ["5.0"], "platforms": platforms })
            };
            Some(json!({ "versions": versions.iter().map(version).collect::<Vec<Value>>() }))
        }
        [version, "download", os, arch] => {
            let bytes = versions.get(version)?.get(&format!("{os}_{arch}"))?;
            let filename = format!("terraform-provider-{name}_{version}_{os}_{arch}.zip");
            // Relative, to the address of this answer.
            let files = format!("/files/{provider}/{version}");
            let keys: Vec<Value> = served.keys.iter().map(|key| json!({ "key_id": "0", "ascii_armor": key })).collect();
            Some(json!({
                "protocols": ["5.0"], "os": os, "arch": arch, "filename": filename,
                "download_url": format!("{files}/{filename}"), "shasum": sha256(bytes),
                "shasums_url": format!("{files}/SHA256SUMS"),
                "shasums_signature_url": format!("{files}/SHA256SUMS.sig"),
                "signing_keys": { "gpg_public_keys": keys },
            }))
        }
        _ => None,
    }
}

fn respond_file(served: &Served, path: &str) -> Option<Response> {
    let [namespace, name, version, file] = path.split('/').collect::<Vec<_>>().try_into().ok()?;
    let archives = served.providers.get(&format!("{namespace}/{name}"))?.get(version)?;
    let filename = |platform: &str| format!("terraform-provider-{name}_{version}_{platform}.zip");
    let sums = || sums_of(name, version, archives);
    let content = match file {
        "SHA256SUMS" => sums().into_bytes(),
        "SHA256SUMS.sig" => served.signer.as_ref()?.sign(sums().as_bytes()).ok()?,
        file => archives.iter().find(|(platform, _)| filename(platform) == file)?.1.clone(),
    };
    Some(Response::new(200, content))
}

/// Returns the checksum file of a version.
fn sums_of(name: &str, version: &str, archives: &BTreeMap<String, Vec<u8>>) -> String {
    let line = |(platform, bytes): (&String, &Vec<u8>)| {
        format!("{}  terraform-provider-{name}_{version}_{platform}.zip\n", sha256(bytes))
    };
    archives.iter().map(line).collect()
}

/// Returns the archive of a provider with files and their modes.
///
/// # Errors
/// Returns the errors of the archive writer, which writes to memory.
pub fn provider_archive(files: &[(&str, u32, &[u8])]) -> io::Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, mode, content) in files {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        archive.start_file(*path, options.unix_permissions(*mode))?;
        archive.write_all(content)?;
    }
    Ok(archive.finish()?.into_inner())
}
