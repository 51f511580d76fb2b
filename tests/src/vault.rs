//! Stand-in for HashiCorp Vault: the two operations of its transit engine that encrypt and decrypt a data key, over HTTP.
//!
//! The form of a ciphertext is that of the recording `tests/goldens/state/cloud`: each byte is inverted in part, and nothing is
//! protected. Checks the token, and the name and the state of the key. Its token has the policy of docs/server-yaml.md for the keys
//! of the start: refusals have the statuses and the words of Vault 1.21 ([`crate::vault_server`]).

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::http::{HttpServer, Request, Response};

/// Token that the server accepts.
pub const TOKEN: &str = "hvs.hidden-token";

/// Mask of each byte, and mark at the beginning of a ciphertext.
const MASK: u8 = 0x5a;
const MARK: &str = "vault:v1:";

/// Condition of a key, or of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyState {
    /// The key can be used.
    #[default]
    Enabled,
    /// The version of the key that encrypted may not be used any more.
    Archived,
    /// The key was deleted. The policy of the token still names it.
    Deleted,
    /// The policy of the token does not name the key.
    Denied,
    /// The server is sealed.
    Sealed,
}

#[derive(Debug, Default)]
struct Keys {
    /// Keys by `ENGINE/NAME`.
    states: BTreeMap<String, KeyState>,
    operations: Vec<String>,
    namespaces: Vec<String>,
}

/// Running server with some keys.
#[derive(Debug)]
pub struct Vault {
    server: HttpServer,
    keys: Arc<Mutex<Keys>>,
}

fn lock(keys: &Mutex<Keys>) -> MutexGuard<'_, Keys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Vault {
    /// Starts a server with these keys, such as `transit/reef`.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start(names: &[&str]) -> io::Result<Self> {
        let states = names.iter().map(|name| ((*name).to_owned(), KeyState::default())).collect();
        let keys = Arc::new(Mutex::new(Keys { states, ..Keys::default() }));
        let of_server = Arc::clone(&keys);
        let server = HttpServer::start(move |request| {
            let response = response(&mut lock(&of_server), &request);
            async { response }
        });
        Ok(Self { server: server.await?, keys })
    }

    /// Returns the base URL of the server.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Changes the condition of a key.
    pub fn set(&self, name: &str, state: KeyState) {
        lock(&self.keys).states.insert(name.to_owned(), state);
    }

    /// Returns the operations since the previous call of this function, such as `encrypt`.
    pub fn take_operations(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.keys).operations)
    }

    /// Returns the namespaces of the requests since the previous call of this function.
    pub fn take_namespaces(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.keys).namespaces)
    }
}

fn response(keys: &mut Keys, request: &Request) -> Response {
    match reply(keys, request) {
        Ok(data) => Response::new(200, json!({ "data": data }).to_string()),
        Err((status, errors)) => Response::new(status, json!({ "errors": errors }).to_string()),
    }
    .with("Content-Type", "application/json")
}

type Refusal = (u16, Vec<&'static str>);

fn reply(keys: &mut Keys, request: &Request) -> Result<Value, Refusal> {
    let malformed = || (400, vec!["malformed request"]);
    let path = request.path.strip_prefix("/v1/").ok_or_else(malformed)?;
    let mut parts: Vec<&str> = path.split('/').collect();
    let (name, operation) = (parts.pop().ok_or_else(malformed)?, parts.pop().ok_or_else(malformed)?);
    keys.operations.push(operation.to_owned());
    keys.namespaces.extend(request.header("x-vault-namespace").map(str::to_owned));
    if request.method != "PUT" && request.method != "POST" {
        return Err((405, vec!["unsupported operation"]));
    }
    let state = keys.states.get(&format!("{}/{name}", parts.join("/"))).copied();
    if state == Some(KeyState::Sealed) {
        return Err((503, vec!["Vault is sealed"]));
    }
    if request.header("x-vault-token") != Some(TOKEN) {
        return Err((403, vec!["2 errors occurred:\n\t* permission denied\n\t* invalid token\n\n"]));
    }
    let body: Value = serde_json::from_slice(&request.body).map_err(|_| malformed())?;
    let text = |member: &str| body.get(member).and_then(Value::as_str).ok_or_else(malformed);
    match (state, operation) {
        (Some(KeyState::Deleted), "decrypt") => Err((400, vec!["encryption key not found"])),
        // An encryption with a key that does not exist would create it, which the policy does not allow.
        (Some(KeyState::Deleted | KeyState::Denied | KeyState::Sealed) | None, _) => {
            Err((403, vec!["1 error occurred:\n\t* permission denied\n\n"]))
        }
        (Some(KeyState::Archived), "decrypt") => {
            Err((400, vec!["ciphertext or signature version is disallowed by policy (too old)"]))
        }
        (Some(_), "encrypt") => {
            let plaintext = BASE64.decode(text("plaintext")?).map_err(|_| malformed())?;
            let masked: Vec<u8> = plaintext.iter().map(|byte| byte ^ MASK).collect();
            Ok(json!({ "ciphertext": format!("{MARK}{}", BASE64.encode(masked)), "key_version": 1 }))
        }
        (Some(_), "decrypt") => {
            let encoded = text("ciphertext")?.strip_prefix(MARK).ok_or((400, vec!["invalid ciphertext: no prefix"]))?;
            let masked = BASE64.decode(encoded).map_err(|_| malformed())?;
            let plaintext: Vec<u8> = masked.iter().map(|byte| byte ^ MASK).collect();
            Ok(json!({ "plaintext": BASE64.encode(plaintext) }))
        }
        (Some(_), _) => Err((404, Vec::new())),
    }
}
