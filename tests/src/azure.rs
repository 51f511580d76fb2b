//! Stand-in for Azure: access tokens of Microsoft Entra ID, the operations of Azure Key Vault that encrypt and decrypt a data key, and
//! a storage account whose containers nobody may use.
//!
//! Clients send their requests to the real hosts, through a proxy of the stand-in that ends their TLS with a certificate of an
//! issuer of its own. Checks the secret of the application, the scope of the token, the name and the state of the key. The form of a
//! ciphertext is that of the stand-in: each byte is inverted in part, and nothing is protected.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use crate::http::{Request, Response, read, write};
use crate::tls::certificates;

/// Secret of the application, and the beginning of each access token.
pub const SECRET: &str = "hidden~secret";
/// Beginning of each access token; the scope follows.
const TOKEN: &str = "ey.hidden.";
const TENANT: &str = "11111111-2222-3333-4444-555555555555";
const AUTHORITY: &str = "login.microsoftonline.com";

/// Mask of each byte, and mark at the beginning of a ciphertext.
const MASK: u8 = 0x5a;
const MARK: &[u8] = b"key vault ";

/// Condition of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyState {
    /// The key can be used.
    #[default]
    Enabled,
    /// The key is disabled.
    Disabled,
    /// The account has no role for the key.
    Denied,
}

#[derive(Debug, Default)]
struct State {
    /// Keys by `VAULT/NAME`.
    keys: BTreeMap<String, KeyState>,
    operations: Vec<String>,
}

/// Running proxy with the services behind it. It ends when it is dropped.
#[derive(Debug)]
pub struct Azure {
    address: SocketAddr,
    folder: TempDir,
    state: Arc<Mutex<State>>,
    task: AbortHandle,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Azure {
    /// Starts the services with these keys, such as `reef/state` for the key `state` in `reef.vault.azure.net`.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start(names: &[&str]) -> io::Result<Self> {
        let keys = names.iter().map(|name| ((*name).to_owned(), KeyState::default())).collect();
        let state = Arc::new(Mutex::new(State { keys, ..State::default() }));
        let folder = TempDir::new()?;
        let (issuer, acceptor) = certificates(&[AUTHORITY, "*.vault.azure.net", "*.blob.core.windows.net"])?;
        fs::write(folder.path().join("issuer.pem"), issuer)?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::clone(&state);
        let serve = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, state) = (acceptor.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    // The client may have closed the connection; the error is ignored.
                    drop(serve(stream, acceptor, &state).await);
                });
            }
        };
        Ok(Self { address, folder, state, task: tokio::spawn(serve).abort_handle() })
    }

    /// Returns the variables with which a program reaches the services and has credentials.
    pub fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("HTTPS_PROXY", format!("http://{}", self.address)),
            ("SSL_CERT_FILE", self.folder.path().join("issuer.pem").display().to_string()),
            ("AZURE_TENANT_ID", TENANT.to_owned()),
            ("AZURE_CLIENT_ID", "66666666-7777-8888-9999-000000000000".to_owned()),
            ("AZURE_CLIENT_SECRET", SECRET.to_owned()),
        ]
    }

    /// Changes the condition of a key.
    pub fn set(&self, name: &str, state: KeyState) {
        lock(&self.state).keys.insert(name.to_owned(), state);
    }

    /// Returns the operations of keys since the previous call of this function, such as `encrypt`.
    pub fn take_operations(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).operations)
    }
}

impl Drop for Azure {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves one request of a connection to a host.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, state: &Mutex<State>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let connect = read(&mut stream).await?;
    if connect.method != "CONNECT" {
        return write(&mut stream, Response::new(405, "")).await;
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let mut stream = BufReader::new(acceptor.accept(stream.into_inner()).await?);
    let request = read(&mut stream).await?;
    let host = connect.path.split(':').next().unwrap_or_default();
    let response = match host.split_once('.') {
        _ if host == AUTHORITY => authority(&request),
        Some((vault, "vault.azure.net")) => key_vault(&mut lock(state), vault, &request),
        Some((_, "blob.core.windows.net")) => blobs(&request),
        _ => Response::new(502, ""),
    };
    write(&mut stream, response).await
}

fn reply(status: u16, body: &Value) -> Response {
    Response::new(status, body.to_string()).with("Content-Type", "application/json; charset=utf-8")
}

/// Replies as Microsoft Entra ID: metadata, and tokens of the application.
fn authority(request: &Request) -> Response {
    let tenant = format!("https://{AUTHORITY}/{TENANT}");
    let path = request.path.split('?').next().unwrap_or_default();
    if path.starts_with("/common/discovery/instance") {
        let metadata =
            json!([{ "preferred_network": AUTHORITY, "preferred_cache": AUTHORITY, "aliases": [AUTHORITY] }]);
        let discovery = format!("{tenant}/v2.0/.well-known/openid-configuration");
        return reply(
            200,
            &json!({ "tenant_discovery_endpoint": discovery, "api-version": "1.1", "metadata": metadata }),
        );
    }
    if path.ends_with("/.well-known/openid-configuration") {
        let body = json!({
            "issuer": format!("{tenant}/v2.0"),
            "token_endpoint": format!("{tenant}/oauth2/v2.0/token"),
            "authorization_endpoint": format!("{tenant}/oauth2/v2.0/authorize"),
        });
        return reply(200, &body);
    }
    if request.method != "POST" || path != format!("/{TENANT}/oauth2/v2.0/token") {
        return reply(
            404,
            &json!({ "error": "invalid_request", "error_description": "AADSTS90002: Tenant not found." }),
        );
    }
    let form = String::from_utf8_lossy(&request.body).into_owned();
    let member = |name: &str| {
        let value = form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        Some(percent_encoding::percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned())
    };
    if member("client_secret").as_deref() != Some(SECRET) {
        let words = "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1";
        return reply(401, &json!({ "error": "invalid_client", "error_description": words }));
    }
    // Pulumi's client asks for further scopes.
    let scopes = member("scope").unwrap_or_default();
    let scope = scopes.split(' ').find(|scope| scope.ends_with("/.default")).unwrap_or_default();
    let token = format!("{TOKEN}{}", URL_SAFE_NO_PAD.encode(scope));
    reply(200, &json!({ "token_type": "Bearer", "expires_in": 3599, "access_token": token }))
}

/// Returns whether a request has a token for a scope.
fn has_token(request: &Request, scope: &str) -> bool {
    request.header("authorization") == Some(&format!("Bearer {TOKEN}{}", URL_SAFE_NO_PAD.encode(scope)))
}

/// Replies as a vault (<https://learn.microsoft.com/en-us/rest/api/keyvault/keys>).
fn key_vault(state: &mut State, vault: &str, request: &Request) -> Response {
    let refuse =
        |status, code: &str, message: &str| reply(status, &json!({ "error": { "code": code, "message": message } }));
    if !has_token(request, "https://vault.azure.net/.default") {
        let challenge =
            format!("Bearer authorization=\"https://{AUTHORITY}/{TENANT}\", resource=\"https://vault.azure.net\"");
        return refuse(401, "Unauthorized", "AKV10000: Request is missing a Bearer or PoP token.")
            .with("WWW-Authenticate", challenge);
    }
    let path = request
        .path
        .split_once('?')
        .map_or("", |(path, query)| if query.starts_with("api-version=") { path } else { "" });
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (name, operation) = match parts[..] {
        ["keys", name, operation] | ["keys", name, _, operation] => (name, operation),
        _ => return refuse(400, "BadParameter", "The request URI is invalid."),
    };
    state.operations.push(operation.to_owned());
    let bytes = |body: &Value| URL_SAFE_NO_PAD.decode(body.get("value")?.as_str()?).ok();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let masked = |bytes: &[u8]| bytes.iter().map(|byte| byte ^ MASK).collect::<Vec<u8>>();
    let result = match (state.keys.get(&format!("{vault}/{name}")), operation, bytes(&body)) {
        (None, ..) => {
            return refuse(
                404,
                "KeyNotFound",
                &format!("A key with (name/id) {name} was not found in this key vault."),
            );
        }
        (Some(KeyState::Disabled), ..) => {
            return refuse(403, "Forbidden", &format!("Operation {operation} is not allowed on a disabled key."));
        }
        (Some(KeyState::Denied), ..) => {
            return refuse(
                403,
                "Forbidden",
                "Caller is not authorized to perform action on resource.\r\nAction: 'decrypt'",
            );
        }
        (Some(KeyState::Enabled), "encrypt", Some(plaintext)) if body["alg"] == "RSA-OAEP-256" => {
            [MARK, &masked(&plaintext)].concat()
        }
        (Some(KeyState::Enabled), "decrypt", Some(ciphertext)) if ciphertext.starts_with(MARK) => {
            masked(&ciphertext[MARK.len()..])
        }
        (Some(KeyState::Enabled), ..) => return refuse(400, "BadParameter", "The parameter is incorrect."),
    };
    let kid = format!("https://{vault}.vault.azure.net/keys/{name}/7ab");
    reply(200, &json!({ "kid": kid, "value": URL_SAFE_NO_PAD.encode(result) }))
}

/// Replies as a storage account whose containers the application may not use.
fn blobs(request: &Request) -> Response {
    let (status, code) = match has_token(request, "https://storage.azure.com/.default") {
        true => (403, "AuthorizationPermissionMismatch"),
        false => (401, "InvalidAuthenticationInfo"),
    };
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>Refused.</Message></Error>");
    Response::new(status, body).with("Content-Type", "application/xml")
}
